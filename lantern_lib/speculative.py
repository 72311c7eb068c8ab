"""Speculative decoding: a draft guesses tokens, the large model checks them in one step.

Two prices of the check. The usual formula takes it as one ordinary step. :func:`verify_step` counts
what it does: arithmetic for every checked token, bytes for one read.
"""

from __future__ import annotations

from dataclasses import replace

from lantern_lib.hardware import Replica
from lantern_lib.model_config import ModelConfig
from lantern_lib.step import StepCost, decode_step
from lantern_lib.units import require_int, require_non_negative, require_positive


def _require_acceptance(value: object) -> float:
    chance = require_non_negative("acceptance", value, "It is the chance that a drafted token is kept.")
    if chance > 1:
        raise ValueError(f"acceptance must be a chance in [0, 1], got {value!r}. 0.8 keeps four drafts of five.")
    return chance


def expected_tokens(acceptance: float, draft_len: int) -> float:
    """Return how many tokens one round yields on average.

    Parameters
    ----------
    acceptance : float
        Chance that a drafted token is kept, given that all before it were, in [0, 1] [ratio].
    draft_len : int
        Tokens drafted in one round [tokens].

    Returns
    -------
    float
        Kept drafts and the one token of the large model itself [tokens].

    Raises
    ------
    ValueError
        If `acceptance` is outside [0, 1] or `draft_len` is not a whole number of 1 or more.

    Notes
    -----
    ``1 + α + … + α^k``, which is ``(1 − α^(k+1)) / (1 − α)`` below 1. Assumes one chance for every
    position. Derived on page B5.

    Examples
    --------
    >>> round(expected_tokens(0.8, 4), 2)
    3.36
    """
    chance = _require_acceptance(acceptance)
    length = require_int("draft_len", draft_len, hint="Without a draft it is ordinary decoding.")
    return sum(chance**position for position in range(length + 1))


def speedup(acceptance: float, draft_len: int, draft_cost: float, check_cost: float = 1.0) -> float:
    """Return how many times faster a sequence grows than in ordinary decoding.

    Parameters
    ----------
    acceptance : float
        Chance that a drafted token is kept, in [0, 1] [ratio].
    draft_len : int
        Tokens drafted in one round [tokens].
    draft_cost : float
        Time of one drafted token, in ordinary steps of the large model [ratio].
    check_cost : float
        Time of the check, in ordinary steps of the large model [ratio].

    Returns
    -------
    float
        Tokens a round over its cost; below 1 speculation slows down [ratio].

    Raises
    ------
    ValueError
        If `acceptance` is outside [0, 1], `draft_len` is not a whole number of 1 or more, `draft_cost`
        is negative or `check_cost` is not above 0.

    Notes
    -----
    ``expected_tokens / (check_cost + draft_cost draft_len)``. Derived on page B5.

    Examples
    --------
    >>> round(speedup(0.8, 4, 0.05), 1), round(speedup(0.8, 8, 0.05), 1)
    (2.8, 3.1)
    """
    tokens = expected_tokens(acceptance, draft_len)
    each = require_non_negative("draft_cost", draft_cost, "0.05 makes a draft token a twentieth of a step.")
    return tokens / (require_positive("check_cost", check_cost) + each * draft_len)


def best_draft_len(acceptance: float, draft_cost: float, max_draft_len: int = 64) -> int:
    """Return the draft length with the largest speedup, when the check costs one ordinary step.

    Parameters
    ----------
    acceptance : float
        Chance that a drafted token is kept, in [0, 1] [ratio].
    draft_cost : float
        Time of one drafted token, in ordinary steps of the large model [ratio].
    max_draft_len : int
        Longest draft to try [tokens].

    Returns
    -------
    int
        The shortest of the best; `max_draft_len` when longer drafts would be better still [tokens].

    Raises
    ------
    ValueError
        As :func:`speedup`, and if `max_draft_len` is not a whole number of 1 or more.

    Examples
    --------
    >>> best_draft_len(0.8, 0.05)
    8
    """
    lengths = range(1, require_int("max_draft_len", max_draft_len) + 1)
    return max(lengths, key=lambda length: speedup(acceptance, length, draft_cost))


