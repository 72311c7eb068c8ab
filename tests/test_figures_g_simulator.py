"""Figures of part G that the simulator draws: readings against the committed sweeps, descriptions, stops, colours."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("altair", reason="figures need the labs extra")

from lantern_lib.figures import part_g_simulator as diagrams
from lantern_lib.figures import part_g_simulator_plots as plots
from lantern_lib.simulator import simulate, simulate_by_steps
from lantern_lib.workload import at_once
from tests.figure_rules import once, reading, rows_of

DATA = Path(__file__).resolve().parent.parent / "book/data"
GRID, SWEEP, DESKS, RUNS = (
    json.loads((DATA / f"{name}.json").read_text(encoding="utf-8"))
    for name in ("workbench", "designs", "desks", "vllm_runs")
)
PLOTS = once(
    {
        "knee": lambda: plots.knee(GRID, rate=2.5, chunk=0),
        "designs": lambda: plots.designs(SWEEP, prompt_len=2000),
        "agents": lambda: plots.agents(DESKS, num_agents=12),
    }
)


def test_the_timeline_shows_the_run() -> None:
    work = diagrams.toy_workload()
    steps, run = simulate_by_steps(work, diagrams.TOY), simulate(work, diagrams.TOY)
    ends = diagrams._step_ends(work, diagrams.TOY)
    assert len(ends) == steps.num_steps == 60
    assert ends[-1] == pytest.approx(run.last_token_seconds.max())
    assert set(run.last_token_seconds.round(6)) <= {round(end, 6) for end in ends}
    drawing = diagrams.timeline()
    assert "takes 60 steps" in drawing.description
    assert "steps of the loop: 60" in "".join(drawing.narrow.parts)
    with pytest.raises(ValueError, match="workload must hold at most 8 requests"):
        diagrams.timeline(at_once(9, 5, 5))


def test_the_loop_of_the_timeline_waits_for_late_arrivals() -> None:
    from lantern_lib.workload import Request, Workload

    apart = Workload.from_requests([Request(0.0, 10, 2), Request(50.0, 10, 2)])
    assert len(diagrams._step_ends(apart, diagrams.TOY)) == 4


def test_the_errors_are_those_of_the_file() -> None:
    large = RUNS["runs"]["RTX PRO 6000"]
    assert diagrams.errors(large, "course")["tpot"] == pytest.approx(0.027184 / 0.031278 - 1)
    drawing = diagrams.predicted(RUNS["runs"])
    assert "RTX 4090, memory without end: first token -91, time per token +100, whole run -52 percent." in (
        drawing.description
    )
    for canvas in (drawing.wide, drawing.narrow):
        assert sum(part.startswith("<rect") for part in canvas.parts) == 3 * (6 + 4) + 3


def test_the_knee_reads_the_grid() -> None:
    row = reading(PLOTS["knee"](), chunk="512 tokens", cap="128", hit="none", drafts="off", rate=4)
    assert (row["ttft"], row["tpot"]) == (1.166, 42.5)
    assert row["verdict"] == "promises kept up to 4 a second"
    assert reading(PLOTS["knee"](), chunk="512 tokens", cap="128", hit="none", drafts="3 drafts", rate=4)[
        "verdict"
    ] == ("promises kept up to 3.5 a second")
    assert reading(PLOTS["knee"](), chunk="whole prompts", cap="128", hit="80%", drafts="3 drafts", rate=1)[
        "verdict"
    ] == ("promises kept beyond 10 a second")


def test_the_designs_read_the_sweep() -> None:
    row = reading(PLOTS["designs"](), pace="50 ms", length=2000)
    assert row["rate_text"] == "own 26, chunks 39, pools 30 a second"
    assert row["cost_text"] == "prompts cost 78, 67, 75% of it"
    assert row["split_text"] == "5 of 8 replicas read prompts"


def test_no_design_beats_prompts_that_cost_nothing() -> None:
    for pace in plots.PACES:
        for length in (500, 8000):
            found = plots.reach(SWEEP, length, pace)
            assert max(found, key=lambda name: found[name]) == "free"


def test_the_best_split_never_moves_towards_answers_as_prompts_grow() -> None:
    for pace in plots.PACES:
        splits = [row["split"] for row in rows_of(PLOTS["designs"]()) if row["pace"] == f"{pace} ms"]
        assert splits == sorted(splits)


def test_the_agents_read_the_sweep() -> None:
    row = reading(PLOTS["agents"](), draw="draw 1", agents=16)
    assert row["calls_text"] == "calls an hour: 105, 97, 524"
    assert row["found_text"] == "found: 0% GPU, 97% with host"


def test_a_ring_starts_only_on_a_stop() -> None:
    with pytest.raises(ValueError, match="^rate must be a stop"):
        plots.knee(GRID, rate=2.7)
    with pytest.raises(ValueError, match="must be a setting of the grid"):
        plots.knee(GRID, rate=2.5, max_batch=65)
    with pytest.raises(ValueError, match="^prompt_len must be a stop"):
        plots.designs(SWEEP, prompt_len=3000)
    with pytest.raises(ValueError, match="^num_agents must be a stop"):
        plots.agents(DESKS, num_agents=13)


def test_plots_are_sound(any_plot: Any, sound_plot: Callable[[Any], None]) -> None:
    sound_plot(any_plot)
