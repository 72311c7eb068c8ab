"""The grading round on a small class with the real lab and the real sandbox: marks, feedback, and nothing hidden."""

import csv
import json
import os
import re
import shutil
import subprocess
import sys
import time
from html import unescape
from pathlib import Path
from types import SimpleNamespace

import nbformat
import pytest

from lantern_grading import leaks, mutants, regions

pytestmark = pytest.mark.grading

ROOT = Path(__file__).resolve().parents[1]
WEEK1 = {mutant.name: mutant for mutant in mutants.load(ROOT / "tests" / "mutants" / "week1.toml").mutants}
WRONG = {
    "ada heads": WEEK1["query heads for key-value heads in a conversation"],
    "bob [2]": WEEK1["tied embeddings counted twice"],
}
SENTINEL = "lantern-sentinel-that-no-student-may-see"
FULL = {"t1": 12, "t2": 13, "t3": 8, "t4": 17, "t5": 12, "t6": 18, "t7": 10}

# Prints what the kernel remembers of the test cells, raises with it, and leaves it in a file.
PRYING = """
from pathlib import Path
everything = "\\n".join(In)
Path("stolen.txt").write_text(everything)
print(everything)
print(repr(everything))
raise RuntimeError(everything)
"""
# Makes a hidden test stumble in its own lines, so that Python itself prints a traceback of them.
STUMBLING = """
class Odd(dict):
    def __getitem__(self, key):
        raise OSError("odd")
def num_parameters(model):
    return Odd(embedding=1, attention=1, feed_forward=1, norms=1, head=1, total=1)
"""


def lantern(*arguments):
    return subprocess.run(
        [sys.executable, "-m", "lantern_grading", *map(str, arguments)],
        cwd=ROOT, capture_output=True, text=True, timeout=3000, check=False,
    )  # fmt: skip


def replaced(sources):
    notebook = mutants.submission("week1")
    for cell in notebook.cells:
        cell.source = sources.get(cell.id, cell.source)
    return notebook


def submissions():
    yield "reference", mutants.submission("week1")
    yield "untouched", mutants.released("week1")
    for student, mutant in WRONG.items():
        yield student, mutants.submission("week1", mutant)
    yield "prying", replaced({"w1-t1-parameters": STUMBLING, "w1-explore": PRYING})
    yield "dying", replaced({"w1-t3-cache": "import os\nos._exit(3)"})


def source_with_sentinel(folder):
    """Copy the solutions with a sentinel in every hidden region: as a comment and in a string."""
    shutil.copytree(ROOT / "solutions", folder)
    path = folder / "week1" / "week1.ipynb"
    notebook = nbformat.read(path, as_version=4)
    marker = "### BEGIN HIDDEN TESTS"
    for cell in notebook.cells:
        cell.source = cell.source.replace(marker, f'{marker}\n# {SENTINEL}\nsentinel = "{SENTINEL}"')
    nbformat.write(notebook, path)
    return folder


def graded_class(folder):
    """Hand in and grade; the last file written is what the command printed."""
    for student, notebook in submissions():
        handed_in = folder / "submitted" / student / "week1"
        handed_in.mkdir(parents=True)
        nbformat.write(notebook, handed_in / "week1.ipynb")
    broken = folder / "submitted" / "broken" / "week1"
    broken.mkdir(parents=True)
    (broken / "week1.ipynb").write_text("<<<<<<< mine", encoding="utf-8")
    (folder / "submitted" / "late").mkdir()
    source = source_with_sentinel(folder / "instructor")
    result = lantern("grade", "--quiet", "--course", folder, "--assignment", "week1", "--source", source)
    done = {"status": result.returncode, "stdout": result.stdout, "stderr": result.stderr}
    (folder / "part.json").write_text(json.dumps(done), encoding="utf-8")
    (folder / "part.json").rename(folder / "done.json")


@pytest.fixture(scope="session")
def course(tmp_path_factory):
    """A class of eight, graded once, also where several workers run these tests."""
    base = tmp_path_factory.getbasetemp()
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "graded-class"
    try:
        folder.mkdir()
    except FileExistsError:
        give_up = time.monotonic() + 600
        while not (folder / "done.json").exists():
            assert time.monotonic() < give_up, "the worker that grades the class did not finish"
            time.sleep(0.2)
    else:
        graded_class(folder)
    return folder, SimpleNamespace(**json.loads((folder / "done.json").read_text(encoding="utf-8")))


def marks(course):
    with (course[0] / "reports" / "marks-week1.csv").open(encoding="utf-8", newline="") as file:
        return {row["student"]: row for row in csv.DictReader(file)}


def page(course, student):
    """A feedback page as its reader sees it, white space evened out."""
    text = (course[0] / "feedback" / student / "week1" / "week1.html").read_text(encoding="utf-8")
    return re.sub(r"\s+", " ", unescape(re.sub(r"<[^>]+>", "", text)))


def points(row, **lost):
    return {task: float(row[task]) for task in FULL} == {**FULL, **lost}


def test_the_reference_gets_full_marks_but_for_the_written_answer(course):
    row = marks(course)["reference"]
    assert points(row)
    assert (row["score"], row["max_score"], row["status"], row["waiting"]) == ("90", "100", "graded", "1")


