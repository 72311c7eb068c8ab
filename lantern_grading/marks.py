"""Marks of a class: one row for each student, whatever happened to the submission."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from nbgrader import api
from sqlalchemy import select

from lantern_grading import ledger, receipts
from lantern_grading.classroom import Classroom
from lantern_grading.database import Database
from lantern_grading.feedback import Graded
from lantern_grading.feedback_pages import graded_cells
from lantern_grading.ledger import Attempt
from lantern_grading.outcome import State
from lantern_grading.template import Template

NOT_SUBMITTED = "not submitted"
NOT_GRADED = "not graded"


@dataclass(frozen=True)
class Mark:
    """How one student stands. ``score`` is None unless it belongs to the file that lies there now.

    ``complete`` tells whether nobody has to look any more; only complete scores leave for a platform by default.
    """

    student: str
    status: str
    score: float | None = None
    max_score: float | None = None
    penalty: float = 0.0
    waiting: int = 0
    tasks: dict[str, float] = field(default_factory=dict)
    reason: str = ""

    @property
    def complete(self) -> bool:
        """Whether there is a score and no part of it waits for a person."""
        return self.score is not None and not self.waiting


def task(grade_id: str) -> str:
    """Return the task of a graded cell.

    Examples
    --------
    >>> task("w1-t4-hidden"), task("essay")
    ('t4', 'essay')
    """
    found = re.search(r"-(t\d+)-", grade_id)
    return found[1] if found else grade_id


def read(classroom: Classroom, database: Database, template: Template) -> list[Mark]:
    """Read all marks of an assignment.

    Parameters
    ----------
    classroom : Classroom
        The class.
    database : Database
        Its gradebook.
    template : Template
        The release.

    Returns
    -------
    list of Mark
        For everybody on the roster or with a folder, sorted by id.
    """
    with database.reading() as connection:
        attempts = ledger.newest(connection, template.assignment)
        grades = graded_cells(connection, template)
        roster = set(connection.execute(select(api.Student.__table__.c.id)).scalars())
        newest = {name: receipts.find(connection, template.assignment, name) for name in attempts}
    there = set(classroom.handed_in(template.assignment))
    top = classroom.folder / "submitted"
    everybody = roster | there | {path.name for path in top.glob("*") if path.is_dir()}
    marks = []
    for student in sorted(everybody):
        if student not in there:
            marks.append(Mark(student, NOT_SUBMITTED))
            continue
        attempt, receipt = attempts.get(student), newest.get(student)
        if attempt is None or (receipt is not None and receipt.content_hash != attempt.content_hash):
            why = "a newer file came in" if attempt else "run grade first"
            marks.append(Mark(student, NOT_GRADED, reason=why))
            continue
        marks.append(_mark(attempt, *grades.get(student, ([], 0.0))))
    return marks


def _mark(attempt: Attempt, grades: Sequence[Graded], penalty: float) -> Mark:
    waiting = sum(grade.waiting for grade in grades)
    by_hand = all(grade.by_hand and not grade.waiting for grade in grades) and bool(grades)
    status, reason = str(attempt.state), attempt.reason
    if attempt.scores == "none" and not by_hand:
        return Mark(attempt.student, status, waiting=waiting, reason=reason)
    if attempt.scores == "none":
        status = "graded by hand"
    elif attempt.scores == "kept":
        reason = f"the regrade failed, the old score stands: {reason}"
    tasks: dict[str, float] = {}
    for grade in grades:
        tasks[task(grade.name)] = tasks.get(task(grade.name), 0.0) + grade.score
    total = sum(grade.score for grade in grades)
    most = sum(grade.max_score for grade in grades)
    return Mark(attempt.student, status, max(0.0, total - penalty), most, penalty, waiting, tasks, reason)


def as_csv(marks: Sequence[Mark]) -> str:
    """Write marks as CSV; a submission without a mark has empty cells, never zeros.

    Parameters
    ----------
    marks : sequence of Mark
        The rows.

    Returns
    -------
    str
        The table [text].
    """
    tasks = sorted({name for mark in marks for name in mark.tasks}, key=lambda name: (len(name), name))
    text = io.StringIO()
    table = csv.writer(text, lineterminator="\n")
    table.writerow(["student", "status", "score", "max_score", "penalty", "waiting", *tasks, "reason"])
    for mark in marks:
        numbers = [mark.score, mark.max_score, mark.penalty or None, mark.waiting or None]
        numbers += [mark.tasks.get(name) for name in tasks]
        words = [cell_text(mark.student), mark.status]
        table.writerow([*words, *(number_text(number) for number in numbers), cell_text(mark.reason)])
    return text.getvalue()


def number_text(number: float | None) -> str:
    """Write a number for a table, and nothing for None."""
    return "" if number is None else f"{round(number, 6):.10g}"


def cell_text(text: str) -> str:
    """Keep a spreadsheet from taking a text for a formula.

    Examples
    --------
    >>> cell_text("=1+1"), cell_text("ada")
    ("'=1+1", 'ada')
    """
    return f"'{text}" if text[:1] in ("=", "+", "-", "@", "\t", "\r") else text


def unfinished(marks: Sequence[Mark]) -> list[Mark]:
    """Return the marks that a person still has to do something about."""
    return [mark for mark in marks if mark.status != NOT_SUBMITTED and not mark.complete]


def states() -> list[str]:
    """Return every status that a mark can have."""
    return [*(str(state) for state in State), "graded by hand", NOT_GRADED, NOT_SUBMITTED]
