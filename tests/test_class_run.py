"""A class is graded: every submission ends in one state, nothing is lost, nothing stale stands."""

from __future__ import annotations

import csv
import json
import re
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from html import unescape
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent / "graded"))
from small_class import ATTACK, QUIZ, SECRET, FakeGrader, hand_in, submission, write_source

from lantern_grading import dashboard, ledger, marks, privacy, regrade, roster, run
from lantern_grading.classroom import Classroom
from lantern_grading.database import Database, GradingStopped
from lantern_grading.feedback_pages import refresh
from lantern_grading.outcome import State
from lantern_grading.template import Template, load


@pytest.fixture(scope="session")
def quiz(tmp_path_factory: pytest.TempPathFactory) -> Template:
    return load(QUIZ, write_source(tmp_path_factory.mktemp("source")))


@pytest.fixture
def course(tmp_path: Path) -> Path:
    folder = tmp_path / "class"
    folder.mkdir()
    return folder


def grade(course: Path, quiz: Template, **more: Any) -> run.RunReport:
    grader = more.pop("grader", None) or FakeGrader.of(quiz)
    return run.grade(Classroom.open(course), quiz, grader, **more)


def table(course: Path, quiz: Template) -> dict[str, marks.Mark]:
    classroom = Classroom.open(course)
    with Database(classroom.db_url) as database:
        return {mark.student: mark for mark in marks.read(classroom, database, quiz)}


def page(course: Path, student: str) -> str:
    text = (course / "feedback" / student / QUIZ / f"{QUIZ}.html").read_text(encoding="utf-8")
    return re.sub(r"\s+", " ", unescape(re.sub(r"<[^>]+>", " ", text)))


def by_hand(course: Path, student: str, cell: str, points: float) -> None:
    """Give points as formgrader does: through nbgrader's own API."""
    from nbgrader.api import Gradebook

    with Gradebook(f"sqlite:///{course / 'gradebook.db'}") as book:
        grade = book.find_grade(cell, QUIZ, QUIZ, student)
        grade.manual_score, grade.needs_manual_grade = points, False
        book.db.commit()


def grades(course: Path, student: str) -> dict[str, tuple[float | None, float | None, bool]]:
    """Read the gradebook past all of our code."""
    query = """select c.name, g.auto_score, g.manual_score, g.needs_manual_grade from grade g
        join base_cell c on g.cell_id = c.id join submitted_notebook n on g.notebook_id = n.id
        join submitted_assignment a on n.assignment_id = a.id where a.student_id = ?"""
    connection = sqlite3.connect(course / "gradebook.db")
    try:
        return {
            name: (auto, manual, bool(needs)) for name, auto, manual, needs in connection.execute(query, (student,))
        }
    finally:
        connection.close()


def test_each_submission_ends_in_one_state_and_none_stops_another(course: Path, quiz: Template) -> None:
    words = {"ada": "right", "bob [2]": "wrong", "cy": "limit", "dee": "boom", "eve": "ill", "fay": "nan"}
    for student, word in words.items():
        hand_in(course, student, submission(one=word))
    hand_in(course, "gus", b"<<<<<<< mine\n>>>>>>> theirs")
    (course / "submitted" / "hal" / QUIZ).mkdir(parents=True)
    (course / "submitted" / "ida").mkdir()
    report = grade(course, quiz)
    states = {
        "ada": "graded", "bob [2]": "graded", "cy": "graded with failures", "dee": "needs a person",
        "eve": "needs a person", "fay": "needs a person", "gus": "rejected", "hal": "rejected", "ida": "not submitted",
    }  # fmt: skip
    found = table(course, quiz)
    assert {student: mark.status for student, mark in found.items()} == states
    assert {student: mark.score for student, mark in found.items() if mark.score is not None} == {
        "ada": 6, "bob [2]": 2, "cy": 2,
    }  # fmt: skip
    assert found["ada"].tasks == {"t1": 4, "t2": 2, "t3": 0}
    assert report.states == {"graded": 2, "graded with failures": 1, "needs a person": 3, "rejected": 2}
    assert not report.clean
    assert "dee: needs a person. The grader failed with RuntimeError." in report.table()
    assert "fay: needs a person. The grader's result was refused" in report.table()
    assert SECRET not in report.table()
    # No zero that nobody gave: the cells of a table are empty.
    rows = {row["student"]: row for row in csv.DictReader(marks.as_csv(list(found.values())).splitlines())}
    assert [rows[student]["score"] for student in ("dee", "gus", "ida")] == ["", "", ""]


