"""A grader that is killed at any moment and started again leaves the class as if nothing had happened."""

from __future__ import annotations

import re
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent / "graded"))
from small_class import hand_in, submission, write_source

pytestmark = pytest.mark.grading

DRIVER = Path(__file__).resolve().parent / "graded" / "drive.py"


def drive(source: Path, *jobs: tuple[Path, int]) -> list[str]:
    """Grade classes one after the other, each up to a moment (0: to the end); return what each run said."""
    done = subprocess.run(
        [sys.executable, DRIVER, source, *(f"{course}:{kill_at}" for course, kill_at in jobs)],
        capture_output=True, text=True, timeout=600, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return [line for line in done.stdout.splitlines() if line in ("killed", "ended") or line.startswith("moments")]


def moments_of(said: list[str]) -> int:
    return int(re.findall(r"moments (\d+)", said[0])[0])


def state(course: Path) -> dict[str, Any]:
    """Return what a class amounts to: scores, flags, states and files, without keys and times made by chance."""
    queries = {
        "grades": """select a.student_id, c.name, g.auto_score, g.manual_score, g.needs_manual_grade
            from grade g join base_cell c on g.cell_id = c.id join submitted_notebook n on g.notebook_id = n.id
            join submitted_assignment a on n.assignment_id = a.id order by 1, 2""",
        "comments": """select a.student_id, c.name, g.auto_comment, g.manual_comment
            from comment g join base_cell c on g.cell_id = c.id join submitted_notebook n on g.notebook_id = n.id
            join submitted_assignment a on n.assignment_id = a.id order by 1, 2""",
        "cells": "select c.name, c.type, g.max_score from base_cell c"
        " left join grade_cells g on g.id = c.id order by 1, 2",
        "students": "select id, first_name from student order by 1",
        "version": "select version_num from alembic_version",
        "standing": """select student, content_hash, exam_hash, state, scores, auto_score, reason, notes, tests, answers
            from lantern_attempt where id in (select max(id) from lantern_attempt group by student) order by 1""",
    }
    connection = sqlite3.connect(course / "gradebook.db")
    try:
        rows = {name: connection.execute(query).fetchall() for name, query in queries.items()}
        assert connection.execute("pragma integrity_check").fetchone() == ("ok",)
    finally:
        connection.close()
    files = {
        str(path.relative_to(course)): path.read_bytes()
        for top in ("submitted", "autograded", "feedback")
        for path in sorted((course / top).rglob("*"))
        if path.is_file()
    }
    # The record's times of work differ; they stand in no page and no notebook.
    return {**rows, "files": files}


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_source(tmp_path_factory.mktemp("source"))


def new_class(folder: Path) -> Path:
    hand_in(folder, "ada")
    hand_in(folder, "bob", submission(one="wrong"))
    hand_in(folder, "gus", b"")
    return folder


def test_killed_at_any_moment_and_started_again(tmp_path: Path, source: Path) -> None:
    whole = new_class(tmp_path / "whole")
    moments = moments_of(drive(source, (whole, 0)))
    assert moments > 100
    expected = state(whole)
    # Spread over a run from nothing, each time from the beginning.
    places = list(range(1, moments + 1, max(1, moments // 40)))
    courses = [new_class(tmp_path / f"killed-{kill_at}") for kill_at in places]
    jobs = [job for course, at in zip(courses, places, strict=True) for job in ((course, at), (course, 0))]
    said = drive(source, *jobs)
    assert said.count("killed") == len(places)
    for course in courses:
        assert state(course) == expected, course.name


def test_killed_again_and_again_it_still_gets_there(tmp_path: Path, source: Path) -> None:
    whole, course = new_class(tmp_path / "whole"), new_class(tmp_path / "often")
    ends = [60, 90, 40, 120, 70, 110, 30, 150, 80, 100, 50, 130, 0]
    said = drive(source, (whole, 0), *((course, at) for at in ends))
    assert said.count("killed") >= 6
    assert state(course) == state(whole)


def test_killed_while_a_new_file_replaces_an_old_one(tmp_path: Path, source: Path) -> None:
    """Whatever the moment: the score belongs to the file that was graded, and a new run ends as if nothing was."""
    start = new_class(tmp_path / "start")
    drive(source, (start, 0))
    hand_in(start, "ada", submission(one="wrong", two="wrong"))
    whole = tmp_path / "whole"
    shutil.copytree(start, whole)
    moments = moments_of(drive(source, (whole, 0)))
    expected = state(whole)
    new_hash = hash_of(expected)
    assert new_hash != hash_of(state(start))
    places = list(range(1, moments + 1, max(1, moments // 15)))
    courses = [tmp_path / f"killed-{at}" for at in places]
    for course in courses:
        shutil.copytree(start, course)
    drive(source, *zip(courses, places, strict=True))
    seen = set()
    for course in courses:
        broken = state(course)
        points = sum(row[2] or 0 for row in broken["grades"] if row[0] == "ada")
        assert points == (0 if hash_of(broken) == new_hash else 6)
        seen.add(points)
    assert seen == {0, 6}
    drive(source, *((course, 0) for course in courses))
    for course in courses:
        assert state(course) == expected, course.name


def hash_of(found: dict[str, Any]) -> str:
    """Return the content that the record has of ada."""
    return next(str(row[1]) for row in found["standing"] if row[0] == "ada")
