"""The exam that the attacks are aimed at: six tasks and an essay, with tests of the kinds that instructors write."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

TRAP = "trap"
#: What only the hidden tests hold: the name of a value, inputs, and results. None may reach a student.
SECRETS = ("whispered_bound", "68239", "136478", "90821", "hush-hush", "71993", "never shown to anyone")

SETUP = '''
import math
from dataclasses import dataclass

import numpy as np

from lantern_lib import checks
from lantern_lib.model_config import LANTERN_70B

LIMITS = [2, 5]


@dataclass(frozen=True)
class Reading:
    sensor: str
    value: float


class Meter:
    """Counts how often it is turned."""

    def __init__(self):
        self.turns = 0
        self._secret = ""

    def turn(self, value):
        self.turns += 1
        return value * 2
'''
ANSWERS = {
    "trap-t1-double": "def double(x):\n    return 2 * x",
    "trap-t2-scale": (
        "def scale(values, factor):\n    return [factor * value for value in values]\n\n\n"
        "def noted(reading, words):\n    return {word: reading.value for word in words}"
    ),
    "trap-t3-pile": (
        "class Pile:\n    def __init__(self):\n        self.items = []\n\n    def add(self, item):\n"
        "        self.items.append(item)\n\n    def __len__(self):\n        return len(self.items)\n\n"
        "    def __contains__(self, item):\n        return item in self.items"
    ),
    "trap-t4-spin": (
        "def spin(meter, times):\n    return [meter.turn(number) for number in range(times)]\n\n\n"
        "def draw(count, rng):\n    return rng.normal(size=count)"
    ),
    # The library has this function, and puts it in the student's place while the next task is tested.
    "trap-t5-cache": (
        "def kv_bytes_per_token(model):\n    return 4 * model.num_layers * model.num_kv_heads * model.head_dim"
    ),
    "trap-t6-fill": "def filled(model, tokens):\n    return tokens * kv_bytes_per_token(model)",
}
ESSAY = "Because one step reads all weights."
VISIBLE = {
    "trap-t1-visible": "check = checks.Task(1, globals())\ncheck.compare('twice 3', check.call('double', 3), 6)\n"
    "check.own_work('double')\ncheck.passed()",
    "trap-t2-visible": "assert scale([1, 2], 3) == [3, 6]\nassert noted(Reading('a', 1.5), ['x']) == {'x': 1.5}",
    "trap-t3-visible": "pile = Pile()\npile.add(4)\nassert len(pile) == 1 and 4 in pile and 5 not in pile",
    "trap-t4-visible": "meter = Meter()\nassert spin(meter, 2) == [0, 2] and meter.turns == 2",
    "trap-t5-visible": "check = checks.Task(5, globals())\ncheck.own_work('kv_bytes_per_token')\n"
    "check.compare('bytes', check.call('kv_bytes_per_token', LANTERN_70B), 327680)",
    "trap-t6-visible": "check = checks.Task(6, globals())\nwith check.given('kv_bytes_per_token'):\n"
    "    check.compare('bytes', check.call('filled', LANTERN_70B, 2), 655360)",
}
HIDDEN = {
    # Every one of these ways to compare has been seen in a course, and a wrong answer must fail each of them alone.
    "trap-t1-equal": "whispered_bound = 136478\nassert double(68239) == whispered_bound, 'Is it twice the number?'",
    "trap-t1-text": "got = double('hush-hush ')\nassert got.startswith('hush-hush hush-hush')",
    "trap-t1-member": "assert 'hush-hush hush-hush' in double('hush-hush ')",
    "trap-t1-lazy": "inputs = [68239, 90821]\nfor one, got in zip(inputs, map(double, inputs)):\n"
    "    assert got - one == one\nassert all(map(lambda n: double(n) > n, inputs))",
    "trap-t1-close": "np.testing.assert_allclose(double(np.array([68239.0, 90821.0])), [136478.0, 181642.0])\n"
    "assert math.isclose(double(90821.5), 181643.0) and abs(double(-68239) + 136478) < 1e-6",
    "trap-t1-order": "assert not double(90821) < 181642 and not double(90821) > 181642\n"
    "assert sorted([double(2), 68239])[0] == 4 and max(double(2), 3) == 4 and round(double(2.2), 1) == 4.4",
    "trap-t1-partial": "sum(type(got := double(n)) is int and got == 2 * n for n in (68239, 90821)) / 2",
    "trap-t2-hidden": "values = [68239, 90821]\ngot = scale(values, 2)\nassert len(got) == len(values)\n"
    "assert all(a == 2 * b for a, b in zip(got, values))\nassert values == [68239, 90821]\n"
    "reading = Reading('hush-hush', 71993.0)\nfound = noted(reading, ['p', 'q'])\n"
    "assert found == {'p': reading.value, 'q': reading.value}\n"
    "assert scale(LIMITS, 10) == [20, 50] == [10 * n for n in LIMITS]",
    "trap-t3-hidden": "pile = Pile()\nfor item in (68239, 90821):\n    pile.add(item)\n"
    "assert len(pile) == 2 and 68239 in pile and 71993 not in pile\nassert isinstance(pile, Pile)",
    "trap-t4-hidden": "meter = Meter()\nmeter._secret = 'never shown to anyone'\nassert spin(meter, 3) == [0, 2, 4]\n"
    "assert meter.turns == 3\n"
    "rng, again = np.random.default_rng(71993), np.random.default_rng(71993)\n"
    "np.testing.assert_array_equal(draw(4, rng), again.normal(size=4))\nassert rng.random() == again.random()",
    "trap-t5-hidden": "from dataclasses import replace\nagain = checks.Task(5, globals())\n"
    "again.own_work('kv_bytes_per_token')\nassert kv_bytes_per_token(replace(LANTERN_70B, num_layers=40)) == 163840",
    "trap-t6-hidden": "again = checks.Task(6, globals())\nwith again.given('kv_bytes_per_token'):\n"
    "    assert [filled(LANTERN_70B, tokens) for tokens in (0, 3)] == [0, 983040]",
}
POINTS = {**dict.fromkeys(VISIBLE, 1.0), **dict.fromkeys(HIDDEN, 1.0), "trap-essay": 3.0}


def ids_of(task: str) -> set[str]:
    """Return the ids of a task's tests."""
    return {name for name in (*VISIBLE, *HIDDEN) if f"-{task}-" in name}


