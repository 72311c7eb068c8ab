"""Plots of the open questions: every row is there, readings are the library's, colours are roles."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("altair", reason="figures need the labs extra")

from lantern_lib import H100, LANTERN_70B, Replica, capacity
from lantern_lib.figures import part_g_plots as plots
from lantern_lib.measurements import read_measurements
from tests.figure_rules import once, rows_with

TABLE = Path(__file__).resolve().parent.parent / "book" / "data" / "measured.csv"
SIGNALS = (("chunk", "a chunk", 0.0296), ("answer", "an answer", 0.00007))
PLAN = capacity.plan_fleet(
    LANTERN_70B, Replica(H100, tp_size=4), capacity.Traffic(20, 2000, 400, num_cached_tokens=1500), max_utilization=0.65
)


PLOTS = once(
    {
        "measured": lambda: plots.measured_against_floor(read_measurements(TABLE), row="x02"),
        "samples": lambda: plots.samples_over_jitter(SIGNALS, jitter_ms=1),
        "standby": lambda: plots.standby_sweep(PLAN, cold_start_seconds=300),
    }
)


def test_every_row_that_has_a_floor_is_a_point() -> None:
    rows = rows_with(PLOTS["measured"], "share")
    assert sorted(row["id"] for row in rows) == sorted(one.id for one in read_measurements(TABLE))
    assert [row["stop"] for row in rows] == list(range(len(rows)))
    assert [row["floor"] for row in rows] == sorted(row["floor"] for row in rows)
    assert {row["id"] for row in rows if row["kind"] == "rejected"} == {"x92", "x93", "x94"}


@pytest.mark.parametrize(
    ("row", "run", "times", "source"),
    [
        ("x02", "Llama 2 70B, 4 × H100, batch 1", "29.7 ms, floor 10.3 ms: 0.35", "Mutinifni/splitwise-sim"),
        ("x25", "Llama 2 7B, 1 × A100, batch 1", "9.53 ms, floor 6.51 ms: 0.68", "pytorch-labs/gpt-fast"),
        (
            "x92",
            "Qwen2.5 72B, 2 × H100, batch 1",
            "150 ms, floor 151 ms: 1.01 (rejected)",
            "tenstorrent/tt-inference-server#143",
        ),
        ("x61", "Llama 3 70B, 2 × H100, batch 1", "18.6 ms, floor 10.6 ms: 0.57", "NVIDIA NIM benchmark docs"),
        ("x58", "Llama 3.1 405B, 8 × H100, no limit", "343 ms, floor 103 ms: 0.30", "NVIDIA/TensorRT-LLM"),
    ],
)
def test_the_ring_reads_a_run_and_its_source(row: str, run: str, times: str, source: str) -> None:
    (found,) = [r for r in rows_with(PLOTS["measured"], "share") if r["id"] == row]
    assert (found["run"], found["times"], found["source"]) == (run, times, source)


def test_every_choice_shows_something_and_every_row_can_be_chosen() -> None:
    rows = rows_with(PLOTS["measured"], "share")
    offered = {
        p["name"]: p["bind"]["options"] for p in PLOTS["measured"].to_dict()["params"] if "options" in p.get("bind", {})
    }
    assert set(offered) == {"model", "card", "batch"}
    for field, options in offered.items():
        assert options[0] == plots.ALL
        assert set(options[1:]) == {row[field] for row in rows}


def test_points_lie_inside_the_axes_and_text_is_short_enough_for_a_phone() -> None:
    for row in rows_with(PLOTS["measured"], "share"):
        assert plots._LINE[0] < row["floor"] < plots._LINE[1]
        assert plots._LINE[0] < row["ms"] < plots._LINE[1]
        assert all(len(row[field]) <= 40 for field in ("run", "times", "source")), row["id"]


def test_the_samples_are_the_closed_form() -> None:
    """4 z² with z = 2.3263 is 21.648 for one in a hundred."""
    for row in rows_with(PLOTS["samples"], "jitter"):
        for key, words, seconds in SIGNALS:
            exact = 21.6476 * (row["jitter"] / 1e3 / seconds) ** 2
            assert exact * (1 - 1e-5) <= row[key] <= max(1, exact * (1 + 1e-5) + 1)
            assert row[f"{key}_text"] == f"{words}: {row[key]:,}"


def test_the_standby_reads_whole_replicas_and_refusals() -> None:
    rows = {row["start"]: row for row in rows_with(PLOTS["standby"], "start")}
    assert rows[300]["w30_text"] == "wait 30 s at most: hold 2 of 4"
    assert rows[300]["h0_text"] == "0 held: 6,000 refused"
    assert rows[20]["w30"] == 0
    assert rows[1200]["w5"] == pytest.approx(2.1085 * (1 - 5 / 1200), abs=2e-3)
    assert rows[60]["h1"] == pytest.approx(20 * 60 * (1 - 1 / 2.1085), abs=1)
    assert sorted(rows) == list(plots.COLD_STARTS)


def test_a_ring_starts_only_on_a_stop() -> None:
    with pytest.raises(ValueError, match="^row must be a stop"):
        plots.measured_against_floor(read_measurements(TABLE), row="x999")
    with pytest.raises(ValueError, match="^jitter_ms must be a stop"):
        plots.samples_over_jitter(SIGNALS, jitter_ms=3)
    with pytest.raises(ValueError, match="^cold_start_seconds must be a stop"):
        plots.standby_sweep(PLAN, cold_start_seconds=299)


def test_plots_are_sound(any_plot: Any, sound_plot: Callable[[Any], None]) -> None:
    sound_plot(any_plot)
