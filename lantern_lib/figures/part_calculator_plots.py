"""Plots of the calculator's pages: by which factor usual formulas are wrong, model by model and log by log."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import altair as alt

from lantern_lib.book_data import significant
from lantern_lib.figures.explore import WIDTH, readout, ring, rows_chart, selector
from lantern_lib.figures.roles import CONTROL, MEMORY, PLOT_MUTED, PLOT_SURFACE, PLOT_TEXT, TOTAL, Role
from lantern_lib.usual_formulas import LOG_MISTAKES, MISTAKES, Mistake, Wrong

#: Quantities that are got wrong, and how each looks.
KINDS: dict[str, tuple[Role, str]] = {
    "cache": (MEMORY, "circle"),
    "weights": (TOTAL, "square"),
    "pool": (CONTROL, "triangle-up"),
}
#: Height of a mistake's strip, and of the room for the readouts above the first [pixels].
STRIP, HEAD = 36, 50
#: From the words of a strip down to its marks [pixels].
DROP = 18
_SPAN = (1 / 48, 110)
_TICKS = [1 / 32, 1 / 8, 1 / 2, 1, 2, 8, 32]


def factor_words(factor: float) -> str:
    """Write a factor of error as a reader says it.

    Parameters
    ----------
    factor : float
        Said over right [ratio].

    Returns
    -------
    str
        ``"8.0 ×"`` above one, ``"1/4.0"`` below, ``"right"`` within half a percent [text].

    Examples
    --------
    >>> [factor_words(f) for f in (8, 0.25, 1.004, 1.07, 71.1)]
    ['8.0 ×', '1/4.0', 'right', '1.07 ×', '71 ×']
    """
    if abs(factor - 1) < 0.005:
        return "right"
    size = factor if factor > 1 else 1 / factor
    number = f"{size:.0f}" if size >= 10 else f"{size:.1f}" if size >= 2 else f"{size:.2f}"
    return f"{number} ×" if factor > 1 else f"1/{number}"


def _far(wrong: Wrong) -> float:
    return max(wrong.factor, 1 / wrong.factor)


def _rows(
    found: Mapping[str, Sequence[Wrong]], mistakes: Sequence[Mistake], choice: str
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Return a row for each mistake and each name, and one that reads the worst of each name."""
    strips = {mistake.key: index for index, mistake in enumerate(mistakes)}
    points, words = [], []
    for stop, (name, wrongs) in enumerate(found.items()):
        # What is said to be nothing has no factor, and no place on such an axis.
        shown = [wrong for wrong in wrongs if wrong.said > 0]
        for wrong in shown:
            points.append(
                {
                    "stop": stop,
                    "choice": choice,
                    "kind": wrong.mistake.quantity,
                    "strip": HEAD + STRIP * strips[wrong.mistake.key] + DROP,
                    "factor": significant(wrong.factor, 4),
                    "shown": factor_words(wrong.factor),
                }
            )
        worst = max(shown, key=_far)
        words.append(
            {
                "stop": stop,
                "choice": choice,
                "name": name,
                "worst": f"worst: {worst.mistake.words}, {factor_words(worst.factor)}",
            }
        )
    return points, words


def _y(height: int) -> alt.Y:
    return alt.Y("strip:Q", scale=alt.Scale(domain=[0, height], reverse=True, nice=False), axis=None)


def _frame(mistakes: Sequence[Mistake], height: int, x: alt.X) -> list[alt.Chart]:
    """Draw the line of what is right, and the words over each strip."""
    right = rows_chart([{"factor": 1, "strip": HEAD - 8, "end": height}])
    names = rows_chart(
        [{"words": mistake.words, "strip": HEAD + STRIP * index + 4} for index, mistake in enumerate(mistakes)]
    )
    return [
        right.mark_rule(stroke=PLOT_MUTED, strokeDash=[4, 3]).encode(x=x, y=_y(height), y2="end:Q"),
        names.mark_text(align="left", baseline="middle", fontSize=12, fill=PLOT_TEXT).encode(
            x=alt.value(4), y=_y(height), text="words:N"
        ),
    ]


def _marks(base: alt.Chart, grip: alt.Parameter) -> list[alt.Chart]:
    layers = []
    for kind, (role, shape) in KINDS.items():
        rows = base.transform_filter(f"datum.kind == '{kind}'")
        layers.append(rows.mark_point(shape=shape, size=30, stroke=role.light, strokeWidth=1, opacity=0.45))
        here = rows.transform_filter(grip)
        layers.append(here.mark_point(shape=shape, size=170, stroke=role.light, strokeWidth=3, fill=PLOT_SURFACE))
    return layers


