"""What is wrong with an array that a lab asked for, in one sentence."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from lantern_lib.check_text import shown, shown_pair, slip


def _form_problem(got: Any, shape: tuple[int, ...], whole: bool) -> str:
    """Say what is wrong before any number is looked at."""
    if got is None:
        return "got None. Does the function return its result on every path?"
    try:
        array = np.asarray(got)
    except ValueError:
        return f"got {shown(got)}, expected an array of shape {shape}."
    if array.dtype == bool or not np.issubdtype(array.dtype, np.number) or np.iscomplexobj(array):
        return f"got {shown(got)}, expected an array of numbers."
    if array.shape != shape:
        turned = " It is transposed." if array.shape == shape[::-1] else ""
        return f"got the shape {array.shape}, expected {shape}.{turned}"
    if whole and not np.issubdtype(array.dtype, np.integer):
        return f"got the type {array.dtype}, expected an integer type, for example np.int8."
    bad = np.argwhere(~np.isfinite(array))
    if len(bad):
        return f"at {_place(bad[0])} stands {array[tuple(bad[0])]}, which is not a finite number."
    return ""


def _place(index: Iterable[Any]) -> str:
    return f"[{', '.join(str(int(number)) for number in index)}]"


def array_problem(
    got: Any,
    expected: Any,
    unit: str = "",
    slips: Sequence[tuple[Any, str]] = (),
    *,
    rel: float = 1e-9,
    absolute: float = 0.0,
    whole: bool = False,
) -> str:
    """Compare two arrays and say what is wrong, or nothing.

    Parameters
    ----------
    got : Any
        The student's array [`unit`].
    expected : array
        The right one [`unit`].
    unit : str
        Unit of both [text].
    slips : sequence of (array, str)
        What each misconception gives, and the sentence that says so. One that gives the right array, or an
        array of another shape, is passed over.
    rel, absolute : float
        Allowed difference of each value: ``rel · |expected| + absolute`` [ratio], [`unit`].
    whole : bool
        Whether the values must be of an integer type.

    Returns
    -------
    str
        A sentence with the largest difference and the slip behind it, or an empty text.

    Examples
    --------
    >>> array_problem([[1.0, 2.0]], [[1.0, 4.0]], slips=[([[1, 2]], "Halved?")])
    'at [0, 1]: got 2, expected 4, the largest of 1 difference. Halved?'
    >>> array_problem([[1.0, 2.0]], [[1.0], [4.0]])
    'got the shape (1, 2), expected (2, 1). It is transposed.'
    """
    right = np.asarray(expected)
    problem = _form_problem(got, right.shape, whole)
    if problem:
        return problem
    array = np.asarray(got)
    given, wanted = array.astype(float), right.astype(float)
    apart = np.abs(given - wanted)
    wrong = apart > rel * np.abs(wanted) + absolute
    if not wrong.any():
        return ""
    worst = np.unravel_index(int(np.argmax(np.where(wrong, apart, -1.0))), apart.shape)
    first, second = shown_pair(given[worst].item(), wanted[worst].item())
    count = int(wrong.sum())
    text = (
        f"at {_place(worst)}: got {first}, expected {f'{second} {unit}'.strip()}, the largest of {count:,}"
        f" difference{'s' if count > 1 else ''}."
    )
    return f"{text} {_slip(given, wanted, slips, max(rel, 1e-6), absolute)}".strip()


def _slip(given: Any, wanted: Any, slips: Sequence[tuple[Any, str]], rel: float, absolute: float) -> str:
    for values, sentence in slips:
        candidate = np.asarray(values, float)
        if candidate.shape != wanted.shape or np.allclose(candidate, wanted, rtol=rel, atol=absolute):
            continue
        if np.allclose(given, candidate, rtol=rel, atol=absolute):
            return sentence
    # One factor for all values: the slips of a single number name it.
    large = np.abs(wanted) > 1e-3 * np.abs(wanted).max(initial=0.0)
    ratios = given[large] / wanted[large]
    if ratios.size and np.allclose(ratios, ratios[0], rtol=rel):
        return slip(float(ratios[0]), 1.0, [], rel)
    return ""
