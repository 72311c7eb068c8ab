"""A quiz of two tasks and an essay, submissions to it, and a grader that obeys words in the answers."""

from __future__ import annotations

import json
import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lantern_grading.outcome import CellOutput, Outcome, Paper, State, TestResult, Trust
from lantern_grading.template import Role, Template

QUIZ = "quiz"
SECRET = "assert answer_one() == 4711  # nobody may see this"
STUB = "raise NotImplementedError()"


def cell(kind: str, name: str, source: str, **about: Any) -> dict[str, Any]:
    metadata: dict[str, Any] = {}
    if about:
        full = {"grade": False, "solution": False, "locked": False, "task": False, **about}
        metadata["nbgrader"] = {"grade_id": name, "cell_type": kind, "schema_version": 3, **full}
    made = {"cell_type": kind, "id": name, "metadata": metadata, "source": source}
    return made | ({"outputs": [], "execution_count": None} if kind == "code" else {})


def source_notebook(points: float = 3, hidden: str = SECRET, extra: bool = False) -> dict[str, Any]:
    solution = "def {0}():\n    ### BEGIN SOLUTION\n    return 4711\n    ### END SOLUTION"
    tests = {"grade": True, "locked": True}
    cells = [
        cell("markdown", "title", "# A quiz"),
        cell("code", "setup", "import math", locked=True),
        cell("code", "q-t1-one", solution.format("answer_one"), solution=True),
        cell("code", "q-t1-visible", "assert callable(answer_one)", points=1, **tests),
        cell(
            "code", "q-t1-hidden", f"# Hidden.\n### BEGIN HIDDEN TESTS\n{hidden}\n### END HIDDEN TESTS",
            points=points, **tests,
        ),
        cell("code", "q-t2-two", solution.format("answer_two"), solution=True),
        cell("code", "q-t2-visible", "assert callable(answer_two)", points=2, **tests),
        cell(
            "markdown", "q-t3-essay", "### BEGIN SOLUTION\nBecause.\n### END SOLUTION",
            grade=True, solution=True, points=4,
        ),
    ]  # fmt: skip
    if extra:
        cells.append(cell("code", "q-t4-new", "assert True", points=5, **tests))
    return {"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}


def write_source(folder: Path, **kind: Any) -> Path:
    """Write the quiz's source as an instructor has it; return the folder of all sources."""
    (folder / QUIZ).mkdir(parents=True, exist_ok=True)
    (folder / QUIZ / f"{QUIZ}.ipynb").write_text(json.dumps(source_notebook(**kind)), encoding="utf-8")
    return folder


def submission(one: str = "right", two: str = "right", essay: str = "I think so.") -> bytes:
    notebook = source_notebook()
    sources = {
        "q-t1-one": f"def answer_one():\n    return 4711  # {one}",
        "q-t2-two": f"def answer_two():\n    return 4711  # {two}",
        "q-t3-essay": essay,
        "q-t1-hidden": "# Hidden.",
    }
    for each in notebook["cells"]:
        each["source"] = sources.get(each["id"], each["source"])
    return json.dumps(notebook).encode()


def hand_in(course: Path, student: str, content: bytes | None = None, name: str = f"{QUIZ}.ipynb") -> Path:
    path = course / "submitted" / student / QUIZ / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(submission() if content is None else content)
    return path


@dataclass(frozen=True)
class FakeGrader:
    """Gives full points, but obeys a word in an answer: wrong, boom, die, nan, ill, limit, slow, hostile."""

    points: tuple[tuple[str, float], ...]
    diary: str = ""
    broken: bool = False

    @staticmethod
    def of(template: Template, **more: Any) -> FakeGrader:
        return FakeGrader(tuple((cell.cell_id, cell.points) for cell in template.of(Role.TEST)), **more)

    def __call__(self, student: str, paper: Paper, given: tuple[str, str] = ("", "")) -> Outcome:
        if self.diary:
            with open(self.diary, "a", encoding="utf-8") as file:
                file.write(f"{student}\n")
        answers = {cell.cell_id: cell.source for cell in paper.cells}
        everything = "\n".join(answers.values())
        if "die" in everything:
            os._exit(9)
        if "boom" in everything:
            raise RuntimeError("the secret of " + SECRET)
        if "slow" in everything:
            time.sleep(0.2)
        if "ill" in everything or self.broken:
            return Outcome(State.NEEDS_PERSON, reason="The exam fails on its own reference.")
        results = [self._result(name, points, answers) for name, points in self.points]
        failed = "limit" in everything
        outputs = (CellOutput(0, HOSTILE),) if "hostile" in everything else ()
        state = State.WITH_FAILURES if failed else State.GRADED
        return Outcome(state, tuple(results), outputs, reason="A limit ended a test." if failed else "")

    def _result(self, name: str, points: float, answers: dict[str, str]) -> TestResult:
        own = next((source for cell, source in answers.items() if name.split("-")[1] in cell.split("-")), "")
        wrong = "wrong" in own or "limit" in own or not own
        score = float("nan") if "nan" in own else 0.0 if wrong else points
        message = "<b>Off by one.</b> Did you count from 1?" if wrong else ""
        hidden = name.endswith("hidden")
        return TestResult(name, score, points, Trust.ISOLATED, hidden, message, "time" if "limit" in own else "")


ATTACK = "<script>alert(1)</script><img src=x onerror=alert(1)>"
HOSTILE: tuple[dict[str, Any], ...] = (
    {
        "output_type": "display_data",
        "data": {"text/html": ATTACK, "application/javascript": "alert(1)"},
        "metadata": {},
    },
    {"output_type": "display_data", "data": {"image/svg+xml": "<svg onload=alert(1)>"}, "metadata": {}},
    {"output_type": "display_data", "data": {"image/png": 'x" onerror="alert(1)'}, "metadata": {}},
    {"output_type": "display_data", "data": {"text/markdown": "[x](javascript:alert(1))"}, "metadata": {}},
    {"output_type": "display_data", "data": {"text/latex": "$\\href{javascript:alert(1)}{x}$"}, "metadata": {}},
    {"output_type": "execute_result", "data": {"text/plain": ATTACK}, "metadata": {"x": ATTACK}},
    {"output_type": "stream", "name": ATTACK, "text": ATTACK + "\x1b]8;;javascript:alert(1)\x07click\x1b]8;;\x07"},
    {"output_type": "error", "ename": ATTACK, "evalue": ATTACK, "traceback": [ATTACK]},
    {"output_type": "update_display_data", "data": {"text/html": ATTACK}, "metadata": {}},
    {"output_type": "unheard of", "data": ATTACK},
)
