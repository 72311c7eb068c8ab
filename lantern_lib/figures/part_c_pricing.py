"""Diagram of the page on capacity types: the gates that are asked before any price."""

from __future__ import annotations

from collections.abc import Sequence

from lantern_lib.figures.diagram import WIDE, Canvas, Diagram, wide_and_narrow
from lantern_lib.figures.roles import CONTROL, MUTED, TOTAL
from lantern_lib.pricing import Choice, Option, Requirements, cheapest_option

GATES = ("region", "class", "processor", "weights")


def _refusing(choice: Choice, option: Option) -> list[str]:
    return [reason.split(":")[0] for reason in choice.refused.get(option.name, ())]


def _money(option: Option) -> str:
    return f"{option.monthly_dollars:,.0f} dollars"


def _wide_rows(canvas: Canvas, options: Sequence[Option], choice: Choice) -> None:
    columns = [318.0 + 74 * index for index in range(len(GATES))]
    for x, gate in zip(columns, GATES, strict=True):
        canvas.text(x, 18, gate, colour=CONTROL.colour, bold=True, anchor="middle", size=13)
    canvas.text(canvas.width - 12, 18, "price a month", anchor="end", bold=True, size=13)
    for index, option in enumerate(options):
        y = 34.0 + index * 44
        stops = _refusing(choice, option)
        chosen = option == choice.option
        if chosen:
            canvas.box(2, y, canvas.width - 6, 36, TOTAL, solid=True)
        canvas.text(12, y + 23, option.name, bold=chosen, size=13)
        for x, gate in zip(columns, GATES, strict=True):
            refused = gate in stops
            colour = CONTROL.colour if refused else MUTED
            canvas.text(x, y + 23, "stops" if refused else "passes", colour=colour, anchor="middle", bold=refused)
        price = "not asked" if stops else _money(option)
        canvas.text(
            canvas.width - 12, y + 23, price, anchor="end", bold=chosen, colour=MUTED if stops else TOTAL.colour
        )


def _narrow_rows(canvas: Canvas, options: Sequence[Option], choice: Choice) -> None:
    for index, option in enumerate(options):
        y = 4.0 + index * 58
        stops = _refusing(choice, option)
        chosen = option == choice.option
        if chosen:
            canvas.box(2, y, canvas.width - 6, 50, TOTAL, solid=True)
        canvas.text(12, y + 21, option.name, bold=True, size=13)
        words = f"stopped by {', '.join(stops)}" if stops else f"passes all: {_money(option)} a month"
        canvas.text(12, y + 40, words, colour=CONTROL.colour if stops else TOTAL.colour, size=13)


def gates(options: Sequence[Option], needs: Requirements, who: str) -> Diagram:
    """Draw which gates stop which option, and what is left for the price to decide.

    Parameters
    ----------
    options : sequence of Option
        What is on offer, one row each.
    needs : Requirements
        What the workload demands.
    who : str
        Whose workload it is, for the title [text].

    Returns
    -------
    Diagram
        A still diagram; the chosen option has a frame.

    Raises
    ------
    ValueError
        If nothing is on offer.

    Examples
    --------
    >>> pool = Option("Pool", "per-token", 100, frozenset({"us"}))
    >>> own = Option("Own machines", "self-hosted", 900, frozenset({"eu"}), third_party=False)
    >>> needs = Requirements(allowed_regions=frozenset({"eu"}))
    >>> "chosen: Own machines" in gates((pool, own), needs, "a bank").description
    True
    """
    choice = cheapest_option(options, needs)

    def draw(canvas: Canvas) -> None:
        (_wide_rows if canvas.width == WIDE else _narrow_rows)(canvas, options, choice)

    listed = "; ".join(
        f"{option.name}: " + (f"stopped by {', '.join(stops)}" if (stops := _refusing(choice, option)) else "passes")
        for option in options
    )
    chosen = f"{choice.option.name} at {_money(choice.option)} a month" if choice.option else "nothing"
    return Diagram(
        f"The gates for {who}",
        "A table of options and the gates region, class, processor and weights."
        f" {listed}. Left over and chosen: {chosen}.",
        *wide_and_narrow(draw),
    )
