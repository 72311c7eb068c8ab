"""The figures of B5 and B7 read what the notes and the formulas say, and are drawn by the rules of the house."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

pytest.importorskip("altair", reason="figures need the labs extra")

from lantern_lib import H100, LANTERN_70B, Replica
from lantern_lib.figures import part_b_b5b7, part_b_b5b7_plots
from lantern_lib.figures.diagram import Diagram
from tests.figure_rules import drawings, once, tables_in

FOUR = Replica(H100, tp_size=4)
DIAGRAMS: dict[str, Callable[[], Diagram]] = {
    "storages": lambda: part_b_b5b7.storages(LANTERN_70B, FOUR, 2000, 64),
    "round": part_b_b5b7.speculative_round,
    "loop": part_b_b5b7.benchmark_loop,
    "gap": lambda: part_b_b5b7.step_gap(LANTERN_70B, FOUR, 2000, 0.025),
}
PLOTS = once({"speculation": lambda: part_b_b5b7_plots.speculation(LANTERN_70B, FOUR, context_len=2000)})
SHOWN = {
    "storages": ["141.1 GB", "70.6 GB", "35.3 GB", "14.3 ms", "7.8 ms", "4.6 ms", "3,419", "5,231", "7,116"],
    "round": ["pass", "fail", "dropped", "3 tokens from one large step"],
    "loop": ["1 Measure", "5 Change"],
    "gap": ["floor 14.3 ms", "measured 25 ms", "communication: 1.3 ms", "unexplained: 10.7 ms"],
}


@pytest.mark.parametrize("name", DIAGRAMS)
def test_a_diagram_shows_its_numbers(name: str) -> None:
    for svg in drawings(DIAGRAMS[name]()):
        shown = " ".join(text.text or "" for text in svg.iter("text"))
        assert [expected for expected in SHOWN[name] if expected not in shown] == []


@pytest.fixture(scope="module")
def plot() -> dict[str, Any]:
    spec: dict[str, Any] = PLOTS["speculation"]().to_dict()
    return spec


@pytest.fixture(scope="module")
def rows(plot: dict[str, Any]) -> list[dict[str, Any]]:
    return tables_in(plot)[0]


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


def test_what_a_figure_refuses() -> None:
    with pytest.raises(ValueError, match="^draft_len must be a stop of the slider"):
        part_b_b5b7_plots.speculation(LANTERN_70B, FOUR, context_len=2000, draft_len=17)
    with pytest.raises(ValueError, match="^batch_size must be a choice of the selector"):
        part_b_b5b7_plots.speculation(LANTERN_70B, FOUR, context_len=2000, batch_size=2)
    with pytest.raises(ValueError, match="^kept must be below the 4 drafted tokens"):
        part_b_b5b7.speculative_round(kept=4)
    with pytest.raises(ValueError, match="^measured_seconds must be at least the floor"):
        part_b_b5b7.step_gap(LANTERN_70B, FOUR, 2000, 0.010)


def test_diagrams_are_sound(any_diagram: Any, sound_diagram: Callable[[Any], None]) -> None:
    sound_diagram(any_diagram)


def test_plots_are_sound(any_plot: Any, sound_plot: Callable[[Any], None]) -> None:
    sound_plot(any_plot)
