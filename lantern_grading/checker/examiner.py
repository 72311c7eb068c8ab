"""The trusted process: a child of the grader that runs the instructor's tests and nothing of the student's.

It is a process of its own so that a test which a student's values drive into a loop, or out of memory, ends
this child and not the grading of a class.
"""

from __future__ import annotations

import ast
import contextlib
import io
import json
import os
import resource
import sys
import tempfile
import time
import types
import warnings
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lantern_grading.checker.codec import CodecError
from lantern_grading.checker.link import ProcessEnded, ProcessLate
from lantern_grading.checker.program import Program, library
from lantern_grading.checker.proxies import Place
from lantern_grading.checker.remotes import Remote
from lantern_grading.checker.scoring import BadScoreError, points_of, run_cell
from lantern_grading.checker.shown import shown, was_late
from lantern_grading.checker.telling import Telling
from lantern_grading.credit import last_value
from lantern_grading.exam import Exam, ExamCell
from lantern_grading.outcome import Trust
from lantern_lib.check_place import PLACE
from lantern_lib.check_time import TimeUp

#: What a test may allocate above what is there when it begins.
MEMORY_BYTES = 2 << 30
MAX_MESSAGE = 2000


@dataclass
class Sitting:
    """What one examiner is to do: which cells to run how far, which tests to run, and what is known before."""

    exam: Exam
    program: Program
    cuts: dict[int, int] = field(default_factory=dict)
    tests: tuple[ExamCell, ...] = ()
    slow: tuple[str, ...] = ()
    cell_seconds: float = 30.0
    files: tuple[tuple[str, bytes], ...] = ()
    output_bytes: int = 1 << 20


def examine(sitting: Sitting, incoming: int, outgoing: int, report: int) -> None:
    """Run a sitting and write what happens, a line of JSON for each event.

    Parameters
    ----------
    sitting : Sitting
        What to do.
    incoming, outgoing, report : int
        Descriptors: from the sandbox, to the sandbox, to the grader.
    """
    with open(report, "w", encoding="utf-8", closefd=False) as out, tempfile.TemporaryDirectory() as folder:

        def tell(**event: Any) -> None:
            out.write(json.dumps(event) + "\n")
            out.flush()

        os.chdir(folder)
        _limit_memory()
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            warnings.simplefilter("ignore")
            _Examiner(sitting, tell).run(incoming, outgoing)


def _limit_memory() -> None:
    with open("/proc/self/statm", encoding="ascii") as file:
        now = int(file.read().split()[0]) * resource.getpagesize()
    most = resource.getrlimit(resource.RLIMIT_AS)[1]
    wanted = now + MEMORY_BYTES
    resource.setrlimit(resource.RLIMIT_AS, (wanted if most == resource.RLIM_INFINITY else min(wanted, most), most))


