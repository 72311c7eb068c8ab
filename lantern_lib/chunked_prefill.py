"""Steps that carry a piece of a prompt beside the decodes, and the price of moving a cache instead."""

from __future__ import annotations

from dataclasses import dataclass, replace

from lantern_lib import kv_cache, transformer
from lantern_lib.hardware import Replica
from lantern_lib.model_config import ModelConfig
from lantern_lib.step import StepCost, decode_step
from lantern_lib.units import require_fraction, require_int, require_positive


def mixed_step(
    model: ModelConfig,
    replica: Replica,
    num_decoders: int,
    context_len: int,
    chunk_size: int,
    chunk_context_len: int | None = None,
) -> StepCost:
    """Return the cost of a step that decodes and carries a chunk of a prompt.

    Parameters
    ----------
    model : ModelConfig
        The shape.
    replica : Replica
        The machine with its efficiencies.
    num_decoders : int
        Sequences that get a token in the step [sequences].
    context_len : int
        Cached tokens of each of them [tokens].
    chunk_size : int
        Prompt tokens processed in the step, 0 for none [tokens].
    chunk_context_len : int, optional
        Positions that a token of the chunk attends to; without it, as many as a decoder's [tokens].

    Returns
    -------
    StepCost
        The parts and the total.

    Raises
    ------
    ValueError
        If a count is not a whole number of 0 or more, or the step would have no token at all.

    Notes
    -----
    Arithmetic and all-reduces of ``num_decoders + chunk_size`` tokens; bytes of the weights and of the
    decoders' caches. Reading the cache that earlier chunks of the same prompt left is not counted, nor
    is writing the chunk's own. Derived on page B3.

    Examples
    --------
    >>> from lantern_lib import H100, LANTERN_70B, Replica
    >>> step = mixed_step(LANTERN_70B, Replica(H100, tp_size=4), 32, 4000, chunk_size=512)
    >>> round(step.total_seconds * 1e3, 1), step.num_tokens, step.bound
    (47.1, 544, 'compute')
    """
    require_int("num_decoders", num_decoders, minimum=0)
    require_int("context_len", context_len, minimum=0)
    require_int("chunk_size", chunk_size, minimum=0)
    if chunk_context_len is not None:
        require_int("chunk_context_len", chunk_context_len, minimum=0)
    if num_decoders + chunk_size == 0:
        raise ValueError("chunk_size must be 1 or more in a step without decoders, got 0. The step would do nothing.")
    attended = context_len if chunk_context_len is None else chunk_context_len
    decoding = num_decoders * transformer.token_flops(model, context_len).total
    flops = decoding + chunk_size * transformer.token_flops(model, attended).total
    cache = num_decoders * kv_cache.bytes_per_sequence(model, context_len)
    moved = transformer.streamed_weight_bytes(model) + cache
    # As many tokens decoded at once have the same all-reduces; only arithmetic and bytes differ.
    alike = decode_step(model, replica, num_decoders + chunk_size, context_len)
    return replace(
        alike,
        description=(
            f"{num_decoders:,} decoders at context {context_len:,} and a chunk of {chunk_size:,},"
            f" {model.name} on {replica.tp_size} × {replica.accelerator.name}"
        ),
        flops=flops,
        moved_bytes=moved,
        compute_seconds=flops / replica.flops_per_second,
        memory_seconds=moved / replica.bandwidth,
    )


@dataclass(frozen=True)
class ChunkSchedule:
    """How a prompt is read in chunks beside running decodes.

    ``full_step`` is a step with a whole chunk and ``last_step`` the one that ends the prompt;
    ``num_steps`` counts both.
    """

    chunk_size: int
    num_steps: int
    full_step: StepCost
    last_step: StepCost

    @property
    def pause_seconds(self) -> float:
        """The longest gap between two tokens of a running user [seconds]."""
        return self.full_step.total_seconds

    @property
    def ttft_seconds(self) -> float:
        """From the first chunk's start to the end of the last one, where the first token appears [seconds]."""
        return (self.num_steps - 1) * self.full_step.total_seconds + self.last_step.total_seconds

    @property
    def summary(self) -> str:
        """One line that names the schedule."""
        return f"{self.num_steps:,} steps with chunks of {self.chunk_size:,}; {self.full_step.description}"


