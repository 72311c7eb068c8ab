"""The explorable plots of page F3: a surge against a cold start, and the answers a comparison takes."""

from __future__ import annotations

from typing import Any

import altair as alt

from lantern_lib import rollout
from lantern_lib.autoscale import Fleet, Outcome, Policy, run_surge, surge
from lantern_lib.figures.explore import WIDTH, grips, knob, label, readout, ring, rows_chart, selector
from lantern_lib.figures.roles import ARITHMETIC, CONTROL, MEMORY, TOTAL, USER, Role

COLD_STARTS = (30, 60, 90, 120, 180, 240, 300, 420, 600)
POLICIES: tuple[tuple[str, Policy, Role], ...] = (
    ("cpu", Policy("host CPU", "cpu"), MEMORY),
    ("busy", Policy("GPU busy", "busy"), ARITHMETIC),
    ("queue", Policy("queue", "queue"), CONTROL),
    ("ready", Policy("prepared", "queue", foresight_seconds=120, num_warm=2, max_wait_seconds=10), TOTAL),
)


def surge_demand(base: float, peak: float) -> tuple[float, ...]:
    """Return the demand of the experiment: a climb of a minute, twenty minutes at the height, forty in all.

    Parameters
    ----------
    base, peak : float
        Requests in a second before and at the height [1/s].

    Returns
    -------
    tuple of float
        Requests that arrive in each second [1/s].

    Examples
    --------
    >>> demand = surge_demand(20, 50)
    >>> len(demand), demand[299], demand[359], demand[1559], demand[1619]
    (2400, 20.0, 50.0, 50.0, 20.0)
    """
    return surge(base, peak, start=300, rise=60, hold=1200, total=2400)


Runs = dict[str, list[Outcome]]


def _runs(demand: tuple[float, ...], num_replicas: int, replica_rate: float) -> Runs:
    fleets = [Fleet(num_replicas, replica_rate, cold) for cold in COLD_STARTS]
    return {key: [run_surge(demand, fleet, policy) for fleet in fleets] for key, policy, _ in POLICIES}


def _readings(runs: Runs) -> list[dict[str, Any]]:
    """Return a row for each stop of the ring."""
    rows = []
    for stop, cold in enumerate(COLD_STARTS):
        row: dict[str, Any] = {"stop": stop, "cold": cold}
        for key, policy, _ in POLICIES:
            outcome = runs[key][stop]
            row[key] = round(outcome.late_seconds / 60, 2)
            row[f"{key}_text"] = f"{policy.name}: {row[key]:.1f} min, {outcome.longest_wait_seconds:.0f} s"
        row["ready_text"] = f"prepared: {row['ready']:.1f} min, {runs['ready'][stop].shed:,.0f} refused"
        rows.append(row)
    return rows


def _steps(runs: Runs, replica_rate: float) -> list[dict[str, Any]]:
    """Return what the fleet can serve, a row for each moment at which that changes."""
    rows = []
    for key, policy, _ in POLICIES:
        for stop, outcome in enumerate(runs[key]):
            sizes, last = outcome.fleet, len(outcome.fleet) - 1
            for now, size in enumerate(sizes):
                if now in (0, last) or size != sizes[now - 1]:
                    minute = round(now / 60, 2)
                    rows.append(
                        {"scaler": policy.name, "stop": stop, "minute": minute, "rate": round(size * replica_rate, 1)}
                    )
    return rows


def _demand_rows(demand: tuple[float, ...]) -> list[dict[str, Any]]:
    corners = [
        now
        for now, rate in enumerate(demand)
        if now in (0, len(demand) - 1) or demand[now + 1] - rate != rate - demand[now - 1]
    ]
    return [{"minute": round(now / 60, 2), "rate": round(demand[now], 1)} for now in corners]


def _fleet_panel(demand: tuple[float, ...], runs: Runs, replica_rate: float, grip: alt.Parameter) -> alt.LayerChart:
    x = alt.X("minute:Q", title="minutes", scale=alt.Scale(domain=[0, 40], nice=False))
    most = max(max(outcome.fleet) for outcomes in runs.values() for outcome in outcomes) * replica_rate
    y = alt.Y("rate:Q", title="requests a second", scale=alt.Scale(domain=[0, most * 1.08], nice=False))
    arrives = rows_chart(_demand_rows(demand)).mark_line(stroke=USER.light, strokeDash=list(USER.dash), strokeWidth=2.5)
    steps = rows_chart(_steps(runs, replica_rate)).transform_filter("datum.scaler == scaler").transform_filter(grip)
    words = rows_chart([{"minute": 39, "rate": demand[0], "words": "arrives"}])
    named = rows_chart([{"minute": 0.4, "rate": runs["cpu"][0].fleet[0] * replica_rate, "words": "fleet"}])
    return alt.layer(
        steps.mark_line(interpolate="step-after", stroke=TOTAL.light, strokeWidth=2.5).encode(x=x, y=y),
        arrives.encode(x=x, y=y),
        words.mark_text(align="right", dy=-9, fontSize=12.5, fontWeight=600, fill=USER.light).encode(
            x=x, y=y, text="words:N"
        ),
        named.mark_text(align="left", dy=-9, fontSize=12.5, fontWeight=600, fill=TOTAL.light).encode(
            x=x, y=y, text="words:N"
        ),
    ).properties(width=WIDTH, height=190)


