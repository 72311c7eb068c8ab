"""What the programs share that write a file of numbers for the book: a command line, and short numbers."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path


def write_data(usage: str, arguments: Sequence[str], make: Callable[..., str]) -> int:
    """Run a program that computes a text and writes it to a file.

    Parameters
    ----------
    usage : str
        The module and the names of its arguments, ``OUT`` among them, as in ``"lantern_lib.x TRACES OUT"`` [text].
    arguments : sequence of str
        What was typed after the module [text].
    make : callable
        Returns the text; gets the other arguments, in their order.

    Returns
    -------
    int
        The status to exit with: 0, or 2 if the arguments are not as many as the names.

    Examples
    --------
    >>> write_data("lantern_lib.x TRACES OUT", ["traces"], str.upper)
    Usage: python -m lantern_lib.x TRACES OUT
    2
    """
    names = usage.split()[1:]
    if len(arguments) != len(names):
        print(f"Usage: python -m {usage}")
        return 2
    given = dict(zip(names, arguments, strict=True))
    out = Path(given.pop("OUT"))
    out.write_text(make(*given.values()), encoding="utf-8")
    return 0


def json_lines(values: Iterable[object]) -> str:
    """Return the inside of a JSON list, one value a line: small, and a diff still shows what changed.

    Parameters
    ----------
    values : iterable of object
        What JSON can hold.

    Returns
    -------
    str
        Lines with commas between them, without the brackets [text].

    Examples
    --------
    >>> print("[" + json_lines([{"a": 1}, {"a": 2}]) + "]")
    [{"a": 1},
    {"a": 2}]
    """
    return ",\n".join(json.dumps(value) for value in values)


def significant(value: float, digits: int = 5) -> float:
    """Return a number cut to its first digits.

    Parameters
    ----------
    value : float
        Any number [any unit].
    digits : int
        Significant digits that are kept [count].

    Returns
    -------
    float
        The nearest number with so many digits [unit of `value`].

    Examples
    --------
    >>> significant(0.0123456789), significant(123456.7, 4)
    (0.012346, 123500.0)
    """
    return float(f"{value:.{digits}g}")
