"""Collecting from a folder, from Canvas and from Moodle: who, when, and nothing that leads out of its place."""

from __future__ import annotations

import csv
import io
import stat
import sys
import zipfile
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent / "graded"))
from small_class import QUIZ, FakeGrader, hand_in, submission, write_source

from lantern_grading import exports, marks, roster, run
from lantern_grading.archives import safe_name
from lantern_grading.classroom import Classroom
from lantern_grading.collect import Collected, collect
from lantern_grading.database import Database
from lantern_grading.late import LateRules
from lantern_grading.receipts import read_times
from lantern_grading.template import Template, load

ROSTER = """id,last_name,first_name,email,canvas
ada,Lovelace,Ada,ada@example.org,101
bob,O'Brien,Bob,bob@example.org,102
cy,Young,Cy,cy@example.org,103
cy2,Young,Cy,cy2@example.org,104
zoë,Müller,Zoë,zoe@example.org,105
"""
DUE = datetime(2026, 10, 9, 16, 0, tzinfo=UTC)


@pytest.fixture(scope="session")
def quiz(tmp_path_factory: pytest.TempPathFactory) -> Template:
    return load(QUIZ, write_source(tmp_path_factory.mktemp("source")))


@pytest.fixture
def course(tmp_path: Path) -> Path:
    folder = tmp_path / "class"
    folder.mkdir()
    (tmp_path / "roster.csv").write_text(ROSTER, encoding="utf-8")
    people = roster.read(tmp_path / "roster.csv")
    with Database(Classroom.open(folder).db_url) as database:
        assert database.write(lambda connection: roster.enter(connection, people)) == (5, 0)
        assert database.write(lambda connection: roster.enter(connection, people)) == (0, 5)
    return folder


def archive(path: Path, files: dict[str, bytes]) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as out:
        for name, content in files.items():
            out.writestr(name, content)
    return path


def take(course: Path, source: Path, platform: str = "folder", **more: Any) -> Collected:
    return collect(Classroom.open(course), QUIZ, source, platform, **more)


def files_of(course: Path) -> set[str]:
    top = course / "submitted"
    return {path.relative_to(top).as_posix() for path in top.rglob("*") if path.is_file()}


def test_what_canvas_gives(course: Path, tmp_path: Path) -> None:
    source = archive(
        tmp_path / "submissions.zip",
        {
            "lovelaceada_101_9001_quiz.ipynb": submission(),
            "obrienbob_LATE_102_9002_quiz-2.ipynb": submission(one="wrong"),
            "obrienbob_LATE_102_9003_data_with_underscores.csv": b"1,2",
            "müllerzoë_105_9004_quiz (1).ipynb": submission(),
            "strangerpat_999_9005_quiz.ipynb": submission(),
        },
    )
    done = take(course, source, "canvas")
    assert (done.new, done.unknown) == (["ada", "bob", "zoë"], ["999"])
    assert files_of(course) == {
        "ada/quiz/quiz.ipynb", "bob/quiz/quiz-2.ipynb", "bob/quiz/data_with_underscores.csv", "zoë/quiz/quiz (1).ipynb",
    }  # fmt: skip
    assert [path.name for path in (course / "unmatched" / QUIZ).rglob("*") if path.is_file()] == ["quiz.ipynb"]
    assert not done.clean
    # What is printed has numbers and ids, and no names.
    for name in ("lovelace", "Lovelace", "pat", "müller"):
        assert name not in done.table()
    again = take(course, source, "canvas")
    assert (again.new, again.replaced, again.unchanged) == ([], [], ["ada", "bob", "zoë"])


