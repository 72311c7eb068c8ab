"""A whole class of a real lab: files, sandbox, gradebook and feedback, by one process and by several."""

from __future__ import annotations

import csv
import json
import resource
import shutil
import tempfile
import time
from pathlib import Path
from typing import Any

from lantern_grading import mutants, run
from lantern_grading.classroom import Classroom
from lantern_grading.database import Database
from lantern_grading.marks import as_csv, read
from lantern_grading.paths import ROOT, SOLUTIONS
from lantern_grading.sandboxed import SandboxGrader
from lantern_grading.template import Template, load

LAB = "week1"


def hand_in(course: Path, size: int) -> None:
    """Lay down a synthetic class: the reference, the untouched lab, and every misconception, in turn."""
    slips = mutants.load(ROOT / "tests" / "mutants" / f"{LAB}.toml").mutants
    kinds = [mutants.submission(LAB), mutants.released(LAB), *(mutants.submission(LAB, slip) for slip in slips)]
    texts = [json.dumps(kind) for kind in kinds]
    for number in range(size):
        folder = course / "submitted" / f"s{number:04}" / LAB
        folder.mkdir(parents=True)
        (folder / f"{LAB}.ipynb").write_text(texts[number % len(texts)], encoding="utf-8")


def graded(course: Path, template: Template, count: int) -> tuple[dict[str, Any], str]:
    """Grade a class from nothing; return the times, and the marks as text."""
    classroom = Classroom.open(course)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    report = run.grade(classroom, template, SandboxGrader.of(LAB, SOLUTIONS), count=count)
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024
    size = sum(report.states.values())
    again = time.perf_counter()
    run.grade(classroom, template, SandboxGrader.of(LAB, SOLUTIONS), count=count)
    again = time.perf_counter() - again
    with Database(classroom.db_url) as database:
        table = as_csv(read(classroom, database, template))
    row = {
        "lab": LAB,
        "submissions": size,
        "processes": count,
        "seconds": report.seconds,
        "seconds_per_submission": report.seconds / size,
        "seconds_when_nothing_is_new": again,
        "memory_grown_bytes": grown,
        "states": dict(report.states),
    }
    each = row["seconds_per_submission"]
    print(f"{size:6,} {count:9} {report.seconds:9.1f} {each:12.3f} {again:9.2f} {grown / 1e6:9.0f}")
    return row, table


def measure(size: int) -> list[dict[str, Any]]:
    """Grade classes of a tenth and of the whole size with two processes, and the tenth with one.

    Parameters
    ----------
    size : int
        The larger class [students].

    Returns
    -------
    list of dict
        One for each run. RuntimeError if two ways to grade gave different marks.
    """
    template = load(LAB)
    print(f"{'papers':>6} {'processes':>9} {'seconds':>9} {'each':>12} {'again':>9} {'MB grown':>9}")
    rows, tables = [], []
    for people, count in [(max(size // 10, 10), 1), (max(size // 10, 10), 2), (size, 2)]:
        folder = Path(tempfile.mkdtemp())
        try:
            hand_in(folder, people)
            row, table = graded(folder, template, count)
        finally:
            shutil.rmtree(folder)
        rows.append(row)
        tables.append(list(csv.reader(table.splitlines())))
    if tables[0] != tables[1] or tables[2][: len(tables[0])] != tables[0]:
        raise RuntimeError("one process, several, and a larger class must give the same marks")
    return rows
