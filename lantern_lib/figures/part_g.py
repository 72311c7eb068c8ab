"""The diagram of page G2: eight weeks, and the number that each leaves."""

from __future__ import annotations

from dataclasses import dataclass

from lantern_lib.figures.diagram import NARROW, WIDE, Canvas, Diagram
from lantern_lib.figures.roles import ATTACKER, CONTROL, MEMORY, TOTAL, USER, Role


@dataclass(frozen=True)
class Week:
    """A week of the study plan: what it is about and the number it leaves, in two lines [text]."""

    title: str
    role: Role
    leaves: tuple[str, str]


#: The plan of page G2, in its order; a test holds it against the page's table.
WEEKS = (
    Week("One token", MEMORY, ("your model's step", "at batch 1")),
    Week("Batches", TOTAL, ("tokens a second", "against the batch")),
    Week("Stalls, queues", USER, ("the longest gap,", "with and without")),
    Week("Bits, drafts", MEMORY, ("speed and score", "at 16, 8, 4 bits")),
    Week("Many GPUs", TOTAL, ("room that is left,", "bytes on the link")),
    Week("Agents", USER, ("tokens that came", "from the cache")),
    Week("Attacks", ATTACKER, ("which defence", "stopped which")),
    Week("A service", CONTROL, ("the rate at which", "the promise broke")),
)
CAPSTONE = (
    "p95 of TTFT and TPOT against the rate",
    "where the promise breaks, and the cost there",
    "a lever of part B that shifts it",
)


def weeks() -> Diagram:
    """Draw the eight weeks as a path to the capstone, each with the number it leaves.

    Returns
    -------
    Diagram
        A still diagram.

    Examples
    --------
    >>> "Week 3, stalls, queues" in weeks().description
    True
    """

    def draw(canvas: Canvas) -> None:
        wide = canvas.width == WIDE
        columns, width, pitch = (4, 166.0, 106.0) if wide else (2, 166.0, 98.0)
        gap = (canvas.width - 4 - columns * width) / (columns - 1)
        for index, week in enumerate(WEEKS):
            row, column = divmod(index, columns)
            x, y = 2 + column * (width + gap), 4 + row * pitch
            canvas.box(x, y, width, 82, week.role, title=f"{index + 1}  {week.title}", rows=week.leaves)
            if wide and column:
                canvas.path(f"M{x - gap + 1:.0f} {y + 41:.0f}h{gap - 3:.0f}", arrow=True)
        y, rows = 4 + len(WEEKS) // columns * pitch, CAPSTONE
        canvas.box(2, y, canvas.width - 4, 42 + 18 * len(rows), CONTROL, title="Capstone", rows=rows, solid=True)

    listed = " ".join(
        f"Week {number}, {week.title[0].lower()}{week.title[1:]}: {' '.join(week.leaves)}."
        for number, week in enumerate(WEEKS, 1)
    )
    wide, narrow = Canvas(WIDE), Canvas(NARROW)
    draw(wide)
    draw(narrow)
    return Diagram(
        "Eight weeks and a capstone",
        f"A path of eight boxes, each with the number that its week leaves. {listed} Under them the"
        f" capstone: {'; '.join(CAPSTONE)}.",
        wide,
        narrow,
    )
