"""From a paper to an outcome: sandbox and examiner are started, watched, and started again for what is left."""

from __future__ import annotations

import contextlib
import gc
import json
import os
import select
import signal
import time
import traceback
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from lantern_grading.checker.examiner import Sitting, examine
from lantern_grading.checker.pool import Pool
from lantern_grading.checker.program import program
from lantern_grading.exam import Exam, ExamCell
from lantern_grading.outcome import CellOutput, Outcome, Paper, State, TestResult
from lantern_grading.sandbox import Backend, Limits, Process

#: An examiner that says nothing for so long is ended; later ones of the same paper get less.
_SILENT_AGAIN_SECONDS = 10.0
_REMOVED = "[removed: this message showed a hidden test]"
_ENDED = "Your code ended the process that runs it (os._exit, a crash, or too much memory)."
_WHY = {
    "time": "Your code took too long and did not react when it was stopped.",
    "memory": "Your code took too much memory.",
    "files": "Your code wrote too many files.",
}


def grade_one(exam: Exam, paper: Paper, *, backend: Backend, limits: Limits, pool: Pool | None = None) -> Outcome:
    """Grade one paper.

    Parameters
    ----------
    exam : Exam
        The instructor's source.
    paper : Paper
        What was handed in.
    backend : Backend
        Where the student's code runs.
    limits : Limits
        What it may use.
    pool : Pool, optional
        Sandboxes that are started ahead; with none, they are started when needed.

    Returns
    -------
    Outcome
        A result for each test of the exam, in order, whatever happened.

    Raises
    ------
    SandboxError
        If no sandbox can be had. Then nothing was graded.
    """
    with contextlib.ExitStack() as stack:
        ready = pool or stack.enter_context(Pool(exam, backend, limits, spare=0))
        return _Grading(exam, paper, limits, ready).run()


@dataclass
class _Sat:
    """How a sitting ended."""

    at: tuple[int, int] | None = None
    ran: bool = False
    test: ExamCell | None = None  # begun and not ended
    fault: str = ""
    done: bool = False
    silent: bool = False
    why: str = ""  # of the sandbox: the limit that ended it
    errors: str = ""  # what it wrote before it was ready


