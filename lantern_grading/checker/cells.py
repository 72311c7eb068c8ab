"""Run a notebook's cells the way a kernel would, without one. This module runs inside the sandbox."""

from __future__ import annotations
import __future__

import ast
import base64
import builtins
import io
import re
import signal
import sys
import traceback
from collections.abc import Callable
from typing import Any

#: A feedback page shows no more of a cell than this.
MAX_TEXT = 20_000
MAX_IMAGES = 4
_RUNS_ITS_BODY = {"time", "timeit", "capture", "prun"}


class TimeUp(BaseException):
    """Raised in the middle of work that takes too long. No Exception: the work must not catch it as one."""


class time_limit:  # noqa: N801 (used like a function)
    """Raise TimeUp in the body when its time is up: on the clock, or of the processor if that is given."""

    armed = False

    def __init__(self, wall_seconds: float, cpu_seconds: float = 0.0) -> None:
        self._wall, self._cpu = wall_seconds, cpu_seconds

    @staticmethod
    def install() -> None:
        """Take the two signals; once for a process."""

        def ring(number: int, frame: Any) -> None:
            if time_limit.armed:
                raise TimeUp

        signal.signal(signal.SIGALRM, ring)
        signal.signal(signal.SIGPROF, ring)

    def __enter__(self) -> None:
        time_limit.armed = True
        # It rings again and again, for work that swallows everything that is raised in it.
        signal.setitimer(signal.ITIMER_REAL, self._wall, 0.1)
        if self._cpu:
            signal.setitimer(signal.ITIMER_PROF, self._cpu, 0.1)

    def __exit__(self, *_: object) -> None:
        time_limit.armed = False
        signal.setitimer(signal.ITIMER_REAL, 0)
        if self._cpu:
            signal.setitimer(signal.ITIMER_PROF, 0)


class Sink(io.TextIOBase):
    """What stands for sys.stdout and sys.stderr: keeps the beginning, drops the rest."""

    encoding = "utf-8"  # type: ignore[assignment]

    def __init__(self, name: str, outputs: list[dict[str, Any]], left: list[int]) -> None:
        self._stream, self._outputs, self._left = name, outputs, left
        self.buffer = io.BytesIO()

    def writable(self) -> bool:
        """Say yes."""
        return True

    def write(self, text: str) -> int:
        """Keep a text as long as there is room."""
        if self._left[0] > 0:
            kept = str(text)[: self._left[0]]
            self._left[0] -= len(kept)
            if not self._left[0]:
                kept += "\n[cut: the output of this cell is too long]\n"
            last = self._outputs[-1] if self._outputs else {}
            if last.get("output_type") == "stream" and last["name"] == self._stream:
                last["text"] += kept
            else:
                self._outputs.append({"output_type": "stream", "name": self._stream, "text": kept})
        return len(text)


class Shell:
    """What ``get_ipython()`` gives: it takes any request and does nothing."""

    def __getattr__(self, name: str) -> Any:
        return lambda *args, **kwargs: None


def plain(source: str) -> str:
    """Return a cell without what only IPython understands: magics, shell lines, requests for help.

    Examples
    --------
    >>> plain("%matplotlib inline\\nx = !ls\\nfor i in y:\\n    %time f(i)")
    'pass\\nx = []\\nfor i in y:\\n    f(i)'
    """
    try:
        compile(source, "cell", "exec", ast.PyCF_ONLY_AST, dont_inherit=True)
        return source
    except (SyntaxError, ValueError):
        pass
    lines = source.split("\n")
    first = next((number for number, line in enumerate(lines) if line.strip()), 0)
    found = re.match(r"%%(\w+)\s*(.*)", lines[first]) if lines else None
    if found and found[1] == "writefile":
        name, text = found[2].split()[-1:], "\n".join(lines[first + 1 :])
        return f"open({name[0]!r}, 'w').write({text!r}) and None" if name else ""
    if found:
        lines = lines[: first + 1] + (lines[first + 1 :] if found[1] in _RUNS_ITS_BODY else [])
        lines[first] = ""
    return "\n".join(_plain_line(line) for line in lines)


def _plain_line(line: str) -> str:
    indent, text = re.match(r"(\s*)(.*)", line, re.S).groups()  # type: ignore[union-attr]
    if found := re.match(r"%(time|timeit|prun)\s+(.*)", text):
        return indent + re.sub(r"^(-\w+\s*\d*\s+)+", "", found[2])
    if found := re.match(r"([\w, ]+=\s*)%(time)\s+(.*)", text):
        return indent + found[1] + found[3]
    if found := re.match(r"([\w, ]+=\s*)([!%])", text):
        return indent + found[1] + ("[]" if found[2] == "!" else "None")
    if text.startswith(("%", "!", "?")) or re.fullmatch(r"[\w.]+\?{1,2}", text):
        return f"{indent}pass"
    return line


