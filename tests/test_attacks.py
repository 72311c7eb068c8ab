"""A class of attackers is graded for real: from the files handed in, by sandbox and checker, to the pages shown.

One run grades them all beside one honest student; the tests then look at every record of it.
"""

from __future__ import annotations

import csv
import hashlib
import html
import json
import re
import socket
import sqlite3
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent / "attacks"))
from trap_exam import HIDDEN, POINTS, SECRETS, TRAP, honest, ids_of, write_source
from trap_papers import ATTACKS, CANARY

from lantern_grading import dashboard, ledger, marks, run, sandboxed
from lantern_grading.classroom import Classroom
from lantern_grading.database import Database
from lantern_grading.outcome import State
from lantern_grading.sandbox import Limits
from lantern_grading.sandboxed import SandboxGrader
from lantern_grading.template import load

# One process grades the class, and not each of them.
pytestmark = [pytest.mark.grading, pytest.mark.xdist_group("attacks")]
LIMITS = Limits(cell_seconds=1.5, total_seconds=20.0, cpu_seconds=8)
STUDENTS = {name: f"s{number:02}" for number, name in enumerate(ATTACKS, 1)}
HONEST = "s00"


@dataclass(frozen=True)
class Graded:
    """What the run left."""

    folder: Path
    source: Path
    attempts: dict[str, ledger.Attempt]
    marks: list[marks.Mark]
    table: str
    dashboard: str
    calls: list[bytes]
    before: dict[str, str]
    after: dict[str, str]

    def pages(self) -> dict[str, str]:
        """Return every text that a student or an instructor is shown, by its path."""
        tops = ("feedback", "autograded", "reports")
        found = [path for top in tops for path in (self.folder / top).rglob("*") if path.is_file()]
        shown = {path.relative_to(self.folder).as_posix(): path.read_text(encoding="utf-8") for path in found}
        return shown | {"table": self.table, "dashboard": self.dashboard, "marks.csv": marks.as_csv(self.marks)}


def state_of(*folders: Path) -> dict[str, str]:
    """Return a hash of each file: of the sources, of what was handed in, of the library."""
    return {
        str(path): hashlib.sha256(path.read_bytes()).hexdigest()
        for folder in folders
        for path in sorted(folder.rglob("*"))
        if path.is_file() and "__pycache__" not in path.parts
    }


@pytest.fixture(scope="module")
def graded(tmp_path_factory: pytest.TempPathFactory) -> Graded:
    top = tmp_path_factory.mktemp("attacks")
    source, course = write_source(top / "source"), top / "class"
    listener = socket.create_server(("127.0.0.1", 0))
    listener.setblocking(False)
    port = listener.getsockname()[1]

    def hand_in(student: str, content: bytes, name: str = f"{TRAP}.ipynb", more: Any = ()) -> None:
        for path, data in {**dict(more), name: content}.items():
            file = course / "submitted" / student / TRAP / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(data.replace(b"PLACE", str(course).encode()).replace(b"PORT", str(port).encode()))

    hand_in(HONEST, json.dumps(honest()).encode())
    for name, attack in ATTACKS.items():
        hand_in(STUDENTS[name], attack.content(), attack.name, attack.files)
    library = Path(__file__).resolve().parent.parent / "lantern_lib"
    before = state_of(source, course / "submitted", library)
    classroom, template = Classroom.open(course), load(TRAP, source)
    try:
        report = run.grade(classroom, template, SandboxGrader.of(TRAP, source, limits=LIMITS), count=2)
    finally:
        sandboxed.close()
    with Database(classroom.db_url) as database:
        found = marks.read(classroom, database, template)
        with database.reading() as connection:
            attempts = ledger.newest(connection, TRAP)
    calls = []
    try:
        while True:
            calls.append(listener.accept()[0].recv(100))
    except BlockingIOError:
        listener.close()
    return Graded(
        course, source, attempts, found, report.table(), dashboard.page(template, found, attempts), calls, before,
        state_of(source, course / "submitted", library),
    )  # fmt: skip


def scores(attempt: ledger.Attempt) -> dict[str, float]:
    return {test.grade_id: test.score for test in attempt.tests}


def test_there_are_attacks_of_every_kind() -> None:
    assert len(ATTACKS) >= 60
    assert len(
        {attack.content() + repr(attack.files).encode() + attack.name.encode() for attack in ATTACKS.values()}
    ) == len(ATTACKS)


