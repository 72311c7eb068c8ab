"""Figures of pages D1 and D2: well-formed, inside their frame, in the roles' colours, with the published numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from xml.etree import ElementTree

import pytest

pytest.importorskip("altair", reason="figures need the labs extra")

from lantern_lib.figures import part_d_agents as diagrams
from lantern_lib.figures import part_d_agents_plots as plots
from lantern_lib.figures.diagram import Diagram
from lantern_lib.figures.roles import ARITHMETIC, MEMORY
from lantern_lib.prompt_cache import agent_session
from lantern_lib.workload import Call, Session
from tests.figure_rules import drawings, once, rows_with

SESSION = agent_session(20, 6000, 1500)
DIAGRAMS: dict[str, Callable[[], Diagram]] = {
    "agent_loop": lambda: diagrams.agent_loop(SESSION),
    "chat_agent": lambda: diagrams.chat_agent(Session((Call(2000, 400),)), SESSION),
    "misses": lambda: diagrams.misses(SESSION, 3000, 1500),
}


def bars(svg: ElementTree.Element, role: str) -> list[float]:
    return [float(r.get("width", "0")) for r in svg.iter("rect") if r.get("fill") == role and r.get("rx") == "2"]


@pytest.mark.parametrize(
    ("name", "texts"),
    [
        ("agent_loop", ["6,000", "7,500", "9,000", "34,500", "call 20"]),
        ("chat_agent", ["2,000", "405,000", "400", "57 s"]),
        ("misses", ["none found, 34,500 written", "3,000 found, 31,500 written", "4,500 found, 5,000 written"]),
    ],
)
def test_a_diagram_shows_the_published_numbers(name: str, texts: list[str]) -> None:
    for svg in drawings(DIAGRAMS[name]()):
        shown = " ".join(text.text or "" for text in svg.iter("text"))
        for expected in texts:
            assert expected in shown


def test_tokens_of_chat_and_agent_have_one_scale() -> None:
    for svg in drawings(DIAGRAMS["chat_agent"]()):
        small, large = bars(svg, MEMORY.colour)
        assert small / large == pytest.approx(2000 / 405_000, abs=0.002)
        written = bars(svg, "var(--lt-user, #1e7a3c)")
        assert written[1] / large == pytest.approx(6000 / 405_000, abs=0.002)


def test_what_is_found_and_what_is_written_are_to_scale() -> None:
    """By hand, of 34,500: time and routing find none, the clock leaves 3,000, the summary 4,500 beside 5,000 new."""
    for svg in drawings(DIAGRAMS["misses"]()):
        lost, found = bars(svg, ARITHMETIC.colour), bars(svg, MEMORY.colour)
        full = max(lost)
        assert [width / full for width in lost] == pytest.approx([1, 31.5 / 34.5, 5 / 34.5, 1], abs=0.001)
        assert [(width + 1) / full for width in found] == pytest.approx([3 / 34.5, 4.5 / 34.5], abs=0.001)


PLOTS = once({"session_bill": lambda: plots.session_bill(num_slow=1)})


@pytest.mark.parametrize(("misses", "percent"), [(0, 19.8), (1, 29.2), (2, 34.3), (5, 49.6), (10, 75.2), (19, 125.0)])
def test_the_ring_reads_the_published_table(misses: int, percent: float) -> None:
    totals, calls = (rows_with(PLOTS["session_bill"], field) for field in ("percent", "lost"))
    (row,) = [r for r in totals if r["terms"] == "5 min" and r["stop"] == misses]
    assert row["percent"] == percent
    assert f"{percent}%" in row["cost_text"]
    bars = [r for r in calls if r["terms"] == "5 min" and r["stop"] == misses]
    assert sum(r["lost"] for r in bars) == misses
    assert bars[-1]["cost"] == (43.125 if misses else 5.175)
    assert sum(r["cost"] for r in bars) == pytest.approx(percent * 4.05, abs=0.3)


def test_an_hour_loses_nothing() -> None:
    """By hand: 12,000 + 37,050 + 57,000 of 405,000."""
    totals, calls = (rows_with(PLOTS["session_bill"], field) for field in ("percent", "lost"))
    assert {r["percent"] for r in totals if r["terms"] == "1 hour"} == {26.2}
    assert not any(r["lost"] for r in calls if r["terms"] == "1 hour")


def test_a_ring_starts_only_on_a_stop() -> None:
    with pytest.raises(ValueError, match="^num_slow must be a stop"):
        plots.session_bill(num_slow=20)


def test_diagrams_are_sound(any_diagram: Any, sound_diagram: Callable[[Any], None]) -> None:
    sound_diagram(any_diagram)


def test_plots_are_sound(any_plot: Any, sound_plot: Callable[[Any], None]) -> None:
    sound_plot(any_plot)
