"""Explorable plots of the page on capacity types: the break-even and its mix, a floor under a day, and owning."""

from __future__ import annotations

from typing import Any

import altair as alt

from lantern_lib import pricing
from lantern_lib.figures.explore import WIDTH, grips, knob, label, readout, ring, rows_chart, selector
from lantern_lib.figures.roles import ARITHMETIC, CONTROL, MEMORY, TOTAL, USER
from lantern_lib.pricing import Fleet, MixCapacity, Provisioned, TokenPrices

PERCENT_OUTPUT = (0, 5, 10, 15, 20, 25, 30, 35, 40, 45, 50, 55, 60)
DECODE_WEIGHTS = ("1", "2", "4", "8")
FLOOR_PERCENTILES = (0, 10, 20, 30, 40, 50, 60, 70, 80, 90, 100)
PERCENT_TO_PAY = ("40", "50", "67", "77")
# Which utilisation each choice stands for: two of the example's mixes, its mean request, and the half.
TO_PAY = {"40": 0.4, "50": 0.5, "67": 2 / 3, "77": 12_000 / 3.9e-6 / 4e9}
BILLIONS = (1, 1.5, 2, 3, 4, 5, 6, 8, 10, 12, 15, 20, 25, 28, 29, 32, 36, 37, 38, 39, 45, 55, 60, 70, 75, 80, 100)
FLEET_MIXES = ("10", "17", "50")


def _mix_rows(prices: TokenPrices, monthly_dollars: float, tokens: float, measured_at: float) -> list[dict[str, Any]]:
    rows = []
    for weight in DECODE_WEIGHTS:
        capacity = MixCapacity.measured(tokens, measured_at, decode_weight=float(weight))
        commitment = Provisioned(monthly_dollars, capacity)
        for stop, percent in enumerate(PERCENT_OUTPUT):
            mix = percent / 100
            pays = commitment.utilization_to_pay(prices, mix)
            served = capacity.tokens(mix) / 1e9
            needed = pays * served
            rows.append(
                {
                    "weight": weight,
                    "stop": stop,
                    "percent": percent,
                    "pays": round(pays * 100, 2),
                    "served": round(served, 3),
                    "needed": round(needed, 3),
                    "pays_text": f"{percent}% output: pays above {pays * 100:.1f}% use"
                    + (", that is never" if pays > 1 else ""),
                    "needed_text": f"needed {needed:.2f}B, capacity {served:.2f}B",
                }
            )
    return rows