def test_the_gradebook_is_nbgraders(course: Path, quiz: Template) -> None:
    """An unmodified nbgrader exports our scores and writes feedback from our notebooks."""
    hand_in(course, "ada", submission(two="wrong"))
    hand_in(course, "gus", b"")
    grade(course, quiz)
    by_hand(course, "ada", "q-t3-essay", 3)
    command = [sys.executable, "-m", "nbgrader"]
    subprocess.run([*command, "export", "--to", "out.csv"], cwd=course, check=True, capture_output=True, timeout=120)
    with (course / "out.csv").open(encoding="utf-8", newline="") as file:
        rows = {row["student_id"]: row for row in csv.DictReader(file)}
    assert float(rows["ada"]["score"]) == 4 + 3
    assert float(rows["ada"]["max_score"]) == 10
    made = subprocess.run(
        [*command, "generate_feedback", QUIZ, "--force"], cwd=course, capture_output=True, text=True, timeout=120,
        check=False,
    )  # fmt: skip
    assert made.returncode == 0, made.stderr
    text = (course / "feedback" / "ada" / QUIZ / f"{QUIZ}.html").read_text(encoding="utf-8")
    assert "Score: 7.0 / 10.0" in re.sub(r"\s+", " ", text)
    assert "Off by one." in text
    assert "<b>Off by one" not in text
    assert "4711  # nobody" not in text


def test_formgrader_opens_what_we_wrote(course: Path, quiz: Template) -> None:
    """The page that formgrader makes of a hostile submission, through its own exporter and template."""
    hand_in(
        course, "eve", submission(one="hostile", essay=f"# Hi\n\n{ATTACK}\n\n[x](javascript:alert(1)) $\\href{{a}}$")
    )
    grade(course, quiz)
    text = formgrader_page(course / "autograded" / "eve" / QUIZ / f"{QUIZ}.ipynb")
    body = text[text.index('id="notebook-container"') :]
    assert "alert(1)" in unescape(body)  # it is shown ...
    assert not re.search(r"<(script|img|svg|iframe|object|embed|link|a)\b[^>]*(alert|onerror|onload|javascript:)", body)
    assert "<script>alert" not in body
    assert not re.search(r"<[^>]*\son\w+\s*=", body)
    assert 'class="score' in body  # ... and the boxes for points are there


def formgrader_page(path: Path) -> str:
    import nbgrader
    from nbconvert.exporters import HTMLExporter
    from traitlets.config import Config

    config = Config()
    config.HTMLExporter.template_name = "formgrade"
    config.HTMLExporter.extra_template_basedirs = [
        str(Path(nbgrader.__file__).parent / "server_extensions" / "formgrader" / "templates")
    ]
    names = ["assignment_id", "notebook_id", "submission_id", "student", "last_name", "first_name", "notebook_path"]
    resources: dict[str, Any] = dict.fromkeys(names, "x") | {"index": 0, "total": 1, "base_url": ""}
    text, _ = HTMLExporter(config=config).from_filename(str(path), resources=resources)
    return str(text)


