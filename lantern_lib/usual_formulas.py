"""The formulas that people use, beside what a model really takes: by which factor each is wrong, model by model."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal

from lantern_lib import kv_cache, transformer
from lantern_lib.memory_plan import MemoryPlan, plan_memory
from lantern_lib.memory_report import PoolRow
from lantern_lib.model_config import ModelConfig
from lantern_lib.units import GIB, require_int

Quantity = Literal["cache", "weights", "pool"]

#: GPUs of the group over which a cache is divided by mistake [count].
GROUP = 8
#: Share of the device that must be left, so that a pool is worth comparing [ratio].
LEAST_POOL = 0.1


@dataclass(frozen=True)
class Mistake:
    """A usual formula: its key, its words, the quantity it is meant for, and why it is wrong."""

    key: str
    words: str
    quantity: Quantity
    why: str


MISTAKES: tuple[Mistake, ...] = (
    Mistake("heads", "query heads for key-value heads", "cache", "only key-value heads are cached"),
    Mistake("width", "model width for heads × size", "cache", "keys are as wide as the key-value heads"),
    Mistake("division", "head size = width / heads", "cache", "the head size is declared"),
    Mistake("windows", "windows counted as full", "cache", "a full window grows no more"),
    Mistake("recurrent", "every layer has a cache", "cache", "recurrent layers keep a fixed state"),
    Mistake("ranks", "cache divided by all GPUs", "cache", "a head is not cut, a latent not divided"),
    Mistake("active", "active for stored parameters", "weights", "memory holds every expert"),
    Mistake("bytes", "parameters for bytes", "weights", "a number takes its stored width"),
    Mistake("bits", "bits × parameters", "weights", "scales and tables take more"),
    Mistake("reserve", "no reserve", "pool", "activations and runtime come first"),
    Mistake("decimal", "80 GB read as 80 GiB", "pool", "the card shows 79.2 GiB"),
)


@dataclass(frozen=True)
class Wrong:
    """One mistake made on one model, or on one log: what it says and what is right, in one unit."""

    mistake: Mistake
    name: str
    said: float
    right: float

    @property
    def factor(self) -> float:
        """What is said over what is right; 1 is right by luck [ratio]."""
        return self.said / self.right


def _per_token(model: ModelConfig, numbers: Callable[[int, int], float], context_len: int) -> float:
    """Add up the cache of a conversation with other numbers for the heads and head size of each kind of layer."""
    total = kv_cache.state_bytes_per_sequence(model)
    for layers in model.attention_layers:
        length = min(context_len, layers.window or context_len)
        total += layers.num_layers * length * numbers(layers.num_kv_heads, layers.head_dim) * model.kv_bytes
    return total


def _query_heads(model: ModelConfig, context_len: int) -> float:
    if model.latent is not None:
        expanded = model.num_heads * (model.latent.nope_dim + model.latent.rope_dim + model.latent.value_dim)
        return _per_token(model, lambda heads, size: expanded, context_len)
    return _per_token(model, lambda heads, size: 2 * model.num_heads * size, context_len)


def _width(model: ModelConfig, context_len: int) -> float:
    return _per_token(model, lambda heads, size: 2 * model.hidden_size, context_len)


def _division(model: ModelConfig, context_len: int) -> float | None:
    if model.latent is not None:
        return None
    size = model.hidden_size / model.num_heads
    return _per_token(model, lambda heads, declared: 2 * heads * size, context_len)


def _windows(model: ModelConfig, context_len: int) -> float | None:
    if not model.num_sliding_layers:
        return None
    return kv_cache.bytes_per_token(model) * context_len + kv_cache.state_bytes_per_sequence(model)


def _recurrent(model: ModelConfig, context_len: int) -> float | None:
    if model.recurrent is None:
        return None
    return kv_cache.bytes_per_sequence(replace(model, recurrent=None), context_len)


def _cache(model: ModelConfig, context_len: int) -> dict[str, tuple[float | None, float]]:
    right = kv_cache.bytes_per_sequence(model, context_len)
    return {
        "heads": (_query_heads(model, context_len), right),
        "width": (_width(model, context_len), right),
        "division": (_division(model, context_len), right),
        "windows": (_windows(model, context_len), right),
        "recurrent": (_recurrent(model, context_len), right),
        "ranks": (right / GROUP, kv_cache.bytes_per_sequence_per_gpu(model, context_len, GROUP)),
    }


def _weights(model: ModelConfig) -> dict[str, tuple[float | None, float]]:
    right, count = transformer.weight_bytes(model), transformer.parameters(model)
    bits = model.storage.quantized_bytes * count.total if model.storage else None
    return {
        "active": (right * count.active / count.total if model.experts else None, right),
        "bytes": (float(count.total), right),
        "bits": (bits, right),
    }


def fitting_plan(model: ModelConfig) -> MemoryPlan | None:
    """Return the memory of the smallest group of H100 that leaves a tenth of the card as a pool.

    Parameters
    ----------
    model : ModelConfig
        The shape.

    Returns
    -------
    MemoryPlan or None
        For one, two, four or eight cards; None if eight are too few.

    Examples
    --------
    >>> from lantern_lib.models import find_model
    >>> fitting_plan(find_model("Llama-3-70B")).tp_size
    4
    """
    for size in (1, 2, 4, GROUP):
        plan = plan_memory(model, "H100", size, version="0.11", fraction=0.9)
        if plan.pool.value >= LEAST_POOL * plan.device.size.value:
            return plan
    return None


def without_reserve(plan: MemoryPlan) -> float:
    """Return the pool that is left if nothing but the weights is taken off.

    Parameters
    ----------
    plan : MemoryPlan
        The division as it is.

    Returns
    -------
    float
        Fraction of the device less the weights [bytes].

    Examples
    --------
    >>> from lantern_lib.models import find_model
    >>> plan = fitting_plan(find_model("Llama-3-70B"))
    >>> round((without_reserve(plan) - plan.pool.value) / 2**30, 1)
    5.7
    """
    return plan.rule.fraction * plan.device.size.value - plan.weights.value


def _pool(model: ModelConfig) -> dict[str, tuple[float | None, float]]:
    plan = fitting_plan(model)
    if plan is None:
        return {}
    pool = plan.pool.value
    named = plan.rule.fraction * (80 * GIB - plan.device.size.value)
    return {"reserve": (without_reserve(plan), pool), "decimal": (pool + named, pool)}


def wrong_formulas(model: ModelConfig, context_len: int = 8192) -> tuple[Wrong, ...]:
    """Make every mistake that can be made on a model.

    Parameters
    ----------
    model : ModelConfig
        The shape.
    context_len : int
        Length of a conversation, which decides what a window saves [tokens].

    Returns
    -------
    tuple of Wrong
        In the order of :data:`MISTAKES`; those that the model gives no occasion for are left out [bytes].

    Raises
    ------
    ValueError
        If `context_len` is below 1.

    Notes
    -----
    ``factor = said / right``. The page on the usual formulas has the plot.

    Examples
    --------
    >>> from lantern_lib.model_config import LANTERN_70B
    >>> [(wrong.mistake.key, round(wrong.factor, 2)) for wrong in wrong_formulas(LANTERN_70B)][:2]
    [('heads', 8.0), ('width', 8.0)]
    """
    require_int("context_len", context_len)
    pairs = _cache(model, context_len) | _weights(model) | _pool(model)
    found = []
    for mistake in MISTAKES:
        said, right = pairs.get(mistake.key, (None, 1.0))
        if said is not None:
            found.append(Wrong(mistake, model.name, said, right))
    return tuple(found)


#: Ways to get from a card to a pool, and from a pool to tokens, that can be held against a start-up log.
LOG_MISTAKES: tuple[Mistake, ...] = (
    Mistake("planner", "the plan of this library", "pool", "what is uncertain has an interval"),
    Mistake("reserve", "fraction × card − weights", "pool", "activations and runtime come first"),
    Mistake("rest", "fraction × (card − weights)", "pool", "the fraction is of the whole card"),
    Mistake("all", "card − weights", "pool", "the engine keeps to its fraction"),
    *MISTAKES[:2],
    Mistake("group", "one GPU's pool for the group's", "cache", "each GPU prints its own"),
)


def _pools(plan: MemoryPlan) -> dict[str, float]:
    card, weights = plan.device.size.value, plan.weights.value
    return {
        "planner": plan.pool.value,
        "reserve": without_reserve(plan),
        "rest": plan.rule.fraction * (card - weights),
        "all": card - weights,
    }


def wrong_on_log(row: PoolRow) -> tuple[Wrong, ...]:
    """Make the usual mistakes on a start-up log.

    Parameters
    ----------
    row : PoolRow
        The log: model, card and settings, and what was printed.

    Returns
    -------
    tuple of Wrong
        What each of :data:`LOG_MISTAKES` says beside what was printed: pools of one GPU [bytes], then tokens of the
        group where the log prints some [tokens]. A pool below zero is said as 0. Empty where the log does not name
        model and card, prints no pool, is flagged, or allots by recurrent layers.

    Notes
    -----
    The last mistake needs several GPUs that share the heads.

    Examples
    --------
    >>> row = PoolRow("k", "a log", "A", "Llama-3-70B", "", 2.0, "H100", 4, 1, 1, "vLLM", "0.11", 0.9, None, None, None,
    ...     0, None, None, None, None, None, 420_000, False, "", "")
    >>> [(wrong.mistake.key, round(wrong.factor, 2)) for wrong in wrong_on_log(row)][4:]
    [('heads', 0.12), ('width', 0.12), ('group', 0.25)]
    """
    plan, printed = row.plan, row.reported_bytes
    if plan is None or printed is None or printed <= 0 or row.flag or row.shape.recurrent is not None:
        return ()
    pairs = {key: (max(0.0, pool), printed) for key, pool in _pools(plan).items()}
    if row.tokens is not None:
        model, tokens = row.shape, float(row.tokens)
        each = kv_cache.bytes_per_token(model)
        pairs["heads"] = (tokens * each / _query_heads(model, 1), tokens)
        pairs["width"] = (tokens * each / _width(model, 1), tokens)
        if row.tp_size > 1 and model.latent is None:
            pairs["group"] = (tokens / row.tp_size, tokens)
    return tuple(Wrong(mistake, row.id, *pairs[mistake.key]) for mistake in LOG_MISTAKES if mistake.key in pairs)