def test_the_untouched_release_gets_zero_and_needs_no_hand(course):
    row = marks(course)["untouched"]
    assert points(row, **dict.fromkeys(FULL, 0))
    assert (row["score"], row["status"], row["waiting"]) == ("0", "graded", "")
    assert "Task 4: usable_kv_bytes is not written yet" in page(course, "untouched")


@pytest.mark.parametrize(("student", "lost"), [("ada heads", {"t4": 3}), ("bob [2]", {"t1": 2})])
def test_a_misconception_loses_its_task_and_the_feedback_names_it(course, student, lost):
    # Some points stay: the bad input of task 4 is still refused, the visible test of task 1 still passes.
    assert points(marks(course)[student], **lost)
    assert WRONG[student].says in page(course, student)


def test_one_that_fails_stops_no_other_and_says_why(course):
    rows, result = marks(course), course[1]
    assert result.status == 1
    assert rows["broken"]["status"] == "rejected"
    assert rows["broken"]["score"] == ""  # never a zero that nobody gave
    assert re.search(r"^  broken: rejected\. week1\.ipynb: The file is", result.stdout, re.MULTILINE)
    assert rows["late"]["status"] == "not submitted"
    assert len(rows) == 8


def test_a_process_that_dies_costs_its_own_task(course):
    row = marks(course)["dying"]
    assert row["status"] in ("graded", "graded with failures")
    assert points(row, t3=0)


def test_nothing_of_nbgrader_spills_on_the_screen(course):
    assert course[1].stderr == ""


def test_the_marks_are_those_of_the_gradebook(course):
    # nbgrader's own exporter is the second opinion.
    out = course[0] / "nbgrader.csv"
    subprocess.run(
        [sys.executable, "-m", "nbgrader", "export", "--to", str(out),
         "--db", f"sqlite:///{course[0] / 'gradebook.db'}"],
        cwd=course[0], capture_output=True, timeout=300, check=True,
    )  # fmt: skip
    with out.open(encoding="utf-8", newline="") as file:
        theirs = {row["student_id"]: float(row["score"]) for row in csv.DictReader(file)}
    ours = {name: float(row["score"]) for name, row in marks(course).items() if row["score"]}
    assert ours == {name: theirs[name] for name in ours}
    assert len(ours) == 6


def test_no_hidden_test_is_in_what_anybody_is_shown(course):
    hidden = leaks.secrets(regions.HIDDEN)
    for top in ("feedback", "autograded", "reports"):
        assert leaks.find(course[0] / top, hidden | {SENTINEL}) == []
    assert {path.suffix for path in (course[0] / "feedback").rglob("*") if path.is_file()} == {".html"}
    assert len(list((course[0] / "feedback").rglob("*.html"))) == 7
    # The control: the gradebook, which is the instructor's alone, keeps the hidden tests as nbgrader's does.
    own = hidden & regions.secret_lines(mutants.solution("week1").cells, regions.HIDDEN)
    kept = (course[0] / "gradebook.db").read_bytes()
    assert len(own) > 100
    assert SENTINEL.encode() in kept
    assert sum(text.encode() in kept for text in own) > 50


def test_a_submission_that_pries_learns_nothing_and_leaves_nothing(course):
    # Its own task is lost; what it printed of the kernel's memory is its own cells.
    assert points(marks(course)["prying"], t1=0)
    assert list(course[0].rglob("stolen.txt")) == []


def test_hand_grading_completes_the_marks_and_a_second_round_keeps_them(course, tmp_path):
    again = tmp_path / "class"
    shutil.copytree(course[0], again)
    flags = ("--course", again, "--assignment", "week1", "--source", again / "instructor")
    by_hand = (
        "from nbgrader.api import Gradebook\n"
        f"with Gradebook('sqlite:///{again / 'gradebook.db'}') as book:\n"
        "    grade = book.find_grade('w1-t8-written', 'week1', 'week1', 'reference')\n"
        "    grade.manual_score, grade.needs_manual_grade = 10, False\n"
        "    book.db.commit()\n"
    )
    subprocess.run([sys.executable, "-c", by_hand], check=True, timeout=300)
    result = lantern("feedback", *flags)
    assert result.returncode == 0, result.stdout + result.stderr
    row = marks((again,))["reference"]
    assert (row["score"], row["t8"], row["waiting"]) == ("100", "10", "")
    assert "(Score: 100 / 100)" in page((again,), "reference")
    assert leaks.find(again / "feedback", [SENTINEL]) == []

    # Then one submission is mended; only that one is graded, and the points given by hand stay.
    handed_in = again / "submitted"
    shutil.copy(handed_in / "reference" / "week1" / "week1.ipynb", handed_in / "broken" / "week1" / "week1.ipynb")
    result = lantern("grade", "--quiet", "-j", "1", *flags)
    assert result.returncode == 0, result.stdout + result.stderr
    assert "1 looked at now" in result.stdout
    rows = marks((again,))
    assert rows["broken"]["score"] == "90"
    assert (rows["reference"]["score"], rows["reference"]["waiting"]) == ("100", "")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("grade", "--course", "nowhere", "--assignment", "week1"), "nowhere is not a folder"),
        (("grade", "--course", ".", "--assignment", "week99"), "assignment must be a folder"),
    ],
)
def test_wrong_arguments_are_refused_in_a_line(arguments, words):
    result = lantern(*arguments)
    assert result.returncode == 2
    assert words in result.stderr
    assert "Traceback" not in result.stderr
