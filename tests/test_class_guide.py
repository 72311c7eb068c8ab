"""The instructor's page, command by command, on a small class, with the real sandbox and the real lab."""

from __future__ import annotations

import csv
import json
import re
import shlex
import shutil
import zipfile
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from lantern_grading import leaks, mutants, regions

pytestmark = [pytest.mark.grading, pytest.mark.xdist_group("guide")]

ROOT = Path(__file__).resolve().parents[1]
PAGE = (ROOT / "book" / "instructor.md").read_text(encoding="utf-8")
COMMANDS = [
    line.removeprefix("$ ")
    for block in re.findall(r"^```console\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    for line in block.splitlines()
]
SLIP = next(
    mutant
    for mutant in mutants.load(ROOT / "tests" / "mutants" / "week1.toml").mutants
    if mutant.name == "query heads for key-value heads in a conversation"
)


def notebook(mutant: Any = None) -> bytes:
    return json.dumps(mutants.submission("week1", mutant)).encode()


def lay_out(course: Path) -> None:
    """Put down what the page says that there is: a roster, rules, and what the platforms give."""
    course.mkdir()
    people = [("ada", "Lovelace", 101), ("bob", "Babbage", 102), ("cy", "Young", 103), ("dee", "Day", 104)]
    rows = [f"{name},{last},{name.title()},{name}@example.org,{number}" for name, last, number in people]
    (course / "roster.csv").write_text("\n".join(["id,last_name,first_name,email,canvas", *rows, ""]))
    (course / "class.toml").write_text(re.findall(r"^```toml\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)[0])
    with zipfile.ZipFile(course / "submissions.zip", "w") as archive:
        archive.writestr("lovelaceada_101_9001_week1 (3).ipynb", notebook())
        archive.writestr("babbagebob_LATE_102_9002_week1-1.ipynb", notebook(SLIP))
    with zipfile.ZipFile(course / "moodle.zip", "w") as archive:
        archive.writestr("Cy Young_5003_assignsubmission_file_/week1.ipynb", b"<!DOCTYPE html>")
    (course / "worksheet.csv").write_text(
        "Identifier,Full name,Email address,Status,Grade,Maximum Grade,Last modified (submission),Feedback comments\n"
        'Participant 5003,Cy Young,cy@example.org,Submitted,,100.00,"Friday, 9 October 2026, 5:30 PM",\n'
        "Participant 5001,Ada Lovelace,ada@example.org,Submitted,,100.00,-,\n"
    )
    (course / "by-mail" / "dee").mkdir(parents=True)
    (course / "by-mail" / "dee" / "week1.ipynb").write_bytes(notebook())
    (course / "times.csv").write_text("student,received\ndee,2026-10-10T19:00:00+02:00\n")
    (course / "canvas.csv").write_text(
        "Student,ID,SIS User ID,SIS Login ID,Section,week1 (77)\n    Points Possible,,,,,100\n"
        '"Lovelace, Ada",101,,ada,A,\n"Babbage, Bob",102,,bob,A,\n"Day, Dee",104,,dee,A,\n'
    )


def marks(course: Path) -> dict[str, dict[str, str]]:
    with (course / "reports" / "marks-week1.csv").open(encoding="utf-8", newline="") as file:
        return {row["student"]: row for row in csv.DictReader(file)}


def test_the_week_of_the_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any, missing: Callable[[str], None]
) -> None:
    from lantern_grading.__main__ import main

    if shutil.which("bwrap") is None:
        missing("no bubblewrap; on Debian: apt-get install bubblewrap")
    course = tmp_path / "serving"
    lay_out(course)
    monkeypatch.chdir(tmp_path)
    said: list[tuple[str, int, str]] = []
    for command in COMMANDS:
        words = shlex.split(command)
        assert words[:3] == ["python", "-m", "lantern_grading"], command
        # In this process: to load nbgrader anew for each command would take most of the time.
        status = main(words[3:])
        done = SimpleNamespace(returncode=status, stdout=capsys.readouterr().out)
        said.append((words[3], status, done.stdout))
        after(course, words, done)
    assert [name for name, _, _ in said] == [
        "roster", "collect", "collect", "collect", "grade", "status", "feedback", "regrade", "marks", "marks", "marks",
        "dashboard", "export-student", "erase-student",
    ]  # fmt: skip
    text = "".join(out for _, _, out in said)
    for name in ("Lovelace", "Babbage", "Young", "Day"):
        assert name not in text  # what is printed has ids
    for path in (course / "reports").glob("*week1*"):
        if not path.name.startswith("canvas"):
            assert "Lovelace" not in path.read_text(encoding="utf-8").replace("Ada Lovelace,ada@example.org", "")
    assert not any(b"Young" in path.read_bytes() for path in (course / "reports").iterdir() if "marks" in path.name)


def after(course: Path, words: list[str], done: Any) -> None:
    """Check what a command left behind."""
    name = words[3]
    if name == "roster":
        assert done.stdout == "4 new students, 0 were there.\n"
    elif name == "collect":
        assert done.returncode == 0, done.stdout
    elif name == "grade":
        rows = marks(course)
        assert done.returncode == 1
        assert {student: row["status"] for student, row in rows.items()} == {
            "ada": "graded", "bob": "graded", "cy": "rejected", "dee": "graded",
        }  # fmt: skip
        # bob: the slip, and one day late without a time; dee: two days begun after the due time.
        assert (rows["ada"]["score"], rows["ada"]["penalty"]) == ("90", "")
        assert (rows["bob"]["penalty"], rows["dee"]["penalty"], rows["dee"]["score"]) == ("10", "20", "70")
        assert rows["cy"]["score"] == ""
        assert "web page" in rows["cy"]["reason"]
        page = (course / "feedback" / "bob" / "week1" / "week1.html").read_text(encoding="utf-8")
        from html import unescape

        assert SLIP.says in unescape(page)
        assert leaks.find(course / "feedback", leaks.secrets(regions.HIDDEN)) == []
        assert leaks.find(course / "autograded", leaks.secrets(regions.HIDDEN)) == []
    elif name == "status":
        assert done.returncode == 1
        assert "cy: rejected." in done.stdout
        give_points(course)  # in formgrader
    elif name == "feedback":
        assert marks(course)["ada"]["score"] == "98"
        page = (course / "feedback" / "ada" / "week1" / "week1.html").read_text(encoding="utf-8")
        assert "(Score: 98 / 100)" in page
    elif name == "regrade":
        assert "1 looked at now" in done.stdout
        assert marks(course)["ada"]["score"] == "98"
    elif name == "marks" and "canvas" in words:
        rows = list(csv.reader((course / "reports" / "canvas-week1.csv").read_text().splitlines()))
        assert {row[1]: row[-1] for row in rows[2:]} == {"101": "98", "102": "", "104": ""}
        assert done.returncode == 1
    elif name == "marks" and "moodle" in words:
        lines = (course / "reports" / "moodle-week1.csv").read_text().splitlines()
        rows = {row["Identifier"]: row for row in csv.DictReader(lines)}
        assert [rows[f"Participant {number}"]["Grade"] for number in (5001, 5003)] == ["98", ""]
    elif name == "dashboard":
        assert "week1: the class" in (course / "reports" / "dashboard-week1.html").read_text()
    elif name == "export-student":
        assert done.returncode == 0, done.stdout
        with zipfile.ZipFile(course / "cy.zip") as archive:
            assert archive.namelist()[0] == "gradebook.json"
    elif name == "erase-student":
        assert done.returncode == 0, done.stdout
        assert not (course / "submitted" / "cy").exists()


def give_points(course: Path) -> None:
    """Do through nbgrader's API what formgrader does when ada's answer gets eight points."""
    from nbgrader.api import Gradebook

    with Gradebook(f"sqlite:///{course / 'gradebook.db'}") as book:
        grade = book.find_grade("w1-t8-written", "week1", "week1", "ada")
        grade.manual_score, grade.needs_manual_grade = 8, False
        book.db.commit()


def test_the_page_names_every_command_and_state() -> None:
    from lantern_grading.commands import COMMANDS as KNOWN
    from lantern_grading.marks import states

    used = {shlex.split(command)[3] for command in COMMANDS}
    assert used == set(KNOWN)
    for state in set(states()) - {"graded by hand"}:
        assert f"| {state} |" in PAGE


def test_students_get_neither_the_page_nor_the_code() -> None:
    from lantern_grading import archive

    names = archive.contents(ROOT)
    assert not [name for name in names if "instructor" in name or "lantern_grading" in name]