def break_even(
    prices: TokenPrices,
    *,
    monthly_dollars: float,
    capacity_tokens: float,
    measured_at: float,
    percent_output: int = 10,
    decode_weight: str = "1",
) -> alt.VConcatChart:
    """Plot the utilisation at which a commitment pays over the output share, for several weights of an output token.

    Parameters
    ----------
    prices : TokenPrices
        The per-token alternative.
    monthly_dollars : float
        Price of the commitment [dollars].
    capacity_tokens : float
        What it serves in a month at `measured_at` [tokens].
    measured_at : float
        Output share at which the capacity was measured [ratio].
    percent_output : int
        Where the ring stands first, one of :data:`PERCENT_OUTPUT` [percent].
    decode_weight : str
        First choice of :data:`DECODE_WEIGHTS`.

    Returns
    -------
    altair.VConcatChart
        Two panels with one ring and a selector.

    Raises
    ------
    ValueError
        If `percent_output` is no stop of the slider.

    Examples
    --------
    >>> prices = TokenPrices(3e-6, 12e-6)
    >>> len(break_even(prices, monthly_dollars=12_000, capacity_tokens=4e9, measured_at=0.1).vconcat)
    2
    """
    grip = ring("Output", "percent_output", percent_output, PERCENT_OUTPUT)
    rows = _mix_rows(prices, monthly_dollars, capacity_tokens, measured_at)
    x = alt.X("percent:Q", title="output tokens, percent of all", scale=alt.Scale(domain=[0, 60], nice=False))
    base = rows_chart(rows).transform_filter("datum.weight == weight").encode(x=x)
    here = base.transform_filter(grip)
    scale = alt.Scale(domain=[0, 160], nice=False, clamp=True)
    pays = alt.Y("pays:Q", title="use at which it pays, percent", scale=scale)
    full = base.transform_filter("datum.percent == 0")
    top = alt.layer(
        full.mark_rule(stroke=CONTROL.light, strokeDash=list(CONTROL.dash), strokeWidth=1.5).encode(
            x=alt.value(0), x2=alt.value("width"), y=alt.YDatum(100, scale=scale)
        ),
        full.mark_text(align="right", dy=-8, fontSize=12, fontWeight=600, fill=CONTROL.light).encode(
            x=alt.value("width"), y=alt.YDatum(100, scale=scale), text=alt.value("full: above this line it never pays")
        ),
        base.mark_line(stroke=TOTAL.light).encode(y=pays),
        knob(here, "pays"),
        readout(here, "pays", "pays_text", 16),
        grips(base, 190, grip),
    ).properties(width=WIDTH, height=190)
    tokens = "tokens a month, billions"
    billions = alt.Scale(domain=[0, 9], nice=False, clamp=True)
    needed_line = base.mark_line(stroke=USER.light, strokeDash=list(USER.dash))
    bottom = alt.layer(
        base.mark_line(stroke=MEMORY.light).encode(y=alt.Y("served:Q", title=tokens, scale=billions)),
        needed_line.encode(y=alt.Y("needed:Q", title=tokens, scale=billions)),
        label(base, "capacity", "percent", "served", MEMORY, 5, align="left", dy=-12),
        label(base, "needed to pay", "percent", "needed", USER, 60, dy=14),
        knob(here, "needed", first=False),
        readout(here, "needed", "needed_text", 16, right=True),
    ).properties(width=WIDTH, height=150)
    weights = selector("weight", "Weight of an output token", list(DECODE_WEIGHTS), decode_weight)
    return (
        alt.vconcat(top, bottom)
        .add_params(weights)
        .properties(
            description=(
                "Two panels over the output share, 0 to 60 percent. Above: the utilisation at which a commitment is"
                " cheaper than paying per token. It falls if an output token weighs as one or two input tokens, stays"
                " level at a weight of four, the ratio of the prices, and rises past full at a weight of eight. Below:"
                " the tokens needed, which fall with the share, and the capacity, which falls too unless the weight is"
                " one."
            ),
            usermeta={"lantern": {"stops": {"ring": [f"{p}%" for p in PERCENT_OUTPUT]}}},
        )
    )


def _floor_plan(percentile: int, to_pay: float, monthly_tokens: float, price: float) -> pricing.SpilloverPlan:
    day = pricing.daily_demand(monthly_tokens / pricing.HOURS_PER_MONTH)
    floor = pricing.demand_percentile(day, percentile / 100)
    return pricing.plan_with_spillover(day, floor, floor_token_hour_dollars=to_pay * price, spill_price=price)


def _plan_rows(monthly_tokens: float, price: float) -> list[dict[str, Any]]:
    rows = []
    for name, to_pay in TO_PAY.items():
        for stop, percentile in enumerate(FLOOR_PERCENTILES):
            plan = _floor_plan(percentile, to_pay, monthly_tokens, price)
            dollars = plan.total_dollars
            rows.append(
                {
                    "pays": name,
                    "stop": stop,
                    "p": percentile,
                    "cost": round(dollars / 1e3, 3),
                    "alone": round(plan.total_tokens * price / 1e3, 3),
                    "share": round(plan.floor_share * 100, 1),
                    "used": round(plan.floor_utilization * 100, 1),
                    "cost_text": f"p{percentile}: {dollars:,.0f} dollars a month",
                    "share_text": f"floor serves {plan.floor_share:.0%}, is {plan.floor_utilization:.0%} used",
                }
            )
    return rows


def _hour_rows(monthly_tokens: float, price: float) -> list[dict[str, Any]]:
    day = pricing.daily_demand(monthly_tokens / pricing.HOURS_PER_MONTH)
    rows = []
    for stop, percentile in enumerate(FLOOR_PERCENTILES):
        floor = _floor_plan(percentile, 0.5, monthly_tokens, price).floor_tokens_per_hour / 1e6
        rows += [
            {"stop": stop, "h": hour, "f": round(min(tokens / 1e6, floor), 2), "d": round(tokens / 1e6, 2)}
            for hour, tokens in enumerate(day)
        ]
    return rows


