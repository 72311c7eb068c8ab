"""What a Vega-Lite chart becomes while the book is built: two drawn layouts, a program, controls."""

import copy
import json
import re
from dataclasses import dataclass
from typing import Any

import vl_convert

from lantern_lib.figures.roles import MUTED, PAGE_COLOURS, RULE, TEXT

VEGALITE_VERSION = "5.20"
NARROW_PIXELS = 340.0  # the whole picture must fit a phone's column
SIGNIFICANT_DIGITS = 6  # of numbers sent to the page: four more than any axis shows
TRIM = 7  # vl_convert measures text with the build machine's fonts, so leave a little room

FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', sans-serif"

#: The look every chart of the book gets; what a chart says itself wins.
VEGA_CONFIG: dict[str, Any] = {
    "aria": False,  # the figure's one description serves screen readers, not hundreds of marks
    "background": "transparent",
    "font": FONT,
    "padding": {"left": 4, "right": 8, "top": 6, "bottom": 4},
    "view": {"stroke": None, "continuousWidth": 560, "continuousHeight": 240},
    "axis": {
        "labelColor": MUTED,
        "titleColor": MUTED,
        "labelFontSize": 12,
        "titleFontSize": 12.5,
        "titleFontWeight": 500,
        "domainColor": MUTED,
        "tickColor": MUTED,
        "gridColor": RULE,
        "labelPadding": 5,
        "tickSize": 4,
    },
    "axisX": {"grid": False, "titlePadding": 8, "labelFlush": False, "labelSeparation": 6, "labelOverlap": True},
    # A vertical axis is named above its top end: no tilted text, and more width for the plot.
    "axisY": {
        "domain": False,
        "ticks": False,
        "titleAngle": 0,
        "titleAlign": "left",
        "titleAnchor": "start",
        "titleBaseline": "bottom",
        "titleX": 0,
        "titleY": -9,
    },
    "text": {"fill": TEXT, "fontSize": 13, "fontWeight": 600},
    "title": {"color": TEXT, "fontSize": 13.5, "fontWeight": 600, "anchor": "start"},
    "legend": {"labelColor": TEXT, "titleColor": MUTED, "labelFontSize": 12, "titleFontSize": 12.5},
    "line": {"strokeWidth": 2.5},
    "concat": {"spacing": 34},
}


class ChartError(ValueError):
    """A chart the book cannot show."""


@dataclass(frozen=True)
class Control:
    """One input outside the picture, bound to one signal of the compiled program."""

    signal: str
    label: str
    value: Any
    options: tuple[Any, ...] = ()  # a selector's choices
    minimum: float = 0.0
    maximum: float = 0.0
    step: float = 1.0
    stops: tuple[str, ...] = ()  # what a slider's positions are called, if not by their number

    @property
    def is_slider(self) -> bool:
        """Whether it is drawn as a slider; otherwise it is a selector."""
        return not self.options


@dataclass(frozen=True)
class Layout:
    """A chart at one width."""

    program: dict[str, Any]  # Vega, without the parts the page's own controls replace
    svg: str  # the same, drawn
    width: float  # [pixels]
    readouts: tuple[str, ...]


def with_look(spec: dict[str, Any]) -> dict[str, Any]:
    """Return the chart with the book's look underneath its own settings."""
    spec = copy.deepcopy(spec)
    own = spec.pop("config", {})
    merged = copy.deepcopy(VEGA_CONFIG)
    for key, value in own.items():
        # Altair's default view size is its own, not the author's choice.
        if isinstance(value, dict) and isinstance(merged.get(key), dict):
            merged[key] = {**value, **merged[key]} if key == "view" else {**merged[key], **value}
        else:
            merged[key] = value
    return {**_with_variables(spec), "config": merged}


def _with_variables(spec: Any) -> Any:
    """Put the page's variables in place of the course's plain colours, data left alone."""
    if isinstance(spec, list):
        return [_with_variables(item) for item in spec]
    if isinstance(spec, dict):
        return {k: v if k in ("datasets", "data") else _with_variables(v) for k, v in spec.items()}
    return PAGE_COLOURS.get(spec, spec) if isinstance(spec, str) else spec


def scaled(spec: Any, factor: float) -> Any:
    """Multiply every numeric width of a specification, data left alone."""
    if isinstance(spec, list):
        return [scaled(item, factor) for item in spec]
    if not isinstance(spec, dict):
        return spec
    result = {}
    for key, value in spec.items():
        if key in ("datasets", "data", "usermeta"):
            result[key] = value
        elif key in ("width", "continuousWidth") and isinstance(value, int | float):
            result[key] = round(value * factor)
        else:
            result[key] = scaled(value, factor)
    return result


def _short(value: Any) -> Any:
    if isinstance(value, float):
        return float(f"{value:.{SIGNIFICANT_DIGITS}g}")
    return value


def _marks(marks: list[dict[str, Any]]) -> list[dict[str, Any]]:
    found = []
    for mark in marks:
        found += [mark, *_marks(mark.get("marks", []))]
    return found