def surge_plot(
    *,
    base: float,
    peak: float,
    num_replicas: int,
    replica_rate: float,
    cold_start_seconds: int,
    scaler: str = "queue",
) -> alt.VConcatChart:
    """Plot a surge and the fleet that follows it, and the minutes late over the cold start, for four autoscalers.

    Parameters
    ----------
    base, peak : float
        Requests in a second before and during the surge [1/s].
    num_replicas : int
        Replicas at the start [count].
    replica_rate : float
        Requests that one of them finishes in a second [1/s].
    cold_start_seconds : int
        Where the ring stands first, one of :data:`COLD_STARTS` [seconds].
    scaler : str
        Whose fleet is shown first, by the name of one of :data:`POLICIES` [text].

    Returns
    -------
    altair.VConcatChart
        Two panels with one ring and a selector.

    Raises
    ------
    ValueError
        If `cold_start_seconds` is no stop of the slider.

    Examples
    --------
    >>> chart = surge_plot(base=20, peak=50, num_replicas=7, replica_rate=4.4, cold_start_seconds=300)
    >>> len(chart.vconcat)
    2
    """
    grip = ring("Cold start", "cold_start_seconds", cold_start_seconds, COLD_STARTS)
    demand = surge_demand(base, peak)
    runs = _runs(demand, num_replicas, replica_rate)
    top = max(outcome.late_seconds for outcome in runs["cpu"]) / 60
    x = alt.X(
        "cold:Q",
        title="seconds until a new replica serves",
        axis=alt.Axis(values=[30, 120, 240, 300, 420, 600]),
        scale=alt.Scale(domain=[0, 620], nice=False),
    )
    rows = rows_chart(_readings(runs)).encode(x=x)
    here = rows.transform_filter(grip)
    scale = alt.Scale(domain=[-1, 1.75 * top], nice=False)
    axis = alt.Axis(values=list(range(0, int(top) + 10, 10)))
    lines = [
        rows.mark_line(stroke=role.light, strokeDash=list(role.dash), strokeWidth=2).encode(
            y=alt.Y(f"{key}:Q", title="minutes late", scale=scale, axis=axis)
        )
        for key, _, role in POLICIES
    ]
    names = [
        label(rows, policy.name, "cold", key, role, 600, dy=18 if key == "cpu" else -8)
        for key, policy, role in POLICIES
    ]
    bottom = alt.layer(
        *lines,
        *names,
        *(knob(here, key, first=key == "queue") for key, _, _ in POLICIES),
        *(readout(here, key, f"{key}_text", 16 + 19 * index) for index, (key, _, _) in enumerate(POLICIES)),
        grips(rows, 280, grip),
    ).properties(width=WIDTH, height=280)
    worst = {key: outcomes[COLD_STARTS.index(cold_start_seconds)].late_seconds / 60 for key, outcomes in runs.items()}
    return (
        alt.vconcat(_fleet_panel(demand, runs, replica_rate, grip), bottom)
        .add_params(selector("scaler", "Fleet of", [policy.name for _, policy, _ in POLICIES], scaler))
        .properties(
            description=(
                f"Two panels. Above: {base:g} requests a second rise to {peak:g} within a minute and stay for twenty;"
                " a staircase shows what the fleet of the chosen autoscaler can serve. Below: minutes in which somebody"
                f" who arrives waits longer than promised, over a cold start of {COLD_STARTS[0]} to {COLD_STARTS[-1]}"
                f" seconds. At {cold_start_seconds} seconds: {worst['cpu']:.1f} minutes by host CPU,"
                f" {worst['busy']:.1f} by busy GPUs, {worst['queue']:.1f} by queue depth, and none where a forecast, a"
                " warm pool and refusals work together."
            ),
            usermeta={"lantern": {"stops": {"ring": [f"{cold} s" for cold in COLD_STARTS]}}},
        )
    )


