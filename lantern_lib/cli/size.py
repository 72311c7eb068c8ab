"""``lantern size``: where the memory of each GPU goes, how many conversations fit, and how long a step takes."""

from __future__ import annotations

from dataclasses import dataclass

from lantern_lib import kv_cache, parallelism
from lantern_lib.cli.inputs import Card
from lantern_lib.cli.report import Report, Row, Table, Value, quantity
from lantern_lib.devices import Range
from lantern_lib.memory_plan import MemoryPlan
from lantern_lib.model_config import ModelConfig
from lantern_lib.step import decode_step
from lantern_lib.transformer import parameters
from lantern_lib.units import GIB, format_quantity


@dataclass(frozen=True)
class Sizing:
    """What is to be sized: a plan, its card, the length of a conversation [tokens], GPUs that share experts [count]."""

    plan: MemoryPlan
    card: Card
    context_len: int
    ep_size: int = 1

    @property
    def num_groups(self) -> int:
        """Groups of GPUs that hold the matrices once each [count]."""
        return max(1, self.ep_size // self.plan.tp_size)


def size(asked: Sizing, inputs: dict[str, Value] | None = None) -> Report:
    """Return where memory goes, and what fits.

    Parameters
    ----------
    asked : Sizing
        Plan, card and context.
    inputs : dict, optional
        What was typed, for programs that read the report.

    Returns
    -------
    Report
        Tables for the model, one GPU's memory, the cache and a step; it fits if one conversation does.

    Raises
    ------
    ValueError
        If the degree does not divide the heads.

    Examples
    --------
    >>> from lantern_lib.cli.inputs import find_card
    >>> from lantern_lib.memory_plan import plan_memory
    >>> from lantern_lib.models import find_model
    >>> plan = plan_memory(find_model("Llama-3.1-8B"), "H100", version="0.11", fraction=0.9)
    >>> size(Sizing(plan, find_card("H100"), 8192)).fits
    True
    """
    plan, model, context = asked.plan, asked.plan.model, asked.context_len
    each = parallelism.kv_bytes_per_gpu(model, context, plan.tp_size)
    fitting = plan.conversations(context)
    tables = [_model(model), _memory(plan), _cache(plan, context, each, fitting)]
    notes = [] if fitting else [_nothing_fits(plan, context)]
    if asked.card.accelerator is None:
        notes.append(f"The speed of {plan.device.name} is not known, so no step is timed.")
    elif asked.num_groups > 1:
        notes.append(f"Memory and conversations are those of one of {asked.num_groups} groups; no step is timed.")
    elif fitting:
        tables.append(_step(asked, fitting))
        notes.append("Step times are floors at half of peak arithmetic and 0.8 of peak bandwidth; engines take longer.")
    if not plan.rule.version[:1].isdigit():
        notes.append("Without --engine-version the intervals cover all versions.")
    count = plan.tp_size * asked.num_groups
    gpus = "GPU" if count == 1 else "GPUs"
    title = f"{model.name} on {count} {gpus} ({plan.device.name}), {plan.rule.name}"
    return Report("size", title, tuple(tables), tuple(notes), fitting > 0, inputs or {})


def _nothing_fits(plan: MemoryPlan, context_len: int) -> str:
    what = f"a conversation of {context_len:,} tokens" if plan.fits else "the model"
    return f"It does not fit: no room for {what}. Add GPUs, store weights or cache in fewer bytes, or raise --fraction."


def _model(model: ModelConfig) -> Table:
    count = parameters(model)
    rows = [quantity("parameters", "parameters", count.total, working=model.summary)]
    if count.active != count.total:
        rows.append(quantity("active_parameters", "active for a token", count.active, working="memory holds all"))
    if model.storage is not None:
        stored = f"{model.storage.name}, {model.storage.quantized_bytes:g} bytes and scales; the rest as before"
        rows.append(Row("storage", "stored as", model.storage.name, model.storage.name, stored))
    return Table("Model", tuple(rows))


def _memory(plan: MemoryPlan) -> Table:
    rule, device = plan.rule, plan.device
    workings = {
        "weights": "matrices, tables and scales" + (f", over {plan.tp_size}" if plan.tp_size > 1 else ""),
        "rotary table": "a row for each position of the config",
        "activation peak": f"a step of {plan.num_tokens:,} tokens or {plan.num_seqs:,} sequences",
        "runtime": f"outside the allocator, {rule.name} {rule.version}",
        "recorded graphs": "taken off before the pool is sized",
    }
    rules = {
        "total": "fraction × total − all parts",
        "free": "fraction × (total − all parts)",
        "static": "fraction × (total − runtime) − weights; activations live outside",
    }
    keys = {name: name.replace(" ", "_") + "_bytes" for name in plan.parts}
    rows = [quantity("device_bytes", "the card shows", device.size, "GiB", 2, f"{device.size.value / 1e9:.1f} GB")]
    rows.append(
        Row("fraction", "fraction", rule.fraction, f"{rule.fraction:g}", f"of {rule.fraction_of} memory", *_set(plan))
    )
    rows += [quantity(keys[name], f"− {name}", part, "GiB", 2, workings[name]) for name, part in plan.parts.items()]
    rows.append(quantity("pool_bytes", "= pool of a GPU", plan.pool, "GiB", 2, rules[rule.fraction_of]))
    return Table("Memory of one GPU", tuple(rows))


def _set(plan: MemoryPlan) -> tuple[float, float]:
    low, high = plan.rule.fraction_usual
    return min(low, plan.rule.fraction), max(high, plan.rule.fraction)


def _token_working(model: ModelConfig) -> str:
    """Write out the cache of a token, kind of layer by kind of layer."""
    terms = []
    for layers in model.attention_layers:
        if model.latent is not None:
            numbers = f"{model.latent.cached_numbers}"
        else:
            numbers = f"2 × {layers.num_kv_heads} × {layers.head_dim}"
        window = f" (window {layers.window:,})" if layers.window else ""
        terms.append(f"{layers.num_layers} layers × {numbers}{window}")
    return f"({' + '.join(terms)}) × {model.kv_bytes:g} bytes"


def _cache(plan: MemoryPlan, context_len: int, each: float, fitting: int) -> Table:
    model = plan.model
    tokens = plan.tokens_range
    windows = "windows and states by layer" if model.num_sliding_layers or model.recurrent else "tokens × bytes"
    pool = format_quantity(plan.pool.value, "GiB", 2)
    return Table(
        f"Cache at a context of {context_len:,} tokens",
        (
            quantity(
                "kv_bytes_per_token", "one token", kv_cache.bytes_per_token(model), "bytes", 0, _token_working(model)
            ),
            quantity(
                "kv_bytes_per_token_per_gpu",
                "… on one GPU",
                plan.bytes_per_token,
                "bytes",
                0,
                f"over {plan.tp_size}; a head is not cut, a latent not divided",
            ),
            quantity(
                "tokens",
                "tokens in the pool",
                Range(plan.tokens, min(plan.tokens, tokens[0]), max(plan.tokens, tokens[1])),
                "tokens",
                0,
                f"whole blocks of {plan.rule.block_size}, if every layer keeps all",
            ),
            quantity("conversation_bytes", "one conversation, a GPU", each, "GiB", 3, windows),
            quantity("conversations", "conversations", fitting, "", 0, f"{pool} / {each / GIB:.3f} GiB, whole"),
        ),
    )


def _step(asked: Sizing, batch_size: int) -> Table:
    plan = asked.plan
    replica = asked.card.replica(plan.tp_size)
    rows = []
    for key, batch in (("alone", 1), ("full", batch_size)):
        cost = decode_step(plan.model, replica, batch, asked.context_len)
        parts = f"arithmetic {cost.compute_seconds * 1e3:.2f}, memory {cost.memory_seconds * 1e3:.2f}"
        working = f"{parts}, communication {cost.communication_seconds * 1e3:.2f} ms"
        rows.append(quantity(f"step_seconds_{key}", f"batch {batch:,}", cost.total_seconds, "ms", 2, working))
        rows.append(quantity(f"tokens_per_second_{key}", "… tokens", cost.tokens_per_second, "tokens/s", 0))
    return Table("A decode step", tuple(rows))
