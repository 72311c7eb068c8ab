"""Explorable plots of pages F1 and F2: a cold start phase by phase, and the price of a token over utilisation."""

from __future__ import annotations

from typing import Any

import altair as alt

from lantern_lib import quantization
from lantern_lib.capacity import Demand
from lantern_lib.cold_start import ColdStart, Phase, weight_load_seconds
from lantern_lib.figures.explore import WIDTH, grips, knob, label, readout, ring, rows_chart, selector
from lantern_lib.figures.roles import ARITHMETIC, CONTROL, MEMORY, PLOT_MUTED, PLOT_SURFACE, PLOT_TEXT, TOTAL
from lantern_lib.hardware import Replica
from lantern_lib.model_config import ModelConfig
from lantern_lib.pricing import fleet_for
from lantern_lib.units import GB

SOURCES = {"0.5 GB/s": 0.5 * GB, "2 GB/s": 2 * GB, "10 GB/s": 10 * GB}
STORAGE = {"16 bits": 16, "8 bits": 8}
PHASES = {"launch": PLOT_MUTED, "image": TOTAL.light, "weights": MEMORY.light, "compile": ARITHMETIC.light}
STARTS = ("rate for the pod", "rate for each GPU", "pod, node running")
PERCENT_BUSY = (1, 2, 3, 4, 5, 6, 8, 10, 12, 14, 16, 18, 20, 24, 28, 32, 40, 46, 49, 55, 60, 65, 70, 76, 80, 90, 100)
ENGINES = {"at the floor": 1.0, "at half the floor": 0.5}
#: What is paid: replicas, spares, and whether the people are counted. The full bill has a spare, and them.
BILLS = {
    "1, GPUs only": (1, 0, False),
    "1, full bill": (1, 1, True),
    "7, full bill": (7, 1, True),
}


def _starts(model: ModelConfig, replica: Replica, rate: float, others: dict[str, float]) -> list[ColdStart]:
    def start(rate_is_for: str) -> ColdStart:
        weights = weight_load_seconds(model, replica, rate, rate_is_for=rate_is_for)
        return ColdStart(tuple(Phase(name, weights if name == "weights" else others[name]) for name in PHASES))

    return [start("pod"), start("gpu"), start("pod").without("launch", "image")]


def _phase_rows(model: ModelConfig, replica: Replica, others: dict[str, float]) -> list[dict[str, Any]]:
    rows = []
    for bits, number in STORAGE.items():
        stored = quantization.with_storage(model, number, number)
        for source, rate in SOURCES.items():
            for name, found in zip(STARTS, _starts(stored, replica, rate, others), strict=True):
                begin = 0.0
                for phase in found.phases:
                    row: dict[str, Any] = {"bits": bits, "source": source, "start": name, "phase": phase.name}
                    row |= {"a": round(begin, 1), "b": round(begin + phase.seconds, 1)}
                    # A shorter bar has no room for its word on a phone.
                    row["word"] = phase.name if phase.seconds >= 120 else ""
                    if not begin:
                        weights = next(p.seconds for p in found.phases if p.name == "weights")
                        row["text"] = f"{name}: {found.total_seconds:.0f} s, weights {weights:.3g} s"
                    rows.append(row)
                    begin += phase.seconds
    return rows


def cold_start(
    model: ModelConfig,
    replica: Replica,
    *,
    launch_seconds: float,
    image_seconds: float,
    compile_seconds: float,
    source: str = "0.5 GB/s",
    storage: str = "16 bits",
) -> alt.LayerChart:
    """Plot the phases of three cold starts to scale, with a selector for the rate of the source.

    Parameters
    ----------
    model : ModelConfig
        The shape.
    replica : Replica
        One replica, which is one pod.
    launch_seconds, image_seconds, compile_seconds : float
        Time budgets of the phases that do not load weights [s].
    source : str
        First choice of :data:`SOURCES` [text].
    storage : str
        First choice of :data:`STORAGE` [text].

    Returns
    -------
    altair.LayerChart
        One panel with two selectors.

    Examples
    --------
    >>> from lantern_lib import H100, LANTERN_70B
    >>> budget = {"launch_seconds": 120, "image_seconds": 40, "compile_seconds": 145}
    >>> len(cold_start(LANTERN_70B, Replica(H100, tp_size=4), **budget).layer)
    6
    """
    others = {"launch": launch_seconds, "image": image_seconds, "compile": compile_seconds}
    rows = _phase_rows(model, replica, others)
    longest = max(row["b"] for row in rows)
    chosen = rows_chart(rows).transform_filter("datum.bits == bits && datum.source == source")
    x = alt.X("a:Q", title="seconds since the decision", scale=alt.Scale(domain=[0, longest * 1.02], nice=False))
    y = alt.Y("start:N", title=None, axis=None, sort=list(STARTS), scale=alt.Scale(paddingInner=0.62, paddingOuter=0.5))
    base = chosen.encode(x=x, y=y)
    bars = [
        base.transform_filter(f"datum.phase == '{phase}'").mark_bar(fill=colour).encode(x2="b:Q")
        for phase, colour in PHASES.items()
    ]
    words = base.mark_text(align="left", dx=6, fontSize=12, fontWeight=600, fill=PLOT_SURFACE).encode(text="word:N")
    totals = (
        base.transform_filter("isValid(datum.text)")
        .mark_text(align="left", dy=-24, fontSize=13, fontWeight=600, fill=PLOT_TEXT)
        .encode(text="text:N")
    )
    return (
        alt.layer(*bars, words, totals)
        .add_params(selector("source", "The source gives", list(SOURCES), source))
        .add_params(selector("bits", "Weights in", list(STORAGE), storage))
        .properties(
            width=WIDTH,
            height=210,
            description=(
                f"Three bars over seconds, each a row of phases: launching a node ({launch_seconds:g} s), pulling the"
                f" image ({image_seconds:g} s), loading the weights, and compiling and warming up ({compile_seconds:g}"
                " s). If the rate of the source is for the whole pod, weights in 16 bits take 282, 71 or 14 s at 0.5, 2"
                " or 10 GB/s; if it is for each GPU, a quarter of that. On a node that already runs, launch and image"
                " are gone. From the fastest source, weights are the shortest part and compiling the longest."
            ),
        )
    )


