"""Diagrams of pages C3 and C4: five questions about a serving system, and three plans for one traffic."""

from __future__ import annotations

from collections.abc import Sequence

from lantern_lib.capacity import Plan
from lantern_lib.figures.diagram import WIDE, Canvas, Diagram, wide_and_narrow
from lantern_lib.figures.roles import ARITHMETIC, CONTROL, MEMORY, MUTED, TOTAL, USER, Role
from lantern_lib.units import format_quantity


def five_questions() -> Diagram:
    """Draw five questions to ask of any serving system, and the term of its price that each one moves.

    Returns
    -------
    Diagram
        Five steps, one question each.

    Examples
    --------
    >>> five_questions().steps
    5
    """
    questions: list[tuple[str, list[str], str, Role]] = [
        ("1 Work", ["What does one", "token take?"], "A2, A3, B5, B6", ARITHMETIC),
        ("2 Room", ["How many people", "fit in memory?"], "A4, B2, B5", MEMORY),
        ("3 Company", ["How full is the", "batch really?"], "B1, B3", TOTAL),
        ("4 Waiting", ["How busy may a", "replica be?"], "A1, B4", USER),
        ("5 Repetition", ["What is computed", "a second time?"], "B2, part D", CONTROL),
    ]
    terms = [("tokens a second", 0, 2), ("utilisation", 3, 3), ("less work", 4, 4)]

    def draw(canvas: Canvas) -> None:
        wide = canvas.width == WIDE
        pitch, w, h = (144.0, 140.0, 92.0) if wide else (72.0, canvas.width - 4.0, 64.0)
        for index, (title, rows, pages, role) in enumerate(questions):
            x, y = (2 + index * pitch, 4.0) if wide else (2.0, 4 + index * pitch)
            with canvas.step(index + 1):
                canvas.box(x, y, w, h, role, title=title, rows=rows if wide else [" ".join(rows)])
                if wide:
                    canvas.text(x + 12, y + 80, pages, size=12, colour=MUTED)
                else:
                    term = next(word for word, first, last in terms if first <= index <= last)
                    canvas.text(x + w - 12, y + 22, term, size=13, bold=True, anchor="end")
                    canvas.text(x + 12, y + 57, pages, size=12, colour=MUTED)
        if wide:
            for word, first, last in terms:
                left, right = 2 + first * pitch + 4, 2 + last * pitch + w - 4
                canvas.path(f"M{left:.0f} 104v8H{right:.0f}v-8")
                canvas.text((left + right) / 2, 132, word, anchor="middle", bold=True, size=14)

    listed = "; ".join(f"{title}: {' '.join(rows)}" for title, rows, _, _ in questions)
    return Diagram(
        "Five questions to ask of any serving system",
        f"{listed}. The first three set how many tokens a second a replica makes, the fourth how busy it may be, and"
        " the fifth how much work there is at all. Each names the pages that answer it.",
        *wide_and_narrow(draw),
        steps=5,
    )


def _replicas(canvas: Canvas, y: float, plan: Plan, unit: float) -> None:
    """Draw the replicas of a plan as frames, with the work of the whole fleet laid into them from the left."""
    work = ((plan.demand.decode_replicas, MEMORY), (plan.demand.prefill_replicas, ARITHMETIC))
    start = 4.0
    for amount, role in work:
        canvas.bar(start, y, amount * unit, 26, role)
        start += amount * unit
    for index in range(plan.num_replicas):
        canvas.path(f"M{4 + index * unit:.1f} {y:.0f}h{unit:.1f}v26h{-unit:.1f}z", width=1.4)
    if plan.max_utilization < 1:
        at = 4 + plan.max_utilization * plan.num_replicas * unit
        canvas.path(f"M{at:.1f} {y - 5:.0f}v36", CONTROL, width=2.2)


def _gap(plan: Plan, promise_seconds: float) -> tuple[str, Role]:
    seconds = plan.load.tpot_seconds
    words = f"a token every {format_quantity(seconds, 'ms')}"
    if seconds <= promise_seconds:
        return words, USER
    return f"{words}, but {format_quantity(promise_seconds, 'ms')} are promised", CONTROL


def sizing(plans: Sequence[tuple[str, Plan]], dollars_per_gpu_hour: float, promise_seconds: float) -> Diagram:
    """Draw plans for one traffic as replicas filled with work, to one scale, with what they cost.

    Parameters
    ----------
    plans : sequence of tuple
        Name and plan of each row.
    dollars_per_gpu_hour : float
        Price of one GPU for an hour [dollars].
    promise_seconds : float
        Time per token that users were promised [seconds].

    Returns
    -------
    Diagram
        A still diagram; a frame is a replica.

    Examples
    --------
    >>> from lantern_lib import H100, LANTERN_70B, Replica, capacity
    >>> plan = capacity.plan_fleet(LANTERN_70B, Replica(H100, tp_size=4), capacity.Traffic(20, 2000, 400))
    >>> "5 replicas, 20 GPUs, 60 dollars an hour" in sizing([("Raw", plan)], 3.0, 0.05).description
    True
    """
    most = max(plan.num_replicas for _, plan in plans)
    amounts = [
        (
            f"{plan.num_replicas} replicas, {plan.num_gpus} GPUs",
            f"{plan.dollars_per_hour(dollars_per_gpu_hour):,.0f} dollars an hour",
            f"{plan.dollars_per_million(dollars_per_gpu_hour):.2f} a million",
            *_gap(plan, promise_seconds),
        )
        for _, plan in plans
    ]

    def draw(canvas: Canvas) -> None:
        wide = canvas.width == WIDE
        unit = (canvas.width - 8) / most
        y = 0.0
        for (name, plan), (size, hour, million, gap, role) in zip(plans, amounts, strict=True):
            canvas.text(4, y + 15, name, bold=True, size=14)
            if wide:
                canvas.text(canvas.width - 4, y + 15, f"{size}, {hour}, {million}", anchor="end", size=13)
                _replicas(canvas, y + 27, plan, unit)
                canvas.text(4, y + 71, gap, size=13, colour=role.colour)
                y += 92
            else:
                canvas.text(4, y + 34, size, size=13)
                canvas.text(4, y + 52, f"{hour}, {million}", size=13)
                _replicas(canvas, y + 64, plan, unit)
                canvas.text(4, y + 108, gap, size=13, colour=role.colour)
                y += 132
        y += 12
        for x, word, kind in ((4, "answers", MEMORY), (84, "prompts", ARITHMETIC), (164, "allowed", CONTROL)):
            canvas.text(x, y, word, colour=kind.colour, bold=True, size=12.5)
        canvas.text(
            canvas.width - 4, y, "one frame: a replica" if wide else "frame: a replica", anchor="end", size=12.5
        )

    listed = "; ".join(
        f"{name}: {size}, {hour}, {million} answer tokens, {gap}, {plan.demand.decode_replicas:.2f} replicas' worth of"
        f" answers and {plan.demand.prefill_replicas:.2f} of prompts"
        for (name, plan), (size, hour, million, gap, _) in zip(plans, amounts, strict=True)
    )
    return Diagram(
        "Plans for one traffic, to scale",
        f"Each row shows the replicas of a plan as frames, filled with work from the left. {listed}.",
        *wide_and_narrow(draw),
    )
