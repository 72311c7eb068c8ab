"""What holds for every figure: readable inside its frame on a phone, described, in the roles' colours, stops named."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any
from xml.etree import ElementTree

from lantern_lib.figures.diagram import Diagram
from lantern_lib.figures.roles import PAGE_COLOURS, ROLES

#: No system font of the site has wider letters on average [em].
LETTER = 0.62
#: A phone of 390 pixels leaves this width to a drawing [pixels].
PHONE = 358
ALLOWED = {role.colour for role in ROLES} | {"none", "transparent"}
NEUTRAL = re.compile(r"var\(--lt-(text|muted|rule|surface|panel), #[0-9a-f]{6}\)$")


class Drawn:
    """A plot that is computed once for all tests of a module, as is its specification."""

    def __init__(self, make: Callable[[], Any]) -> None:
        self._make = make

    def __call__(self) -> Drawn:
        return self

    def to_dict(self) -> dict[str, Any]:
        return self._spec

    @cached_property
    def _spec(self) -> dict[str, Any]:
        spec: dict[str, Any] = self._make().to_dict()
        return spec


def once(plots: Mapping[str, Callable[[], Any]]) -> dict[str, Drawn]:
    """Let each plot of a catalogue be computed when it is first looked at, and never again."""
    return {name: Drawn(make) for name, make in plots.items()}


def number(element: ElementTree.Element, attribute: str) -> float:
    return float(element.get(attribute, "0"))


def drawings(diagram: Diagram) -> list[ElementTree.Element]:
    """Return the wide and the narrow drawing."""
    return list(ElementTree.fromstring(diagram._repr_html_()))


def words(svg: ElementTree.Element) -> str:
    """Return all that is written in a drawing."""
    return " ".join(text.text or "" for text in svg.iter("text"))


def tables_in(spec: dict[str, Any]) -> list[list[dict[str, Any]]]:
    """Return every distinct table of rows in a plot's specification, in the order in which they stand there."""
    found: list[list[dict[str, Any]]] = []

    def look(part: Any) -> None:
        values = part.get("values") if isinstance(part, dict) else None
        if isinstance(values, list) and values and isinstance(values[0], dict):
            found.extend([values] if values not in found else [])
        elif isinstance(part, (dict, list)):
            for each in part.values() if isinstance(part, dict) else part:
                look(each)

    look(spec)
    return found


def tables_of(chart: Any) -> list[list[dict[str, Any]]]:
    """Return every distinct table of rows in a chart."""
    return tables_in(chart.to_dict())


def rows_of(chart: Any) -> list[dict[str, Any]]:
    """Return the longest table of a chart: a row for each setting and each stop of its slider."""
    return max(tables_of(chart), key=len)


def rows_with(chart: Any, *fields: str) -> list[dict[str, Any]]:
    """Return the first table of a chart whose rows have some fields."""
    return next(rows for rows in tables_of(chart) if set(fields) <= set(rows[0]))


def reading(chart: Any, **where: Any) -> dict[str, Any]:
    """Return the only stop of a chart's slider with some values: what the readouts say there."""
    rows = (row for table in tables_of(chart) for row in table if "stop" in row)
    (row,) = [row for row in rows if all(row.get(key) == value for key, value in where.items())]
    return row


def diagram_is_sound(diagram: Diagram) -> None:
    """Assert what holds for every diagram, in both of its layouts."""
    assert len(diagram.description) > 80
    wide, narrow = ElementTree.fromstring(diagram._repr_html_())
    ids = [[element.get("id") for element in svg.iter() if element.get("id")] for svg in (wide, narrow)]
    assert not set(ids[0]) & set(ids[1])
    for svg, own in zip((wide, narrow), ids, strict=True):
        assert svg.get("role") == "img"
        assert svg.get("aria-labelledby") == " ".join(map(str, own[:2]))
        steps = {group.get("data-step") for group in svg.iter("g")} - {None}
        assert steps == {str(step) for step in range(1, diagram.steps + 1)}
        _stays_inside(svg)
        for element in svg.iter():
            for attribute in ("fill", "stroke"):
                colour = element.get(attribute)
                assert not colour or colour in ALLOWED or NEUTRAL.match(colour), colour


def _stays_inside(svg: ElementTree.Element) -> None:
    width = number(svg, "width")
    shown_at = min(1.0, PHONE / width) if width < 400 else 1.0
    for text in svg.iter("text"):
        size, x, words = number(text, "font-size"), number(text, "x"), text.text or ""
        assert size * shown_at >= 11, words
        length = LETTER * size * len(words)
        start = {"start": x, "middle": x - length / 2, "end": x - length}[text.get("text-anchor", "start")]
        assert start >= -length * 0.1, f"{words!r} begins at {start:.0f}"
        assert start + length <= width + length * 0.12, f"{words!r} ends at {start + length:.0f} of {width}"
    for box in svg.iter("rect"):
        assert number(box, "x") >= 0
        assert number(box, "x") + number(box, "width") <= width


def plot_is_sound(spec: dict[str, Any]) -> None:
    """Assert what holds for the specification of every plot."""
    assert len(spec["description"]) > 150
    stops = {row["stop"] for table in tables_in(spec) for row in table if "stop" in row}
    if stops:
        assert len(spec["usermeta"]["lantern"]["stops"]["ring"]) == len(stops)
    # JupyterLab draws on a canvas, where a CSS variable is no colour.
    text = json.dumps({key: value for key, value in spec.items() if key not in ("datasets", "data")})
    assert "var(" not in text
    drawn = set(re.findall(r'"(?:fill|stroke|color)": (?:\{"value": )?"(#[0-9a-f]{6})"', text))
    assert len(drawn) >= 3
    assert drawn <= set(PAGE_COLOURS)
