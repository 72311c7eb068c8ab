"""In which order the sandbox runs what: the instructor's cells, the student's, and nothing of the tests."""

from __future__ import annotations

import ast
import sys
from dataclasses import dataclass

from lantern_grading.exam import Exam
from lantern_grading.exam_cells import ExamCell, Role, imports
from lantern_grading.outcome import Paper


@dataclass(frozen=True)
class Step:
    """One cell to run: ``index`` is its place in the paper, or -1 for one of the instructor's."""

    index: int
    source: str


def program(exam: Exam, paper: Paper) -> tuple[Step, ...]:
    """Put the instructor's read-only cells and the student's code cells in order.

    A read-only cell runs before the first answer that follows it in the exam, or where the paper has it,
    whichever comes first, and always with the instructor's source. Of the visible tests only the imports are run:
    a student's function may use a name that a test cell imports.

    Parameters
    ----------
    exam : Exam
        The assignment.
    paper : Paper
        What was handed in.

    Returns
    -------
    tuple of Step
        Cells of code, in order.
    """
    order = {cell.cell_id: place for place, cell in enumerate(exam.cells) if cell.role is not Role.FREE}
    free = {cell.source.strip() for cell in exam.cells if cell.role is Role.FREE}
    waiting = [cell for cell in exam.cells if cell.role in (Role.GIVEN, Role.TEST)]
    steps: list[Step] = []

    def catch_up(place: int) -> None:
        while waiting and order[waiting[0].cell_id] < place:
            steps.extend(_given(waiting.pop(0)))

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
    catch_up(len(exam.cells))
    return tuple(steps)


def _given(cell: ExamCell) -> list[Step]:
    source = cell.source if cell.role is Role.GIVEN else imports(cell.public)
    return [Step(-1, source)] if source.strip() else []


def modules(exam: Exam) -> list[str]:
    """Return what the instructor's code imports of the library, numpy and the standard library.

    These are loaded before any student's code is there.
    """
    found: dict[str, None] = {"lantern_lib.labs": None, "numpy": None}
    for cell in (*exam.given, *exam.tests):
        for node in ast.walk(ast.parse(cell.source)):
            names = []
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and node.module:
                names = [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
            for name in names:
                top = name.split(".")[0]
                if top in ("lantern_lib", "numpy") or (name == top and top in sys.stdlib_module_names):
                    found[name] = None
    return list(found)
