"""What vLLM means by its tokens where layers cache differently: blocks shared out to groups of layers.

All kinds of layers draw pages of one size from one pool. Layers of a kind form groups of equal size; a request takes,
for each group, the blocks that its kind needs. The printed concurrency is blocks over those of the longest request, and
the printed tokens are concurrency times length: no places for tokens.
"""

from __future__ import annotations

from dataclasses import dataclass

from lantern_lib.kv_cache import numbers_per_token_per_gpu
from lantern_lib.model_config import ModelConfig
from lantern_lib.units import require_int, require_positive

#: A kind with a quarter more layers than the smallest does not deserve groups of its own size.
_SAME_SIZE = 1.25


@dataclass(frozen=True)
class GroupedPool:
    """A pool in blocks, and what the longest request takes of it.

    ``block_size`` is in tokens of an attention layer, ``page_bytes`` one layer's block [bytes], ``group_size`` layers
    of a group, ``groups`` how many there are of each kind, ``num_blocks`` blocks of the pool and ``request_blocks``
    those of one request of ``max_model_len`` tokens [count].
    """

    block_size: int
    page_bytes: float
    group_size: int
    groups: tuple[tuple[str, int], ...]
    num_blocks: int
    request_blocks: int
    max_model_len: int

    @property
    def concurrency(self) -> float:
        """Longest requests that fit [count]."""
        return self.num_blocks / self.request_blocks

    @property
    def tokens(self) -> int:
        """Tokens as the engine prints them: concurrency times length [tokens]."""
        return self.num_blocks * self.max_model_len // self.request_blocks


def _page(model: ModelConfig, tp_size: int, num_drafts: int, unit: int) -> tuple[int, float]:
    """Return tokens and bytes of a block: large enough that a recurrent state fits into one page."""
    per_token = max(
        numbers_per_token_per_gpu(model, layers, tp_size) * model.kv_bytes for layers in model.attention_layers
    )
    if model.recurrent is None:
        return unit, unit * per_token
    state = (model.recurrent.state_bytes + num_drafts * model.recurrent.draft_state_bytes) / tp_size
    block = unit * int(-(-state // (unit * per_token)))
    return block, block * per_token


def _kinds(model: ModelConfig, num_drafts: int) -> dict[str, int]:
    drafting = model.mtp_layers if num_drafts else 0
    kinds = {"full": drafting, "window": 0}
    for layers in model.attention_layers:
        kinds["full" if layers.window is None else "window"] += layers.num_layers
    kinds["state"] = model.recurrent.num_layers if model.recurrent else 0
    return {kind: count for kind, count in kinds.items() if count}


def grouped_pool(
    model: ModelConfig,
    pool_bytes: float,
    max_model_len: int,
    *,
    tp_size: int = 1,
    num_drafts: int = 0,
    kept_states: int = 1,
    max_num_tokens: int = 8192,
    block_size: int = 16,
) -> GroupedPool:
    """Share a pool out to groups of layers.

    Parameters
    ----------
    model : ModelConfig
        The shape, with the bytes of a cached number.
    pool_bytes : float
        Pool of one GPU [bytes].
    max_model_len : int
        Longest request [tokens].
    tp_size : int
        GPUs that share every matrix [count].
    num_drafts : int
        Drafted tokens a step, each with a state of its own; the layers that draft are counted too [tokens].
    kept_states : int
        States of a request beside those: 1, or 2 where prefixes are cached at the ends of blocks [count].
    max_num_tokens : int
        Tokens of one step: a window holds them beside what it looks back on [tokens].
    block_size : int
        Unit of blocks [tokens].

    Returns
    -------
    GroupedPool
        Blocks, groups, concurrency, and the tokens that the engine prints.

    Raises
    ------
    ValueError
        If a number is out of range, or windowed layers have other sizes of heads than the others.

    Examples
    --------
    >>> from dataclasses import replace
    >>> from lantern_lib.models import find_model
    >>> model = replace(find_model("Qwen3.6-35B-A3B"), kv_bytes=1)
    >>> pool = grouped_pool(model, 5.98 * 2**30, 131_072, kept_states=2)
    >>> pool.block_size, pool.num_blocks, round(pool.concurrency, 2), pool.tokens
    (2096, 299, 4.33, 567978)
    """
    require_positive("pool_bytes", pool_bytes)
    for name, size in (("tp_size", tp_size), ("kept_states", kept_states), ("block_size", block_size)):
        require_int(name, size)
    require_int("num_drafts", num_drafts, minimum=0)
    length = require_int("max_model_len", max_model_len)
    if model.full_attention is not None and model.num_sliding_layers:
        raise ValueError(
            "full_attention must be None for groups of one page size, got other heads in windowed layers. Count the"
            " cache by bytes instead."
        )
    block, page = _page(model, tp_size, num_drafts, block_size)
    kinds = _kinds(model, num_drafts)
    smallest, largest = min(kinds.values()), max(kinds.values())
    size = largest if largest < _SAME_SIZE * smallest else smallest
    window = -(-((model.sliding_window or 1) - 1 + max_num_tokens) // block) + 1
    whole = -(-length // block)
    needed = {"full": whole, "window": min(whole, window), "state": kept_states + num_drafts}
    groups = tuple((kind, -(-count // size)) for kind, count in kinds.items())
    return GroupedPool(
        block_size=block,
        page_bytes=page,
        group_size=size,
        groups=groups,
        num_blocks=int(pool_bytes // (size * page)),
        request_blocks=sum(count * needed[kind] for kind, count in groups),
        max_model_len=length,
    )
