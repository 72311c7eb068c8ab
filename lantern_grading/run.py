"""Grading a class: what is new is graded, each result is written at once, and a run that was stopped goes on."""

from __future__ import annotations

import os
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import Executor
from contextlib import nullcontext
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from sqlalchemy import Connection

from lantern_grading import gradebook, ledger, receipts, variants
from lantern_grading.assess import Assessed, Grader, Job
from lantern_grading.autograded import autograded
from lantern_grading.classroom import Classroom, replace_file, utc
from lantern_grading.database import Database, GradingStopped
from lantern_grading.feedback_pages import refresh
from lantern_grading.gradebook import answer_hash
from lantern_grading.harmless import one_line
from lantern_grading.ledger import Attempt
from lantern_grading.outcome import State
from lantern_grading.reading import HandedIn, read_folder
from lantern_grading.template import Template
from lantern_grading.workers import results


@dataclass
class RunReport:
    """What a run did. It names students by id and never by name."""

    assignment: str
    states: Counter[str] = field(default_factory=Counter)  # how all submissions stand now
    graded_now: int = 0
    skipped: int = 0
    troubles: list[tuple[str, str, str]] = field(default_factory=list)  # student, state, reason
    seconds: float = 0.0

    @property
    def clean(self) -> bool:
        """Whether every submission has been graded."""
        return not self.troubles

    def table(self) -> str:
        """Return the summary as text, one line for each state and each trouble."""
        lines = [f"{self.assignment}: {sum(self.states.values())} submissions"]
        lines += [f"  {self.states.get(str(state), 0):6,}  {state}" for state in State]
        lines.append(f"  {self.graded_now:,} looked at now in {self.seconds:.1f} s, {self.skipped:,} had not changed")
        # A reason may hold the name of a file, which is the student's word and could look like lines of this table.
        lines += ["  " + one_line(f"{student}: {state}. {reason}") for student, state, reason in sorted(self.troubles)]
        return "\n".join(lines)


def grade(
    classroom: Classroom,
    template: Template,
    grader: Grader,
    *,
    executor: Executor | None = None,
    count: int = 1,
    students: Sequence[str] | None = None,
    force: bool = False,
    progress: bool = False,
) -> RunReport:
    """Grade what has not been graded: new files, and all files if the exam has changed.

    Parameters
    ----------
    classroom : Classroom
        The class.
    template : Template
        The release.
    grader : Grader
        Grades a paper.
    executor : Executor, optional
        Where to grade; processes of this machine without.
    count : int
        Number of processes [count].
    students : sequence of str, optional
        Only these.
    force : bool
        Grade also what has not changed.
    progress : bool
        Draw a bar.

    Returns
    -------
    RunReport
        How everything stands.

    Raises
    ------
    GradingStopped
        If the gradebook or the disk cannot be written. What was recorded stands.
    ValueError
        If somebody else is grading this class, or a cell with points given by hand would go.
    """
    start = time.monotonic()
    report = RunReport(template.assignment)
    with classroom.lock(), Database(classroom.db_url) as database, _alone(database):
        due = classroom.late.due.get(template.assignment)
        database.write(lambda c: gradebook.register(c, template, utc(due) if due else None))
        with database.reading() as connection:
            before = ledger.newest(connection, template.assignment)
        names = classroom.handed_in(template.assignment)
        if students is not None:
            if missing := sorted(set(students) - set(names)):
                raise ValueError(f"student must have handed in {template.assignment}, got {missing[0]!r}.")
            names = [name for name in names if name in set(students)]
        jobs = _jobs(classroom, template, names, before, force, report)
        with _bar(len(names), progress) as bar:
            for result in results(jobs, template, grader, executor=executor, count=count):
                _publish(classroom, database, template.given_to(*result.given), result, before.get(result.student))
                report.graded_now += 1
                if bar is not None:
                    bar.update(1)
        set_penalties(classroom, database, template)
        refresh(classroom, database, template)
        _fill(report, classroom, database)
    report.seconds = time.monotonic() - start
    return report


def _jobs(
    classroom: Classroom,
    template: Template,
    names: Sequence[str],
    before: dict[str, Attempt],
    force: bool,
    report: RunReport,
) -> Iterator[Job]:
    """Read one submission after the other, when there is room for it, and pass over what is settled."""
    for name in names:
        try:
            handed_in = read_folder(classroom.submitted(name, template.assignment))
        except OSError as error:
            handed_in = HandedIn((), "", (f"The folder cannot be read: {error.strerror}.",))
        trouble, own = "", ("", "")
        try:
            own = own_cell(classroom, template, name)
        except ValueError as error:
            trouble = str(error)
        mine = template.given_to(*own)
        if not force and _settled(classroom, mine, handed_in, before.get(name)):
            report.skipped += 1
            continue
        yield Job(name, handed_in, own, trouble)


