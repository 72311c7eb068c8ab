"""Explorable plots of pages B3 and B4: the chunk size, the best chunk for a promise, and the goodput of a queue."""

from __future__ import annotations

from typing import Any

import altair as alt

from lantern_lib import chunked_prefill, step
from lantern_lib.figures.explore import WIDTH, grips, knob, label, readout, ring, rows_chart, selector
from lantern_lib.figures.roles import CONTROL, TOTAL, USER
from lantern_lib.hardware import H100, Replica
from lantern_lib.model_config import ModelConfig
from lantern_lib.queueing import MM1

# The sizes of the table, and between them sizes that divide a prompt of 8,000 almost without a rest.
CHUNKS = (128, 160, 200, 256, 320, 400, 512, 667, 800, 1024, 1334, 1600, 2048, 2667, 4000, 8000)
DECODERS = (8, 32, 100)
TARGETS = (19, 20, 21, 22, 24, 26, 28, 30, 35, 40, 45, 50, 60, 70, 80, 100, 120, 150, 200)
TP_SIZES = (4, 8)
PERCENT_BUSY = (10, 20, 30, 40, 50, 55, 60, 65, 70, 75, 80, 84, 87, 90, 92, 94, 95, 96, 97, 98, 99)
PROMISES = (3, 5, 10)


def _users(num_decoders: int) -> alt.Parameter:
    return selector("decoders", "Running users", [str(count) for count in DECODERS], str(num_decoders))


def _chunk_rows(model: ModelConfig, context_len: int, prompt_len: int) -> list[dict[str, Any]]:
    machine = Replica(H100, tp_size=4)
    rows = []
    for decoders in DECODERS:
        whole = chunked_prefill.chunk_schedule(model, machine, decoders, context_len, prompt_len, prompt_len)
        normal = step.decode_step(model, machine, decoders, context_len).total_seconds * 1e3
        for stop, chunk in enumerate(CHUNKS):
            plan = chunked_prefill.chunk_schedule(model, machine, decoders, context_len, prompt_len, chunk)
            pause, first = plan.pause_seconds * 1e3, plan.ttft_seconds * 1e3
            rows.append(
                {
                    "decoders": str(decoders),
                    "stop": stop,
                    "chunk": chunk,
                    "pause": round(pause, 2),
                    "ttft": round(first, 1),
                    "whole": round(whole.ttft_seconds * 1e3, 1),
                    "normal": round(normal, 2),
                    "pause_text": f"a token every {pause:.{1 if pause < 20 else 0}f} ms",
                    "ttft_text": f"first token after {first:,.0f} ms",
                    "normal_text": f"no chunk in the step: {normal:.1f} ms",
                    "whole_text": f"whole prompt in one step: {whole.ttft_seconds * 1e3:.0f} ms",
                }
            )
    return rows


