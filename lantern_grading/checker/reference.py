"""What only running an assignment can show: that its own answers pass its own tests."""

from __future__ import annotations

from lantern_grading.checker.runner import grade_one
from lantern_grading.exam import Exam, ExamError
from lantern_grading.outcome import Outcome, State
from lantern_grading.sandbox import Backend, Limits


def require_sound(exam: Exam, *, backend: Backend, limits: Limits) -> Outcome:
    """Grade the reference answers as if a student had handed them in.

    Parameters
    ----------
    exam : Exam
        The assignment.
    backend : Backend
        Where the answers run.
    limits : Limits
        Those that will hold for students.

    Returns
    -------
    Outcome
        All points, and for each test how long it took.

    Raises
    ------
    ExamError
        Naming the first test that does not give all its points: it fails, it gives another number, it needs a name
        that only another test cell defines, or something that cannot be passed to the sandbox.
    """
    outcome = grade_one(exam, exam.reference(), backend=backend, limits=limits)
    for test in outcome.tests:
        if test.score != test.max_score:
            why = test.message or f"it gave {test.score:g}"
            raise ExamError(
                f"{test.grade_id} of {exam.name} must give the reference its {test.max_score:g} points, got: {why} "
                f"{outcome.reason}".strip()
            )
    if outcome.state is not State.GRADED:
        raise ExamError(f"the reference of {exam.name} must be graded without trouble, got: {outcome.reason}")
    return outcome
