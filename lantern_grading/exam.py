"""An assignment as its instructor wrote it: the only place from which tests, points and order are taken."""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cached_property
from pathlib import Path
from typing import Any

from lantern_grading.outcome import Cell, Paper, Trust
from lantern_grading.paths import SOLUTIONS
from lantern_grading.regions import HIDDEN, secret_lines, split, without

#: The tag of a test cell that has to run beside the student's code. Only the source's tags are read.
IN_KERNEL_TAG = "lantern-in-kernel"
#: The tag of a test cell whose functions are asked to change what they are given.
IN_PLACE_TAG = "lantern-in-place"
_MARKER = re.compile(r"^\s*### (BEGIN|END) (SOLUTION|HIDDEN TESTS|MARK SCHEME)\s*$", re.M)


class ExamError(ValueError):
    """The assignment itself is at fault; nothing can be graded with it."""


class Role(StrEnum):
    """What a cell is for."""

    GIVEN = "given"  # read-only code that everybody has
    ANSWER = "answer"  # code that the student writes
    TEST = "test"  # graded by machine
    WRITTEN = "written"  # graded by hand
    FREE = "free"  # anything without a mark of nbgrader's


@dataclass(frozen=True)
class ExamCell:
    """One cell of the source."""

    cell_id: str
    role: Role
    kind: str  # "code" or "markdown"
    source: str  # with solutions and hidden tests
    points: float = 0.0
    trust: Trust = Trust.ISOLATED
    in_place: bool = False  # whether what a function does to its arguments is part of the answer
    drawn: bool = False  # its values may differ from student to student

    @property
    def task(self) -> str:
        """The task, for example ``"t4"``; the whole id where it names none."""
        found = re.search(r"-(t\d+)-", self.cell_id)
        return found[1] if found else self.cell_id

    @cached_property
    def public(self) -> str:
        """What students have of it: without hidden tests."""
        return without(self.source, HIDDEN)

    @property
    def hidden(self) -> bool:
        """Whether any part of the test is hidden."""
        return bool(split(self.source, HIDDEN)[1])

    @cached_property
    def answer(self) -> str:
        """The reference answer: the source without the lines that mark regions."""
        return "\n".join(line for line in self.source.split("\n") if not _MARKER.match(line))


@dataclass(frozen=True)
class Exam:
    """An assignment: its cells in order, and the files beside its notebook.

    Raises
    ------
    ExamError
        For ids that stand twice, points that are no numbers of 0 or more, a test that is no Python.
    """

    name: str
    cells: tuple[ExamCell, ...]
    files: tuple[tuple[str, bytes], ...] = ()

    def __post_init__(self) -> None:
        seen: set[str] = set()
        for cell in self.cells:
            if cell.role is not Role.FREE and not cell.cell_id:
                raise ExamError(f"cell_id of a {cell.role} cell of {self.name} is empty. Give it an id.")
            if cell.role is not Role.FREE and cell.cell_id in seen:
                raise ExamError(f"cell_id must be unique in {self.name}, got {cell.cell_id!r} twice. Rename one.")
            seen.add(cell.cell_id)
            if not (isinstance(cell.points, int | float) and math.isfinite(cell.points) and cell.points >= 0):
                raise ExamError(f"points of {cell.cell_id} must be a number of 0 or more, got {cell.points!r}.")
            if cell.role in (Role.TEST, Role.GIVEN):
                _require_python(cell)
        if not self.tests:
            raise ExamError(f"{self.name} must have a test cell, got none. Mark one as autograded.")

    @cached_property
    def tests(self) -> tuple[ExamCell, ...]:
        """The cells that are graded by machine, in order."""
        return self._of(Role.TEST)

    @cached_property
    def answers(self) -> tuple[ExamCell, ...]:
        """The cells with code that the student writes, in order."""
        return self._of(Role.ANSWER)

    @cached_property
    def given(self) -> tuple[ExamCell, ...]:
        """The read-only code, in order."""
        return self._of(Role.GIVEN)

    @cached_property
    def secrets(self) -> frozenset[str]:
        """Lines of hidden tests that stand nowhere else: no message to a student may hold one."""
        return frozenset(secret_lines([{"source": cell.source} for cell in self.cells], HIDDEN))

    @property
    def max_score(self) -> float:
        """Points of all tests."""
        return sum(cell.points for cell in self.tests)

    @cached_property
    def asked(self) -> tuple[str, ...]:
        """Names that the reference answers define: what tests may use of a student's."""
        return tuple(dict.fromkeys(name for cell in self.answers for name in _defined(cell.answer)))

    @cached_property
    def methods(self) -> dict[str, frozenset[str] | None]:
        """Classes that the reference answers define, and the names in each; None for one with other parents.

        Only such methods of a student's object are called: any other could be told the expected value and agree.
        """
        return {name: names for cell in self.answers for name, names in _classes(cell.answer)}

    def _of(self, role: Role) -> tuple[ExamCell, ...]:
        return tuple(cell for cell in self.cells if cell.role is role)

    def given_to(self, cell_id: str, source: str) -> Exam:
        """Return the exam of a student who has other parameters: with one more cell after the lab's own.

        Parameters
        ----------
        cell_id, source : str
            The cell, as :func:`lantern_grading.variants.own_cell` makes it; with an empty source the exam stays [text].

        Returns
        -------
        Exam
            With the cell among those that everybody has.
        """
        if not source:
            return self
        place = next((place for place, cell in enumerate(self.cells) if cell.drawn), None)
        if place is None:
            raise ExamError(f"{self.name} must have a cell with the tag 'parameters', got none: nothing can be given.")
        own = ExamCell(cell_id, Role.GIVEN, "code", source)
        return replace(self, cells=(*self.cells[: place + 1], own, *self.cells[place + 1 :]))

    def reference(self) -> Paper:
        """Return the reference answers as a paper."""
        return Paper(tuple(Cell(cell.cell_id, cell.kind, cell.answer) for cell in self.answers), self.files)