@dataclass
class _Grading:
    exam: Exam
    paper: Paper
    limits: Limits
    pool: Pool
    cuts: dict[int, int] = field(default_factory=dict)
    slow: tuple[str, ...] = ()
    results: dict[str, TestResult] = field(default_factory=dict)
    outputs: dict[int, tuple[dict[str, Any], ...]] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)
    hopeless: bool = False  # a fault that keeps the other tests from being run

    def run(self) -> Outcome:
        start = time.monotonic()
        self.program = program(self.exam, self.paper)
        self.steps = self.program.steps
        self.silence = 2 * self.limits.cell_seconds + 5
        self.deadline = start + self.limits.total_seconds
        starts_in_vain = 0
        while (left := self._left()) and not self.hopeless and time.monotonic() < self.deadline:
            sat = self._sit(left)
            if sat.fault:
                self.faults.append(sat.fault)
                self.hopeless = True
            elif sat.done:
                continue
            elif sat.test is not None:
                self._fail(sat.test, self._why(sat), sat.why or ("time" if sat.silent else "process"))
            elif not sat.ran and sat.at is not None:
                self._cut(*sat.at, self._why(sat))
            elif not sat.ran:
                starts_in_vain += 1
                if starts_in_vain == 3:
                    self.hopeless = True
                    said = (sat.errors.strip().splitlines() or ["nothing"])[-1][:300]
                    self.faults.append(f"the sandbox did not start three times in a row. It said: {said}")
        for test in self._left():
            text = (
                "It was not run." if self.hopeless else f"The {self.limits.total_seconds:g} seconds for all were over."
            )
            self._fail(test, text, "" if self.hopeless else "time")
        return self._outcome(time.monotonic() - start)

    def _left(self) -> tuple[ExamCell, ...]:
        return tuple(test for test in self.exam.tests if test.cell_id not in self.results)

    def _sit(self, tests: tuple[ExamCell, ...]) -> _Sat:
        sitting = Sitting(
            self.exam, self.program, dict(self.cuts), tests, self.slow, self.limits.cell_seconds, self.paper.files,
            self.limits.output_bytes,
        )  # fmt: skip
        sat = _Sat()
        with self.pool.take() as process, _examiner(sitting, process) as report:
            for event in self._events(report, sat):
                self._take(event, sat)
            if not sat.done:
                # The watchdog may be a moment behind.
                with contextlib.suppress(Exception):
                    process.wait(0.3)
            sat.why, sat.errors = process.reason, process.errors()
        return sat

    def _events(self, report: int, sat: _Sat) -> Iterator[dict[str, Any]]:
        """Read the examiner's lines until it ends or says nothing for too long."""
        buffer = b""
        waiting = select.poll()
        waiting.register(report, select.POLLIN)
        while True:
            left = min(self.silence, self.deadline + 1 - time.monotonic())
            if left <= 0 or not waiting.poll(left * 1000):
                sat.silent, self.silence = True, min(self.silence, _SILENT_AGAIN_SECONDS)
                return
            part = os.read(report, 1 << 20)
            if not part:
                return
            *lines, buffer = (buffer + part).split(b"\n")
            for line in lines:
                yield json.loads(line)

    def _take(self, event: dict[str, Any], sat: _Sat) -> None:
        if "at" in event:
            sat.at = (event["at"][0], event["at"][1])
        elif "ran" in event:
            sat.ran = True
            for index, shown in event["ran"]:
                self.outputs.setdefault(index, tuple(shown))
            for step, statement in event["late"]:
                self._cut(step, statement, "It took too long.")
        elif "begins" in event:
            sat.test = next(test for test in self.exam.tests if test.cell_id == event["begins"])
        elif "ends" in event and sat.test is not None:
            self._note(sat.test, event)
            sat.test = None
        sat.done = sat.done or "done" in event
        if event.get("fault"):
            if "ends" in event:
                self.faults.append(event["fault"])
            else:
                sat.fault = event["fault"]
        self.slow = tuple(event.get("slow", self.slow))

    def _note(self, test: ExamCell, event: dict[str, Any]) -> None:
        message = event["message"]
        if any(line in message for line in self.exam.secrets):
            message = _REMOVED
        self.results[test.cell_id] = TestResult(
            test.cell_id, event["score"], test.points, test.trust, test.hidden, message, event["limit"],
            event["seconds"],
        )  # fmt: skip
        if event["limit"]:
            self.problems.append(f"{test.cell_id}: {message}")

    def _fail(self, test: ExamCell, message: str, limit: str) -> None:
        self.results[test.cell_id] = TestResult(
            test.cell_id, 0.0, test.points, test.trust, test.hidden, message, limit
        )  # fmt: skip
        self.problems.append(f"{test.cell_id}: {message}")

    def _cut(self, step: int, statement: int, why: str) -> None:
        """From now on, run a cell only up to the statement that ended or blocked the process."""
        if not 0 <= step < len(self.steps):
            step, statement = len(self.steps) - 1, 0
        self.cuts[step] = min(statement, self.cuts.get(step, statement + 1) - 1)
        index = self.steps[step].index
        where = f"cell {index + 1}" if index >= 0 else "a given cell"
        self.problems.append(f"{where} was cut at statement {statement + 1}: {why}")

    @staticmethod
    def _why(sat: _Sat) -> str:
        if sat.silent:
            return "The test did not come to an end with what your code returns."
        return _WHY.get(sat.why, _ENDED)

    def _outcome(self, seconds: float) -> Outcome:
        state = State.NEEDS_PERSON if self.faults else State.WITH_FAILURES if self.problems else State.GRADED
        outputs = tuple(CellOutput(index, self.outputs[index]) for index in sorted(self.outputs))
        tests = tuple(self.results[test.cell_id] for test in self.exam.tests)
        reason = " ".join(self.faults or self.problems)
        return Outcome(state, tests, outputs, self.paper.notes, reason, seconds)


@contextlib.contextmanager
def _examiner(sitting: Sitting, process: Process) -> Iterator[int]:
    """Fork the trusted process; leaving the context ends it."""
    reading, writing = os.pipe()
    with warnings.catch_warnings():
        # Python warns of threads that a child lacks. This one needs none: it reads two pipes and ends.
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if child == 0:
        status = 1
        try:
            os.close(reading)
            gc.freeze()  # a search through what the grader has loaded would copy all of it
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            examine(sitting, process.stdout.fileno(), process.stdin.fileno(), writing)
            status = 0
        except BaseException:
            with contextlib.suppress(BaseException):
                line = json.dumps({"fault": f"the examiner failed: {traceback.format_exc(limit=-3)}"})
                os.write(writing, line.encode() + b"\n")
        finally:
            os._exit(status)
    os.close(writing)
    try:
        yield reading
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        os.close(reading)
