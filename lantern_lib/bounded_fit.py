"""Least squares with bounds, for times that are the larger of two parts, and the quantile their intervals need."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
from numpy.typing import NDArray

from lantern_lib.units import require_int

#: Share of measurements that an interval is meant to hold.
COVERAGE = 0.95


def student_quantile(freedom: int, coverage: float = COVERAGE) -> float:
    """Return how many deviations hold a share of a Student distribution around its middle.

    Parameters
    ----------
    freedom : int
        Degrees of freedom [count].
    coverage : float
        The share, in (0, 1) [ratio].

    Returns
    -------
    float
        Half of the interval's width in deviations [ratio].

    Raises
    ------
    ValueError
        If `freedom` is below 1.

    Examples
    --------
    >>> round(student_quantile(4), 2), round(student_quantile(1000), 2)
    (2.78, 1.96)
    """
    nu = require_int("freedom", freedom)
    # With x = √ν tan θ the density is cos^(ν−1) θ, which no tail cuts.
    angles = np.linspace(0.0, math.pi / 2, 20_001)
    density = np.cos(angles) ** (nu - 1)
    area = np.concatenate([[0.0], np.cumsum((density[1:] + density[:-1]) / 2)])
    angle = float(np.interp(coverage, area / area[-1], angles))
    return math.sqrt(nu) * math.tan(angle)


def _least_squares(design: NDArray[np.float64], lows: NDArray[np.float64]) -> NDArray[np.float64]:
    """Fit ``design @ x = 1`` with every x at or above its bound, trying each set of bounds that may hold."""
    best: tuple[float, NDArray[np.float64]] | None = None
    used = np.abs(design).sum(axis=0) > 0
    for held in product((False, True), repeat=design.shape[1]):
        free = ~np.array(held) & used
        point = lows.copy()
        if free.any():
            rest = 1.0 - design[:, ~free] @ lows[~free]
            solved, _, rank, _ = np.linalg.lstsq(design[:, free], rest, rcond=None)
            if rank < free.sum() or (solved < lows[free] - 1e-12).any():
                continue
            point[free] = solved
        error = float(((design @ point - 1.0) ** 2).sum())
        if best is None or error < best[0] - 1e-15:
            best = (error, point)
    assert best is not None  # with all bounds held there is always a point
    return best[1]


def fit_floor(work: NDArray[np.float64], times: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Fit ``time = max(arithmetic x, memory y) + steps z`` with x, y ≥ 1 and z ≥ 0.

    Parameters
    ----------
    work : array
        Arithmetic and memory at the peaks [seconds] and steps [count], a row for each measurement.
    times : array
        What was measured [seconds].

    Returns
    -------
    (array, array)
        The two reciprocal efficiencies and the overhead, and the design of the last round: each row relative to its
        time, without the part that the other hides.

    Notes
    -----
    Which part bounds each measurement depends on the fit, so both are found in turns, from several beginnings.

    Examples
    --------
    >>> work = np.array([[1.0, 0.1, 0.0], [2.0, 0.1, 0.0], [0.1, 1.0, 0.0], [0.1, 3.0, 0.0]])
    >>> fit_floor(work, np.array([2.0, 4.0, 1.25, 3.75]))[0]
    array([2.  , 1.25, 0.  ])
    """
    lows = np.array([1.0, 1.0, 0.0])
    best: tuple[float, NDArray[np.float64], NDArray[np.float64]] | None = None
    for begin in ((2.0, 1.25), (1.1, 3.0), (4.0, 1.1)):
        point, seen = np.array([*begin, 0.0]), set()
        while True:
            arithmetic = work[:, 0] * point[0] > work[:, 1] * point[1]
            design = np.where(np.stack([arithmetic, ~arithmetic, np.ones_like(arithmetic)], axis=1), work, 0.0)
            design = design / times[:, None]
            if arithmetic.tobytes() in seen:
                break
            seen.add(arithmetic.tobytes())
            point = _least_squares(design, lows)
        error = float(((design @ point - 1.0) ** 2).sum())
        if best is None or error < best[0]:
            best = (error, point, design)
    assert best is not None
    return best[1], best[2]
