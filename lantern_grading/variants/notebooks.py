"""The notebooks of one student: a lab, or its exam, with what the student was given written into it."""

from __future__ import annotations

import copy
import re
import shutil
from pathlib import Path
from typing import Any

import nbformat
from nbformat.notebooknode import NotebookNode

from lantern_grading.paths import LABS, SOLUTIONS
from lantern_grading.variants import COURSE, give, own_cell, recorded

#: The tag that papermill gives to the cell in which it writes parameters.
INJECTED = "injected-parameters"


def inject(notebook: NotebookNode, values: dict[str, Any]) -> NotebookNode:
    """Return a lab with parameters written into it as papermill does: in a cell after the tagged one.

    Parameters
    ----------
    notebook : NotebookNode
        A lab or its solution; it stays as it is.
    values : dict of str to value
        The parameters; without any, the copy has no such cell.

    Returns
    -------
    NotebookNode
        A copy. Its new cell is locked and named like the lab's others, ``wN-given``; no other cell is changed.
    """
    notebook = without_injected(notebook)
    if not values:
        return notebook
    from nbgrader.utils import compute_checksum

    tagged = (i for i, cell in enumerate(notebook.cells) if "parameters" in cell.metadata.get("tags", []))
    place = next(tagged)
    name, source = own_cell(notebook.cells[place].id, values)
    cell = nbformat.v4.new_code_cell(source, id=name)
    about = {"grade": False, "grade_id": name, "locked": True, "schema_version": 3, "solution": False, "task": False}
    cell.metadata.update(tags=[INJECTED], editable=False, deletable=False, nbgrader=about)
    about["checksum"] = compute_checksum(cell)
    cell.metadata["nbgrader"] = about
    notebook.cells.insert(place + 1, cell)
    return notebook


def without_injected(notebook: NotebookNode) -> NotebookNode:
    """Return a copy of a notebook without cells that papermill or :func:`inject` wrote."""
    notebook = copy.deepcopy(notebook)
    notebook.cells = [cell for cell in notebook.cells if not _is_injected(cell)]
    return notebook


def _is_injected(cell: NotebookNode) -> bool:
    name = cell.metadata.get("nbgrader", {}).get("grade_id", "")
    return INJECTED in cell.metadata.get("tags", []) or bool(re.fullmatch(r"w\d+-given", name))


def exam_source(week: str, student: str, *, course: Path = COURSE, source: Path = SOLUTIONS) -> NotebookNode:
    """Return the exam of one student: the lab's source with what the student was given.

    Parameters
    ----------
    week, student : str
        The lab and the student's id [text].
    course : Path
        The class's folder, where the draws are.
    source : Path
        The folder of solutions.

    Returns
    -------
    NotebookNode
        With solutions and hidden tests; the source itself for a student without a draw.
    """
    return inject(nbformat.read(source / week / f"{week}.ipynb", as_version=4), recorded(week, student, course))


def write(week: str, student: str, out: Path, *, course: Path = COURSE, labs: Path = LABS) -> Path:
    """Write a student's instance of a lab, with its other files, and return its folder.

    Parameters
    ----------
    week, student : str
        The lab and the student's id [text].
    out : Path
        Where instances go, as ``<student>/<week>/``.
    course : Path
        The class's folder, where the draw is kept.
    labs : Path
        Where the released labs are.

    Returns
    -------
    Path
        The folder.

    Raises
    ------
    ValueError
        If a notebook with other content lies there: it may be somebody's work.
    """
    values = give(week, student, course)
    notebook = inject(nbformat.read(labs / week / f"{week}.ipynb", as_version=4), values)
    folder = out / student / week
    path = folder / f"{week}.ipynb"
    text = nbformat.writes(notebook) + "\n"
    if path.exists() and path.read_text(encoding="utf-8") != text:
        raise ValueError(f"{path} must not exist or be the same; it differs. Move it away, or name another folder.")
    shutil.copytree(labs / week, folder, dirs_exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return folder
