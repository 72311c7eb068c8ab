"""Figures of page F3: well-formed, inside their frame, in the roles' colours, with the library's numbers."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any
from xml.etree import ElementTree

import pytest

pytest.importorskip("altair", reason="figures need the labs extra")

from lantern_lib import rollout
from lantern_lib.figures import part_f_operations as diagrams
from lantern_lib.figures import part_f_operations_plots as plots
from lantern_lib.figures.diagram import Diagram
from lantern_lib.figures.roles import CONTROL, MEMORY, TOTAL
from tests.figure_rules import drawings, once, rows_with, tables_of, words

DAY = [2, 2, 1, 3, 5, 6, 4, 2]
DIAGRAMS: dict[str, Callable[[], Diagram]] = {
    "scaling": lambda: diagrams.scaling(10, 300, 10),
    "capacity_kinds": lambda: diagrams.capacity_kinds(DAY, 3, [0, 1]),
    "rollout": lambda: diagrams.rollout(rollout.ReplayPlan(10_175, 1_067), 0.01, (0.1, 0.5, 1.0), 6),
    "failover": lambda: diagrams.failover(7, 0.644, 300),
    "incidents": diagrams.incidents,
}


def test_the_bars_of_a_day_add_up_to_its_replica_hours() -> None:
    for svg in drawings(DIAGRAMS["capacity_kinds"]()):
        bars = list(svg.iter("rect"))
        unit = 150 / max(DAY)

        def hours(fill: str, opacity: str, bars: list[ElementTree.Element] = bars, unit: float = unit) -> float:
            tall = [r for r in bars if r.get("fill") == fill and r.get("fill-opacity") == opacity]
            return sum(float(r.get("height", "0")) for r in tall) / unit

        assert hours(MEMORY.colour, "0.85") == pytest.approx(sum(min(need, 3) for need in DAY), abs=0.1)
        assert hours(MEMORY.colour, "0.25") == pytest.approx(1 + 1 + 2 + 1, abs=0.1)
        assert hours(CONTROL.colour, "0.85") == pytest.approx(2 + 3 + 1, abs=0.1)
        assert len([r for r in bars if r.get("fill") == TOTAL.colour]) == 2


def test_the_numbers_of_a_rollout_and_a_failure_are_those_given() -> None:
    for svg in drawings(DIAGRAMS["rollout"]()):
        for shown in ("10,175 prompts", "1,067 may fail", "6 slices", "10, 50, 100"):
            assert shown in words(svg)
    for svg in drawings(DIAGRAMS["failover"]()):
        assert "64 to 75 %" in words(svg)
        assert "6 others" in words(svg)


def test_a_single_replica_has_no_failover() -> None:
    with pytest.raises(ValueError, match="num_replicas must be at least 2, got 1"):
        diagrams.failover(1, 0.5, 300)


def test_the_matrix_has_a_mark_for_every_signal_of_an_incident() -> None:
    assert len(diagrams.INCIDENTS) == 5
    assert len(diagrams.SIGNALS) == 8
    for _, _, first, later in diagrams.INCIDENTS:
        assert set(first) | set(later) <= set(diagrams.SIGNALS)
        assert not set(first) & set(later)
    wide = drawings(DIAGRAMS["incidents"]())[0]
    assert len(list(wide.iter("circle"))) == sum(len(i[2]) for i in diagrams.INCIDENTS) + 1  # and one in the key


PLOTS = once(
    {
        "surge": lambda: plots.surge_plot(base=20, peak=50, num_replicas=7, replica_rate=4.436, cold_start_seconds=300),
        "quality": lambda: plots.quality_plot(failing_before=0.1, scored_rate=0.05, loss_points=1),
    }
)


def test_the_ring_of_the_surge_reads_what_the_page_prints() -> None:
    (row,) = [r for r in rows_with(PLOTS["surge"], "cold", "cpu") if r["cold"] == 300]
    assert row["cpu_text"] == "host CPU: 34.1 min, 755 s"
    assert row["busy_text"] == "GPU busy: 12.8 min, 113 s"
    assert row["queue_text"] == "queue: 7.1 min, 106 s"
    assert row["ready_text"] == "prepared: 0.0 min, 1,108 refused"


def test_reacting_is_later_the_longer_the_cold_start_and_the_signals_keep_their_order() -> None:
    rows = rows_with(PLOTS["surge"], "cold", "cpu")
    for before, after in pairwise(rows):
        assert before["busy"] <= after["busy"]
        assert before["queue"] <= after["queue"]
        assert before["cpu"] == after["cpu"]
    for row in rows:
        assert row["ready"] <= row["queue"] <= row["busy"] <= row["cpu"]


def test_the_stairs_begin_with_the_fleet_of_the_page_and_never_fall() -> None:
    rows = rows_with(PLOTS["surge"], "scaler", "minute")
    assert {r["scaler"] for r in rows} == {policy.name for _, policy, _ in plots.POLICIES}
    for scaler in {r["scaler"] for r in rows}:
        for stop in range(len(plots.COLD_STARTS)):
            stairs = [r for r in rows if r["scaler"] == scaler and r["stop"] == stop]
            assert stairs[0]["rate"] == pytest.approx(7 * 4.436, abs=0.06)
            assert [r["rate"] for r in stairs] == sorted(r["rate"] for r in stairs)


def test_the_demand_is_drawn_by_its_corners() -> None:
    (corners,) = (rows for rows in tables_of(PLOTS["surge"]) if set(rows[0]) == {"minute", "rate"})
    assert corners[0] == {"minute": 0.0, "rate": 20.0}
    assert corners[-1]["rate"] == 20.0
    assert max(r["rate"] for r in corners) == 50.0
    assert len(corners) <= 10


def test_the_ring_of_the_comparisons_reads_what_the_page_prints() -> None:
    (row,) = [r for r in rows_with(PLOTS["quality"], "loss", "pairs") if r["loss"] == 1]
    assert row["change_text"] == "texts: 299"
    assert row["pairs_text"] == "twins: 2,160"
    assert row["replay_text"] == "replay: 10,175"
    assert row["sample_text"] == "sampled: 20,335, 4.7 days"
    (loud,) = [r for r in rows_with(PLOTS["quality"], "loss", "pairs") if r["loss"] == 20]
    assert loud["sample_text"].endswith("0.5 hours")


def test_a_ring_starts_only_on_a_stop() -> None:
    with pytest.raises(ValueError, match="^cold_start_seconds must be a stop"):
        plots.surge_plot(base=20, peak=50, num_replicas=7, replica_rate=4.4, cold_start_seconds=45)
    with pytest.raises(ValueError, match="^loss_points must be a stop"):
        plots.quality_plot(failing_before=0.1, scored_rate=0.05, loss_points=1.2)


def test_diagrams_are_sound(any_diagram: Any, sound_diagram: Callable[[Any], None]) -> None:
    sound_diagram(any_diagram)


def test_plots_are_sound(any_plot: Any, sound_plot: Callable[[Any], None]) -> None:
    sound_plot(any_plot)
