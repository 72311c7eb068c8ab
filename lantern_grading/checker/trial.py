"""A small assignment that uses all the checker can do: for its tests, and for measuring how fast it grades.

Its tests are plain asserts, numpy.testing, isclose and the labs' own checks; its answers are functions, a class, a
function that takes an object of the instructor's, and one that takes a generator of random numbers.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from lantern_grading.exam import Exam, ExamCell, Role
from lantern_grading.outcome import Cell, Paper, Trust

SETUP = '''
import math
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Point:
    x: float
    y: float


class TooFarError(RuntimeError):
    def __init__(self, distance, limit):
        super().__init__(f"{distance} is beyond {limit}")


class Meter:
    """Counts how often it is turned; the test looks at the count."""

    def __init__(self):
        self.turns = 0
        self._secret = 42

    def turn(self, value):
        if value < 0:
            raise ValueError(f"value must not be negative, got {value}")
        self.turns += 1
        return value * 2
'''
DOUBLE = "def double(x):\n    return 2 * x"
LENGTH = """
def length(point):
    return math.sqrt(point.x ** 2 + point.y ** 2)


def reach(point, limit):
    if length(point) > limit:
        raise TooFarError(length(point), limit)
    return [length(point), limit]
"""
STACK = """
class Stack:
    def __init__(self, size):
        self.size, self.items = size, []

    def push(self, item):
        if len(self.items) == self.size:
            raise ValueError(f"item does not fit: size is {self.size}, got {item}")
        self.items.append(item)

    def pop(self):
        return self.items.pop()
"""
SPIN = """
def spin(meter, times):
    return [meter.turn(number) for number in range(times)]


def draw(count, rng):
    return rng.normal(size=count)
"""
TESTS = {
    "s-t1-plain": "assert double(3) == 6\nassert double('ab') == 'abab'",
    "s-t1-hidden": (
        "### BEGIN HIDDEN TESTS\nexpected_secret_value = 14\nassert double(7) == expected_secret_value\n"
        "assert [double(n) for n in (1, 2)] == [2, 4]\nassert double([1]) == [1, 1]\n### END HIDDEN TESTS"
    ),
    "s-t1-numpy": (
        "np.testing.assert_allclose(double(np.array([1.0, 2.0])), [2.0, 4.0])\n"
        "np.testing.assert_equal(double(5), 10)\nassert np.isclose(double(0.5), 1.0)"
    ),
    "s-t1-close": "assert math.isclose(double(2.5), 5.0)\nassert abs(double(-1) + 2) < 1e-9",
    "s-t2-length": (
        "assert length(Point(3, 4)) == 5\nassert reach(Point(0, 2), 9) == [2, 9]\ntry:\n    reach(Point(3, 4), 2)\n"
        "except TooFarError as error:\n    assert '5.0 is beyond 2' in str(error)\nelse:\n    assert False, 'no error'"
    ),
    "s-t3-stack": (
        "from lantern_lib import checks\n\ncheck = checks.Task(3, globals())\npile = Stack(2)\n"
        "check.call('Stack.push', pile, 4)\ncheck.call('Stack.push', pile, 'b')\n"
        "assert pile.items == [4, 'b'] and pile.size == 2\n"
        "check.refuses('Stack.push', pile, field='item', values=[7])\nassert pile.pop() == 'b'\n"
        "check.compare('items left', len(pile.items), 1)\nassert isinstance(pile, Stack)"
    ),
    "s-t4-spin": (
        "meter = Meter()\nassert spin(meter, 3) == [0, 2, 4]\nassert meter.turns == 3\n"
        "rng, again = np.random.default_rng(5), np.random.default_rng(5)\n"
        "np.testing.assert_array_equal(draw(4, rng), again.normal(size=4))\nassert rng.random() == again.random()"
    ),
    "s-t5-partial": "sum(float(double(n)) == 2 * n for n in range(4)) / 2",
}
ANSWERS = {"s-t1-double": DOUBLE, "s-t2-answer": LENGTH, "s-t3-answer": STACK, "s-t4-answer": SPIN}
#: Task 1 is the one that attacks get wrong; it has the tests that compare.
FIRST = ("s-t1-plain", "s-t1-hidden", "s-t1-numpy", "s-t1-close", "s-t5-partial")


def exam(
    tests: Mapping[str, str] | None = None,
    answers: Mapping[str, str] | None = None,
    setup: str = SETUP,
    files: Collection[tuple[str, bytes]] = (),
    in_kernel: Collection[str] = (),
    in_place: Collection[str] = (),
) -> Exam:
    """Make the assignment, or a variant of it.

    Parameters
    ----------
    tests, answers : mapping of str to str, optional
        Other cells, by id.
    setup : str
        Another read-only cell.
    files : collection of (str, bytes)
        What lies beside the notebook.
    in_kernel : collection of str
        Tests that run beside the student's code.
    in_place : collection of str
        Tests of functions that are asked to change their arguments.

    Returns
    -------
    Exam
        Two points for each test.
    """
    cells = [ExamCell("s-setup", Role.GIVEN, "code", setup)]
    cells += [ExamCell(name, Role.ANSWER, "code", source) for name, source in (answers or ANSWERS).items()]
    for name, source in (tests or TESTS).items():
        trust = Trust.IN_KERNEL if name in in_kernel else Trust.ISOLATED
        cells.append(ExamCell(name, Role.TEST, "code", source, 2.0, trust, name in in_place))
    return Exam("small", tuple(cells), tuple(files))


def paper(*extra: str, files: Collection[tuple[str, bytes]] = (), **changed: str) -> Paper:
    """Make a paper of right answers.

    Parameters
    ----------
    *extra : str
        Cells that the student added at the end.
    files : collection of (str, bytes)
        What was handed in besides.
    **changed : str
        Other answers, for example ``t1_double``.

    Returns
    -------
    Paper
        Ready to be graded.
    """
    cells = [
        Cell(name, "code", changed.get(name.removeprefix("s-").replace("-", "_"), source))
        for name, source in ANSWERS.items()
    ]
    return Paper((*cells, *(Cell("", "code", source) for source in extra)), tuple(files))
