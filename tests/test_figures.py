"""Figures are well-formed, say what they show, use the roles' colours, and read what the library computes."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

pytest.importorskip("altair", reason="figures need the labs extra")

from lantern_lib import H100, LANTERN_70B, Replica
from lantern_lib.figures import part_a, part_a_plots
from lantern_lib.figures.diagram import Diagram
from lantern_lib.figures.roles import NEUTRALS, PAGE_COLOURS, ROLES

FOUR = Replica(H100, tp_size=4)
DIAGRAMS: dict[str, Callable[[], Diagram]] = {
    "legend": part_a.legend,
    "phases": lambda: part_a.phases(LANTERN_70B, FOUR, 2000, 400),
    "replica": lambda: part_a.replica(LANTERN_70B, FOUR),
    "bound": lambda: part_a.bound(LANTERN_70B, FOUR, (1, 64), 2000, 2000),
    "kv_layout": lambda: part_a.kv_layout(LANTERN_70B),
    "hierarchy": lambda: part_a.hierarchy(H100, 35e6, 64e9, 50e9),
}
PLOTS: dict[str, Callable[[], Any]] = {
    "roofline": lambda: part_a_plots.roofline(LANTERN_70B, context_len=2000, batch_size=64),
    "kv_budget": lambda: part_a_plots.kv_budget(LANTERN_70B, context_len=8192),
}


def drawings(diagram: Diagram) -> list[ElementTree.Element]:
    return list(ElementTree.fromstring(diagram._repr_html_()))


@pytest.mark.parametrize("name", DIAGRAMS)
def test_a_diagram_is_well_formed_named_and_described(name: str) -> None:
    diagram = DIAGRAMS[name]()
    wide, narrow = drawings(diagram)
    for svg in (wide, narrow):
        assert svg.get("role") == "img"
        ids = [element.get("id") for element in svg.iter() if element.get("id")]
        assert svg.get("aria-labelledby") == " ".join(ids[:2])
    assert [e.get("id") for e in wide.iter() if e.get("id")] != [e.get("id") for e in narrow.iter() if e.get("id")]
    assert len(diagram.description) > 80


@pytest.mark.parametrize("name", DIAGRAMS)
def test_text_of_a_diagram_stays_inside_and_is_readable_on_a_phone(name: str) -> None:
    """Widths are bounded with 0.62 em a letter, wider than any system font of the site."""
    for svg in drawings(DIAGRAMS[name]()):
        width = float(svg.get("width", "0"))
        shown_at = min(1.0, 358 / width) if width < 400 else 1.0
        for text in svg.iter("text"):
            size, x, words = float(text.get("font-size", "0")), float(text.get("x", "0")), text.text or ""
            assert size * shown_at >= 11, words
            length = 0.62 * size * len(words)
            start = {"start": x, "middle": x - length / 2, "end": x - length}[text.get("text-anchor", "start")]
            assert start >= -length * 0.1, f"{words!r} begins at {start:.0f}"
            assert start + length <= width + length * 0.12, f"{words!r} ends at {start + length:.0f} of {width}"


@pytest.mark.parametrize("name", DIAGRAMS)
def test_colours_of_a_diagram_are_roles_or_neutral(name: str) -> None:
    allowed = {role.colour for role in ROLES} | {"none", "transparent"}
    for svg in drawings(DIAGRAMS[name]()):
        for element in svg.iter():
            for attribute in ("fill", "stroke"):
                colour = element.get(attribute)
                if colour and colour not in allowed:
                    assert re.match(r"var\(--lt-(text|muted|rule|surface|panel), #[0-9a-f]{6}\)$", colour), colour


def test_a_diagram_that_unfolds_has_its_steps() -> None:
    diagram = DIAGRAMS["phases"]()
    for svg in drawings(diagram):
        assert svg.get("data-steps") == str(diagram.steps)
        assert {g.get("data-step") for g in svg.iter("g")} == {str(n) for n in range(1, diagram.steps + 1)}


@pytest.mark.parametrize(
    ("name", "texts"),
    [
        ("phases", ["162 ms", "14.3 ms", "5.9 s", "2,000 tokens", "400 tokens"]),
        ("replica", ["35.3 GB of 80 GB", "160 a step"]),
        ("bound", ["ridge 184.5"]),
        ("kv_layout", ["8 keys and values of 128 numbers", "64 queries"]),
        ("hierarchy", ["3.35 TB/s", "450 GB/s", "64 GB/s", "50 GB/s"]),
    ],
)
def test_a_diagram_shows_the_published_numbers(name: str, texts: list[str]) -> None:
    for svg in drawings(DIAGRAMS[name]()):
        shown = " ".join(text.text or "" for text in svg.iter("text"))
        for expected in texts:
            assert expected in shown


def rows_of(chart: Any) -> list[dict[str, Any]]:
    spec = chart.to_dict()
    found: list[dict[str, Any]] = max(
        (json.loads(text) for text in set(re.findall(r'"values": (\[\{.*?\}\])', json.dumps(spec)))), key=len
    )
    return found


def reading(chart: Any, **where: Any) -> dict[str, Any]:
    (row,) = [row for row in rows_of(chart) if all(row[key] == value for key, value in where.items())]
    return row


def test_the_roofline_ring_reads_the_published_numbers() -> None:
    row = reading(PLOTS["roofline"](), accelerator="H100", tp="4", batch=64)
    assert "18.7 ms" in row["step_text"]
    assert "3,419 tokens/s" in row["rate_text"]
    assert row["limit"] == 224


@pytest.mark.parametrize(("context", "fits"), [(8192, 54), (2000, 224), (131072, 3)])
def test_the_memory_ring_reads_the_published_numbers(context: int, fits: int) -> None:
    row = reading(PLOTS["kv_budget"](), accelerator="H100", tp="4", context=context)
    assert row["fits"] == fits
    assert row["text"].startswith(f"{fits} conversations of {context:,} tokens")


def test_the_bars_of_the_memory_plot_fill_the_machine() -> None:
    for row in rows_of(PLOTS["kv_budget"]()):
        if row["pool"] > 0:
            total = row["weights"] + row["reserve"] + row["pool"]
            assert total == pytest.approx(
                {"H100": 80, "H200": 141, "A100": 80, "Trainium2": 96}[row["accelerator"]] * int(row["tp"]), abs=0.2
            )
        assert row["fits"] * row["each"] <= row["pool"] + 0.1


@pytest.mark.parametrize("name", PLOTS)
def test_a_plot_describes_itself_and_names_its_stops(name: str) -> None:
    spec = PLOTS[name]().to_dict()
    assert len(spec["description"]) > 150
    stops = spec["usermeta"]["lantern"]["stops"]["ring"]
    assert len(stops) == len({row["stop"] for row in rows_of(PLOTS[name]())})


@pytest.mark.parametrize("name", PLOTS)
def test_a_plot_holds_plain_colours_that_the_book_can_turn_into_its_own(name: str) -> None:
    """JupyterLab draws on a canvas, where a CSS variable is no colour."""
    spec = json.dumps({k: v for k, v in PLOTS[name]().to_dict().items() if k not in ("datasets", "data")})
    assert "var(" not in spec
    drawn = set(re.findall(r'"(?:fill|stroke|color)": (?:\{"value": )?"(#[0-9a-f]{6})"', spec))
    assert len(drawn) >= 4
    assert drawn <= set(PAGE_COLOURS)


def test_a_ring_starts_only_on_a_stop() -> None:
    with pytest.raises(ValueError, match="^batch_size must be a stop of the slider"):
        part_a_plots.roofline(LANTERN_70B, context_len=2000, batch_size=65)
    with pytest.raises(ValueError, match="^context_len must be a stop of the slider"):
        part_a_plots.kv_budget(LANTERN_70B, context_len=8193)


def luminance(colour: str) -> float:
    """Relative luminance by the WCAG definition."""
    channels = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def themes() -> list[dict[str, str]]:
    """The variables of the site's style sheet: light, then dark by choice and dark by the system."""
    sheet = (Path(__file__).resolve().parent.parent / "book" / "_static" / "lantern.css").read_text(encoding="utf-8")
    blocks = [dict(re.findall(r"(--lt-[a-z]+):\s*(#[0-9a-f]{6})", body)) for body in re.findall(r"\{([^{}]*)\}", sheet)]
    return [block for block in blocks if "--lt-memory" in block]


def test_the_style_sheet_and_the_library_have_the_same_colours() -> None:
    light, *dark = themes()
    for role in ROLES:
        assert light[role.variable] == role.light
    for variable, value in NEUTRALS.items():
        assert light[variable] == value
    assert len(dark) == 2
    assert dark[0] == dark[1]


@pytest.mark.parametrize("theme", [0, 1], ids=["light", "dark"])
@pytest.mark.parametrize("role", ROLES, ids=lambda role: role.name)
def test_a_role_is_readable_as_text(role: Any, theme: int) -> None:
    colours = themes()[theme]
    for ground in ("--lt-surface", "--lt-panel"):
        bright, dim = sorted((luminance(colours[ground]), luminance(colours[role.variable])), reverse=True)
        assert (bright + 0.05) / (dim + 0.05) >= 4.5


def test_roles_differ_without_colour() -> None:
    """Memory and total are solid and told apart by their labels; every other role has a dash of its own."""
    dashes = [role.dash for role in ROLES if role.dash]
    assert len(dashes) == len(set(dashes)) == len(ROLES) - 2
