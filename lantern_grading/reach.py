"""Which tests of a lab can notice a change: from which cells and parameters the values come that a test reads."""

from __future__ import annotations

import ast
import contextlib
import io
from typing import Any

from nbformat.notebooknode import NotebookNode


class _Watched(dict[str, Any]):
    """The names of a running notebook. Reading one notes where its value comes from.

    Python asks a subclass of dict for each global that a function or a cell uses. Taking a name away
    (``pop``, as :meth:`lantern_lib.checks.Task.given` does) is no reading.
    """

    def __init__(self) -> None:
        super().__init__(__name__="__main__")
        self.origins: dict[str, tuple[Any, frozenset[str]]] = {}
        self.noted: set[str] = set()

    def _note(self, name: str, value: Any) -> None:
        bound, origin = self.origins.get(name, (None, frozenset()))
        # A stand-in under the same name is another object and comes from nowhere.
        if bound is value:
            self.noted |= origin

    def __getitem__(self, name: str) -> Any:
        value = super().__getitem__(name)
        self._note(name, value)
        return value

    def get(self, name: str, default: Any = None) -> Any:
        """Look a name up as a test does."""
        value = super().get(name, default)
        self._note(name, value)
        return value


def is_test(cell: NotebookNode) -> bool:
    """Say whether a cell is graded by running it."""
    about = cell.metadata.get("nbgrader", {})
    return cell.cell_type == "code" and bool(about.get("grade")) and not about.get("solution")


def reach(notebook: NotebookNode) -> dict[str, frozenset[str]]:
    """Run a lab once and find what each test cell depends on.

    Parameters
    ----------
    notebook : NotebookNode
        The solution, in whose folder the process is. Every cell must run.

    Returns
    -------
    dict of str to frozenset of str
        For each test cell's id, the ids of the solution cells and the names of the parameters whose values
        it read, itself or through functions and names of other cells. What is not in it cannot change the
        test's outcome, unless a cell changes a shared object in place.
    """
    names = _Watched()
    found: dict[str, frozenset[str]] = {}
    for cell in notebook.cells:
        if cell.cell_type != "code" or "nbgrader" not in cell.metadata:
            continue
        with contextlib.redirect_stdout(io.StringIO()):
            read = _follow(cell, names)
        if is_test(cell):
            found[cell.id] = read
    return found


def _follow(cell: NotebookNode, names: _Watched) -> frozenset[str]:
    """Run a cell statement by statement, and enter where the names that it binds come from."""
    given = "parameters" in cell.metadata.get("tags", [])
    always = frozenset({cell.id} if cell.metadata["nbgrader"].get("solution") else ())
    read, computed = set(always), set()
    for statement in ast.parse(cell.source).body:
        before, names.noted = dict(names), set()
        exec(compile(ast.Module([statement], []), f"<{cell.id}>", "exec"), names)
        read |= names.noted
        bound = {name for name, value in names.items() if before.get(name, names) is not value} - {"__builtins__"}
        if isinstance(statement, (ast.FunctionDef, ast.ClassDef, ast.Import, ast.ImportFrom)):
            # A definition reads when it is called, and is followed then; a library's part comes from nowhere.
            for name in bound:
                names.origins[name] = (dict.get(names, name), always | names.noted)
        else:
            computed |= bound
    for name in computed & names.keys():
        # What a cell computes may have been changed in place by any later line of it.
        names.origins[name] = (dict.get(names, name), frozenset({name}) if given else frozenset(read))
    return frozenset(read)
