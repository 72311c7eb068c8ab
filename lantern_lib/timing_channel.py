"""How many observations a time difference takes to be told from noise."""

from __future__ import annotations

import math
from statistics import NormalDist

from lantern_lib.units import require_int, require_non_negative, require_positive


def error_rate(signal_seconds: float, jitter_seconds: float, num_samples: int) -> float:
    """Return how often an observer errs who averages some observations and picks the nearer of two times.

    Parameters
    ----------
    signal_seconds : float
        Difference of the two times [seconds].
    jitter_seconds : float
        Standard deviation of one observation [seconds].
    num_samples : int
        Observations that are averaged [count].

    Returns
    -------
    float
        Chance to be wrong; 0.5 is a coin [ratio].

    Raises
    ------
    ValueError
        If the signal is negative, the jitter not above 0 or the number of samples below 1.

    Notes
    -----
    ``Φ(−Δ √n / (2 σ))``: normal, independent noise of equal size in both cases, a threshold halfway. Page of open
    question 4.

    Examples
    --------
    >>> round(error_rate(0.001, 0.001, 4), 3), error_rate(0.0, 0.001, 100)
    (0.159, 0.5)
    """
    signal = require_non_negative("signal_seconds", signal_seconds)
    jitter = require_positive("jitter_seconds", jitter_seconds)
    require_int("num_samples", num_samples)
    return NormalDist().cdf(-signal * math.sqrt(num_samples) / (2 * jitter))


def samples_needed(signal_seconds: float, jitter_seconds: float, error: float = 0.01) -> int:
    """Return how many observations an observer needs to err at most so often.

    Parameters
    ----------
    signal_seconds : float
        Difference of the two times [seconds].
    jitter_seconds : float
        Standard deviation of one observation [seconds].
    error : float
        Chance to be wrong that is accepted, in (0, 0.5) [ratio].

    Returns
    -------
    int
        Observations, 1 or more [count].

    Raises
    ------
    ValueError
        If signal or jitter is not above 0, or `error` outside (0, 0.5).

    Notes
    -----
    ``⌈(2 z σ / Δ)²⌉`` with ``z`` the normal quantile of ``1 − error``; the inverse of :func:`error_rate`. Jitter
    that is ten times as large needs a hundred times as many.

    Examples
    --------
    >>> samples_needed(0.120, 0.010), samples_needed(0.0001, 0.001)
    (1, 2165)
    """
    signal = require_positive("signal_seconds", signal_seconds)
    jitter = require_positive("jitter_seconds", jitter_seconds)
    if not 0 < require_positive("error", error) < 0.5:
        raise ValueError(f"error must be in (0, 0.5), got {error!r}. A coin is wrong half of the time.")
    z = NormalDist().inv_cdf(1 - error)
    return max(1, math.ceil((2 * z * jitter / signal) ** 2))
