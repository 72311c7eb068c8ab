"""Explorable plots of page D5: the lifetime of a cache, its size, and how requests arrive."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import altair as alt

from lantern_lib import kv_cache, step
from lantern_lib.figures.explore import WIDTH, grips, knob, label, readout, ring, rows_chart, selector
from lantern_lib.figures.roles import ARITHMETIC, CONTROL, MEMORY, PLOT_MUTED, TOTAL, USER, Role
from lantern_lib.hardware import Replica
from lantern_lib.model_config import ModelConfig
from lantern_lib.units import require_one_of
from lantern_lib.workload.gaps import machine_seconds

#: The traces of the arrivals plot, as readers know them.
TRACES = {"azure-chat": "Azure chat", "azure-code": "Azure code", "mooncake": "Mooncake chat"}
_MARKS = ((300, "5 min"), (3600, "1 h"))


def _duration(seconds: float) -> str:
    if seconds < 60:
        return f"{seconds:g} s"
    return f"{seconds / 60:g} min" if seconds < 3600 else f"{seconds / 3600:g} h"


def _line(base: alt.Chart, field: str, role: Role, **encoding: Any) -> alt.Chart:
    mark = base.mark_line(stroke=role.light, strokeDash=list(role.dash))
    found: alt.Chart = mark.encode(y=alt.Y(f"{field}:Q", **encoding))
    return found


def _posts(marks: tuple[tuple[float, str], ...], x: alt.X, y: int, align: str) -> list[alt.Chart]:
    """Return vertical rules below the readouts, with a name beside each at a height of the panel."""
    base = rows_chart([{"at": at, "name": name} for at, name in marks]).encode(x=x)
    rule = base.mark_rule(stroke=CONTROL.light, strokeDash=list(CONTROL.dash), strokeWidth=1.5)
    dx = 6 if align == "left" else -6
    text = base.mark_text(align=align, dx=dx, fontSize=12, fontWeight=600, fill=CONTROL.light)
    return [rule.encode(y=alt.value(50), y2=alt.value("height")), text.encode(y=alt.value(y), text="name:N")]


def _lifetime_rows(
    agents: Mapping[str, Any], model: ModelConfig, replica: Replica, host_bytes: float, host_share: float
) -> list[dict[str, Any]]:
    per_token = kv_cache.bytes_per_token(model)
    pool = kv_cache.memory_budget(model, replica).pool_bytes / per_token
    typical = round(agents["prompt_len"]["0.5"])
    recompute = step.prefill_step(model, replica, typical).total_seconds / typical
    total = agents["prompt_tokens"]
    rows = []
    for stop, row in enumerate(agents["lifetimes"]):
        bills = [100 * (write * row["written"] + 0.1 * row["read"]) / total for write in (1.25, 2.0)]
        hours = [
            machine_seconds(row["written"], row["held_token_seconds"], recompute, capacity, share) / 3600
            for capacity, share in ((pool, 1.0), (host_bytes / per_token, host_share))
        ]
        name = _duration(row["lifetime"])
        rows.append(
            {
                "stop": stop,
                "at": row["lifetime"],
                "low": round(bills[0], 2),
                "high": round(bills[1], 2),
                "gpu": round(hours[0], 3),
                "host": round(hours[1], 3),
                "lost_text": f"{name}: {row['lost_calls']} of {agents['gaps']} calls too late",
                "bill_text": f"bill: {bills[0]:.1f} or {bills[1]:.1f} percent",
                "gpu_text": f"in GPU memory {hours[0]:.2f} h",
                "host_text": f"in host memory {hours[1]:.2f} h",
            }
        )
    return rows


def _bill_panel(base: alt.Chart, here: alt.Chart, x: alt.X, grip: alt.Parameter) -> alt.LayerChart:
    bill: dict[str, Any] = {
        "title": "bill, % of no cache",
        "scale": alt.Scale(type="log", domain=[8, 500], nice=False),
    }
    bill["axis"] = alt.Axis(values=[10, 20, 50, 100, 200])
    panel: alt.LayerChart = alt.layer(
        *_posts(_MARKS, x, 192, "right"),
        _line(base, "low", MEMORY, **bill),
        _line(base, "high", ARITHMETIC, **bill),
        label(base, "written at 1.25", "at", "low", MEMORY, 10, align="left", dx=-14, dy=58),
        label(base, "written at 2", "at", "high", ARITHMETIC, 30, align="left", dx=10, dy=-6),
        knob(here, "low"),
        knob(here, "high", first=False),
        readout(here, "bill", "bill_text", 37, right=True),
        readout(here, "lost", "lost_text", 16, right=True),
        grips(base, 200, grip),
    ).properties(width=WIDTH, height=200)
    return panel


def _cost_panel(base: alt.Chart, here: alt.Chart) -> alt.LayerChart:
    cost: dict[str, Any] = {
        "title": "machine time, hours",
        "scale": alt.Scale(type="log", domain=[0.1, 30], nice=False),
    }
    cost["axis"] = alt.Axis(values=[0.1, 0.3, 1, 3, 10, 30])
    panel: alt.LayerChart = alt.layer(
        _line(base, "gpu", TOTAL, **cost),
        _line(base, "host", USER, **cost),
        label(base, "kept in GPU memory", "at", "gpu", TOTAL, 900, align="right", dy=-10),
        label(base, "kept in host memory", "at", "host", USER, 10800, align="right", dy=20),
        knob(here, "gpu", first=False),
        knob(here, "host", first=False),
        readout(here, "gpu", "gpu_text", 16),
        readout(here, "host", "host_text", 36),
    ).properties(width=WIDTH, height=170)
    return panel


def lifetimes(
    agents: Mapping[str, Any],
    model: ModelConfig,
    replica: Replica,
    *,
    lifetime_seconds: int = 300,
    host_bytes: float = 1e12,
    host_share: float = 0.05,
) -> alt.VConcatChart:
    """Plot the bill of the agent sessions, and their cost on one's own machine, over the lifetime of the cache.

    Parameters
    ----------
    agents : mapping
        The ``agents`` of the summary of traces.
    model : ModelConfig
        Whose cache is kept on one's own machine.
    replica : Replica
        The machine.
    lifetime_seconds : int
        Where the ring stands first, a lifetime of the summary [seconds].
    host_bytes : float
        Host memory for caches [bytes].
    host_share : float
        Its price over the machine's price [ratio].

    Returns
    -------
    altair.VConcatChart
        Two panels with one ring.

    Raises
    ------
    ValueError
        If `lifetime_seconds` is no stop of the slider.

    Examples
    --------
    >>> from lantern_lib import H100, LANTERN_70B
    >>> row = {"lifetime": 300, "lost_calls": 1, "written": 10, "read": 90, "held_token_seconds": 1e3}
    >>> agents = {"lifetimes": [row], "prompt_tokens": 100, "gaps": 2, "prompt_len": {"0.5": 50}}
    >>> len(lifetimes(agents, LANTERN_70B, Replica(H100, 4)).vconcat)
    2
    """
    rows = _lifetime_rows(agents, model, replica, host_bytes, host_share)
    stops = [row["at"] for row in rows]
    grip = ring("Lifetime", "lifetime_seconds", lifetime_seconds, stops)
    x = alt.X(
        "at:Q",
        title="lifetime of an unused cache",
        scale=alt.Scale(type="log", domain=[4.5, 12000], nice=False),
        axis=alt.Axis(
            values=[5, 10, 30, 60, 300, 900, 3600, 10800],
            labelExpr="datum.value < 60 ? datum.value + ' s' : datum.value < 3600 ? datum.value / 60 + ' min'"
            " : datum.value / 3600 + ' h'",
        ),
    )
    base = rows_chart(rows).encode(x=x)
    here = base.transform_filter(grip)
    panels = _bill_panel(base, here, x, grip), _cost_panel(base, here)
    return alt.vconcat(*panels).properties(
        description=(
            f"Two panels over the lifetime of an unused cache, {_duration(stops[0])} to {_duration(stops[-1])}, for the"
            " calls of agent sessions. Above, the bill in percent of a bill without a cache: it falls steeply up to"
            " about half a minute and slowly to the end, for both prices of writing. Below, the hours of a machine of"
            " one's own: in GPU memory the cost is least at about half a minute and rises after it; in host memory it"
            " falls for about half an hour and then rises a little."
        ),
        usermeta={"lantern": {"stops": {"ring": [_duration(s) for s in stops]}}},
    )


def reuse(mooncake: Mapping[str, Any], *, capacity_tokens: int, pool_tokens: float) -> alt.LayerChart:
    """Plot how much of a chat service's input a cache already has, over the size of the cache.

    Parameters
    ----------
    mooncake : mapping
        The ``mooncake`` of the summary of traces.
    capacity_tokens : int
        Where the ring stands first, a size of the summary [tokens].
    pool_tokens : float
        The cache of one machine, marked in the plot [tokens].

    Returns
    -------
    altair.LayerChart
        One panel with a ring.

    Raises
    ------
    ValueError
        If `capacity_tokens` is no stop of the slider.

    Examples
    --------
    >>> summary = {"requests": 9, "reuse": {"lru": [[100_000, 0.04], [200_000, 0.05]], "unlimited": 0.06}}
    >>> len(reuse(summary, capacity_tokens=100_000, pool_tokens=448_000).layer) > 5
    True
    """
    found = mooncake["reuse"]
    sizes = [size for size, _ in found["lru"]]
    grip = ring("Cache", "capacity_tokens", capacity_tokens, sizes)
    rows = [
        {
            "stop": stop,
            "at": size / 1e6,
            "percent": round(100 * share, 2),
            "text": f"{size / 1e6:g} million tokens: {100 * share:.1f} percent reused",
            "machines": f"{size / pool_tokens:,.0f} machines" if size > 1.5 * pool_tokens else "one machine",
        }
        for stop, (size, share) in enumerate(found["lru"])
    ]
    x = alt.X(
        "at:Q",
        title="cache, million tokens",
        scale=alt.Scale(type="log", domain=[0.09, 110], nice=False),
        axis=alt.Axis(values=[0.1, 0.3, 1, 3, 10, 30, 100], format="~g"),
    )
    base = rows_chart(rows).encode(x=x)
    here = base.transform_filter(grip)
    scale: dict[str, Any] = {"title": "blocks found, percent", "scale": alt.Scale(domain=[0, 48], nice=False)}
    ceiling = base.transform_filter(f"datum.stop == {len(rows) - 1}")
    limit = alt.YDatum(round(100 * found["unlimited"], 2))
    rule = ceiling.mark_rule(stroke=PLOT_MUTED, strokeDash=[2, 4])
    return alt.layer(
        *_posts(((pool_tokens / 1e6, "one machine"),), x, 130, "left"),
        rule.encode(x=alt.value(0), x2=alt.value("width"), y=limit),
        ceiling.mark_text(align="right", dy=-8, fontSize=12, fontWeight=600, fill=PLOT_MUTED).encode(
            x=alt.value("width"), y=limit, text=alt.value("nothing forgotten")
        ),
        _line(base, "percent", MEMORY, **scale),
        knob(here, "percent"),
        readout(here, "reuse", "text", 16, right=True),
        readout(here, "machines", "machines", 214, right=True),
        grips(base, 230, grip),
    ).properties(
        width=WIDTH,
        height=230,
        description=(
            f"One curve: the share of blocks of {mooncake['requests']:,} requests that an LRU cache has, over its size"
            f" on a logarithmic axis, {sizes[0] / 1e6:g} to {sizes[-1] / 1e6:g} million tokens. It is flat near 4"
            " percent up to one million, rises steeply to about 20 million and stays just below what a cache without"
            " a limit would find. A line marks what one machine holds, far to the left of the rise."
        ),
        usermeta={"lantern": {"stops": {"ring": [f"{size / 1e6:g} million" for size in sizes]}}},
    )


def arrivals(summary: Mapping[str, Any], *, trace: str = "azure-code") -> alt.LayerChart:
    """Plot the requests of each minute beside what Poisson arrivals of the same rate would do.

    Parameters
    ----------
    summary : mapping
        The summary of traces.
    trace : str
        First choice, a key of :data:`TRACES` [text].

    Returns
    -------
    altair.LayerChart
        One panel with a selector.

    Raises
    ------
    ValueError
        If `trace` is none of :data:`TRACES`.

    Examples
    --------
    >>> len(arrivals({key: {"per_minute": [3, 5]} for key in TRACES}).layer)
    4
    """
    require_one_of("trace", trace, TRACES, "These have requests by the minute.")
    rows = []
    for key, name in TRACES.items():
        counts = summary[key]["per_minute"]
        mean = sum(counts) / len(counts)
        spread = 2 * math.sqrt(mean)
        outside = sum(abs(count - mean) > spread for count in counts)
        words = {
            "low": round(mean - spread, 1),
            "high": round(mean + spread, 1),
            "text": f"{outside} of {len(counts)} minutes outside",
        }
        # What is the same for all minutes stands in the first row only.
        rows += [{"trace": name, "minute": n, "count": c} | (words if n == 0 else {}) for n, c in enumerate(counts)]
    base = rows_chart(rows).transform_filter("datum.trace == trace")
    once = base.transform_filter("datum.minute == 0")
    y: dict[str, Any] = {"title": "requests in the minute", "scale": alt.Scale(domain=[0, 850], nice=False)}
    x = alt.X("minute:Q", title="minute of the trace", scale=alt.Scale(domain=[-1, 59], nice=False))
    band = once.mark_rect(fill=TOTAL.light, opacity=0.22).encode(
        x=alt.value(0), x2=alt.value("width"), y=alt.Y("low:Q", **y), y2="high:Q"
    )
    words = once.mark_text(align="left", fontSize=12, fontWeight=600, fill=TOTAL.light).encode(
        x=alt.value(14), y=alt.value(34), text=alt.value("band: 95 percent of minutes, if Poisson")
    )
    bars = base.mark_bar(fill=USER.light, width=5).encode(x=x, y=alt.Y("count:Q", **y))
    return (
        alt.layer(band, bars, words, readout(once, "outside", "text", 18))
        .add_params(selector("trace", "Trace", list(TRACES.values()), TRACES[trace]))
        .properties(
            width=WIDTH,
            height=220,
            description=(
                "Bars: requests in each minute of an hour, for one of three traces. A band marks where 95 percent of"
                " the minutes would lie if arrivals were Poisson. The code trace jumps between none and several"
                " hundred; the Azure chat trace drifts from half the mean to well above it; most minutes of the"
                " Mooncake trace are in the band, below it at first and above it at the end."
            ),
        )
    )
