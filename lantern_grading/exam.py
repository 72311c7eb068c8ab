"""An assignment as its instructor wrote it: the only place from which tests, points and order are taken."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from lantern_grading.credit import students_word
from lantern_grading.exam_cells import ExamCell, ExamError, Role, cell_of, classes, defined, require_python
from lantern_grading.outcome import Cell, Paper
from lantern_grading.paths import SOLUTIONS
from lantern_grading.regions import HIDDEN, secret_lines


@dataclass(frozen=True)
class Exam:
    """An assignment: its cells in order, and the files beside its notebook.

    Raises
    ------
    ExamError
        For ids that stand twice, points that are no numbers of 0 or more, a test that is no Python,
        or a test whose last line gives what the student's function returns as points.
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
                require_python(cell)
        for test in self.tests:
            word = students_word(test.source, [cell.source for cell in self.given], self.asked)
            if word:
                raise ExamError(
                    f"{test.cell_id} must end in a number of its own or in nothing, got {word:.80}: the student's "
                    "function would say how many points it gets. Compare the value, or end the line with a semicolon."
                )
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
        return tuple(dict.fromkeys(name for cell in self.answers for name in defined(cell.answer)))

    @cached_property
    def methods(self) -> dict[str, frozenset[str] | None]:
        """Classes that the reference answers define, and the names in each; None for one with other parents.

        Only such methods of a student's object are called: any other could be told the expected value and agree.
        """
        return {name: names for cell in self.answers for name, names in classes(cell.answer)}

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
    return Exam(assignment, tuple(cell_of(cell) for cell in notebook.cells), tuple(files))
