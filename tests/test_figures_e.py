"""Figures of part E: well-formed, inside their frame, in the roles' colours, with what the library computes."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from typing import Any
from xml.etree import ElementTree

import pytest

pytest.importorskip("altair", reason="figures need the labs extra")

from lantern_lib import H100, LANTERN_70B, Replica
from lantern_lib.figures import part_e as diagrams
from lantern_lib.figures import part_e_plots as plots
from lantern_lib.figures.diagram import Diagram
from lantern_lib.figures.roles import PAGE_COLOURS, ROLES

FOUR = Replica(H100, tp_size=4)
DIAGRAMS: dict[str, Callable[[], Diagram]] = {
    "surfaces": diagrams.surfaces,
    "context_window": diagrams.context_window,
    "gates": diagrams.gates,
    "side_channel": lambda: diagrams.side_channel(LANTERN_70B, FOUR, 1500, 500),
    "shared_surfaces": diagrams.shared_surfaces,
}


@pytest.fixture(scope="module")
def timing() -> Any:
    return plots.timing(LANTERN_70B, FOUR, public_len=1500, num_probes=8)


def drawings(diagram: Diagram) -> list[ElementTree.Element]:
    return list(ElementTree.fromstring(diagram._repr_html_()))


@pytest.mark.parametrize("name", DIAGRAMS)
def test_a_diagram_is_described_and_its_text_stays_inside(name: str) -> None:
    """A letter is taken as 0.62 em wide, more than any system font of the site needs."""
    diagram = DIAGRAMS[name]()
    assert len(diagram.description) > 80
    for svg in drawings(diagram):
        width = float(svg.get("width", "0"))
        assert {g.get("data-step") for g in svg.iter("g")} == {str(n + 1) for n in range(diagram.steps)}
        for text in svg.iter("text"):
            size, x, words = float(text.get("font-size", "0")), float(text.get("x", "0")), text.text or ""
            assert size >= 11.5, words
            length = 0.62 * size * len(words)
            start = {"start": x, "middle": x - length / 2, "end": x - length}[text.get("text-anchor", "start")]
            assert start >= -length * 0.1, f"{words!r} begins at {start:.0f}"
            assert start + length <= width + length * 0.12, f"{words!r} ends at {start + length:.0f} of {width}"


@pytest.mark.parametrize("name", DIAGRAMS)
def test_boxes_stay_inside_and_colours_are_roles(name: str) -> None:
    allowed = {role.colour for role in ROLES} | {"none"}
    for svg in drawings(DIAGRAMS[name]()):
        width = float(svg.get("width", "0"))
        for element in svg.iter():
            if element.tag == "rect":
                assert float(element.get("x", "0")) + float(element.get("width", "0")) <= width
            for attribute in ("fill", "stroke"):
                colour = element.get(attribute)
                if colour and colour not in allowed:
                    assert re.match(r"var\(--lt-(text|muted|rule|surface|panel), #[0-9a-f]{6}\)$", colour), colour


@pytest.mark.parametrize(
    ("name", "texts"),
    [
        ("surfaces", ["The model", "The infrastructure", "The agent"]),
        ("context_window", ["System prompt", "User's message", "Page or mail", "Tool's answer", "one row of tokens"]),
        ("gates", ["Validate", "Confirm", "Sandbox", "Egress", "credentials", "record"]),
        ("side_channel", ["Tenant A", "Tenant B", "2,000 tokens", "41.9 ms", "14.3 ms"]),
        ("shared_surfaces", ["Prefix cache", "GPU memory", "Time in the batch", "Logs, telemetry", "Weights, images"]),
    ],
)
def test_both_drawings_say_what_the_page_says(name: str, texts: list[str]) -> None:
    for svg in drawings(DIAGRAMS[name]()):
        shown = " ".join(text.text or "" for text in svg.iter("text"))
        for expected in texts:
            assert expected in shown


def test_the_probe_before_a_scope_takes_as_long_as_the_first_request() -> None:
    for svg in drawings(DIAGRAMS["side_channel"]()):
        shown = " ".join(text.text or "" for text in svg.iter("text"))
        assert re.findall(r"after ([\d.]+ ms)", shown) == ["41.9 ms", "14.3 ms", "41.9 ms"]


def rows_of(chart: Any) -> list[dict[str, Any]]:
    found = re.findall(r'"values": (\[\{.*?\}\])', json.dumps(chart.to_dict()))
    rows: list[dict[str, Any]] = max((json.loads(text) for text in set(found)), key=len)
    return rows


def test_only_the_session_with_all_three_is_exposed() -> None:
    rows = rows_of(plots.three_ingredients())
    assert len(rows) == 12
    for row in rows:
        bad = (row["p"], row["u"], row["c"]) == ("yes", "yes", "yes")
        assert row["bad"] == bad
        assert (row["verdict"] == "Exposed") == bad
        assert [row["on0"] == 1, row["on1"] == 1, row["on2"] == 1] == [row[key] == "yes" for key in "puc"]


def test_the_timing_ring_reads_the_closed_form(timing: Any) -> None:
    rows = rows_of(timing)
    assert len(rows) == len(plots.SECRETS) * len(plots.NOISES_MS) * len(plots.PROBES)
    (row,) = [r for r in rows if (r["secret"], r["noise"], r["probes"]) == ("500", "100", 8)]
    assert row["right"] == pytest.approx(100 * (1 - math.exp(-8 * 27.6296 / 100) / 2), abs=0.1)
    assert row["text"] == "shared: right in 95 of 100, signal 28 ms"
    for row in rows:
        assert row["blind"] == 50
        assert row["played"] == pytest.approx(row["right"], abs=400 * 0.5 / math.sqrt(1000))


def test_plots_describe_themselves_and_hold_plain_colours(timing: Any) -> None:
    for chart in (timing, plots.three_ingredients()):
        spec = chart.to_dict()
        assert len(spec["description"]) > 150
        text = json.dumps({k: v for k, v in spec.items() if k not in ("datasets", "data")})
        assert "var(" not in text
        drawn = set(re.findall(r'"(?:fill|stroke|color)": (?:\{"value": )?"(#[0-9a-f]{6})"', text))
        assert len(drawn) >= 3
        assert drawn <= set(PAGE_COLOURS)
    assert len(timing.to_dict()["usermeta"]["lantern"]["stops"]["ring"]) == len(plots.PROBES)


def test_the_ring_starts_only_on_a_stop() -> None:
    with pytest.raises(ValueError, match="^num_probes must be a stop"):
        plots.timing(LANTERN_70B, FOUR, public_len=1500, num_probes=5)