def test_what_moodle_gives_with_folders_and_without(course: Path, tmp_path: Path) -> None:
    source = archive(
        tmp_path / "quiz-submissions.zip",
        {
            "Ada Lovelace_5001_assignsubmission_file_/quiz.ipynb": submission(),
            "Ada Lovelace_5001_assignsubmission_file_/sub/data.csv": b"1",
            "Bob O'Brien_5002_assignsubmission_file/quiz.ipynb": submission(),
            "Zoë Müller_5005_assignsubmission_file_quiz.ipynb": submission(),
            "Cy Young_5003_assignsubmission_file_/quiz.ipynb": submission(),
            "Ada Lovelace_5001_assignsubmission_onlinetext_/onlinetext.html": b"<p>hi",
        },
    )
    done = take(course, source, "moodle")
    # Two people have one name; without Moodle's own list nobody can tell who it is.
    assert (sorted(done.new), done.unknown) == (["ada", "bob", "zoë"], ["5003"])
    assert "ada/quiz/sub/data.csv" in files_of(course)
    sheet = tmp_path / "grades.csv"
    sheet.write_text(
        "Identifier,Full name,Email address,Status,Grade,Maximum Grade,Last modified (submission),Feedback comments\n"
        'Participant 5003,Cy Young,cy2@example.org,Submitted,,10.00,"Friday, 9 October 2026, 5:30 PM",\n'
        "Participant 5001,Ada Lovelace,ada@example.org,Submitted,,10.00,-,\n",
        encoding="utf-8",
    )
    done = take(course, source, "moodle", worksheet=sheet, zone="Europe/Berlin")
    assert (done.new, done.unknown) == (["cy2"], [])
    with Database(Classroom.open(course).db_url) as database, database.reading() as connection:
        from lantern_grading import receipts

        receipt = receipts.find(connection, QUIZ, "cy2")
        assert receipt is not None
        assert receipt.received == datetime(2026, 10, 9, 15, 30)


def without_unicode_flag(path: Path) -> Path:
    """Clear the bit that says that names are UTF-8, as in archives that Canvas packs."""
    content = bytearray(path.read_bytes())
    for mark, place in ((b"PK\x03\x04", 7), (b"PK\x01\x02", 9)):
        at = content.find(mark)
        while at >= 0:
            content[at + place] &= ~0x08
            at = content.find(mark, at + 4)
    path.write_bytes(content)
    return path


def test_names_as_canvas_writes_them(course: Path, tmp_path: Path) -> None:
    more = "id,last_name,first_name,canvas\nvan,van_den Berg,Max,106\nyuki,山田,雪,\n"
    (tmp_path / "more.csv").write_text(more, encoding="utf-8")
    with Database(Classroom.open(course).db_url) as database:
        database.write(lambda connection: roster.enter(connection, roster.read(tmp_path / "more.csv")))
    source = archive(
        tmp_path / "submissions.zip",
        {
            "van_denbergmax_LATE_106_9001_my_quiz-1.ipynb": submission(),
            "山田雪_107_9002_quiz.ipynb": submission(),
            # Handed in for the eighth time, Canvas puts signs by chance behind the name.
            "müllerzoë_108_9003_quiz-0b1c7a9e-2f0e-4a51-9d6e-0c8f4f1d2a3b.ipynb": submission(),
            "lovelaceada_101_2026_9_quiz.ipynb": submission(),
            "obrienbob_102_text.html": b"<p>hello",
            "youngcy_LATE_103_link.html": b"<a>",
        },
    )
    done = take(course, without_unicode_flag(source), "canvas")
    assert (sorted(done.new), done.unknown) == (["ada", "van", "yuki", "zoë"], [])
    assert {"van/quiz/my_quiz-1.ipynb", "yuki/quiz/quiz.ipynb", "ada/quiz/9_quiz.ipynb"} <= files_of(course)
    assert done.notes == [f"{number}: a text or a link was handed in. Only files are taken." for number in (102, 103)]
    with Database(Classroom.open(course).db_url) as database, database.reading() as connection:
        from lantern_grading import receipts

        late = {who: found.late for who in ("van", "ada") if (found := receipts.find(connection, QUIZ, who))}
    assert late == {"van": True, "ada": False}


def test_an_anonymous_assignment_of_canvas_belongs_to_nobody_but_is_kept(course: Path, tmp_path: Path) -> None:
    names = ("anon_aB3xZ_9001_quiz.ipynb", "LATE_anon_7Yk2p_9002_quiz.ipynb")
    done = take(course, archive(tmp_path / "submissions.zip", dict.fromkeys(names, submission())), "canvas")
    assert (done.new, sorted(done.unknown)) == ([], ["anon_7Yk2p", "anon_aB3xZ"])
    kept = sorted(path.parent.name[:10] for path in (course / "unmatched").rglob("*.ipynb"))
    assert kept == ["anon_7Yk2p", "anon_aB3xZ"]


SHEET = (
    "Identifier,Full name,Email address,Status,{more}Grade,Maximum grade,Grade can be changed,"
    "Last modified (submission),Last modified (grade),Feedback comments\n"
)


