"""What :mod:`lantern_lib.checks` says of a list of numbers that is not the right one."""

from __future__ import annotations

import math
from collections.abc import Sequence
from numbers import Real

from lantern_lib.check_text import shown, shown_pair, slip


def _same(got: float, expected: float, rel: float) -> bool:
    return got == expected or math.isclose(got, expected, rel_tol=rel)


def _all_same(got: Sequence[float], expected: Sequence[float], rel: float) -> bool:
    return len(got) == len(expected) and all(_same(a, b, rel) for a, b in zip(got, expected, strict=True))


def sequence_problem(
    got: Sequence[float],
    expected: Sequence[float],
    unit: str = "",
    slips: Sequence[tuple[Sequence[float], str]] = (),
    rel: float = 1e-9,
) -> str:
    """Say in what a sequence of numbers differs from the right one, or return an empty text.

    Parameters
    ----------
    got, expected : sequence of float
        The student's numbers and the right ones [`unit`].
    unit : str
        Unit of both [text].
    slips : sequence of (sequence of float, str)
        What each misconception gives, and the sentence that says so. A slip that happens to give the right
        numbers is passed over.
    rel : float
        Allowed relative difference [ratio].

    Returns
    -------
    str
        The first difference, and the slip behind it if one is known [text].

    Examples
    --------
    >>> sequence_problem([1, 2, 4], [1, 2, 3], "steps")
    'value 3 of 3 is 4, expected 3 steps.'
    >>> sequence_problem([2, 3], [1, 2])
    'value 1 of 2 is 2, expected 1. Every value is 1 too large.'
    """
    if _all_same(got, expected, rel):
        return ""
    named = [text for values, text in slips if _all_same(got, values, rel) and not _all_same(values, expected, rel)]
    if len(got) != len(expected):
        first = f"got {_counted(len(got))}, expected {len(expected):,}."
    else:
        index = next(i for i, (a, b) in enumerate(zip(got, expected, strict=True)) if not _same(a, b, rel))
        given, right = shown_pair(got[index], expected[index])
        first = f"value {index + 1:,} of {len(got):,} is {given}, expected {f'{right} {unit}'.strip()}."
    return f"{first} {named[0] if named else _pattern(got, expected, rel)}".strip()


def _counted(number: int) -> str:
    return f"{number:,} value{'s' * (number != 1)}"


def _pattern(got: Sequence[float], expected: Sequence[float], rel: float) -> str:
    """Name what holds for all values at once, if anything does."""
    if len(got) != len(expected) or not got:
        return ""
    if _all_same(sorted(got), sorted(expected), rel):
        return "The values are right, their order is not."
    shift = got[0] - expected[0]
    if len(got) > 1 and all(_same(a - b, shift, rel) for a, b in zip(got, expected, strict=True)):
        return f"Every value is {shown(abs(shift))} too {'large' if shift > 0 else 'small'}."
    first = next(i for i, value in enumerate(expected) if value) if any(expected) else 0
    factor = got[first] / expected[first] if expected[first] else 1.0
    if all(_same(a, factor * b, max(rel, 1e-6)) for a, b in zip(got, expected, strict=True)):
        return slip(got[first], expected[first], ())
    return ""


def not_numbers(got: object) -> str:
    """Say why a value is no sequence of finite numbers, or return an empty text.

    Parameters
    ----------
    got : object
        The value.

    Returns
    -------
    str
        What it is instead [text].

    Examples
    --------
    >>> not_numbers([1, 2.5]), not_numbers(None)
    ('', 'got None. Does the function return its result on every path?')
    >>> not_numbers([1, None])
    'value 2 of 2 is None; expected a number.'
    """
    if got is None:
        return "got None. Does the function return its result on every path?"
    shape = getattr(got, "shape", None)
    if shape is not None and len(shape) != 1:
        return f"got an array of shape {shape}; expected a list of numbers."
    if shape is None and not isinstance(got, (list, tuple, range)):
        return f"got {shown(got)} of type {type(got).__name__}; expected a list of numbers."
    values = list(got)  # type: ignore[call-overload]
    for index, value in enumerate(values):
        if isinstance(value, bool) or not isinstance(value, Real) or not math.isfinite(float(value)):
            return f"value {index + 1:,} of {len(values):,} is {shown(value)}; expected a number."
    return ""