def own_cell(classroom: Classroom, template: Template, student: str) -> tuple[str, str]:
    """Return the cell with what a student was given: its name, and its source or nothing.

    Parameters
    ----------
    classroom : Classroom
        The class, which keeps what was given.
    template : Template
        The release.
    student : str
        The id [text].

    Returns
    -------
    (str, str)
        Name and source [text].

    Raises
    ------
    ValueError
        If the record cannot be read: better no grade than one with other parameters.
    """
    values = variants.recorded(template.assignment, student, classroom.folder)
    if values and not template.parameters:
        raise ValueError(f"{template.assignment} has no cell tagged 'parameters', and {student} was given some.")
    return variants.own_cell(template.parameters, values)


def exam_hash(classroom: Classroom, template: Template, student: str) -> str:
    """Return the hash of the exam that a student has; where the record cannot be read, that of the release."""
    try:
        return template.given_to(*own_cell(classroom, template, student)).exam_hash
    except ValueError:
        return template.exam_hash


def _settled(classroom: Classroom, template: Template, handed_in: HandedIn, before: Attempt | None) -> bool:
    return (
        before is not None
        and before.state is not State.NEEDS_PERSON
        and before.content_hash == handed_in.content_hash
        and before.exam_hash == template.exam_hash
        and classroom.autograded(before.student, template.assignment).is_file()
    )


def _publish(
    classroom: Classroom, database: Database, template: Template, result: Assessed, before: Attempt | None
) -> None:
    """Write the notebook, then everything else in one transaction: killed in between, the next run does both again."""
    outcome = ledger.checked(result.outcome, template)
    answers = {cell.cell_id: answer_hash(cell.source) for cell in (result.paper.cells if result.paper else ())}
    answers.pop("", None)
    attempt = Attempt(
        template.assignment, result.student, result.content_hash, template.exam_hash, outcome.state,
        outcome.tests, answers, outcome.notes, outcome.reason, outcome.seconds, max_score=template.max_score,
    )  # fmt: skip
    keeps = before is not None and before.content_hash == attempt.content_hash and before.scores != "none"
    if attempt.scored or not keeps:
        try:
            path = classroom.autograded(result.student, template.assignment)
            replace_file(path, autograded(template, result.paper, outcome, attempt))
        except OSError as error:
            raise GradingStopped(f"{error.strerror}. Nothing is lost: make room and run again to continue.") from error

    def change(connection: Connection) -> None:
        receipt = receipts.find(connection, template.assignment, result.student, result.content_hash)
        days = receipts.days_late(classroom.late, template.assignment, result.student, receipt)
        received: datetime | None = receipt.received if receipt else None
        penalty = classroom.late.penalty(days, template.max_score)
        gradebook.record(connection, template, attempt, received=received, penalty=penalty)

    database.write(change)


def set_penalties(classroom: Classroom, database: Database, template: Template) -> None:
    """Bring what is taken off for being late up to the rules as they are now; a new rule needs no regrading."""

    def change(connection: Connection) -> None:
        for student, attempt in ledger.newest(connection, template.assignment).items():
            receipt = receipts.find(connection, template.assignment, student, attempt.content_hash)
            days = receipts.days_late(classroom.late, template.assignment, student, receipt)
            penalty = classroom.late.penalty(days, template.max_score)
            gradebook.set_penalty(connection, template.assignment, student, penalty)

    database.write(change)


def _fill(report: RunReport, classroom: Classroom, database: Database) -> None:
    with database.reading() as connection:
        now = ledger.newest(connection, report.assignment)
    for name in classroom.nameless(report.assignment):
        report.states[str(State.NEEDS_PERSON)] += 1
        why = "The folder's name cannot be a student's id. Rename it."
        report.troubles.append((ascii(name), str(State.NEEDS_PERSON), why))
    for name in classroom.handed_in(report.assignment):
        attempt = now.get(name)
        if attempt is None:
            report.states["not graded"] += 1
            report.troubles.append((name, "not graded", "It was not part of this run."))
            continue
        report.states[str(attempt.state)] += 1
        if not attempt.scored:
            kept = " The earlier scores of this file stand." if attempt.scores == "kept" else ""
            report.troubles.append((name, str(attempt.state), attempt.reason + kept))


def _alone(database: Database) -> Any:
    """Refuse a second grader on another machine, where the database can tell."""
    if database.engine.dialect.name != "postgresql":
        return nullcontext()
    return receipts.advisory_lock(database)


def _bar(total: int, progress: bool) -> Any:
    if not progress:
        return nullcontext()
    from tqdm import tqdm

    return tqdm(total=total, unit="paper", mininterval=0.5 if sys.stderr.isatty() else 30.0)


def processors() -> int:
    """Return how many processors this process may use [count]."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
