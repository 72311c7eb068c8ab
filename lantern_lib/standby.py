"""A region that stands by: what users meet while it starts what it does not hold, and how much it has to hold.

Requests are a fluid: they arrive at a steady rate and are served first come, first served. At the moment of failure
the whole traffic moves to the standby region; it serves with the replicas it holds until the others have started.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from lantern_lib.units import (
    format_quantity,
    require_int,
    require_non_negative,
    require_positive,
    require_share,
    round_up,
)


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
    return max(0, round_up(need * (1 - patience / start)))


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
    patience = require_non_negative("patience_seconds", patience_seconds)
    worst = worst_wait_seconds(demand, held, cold_start_seconds)
    if not require_positive("fleet", fleet) > demand:
        raise ValueError(f"fleet must be above demand = {demand:g}, got {fleet:g}. The queue would never empty.")
    if worst <= patience:
        return 0.0
    first = patience / (demand / held - 1) if held else 0.0
    last = (cold_start_seconds * (1 - held / fleet) - patience) / (1 - demand / fleet)
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


@dataclass(frozen=True)
class Failover:
    """What happens when a region is lost and its traffic moves to a smaller one that then grows.

    Parameters
    ----------
    demand_replicas : float
        Replicas that the traffic keeps busy, not rounded [count].
    standby_replicas : int
        Replicas that run in the second region when the first is lost [count].
    cold_start_seconds : float
        Until the replicas that are missing serve, all at once [s].
    fleet_replicas : int
        Replicas that the second region grows to [count].

    Examples
    --------
    >>> half = Failover(4.5, 4, cold_start_seconds=360, fleet_replicas=7)
    >>> round(half.shed_share, 2), round(half.shed_seconds), round(half.overload_seconds)
    (0.11, 40, 432)
    """

    demand_replicas: float
    standby_replicas: int
    cold_start_seconds: float
    fleet_replicas: int

    def __post_init__(self) -> None:
        require_positive("demand_replicas", self.demand_replicas)
        require_int("standby_replicas", self.standby_replicas, minimum=0)
        require_non_negative("cold_start_seconds", self.cold_start_seconds)
        require_int("fleet_replicas", self.fleet_replicas)

    @property
    def shed_share(self) -> float:
        """Share of the traffic that cannot be served until the fleet has grown [ratio]."""
        return worst_wait_seconds(self.demand_replicas, self.standby_replicas, 1.0)

    @property
    def shed_seconds(self) -> float:
        """What is refused if nothing may wait, in seconds of the whole traffic [s]."""
        return worst_wait_seconds(self.demand_replicas, self.standby_replicas, self.cold_start_seconds)

    @property
    def overload_seconds(self) -> float:
        """Time until the queue is empty again if nothing is refused; infinite if the fleet cannot catch up [s]."""
        backlog = self.shed_seconds * self.demand_replicas
        if not backlog:
            return 0.0
        spare = self.fleet_replicas - self.demand_replicas
        return self.cold_start_seconds + backlog / spare if spare > 0 else math.inf

    @property
    def summary(self) -> str:
        """One line that names what is lost."""
        return (
            f"{self.standby_replicas} of {self.fleet_replicas} replicas stand by: {self.shed_share:.0%} of the traffic"
            f" cannot be served for {format_quantity(self.cold_start_seconds, 's')}"
        )


def smallest_standby(
    demand_replicas: float,
    cold_start_seconds: float,
    *,
    max_shed_seconds: float,
    fleet_replicas: int,
    found_share: float = 1.0,
) -> int:
    """Return the fewest replicas that a standby region has to run.

    Parameters
    ----------
    demand_replicas : float
        Replicas that the traffic keeps busy, not rounded [count].
    cold_start_seconds : float
        Until the replicas that are missing serve [s].
    max_shed_seconds : float
        What may be refused in one failover, in seconds of the whole traffic [s].
    fleet_replicas : int
        Replicas that the region is to grow to, enough for the demand [count].
    found_share : float
        Share of the missing replicas for which the region then has free GPUs, in [0, 1] [ratio].

    Returns
    -------
    int
        Replicas that run before anything happens [count].

    Raises
    ------
    ValueError
        If a value is out of range, or the fleet is too small for the demand.

    Notes
    -----
    Two rules, and the stricter holds. **Time**: ``(1 − s / D) t_c ≤ L``, so ``s ≥ D (1 − L / t_c)``. With a cold
    start no longer than the loss that is allowed, nothing has to run. **Supply**: what stands by and what is found
    must carry the traffic for as long as the region is lost, ``s + q (N − s) ≥ D``, so
    ``s ≥ (D − q N) / (1 − q)``. With nothing to be found the whole demand has to stand by, however fast the start.
    A part of a replica that is found is counted as that part. Page F1.

    Examples
    --------
    >>> [smallest_standby(4.5, seconds, max_shed_seconds=60, fleet_replicas=7) for seconds in (60, 90, 360)]
    [0, 2, 4]
    >>> smallest_standby(4.5, 60, max_shed_seconds=60, fleet_replicas=7, found_share=0.0)
    5
    """
    demand = require_positive("demand_replicas", demand_replicas)
    cold = require_non_negative("cold_start_seconds", cold_start_seconds)
    loss = require_non_negative("max_shed_seconds", max_shed_seconds)
    found = require_share("found_share", found_share)
    require_int("fleet_replicas", fleet_replicas)
    if fleet_replicas < round_up(demand):
        raise ValueError(
            f"fleet_replicas must be at least {round_up(demand)} for a demand of {demand:g} replicas, got"
            f" {fleet_replicas}. A region that never grows so large never serves everybody."
        )
    by_time = replicas_to_hold(demand, cold, loss) if cold else 0
    by_supply = (demand - found * fleet_replicas) / (1 - found) if found < 1 else 0.0
    return max(by_time, round_up(by_supply))
