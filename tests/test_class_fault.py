"""A grader that is killed at any moment and started again leaves the class as if nothing had happened."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent / "graded"))
from driving import drive, moments_of, new_class, state
from small_class import hand_in, submission, write_source

pytestmark = pytest.mark.grading


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_source(tmp_path_factory.mktemp("source"))


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