def chunk_schedule(
    model: ModelConfig,
    replica: Replica,
    num_decoders: int,
    context_len: int,
    prompt_len: int,
    chunk_size: int,
    *,
    partial_last: bool = False,
) -> ChunkSchedule:
    """Divide a prompt into chunks and time them.

    Parameters
    ----------
    model : ModelConfig
        The shape.
    replica : Replica
        The machine with its efficiencies.
    num_decoders : int
        Sequences that decode all the while [sequences].
    context_len : int
        Their context, and by this page's convention what each prompt token attends to [tokens].
    prompt_len : int
        The prompt [tokens].
    chunk_size : int
        Most prompt tokens of one step; a larger one than the prompt means the whole prompt [tokens].
    partial_last : bool
        Count the last chunk with the tokens it has, instead of as a full one.

    Returns
    -------
    ChunkSchedule
        The steps and the two times they give.

    Raises
    ------
    ValueError
        If `prompt_len` or `chunk_size` is not a whole number of 1 or more.

    Notes
    -----
    The prompt takes ``ceil(prompt_len / chunk_size)`` steps. Counting every step as full is the table of
    page B3; it is at most one step too long. Derived on page B3.

    Examples
    --------
    >>> from lantern_lib import H100, LANTERN_70B, Replica
    >>> machine = Replica(H100, tp_size=4)
    >>> schedule = chunk_schedule(LANTERN_70B, machine, 32, 4000, 8000, 512)
    >>> schedule.num_steps, round(schedule.ttft_seconds * 1e3)
    (16, 754)
    >>> exact = chunk_schedule(LANTERN_70B, machine, 32, 4000, 8000, 512, partial_last=True)
    >>> round(exact.ttft_seconds * 1e3)
    738
    """
    require_int("prompt_len", prompt_len, hint="A request without a prompt has nothing to prefill.")
    require_int("chunk_size", chunk_size, hint="Without chunks, give the length of the prompt.")
    size = min(chunk_size, prompt_len)
    num_steps = -(-prompt_len // size)
    rest = prompt_len - (num_steps - 1) * size
    full = mixed_step(model, replica, num_decoders, context_len, size)
    last = mixed_step(model, replica, num_decoders, context_len, rest) if partial_last else full
    return ChunkSchedule(size, num_steps, full, last)


def best_chunk(
    model: ModelConfig,
    replica: Replica,
    num_decoders: int,
    context_len: int,
    tpot_target_seconds: float,
    max_chunk_size: int = 8192,
) -> int:
    """Return the largest chunk whose step keeps a target for the time per token.

    Parameters
    ----------
    model : ModelConfig
        The shape.
    replica : Replica
        The machine with its efficiencies.
    num_decoders : int
        Sequences that decode in each step [sequences].
    context_len : int
        Their context [tokens].
    tpot_target_seconds : float
        Longest step that running users may see [seconds].
    max_chunk_size : int
        No chunk is longer than this, for example the prompt [tokens].

    Returns
    -------
    int
        The chunk; 0 when the target leaves room for decoding only [tokens].

    Raises
    ------
    ValueError
        If not even the step without a chunk keeps the target.

    Notes
    -----
    A step never gets shorter with a longer chunk, so bisection finds it. The largest chunk is the shortest
    wait of the newcomer but for the rest in the last step. Used on page B3.

    Examples
    --------
    >>> from lantern_lib import H100, LANTERN_70B, Replica
    >>> best_chunk(LANTERN_70B, Replica(H100, tp_size=4), 32, 4000, 0.05)
    545
    """
    require_positive("tpot_target_seconds", tpot_target_seconds)
    require_int("max_chunk_size", max_chunk_size)
    alone = decode_step(model, replica, num_decoders, context_len).total_seconds
    if alone > tpot_target_seconds:
        raise ValueError(
            f"tpot_target_seconds must be at least {alone:.4g}, the step without any chunk,"
            f" got {tpot_target_seconds!r}. Decode fewer sequences, or use more GPUs."
        )
    low, high = 0, max_chunk_size
    while low < high:
        middle = (low + high + 1) // 2
        if mixed_step(model, replica, num_decoders, context_len, middle).total_seconds <= tpot_target_seconds:
            low = middle
        else:
            high = middle - 1
    return low


def free_chunk(model: ModelConfig, replica: Replica, num_decoders: int, context_len: int) -> int:
    """Return the largest chunk whose arithmetic hides behind the decoders' memory traffic.

    Parameters
    ----------
    model : ModelConfig
        The shape.
    replica : Replica
        The machine with its efficiencies.
    num_decoders : int
        Sequences that decode in each step [sequences].
    context_len : int
        Their context [tokens].

    Returns
    -------
    int
        The chunk; 0 if the decoders alone are compute-bound. Its all-reduces still take time [tokens].

    Raises
    ------
    ValueError
        If `num_decoders` is not a whole number of 1 or more.

    Examples
    --------
    >>> from lantern_lib import H100, LANTERN_70B, Replica
    >>> free_chunk(LANTERN_70B, Replica(H100, tp_size=4), 32, 4000)
    191
    """
    alone = decode_step(model, replica, num_decoders, context_len)
    each = alone.compute_seconds / num_decoders
    return max(0, int(alone.memory_seconds // each) - num_decoders)


@dataclass(frozen=True)
class CacheTransfer:
    """A prompt's cache on its way to another machine: ``size_bytes`` [bytes] and ``seconds`` [seconds]."""

    prompt_len: int
    size_bytes: float
    seconds: float

    @property
    def summary(self) -> str:
        """One line that names the transfer."""
        return f"cache of {self.prompt_len:,} tokens, {self.size_bytes / 1e9:.2f} GB in {self.seconds * 1e3:.1f} ms"


def cache_transfer(
    model: ModelConfig, prompt_len: int, link_bandwidth: float, link_efficiency: float = 1.0
) -> CacheTransfer:
    """Return what handing a prefilled prompt to another machine moves, and how long that takes.

    Parameters
    ----------
    model : ModelConfig
        The shape.
    prompt_len : int
        Tokens whose keys and values are sent [tokens].
    link_bandwidth : float
        Rate of the replica's network, one way [bytes/s].
    link_efficiency : float
        Share of the line rate that a transfer reaches, in (0, 1] [ratio].

    Returns
    -------
    CacheTransfer
        Size and time.

    Raises
    ------
    ValueError
        If a length or a rate is not above 0.

    Notes
    -----
    Nothing overlaps: engines that send each layer as it is ready hide a part of it. Used on page B3.

    Examples
    --------
    >>> from lantern_lib import LANTERN_70B
    >>> sent = cache_transfer(LANTERN_70B, 8000, 200e9)
    >>> round(sent.size_bytes / 2**30, 2), round(sent.seconds * 1e3, 1)
    (2.44, 13.1)
    """
    require_int("prompt_len", prompt_len)
    require_positive("link_bandwidth", link_bandwidth, "Give bytes per second in one direction.")
    require_fraction("link_efficiency", link_efficiency)
    size = kv_cache.bytes_per_sequence(model, prompt_len)
    return CacheTransfer(prompt_len, size, size / (link_bandwidth * link_efficiency))
