"""One cell of an assignment: what it is for, what students have of it, and what it must be like."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from typing import Any

from lantern_grading.outcome import Trust
from lantern_grading.regions import HIDDEN, split, without

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


def cell_of(cell: Any) -> ExamCell:
    """Read one cell of a notebook; ExamError for a tag that stands where it means nothing."""
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


def require_python(cell: ExamCell) -> None:
    """Raise ExamError unless a cell is code that can be compiled."""
    if cell.kind != "code":
        raise ExamError(f"{cell.cell_id} is a {cell.role} cell and must hold code, got {cell.kind}.")
    try:
        compile(cell.source, f"<{cell.cell_id}>", "exec", dont_inherit=True)
    except (SyntaxError, ValueError) as error:
        raise ExamError(f"{cell.cell_id} must be plain Python, got {error}. Magics have no place in it.") from None


def defined(source: str) -> Iterable[str]:
    """Yield the names that a cell defines at its top level."""
    for node in _tree(source).body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            for target in targets:
                yield from (part.id for part in ast.walk(target) if isinstance(part, ast.Name))


def classes(source: str) -> Iterable[tuple[str, frozenset[str] | None]]:
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
