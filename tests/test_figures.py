"""Figures are well-formed, say what they show, use the roles' colours, and read what the library computes."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("altair", reason="figures need the labs extra")

from lantern_lib import H100, LANTERN_70B, Replica
from lantern_lib.figures import part_a, part_a_plots
from lantern_lib.figures.diagram import Canvas, Diagram, wide_and_narrow
from lantern_lib.figures.roles import NEUTRALS, ROLES
from tests.figure_rules import diagram_is_sound, drawings, once, plot_is_sound, reading, rows_of

FOUR = Replica(H100, tp_size=4)
DIAGRAMS: dict[str, Callable[[], Diagram]] = {
    "legend": part_a.legend,
    "phases": lambda: part_a.phases(LANTERN_70B, FOUR, 2000, 400),
    "replica": lambda: part_a.replica(LANTERN_70B, FOUR),
    "bound": lambda: part_a.bound(LANTERN_70B, FOUR, (1, 64), 2000, 2000),
    "kv_layout": lambda: part_a.kv_layout(LANTERN_70B),
    "hierarchy": lambda: part_a.hierarchy(H100, 35e6, 64e9, 50e9),
}
PLOTS = once(
    {
        "roofline": lambda: part_a_plots.roofline(LANTERN_70B, context_len=2000, batch_size=64),
        "kv_budget": lambda: part_a_plots.kv_budget(LANTERN_70B, context_len=8192),
    }
)


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


def test_a_ring_starts_only_on_a_stop() -> None:
    with pytest.raises(ValueError, match="^batch_size must be a stop of the slider"):
        part_a_plots.roofline(LANTERN_70B, context_len=2000, batch_size=65)
    with pytest.raises(ValueError, match="^context_len must be a stop of the slider"):
        part_a_plots.kv_budget(LANTERN_70B, context_len=8193)


def small_text(canvas: Canvas) -> None:
    canvas.text(10, 20, "too small to read", size=8)


def wide_text(canvas: Canvas) -> None:
    canvas.text(canvas.width - 60, 20, "this line runs out of its frame")


def odd_colour(canvas: Canvas) -> None:
    canvas.text(10, 20, "a colour of no role", colour="#123456")


def wide_box(canvas: Canvas) -> None:
    canvas.box(10, 10, canvas.width, 40)


@pytest.mark.parametrize("draw", [small_text, wide_text, odd_colour, wide_box])
def test_an_unsound_diagram_is_seen(draw: Callable[[Canvas], None]) -> None:
    with pytest.raises(AssertionError):
        diagram_is_sound(Diagram("Title", "What it shows. " * 8, *wide_and_narrow(draw)))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"description": "', '"description": "", "was": "'),
        ('"ring": ["', '"ring": ["one too many", "'),
        ("#1f5fa8", "#123456"),
        ("#1f5fa8", "var(--lt-memory)"),
    ],
)
def test_an_unsound_plot_is_seen(old: str, new: str) -> None:
    spec = json.dumps(PLOTS["kv_budget"]().to_dict())
    assert old in spec
    with pytest.raises(AssertionError):
        plot_is_sound(json.loads(spec.replace(old, new)))


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


def test_diagrams_are_sound(any_diagram: Any, sound_diagram: Callable[[Any], None]) -> None:
    sound_diagram(any_diagram)


def test_plots_are_sound(any_plot: Any, sound_plot: Callable[[Any], None]) -> None:
    sound_plot(any_plot)
