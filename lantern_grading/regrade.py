"""Who moved when an exam was graded again, by how much, and because of which tests."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from sqlalchemy import Connection, select

from lantern_grading import ledger
from lantern_grading.database import ATTEMPTS
from lantern_grading.ledger import Attempt
from lantern_grading.marks import cell_text, number_text


@dataclass(frozen=True)
class Move:
    """One student under the exam before and the exam now, with the same file."""

    student: str
    before: float
    after: float | None  # None: could not be graded again, and the score before stands
    tests: tuple[tuple[str, float, float], ...] = ()
    reason: str = ""

    @property
    def change(self) -> float:
        """How far the score moved [points]."""
        return 0.0 if self.after is None else self.after - self.before


def moves(
    connection: Connection, assignment: str, exam_hash: str, own: Callable[[str], str] | None = None
) -> list[Move]:
    """Compare the newest attempts with the last ones at the same file under another exam.

    It is read from the record, so that a run that was stopped and continued reports everybody.

    Parameters
    ----------
    connection : Connection
        To the gradebook.
    assignment : str
        The assignment [text].
    exam_hash : str
        The exam as it is now [text].
    own : callable, optional
        Gives the exam of one student, where not all have the same.

    Returns
    -------
    list of Move
        Everybody who was graded before, the largest loss first.
    """
    now = ledger.newest(connection, assignment)
    wanted = select(ATTEMPTS.c.student).where(ATTEMPTS.c.assignment == assignment, ATTEMPTS.c.exam_hash != exam_hash)
    found = []
    for student in sorted(set(connection.execute(wanted).scalars())):
        attempt = now[student]
        current = own(student) if own else exam_hash
        if attempt.exam_hash != current:
            continue
        old = [
            each
            for each in ledger.history(connection, assignment, student)
            if each.scored and each.content_hash == attempt.content_hash and each.exam_hash != current
        ]
        if old:
            found.append(_move(old[-1], attempt))
    return sorted(found, key=lambda move: (move.after is not None, move.change, move.student))


def _move(old: Attempt, new: Attempt) -> Move:
    if not new.scored:
        return Move(new.student, old.auto_score or 0.0, None, reason=new.reason)
    before = {test.grade_id: test.score for test in old.tests}
    after = {test.grade_id: test.score for test in new.tests}
    names = dict.fromkeys([*before, *after])
    changed = tuple((name, before.get(name, 0.0), after.get(name, 0.0)) for name in names)
    changed = tuple(each for each in changed if each[1] != each[2])
    return Move(new.student, old.auto_score or 0.0, new.auto_score or 0.0, changed)


def as_csv(found: Sequence[Move]) -> str:
    """Write who moved as CSV."""
    text = io.StringIO()
    table = csv.writer(text, lineterminator="\n")
    table.writerow(["student", "before", "after", "change", "tests", "reason"])
    for move in found:
        tests = "; ".join(f"{name} {number_text(old)} to {number_text(new)}" for name, old, new in move.tests)
        numbers = [number_text(move.before), number_text(move.after), number_text(move.change)]
        table.writerow([cell_text(move.student), *numbers, tests, cell_text(move.reason)])
    return text.getvalue()


def summary(found: Sequence[Move]) -> str:
    """Say in a few lines who moved."""
    up, down = [m for m in found if m.change > 0], [m for m in found if m.change < 0]
    failed = [m for m in found if m.after is None]
    same = len(found) - len(up) - len(down) - len(failed)
    lines = [f"  {len(up):,} gained, {len(down):,} lost, {same:,} kept their score"]
    if failed:
        lines.append(f"  {len(failed):,} could not be graded again; their old scores stand")
    for move in [*down, *up][:20]:
        tests = ", ".join(name for name, _, _ in move.tests)
        lines.append(f"  {move.student}: {move.before:g} to {move.after:g} ({move.change:+g}; {tests})")
    return "\n".join(lines)
