"""Prefixes, printed quantities and argument checks.

Values that are stored, passed and returned are base units: bytes, seconds, FLOPs, FLOPs per
second, tokens, dollars. A prefix enters at the edge (``80 * GB``) and leaves through
:func:`format_quantity`. Decimal and binary prefixes never stand for each other: ``GB`` is
1e9 bytes and ``GIB`` is 2**30 bytes.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass
from numbers import Integral, Real

KB, MB, GB, TB = 1e3, 1e6, 1e9, 1e12
KIB, MIB, GIB, TIB = 2.0**10, 2.0**20, 2.0**30, 2.0**40
GFLOPS, TFLOPS, PFLOPS = 1e9, 1e12, 1e15
MICROSECOND, MILLISECOND = 1e-6, 1e-3

#: How many base units one printed unit is worth, and which base unit that is.
UNITS: dict[str, tuple[float, str]] = {
    "": (1.0, ""),
    "bytes": (1.0, "bytes"),
    "KB": (KB, "bytes"),
    "MB": (MB, "bytes"),
    "GB": (GB, "bytes"),
    "TB": (TB, "bytes"),
    "KiB": (KIB, "bytes"),
    "MiB": (MIB, "bytes"),
    "GiB": (GIB, "bytes"),
    "TiB": (TIB, "bytes"),
    "GB/s": (GB, "bytes/s"),
    "TB/s": (TB, "bytes/s"),
    "s": (1.0, "seconds"),
    "seconds": (1.0, "seconds"),
    "ms": (MILLISECOND, "seconds"),
    "µs": (MICROSECOND, "seconds"),
    "microseconds": (MICROSECOND, "seconds"),
    "FLOPs": (1.0, "FLOPs"),
    "GFLOPs": (GFLOPS, "FLOPs"),
    "teraFLOPs": (TFLOPS, "FLOPs"),
    "petaFLOPs": (PFLOPS, "FLOPs"),
    "teraFLOPS": (TFLOPS, "FLOPs/s"),
    "petaFLOPS": (PFLOPS, "FLOPs/s"),
    "FLOPs per byte": (1.0, "FLOPs/byte"),
    "percent": (0.01, "ratio"),
    "%": (0.01, "ratio"),
    "times": (1.0, "ratio"),
    "billion": (1e9, ""),
    "million": (1e6, ""),
    "tokens": (1.0, "tokens"),
    "tokens/s": (1.0, "tokens/s"),
    "tokens a second": (1.0, "tokens/s"),
    "dollars": (1.0, "dollars"),
}

_WORDS = "zero one two three four five six seven eight nine ten eleven twelve".split()  # noqa: SIM905
_QUANTITY = re.compile(r"^(?P<number>[-−]?\d[\d,]*(?:\.\d+)?)(?:[\s\u00a0-]*(?P<unit>\D.*))?$")


@dataclass(frozen=True)
class Quantity:
    """A number as it is printed, with its unit.

    ``number`` is in the printed unit, ``scale`` base units make one printed unit, and
    ``decimals`` is how many digits stand after the point.
    """

    text: str
    number: float
    unit: str
    scale: float
    base_unit: str
    decimals: int


def parse_quantity(text: str) -> Quantity:
    """Read a printed quantity such as ``"14.3 ms"``, ``"70,552,387,584"`` or ``"three"``.

    Words after the number that are no known unit ("54 conversations") name what is counted; the
    number is then taken as it stands.

    Parameters
    ----------
    text : str
        The quantity as a reader sees it [text].

    Returns
    -------
    Quantity
        The number in its printed unit, with the scale to base units.

    Raises
    ------
    ValueError
        If `text` does not begin with a number or a number word up to twelve.

    Examples
    --------
    >>> parse_quantity("14.3 ms").scale
    0.001
    >>> parse_quantity("320 KiB").number * parse_quantity("320 KiB").scale
    327680.0
    >>> parse_quantity("three conversations").number
    3.0
    """
    stripped = text.strip()
    first, _, rest = stripped.partition(" ")
    if first.lower() in _WORDS:
        number, unit, decimals = float(_WORDS.index(first.lower())), rest.strip(), 0
    else:
        match = _QUANTITY.match(stripped)
        if match is None:
            raise ValueError(
                f"text must begin with a number, got {text!r}. Print it like '14.3 ms' or '54 conversations'."
            )
        digits = match["number"].replace(",", "").replace("−", "-")
        number, unit = float(digits), (match["unit"] or "").strip()
        decimals = len(digits.partition(".")[2])
    # The longest unit that the words begin with, so that "GB of cache" is still gigabytes.
    known = [u for u in UNITS if u and (unit == u or unit.startswith(u + " "))]
    name = max(known, key=len, default="")
    scale, base_unit = UNITS[name]
    return Quantity(stripped, number, name, scale, base_unit, decimals)


def rounds_to(value: float, printed: Quantity, digits: int | None = None) -> bool:
    """Tell whether a value in base units rounds to what is printed.

    A tie may go either way: 167.5 is printed rightly as 167 and as 168.

    Parameters
    ----------
    value : float
        The computed value [base unit of `printed`].
    printed : Quantity
        What the reader sees.
    digits : int, optional
        Significant digits that are meant, for round numbers such as 430,000 [count]. Without it
        the last printed digit counts.

    Returns
    -------
    bool
        True when the printed number is the value rounded to the printed precision.

    Examples
    --------
    >>> rounds_to(0.0143166, parse_quantity("14.3 ms"))
    True
    >>> rounds_to(430_617, parse_quantity("430,000 tokens"), digits=2)
    True
    >>> rounds_to(54.9, parse_quantity("54"))
    False
    """
    shown = float(value) / printed.scale
    if not math.isfinite(shown):
        return False
    decimals = printed.decimals
    if digits is not None and printed.number:
        decimals = digits - 1 - math.floor(math.log10(abs(printed.number)))
    half = 0.5 * 10.0**-decimals
    # The slack covers the representation of decimals in binary, nothing more.
    return abs(shown - printed.number) <= half * (1 + 1e-9) + 1e-12 * abs(shown)


def format_quantity(value: float, unit: str = "", decimals: int = 0) -> str:
    """Print a value in base units with a unit of :data:`UNITS`.

    Parameters
    ----------
    value : float
        The value [base unit of `unit`].
    unit : str
        A key of :data:`UNITS`, for example ``"ms"`` or ``"GiB"`` [text].
    decimals : int
        Digits after the point [count].

    Returns
    -------
    str
        The quantity with thousands separated by commas.

    Raises
    ------
    ValueError
        If `unit` is not known.

    Examples
    --------
    >>> format_quantity(0.0143166, "ms", 1)
    '14.3 ms'
    >>> format_quantity(3419.06, "tokens/s")
    '3,419 tokens/s'
    >>> format_quantity(146.9e9, "GiB", 1)
    '136.8 GiB'
    """
    if unit not in UNITS:
        raise ValueError(f"unit must be one of {', '.join(u for u in UNITS if u)}, got {unit!r}.")
    number = f"{value / UNITS[unit][0]:,.{decimals}f}"
    return f"{number} {unit}".strip()


def _fail(name: str, value: object, allowed: str, hint: str) -> None:
    raise ValueError(f"{name} must be {allowed}, got {value!r}." + (f" {hint}" if hint else ""))


def _is_number(value: object) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool) and math.isfinite(float(value))


def require_positive(name: str, value: object, hint: str = "") -> float:
    """Return the value as a float if it is a finite number above zero.

    Parameters
    ----------
    name : str
        The field's name, for the message [text].
    value : object
        What was given [any unit].
    hint : str
        One sentence that helps [text].

    Returns
    -------
    float
        The value, unchanged in unit.

    Raises
    ------
    ValueError
        For zero, negative, NaN, infinite, boolean and non-numeric values.

    Examples
    --------
    >>> require_positive("bandwidth", 3.35e12)
    3350000000000.0
    >>> require_positive("bandwidth", 0)
    Traceback (most recent call last):
    ...
    ValueError: bandwidth must be a finite number above 0, got 0.
    """
    if not _is_number(value) or float(value) <= 0:  # type: ignore[arg-type]
        _fail(name, value, "a finite number above 0", hint)
    return float(value)  # type: ignore[arg-type]


def require_non_negative(name: str, value: object, hint: str = "") -> float:
    """Return the value as a float if it is a finite number of zero or more.

    Parameters
    ----------
    name, hint : str
        As in :func:`require_positive` [text].
    value : object
        What was given [any unit].

    Returns
    -------
    float
        The value, unchanged in unit.

    Raises
    ------
    ValueError
        For negative, NaN, infinite, boolean and non-numeric values.

    Examples
    --------
    >>> require_non_negative("reserve", 0)
    0.0
    """
    if not _is_number(value) or float(value) < 0:  # type: ignore[arg-type]
        _fail(name, value, "a finite number of 0 or more", hint)
    return float(value)  # type: ignore[arg-type]


def require_int(name: str, value: object, minimum: int = 1, hint: str = "") -> int:
    """Return the value as an int if it is a whole number, not below a minimum.

    Parameters
    ----------
    name, hint : str
        As in :func:`require_positive` [text].
    value : object
        What was given [count].
    minimum : int
        The smallest allowed value [count].

    Returns
    -------
    int
        The value.

    Raises
    ------
    ValueError
        For booleans, floats (3.0 too), strings and numbers below `minimum`.

    Examples
    --------
    >>> require_int("batch_size", 64)
    64
    >>> require_int("batch_size", 2.5)
    Traceback (most recent call last):
    ...
    ValueError: batch_size must be a whole number of 1 or more, got 2.5.
    """
    if not isinstance(value, Integral) or isinstance(value, bool) or int(value) < minimum:
        _fail(name, value, f"a whole number of {minimum} or more", hint)
    return int(value)  # type: ignore[call-overload, no-any-return]


def require_fraction(name: str, value: object, hint: str = "", *, zero: bool = False) -> float:
    """Return the value as a float if it lies in (0, 1], or in [0, 1) when `zero` is set.

    Parameters
    ----------
    name, hint : str
        As in :func:`require_positive` [text].
    value : object
        What was given [ratio].
    zero : bool
        Whether the range is [0, 1) (a share set aside) instead of (0, 1] (an efficiency).

    Returns
    -------
    float
        The value.

    Raises
    ------
    ValueError
        For anything outside the range, NaN, booleans and non-numeric values.

    Examples
    --------
    >>> require_fraction("compute_efficiency", 0.5)
    0.5
    >>> require_fraction("reserve", 1, zero=True)
    Traceback (most recent call last):
    ...
    ValueError: reserve must be a fraction in [0, 1), got 1.
    """
    allowed = "a fraction in [0, 1)" if zero else "a fraction in (0, 1]"
    inside = _is_number(value) and (
        0 <= float(value) < 1 if zero else 0 < float(value) <= 1  # type: ignore[arg-type]
    )
    if not inside:
        _fail(name, value, allowed, hint)
    return float(value)  # type: ignore[arg-type]


def require_share(name: str, value: object, hint: str = "") -> float:
    """Return the value as a float if it lies in [0, 1], both ends included.

    Parameters
    ----------
    name, hint : str
        As in :func:`require_positive` [text].
    value : object
        What was given [ratio].

    Returns
    -------
    float
        The value.

    Raises
    ------
    ValueError
        For anything outside the range, NaN, booleans and non-numeric values.

    Examples
    --------
    >>> require_share("output_fraction", 0.1)
    0.1
    >>> require_share("output_fraction", 10)
    Traceback (most recent call last):
    ...
    ValueError: output_fraction must be a fraction in [0, 1], got 10.
    """
    if not (_is_number(value) and 0 <= float(value) <= 1):  # type: ignore[arg-type]
        _fail(name, value, "a fraction in [0, 1]", hint)
    return float(value)  # type: ignore[arg-type]


def require_one_of(name: str, value: object, allowed: Iterable[str], hint: str = "") -> str:
    """Return the value if it is one of some words.

    Parameters
    ----------
    name, hint : str
        As in :func:`require_positive` [text].
    value : object
        What was given [text].
    allowed : iterable of str
        The words, in the order in which the message lists them [text].

    Returns
    -------
    str
        The value.

    Raises
    ------
    ValueError
        For anything else.

    Examples
    --------
    >>> require_one_of("prefill", "chunked", ("separate", "chunked"))
    'chunked'
    >>> require_one_of("prefill", "both", ("separate", "chunked"))
    Traceback (most recent call last):
    ...
    ValueError: prefill must be one of separate, chunked, got 'both'.
    """
    words = list(allowed)
    if not isinstance(value, str) or value not in words:
        _fail(name, value, f"one of {', '.join(words)}", hint)
    return str(value)


def round_up(count: float) -> int:
    """Return the smallest whole number that is not below a count, and do not let rounding add one.

    Parameters
    ----------
    count : float
        Replicas, GPUs or hours that are needed, not whole [count].

    Returns
    -------
    int
        Whole ones [count].

    Notes
    -----
    A demand of exactly three, computed as 3.0000000000000004, is three. What differs from a whole number by no more
    than a billionth of itself, or by a billionth where it is below 1, counts as that number.

    Examples
    --------
    >>> math.ceil(2.1 / 0.7), round_up(2.1 / 0.7), round_up(3.001)
    (4, 3, 4)
    """
    nearest = round(count)
    return nearest if abs(count - nearest) <= 1e-9 * max(1.0, abs(count)) else math.ceil(count)
