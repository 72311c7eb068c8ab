"""The unit of work: one submission, from its files to an outcome. It needs no database, and runs anywhere."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import Protocol

from lantern_grading.intake import Rejection, read_paper
from lantern_grading.outcome import Outcome, Paper, State
from lantern_grading.reading import HandedIn
from lantern_grading.template import Template


class Grader(Protocol):
    """What grades a paper. It is sent to workers, so that it has to be picklable."""

    def __call__(self, student: str, paper: Paper, given: tuple[str, str]) -> Outcome:
        """Grade one paper; what goes wrong becomes a state, never an exception.

        ``given`` is the cell with the student's own parameters: its name, and its source or nothing.
        """


@dataclass(frozen=True)
class Job:
    """One submission to be graded.

    ``given`` is the cell with the student's own parameters. It is part of the job because a worker may run on a
    machine that has no class folder. ``trouble`` says why the job cannot be done.
    """

    student: str
    handed_in: HandedIn
    given: tuple[str, str] = ("", "")
    trouble: str = ""


@dataclass(frozen=True)
class Assessed:
    """What came of a job."""

    student: str
    content_hash: str
    paper: Paper | None
    outcome: Outcome
    given: tuple[str, str] = ("", "")


def assess(template: Template, grader: Grader, job: Job) -> Assessed:
    """Read one submission and grade it.

    Parameters
    ----------
    template : Template
        The release.
    grader : Grader
        Grades a paper.
    job : Job
        The submission.

    Returns
    -------
    Assessed
        In one of the four states, whatever happened.
    """
    start = time.perf_counter()
    paper: Paper | None = None
    try:
        read = read_paper(job.handed_in, template.given_to(*job.given))
        if job.trouble:
            outcome = Outcome(State.NEEDS_PERSON, reason=job.trouble)
        elif isinstance(read, Rejection):
            outcome = Outcome(State.REJECTED, notes=read.notes, reason=read.reason)
        else:
            paper = read
            outcome = grader(job.student, paper, job.given)
            outcome = replace(outcome, notes=tuple(dict.fromkeys([*paper.notes, *outcome.notes])))
    except Exception as error:
        # The text of the error may quote the student's work or a hidden test. Its kind says enough for a log.
        outcome = Outcome(State.NEEDS_PERSON, reason=f"The grader failed with {type(error).__name__}.")
    outcome = replace(outcome, seconds=time.perf_counter() - start)
    return Assessed(job.student, job.handed_in.content_hash, paper, outcome, job.given)


def lost(job: Job, why: str) -> Assessed:
    """Return what is recorded for a job whose worker did not come back."""
    outcome = Outcome(State.NEEDS_PERSON, reason=f"The grader's process was lost: {why}.")
    return Assessed(job.student, job.handed_in.content_hash, None, outcome, job.given)