def chunk(
    model: ModelConfig, *, context_len: int, prompt_len: int, chunk_size: int, num_decoders: int = 32
) -> alt.VConcatChart:
    """Plot the pause of running users and the wait of the newcomer over the chunk size.

    Parameters
    ----------
    model : ModelConfig
        The shape, on four H100.
    context_len : int
        Context of the running users [tokens].
    prompt_len : int
        The newcomer's prompt [tokens].
    chunk_size : int
        Where the ring stands first, one of :data:`CHUNKS` [tokens].
    num_decoders : int
        First choice of :data:`DECODERS` [sequences].

    Returns
    -------
    altair.VConcatChart
        Two panels with one ring and a selector.

    Raises
    ------
    ValueError
        If `chunk_size` is no stop of the slider.

    Examples
    --------
    >>> from lantern_lib import LANTERN_70B
    >>> len(chunk(LANTERN_70B, context_len=4000, prompt_len=8000, chunk_size=512).vconcat)
    2
    """
    rows = _chunk_rows(model, context_len, prompt_len)
    grip = ring("Chunk", "chunk_size", chunk_size, CHUNKS)
    ticks = alt.Axis(values=[128, 256, 512, 1024, 2048, 4000, 8000], format=",d")
    x = alt.X(
        "chunk:Q",
        title="chunk, prompt tokens in a step",
        axis=ticks,
        scale=alt.Scale(type="log", domain=[120, 8500], nice=False),
    )
    base = rows_chart(rows).transform_filter("datum.decoders == decoders").encode(x=x)
    here = base.transform_filter(grip)

    def dashed(field: str, text: str, scale: alt.Scale, dy: int) -> list[alt.Chart]:
        one = base.transform_filter(f"datum.chunk == {CHUNKS[-1]}")
        rule = one.mark_rule(stroke=CONTROL.light, strokeDash=list(CONTROL.dash), strokeWidth=1.5)
        words = one.mark_text(align="right", dy=dy, fontSize=12, fontWeight=600, fill=CONTROL.light)
        return [
            rule.encode(x=alt.value(0), x2=alt.value("width"), y=alt.Y(f"{field}:Q", scale=scale)),
            words.encode(x=alt.value("width"), y=alt.Y(f"{field}:Q", scale=scale), text=f"{text}:N"),
        ]

    gaps = alt.Scale(type="log", domain=[10, 1000], nice=False)
    waits = alt.Scale(type="log", domain=[500, 2000], nice=False)
    pause = alt.Y(
        "pause:Q", title="gap a user sees, ms", scale=gaps, axis=alt.Axis(values=[10, 20, 50, 100, 200, 500, 1000])
    )
    ttft = alt.Y("ttft:Q", title="newcomer's TTFT, ms", scale=waits, axis=alt.Axis(values=[500, 700, 1000, 1400, 2000]))
    top = alt.layer(
        *dashed("normal", "normal_text", gaps, 13),
        base.mark_line(stroke=TOTAL.light).encode(y=pause),
        knob(here, "pause"),
        readout(here, "pause", "pause_text", 16),
        grips(base, 190, grip),
    ).properties(width=WIDTH, height=190)
    bottom = alt.layer(
        *dashed("whole", "whole_text", waits, 15),
        base.mark_line(stroke=USER.light, strokeDash=list(USER.dash)).encode(y=ttft),
        knob(here, "ttft", first=False),
        readout(here, "ttft", "ttft_text", 16, right=True),
    ).properties(width=WIDTH, height=150)
    return (
        alt.vconcat(top, bottom)
        .add_params(_users(num_decoders))
        .properties(
            description=(
                f"Two panels over the chunk size, {CHUNKS[0]} to {CHUNKS[-1]:,} tokens, for a prompt of {prompt_len:,}"
                f" tokens beside users at a context of {context_len:,}. Above: the gap between two tokens of a running"
                " user rises from hardly more than a normal step to the time of the whole prompt. Below: the newcomer's"
                " time to first token is long for small chunks and falls to that of one step."
            ),
            usermeta={"lantern": {"stops": {"ring": [f"{c:,}" for c in CHUNKS]}}},
        )
    )


def _target_row(
    model: ModelConfig, machine: Replica, decoders: int, context_len: int, prompt_len: int, target: int
) -> dict[str, Any]:
    row: dict[str, Any] = {"target": target, "chunk": None, "ttft": None, "ttft_text": "nobody new gets in"}
    alone = step.decode_step(model, machine, decoders, context_len).total_seconds
    if alone * 1e3 > target:
        return row | {"chunk_text": f"{target} ms: not even without a prompt ({alone * 1e3:.1f} ms)"}
    best = chunked_prefill.best_chunk(model, machine, decoders, context_len, target / 1e3, prompt_len)
    if best == 0:
        return row | {"chunk_text": f"{target} ms: no room for a prompt"}
    plan = chunked_prefill.chunk_schedule(model, machine, decoders, context_len, prompt_len, best, partial_last=True)
    first = plan.ttft_seconds
    return row | {
        "chunk": best,
        "ttft": round(first * 1e3, 1),
        "chunk_text": f"promise {target} ms: chunks of up to {best:,}",
        "ttft_text": f"newcomer waits {first * 1e3:,.0f} ms" if first < 10 else f"newcomer waits {first:,.0f} s",
    }