def test_blind_marking_in_moodle(course: Path, tmp_path: Path) -> None:
    """The archive has no name; who may see names gets them in the worksheet."""
    names = ("Participant_5001_assignsubmission_file/quiz.ipynb", "Participant_5002_assignsubmission_file/quiz.ipynb")
    source = archive(tmp_path / "blind.zip", dict.fromkeys(names, submission()))
    assert sorted(take(course, source, "moodle").unknown) == ["5001", "5002"]
    sheet = tmp_path / "grades.csv"
    row = "Participant 5001,Ada Lovelace,,Submitted for grading,,10.00,Yes,-,-,\n"
    sheet.write_text(SHEET.format(more="") + row, encoding="utf-8")
    done = take(course, source, "moodle", worksheet=sheet)
    assert (done.new, done.unknown) == (["ada"], ["5002"])


def test_the_work_of_a_group_in_moodle_is_that_of_all_its_members(course: Path, tmp_path: Path) -> None:
    source = archive(
        tmp_path / "groups.zip",
        {
            "Team North_5001_assignsubmission_file/quiz.ipynb": submission(),
            "Default group_assignsubmission_file/quiz.ipynb": submission(one="wrong"),
            "Team South_7_assignsubmission_file/quiz.ipynb": submission(),
        },
    )
    # Without the list nobody's work is taken for another's, and all of it is kept.
    assert sorted(take(course, source, "moodle").unknown) == ["5001", "7", "no-number"]
    sheet = tmp_path / "grades.csv"
    # The number of the group is by chance that of another student.
    rows = [("5001", "Zoë Müller", "zoe", "Default group"), ("5002", "Ada Lovelace", "ada", "Team_North")]
    rows += [("5003", "Bob O'Brien", "bob", "Team_North")]
    sheet.write_text(
        SHEET.format(more="Group,")
        + "".join(f"Participant {n},{name},{who}@example.org,,{team},,10.00,Yes,-,-,\n" for n, name, who, team in rows),
        encoding="utf-8",
    )
    done = take(course, source, "moodle", worksheet=sheet)
    assert (sorted(done.new), done.unknown) == (["ada", "bob", "zoë"], ["7"])
    place = course / "submitted"
    assert (place / "zoë" / QUIZ / "quiz.ipynb").read_bytes() == submission(one="wrong")
    assert (place / "bob" / QUIZ / "quiz.ipynb").read_bytes() == submission()
    with Database(Classroom.open(course).db_url) as database, database.reading() as connection:
        assert roster.identities(connection, f"moodle:{QUIZ}") == {}


def test_a_folder_for_each_student(course: Path, tmp_path: Path) -> None:
    top = tmp_path / "in"
    for student in ("ada", "nobody"):
        (top / student).mkdir(parents=True)
        (top / student / "quiz.ipynb").write_bytes(submission())
    (top / "ada" / "link").symlink_to("/etc/passwd")
    (top / "bob").symlink_to(top / "ada")
    done = take(course, top)
    assert (done.new, done.unknown) == (["ada"], ["nobody"])
    assert files_of(course) == {"ada/quiz/quiz.ipynb"}
    assert "ada: Left out: link is no plain file" in done.table()


def test_what_an_editor_adds_is_no_part_of_the_work(course: Path, quiz: Template, tmp_path: Path) -> None:
    work = {"quiz.ipynb": submission(), "__MACOSX/._quiz.ipynb": b"x", ".ipynb_checkpoints/quiz.ipynb": b"{}"}
    inner = archive(tmp_path / "work.zip", work)
    source = archive(tmp_path / "submissions.zip", {"lovelaceada_101_1_work.zip": inner.read_bytes()})
    assert take(course, source, "canvas").new == ["ada"]
    assert files_of(course) == {"ada/quiz/quiz.ipynb"}
    assert mark_of(course, quiz).score == 6
    assert take(course, source, "canvas").unchanged == ["ada"]