def test_the_honest_student_among_them_gets_everything(graded: Graded) -> None:
    attempt = graded.attempts[HONEST]
    assert attempt.state is State.GRADED
    assert scores(attempt) == {name: points for name, points in POINTS.items() if name != "trap-essay"}


@pytest.mark.parametrize("name", ATTACKS)
def test_an_attack_gains_nothing_and_loses_nothing_else(graded: Graded, name: str) -> None:
    attack, attempt = ATTACKS[name], graded.attempts[STUDENTS[name]]
    if attack.rejected:
        assert attempt.state is State.REJECTED
        assert attempt.tests == ()
        return
    assert attempt.state in (State.GRADED, State.WITH_FAILURES), attempt.reason
    got = scores(attempt)
    assert set(got) == set(POINTS) - {"trap-essay"}
    wrong = {test for task in attack.wrong for test in ids_of(task)}
    assert {test: got[test] for test in wrong if got[test]} == {}
    if not attack.spoils:
        right = set(got) - wrong - ({"trap-t1-visible"} if name == "an answer by import" else set())
        assert {test for test in right if got[test] != POINTS[test]} == set(), attempt.reason
    assert all(test.trust == "isolated" for test in attempt.tests)


def test_an_answer_by_import_is_none(graded: Graded) -> None:
    attempt = graded.attempts[STUDENTS["an answer by import"]]
    assert scores(attempt)["trap-t1-visible"] == 0
    assert "double leans on lantern_lib.labs" in next(
        t.message for t in attempt.tests if t.grade_id == "trap-t1-visible"
    )


def test_the_gradebook_holds_these_scores_and_no_others(graded: Graded) -> None:
    query = """select a.student_id, c.name, g.auto_score, g.manual_score, g.extra_credit from grade g
        join base_cell c on g.cell_id = c.id join submitted_notebook n on g.notebook_id = n.id
        join submitted_assignment a on n.assignment_id = a.id"""
    connection = sqlite3.connect(graded.folder / "gradebook.db")
    rows = connection.execute(query).fetchall()
    most = dict(connection.execute("select b.name, c.max_score from grade_cells c join base_cell b on b.id = c.id"))
    connection.close()
    assert most == POINTS
    assert {student for student, *_ in rows} == {HONEST, *STUDENTS.values()}
    for student, name, auto, manual, extra in rows:
        assert (manual, extra or None) == (None, None), student
        assert auto == scores(graded.attempts[student]).get(name), (student, name)


def test_nothing_hidden_is_shown_to_anybody(graded: Graded) -> None:
    lines = [line.strip() for source in HIDDEN.values() for line in source.split("\n") if len(line) > 16]
    for path, text in graded.pages().items():
        plain = html.unescape(text)
        own = next((a for a in ATTACKS if f"/{STUDENTS[a]}/" in path), "")
        sources = ATTACKS[own].content().decode("utf-8", "replace") if own else ""
        for secret in (*SECRETS, *lines):
            if path.startswith("autograded") and secret in sources:
                continue  # the student's own words
            assert secret not in plain, (path, own, secret)


def test_no_attack_reports_success(graded: Graded) -> None:
    for path, text in graded.pages().items():
        if path.startswith("autograded"):
            cells = json.loads(text)["cells"]
            text = json.dumps([cell.get("outputs", []) for cell in cells])
        assert CANARY not in text, path
    assert CANARY not in json.dumps([[t.message for t in attempt.tests] for attempt in graded.attempts.values()])


def test_nothing_outside_the_sandboxes_has_changed(graded: Graded) -> None:
    assert graded.after == graded.before
    assert graded.calls == []
    for folder in (
        Path("/tmp"),
        Path("/dev/shm"),
        Path("/var/tmp"),
        Path.home(),
        Path.cwd(),
        graded.folder,
        graded.source,
    ):
        assert not [path for path in folder.iterdir() if CANARY in path.name], folder
    assert not list(graded.folder.parent.rglob(f"*{CANARY}*"))
    kept = {path.name for path in graded.folder.iterdir()}
    assert kept <= {"submitted", "autograded", "feedback", "reports", "gradebook.db", ".lantern-grading.lock"}
    # Nothing is passed on but the notebook and the page.
    assert {path.name for path in (graded.folder / "autograded").rglob("*") if path.is_file()} == {f"{TRAP}.ipynb"}
    assert {path.name for path in (graded.folder / "feedback").rglob("*") if path.is_file()} == {f"{TRAP}.html"}


