"""Submissions made from the solution, right or with one named misconception, and a quick way to run them."""

from __future__ import annotations

import contextlib
import copy
import io
import tomllib
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import nbformat
from nbformat.notebooknode import NotebookNode

from lantern_grading.paths import LABS, SOLUTIONS
from lantern_grading.reach import is_test


@dataclass(frozen=True)
class Mutant:
    """A wrong answer that people really give.

    ``cell`` is the solution cell it changes by putting ``new`` for the first ``old``; ``says`` is what the
    feedback must contain.
    """

    name: str
    cell: str
    old: str
    new: str
    says: str

    @property
    def task(self) -> str:
        """The task of its cell, for example ``"w1-t4-"``: how the ids of the task's cells begin."""
        return "-".join(self.cell.split("-")[:2]) + "-"

    def applied(self, source: str) -> str:
        """Return the cell's source with the misconception in it; ValueError if it no longer fits."""
        if self.old not in source:
            raise ValueError(f"old must be text of cell {self.cell}, got {self.old!r}. The solution has changed.")
        return source.replace(self.old, self.new, 1)


@dataclass(frozen=True)
class Lab:
    """What tests know of a lab: its points, other parameters that may be given, and its mutants."""

    name: str
    points: float
    given: tuple[dict[str, Any], ...]
    mutants: tuple[Mutant, ...]

    @property
    def prefix(self) -> str:
        """How the ids of its cells begin, for example ``"w1-"``."""
        return f"w{self.name.removeprefix('week')}-"


def load(path: Path) -> Lab:
    """Read what tests know of a lab from the TOML file with its name."""
    data = tomllib.loads(path.read_text(encoding="utf-8"))
    entries = tuple(Mutant(**entry) for entry in data["mutant"])
    return Lab(path.stem, data["points"], tuple(data["given"]), entries)


def solution(assignment: str, source: Path = SOLUTIONS) -> NotebookNode:
    """Read an assignment's solution."""
    return nbformat.read(source / assignment / f"{assignment}.ipynb", as_version=4)


def released(assignment: str, labs: Path = LABS) -> NotebookNode:
    """Read an assignment as students get it."""
    return nbformat.read(labs / assignment / f"{assignment}.ipynb", as_version=4)


def submission(
    assignment: str, mutant: Mutant | None = None, *, labs: Path = LABS, source: Path = SOLUTIONS
) -> NotebookNode:
    """Fill the released lab with the solution's answers, one of them wrong if a mutant is given."""
    answers = {cell.id: cell.source for cell in solution(assignment, source).cells}
    notebook = released(assignment, labs)
    for cell in notebook.cells:
        if cell.metadata.get("nbgrader", {}).get("solution"):
            lines = answers[cell.id].split("\n")
            answer = "\n".join(line for line in lines if not line.strip().startswith("### "))
            cell.source = mutant.applied(answer) if mutant and mutant.cell == cell.id else answer
    return notebook


def run(
    notebook: NotebookNode, replaced: Mapping[str, str] | None = None, only: Collection[str] | None = None
) -> dict[str, Exception]:
    """Run the cells of a lab in this process, without a kernel, and collect what each cell raises.

    Cells that are not graded and stand after the last task (they draw) are left out. Run it in the lab's
    folder: the lab reads its configs from there.

    Parameters
    ----------
    notebook : NotebookNode
        The lab.
    replaced : mapping, optional
        Other sources for some cells, by cell id.
    only : collection of str, optional
        Leave out all test cells but these, by cell id.

    Returns
    -------
    dict of str to Exception
        What went wrong, by cell id.
    """
    namespace: dict[str, Any] = {"__name__": "__main__"}
    raised: dict[str, Exception] = {}
    for cell in copy.deepcopy(notebook.cells):
        if cell.cell_type != "code" or "nbgrader" not in cell.metadata:
            continue
        if only is not None and is_test(cell) and cell.id not in only:
            continue
        source = (replaced or {}).get(cell.id, cell.source)
        try:
            with contextlib.redirect_stdout(io.StringIO()):
                exec(compile(source, f"<{cell.id}>", "exec"), namespace)
        except Exception as error:
            raised[cell.id] = error
    return raised