def verify_step(model: ModelConfig, replica: Replica, batch_size: int, context_len: int, draft_len: int) -> StepCost:
    """Return the cost of checking the drafts of every sequence in one step of the large model.

    Parameters
    ----------
    model : ModelConfig
        The large model.
    replica : Replica
        The machine with its efficiencies.
    batch_size : int
        Sequences checked together [sequences].
    context_len : int
        Cached tokens of each [tokens].
    draft_len : int
        Drafted tokens of each [tokens].

    Returns
    -------
    StepCost
        Its ``num_tokens`` are the computed ones, kept or not.

    Raises
    ------
    ValueError
        If a number is not a whole number in its range.

    Notes
    -----
    Arithmetic and all-reduces of ``batch_size (draft_len + 1)`` tokens; weights and each cache are read
    once. Every token attends to `context_len` tokens, and the few new keys and values are left out.
    Derived on page B5.

    Examples
    --------
    >>> from lantern_lib import H100, LANTERN_70B, Replica
    >>> check = verify_step(LANTERN_70B, Replica(H100, tp_size=4), 64, 2000, draft_len=4)
    >>> round(check.total_seconds * 1e3, 1), check.bound
    (27.4, 'compute')
    """
    length = require_int("draft_len", draft_len, hint="Without a draft it is ordinary decoding.")
    once = decode_step(model, replica, batch_size, context_len)
    every = decode_step(model, replica, batch_size * (length + 1), context_len)
    return replace(
        every,
        description=f"check of {length:,} drafts, {once.description}",
        moved_bytes=once.moved_bytes,
        memory_seconds=once.memory_seconds,
    )


def batch_speedup(
    model: ModelConfig,
    replica: Replica,
    batch_size: int,
    context_len: int,
    acceptance: float,
    draft_len: int,
    draft_cost: float,
) -> float:
    """Return the speedup when the check is priced with the step model.

    Parameters
    ----------
    model : ModelConfig
        The large model.
    replica : Replica
        The machine with its efficiencies.
    batch_size : int
        Sequences decoded together [sequences].
    context_len : int
        Cached tokens of each [tokens].
    acceptance : float
        Chance that a drafted token is kept, in [0, 1] [ratio].
    draft_len : int
        Tokens drafted in one round [tokens].
    draft_cost : float
        Time of one drafted token for the whole batch, in ordinary steps at this batch [ratio].

    Returns
    -------
    float
        Tokens per second with speculation over tokens per second without [ratio].

    Raises
    ------
    ValueError
        As :func:`speedup` and :func:`verify_step`.

    Examples
    --------
    >>> from lantern_lib import H100, LANTERN_70B, Replica
    >>> four = Replica(H100, tp_size=4)
    >>> [round(batch_speedup(LANTERN_70B, four, b, 2000, 0.8, 4, 0.05), 2) for b in (1, 64, 128)]
    [2.8, 2.02, 1.34]
    """
    check = verify_step(model, replica, batch_size, context_len, draft_len).total_seconds
    ordinary = decode_step(model, replica, batch_size, context_len).total_seconds
    return speedup(acceptance, draft_len, draft_cost, check / ordinary)


def break_even_batch(
    model: ModelConfig,
    replica: Replica,
    context_len: int,
    acceptance: float,
    draft_len: int,
    draft_cost: float,
    max_batch: int = 1024,
) -> int | None:
    """Return the smallest batch at which speculation gains nothing any more.

    Parameters
    ----------
    model : ModelConfig
        The large model.
    replica : Replica
        The machine with its efficiencies.
    context_len : int
        Cached tokens of each sequence [tokens].
    acceptance : float
        Chance that a drafted token is kept, in [0, 1] [ratio].
    draft_len : int
        Tokens drafted in one round [tokens].
    draft_cost : float
        Time of one drafted token for the whole batch, in ordinary steps [ratio].
    max_batch : int
        Largest batch to try [sequences].

    Returns
    -------
    int or None
        The first batch with a speedup of 1 or less, None if there is none up to `max_batch` [sequences].

    Raises
    ------
    ValueError
        As :func:`batch_speedup`, and if `max_batch` is not a whole number of 1 or more.

    Notes
    -----
    Halves an interval: the speedup never rises with the batch. Whether the batch fits in memory is
    another question; ask :func:`lantern_lib.kv_cache.memory_budget`.

    Examples
    --------
    >>> from lantern_lib import H100, LANTERN_70B, Replica
    >>> break_even_batch(LANTERN_70B, Replica(H100, tp_size=4), 2000, 0.6, 4, 0.05)
    110
    """

    def gains(batch_size: int) -> bool:
        return batch_speedup(model, replica, batch_size, context_len, acceptance, draft_len, draft_cost) > 1

    low, high = 0, require_int("max_batch", max_batch)
    if gains(high):
        return None
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if gains(middle) else (low, middle)
    return high
