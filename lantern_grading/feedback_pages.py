"""Feedback pages on disk: each is written again when what it says has changed, and only then."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

from nbgrader import api
from sqlalchemy import Connection, select

from lantern_grading import ledger
from lantern_grading.classroom import Classroom, replace_file
from lantern_grading.database import Database, GradingStopped
from lantern_grading.feedback import STAMP, Graded, page
from lantern_grading.template import Role, Template

_CELL, _GRADE, _COMMENT = api.BaseCell.__table__, api.Grade.__table__, api.Comment.__table__
_SUBMITTED, _SUBMISSION, _ASSIGNMENT = (
    api.SubmittedNotebook.__table__,
    api.SubmittedAssignment.__table__,
    api.Assignment.__table__,
)


def graded_cells(connection: Connection, template: Template) -> dict[str, tuple[list[Graded], float]]:
    """Read all grades of an assignment: by student the graded cells in order, and the penalty [points]."""
    joined = (
        _SUBMISSION.join(_ASSIGNMENT, _SUBMISSION.c.assignment_id == _ASSIGNMENT.c.id)
        .join(_SUBMITTED, _SUBMITTED.c.assignment_id == _SUBMISSION.c.id)
        .join(_GRADE, _GRADE.c.notebook_id == _SUBMITTED.c.id)
        .join(_CELL, _GRADE.c.cell_id == _CELL.c.id)
    )
    wanted = select(_SUBMISSION.c.student_id, _SUBMITTED.c.late_submission_penalty, _CELL.c.name, _GRADE)
    rows = connection.execute(wanted.select_from(joined).where(_ASSIGNMENT.c.name == template.assignment)).mappings()
    found: dict[str, dict[str, Mapping[str, Any]]] = {}
    for row in rows:
        found.setdefault(row["student_id"], {})[row["name"]] = row
    comments = _comments(connection, template.assignment)
    cells = template.of(Role.TEST, Role.WRITTEN)
    return {
        student: (
            [
                _graded(own[c.cell_id], c.points, comments.get((student, c.cell_id), ""))
                for c in cells
                if c.cell_id in own
            ],
            float(next(iter(own.values()))["late_submission_penalty"] or 0.0),
        )
        for student, own in found.items()
    }


def _comments(connection: Connection, assignment: str) -> dict[tuple[str, str], str]:
    joined = (
        _SUBMISSION.join(_ASSIGNMENT, _SUBMISSION.c.assignment_id == _ASSIGNMENT.c.id)
        .join(_SUBMITTED, _SUBMITTED.c.assignment_id == _SUBMISSION.c.id)
        .join(_COMMENT, _COMMENT.c.notebook_id == _SUBMITTED.c.id)
        .join(_CELL, _COMMENT.c.cell_id == _CELL.c.id)
    )
    wanted = select(_SUBMISSION.c.student_id, _CELL.c.name, _COMMENT.c.manual_comment).select_from(joined)
    wanted = wanted.where(_ASSIGNMENT.c.name == assignment, _COMMENT.c.manual_comment.is_not(None))
    return {(student, name): comment for student, name, comment in connection.execute(wanted)}


def _graded(row: Mapping[str, Any], points: float, comment: str) -> Graded:
    by_hand = row["manual_score"] is not None
    score = row["manual_score"] if by_hand else row["auto_score"]
    total = float(score or 0.0) + float(row["extra_credit"] or 0.0)
    return Graded(row["name"], total, points, by_hand, bool(row["needs_manual_grade"]), comment)


def refresh(classroom: Classroom, database: Database, template: Template) -> int:
    """Write the pages that have changed.

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
    int
        How many were written [count].
    """
    written = 0
    with database.reading() as connection:
        attempts = ledger.newest(connection, template.assignment)
        grades = graded_cells(connection, template)
    for student, attempt in attempts.items():
        own, penalty = grades.get(student, ([], 0.0))
        stamp = hashlib.sha256(page(attempt, own, penalty=penalty).encode()).hexdigest()[:32]
        path = classroom.feedback(student, template.assignment)
        if _stamped(path) == stamp:
            continue
        try:
            replace_file(path, page(attempt, own, penalty=penalty, stamp=stamp).encode())
        except OSError as error:
            raise GradingStopped(f"{error.strerror}. Nothing is lost: make room and run again to continue.") from error
        written += 1
    return written


def _stamped(path: Any) -> str:
    try:
        with path.open(encoding="utf-8", errors="replace") as file:
            start = file.read(1000)
    except OSError:
        return ""
    before, _, after = start.partition(f'<meta name="{STAMP}" content="')
    return after.split('"', 1)[0] if before != start else ""
