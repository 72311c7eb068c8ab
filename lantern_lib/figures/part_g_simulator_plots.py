"""Explorable plots of the workbench and of questions 2 and 3: sweeps of the simulator, computed beforehand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import altair as alt

from lantern_lib.figures.explore import WIDTH, grips, knob, label, readout, ring, rows_chart, selector
from lantern_lib.figures.promise_panels import promise_panels, promise_row
from lantern_lib.figures.roles import ARITHMETIC, CONTROL, MEMORY, USER, Role
from lantern_lib.studies.bench import kept_up_to
from lantern_lib.studies.designs import NUM_REPLICAS, SPLITS, highest_rate, turns_rate

#: Promises on the time per token that the plot of the designs offers [milliseconds].
PACES = (30, 50, 100)
TTFT_LIMIT = 2.0
CACHES = {"none": "no cache", "pool": "GPU memory", "host": "GPU and host memory"}


def _chunk(chunk: int) -> str:
    return f"{chunk:,} tokens" if chunk else "whole prompts"


def _hit(percent: int) -> str:
    return f"{percent}%" if percent else "none"


def _drafts(count: int) -> str:
    return f"{count} drafts" if count else "off"


def _knee_rows(grid: Mapping[str, Any]) -> list[dict[str, Any]]:
    rates, rows = grid["rates"], []
    for each in grid["settings"]:
        ttft, tpot = [value / 1e3 for value in each["ttft"]], [value / 1e4 for value in each["tpot"]]
        kept = kept_up_to(rates, ttft, tpot)
        verdict = f"promises kept up to {kept:g} a second" if kept else "promises broken from the start"
        if kept == rates[-1]:
            verdict = f"promises kept beyond {kept:g} a second"
        levels = {
            "chunk": _chunk(each["chunk"]),
            "cap": str(each["max_batch"]),
            "hit": _hit(each["hit_percent"]),
            "drafts": _drafts(each["draft_len"]),
        }
        for stop, (rate, first, pace) in enumerate(zip(rates, ttft, tpot, strict=True)):
            rows.append(levels | promise_row(stop, rate, first, pace) | {"verdict": verdict})
    return rows


def knee(
    grid: Mapping[str, Any],
    *,
    rate: float,
    chunk: int = 512,
    max_batch: int = 64,
    hit_percent: int = 0,
    draft_len: int = 0,
) -> alt.VConcatChart:
    """Plot what users wait for over the rate, for every setting of the workbench.

    Parameters
    ----------
    grid : mapping
        ``book/data/workbench.json``.
    rate : float
        Where the ring stands first, one of its rates [requests/s].
    chunk, max_batch, hit_percent, draft_len : int
        First choices of the four selectors, see ``studies.bench.Setting``.

    Returns
    -------
    altair.VConcatChart
        Two panels with one ring and four selectors; a grey line is the first choice, to compare with.

    Raises
    ------
    ValueError
        If `rate` is no stop of the slider, or the first choice is not in the grid.

    Examples
    --------
    >>> one = {"chunk": 512, "max_batch": 64, "hit_percent": 0, "draft_len": 0, "ttft": [300, 900], "tpot": [200, 600]}
    >>> len(knee({"rates": [1, 2], "settings": [one]}, rate=1).vconcat)
    2
    """
    rows = _knee_rows(grid)
    first = {"chunk": _chunk(chunk), "cap": str(max_batch), "hit": _hit(hit_percent), "drafts": _drafts(draft_len)}
    start = [row for row in rows if all(row[name] == value for name, value in first.items())]
    if not start:
        raise ValueError(f"chunk, max_batch, hit_percent and draft_len must be a setting of the grid, got {first}.")
    grip = ring("Rate", "rate", rate, grid["rates"])
    chosen = " && ".join(f"datum.{name} == {name}" for name in first)
    options = {name: list(dict.fromkeys(row[name] for row in rows)) for name in first}
    names = {"chunk": "Prompts in steps of", "cap": "Batch cap", "hit": "Found in cache", "drafts": "Speculation"}
    return (
        promise_panels(rows, chosen, start, grip, 12)
        .add_params(*(selector(name, names[name], options[name], value) for name, value in first.items()))
        .properties(
            description=(
                "Two panels over the request rate of one replica, one to ten a second, for a chosen step, batch cap,"
                " cache hit and speculation; a grey line shows the first choice. Above, on a logarithmic axis, the 95th"
                " percentile of the time to first token is flat at first and then turns sharply upwards. Below, the"
                " 95th percentile of the time per token rises ahead of it and levels off when the batch is full. Dashed"
                " lines mark the promises of two seconds and fifty milliseconds."
            ),
            usermeta={"lantern": {"stops": {"ring": [f"{r:g}" for r in grid["rates"]]}}},
        )
    )


def reach(sweep: Sequence[Mapping[str, Any]], prompt_len: int, pace_ms: float) -> dict[str, float]:
    """Return the highest rate of every design of the sweep that keeps the promises.

    Parameters
    ----------
    sweep : sequence of mapping
        ``book/data/designs.json``.
    prompt_len : int
        One of its prompt lengths [tokens].
    pace_ms : float
        Promise on the 95th percentile of the time per token; that on the first token is two seconds [milliseconds].

    Returns
    -------
    dict of str to float
        Design to rate of the whole fleet [requests/s].

    Examples
    --------
    >>> row = {"design": "separate", "prompt_len": 500, "rates": [1, 2], "ttft": [0.1, 0.1], "tpot": [0.01, 0.04]}
    >>> reach([row], 500, 50)
    {'separate': 2}
    """
    return {
        row["design"]: highest_rate(row["rates"], row["ttft"], row["tpot"], TTFT_LIMIT, pace_ms / 1e3)
        for row in sweep
        if row["prompt_len"] == prompt_len
    }


def best_split(found: Mapping[str, float]) -> int:
    """Return the split into pools that reaches the highest rate.

    Parameters
    ----------
    found : mapping of str to float
        What :func:`reach` returns.

    Returns
    -------
    int
        Replicas that read prompts [replicas].

    Examples
    --------
    >>> best_split({"pools-3": 4.0, "pools-4": 9.0, "pools-5": 7.0, "separate": 11.0})
    4
    """
    return max((number for number in SPLITS if f"pools-{number}" in found), key=lambda n: found[f"pools-{n}"])


def _design_rows(sweep: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    lengths = sorted({row["prompt_len"] for row in sweep})
    rows = []
    for pace in PACES:
        for stop, length in enumerate(lengths):
            found = reach(sweep, length, pace)
            split, turns = best_split(found), turns_rate(length) / 100
            cost = {
                name: 100 * (1 - found[name] / found["free"]) for name in ("separate", "chunked-512", f"pools-{split}")
            }
            rows.append(
                {
                    "pace": f"{pace} ms",
                    "stop": stop,
                    "length": length,
                    "own": round(found["separate"] / turns, 1),
                    "small": round(found["chunked-512"] / turns, 1),
                    "pools": round(found[f"pools-{split}"] / turns, 1),
                    "split": split,
                    "rate_text": f"own {found['separate']:.0f}, chunks {found['chunked-512']:.0f},"
                    f" pools {found[f'pools-{split}']:.0f} a second",
                    "cost_text": f"prompts cost {cost['separate']:.0f}, {cost['chunked-512']:.0f},"
                    f" {cost[f'pools-{split}']:.0f}% of it",
                    "split_text": f"{split} of {NUM_REPLICAS} replicas read prompts",
                }
            )
    return rows


def _legend(names: list[tuple[str, Role]]) -> list[alt.Chart]:
    """Name curves in the lower left corner of a panel of 220 pixels, the last one on top."""
    return [
        rows_chart([{"name": words}])
        .mark_text(align="left", fontSize=12.5, fontWeight=600, fill=role.light)
        .encode(x=alt.value(14), y=alt.value(204 - 19 * number), text="name:N")
        for number, (words, role) in enumerate(names)
    ]


def designs(sweep: Sequence[Mapping[str, Any]], *, prompt_len: int, pace_ms: int = 50) -> alt.VConcatChart:
    """Plot what a fleet of eight can serve as promised, over the prompt length, for each design.

    Parameters
    ----------
    sweep : sequence of mapping
        ``book/data/designs.json``.
    prompt_len : int
        Where the ring stands first, one of its prompt lengths [tokens].
    pace_ms : int
        First choice of :data:`PACES` [milliseconds].

    Returns
    -------
    altair.VConcatChart
        Two panels with one ring and a selector.

    Raises
    ------
    ValueError
        If `prompt_len` is no stop of the slider.

    Examples
    --------
    >>> names = ("free", "separate", "chunked-512", "chunked-2048", "pools-5")
    >>> one = {"prompt_len": 500, "rates": [1, 2], "ttft": [0.1, 0.1], "tpot": [0.01, 0.04]}
    >>> len(designs([one | {"design": name} for name in names], prompt_len=500).vconcat)
    2
    """
    rows = _design_rows(sweep)
    lengths = sorted({row["length"] for row in rows})
    grip = ring("Prompt", "prompt_len", prompt_len, lengths)
    x = alt.X(
        "length:Q",
        title="tokens of each prompt",
        scale=alt.Scale(type="log", domain=[450, 9000], nice=False),
        axis=alt.Axis(values=lengths, format=",d"),
    )
    base = rows_chart(rows).transform_filter("datum.pace == pace").encode(x=x)
    here = base.transform_filter(grip)
    y: dict[str, Any] = {
        "title": "served as promised, % of what turns would do",
        "scale": alt.Scale(domain=[0, 170], nice=False),
        "axis": alt.Axis(values=[0, 25, 50, 75, 100, 125]),
    }
    curves: tuple[tuple[str, str, Role], ...] = (
        ("own", "steps of their own", ARITHMETIC),
        ("small", "chunks, step of 512", USER),
        ("pools", "two pools", CONTROL),
    )
    lines = [
        base.mark_line(stroke=r.light, strokeDash=list(r.dash)).encode(y=alt.Y(f"{f}:Q", **y)) for f, _, r in curves
    ]
    names = [(words, role) for _, words, role in curves]
    top = alt.layer(
        *lines,
        *_legend(names),
        *(knob(here, field, first=not number) for number, (field, *_) in enumerate(curves)),
        readout(here, "rate", "rate_text", 16),
        readout(here, "cost", "cost_text", 36),
        grips(base, 220, grip),
    ).properties(width=WIDTH, height=220)
    steps = alt.Y("split:Q", title="replicas for prompts", scale=alt.Scale(domain=[2, 8], nice=False))
    bottom = alt.layer(
        base.mark_line(stroke=CONTROL.light, strokeDash=list(CONTROL.dash)).encode(y=steps),
        knob(here, "split", first=False),
        readout(here, "split", "split_text", 16),
    ).properties(width=WIDTH, height=120)
    return (
        alt.vconcat(top, bottom)
        .add_params(selector("pace", "Promised time per token", [f"{p} ms" for p in PACES], f"{pace_ms} ms"))
        .properties(
            description=(
                f"Two panels over the prompt length, {lengths[0]:,} to {lengths[-1]:,} tokens, for a fleet of"
                f" {NUM_REPLICAS} replicas and a chosen promise on the time per token. Above, the rate served as"
                " promised, in percent of what the fleet could do if prompts and answers took turns, for prompts in"
                " steps of their own, for chunks and for two pools: where the promise is loose the three lie close"
                " together, where it is tight steps of their own fall to a half and two pools lead. Below, the best"
                " number of replicas that read prompts rises with the length."
            ),
            usermeta={"lantern": {"stops": {"ring": [f"{length:,}" for length in lengths]}}},
        )
    )


def _agent_rows(sweep: Sequence[Mapping[str, Any]], seeds: list[int], counts: list[int]) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    for number, seed in enumerate(seeds, 1):
        for stop, count in enumerate(counts):
            each = {r["cache"]: r for r in sweep if r["seed"] == seed and r["agents"] == count}
            row: dict[str, Any] = {"draw": f"draw {number}", "stop": stop, "agents": count}
            for cache, one in each.items():
                row |= {cache: one["calls"], f"{cache}_wait": max(0.1, one["ttft95"])}
            shown = [f"{each[cache]['calls']:.0f}" for cache in CACHES]
            row["calls_text"] = f"calls an hour: {shown[0]}, {shown[1]}, {shown[2]}"
            row["found_text"] = (
                f"found: {100 * each['pool']['found']:.0f}% GPU, {100 * each['host']['found']:.0f}% with host"
            )
            row["wait_text"] = f"slowest 5% wait {each['pool']['ttft95']:,.0f} or {each['host']['ttft95']:,.0f} s"
            rows.append(row)
    return rows


def agents(sweep: Sequence[Mapping[str, Any]], *, num_agents: int, draw: int = 0) -> alt.VConcatChart:
    """Plot what one replica does for agents at work, over their number, for three kinds of cache.

    Parameters
    ----------
    sweep : sequence of mapping
        ``book/data/desks.json``.
    num_agents : int
        Where the ring stands first, one of its numbers [sessions].
    draw : int
        First choice among the sweep's draws, counted from 0.

    Returns
    -------
    altair.VConcatChart
        Two panels with one ring and a selector.

    Raises
    ------
    ValueError
        If `num_agents` is no stop of the slider.

    Examples
    --------
    >>> one = {"seed": 5, "agents": 2, "calls": 60.0, "ttft95": 2.0, "found": 0.9}
    >>> len(agents([one | {"cache": cache} for cache in CACHES], num_agents=2).vconcat)
    2
    """
    seeds, counts = sorted({row["seed"] for row in sweep}), sorted({row["agents"] for row in sweep})
    rows = _agent_rows(sweep, seeds, counts)
    grip = ring("Agents", "num_agents", num_agents, counts)
    x = alt.X(
        "agents:Q",
        title="agents at work on one replica",
        scale=alt.Scale(type="log", domain=[0.9, 54], nice=False),
        axis=alt.Axis(values=[1, 2, 4, 8, 16, 32, 48], format="d"),
    )
    base = rows_chart(rows).transform_filter("datum.draw == draw").encode(x=x)
    here = base.transform_filter(grip)
    roles = {"none": ARITHMETIC, "pool": MEMORY, "host": USER}
    calls: dict[str, Any] = {"title": "calls an hour", "scale": alt.Scale(domain=[0, 1250], nice=False)}
    wait: dict[str, Any] = {
        "title": "first token, 95th percentile, s",
        "scale": alt.Scale(type="log", domain=[1, 2000], nice=False),
        "axis": alt.Axis(values=[1, 10, 100, 1000]),
    }

    def lines(suffix: str, y: dict[str, Any]) -> list[alt.Chart]:
        return [
            base.mark_line(stroke=role.light, strokeDash=list(role.dash)).encode(y=alt.Y(f"{name}{suffix}:Q", **y))
            for name, role in roles.items()
        ]

    top = alt.layer(
        *lines("", calls),
        *(
            label(base, CACHES[name], "agents", name, role, at, align="right", dx=dx, dy=dy)
            for (name, role), (at, dx, dy) in zip(
                roles.items(), ((48, 0, 16), (48, 0, -12), (32, -6, -12)), strict=True
            )
        ),
        *(knob(here, name, first=not number) for number, name in enumerate(("host", "pool", "none"))),
        readout(here, "calls", "calls_text", 16),
        readout(here, "found", "found_text", 36),
        grips(base, 220, grip),
    ).properties(width=WIDTH, height=220)
    bottom = alt.layer(
        *lines("_wait", wait),
        *(knob(here, f"{name}_wait", first=False) for name in roles),
        readout(here, "wait", "wait_text", 16),
    ).properties(width=WIDTH, height=150)
    names = [f"draw {number}" for number in range(1, len(seeds) + 1)]
    return (
        alt.vconcat(top, bottom)
        .add_params(selector("draw", "Sessions drawn", names, names[draw]))
        .properties(
            description=(
                f"Two panels over the number of agents at work on one replica, {counts[0]} to {counts[-1]}. Above, the"
                " calls finished in an hour: without a cache they level off early; with idle prefixes in GPU memory"
                " they grow in proportion and then collapse to the same level; with the host's memory behind it they"
                " go on growing several times as far. Below, on a logarithmic axis, the 95th percentile of the time to"
                " first token jumps by an order of magnitude or two where the collapse is."
            ),
            usermeta={"lantern": {"stops": {"ring": [str(count) for count in counts]}}},
        )
    )
