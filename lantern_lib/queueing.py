"""Queues with closed answers: how long one waits when requests arrive at random.

All three queues have Poisson arrivals, serve in order of arrival and never turn anybody away. M/M/1 has
one server with exponential times, M/D/1 one with equal times, M/M/c several with exponential times.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from lantern_lib.units import require_fraction, require_int, require_non_negative, require_positive


def utilization(arrival_rate: float, service_rate: float, num_servers: int = 1) -> float:
    """Return the share of time that a server is busy.

    Parameters
    ----------
    arrival_rate : float
        Requests that arrive in a second [1/s].
    service_rate : float
        Requests that one busy server finishes in a second [1/s].
    num_servers : int
        Servers [count].

    Returns
    -------
    float
        ``arrival_rate / (num_servers service_rate)``, below 1 [ratio].

    Raises
    ------
    ValueError
        If a rate is not above 0, or more arrives than can be served: there is then no steady state.

    Examples
    --------
    >>> utilization(9, 10)
    0.9
    >>> utilization(10, 10)
    Traceback (most recent call last):
    ...
    ValueError: arrival_rate must be below num_servers × service_rate = 10, got 10. The queue would grow for ever.
    """
    require_positive("arrival_rate", arrival_rate)
    require_positive("service_rate", service_rate)
    require_int("num_servers", num_servers)
    capacity = num_servers * service_rate
    if arrival_rate >= capacity:
        raise ValueError(
            f"arrival_rate must be below num_servers × service_rate = {capacity:g}, got {arrival_rate:g}."
            " The queue would grow for ever."
        )
    return arrival_rate / capacity


def mean_number(arrival_rate: float, mean_seconds: float) -> float:
    """Return how many are inside on average, by Little's law.

    Parameters
    ----------
    arrival_rate : float
        Requests that arrive, and in the long run leave, in a second [1/s].
    mean_seconds : float
        Mean time that one stays [seconds].

    Returns
    -------
    float
        ``arrival_rate × mean_seconds``; true for any stable system, whatever the distributions [requests].

    Raises
    ------
    ValueError
        If the rate is not above 0 or the time is negative.

    Examples
    --------
    >>> mean_number(20, 9.5)
    190.0
    """
    return require_positive("arrival_rate", arrival_rate) * require_non_negative("mean_seconds", mean_seconds)


def erlang_c(offered_load: float, num_servers: int) -> float:
    """Return the chance that an arrival finds all servers busy and has to wait.

    Parameters
    ----------
    offered_load : float
        Arrival rate over the service rate of one server [servers].
    num_servers : int
        Servers [count].

    Returns
    -------
    float
        Erlang's C [ratio].

    Raises
    ------
    ValueError
        If the load is not above 0 or not below the number of servers.

    Notes
    -----
    By the recursion of Erlang's B, ``B_k = a B_(k-1) / (k + a B_(k-1))``, which needs no factorials.

    Examples
    --------
    >>> round(erlang_c(0.9, 1), 3), round(erlang_c(7.2, 8), 3)
    (0.9, 0.702)
    """
    load = require_positive("offered_load", offered_load)
    busy = utilization(load, 1, num_servers)
    blocked = 1.0
    for k in range(1, num_servers + 1):
        blocked = load * blocked / (k + load * blocked)
    return blocked / (1 - busy * (1 - blocked))


@dataclass(frozen=True)
class _Queue:
    """What the three queues share. Rates are in requests per second."""

    arrival_rate: float
    service_rate: float

    def __post_init__(self) -> None:
        _ = self.utilization  # refuses a queue that grows for ever

    @property
    def utilization(self) -> float:
        """Share of time that a server is busy [ratio]."""
        return utilization(self.arrival_rate, self.service_rate)

    @property
    def mean_wait_seconds(self) -> float:
        """Mean time before service begins [seconds]."""
        raise NotImplementedError

    @property
    def mean_time_seconds(self) -> float:
        """Mean time from arrival to the end of service [seconds]."""
        return self.mean_wait_seconds + 1 / self.service_rate

    @property
    def mean_number(self) -> float:
        """Mean number in the system, by Little's law [requests]."""
        return mean_number(self.arrival_rate, self.mean_time_seconds)

    @property
    def summary(self) -> str:
        """One line that names the queue."""
        return f"{type(self).__name__}: {self.arrival_rate:g}/s arrive, {self.utilization:.3g} busy"


@dataclass(frozen=True)
class MM1(_Queue):
    """One server, exponential service times.

    Examples
    --------
    >>> queue = MM1(arrival_rate=0.95, service_rate=1)
    >>> round(queue.mean_time_seconds, 6), round(queue.time_percentile(0.95), 1)
    (20.0, 59.9)
    """

    @property
    def mean_wait_seconds(self) -> float:
        """Mean time before service begins: ``utilization / (service_rate − arrival_rate)`` [seconds]."""
        return self.utilization / (self.service_rate - self.arrival_rate)

    def time_percentile(self, q: float) -> float:
        """Return the time in the system that a share of requests stays within.

        Parameters
        ----------
        q : float
            The share, in [0, 1), for example 0.95 [ratio].

        Returns
        -------
        float
            ``−ln(1 − q)`` times the mean: the time in the system is exponential [seconds].
        """
        return -math.log1p(-require_fraction("q", q, zero=True)) * self.mean_time_seconds

    def share_within(self, seconds: float) -> float:
        """Return the share of requests whose time in the system stays within a limit.

        Parameters
        ----------
        seconds : float
            The limit [seconds].

        Returns
        -------
        float
            The inverse of :meth:`time_percentile`; times the arrival rate it is the goodput [ratio].
        """
        return -math.expm1(-require_non_negative("seconds", seconds) / self.mean_time_seconds)

    def wait_percentile(self, q: float) -> float:
        """Return the wait before service that a share of requests stays within.

        Parameters
        ----------
        q : float
            The share, in [0, 1) [ratio].

        Returns
        -------
        float
            0 for shares that find the server idle [seconds].
        """
        return _wait_percentile(q, self.utilization, self.service_rate - self.arrival_rate)


