"""Classes that are graded in processes which can be killed, and what a class amounts to afterwards."""

from __future__ import annotations

import json
import re
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

from small_class import hand_in, submission

DRIVER = Path(__file__).resolve().parent / "drive.py"


def drive(source: Path, *jobs: tuple[Path, int | str]) -> list[str]:
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
    rows["standing"] = [(*row[:8], _without_seconds(row[8]), row[9]) for row in rows["standing"]]
    return {**rows, "files": files}


def _without_seconds(tests: str) -> list[dict[str, Any]]:
    return [{name: value for name, value in test.items() if name != "seconds"} for test in json.loads(tests)]


def new_class(folder: Path) -> Path:
    hand_in(folder, "ada")
    hand_in(folder, "bob", submission(one="wrong"))
    hand_in(folder, "gus", b"")
    return folder
