"""An assignment as it was released: what a submission is matched with, and what the gradebook is told."""

from __future__ import annotations

import copy
import hashlib
import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lantern_grading.exam import Role
from lantern_grading.paths import SOLUTIONS

if TYPE_CHECKING:  # workers read templates and never make one: they need not load nbgrader
    from nbformat.notebooknode import NotebookNode

__all__ = ["Role", "Template", "TemplateCell", "load"]
_MAX_FILE_BYTES = 5_000_000


@dataclass(frozen=True)
class TemplateCell:
    """One cell of the release. ``saved`` is what nbgrader keeps in its gradebook: it has the hidden tests."""

    cell_id: str
    kind: str
    role: Role
    source: str
    saved: str = ""
    checksum: str = ""
    points: float = 0.0
    drawn: bool = False  # its values may differ from student to student


@dataclass(frozen=True)
class Template:
    """All cells of a release in their order, its other files, and a hash of the source it was made from."""

    assignment: str
    cells: tuple[TemplateCell, ...]
    files: tuple[tuple[str, bytes], ...]
    exam_hash: str

    @property
    def max_score(self) -> float:
        """Points of all graded cells."""
        return sum(cell.points for cell in self.cells)

    def of(self, *roles: Role) -> tuple[TemplateCell, ...]:
        """Return the cells with one of these roles, in order."""
        return tuple(cell for cell in self.cells if cell.role in roles)

    @property
    def parameters(self) -> str:
        """Name of the cell whose values may differ from student to student; empty without one."""
        return next((cell.cell_id for cell in self.cells if cell.drawn), "")

    def given_to(self, cell_id: str, source: str) -> Template:
        """Return the release of a student who has other parameters, under a hash of its own.

        Parameters
        ----------
        cell_id, source : str
            The cell, as :func:`lantern_grading.variants.own_cell` makes it; with an empty source all stays [text].

        Returns
        -------
        Template
            With one read-only cell more, of which the gradebook is told nothing: it belongs to one student.
        """
        if not source:
            return self
        place = next(place for place, cell in enumerate(self.cells) if cell.drawn)
        own = TemplateCell(cell_id, "code", Role.GIVEN, source, drawn=True)
        digest = hashlib.sha256(f"{self.exam_hash}\0{cell_id}\0{source}".encode()).hexdigest()
        return replace(self, cells=(*self.cells[: place + 1], own, *self.cells[place + 1 :]), exam_hash=digest)


def _prepared(notebook: NotebookNode, assignment: str, steps: list[Any]) -> NotebookNode:
    from traitlets.config import Config

    from lantern_grading.preprocessors import autograde_defaults

    config = Config()
    autograde_defaults(config)
    made = copy.deepcopy(notebook)
    for step in steps:
        made, _ = step(config=config).preprocess(made, {"nbgrader": {"assignment": assignment}})
    return made


def _role(cell: NotebookNode) -> Role:
    about = cell.metadata.get("nbgrader", {})
    if about.get("solution"):
        return Role.WRITTEN if about.get("grade") else Role.ANSWER
    if about.get("grade"):
        return Role.TEST
    return Role.GIVEN if about.get("locked") else Role.FREE


def _other_files(folder: Path) -> tuple[tuple[str, bytes], ...]:
    found = []
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder)
        if path.is_file() and path.suffix != ".ipynb" and not any(part.startswith((".", "__")) for part in name.parts):
            if path.stat().st_size > _MAX_FILE_BYTES:
                raise ValueError(f"files of {folder} must have {_MAX_FILE_BYTES:,} bytes at most, {name} has more.")
            found.append((name.as_posix(), path.read_bytes()))
    return tuple(found)


def load(assignment: str, source: Path = SOLUTIONS) -> Template:
    """Read an assignment's source and make its release in memory, with nbgrader's own steps.

    Parameters
    ----------
    assignment : str
        Name of its folder, for example ``"week1"`` [text].
    source : Path
        Where solutions lie.

    Returns
    -------
    Template
        The release, and what nbgrader saves of it.

    Raises
    ------
    ValueError
        If there is no such assignment, or if two graded cells have one name.
    """
    import nbformat
    from nbgrader.preprocessors import IncludeHeaderFooter, SaveCells

    from lantern_grading.preprocessors import release_preprocessors

    path = source / assignment / f"{assignment}.ipynb"
    if not assignment or Path(assignment).name != assignment or not path.is_file():
        raise ValueError(f"assignment must be a folder of {source} with its notebook, got {assignment!r}.")
    notebook = nbformat.read(path, as_version=4)
    steps = release_preprocessors()
    middle = steps.index(SaveCells)
    saved = _prepared(notebook, assignment, [step for step in steps[:middle] if step is not IncludeHeaderFooter])
    released = _prepared(saved, assignment, steps[middle + 1 :])
    cells = []
    for before, after in zip(saved.cells, released.cells, strict=True):
        about = after.metadata.get("nbgrader", {})
        role = _role(after)
        cells.append(
            TemplateCell(
                cell_id=about.get("grade_id") or after.get("id", ""),
                kind=after.cell_type,
                role=role,
                source=after.source,
                saved="" if role is Role.FREE else before.source,
                checksum=before.metadata.get("nbgrader", {}).get("checksum", ""),
                points=float(about.get("points") or 0) if about.get("grade") else 0.0,
                drawn="parameters" in after.metadata.get("tags", []),
            )
        )
    names = [cell.cell_id for cell in cells]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise ValueError(f"cells of {path.name} must have names of their own, got {twice[0]!r} twice.")
    files = _other_files(path.parent)
    return Template(assignment, tuple(cells), files, _hash(notebook, files))


def _hash(notebook: NotebookNode, files: tuple[tuple[str, bytes], ...]) -> str:
    """Name this version of the exam: another one means that everybody is graded again."""
    told = [
        [cell.get("id"), cell.cell_type, cell.source, cell.metadata.get("nbgrader"), cell.metadata.get("tags")]
        for cell in notebook.cells
    ]
    digest = hashlib.sha256(json.dumps(told, sort_keys=True).encode())
    for name, content in files:
        digest.update(f"\0{name}\0{len(content)}\0".encode() + content)
    return digest.hexdigest()
