"""Charts become two pictures and controls while the book is built. The charts here are plain Vega-Lite."""

from __future__ import annotations

import json
import re
from html import unescape
from types import SimpleNamespace
from typing import Any

import pytest
from lantern_book import charts, vega

ROWS = [
    {"gpu": gpu, "stop": stop, "ms": 1.23456789 * (stop + 1), "text": f"{stop} ms"}
    for gpu in ("A", "B")
    for stop in range(30)
]


def panel(name: str, **extra: Any) -> dict[str, Any]:
    """One panel: a line, the ring's invisible grips, and a readout at the chosen row."""
    x, y = {"field": "stop", "type": "quantitative"}, {"field": "ms", "type": "quantitative"}
    here = {"transform": [{"filter": {"param": "ring", "empty": False}}]}
    return {
        "width": 580,
        "height": 100,
        "transform": [{"filter": "datum.gpu == gpu"}],
        "layer": [
            {"mark": {"type": "line", "stroke": "#1f5fa8"}, "encoding": {"x": x, "y": y}},
            {
                "name": f"readout_{name}",
                "mark": "text",
                "encoding": {"x": x, "y": y, "text": {"field": "text"}},
                **here,
            },
            {"name": f"grip_{name}", "mark": {"type": "point", "opacity": 0}, "encoding": {"x": x, "y": y}},
        ],
        **extra,
    }


def chart(**extra: Any) -> dict[str, Any]:
    """Two panels with one ring and one selector."""
    ring = {
        "name": "ring",
        "select": {
            "type": "point",
            "fields": ["stop"],
            "nearest": True,
            "toggle": False,
            "clear": False,
            "on": "pointerdown, [pointerdown, window:pointerup] > pointermove",
        },
        "bind": {"input": "range", "min": 0, "max": 29, "step": 1, "name": "Users "},
        "value": 7,
        "views": ["grip_top", "grip_bottom"],
    }
    gpu = {"name": "gpu", "value": "B", "bind": {"input": "select", "options": ["A", "B"], "name": "GPU"}}
    return {
        "data": {"values": ROWS},
        "description": "A line that rises.",
        "params": [gpu, ring],
        "vconcat": [panel("top"), panel("bottom")],
        **extra,
    }


@pytest.fixture(scope="module")
def wide() -> charts.Layout:
    return charts.layout(charts.with_look(chart()), "fig")


def voronoi_cells(program: dict[str, Any]) -> set[str]:
    return set(re.findall(r'"name": "(\w+_voronoi)"', json.dumps(program["marks"])))


def test_a_picture_keeps_role_colours_as_variables(wide: charts.Layout) -> None:
    assert 'stroke="var(--lt-memory, #1f5fa8)"' in wide.svg
    assert "var(--lt-muted, " in wide.svg, "axes take their colour from the page too"


def test_the_still_picture_shows_the_first_state_without_grips(wide: charts.Layout) -> None:
    assert wide.readouts == ("7 ms", "7 ms")
    assert len(voronoi_cells(wide.program)) == 2, "the live program keeps them"
    assert wide.svg.count('fill="transparent"') < 5
    assert wide.svg.count("<path") < 40


def test_the_ring_can_be_dragged_in_each_panel(wide: charts.Layout) -> None:
    (signal,) = [s for s in wide.program["signals"] if s["name"] == "ring_stop"]
    heard = {event["markname"] for on in signal["on"] for event in on["events"]}
    assert heard == voronoi_cells(wide.program)


def test_the_narrow_picture_fits_a_phone_and_the_wide_one_does_not(wide: charts.Layout) -> None:
    spec = charts.with_look(chart())
    slim = charts.narrow(spec, wide, "fig")
    assert wide.width > 580
    assert 300 < slim.width <= charts.NARROW_PIXELS


def test_widths_in_the_data_are_left_alone() -> None:
    spec = {"width": 100, "data": {"values": [{"width": 3}]}, "layer": [{"width": 50}]}
    assert charts.scaled(spec, 0.5) == {"width": 50, "data": {"values": [{"width": 3}]}, "layer": [{"width": 25}]}


def test_what_a_chart_sets_itself_wins() -> None:
    spec = charts.with_look({"config": {"line": {"strokeWidth": 9}, "font": "serif"}})
    assert spec["config"]["line"]["strokeWidth"] == 9
    assert spec["config"]["font"] == "serif"
    assert spec["config"]["text"] == charts.VEGA_CONFIG["text"]


