"""Execute one notebook with papermill, within a time limit, and say exactly where it failed."""

from __future__ import annotations

import os
import re
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import nbformat

_ANSI = re.compile(r"\x1b\[[0-9;]*m")
_FRAME = re.compile(r"(?:Cell )?In\[\s*(\d+)\], line (\d+)")


@dataclass(frozen=True)
class Task:
    """What a worker needs. ``limit_seconds`` is for the whole notebook [s]."""

    name: str
    path: Path
    notebook: str
    limit_seconds: float
    source_lines: tuple[str, ...] = ()


@dataclass(frozen=True)
class Failure:
    """Why and where a notebook stopped. ``line`` is of the page's file, or of the cell in an .ipynb."""

    message: str
    cell_index: int | None = None
    line: int | None = None
    code: str = ""
    first_line: int = 1


@dataclass(frozen=True)
class Outcome:
    """The result of one notebook. ``seconds`` is its running time [s]."""

    name: str
    seconds: float
    notebook: str = ""
    failure: Failure | None = None


@dataclass
class _Deadline:
    """The time limit of a notebook, asked by nbclient before each cell."""

    limit_seconds: float
    started: float = field(default_factory=time.monotonic)
    cell_id: str | None = None

    @property
    def elapsed_seconds(self) -> float:
        return time.monotonic() - self.started

    def __call__(self, cell: Any) -> int:
        self.cell_id = cell.get("id")
        # nbclient takes zero for "no limit", so the last cell gets at least a second.
        return max(1, round(self.limit_seconds - self.elapsed_seconds))


def run(task: Task) -> Outcome:
    """Execute a notebook in its own folder and return its outputs, or where it failed.

    Only outputs are taken over from papermill's copy: what it adds to the cells' metadata would
    change the key under which myst-nb looks for the page.
    """
    # Pages run beside each other; the threads of a small matrix product would only wait for each other.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    notebook = nbformat.reads(task.notebook, as_version=4)
    deadline = _Deadline(task.limit_seconds)
    with tempfile.TemporaryDirectory(prefix="lantern-") as sockets:
        failure = _execute(task, notebook, deadline, sockets)
    text = "" if failure else nbformat.writes(notebook)
    return Outcome(task.name, deadline.elapsed_seconds, text, failure)


def _execute(task: Task, notebook: Any, deadline: _Deadline, sockets: str) -> Failure | None:
    """Fill in the outputs of a notebook; return the failure if there is one."""
    # Imported here: a worker process needs papermill, the commands' start does not.
    import papermill
    from nbclient.exceptions import CellTimeoutError
    from papermill.exceptions import PapermillExecutionError

    from lantern_book.kernels import kernel_config

    try:
        executed = papermill.execute_notebook(
            notebook,
            None,
            cwd=str(task.path.parent),
            progress_bar=False,
            timeout_func=deadline,
            record_timing=False,
            # Nothing of a page's kernel is worth waiting for, and one that hangs would not answer.
            shutdown_kernel="immediate",
            config=kernel_config(sockets),
        )
    except PapermillExecutionError as error:
        return _exception_failure(task, notebook, error)
    except CellTimeoutError:
        limit = f"still running after the page's limit of {task.limit_seconds:g} s"
        return _stopped_failure(task, notebook, deadline, limit)
    except Exception as error:  # a kernel that died, an output that is no valid output, a full disk
        text = f"{type(error).__name__}: {str(error).strip().partition(chr(10))[0]}"
        return _stopped_failure(task, notebook, deadline, text)
    _take_outputs(notebook, executed)
    return None


def body_line(source_lines: tuple[str, ...], start: int, code: str) -> int:
    """Return the file's line of a cell's first line of code.

    Parameters
    ----------
    source_lines : tuple of str
        The lines of the page.
    start : int
        Lines before the cell's content, as myst-nb's source map counts; options may come before the code.
    code : str
        The cell's code.
    """
    wanted = code.splitlines()
    for first in range(start, len(source_lines) - len(wanted) + 1):
        if list(source_lines[first : first + len(wanted)]) == wanted:
            return first + 1
    return start + 1


def _take_outputs(notebook: Any, executed: Any) -> None:
    for cell, done in zip(notebook.cells, executed.cells, strict=True):
        if cell.cell_type == "code":
            cell.outputs = done.outputs
            cell.execution_count = done.execution_count
    for key in ("language_info", "widgets"):
        if key in executed.metadata:
            notebook.metadata[key] = executed.metadata[key]


def _exception_failure(task: Task, notebook: Any, error: Any) -> Failure:
    code = notebook.cells[error.cell_index].source
    trace = _ANSI.sub("", "\n".join(error.traceback))
    # Frames of this cell only: the deepest line of the page is where the reader must look.
    lines = [int(line) for count, line in _FRAME.findall(trace) if int(count) == error.exec_count]
    offset = (lines[-1] if lines else _line_that_says(code, error.evalue)) - 1
    message = f"{error.ename}: {_ANSI.sub('', error.evalue)}".strip()
    return _at(task, notebook, error.cell_index, message, offset)


def _stopped_failure(task: Task, notebook: Any, deadline: _Deadline, message: str) -> Failure:
    ids = [cell.get("id") for cell in notebook.cells]
    if deadline.cell_id not in ids:
        return Failure(message)
    return _at(task, notebook, ids.index(deadline.cell_id), message, 0)


def _at(task: Task, notebook: Any, index: int, message: str, offset: int) -> Failure:
    code = notebook.cells[index].source
    source_map = notebook.metadata.get("source_map")
    first = body_line(task.source_lines, source_map[index], code) if source_map else 1
    return Failure(message, index, first + offset, code, first)


def _line_that_says(code: str, message: str) -> int:
    """Return the line of a cell with the text a message begins with, for errors that hide their frames."""
    begin = message.split(":", 1)[0].strip()
    for number, line in enumerate(code.splitlines(), 1):
        if begin and begin in line:
            return number
    return 1
