"""How fast papers are graded: sandbox, student's cells and tests, without the gradebook."""

from __future__ import annotations

import resource
import time
from typing import Any

from lantern_grading.checker import Pool, grade_one, trial
from lantern_grading.checker.codec import Reference
from lantern_grading.checker.encode import Writer
from lantern_grading.outcome import State
from lantern_grading.sandbox import Limits, choose

PAPERS = 20
CALLS = 2000


def processor_seconds() -> float:
    """Processor time of this process and of all its children that have ended."""
    used = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(usage.ru_utime + usage.ru_stime for usage in used)


def steady(spare: int) -> dict[str, Any]:
    """Grade small papers one after the other, with so many sandboxes started ahead."""
    exam, backend, limits = trial.exam(), choose(), Limits()
    begin = time.perf_counter()
    with Pool(exam, backend, limits, spare=spare) as pool:
        first = grade_one(exam, trial.paper(), backend=backend, limits=limits, pool=pool)
        start_up = time.perf_counter() - begin
        wall, used = time.perf_counter(), processor_seconds()
        outcomes = [
            grade_one(exam, trial.paper(f"print({n})"), backend=backend, limits=limits, pool=pool)
            for n in range(PAPERS)
        ]
        wall, used = time.perf_counter() - wall, processor_seconds() - used
    if {outcome.state for outcome in (first, *outcomes)} != {State.GRADED} or first.score != exam.max_score:
        raise RuntimeError("the small papers were not graded as they should be")
    row = {
        "spare": spare,
        "papers": PAPERS,
        "first_seconds": start_up,
        "seconds_per_paper": wall / PAPERS,
        "cpu_seconds_per_paper": used / PAPERS,
    }
    print(f"{spare:5} {start_up:12.2f} {row['seconds_per_paper']:12.3f} {row['cpu_seconds_per_paper']:12.3f}")
    return row


def calls() -> dict[str, Any]:
    """Call a student's function very often."""
    exam = trial.exam(tests={"s-t1-calls": f"for n in range({CALLS}):\n    assert double(n) == 2 * n"})
    outcome = grade_one(exam, trial.paper(), backend=choose(), limits=Limits())
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
    print(f"{'spare':>5} {'first paper':>12} {'each, wall':>12} {'each, CPU':>12}")
    return {"papers": [steady(spare) for spare in (0, 1, 2)], "calls": calls(), "encoding": encoding()}
