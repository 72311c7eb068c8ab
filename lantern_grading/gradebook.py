"""Writing nbgrader's gradebook: an assignment's cells, and one submission's scores in one transaction."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from datetime import datetime
from typing import Any

from nbgrader import api
from sqlalchemy import Connection, Table, bindparam, delete, select, update

from lantern_grading import ledger
from lantern_grading.ledger import Attempt
from lantern_grading.template import Role, Template

_ASSIGNMENT: Table = api.Assignment.__table__
_NOTEBOOK: Table = api.Notebook.__table__
_CELL: Table = api.BaseCell.__table__
_GRADE_CELL: Table = api.GradeCell.__table__
_SOLUTION_CELL: Table = api.SolutionCell.__table__
_SOURCE: Table = api.SourceCell.__table__
_STUDENT: Table = api.Student.__table__
_SUBMISSION: Table = api.SubmittedAssignment.__table__
_SUBMITTED: Table = api.SubmittedNotebook.__table__
_GRADE: Table = api.Grade.__table__
_COMMENT: Table = api.Comment.__table__
_KERNEL = json.dumps({"display_name": "Python 3", "language": "python", "name": "python3"})


def register(connection: Connection, template: Template, due: datetime | None) -> None:
    """Enter an assignment, or bring its cells up to date; hand-given points and comments stay.

    Parameters
    ----------
    connection : Connection
        In a transaction.
    template : Template
        The release.
    due : datetime, optional
        When it is due, in UTC without zone, as nbgrader keeps it.

    Raises
    ------
    ValueError
        If a cell would go for which somebody gave points by hand.
    """
    name = template.assignment
    assignment = _one(connection, _ASSIGNMENT, name=name)
    if assignment is None:
        assignment = _add(connection, _ASSIGNMENT, name=name, course_id="default_course", duedate=due)
    connection.execute(update(_ASSIGNMENT).where(_ASSIGNMENT.c.id == assignment).values(duedate=due))
    notebook = _one(connection, _NOTEBOOK, name=name, assignment_id=assignment)
    if notebook is None:
        notebook = _add(connection, _NOTEBOOK, name=name, assignment_id=assignment, kernelspec=_KERNEL)
    graded = template.of(Role.TEST, Role.WRITTEN)
    grades = _cells(connection, notebook, "GradeCell", [cell.cell_id for cell in graded])
    for cell in graded:
        row = {"max_score": cell.points, "cell_type": cell.kind}
        connection.execute(update(_GRADE_CELL).where(_GRADE_CELL.c.id == grades[cell.cell_id]).values(row))
    answers = template.of(Role.ANSWER, Role.WRITTEN)
    _cells(connection, notebook, "SolutionCell", [cell.cell_id for cell in answers])
    connection.execute(delete(_SOURCE).where(_SOURCE.c.notebook_id == notebook))
    for cell in template.of(Role.ANSWER, Role.WRITTEN, Role.TEST, Role.GIVEN):
        locked = cell.role in (Role.TEST, Role.GIVEN)
        _add(
            connection, _SOURCE, name=cell.cell_id, notebook_id=notebook, cell_type=cell.kind, locked=locked,
            source=cell.saved, checksum=cell.checksum,
        )  # fmt: skip


def _cells(connection: Connection, notebook: str, kind: str, names: Iterable[str]) -> dict[str, str]:
    """Make the gradebook's cells of one kind those of the release; return their ids by name."""
    own, rows = (_GRADE_CELL, _GRADE) if kind == "GradeCell" else (_SOLUTION_CELL, _COMMENT)
    by_hand = _GRADE.c.manual_score if kind == "GradeCell" else _COMMENT.c.manual_comment
    found = select(_CELL.c.name, _CELL.c.id).where(_CELL.c.notebook_id == notebook, _CELL.c.type == kind)
    ids: dict[str, str] = {one: other for one, other in connection.execute(found).all()}  # noqa: C416
    names = list(names)
    for name in set(ids) - set(names):
        kept = select(rows.c.id).where(rows.c.cell_id == ids[name], by_hand.is_not(None))
        if connection.execute(kept).first() is not None:
            raise ValueError(
                f"cells must keep {name}, got a source without it. Somebody gave points or a comment for it by hand:"
                " put the cell back, or take those out in formgrader first."
            )
        for table, column in ((rows, rows.c.cell_id), (own, own.c.id), (_CELL, _CELL.c.id)):
            connection.execute(delete(table).where(column == ids[name]))
        del ids[name]
    for name in names:
        if name in ids:
            continue
        ids[name] = _add(connection, _CELL, name=name, notebook_id=notebook, type=kind)
        own_values = {"max_score": 0.0, "cell_type": "code"} if kind == "GradeCell" else {}
        connection.execute(own.insert().values(id=ids[name], **own_values))
        submitted = select(_SUBMITTED.c.id).where(_SUBMITTED.c.notebook_id == notebook)
        _add_rows(connection, rows, [(ids[name], each) for each in connection.execute(submitted).scalars()])
    return ids


