"""Whether random answers follow a distribution, and which misconception's distribution they follow instead."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np


def chi_square(counts: Any, chances: Any) -> float:
    """Return Pearson's distance of counts from what a distribution makes expect.

    Parameters
    ----------
    counts : array of int
        How often each outcome came up, shape (n,) [count].
    chances : array
        Its probabilities, shape (n,) [ratio].

    Returns
    -------
    float
        ``sum((count - expected)^2 / expected)``; infinite if something impossible came up [1].

    Examples
    --------
    >>> chi_square([60, 40], [0.5, 0.5])
    4.0
    """
    seen = np.asarray(counts, float)
    expected = np.asarray(chances, float) * seen.sum()
    possible = expected > 0
    if seen[~possible].any():
        return math.inf
    return float(((seen[possible] - expected[possible]) ** 2 / expected[possible]).sum())


def chi_square_limit(outcomes: int, sigmas: float = 4.75) -> float:
    """Return a distance that true samples pass less than once in a million times.

    Parameters
    ----------
    outcomes : int
        Possible outcomes, 2 or more [count].
    sigmas : float
        The same chance as a distance of a normal number from its mean; 4.75 is one in a million [1].

    Returns
    -------
    float
        The limit [1].

    Notes
    -----
    Wilson and Hilferty's approximation: the cube root of a chi-square number over its degrees of freedom is
    close to normal. It is a little too wide so far out, which errs on the student's side.

    Examples
    --------
    >>> round(chi_square_limit(6), 1)
    37.5
    """
    free = max(1, outcomes - 1)
    spread = 2 / (9 * free)
    return float(free * (1 - spread + sigmas * math.sqrt(spread)) ** 3)


#: Below so many expected outcomes Pearson's distance no longer follows the chi-square distribution.
_ENOUGH = 25


def pooled(counts: Any, chances: Any, by: Any) -> tuple[Any, Any]:
    """Merge rare outcomes into one, so that each is expected often enough for a chi-square test.

    Parameters
    ----------
    counts : array of int
        How often each outcome came up, shape (n,) [count].
    chances : array
        Probabilities of the outcomes, shape (n,) [ratio].
    by : array
        The probabilities that decide what is rare, shape (n,) [ratio].

    Returns
    -------
    (array, array)
        Counts and probabilities, the rare ones merged into the first; impossible outcomes stay apart.

    Examples
    --------
    >>> merged, chances = pooled([900, 20, 80], [0.9, 0.02, 0.08], [0.9, 0.02, 0.08])
    >>> merged.tolist(), chances.round(2).tolist()
    ([100.0, 900.0], [0.1, 0.9])
    """
    seen, given, right = (np.asarray(values, float) for values in (counts, chances, by))
    order = [int(index) for index in np.argsort(right) if right[index] > 0]
    expected = right * seen.sum()
    merged: list[int] = []
    while order and (expected[order[0]] < _ENOUGH or (merged and expected[merged].sum() < _ENOUGH)):
        merged.append(order.pop(0))
    apart = [index for index in range(len(right)) if index not in merged]
    if not merged:
        return seen, given
    return tuple(np.concatenate([[values[merged].sum()], values[apart]]) for values in (seen, given))  # type: ignore[return-value]


def sample_problem(counts: Any, chances: Any, names: Sequence[str], slips: Sequence[tuple[Any, str]] = ()) -> str:
    """Say how samples differ from a distribution, or nothing.

    Parameters
    ----------
    counts : array of int
        How often each outcome came up, shape (n,) [count].
    chances : array
        The right probabilities, shape (n,) [ratio].
    names : sequence of str
        What the outcomes are called [text].
    slips : sequence of (array, str)
        The probabilities that each misconception gives, and the sentence that says so.

    Returns
    -------
    str
        The outcome that is furthest off, and the slip, or an empty text.

    Examples
    --------
    >>> sample_problem([900, 100], [0.5, 0.5], ["a", "b"], [([0.9, 0.1], "Squared?")])
    'a came up in 90.0 percent of 1,000 draws, expected 50.0 percent. Squared?'
    >>> sample_problem([505, 495], [0.5, 0.5], ["a", "b"])
    ''
    """
    seen, right = np.asarray(counts, float), np.asarray(chances, float)
    total = seen.sum()
    if not total:
        return "got no outcome at all."
    few, fair = pooled(seen, right, right)
    limit = chi_square_limit(int((fair > 0).sum()))
    if chi_square(few, fair) <= limit:
        return ""
    # In standard deviations, so that a rare outcome is not overlooked; the small number keeps 0 / 0 out.
    worst = int(np.argmax(np.abs(seen / total - right) / np.sqrt(right * (1 - right) / total + 1e-12)))
    text = (
        f"{names[worst]} came up in {100 * seen[worst] / total:.1f} percent of {int(total):,} draws,"
        f" expected {100 * right[worst]:.1f} percent."
    )
    for values, sentence in slips:
        _, wrong = pooled(seen, values, right)
        if chi_square(few, wrong) <= limit < chi_square(total * fair, wrong):
            return f"{text} {sentence}"
    return text