def best_chunk(
    model: ModelConfig,
    *,
    context_len: int,
    prompt_len: int,
    tpot_target_ms: int,
    num_decoders: int = 32,
    tp_size: int = 4,
) -> alt.VConcatChart:
    """Plot the largest chunk that keeps a promise on the time per token, and the wait it means.

    Parameters
    ----------
    model : ModelConfig
        The shape, on H100.
    context_len : int
        Context of the running users [tokens].
    prompt_len : int
        The newcomer's prompt [tokens].
    tpot_target_ms : int
        Where the ring stands first, one of :data:`TARGETS` [milliseconds].
    num_decoders : int
        First choice of :data:`DECODERS` [sequences].
    tp_size : int
        First choice of :data:`TP_SIZES` [count].

    Returns
    -------
    altair.VConcatChart
        Two panels with one ring and two selectors.

    Raises
    ------
    ValueError
        If `tpot_target_ms` is no stop of the slider.

    Examples
    --------
    >>> from lantern_lib import LANTERN_70B
    >>> len(best_chunk(LANTERN_70B, context_len=4000, prompt_len=8000, tpot_target_ms=50).vconcat)
    2
    """
    rows = [
        {"decoders": str(decoders), "tp": str(tp), "stop": stop}
        | _target_row(model, Replica(H100, tp_size=tp), decoders, context_len, prompt_len, target)
        for tp in TP_SIZES
        for decoders in DECODERS
        for stop, target in enumerate(TARGETS)
    ]
    grip = ring("Promise", "tpot_target_ms", tpot_target_ms, TARGETS)
    x = alt.X(
        "target:Q",
        title="promised time per token, ms",
        axis=alt.Axis(values=[20, 30, 40, 50, 70, 100, 150, 200]),
        scale=alt.Scale(type="log", domain=[18, 210], nice=False),
    )
    base = rows_chart(rows).transform_filter("datum.decoders == decoders && datum.tp == tp").encode(x=x)
    here = base.transform_filter(grip)
    size = alt.Y("chunk:Q", title="largest chunk, tokens", scale=alt.Scale(domain=[0, 5000], nice=False))
    wait = alt.Y(
        "ttft:Q",
        title="newcomer's TTFT, ms",
        scale=alt.Scale(type="log", domain=[300, 5000], nice=False),
        axis=alt.Axis(values=[300, 500, 1000, 2000, 5000]),
    )
    top = alt.layer(
        base.mark_line(stroke=CONTROL.light, strokeDash=list(CONTROL.dash)).encode(y=size),
        label(base, "largest chunk", "target", "chunk", CONTROL, 100, dx=-10, dy=-14),
        knob(here, "chunk"),
        readout(here, "chunk", "chunk_text", 16),
        grips(base, 190, grip),
    ).properties(width=WIDTH, height=190)
    bottom = alt.layer(
        base.mark_line(stroke=USER.light, strokeDash=list(USER.dash)).encode(y=wait),
        knob(here, "ttft", first=False),
        readout(here, "ttft", "ttft_text", 16, right=True),
    ).properties(width=WIDTH, height=130)
    tp = selector("tp", "Tensor-parallel size", [str(size) for size in TP_SIZES], str(tp_size))
    return (
        alt.vconcat(top, bottom)
        .add_params(_users(num_decoders), tp)
        .properties(
            description=(
                f"Two panels over the promised time per token, {TARGETS[0]} to {TARGETS[-1]} milliseconds. Above: the"
                " largest chunk that keeps the promise is zero up to the time of a normal step, then rises in"
                " proportion to the time left. Below: the newcomer's time to first token for a prompt of"
                f" {prompt_len:,} tokens falls steeply just above the normal step and is almost flat later."
            ),
            usermeta={"lantern": {"stops": {"ring": [f"{t} ms" for t in TARGETS]}}},
        )
    )


