"""What can go wrong around a grader: killed at any change, no room, a locked gradebook, a clock that jumps, a second.

Each time the class is afterwards what it would have been without. ``test_class_fault.py`` kills at other moments.
"""

from __future__ import annotations

import errno
import itertools
import os
import sqlite3
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent / "graded"))
from driving import DRIVER, drive, moments_of, new_class, state
from small_class import QUIZ, FakeGrader, hand_in, submission, write_source

from lantern_grading import ledger, run
from lantern_grading.classroom import Classroom
from lantern_grading.database import Database, GradingStopped
from lantern_grading.template import Template, load

pytestmark = pytest.mark.grading


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_source(tmp_path_factory.mktemp("source"))


@pytest.fixture(scope="module")
def quiz(source: Path) -> Template:
    return load(QUIZ, source)


def grade(course: Path, quiz: Template) -> run.RunReport:
    return run.grade(Classroom.open(course), quiz, FakeGrader.of(quiz))


@pytest.fixture
def expected(tmp_path: Path, quiz: Template) -> dict[str, Any]:
    """What the class amounts to when nothing happens."""
    whole = new_class(tmp_path / "whole")
    grade(whole, quiz)
    return state(whole)


def test_killed_at_every_change_and_started_again(tmp_path: Path, source: Path, expected: dict[str, Any]) -> None:
    changes = moments_of(drive(source, (new_class(tmp_path / "count"), "c0")))
    # A notebook and a page for each of three, before and after; and at least as many commits.
    assert changes > 2 * 2 * 3 + 3
    courses = [new_class(tmp_path / f"killed-{at}") for at in range(1, changes + 1)]
    jobs = [job for at, course in enumerate(courses, 1) for job in ((course, f"c{at}"), (course, "c0"))]
    said = drive(source, *jobs)
    assert said.count("killed") == changes
    for course in courses:
        assert state(course) == expected, course.name
        assert not list(course.rglob("*.part")), course.name


def test_no_room_for_any_file(
    tmp_path: Path, quiz: Template, expected: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The disk is full at the first file that is written, then at the second, and so on, until a run gets through."""
    plain = os.fsync
    for full_at in itertools.count(1):
        course, written = new_class(tmp_path / f"full-{full_at}"), itertools.count(1)

        def fsync(handle: int, written: Any = written, full_at: int = full_at) -> None:
            if next(written) == full_at:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            plain(handle)

        monkeypatch.setattr(os, "fsync", fsync)
        try:
            grade(course, quiz)
            break
        except GradingStopped as end:
            told = str(end)
        finally:
            monkeypatch.undo()
        assert "No space left on device. Nothing is lost" in told
        assert not list(course.rglob("*.part"))
        grade(course, quiz)
        assert state(course) == expected, full_at
    assert full_at == 2 * 3 + 1  # a notebook and a page for each of three


@pytest.mark.parametrize("held_seconds", [0.3, 60.0])
def test_the_gradebook_is_locked_at_any_change(
    tmp_path: Path, quiz: Template, expected: dict[str, Any], monkeypatch: pytest.MonkeyPatch, held_seconds: float
) -> None:
    """Somebody writes for a moment: it is waited for. For longer: the run ends in words, and the next completes it."""
    plain, stopped = Database.write, 0
    for locked_at in itertools.count(1):
        course, changes = new_class(tmp_path / f"locked-{locked_at}"), itertools.count(1)
        held: list[sqlite3.Connection] = []

        def write(self: Database, change: Any, changes: Any = changes, at: int = locked_at, held: Any = held) -> Any:
            if next(changes) == at:
                url = str(self.engine.url.database)
                held.append(sqlite3.connect(url, isolation_level=None, check_same_thread=False))
                held[0].execute("BEGIN IMMEDIATE")
                if held_seconds < 1:
                    threading.Timer(held_seconds, held[0].close).start()
                else:
                    self.patience_seconds = 0.05
            return plain(self, change)

        monkeypatch.setattr(Database, "write", write)
        told = ""
        try:
            grade(course, quiz)
        except GradingStopped as end:
            told = str(end)
            stopped += 1
        finally:
            monkeypatch.undo()
        assert not told or "locked by another program" in told
        if not held:
            break
        held[0].close()
        if held_seconds > 1:
            grade(course, quiz)
        assert state(course) == expected, locked_at
    assert locked_at > 1 + 3  # the exam, then each of three
    assert stopped == (0 if held_seconds < 1 else locked_at - 1)


def test_a_clock_that_jumps_back_and_forth(
    tmp_path: Path, quiz: Template, expected: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    from datetime import datetime as real

    years = itertools.cycle([2031, 1999, 2026, 1971])

    class Jumping(real):
        @classmethod
        def now(cls, tz: Any = None) -> Any:
            return real(next(years), 1, 1, tzinfo=tz)

    for module in (ledger, run):
        monkeypatch.setattr(module, "datetime", Jumping)
    monkeypatch.setattr(time, "time", lambda: real(next(years), 1, 1).timestamp())
    course = tmp_path / "class"
    # Each student's work comes in three times; only the last counts, whatever the clock says meanwhile.
    for word in ("wrong", "right", "wrong"):
        new_class(course)
        hand_in(course, "ada", submission(one=word))
        grade(course, quiz)
    new_class(course)
    assert grade(course, quiz).graded_now == 1
    assert state(course) == expected


def test_two_graders_at_once(tmp_path: Path, source: Path, quiz: Template) -> None:
    """Two processes that begin together: one grades, the other is told to wait, and everybody is graded once."""
    whole, course = (tmp_path / name for name in ("whole", "class"))
    for folder in (whole, course):
        for number in range(12):
            hand_in(folder, f"s{number:02}", submission(one="slow"))
    grade(whole, quiz)
    command = [sys.executable, DRIVER, source, f"{course}:0"]
    both = [subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for _ in range(2)]
    said = [process.communicate(timeout=300) for process in both]
    graded = sum("graded 12" in out for out, _ in said)
    refused = sum("is at work. Wait for it to end." in told for _, told in said)
    late = sum("graded 0" in out for out, _ in said)  # began when the other was through
    assert (graded, refused + late) == (1, 1), said
    assert state(course) == state(whole)
    with Database(Classroom.open(course).db_url) as database, database.reading() as connection:
        for number in range(12):
            assert len(ledger.history(connection, QUIZ, f"s{number:02}")) == 1
