"""A region that stands by: what users meet while it starts what it does not hold.

Requests are a fluid: they arrive at a steady rate and are served first come, first served. At the moment of failure
the whole traffic moves to the standby region; it serves with the replicas it holds until the others have started.
"""

from __future__ import annotations

import math

from lantern_lib.units import require_non_negative, require_positive

# A demand of exactly three replicas must not become four by a rounding of the last binary digit.
_SLACK = 1e-9


def worst_wait_seconds(demand: float, held: float, cold_start_seconds: float) -> float:
    """Return the longest wait of any request after the other region has failed.

    Parameters
    ----------
    demand : float
        Replicas that the traffic keeps busy [replicas].
    held : float
        Replicas that are warm at the moment of failure [replicas].
    cold_start_seconds : float
        Time until the others serve [seconds].

    Returns
    -------
    float
        The wait of the request that arrives as the last one to be served by the warm replicas alone; 0 if
        they are enough [seconds].

    Raises
    ------
    ValueError
        If `demand` is not above 0, or another number is negative.

    Notes
    -----
    ``T (1 − s / d)``. Whoever arrives ``a`` seconds after the failure is served after ``a d / s`` seconds while
    only `held` replicas serve; that reaches ``T`` for ``a = T s / d``, and later arrivals wait less as long as the
    started fleet is larger than the demand. It does not matter how much larger. Derived on the page of open question 5.

    Examples
    --------
    >>> worst_wait_seconds(demand=4, held=3, cold_start_seconds=300)
    75.0
    """
    need = require_positive("demand", demand, "Give the replicas that the traffic keeps busy.")
    warm = require_non_negative("held", held)
    start = require_non_negative("cold_start_seconds", cold_start_seconds)
    return start * max(0.0, 1 - warm / need)


def replicas_to_hold(demand: float, cold_start_seconds: float, patience_seconds: float) -> int:
    """Return the fewest warm replicas with which nobody waits longer than a limit.

    Parameters
    ----------
    demand : float
        Replicas that the traffic keeps busy [replicas].
    cold_start_seconds : float
        Time until the others serve [seconds].
    patience_seconds : float
        The longest wait that is allowed [seconds].

    Returns
    -------
    int
        Whole replicas; 0 if a cold start is shorter than the patience [replicas].

    Raises
    ------
    ValueError
        If `demand` or `cold_start_seconds` is not above 0, or the patience is negative.

    Notes
    -----
    ``⌈d (1 − W / T)⌉``, the inverse of :func:`worst_wait_seconds`.

    Examples
    --------
    >>> replicas_to_hold(2.1, 300, 30), replicas_to_hold(2.1, 20, 30)
    (2, 0)
    """
    need = require_positive("demand", demand, "Give the replicas that the traffic keeps busy.")
    start = require_positive("cold_start_seconds", cold_start_seconds)
    patience = require_non_negative("patience_seconds", patience_seconds)
    return max(0, math.ceil(need * (1 - patience / start) - _SLACK))


def late_requests(
    arrival_rate: float, demand: float, held: float, fleet: float, cold_start_seconds: float, patience_seconds: float
) -> float:
    """Return how many requests wait longer than a limit if all of them queue.

    Parameters
    ----------
    arrival_rate : float
        Requests that arrive in a second [1/s].
    demand : float
        Replicas that they keep busy [replicas].
    held : float
        Replicas that are warm at the moment of failure [replicas].
    fleet : float
        Replicas that serve after the cold start, more than `demand` [replicas].
    cold_start_seconds : float
        Time until they serve [seconds].
    patience_seconds : float
        The longest wait that is allowed [seconds].

    Returns
    -------
    float
        Requests that wait longer [requests].

    Raises
    ------
    ValueError
        If `fleet` is not above `demand`, or a number is out of range.

    Notes
    -----
    The wait rises as ``a (d / s − 1)`` until ``a = T s / d`` and then falls as ``T (1 − s / N) − a (1 − d / N)``; the
    requests between the two times at which it passes the limit are late. Derived on the page of open question 5.

    Examples
    --------
    >>> round(late_requests(20, demand=2, held=1, fleet=4, cold_start_seconds=300, patience_seconds=30))
    7200
    """
    rate = require_positive("arrival_rate", arrival_rate)
    if worst_wait_seconds(demand, held, cold_start_seconds) <= require_non_negative(
        "patience_seconds", patience_seconds
    ):
        return 0.0
    if not require_positive("fleet", fleet) > demand:
        raise ValueError(f"fleet must be above demand = {demand:g}, got {fleet:g}. The queue would never empty.")
    first = patience_seconds / (demand / held - 1) if held else 0.0
    last = (cold_start_seconds * (1 - held / fleet) - patience_seconds) / (1 - demand / fleet)
    return rate * (last - first)


def refused_requests(arrival_rate: float, demand: float, held: float, cold_start_seconds: float) -> float:
    """Return how many requests have to be turned away so that no queue forms.

    Parameters
    ----------
    arrival_rate : float
        Requests that arrive in a second [1/s].
    demand : float
        Replicas that they keep busy [replicas].
    held : float
        Replicas that are warm at the moment of failure [replicas].
    cold_start_seconds : float
        Time until the others serve [seconds].

    Returns
    -------
    float
        Requests above what the warm replicas serve, during the cold start [requests].

    Raises
    ------
    ValueError
        If a number is out of range.

    Notes
    -----
    ``λ T (1 − s / d)``: as many as arrive during the worst wait.

    Examples
    --------
    >>> refused_requests(20, demand=2, held=1, cold_start_seconds=300)
    3000.0
    """
    rate = require_positive("arrival_rate", arrival_rate)
    return rate * worst_wait_seconds(demand, held, cold_start_seconds)