def _price_rows(demand: Demand, price: float, gpu_hour: float, people: float) -> list[dict[str, Any]]:
    rows = []
    for engine, share in ENGINES.items():
        for bill, (replicas, spares, staffed) in BILLS.items():
            paid = people if staffed else 0.0
            fleet = fleet_for(demand, gpu_hour, floor_share=share, people_dollars=paid, spare_groups=spares)
            pays = fleet.utilization_to_pay(price, replicas)
            verdict = f"pays above {pays:.0%}" if pays <= 1 else "never pays at this price"
            for stop, busy in enumerate(PERCENT_BUSY):
                own = fleet.token_dollars_at(busy / 100, replicas) * 1e6
                row = {"engine": engine, "bill": bill, "stop": stop, "busy": busy, "own": round(own, 3)}
                rows.append(row | {"text": f"{busy}% busy: ${own:.2f} a million", "verdict": verdict})
    return rows


def cost_by_utilisation(
    demand: Demand,
    *,
    api_million_dollars: float,
    dollars_per_gpu_hour: float,
    people_dollars: float,
    percent_busy: int = 65,
    engine: str = "at the floor",
    bill: str = "1, GPUs only",
) -> alt.LayerChart:
    """Plot what a million tokens cost on own replicas over how busy they are, against the price of an API.

    Parameters
    ----------
    demand : Demand
        The mix, and the replica.
    api_million_dollars : float
        Blended price of a million tokens of the API [dollars].
    dollars_per_gpu_hour : float
        Price of one GPU for an hour [dollars].
    people_dollars : float
        The people who run a fleet, for a month [dollars].
    percent_busy : int
        Where the ring stands first, one of :data:`PERCENT_BUSY` [percent].
    engine : str
        First choice of :data:`ENGINES` [text].
    bill : str
        First choice of :data:`BILLS` [text].

    Returns
    -------
    altair.LayerChart
        One panel with a ring and two selectors.

    Raises
    ------
    ValueError
        If `percent_busy` is no stop of the slider.

    Examples
    --------
    >>> from lantern_lib import H100, LANTERN_70B
    >>> from lantern_lib.capacity import Traffic, fleet_demand
    >>> demand = fleet_demand(LANTERN_70B, Replica(H100, tp_size=4), Traffic(20, 2000, 400))
    >>> prices = {"api_million_dollars": 2.0, "dollars_per_gpu_hour": 3.0, "people_dollars": 25_000}
    >>> cost_by_utilisation(demand, **prices).width
    580
    """
    grip = ring("Percent busy", "percent_busy", percent_busy, PERCENT_BUSY)
    rows = _price_rows(demand, api_million_dollars * 1e-6, dollars_per_gpu_hour, people_dollars)
    x = alt.X("busy:Q", title="busy, percent of what the engine can do", scale=alt.Scale(domain=[0, 104], nice=False))
    scale = alt.Scale(type="log", domain=[0.25, 100], nice=False, clamp=True)
    axis = alt.Axis(values=[0.3, 0.5, 1, 2, 5, 10, 20, 50, 100], format="~g")
    y = alt.Y("own:Q", title="$ per million tokens, prompts and answers", scale=scale, axis=axis)
    base = rows_chart(rows).transform_filter("datum.engine == engine && datum.bill == bill").encode(x=x)
    here = base.transform_filter(grip)
    first = base.transform_filter("datum.stop == 0")
    chart = alt.layer(
        first.mark_rule(stroke=CONTROL.light, strokeDash=list(CONTROL.dash), strokeWidth=1.8).encode(
            x=alt.value(0), x2=alt.value("width"), y=alt.YDatum(api_million_dollars, scale=scale)
        ),
        first.mark_text(align="right", dy=-8, fontSize=12.5, fontWeight=600, fill=CONTROL.light).encode(
            x=alt.value("width"), y=alt.YDatum(api_million_dollars, scale=scale), text=alt.value("the API")
        ),
        base.mark_line(stroke=TOTAL.light).encode(y=y),
        label(base, "own replicas", "busy", "own", TOTAL, 3, align="left", dx=12),
        knob(here, "own"),
        readout(here, "own", "text", 18, right=True),
        readout(here, "verdict", "verdict", 38, right=True),
        grips(base, 250, grip),
    )
    stops = {"lantern": {"stops": {"ring": [f"{busy}%" for busy in PERCENT_BUSY]}}}
    return (
        chart.add_params(selector("engine", "Engine", list(ENGINES), engine))
        .add_params(selector("bill", "Replicas", list(BILLS), bill))
        .properties(width=WIDTH, height=250, description=_told(demand, api_million_dollars), usermeta=stops)
    )


def _told(demand: Demand, price: float) -> str:
    return (
        f"Dollars for a million tokens over how busy the replicas are, one to a hundred percent, for"
        f" {demand.traffic.summary}, on {demand.replica.summary}. The price of an API is a level line at {price:g}"
        " dollars. The own price falls as one over utilisation and crosses it: at 16 percent for a bare replica at the"
        " floor, at 31 percent at half the floor; with a spare and people one replica crosses at 76 percent, or never"
        " at half the floor, and seven replicas at 24 or 49 percent."
    )
