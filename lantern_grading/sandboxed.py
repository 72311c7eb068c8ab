"""The grader of the course: the checker, with the student's code in a sandbox."""

from __future__ import annotations

from dataclasses import dataclass, field
from multiprocessing.util import Finalize
from pathlib import Path
from typing import Any

from lantern_grading import exam as exams
from lantern_grading.checker import Pool, grade_one
from lantern_grading.exam import Exam
from lantern_grading.outcome import Outcome, Paper
from lantern_grading.sandbox import Backend, Limits, SandboxError, choose

#: What this process has ready: sandboxes are started ahead of need, and stay between papers.
_ready: dict[str, Any] = {}


@dataclass(frozen=True)
class SandboxGrader:
    """Grades papers of one exam in a sandbox of one kind; a student's own parameters come with the paper.

    Parameters
    ----------
    exam : Exam
        The instructor's source.
    backend : str
        ``"bubblewrap"``, ``"container"``, or ``"none"`` for a trial of one's own [text].
    image, engine : str
        The container's image, and the program that runs it [text].
    limits : Limits
        What a submission may use.
    """

    exam: Exam
    backend: str = "bubblewrap"
    image: str = ""
    engine: str = "docker"
    limits: Limits = field(default_factory=Limits)

    @staticmethod
    def of(assignment: str, source: Path, **kind: Any) -> SandboxGrader:
        """Read an exam and check that the sandbox can be had; ValueError says why not."""
        grader = SandboxGrader(exams.read(assignment, source), **kind)
        try:
            grader._choose()
        except SandboxError as error:
            raise ValueError(str(error)) from None
        return grader

    def _choose(self) -> Backend:
        return choose(self.backend, image=self.image, engine=self.engine)

    def __call__(self, student: str, paper: Paper, given: tuple[str, str] = ("", "")) -> Outcome:
        """Grade one paper."""
        if _ready.get("for") != self:
            close()
            backend = self._choose()
            _ready.update({"for": self, "backend": backend, "pool": Pool(self.exam, backend, self.limits)})
            Finalize(None, close, exitpriority=10)  # at the end of a worker too, where atexit is not heard
        exam = self.exam.given_to(*given)  # loads the same modules, so that the sandboxes that wait serve it too
        return grade_one(exam, paper, backend=_ready["backend"], limits=self.limits, pool=_ready["pool"])


def close() -> None:
    """End the sandboxes that wait for a paper."""
    if "pool" in _ready:
        _ready["pool"].close()
    _ready.clear()
