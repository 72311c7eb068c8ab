"""What a test cell of a lab depends on is found by running it once."""

import ast

import pytest
from nbformat import v4

from lantern_grading import mutants, reach
from lantern_grading.paths import SOLUTIONS
from lantern_lib.checks import CheckFailed


def cell(identity, source, *, tags=(), **about):
    made = v4.new_code_cell(source, id=identity)
    made.metadata = {"tags": list(tags), "nbgrader": {"solution": False, "grade": False, **about}}
    return made


SETUP = """import math
class Thing:
    pass
SQUARE = [width]
SQUARE.append(width * width)
OTHER, SIDE = [1], depth
COPY = SQUARE
print(f"{len(OTHER)} of {unused}")
print(OTHER.append(depth)) if width < 0 else None
"""


PRINTS = {
    "print(width, len(SQUARE))": True,
    "print(f'{width:,} of {max(SQUARE)}')": True,
    "print(SQUARE.pop())": False,
    "print(change(SQUARE))": False,
    "sorted(SQUARE, key=change)": False,
    "kept = print(width)": False,
}


def notebook(*tests):
    return v4.new_notebook(
        cells=[
            cell("given", "width = 3\ndepth = 5\nunused = 7", tags=["parameters"]),
            cell("setup", SETUP),
            cell("one", "FACTOR = 2\ndef double(x):\n    return FACTOR * x", solution=True),
            cell("two", "def four_times(x):\n    return double(double(x))", solution=True),
            cell("three", "def deep():\n    return depth", solution=True),
            *(cell(f"test{number}", source, grade=True) for number, source in enumerate(tests)),
        ]
    )


@pytest.mark.parametrize(
    ("source", "origins"),
    [
        ("assert math.sqrt(4) == 2 and Thing()", set()),
        ("assert double(2) == 4", {"one"}),
        ("assert FACTOR == 2", {"one"}),
        ("assert four_times(1) == 4", {"one", "two"}),
        ("assert globals()['deep']() == 5", {"three", "depth"}),
        ("assert globals().get('deep') is not None", {"three"}),
        # Changed in place by a later line than the one that binds it.
        ("assert SQUARE", {"width"}),
        ("assert COPY", {"width"}),
        # A line of the setup that shows what was given says nothing of the others; one that could change them does.
        ("assert SIDE == 5", {"depth", "width"}),
        ("assert OTHER == [1]", {"depth", "width"}),
        # A number of the test's own is no parameter that happens to be as large.
        ("depth = 5\nassert depth == 5 and unused", {"unused"}),
        ("assert [width for width in (3, 3)]", set()),
        ("for width in (3, 3):\n    assert width", set()),
        ("before = globals().pop('double')\ndouble = abs\nassert four_times(-1) == 1\ndouble = before", {"two"}),
    ],
)
def test_a_test_depends_on_what_it_reads_however_far_away(source, origins):
    assert reach.reach(notebook(source)) == {"test0": origins}


def test_what_one_test_binds_and_another_reads_is_followed():
    assert reach.reach(notebook("kept = four_times(1)", "assert kept == 4"))["test1"] == {"one", "two"}


def test_a_number_of_one_test_is_followed_to_the_next_and_an_equal_one_is_not():
    assert reach.reach(notebook("size = width", "assert size == 3"))["test1"] == {"width"}
    assert reach.reach(notebook("size = width", "size = 3\nassert size == 3"))["test1"] == set()


def test_a_line_that_prints_and_calls_more_is_not_only_shown():
    only = {source: reach._only_prints(ast.parse(source).body[0]) for source in PRINTS}
    assert only == PRINTS


def test_a_reduced_run_leaves_out_tests_and_nothing_else():
    lab = notebook("assert double(2) == 5, 'first'", "assert deep() == 6, 'second'")
    assert mutants.run(lab).keys() == {"test0", "test1"}
    assert mutants.run(lab, only={"test1"}).keys() == {"test1"}
    assert mutants.run(lab, {"three": "def deep(): return 6"}, only={"test1"}) == {}


def test_a_stand_in_hides_the_students_function_from_the_reading():
    given = (
        "from lantern_lib import checks, LANTERN_70B\n"
        "check = checks.Task(2, globals())\n"
        "with check.given('num_parameters'):\n"
        "    assert check.call('weights_used', LANTERN_70B) > 0\n"
    )
    lab = v4.new_notebook(
        cells=[
            cell("t1", "def num_parameters(model):\n    return {}", solution=True),
            cell("t2", "def weights_used(model):\n    return num_parameters(model)['total']", solution=True),
            cell("with", given, grade=True),
            cell("without", given.replace("with check.given('num_parameters')", "if True"), grade=True),
        ]
    )
    with pytest.raises(CheckFailed, match="KeyError"):
        reach.reach(lab)
    lab.cells[0].source = "def num_parameters(model):\n    return {'total': 1}"
    assert reach.reach(lab) == {"with": {"t2"}, "without": {"t1", "t2"}}


def test_no_cell_of_a_lab_is_split_by_what_it_says_to_the_parser():
    # Statements are run one by one; a future import would reach only its own.
    names = sorted(path.stem for path in SOLUTIONS.glob("*/*.ipynb"))
    assert len(names) == 8
    for name in names:
        for made in mutants.solution(name).cells:
            if made.cell_type == "code":
                tree = ast.parse(made.source)
                futures = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
                assert all(node.module != "__future__" for node in futures)
