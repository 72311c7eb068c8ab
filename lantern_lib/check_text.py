"""How :mod:`lantern_lib.checks` prints numbers and calls, and how it finds the slip behind a value."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from numbers import Real
from typing import Any

from lantern_lib.hardware import Replica
from lantern_lib.model_config import ModelConfig

#: Ratios of got to expected that name a slip whatever the task.
_FACTORS: tuple[tuple[float, str], ...] = (
    (2**30 / 1e9, "That is the factor between GiB and GB: keep every quantity in bytes."),
    (1e9 / 2**30, "That is the factor between GB and GiB: keep every quantity in bytes."),
    (1000.0, "You are off by a factor of 1,000: return base units, not a prefixed one."),
    (1 / 1000, "You are off by a factor of 1,000: return base units, not a prefixed one."),
    (100.0, "You are off by a factor of 100: a share lies between 0 and 1, not in percent."),
    (8.0, "You are off by a factor of 8: bits or bytes, query heads or key-value heads?"),
    (1 / 8, "You are off by a factor of 8: bits or bytes, query heads or key-value heads?"),
    (2.0, "You are off by a factor of 2: what did you count twice?"),
    (0.5, "You are off by a factor of 2: what comes in pairs here?"),
)


def slip(got: float, expected: float, slips: Sequence[tuple[float, str]], rel: float = 1e-6) -> str:
    """Return the sentence of the slip that gives exactly this value, or an empty text.

    Parameters
    ----------
    got, expected : float
        The student's value and the right one [same unit].
    slips : sequence of (float, str)
        What each misconception gives, and what to say then. One that happens to give the right value
        is passed over.
    rel : float
        Relative difference within which two values count as the same [ratio].

    Returns
    -------
    str
        A sentence, or an empty text.

    Examples
    --------
    >>> slip(6, 54, [(6, "Query heads?")])
    'Query heads?'
    >>> slip(1000.0, 1.0, [])
    'You are off by a factor of 1,000: return base units, not a prefixed one.'
    """
    for value, sentence in slips:
        misleading = math.isclose(value, expected, rel_tol=rel)
        if not misleading and math.isclose(got, value, rel_tol=rel):
            return sentence
    if expected:
        for factor, sentence in _FACTORS:
            if math.isclose(got / expected, factor, rel_tol=rel):
                return sentence
    return ""


def shown_pair(got: float, expected: float) -> tuple[str, str]:
    """Print two numbers with as many digits as it takes to tell them apart.

    Parameters
    ----------
    got, expected : float
        Two different numbers [same unit].

    Returns
    -------
    (str, str)
        Both as text.

    Examples
    --------
    >>> shown_pair(54.0001, 54.0002)
    ('54.0001', '54.0002')
    """
    for digits in (6, 9, 17):
        pair = shown(got, digits), shown(expected, digits)
        if pair[0] != pair[1]:
            return pair
    return repr(got), repr(expected)


def shown(value: Any, digits: int = 6) -> str:
    """Print a value for a message: numbers with commas, anything else shortened.

    Parameters
    ----------
    value : Any
        What to print.
    digits : int
        Significant digits of a number that is not whole [count].

    Returns
    -------
    str
        The text.

    Examples
    --------
    >>> shown(70553706496), shown(0.0130278), shown(None)
    ('70,553,706,496', '0.0130278', 'None')
    """
    if isinstance(value, bool) or not isinstance(value, Real) or not math.isfinite(float(value)):
        text = repr(value)
        return text if len(text) <= 60 else text[:57] + "..."
    number = float(value)
    if number.is_integer() and abs(number) < 1e15:
        return f"{int(number):,}"
    if 1 <= abs(number) < 1e15:
        return f"{number:,.{max(0, digits - 1 - math.floor(math.log10(abs(number))))}f}"
    return f"{number:.{digits}g}"


def shown_call(name: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> str:
    """Print a call as a student would write it, models and machines by their names.

    Parameters
    ----------
    name : str
        The function [text].
    args, kwargs
        Its arguments.

    Returns
    -------
    str
        The text.

    Examples
    --------
    >>> shown_call("prompt_flops", (), {"prompt_len": 0})
    'prompt_flops(prompt_len=0)'
    """

    def one(value: Any) -> str:
        if isinstance(value, Replica):
            return f"{value.tp_size} × {value.accelerator.name}"
        if isinstance(value, ModelConfig):
            return value.name
        return repr(value) if len(repr(value)) <= 40 else f"a {type(value).__name__}"

    parts = [one(value) for value in args] + [f"{key}={one(value)}" for key, value in kwargs.items()]
    return f"{name}({', '.join(parts)})"