def _strips(
    tables: Mapping[str, Mapping[str, Sequence[Wrong]]],
    mistakes: Sequence[Mistake],
    *,
    label: str,
    argument: str,
    first: str,
    description: str,
) -> alt.LayerChart:
    """Plot factors in strips, one for each mistake, with a ring that picks a name in all of them."""
    names = list(next(iter(tables.values())))
    grip = ring(label, argument, first, names)
    points: list[dict[str, Any]] = []
    words: list[dict[str, Any]] = []
    for choice, found in tables.items():
        more = _rows(found, mistakes, choice)
        points += more[0]
        words += more[1]
    height = HEAD + STRIP * len(mistakes)
    says = "datum.value < 1 ? '1/' + round(1 / datum.value) : format(datum.value, '~g')"
    x = alt.X(
        "factor:Q",
        title="said over right",
        scale=alt.Scale(type="log", domain=list(_SPAN), nice=False),
        axis=alt.Axis(values=_TICKS, labelExpr=says),
    )
    base, texts = rows_chart(points), rows_chart(words)
    if len(tables) > 1:
        base, texts = (chart.transform_filter("datum.choice == choice") for chart in (base, texts))
    placed = base.encode(x=x, y=_y(height))
    # At the right edge, on the line of the strip's words, where no mark can be.
    values = base.transform_filter(grip).mark_text(
        align="right", baseline="middle", dx=-4, dy=4 - DROP, fontSize=12, fontWeight=600, fill=PLOT_TEXT
    )
    here = texts.transform_filter(grip)
    return alt.layer(
        *_frame(mistakes, height, x),
        *_marks(placed, grip),
        values.encode(x=alt.value("width"), y=_y(height), text="shown:N"),
        readout(here, "name", "name", 16),
        readout(here, "worst", "worst", 35),
        placed.mark_point(opacity=0, size=1).add_params(grip),
    ).properties(
        width=WIDTH,
        height=height,
        description=description,
        usermeta={"lantern": {"stops": {"ring": names}}},
    )


def wrong_by_model(tables: Mapping[str, Mapping[str, Sequence[Wrong]]], *, model: str, context: str) -> alt.LayerChart:
    """Plot by which factor each usual formula is wrong, for every model.

    Parameters
    ----------
    tables : mapping of str to mapping of str to sequence of Wrong
        By the words of a context, then by the name of a model.
    model : str
        Where the ring stands first, a name [text].
    context : str
        The first choice of context, a key of `tables` [text].

    Returns
    -------
    altair.LayerChart
        A strip for each mistake, with a ring over the models and a selector of the context.

    Raises
    ------
    ValueError
        If `model` is no name of the tables.

    Examples
    --------
    >>> from lantern_lib.model_config import LANTERN_70B
    >>> from lantern_lib.usual_formulas import wrong_formulas
    >>> tables = {"8,192": {"ours": wrong_formulas(LANTERN_70B)}}
    >>> wrong_by_model(tables, model="ours", context="8,192").to_dict()["width"]
    580
    """
    count = len(next(iter(tables.values())))
    chart = _strips(
        tables,
        MISTAKES,
        label="Model",
        argument="model",
        first=model,
        description=(
            f"Factor of error of {len(MISTAKES)} usual formulas for {count} models on a logarithmic axis, one strip for"
            " each formula. Counting query heads or the model's width is right for a few old models, several times too"
            " much for most, and seventy times for the extremes. Dividing by all GPUs and counting active parameters"
            " say too little, down to a thirtieth. Leaving out the reserve says up to twice as much."
        ),
    )
    if len(tables) == 1:
        return chart
    return chart.add_params(selector("choice", "Context", list(tables), context))


def wrong_by_log(found: Mapping[str, Sequence[Wrong]], *, log: str) -> alt.LayerChart:
    """Plot by which factor formulas are wrong on start-up logs.

    Parameters
    ----------
    found : mapping of str to sequence of Wrong
        By what a log is called.
    log : str
        Where the ring stands first, a key of `found` [text].

    Returns
    -------
    altair.LayerChart
        A strip for each formula, with a ring over the logs.

    Raises
    ------
    ValueError
        If `log` is no key.

    Examples
    --------
    >>> from lantern_lib.usual_formulas import Wrong
    >>> found = {"a log": (Wrong(LOG_MISTAKES[0], "k", 2.0, 1.0),)}
    >>> wrong_by_log(found, log="a log").to_dict()["usermeta"]["lantern"]["stops"]
    {'ring': ['a log']}
    """
    return _strips(
        {"": found},
        LOG_MISTAKES,
        label="Start-up log",
        argument="log",
        first=log,
        description=(
            f"Predicted over printed for {len(found)} start-up logs and {len(LOG_MISTAKES)} ways to predict, on a"
            " logarithmic axis. The library's plan lies close around one. Fraction times card less weights, and the"
            " two formulas that misplace the fraction, say more in nearly every log, most where weights fill the card."
            " Query heads and the model's width say a fraction of the tokens, as does one GPU's pool for the group's."
        ),
    )
