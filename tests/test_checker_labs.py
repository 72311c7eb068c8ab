"""The labs through the checker: full points for the reference, none for nothing, and for each misconception exactly
what the labs' own runner takes, in the same words."""

import contextlib
import os
import re
from dataclasses import replace
from pathlib import Path

import pytest

from lantern_grading import exam as exams
from lantern_grading import mutants
from lantern_grading.checker import Pool, grade_one
from lantern_grading.checker.telling import NOT_SHOWN
from lantern_grading.exam import Role
from lantern_grading.outcome import Cell, Paper, State
from lantern_grading.sandbox import Limits, choose

pytestmark = pytest.mark.grading

ROOT = Path(__file__).resolve().parents[1]
LABS = {path.stem: mutants.load(path) for path in sorted((ROOT / "tests" / "mutants").glob("week*.toml"))}
EXAMS = {name: exams.read(name) for name in LABS}
LIMITS = Limits(cell_seconds=120.0, total_seconds=600.0)
EVERY_LAB = pytest.mark.parametrize("name", LABS)


@pytest.fixture(scope="module")
def backend():
    return choose("bubblewrap")


@pytest.fixture(scope="module")
def pools(backend):
    with contextlib.ExitStack() as stack:
        made = {}

        def pool(name):
            if name not in made:
                made[name] = stack.enter_context(Pool(EXAMS[name], backend, LIMITS, spare=1))
            return made[name]

        yield pool


def only(exam, task):
    """The exam with the tests of one task: the others cannot change what these say."""
    kept = [cell for cell in exam.cells if cell.role is not Role.TEST or cell.cell_id.startswith(task)]
    return replace(exam, cells=tuple(kept))


def lost(outcome):
    return {test.grade_id: test.message for test in outcome.tests if test.score != test.max_score}


def plain(messages):
    return {
        cell: re.sub(r" It happened in your line: .*?(?= Mind: |$)|0x[0-9a-f]+", "", text)
        for cell, text in messages.items()
    }


@EVERY_LAB
def test_the_reference_gets_all_points(backend, pools, name):
    exam = EXAMS[name]
    outcome = grade_one(exam, exam.reference(), backend=backend, limits=LIMITS, pool=pools(name))
    assert lost(outcome) == {}
    assert (outcome.state, outcome.score) == (State.GRADED, exam.max_score)


@EVERY_LAB
def test_the_untouched_lab_gets_nothing_and_says_what_to_write(backend, pools, name):
    exam = EXAMS[name]
    stubs = {cell.id: cell.source for cell in mutants.released(name).cells}
    paper = Paper(tuple(Cell(cell.cell_id, "code", stubs[cell.cell_id]) for cell in exam.answers), exam.files)
    outcome = grade_one(exam, paper, backend=backend, limits=LIMITS, pool=pools(name))
    assert outcome.score == 0
    assert outcome.state is State.GRADED
    for test in outcome.tests:
        assert "is not written yet" in test.message, test


# One misconception a task, or all of them (about ten minutes): the labs' own tests run all of them without a sandbox.
MUTANTS = [
    (name, mutant)
    for name, lab in LABS.items()
    for mutant in (lab.mutants if os.environ.get("LANTERN_ALL") else {m.task: m for m in lab.mutants}.values())
]


@pytest.mark.parametrize(("name", "mutant"), MUTANTS, ids=[f"{name}: {mutant.name}" for name, mutant in MUTANTS])
def test_a_misconception_loses_what_it_loses_without_a_sandbox(backend, pools, monkeypatch, name, mutant):
    monkeypatch.chdir(ROOT / "solutions" / name)
    solution = mutants.solution(name)
    task = only(EXAMS[name], mutant.task)
    kept = {cell.cell_id for cell in task.cells if cell.role is not Role.FREE}
    solution.cells = [cell for cell in solution.cells if cell.id in kept]
    source = next(cell.source for cell in solution.cells if cell.id == mutant.cell)
    expected = {cell: str(e) for cell, e in mutants.run(solution, {mutant.cell: mutant.applied(source)}).items()}

    wrong = {mutant.cell: mutant.applied(source)}
    answers = {cell.cell_id: replace(cell, source=wrong.get(cell.cell_id, cell.source)).answer for cell in task.answers}
    paper = Paper(tuple(Cell(cell_id, "code", answer) for cell_id, answer in answers.items()), task.files)
    outcome = grade_one(task, paper, backend=backend, limits=LIMITS, pool=pools(name))
    hidden = {test.grade_id for test in outcome.tests if test.hidden}
    # Addresses of objects differ; and without a kernel nobody knows the student's line.
    shown, whole = plain(lost(outcome)), plain(expected)
    assert shown.keys() == whole.keys()
    for cell, text in shown.items():
        # What the student's own code says of a hidden test's input is kept back.
        pattern = re.escape(text).replace(re.escape(NOT_SHOWN), ".*") if cell in hidden else re.escape(text)
        assert re.fullmatch(pattern, whole[cell], re.DOTALL), (text, whole[cell])
    assert any(mutant.says in whole.get(cell, "") for cell in hidden)
