"""The grading round on a small class, in real nbgrader: marks, feedback, and nothing hidden in it."""

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
        cwd=ROOT, capture_output=True, text=True, timeout=180, check=False,
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
    result = lantern("grade", "--course", folder, "--assignment", "week1", "--source", source)
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
        give_up = time.monotonic() + 180
        while not (folder / "done.json").exists():
            assert time.monotonic() < give_up, "the worker that grades the class did not finish"
            time.sleep(0.2)
    else:
        graded_class(folder)
    return folder, SimpleNamespace(**json.loads((folder / "done.json").read_text(encoding="utf-8")))


def marks(course):
    with (course[0] / "marks-week1.csv").open(encoding="utf-8", newline="") as file:
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
    assert (row["score"], row["max_score"], row["status"]) == ("90", "100", "needs hand grading")


def test_the_untouched_release_gets_zero_and_needs_no_hand(course):
    row = marks(course)["untouched"]
    assert points(row, **dict.fromkeys(FULL, 0))
    assert (row["score"], row["status"]) == ("0", "graded")
    assert "Task 4: usable_kv_bytes is not written yet" in page(course, "untouched")


@pytest.mark.parametrize(("student", "lost"), [("ada heads", {"t4": 3}), ("bob [2]", {"t1": 2})])
def test_a_misconception_loses_its_task_and_the_feedback_names_it(course, student, lost):
    # Some points stay: the bad input of task 4 is still refused, the visible test of task 1 still passes.
    assert points(marks(course)[student], **lost)
    assert WRONG[student].says in page(course, student)


def test_one_that_fails_stops_no_other_and_says_why(course):
    rows, result = marks(course), course[1]
    assert result.status == 1
    assert "5 graded, 2 failed." in result.stdout
    for student, why in [("broken", "NotJSONError"), ("dying", "DeadKernelError")]:
        assert rows[student]["status"] == "failed"
        assert rows[student]["score"] == ""  # never a zero that nobody gave
        assert why in rows[student]["reason"]
        assert re.search(rf"^\[\d/7\] {student}: FAILED: {why}", result.stdout, re.MULTILINE)
    assert rows["late"]["status"] == "not submitted"
    assert len(rows) == 8


def test_nothing_of_nbgrader_spills_on_the_screen(course):
    assert course[1].stderr == ""


def test_the_marks_are_those_of_the_gradebook(course):
    # nbgrader's own exporter is the second opinion.
    out = course[0] / "nbgrader.csv"
    subprocess.run(
        [sys.executable, "-m", "nbgrader", "export", "--to", str(out),
         "--db", f"sqlite:///{course[0] / 'gradebook.db'}"],
        cwd=course[0], capture_output=True, timeout=60, check=True,
    )  # fmt: skip
    with out.open(encoding="utf-8", newline="") as file:
        theirs = {row["student_id"]: float(row["score"]) for row in csv.DictReader(file)}
    ours = {name: float(row["score"]) for name, row in marks(course).items() if row["score"]}
    assert ours == {name: theirs[name] for name in ours}
    assert len(ours) == 5


def test_no_hidden_test_is_in_any_feedback(course):
    feedback = course[0] / "feedback"
    hidden = leaks.secrets(regions.HIDDEN)
    assert {path.suffix for path in feedback.rglob("*") if path.is_file()} == {".html"}
    assert len(list(feedback.rglob("*.html"))) == 5
    assert leaks.find(feedback, hidden | {SENTINEL}) == []
    # The control: what nbgrader keeps for the instructor has all of it, in the same pages' sources.
    own = hidden & regions.secret_lines(mutants.solution("week1").cells, regions.HIDDEN) | {SENTINEL}
    assert len(own) > 100
    assert {text for _, text in leaks.find(course[0] / "autograded", own)} == own


def test_a_release_of_that_source_has_no_sentinel(course):
    assert leaks.find(course[0] / "release", [SENTINEL]) == []


def test_what_was_taken_out_is_said_so(course):
    assert "removed: this output showed hidden tests" in page(course, "prying")
    # The stumble keeps its message and loses its frames.
    assert "OSError: odd" in page(course, "prying")
    assert points(marks(course)["prying"], t1=0)


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
    subprocess.run([sys.executable, "-c", by_hand], check=True, timeout=60)
    result = lantern("feedback", *flags)
    assert result.returncode == 0, result.stdout + result.stderr
    row = marks((again,))["reference"]
    assert (row["score"], row["t8"], row["status"]) == ("100", "10", "graded")
    assert "(Score: 100.0 / 100.0)" in page((again,), "reference")
    assert leaks.find(again / "feedback", [SENTINEL]) == []

    # Then one submission is mended and the class, now smaller, is graded once more.
    handed_in = again / "submitted"
    for student in ("ada heads", "bob [2]", "prying", "dying", "untouched"):
        shutil.rmtree(handed_in / student)
    shutil.copy(handed_in / "reference" / "week1" / "week1.ipynb", handed_in / "broken" / "week1" / "week1.ipynb")
    result = lantern("grade", *flags)
    assert result.returncode == 0, result.stdout + result.stderr
    rows = marks((again,))
    assert rows["broken"]["score"] == "90"
    # A grade given by hand is kept, and marked for another look.
    assert (rows["reference"]["score"], rows["reference"]["status"]) == ("100", "needs hand grading")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("grade", "--course", "nowhere", "--assignment", "week1"), "nowhere is not a folder"),
        (("grade", "--course", ".", "--assignment", "week99"), "assignment must be a folder"),
    ],
)
def test_wrong_arguments_are_refused_in_a_line(arguments, words):
    result = lantern(*arguments)
    assert result.returncode == 1
    assert words in result.stderr
    assert "Traceback" not in result.stderr
