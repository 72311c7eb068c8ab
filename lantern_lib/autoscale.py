"""A fleet that grows while traffic does: what a signal sees, and what happens until new replicas serve.

A deterministic flow, second by second: requests are an amount, waiting is a level. Nothing is scaled in.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

from lantern_lib.units import (
    require_fraction,
    require_int,
    require_non_negative,
    require_one_of,
    require_positive,
    round_up,
)

#: What an autoscaler can listen to. ``cpu`` is the host's processors, ``busy`` the share of time that the GPUs work.
SIGNALS = ("cpu", "busy", "queue")


def surge(base: float, peak: float, *, start: int, rise: int, hold: int, total: int) -> tuple[float, ...]:
    """Return a demand that climbs in a straight line, stays, and falls as it climbed.

    Parameters
    ----------
    base, peak : float
        Requests in a second before and at the height [1/s].
    start, rise, hold, total : int
        Seconds before the climb, of the climb, at the height, and in all [seconds].

    Returns
    -------
    tuple of float
        Requests that arrive in each second [1/s].

    Raises
    ------
    ValueError
        If a rate is not above 0, a time is negative, or the surge is longer than the whole.

    Examples
    --------
    >>> surge(1, 3, start=1, rise=2, hold=1, total=7)
    (1.0, 2.0, 3.0, 3.0, 2.0, 1.0, 1.0)
    """
    require_positive("base", base)
    require_positive("peak", peak)
    for name, value in (("start", start), ("rise", rise), ("hold", hold)):
        require_int(name, value, minimum=0)
    require_int("total", total, minimum=start + 2 * rise + hold, hint="The surge has to fit in.")
    climb = [base + (peak - base) * (k + 1) / rise for k in range(rise)]
    # The climb ends at the height and the fall ends at the base: each has as many seconds.
    fall = [base + peak - rate for rate in climb]
    rates = [float(base)] * start + climb + [float(peak)] * hold + fall
    return tuple(rates + [float(base)] * (total - len(rates)))


@dataclass(frozen=True)
class Fleet:
    """What serves before the surge, and how fast more can come.

    Parameters
    ----------
    num_replicas : int
        Replicas that serve at the start [count].
    requests_per_second : float
        Requests that one replica finishes in a second [1/s].
    cold_start_seconds : float
        From an order to a replica that serves [seconds].
    warm_start_seconds : float
        The same for a replica of the warm pool, which is loaded and idle [seconds].
    promise_seconds : float
        Wait beyond which a request counts as late [seconds].
    """

    num_replicas: int
    requests_per_second: float
    cold_start_seconds: float
    warm_start_seconds: float = 10.0
    promise_seconds: float = 10.0

    def __post_init__(self) -> None:
        require_int("num_replicas", self.num_replicas)
        require_positive("requests_per_second", self.requests_per_second)
        for name in ("cold_start_seconds", "warm_start_seconds", "promise_seconds"):
            require_non_negative(name, getattr(self, name))


@dataclass(frozen=True)
class Policy:
    """How an autoscaler decides.

    Parameters
    ----------
    name : str
        What a figure calls it [text].
    signal : str
        One of :data:`SIGNALS`.
    target_utilization : float
        How busy replicas are meant to be [ratio].
    foresight_seconds : int
        How far ahead a forecast of the demand reaches; 0 for none [seconds].
    num_warm : int
        Replicas in the warm pool [count].
    max_wait_seconds : float
        A request that would wait longer at the present pace is refused at once [seconds].
    max_replicas : int
        Most that the account allows; the warm pool comes out of it too [count].
    interval_seconds : int
        Time between two decisions [seconds].
    clear_seconds : float
        Time in which the ``queue`` signal wants the waiting line gone [seconds].
    cpu_share : float
        How busy the host's processors are when its GPUs are always busy [ratio].
    """

    name: str
    signal: str = "queue"
    target_utilization: float = 0.65
    foresight_seconds: int = 0
    num_warm: int = 0
    max_wait_seconds: float = math.inf
    max_replicas: int = 24
    interval_seconds: int = 15
    clear_seconds: float = 60.0
    cpu_share: float = 0.3

    def __post_init__(self) -> None:
        require_one_of("signal", self.signal, SIGNALS)
        require_fraction("target_utilization", self.target_utilization)
        require_int("foresight_seconds", self.foresight_seconds, minimum=0)
        require_int("num_warm", self.num_warm, minimum=0)
        require_int("max_replicas", self.max_replicas)
        require_int("interval_seconds", self.interval_seconds)
        require_positive("clear_seconds", self.clear_seconds)
        require_fraction("cpu_share", self.cpu_share)
        if not self.max_wait_seconds >= 0:
            raise ValueError(f"max_wait_seconds must be at least 0, got {self.max_wait_seconds!r}. inf refuses nobody.")

    def rate_seen(self, served_rate: float, waiting: float) -> float:
        """Return the demand that the signal lets one infer.

        Parameters
        ----------
        served_rate : float
            Requests finished in a second [1/s].
        waiting : float
            Requests that wait [count].

        Returns
        -------
        float
            For ``busy`` what is served and no more; for ``cpu`` the part of it that the host's processors
            feel; for ``queue`` what is served and what it takes to clear the line [1/s].
        """
        if self.signal == "queue":
            return served_rate + waiting / self.clear_seconds
        return served_rate * (self.cpu_share if self.signal == "cpu" else 1.0)


@dataclass(frozen=True)
class Outcome:
    """What a surge did. Tuples have one entry a second.

    ``fleet`` counts the replicas that serve, ``waiting`` the requests in line, and ``wait_seconds`` is how long whoever
    is let in then waits; ``late`` and ``shed`` are requests that waited longer than promised and that were refused.
    """

    fleet: tuple[int, ...]
    waiting: tuple[float, ...]
    wait_seconds: tuple[float, ...]
    late_seconds: int
    late: float
    shed: float

    @property
    def longest_wait_seconds(self) -> float:
        """Longest wait of anybody who was let in [seconds]."""
        return max(self.wait_seconds)

    @property
    def summary(self) -> str:
        """One line with the damage."""
        return (
            f"{self.late_seconds / 60:.1f} minutes late, longest wait {self.longest_wait_seconds:.0f} s,"
            f" {self.shed:,.0f} refused, {self.fleet[0]} to {max(self.fleet)} replicas"
        )


def run_surge(demand: Sequence[float], fleet: Fleet, policy: Policy) -> Outcome:
    """Run a demand through a fleet whose autoscaler follows a policy.

    Parameters
    ----------
    demand : sequence of float
        Requests that arrive in each second [1/s].
    fleet : Fleet
        What serves at the start.
    policy : Policy
        How more is ordered.

    Returns
    -------
    Outcome
        Replicas and waits second by second, and the damage.

    Raises
    ------
    ValueError
        If there is no demand.

    Notes
    -----
    Every interval the autoscaler wants ``seen / (target × rate of a replica)`` replicas, rounded up, but no
    more than are allowed. It counts those already ordered and orders the rest, from the warm pool first. A
    forecast replaces what is seen by the most that arrives within its reach, if that is more. Used on page F3.

    Examples
    --------
    >>> demand = surge(20, 40, start=60, rise=60, hold=600, total=900)
    >>> run_surge(demand, Fleet(7, 4.4, cold_start_seconds=90), Policy("by the queue")).summary
    '0.8 minutes late, longest wait 14 s, 0 refused, 7 to 20 replicas'
    """
    if not demand:
        raise ValueError("demand must be at least one second, got none.")
    serving, warm, waiting = fleet.num_replicas, policy.num_warm, 0.0
    starting: list[float] = []  # the seconds at which ordered replicas begin to serve
    sizes: list[int] = []
    lines, admitted, done = [], [], []
    served = min(demand[0], serving * fleet.requests_per_second)
    for now, arriving in enumerate(demand):
        serving += sum(at <= now for at in starting)
        starting = [at for at in starting if at > now]
        if now % policy.interval_seconds == 0:
            ordered = _orders(demand, now, fleet, policy, served, waiting, serving + len(starting))
            quick = min(ordered, warm)
            warm -= quick
            starting += [now + fleet.warm_start_seconds] * quick
            starting += [now + fleet.cold_start_seconds] * (ordered - quick)
        capacity = serving * fleet.requests_per_second
        served = min(waiting + arriving, capacity)
        line = min(waiting + arriving - served, capacity * policy.max_wait_seconds)
        admitted.append(line - waiting + served)
        waiting = line
        sizes.append(serving)
        lines.append(line)
        done.append(served)
    waits = _waits(admitted, done, serving * fleet.requests_per_second)
    late = [wait > fleet.promise_seconds * (1 + 1e-9) for wait in waits]
    return Outcome(
        tuple(sizes),
        tuple(lines),
        tuple(waits),
        sum(late),
        sum(rate for rate, is_late in zip(admitted, late, strict=True) if is_late),
        max(0.0, sum(demand) - sum(admitted)),
    )


def _waits(admitted: Sequence[float], done: Sequence[float], last_rate: float) -> list[float]:
    """Return how long the last request of each second waits if all are served in order of arrival."""
    into, out = list(accumulate(admitted)), list(accumulate(done))
    waits, second = [], 0
    for now, place in enumerate(into):
        while second < len(out) and out[second] < place - 1e-9:
            second += 1
        if second == len(out):  # the line outlasts the demand, and goes on at the last pace
            waits.append(len(out) - 1 - now + (place - out[-1]) / last_rate)
        else:
            early = (out[second] - place) / done[second] if done[second] else 0.0
            waits.append(max(0.0, second - now - early))
    return waits


def _orders(
    demand: Sequence[float], now: int, fleet: Fleet, policy: Policy, served: float, waiting: float, coming: int
) -> int:
    """Return how many replicas the autoscaler orders now."""
    seen = policy.rate_seen(served, waiting)
    if policy.foresight_seconds:
        seen = max(seen, *demand[now : now + policy.foresight_seconds + 1])
    wanted = round_up(seen / (policy.target_utilization * fleet.requests_per_second))
    return max(0, min(wanted, policy.max_replicas) - coming)


def commitment(replicas: Sequence[int], price_ratio: float) -> int:
    """Return how many replicas to commit to, and leave the rest to capacity paid by the hour.

    Parameters
    ----------
    replicas : sequence of int
        Replicas needed in each hour [count].
    price_ratio : float
        Price of a committed hour over that of an hour on demand [ratio].

    Returns
    -------
    int
        The cheapest base [count].

    Raises
    ------
    ValueError
        If there is no hour, or the ratio is not in (0, 1].

    Notes
    -----
    The k-th replica is worth a commitment if it is needed in a larger share of the hours than the ratio: an hour
    that is not needed is paid all the same. Used on page F3.

    Examples
    --------
    >>> commitment([1, 1, 2, 3], price_ratio=0.4)
    2
    """
    if not replicas:
        raise ValueError("replicas must be at least one hour, got none.")
    for count in replicas:
        require_int("replicas", count, minimum=0)
    require_fraction("price_ratio", price_ratio)
    hours = len(replicas)
    return sum(sum(count >= k for count in replicas) > price_ratio * hours for k in range(1, max(replicas) + 1))