def _without_grips(program: dict[str, Any]) -> dict[str, Any]:
    """Drop the invisible cells a ring is dragged over: a still picture has no use for them."""
    program = copy.deepcopy(program)
    cells = [m for m in _marks(program["marks"]) if m.get("name", "").endswith("_voronoi")]
    gone = {m["name"] for m in cells} | {m["from"]["data"] for m in cells}

    def prune(marks: list[dict[str, Any]]) -> list[dict[str, Any]]:
        kept = [m for m in marks if m.get("name") not in gone]
        return [{**m, "marks": prune(m["marks"])} if "marks" in m else m for m in kept]

    program["marks"] = prune(program["marks"])
    for signal in program.get("signals", []):
        signal["on"] = [on for on in signal.get("on", []) if "_voronoi" not in json.dumps(on)]
    return program


def _drag_everywhere(program: dict[str, Any]) -> None:
    """Let a ring that several panels show be dragged in each (Vega-Lite listens to the first only)."""
    cells = [m["name"] for m in _marks(program["marks"]) if m.get("name", "").endswith("_voronoi")]
    for signal in program.get("signals", []):
        for on in signal.get("on", []):
            events = on["events"] if isinstance(on["events"], list) else []
            mine = [e for e in events if isinstance(e, dict) and str(e.get("markname", "")) in cells]
            if "bind" in signal and mine:
                on["events"] = [{**event, "markname": cell} for cell in cells for event in mine]


def readouts(svg: str) -> tuple[str, ...]:
    """Return the texts of the marks named ``readout…``, in drawing order."""
    texts: list[str] = []
    for group in re.findall(r'<g class="mark-text[^"]*\breadout\w*"[^>]*>(.*?)</g>', svg, re.DOTALL):
        texts += re.findall(r"<text[^>]*>([^<]*)</text>", group)
    return tuple(texts)


def layout(spec: dict[str, Any], prefix: str) -> Layout:
    """Compile and draw a chart. ``prefix`` keeps its ids apart from those of other charts."""
    try:
        program = vl_convert.vegalite_to_vega(spec, vl_version=VEGALITE_VERSION)
        svg = vl_convert.vega_to_svg(_without_grips(program))
    except ValueError as error:
        raise ChartError(f"chart {prefix!r} does not compile: {error}") from error
    _drag_everywhere(program)
    for data in program.get("data", []):
        if isinstance(data.get("values"), list):
            data["values"] = [
                {k: _short(v) for k, v in row.items()} if isinstance(row, dict) else row for row in data["values"]
            ]
    svg = re.sub(r'(\bid="|url\(#)', rf"\g<1>{prefix}-", svg)
    size = re.search(r'\bwidth="([\d.]+)"', svg)
    assert size, "vl_convert always writes the width of a picture"
    return Layout(program, svg, float(size.group(1)), readouts(svg))


def narrow(spec: dict[str, Any], wide: Layout, prefix: str) -> Layout:
    """Compile and draw a chart again, at a width that fits a phone."""
    shape = {key: value for key, value in spec.items() if key not in ("datasets", "data", "usermeta")}
    widths = re.findall(r'"(?:width|continuousWidth)": ([\d.]+)', json.dumps(shape))
    plot = max(float(width) for width in widths)
    target = NARROW_PIXELS - TRIM
    factor = (target - (wide.width - plot)) / plot
    result = layout(scaled(spec, factor), prefix)
    if result.width > target:  # axes grew other labels at this width: take their room off the plot
        result = layout(scaled(spec, factor - (result.width - target) / plot), prefix)
    return result


def take_controls(program: dict[str, Any], spec: dict[str, Any]) -> tuple[Control, ...]:
    """Take the bindings out of a compiled program: the page draws those controls itself."""
    stops = spec.get("usermeta", {}).get("lantern", {}).get("stops", {})
    controls = []
    for signal in program.get("signals", []):
        bind = signal.pop("bind", None)
        if bind is None:
            continue
        name = str(signal["name"])
        if "name" not in bind:
            raise ChartError(f"control {name!r} has no label: give its binding a name=")
        value = signal.get("value", None)
        if value is None and "init" in signal:
            value = json.loads(signal["init"])
        named = [texts for key, texts in stops.items() if name == key or name.startswith(f"{key}_")]
        common = {"signal": name, "label": str(bind["name"]).strip(), "value": value}
        if bind["input"] == "range":
            span = {"minimum": bind["min"], "maximum": bind["max"], "step": bind.get("step", 1)}
            texts = tuple(str(text) for text in named[0]) if named else ()
            controls.append(Control(**common, **span, stops=texts))
        elif bind["input"] == "select":
            controls.append(Control(**common, options=tuple(bind["options"])))
        else:
            raise ChartError(f"control {name!r} is a {bind['input']!r}; the book has range and select")
    return tuple(sorted(controls, key=lambda control: not control.is_slider))