def cell(kind: str, name: str, source: str, **about: Any) -> dict[str, Any]:
    """Make a cell of a notebook; with words about it, one of nbgrader's."""
    metadata: dict[str, Any] = {}
    if about:
        full = {"grade": False, "solution": False, "locked": False, "task": False, "schema_version": 3, **about}
        metadata["nbgrader"] = {"grade_id": name, "cell_type": kind, **full}
    made = {"cell_type": kind, "id": name or "added", "metadata": metadata, "source": source}
    return made | ({"outputs": [], "execution_count": None} if kind == "code" else {})


def notebook(cells: list[dict[str, Any]]) -> dict[str, Any]:
    """Make a notebook of cells."""
    return {"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}


def _cells(*, source: bool) -> list[dict[str, Any]]:
    cells = [cell("markdown", "title", "# A trap"), cell("code", "setup", SETUP, locked=True)]
    for name, answer in ANSWERS.items():
        head, _, body = answer.partition("\n")
        marked = f"### BEGIN SOLUTION\n{answer}\n### END SOLUTION" if source else f"{head}\n{body}"
        cells.append(cell("code", name, marked, solution=True))
        for test in sorted(ids_of(name.split("-")[1]), key=list(POINTS).index):
            hidden = (
                f"# A test.\n### BEGIN HIDDEN TESTS\n{HIDDEN[test]}\n### END HIDDEN TESTS" if test in HIDDEN else ""
            )
            text = (hidden if source else "# A test.") if hidden else VISIBLE[test]
            cells.append(cell("code", test, text, grade=True, locked=True, points=POINTS[test]))
    essay = "### BEGIN SOLUTION\nIt depends.\n### END SOLUTION" if source else ESSAY
    cells.append(cell("markdown", "trap-essay", essay, grade=True, solution=True, points=POINTS["trap-essay"]))
    return cells


def write_source(folder: Path) -> Path:
    """Write the exam as an instructor has it; return the folder of all sources."""
    (folder / TRAP).mkdir(parents=True)
    (folder / TRAP / f"{TRAP}.ipynb").write_text(json.dumps(notebook(_cells(source=True))), encoding="utf-8")
    (folder / TRAP / "given.csv").write_text("1,2\n", encoding="utf-8")
    return folder


def honest() -> dict[str, Any]:
    """Return a submission that is right in all tasks, to be changed."""
    return copy.deepcopy(notebook(_cells(source=False)))
