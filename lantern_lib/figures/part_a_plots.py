"""Explorable plots of part A: the roofline of a decode step, and the memory left for the cache."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import altair as alt

from lantern_lib import kv_cache, step, transformer
from lantern_lib.figures.explore import WIDTH, grips, knob, label, readout, ring, rows_chart, selector
from lantern_lib.figures.roles import ARITHMETIC, CONTROL, MEMORY, PLOT_MUTED, PLOT_SURFACE, TOTAL
from lantern_lib.hardware import ACCELERATORS, Replica
from lantern_lib.model_config import ModelConfig
from lantern_lib.units import GB

TP_SIZES = (2, 4, 8)
BATCHES = (1, 2, 3, 4, 6, *range(8, 257, 8))
# Powers of two and the lengths the course names, so that each can be reached exactly.
_POWERS = (2**exponent for exponent in range(8, 18))
CONTEXTS = tuple(sorted({*_POWERS, 384, 768, 1000, 1536, 2000, 3072, 4000, 6144, 8000, 12288, 24576, 49152, 98304}))


def _rail(accelerator: str, tp_size: int) -> tuple[alt.Parameter, alt.Parameter]:
    return (
        selector("accelerator", "Accelerator", list(ACCELERATORS), accelerator),
        selector("tp", "Tensor-parallel size", [str(tp) for tp in TP_SIZES], str(tp_size)),
    )


def _machines() -> list[tuple[str, int, Replica]]:
    return [(name, tp, Replica(card, tp_size=tp)) for name, card in ACCELERATORS.items() for tp in TP_SIZES]


def _roofline_rows(model: ModelConfig, context_len: int) -> list[dict[str, Any]]:
    rows = []
    for name, tp, machine in _machines():
        limit = kv_cache.memory_budget(model, machine).conversations(context_len)
        for stop, batch in enumerate(BATCHES):
            cost = step.decode_step(model, machine, batch, context_len)
            milliseconds = cost.total_seconds * 1e3
            fits = "" if batch <= limit else ", no room"
            rows.append(
                {
                    "accelerator": name,
                    "tp": str(tp),
                    "stop": stop,
                    "batch": batch,
                    "memory": round(cost.memory_seconds * 1e3, 3),
                    "arithmetic": round(cost.compute_seconds * 1e3, 3),
                    "step": round(milliseconds, 3),
                    "rate": round(cost.tokens_per_second, 1),
                    "step_text": f"batch {batch}: {milliseconds:.1f} ms a step{fits}",
                    "rate_text": f"{cost.tokens_per_second:,.0f} tokens/s, {1 / cost.total_seconds:.0f} for each user",
                    "limit": min(limit, BATCHES[-1]),
                    "limit_text": f"memory ends at {limit:,}" if limit <= BATCHES[-1] else "",
                }
            )
    return rows


def roofline(
    model: ModelConfig, *, context_len: int, batch_size: int, accelerator: str = "H100", tp_size: int = 4
) -> alt.VConcatChart:
    """Plot the time of a decode step and the tokens per second over the batch.

    Parameters
    ----------
    model : ModelConfig
        The shape.
    context_len : int
        Cached tokens of each sequence [tokens].
    batch_size : int
        Where the ring stands first, one of :data:`BATCHES` [sequences].
    accelerator : str
        First choice of :data:`lantern_lib.hardware.ACCELERATORS`.
    tp_size : int
        First tensor-parallel size [count].

    Returns
    -------
    altair.VConcatChart
        Two panels with one ring and two selectors.

    Raises
    ------
    ValueError
        If `batch_size` is no stop of the slider.

    Examples
    --------
    >>> from lantern_lib import LANTERN_70B
    >>> len(roofline(LANTERN_70B, context_len=2000, batch_size=64).vconcat)
    2
    """
    rows = _roofline_rows(model, context_len)
    grip = ring("Batch", "batch_size", batch_size, BATCHES)
    card, tp = _rail(accelerator, tp_size)
    base = (
        rows_chart(rows)
        .transform_filter("datum.accelerator == accelerator && datum.tp == tp")
        .encode(
            x=alt.X("batch:Q", title="batch: sequences decoded together", scale=alt.Scale(domain=[0, 256], nice=False))
        )
    )
    here = base.transform_filter(grip)
    wall = here.mark_rule(stroke=CONTROL.light, strokeWidth=2, strokeDash=list(CONTROL.dash)).encode(x="limit:Q")
    wall_text = here.mark_text(align="right", dx=-6, fontSize=12, fontWeight=600, fill=CONTROL.light).encode(
        x="limit:Q", y=alt.value(192), text="limit_text:N"
    )
    lines = [
        base.mark_line(stroke=role.light, strokeDash=list(role.dash) or [1, 0]).encode(
            y=alt.Y(f"{name}:Q", title="milliseconds a step", scale=alt.Scale(zero=True))
        )
        for name, role in (("arithmetic", ARITHMETIC), ("memory", MEMORY), ("step", TOTAL))
    ]
    names = [
        label(base, "arithmetic", "batch", "arithmetic", ARITHMETIC, 152),
        label(base, "memory", "batch", "memory", MEMORY, 152, dy=15, align="left"),
        label(base, "whole step", "batch", "step", TOTAL, 152, dy=-10),
    ]
    top = alt.layer(
        wall,
        wall_text,
        *lines,
        *names,
        knob(here, "step"),
        readout(here, "step", "step_text", 14),
        grips(base, 200, grip),
    ).properties(width=WIDTH, height=200)
    rate = base.mark_line(stroke=TOTAL.light).encode(y=alt.Y("rate:Q", title="tokens per second, all users"))
    bottom = alt.layer(
        rate, knob(here, "rate", first=False), readout(here, "rate", "rate_text", 118, right=True)
    ).properties(width=WIDTH, height=130)
    return (
        alt.vconcat(top, bottom)
        .add_params(card, tp)
        .properties(
            description=(
                f"Two panels over the batch, 1 to {BATCHES[-1]}, at a context of {context_len:,} tokens. Above: the"
                " memory time starts high and rises gently, the arithmetic time starts near zero, and the step follows"
                " memory plus communication. Below: tokens per second climb almost in proportion to the batch."
            ),
            usermeta={"lantern": {"stops": {"ring": [f"{b}" for b in BATCHES]}}},
        )
    )


def _budget_rows(model: ModelConfig) -> list[dict[str, Any]]:
    full_heads = replace(model, num_kv_heads=model.num_heads)
    weights = transformer.weight_bytes(model)
    rows = []
    for name, tp, machine in _machines():
        budget = kv_cache.memory_budget(model, machine)
        # The same weights, so that only the cache differs.
        full = kv_cache.memory_budget(full_heads, machine, stored_weight_bytes=weights)
        for stop, context in enumerate(CONTEXTS):
            fits, fits_full = budget.conversations(context), full.conversations(context)
            rows.append(
                {
                    "accelerator": name,
                    "tp": str(tp),
                    "stop": stop,
                    "context": context,
                    "weights": round(min(weights, budget.total_bytes) / GB, 1),
                    "reserve": round(budget.reserve_bytes / GB, 1),
                    "pool": round(budget.pool_bytes / GB, 1),
                    "each": round(kv_cache.bytes_per_sequence(model, context) / GB, 4),
                    "each_full": round(kv_cache.bytes_per_sequence(full_heads, context) / GB, 4),
                    "fits": fits,
                    "fits_full": fits_full,
                    "shown": fits or None,  # zero has no place on a logarithmic axis
                    "shown_full": fits_full or None,
                    "text": f"{fits:,} conversations of {context:,} tokens",
                    "text_full": f"{fits_full:,} with a pair for every head",
                }
            )
    return rows


def _memory_bars(here: alt.Chart) -> alt.LayerChart:
    """Draw the replica's memory twice: with the model's cache, and with one pair for every query head."""
    layouts = (
        here.transform_fold(["fits", "fits_full"], as_=["layout", "count"])
        .transform_calculate(
            layout="datum.layout == 'fits' ? 'shared keys' : 'every head'",
            size="datum.layout == 'shared keys' ? datum.each : datum.each_full",
            start="datum.weights + datum.reserve",
            whole="datum.weights + datum.reserve + datum.pool",
        )
        .transform_calculate(
            used="datum.start + datum.count * datum.size",
        )
    )
    y = alt.Y(
        "layout:N",
        title=None,
        sort=["shared keys", "every head"],
        axis=alt.Axis(domain=False, ticks=False, minExtent=82),
    )
    x = alt.X("whole:Q", title="GB of the replica", axis=alt.Axis(tickCount=6), scale=alt.Scale(zero=True, nice=False))
    whole = layouts.mark_bar(height=26, fill="transparent", stroke=PLOT_MUTED, strokeWidth=1.2).encode(
        y=y, x=x, x2=alt.datum(0)
    )
    weights = layouts.mark_bar(height=26, fill=MEMORY.light).encode(y=y, x=alt.X("weights:Q"), x2=alt.datum(0))
    reserve = layouts.mark_bar(height=26, fill=PLOT_MUTED, fillOpacity=0.35).encode(y=y, x="weights:Q", x2="start:Q")
    cache = layouts.mark_bar(height=26, fill=TOTAL.light, fillOpacity=0.85).encode(y=y, x="start:Q", x2="used:Q")
    # One cut after each conversation while they are wide enough to see.
    cuts = (
        layouts.transform_calculate(k="sequence(1, min(datum.count, 90))")
        .transform_flatten(["k"])
        .transform_calculate(at="datum.start + datum.k * datum.size")
        .mark_tick(thickness=1, height=26, color=PLOT_SURFACE, orient="vertical")
        .encode(y=y, x="at:Q")
    )
    words = layouts.transform_filter("datum.layout == 'shared keys'").mark_text(
        align="left", dx=6, dy=-23, fontSize=12, fontWeight=600
    )
    names = [
        words.encode(y=y, x=alt.datum(0), text=alt.value("weights"), color=alt.value(MEMORY.light)),
        words.encode(y=y, x="start:Q", text=alt.value("cache"), color=alt.value(TOTAL.light)),
    ]
    return alt.layer(whole, weights, reserve, cache, cuts, *names)


def kv_budget(model: ModelConfig, *, context_len: int, accelerator: str = "H100", tp_size: int = 4) -> alt.VConcatChart:
    """Plot a replica's memory and the conversations that fit over the context.

    Parameters
    ----------
    model : ModelConfig
        The shape.
    context_len : int
        Where the ring stands first, one of :data:`CONTEXTS` [tokens].
    accelerator : str
        First choice of :data:`lantern_lib.hardware.ACCELERATORS`.
    tp_size : int
        First tensor-parallel size [count].

    Returns
    -------
    altair.VConcatChart
        A bar panel and a curve panel with one ring and two selectors.

    Raises
    ------
    ValueError
        If `context_len` is no stop of the slider.

    Examples
    --------
    >>> from lantern_lib import LANTERN_70B
    >>> len(kv_budget(LANTERN_70B, context_len=8192).vconcat)
    2
    """
    rows = _budget_rows(model)
    grip = ring("Context", "context_len", context_len, CONTEXTS)
    card, tp = _rail(accelerator, tp_size)
    machine = rows_chart(rows).transform_filter("datum.accelerator == accelerator && datum.tp == tp")
    ticks = alt.Axis(values=[256, 1024, 4096, 16384, 65536], format=",d")
    base = machine.encode(
        x=alt.X(
            "context:Q",
            title="context of each conversation, tokens",
            axis=ticks,
            scale=alt.Scale(type="log", nice=False),
        )
    )
    here = base.transform_filter(grip)
    y = alt.Y(
        "shown:Q",
        title="conversations that fit",
        scale=alt.Scale(type="log", domain=[1, 6000]),
        axis=alt.Axis(values=[1, 10, 100, 1000], format=",d"),
    )
    curve = base.mark_line(stroke=TOTAL.light).encode(y=y)
    names = [
        label(base, "shared keys", "context", "shown", TOTAL, 768, align="left", dx=6, dy=-6),
        label(base, "every head", "context", "shown_full", MEMORY, 8192, dx=-8, dy=8),
    ]
    bottom = alt.layer(
        base.mark_line(stroke=MEMORY.light, strokeWidth=1.5, strokeDash=[4, 4]).encode(y="shown_full:Q"),
        curve,
        *names,
        knob(here, "shown"),
        readout(here, "fits", "text", 14, right=True),
        readout(here, "full", "text_full", 34, right=True),
        grips(base, 220, grip),
    ).properties(width=WIDTH, height=220)
    bars = _memory_bars(machine.transform_filter(grip)).properties(width=WIDTH, height=92)
    return (
        alt.vconcat(bars, bottom)
        .add_params(card, tp)
        .properties(
            description=(
                "Above: two bars of the replica's memory, each divided into weights, reserve, cache of whole"
                " conversations and a rest; the bar with a key and value for every query head holds far fewer"
                f" conversations. Below: conversations that fit over the context, {CONTEXTS[0]:,} to {CONTEXTS[-1]:,}"
                " tokens, on logarithmic axes: a straight fall, twice the context, half the conversations."
            ),
            usermeta={"lantern": {"stops": {"ring": [f"{c:,}" for c in CONTEXTS]}}},
        )
    )