class Cells:
    """A namespace, and the cells that are run in it.

    Parameters
    ----------
    report : callable
        Told before each statement: the number of the cell and of the statement.
    cell_seconds : float
        A cell is stopped after this time on the clock [seconds].
    """

    def __init__(self, report: Callable[[int, int], None], cell_seconds: float) -> None:
        self.namespace: dict[str, Any] = {"__name__": "__main__", "__builtins__": builtins}
        self.sources: dict[str, list[str]] = {}
        self._report, self._seconds, self._flags = report, cell_seconds, 0
        time_limit.install()
        self.install()
        self._outputs: list[dict[str, Any]] = []
        self._silent = Sink("stdout", [], [0]), Sink("stderr", [], [0])

    def install(self) -> None:
        """Give what a notebook has besides Python, and what stands for a person at the keyboard."""
        builtins.get_ipython = Shell  # type: ignore[attr-defined]
        builtins.display = self._display  # type: ignore[attr-defined]
        builtins.input = _no_input

    def run(self, number: int, source: str, stop: int) -> list[dict[str, Any]]:
        """Run one cell up to a statement; return what it shows, as notebook outputs.

        A cell that fails ends there, and the next one is run all the same.
        """
        self._outputs, left = [], [MAX_TEXT]
        sys.stdout, sys.stderr = (Sink(name, self._outputs, left) for name in ("stdout", "stderr"))
        try:
            with time_limit(self._seconds):
                self._statements(number, source, stop)
                self._images()
        except TimeUp:
            self._failed("TimeLimit", f"stopped after {self._seconds:g} seconds", [])
        except BaseException as error:  # SystemExit too: the rest of the notebook is graded
            self._failed(type(error).__name__, _text_of(error), _frames(error))
        finally:
            self.quiet()
        return self._outputs

    def quiet(self) -> None:
        """Drop what is printed from now on: what a test's hidden inputs make a function print is not shown."""
        sys.stdout, sys.stderr = self._silent

    def _statements(self, number: int, source: str, stop: int) -> None:
        name = f"<cell {number}>"
        text = plain(source)
        self.sources[name] = text.split("\n")
        tree = compile(text, name, "exec", self._flags | ast.PyCF_ONLY_AST, dont_inherit=True)
        for place, node in enumerate(tree.body):
            if place >= stop:
                return self._failed("Stopped", "this line ended or blocked the process; the cell was cut here", [])
            self._report(number, place)
            if isinstance(node, ast.ImportFrom) and node.module == "__future__":
                for alias in node.names:
                    self._flags |= getattr(__future__, alias.name).compiler_flag
            if isinstance(node, ast.Expr) and node is tree.body[-1]:
                code = compile(ast.Expression(node.value), name, "eval", self._flags, dont_inherit=True)
                value = eval(code, self.namespace)
                if value is not None and not text.rstrip().endswith(";"):
                    self.namespace["_"] = value
                    self._display(value, kind="execute_result")
            else:
                exec(compile(ast.Module([node], []), name, "exec", self._flags, dont_inherit=True), self.namespace)
        return None

    def _display(self, *values: Any, kind: str = "display_data", **_: Any) -> None:
        for value in values:
            output: dict[str, Any] = {"output_type": kind, "data": {"text/plain": repr(value)[:MAX_TEXT]}}
            if kind == "execute_result":
                output["execution_count"] = None
            self._outputs.append({**output, "metadata": {}})

    def _images(self) -> None:
        """Show the figures that a cell leaves open, as the inline backend does."""
        pyplot = sys.modules.get("matplotlib.pyplot")
        if pyplot is None:
            return
        for figure in pyplot.get_fignums()[:MAX_IMAGES]:
            file = io.BytesIO()
            pyplot.figure(figure).savefig(file, format="png", dpi=72)
            data = {"image/png": base64.b64encode(file.getvalue()).decode(), "text/plain": "figure"}
            self._outputs.append({"output_type": "display_data", "data": data, "metadata": {}})
        pyplot.close("all")

    def _failed(self, name: str, text: str, frames: list[str]) -> None:
        text = text[:MAX_TEXT]
        self._outputs.append(
            {"output_type": "error", "ename": name, "evalue": text, "traceback": [*frames, f"{name}: {text}"]}
        )


def _no_input(prompt: object = "") -> str:
    raise RuntimeError("input() has nobody to ask when the notebook is graded. Put the value into the cell.")


def _text_of(error: BaseException) -> str:
    try:
        return str(error)
    except BaseException:
        return "(its text could not be read)"


def _frames(error: BaseException) -> list[str]:
    try:
        frames = traceback.extract_tb(error.__traceback__)
        return [f"line {frame.lineno}, in {frame.name}" for frame in frames if frame.filename.startswith("<cell ")][
            -10:
        ]
    except BaseException:
        return []
