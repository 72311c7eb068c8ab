"""Explorable plots of page B6: the number of GPUs of a replica, and the experts that a batch touches."""

from __future__ import annotations

from typing import Any

import altair as alt

from lantern_lib import mixture_of_experts as experts
from lantern_lib import parallelism, step
from lantern_lib.figures.explore import WIDTH, grips, knob, label, readout, ring, rows_chart, selector
from lantern_lib.figures.roles import ARITHMETIC, MEMORY, TOTAL, USER, Role
from lantern_lib.hardware import ACCELERATORS, Replica
from lantern_lib.mixture_of_experts import ExpertConfig
from lantern_lib.model_config import ModelConfig

TP_SIZES = (2, 4, 8)
CONTEXTS = (2000, 8192, 32_768)
EXPERT_BATCHES = (1, 2, 4, 8, 12, 16, 24, 32, 48, 64, 96, 128, 160, 192, 224, 256)


def _degree_rows(model: ModelConfig, max_batch: int) -> list[dict[str, Any]]:
    rows = []
    for name, card in ACCELERATORS.items():
        for context in CONTEXTS:
            for stop, tp in enumerate(TP_SIZES):
                machine = Replica(card, tp_size=tp)
                alone = step.decode_step(model, machine, 1, context)
                fits = parallelism.conversations_that_fit(model, machine, context)
                there = parallelism.layout(model, machine, context, max_batch=max_batch) if fits else None
                rate = there.tokens_per_second_per_gpu if there else 0.0
                memory, total = alone.memory_seconds * 1e3, alone.total_seconds * 1e3
                sent = alone.communication_seconds * 1e3
                rows.append(
                    {
                        "accelerator": name,
                        "context": f"{context:,}",
                        "stop": stop,
                        "gpus": tp,
                        "memory": round(memory, 3),
                        "total": round(total, 3),
                        "rate": round(rate, 1),
                        "fits": fits,
                        "step_text": f"{tp} GPUs: {total:.1f} ms, {sent:.1f} of it sums",
                        "rate_text": f"{rate:,.0f} tokens/s each, batch {there.batch_size if there else 0}",
                        "fits_text": f"{fits:,} conversations fit",
                    }
                )
    return rows


def _roof(base: alt.Chart, field: str) -> alt.Chart:
    """Draw nothing above the bars, so that the line of text has room there."""
    mark: alt.Chart = base.mark_point(opacity=0, size=1)
    return mark.encode(y=alt.Y(f"roof_{field}:Q"))


def _bars(base: alt.Chart, grip: alt.Parameter, field: str, title: str, role: Role) -> alt.LayerChart:
    here = base.transform_filter(grip)
    bars = base.mark_bar(size=54, fill=role.light, fillOpacity=0.85).encode(y=alt.Y(f"{field}:Q", title=title))
    layers = (_roof(base, field), bars, knob(here, field, first=False), readout(here, field, f"{field}_text", 14))
    return alt.layer(*layers).properties(width=WIDTH, height=120)


