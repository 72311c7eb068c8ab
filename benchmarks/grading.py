"""How fast papers are graded: sandbox, student's cells and tests, without the gradebook."""

from __future__ import annotations

import resource
import subprocess
import sys
import time
from collections.abc import Sequence
from typing import Any

from lantern_grading.checker import Pool, grade_one, trial
from lantern_grading.checker.codec import Reference
from lantern_grading.checker.encode import Writer
from lantern_grading.outcome import State
from lantern_grading.sandbox import Bubblewrap, ForkServer, Limits, Process

PAPERS = 20
REPEATS = 3
CALLS = 2000


def processor_seconds() -> float:
    """Processor time of this process and of all its children that have ended."""
    used = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(usage.ru_utime + usage.ru_stime for usage in used)


class Started:
    """Sandboxes in which Python is started; notes what each one used, which a process that is killed takes along."""

    def __init__(self, backend: Bubblewrap) -> None:
        self.name, self.python, self._backend = backend.name, backend.python, backend
        self.seconds: list[float] = []

    def check(self) -> None:
        """Raise if no sandbox can be had."""
        self._backend.check()

    def start(self, command: Sequence[str], **options: Any) -> Process:
        """Start one; when it is closed, its time on the processor is noted."""
        return self._noted(self._backend.start(command, **options))

    def _noted(self, process: Process) -> Process:
        close, ended = process.close, []

        def closing() -> None:
            if not ended:
                ended.append(True)
                self.seconds.append(process.cpu_seconds())
            close()

        process.close = closing  # type: ignore[method-assign]
        return process


class Forked(Started):
    """The same, entered by forks of a loaded program."""

    def fork_server(self, command: Sequence[str], first: bytes) -> ForkServer | None:
        """Start what is forked."""
        return self._backend.fork_server(command, first)

    def enter(self, server: ForkServer, limits: Limits) -> Process:
        """Have a fork enter one; when it is closed, its time on the processor is noted."""
        return self._noted(self._backend.enter(server, limits))


def steady(spare: int, kind: type[Started]) -> dict[str, Any]:
    """Grade small papers one after the other, with so many sandboxes started ahead; the best of some runs."""
    rows = [_steady(spare, kind(Bubblewrap())) for _ in range(REPEATS)]
    best = {name: min(row[name] for row in rows) for name in rows[0]}
    row = {"spare": spare, "program": kind.__name__.lower(), "papers": PAPERS, "runs": REPEATS, **best}
    print(
        f"{row['program']:8} {spare:5} {row['first_seconds']:12.2f} {row['seconds_per_paper']:12.3f} "
        f"{row['cpu_seconds_per_paper']:12.3f} {row['sandbox_cpu_seconds']:12.3f}"
    )
    return row


def _steady(spare: int, backend: Started) -> dict[str, float]:
    exam, limits = trial.exam(), Limits()
    begin = time.perf_counter()
    with Pool(exam, backend, limits, spare=spare) as pool:
        first = grade_one(exam, trial.paper(), backend=backend, limits=limits, pool=pool)
        start_up = time.perf_counter() - begin
        wall, used = time.perf_counter(), _used(pool)
        backend.seconds.clear()
        outcomes = [
            grade_one(exam, trial.paper(f"print({n})"), backend=backend, limits=limits, pool=pool)
            for n in range(PAPERS)
        ]
        wall, used = time.perf_counter() - wall, _used(pool) - used
        inside = sum(backend.seconds) / len(backend.seconds)
    if {outcome.state for outcome in (first, *outcomes)} != {State.GRADED} or first.score != exam.max_score:
        raise RuntimeError("the small papers were not graded as they should be")
    return {
        "first_seconds": start_up,
        "seconds_per_paper": wall / PAPERS,
        "cpu_seconds_per_paper": used / PAPERS + inside,
        "sandbox_cpu_seconds": inside,
    }


def _used(pool: Pool) -> float:
    """Processor time outside of sandboxes, of what is forked into them too."""
    return processor_seconds() + (pool.server.cpu_seconds() if pool.server else 0.0)


def loading() -> dict[str, Any]:
    """Start Python and load what grades a paper; the best of some runs."""
    seconds = []
    for _ in range(REPEATS):
        begin = time.perf_counter()
        subprocess.run([sys.executable, "-c", "import lantern_grading.sandboxed"], check=True)
        seconds.append(time.perf_counter() - begin)
    print(f"Python and what grades a paper: {min(seconds):.2f} s")
    return {"runs": REPEATS, "seconds": min(seconds)}


def calls() -> dict[str, Any]:
    """Call a student's function very often."""
    exam = trial.exam(tests={"s-t1-calls": f"for n in range({CALLS}):\n    assert double(n) == 2 * n"})
    outcome = grade_one(exam, trial.paper(), backend=Bubblewrap(), limits=Limits())
    seconds = outcome.tests[0].seconds / CALLS
    print(f"one call of a student's function: {seconds * 1e6:.0f} µs")
    return {"calls": CALLS, "seconds_per_call": seconds}


def encoding() -> dict[str, Any]:
    """Write a list of numbers as bytes."""
    writer = Writer({}, lambda value: Reference(False, 0))
    begin = time.perf_counter()
    for _ in range(200):
        writer.encode([0.5] * 10_000)
    seconds = (time.perf_counter() - begin) / 200
    print(f"10,000 floats as bytes: {seconds * 1e6:.0f} µs")
    return {"numbers": 10_000, "seconds": seconds}


def measure() -> dict[str, Any]:
    """Run all of it."""
    print(f"Grading {PAPERS} small papers: seconds")
    print(f"{'program':8} {'spare':>5} {'first paper':>12} {'each, wall':>12} {'each, CPU':>12} {'of it inside':>12}")
    papers = [steady(spare, kind) for kind in (Started, Forked) for spare in (0, 1, 2)]
    return {"papers": papers, "loading": loading(), "calls": calls(), "encoding": encoding()}