# Percentage points, in steps that look even on a logarithmic axis.
LOSSES = (0.25, 0.5, 0.75, 1, 1.5, 2, 3, 4, 5, 7.5, 10, 15, 20)
WAYS: tuple[tuple[str, str, Role], ...] = (
    ("change", "texts", MEMORY),
    ("pairs", "twins", CONTROL),
    ("replay", "replay", ARITHMETIC),
    ("sample", "sampled", USER),
)

# Where each curve has its name: the loss, the side, and the offset in pixels.
PLACES = ((0.25, "left", 2, 24), (0.25, "left", 2, 24), (0.5, "right", -4, 18), (0.75, "left", 7, -6))


def _quality_rows(failing: float, scored_rate: float) -> list[dict[str, Any]]:
    rows = []
    for stop, points in enumerate(LOSSES):
        loss = points / 100
        sample = rollout.sampled_answers(failing, failing + loss)
        row: dict[str, Any] = {
            "stop": stop,
            "loss": points,
            "change": rollout.answers_to_see_a_change(loss),
            # Twice as many answers differ as are lost on balance: three get worse for one that gets better.
            "pairs": rollout.paired_answers(1.5 * loss, 0.5 * loss),
            "replay": rollout.replay_plan(failing, failing + loss).num_prompts,
            "sample": sample,
        }
        for key, words, _ in WAYS:
            row[f"{key}_text"] = f"{words}: {row[key]:,}"
        seconds = sample / scored_rate
        row["sample_text"] += f", {seconds / 86400:.1f} days" if seconds > 86400 else f", {seconds / 3600:.1f} hours"
        rows.append(row)
    return rows


def quality_plot(*, failing_before: float, scored_rate: float, loss_points: float) -> alt.LayerChart:
    """Plot the answers that four comparisons take, over the loss of quality they are to see.

    Parameters
    ----------
    failing_before : float
        Share of answers on which the old version fails [ratio].
    scored_rate : float
        Answers of the new version that are scored in a second of production [1/s].
    loss_points : float
        Where the ring stands first, one of :data:`LOSSES` [percentage points].

    Returns
    -------
    altair.LayerChart
        One panel with a ring.

    Raises
    ------
    ValueError
        If `loss_points` is no stop of the slider.

    Examples
    --------
    >>> quality_plot(failing_before=0.1, scored_rate=0.02, loss_points=1).height
    300
    """
    grip = ring("Loss of quality", "loss_points", loss_points, LOSSES)
    readings = _quality_rows(failing_before, scored_rate)
    rows = rows_chart(readings).encode(
        x=alt.X(
            "loss:Q",
            title="loss of quality, percentage points",
            scale=alt.Scale(type="log", domain=[0.23, 21], nice=False),
            axis=alt.Axis(values=[0.25, 0.5, 1, 2, 5, 10, 20], format="~g"),
        )
    )
    here = rows.transform_filter(grip)
    scale = alt.Scale(type="log", domain=[8, 12 * readings[0]["sample"]], nice=False)
    axis = alt.Axis(values=[10, 100, 1000, 10_000, 100_000], format=",")
    (at,) = [row for row in readings if row["loss"] == loss_points]
    return (
        alt.layer(
            *(
                rows.mark_line(stroke=role.light, strokeDash=list(role.dash), strokeWidth=2).encode(
                    y=alt.Y(f"{key}:Q", title="answers needed", scale=scale, axis=axis)
                )
                for key, _, role in WAYS
            ),
            *(
                label(rows, words, "loss", key, role, at, align=align, dx=dx, dy=dy)
                for (key, words, role), (at, align, dx, dy) in zip(WAYS, PLACES, strict=True)
            ),
            knob(here, "replay"),
            *(knob(here, key, first=False) for key in ("change", "pairs", "sample")),
            *(readout(here, key, f"{key}_text", 16 + 19 * i, right=True) for i, (key, _, _) in enumerate(WAYS)),
            grips(rows, 300, grip),
        )
        .properties(width=WIDTH, height=300)
        .properties(
            description=(
                f"Answers needed to see a loss of quality of {LOSSES[0]:g} to {LOSSES[-1]} percentage points, both axes"
                f" logarithmic. All fall as the loss grows. At {loss_points:g}: {at['change']:,} to see any changed"
                f" text, {at['pairs']:,} prompts answered by both versions, {at['replay']:,} of a fixed set whose old"
                f" score is known, {at['sample']:,} sampled answers of each version."
            ),
            usermeta={"lantern": {"stops": {"ring": [f"{points:g} point{'s' * (points != 1)}" for points in LOSSES]}}},
        )
    )
