"""Honest submissions drawn at random: the sandbox gives what the labs' own runner gives, and what nbgrader gives.

Each answer of a lab is the right one, one of the misconceptions people have, or the stub. nbgrader gives all points
of a test cell or none. ``LANTERN_HONEST=200`` draws that many of each lab, where CI draws a few.
"""

from __future__ import annotations

import contextlib
import functools
import os
import random
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import nbformat
import pytest

from lantern_grading import exam as exams
from lantern_grading import mutants, reach
from lantern_grading.checker import Pool, grade_one
from lantern_grading.outcome import Cell, Paper, State
from lantern_grading.sandbox import Limits, choose

pytestmark = pytest.mark.grading

ROOT = Path(__file__).resolve().parents[1]
LABS = {path.stem: mutants.load(path) for path in sorted((ROOT / "tests" / "mutants").glob("week*.toml"))}
EXAMS = {name: exams.read(name) for name in LABS}
COUNT = int(os.environ.get("LANTERN_HONEST", "2"))
LIMITS = Limits(cell_seconds=120.0, total_seconds=600.0)


@functools.cache
def stubs_of(name: str) -> dict[str, str]:
    """Read what was given out for each answer."""
    return {cell.id: cell.source for cell in mutants.released(name).cells}


def draw(name: str, number: int) -> dict[str, str]:
    """Draw the answers of one student: the same for the same lab and number."""
    rng = random.Random(f"{name} {number}")
    stubs, answers = stubs_of(name), {}
    for cell in EXAMS[name].answers:
        wrong = [mutant for mutant in LABS[name].mutants if mutant.cell == cell.cell_id]
        luck = rng.random()
        if luck < 0.15:
            answers[cell.cell_id] = stubs[cell.cell_id]
        elif luck < 0.65 and wrong:
            answers[cell.cell_id] = replace(cell, source=rng.choice(wrong).applied(cell.source)).answer
        else:
            answers[cell.cell_id] = cell.answer
    return answers


def points_of_the_runner(name: str, answers: dict[str, str]) -> dict[str, float]:
    """Score the answers in this process, without sandbox, checker or nbgrader."""
    solution = mutants.solution(name)
    raised = mutants.run(solution, answers)
    return {
        cell.id: 0.0 if cell.id in raised else float(cell.metadata["nbgrader"]["points"])
        for cell in solution.cells
        if reach.is_test(cell)
    }


@pytest.fixture(scope="module")
def pools() -> Iterator[Callable[[str], Pool]]:
    backend = choose("bubblewrap")
    with contextlib.ExitStack() as stack:
        made: dict[str, Pool] = {}

        def pool(name: str) -> Pool:
            if name not in made:
                made[name] = stack.enter_context(Pool(EXAMS[name], backend, LIMITS, spare=1))
            return made[name]

        yield pool


@pytest.mark.parametrize("name", LABS)
def test_scores_are_those_of_the_labs_own_runner(pools: Any, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.chdir(ROOT / "solutions" / name)
    exam, backend = EXAMS[name], choose("bubblewrap")
    differ, seen = {}, set()
    for number in range(COUNT):
        answers = draw(name, number)
        paper = Paper(tuple(Cell(cell_id, "code", source) for cell_id, source in answers.items()), exam.files)
        outcome = grade_one(exam, paper, backend=backend, limits=LIMITS, pool=pools(name))
        got = {test.grade_id: test.score for test in outcome.tests}
        expected = points_of_the_runner(name, answers)
        seen.add(sum(expected.values()))
        # A misconception may loop for ever: its test is stopped, here and in the runner.
        if got != expected or outcome.state not in (State.GRADED, State.WITH_FAILURES):
            both = {test: (got[test], expected[test]) for test in got if got[test] != expected[test]}
            differ[number] = (str(outcome.state), outcome.reason, both)
    assert differ == {}
    assert COUNT < 10 or len(seen) > 5  # they are not all the same


def test_the_draws_differ_and_do_not_change() -> None:
    for name in LABS:
        drawn = [tuple(draw(name, number).items()) for number in range(20)]
        assert len(set(drawn)) > 15
        assert drawn[3] == tuple(draw(name, 3).items())


@pytest.mark.parametrize("name", ["week2"])
def test_scores_are_those_of_nbgrader(pools: Any, tmp_path: Path, name: str) -> None:
    """The sample goes through nbgrader's own command, in its own kernel, as nbgrader is without our settings."""
    exam, backend = EXAMS[name], choose("bubblewrap")
    shutil.copytree(ROOT / "solutions" / name, tmp_path / "source" / name)
    (tmp_path / "nbgrader_config.py").write_text("c = get_config()\nc.Execute.timeout = 120\n", encoding="utf-8")
    ours: dict[str, float] = {}
    for number in range(max(2, COUNT // 20)):
        answers, student = draw(name, number), f"s{number}"
        notebook = mutants.released(name)
        for cell in notebook.cells:
            cell.source = answers.get(cell.id, cell.source)
        shutil.copytree(ROOT / "labs" / name, tmp_path / "submitted" / student / name)
        nbformat.write(notebook, tmp_path / "submitted" / student / name / f"{name}.ipynb")
        paper = Paper(tuple(Cell(cell_id, "code", source) for cell_id, source in answers.items()), exam.files)
        outcome = grade_one(exam, paper, backend=backend, limits=LIMITS, pool=pools(name))
        ours |= {f"{student} {test.grade_id}": test.score for test in outcome.tests}
    for arguments in (("generate_assignment", name, "--create"), ("autograde", name)):
        nbgrader(tmp_path, *arguments)
    assert ours == scores_in(tmp_path / "gradebook.db", set(ours))


def nbgrader(folder: Path, *arguments: str) -> None:
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    environment = {**os.environ, "PATH": path, "PYTHONPATH": str(ROOT), "IPYTHONDIR": str(folder / "ipython")}
    done = subprocess.run(
        [sys.executable, "-m", "nbgrader", *arguments], cwd=folder, env=environment, capture_output=True, text=True,
        timeout=900, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]


def scores_in(gradebook: Path, wanted: set[str]) -> dict[str, float]:
    query = """select a.student_id || ' ' || c.name, g.auto_score from grade g join base_cell c on g.cell_id = c.id
        join submitted_notebook n on g.notebook_id = n.id join submitted_assignment a on n.assignment_id = a.id"""
    connection = sqlite3.connect(gradebook)
    try:
        return {name: score for name, score in connection.execute(query) if name in wanted}
    finally:
        connection.close()
