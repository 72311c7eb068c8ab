"""Where the cache of a waiting session lies: what each place costs, and until when it is worth it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from lantern_lib import kv_cache
from lantern_lib.cache_tiers.tiers import EXAMPLE_TIERS, Tier
from lantern_lib.hardware import Replica
from lantern_lib.model_config import ModelConfig
from lantern_lib.step import prefill_step
from lantern_lib.units import require_int, require_non_negative, require_positive


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
