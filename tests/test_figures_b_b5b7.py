"""The figures of B5 and B7 read what the notes and the formulas say, and are drawn by the rules of the house."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any
from xml.etree import ElementTree

import pytest

pytest.importorskip("altair", reason="figures need the labs extra")

from lantern_lib import H100, LANTERN_70B, Replica
from lantern_lib.figures import part_b_b5b7, part_b_b5b7_plots
from lantern_lib.figures.diagram import Diagram
from lantern_lib.figures.roles import PAGE_COLOURS

FOUR = Replica(H100, tp_size=4)
DIAGRAMS: dict[str, Callable[[], Diagram]] = {
    "storages": lambda: part_b_b5b7.storages(LANTERN_70B, FOUR, 2000, 64),
    "round": part_b_b5b7.speculative_round,
    "loop": part_b_b5b7.benchmark_loop,
    "gap": lambda: part_b_b5b7.step_gap(LANTERN_70B, FOUR, 2000, 0.025),
}
SHOWN = {
    "storages": ["141.1 GB", "70.6 GB", "35.3 GB", "14.3 ms", "7.8 ms", "4.6 ms", "3,419", "5,231", "7,116"],
    "round": ["pass", "fail", "dropped", "3 tokens from one large step"],
    "loop": ["1 Measure", "5 Change"],
    "gap": ["floor 14.3 ms", "measured 25 ms", "communication: 1.3 ms", "unexplained: 10.7 ms"],
}


@pytest.mark.parametrize("name", DIAGRAMS)
def test_a_diagram_shows_its_numbers_inside_its_frame_in_role_colours(name: str) -> None:
    diagram = DIAGRAMS[name]()
    assert len(diagram.description) > 80
    for svg in ElementTree.fromstring(diagram._repr_html_()):
        width = float(svg.get("width", "0"))
        for text in svg.iter("text"):
            size, x, words = float(text.get("font-size", "0")), float(text.get("x", "0")), text.text or ""
            length = 0.62 * size * len(words)
            start = {"start": x, "middle": x - length / 2, "end": x - length}[text.get("text-anchor", "start")]
            assert size >= 11
            assert start >= -0.1 * length, words
            assert start + length <= width + 0.12 * length, words
        colours = {e.get(key) for e in svg.iter() for key in ("fill", "stroke")} - {None, "none"}
        assert colours <= set(PAGE_COLOURS.values())
        shown = " ".join(text.text or "" for text in svg.iter("text"))
        assert [expected for expected in SHOWN[name] if expected not in shown] == []


def test_the_round_unfolds_in_its_steps() -> None:
    diagram = DIAGRAMS["round"]()
    for svg in ElementTree.fromstring(diagram._repr_html_()):
        assert {g.get("data-step") for g in svg.iter("g")} == {str(n) for n in range(1, diagram.steps + 1)}


def test_bars_are_to_scale() -> None:
    """Half the bits, half the bar."""
    wide = ElementTree.fromstring(DIAGRAMS["storages"]()._repr_html_())[0]
    weights = [float(bar.get("width", "0")) for bar in wide.iter("rect")][::3]
    assert weights[0] / weights[1] == pytest.approx(2, rel=0.01)
    assert weights[0] / weights[2] == pytest.approx(4, rel=0.01)


@pytest.fixture(scope="module")
def plot() -> dict[str, Any]:
    chart = part_b_b5b7_plots.speculation(LANTERN_70B, FOUR, context_len=2000)
    spec: dict[str, Any] = chart.to_dict()
    return spec


@pytest.fixture(scope="module")
def rows(plot: dict[str, Any]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(re.findall(r'"values": (\[\{.*?\}\])', json.dumps(plot))[0])
    return found


def test_the_ring_reads_the_published_gain(rows: list[dict[str, Any]]) -> None:
    """At batch 1 the check costs one step and a little: the formula's best length and its gain."""
    (row,) = [row for row in rows if row["batch"] == "1" and row["k"] == 8]
    assert row["middle"] == pytest.approx(3.09, abs=0.05)
    assert row["best_middle"] == row["middle"]
    assert "3.1 times" in row["gain_text"]
    assert row["tokens"] == pytest.approx((1 - 0.8**9) / 0.2, abs=0.001)


def test_the_gain_is_tokens_over_time_and_dies_with_the_batch(rows: list[dict[str, Any]]) -> None:
    for row in rows:
        assert row["middle"] == pytest.approx(row["tokens"] / row["cost"], rel=0.002)
    for k in (1, 4, 8, 16):
        gains = [row["middle"] for row in rows if row["k"] == k]
        assert gains == sorted(gains, reverse=True)
    assert [row["middle"] < 1 for row in rows if row["k"] == 8] == [False, False, False, False, True]


def test_the_plot_is_described_light_and_in_the_pages_colours(plot: dict[str, Any], rows: list[dict[str, Any]]) -> None:
    assert len(plot["description"]) > 150
    assert len(plot["usermeta"]["lantern"]["stops"]["ring"]) == len({row["stop"] for row in rows}) == 16
    assert len(rows) == 80
    spec = json.dumps({key: value for key, value in plot.items() if key != "datasets"})
    assert "var(" not in spec
    drawn = set(re.findall(r'"(?:fill|stroke|color)": (?:\{"value": )?"(#[0-9a-f]{6})"', spec))
    assert len(drawn) >= 4
    assert drawn <= set(PAGE_COLOURS)


def test_what_a_figure_refuses() -> None:
    with pytest.raises(ValueError, match="^draft_len must be a stop of the slider"):
        part_b_b5b7_plots.speculation(LANTERN_70B, FOUR, context_len=2000, draft_len=17)
    with pytest.raises(ValueError, match="^batch_size must be a choice of the selector"):
        part_b_b5b7_plots.speculation(LANTERN_70B, FOUR, context_len=2000, batch_size=2)
    with pytest.raises(ValueError, match="^kept must be below the 4 drafted tokens"):
        part_b_b5b7.speculative_round(kept=4)
    with pytest.raises(ValueError, match="^measured_seconds must be at least the floor"):
        part_b_b5b7.step_gap(LANTERN_70B, FOUR, 2000, 0.010)