def test_controls_are_taken_from_the_program() -> None:
    spec = charts.with_look(chart(usermeta={"lantern": {"stops": {"ring": list("abcdefghijklmnopqrstuvwxyzABCD")}}}))
    program = charts.layout(spec, "fig").program
    slider, selector = charts.take_controls(program, spec)
    assert (slider.label, slider.value, slider.minimum, slider.maximum, slider.step) == ("Users", 7, 0, 29, 1)
    assert slider.stops[7] == "h"
    assert (selector.label, selector.value, selector.options) == ("GPU", "B", ("A", "B"))
    assert "bind" not in json.dumps(program["signals"])


def test_the_page_holds_labelled_controls_and_the_data_once() -> None:
    html = vega.figure_html(chart(), "fig-x")
    slider = re.search(r'<label for="([^"]+)">Users</label><input type="range" id="([^"]+)"', html)
    assert slider
    assert slider[1] == slider[2]
    assert '<fieldset class="lt-controls" disabled>' in html
    assert 'aria-valuetext="7 ms · 7 ms"' in html
    assert 'role="img" aria-label="A line that rises."' in html
    options = re.findall(r"<option value='([^']*)'( selected)?>", html)
    assert [(json.loads(unescape(value)), bool(chosen)) for value, chosen in options] == [("A", False), ("B", True)]
    data = re.search(r'<script type="application/json"[^>]*>(.*?)</script>', html, re.DOTALL)
    assert data
    programs = json.loads(data[1])
    assert "data" not in programs["wide"]
    assert "data" not in programs["narrow"]
    (table,) = [entry for entry in programs["data"] if "columns" in entry]
    assert table["columns"]["gpu"] == [row["gpu"] for row in ROWS]
    assert table["columns"]["ms"] == pytest.approx([row["ms"] for row in ROWS], rel=1e-5)


def test_data_cannot_end_the_script_that_holds_it() -> None:
    rows = [{**row, "text": "</script><b>"} for row in ROWS]
    html = vega.figure_html(chart(data={"values": rows}), "fig-x")
    assert html.count("</script>") == 1


def test_a_chart_without_controls_needs_no_script() -> None:
    bar = {"mark": "bar", "width": 500, "encoding": {"x": {"field": "a", "type": "quantitative"}}}
    html = vega.figure_html({"data": {"values": [{"a": 1}]}, "description": "One bar.", **bar}, "fig-x")
    assert "<script" not in html
    assert "<fieldset" not in html
    assert html.count("<svg") == 2


def test_ids_of_two_charts_never_meet() -> None:
    clipped = chart()
    clipped["vconcat"][0]["layer"][0]["mark"]["clip"] = True
    ids = [set(re.findall(r'\bid="([^"]+)"', vega.figure_html(clipped, name))) for name in ("fig-x", "fig-y")]
    assert any("clip" in name for name in ids[0])
    assert ids[0].isdisjoint(ids[1])


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"description": " "}, "no description"),
        ({"vconcat": [{"mark": "nonsense"}]}, "does not compile"),
        ({"params": [{"name": "gpu", "value": "A", "bind": {"input": "range", "min": 0, "max": 1}}]}, "no label"),
        ({"params": [{"name": "gpu", "value": "A", "bind": {"input": "color", "name": "C"}}]}, "'color'"),
    ],
)
def test_a_chart_the_book_cannot_show_is_an_error_in_words(change: dict[str, Any], words: str) -> None:
    broken = {**chart(), **change}
    if "params" in change:
        broken["vconcat"] = [{"mark": "bar", "width": 500, "encoding": {}}]
    with pytest.raises(charts.ChartError, match=words):
        vega.figure_html(broken, "fig-x")


def test_the_plugin_names_the_figure_and_reports_the_line() -> None:
    said: list[tuple[str, int]] = []
    logger = SimpleNamespace(warning=lambda text, subtype, line: said.append((text, line)))
    renderer = SimpleNamespace(logger=logger)
    data = SimpleNamespace(
        mime_type=vega.MIME_TYPE,
        content=chart(),
        cell_metadata={"mystnb": {"figure": {"name": "fig-roofline"}}},
        cell_index=3,
        output_index=0,
        line=42,
    )
    (node,) = vega.VegaRenderer.handle_mime(renderer, data, inline=False) or []
    assert 'data-figure="fig-roofline"' in node.astext()
    data.content = chart(description="")
    assert vega.VegaRenderer.handle_mime(renderer, data, inline=False) == []
    ((text, line),) = said
    assert line == 42
    assert "fig-roofline" in text
    data.mime_type = "text/plain"
    assert vega.VegaRenderer.handle_mime(renderer, data, inline=False) is None
