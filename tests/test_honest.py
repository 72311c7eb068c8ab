"""Honest submissions drawn at random: the sandbox gives what the labs' own runner gives, and what nbgrader gives.

Each answer of a lab is the right one, one of the misconceptions people have, or the stub. nbgrader gives all points
of a test cell or none. ``LANTERN_HONEST=200`` draws that many of each lab, where CI draws a few.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import nbformat
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent / "graded"))
from honest import LABS, draw, exam_of, notebook, paper, points_of_the_runner

from lantern_grading.checker import Pool, grade_one
from lantern_grading.outcome import State
from lantern_grading.sandbox import Limits, choose

pytestmark = pytest.mark.grading

ROOT = Path(__file__).resolve().parents[1]
COUNT = int(os.environ.get("LANTERN_HONEST", "2"))
#: What goes through nbgrader as well, which takes longer.
COUNT_OF_NBGRADER = max(2, COUNT // 10)
LABS_OF_NBGRADER = ["week1", "week2"] if COUNT >= 20 else ["week2"]
LIMITS = Limits(cell_seconds=120.0, total_seconds=600.0)


@pytest.fixture(scope="module")
def pools() -> Iterator[Callable[[str], Pool]]:
    backend = choose("bubblewrap")
    with contextlib.ExitStack() as stack:
        made: dict[str, Pool] = {}

        def pool(name: str) -> Pool:
            if name not in made:
                made[name] = stack.enter_context(Pool(exam_of(name), backend, LIMITS, spare=1))
            return made[name]

        yield pool


@pytest.mark.parametrize("name", LABS)
def test_scores_are_those_of_the_labs_own_runner(pools: Any, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.chdir(ROOT / "solutions" / name)
    exam, backend = exam_of(name), choose("bubblewrap")
    differ, seen = {}, set()
    for number in range(COUNT):
        answers = draw(name, number)
        outcome = grade_one(exam, paper(name, answers), backend=backend, limits=LIMITS, pool=pools(name))
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


@pytest.mark.parametrize("name", LABS_OF_NBGRADER)
def test_scores_are_those_of_nbgrader(pools: Any, tmp_path: Path, name: str) -> None:
    """The sample goes through nbgrader's own command, in its own kernel, as nbgrader is without our settings."""
    exam, backend = exam_of(name), choose("bubblewrap")
    shutil.copytree(ROOT / "solutions" / name, tmp_path / "source" / name)
    # The one setting: nbclient waits in a cell with sliders for an answer that has come.
    (tmp_path / "nbgrader_config.py").write_text(
        "c = get_config()\nc.AsyncKernelManager.client_factory = 'lantern_book.kernels.AttentiveClient'\n"
        "c.Execute.timeout = 120\n",
        encoding="utf-8",
    )
    ours: dict[str, float] = {}
    for number in range(COUNT_OF_NBGRADER):
        answers, student = draw(name, number), f"s{number}"
        shutil.copytree(ROOT / "labs" / name, tmp_path / "submitted" / student / name)
        nbformat.write(notebook(name, answers), tmp_path / "submitted" / student / name / f"{name}.ipynb")
        outcome = grade_one(exam, paper(name, answers), backend=backend, limits=LIMITS, pool=pools(name))
        ours |= {f"{student} {test.grade_id}": test.score for test in outcome.tests}
    for arguments in (("generate_assignment", name, "--create"), ("autograde", name)):
        nbgrader(tmp_path, *arguments)
    assert ours == scores_in(tmp_path / "gradebook.db", set(ours))


def nbgrader(folder: Path, *arguments: str) -> None:
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    environment = {**os.environ, "PATH": path, "PYTHONPATH": str(ROOT), "IPYTHONDIR": str(folder / "ipython")}
    done = subprocess.run(
        [sys.executable, "-m", "nbgrader", *arguments], cwd=folder, env=environment, capture_output=True, text=True,
        timeout=3600, check=False,
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
