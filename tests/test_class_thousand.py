"""A class of a real lab, with everything that comes in on a bad day: as many processes, memory that does not grow.

``LANTERN_CLASS=1000`` grades so many papers (an hour of processor time); CI grades ten. The class is graded three
times: by two processes in one run, by one, and by two of which the grader is killed in the middle and started again.
With ``LANTERN_CLASS_SERIAL=200`` the last two get the first 200 only.
"""

from __future__ import annotations

import json
import os
import shutil
import statistics
import subprocess
import sys
from pathlib import Path
from typing import Any

import nbformat
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent / "graded"))
import honest
from driving import state

pytestmark = pytest.mark.grading

LAB = "week1"
SIZE = int(os.environ.get("LANTERN_CLASS", "10"))
SERIAL = min(SIZE, int(os.environ.get("LANTERN_CLASS_SERIAL", str(SIZE))))
DRIVER = Path(__file__).resolve().parent / "graded" / "thousand.py"


def broken(number: int, text: str) -> str:
    """Break a paper in one of the ways in which papers break."""
    first = honest.exam_of(LAB).answers[0].cell_id
    kinds = [
        "",
        text[: len(text) // 2],
        "<!DOCTYPE html><html><body>Sign in</body></html>",
        honest_text(number, {first: "import os\nos._exit(3)"}),
        honest_text(number, {first: "whole = bytearray(10**13)"}),
        honest_text(number, {first: "input('your name? ')"}),
    ]
    return kinds[number // 10 % len(kinds)]


def honest_text(number: int, changed: dict[str, str] | None = None) -> str:
    return nbformat.writes(honest.notebook(LAB, honest.draw(LAB, number) | (changed or {})))


def hand_in(course: Path, size: int) -> Path:
    """Lay down a class: every tenth paper is broken."""
    for number in range(size):
        text = honest_text(number)
        folder = course / "submitted" / f"s{number:04}" / LAB
        folder.mkdir(parents=True)
        (folder / f"{LAB}.ipynb").write_text(broken(number, text) if is_broken(number) else text, encoding="utf-8")
    return course


def drive(course: Path, processes: int, kill_at: int = 0) -> str:
    done = subprocess.run(
        [sys.executable, DRIVER, course, LAB, str(processes), str(kill_at)],
        capture_output=True, text=True, timeout=4 * 3600, check=False,
    )  # fmt: skip
    assert done.returncode == (-9 if kill_at else 0), done.stderr
    assert "locked" not in done.stdout + done.stderr
    return done.stdout


def is_broken(number: int) -> bool:
    return number % 10 == 9


def part(whole: dict[str, Any], size: int) -> dict[str, Any]:
    """Return what a class amounts to for its first students."""
    names = {f"s{number:04}" for number in range(size)}
    rows = {
        key: [row for row in whole[key] if row[0] in names] for key in ("grades", "comments", "students", "standing")
    }
    files = {name: content for name, content in whole["files"].items() if Path(name).parts[1] in names}
    return {**whole, **rows, "files": files}


def of_the_runner(monkeypatch: pytest.MonkeyPatch) -> dict[str, dict[str, float]]:
    """Score everybody's honest papers without sandbox, gradebook, or a class."""
    monkeypatch.chdir(honest.ROOT / "solutions" / LAB)
    return {
        f"s{number:04}": honest.points_of_the_runner(LAB, honest.draw(LAB, number))
        for number in range(SIZE)
        if not is_broken(number)
    }


def test_a_class_is_graded_alike_by_two_by_one_and_after_a_kill(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = hand_in(tmp_path / "whole", SIZE)
    alone, killed = (tmp_path / name for name in ("alone", "killed"))
    for course in (alone, killed):
        for number in range(SERIAL):
            shutil.copytree(whole / "submitted" / f"s{number:04}", course / "submitted" / f"s{number:04}")
    said = {"two processes": drive(whole, 2)}
    memory = [int(line) for line in Path(f"{whole}.memory").read_text().split()]
    assert len(memory) == SIZE
    tenth = max(SIZE // 10, 1)
    first, last = statistics.median(memory[:tenth]), statistics.median(memory[-tenth:])
    said["resident, first and last tenth"] = (
        f"{first / 1e6:.1f} MB, {last / 1e6:.1f} MB, most {max(memory) / 1e6:.1f} MB"
    )
    said["one process"] = drive(alone, 1)
    said["killed"] = drive(killed, 2, kill_at=SERIAL // 2)
    said["and again"] = drive(killed, 2)
    print(json.dumps(said, indent=1))
    assert len(Path(f"{killed}.memory").read_text().split()) == SERIAL  # nothing was graded twice
    expected = state(alone)
    assert len(expected["standing"]) == SERIAL
    assert len({row[5] for row in expected["standing"]}) > 2  # they do not all have one score
    assert state(killed) == expected
    everything = state(whole)
    assert part(everything, SERIAL) == expected
    scores: dict[str, dict[str, float]] = {}
    for student, cell, score, *_ in everything["grades"]:
        scores.setdefault(student, {})[cell] = score
    wanted = of_the_runner(monkeypatch)
    assert {who: {cell: scores[who][cell] for cell in tests} for who, tests in wanted.items()} == wanted
    # A paper and its results have a hundred kilobytes: a grader that kept each of a thousand would hold 100 MB more.
    assert last - first < 20e6