def test_nothing_in_an_archive_leads_out_of_its_place(course: Path, tmp_path: Path) -> None:
    path = tmp_path / "evil.zip"
    link = zipfile.ZipInfo("lovelaceada_101_2_link.ipynb")
    link.external_attr = (stat.S_IFLNK | 0o777) << 16
    with zipfile.ZipFile(path, "w") as out:
        out.writestr("lovelaceada_101_1_quiz.ipynb", submission())
        out.writestr(link, "/etc/passwd")
        for name in ("../../lovelaceada_101_3_up.ipynb", "/lovelaceada_101_4_root.ipynb", "a/../../b_101_5_x.ipynb"):
            out.writestr(name, b"{}")
        out.writestr("lovelaceada_101_6_..\\..\\quiz.ipynb", b"{}")
        out.writestr("C:\\lovelaceada_101_7_quiz.ipynb", b"{}")
        with pytest.warns(UserWarning, match="Duplicate name"):
            out.writestr("lovelaceada_101_1_quiz.ipynb", b"other")
    before = {p for p in tmp_path.rglob("*") if "class" not in p.parts}
    done = take(course, path, "canvas")
    assert files_of(course) == {"ada/quiz/quiz.ipynb"}
    assert (course / "submitted" / "ada" / QUIZ / "quiz.ipynb").read_bytes() == submission()
    assert {p for p in tmp_path.rglob("*") if "class" not in p.parts} == before
    assert len(done.notes) == 7
    assert not any(p.is_symlink() for p in course.rglob("*"))