def tensor_degree(
    model: ModelConfig, *, tp_size: int = 4, context_len: int = 2000, max_batch: int = 64, accelerator: str = "H100"
) -> alt.VConcatChart:
    """Plot the step at batch 1, the throughput of a GPU and the conversations over the number of GPUs.

    Parameters
    ----------
    model : ModelConfig
        The shape.
    tp_size : int
        Where the ring stands first, one of :data:`TP_SIZES` [count].
    context_len : int
        First choice of :data:`CONTEXTS` [tokens].
    max_batch : int
        Largest batch of a replica [sequences].
    accelerator : str
        First choice of :data:`lantern_lib.hardware.ACCELERATORS`.

    Returns
    -------
    altair.VConcatChart
        Three panels with one ring and two selectors.

    Raises
    ------
    ValueError
        If `tp_size` or `context_len` is no stop.

    Examples
    --------
    >>> from lantern_lib import LANTERN_70B
    >>> len(tensor_degree(LANTERN_70B).vconcat)
    3
    """
    if context_len not in CONTEXTS:
        raise ValueError(f"context_len must be one of {CONTEXTS}, got {context_len!r}.")
    grip = ring("GPUs", "tp_size", tp_size, TP_SIZES)
    card = selector("accelerator", "Accelerator", list(ACCELERATORS), accelerator)
    context = selector("context", "Context", [f"{c:,}" for c in CONTEXTS], f"{context_len:,}")
    axis = alt.Axis(values=list(TP_SIZES), format="d")
    x = alt.X(
        "gpus:Q",
        title="GPUs that share one replica",
        axis=axis,
        scale=alt.Scale(type="log", base=2, domain=[1.5, 10.6], nice=False),
    )
    base = (
        rows_chart(_degree_rows(model, max_batch))
        .transform_filter("datum.accelerator == accelerator && datum.context == context")
        .transform_joinaggregate(roof_total="max(total)", roof_rate="max(rate)", roof_fits="max(fits)")
        .transform_calculate(
            # Room above the bars for the line of text.
            roof_total="1.3 * datum.roof_total",
            roof_rate="1.4 * datum.roof_rate",
            roof_fits="1.4 * datum.roof_fits",
        )
        .encode(x=x)
    )
    here = base.transform_filter(grip)
    y = alt.Y("total:Q", title="ms a step, batch 1", scale=alt.Scale(zero=True))
    top = alt.layer(
        _roof(base, "total"),
        base.mark_bar(size=54, fill=MEMORY.light).encode(y=alt.Y("memory:Q"), y2=alt.datum(0)),
        base.mark_bar(size=54, fill=ARITHMETIC.light).encode(y=y, y2="memory:Q"),
        label(base, "memory", "gpus", "memory", MEMORY, 2, align="left", dx=32, dy=24),
        label(base, "all-reduces", "gpus", "total", ARITHMETIC, 2, align="left", dx=32, dy=4),
        knob(here, "total"),
        readout(here, "step", "step_text", 14),
        grips(base, 190, grip),
    ).properties(width=WIDTH, height=190)
    panels = [
        top,
        _bars(base, grip, "rate", "tokens/s for each GPU", TOTAL),
        _bars(base, grip, "fits", "conversations", USER),
    ]
    return (
        alt.vconcat(*panels)
        .add_params(card, context)
        .properties(
            description=(
                "Three panels over the number of GPUs of a replica: 2, 4 and 8. Above, the step at batch 1 as bars of"
                " memory, which halve each time, with a thin piece of all-reduces that stays the same. In the middle,"
                f" tokens per second of each GPU at the largest batch up to {max_batch}: low at 2, highest at 4, a"
                " little lower at 8. Below, the conversations that fit: almost none at 2, then many more."
            ),
            usermeta={"lantern": {"stops": {"ring": [f"{tp}" for tp in TP_SIZES]}}},
        )
    )


def _expert_rows(model: ExpertConfig) -> list[dict[str, Any]]:
    rows = []
    for stop, batch in enumerate(EXPERT_BATCHES):
        touched = experts.expected_experts(model.num_experts, model.experts_per_token, batch)
        read = experts.streamed_weight_bytes(model, batch) / 1e9
        rows.append(
            {
                "stop": stop,
                "batch": batch,
                "touched": round(touched, 2),
                "read": round(read / batch, 3),
                "touched_text": f"batch {batch}: {touched:.0f} of {model.num_experts} experts",
                "read_text": f"{read:,.0f} GB a step, {read / batch:.1f} GB a token",
            }
        )
    return rows


def experts_touched(model: ExpertConfig, *, batch_size: int = 64) -> alt.VConcatChart:
    """Plot the experts of a layer that a batch touches, and the weights read for each token.

    Parameters
    ----------
    model : ExpertConfig
        The model.
    batch_size : int
        Where the ring stands first, one of :data:`EXPERT_BATCHES` [sequences].

    Returns
    -------
    altair.VConcatChart
        Two panels with one ring.

    Raises
    ------
    ValueError
        If `batch_size` is no stop of the slider.

    Examples
    --------
    >>> from lantern_lib.mixture_of_experts import DEEPSEEK_V3
    >>> len(experts_touched(DEEPSEEK_V3).vconcat)
    2
    """
    grip = ring("Batch", "batch_size", batch_size, EXPERT_BATCHES)
    x = alt.X("batch:Q", title="batch: tokens of the step", scale=alt.Scale(domain=[0, 256], nice=False))
    base = rows_chart(_expert_rows(model)).encode(x=x)
    here = base.transform_filter(grip)
    y = alt.Y("touched:Q", title="experts touched", scale=alt.Scale(domain=[0, model.num_experts]))
    top = alt.layer(
        base.mark_line(stroke=MEMORY.light).encode(y=y),
        knob(here, "touched"),
        readout(here, "touched", "touched_text", 168, right=True),
        grips(base, 180, grip),
    ).properties(width=WIDTH, height=180)
    bottom = alt.layer(
        base.mark_line(stroke=TOTAL.light).encode(y=alt.Y("read:Q", title="GB read for each token")),
        knob(here, "read", first=False),
        readout(here, "read", "read_text", 14, right=True),
    ).properties(width=WIDTH, height=120)
    return alt.vconcat(top, bottom).properties(
        description=(
            f"Two panels over the batch, 1 to {EXPERT_BATCHES[-1]}. Above: the experts of a layer that some token goes"
            f" to rise from {model.experts_per_token} to nearly all {model.num_experts}, steeply at first. Below: the"
            " weights read for each token fall slowly while new experts are still touched, then as one over the batch."
        ),
        usermeta={"lantern": {"stops": {"ring": [f"{b}" for b in EXPERT_BATCHES]}}},
    )