def test_nothing_outlives_grading(graded: Graded) -> None:
    alive = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = path.read_bytes()
        except OSError:
            continue
        if CANARY.encode() in words or b"97531" in words.split(b"\0"):
            alive.append(words)
    assert alive == []
    mine = [int(pid) for path in Path("/proc/self/task").glob("*/children") for pid in path.read_text().split()]
    left = [Path(f"/proc/{pid}/cmdline").read_bytes() for pid in mine]
    assert not [words for words in left if b"bwrap" in words]


def test_pages_hold_nothing_active(graded: Graded) -> None:
    tags = {
        "html", "head", "meta", "title", "style", "body", "h1", "h2", "h3", "p", "small", "ul", "li", "table", "thead",
        "tbody", "tr", "th", "td", "span", "div", "section", "caption", "main", "strong", "svg", "rect", "b",
    }  # fmt: skip
    for path, text in graded.pages().items():
        if not path.endswith(".html") and path != "dashboard":
            continue
        opened = re.findall(r"<\s*([a-zA-Z][\w-]*)((?:\"[^\"]*\"|'[^']*'|[^>\"'])*)>", text)
        assert {tag.lower() for tag, _ in opened} <= tags, path
        for tag, attributes in opened:
            names = set(re.findall(r"([\w-]+)\s*=", re.sub(r"\"[^\"]*\"|'[^']*'", "", attributes)))
            assert not [n for n in names if n.lower().startswith("on") or n in ("src", "href", "action", "srcdoc")], (
                path,
                tag,
            )
        assert "default-src 'none'" in text
        assert (text.count("<style>"), text.count("<meta http-equiv")) == (1, 1)


def test_notebooks_for_the_grader_hold_text_and_pictures_only(graded: Graded) -> None:
    for path in (graded.folder / "autograded").rglob("*.ipynb"):
        notebook = json.loads(path.read_text(encoding="utf-8"))
        assert set(notebook["metadata"]) == {"kernelspec", "language_info"}
        for cell in notebook["cells"]:
            assert set(cell["metadata"]) <= {"nbgrader"}
            assert "attachments" not in cell
            if cell["cell_type"] == "markdown" and cell["id"] != "title":
                assert re.fullmatch(
                    r'<pre style="white-space: pre-wrap">([\w ,.]|&#\d+;)*</pre>', cell["source"], re.ASCII
                )
            for output in cell.get("outputs", []):
                assert output["output_type"] in ("stream", "error", "display_data")
                assert set(output.get("data", {})) <= {"text/plain", "image/png"}
                assert output.get("name", "stdout") in ("stdout", "stderr")
                assert not re.search(
                    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e]", json.dumps(output, ensure_ascii=False)
                )
                assert len(json.dumps(output)) < 300_000


def test_no_picture_is_larger_than_a_screen_can_show(graded: Graded) -> None:
    student = STUDENTS["a picture that claims to be huge"]
    notebook = json.loads((graded.folder / "autograded" / student / TRAP / f"{TRAP}.ipynb").read_text(encoding="utf-8"))
    assert not [
        out for cell in notebook["cells"] for out in cell.get("outputs", []) if "image/png" in out.get("data", {})
    ]


def test_the_table_and_the_marks_are_words(graded: Graded) -> None:
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", graded.table)
    known = {HONEST, *STUDENTS.values()}
    for line in graded.table.splitlines():
        student, colon, _ = line.strip().partition(":")
        assert not colon or student in {TRAP, *known}, line
    for row in csv.reader(marks.as_csv(graded.marks).splitlines()):
        assert not [field for field in row if field[:1] in ("=", "+", "-", "@", "\t", "\r")]


def test_one_submission_costs_no_more_than_its_limits(graded: Graded) -> None:
    slow = {name: graded.attempts[student].seconds for name, student in STUDENTS.items()}
    assert {name: seconds for name, seconds in slow.items() if seconds > LIMITS.total_seconds + 10} == {}
    sizes = {path.parent.parent.name: path.stat().st_size for path in (graded.folder / "autograded").rglob("*.ipynb")}
    assert max(sizes.values()) < 2_000_000
