"""Two panels over the rate, shared by the workbench and the capstone: both waits, and the promise on each."""

from __future__ import annotations

from typing import Any

import altair as alt

from lantern_lib.figures.explore import WIDTH, grips, knob, readout, rows_chart
from lantern_lib.figures.roles import CONTROL, MEMORY, PLOT_MUTED, USER
from lantern_lib.studies.bench import PROMISE

_WAIT: dict[str, Any] = {
    "title": "first token, 95th percentile, s",
    "scale": alt.Scale(type="log", domain=[0.03, 50_000], nice=False, clamp=True),
    "axis": alt.Axis(values=[0.1, 1, 10, 100, 1000]),
}
_PACE: dict[str, Any] = {
    "title": "time per token, 95th percentile, ms",
    "scale": alt.Scale(domain=[0, 110], nice=False),
}


def short_seconds(seconds: float) -> str:
    """Return a wait as the readouts say it.

    Parameters
    ----------
    seconds : float
        The wait [seconds].

    Returns
    -------
    str
        Hundredths below ten seconds, whole ones above [text].

    Examples
    --------
    >>> short_seconds(0.317), short_seconds(65.2)
    ('0.32 s', '65 s')
    """
    return f"{seconds:.2f} s" if seconds < 10 else f"{seconds:.0f} s"


def promise_row(stop: int, rate: float, ttft_seconds: float, tpot_seconds: float) -> dict[str, Any]:
    """Return what the panels show of one rate.

    Parameters
    ----------
    stop : int
        Its place on the slider.
    rate : float
        Requests per second [requests/s].
    ttft_seconds, tpot_seconds : float
        A percentile of each [seconds].

    Returns
    -------
    dict
        ``stop``, ``rate``, ``ttft`` [seconds], ``tpot`` [milliseconds] and the words of both readouts.

    Examples
    --------
    >>> promise_row(0, 2, 0.317, 0.0252)["ttft_text"]
    'at 2 a second: first token 0.32 s'
    """
    return {
        "stop": stop,
        "rate": rate,
        # A logarithmic axis has no place for a wait of nothing.
        "ttft": max(0.03, ttft_seconds),
        "tpot": round(1e3 * tpot_seconds, 1),
        "ttft_text": f"at {rate:g} a second: first token {short_seconds(ttft_seconds)}",
        "tpot_text": f"{1e3 * tpot_seconds:.0f} ms a token",
    }


def promise_line(at: float | None, words: str, y: dict[str, Any], dy: int) -> list[alt.Chart]:
    """Return a dashed line across a panel, with its words at the right end.

    Parameters
    ----------
    at : float
        Where it lies [unit of the axis].
    words : str
        What it says [text].
    y : dict
        Title, scale and axis of the panel.
    dy : int
        How far the words are below the line [pixels].

    Returns
    -------
    list of altair.Chart
        Two layers.

    Examples
    --------
    >>> [layer.mark.type for layer in promise_line(2.0, "promise: 2 s", {}, -8)]
    ['rule', 'text']
    """
    base, height = rows_chart([{"at": at, "name": words}]), alt.Y("at:Q", **y)
    rule = base.mark_rule(stroke=CONTROL.light, strokeDash=list(CONTROL.dash), strokeWidth=1.5)
    text = base.mark_text(align="right", dx=-4, dy=dy, fontSize=12, fontWeight=600, fill=CONTROL.light)
    return [
        rule.encode(x=alt.value(0), x2=alt.value("width"), y=height),
        text.encode(x=alt.value("width"), y=height, text="name:N"),
    ]


def promise_panels(
    rows: list[dict[str, Any]], chosen: str, first: list[dict[str, Any]], grip: alt.Parameter, pace_dy: int
) -> alt.VConcatChart:
    """Return the panels: the wait for the first token, and under it the time per token.

    Parameters
    ----------
    rows : list of dict
        What :func:`promise_row` returns, for every setting, with a ``verdict`` on it.
    chosen : str
        The expression that keeps the rows of the chosen setting [text].
    first : list of dict
        Rows of the setting that stays visible in grey, to compare with.
    grip : altair.Parameter
        The ring.
    pace_dy : int
        How far the words of the lower promise are below its line [pixels].

    Returns
    -------
    altair.VConcatChart
        Two panels with one ring, without selectors and description.

    Examples
    --------
    >>> from lantern_lib.figures.explore import ring
    >>> row = promise_row(0, 2, 0.317, 0.0252) | {"verdict": "kept"}
    >>> len(promise_panels([row], "true", [row], ring("Rate", "rate", 2, [2]), -16).vconcat)
    2
    """
    x = alt.X("rate:Q", title="requests a second", scale=alt.Scale(domain=[0.8, 10.2], nice=False))
    base = rows_chart(rows).transform_filter(chosen).encode(x=x)
    here = base.transform_filter(grip)
    kept = [{name: row[name] for name in ("rate", "ttft", "tpot")} for row in first]
    before = rows_chart(kept).encode(x=x).mark_line(stroke=PLOT_MUTED, strokeDash=[2, 2], strokeWidth=1.5)
    wait, pace = alt.Y("ttft:Q", **_WAIT), alt.Y("tpot:Q", **_PACE)
    top = alt.layer(
        *promise_line(PROMISE.ttft_seconds, "promise: 2 s", _WAIT, -8),
        before.encode(y=wait),
        base.mark_line(stroke=USER.light).encode(y=wait),
        knob(here, "ttft"),
        readout(here, "ttft", "ttft_text", 16),
        readout(here, "verdict", "verdict", 36),
        grips(base, 220, grip),
    ).properties(width=WIDTH, height=220)
    bottom = alt.layer(
        *promise_line(1e3 * (PROMISE.tpot_seconds or 0), "promise: 50 ms", _PACE, pace_dy),
        before.encode(y=pace),
        base.mark_line(stroke=MEMORY.light).encode(y=pace),
        knob(here, "tpot", first=False),
        readout(here, "tpot", "tpot_text", 16),
    ).properties(width=WIDTH, height=170)
    return alt.vconcat(top, bottom)