def test_a_bomb_takes_no_room(course: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from lantern_grading import archives, platforms

    monkeypatch.setattr(platforms, "MAX_STUDENT_BYTES", 400_000)
    monkeypatch.setattr(archives, "MAX_STUDENT_BYTES", 400_000)
    inner = io.BytesIO()
    with zipfile.ZipFile(inner, "w", zipfile.ZIP_DEFLATED) as out:
        out.writestr("quiz.ipynb", submission())
        out.writestr("zeros.bin", bytes(50_000_000))
    source = archive(
        tmp_path / "bombs.zip",
        {
            "lovelaceada_101_1_zeros.ipynb": bytes(50_000_000),
            "lovelaceada_101_2_quiz.ipynb": submission(),
            "obrienbob_102_3_work.zip": inner.getvalue(),
        },
    )
    done = take(course, source, "canvas")
    assert files_of(course) == {"ada/quiz/quiz.ipynb", "bob/quiz/quiz.ipynb"}
    assert "ada: zeros.ipynb was left out: it has more than 200,000 bytes." in done.table()
    assert "zeros.bin in work.zip was left out: it has more than" in done.table()
    assert "The work came in an archive, work.zip; it was unpacked." in done.table()


def test_a_header_that_lies_about_its_size_is_not_believed(course: Path, tmp_path: Path) -> None:
    path = archive(tmp_path / "lies.zip", {"lovelaceada_101_1_quiz.ipynb": submission() * 50})
    content = path.read_bytes()
    size = len(submission() * 50).to_bytes(4, "little")
    assert content.count(size) == 2
    path.write_bytes(content.replace(size, (10).to_bytes(4, "little")))
    done = take(course, path, "canvas")
    assert files_of(course) <= {"ada/quiz/quiz.ipynb"}
    assert "damaged" in done.table() or not files_of(course)


@pytest.mark.parametrize(
    ("content", "platform", "words"),
    [
        (b"no archive", "canvas", "cannot be read"),
        (None, "canvas", "must hold files named as canvas names them"),
        (None, "moodle", "must hold files named as moodle names them"),
    ],
)
def test_an_archive_of_something_else(
    course: Path, tmp_path: Path, content: bytes | None, platform: str, words: str
) -> None:
    path = archive(tmp_path / "other.zip", {"holiday.jpg": b"x"})
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(ValueError, match=words):
        take(course, path, platform)


@pytest.mark.parametrize(
    ("name", "safe"),
    [("a//b", "a/b"), ("./a", "a"), ("a/./b", "a/b"), ("..", None), ("a/..", None), ("", None), ("\x1b[2J", None),
     ("a" * 300, None), ("\\\\server\\share", None), ("c:x", None)],
)  # fmt: skip
def test_safe_names(name: str, safe: str | None) -> None:
    assert safe_name(name) == safe


def one(course: Path, tmp_path: Path, content: bytes, received: datetime) -> Collected:
    top = tmp_path / "in"
    (top / "ada").mkdir(parents=True, exist_ok=True)
    (top / "ada" / "quiz.ipynb").write_bytes(content)
    (top / "ada" / "timestamp.txt").write_text("1999-01-01 00:00:00 UTC")
    return take(course, top, times={"ada": received})


def settings(course: Path, late: str = "", extensions: str = "") -> None:
    due = f"[due]\n{QUIZ} = {DUE.isoformat()}\n"
    (course / "class.toml").write_text(f"[late]\nshare_per_day = 0.1\n{late}\n{due}\n{extensions}", encoding="utf-8")


def mark_of(course: Path, quiz: Template) -> marks.Mark:
    run.grade(Classroom.open(course), quiz, FakeGrader.of(quiz))
    with Database(Classroom.open(course).db_url) as database:
        return next(m for m in marks.read(Classroom.open(course), database, quiz) if m.student == "ada")


def test_late_by_the_platforms_time_and_never_by_the_files_own(course: Path, quiz: Template, tmp_path: Path) -> None:
    settings(course)
    one(course, tmp_path, submission(), DUE + timedelta(hours=30))
    mark = mark_of(course, quiz)
    assert (mark.score, mark.penalty) == (4, 2)  # two days begun, a tenth of 10 points each
    # nbgrader has the same penalty and the time of receipt.
    from nbgrader.api import Gradebook

    with Gradebook(f"sqlite:///{course / 'gradebook.db'}") as book:
        submission_row = book.find_submission(QUIZ, "ada")
        assert submission_row.late_submission_penalty == 2
        assert submission_row.total_seconds_late == 30 * 3600
    # An extension counts with the next run, without grading anything again.
    settings(course, extensions=f"[extensions.{QUIZ}]\nada = 2026-10-20T00:00:00Z\n")
    assert mark_of(course, quiz).score == 6
    with Database(Classroom.open(course).db_url) as database, database.reading() as connection:
        from lantern_grading import ledger

        assert len(ledger.history(connection, QUIZ, "ada")) == 1


def test_a_late_file_does_not_replace_one_that_was_on_time(course: Path, quiz: Template, tmp_path: Path) -> None:
    settings(course)
    one(course, tmp_path, submission(), DUE - timedelta(hours=1))
    late = submission(one="wrong")
    done = one(course, tmp_path, late, DUE + timedelta(hours=1))
    assert done.refused == [("ada", done.refused[0][1])]
    assert "the file that was on time stands" in done.table()
    assert [path.read_bytes() for path in (course / "archive").rglob("*.ipynb")] == [late]
    assert mark_of(course, quiz).score == 6
    settings(course, late="replace_on_time = true")
    assert one(course, tmp_path, late, DUE + timedelta(hours=1)).replaced == ["ada"]
    assert mark_of(course, quiz).score == 1
    assert len(list((course / "archive").rglob("*.ipynb"))) == 2


def test_a_newer_file_that_waits_for_grading_has_no_score(course: Path, quiz: Template, tmp_path: Path) -> None:
    one(course, tmp_path, submission(), DUE)
    assert mark_of(course, quiz).score == 6
    one(course, tmp_path, submission(one="wrong"), DUE)
    with Database(Classroom.open(course).db_url) as database:
        mark = next(m for m in marks.read(Classroom.open(course), database, quiz) if m.student == "ada")
    assert (mark.score, mark.status, mark.reason) == (None, "not graded", "a newer file came in")


def test_canvas_mark_without_a_time_is_one_day() -> None:
    rules = LateRules(share_per_day=0.1, due={QUIZ: DUE}, extensions={QUIZ: {"bob": DUE}})
    assert rules.days_late(QUIZ, "ada", None, True) == 1
    assert rules.days_late(QUIZ, "ada", None, False) == 0
    assert rules.days_late(QUIZ, "bob", None, True) == 0


def test_times_need_a_zone(tmp_path: Path) -> None:
    path = tmp_path / "times.csv"
    path.write_text("student,received\nada,2026-10-09T18:00:00+02:00\n")
    assert read_times(path) == {"ada": DUE}
    path.write_text("student,received\nada,2026-10-09 18:00\n")
    with pytest.raises(ValueError, match="line 2 of times.csv must have a student and a time received with its zone"):
        read_times(path)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("id\n", "row for each student"),
        ("id\nada\nada\n", "'ada' in lines 2 and 3"),
        ("id,last_name\n,Lovelace\n", "none in line 2"),
        ("id\n../x\n", "line 2: student must be a name"),
    ],
)
def test_a_bad_roster_is_refused_with_its_line(tmp_path: Path, text: str, words: str) -> None:
    (tmp_path / "r.csv").write_text(text)
    with pytest.raises(ValueError, match=words):
        roster.read(tmp_path / "r.csv")