def spillover(
    *, monthly_tokens: float, token_price: float, percentile: int = 50, percent_to_pay: str = "67"
) -> alt.VConcatChart:
    """Plot a day's demand with a committed floor, and the month's bill over the percentile that the floor is set to.

    Parameters
    ----------
    monthly_tokens : float
        Demand of the month [tokens].
    token_price : float
        Blended price of a token in the pool [dollars].
    percentile : int
        Where the ring stands first, one of :data:`FLOOR_PERCENTILES` [percent of hours].
    percent_to_pay : str
        First choice of :data:`PERCENT_TO_PAY`: the utilisation at which committed capacity pays.

    Returns
    -------
    altair.VConcatChart
        Two panels with one ring and a selector.

    Raises
    ------
    ValueError
        If `percentile` is no stop of the slider.

    Examples
    --------
    >>> len(spillover(monthly_tokens=4e9, token_price=4.5e-6).vconcat)
    2
    """
    grip = ring("Floor, percentile", "percentile", percentile, FLOOR_PERCENTILES)
    hours = rows_chart(_hour_rows(monthly_tokens, token_price)).transform_filter(grip)
    hour = alt.X("h:O", title="hour of the day", axis=alt.Axis(values=[0, 4, 8, 12, 16, 20], labelAngle=0))
    asked = alt.Scale(domain=[0, 17], nice=False)
    title = "million tokens an hour"
    top = alt.layer(
        hours.mark_bar(fill=MEMORY.light, fillOpacity=0.85).encode(
            x=hour, y=alt.Y("f:Q", title=title, scale=asked), y2=alt.datum(0)
        ),
        hours.mark_bar(fill=CONTROL.light, fillOpacity=0.75).encode(
            x=hour, y=alt.Y("d:Q", title=title, scale=asked), y2="f:Q"
        ),
        hours.transform_filter("datum.h == 0")
        .mark_text(align="left", fontSize=12.5, fontWeight=600, fill=MEMORY.light)
        .encode(x=alt.value(14), y=alt.value(18), text=alt.value("blue: on the floor")),
        hours.transform_filter("datum.h == 0")
        .mark_text(align="left", fontSize=12.5, fontWeight=600, fill=CONTROL.light)
        .encode(x=alt.value(14), y=alt.value(36), text=alt.value("pink: spilled to the pool")),
    ).properties(width=WIDTH, height=170)
    x = alt.X("p:Q", title="floor set to this percentile of the hours", scale=alt.Scale(domain=[0, 100], nice=False))
    base = rows_chart(_plan_rows(monthly_tokens, token_price)).transform_filter("datum.pays == pays").encode(x=x)
    here = base.transform_filter(grip)
    money = alt.Scale(domain=[10, 32], nice=False)
    cost = alt.Y("cost:Q", title="thousand dollars a month", scale=money)
    bottom = alt.layer(
        base.mark_line(stroke=USER.light, strokeDash=list(USER.dash)).encode(y=alt.Y("alone:Q", scale=money)),
        base.mark_line(stroke=TOTAL.light).encode(y=cost),
        label(base, "everything per token", "p", "alone", USER, 0, align="left", dx=6, dy=-8),
        knob(here, "cost"),
        readout(here, "cost", "cost_text", 16),
        readout(here, "share", "share_text", 36),
        grips(base, 190, grip),
    ).properties(width=WIDTH, height=190)
    pays = selector("pays", "Pays above, percent used", list(PERCENT_TO_PAY), percent_to_pay)
    return (
        alt.vconcat(top, bottom)
        .add_params(pays)
        .properties(
            description=(
                "Two panels. Above: 24 bars of a day's demand, low at night and high from nine to five; the part below"
                " the floor is blue, the part above it is pink. Below: the month's bill over the percentile that the"
                " floor is set to. It falls a little, is almost level around its lowest point, and rises steeply"
                " towards a floor at the peak, far above the bill of paying everything per token."
            ),
            usermeta={"lantern": {"stops": {"ring": [f"p{p}" for p in FLOOR_PERCENTILES]}}},
        )
    )


def _fleet_rows(fleets: dict[str, Fleet], prices: TokenPrices, mixes: dict[str, float]) -> list[dict[str, Any]]:
    rows = []
    for mix, fleet in fleets.items():
        price = pricing.blended_price(prices, mixes[mix]) * 1e6
        for stop, billions in enumerate(BILLIONS):
            volume = billions * 1e9
            full = fleet.token_dollars(volume) * 1e6
            bare = full - fleet.people_dollars / volume * 1e6
            gpus = fleet.groups(volume) * fleet.group_gpus
            rows.append(
                {
                    "mix": mix,
                    "stop": stop,
                    "b": billions,
                    "full": round(full, 3),
                    "bare": round(bare, 3),
                    "price": round(price, 2),
                    "gpus": gpus,
                    "full_text": f"{billions:g}B on {gpus} GPUs: {full:.2f} a million",
                    "price_text": f"without people {bare:.2f}, per token {price:.2f}",
                }
            )
    return rows


