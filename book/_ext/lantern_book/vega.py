"""Explorable plots: a chart drawn while the book is built, alive when the page can run scripts.

What an author writes is plain Vega-Lite (Altair), so the same cell works in JupyterLab:

- A **ring** is a point selection on the nearest x, bound to a slider. It is added to a layer of
  invisible points, one per row of precomputed data. Dragging the ring moves the slider and back.
- A **selector** is a parameter bound to ``binding_select``; the chart filters its rows by it.
- A **readout** is a text mark in a chart whose ``name`` starts with ``readout``. Its text stands in the
  plot, is repeated under it, and is what a screen reader hears when the slider moves.
- Colours are the plain ones of ``lantern_lib.figures.roles``, for JupyterLab draws on a canvas that knows no
  variables; here each becomes the page's variable, so that dark mode works. The look
  of axes and text comes from ``charts.VEGA_CONFIG``; a chart sets none.
- ``description`` is the alt text, and is required. ``name=`` in every binding is a control's label.
- Panels are stacked (``vconcat``) and have a numeric ``width`` (about 580): for phones the chart is drawn a
  second time with every width scaled down. Charts side by side do not fit there.
- A slider whose positions are not the number to show is bound to the position (0, 1, 2 …), and
  ``usermeta={"lantern": {"stops": {"<parameter>": ["256", "512", …]}}}`` names the positions.

The figure is found as ``[data-figure="<name>"]``, where the name is that of the cell's
``mystnb.figure``; its controls as ``[data-signal="<parameter>"]``. Example::

    ring = alt.selection_point(
        name="ring", encodings=["x"], nearest=True, toggle=False, empty=False, clear=False, value=64,
        on="pointerdown, [pointerdown, window:pointerup] > pointermove",
        bind=alt.binding_range(min=1, max=256, step=1, name="Users at once"),
    )
    gpu = alt.param(name="gpu", value="H100", bind=alt.binding_select(options=["H100", "A100"], name="GPU"))
    base = alt.Chart(alt.Data(values=rows)).transform_filter("datum.gpu == gpu").encode(x="users:Q", y="ms:Q")
    here = base.transform_filter(ring)
    alt.layer(
        base.mark_line(stroke=MEMORY.light),
        here.mark_point(size=180, strokeWidth=3, stroke=TOTAL.light),
        here.mark_text(dy=-18).encode(text="label:N").properties(name="readout_ms"),
        base.mark_point(opacity=0).add_params(ring),
    ).add_params(gpu).properties(width=580, height=220, description="Time per step rises with users …")
"""

import json
from html import escape
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx

from lantern_book.charts import ChartError, Control, Layout, layout, narrow, take_controls, with_look

MIME_TYPE = "application/vnd.vegalite.v5+json"
PACK_FROM_ROWS = 20  # shorter tables gain nothing from being sent by column