def test_nothing_active_or_hidden_is_in_what_is_shown(course: Path, quiz: Template) -> None:
    hand_in(course, "eve", submission(one="hostile", two="wrong", essay=ATTACK), name=f'{QUIZ}"><script>.ipynb')
    grade(course, quiz)
    shown = [path for top in ("feedback", "autograded") for path in (course / top).rglob("*") if path.is_file()]
    assert len(shown) == 2
    for path in shown:
        text = path.read_text(encoding="utf-8")
        assert SECRET not in text
    html = (course / "feedback" / "eve" / QUIZ / f"{QUIZ}.html").read_text(encoding="utf-8")
    assert set(re.findall(r"<(\w+)", html)) <= {
        "html", "head", "meta", "title", "style", "body", "h1", "h2", "p", "small", "ul", "li", "table", "thead",
        "tbody", "tr", "th", "td", "span",
    }  # fmt: skip
    assert "http" not in html.replace("http-equiv", "")
    notebook = json.loads((course / "autograded" / "eve" / QUIZ / f"{QUIZ}.ipynb").read_text(encoding="utf-8"))
    kinds = {
        kind for cell in notebook["cells"] for output in cell.get("outputs", []) for kind in output.get("data", {})
    }
    assert kinds == {"text/plain"}
    for cell in notebook["cells"]:
        if cell["cell_type"] == "markdown" and cell["id"] != "title":
            assert re.fullmatch(r'<pre style="white-space: pre-wrap">([\w ,.]|&#\d+;)*</pre>', cell["source"])


def test_a_second_run_does_nothing_and_a_new_file_is_graded(course: Path, quiz: Template, tmp_path: Path) -> None:
    diary = tmp_path / "diary"
    grader = FakeGrader.of(quiz, diary=str(diary))
    for student in ("ada", "bob"):
        hand_in(course, student)
    hand_in(course, "gus", b"")
    grade(course, quiz, grader=grader)
    again = grade(course, quiz, grader=grader)
    assert (again.graded_now, again.skipped) == (0, 3)
    hand_in(course, "bob", submission(one="wrong"))
    assert grade(course, quiz, grader=grader).graded_now == 1
    assert diary.read_text().split() == ["ada", "bob", "bob"]
    assert {student: mark.score for student, mark in table(course, quiz).items()} == {"ada": 6, "bob": 2, "gus": None}


def test_an_old_score_never_stands_for_a_newer_file(course: Path, quiz: Template) -> None:
    hand_in(course, "ada")
    grade(course, quiz)
    assert table(course, quiz)["ada"].score == 6
    hand_in(course, "ada", b"{ broken")
    grade(course, quiz)
    mark = table(course, quiz)["ada"]
    assert (mark.score, mark.status) == (None, "rejected")
    assert {auto for auto, _, _ in grades(course, "ada").values()} == {None}
    assert {needs for _, _, needs in grades(course, "ada").values()} == {True}
    assert "could not be graded" in page(course, "ada")
    assert "6 /" not in page(course, "ada")
    hand_in(course, "ada")
    grade(course, quiz)
    assert table(course, quiz)["ada"].score == 6


def test_a_failed_regrade_keeps_the_score_and_says_so(course: Path, quiz: Template) -> None:
    hand_in(course, "ada", submission(two="wrong"))
    grade(course, quiz)
    before = grades(course, "ada")
    notebook = (course / "autograded" / "ada" / QUIZ / f"{QUIZ}.ipynb").read_bytes()
    report = grade(course, replace(quiz, exam_hash="f" * 64), grader=FakeGrader.of(quiz, broken=True))
    assert "The earlier scores of this file stand." in report.table()
    mark = table(course, quiz)["ada"]
    assert (mark.score, mark.status) == (4, "needs a person")
    assert "the old score stands" in mark.reason
    assert grades(course, "ada") == before
    assert (course / "autograded" / "ada" / QUIZ / f"{QUIZ}.ipynb").read_bytes() == notebook
    assert "last time that it could be graded" in page(course, "ada")
    # It is tried again with every run, until it works.
    assert grade(course, replace(quiz, exam_hash="f" * 64)).clean
    assert table(course, quiz)["ada"].status == "graded"


