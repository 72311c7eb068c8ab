"""Figures of the lab pages: what a student should see in the explorations."""

from __future__ import annotations

from collections.abc import Sequence

from lantern_lib.figures.diagram import WIDE, Canvas, Diagram, wide_and_narrow
from lantern_lib.figures.roles import MEMORY, USER
from lantern_lib.units import format_quantity


def widths_and_loss(rows: Sequence[tuple[int, int, float]]) -> Diagram:
    """Draw what a model takes and how well it predicts, stored in several widths.

    Parameters
    ----------
    rows : sequence of (int, int, float)
        Bits of a weight, size of the model, bits it needs for a character; the widest first [bits], [bytes], [bits].

    Returns
    -------
    Diagram
        A still diagram; the bars of a column are drawn to one scale from zero.

    Examples
    --------
    >>> "4 bits: 635 KB, 2.10 bits a character" in widths_and_loss([(4, 635_000, 2.1)]).description
    True
    """
    heads = (("stored", MEMORY), ("bits a character: less is better", USER))
    largest = [max(row[column] for row in rows) for column in (1, 2)]

    def draw(canvas: Canvas) -> None:
        wide = canvas.width == WIDE
        left, pitch, full, top = (76.0, 310.0, 200.0, 34.0) if wide else (4.0, 176.0, 100.0, 48.0)
        for column, (name, role) in enumerate(heads):
            short = name if wide else name.split(":")[0]
            canvas.text(left + column * pitch, 16, short, colour=role.colour, bold=True, size=13)
        for number, (bits, size, loss) in enumerate(rows):
            y = top + number * (34 if wide else 50)
            canvas.text(4, y + (16 if wide else -5), f"{bits} bits", bold=True)
            texts = (format_quantity(size, "KB"), f"{loss:.2f}")
            for column, value in enumerate((size, loss)):
                x, length = left + column * pitch, full * value / largest[column]
                canvas.bar(x, y, length, 22, heads[column][1])
                canvas.text(x + length + 7, y + 16, texts[column], size=12.5)

    listed = "; ".join(
        f"{bits} bits: {format_quantity(size, 'KB')}, {loss:.2f} bits a character" for bits, size, loss in rows
    )
    return Diagram(
        "A real model in several widths", f"Bars for each width of a weight. {listed}.", *wide_and_narrow(draw)
    )
