"""Which tests of a lab can notice a change: from which cells and parameters the values come that a test reads."""

from __future__ import annotations

import ast
import contextlib
import io
from typing import Any

from nbformat.notebooknode import NotebookNode

#: A name bound to one of these says nothing of where it comes from: Python keeps one copy of 0 and of a short word.
_PLAIN = (int, float, str, bytes, type(None))


class _Watched(dict[str, Any]):
    """The names of a running notebook. Reading one notes where its value comes from.

    Python asks a subclass of dict for each global that a function or a cell uses. Taking a name away
    (``pop``, as :meth:`lantern_lib.checks.Task.given` does) is no reading.
    """

    def __init__(self) -> None:
        super().__init__(__name__="__main__")
        self.origins: dict[str, tuple[Any, frozenset[str]]] = {}
        self.noted: set[str] = set()  # where the values come from that the statement has read
        self.touched: set[str] = set()  # the names that it has read
        self.bound: set[str] = set()  # the names that it has bound to a number or a word

    def _note(self, name: str, value: Any) -> None:
        self.touched.add(name)
        bound, origin = self.origins.get(name, (None, frozenset()))
        # A stand-in under the same name is another object and comes from nowhere.
        if bound is value:
            self.noted |= origin

    def __getitem__(self, name: str) -> Any:
        value = super().__getitem__(name)
        self._note(name, value)
        return value

    def __setitem__(self, name: str, value: Any) -> None:
        super().__setitem__(name, value)
        if isinstance(value, _PLAIN):
            self.bound.add(name)
            # The same number as before is another value. A function that comes back from a stand-in is not.
            self.origins.pop(name, None)

    def get(self, name: str, default: Any = None) -> Any:
        """Look a name up as a test does."""
        value = super().get(name, default)
        self._note(name, value)
        return value


_SHOWING = {"print", "len", "sum", "min", "max", "round"}  # what they are given stays as it is


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
    read, parts, computed = set(always), list[tuple[set[str], set[str]]](), set[str]()
    for statement in ast.parse(cell.source).body:
        before, names.noted, names.touched, names.bound = dict(names), set(), set(), set()
        exec(compile(ast.Module([statement], []), f"<{cell.id}>", "exec"), names)
        read |= names.noted
        new = {name for name, value in names.items() if before.get(name, names) is not value} - {"__builtins__"}
        if isinstance(statement, (ast.FunctionDef, ast.ClassDef, ast.Import, ast.ImportFrom)):
            # A definition reads when it is called, and is followed then; a library's part comes from nowhere.
            for name in new:
                names.origins[name] = (dict.get(names, name), always | names.noted)
            continue
        new |= names.bound
        computed |= new
        if not _only_prints(statement):
            # What stands in a branch not taken counts too: other parameters may take it.
            written = {node.id for node in ast.walk(statement) if isinstance(node, ast.Name)}
            parts.append((names.touched | written | new, set(names.noted)))
    for members, reads in _joined(parts, computed & names.keys()):
        for name in members:
            names.origins[name] = (dict.get(names, name), frozenset({name}) if given else always | reads)
    return frozenset(read)


def _joined(parts: list[tuple[set[str], set[str]]], computed: set[str]) -> list[tuple[set[str], set[str]]]:
    """Put the names that stand in one statement into one group: any line may change an object in place."""
    groups = list[tuple[set[str], set[str]]]()
    for members, reads in parts:
        apart, members = [], members & computed
        for others, origins in groups:
            if others & members:
                members, reads = members | others, reads | origins
            else:
                apart.append((others, origins))
        groups = [*apart, (members, reads)]
    return groups


def _only_prints(statement: ast.stmt) -> bool:
    """Say whether a statement prints values and calls nothing that could change one."""
    calls = [node.func for node in ast.walk(statement) if isinstance(node, ast.Call)]
    shows = isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call)
    return shows and all(isinstance(call, ast.Name) and call.id in _SHOWING for call in calls)