def test_points_by_hand_are_never_changed(course: Path, quiz: Template) -> None:
    hand_in(course, "ada", submission(one="wrong"))
    grade(course, quiz)
    assert grades(course, "ada")["q-t3-essay"] == (None, None, True)
    by_hand(course, "ada", "q-t3-essay", 3.5)
    by_hand(course, "ada", "q-t1-hidden", 1)
    # The same file under another exam: the essay has been read, nothing of it has changed.
    grade(course, replace(quiz, exam_hash="e" * 64))
    assert grades(course, "ada")["q-t3-essay"] == (None, 3.5, False)
    assert grades(course, "ada")["q-t1-hidden"] == (0, 1, False)
    assert table(course, quiz)["ada"].complete
    # Another file: the points stay, and what they were given for is to be looked at again.
    hand_in(course, "ada", submission(essay="Another thought."))
    grade(course, quiz)
    assert grades(course, "ada")["q-t3-essay"] == (None, 3.5, True)
    assert grades(course, "ada")["q-t1-hidden"] == (3, 1, True)
    # And one that cannot be read takes none of them away either.
    hand_in(course, "ada", b"")
    grade(course, quiz)
    assert grades(course, "ada")["q-t3-essay"] == (None, 3.5, True)
    assert table(course, quiz)["ada"].score is None


def test_a_rejected_submission_can_be_graded_by_hand(course: Path, quiz: Template) -> None:
    hand_in(course, "gus", b"")
    grade(course, quiz)
    for name in grades(course, "gus"):
        by_hand(course, "gus", name, 1)
    assert grade(course, quiz).graded_now == 0
    assert grade(course, replace(quiz, exam_hash="d" * 64)).graded_now == 1
    mark = table(course, quiz)["gus"]
    assert (mark.status, mark.score, mark.complete) == ("graded by hand", 4, True)
    assert "The file is empty" in formgrader_page(course / "autograded" / "gus" / QUIZ / f"{QUIZ}.ipynb")


def test_an_untouched_essay_needs_nobody(course: Path, quiz: Template) -> None:
    stub = next(cell.source for cell in quiz.cells if cell.cell_id == "q-t3-essay")
    hand_in(course, "ada", submission(essay=stub))
    grade(course, quiz)
    assert grades(course, "ada")["q-t3-essay"] == (0, None, False)
    assert table(course, quiz)["ada"].complete


def test_a_changed_exam_moves_people_and_says_who(course: Path, quiz: Template, tmp_path: Path) -> None:
    hand_in(course, "ada")
    hand_in(course, "bob", submission(one="wrong"))
    hand_in(course, "gus", b"")
    grade(course, quiz)
    by_hand(course, "ada", "q-t3-essay", 4)
    other = load(QUIZ, write_source(tmp_path / "mended", points=1, extra=True))
    assert other.exam_hash != quiz.exam_hash
    assert grade(course, other).graded_now == 3
    with Database(Classroom.open(course).db_url) as database, database.reading() as connection:
        moved = {move.student: move for move in regrade.moves(connection, QUIZ, other.exam_hash)}
    # ada: the hidden test is worth 1 instead of 3, and a new test gives 5. bob: only the new one (of no task of his).
    assert (moved["ada"].before, moved["ada"].after) == (6, 4)
    assert moved["ada"].tests == (("q-t1-hidden", 3, 1),)
    assert moved["bob"].change == 0
    assert set(moved) == {"ada", "bob"}
    assert "1 lost, 1 kept" in regrade.summary(list(moved.values()))
    assert regrade.as_csv([moved["ada"]]).splitlines()[1] == "ada,6,4,-2,q-t1-hidden 3 to 1,"
    mark = table(course, other)["ada"]
    assert (mark.score, mark.max_score) == (8, 13)
    # Going back takes the cell out again; where somebody gave points for it by hand, it is refused.
    by_hand(course, "bob", "q-t4-new", 2)
    with pytest.raises(ValueError, match="cells must keep q-t4-new"):
        grade(course, quiz)
    assert table(course, other)["ada"].score == 8


def test_two_graders_at_once_are_refused_in_a_line(course: Path, quiz: Template) -> None:
    hand_in(course, "ada")
    with Classroom.open(course).lock(), pytest.raises(ValueError, match="process \\d+ is at work"):
        grade(course, quiz)
    assert grade(course, quiz).clean


