"""A test cell whose last line is the student's word is refused; one that gives a number of the instructor's is not."""

import ast

import pytest

from lantern_grading import exam as exams
from lantern_grading.checker import trial
from lantern_grading.credit import last_value, students_word
from lantern_grading.exam import ExamError
from lantern_grading.paths import SOLUTIONS

ASKED = ["double", "Pile", "pair"]
GIVEN = ["import numpy as np\nfrom lantern_lib import checks\ncheck = checks.Task(1, globals())\nPOINTS = 2"]
WORD = [
    "double(3)",
    "got = double(3)\ngot",
    "double(3) + 1",
    "check.call('double', 3)",
    "[double(1)][0]",
    "len(double(3))",
    "sum(double(n) for n in (1,2))",
    "Pile().items",
    "pile = Pile()\npile.score()",
    "np.mean(double(3))",
    "float(double(2))",
    "r=[]\nr.append(double(1))\nsum(r)",
    "def run(n):\n    return double(n)\nrun(3)",
    "def same(x):\n    return x\nsame(double(3))",
    "max(double(3), 0)",
    "1 and double(3)",
    "double(3) if True else 0",
    "a, b = pair()\nb",
    "for n in (1,):\n    got = double(n)\ngot",
    "d = {}\nd['a'] = double(3)\nd['a']",
    "(lambda: double(3))()",
    "points = 0\npoints += double(1)\npoints",
    "double",
    "if True:\n    got = double(2)\ngot",
    "(x := double(3))",
    "import statistics\nstatistics.fmean([double(1)])",
    "### BEGIN HIDDEN TESTS\ndouble(3)\n### END HIDDEN TESTS",
    "from math import floor\nfloor(double(3))",
    "next(iter(double(3)))",
    "double(3).real",
    "-double(3)",
    "with open_it() as f:\n    got=double(f)\ngot",
    "vars()['double'](3)",
    "globals().get('double')(3)",
]
NUMBER = [
    "2.5",
    "assert double(3) == 6",
    "check.passed()",
    "check.compare('x', check.call('double', 3), 6)",
    "sum(float(double(n)) == 2 * n for n in range(4)) / 2",
    "sum(type(got := double(n)) is int and got == 2 * n for n in (1,2)) / 2",
    "double(3);",
    "double(3);  # x\n### END HIDDEN TESTS",
    "np.testing.assert_allclose(double(2), 4)",
    "score = 0.0\nfor n in (1,2):\n    got = double(n)\n    score += got == 2*n\nscore",
    "1.0 if double(3) == 6 else 0",
    "print(double(3))",
    "float(np.allclose(double(3), 6))",
    "len([n for n in (1,2) if double(n) == 2*n]) / 2",
    "def grade(f):\n    return sum(f(n) == 2*n for n in (1,2))\ngrade(double)",
    "np.mean([double(n) == 2*n for n in (1,2)]) * 2",
    "2 * all(double(n) == 2*n for n in (1,2))",
    "POINTS / 2",
    "check.refuses('Stack.push', pile, field='item')",
    "x = 1",
    "min(2, round(1.5 * (double(3) == 6), 1))",
    "not double(3)",
    "",
    "def examine(x):\n    check.compare('a', double(x), 6)\nexamine(3)",
]


@pytest.mark.parametrize("source", WORD)
def test_a_last_line_that_the_student_decides_is_found_and_refused(source):
    assert students_word(source, GIVEN, ASKED) == ast.unparse(last_value(source))


@pytest.mark.parametrize("source", NUMBER)
def test_a_last_line_of_the_instructors_is_not(source):
    assert students_word(source, GIVEN, ASKED) == ""


def test_an_exam_with_such_a_test_is_refused():
    with pytest.raises(ExamError) as error:
        trial.exam(tests={"s-t1-good": "assert double(1) == 2", "s-t1-bad": "got = double(3)\ngot / 3"})
    assert "s-t1-bad must end in a number of its own or in nothing, got got / 3" in str(error.value)
    assert "end the line with a semicolon" in str(error.value)
    # What the setup cell's functions make of it is looked at too.
    setup = "def same(x):\n    return x\n\n\ndef right(x):\n    return 2.0 * (x == 6)"
    with pytest.raises(ExamError, match="s-t1-same"):
        trial.exam(tests={"s-t1-same": "same(double(3))"}, setup=setup)
    assert trial.exam(tests={"s-t1-right": "right(double(3))"}, setup=setup).max_score == 2.0


@pytest.mark.parametrize("name", sorted(path.name for path in SOLUTIONS.glob("week*")))
def test_no_lab_has_one(name):
    exam = exams.read(name)  # it would be refused
    assert [test for test in exam.tests if last_value(test.source) is not None]


@pytest.mark.parametrize(
    ("source", "shown"),
    [("x;", False), ("(x)", True), ("x; y", True), ("'é';  # c", False), ("x  # ;", True), ("f(';')", True),
     ("if x:\n    y", False), ("x\n### END HIDDEN TESTS", True), ("x;\n### END HIDDEN TESTS", False), ("", False)],
)  # fmt: skip
def test_a_semicolon_hides_a_value_as_in_a_notebook(source, shown):
    assert (last_value(source) is not None) == shown