def _add_rows(connection: Connection, rows: Table, pairs: Iterable[tuple[str, str]]) -> None:
    more = {"needs_manual_grade": True} if rows is _GRADE else {}
    values = [{"id": api.new_uuid(), "cell_id": cell, "notebook_id": submitted, **more} for cell, submitted in pairs]
    if values:
        connection.execute(rows.insert(), values)


def _change(connection: Connection, rows: Table, values: list[dict[str, Any]]) -> None:
    """Change many rows in one go; ``row`` is the id of each."""
    if values:
        connection.execute(update(rows).where(rows.c.id == bindparam("row")), values)


def record(
    connection: Connection,
    template: Template,
    attempt: Attempt,
    *,
    received: datetime | None = None,
    penalty: float = 0.0,
) -> str:
    """Enter what came of a submission: scores, flags, comments, and the attempt itself.

    Points that a person gave are never changed. They are marked for another look where the student's text, or
    the automatic score beside them, is another one than before.

    Parameters
    ----------
    connection : Connection
        In a transaction; all of it is kept, or nothing.
    template : Template
        The release, already registered.
    attempt : Attempt
        What came of it.
    received : datetime, optional
        When the platform says it came, in UTC without zone.
    penalty : float
        What is taken off for being late [points].

    Returns
    -------
    str
        Which scores stand now: ``"new"``, ``"kept"`` or ``"none"``.
    """
    before = ledger.newest(connection, attempt.assignment, attempt.student).get(attempt.student)
    same_file = before is not None and before.content_hash == attempt.content_hash
    scores = "new" if attempt.scored else "kept" if same_file and before and before.scores != "none" else "none"
    submitted, grades = _submission(connection, template, attempt.student, received, penalty)
    if scores == "new":
        _new_scores(connection, template, attempt, before, grades)
        _comments(connection, template, attempt, submitted)
    elif scores == "none" and not (same_file and before and before.scores == "none"):
        cleared = {"auto_score": None, "needs_manual_grade": True}
        _change(connection, _GRADE, [{"row": grade["id"], **cleared} for grade in grades.values()])
    ledger.write(connection, attempt, scores)
    return scores


def set_penalty(connection: Connection, assignment: str, student: str, penalty: float) -> None:
    """Set what is taken off a student's submission for being late [points]."""
    name = _one(connection, _ASSIGNMENT, name=assignment)
    submission = _one(connection, _SUBMISSION, assignment_id=name, student_id=student)
    late = update(_SUBMITTED).where(_SUBMITTED.c.assignment_id == submission)
    connection.execute(late.values(late_submission_penalty=penalty))