def test_rosters_as_platforms_export_them(tmp_path: Path) -> None:
    canvas = tmp_path / "canvas.csv"
    canvas.write_text(
        "\ufeffStudent,ID,SIS User ID,SIS Login ID,Section,quiz (77)\n"
        "    Points Possible,,,,,10\n"
        '"Lovelace, Ada",101,S1,ada,A,\n"Student, Test",999,,x,A,\n',
        encoding="utf-8",
    )
    assert roster.read(canvas) == [roster.Person("ada", "Lovelace", "Ada", "", "101")]
    moodle = tmp_path / "moodle.csv"
    moodle.write_text("First name;Surname;ID number;Email address\nAda;Lovelace;;ada@example.org\n", encoding="utf-8")
    assert roster.read(moodle) == [roster.Person("ada@example.org", "Lovelace", "Ada", "ada@example.org", "")]


def test_rows_of_canvas_that_are_no_people(tmp_path: Path) -> None:
    path = tmp_path / "canvas.csv"
    path.write_text(
        "LastName,FirstName,ID,SIS User ID,SIS Login ID,Integration ID,Section,quiz (77)\n"
        ",,,,,,,Manual Posting\n    Points Possible,,,,,,,10.00\n"
        "Lovelace,Ada,101,S1,ada,,A,\nStudent,Test,999,,f00,,A,\n",
        encoding="utf-8",
    )
    assert roster.read(path) == [roster.Person("ada", "Lovelace", "Ada", "", "101")]


def graded(course: Path, quiz: Template) -> tuple[list[marks.Mark], list[roster.Person]]:
    hand_in(course, "ada")
    hand_in(course, "bob", submission(one="wrong", essay=next(c.source for c in quiz.cells if "essay" in c.cell_id)))
    hand_in(course, "zoë", b"")
    run.grade(Classroom.open(course), quiz, FakeGrader.of(quiz))
    with Database(Classroom.open(course).db_url) as database:
        with database.reading() as connection:
            people = roster.everybody(connection)
        return marks.read(Classroom.open(course), database, quiz), people


CANVAS = (
    "Student,ID,SIS User ID,SIS Login ID,Section,Quiz 0 (76),quiz (77),Final Score\n"
    "    Points Possible,,,,,5,10,(read only)\n"
    '"Lovelace, Ada",101,S1,ada@x,A,3,,\n"O\'Brien, Bob",102,S2,bob@x,A,4,1,\n"Müller, Zoë",105,S5,zoe@x,A,5,9,\n'
    '"Young, Cy",103,S3,cy@x,A,,,\n"Student, Test",9,,t,A,,,\n'
)


def test_canvas_gets_its_own_file_back_with_one_column(course: Path, quiz: Template, tmp_path: Path) -> None:
    found, people = graded(course, quiz)
    path = tmp_path / "gradebook.csv"
    path.write_text(CANVAS, encoding="utf-8")
    export = exports.canvas(found, people, path, QUIZ, partial=False)
    rows = list(csv.reader(export.text.splitlines()))
    assert rows[0] == ["Student", "ID", "SIS User ID", "SIS Login ID", "Section", "quiz (77)"]
    assert rows[1] == ["    Points Possible", "", "", "", "", "10"]
    # ada's essay waits for a person, zoë's file could not be read: no zero, and no older score either.
    assert {row[1]: row[-1] for row in rows[2:]} == {"101": "", "102": "2", "105": "", "103": ""}
    assert export.written == ("bob",)
    assert export.left_out == (("ada", "1 part(s) wait for a person"), ("zoë", "rejected"))
    partial = exports.canvas(found, people, path, "quiz (77)", partial=True)
    assert set(partial.written) == {"ada", "bob"}
    with pytest.raises(ValueError, match="column must name one column .* which fits 0"):
        exports.canvas(found, people, path, "other", partial=False)
    path.write_text(CANVAS.replace(",5,10,", ",5,100,"), encoding="utf-8")
    with pytest.raises(ValueError, match="must count 10 points for this lab, got 100"):
        exports.canvas(found, people, path, QUIZ, partial=False)


