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
    limit = chi_square_limit(int((right > 0).sum()))
    if chi_square(seen, right) <= limit:
        return ""
    # In standard deviations, so that a rare outcome is not overlooked; the small number keeps 0 / 0 out.
    worst = int(np.argmax(np.abs(seen / total - right) / np.sqrt(right * (1 - right) / total + 1e-12)))
    text = (
        f"{names[worst]} came up in {100 * seen[worst] / total:.1f} percent of {int(total):,} draws,"
        f" expected {100 * right[worst]:.1f} percent."
    )
    for values, sentence in slips:
        if chi_square(seen, values) <= limit < chi_square(total * right, values):
            return f"{text} {sentence}"
    return text
