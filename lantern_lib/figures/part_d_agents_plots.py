"""Explorable plot of page D2: a session's bill, call by call, for a chosen number of lost caches."""

from __future__ import annotations

from typing import Any

import altair as alt

from lantern_lib.figures.explore import WIDTH, grips, knob, readout, ring, rows_chart, selector
from lantern_lib.figures.roles import ARITHMETIC, CONTROL, MEMORY, PLOT_MUTED, TOTAL
from lantern_lib.prompt_cache import ANTHROPIC, CachePolicy, agent_session, call_bills, spread_turns

TERMS: dict[str, CachePolicy] = {"5 min": ANTHROPIC, "1 hour": ANTHROPIC.extended()}


def _rows(
    num_calls: int, first_context_len: int, tokens_per_turn: int, slow_seconds: float
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """One row for each number of slow tools, and one for each call under it."""
    totals, calls = [], []
    for terms, policy in TERMS.items():
        for slow in range(num_calls):
            turns = spread_turns(slow, num_calls)
            session = agent_session(
                num_calls, first_context_len, tokens_per_turn, slow_turns=turns, slow_seconds=slow_seconds
            )
            bills = call_bills(session, policy)
            cost = sum(bill.cost for bill in bills)
            share = 100 * cost / sum(bill.input_tokens for bill in bills)
            lost = sum(not bill.read_tokens for bill in bills[1:])
            caches = "1 cache lost" if lost == 1 else f"{lost} caches lost"
            totals.append(
                {
                    "terms": terms,
                    "stop": slow,
                    "percent": round(share, 1),
                    "lost_text": caches if lost else "no cache lost",
                    "cost_text": f"{cost:,.0f} token-prices, {share:.1f}%",
                }
            )
            calls += [
                {
                    "terms": terms,
                    "stop": slow,
                    "call": turn + 1,
                    "cost": round(bill.cost / 1000, 3),
                    "lost": int(turn > 0 and not bill.read_tokens),
                }
                for turn, bill in enumerate(bills)
            ]
    return totals, calls


def _call_panel(calls: list[dict[str, Any]], prompt_lens: list[int], grip: alt.Parameter) -> alt.LayerChart:
    """One bar for each call, in front of the outline of its price without a cache."""
    num_calls, height = len(prompt_lens), ANTHROPIC.write_price * prompt_lens[-1] / 1000
    call = alt.X(
        "left:Q",
        title="call of the session",
        axis=alt.Axis(values=[1, *range(5, num_calls + 1, 5)], format="d"),
        scale=alt.Scale(domain=[0.4, num_calls + 0.6], nice=False),
    )
    # Bars are as wide as the scale says, so that they do not run into each other on a phone.
    sides = {"left": "datum.call - 0.36", "right": "datum.call + 0.36"}
    cost = alt.Y("cost:Q", title="thousand token-prices", scale=alt.Scale(domain=[0, height * 1.1], nice=False))
    plain = [{"call": turn + 1, "cost": length / 1000} for turn, length in enumerate(prompt_lens)]
    outline = rows_chart(plain).transform_calculate(**sides).encode(x=call, x2="right:Q")
    bars = rows_chart(calls).transform_filter("datum.terms == terms").transform_filter(grip)
    bars = bars.transform_calculate(**sides).encode(x=call, x2="right:Q")
    ground = alt.datum(0)
    return alt.layer(
        bars.transform_filter("!datum.lost").mark_bar(fill=MEMORY.light).encode(y=cost, y2=ground),
        bars.transform_filter("datum.lost").mark_bar(fill=ARITHMETIC.light).encode(y=cost, y2=ground),
        outline.mark_bar(fill="transparent", stroke=PLOT_MUTED, strokeWidth=1.2).encode(y=cost, y2=ground),
        rows_chart([{"cost": height}])
        .mark_text(align="left", dx=14, fontSize=12.5, fontWeight=600, fill=PLOT_MUTED)
        .encode(x=alt.value(0), y=cost, text=alt.value("outline: without caching")),
    ).properties(width=WIDTH, height=190)


def session_bill(
    *,
    num_slow: int,
    num_calls: int = 20,
    first_context_len: int = 6000,
    tokens_per_turn: int = 1500,
    slow_seconds: float = 600.0,
    terms: str = "5 min",
) -> alt.VConcatChart:
    """Plot a session's cost over the number of slow tools, and the cost of each call.

    Parameters
    ----------
    num_slow : int
        Where the ring stands first, from 0 to all later calls [count].
    num_calls : int
        Calls of the session [count].
    first_context_len, tokens_per_turn : int
        The first prompt, and what each turn appends [tokens].
    slow_seconds : float
        How long a slow tool takes, longer than five minutes and shorter than an hour [seconds].
    terms : str
        First choice of :data:`TERMS` [text].

    Returns
    -------
    altair.VConcatChart
        Two panels with one ring and a selector.

    Raises
    ------
    ValueError
        If `num_slow` is no stop of the slider.

    Examples
    --------
    >>> len(session_bill(num_slow=1).vconcat)
    2
    """
    totals, calls = _rows(num_calls, first_context_len, tokens_per_turn, slow_seconds)
    stops = range(num_calls)
    grip = ring("Slow tools", "num_slow", num_slow, stops)
    ticks = list(range(0, num_calls, 2 if num_calls > 10 else 1))
    x = alt.X(
        "stop:Q",
        title=f"tools slower than 5 minutes, of {num_calls - 1}",
        axis=alt.Axis(values=ticks, format="d"),
        scale=alt.Scale(domain=[-0.5, num_calls - 0.5], nice=False),
    )
    base = rows_chart(totals).transform_filter("datum.terms == terms").encode(x=x)
    here = base.transform_filter(grip)
    percent = alt.Y(
        "percent:Q",
        title="bill, % of no caching",
        scale=alt.Scale(domain=[0, 190], nice=False),
        axis=alt.Axis(values=[0, 50, 100, 150]),
    )
    first = base.transform_filter("datum.stop == 0")
    rule = first.mark_rule(stroke=CONTROL.light, strokeDash=list(CONTROL.dash), strokeWidth=1.5)
    words = first.mark_text(align="left", dx=14, dy=15, fontSize=12, fontWeight=600, fill=CONTROL.light)
    top = alt.layer(
        rule.encode(x=alt.value(0), x2=alt.value("width"), y=alt.datum(100)),
        words.encode(x=alt.value(0), y=alt.datum(100), text=alt.value("no caching")),
        base.mark_line(stroke=TOTAL.light).encode(y=percent),
        knob(here, "percent"),
        readout(here, "lost", "lost_text", 16),
        readout(here, "cost", "cost_text", 36),
        grips(base, 180, grip),
    ).properties(width=WIDTH, height=180)
    prompt_lens = [call.prompt_len for call in agent_session(num_calls, first_context_len, tokens_per_turn).calls]
    bottom = _call_panel(calls, prompt_lens, grip)
    return (
        alt.vconcat(top, bottom)
        .add_params(selector("terms", "Lifetime paid for", list(TERMS), terms))
        .properties(
            description=(
                f"Two panels. Above: the bill of a session of {num_calls} calls in percent of the bill without caching,"
                f" over the number of tools that take longer than five minutes: with the five-minute lifetime it rises"
                f" from {totals[0]['percent']} to {totals[num_calls - 1]['percent']} percent, with one hour it stays at"
                f" {totals[num_calls]['percent']}. Below: one bar for each call, in thousand token-prices. Outlines are"
                " the price without a cache and grow in a straight line; blue bars found their cache and stay low;"
                " copper bars lost it and stand above their outline."
            ),
            usermeta={"lantern": {"stops": {"ring": [f"{n}" for n in stops]}}},
        )
    )
