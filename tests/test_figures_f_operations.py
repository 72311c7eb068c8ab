"""Figures of page F3: well-formed, inside their frame, in the roles' colours, with the library's numbers."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from functools import cache
from itertools import pairwise
from typing import Any
from xml.etree import ElementTree

import pytest

pytest.importorskip("altair", reason="figures need the labs extra")

from lantern_lib import rollout
from lantern_lib.figures import part_f_operations as diagrams
from lantern_lib.figures import part_f_operations_plots as plots
from lantern_lib.figures.diagram import Diagram
from lantern_lib.figures.roles import CONTROL, MEMORY, PAGE_COLOURS, ROLES, TOTAL

DAY = [2, 2, 1, 3, 5, 6, 4, 2]
DIAGRAMS: dict[str, Callable[[], Diagram]] = {
    "scaling": lambda: diagrams.scaling(10, 300, 10),
    "capacity_kinds": lambda: diagrams.capacity_kinds(DAY, 3, [0, 1]),
    "rollout": lambda: diagrams.rollout(rollout.ReplayPlan(10_175, 1_067), 0.01, (0.1, 0.5, 1.0), 6),
    "failover": lambda: diagrams.failover(7, 0.644, 300),
    "incidents": diagrams.incidents,
}


def drawings(name: str) -> list[ElementTree.Element]:
    return list(ElementTree.fromstring(DIAGRAMS[name]()._repr_html_()))


def words(svg: ElementTree.Element) -> str:
    return " ".join(text.text or "" for text in svg.iter("text"))


@pytest.mark.parametrize("name", DIAGRAMS)
def test_a_diagram_is_described_and_its_text_stays_inside(name: str) -> None:
    """A letter is taken as 0.62 em wide, more than any system font of the site needs."""
    diagram = DIAGRAMS[name]()
    assert len(diagram.description) > 80
    for svg in drawings(name):
        width = float(svg.get("width", "0"))
        assert {g.get("data-step") for g in svg.iter("g")} == {str(n + 1) for n in range(diagram.steps)}
        for text in svg.iter("text"):
            size, x, shown = float(text.get("font-size", "0")), float(text.get("x", "0")), text.text or ""
            assert size >= 11.5, shown
            length = 0.62 * size * len(shown)
            start = {"start": x, "middle": x - length / 2, "end": x - length}[text.get("text-anchor", "start")]
            assert start >= -length * 0.1, f"{shown!r} begins at {start:.0f}"
            assert start + length <= width + length * 0.12, f"{shown!r} ends at {start + length:.0f} of {width}"


@pytest.mark.parametrize("name", DIAGRAMS)
def test_text_in_a_box_stays_in_the_box(name: str) -> None:
    for svg in drawings(name):
        boxes = [r for r in svg.iter("rect") if r.get("rx") == "7"]
        for text in svg.iter("text"):
            x, y = float(text.get("x", "0")), float(text.get("y", "0"))
            for box in boxes:
                left, top = float(box.get("x", "0")), float(box.get("y", "0"))
                right, bottom = left + float(box.get("width", "0")), top + float(box.get("height", "0"))
                if left < x < right and top < y < bottom:
                    assert x + 0.56 * float(text.get("font-size", "0")) * len(text.text or "") <= right, text.text


@pytest.mark.parametrize("name", DIAGRAMS)
def test_bars_stay_inside_and_colours_are_roles(name: str) -> None:
    allowed = {role.colour for role in ROLES} | {"none"}
    for svg in drawings(name):
        width = float(svg.get("width", "0"))
        for element in svg.iter():
            if element.tag == "rect":
                assert float(element.get("x", "0")) + float(element.get("width", "0")) <= width
            for attribute in ("fill", "stroke"):
                colour = element.get(attribute)
                if colour and colour not in allowed:
                    assert re.match(r"var\(--lt-(text|muted|rule|surface|panel), #[0-9a-f]{6}\)$", colour), colour


def test_the_bars_of_a_day_add_up_to_its_replica_hours() -> None:
    for svg in drawings("capacity_kinds"):
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
    for svg in drawings("rollout"):
        for shown in ("10,175 prompts", "1,067 may fail", "6 slices", "10, 50, 100"):
            assert shown in words(svg)
    for svg in drawings("failover"):
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
    wide = drawings("incidents")[0]
    assert len(list(wide.iter("circle"))) == sum(len(i[2]) for i in diagrams.INCIDENTS) + 1  # and one in the key


@cache
def surge() -> dict[str, Any]:
    chart = plots.surge_plot(base=20, peak=50, num_replicas=7, replica_rate=4.436, cold_start_seconds=300)
    spec: dict[str, Any] = chart.to_dict()
    return spec


@cache
def quality() -> dict[str, Any]:
    spec: dict[str, Any] = plots.quality_plot(failing_before=0.1, scored_rate=0.05, loss_points=1).to_dict()
    return spec


def rows_with(spec: dict[str, Any], *fields: str) -> list[dict[str, Any]]:
    found = re.findall(r'"values": (\[\{.*?\}\])', json.dumps(spec))
    return next(rows for rows in (json.loads(text) for text in found) if set(fields) <= set(rows[0]))


def test_the_ring_of_the_surge_reads_what_the_page_prints() -> None:
    (row,) = [r for r in rows_with(surge(), "cold", "cpu") if r["cold"] == 300]
    assert row["cpu_text"] == "host CPU: 34.1 min, 755 s"
    assert row["busy_text"] == "GPU busy: 12.8 min, 113 s"
    assert row["queue_text"] == "queue: 7.1 min, 106 s"
    assert row["ready_text"] == "prepared: 0.0 min, 1,108 refused"


def test_reacting_is_later_the_longer_the_cold_start_and_the_signals_keep_their_order() -> None:
    rows = rows_with(surge(), "cold", "cpu")
    for before, after in pairwise(rows):
        assert before["busy"] <= after["busy"]
        assert before["queue"] <= after["queue"]
        assert before["cpu"] == after["cpu"]
    for row in rows:
        assert row["ready"] <= row["queue"] <= row["busy"] <= row["cpu"]


def test_the_stairs_begin_with_the_fleet_of_the_page_and_never_fall() -> None:
    rows = rows_with(surge(), "scaler", "minute")
    assert {r["scaler"] for r in rows} == {policy.name for _, policy, _ in plots.POLICIES}
    for scaler in {r["scaler"] for r in rows}:
        for stop in range(len(plots.COLD_STARTS)):
            stairs = [r for r in rows if r["scaler"] == scaler and r["stop"] == stop]
            assert stairs[0]["rate"] == pytest.approx(7 * 4.436, abs=0.06)
            assert [r["rate"] for r in stairs] == sorted(r["rate"] for r in stairs)


def test_the_demand_is_drawn_by_its_corners() -> None:
    corners = next(
        rows
        for rows in (json.loads(t) for t in re.findall(r'"values": (\[\{.*?\}\])', json.dumps(surge())))
        if set(rows[0]) == {"minute", "rate"}
    )
    assert corners[0] == {"minute": 0.0, "rate": 20.0}
    assert corners[-1]["rate"] == 20.0
    assert max(r["rate"] for r in corners) == 50.0
    assert len(corners) <= 10


def test_the_ring_of_the_comparisons_reads_what_the_page_prints() -> None:
    (row,) = [r for r in rows_with(quality(), "loss", "pairs") if r["loss"] == 1]
    assert row["change_text"] == "texts: 299"
    assert row["pairs_text"] == "twins: 2,160"
    assert row["replay_text"] == "replay: 10,175"
    assert row["sample_text"] == "sampled: 20,335, 4.7 days"
    (loud,) = [r for r in rows_with(quality(), "loss", "pairs") if r["loss"] == 20]
    assert loud["sample_text"].endswith("0.5 hours")


@pytest.mark.parametrize("spec", [surge, quality])
def test_a_plot_describes_itself_names_its_stops_and_holds_plain_colours(spec: Callable[[], dict[str, Any]]) -> None:
    drawn = spec()
    assert len(drawn["description"]) > 150
    stops = {r["stop"] for r in rows_with(drawn, "stop")}
    assert len(drawn["usermeta"]["lantern"]["stops"]["ring"]) == len(stops)
    text = json.dumps({k: v for k, v in drawn.items() if k not in ("datasets", "data")})
    assert "var(" not in text
    colours = set(re.findall(r'"(?:fill|stroke|color)": (?:\{"value": )?"(#[0-9a-f]{6})"', text))
    assert len(colours) >= 3
    assert colours <= set(PAGE_COLOURS)


def test_a_ring_starts_only_on_a_stop() -> None:
    with pytest.raises(ValueError, match="^cold_start_seconds must be a stop"):
        plots.surge_plot(base=20, peak=50, num_replicas=7, replica_rate=4.4, cold_start_seconds=45)
    with pytest.raises(ValueError, match="^loss_points must be a stop"):
        plots.quality_plot(failing_before=0.1, scored_rate=0.05, loss_points=1.2)
