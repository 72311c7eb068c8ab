"""Honest submissions that are broken in some way: each is graded as a fair person would grade it."""

from __future__ import annotations

import re
import sys
from html import unescape
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent / "robust"))
from cases import CASES, Case
from small import EXAM, TASKS, write_source

from lantern_grading import ledger, marks, run
from lantern_grading.classroom import Classroom
from lantern_grading.database import Database
from lantern_grading.sandbox import Limits
from lantern_grading.sandboxed import SandboxGrader, close
from lantern_grading.template import load

pytestmark = [pytest.mark.grading, pytest.mark.xdist_group("robust")]


@pytest.fixture(scope="module")
def graded(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Grade all of them in one run of one class, with short limits of time."""
    source = write_source(tmp_path_factory.mktemp("source"))
    course = tmp_path_factory.mktemp("class")
    for case in CASES:
        folder = course / "submitted" / case.student / EXAM
        folder.mkdir(parents=True)
        for name, content in case.make().items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_bytes(content)
    template, classroom = load(EXAM, source), Classroom.open(course)
    try:
        grader = SandboxGrader.of(EXAM, source, limits=Limits(cell_seconds=2.0, total_seconds=60.0))
        report = run.grade(classroom, template, grader)
    finally:
        close()
    with Database(classroom.db_url) as database:
        found = {mark.student: mark for mark in marks.read(classroom, database, template)}
        with database.reading() as connection:
            attempts = ledger.newest(connection, EXAM)
    return {"course": course, "marks": found, "attempts": attempts, "report": report}


def test_there_are_enough_and_each_is_another() -> None:
    assert len(CASES) >= 60
    assert len({case.student for case in CASES}) == len({case.name for case in CASES}) == len(CASES)


def test_none_is_left_out_and_none_stops_another(graded: dict[str, Any]) -> None:
    assert graded["report"].graded_now == len(CASES)
    assert graded["marks"].keys() == {case.student for case in CASES}


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_it_is_graded_as_a_fair_person_would(graded: dict[str, Any], case: Case) -> None:
    attempt, mark = graded["attempts"][case.student], graded["marks"][case.student]
    lost = {test.grade_id: test.message for test in attempt.tests if test.score < test.max_score}
    assert str(attempt.state) == case.state, (attempt.reason, lost)
    if case.state == "rejected":
        assert mark.score is None
    else:
        expected = {task: 0.0 if task in case.lost else points for task, points in TASKS.items()}
        assert {task: mark.tasks[task] for task in TASKS} == expected, (lost, attempt.notes, attempt.reason)
    # What was repaired, or why it could not be, is said where the student reads it.
    assert case.says in " ".join([attempt.reason, *attempt.notes])
    path = graded["course"] / "feedback" / case.student / EXAM / f"{EXAM}.html"
    shown = re.sub(r"\s+", " ", unescape(re.sub(r"<[^>]+>", " ", path.read_text(encoding="utf-8"))))
    assert re.sub(r"\s+", " ", case.says) in shown
