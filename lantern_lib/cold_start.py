"""How long a new replica takes to serve, and how much capacity has to stand ready because of it.

Until a started replica answers, the fleet that is there carries everything. So the time of a cold start, and not
the price of a GPU-hour, decides how busy a fleet may be, how many replicas wait beside it, and what a second region
has to hold.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from lantern_lib.hardware import Replica
from lantern_lib.model_config import ModelConfig
from lantern_lib.transformer import weight_bytes
from lantern_lib.units import (
    format_quantity,
    require_fraction,
    require_non_negative,
    require_one_of,
    require_positive,
    require_share,
    round_up,
)

#: What a rate of a source can be for: the whole pod, or each of its GPUs at the same time.
RATE_IS_FOR = ("pod", "gpu")


def shard_bytes(model: ModelConfig, replica: Replica) -> float:
    """Return the weights that one GPU of a replica holds.

    Parameters
    ----------
    model : ModelConfig
        The shape, with the bytes of a stored weight.
    replica : Replica
        One replica; its weights are split evenly.

    Returns
    -------
    float
        Weights over GPUs [bytes].

    Notes
    -----
    ``P b / g``. What tensor parallelism does not split, the norm vectors, is counted as if it did: a few megabytes.
    Page F1.

    Examples
    --------
    >>> from lantern_lib import H100, LANTERN_70B
    >>> round(shard_bytes(LANTERN_70B, Replica(H100, tp_size=4)) / 1e9, 1)
    35.3
    """
    return weight_bytes(model) / replica.tp_size


def weight_load_seconds(
    model: ModelConfig, replica: Replica, bytes_per_second: float, *, rate_is_for: str = "pod"
) -> float:
    """Return the time in which the weights of a replica arrive.

    Parameters
    ----------
    model : ModelConfig
        The shape, with the bytes of a stored weight.
    replica : Replica
        One replica, which is one pod.
    bytes_per_second : float
        What the source delivers [bytes/s].
    rate_is_for : str
        ``"pod"``: all GPUs share that rate, so all weights pass through it. ``"gpu"``: every GPU loads its own
        shard at that rate, all at the same time.

    Returns
    -------
    float
        From the first byte to the last [s].

    Raises
    ------
    ValueError
        If the rate is not above 0, or `rate_is_for` is neither word.

    Notes
    -----
    ``P b / r`` for a pod and ``P b / (g r)`` for a GPU: the same rate means g times the traffic. Reading is taken to
    be the slowest part, and to begin at once. Page F1.

    Examples
    --------
    >>> from lantern_lib import H100, LANTERN_70B
    >>> four = Replica(H100, tp_size=4)
    >>> [round(weight_load_seconds(LANTERN_70B, four, 0.5e9, rate_is_for=what)) for what in RATE_IS_FOR]
    [282, 71]
    """
    rate = require_positive("bytes_per_second", bytes_per_second, "Give bytes per second: 2 GB/s are 2e9.")
    require_one_of("rate_is_for", rate_is_for, RATE_IS_FOR)
    return (weight_bytes(model) if rate_is_for == "pod" else shard_bytes(model, replica)) / rate


@dataclass(frozen=True)
class Phase:
    """One part of a cold start: its name and how long it takes [text, s]."""

    name: str
    seconds: float

    def __post_init__(self) -> None:
        require_non_negative("seconds", self.seconds)


@dataclass(frozen=True)
class ColdStart:
    """A cold start as phases that follow each other; none begins before the last one has ended.

    Examples
    --------
    >>> start = ColdStart((Phase("launch", 90), Phase("weights", 71)))
    >>> start.total_seconds, start.longest.name, start.without("launch").total_seconds
    (161, 'launch', 71)
    """

    phases: tuple[Phase, ...]

    def __post_init__(self) -> None:
        if not self.phases:
            raise ValueError("phases must be at least one, got none. What has to happen before a replica serves?")

    @property
    def total_seconds(self) -> float:
        """From the decision to the first answer [s]."""
        return sum(phase.seconds for phase in self.phases)

    @property
    def longest(self) -> Phase:
        """The phase to work on first."""
        return max(self.phases, key=lambda phase: phase.seconds)

    def share(self, name: str) -> float:
        """Return the part of the whole time that one phase takes.

        Parameters
        ----------
        name : str
            A phase [text].

        Returns
        -------
        float
            Its time over the total [ratio].

        Raises
        ------
        ValueError
            If there is no such phase.
        """
        self._require(name)
        return sum(phase.seconds for phase in self.phases if phase.name == name) / self.total_seconds

    def without(self, *names: str) -> ColdStart:
        """Return the start of a replica for which some phases are done beforehand.

        Parameters
        ----------
        *names : str
            Phases that are over when the decision is made, as on a node that is kept running [text].

        Returns
        -------
        ColdStart
            The phases that are left.

        Raises
        ------
        ValueError
            If there is no such phase, or if none is left.
        """
        for name in names:
            self._require(name)
        return ColdStart(tuple(phase for phase in self.phases if phase.name not in names))

    def _require(self, name: str) -> None:
        require_one_of("name", name, (phase.name for phase in self.phases))

    @property
    def summary(self) -> str:
        """One line with every phase."""
        parts = ", ".join(f"{phase.name} {format_quantity(phase.seconds, 's')}" for phase in self.phases)
        return f"{format_quantity(self.total_seconds, 's')}: {parts}"


def utilization_after_surge(base_utilization: float, factor: float) -> float:
    """Return how busy a fleet is when its traffic has grown and no replica has joined.

    Parameters
    ----------
    base_utilization : float
        Share of time that a replica is busy before, in [0, 1] [ratio].
    factor : float
        Traffic after over traffic before; 2 is a doubling [ratio].

    Returns
    -------
    float
        Above 1 it is overloaded: more work arrives than is done [ratio].

    Raises
    ------
    ValueError
        If `base_utilization` is outside [0, 1] or `factor` is not above 0.

    Notes
    -----
    ``ρ f``. At exactly 1 the queue still grows without end (page B4). Page F4.

    Examples
    --------
    >>> [utilization_after_surge(base, 2) for base in (0.5, 0.65, 0.4)]
    [1.0, 1.3, 0.8]
    """
    base = require_share("base_utilization", base_utilization)
    return base * require_positive("factor", factor, "2 is a doubling.")


def base_utilization_for(target_utilization: float, factor: float) -> float:
    """Return how busy a fleet may be before a surge, so that it is no busier than wanted after it.

    Parameters
    ----------
    target_utilization : float
        Share of time that a replica may be busy during the surge, in (0, 1] [ratio].
    factor : float
        Traffic after over traffic before, 1 or more [ratio].

    Returns
    -------
    float
        The utilisation to plan for [ratio].

    Raises
    ------
    ValueError
        If `target_utilization` is outside (0, 1] or `factor` is below 1.

    Notes
    -----
    ``ρ / f``, the inverse of :func:`utilization_after_surge`. Page F4.

    Examples
    --------
    >>> base_utilization_for(0.8, 2)
    0.4
    """
    target = require_fraction("target_utilization", target_utilization)
    return target / _require_growth(factor)


def _require_growth(factor: float) -> float:
    if require_positive("factor", factor) < 1:
        raise ValueError(f"factor must be at least 1, got {factor:g}. A surge grows; 2 is a doubling.")
    return float(factor)


@dataclass(frozen=True)
class Surge:
    """A growth of traffic along a straight line, after which it stays.

    Parameters
    ----------
    factor : float
        Traffic at the end over traffic at the beginning, 1 or more [ratio].
    ramp_seconds : float
        How long the growth takes; 0 is a step [s].

    Examples
    --------
    >>> doubling = Surge(2, ramp_seconds=60)
    >>> [doubling.factor_after(seconds) for seconds in (0, 30, 90)]
    [1.0, 1.5, 2.0]
    """

    factor: float
    ramp_seconds: float

    def __post_init__(self) -> None:
        _require_growth(self.factor)
        require_non_negative("ramp_seconds", self.ramp_seconds)

    def factor_after(self, seconds: float) -> float:
        """Return the traffic some time after the surge began, over the traffic before it.

        Parameters
        ----------
        seconds : float
            Time since it began [s].

        Returns
        -------
        float
            Between 1 and ``factor`` [ratio].
        """
        since = require_non_negative("seconds", seconds)
        done = 1.0 if since >= self.ramp_seconds else since / self.ramp_seconds
        return 1 + (self.factor - 1) * done


def warm_pool_size(
    demand_replicas: float, surge: Surge, cold_start_seconds: float, *, max_utilization: float = 1.0
) -> int:
    """Return the started replicas that have to wait beside a fleet so that a surge finds enough of them.

    Parameters
    ----------
    demand_replicas : float
        Replicas that the traffic before the surge keeps busy, not rounded [count].
    surge : Surge
        How fast the traffic grows, and how far.
    cold_start_seconds : float
        From the decision to the first answer of a new replica [s].
    max_utilization : float
        Share of time that a replica may be busy, in (0, 1] [ratio].

    Returns
    -------
    int
        Warm replicas [count].

    Raises
    ------
    ValueError
        If a value is out of range.

    Notes
    -----
    The largest ``⌈D f(t) / ρ⌉ − ⌈D f(t − t_c) / ρ⌉`` over the surge: what the traffic needs now, less what was ordered
    one cold start ago, when it needed less. A replica is ordered in the moment in which one more is needed, and the
    fleet begins with what the traffic before needs. A growth faster than the cold start has to be held whole. The
    growth is seen at once, and warm replicas join at once. Page F1.

    Examples
    --------
    >>> [warm_pool_size(4.5, Surge(2, 60), seconds, max_utilization=0.65) for seconds in (0, 15, 90)]
    [0, 2, 7]
    """
    demand = require_positive("demand_replicas", demand_replicas)
    cold = require_non_negative("cold_start_seconds", cold_start_seconds)
    before = demand / require_fraction("max_utilization", max_utilization)
    running, last = (round_up(before * factor) for factor in (1.0, surge.factor))
    if not cold:
        return 0
    gap = 0
    for count in range(running, last):  # the moment in which one more than `count` is needed
        now = (count / before - 1) / (surge.factor - 1) * surge.ramp_seconds
        # At the very moment in which a whole number is reached the next one is ordered, so `round_up` is one too few.
        ordered = math.floor(before * surge.factor_after(now - cold) + 1e-9) + 1 if now >= cold else running
        gap = max(gap, count + 1 - ordered)
    return gap