def test_a_locked_gradebook_ends_clearly_and_nothing_is_lost(
    course: Path, quiz: Template, monkeypatch: pytest.MonkeyPatch
) -> None:
    hand_in(course, "ada")
    grade(course, quiz)
    hand_in(course, "bob")
    defaults = Database.__init__.__defaults__
    monkeypatch.setattr(Database.__init__, "__defaults__", (0.1,))
    assert defaults == (30.0,)
    holder = sqlite3.connect(course / "gradebook.db", isolation_level=None)
    holder.execute("BEGIN IMMEDIATE")
    try:
        with pytest.raises(GradingStopped, match="locked by another program"):
            grade(course, quiz)
    finally:
        holder.close()
    monkeypatch.undo()
    assert grade(course, quiz).clean
    assert {mark.score for mark in table(course, quiz).values()} == {6}


def test_a_full_disk_ends_clearly_and_nothing_is_lost(course: Path, quiz: Template, monkeypatch: Any) -> None:
    for number in range(30):
        hand_in(course, f"s{number:02}")
    grade(course, quiz, students=["s00"])
    pages = sqlite3.connect(course / "gradebook.db").execute("PRAGMA page_count").fetchone()[0]
    plain = run.Database._open

    def small(self: Database) -> None:
        from sqlalchemy import event

        plain(self)
        self.engine.dispose()
        event.listen(self.engine, "connect", lambda c, _: c.execute(f"PRAGMA max_page_count = {pages + 8}"))

    monkeypatch.setattr(run.Database, "_open", small)
    with pytest.raises(GradingStopped, match="Is the disk full"):
        grade(course, quiz)
    monkeypatch.undo()
    done = sum(mark.score is not None for mark in table(course, quiz).values())
    assert 0 < done < 30
    assert grade(course, quiz).graded_now == 30 - done
    assert {mark.score for mark in table(course, quiz).values()} == {6}


def test_a_clock_that_goes_back_changes_no_order(course: Path, quiz: Template, monkeypatch: Any) -> None:
    from datetime import datetime as real

    class Back(real):
        year_now = 2030

        @classmethod
        def now(cls, tz: Any = None) -> Any:
            cls.year_now -= 1
            return real(cls.year_now, 1, 1, tzinfo=tz)

    monkeypatch.setattr(ledger, "datetime", Back)
    for word in ("right", "wrong", "right", "wrong"):
        hand_in(course, "ada", submission(one=word))
        grade(course, quiz)
    assert table(course, quiz)["ada"].score == 2
    with Database(Classroom.open(course).db_url) as database, database.reading() as connection:
        assert [each.auto_score for each in ledger.history(connection, QUIZ, "ada")] == [6, 2, 6, 2]


@pytest.mark.parametrize("name", ["..", "a/b", ".hidden", "", " x", "a\nb", "x" * 101])
def test_a_students_name_leads_nowhere(name: str) -> None:
    from lantern_grading.classroom import student_id

    with pytest.raises(ValueError, match="student must be a name"):
        student_id(name)


def test_a_link_for_a_submission_is_not_followed(course: Path, quiz: Template, tmp_path: Path) -> None:
    hand_in(course, "ada")
    (course / "submitted" / "eve").mkdir()
    (course / "submitted" / "eve" / QUIZ).symlink_to(course / "submitted" / "ada" / QUIZ)
    assert grade(course, quiz).states == {"graded": 1}
    assert table(course, quiz)["eve"].status == "not submitted"


def test_the_dashboard_tells_the_class_and_nothing_active(course: Path, quiz: Template) -> None:
    for number in range(4):
        hand_in(course, f"s{number}", submission(one="wrong" if number < 3 else "right"))
    hand_in(course, "x & y", b"")
    grade(course, quiz)
    classroom = Classroom.open(course)
    with Database(classroom.db_url) as database:
        found = marks.read(classroom, database, quiz)
        with database.reading() as connection:
            text = dashboard.page(quiz, found, ledger.newest(connection, QUIZ))
    plain = re.sub(r"\s+", " ", unescape(re.sub(r"<[^>]+>", " ", text)))
    assert "graded 4" in plain
    assert "t1 4 25% 25%" in plain
    assert "t2 2 100% 100%" in plain
    assert "q-t1-hidden 3 <b>Off by one.</b> Did you count from 1?" in plain
    assert "x & y rejected" in plain
    assert "<b>Off" not in text
    assert "x & y" not in text
    assert "<script" not in text
    assert "http" not in text.replace("http-equiv", "")


