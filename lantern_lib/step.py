"""The time of one engine step: arithmetic, memory, communication, and which of them binds.

Times are floors: arithmetic and memory overlap perfectly, communication overlaps with nothing. A replica reads each
key-value head once: with more GPUs than heads each GPU reads a copy of its own, which is more than is counted here.
``kv_cache.bytes_per_sequence_per_gpu`` and ``parallelism.conversations_that_fit`` count the copies.
"""

from __future__ import annotations

from dataclasses import dataclass

from lantern_lib import kv_cache, roofline, transformer
from lantern_lib.collectives import all_reduce_seconds
from lantern_lib.hardware import Replica
from lantern_lib.model_config import ModelConfig
from lantern_lib.units import format_quantity, require_int

#: One all-reduce after attention and one after the feed-forward block.
ALL_REDUCES_PER_LAYER = 2


@dataclass(frozen=True)
class StepCost:
    """What one step does and how long each part takes.

    ``description`` names the work and the machine. ``flops`` [FLOPs] and ``moved_bytes`` [bytes] are
    for the whole replica, the times are in seconds, and ``num_tokens`` is how many tokens the step
    computes.
    """

    description: str
    num_tokens: int
    flops: float
    moved_bytes: float
    compute_seconds: float
    memory_seconds: float
    communication_seconds: float

    @property
    def total_seconds(self) -> float:
        """The longer of arithmetic and memory, plus communication [seconds]."""
        return max(self.compute_seconds, self.memory_seconds) + self.communication_seconds

    @property
    def bound(self) -> roofline.Bound:
        """Which of arithmetic and memory takes longer."""
        return roofline.bound(self.compute_seconds, self.memory_seconds)

    @property
    def arithmetic_intensity(self) -> float:
        """FLOPs done for each byte moved [FLOPs/byte]."""
        return roofline.arithmetic_intensity(self.flops, self.moved_bytes)

    @property
    def tokens_per_second(self) -> float:
        """Tokens of the whole batch over the step's time [tokens/s]."""
        return self.num_tokens / self.total_seconds

    @property
    def summary(self) -> str:
        """One line with the parts of the step."""
        parts = (
            ("arithmetic", self.compute_seconds),
            ("memory", self.memory_seconds),
            ("communication", self.communication_seconds),
        )
        times = ", ".join(f"{name} {format_quantity(seconds, 'ms', 3)}" for name, seconds in parts)
        return f"{self.description}: {times}"


def _communication_seconds(model: ModelConfig, replica: Replica, num_tokens: int) -> float:
    # The vectors that are added between layers stay at 16 bits, whatever the weights are stored in.
    message = num_tokens * model.hidden_size * 2
    one = all_reduce_seconds(message, replica.tp_size, replica.accelerator.link)
    return ALL_REDUCES_PER_LAYER * model.num_layers * one


def _cost(
    model: ModelConfig, replica: Replica, work: str, num_tokens: int, flops: float, moved_bytes: float
) -> StepCost:
    return StepCost(
        description=f"{work}, {model.name} on {replica.tp_size} × {replica.accelerator.name}",
        num_tokens=num_tokens,
        flops=flops,
        moved_bytes=moved_bytes,
        compute_seconds=flops / replica.flops_per_second,
        memory_seconds=moved_bytes / replica.bandwidth,
        communication_seconds=_communication_seconds(model, replica, num_tokens),
    )


