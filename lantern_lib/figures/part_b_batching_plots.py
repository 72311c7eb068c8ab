"""Explorable plots of pages B1 and B2: schedules by number of slots, and empty cache by block size."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import altair as alt

from lantern_lib.figures.explore import WIDTH, grips, knob, label, readout, ring, rows_chart
from lantern_lib.figures.roles import ARITHMETIC, CONTROL, NEUTRALS, PLOT_MUTED, PLOT_SURFACE, TOTAL
from lantern_lib.kv_blocks import paged_slots
from lantern_lib.scheduler import Schedule, continuous_batching, static_batching

SLOTS = (8, 12, 16, 24, 32, 48, 64)
SHOWN_STEPS = 300
BLOCK_SIZES = tuple(2**exponent for exponent in range(9))
SHOWN_REQUESTS = 20
SHOWN_TOKENS = 640


def _bars(schedule: Schedule, stop: int) -> list[dict[str, Any]]:
    """Place what is drawn of a schedule: a bar for each request that begins in the first steps."""
    height = 1 / schedule.num_slots
    return [
        {
            "stop": stop,
            "policy": schedule.policy,
            "start": use.start_step,
            "end": min(use.end_step, SHOWN_STEPS),
            "low": round(use.slot * height, 4),
            "high": round((use.slot + 0.96) * height, 4),
        }
        for use in schedule.uses
        if use.start_step < SHOWN_STEPS
    ]


def _batching_rows(lengths: Sequence[int]) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    bars, rows = [], []
    for stop, slots in enumerate(SLOTS):
        static, continuous = static_batching(lengths, slots), continuous_batching(lengths, slots)
        bars += _bars(static, stop) + _bars(continuous, stop)
        ratio = static.total_steps / continuous.total_steps
        rows.append(
            {
                "stop": stop,
                "slots": slots,
                "static": round(100 * static.busy_share, 2),
                "continuous": round(100 * continuous.busy_share, 2),
                "static_text": f"static: {static.total_steps:,} steps, {static.busy_share:.0%} busy",
                "continuous_text": f"continuous: {continuous.total_steps:,} steps, {continuous.busy_share:.0%} busy",
                "ratio_text": f"{slots} slots: {ratio:.2f} times as fast",
            }
        )
    return bars, rows


def _schedule_panel(bars: list[dict[str, Any]], policy: str, ring_: alt.Parameter, title: str | None) -> alt.LayerChart:
    scale = alt.Scale(domain=[0, SHOWN_STEPS], nice=False)
    x = alt.X("start:Q", title=title, scale=scale)
    y = alt.Y(
        "low:Q", title=policy, scale=alt.Scale(domain=[1, 0]), axis=alt.Axis(labels=False, ticks=False, grid=False)
    )
    chart = rows_chart(bars)
    empty = (
        rows_chart([{"low": 0, "high": 1, "start": 0, "end": SHOWN_STEPS}])
        .mark_rect(fill=NEUTRALS["--lt-rule"], fillOpacity=0.6)
        .encode(x=x, x2="end:Q", y=y, y2="high:Q")
    )
    used = (
        chart.transform_filter(ring_)
        .transform_filter(f"datum.policy == '{policy}'")
        .mark_rect(fill=TOTAL.light, fillOpacity=0.85, stroke=PLOT_SURFACE, strokeWidth=0.5)
        .encode(x=x, x2="end:Q", y=y, y2="high:Q")
    )
    return alt.layer(empty, used).properties(width=WIDTH, height=150)


def batching(lengths: Sequence[int], *, num_slots: int) -> alt.VConcatChart:
    """Plot the schedules of both policies and the share of busy slots over their number.

    Parameters
    ----------
    lengths : sequence of int
        Output length of each request, in order [tokens].
    num_slots : int
        Where the ring stands first, one of :data:`SLOTS` [slots].

    Returns
    -------
    altair.VConcatChart
        Static above continuous, and the busy shares with the ring.

    Raises
    ------
    ValueError
        If `num_slots` is no stop of the slider.

    Examples
    --------
    >>> from lantern_lib.workload import output_lengths_512
    >>> len(batching(output_lengths_512(), num_slots=32).vconcat)
    3
    """
    bars, rows = _batching_rows(lengths)
    grip = ring("Slots", "num_slots", num_slots, SLOTS)
    base = rows_chart(rows).encode(
        x=alt.X(
            "slots:Q", title="slots", scale=alt.Scale(domain=[4, 68], nice=False), axis=alt.Axis(values=list(SLOTS))
        )
    )
    here = base.transform_filter(grip)
    scale = alt.Scale(domain=[0, 100])
    continuous = base.mark_line(stroke=TOTAL.light).encode(
        y=alt.Y("continuous:Q", title="percent of slots busy", scale=scale)
    )
    static = base.mark_line(stroke=PLOT_MUTED, strokeDash=[5, 3]).encode(y=alt.Y("static:Q", scale=scale))
    static_name = (
        base.transform_filter("datum.slots == 48")
        .mark_text(fontSize=12.5, fontWeight=600, fill=PLOT_MUTED, dy=16)
        .encode(y="static:Q", text=alt.value("static"))
    )
    bottom = alt.layer(
        static,
        continuous,
        static_name,
        label(base, "continuous", "slots", "continuous", TOTAL, 48, dy=-10, align="left"),
        knob(here, "continuous"),
        knob(here, "static", first=False),
        readout(here, "ratio", "ratio_text", 54),
        readout(here, "continuous", "continuous_text", 71),
        readout(here, "static", "static_text", 92),
        grips(base, 190, grip),
    ).properties(width=WIDTH, height=190)
    return alt.vconcat(
        _schedule_panel(bars, "static", grip, None),
        _schedule_panel(bars, "continuous", grip, f"decode step (the first {SHOWN_STEPS})"),
        bottom,
    ).properties(
        description=(
            "Two pictures of slots over time and a curve. Under static batching each batch leaves most of its slots"
            " empty until the longest request ends; under continuous batching the rows are filled without gaps. Below:"
            f" the share of busy slots for {SLOTS[0]} to {SLOTS[-1]} slots, about forty percent for static batching and"
            " eighty to almost a hundred for continuous."
        ),
        usermeta={"lantern": {"stops": {"ring": [f"{slots}" for slots in SLOTS]}}},
    )


def _paged_rows(lengths: Sequence[int]) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    bars, rows = [], []
    total, count = sum(lengths), len(lengths)
    for stop, size in enumerate(BLOCK_SIZES):
        slots = paged_slots(lengths, size)
        tail = (size - 1) / 2
        rows.append(
            {
                "stop": stop,
                "block": size,
                "empty": round(100 * (1 - total / slots), 3),
                "expected": round(100 * tail / (total / count + tail), 3),
                "text": f"blocks of {size}: {100 * (1 - total / slots):.1f} percent empty",
                "slots_text": f"{slots:,} token-slots given out",
            }
        )
        for number, length in enumerate(lengths[:SHOWN_REQUESTS]):
            held = paged_slots([length], size)
            bars.append({"stop": stop, "request": number, "used": length, "held": held})
    return bars, rows


def _request_panel(bars: list[dict[str, Any]], grip: alt.Parameter, reserved_len: int) -> alt.LayerChart:
    here = rows_chart(bars).transform_filter(grip)
    y = alt.Y("request:O", title=f"{SHOWN_REQUESTS} requests", axis=alt.Axis(labels=False, ticks=False))
    scale = alt.Scale(domain=[0, SHOWN_TOKENS], nice=False)
    reserved = here.mark_bar(
        height=7, fill="transparent", stroke=CONTROL.light, strokeWidth=0.7, strokeDash=[3, 2]
    ).encode(y=y, x=alt.datum(0), x2=alt.datum(SHOWN_TOKENS))
    used = here.mark_bar(height=7, fill=TOTAL.light).encode(
        y=y, x=alt.X("used:Q", title="tokens", scale=scale), x2=alt.datum(0)
    )
    tail = here.mark_bar(height=7, fill=ARITHMETIC.light).encode(y=y, x=alt.X("used:Q", scale=scale), x2="held:Q")
    words = f"reserved, up to {reserved_len:,}"
    note = (
        rows_chart([{"x": SHOWN_TOKENS}])
        .mark_text(align="right", dx=-2, fontSize=12.5, fontWeight=600, fill=CONTROL.light)
        .encode(x=alt.X("x:Q", scale=scale), y=alt.value(-8), text=alt.value(words))
    )
    return alt.layer(reserved, used, tail, note).properties(width=WIDTH, height=210)


def paged(lengths: Sequence[int], *, block_size: int, reserved_len: int) -> alt.VConcatChart:
    """Plot what requests hold in blocks of one size, and the empty share over the block size.

    Parameters
    ----------
    lengths : sequence of int
        Cached tokens of each request [tokens].
    block_size : int
        Where the ring stands first, one of :data:`BLOCK_SIZES` [tokens].
    reserved_len : int
        Tokens that a contiguous cache keeps for each [tokens].

    Returns
    -------
    altair.VConcatChart
        Bars of the first requests, and a curve with the ring.

    Raises
    ------
    ValueError
        If `block_size` is no stop of the slider.

    Examples
    --------
    >>> from lantern_lib.workload import output_lengths_512
    >>> len(paged(output_lengths_512(), block_size=16, reserved_len=4096).vconcat)
    2
    """
    bars, rows = _paged_rows(lengths)
    grip = ring("Block size", "block_size", block_size, BLOCK_SIZES)
    base = rows_chart(rows).encode(
        x=alt.X(
            "block:Q",
            title="tokens in a block",
            scale=alt.Scale(type="log", base=2, domain=[0.9, 290], nice=False),
            axis=alt.Axis(values=list(BLOCK_SIZES), format="d"),
        )
    )
    here = base.transform_filter(grip)
    y = alt.Y("empty:Q", title="percent of the cache empty", scale=alt.Scale(domain=[0, 100]))
    share = 100 * (1 - sum(lengths) / (reserved_len * len(lengths)))
    wall = rows_chart([{"empty": share}])
    bottom = alt.layer(
        wall.mark_rule(stroke=CONTROL.light, strokeWidth=2, strokeDash=list(CONTROL.dash)).encode(y=y),
        wall.mark_text(align="left", dy=14, fontSize=12.5, fontWeight=600, fill=CONTROL.light).encode(
            x=alt.value(14), y=y, text=alt.value(f"reserved: {share:.1f} percent empty")
        ),
        base.mark_line(stroke=PLOT_MUTED, strokeDash=[4, 4], strokeWidth=1.4).encode(y="expected:Q"),
        base.mark_line(stroke=TOTAL.light).encode(y=y),
        label(base, "measured", "block", "empty", TOTAL, 256, dx=-10, dy=-4),
        base.transform_filter("datum.block == 256")
        .mark_text(align="right", dy=70, dx=8, fontSize=12.5, fontWeight=600, fill=PLOT_MUTED)
        .encode(y="expected:Q", text=alt.value("half a block")),
        knob(here, "empty"),
        readout(here, "empty", "text", 54),
        readout(here, "slots", "slots_text", 73),
        grips(base, 200, grip),
    ).properties(width=WIDTH, height=200)
    return alt.vconcat(_request_panel(bars, grip, reserved_len), bottom).properties(
        description=(
            f"Above: {SHOWN_REQUESTS} requests as bars of what they used, with the unfilled tail of the last"
            f" block behind each, and a dashed reservation that runs on to {reserved_len:,} tokens. Below: the empty"
            " share of all blocks over their size, from nothing at 1 token to almost half at 256, far under the"
            f" {share:.1f} percent of the reservation."
        ),
        usermeta={"lantern": {"stops": {"ring": [f"{size}" for size in BLOCK_SIZES]}}},
    )
