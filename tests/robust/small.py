"""A small exam with three tasks and an essay, as its instructor has it and as a student hands it in."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

EXAM = "small"
GRADE = {"grade": True, "locked": True, "solution": False}
ANSWER = {"grade": False, "locked": False, "solution": True}
TASKS = {"t1": 3.0, "t2": 3.0, "t3": 2.0}
SOLUTIONS = {
    "s-t1-double": "def double(x):\n    return 2 * x",
    "s-t2-mean": "def mean(values):\n    total = sum(values)\n    return total / len(values)",
    "s-t3-greet": "def greet(name):\n    return f'Hello, {name}!'",
    "s-t4-why": "Because it is so.",
}
#: Name, kind, marks, points, what everybody sees, what nobody sees.
CELLS: list[tuple[str, str, dict[str, Any], float, str, str]] = [
    ("s-title", "markdown", {}, 0, "# A small exam", ""),
    ("s-setup", "code", {"locked": True}, 0, "import math\nimport numpy as np\nTABLE = open('table.txt').read()", ""),
    ("s-t1-double", "code", ANSWER, 0, "def double(x):", ""),
    ("s-t1-visible", "code", GRADE, 1, "assert double(3) == 6", ""),
    ("s-t1-hidden", "code", GRADE, 2, "# More of task 1.", "assert double(-7) == -14\nassert double('ab') == 'abab'"),
    ("s-t2-text", "markdown", {}, 0, "Now the mean.", ""),
    ("s-t2-mean", "code", ANSWER, 0, "def mean(values):", ""),
    ("s-t2-visible", "code", GRADE, 1, "assert mean([1, 2, 3]) == 2", ""),
    ("s-t2-hidden", "code", GRADE, 2, "# More of task 2.", "assert math.isclose(mean(np.array([0.1, 0.2])), 0.15)"),
    ("s-t3-greet", "code", ANSWER, 0, "def greet(name):", ""),
    ("s-t3-visible", "code", GRADE, 1, "assert greet('Ada') == 'Hello, Ada!'", ""),
    ("s-t3-hidden", "code", GRADE, 1, "# More of task 3.", "assert greet('Zoë') == 'Hello, Zoë!'"),
    ("s-t4-why", "markdown", {"grade": True, "locked": False, "solution": True}, 3, "*Your answer.*", ""),
]  # fmt: skip


def _notebook(text: Callable[[str, str, str], str]) -> dict[str, Any]:
    cells = []
    for name, kind, marks, points, seen, unseen in CELLS:
        about = {"grade_id": name, "schema_version": 3, "task": False, "grade": False, "solution": False} | marks
        about |= {"points": points} if about["grade"] else {}
        cell = {"cell_type": kind, "id": name, "metadata": {"nbgrader": about} if marks else {}}
        cell["source"] = text(name, seen, unseen)
        cells.append(cell | ({"outputs": [], "execution_count": None} if kind == "code" else {}))
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    return {"cells": cells, "metadata": {"kernelspec": kernel}, "nbformat": 4, "nbformat_minor": 5}


def write_source(folder: Path) -> Path:
    """Write the exam as its instructor has it; return the folder of all sources."""

    def text(name: str, seen: str, unseen: str) -> str:
        if name == "s-t4-why":
            return seen
        if name in SOLUTIONS:
            head, _, body = SOLUTIONS[name].partition("\n")
            return f"{head}\n    ### BEGIN SOLUTION\n{body}\n    ### END SOLUTION"
        return f"{seen}\n### BEGIN HIDDEN TESTS\n{unseen}\n### END HIDDEN TESTS" if unseen else seen

    (folder / EXAM).mkdir(parents=True)
    (folder / EXAM / f"{EXAM}.ipynb").write_text(json.dumps(_notebook(text)), encoding="utf-8")
    (folder / EXAM / "table.txt").write_text("the instructor's table", encoding="utf-8")
    return folder


def handed_in() -> dict[str, Any]:
    """Return the notebook of a student who has everything right."""
    return _notebook(lambda name, seen, _: SOLUTIONS.get(name, seen))


def untouched() -> dict[str, Any]:
    """Return the notebook as it was given out."""
    stub = '\n    # Your code here.\n    raise NotImplementedError("{}")'
    number = {name: f"Task {place}: {name.split('-')[2]}" for place, name in enumerate(SOLUTIONS, 1)}

    def text(name: str, seen: str, _: str) -> str:
        return seen + stub.format(number[name]) if name in SOLUTIONS and name != "s-t4-why" else seen

    return _notebook(text)
