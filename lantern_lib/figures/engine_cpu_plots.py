"""Plot of the measured engine: the time of its steps over the floor of the machine, as batch or prompt grows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import altair as alt

from lantern_lib.engine_ledger import EngineRow, floor_of, machine_of
from lantern_lib.figures.explore import WIDTH, grips, knob, label, readout, ring, rows_chart, selector
from lantern_lib.figures.roles import ARITHMETIC, MEMORY, TOTAL
from lantern_lib.units import format_quantity

#: For each kind of step: the field that grows, the axis' words, the slider's, and a step's name in a readout.
AXES = {
    "decode": ("batch_size", "sequences of one decode step", "Batch", "batch"),
    "prefill": ("prompt_len", "tokens of the prompt", "Prompt", "prompt of"),
}
HEIGHT = 260


def choice_words(row: EngineRow) -> str:
    """Write the format and threads of a row as the selector offers them.

    Parameters
    ----------
    row : EngineRow
        A measured step.

    Returns
    -------
    str
        For example ``"Q8_0, 1 thread"`` [text].

    Examples
    --------
    >>> choice_words(EngineRow("decode", "F16", 2, 1, 1, 8, 0, 0, 0.0, "greedy", 0.1, 0.1, "s", 9, 1.0, 536_308_224))
    'F16, 2 threads'
    """
    return f"{row.format}, {row.threads} thread{'s' if row.threads > 1 else ''}"


def _rows(rows: Sequence[EngineRow], kind: str, stops: Sequence[int]) -> list[dict[str, Any]]:
    field, _, _, words = AXES[kind]
    found = []
    for row in rows:
        if row.kind != kind:
            continue
        floor = floor_of(row, machine_of(rows, row.threads))
        size = getattr(row, field)
        milliseconds = {
            "measured": row.value * 1e3,
            "memory": floor.memory_seconds * 1e3,
            "arithmetic": floor.compute_seconds * 1e3,
        }
        found.append(
            {
                "choice": choice_words(row),
                "stop": stops.index(size),
                "size": size,
                **{name: float(f"{value:.4g}") for name, value in milliseconds.items()},
                "step": f"{words} {size:,}: {format_quantity(row.value, 'ms', 0)}",
                "ratio": f"floor {format_quantity(floor.total_seconds, 'ms', 0)} ({floor.bound}),"
                f" {row.value / floor.total_seconds:.1f} times",
            }
        )
    return found


def against_floor(rows: Sequence[EngineRow], kind: str, *, choice: str, size: int) -> alt.LayerChart:
    """Plot the measured time of steps over both floors.

    Parameters
    ----------
    rows : sequence of EngineRow
        Best rows of one machine: its rates, and the steps of `kind` that differ in size, format and threads alone.
    kind : str
        ``"decode"``, by the sequences of a step, or ``"prefill"``, by the tokens of a prompt.
    choice : str
        First choice of the selector, as :func:`choice_words` writes it [text].
    size : int
        Where the ring stands first [sequences or tokens].

    Returns
    -------
    altair.LayerChart
        Measured time, bytes over bandwidth and FLOPs over the matrix rate, with a ring and a selector.

    Raises
    ------
    ValueError
        If `kind` or `choice` is not among the rows, or `size` is no stop.

    Examples
    --------
    >>> from dataclasses import replace
    >>> row = EngineRow("decode", "F16", 1, 1, 1, 128, 0, 0, 0.0, "greedy", 0.1, 0.1, "s", 9, 1.0, 536_308_224)
    >>> read = EngineRow("bandwidth", "", 1, 1, 0, 0, 0, 0, 0.0, "read", 1e10, 1e10, "bytes/s", 9, 1.0, 0)
    >>> rates = [read, replace(read, kind="arithmetic", value=5e10, unit="FLOPs/s")]
    >>> against_floor([row, *rates], "decode", choice="F16, 1 thread", size=1).to_dict()["width"]
    580
    """
    if kind not in AXES:
        raise ValueError(f"kind must be decode or prefill, got {kind!r}. Other rows are no single step.")
    field, title, slider, _ = AXES[kind]
    stops = sorted({getattr(row, field) for row in rows if row.kind == kind})
    choices = list(dict.fromkeys(choice_words(row) for row in rows if row.kind == kind))
    if choice not in choices:
        raise ValueError(f"choice must be one of {'; '.join(choices)}, got {choice!r}.")
    grip = ring(slider, "size", size, stops)
    points = _rows(rows, kind, stops)
    times = [row[name] for row in points for name in ("measured", "memory", "arithmetic")]
    y = alt.Scale(type="log", domain=[min(times) / 1.5, max(times) * 4], nice=False)
    x = alt.X(
        "size:Q",
        title=title,
        scale=alt.Scale(type="log", base=2, domain=[stops[0] / 1.3, stops[-1] * 1.3], nice=False),
        axis=alt.Axis(values=stops, format="d"),
    )
    base = rows_chart(points).transform_filter("datum.choice == choice").encode(x=x)
    here = base.transform_filter(grip)
    first = alt.Y("measured:Q", title="milliseconds a step", scale=y, axis=alt.Axis(format="~g"))
    floors = [
        base.mark_line(stroke=role.light, strokeDash=list(role.dash) or [1, 0]).encode(y=f"{name}:Q")
        for name, role in (("memory", MEMORY), ("arithmetic", ARITHMETIC))
    ]
    middle = stops[len(stops) // 2]
    return (
        alt.layer(
            base.mark_line(stroke=TOTAL.light, strokeWidth=2.5, point={"fill": TOTAL.light, "size": 45}).encode(
                y=first
            ),
            *floors,
            label(base, "measured", "size", "measured", TOTAL, middle, dy=-10),
            label(base, "bytes / bandwidth", "size", "memory", MEMORY, stops[-1], dy=-8),
            label(base, "FLOPs / matrix rate", "size", "arithmetic", ARITHMETIC, middle, dy=18, align="left"),
            knob(here, "measured"),
            readout(here, "step", "step", 16),
            readout(here, "ratio", "ratio", 35),
            grips(base, HEIGHT, grip),
        )
        .add_params(selector("choice", "Format", choices, choice))
        .properties(
            width=WIDTH,
            height=HEIGHT,
            description=(
                f"Milliseconds of one {kind} step against {title}, both axes logarithmic, for a chosen format and count"
                " of threads. The measured curve lies above both floors: the bytes of weights and cache over the"
                " bandwidth, and the FLOPs over the rate of a matrix product. The readout gives the measured time,"
                " the higher floor, which of the two it is, and their ratio."
            ),
            usermeta={"lantern": {"stops": {"ring": [f"{stop:,}" for stop in stops]}}},
        )
    )
