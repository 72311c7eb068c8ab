"""How each submission stands: one attempt after the other, and what the newest one means."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import Connection, func, select

from lantern_grading.database import ATTEMPTS
from lantern_grading.outcome import Outcome, State, TestResult, Trust
from lantern_grading.template import Role, Template

_SCORED = (State.GRADED, State.WITH_FAILURES)


@dataclass(frozen=True)
class Attempt:
    """A submission was looked at: what it was, which exam, and what came of it.

    ``scores`` says which scores stand in the gradebook after it: ``"new"`` are its own, ``"kept"`` are those of
    an earlier attempt at the same file, ``"none"`` means that there are none.
    """

    assignment: str
    student: str
    content_hash: str
    exam_hash: str
    state: State
    tests: tuple[TestResult, ...] = ()
    answers: Mapping[str, str] | None = None  # hash of each answer's text, by the cell's id
    notes: tuple[str, ...] = ()
    reason: str = ""
    seconds: float = 0.0
    scores: str = ""
    max_score: float | None = None
    number: int = 0
    recorded: datetime | None = None

    @property
    def scored(self) -> bool:
        """Whether the attempt gave scores."""
        return self.state in _SCORED

    @property
    def auto_score(self) -> float | None:
        """Sum of the automatic scores [points], None without any."""
        return math.fsum(test.score for test in self.tests) if self.scored else None


def checked(outcome: Outcome, template: Template) -> Outcome:
    """Accept an outcome only if every test has one finite score between 0 and its maximum.

    Parameters
    ----------
    outcome : Outcome
        What the grader says.
    template : Template
        What was to be graded.

    Returns
    -------
    Outcome
        The same, or one that needs a person and says what was wrong with it.
    """
    if outcome.state not in _SCORED:
        reason = outcome.reason or "The grader gave no reason."
        return Outcome(outcome.state, (), (), outcome.notes, reason, outcome.seconds)
    wanted = {cell.cell_id: cell.points for cell in template.of(Role.TEST)}
    given = [test.grade_id for test in outcome.tests]
    wrong = ""
    if sorted(given) != sorted(wanted):
        odd = sorted(set(given) ^ set(wanted)) or sorted({name for name in given if given.count(name) > 1})
        wrong = f"it has not one result for each test: {', '.join(odd)}"
    for test in outcome.tests:
        number = isinstance(test.score, (int, float)) and not isinstance(test.score, bool)
        most = wanted.get(test.grade_id, 0.0)
        if not number or not math.isfinite(test.score) or not 0 <= test.score <= most:
            wrong = f"the score of {test.grade_id} must be a number from 0 to {most:g}, got {test.score!r}"
    if not wrong:
        return outcome
    return Outcome(State.NEEDS_PERSON, notes=outcome.notes, reason=f"The grader's result was refused: {wrong}.")


def newest(connection: Connection, assignment: str, student: str | None = None) -> dict[str, Attempt]:
    """Return the newest attempt of each student, by the order of recording and not by any clock.

    Parameters
    ----------
    connection : Connection
        To the gradebook.
    assignment : str
        The assignment [text].
    student : str, optional
        Only this one [text].

    Returns
    -------
    dict of str to Attempt
        By student.
    """
    last = select(func.max(ATTEMPTS.c.id)).where(ATTEMPTS.c.assignment == assignment).group_by(ATTEMPTS.c.student)
    if student is not None:
        last = last.where(ATTEMPTS.c.student == student)
    rows = connection.execute(select(ATTEMPTS).where(ATTEMPTS.c.id.in_(last))).mappings()
    return {row["student"]: _attempt(row) for row in rows}


def history(connection: Connection, assignment: str, student: str) -> list[Attempt]:
    """Return all attempts at a student's submissions, oldest first."""
    wanted = (ATTEMPTS.c.assignment == assignment) & (ATTEMPTS.c.student == student)
    rows = connection.execute(select(ATTEMPTS).where(wanted).order_by(ATTEMPTS.c.id)).mappings()
    return [_attempt(row) for row in rows]


def write(connection: Connection, attempt: Attempt, scores: str) -> None:
    """Add an attempt; part of the transaction that changes the scores."""
    connection.execute(
        ATTEMPTS.insert().values(
            assignment=attempt.assignment,
            student=attempt.student,
            content_hash=attempt.content_hash,
            exam_hash=attempt.exam_hash,
            state=str(attempt.state),
            scores=scores,
            auto_score=attempt.auto_score,
            max_score=attempt.max_score,
            reason=attempt.reason,
            notes=json.dumps(attempt.notes),
            tests=json.dumps([asdict(test) for test in attempt.tests]),
            answers=json.dumps(dict(attempt.answers or {}), sort_keys=True),
            seconds=attempt.seconds,
            recorded=datetime.now(UTC).replace(tzinfo=None),
        )
    )


def _attempt(row: Mapping[str, Any]) -> Attempt:
    tests = tuple(TestResult(**{**test, "trust": Trust(test["trust"])}) for test in json.loads(row["tests"]))
    return Attempt(
        assignment=row["assignment"],
        student=row["student"],
        content_hash=row["content_hash"],
        exam_hash=row["exam_hash"],
        state=State(row["state"]),
        tests=tests,
        answers=json.loads(row["answers"]),
        notes=tuple(json.loads(row["notes"])),
        reason=row["reason"],
        seconds=row["seconds"],
        scores=row["scores"],
        max_score=row["max_score"],
        number=row["id"],
        recorded=row["recorded"],
    )
