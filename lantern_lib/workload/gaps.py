"""What agents' pauses do to a prompt cache: what is lost, what it costs, and how long it must be kept."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lantern_lib.units import require_fraction, require_non_negative, require_positive
from lantern_lib.workload.requests import Session


@dataclass(frozen=True)
class CallColumns:
    """All calls of some sessions as columns of equal length.

    ``gap_seconds`` is NaN for the first call of a session, ``session`` says which session a call belongs to, and
    ``turn`` counts its calls from 0.
    """

    prompt_len: NDArray[np.int64]
    output_len: NDArray[np.int64]
    reused_len: NDArray[np.int64]
    gap_seconds: NDArray[np.float64]
    session: NDArray[np.int64]
    turn: NDArray[np.int64]

    @property
    def later(self) -> NDArray[np.bool_]:
        """Which calls have one before them in their session."""
        return self.turn > 0


def call_columns(sessions: Sequence[Session]) -> CallColumns:
    """Return the calls of sessions as columns.

    Parameters
    ----------
    sessions : sequence of Session
        At least one session.

    Returns
    -------
    CallColumns
        One row a call, session after session.

    Raises
    ------
    ValueError
        If there is no session.

    Examples
    --------
    >>> from lantern_lib.workload import Call
    >>> call_columns([Session((Call(100, 9), Call(150, 9, gap_seconds=7.0, reused_len=100)))]).gap_seconds
    array([nan,  7.])
    """
    if not sessions:
        raise ValueError("sessions must hold at least one session, got none. Read some first.")
    calls = [(n, turn, call) for n, session in enumerate(sessions) for turn, call in enumerate(session.calls)]
    return CallColumns(
        np.array([call.prompt_len for _, _, call in calls]),
        np.array([call.output_len for _, _, call in calls]),
        np.array([call.reused_len if turn else 0 for _, turn, call in calls]),
        np.array([call.gap_seconds if turn else math.nan for _, turn, call in calls]),
        np.array([n for n, _, _ in calls]),
        np.array([turn for _, turn, _ in calls]),
    )


@dataclass(frozen=True)
class CacheUse:
    """What a cache with one lifetime does for some calls.

    ``written_tokens`` and ``read_tokens`` add up to all input; ``lost_calls`` found their cache expired;
    ``held_token_seconds`` is how many tokens were kept for how long between calls, to no end if nothing expires.
    """

    written_tokens: int
    read_tokens: int
    lost_calls: int
    held_token_seconds: float

    def price(self, write_price: float, read_price: float) -> float:
        """Return the price of all input, in prices of one fresh token."""
        return (
            require_non_negative("write_price", write_price) * self.written_tokens
            + require_non_negative("read_price", read_price) * self.read_tokens
        )


def cache_use(calls: CallColumns, lifetime_seconds: float) -> CacheUse:
    """Return what is read from a cache and what is written again, for one lifetime.

    Parameters
    ----------
    calls : CallColumns
        The calls, session after session.
    lifetime_seconds : float
        How long an entry lives after the answer that used it; infinity for one that never expires [seconds].

    Returns
    -------
    CacheUse
        Tokens written and read, calls that lost their cache, and what was held between calls.

    Raises
    ------
    ValueError
        If the lifetime is negative or no number.

    Notes
    -----
    A call that comes within the lifetime reads what it shares with the call before and writes the rest; any other
    writes its whole prompt. Between calls the prompt and the answer are held until the next call or the end of the
    lifetime; after a session's last call for the whole lifetime, because nobody knows that it was the last. Sessions
    share nothing here. Derived on pages D2 and D5.

    Examples
    --------
    >>> from lantern_lib.workload import Call
    >>> calls = call_columns([Session((Call(100, 10), Call(150, 10, gap_seconds=7.0, reused_len=100)))])
    >>> cache_use(calls, 60)
    CacheUse(written_tokens=150, read_tokens=100, lost_calls=0, held_token_seconds=10370.0)
    >>> cache_use(calls, 5).price(write_price=1.25, read_price=0.1)
    312.5
    """
    if lifetime_seconds != math.inf:
        require_non_negative("lifetime_seconds", lifetime_seconds)
    alive = calls.later & (np.nan_to_num(calls.gap_seconds, nan=math.inf) <= lifetime_seconds)
    read = int(calls.reused_len[alive].sum())
    next_gap = np.append(np.where(calls.later, calls.gap_seconds, math.inf)[1:], math.inf)
    held = (calls.prompt_len + calls.output_len) * np.minimum(next_gap, lifetime_seconds)
    return CacheUse(int(calls.prompt_len.sum()) - read, read, int((calls.later & ~alive).sum()), float(held.sum()))


def holding_break_even_seconds(
    recompute_seconds_per_token: float, capacity_tokens: float, share_of_price: float = 1.0
) -> float:
    """Return the gap up to which keeping a waiting token is cheaper than computing it again.

    Parameters
    ----------
    recompute_seconds_per_token : float
        Time of the machine to compute one token of a prefix again [seconds].
    capacity_tokens : float
        Tokens that the store holds when it is full [tokens].
    share_of_price : float
        What the whole store costs an hour, over what the machine costs an hour, in (0, 1] [ratio].

    Returns
    -------
    float
        The gap at which both cost the same [seconds].

    Raises
    ------
    ValueError
        If an argument is not above 0, or the share is more than 1.

    Notes
    -----
    Keeping a token for t seconds takes ``t / capacity`` of the store, so ``share · t / capacity`` seconds of the
    machine's price. Computing it again takes ``recompute`` seconds of the machine. They are equal at
    ``t = recompute · capacity / share``, the rule that Gray and Putzolu gave for pages on disk. The store is taken as
    full, the machine as busy, and loading as free. Derived on page D5.

    Examples
    --------
    >>> round(holding_break_even_seconds(1e-4, 450_000))
    45
    """
    return (
        require_positive("recompute_seconds_per_token", recompute_seconds_per_token)
        * require_positive("capacity_tokens", capacity_tokens)
        / require_fraction("share_of_price", share_of_price)
    )


def machine_seconds(
    written_tokens: float,
    held_token_seconds: float,
    recompute_seconds_per_token: float,
    capacity_tokens: float,
    share_of_price: float = 1.0,
) -> float:
    """Return what a lifetime costs on a machine of one's own: computing, and keeping.

    Parameters
    ----------
    written_tokens : float
        What had to be computed, see :class:`CacheUse` [tokens].
    held_token_seconds : float
        What was kept for how long between calls [token-seconds].
    recompute_seconds_per_token : float
        Time of the machine to compute one token [seconds].
    capacity_tokens : float
        Tokens that the store holds when it is full [tokens].
    share_of_price : float
        What the whole store costs an hour, over what the machine costs an hour, in (0, 1] [ratio].

    Returns
    -------
    float
        Time of the machine that costs as much [seconds].

    Raises
    ------
    ValueError
        If an argument is out of its range.

    Notes
    -----
    The two sides of :func:`holding_break_even_seconds`, added up over all calls. Derived on page D5.

    Examples
    --------
    >>> machine_seconds(1e6, 1e9, 1e-4, 1e6, share_of_price=0.5)
    600.0
    """
    computing = require_non_negative("written_tokens", written_tokens) * require_positive(
        "recompute_seconds_per_token", recompute_seconds_per_token
    )
    kept = require_non_negative("held_token_seconds", held_token_seconds) / require_positive(
        "capacity_tokens", capacity_tokens
    )
    return computing + require_fraction("share_of_price", share_of_price) * kept
