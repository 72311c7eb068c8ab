"""The mutation runner, on a lab of two cells, and its list of changes that cannot be told from the answer."""

import pytest
from nbformat import v4

from lantern_grading import mutants, mutation, reach


def cell(identity, source, **about):
    made = v4.new_code_cell(source, id=identity)
    made.metadata["nbgrader"] = {"solution": False, "grade": False, **about}
    return made


ANSWER = "def larger(a, b):\n    ### BEGIN SOLUTION\n    return a if a > b else b\n    ### END SOLUTION\nOTHER = 1"


@pytest.fixture
def lab():
    test = "assert larger(1, 2) == 2\nassert larger(2, 1) == 2"
    return v4.new_notebook(cells=[cell("w1-t1-a", ANSWER, solution=True), cell("w1-t1-hidden", test, grade=True)])


def test_what_survives_is_what_the_tests_cannot_tell(lab):
    pytest.importorskip("cosmic_ray")
    made = list(mutation.changes(lab.cells[0]))
    assert {change.old for change in made} == {"return a if a > b else b"}  # public lines stay
    alive = {change.new for change in made if mutation.survives(lab, change, {"w1-t1-hidden"}, 5)}
    assert "return a if a >= b else b" in alive
    assert "return a if a < b else b" in {change.new for change in made} - alive


def test_a_change_that_never_ends_is_noticed(lab):
    endless = mutation.Change("w1-t1-a", "", "", "def larger(a, b):\n    while True:\n        pass")
    assert not mutation.survives(lab, endless, {"w1-t1-hidden"}, 1)


def test_every_listed_change_is_of_a_line_that_stands_and_has_a_reason():
    listed = mutation.known()
    assert len({(entry["cell"], entry["old"], entry["new"]) for entry in listed}) == len(listed) > 10
    cells = {
        each.id: {line.strip() for line in each.source.split("\n")}
        for week in {f"week{entry['cell'][1]}" for entry in listed}
        for each in mutants.solution(week).cells
        if each.cell_type == "code" and not reach.is_test(each)
    }
    for entry in listed:
        assert entry["old"] in cells[entry["cell"]], entry
        assert entry["new"] != entry["old"]
        assert entry["reason"].endswith(".")
