"""The explorable plots of the open questions: measurements against floors, a timing signal, a region that stands by."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import altair as alt

from lantern_lib import capacity, standby, timing_channel
from lantern_lib.book_data import significant
from lantern_lib.figures.explore import WIDTH, grips, knob, label, readout, ring, rows_chart, selector
from lantern_lib.figures.roles import ARITHMETIC, ATTACKER, CONTROL, MEMORY, PLOT_MUTED, TOTAL, USER, Role
from lantern_lib.measurements import CARDS, MODELS, Measurement, floor

ALL = "all"
#: What the groups of batch sizes are called, and the largest batch of each; the last has no limit that the source says.
BATCHES: tuple[tuple[str, int], ...] = (("1", 1), ("2 to 24", 24), ("25 and more", 10**9))
NO_LIMIT = "not limited"
KINDS: dict[str, tuple[str, Role, str]] = {
    "decode": ("decode step", MEMORY, "circle"),
    "prefill": ("one prompt", ARITHMETIC, "triangle-up"),
    "both": ("whole requests", TOTAL, "square"),
    "rejected": ("rejected", ATTACKER, "cross"),
}
#: Lines of equal ratio: measured over floor.
TIMES = (1, 2, 4)
_LINE = (0.6, 60_000)
# Room at the top for the readout, which is long on a phone, and at the right for the names of the lines.
_FLOOR, _MEASURED = (0.6, 170_000), (0.6, 1_200_000)


def _group(batch_size: int | None) -> str:
    if batch_size is None:
        return NO_LIMIT
    return next(words for words, most in BATCHES if batch_size <= most)


def _short(card: str) -> str:
    return CARDS[card].name.removesuffix(" SXM").replace(" SXM 80 GB", "")


def _time(seconds: float) -> str:
    return f"{seconds:.1f} s" if seconds >= 10 else f"{seconds * 1e3:.3g} ms" if seconds < 1 else f"{seconds:.2f} s"


def _rows(measurements: Sequence[Measurement]) -> list[dict[str, Any]]:
    """Return a row for each measurement, by rising floor."""
    rows: list[dict[str, Any]] = []
    for stop, one in enumerate(sorted(measurements, key=lambda m: (floor(m).seconds, m.id))):
        least, model, card = floor(one), MODELS[one.model].name, _short(one.card)
        batch = "no limit" if one.batch_size is None else f"batch {one.batch_size}"
        verdict = " (rejected)" if one.rejected else ""
        rows.append(
            {
                "stop": stop,
                "id": one.id,
                "kind": "rejected" if one.rejected else one.work,
                "model": model,
                "card": card,
                "batch": _group(one.batch_size),
                "floor": significant(least.seconds * 1e3, 4),
                "ms": significant(least.measured_seconds * 1e3, 4),
                "share": round(least.share, 3),
                "run": f"{model}, {one.tp_size} × {card}, {batch}",
                "times": f"{_time(least.measured_seconds)}, floor {_time(least.seconds)}: {least.share:.2f}{verdict}",
                "source": one.source.split(" ")[0] if "/" in one.source.split(" ")[0] else one.source.split(" (")[0],
            }
        )
    return rows


def _log(title: str, span: tuple[float, float]) -> dict[str, Any]:
    return {
        "title": title,
        "scale": alt.Scale(type="log", domain=list(span), nice=False),
        "axis": alt.Axis(values=[1, 10, 100, 1000, 10_000], format=",~g"),
    }


def _axes() -> tuple[alt.X, alt.Y]:
    return alt.X("floor:Q", **_log("floor [ms]", _FLOOR)), alt.Y("ms:Q", **_log("measured [ms]", _MEASURED))


def _diagonals() -> list[alt.Chart]:
    ends = [{"times": times, "words": f"{times}×", "floor": low, "ms": low * times} for times in TIMES for low in _LINE]
    lines = rows_chart(ends)
    x, y = _axes()
    names = lines.transform_filter("datum.floor > 100")
    return [
        lines.mark_line(stroke=PLOT_MUTED, strokeWidth=1, strokeDash=[4, 3]).encode(x=x, y=y, detail="times:N"),
        names.mark_text(align="left", dx=3, fill=PLOT_MUTED, fontSize=11.5).encode(x=x, y=y, text="words:N"),
    ]


def _points(shown: alt.Chart) -> list[alt.Chart]:
    marks, legend = [], []
    for index, (key, (words, role, shape)) in enumerate(KINDS.items()):
        rows = shown.transform_filter(f"datum.kind == '{key}'")
        marks.append(rows.mark_point(shape=shape, size=46, stroke=role.light, fill=role.light, fillOpacity=0.35))
        y = alt.value(308 + 20 * index)
        one = rows_chart([{"words": words}])
        legend.append(
            one.mark_point(shape=shape, size=46, stroke=role.light, fill=role.light, fillOpacity=0.35).encode(
                x=alt.value("width"), y=y, xOffset=alt.value(-126)
            )
        )
        legend.append(
            one.mark_text(
                align="right", baseline="middle", dx=-8, fill=role.light, fontSize=12.5, fontWeight=600
            ).encode(x=alt.value("width"), y=y, text="words:N")
        )
    return [*marks, *legend]


def measured_against_floor(measurements: Sequence[Measurement], *, row: str, model: str = ALL) -> alt.LayerChart:
    """Plot measured times over their floors, to be filtered by model, card and batch.

    Parameters
    ----------
    measurements : sequence of Measurement
        The rows, rejected ones included.
    row : str
        The id of the row that the ring stands on first [text].
    model : str
        The first choice of model, or :data:`ALL` [text].

    Returns
    -------
    altair.LayerChart
        One panel with a ring and three selectors; the readout names the run, its two times and its source.

    Raises
    ------
    ValueError
        If `row` is the id of no row.

    Examples
    --------
    >>> one = Measurement("m", "a log", "", "Llama-2-70B", "H100", "fp16", "vLLM", 4, 1, 512, 0, 512, "tpot", 0.0297)
    >>> chart = measured_against_floor([one], row="m")
    >>> chart.to_dict()["height"]
    400
    """
    rows = _rows(measurements)
    grip = ring("Row of the table", "row", row, [r["id"] for r in rows])
    base = rows_chart(rows)
    for name in ("model", "card", "batch"):
        base = base.transform_filter(f"{name} == '{ALL}' || datum.{name} == {name}")
    x, y = _axes()
    shown = base.encode(x=x, y=y)
    here = shown.transform_filter(grip)
    count = (
        base.transform_filter("datum.kind != 'rejected'")
        .transform_aggregate(rows="count()", middle="median(share)")
        .transform_calculate(words="datum.rows + ' rows, median ' + format(datum.middle, '.2f')")
    )
    models = sorted({r["model"] for r in rows})
    cards = [_short(card) for card in CARDS if _short(card) in {r["card"] for r in rows}]
    return (
        alt.layer(
            *_diagonals(),
            *_points(shown),
            knob(here, "ms"),
            readout(here.encode(x=alt.X()), "run", "run", 16),
            readout(here, "times", "times", 35),
            readout(here, "source", "source", 54),
            readout(count, "count", "words", 284, right=True),
            shown.mark_point(opacity=0, size=1).add_params(grip),
        )
        .add_params(
            selector("model", "Model", [ALL, *models], model),
            selector("card", "Card", [ALL, *cards], ALL),
            selector("batch", "Batch", [ALL, *(words for words, _ in BATCHES), NO_LIMIT], ALL),
        )
        .properties(
            width=WIDTH,
            height=400,
            description=(
                f"Measured time over computed floor for {len(rows)} published runs, both axes logarithmic. Most"
                " points lie between the line of their floor and four times the floor, decode steps of one or two cards"
                " nearest to it, runs on eight cards and long whole requests among the farthest."
                " Three rejected prompts lie at or under the line of twice the floor, one of them below its floor."
            ),
            usermeta={"lantern": {"stops": {"ring": [r["id"] for r in rows]}}},
        )
    )


JITTERS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100)


def samples_over_jitter(
    signals: Sequence[tuple[str, str, float]], *, jitter_ms: float, error: float = 0.01
) -> alt.LayerChart:
    """Plot how many observations each signal needs, over the jitter of one observation.

    Parameters
    ----------
    signals : sequence of (str, str, float)
        A word that labels its curve, the words of the readout, and its size; three at most, the largest first
        [seconds].
    jitter_ms : float
        Where the ring stands first, one of :data:`JITTERS` [ms].
    error : float
        Chance to be wrong that the observer accepts [ratio].

    Returns
    -------
    altair.LayerChart
        One panel with a ring.

    Raises
    ------
    ValueError
        If `jitter_ms` is no stop of the slider.

    Examples
    --------
    >>> samples_over_jitter([("p", "a prompt", 0.16)], jitter_ms=1).to_dict()["height"]
    300
    """
    grip = ring("Jitter of one gap", "jitter_ms", jitter_ms, JITTERS)
    roles = (ATTACKER, ARITHMETIC, MEMORY)
    rows: list[dict[str, Any]] = []
    for stop, jitter in enumerate(JITTERS):
        row: dict[str, Any] = {"stop": stop, "jitter": jitter}
        for key, words, seconds in signals:
            count = timing_channel.samples_needed(seconds, jitter / 1e3, error)
            row[key] = count
            row[f"{key}_text"] = f"{words}: {count:,}"
        rows.append(row)
    x = alt.X(
        "jitter:Q",
        title="jitter of one gap [ms]",
        scale=alt.Scale(type="log", domain=[0.009, 112], nice=False),
        axis=alt.Axis(values=[0.01, 0.1, 1, 10, 100], format="~g"),
    )
    most = max(row[key] for row in rows for key, _, _ in signals)
    y: dict[str, Any] = {
        "title": "gaps to watch",
        "scale": alt.Scale(type="log", domain=[0.6, most * 3e4], nice=False),
        "axis": alt.Axis(values=[10.0**k for k in range(0, 10, 2)], format="~s"),
    }
    base = rows_chart(rows).encode(x=x)
    here = base.transform_filter(grip)
    lines = [
        base.mark_line(stroke=role.light, strokeDash=list(role.dash), strokeWidth=2).encode(y=alt.Y(f"{key}:Q", **y))
        for (key, _, _), role in zip(signals, roles, strict=False)
    ]
    return alt.layer(
        *lines,
        *(knob(here, key, first=index == 0) for index, (key, _, _) in enumerate(signals)),
        *(readout(here, key, f"{key}_text", 16 + 19 * index) for index, (key, _, _) in enumerate(signals)),
        *(label(base, key, "jitter", key, role, 100, dy=-8) for (key, _, _), role in zip(signals, roles, strict=False)),
        grips(base, 300, grip),
    ).properties(
        width=WIDTH,
        height=300,
        description=(
            "Gaps between tokens that an observer has to watch, over the jitter of one gap, both axes logarithmic, for"
            f" {len(signals)} signals. Each curve lies at one gap while its signal is far above the jitter, then rises"
            " a hundredfold for every tenfold jitter; the smaller the signal, the earlier it rises."
        ),
        usermeta={"lantern": {"stops": {"ring": [f"{jitter:g} ms" for jitter in JITTERS]}}},
    )


COLD_STARTS = (10, 15, 20, 30, 45, 60, 90, 120, 180, 240, 300, 420, 600, 900, 1200)
_WAITS = ((5, USER), (30, TOTAL), (120, CONTROL))
_HELD = ((0, ATTACKER), (1, ARITHMETIC), (2, USER))


def _standby_rows(plan: capacity.Plan) -> list[dict[str, Any]]:
    demand, rate = plan.demand.replicas, plan.demand.traffic.arrival_rate
    rows: list[dict[str, Any]] = []
    for stop, seconds in enumerate(COLD_STARTS):
        row: dict[str, Any] = {"stop": stop, "start": seconds}
        for patience, _ in _WAITS:
            exact = demand * max(0.0, 1 - patience / seconds)
            whole = standby.replicas_to_hold(demand, seconds, patience)
            row[f"w{patience}"] = round(exact, 3)
            row[f"w{patience}_text"] = f"wait {patience} s at most: hold {whole} of {plan.num_replicas}"
        for held, _ in _HELD:
            refused = standby.refused_requests(rate, demand, held, seconds)
            row[f"h{held}"] = round(refused)
            row[f"h{held}_text"] = f"{held} held: {refused:,.0f} refused"
        rows.append(row)
    return rows


def _lines(base: alt.Chart, keys: Sequence[tuple[str, Role]], y: dict[str, Any]) -> list[alt.Chart]:
    return [
        base.mark_line(stroke=role.light, strokeDash=list(role.dash), strokeWidth=2).encode(y=alt.Y(f"{key}:Q", **y))
        for key, role in keys
    ]


def standby_sweep(plan: capacity.Plan, *, cold_start_seconds: int) -> alt.VConcatChart:
    """Plot what a second region has to hold, and what it refuses, over its cold start.

    Parameters
    ----------
    plan : Plan
        The fleet of one region.
    cold_start_seconds : int
        Where the ring stands first, one of :data:`COLD_STARTS` [seconds].

    Returns
    -------
    altair.VConcatChart
        Two panels with one ring.

    Raises
    ------
    ValueError
        If `cold_start_seconds` is no stop of the slider.

    Examples
    --------
    >>> from lantern_lib import H100, LANTERN_70B, Replica
    >>> plan = capacity.plan_fleet(LANTERN_70B, Replica(H100, tp_size=4), capacity.Traffic(20, 2000, 400))
    >>> len(standby_sweep(plan, cold_start_seconds=300).vconcat)
    2
    """
    grip = ring("Cold start", "cold_start_seconds", cold_start_seconds, COLD_STARTS)
    rows = _standby_rows(plan)
    x = alt.X(
        "start:Q",
        title="cold start [s]",
        scale=alt.Scale(type="log", domain=[9.3, 1300], nice=False),
        axis=alt.Axis(values=[10, 30, 60, 120, 300, 600, 1200]),
    )
    base = rows_chart(rows).encode(x=x)
    here = base.transform_filter(grip)

    demand = plan.demand.replicas
    waits = [(f"w{patience}", role) for patience, role in _WAITS]
    held = [(f"h{count}", role) for count, role in _HELD if count < demand]
    hold: dict[str, Any] = {
        "title": "replicas to hold",
        "scale": alt.Scale(domain=[0, demand * 1.75], nice=False),
        "axis": alt.Axis(values=list(range(math.ceil(demand) + 1)), format="d"),
    }
    top = alt.layer(
        *_lines(base, waits, hold),
        *(
            label(base, f"{patience} s", "start", f"w{patience}", role, at, dx=-8)
            for (patience, role), at in zip(_WAITS, (20, 90, 240), strict=True)
        ),
        *(knob(here, key, first=index == 0) for index, (key, _) in enumerate(waits)),
        *(readout(here, key, f"{key}_text", 16 + 19 * index) for index, (key, _) in enumerate(waits)),
        grips(base, 230, grip),
    ).properties(width=WIDTH, height=230)
    most = plan.demand.traffic.arrival_rate * COLD_STARTS[-1]
    scale = alt.Scale(type="log", domain=[4, most * 40], nice=False)
    bottom = alt.layer(
        *_lines(
            base,
            held,
            {"title": "refused", "scale": scale, "axis": alt.Axis(values=[10, 100, 1000, 10_000], format=",")},
        ),
        *(
            # Between the first two lines there is no room for a word: the second is named under its low end.
            label(base, f"{key[1:]} held", "start", key, role, COLD_STARTS[0], dy=17, align="left")
            if key == "h1"
            else label(base, f"{key[1:]} held", "start", key, role, COLD_STARTS[-1])
            for key, role in held
        ),
        *(knob(here, key, first=False) for key, _ in held),
        *(readout(here, key, f"{key}_text", 16 + 19 * index) for index, (key, _) in enumerate(held)),
    ).properties(width=WIDTH, height=220)
    return alt.vconcat(top, bottom).properties(
        description=(
            f"Two panels over the cold start, {COLD_STARTS[0]} to {COLD_STARTS[-1]} seconds, for a traffic that keeps"
            f" {demand:.2f} replicas busy. Above: warm replicas that a longest wait of 5, 30 or 120 seconds asks for;"
            " each curve is zero until the cold start exceeds the wait, then climbs towards the whole demand. Below:"
            " requests refused in one failure with 0, 1 or 2 warm replicas, rising in proportion to the cold start."
        ),
        usermeta={"lantern": {"stops": {"ring": [f"{seconds} s" for seconds in COLD_STARTS]}}},
    )
