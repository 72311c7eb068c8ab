"""Ways to spread a model over accelerators: split matrices, stages, and copies."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lantern_lib import kv_cache, step
from lantern_lib.collectives import send_seconds
from lantern_lib.hardware import Accelerator, Link, Replica
from lantern_lib.model_config import ModelConfig
from lantern_lib.units import require_int


def _require_degree(model: ModelConfig, tp_size: int) -> None:
    require_int("tp_size", tp_size)
    if model.num_heads % tp_size:
        raise ValueError(
            f"tp_size must divide num_heads ({model.num_heads}), got {tp_size}."
            " Each GPU takes the same number of query heads."
        )


def kv_bytes_per_gpu(model: ModelConfig, context_len: int, tp_size: int) -> float:
    """Return the cache of one conversation on the fullest GPU of a replica.

    Parameters
    ----------
    model : ModelConfig
        The shape.
    context_len : int
        Tokens in the cache [tokens].
    tp_size : int
        GPUs that share every matrix; it divides the query heads [count].

    Returns
    -------
    float
        Cache on one GPU [bytes].

    Raises
    ------
    ValueError
        If `tp_size` does not divide the query heads, or a number is no whole one in its range.

    Notes
    -----
    A key-value head is not cut: a GPU holds ``ceil(num_kv_heads / tp_size)`` of them. Up to `num_kv_heads` GPUs
    that divides the cache by their number; with more GPUs heads are copied and nothing is saved. Page B6.

    Examples
    --------
    >>> from lantern_lib.model_config import LANTERN_70B
    >>> [kv_bytes_per_gpu(LANTERN_70B, 8192, tp) / 2**30 for tp in (4, 8, 16)]
    [0.625, 0.3125, 0.3125]
    """
    _require_degree(model, tp_size)
    return kv_cache.bytes_per_sequence_per_gpu(model, context_len, tp_size)


def conversations_that_fit(model: ModelConfig, replica: Replica, context_len: int, *, reserve: float = 0.1) -> int:
    """Return how many whole conversations a replica holds, copied heads included.

    Parameters
    ----------
    model : ModelConfig
        The shape.
    replica : Replica
        The machine.
    context_len : int
        Length of each conversation [tokens].
    reserve : float
        Share of all memory that is kept free, in [0, 1) [ratio].

    Returns
    -------
    int
        Whole conversations, 0 when the model does not fit [count].

    Raises
    ------
    ValueError
        If `context_len` is below 1, `reserve` outside [0, 1), or the degree does not divide the query heads.

    Notes
    -----
    The pool of one GPU over the cache on one GPU. Equal to :func:`lantern_lib.kv_cache.MemoryBudget.conversations`
    while there is a key-value head for each GPU. Page B6.

    Examples
    --------
    >>> from lantern_lib.hardware import H100
    >>> from lantern_lib.model_config import LANTERN_70B
    >>> [conversations_that_fit(LANTERN_70B, Replica(H100, tp_size=tp), 2000) for tp in (2, 4, 8, 16)]
    [4, 224, 663, 771]
    """
    require_int("context_len", context_len, hint="An empty conversation needs no memory.")
    pool = kv_cache.memory_budget(model, replica, reserve=reserve).pool_bytes
    return int(pool // (replica.tp_size * kv_bytes_per_gpu(model, context_len, replica.tp_size)))


@dataclass(frozen=True)
class Layout:
    """What a number of equal replicas gives.

    ``replica`` is one of them and ``num_replicas`` how many there are [count]; ``conversations`` fit on one
    [count]; ``batch_size`` is decoded on each [sequences]; ``alone`` is its step at batch 1 and ``batch`` the
    step at ``batch_size``.
    """

    replica: Replica
    num_replicas: int
    conversations: int
    batch_size: int
    alone: step.StepCost
    batch: step.StepCost

    @property
    def tokens_per_second(self) -> float:
        """Tokens of all replicas together [tokens/s]."""
        return self.num_replicas * self.batch.tokens_per_second

    @property
    def tokens_per_second_per_gpu(self) -> float:
        """Tokens of one replica over its GPUs [tokens/s]."""
        return self.batch.tokens_per_second / self.replica.tp_size

    @property
    def summary(self) -> str:
        """One line that names the layout."""
        return f"{self.num_replicas} × ({self.replica.summary}), batch {self.batch_size} each"


def layout(
    model: ModelConfig, replica: Replica, context_len: int, *, max_batch: int = 64, num_replicas: int = 1
) -> Layout:
    """Return what equal replicas give at the largest batch that fits, up to a limit.

    Parameters
    ----------
    model : ModelConfig
        The shape.
    replica : Replica
        One replica.
    context_len : int
        Cached tokens of each sequence [tokens].
    max_batch : int
        Largest batch of one replica [sequences].
    num_replicas : int
        Copies of the model [count].

    Returns
    -------
    Layout
        Steps, conversations and throughput.

    Raises
    ------
    ValueError
        If no conversation fits, or a number is no whole one of 1 or more.

    Notes
    -----
    Replicas share nothing, so they multiply. Page B6.

    Examples
    --------
    >>> from lantern_lib.hardware import H100
    >>> from lantern_lib.model_config import LANTERN_70B
    >>> four = layout(LANTERN_70B, Replica(H100, tp_size=4), 2000)
    >>> four.conversations, round(four.tokens_per_second_per_gpu)
    (224, 855)
    """
    require_int("max_batch", max_batch)
    require_int("num_replicas", num_replicas)
    fits = conversations_that_fit(model, replica, context_len)
    if not fits:
        raise ValueError(
            f"tp_size must be large enough for the weights and one conversation of {context_len:,} tokens,"
            f" got {replica.tp_size}. Add GPUs, or store the weights in fewer bytes."
        )
    size = min(max_batch, fits)
    alone = step.decode_step(model, replica, 1, context_len)
    return Layout(replica, num_replicas, fits, size, alone, step.decode_step(model, replica, size, context_len))


def smallest_degree(
    model: ModelConfig,
    accelerator: Accelerator,
    context_len: int,
    *,
    min_conversations: int = 1,
    degrees: Sequence[int] = (1, 2, 4, 8),
) -> int:
    """Return the smallest tensor-parallel size that holds the weights and enough conversations.

    Parameters
    ----------
    model : ModelConfig
        The shape.
    accelerator : Accelerator
        The kind of GPU.
    context_len : int
        Length of each conversation [tokens].
    min_conversations : int
        Conversations that have to fit [count].
    degrees : sequence of int
        Sizes to choose from [count].

    Returns
    -------
    int
        The smallest of `degrees` that is enough [count].

    Raises
    ------
    ValueError
        If none is enough, or a number is no whole one of 1 or more.

    Examples
    --------
    >>> from lantern_lib.hardware import H100
    >>> from lantern_lib.model_config import LANTERN_70B
    >>> smallest_degree(LANTERN_70B, H100, 2000), smallest_degree(LANTERN_70B, H100, 2000, min_conversations=64)
    (2, 4)
    """
    require_int("min_conversations", min_conversations)
    for degree in sorted(degrees):
        if conversations_that_fit(model, Replica(accelerator, tp_size=degree), context_len) >= min_conversations:
            return degree
    raise ValueError(
        f"min_conversations must fit on one of {', '.join(map(str, degrees))} GPUs at {context_len:,} tokens,"
        f" got {min_conversations}. Use replicas, or shorten the context."
    )


def pipeline_bubble(num_stages: int, num_micro_batches: int) -> float:
    """Return the share of a pipeline's time in which a stage stands idle.

    Parameters
    ----------
    num_stages : int
        Groups of layers, each on its own GPUs [count].
    num_micro_batches : int
        Parts of the batch that follow each other [count].

    Returns
    -------
    float
        Idle share of each stage, 0 for one stage [ratio].

    Raises
    ------
    ValueError
        If a number is no whole one of 1 or more.

    Notes
    -----
    ``(p − 1) / (m + p − 1)``: m parts through p equal stages take m + p − 1 turns and each stage works in m. The
    pipeline is filled and emptied once; an engine that keeps it filled loses less. Page B6.

    Examples
    --------
    >>> pipeline_bubble(4, 1), round(pipeline_bubble(4, 12), 2)
    (0.75, 0.2)
    """
    require_int("num_stages", num_stages)
    require_int("num_micro_batches", num_micro_batches)
    return (num_stages - 1) / (num_micro_batches + num_stages - 1)


def boundary_seconds(model: ModelConfig, num_tokens: int, link: Link) -> float:
    """Return the time to hand the vectors of a step from one pipeline stage to the next.

    Parameters
    ----------
    model : ModelConfig
        The shape.
    num_tokens : int
        Tokens of the step [tokens].
    link : Link
        The connection between the stages.

    Returns
    -------
    float
        Time of one boundary [seconds].

    Raises
    ------
    ValueError
        If `num_tokens` is no whole number of 1 or more.

    Notes
    -----
    One vector of `hidden_size` 16-bit numbers a token, once a step; tensor parallelism adds such a vector up
    twice in every layer. Page B6.

    Examples
    --------
    >>> from lantern_lib.hardware import NVLINK_4
    >>> from lantern_lib.model_config import LANTERN_70B
    >>> round(boundary_seconds(LANTERN_70B, 64, NVLINK_4) * 1e6, 2)
    10.33
    """
    require_int("num_tokens", num_tokens)
    return send_seconds(num_tokens * model.hidden_size * 2, link)