def decode_step(
    model: ModelConfig,
    replica: Replica,
    batch_size: int,
    context_len: int,
    *,
    budget: kv_cache.MemoryBudget | None = None,
) -> StepCost:
    """Return the cost of one decode step: one new token for each sequence of the batch.

    Parameters
    ----------
    model : ModelConfig
        The shape.
    replica : Replica
        The machine with its efficiencies.
    batch_size : int
        Sequences decoded together [sequences].
    context_len : int
        Cached tokens of each [tokens].
    budget : MemoryBudget, optional
        Refuse a batch that does not fit in it; without one, a step that no memory could hold has a
        time too, which is how a plot shows where the limits would meet.

    Returns
    -------
    StepCost
        The parts and the total.

    Raises
    ------
    ValueError
        If `batch_size` is below 1 or `context_len` below 0, either is not a whole number, or the batch
        is larger than the budget holds.

    Notes
    -----
    Reads every streamed weight once and the cache of each sequence. Derived on page A3.

    Examples
    --------
    >>> from lantern_lib.hardware import H100
    >>> from lantern_lib.model_config import LANTERN_70B
    >>> step = decode_step(LANTERN_70B, Replica(H100, tp_size=4), batch_size=64, context_len=2000)
    >>> round(step.total_seconds * 1e3, 1), round(step.tokens_per_second), step.bound
    (18.7, 3419, 'memory')
    """
    require_int("batch_size", batch_size, hint="A step without a sequence does nothing.")
    require_int("context_len", context_len, minimum=0)
    if budget is not None and context_len:
        budget.require_fits(batch_size, context_len)
    flops = batch_size * transformer.token_flops(model, context_len).total
    cache = batch_size * kv_cache.bytes_per_sequence(model, context_len)
    work = f"decode of batch {batch_size:,} at context {context_len:,}"
    return _cost(model, replica, work, batch_size, flops, transformer.streamed_weight_bytes(model, batch_size) + cache)


def prefill_step(model: ModelConfig, replica: Replica, prompt_len: int, num_cached_tokens: int = 0) -> StepCost:
    """Return the cost of prefilling one prompt in one step.

    Parameters
    ----------
    model : ModelConfig
        The shape.
    replica : Replica
        The machine with its efficiencies.
    prompt_len : int
        Tokens to compute [tokens].
    num_cached_tokens : int
        Tokens before them whose cache is already there [tokens].

    Returns
    -------
    StepCost
        The parts and the total.

    Raises
    ------
    ValueError
        If a length is not a whole number, or `prompt_len` is below 1.

    Notes
    -----
    Reads every streamed weight once and the cached tokens; writing the new keys and values and
    the traffic of activations are left out. Derived on page A3.

    Examples
    --------
    >>> from lantern_lib.hardware import H100
    >>> from lantern_lib.model_config import LANTERN_70B
    >>> step = prefill_step(LANTERN_70B, Replica(H100, tp_size=4), prompt_len=2000)
    >>> round(step.total_seconds * 1e3), step.bound
    (162, 'compute')
    """
    flops = transformer.prompt_flops(model, prompt_len, num_cached_tokens).total
    moved = transformer.streamed_weight_bytes(model, prompt_len) + kv_cache.bytes_per_sequence(model, num_cached_tokens)
    cached = f" after {num_cached_tokens:,} cached" if num_cached_tokens else ""
    return _cost(model, replica, f"prefill of {prompt_len:,} tokens{cached}", prompt_len, flops, moved)


def request_seconds(
    model: ModelConfig, replica: Replica, prompt_len: int, output_len: int, context_len: int | None = None
) -> float:
    """Return how long one request alone on a replica takes, from sending to the last token.

    Parameters
    ----------
    model : ModelConfig
        The shape.
    replica : Replica
        The machine with its efficiencies.
    prompt_len, output_len : int
        Tokens read and written [tokens].
    context_len : int, optional
        Hold the context of every decode step at this length; without it the context grows token by
        token [tokens].

    Returns
    -------
    float
        Prefill plus ``output_len − 1`` decode steps: the prefill gives the first token [seconds].

    Raises
    ------
    ValueError
        If a length is not a whole number of 1 or more.

    Examples
    --------
    >>> from lantern_lib.hardware import H100
    >>> from lantern_lib.model_config import LANTERN_70B
    >>> round(request_seconds(LANTERN_70B, Replica(H100, tp_size=4), 2000, 400), 2)
    5.88
    """
    require_int("output_len", output_len)
    contexts = (context_len if context_len is not None else prompt_len + i for i in range(1, output_len))
    decode = sum(decode_step(model, replica, 1, context).total_seconds for context in contexts)
    return prefill_step(model, replica, prompt_len).total_seconds + decode