def packed(data: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Turn long tables of rows into columns, which are half the size on the wire."""
    result = []
    for entry in data:
        rows = entry.get("values")
        if isinstance(rows, list) and len(rows) >= PACK_FROM_ROWS and all(isinstance(r, dict) for r in rows):
            fields = list(rows[0])
            if all(list(row) == fields for row in rows):
                columns = {field: [row[field] for row in rows] for field in fields}
                entry = {**{k: v for k, v in entry.items() if k != "values"}, "columns": columns}
        result.append(entry)
    return result


def payload(wide: Layout, slim: Layout) -> str:
    """Return the JSON the page's script needs: both programs, their data once."""
    shared = wide.program.get("data", [])
    programs: dict[str, Any] = {"data": packed(shared)}
    for key, part in (("wide", wide), ("narrow", slim)):
        programs[key] = {k: v for k, v in part.program.items() if k != "data"}
        if part.program.get("data", []) != shared:
            programs[key]["data"] = packed(part.program["data"])
    # "<" could end the script element early; in JSON it may always be written as an escape.
    return json.dumps(programs, separators=(",", ":"), ensure_ascii=False).replace("<", "\\u003c")


def _slider(control: Control, ident: str, spoken: str) -> str:
    position = round((float(control.value) - control.minimum) / control.step)
    shown = control.stops[position] if control.stops else f"{control.value:,}"
    stops = escape(json.dumps(control.stops)) if control.stops else ""
    return (
        f'<div class="lt-control lt-control-slider"><label for="{ident}">{escape(control.label)}</label>'
        f'<input type="range" id="{ident}" data-signal="{escape(control.signal)}" min="{control.minimum}" '
        f'max="{control.maximum}" step="{control.step}" value="{control.value}" data-stops="{stops}" '
        f'aria-valuetext="{escape(spoken)}" autocomplete="off">'
        f'<span class="lt-control-value" aria-hidden="true">{escape(shown)}</span></div>'
    )


def _selector(control: Control, ident: str) -> str:
    # The value is JSON, so that the script hands back the number or the text the chart compares with.
    options = "".join(
        f"<option value='{escape(json.dumps(option))}'{' selected' if option == control.value else ''}>"
        f"{escape(str(option))}</option>"
        for option in control.options
    )
    return (
        f'<div class="lt-control"><label for="{ident}">{escape(control.label)}</label>'
        f'<select id="{ident}" data-signal="{escape(control.signal)}" autocomplete="off">{options}</select></div>'
    )


def figure_html(spec: dict[str, Any], name: str) -> str:
    """Return a chart as HTML: two drawings, and controls with their data if it has any.

    Raises ChartError for a chart that does not compile, has no description or no control label.
    """
    description = str(spec.get("description", "")).strip()
    if not description:
        raise ChartError(f"chart {name!r} has no description: the alt text is missing")
    spec = with_look(spec)
    wide = layout(spec, f"{name}-wide")
    slim = narrow(spec, wide, f"{name}-narrow")
    controls = take_controls(wide.program, spec)
    take_controls(slim.program, spec)
    pictures = "".join(
        f'<div class="lt-plot lt-{kind}" data-layout="{kind}" aria-hidden="true">{part.svg}</div>'
        for kind, part in (("wide", wide), ("narrow", slim))
    )
    plots = f'<div class="lt-plots" role="img" aria-label="{escape(description)}">{pictures}</div>'
    spoken = " · ".join(wide.readouts)
    rest = ""
    if controls:
        inputs = "".join(
            _slider(c, f"{name}-{c.signal}", spoken) if c.is_slider else _selector(c, f"{name}-{c.signal}")
            for c in controls
        )
        # Shown only where scripts run (see lantern.css); enabled once the picture has come alive.
        rest = (
            f'<fieldset class="lt-controls" disabled><legend class="lt-unseen">Controls of the figure'
            f'</legend>{inputs}<output class="lt-readout" aria-live="polite">{escape(spoken)}</output>'
            f'</fieldset><script type="application/json" class="lt-explorable__data">{payload(wide, slim)}</script>'
        )
    return f'<div class="lt-explorable" data-figure="{escape(name)}">{plots}{rest}</div>'


class VegaRenderer:
    """The myst-nb plug-in for Vega-Lite outputs."""

    mime_priority_overrides = (("*", MIME_TYPE, 5),)

    @staticmethod
    def handle_mime(renderer: Any, data: Any, inline: bool) -> list[nodes.Element] | None:
        """Return the node for a chart, or None for any other kind of output."""
        if data.mime_type != MIME_TYPE or inline:
            return None
        figure = data.cell_metadata.get("mystnb", {}).get("figure", {})
        name = nodes.make_id(str(figure.get("name", f"chart-{data.cell_index}-{data.output_index}")))
        try:
            html = figure_html(data.content, name)
        except ChartError as error:
            renderer.logger.warning(str(error), subtype="chart", line=data.line)
            return []
        return [nodes.raw(text=html, format="html", classes=["output"])]


def setup(app: Sphinx) -> None:
    """Nothing to register: myst-nb finds the renderer by its entry point, and theme.py the scripts."""
