"""What grading passes around: a paper that was handed in, and what became of it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any


class State(StrEnum):
    """How a submission ended. Each one ends in exactly one of these."""

    GRADED = "graded"
    WITH_FAILURES = "graded with failures"  # something broke on the way: a dead kernel, a limit; the scores stand
    REJECTED = "rejected"  # nothing in it can be graded; `Outcome.reason` says why
    NEEDS_PERSON = "needs a person"  # the grader or the exam is at fault, not the student


class Trust(StrEnum):
    """Where a test ran."""

    ISOLATED = "isolated"  # in a trusted process; the student's code answered over a pipe
    IN_KERNEL = "in-kernel"  # beside the student's code, in a hardened kernel


@dataclass(frozen=True)
class Cell:
    """One cell of a paper, in the order of the notebook.

    ``cell_id`` is the exam's id of an answer, or empty for a cell that the student added.
    """

    cell_id: str
    kind: str  # "code" or "markdown"
    source: str


@dataclass(frozen=True)
class Paper:
    """A submission after intake: cells and other files, as data, with what was repaired."""

    cells: tuple[Cell, ...]
    files: tuple[tuple[str, bytes], ...] = ()  # relative POSIX path and content; never a notebook, never a link
    notes: tuple[str, ...] = ()  # one sentence for each repair


@dataclass(frozen=True)
class TestResult:
    """One graded test cell."""

    __test__ = False  # pytest: this is no test class

    grade_id: str
    score: float
    max_score: float
    trust: Trust
    hidden: bool
    message: str = ""  # what the student may read; empty if it passed
    limit: str = ""  # the limit that ended it ("time", "memory", "output" ...), or empty
    seconds: float = 0.0


@dataclass(frozen=True)
class CellOutput:
    """What a cell of the student showed, as nbformat outputs: text and PNG only, capped."""

    index: int  # position in `Paper.cells`
    outputs: tuple[dict[str, Any], ...]


@dataclass(frozen=True)
class Outcome:
    """What became of one submission."""

    state: State
    tests: tuple[TestResult, ...] = ()
    outputs: tuple[CellOutput, ...] = ()
    notes: tuple[str, ...] = ()
    reason: str = ""  # for REJECTED and NEEDS_PERSON, and what failed for WITH_FAILURES
    seconds: float = 0.0

    @property
    def score(self) -> float:
        """Sum of the automatic scores."""
        return sum(test.score for test in self.tests)
