"""Parts of explorable plots: a ring to drag that is one parameter with a slider, selectors, readouts.

Plots are plain Vega-Lite with all rows computed beforehand, so they need no kernel. The same chart works
in JupyterLab and in the built book; the book adds its own labelled controls.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import altair as alt

from lantern_lib.figures.roles import PLOT_SURFACE, PLOT_TEXT, TOTAL, Role

WIDTH = 580

alt.renderers.enable("mimetype")


def rows_chart(rows: list[dict[str, Any]]) -> alt.Chart:
    """Return a chart of rows that are all computed beforehand.

    Parameters
    ----------
    rows : list of dict
        One row for each machine and each stop of the slider.

    Returns
    -------
    altair.Chart
        The chart, without marks.

    Examples
    --------
    >>> rows_chart([{"stop": 0}]).data.values
    [{'stop': 0}]
    """
    return alt.Chart(alt.Data(values=rows))  # type: ignore[no-untyped-call]


def selector(name: str, label: str, options: Sequence[str], value: str) -> alt.Parameter:
    """Return a drop-down parameter, for filtering rows.

    Parameters
    ----------
    name : str
        The parameter as expressions call it [text].
    label : str
        What the reader sees beside it [text].
    options : sequence of str
        The choices.
    value : str
        The first choice.

    Returns
    -------
    altair.Parameter
        Add it to a chart with ``add_params``.

    Examples
    --------
    >>> selector("gpu", "GPU", ["H100", "A100"], "H100").name
    'gpu'
    """
    return alt.param(name=name, value=value, bind=alt.binding_select(options=list(options), name=f"{label} "))


def ring(label: str, name: str, value: object, stops: Sequence[object]) -> alt.Parameter:
    """Return the ring: the stop nearest to the pointer, or the slider's.

    Parameters
    ----------
    label : str
        What the slider is called [text].
    name : str
        The plot's argument that says where the ring stands first, for the message [text].
    value : object
        Where it stands first, one of `stops`.
    stops : sequence
        What the positions 0, 1, 2 … of the field ``stop`` stand for.

    Returns
    -------
    altair.Parameter
        A point selection on the field ``stop``.

    Raises
    ------
    ValueError
        If `value` is no stop of the slider.

    Examples
    --------
    >>> ring("Users", "batch_size", 64, (1, 8, 64)).name
    'ring'
    """
    if value not in stops:
        shown = stops if len(stops) <= 8 else (*stops[:3], "…", stops[-1])
        raise ValueError(
            f"{name} must be a stop of the slider ({', '.join(map(str, shown))}), got {value!r}."
            " The ring can stand nowhere else."
        )
    return alt.selection_point(
        name="ring",
        fields=["stop"],
        nearest=True,
        toggle=False,
        on="pointerdown, [pointerdown, window:pointerup] > pointermove",
        clear=False,
        empty=False,
        value=list(stops).index(value),
        bind=alt.binding_range(min=0, max=len(stops) - 1, step=1, name=f"{label} "),
    )


def grips(base: alt.Chart, height: int, params: alt.Parameter) -> alt.Chart:
    """Return invisible points that the ring snaps to, all at one height so that only x counts.

    Parameters
    ----------
    base : altair.Chart
        The chart with its x encoding.
    height : int
        Height of the panel [pixels].
    params : altair.Parameter
        The ring.

    Returns
    -------
    altair.Chart
        A layer to put on top.

    Examples
    --------
    >>> grips(alt.Chart(alt.Data(values=[])), 100, ring("Users", "batch_size", 1, (1, 2))).mark.opacity
    0
    """
    points: alt.Chart = base.mark_point(opacity=0, size=1).encode(y=alt.value(height / 2))
    return points.add_params(params)


def knob(here: alt.Chart, y: str, *, first: bool = True) -> alt.Chart:
    """Return the visible ring on a curve.

    Parameters
    ----------
    here : altair.Chart
        The chart filtered to the chosen stop.
    y : str
        The field it sits on [text].
    first : bool
        Whether it is the one to drag; others only follow and are smaller.

    Returns
    -------
    altair.Chart
        A layer.

    Examples
    --------
    >>> knob(alt.Chart(alt.Data(values=[])), "ms").mark.size
    230
    """
    size, width = (230, 4) if first else (110, 3)
    mark: alt.Chart = here.mark_point(size=size, strokeWidth=width, stroke=TOTAL.light, fill=PLOT_SURFACE, opacity=1)
    return mark.encode(y=alt.Y(f"{y}:Q"))


def readout(here: alt.Chart, name: str, field: str, y: int, *, right: bool = False) -> alt.Chart:
    """Return a line of text that names the chosen state.

    Parameters
    ----------
    here : altair.Chart
        The chart filtered to the chosen stop.
    name : str
        A name of its own, after ``readout_`` [text].
    field : str
        The field that holds the text.
    y : int
        Its baseline from the top of the panel [pixels].
    right : bool
        Whether it ends at the right edge instead of beginning at the left one.

    Returns
    -------
    altair.Chart
        A layer.

    Examples
    --------
    >>> readout(alt.Chart(alt.Data(values=[])), "step", "text", 14).name
    'readout_step'
    """
    align = "right" if right else "left"
    mark: alt.Chart = here.mark_text(align=align, baseline="alphabetic", fontSize=14, fontWeight=600, fill=PLOT_TEXT)
    x = alt.value("width") if right else alt.value(14)
    return mark.encode(x=x, y=alt.value(y), text=f"{field}:N").properties(name=f"readout_{name}")


def label(base: alt.Chart, words: str, x: str, y: str, role: Role, at: float, **offset: Any) -> alt.Chart:
    """Return a direct label of a curve, in its role's colour.

    Parameters
    ----------
    base : altair.Chart
        The chart with its rows.
    words : str
        The label [text].
    x, y : str
        The fields that place it.
    role : Role
        Whose colour it has.
    at : float
        The value of `x` it stands at.
    **offset
        ``dx``, ``dy`` and ``align`` of the text mark [pixels].

    Returns
    -------
    altair.Chart
        A layer.

    Examples
    --------
    >>> from lantern_lib.figures.roles import MEMORY
    >>> label(alt.Chart(alt.Data(values=[])), "memory", "b", "ms", MEMORY, 8).mark.type
    'text'
    """
    row: alt.Chart = base.transform_filter(f"datum.{x} == {at}")
    mark: alt.Chart = row.mark_text(
        fontSize=12.5, fontWeight=600, fill=role.light, **({"align": "right", "dy": -8} | offset)
    )
    return mark.encode(x=alt.X(f"{x}:Q"), y=alt.Y(f"{y}:Q"), text=alt.value(words))