def _submission(
    connection: Connection, template: Template, student: str, received: datetime | None, penalty: float
) -> tuple[str, dict[str, Any]]:
    """Find or make a student's rows; return the notebook's id and the grades by cell."""
    if _one(connection, _STUDENT, id=student) is None:
        connection.execute(_STUDENT.insert().values(id=student))
    assignment = _one(connection, _ASSIGNMENT, name=template.assignment)
    notebook = _one(connection, _NOTEBOOK, name=template.assignment, assignment_id=assignment)
    submission = _one(connection, _SUBMISSION, assignment_id=assignment, student_id=student)
    if submission is None:
        submission = _add(connection, _SUBMISSION, assignment_id=assignment, student_id=student)
    connection.execute(update(_SUBMISSION).where(_SUBMISSION.c.id == submission).values(timestamp=received))
    submitted = _one(connection, _SUBMITTED, assignment_id=submission, notebook_id=notebook)
    if submitted is None:
        submitted = _add(connection, _SUBMITTED, assignment_id=submission, notebook_id=notebook, flagged=False)
    late = update(_SUBMITTED).where(_SUBMITTED.c.id == submitted)
    connection.execute(late.values(late_submission_penalty=penalty))
    for kind, rows in (("GradeCell", _GRADE), ("SolutionCell", _COMMENT)):
        cells = connection.execute(select(_CELL.c.id).where(_CELL.c.notebook_id == notebook, _CELL.c.type == kind))
        has = set(connection.execute(select(rows.c.cell_id).where(rows.c.notebook_id == submitted)).scalars())
        _add_rows(connection, rows, [(cell, submitted) for cell in cells.scalars() if cell not in has])
    found = select(_CELL.c.name, _GRADE).join_from(_GRADE, _CELL, _GRADE.c.cell_id == _CELL.c.id)
    rows_of = connection.execute(found.where(_GRADE.c.notebook_id == submitted)).mappings()
    return submitted, {row["name"]: dict(row) for row in rows_of}


def _new_scores(
    connection: Connection, template: Template, attempt: Attempt, before: Attempt | None, grades: dict[str, Any]
) -> None:
    results = {test.grade_id: test.score for test in attempt.tests}
    answers, old_answers = attempt.answers or {}, (before and before.answers) or {}
    stubs = {cell.cell_id: answer_hash(cell.source) for cell in template.of(Role.WRITTEN)}
    rows = []
    for name, grade in grades.items():
        auto = results.get(name)
        if name in stubs:
            # An untouched or deleted text needs nobody to read it.
            auto = 0.0 if answers.get(name, stubs[name]) == stubs[name] else None
            changed = answers.get(name) != old_answers.get(name) or before is None
        else:
            changed = auto != grade["auto_score"]
        by_hand = grade["manual_score"] is not None
        needs = changed or bool(grade["needs_manual_grade"]) if by_hand else auto is None
        rows.append({"row": grade["id"], "auto_score": auto, "needs_manual_grade": needs})
    _change(connection, _GRADE, rows)


def _comments(connection: Connection, template: Template, attempt: Attempt, submitted: str) -> None:
    answers = attempt.answers or {}
    cells = {cell.cell_id: answer_hash(cell.source) for cell in template.of(Role.ANSWER, Role.WRITTEN)}
    found = select(_COMMENT.c.id, _CELL.c.name).join_from(_COMMENT, _CELL, _COMMENT.c.cell_id == _CELL.c.id)
    rows = []
    for comment, name in connection.execute(found.where(_COMMENT.c.notebook_id == submitted)).all():
        empty = name in cells and answers.get(name, cells[name]) == cells[name]
        rows.append({"row": comment, "auto_comment": "No response." if empty else None})
    _change(connection, _COMMENT, rows)


def answer_hash(source: str) -> str:
    """Name the text of an answer, so that a person's points for it are known to be for this very text."""
    return hashlib.sha256("\n".join(line.rstrip() for line in source.strip().split("\n")).encode()).hexdigest()[:16]


def _one(connection: Connection, table: Table, **values: Any) -> Any:
    wanted = [table.c[name] == value for name, value in values.items()]
    return connection.execute(select(table.c.id).where(*wanted)).scalar_one_or_none()


def _add(connection: Connection, table: Table, **values: Any) -> str:
    identity = api.new_uuid()
    connection.execute(table.insert().values(id=identity, **values))
    return identity
