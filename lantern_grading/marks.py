"""Marks of a class as a table: one row for each student, whatever happened to the submission."""

from __future__ import annotations

import csv
import re
from dataclasses import dataclass, field
from pathlib import Path

from nbgrader.api import Gradebook, MissingEntry

from lantern_grading.course import Course


@dataclass
class Mark:
    """What a student has: ``status`` is one of graded, needs hand grading, failed, not submitted, not graded."""

    student: str
    status: str
    score: float | None = None
    max_score: float | None = None
    tasks: dict[str, float] = field(default_factory=dict)
    reason: str = ""


def failure_file(course: Course, assignment: str, student: str) -> Path:
    """Return where the reason is kept why a submission could not be graded."""
    return course.folder / "failed" / assignment / f"{student}.txt"


def _task(grade_id: str) -> str:
    found = re.search(r"-(t\d+)-", grade_id)
    return found[1] if found else grade_id


def read(course: Course, assignment: str) -> list[Mark]:
    """Read all marks of an assignment from the gradebook.

    Parameters
    ----------
    course : Course
        The class.
    assignment : str
        The assignment [text].

    Returns
    -------
    list of Mark
        One for each folder in ``submitted/``, sorted by name.
    """
    with Gradebook(course.db_url) as gradebook:
        return [_mark(gradebook, course, assignment, student) for student in course.students()]


def _mark(gradebook: Gradebook, course: Course, assignment: str, student: str) -> Mark:
    if not (course.folder / "submitted" / student / assignment).is_dir():
        return Mark(student, "not submitted")
    failed = failure_file(course, assignment, student)
    if failed.exists():
        # An earlier score may still stand in the gradebook. It is not this submission's.
        return Mark(student, "failed", reason=failed.read_text(encoding="utf-8").strip())
    try:
        submission = gradebook.find_submission(assignment, student)
    except MissingEntry:
        return Mark(student, "not graded", reason="run grade first")
    tasks: dict[str, float] = {}
    for notebook in submission.notebooks:
        for grade in notebook.grades:
            tasks[_task(grade.name)] = tasks.get(_task(grade.name), 0.0) + grade.score
    status = "needs hand grading" if submission.needs_manual_grade else "graded"
    return Mark(student, status, submission.score, submission.max_score, tasks)


def write(marks: list[Mark], path: Path) -> None:
    """Write marks as CSV; a submission without a mark has empty cells, never zeros.

    Parameters
    ----------
    marks : list of Mark
        The rows.
    path : Path
        The file.
    """
    tasks = sorted({task for mark in marks for task in mark.tasks}, key=lambda task: (len(task), task))
    with path.open("w", newline="", encoding="utf-8") as file:
        table = csv.writer(file)
        table.writerow(["student", "status", "score", "max_score", *tasks, "reason"])
        for mark in marks:
            numbers = [mark.score, mark.max_score, *(mark.tasks.get(task) for task in tasks)]
            table.writerow([mark.student, mark.status, *(_cell(number) for number in numbers), mark.reason])


def _cell(number: float | None) -> str:
    return "" if number is None else f"{number:g}"
