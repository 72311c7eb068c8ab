"""Where the cache of a waiting session lies, what bringing it back costs, and which replica a request goes to."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from lantern_lib import kv_cache
from lantern_lib.hardware import Replica
from lantern_lib.model_config import ModelConfig
from lantern_lib.step import prefill_step
from lantern_lib.units import GB, TB, require_int, require_non_negative, require_positive


@dataclass(frozen=True)
class Tier:
    """A store below GPU memory, as one replica sees it.

    Parameters
    ----------
    name : str
        What it is called.
    capacity_bytes : float
        What of it belongs to one replica [bytes].
    bandwidth : float
        Rate at which it gives a cache back to the GPUs [bytes/s].
    latency_seconds : float
        Time before the first byte comes [seconds].
    price : float
        What the whole of it costs, in prices of one replica [ratio].

    Examples
    --------
    >>> cpu = Tier("CPU memory", 1 * TB, 25 * GB)
    >>> cpu.sessions(11.3e9), round(cpu.reload_seconds(11.3e9), 2), round(cpu.reloads_per_second(11.3e9), 1)
    (88, 0.45, 2.2)
    """

    name: str
    capacity_bytes: float
    bandwidth: float
    latency_seconds: float = 0.0
    price: float = 0.0

    def __post_init__(self) -> None:
        require_positive("capacity_bytes", self.capacity_bytes, "Give bytes, for example 1 * TB.")
        require_positive("bandwidth", self.bandwidth, "Give bytes per second, for example 25 * GB.")
        require_non_negative("latency_seconds", self.latency_seconds)
        require_non_negative("price", self.price)

    def sessions(self, size_bytes: float) -> int:
        """Whole sessions of one size that fit [count]."""
        return int(self.capacity_bytes // require_positive("size_bytes", size_bytes))

    def reload_seconds(self, size_bytes: float) -> float:
        """Time to bring one session back when nobody else uses the link [seconds]."""
        return self.latency_seconds + require_positive("size_bytes", size_bytes) / self.bandwidth

    def reloads_per_second(self, size_bytes: float) -> float:
        """Rate of returning sessions at which the link is busy all the time [1/s]."""
        return self.bandwidth / require_positive("size_bytes", size_bytes)


#: Illustrative tiers of one four-GPU replica: assumptions of the course, not measurements.
EXAMPLE_TIERS = (
    Tier("CPU memory", 1 * TB, 25 * GB, 0.0, 0.05),
    Tier("Local SSD", 15 * TB, 10 * GB, 0.001, 0.02),
    Tier("Remote store", 1000 * TB, 5 * GB, 0.01, 0.2),
)


@dataclass(frozen=True)
class Reload:
    """Bringing a cache back against computing it again; ``size_bytes`` [bytes], times [seconds]."""

    context_len: int
    size_bytes: float
    reload_seconds: float
    recompute_seconds: float

    @property
    def speedup(self) -> float:
        """How many times faster reloading is; below 1 it is slower [ratio]."""
        return self.recompute_seconds / self.reload_seconds

    @property
    def break_even_bandwidth(self) -> float:
        """Rate below which computing again is the faster way, latency left out [bytes/s]."""
        return self.size_bytes / self.recompute_seconds


def reload_or_recompute(
    model: ModelConfig, replica: Replica, context_len: int, bandwidth: float, latency_seconds: float = 0.0
) -> Reload:
    """Compare loading a session's cache over a link with prefilling its context again.

    Parameters
    ----------
    model : ModelConfig
        The shape, with the width of its cache.
    replica : Replica
        The machine that would prefill.
    context_len : int
        Tokens of the session [tokens].
    bandwidth : float
        Rate of the link to the replica, one way [bytes/s].
    latency_seconds : float
        Time before the first byte comes [seconds].

    Returns
    -------
    Reload
        Both times and the size.

    Raises
    ------
    ValueError
        If the context is not a whole number of 1 or more, or the rate is not above 0.

    Notes
    -----
    ``context × bytes per token / bandwidth`` against one prefill step of the whole context. Nothing else
    uses the link or the GPUs, and nothing overlaps. Derived on page D3.

    Examples
    --------
    >>> from lantern_lib import H100, LANTERN_70B
    >>> both = reload_or_recompute(LANTERN_70B, Replica(H100, tp_size=4), 34_500, 25e9)
    >>> round(both.reload_seconds, 2), round(both.recompute_seconds, 2), round(both.speedup, 1)
    (0.45, 3.52, 7.8)
    """
    size = kv_cache.bytes_per_sequence(model, require_int("context_len", context_len))
    rate = require_positive("bandwidth", bandwidth, "Give bytes per second in one direction.")
    seconds = require_non_negative("latency_seconds", latency_seconds) + size / rate
    return Reload(context_len, size, seconds, prefill_step(model, replica, context_len).total_seconds)


@dataclass(frozen=True)
class Place:
    """One answer to where a waiting session's cache goes.

    ``holding_rate`` is what a second of waiting costs and ``return_cost`` what coming back costs, both in the
    time of a whole replica [replica-seconds a second, replica-seconds]. ``return_seconds`` is what the user
    waits for it [seconds].
    """

    name: str
    holding_rate: float
    return_cost: float
    return_seconds: float = 0.0

    def __post_init__(self) -> None:
        for name in ("holding_rate", "return_cost", "return_seconds"):
            require_non_negative(name, getattr(self, name))

    def cost(self, wait_seconds: float) -> float:
        """Cost of one wait of known length [replica-seconds]."""
        return self.holding_rate * require_non_negative("wait_seconds", wait_seconds) + self.return_cost


def places(
    model: ModelConfig,
    replica: Replica,
    context_len: int,
    tiers: Sequence[Tier] = EXAMPLE_TIERS,
    wait_price: float = 0.0,
) -> tuple[Place, ...]:
    """Price every place for a session: GPU memory, the tiers in their order, and nowhere.

    Parameters
    ----------
    model : ModelConfig
        The shape, with the width of its cache.
    replica : Replica
        The machine the session returns to.
    context_len : int
        Tokens of the session [tokens].
    tiers : sequence of Tier
        The stores below GPU memory.
    wait_price : float
        What a second of a user's wait is worth, in seconds of a whole replica [ratio].

    Returns
    -------
    tuple of Place
        ``keep`` first, ``drop`` last.

    Raises
    ------
    ValueError
        If the session does not fit the replica, or an argument is out of range.

    Notes
    -----
    With ``S`` the session's bytes and ``P`` the pool's: keeping costs ``S / P`` of a replica for every second,
    because a full pool could have served others with it. A tier costs its price times the share of it that the
    session fills, and on return ``S / P`` of a replica while it loads. Dropping costs a prefill of the whole
    context, a whole replica's time. It holds while memory is what limits the batch. Derived on page D3.

    Examples
    --------
    >>> from lantern_lib import H100, LANTERN_70B
    >>> keep, cpu, *_, drop = places(LANTERN_70B, Replica(H100, tp_size=4), 34_500)
    >>> round(keep.cost(3), 2), round(cpu.cost(3), 2), round(drop.cost(3), 2)
    (0.23, 0.04, 3.52)
    """
    size = kv_cache.bytes_per_sequence(model, require_int("context_len", context_len))
    price = require_non_negative("wait_price", wait_price)
    budget = kv_cache.memory_budget(model, replica)
    budget.require_fits(1, context_len)
    share = size / budget.pool_bytes
    again = prefill_step(model, replica, context_len).total_seconds
    found = [Place("keep", share, 0.0)]
    for tier in tiers:
        seconds = tier.reload_seconds(size)
        held = tier.price * size / tier.capacity_bytes
        found.append(Place(tier.name, held, seconds * (share + price), seconds))
    return (*found, Place("drop", 0.0, again * (1 + price), again))


def break_even_seconds(stay: Place, move: Place) -> float:
    """Return the wait from which another place is the cheaper one.

    Parameters
    ----------
    stay : Place
        Costs more by the second.
    move : Place
        Costs more on return.

    Returns
    -------
    float
        ``(move.return_cost − stay.return_cost) / (stay.holding_rate − move.holding_rate)``; 0 when moving
        always costs less, infinity when it never does [seconds].

    Examples
    --------
    >>> break_even_seconds(Place("keep", 0.5, 0.0), Place("drop", 0.0, 3.0))
    6.0
    """
    extra, saved = move.return_cost - stay.return_cost, stay.holding_rate - move.holding_rate
    if extra <= 0 and saved >= 0:
        return 0.0
    return extra / saved if saved > 0 else math.inf


def expected_cost(
    place: Place, waits: Sequence[float], limit_seconds: float = math.inf, after: Place | None = None
) -> float:
    """Return the mean cost of a place over the waits that may come, with a limit on how long it is held.

    Parameters
    ----------
    place : Place
        Where the cache goes first.
    waits : sequence of float
        Equally likely times until the session returns: measured gaps, or quantiles of a distribution [seconds].
    limit_seconds : float
        The cache leaves the place when the session has waited so long; infinity for never [seconds].
    after : Place, optional
        Where it then goes; needed with a limit.

    Returns
    -------
    float
        Mean cost of one wait [replica-seconds].

    Raises
    ------
    ValueError
        If there are no waits, one or the limit is negative, or a limit is given without `after`.

    Examples
    --------
    >>> keep, drop = Place("keep", 0.5, 0.0), Place("drop", 0.0, 3.0)
    >>> expected_cost(keep, [2, 40]), expected_cost(drop, [2, 40]), expected_cost(keep, [2, 40], 6, drop)
    (10.5, 3.0, 3.5)
    """
    if not waits:
        raise ValueError("waits must hold at least one time, got none. Give measured gaps, in seconds.")
    if limit_seconds == math.inf:
        return sum(place.cost(wait) for wait in waits) / len(waits)
    limit = require_non_negative("limit_seconds", limit_seconds)
    if after is None:
        raise ValueError("after must be a Place when limit_seconds is given, got None. Say where the cache then goes.")
    total = 0.0
    for wait in waits:
        if wait <= limit:
            total += place.cost(wait)
        else:
            total += place.holding_rate * limit + after.cost(wait - limit)
    return total / len(waits)


def cheapest_place(options: Sequence[Place], waits: Sequence[float]) -> Place:
    """Return the place with the least mean cost; the first of equals.

    Parameters
    ----------
    options : sequence of Place
        What may be done with the cache.
    waits : sequence of float
        Equally likely times until the session returns [seconds].

    Returns
    -------
    Place
        The best of them when only the distribution of the wait is known, not this one.

    Raises
    ------
    ValueError
        If there is no option or no wait.

    Examples
    --------
    >>> cheapest_place([Place("keep", 0.5, 0.0), Place("drop", 0.0, 3.0)], [1, 2, 40]).name
    'drop'
    """
    if not options:
        raise ValueError("options must hold at least one place, got none.")
    return min(options, key=lambda place: expected_cost(place, waits))


def open_sessions(pool_sessions: int, active_seconds: float, waiting_seconds: float, reload_seconds: float) -> float:
    """Return how many sessions stay open on a replica that moves every waiting cache out.

    Parameters
    ----------
    pool_sessions : int
        Sessions that fit GPU memory at once [count].
    active_seconds : float
        Time a call needs its cache in GPU memory [seconds].
    waiting_seconds : float
        Time between two calls, spent elsewhere [seconds].
    reload_seconds : float
        Time to come back, at the end of the wait and with the room already taken [seconds].

    Returns
    -------
    float
        ``pool_sessions × (active + waiting) / (active + reload)``, the reload inside the wait as far as it fits;
        never below `pool_sessions` [sessions].

    Raises
    ------
    ValueError
        If a time is negative, `active_seconds` is 0 or `pool_sessions` is below 1.

    Examples
    --------
    >>> round(open_sessions(12, 8.5, 3, 0.45), 1), round(open_sessions(12, 8.5, 60, 0.45), 1)
    (15.4, 91.8)
    """
    count = require_int("pool_sessions", pool_sessions)
    active = require_positive("active_seconds", active_seconds)
    waiting = require_non_negative("waiting_seconds", waiting_seconds)
    back = min(require_non_negative("reload_seconds", reload_seconds), waiting)
    return count * (active + waiting) / (active + back)


@dataclass(frozen=True)
class Candidate:
    """A replica as the router sees it: ``num_cached_tokens`` of the prompt [tokens] and its queue [seconds]."""

    name: str
    num_cached_tokens: int
    queue_seconds: float

    def __post_init__(self) -> None:
        require_int("num_cached_tokens", self.num_cached_tokens, minimum=0)
        require_non_negative("queue_seconds", self.queue_seconds)


def first_token_seconds(model: ModelConfig, replica: Replica, prompt_len: int, candidate: Candidate) -> float:
    """Return how long a request waits for its first token at one replica.

    Parameters
    ----------
    model : ModelConfig
        The shape.
    replica : Replica
        The machine, the same for all candidates.
    prompt_len : int
        The prompt with everything before it [tokens].
    candidate : Candidate
        Its queue, and how much of the prompt it has cached.

    Returns
    -------
    float
        Queue and prefill of what is not cached; at least one token is always computed [seconds].

    Raises
    ------
    ValueError
        If a length is not a whole number, or the candidate has more cached than the prompt has.

    Examples
    --------
    >>> from lantern_lib import H100, LANTERN_70B
    >>> hit = Candidate("a", 33_000, 2.0)
    >>> round(first_token_seconds(LANTERN_70B, Replica(H100, tp_size=4), 34_500, hit), 2)
    2.19
    """
    length = require_int("prompt_len", prompt_len)
    if candidate.num_cached_tokens > length:
        raise ValueError(
            f"num_cached_tokens must be at most prompt_len = {length:,}, got {candidate.num_cached_tokens:,}."
            " Count only tokens of this prompt."
        )
    cached = min(candidate.num_cached_tokens, length - 1)
    return candidate.queue_seconds + prefill_step(model, replica, length - cached, cached).total_seconds


def route(model: ModelConfig, replica: Replica, prompt_len: int, candidates: Sequence[Candidate]) -> Candidate:
    """Return the replica with the longest cached prefix, unless its queue is longer than the hit saves.

    Parameters
    ----------
    model : ModelConfig
        The shape.
    replica : Replica
        The machine, the same for all candidates.
    prompt_len : int
        The prompt with everything before it [tokens].
    candidates : sequence of Candidate
        The replicas that may serve it.

    Returns
    -------
    Candidate
        The one with the earliest first token; of equals the longest prefix, then the first.

    Raises
    ------
    ValueError
        If there is no candidate, or as :func:`first_token_seconds`.

    Notes
    -----
    Of two replicas the one with the longer prefix loses just when its queue is longer by more than the other's
    longer prefill, so the rule is the least sum of queue and prefill. Used on page D3.

    Examples
    --------
    >>> from lantern_lib import H100, LANTERN_70B
    >>> four = Replica(H100, tp_size=4)
    >>> has, idle = Candidate("has it", 33_000, 3.0), Candidate("idle", 0, 0.0)
    >>> route(LANTERN_70B, four, 34_500, [has, idle]).name
    'has it'
    >>> route(LANTERN_70B, four, 34_500, [Candidate("has it", 33_000, 4.0), idle]).name
    'idle'
    """
    if not candidates:
        raise ValueError("candidates must hold at least one replica, got none. Shed the request instead.")
    return min(
        candidates,
        key=lambda each: (first_token_seconds(model, replica, prompt_len, each), -each.num_cached_tokens),
    )
