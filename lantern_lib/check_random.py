"""What :mod:`lantern_lib.checks` says of numbers that come from random runs."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from lantern_lib.check_text import shown


def estimate_problem(
    runs: Sequence[float],
    expected: float,
    unit: str = "",
    slips: Sequence[tuple[float, str]] = (),
    errors: float = 5.0,
) -> str:
    """Say that the mean of independent runs does not agree with its expectation, or return an empty text.

    Parameters
    ----------
    runs : sequence of float
        One value from each of two or more independent runs [`unit`].
    expected : float
        What their mean should come near to [`unit`].
    unit : str
        Unit of both [text].
    slips : sequence of (float, str)
        What each misconception would give in expectation, and the sentence that says so.
    errors : float
        Half width of the interval [standard errors of the mean].

    Returns
    -------
    str
        The mean with its interval, and the nearest slip inside it if there is one [text].

    Notes
    -----
    The width comes from the spread of the runs themselves. At five standard errors of 40 runs, a right answer
    fails about once in a hundred thousand choices of seeds.

    Examples
    --------
    >>> estimate_problem([1.9, 2.1, 2.0, 2.0], 2.05)
    ''
    >>> estimate_problem([1.9, 2.1, 2.0, 2.0], 3.0, "s", [(2.0, "One is missing.")])
    'the mean of 4 runs is 2 ± 0.204, expected 3 s. One is missing.'
    """
    mean = float(np.mean(runs))
    width = errors * float(np.std(runs, ddof=1)) / math.sqrt(len(runs))
    # Runs that do not differ have no width; what is left is the rounding of their sum.
    if math.isclose(mean, expected, rel_tol=1e-9, abs_tol=width):
        return ""
    near = [
        (abs(mean - value), text)
        for value, text in slips
        if math.isclose(mean, value, rel_tol=1e-9, abs_tol=width) and not math.isclose(value, expected, rel_tol=1e-9)
    ]
    found = f"the mean of {len(runs):,} runs is {shown(mean, 4)} ± {shown(width, 3)}"
    return f"{found}, expected {shown(expected)} {unit}".strip() + f". {min(near)[1] if near else ''}".rstrip()