def test_a_student_can_be_exported_and_erased(course: Path, quiz: Template, tmp_path: Path) -> None:
    import zipfile

    for student in ("quentin", "bob"):
        hand_in(course, student, submission(essay=f"written by {student}"))
    grade(course, quiz)
    classroom = Classroom.open(course)
    (course / "reports").mkdir()
    (course / "reports" / "marks.csv").write_text("quentin,6\n")
    (course / "reports" / "other.csv").write_text("bob,6\n")
    out = privacy.export(classroom, "quentin", tmp_path / "one.zip")
    with zipfile.ZipFile(out) as archive:
        names = archive.namelist()
        rows = json.loads(archive.read("gradebook.json"))
        everything = b"".join(archive.read(name) for name in names)
    assert {name.split("/")[0] for name in names} == {"gradebook.json", "submitted", "autograded", "feedback"}
    assert rows["student"][0]["id"] == "quentin"
    assert len(rows["grade"]) == 4
    assert b"written by bob" not in everything
    assert privacy.erase(classroom, "quentin") > 8
    left = b"".join(path.read_bytes() for path in course.rglob("*") if path.is_file())
    assert b"quentin" not in left
    assert b"written by bob" in left
    assert set(table(course, quiz)) == {"bob"}
    with pytest.raises(ValueError, match="student must be in the class"):
        privacy.erase(classroom, "quentin")


def test_feedback_is_written_again_only_where_it_says_something_new(course: Path, quiz: Template) -> None:
    for student in ("ada", "bob"):
        hand_in(course, student)
    grade(course, quiz)
    classroom = Classroom.open(course)
    by_hand(course, "bob", "q-t3-essay", 2)
    with Database(classroom.db_url) as database:
        assert refresh(classroom, database, quiz) == 1
        assert refresh(classroom, database, quiz) == 0
    assert "(Score: 8 / 10)" in page(course, "bob")
    shutil.rmtree(course / "feedback" / "ada")
    assert grade(course, quiz).graded_now == 0
    assert "(Score: 6 / 10)" in page(course, "ada")


def test_a_folder_whose_name_is_no_id_is_reported_and_stops_nobody(course: Path, quiz: Template) -> None:
    hand_in(course, "ada")
    hand_in(course, "bob\x1b[2J")
    report = grade(course, quiz)
    assert report.states == {"graded": 1, "needs a person": 1}
    assert "'bob\\x1b[2J': needs a person. The folder's name cannot be a student's id." in report.table()


def test_states_are_all_known() -> None:
    assert {str(state) for state in State} <= set(marks.states())


def test_the_command_line_says_what_is_wrong(course: Path, capsys: Any, monkeypatch: Callable[..., Any]) -> None:
    from lantern_grading.__main__ import main

    assert main(["status", "--course", str(course / "nowhere"), "--assignment", "week1"]) == 2
    assert "is not a folder" in capsys.readouterr().err
    assert main(["status", "--course", str(course), "--assignment", "week99"]) == 2
    assert "assignment must be a folder" in capsys.readouterr().err
    (course / "class.toml").write_text("[late]\nshare_per_day = 10\n")
    assert main(["status", "--course", str(course), "--assignment", "week1"]) == 2
    assert "share_per_day must be a number from 0 to 1, got 10" in capsys.readouterr().err


def test_an_id_with_a_tag_is_refused_and_a_name_loses_it(course: Path, quiz: Template) -> None:
    """Formgrader writes both into its pages as they are."""
    hand_in(course, "eve <img src=x>", submission())
    report = grade(course, quiz)
    assert report.states == {"needs a person": 1}
    assert "Rename it." in report.table()
    classroom = Classroom.open(course)
    with Database(classroom.db_url) as database:
        people = [roster.Person("eve", "<script>alert(1)</script>", "Eve <b>", "<i>@x")]
        database.write(lambda connection: roster.enter(connection, people))
    connection = sqlite3.connect(course / "gradebook.db")
    names = connection.execute("select first_name, last_name, email from student where id = 'eve'").fetchone()
    connection.close()
    assert not any(sign in name for name in names for sign in "<>")