def _goodput_rows() -> list[dict[str, Any]]:
    rows = []
    for limit in PROMISES:
        for stop, percent in enumerate(PERCENT_BUSY):
            queue = MM1(percent / 100, 1)
            mean, high, good = queue.mean_time_seconds, queue.time_percentile(0.95), percent * queue.share_within(limit)
            rows.append(
                {
                    "promise": str(limit),
                    "stop": stop,
                    "busy": percent,
                    "mean": round(mean, 2),
                    "high": round(high, 2),
                    "good": round(good, 2),
                    "time_text": f"mean {mean:.1f}, 95th percentile {high:.0f}",
                    "good_text": f"{good:.0f} of {percent} kept",
                }
            )
    return rows


def goodput(*, percent_busy: int, promise: int = 5) -> alt.VConcatChart:
    """Plot the times of an M/M/1 queue, and what it serves within a promise, over the utilisation.

    Parameters
    ----------
    percent_busy : int
        Where the ring stands first, one of :data:`PERCENT_BUSY` [percent].
    promise : int
        First choice of :data:`PROMISES` [service times].

    Returns
    -------
    altair.VConcatChart
        Two panels with one ring and a selector.

    Raises
    ------
    ValueError
        If `percent_busy` is no stop of the slider.

    Examples
    --------
    >>> len(goodput(percent_busy=80).vconcat)
    2
    """
    grip = ring("Utilisation", "percent_busy", percent_busy, PERCENT_BUSY)
    x = alt.X("busy:Q", title="utilisation, percent", scale=alt.Scale(domain=[0, 100], nice=False))
    base = rows_chart(_goodput_rows()).transform_filter("datum.promise == promise").encode(x=x)
    here = base.transform_filter(grip)
    scale = alt.Scale(type="log", domain=[1, 400], nice=False)
    title, axis = "time in the system, service times", alt.Axis(values=[1, 3, 10, 30, 100, 300])
    mean_line = base.mark_line(stroke=USER.light, strokeDash=list(USER.dash))
    top = alt.layer(
        base.mark_line(stroke=TOTAL.light).encode(y=alt.Y("high:Q", title=title, scale=scale, axis=axis)),
        mean_line.encode(y=alt.Y("mean:Q", title=title, scale=scale, axis=axis)),
        label(base, "95th percentile", "busy", "high", TOTAL, 60, dy=-10),
        label(base, "mean", "busy", "mean", USER, 60, dy=-8),
        knob(here, "high"),
        knob(here, "mean", first=False),
        readout(here, "times", "time_text", 16),
        grips(base, 190, grip),
    ).properties(width=WIDTH, height=190)
    served = alt.Scale(domain=[0, 100], nice=False)
    share = "requests, percent of capacity"
    kept = base.mark_line(stroke=CONTROL.light, strokeDash=list(CONTROL.dash))
    bottom = alt.layer(
        base.mark_line(stroke=TOTAL.light).encode(y=alt.Y("busy:Q", title=share, scale=served)),
        kept.encode(y=alt.Y("good:Q", title=share, scale=served)),
        label(base, "served", "busy", "busy", TOTAL, 75, dx=-8, dy=-4),
        label(base, "served as promised", "busy", "good", CONTROL, 20, align="left", dx=14, dy=6),
        knob(here, "good", first=False),
        readout(here, "good", "good_text", 16),
    ).properties(width=WIDTH, height=150)
    return (
        alt.vconcat(top, bottom)
        .add_params(selector("promise", "Promise, service times", [str(p) for p in PROMISES], str(promise)))
        .properties(
            description=(
                "Two panels over the utilisation of an M/M/1 queue, 10 to 99 percent. Above, on a logarithmic axis: the"
                " mean time in the system and its 95th percentile, three times as high; both bend upwards near full."
                " Below: what is served rises in a straight line, while what is served within the promise rises, peaks"
                " well before full, and falls towards zero."
            ),
            usermeta={"lantern": {"stops": {"ring": [f"{p}%" for p in PERCENT_BUSY]}}},
        )
    )