def read(assignment: str, source: Path = SOLUTIONS) -> Exam:
    """Read an assignment's source.

    Parameters
    ----------
    assignment : str
        The folder's name [text].
    source : Path
        Where the folders lie.

    Returns
    -------
    Exam
        Checked, but for what only running it can show: see ``checker.reference.require_sound``.

    Raises
    ------
    ExamError
        If it cannot be graded with.
    """
    import nbformat  # slow to load, and who receives an exam that was read does not need it

    path = source / assignment / f"{assignment}.ipynb"
    if not path.is_file():
        raise ExamError(f"assignment must be a folder of {source} with its notebook, got {assignment!r}.")
    return of(assignment, nbformat.read(path, as_version=4), path.parent)


def of(assignment: str, notebook: Any, folder: Path | None = None) -> Exam:
    """Make an exam of a notebook: the source as it lies there, or the one of a single student.

    Parameters
    ----------
    assignment : str
        The exam's name [text].
    notebook : NotebookNode
        With solutions and hidden tests.
    folder : Path, optional
        Where its other files lie; without, it has none.

    Returns
    -------
    Exam
        As :func:`read` returns it.

    Raises
    ------
    ExamError
        If it cannot be graded with.
    """
    files = [
        (file.relative_to(folder).as_posix(), file.read_bytes())
        for file in sorted(folder.rglob("*") if folder else ())
        if file.is_file() and not file.is_symlink() and file.suffix != ".ipynb" and "__pycache__" not in file.parts
    ]
    return Exam(assignment, tuple(_cell(cell) for cell in notebook.cells), tuple(files))


def _cell(cell: Any) -> ExamCell:
    marks = cell.metadata.get("nbgrader", {})
    role = Role.FREE
    if marks.get("grade") and not marks.get("solution"):
        role = Role.TEST
    elif marks.get("solution"):
        role = Role.WRITTEN if marks.get("grade") or cell.cell_type != "code" else Role.ANSWER
    elif marks.get("locked") and cell.cell_type == "code":
        role = Role.GIVEN
    tags = [tag for tag in cell.metadata.get("tags", []) if tag in (IN_KERNEL_TAG, IN_PLACE_TAG)]
    if tags and role is not Role.TEST:
        raise ExamError(f"{tags[0]} must stand at a test cell, got it at {cell.get('id')!r}. Take it away.")
    return ExamCell(
        marks.get("grade_id") or cell.get("id", ""),
        role,
        "code" if cell.cell_type == "code" else "markdown",
        cell.source,
        marks.get("points", 0.0) if marks.get("grade") else 0.0,
        Trust.IN_KERNEL if IN_KERNEL_TAG in tags else Trust.ISOLATED,
        IN_PLACE_TAG in tags,
        "parameters" in cell.metadata.get("tags", []),
    )


def _require_python(cell: ExamCell) -> None:
    if cell.kind != "code":
        raise ExamError(f"{cell.cell_id} is a {cell.role} cell and must hold code, got {cell.kind}.")
    try:
        compile(cell.source, f"<{cell.cell_id}>", "exec", dont_inherit=True)
    except (SyntaxError, ValueError) as error:
        raise ExamError(f"{cell.cell_id} must be plain Python, got {error}. Magics have no place in it.") from None


def _defined(source: str) -> Iterable[str]:
    """Yield the names that a cell defines at its top level."""
    for node in _tree(source).body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            for target in targets:
                yield from (part.id for part in ast.walk(target) if isinstance(part, ast.Name))


def _classes(source: str) -> Iterable[tuple[str, frozenset[str] | None]]:
    """Yield the classes that a cell defines, with what they and their objects have."""
    for node in ast.walk(_tree(source)):
        if isinstance(node, ast.ClassDef):
            parts = list(ast.walk(node))
            names = {part.name for part in parts if isinstance(part, ast.FunctionDef | ast.AsyncFunctionDef)}
            names |= {part.id for part in parts if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store)}
            names |= {
                part.attr for part in parts if isinstance(part, ast.Attribute) and isinstance(part.ctx, ast.Store)
            }
            yield node.name, None if node.bases or node.keywords else frozenset(names)


def _tree(source: str) -> ast.Module:
    try:
        return ast.parse(source)
    except SyntaxError:
        return ast.Module([], [])


def imports(source: str) -> str:
    """Return only the import statements at the top level of a cell.

    Parameters
    ----------
    source : str
        Python [text].

    Returns
    -------
    str
        Python [text].

    Examples
    --------
    >>> imports("import math\\nx = 1\\nfrom os import path")
    'import math\\nfrom os import path'
    """
    nodes = [node for node in ast.parse(source).body if isinstance(node, ast.Import | ast.ImportFrom)]
    return "\n".join(ast.unparse(node) for node in nodes)