@dataclass(frozen=True)
class MD1(_Queue):
    """One server, every service as long as the next: half the wait of M/M/1.

    Examples
    --------
    >>> round(MD1(arrival_rate=0.9, service_rate=1).mean_wait_seconds, 6)
    4.5
    """

    @property
    def mean_wait_seconds(self) -> float:
        """Mean time before service begins, by Pollaczek and Khinchine without variance [seconds]."""
        return self.utilization / (2 * (self.service_rate - self.arrival_rate))


@dataclass(frozen=True)
class MMc(_Queue):
    """Several servers with one queue, exponential service times.

    Examples
    --------
    >>> queue = MMc(arrival_rate=7.2, service_rate=1, num_servers=8)
    >>> round(queue.mean_wait_seconds, 2), round(queue.wait_percentile(0.95), 2)
    (0.88, 3.3)
    """

    num_servers: int = 1

    @property
    def utilization(self) -> float:
        """Share of time that a server is busy [ratio]."""
        return utilization(self.arrival_rate, self.service_rate, self.num_servers)

    @property
    def wait_probability(self) -> float:
        """Chance that an arrival finds all servers busy [ratio]."""
        return erlang_c(self.arrival_rate / self.service_rate, self.num_servers)

    @property
    def mean_wait_seconds(self) -> float:
        """Mean time before service begins: ``wait_probability / (c service_rate − arrival_rate)`` [seconds]."""
        return self.wait_probability / (self.num_servers * self.service_rate - self.arrival_rate)

    def wait_percentile(self, q: float) -> float:
        """Return the wait before service that a share of requests stays within.

        Parameters
        ----------
        q : float
            The share, in [0, 1) [ratio].

        Returns
        -------
        float
            0 for shares that find a server idle [seconds].
        """
        spare = self.num_servers * self.service_rate - self.arrival_rate
        return _wait_percentile(q, self.wait_probability, spare)


def _wait_percentile(q: float, wait_probability: float, spare_rate: float) -> float:
    """Invert ``P(wait > t) = wait_probability × exp(−spare_rate × t)``."""
    beyond = 1 - require_fraction("q", q, zero=True)
    return max(0.0, math.log(wait_probability / beyond) / spare_rate)


def priority_mean_seconds(arrival_rates: Sequence[float], service_rate: float) -> tuple[float, ...]:
    """Return the mean time in the system of each class when higher classes always go first.

    Parameters
    ----------
    arrival_rates : sequence of float
        Requests of each class in a second, the most important class first [1/s].
    service_rate : float
        Requests of any class that the busy server finishes in a second [1/s].

    Returns
    -------
    tuple of float
        One mean for each class [seconds].

    Raises
    ------
    ValueError
        If there is no class, or all classes together are more than can be served.

    Notes
    -----
    One exponential server; a request that is interrupted goes on later where it stopped. With ``s_k`` the
    share of time that classes up to ``k`` keep the server busy, the mean is
    ``1 / (service_rate (1 − s_(k−1)) (1 − s_k))``. Weighted by arrivals, the means add up to those of one queue
    without classes: priority moves waiting and removes none. Used on page B4.

    Examples
    --------
    >>> [round(seconds, 1) for seconds in priority_mean_seconds([0.6, 0.3], service_rate=1)]
    [2.5, 25.0]
    """
    if not arrival_rates:
        raise ValueError("arrival_rates must be at least one rate, got none. Give the most important class first.")
    found, above = [], 0.0
    for index in range(len(arrival_rates)):
        require_positive("arrival_rates", arrival_rates[index])
        busy = utilization(sum(arrival_rates[: index + 1]), service_rate)
        found.append(1 / (service_rate * (1 - above) * (1 - busy)))
        above = busy
    return tuple(found)


@dataclass(frozen=True)
class ClosedLoop:
    """What a test with a fixed number of users sees: each sends again only after its answer.

    ``throughput`` is in requests per second, ``mean_time_seconds`` from sending to the answer.
    """

    num_users: int
    throughput: float
    mean_time_seconds: float


def closed_loop(num_users: int, service_rate: float, think_seconds: float = 0.0) -> ClosedLoop:
    """Return what a closed-loop test of one exponential server measures.

    Parameters
    ----------
    num_users : int
        Users who each have at most one request on its way [count].
    service_rate : float
        Requests that the busy server finishes in a second [1/s].
    think_seconds : float
        Mean pause of a user between an answer and the next request [seconds].

    Returns
    -------
    ClosedLoop
        Throughput and mean time.

    Raises
    ------
    ValueError
        If `num_users` is below 1, the rate is not above 0 or the pause is negative.

    Notes
    -----
    Mean value analysis: with one more user, an arrival finds what the system held with one fewer. The
    throughput never exceeds the service rate, so no number of users makes this test overload. Used on
    page B4.

    Examples
    --------
    >>> closed_loop(20, service_rate=1)
    ClosedLoop(num_users=20, throughput=1.0, mean_time_seconds=20.0)
    """
    require_int("num_users", num_users)
    require_positive("service_rate", service_rate)
    require_non_negative("think_seconds", think_seconds)
    inside, time, rate = 0.0, 0.0, 0.0
    for users in range(1, num_users + 1):
        time = (1 + inside) / service_rate
        rate = users / (time + think_seconds)
        inside = rate * time
    return ClosedLoop(num_users, rate, time)