def owning(
    fleets: dict[str, Fleet],
    prices: TokenPrices,
    mixes: dict[str, float],
    *,
    billions: float = 5,
    mix: str = "10",
) -> alt.LayerChart:
    """Plot what a million tokens cost on one's own machines over the volume, with and without the people.

    Parameters
    ----------
    fleets : dict of str to Fleet
        A fleet for each of :data:`FLEET_MIXES`; its capacity is that of the mix.
    prices : TokenPrices
        The per-token alternative.
    mixes : dict of str to float
        The output share that each name stands for [ratio].
    billions : float
        Where the ring stands first, one of :data:`BILLIONS` [billion tokens a month].
    mix : str
        First choice of :data:`FLEET_MIXES`.

    Returns
    -------
    altair.LayerChart
        One panel with a ring and a selector.

    Raises
    ------
    ValueError
        If `billions` is no stop of the slider, or `fleets` lacks a mix.

    Examples
    --------
    >>> fleets = dict.fromkeys(FLEET_MIXES, Fleet(8, 3, 25_000, 36e9))
    >>> len(owning(fleets, TokenPrices(3e-6, 12e-6), {"10": 0.1, "17": 1 / 6, "50": 0.5}).layer)
    10
    """
    if set(fleets) != set(FLEET_MIXES) or set(mixes) != set(FLEET_MIXES):
        raise ValueError(f"fleets must be one for each of {', '.join(FLEET_MIXES)}, got {', '.join(fleets)}.")
    grip = ring("Volume", "billions", billions, BILLIONS)
    ticks = alt.Axis(values=[1, 2, 5, 10, 20, 50, 100], format="d")
    volume = alt.Scale(type="log", domain=[0.95, 105], nice=False)
    x = alt.X("b:Q", title="billion tokens a month", axis=ticks, scale=volume)
    base = rows_chart(_fleet_rows(fleets, prices, mixes)).transform_filter("datum.mix == mix").encode(x=x)
    here = base.transform_filter(grip)
    scale = alt.Scale(type="log", domain=[0.3, 100], nice=False)
    title, axis = "dollars for a million tokens", alt.Axis(values=[0.3, 1, 3, 10, 30, 100])
    bare_line = base.mark_line(stroke=ARITHMETIC.light, strokeDash=list(ARITHMETIC.dash))
    price_line = base.mark_line(stroke=USER.light, strokeDash=list(USER.dash))
    pools = selector("mix", "Output tokens, percent", list(FLEET_MIXES), mix)
    return (
        alt.layer(
            price_line.encode(y=alt.Y("price:Q", title=title, scale=scale, axis=axis)),
            # One line for each number of GPUs: where the next group comes, the cost jumps.
            bare_line.encode(y=alt.Y("bare:Q", title=title, scale=scale, axis=axis), detail="gpus:N"),
            base.mark_line(stroke=TOTAL.light).encode(
                y=alt.Y("full:Q", title=title, scale=scale, axis=axis), detail="gpus:N"
            ),
            label(base, "paid per token", "b", "price", USER, 100),
            label(base, "GPUs only", "b", "bare", ARITHMETIC, 10, dx=-8, dy=14),
            label(base, "GPUs and people", "b", "full", TOTAL, 2, align="left", dx=8, dy=-6),
            knob(here, "full"),
            readout(here, "full", "full_text", 16, right=True),
            readout(here, "price", "price_text", 36, right=True),
            grips(base, 280, grip),
        )
        .add_params(pools)
        .properties(
            width=WIDTH,
            height=280,
            description=(
                "Three lines over the volume of a month, 1 to 100 billion tokens, on logarithmic axes. The price per"
                " token is level. The cost of owning falls as one over the volume, with a step up where another group"
                " of GPUs is needed; the line without the people lies far below the one with them, and crosses the"
                " price at less than half the volume."
            ),
            usermeta={"lantern": {"stops": {"ring": [f"{b:g}B" for b in BILLIONS]}}},
        )
    )
