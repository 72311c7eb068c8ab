"""Which replica a request goes to: the one that has its prefix, unless the queue there is longer than that saves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lantern_lib.hardware import Replica
from lantern_lib.model_config import ModelConfig
from lantern_lib.step import prefill_step
from lantern_lib.units import require_int, require_non_negative


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
