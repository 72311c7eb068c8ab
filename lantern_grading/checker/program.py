"""In which order the sandbox runs what: the instructor's cells and the student's; and where tests stand among them.

Tests are run when all cells have been, so that no output can hold a hidden input. Each is then given the names as
they were at its place in the notebook.
"""

from __future__ import annotations

import ast
import contextlib
import importlib.util
import sys
import types
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from lantern_grading.exam import Exam
from lantern_grading.exam_cells import ExamCell, Role, imports
from lantern_grading.outcome import Paper


@dataclass(frozen=True)
class Step:
    """One cell to run: ``index`` is its place in the paper, or -1 for one of the instructor's."""

    index: int
    source: str


@dataclass(frozen=True)
class Program:
    """Cells in order, and for each test, by its id, how many of them it comes after."""

    steps: tuple[Step, ...]
    moments: dict[str, int]


def program(exam: Exam, paper: Paper) -> Program:
    """Put the instructor's read-only cells and the student's code cells in order.

    A read-only cell runs before the first answer that follows it in the exam, or where the paper has it,
    whichever comes first, and always with the instructor's source. Of the visible tests only the imports are run:
    a student's function may use a name that a test cell imports.

    A test comes where the paper has it, and where it was deleted, before the next cell that is known; but never
    before an answer that precedes it in the exam, wherever the paper has that.

    Parameters
    ----------
    exam : Exam
        The assignment.
    paper : Paper
        What was handed in.

    Returns
    -------
    Program
        Cells of code, and the places of tests among them.
    """
    order = {cell.cell_id: place for place, cell in enumerate(exam.cells) if cell.role is not Role.FREE}
    free = {cell.source.strip() for cell in exam.cells if cell.role is Role.FREE}
    waiting = [cell for cell in exam.cells if cell.role in (Role.GIVEN, Role.TEST)]
    steps: list[Step] = []
    moments: dict[str, int] = {}
    answered: dict[int, int] = {}  # by place in the exam: after how many steps

    def catch_up(place: int) -> None:
        while waiting and order[waiting[0].cell_id] < place:
            steps.extend(_given(waiting[0]))
            moments[waiting.pop(0).cell_id] = len(steps)

    # Whatever comes first in the paper may count on what comes first in the exam.
    catch_up(min((order[cell.cell_id] for cell in exam.answers), default=0))
    for index, cell in enumerate(paper.cells):
        place = order.get(cell.cell_id, -1)
        role = exam.cells[place].role if place >= 0 else Role.FREE
        if place >= 0:
            catch_up(place + (role in (Role.GIVEN, Role.TEST)))
        # A cell that only draws and was left as it came is no part of the answer.
        if cell.kind == "code" and role in (Role.ANSWER, Role.FREE) and cell.source.strip() not in free:
            steps.append(Step(index, cell.source))
        if role is Role.ANSWER:
            answered[place] = len(steps)
        if role is Role.TEST:
            moments[cell.cell_id] = len(steps)
    catch_up(len(exam.cells))
    for test in exam.tests:
        before = [done for place, done in answered.items() if place < order[test.cell_id]]
        moments[test.cell_id] = max([moments[test.cell_id], *before])
    return Program(tuple(steps), {test.cell_id: moments[test.cell_id] for test in exam.tests})


def _given(cell: ExamCell) -> list[Step]:
    source = cell.source if cell.role is Role.GIVEN else imports(cell.public)
    return [Step(-1, source)] if source.strip() else []


def modules(exam: Exam) -> list[str]:
    """Return what a sandbox loads before any student's code is there: what students see the instructor's code import.

    Parameters
    ----------
    exam : Exam
        The assignment.

    Returns
    -------
    list of str
        Modules of the library, numpy and the standard library; the lab's stand-ins with them.
    """
    own = f"lantern_lib.labs.{exam.name}"
    return [*_STARTS, *([own] if _is_module(own) else []), *_imported(cell.public for cell in _known(exam))]


def modules_of_tests(exam: Exam) -> list[str]:
    """Return what the tests use of the library, numpy and the standard library, and no sandbox has to load.

    The grader loads it once, and not in the process of each paper.

    Parameters
    ----------
    exam : Exam
        The assignment.

    Returns
    -------
    list of str
        Modules. A submodule of numpy counts where it is only named: numpy loads it at that moment.
    """
    return [*modules(exam), *_imported((cell.source for cell in _known(exam)), lazy=True)]


_STARTS = ("numpy", "lantern_lib.labs")


def _known(exam: Exam) -> tuple[ExamCell, ...]:
    return (*exam.given, *exam.tests)


def _imported(sources: Iterable[str], lazy: bool = False) -> list[str]:
    found: dict[str, None] = {}
    for node in (node for source in sources for node in ast.walk(ast.parse(source))):
        if isinstance(node, ast.Import):
            found |= dict.fromkeys(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= dict.fromkeys([node.module, *(f"{node.module}.{alias.name}" for alias in node.names)])
        elif lazy and isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            found |= {f"numpy.{node.attr}": None} if node.value.id in ("np", "numpy") else {}
    return [name for name in found if name not in _STARTS and _is_module(name)]


def _is_module(name: str) -> bool:
    """Say whether a name is a module that may be loaded ahead."""
    top = name.split(".")[0]
    if top not in ("lantern_lib", "numpy") and not (name == top and top in sys.stdlib_module_names):
        return False
    with contextlib.suppress(ImportError, ValueError):
        return importlib.util.find_spec(name) is not None
    return False


def library(names: dict[str, Any]) -> dict[str, type]:
    """Find the library's classes that can come up: those in the modules of what the exam imports.

    Parameters
    ----------
    names : dict
        What the instructor's cells have defined.

    Returns
    -------
    dict of str to type
        By the name that both sides use.
    """
    used = {getattr(value, "__module__", None) or getattr(type(value), "__module__", "") for value in names.values()}
    used |= {type(value).__module__ for value in names.values()}
    used |= {value.__name__ for value in names.values() if isinstance(value, types.ModuleType)}
    used |= {"lantern_lib.hardware", "lantern_lib.model_config"}
    found: dict[str, type] = {}
    for module in used:
        if str(module).startswith("lantern_lib."):
            for value in list(vars(sys.modules[module]).values()):
                inside = isinstance(value, type) and value.__module__.startswith("lantern_lib.")
                if inside and getattr(sys.modules[value.__module__], value.__name__, None) is value:
                    found[f"{value.__module__}:{value.__qualname__}"] = value
    return found