class _Examiner:
    def __init__(self, sitting: Sitting, tell: Any) -> None:
        self.sitting, self.tell = sitting, tell
        self.base: dict[str, Any] = {"__name__": "__main__"}
        self._moment = -1  # at which the student's names are now
        self._after = False  # whether a test with hidden parts has begun

    def run(self, incoming: int, outgoing: int) -> None:
        """Prepare, let the student's cells run, and run the tests."""
        try:
            self._prepare()
        except Exception as error:
            return self.tell(fault=f"a given cell fails without the student's: {type(error).__name__}: {error}")
        self.place = Place(
            incoming,
            outgoing,
            self.classes,
            self.sitting.cell_seconds,
            self.sitting.slow,
            lambda: self.tell(alive=True),
        )
        try:
            self._cells()
        except (ProcessEnded, ProcessLate, CodecError) as error:
            return self.tell(lost=_limit_of(error), text=str(error), slow=sorted(self.place.slow))
        for test in self.sitting.tests:
            self.tell(begins=test.cell_id)
            start = time.monotonic()
            result = self._test(test)
            self.tell(ends=test.cell_id, **result, seconds=time.monotonic() - start, slow=sorted(self.place.slow))
            if self.place.link.lost:
                return self.tell(lost=_limit_of(self.place.link.lost), text=str(self.place.link.lost))
        return self.tell(done=True)

    def _prepare(self) -> None:
        """Run the instructor's read-only cells here too, and collect the classes that both sides know."""
        for name, content in self.sitting.exam.files:
            path = Path(name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        main = types.ModuleType("__main__")
        sys.modules["__main__"], self.base = main, main.__dict__
        for cell in self.sitting.exam.given:
            exec(compile(cell.source, f"<{cell.cell_id}>", "exec", dont_inherit=True), self.base)
        self._own = {name: self.base[name] for name in self.sitting.exam.asked if name in self.base}
        self.shared_classes = library(self.base)
        self.classes = dict(self.shared_classes)
        for value in list(self.base.values()):
            if isinstance(value, type) and value.__module__ == "__main__":
                self.classes[f"__main__:{value.__qualname__}"] = value

    def _cells(self) -> None:
        sitting, link = self.sitting, self.place.link
        self.place.methods = sitting.exam.methods
        whole, cells = 1 << 30, sitting.program.steps
        steps = [(step.index < 0, step.source, sitting.cuts.get(n, whole)) for n, step in enumerate(cells)]
        self.place.telling = Telling([step.source for step in cells if step.index >= 0])
        deadline = time.monotonic() + 60.0
        while (message := link.receive(deadline))[0] != "hello":
            pass
        order = {
            "files": list(dict([*sitting.exam.files, *sitting.files]).items()),
            "steps": steps,
            "moments": sorted(set(sitting.program.moments.values())),
            "library": sorted(self.shared_classes),
            "cell_seconds": sitting.cell_seconds,
        }
        link.send(("begin", order), time.monotonic() + 30.0)
        last: dict[int, int] = {}
        while True:
            message = link.receive(time.monotonic() + sitting.cell_seconds + 2.0)
            if message[0] == "at" and len(message) == 3 and all(type(part) is int for part in message[1:]):
                last[message[1]] = message[2]
                self.tell(at=message[1:])
            elif message[0] == "ran" and len(message) == 2 and type(message[1]) is list:
                break
        late = [[step, place] for step, place in last.items() if was_late(message[1], step)]
        self.tell(ran=shown(message[1], cells, sitting.output_bytes), late=late)

    def _go_to(self, moment: int) -> None:
        """Let the student's names stand for what they did at a place in the notebook, over there and here."""
        if moment == self._moment:
            return
        found = self.place.ask("at", moment, list(self.sitting.exam.asked), self.sitting.cell_seconds)
        self._moment = moment
        steps = self.sitting.program.steps
        self.place.sources = tuple(step.source for step in steps[:moment] if step.index >= 0)
        self.place.later = tuple(step.source for step in steps[moment:] if step.index >= 0)
        for name in self.sitting.exam.asked:
            self.base.pop(name, None)
            if name in self._own:
                self.base[name] = self._own[name]
            data = found.get(name) if type(found) is dict else None
            if type(data) is bytes:
                with contextlib.suppress(CodecError):
                    value = self.place.link.reader.decode(data)
                    if isinstance(value, Remote):
                        value.__dict__["_label"] = name
                    if isinstance(value, Remote) or name not in self._own:
                        self.base[name] = value

    def _test(self, test: ExamCell) -> dict[str, Any]:
        """Run a test; a second time if its arguments were changed, for what is right to be right without that.

        A function that empties the list it is given could make a test expect nothing.
        """
        self.place.write_back = True
        result = self._once(test)
        touched = bool(self.place.changed)
        self.place.undo()
        if touched and result["score"] and not test.in_place:
            self.place.write_back = False
            again = self._once(test)
            self.place.undo()
            if again["score"] < result["score"]:
                why = "Your function changes what it is given, and its answer is right only for what it leaves."
                result = {**again, "message": f"{again['message']} {why}".strip()}
        return result

    def _once(self, test: ExamCell) -> dict[str, Any]:
        """Run one test cell in names of its own, so that no test depends on which others were run before."""
        message, limit, score = "", "", 0.0
        self.place.cpu_left, self.place.late = 0.0, False
        self.place.said.clear()
        self._after = self._after or test.hidden
        try:
            self._go_to(self.sitting.program.moments[test.cell_id])
            names = {**self.base, PLACE: self.place}
            value = self._kernel(test) if test.trust is Trust.IN_KERNEL else run_cell(test, names)
            score = points_of(value, test)
        except BadScoreError as error:
            return {"score": 0.0, "message": "", "limit": "", "fault": str(error)}
        except TimeUp:
            message = "no answer in time, so it was stopped. Does every loop come to an end?"
        except BaseException as error:  # SystemExit too
            message = self.place.telling.message(
                error, f"<{test.cell_id}>", self.place.said, after=self._after, hidden=test.hidden
            )
            limit = "memory" if isinstance(error, MemoryError) else ""
        limit = limit or ("time" if message and self.place.late else "")
        if self.place.link.lost:
            # A test that passed although the process was lost on the way has not seen all of it.
            score, message = 0.0, message or f"{self.place.link.lost}."
            limit = limit or _limit_of(self.place.link.lost)
        return {"score": score, "message": message[:MAX_MESSAGE], "limit": limit}

    def _kernel(self, test: ExamCell) -> Any:
        tree, last = ast.parse(test.source), last_value(test.source)
        if last is not None:
            tree.body.pop()
        source = [ast.unparse(tree), ast.unparse(last) if last is not None else ""]
        return self.place.ask("kernel_test", source, self.sitting.cell_seconds)


def _limit_of(error: BaseException) -> str:
    return "time" if isinstance(error, ProcessLate | TimeUp) else "process"
