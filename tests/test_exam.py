"""An assignment is read from its source alone, and a faulty one is refused before anybody is graded with it."""

import subprocess
import sys

import nbformat
import pytest

from lantern_grading import exam as exams
from lantern_grading.checker import trial
from lantern_grading.checker.program import modules, modules_of_tests, program
from lantern_grading.checker.reference import require_sound
from lantern_grading.exam import Exam, ExamCell, ExamError, Role
from lantern_grading.outcome import Cell, Paper, State, Trust
from lantern_grading.sandbox import Limits, choose

WEEKS = ["week1", "week2", "week3", "week4", "week5"]


@pytest.mark.parametrize("week", WEEKS)
def test_a_lab_is_read_as_it_is_written(week):
    exam = exams.read(week)
    source = nbformat.read(exams.SOLUTIONS / week / f"{week}.ipynb", as_version=4)
    marks = {cell.id: cell.metadata.get("nbgrader", {}) for cell in source.cells}
    graded = [cell_id for cell_id, mark in marks.items() if mark.get("grade") and not mark["solution"]]
    assert [test.cell_id for test in exam.tests] == graded
    assert exam.max_score == sum(marks[cell_id]["points"] for cell_id in graded)
    assert [cell.cell_id for cell in exam.given][:2] == [f"w{week[-1]}-parameters", f"w{week[-1]}-setup"]
    assert len(exam.cells) == len(source.cells)
    # Every test of the labs calls functions with data, so every one is isolated.
    assert {test.trust for test in exam.tests} == {Trust.ISOLATED}
    assert {test.hidden for test in exam.tests if test.cell_id.endswith("-visible")} == {False}
    assert {test.hidden for test in exam.tests if not test.cell_id.endswith("-visible")} == {True}


def test_files_beside_the_notebook_belong_to_the_exam_and_the_notebook_does_not():
    names = [name for name, _ in exams.read("week1").files]
    assert "configs/llama-3.1-8b.json" in names
    assert not [name for name in names if name.endswith(".ipynb")]


def test_the_reference_paper_holds_no_marks_of_regions():
    paper = exams.read("week1").reference()
    assert not [cell for cell in paper.cells if "SOLUTION" in cell.source or "HIDDEN" in cell.source]
    assert [cell.cell_id for cell in paper.cells] == [cell.cell_id for cell in exams.read("week1").answers]


def notebook(tmp_path, **changes):
    """Week 1 with some of its cells changed: a function of the cell, by id."""
    source = nbformat.read(exams.SOLUTIONS / "week1" / "week1.ipynb", as_version=4)
    for cell in source.cells:
        changes.get(cell.id.replace("-", "_"), lambda cell: None)(cell)
    (tmp_path / "week1").mkdir()
    nbformat.write(source, tmp_path / "week1" / "week1.ipynb")
    return tmp_path


def mark(**values):
    return lambda cell: cell.metadata.nbgrader.update(values)


def tag(cell):
    cell.metadata.tags = ["lantern-in-kernel"]


def test_a_test_is_in_kernel_by_a_tag_of_the_source(tmp_path):
    exam = exams.read("week1", notebook(tmp_path, w1_t1_hidden=tag))
    assert [test.cell_id for test in exam.tests if test.trust is Trust.IN_KERNEL] == ["w1-t1-hidden"]


def as_magic(cell):
    cell.source = "%matplotlib inline"


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        (
            {"w1_t1_hidden": mark(grade_id="w1-t1-visible")},
            "cell_id must be unique in week1, got 'w1-t1-visible' twice",
        ),
        ({"w1_t1_hidden": mark(points=-1)}, "points of w1-t1-hidden must be a number of 0 or more, got -1"),
        ({"w1_t1_hidden": mark(points=float("nan"))}, "points of w1-t1-hidden"),
        ({"w1_t1_hidden": as_magic}, "w1-t1-hidden must be plain Python"),
        ({"w1_setup": tag}, "lantern-in-kernel must stand at a test cell, got it at 'w1-setup'"),
    ],
)
def test_a_faulty_assignment_is_refused(tmp_path, changes, words):
    with pytest.raises(ExamError) as error:
        exams.read("week1", notebook(tmp_path, **changes))
    assert words in str(error.value)


def test_an_assignment_that_is_not_there_is_refused():
    with pytest.raises(ExamError, match="got 'week99'"):
        exams.read("week99")


def test_an_exam_without_tests_is_refused():
    with pytest.raises(ExamError, match="must have a test cell"):
        Exam("empty", (ExamCell("a", Role.GIVEN, "code", ""),))


# What the sandbox runs


def sources(made):
    return [(step.index, step.source.split("\n")[0]) for step in made.steps]