def test_canvas_with_two_names_semicolons_and_marks_that_are_not_ours(
    course: Path, quiz: Template, tmp_path: Path
) -> None:
    found, people = graded(course, quiz)
    path = tmp_path / "gradebook.csv"
    header = "LastName;FirstName;ID;SIS User ID;SIS Login ID;Integration ID;Root Account;Section;Notes;quiz (77)"
    rows = [";;;;;;;;;Manual Posting", "    Points Possible;;;;;;;;;10,00"]
    rows += ["Lovelace;Ada;101;S1;ada@x;I1;x.org;A;;EX", "O'Brien;Bob;102;S2;bob@x;I2;x.org;A and B;;1,50"]
    path.write_text("\ufeff" + "\n".join([header, *rows, ""]), encoding="utf-8")
    export = exports.canvas(found, people, path, QUIZ, partial=True)
    assert list(csv.reader(export.text.splitlines())) == [
        [*header.split(";")[:8], "quiz (77)"],
        ["    Points Possible", *[""] * 7, "10,00"],
        ["O'Brien", "Bob", "102", "S2", "bob@x", "I2", "x.org", "A and B", "2"],
    ]
    assert export.written == ("bob",)
    assert ("ada", "Canvas has EX there") in export.left_out
    path.write_text(path.read_text(encoding="utf-8").replace(";EX", ";N/A"), encoding="utf-8")
    assert ("ada", "Canvas has N/A there") in exports.canvas(found, people, path, QUIZ, partial=True).left_out


def test_moodle_gets_back_what_others_wrote(course: Path, quiz: Template, tmp_path: Path) -> None:
    """A comment of several lines stays as it is, and a grade that Moodle locked."""
    found, people = graded(course, quiz)
    path = tmp_path / "worksheet.csv"
    comment = '"Well done.\n\n  Look at ""t2""."'
    path.write_text(
        SHEET.format(more="") + f"Participant 5001,Ada Lovelace,ada@example.org,,3.00,10.00,No,-,-,\n"
        f'Participant 5002,Bob O\'Brien,,,,10.00,Yes,-,"Friday, 9 October 2026, 5:30 PM",{comment}\n',
        encoding="utf-8",
    )
    export = exports.moodle(found, people, path, {}, partial=True)
    rows = list(csv.DictReader(io.StringIO(export.text)))
    assert [row["Grade"] for row in rows] == ["3.00", "2"]
    assert rows[1]["Feedback comments"] == 'Well done.\n\n  Look at "t2".'
    assert rows[1]["Last modified (grade)"] == "Friday, 9 October 2026, 5:30 PM"
    assert ("ada", "Moodle says that the grade cannot be changed") in export.left_out
    path.write_text(path.read_text(encoding="utf-8").replace("10.00,Yes", "100.00,Yes"), encoding="utf-8")
    with pytest.raises(ValueError, match="must count 10 points for this lab, got 100"):
        exports.moodle(found, people, path, {}, partial=True)


def test_moodle_gets_its_worksheet_back(course: Path, quiz: Template, tmp_path: Path) -> None:
    found, people = graded(course, quiz)
    path = tmp_path / "worksheet.csv"
    header = (
        "Identifier,Full name,Email address,Status,Grade,Maximum Grade,Last modified (submission),Feedback comments"
    )
    path.write_text(
        f"{header}\nParticipant 5001,Ada Lovelace,ada@example.org,Submitted,7,10.00,-,\n"
        "Participant 5002,Bob O'Brien,,Submitted,,10.00,-,-\nParticipant 5009,Nobody,n@x,,3,10.00,-,keep\n",
        encoding="utf-8",
    )
    export = exports.moodle(found, people, path, {"5002": "bob"}, partial=False)
    rows = {row["Identifier"]: row for row in csv.DictReader(export.text.splitlines())}
    assert export.text.splitlines()[0].replace('"', "") == header
    assert [rows[f"Participant {n}"]["Grade"] for n in (5001, 5002, 5009)] == ["", "2", "3"]
    assert rows["Participant 5009"]["Feedback comments"] == "keep"
    assert ("zoë", "not in the platform's file") in export.left_out


def test_a_table_holds_no_formulas(quiz: Template) -> None:
    text = marks.as_csv([marks.Mark("=cmd|' /C calc'!A0", "rejected", reason="@SUM(1)")])
    assert "\n'=cmd" in text
    assert "'@SUM(1)" in text
