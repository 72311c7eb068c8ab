"""The explorable plot of page C3: GPUs and price over the traffic, for three plans."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import altair as alt

from lantern_lib import capacity, quantization
from lantern_lib.figures.explore import WIDTH, grips, knob, label, readout, ring, rows_chart, selector
from lantern_lib.figures.roles import ARITHMETIC, CONTROL, TOTAL, Role
from lantern_lib.hardware import H100, Replica
from lantern_lib.model_config import ModelConfig

# Whole rates as far as the fleet is lumpy, then steps of about a tenth.
RATES = (*range(1, 21), 22, 24, 26, 28, 30, 33, 36, 40, 45, 50, 55, 60, 65, 70, 75, 80, 85, 90, 95, 100)
STORAGE = {"16 bits": 16, "8 bits": 8}
PLANS: tuple[tuple[str, str, Role], ...] = (
    ("raw", "raw", ARITHMETIC),
    ("room", "headroom", CONTROL),
    ("cached", "cached", TOTAL),
)


Sweeps = dict[str, list[list[capacity.Plan]]]


def _sweeps(model: ModelConfig, traffic: capacity.Traffic, num_cached_tokens: int, max_utilization: float) -> Sweeps:
    """Return the three plans for each storage and each rate."""
    machine = Replica(H100, tp_size=4)

    def plans(stored: ModelConfig, rate: int) -> list[capacity.Plan]:
        plain = replace(traffic, arrival_rate=rate)
        shared = replace(plain, num_cached_tokens=num_cached_tokens)
        return [
            capacity.plan_fleet(stored, machine, plain),
            capacity.plan_fleet(stored, machine, plain, max_utilization=max_utilization),
            capacity.plan_fleet(stored, machine, shared, max_utilization=max_utilization),
        ]

    models = {words: quantization.with_storage(model, bits, bits) for words, bits in STORAGE.items()}
    return {words: [plans(stored, rate) for rate in RATES] for words, stored in models.items()}


def _readings(stored: Sweeps, price: float) -> list[dict[str, Any]]:
    """Return a row for each storage and each stop of the ring."""
    rows = []
    for bits, sweep in stored.items():
        for stop, (rate, plans) in enumerate(zip(RATES, sweep, strict=True)):
            row: dict[str, Any] = {"bits": bits, "stop": stop, "rate": rate}
            for (key, words, _), plan in zip(PLANS, plans, strict=True):
                dollars, gap = plan.dollars_per_million(price), plan.load.tpot_seconds
                row[key] = plan.num_gpus
                row[f"{key}_cost"] = round(dollars, 3)
                row[f"{key}_text"] = f"{words}: {plan.num_gpus} GPUs, ${dollars:.2f}, {gap * 1e3:.0f} ms"
            rows.append(row)
    return rows


def _stairs(stored: Sweeps, price: float) -> list[dict[str, Any]]:
    """Return the corners of each curve: before and after every rate at which one replica more is needed.

    Between them the price falls as one over the rate, which is a straight line where both axes are logarithmic.
    """
    rows = []
    for bits, sweep in stored.items():
        for (key, _, _), plan in zip(PLANS, sweep[0], strict=True):
            each = plan.max_utilization * plan.demand.requests_per_second
            full = int(RATES[-1] / each)
            first = math.ceil(RATES[0] / each)
            corners = [(float(RATES[0]), first)]
            for count in range(first, full + 1):
                corners += [(count * each, count), (count * each, count + 1)]
            for order, (rate, count) in enumerate([*corners, (float(RATES[-1]), full + 1)]):
                gpus = count * plan.demand.replica.tp_size
                dollars = capacity.dollars_per_million(price, gpus, rate * plan.demand.traffic.output_len)
                row = {"bits": bits, "plan": key, "order": order, "rate": round(rate, 3)}
                rows.append(row | {"gpus": gpus, "cost": round(dollars, 3)})
    return rows


GPUS: dict[str, Any] = {
    "title": "GPUs",
    "scale": alt.Scale(type="log", domain=[3.5, 400], nice=False),
    "axis": alt.Axis(values=[4, 8, 16, 40, 100]),
}
COST: dict[str, Any] = {
    "title": "$ per million answer tokens",
    "scale": alt.Scale(type="log", domain=[0.8, 10], nice=False),
    "axis": alt.Axis(values=[1, 1.5, 2, 3, 5, 8], format="~g"),
}


def _x() -> alt.X:
    return alt.X(
        "rate:Q",
        title="requests a second",
        axis=alt.Axis(values=[1, 2, 5, 10, 20, 50, 100]),
        scale=alt.Scale(type="log", domain=[0.95, 106], nice=False),
    )


def _lines(stairs: alt.Chart, field: str, y: dict[str, Any]) -> list[alt.Chart]:
    return [
        stairs.transform_filter(f"datum.plan == '{key}'")
        .mark_line(stroke=role.light, strokeDash=list(role.dash), strokeWidth=2)
        .encode(x=_x(), y=alt.Y(f"{field}:Q", **y), order="order:Q")
        for key, _, role in PLANS
    ]


def capacity_sweep(
    model: ModelConfig,
    *,
    arrival_rate: int,
    prompt_len: int,
    output_len: int,
    num_cached_tokens: int,
    max_utilization: float,
    dollars_per_gpu_hour: float,
    storage: str = "16 bits",
) -> alt.VConcatChart:
    """Plot GPUs and dollars per million answer tokens over the requests a second, for three plans.

    Parameters
    ----------
    model : ModelConfig
        The shape, on replicas of four H100.
    arrival_rate : int
        Where the ring stands first, one of :data:`RATES` [1/s].
    prompt_len, output_len : int
        Tokens of each prompt and each answer [tokens].
    num_cached_tokens : int
        Prompt tokens that the third plan takes from a prefix cache [tokens].
    max_utilization : float
        Share of time that a replica of the second and third plan may be busy [ratio].
    dollars_per_gpu_hour : float
        Price of one GPU for an hour [dollars].
    storage : str
        First choice of :data:`STORAGE` [text].

    Returns
    -------
    altair.VConcatChart
        Two panels with one ring and a selector.

    Raises
    ------
    ValueError
        If `arrival_rate` is no stop of the slider.

    Examples
    --------
    >>> from lantern_lib import LANTERN_70B
    >>> traffic = {"prompt_len": 2000, "output_len": 400, "num_cached_tokens": 1500}
    >>> chart = capacity_sweep(LANTERN_70B, arrival_rate=20, max_utilization=0.65, dollars_per_gpu_hour=3.0, **traffic)
    >>> len(chart.vconcat)
    2
    """
    grip = ring("Requests a second", "arrival_rate", arrival_rate, RATES)
    traffic = capacity.Traffic(arrival_rate, prompt_len, output_len)
    stored = _sweeps(model, traffic, num_cached_tokens, max_utilization)
    base = rows_chart(_readings(stored, dollars_per_gpu_hour)).transform_filter("datum.bits == bits").encode(x=_x())
    stairs = rows_chart(_stairs(stored, dollars_per_gpu_hour)).transform_filter("datum.bits == bits")
    here = base.transform_filter(grip)
    top = alt.layer(
        *_lines(stairs, "gpus", GPUS),
        knob(here, "cached"),
        *(knob(here, key, first=False) for key in ("raw", "room")),
        *(readout(here, key, f"{key}_text", 16 + 19 * index) for index, (key, _, _) in enumerate(PLANS)),
        grips(base, 230, grip),
    ).properties(width=WIDTH, height=230)
    bottom = alt.layer(
        *_lines(stairs, "cost", COST),
        label(base, "headroom", "rate", "room_cost", CONTROL, 100, dy=-13),
        label(base, "raw", "rate", "raw_cost", ARITHMETIC, 100, dy=-13),
        label(base, "cached", "rate", "cached_cost", TOTAL, 100, dy=20),
        *(knob(here, f"{key}_cost", first=False) for key, _, _ in PLANS),
    ).properties(width=WIDTH, height=190)
    return (
        alt.vconcat(top, bottom)
        .add_params(selector("bits", "Weights and cache", list(STORAGE), storage))
        .properties(
            description=(
                f"Two panels over the requests a second, {RATES[0]} to {RATES[-1]}, for three plans: raw capacity,"
                f" {max_utilization:.0%} utilisation, and the same with {num_cached_tokens:,} prompt tokens from a"
                " prefix cache. Above: GPUs rise in stairs of four and never fall below four. Below: dollars per"
                " million answer tokens fall steeply while one replica is enough, then level out with saw teeth;"
                " the cached plan ends below the raw one, headroom alone above it."
            ),
            usermeta={"lantern": {"stops": {"ring": [f"{rate}/s" for rate in RATES]}}},
        )
    )