def test_given_cells_run_before_the_answers_that_follow_them():
    cells = (
        ExamCell("g1", Role.GIVEN, "code", "one = 1"),
        ExamCell("a1", Role.ANSWER, "code", "x = ..."),
        ExamCell(
            "t1", Role.TEST, "code", "import math\nassert x\n### BEGIN HIDDEN TESTS\nimport os\n### END HIDDEN TESTS"
        ),
        ExamCell("g2", Role.GIVEN, "code", "two = 2"),
        ExamCell("a2", Role.ANSWER, "code", "y = ..."),
        ExamCell("", Role.FREE, "code", "draw()"),
    )
    exam = Exam("order", cells)
    handed_in = (
        Cell("", "code", "mine"), Cell("g1", "code", "one = 100"), Cell("a1", "code", "x"), Cell("t1", "code", "x = 5"),
        Cell("", "markdown", "words"), Cell("a2", "code", "y"), Cell("", "code", "draw()"), Cell("", "code", "draw(2)"),
    )  # fmt: skip
    # The instructor's own source of given cells, of tests the public imports only, free cells only if changed.
    assert sources(program(exam, Paper(handed_in))) == [
        (-1, "one = 1"), (0, "mine"), (2, "x"), (-1, "import math"), (-1, "two = 2"), (5, "y"), (7, "draw(2)"),
    ]  # fmt: skip
    assert program(exam, Paper(handed_in)).moments == {"t1": 4}
    # Nothing but answers, the other way round.
    few = Paper((Cell("a2", "code", "y"), Cell("a1", "code", "x")))
    assert sources(program(exam, few)) == [
        (-1, "one = 1"), (-1, "import math"), (-1, "two = 2"), (0, "y"), (1, "x"),
    ]  # fmt: skip
    # The test belongs to the first answer, which comes last.
    assert program(exam, few).moments == {"t1": 5}


@pytest.mark.parametrize(
    ("order", "moments"),
    [
        ("a1 t1 u1 a2 t2", (1, 1, 2)),  # as it was given out
        ("a1 x t1 u1 y a2 t2 z", (2, 2, 4)),  # the student's own cells count where they stand
        ("a1 x a2 z", (2, 2, 4)),  # tests deleted: before the next answer, and at the end
        ("a2 a1 t1 u1 t2 z", (2, 2, 2)),  # never before the answers that precede it in the exam
        ("t1 u1 t2 a1 a2 z", (1, 1, 2)),
        ("a1 u1 x a2 t1 t2", (3, 1, 3)),
        ("x y z", (3, 3, 3)),  # no answer at all
    ],
)
def test_a_test_comes_where_the_paper_has_it(order, moments):
    roles = {"a": Role.ANSWER, "t": Role.TEST, "u": Role.TEST}
    cells = tuple(ExamCell(name, roles[name[0]], "code", f"{name} = 1") for name in ("a1", "t1", "u1", "a2", "t2"))
    known = {cell.cell_id for cell in cells}
    paper = Paper(tuple(Cell(name if name in known else "", "code", name) for name in order.split()))
    assert tuple(program(Exam("order", cells), paper).moments.values()) == moments


def test_modules_of_the_exam_are_loaded_ahead_and_no_others():
    found = modules(trial.exam())
    assert {"numpy", "math", "lantern_lib.checks"} <= set(found)
    assert not [name for name in found if name.startswith(("matplotlib", "numpy."))]
    assert "lantern_lib.labs.week1" in modules(exams.read("week1"))


def test_what_only_tests_use_is_loaded_by_the_grader_alone():
    hidden = "### BEGIN HIDDEN TESTS\nimport heapq\nassert double(3) == 6\n### END HIDDEN TESTS"
    exam = trial.exam(tests={"s-t1-hidden": hidden, "s-t1-numpy": trial.TESTS["s-t1-numpy"]})
    assert {"heapq", "numpy.testing"} & set(modules(exam)) == set()
    assert {"heapq", "numpy.testing", *modules(exam)} <= set(modules_of_tests(exam))
    assert "numpy.array" not in modules_of_tests(exam)  # a function


def test_a_paper_is_graded_without_the_programs_around_it():
    code = "import lantern_grading.sandboxed, lantern_grading.workers, sys; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    tops = {name.split(".")[0] for name in loaded}
    assert "lantern_lib" in tops
    assert tops & {"nbgrader", "nbconvert", "nbformat", "jupyter_core", "traitlets", "sqlalchemy", "IPython"} == set()


@pytest.mark.grading
def test_the_reference_must_pass_its_own_tests():
    backend, limits = choose(), Limits(cell_seconds=20.0)
    assert require_sound(trial.exam(), backend=backend, limits=limits).state is State.GRADED
    for tests, words in [
        ({"s-t1": "assert double(1) == 3"}, "s-t1 of small must give the reference its 2 points"),
        ({"s-t1": "1.5"}, "it gave 1.5"),
        ({"s-t1": "'2'"}, "must end with a number from 0 to 2"),
        ({"s-t1": "count = 1", "s-t2": "assert count"}, "name 'count' is not defined"),
        ({"s-t1": "assert double(open('/dev/null'))"}, "cannot be passed to the sandbox"),
    ]:
        with pytest.raises(ExamError) as error:
            require_sound(trial.exam(tests=tests), backend=backend, limits=limits)
        assert words in str(error.value)
