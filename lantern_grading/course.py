"""Where a course lies, and how nbgrader is started on it."""

from __future__ import annotations

import contextlib
import glob
import logging
import os
import re
import shutil
import sys
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from nbgrader.converters import Autograde, GenerateAssignment, GenerateFeedback
from nbgrader.converters.base import BaseConverter, NbGraderException
from nbgrader.coursedir import CourseDirectory
from nbgrader.utils import capture_log
from traitlets.config import Config
from traitlets.config.loader import PyFileConfigLoader

from lantern_grading import variants
from lantern_grading.paths import LABS, ROOT, SOLUTIONS


class GradingError(ValueError):
    """nbgrader could not do its work; the text says why, in one line."""


class _ByName(BaseConverter):
    """Take one student's folder by its name; nbgrader reads the name as a pattern and trips over brackets."""

    def init_notebooks(self) -> None:
        """List the notebooks of the one folder."""
        folder = self._format_source(self.coursedir.assignment_id, self.coursedir.student_id)
        found = sorted(glob.glob(os.path.join(glob.escape(folder), "*.ipynb")))
        if not found:
            raise NbGraderException(f"there is no notebook in {folder}")
        self.assignments = {folder: found}
        self.notebooks: list[str] = []


class _Autograde(_ByName, Autograde):
    pass


class _GenerateFeedback(_ByName, GenerateFeedback):
    pass


class Course:
    """One class: a folder with ``submitted/``, and a gradebook beside it.

    Parameters
    ----------
    folder : Path
        The class's folder; submissions lie in ``submitted/<student>/<assignment>/``.
    source : Path
        The folder with the solutions, one folder for each assignment.
    """

    def __init__(self, folder: Path, source: Path = SOLUTIONS) -> None:
        self.folder = folder.resolve()
        self.source = source.resolve()
        if not self.folder.is_dir():
            raise GradingError(f"{folder} is not a folder. Give the class's folder, the one with submitted/ in it.")
        # nbgrader starts its database tool by bare name: the environment need not be activated.
        os.environ["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
        self.config = self._config()

    @property
    def db_url(self) -> str:
        """Address of the gradebook."""
        return f"sqlite:///{self.folder / 'gradebook.db'}"

    def students(self) -> list[str]:
        """Return the names of all folders in ``submitted/``, sorted."""
        submitted = self.folder / "submitted"
        return sorted(path.name for path in submitted.glob("*") if path.is_dir())

    def generate(self, assignment: str) -> Path:
        """Make the release of an assignment and enter its cells in the gradebook.

        Returns
        -------
        Path
            The folder of the release.
        """
        if not (self.source / assignment / f"{assignment}.ipynb").exists():
            raise GradingError(f"assignment must be a folder of {self.source} with its notebook, got {assignment!r}.")
        self._run(GenerateAssignment, assignment, ".")
        return self.folder / "release" / assignment

    def autograde(self, assignment: str, student: str) -> None:
        """Run one submission and enter its scores; GradingError says why it could not be graded."""
        values = variants.recorded(assignment, student, self.folder) if assignment in variants.weeks() else {}
        self.config.GiveParameters.values = values
        self._run(_Autograde, assignment, student)

    def feedback(self, assignment: str, student: str) -> Path:
        """Write one student's feedback page and return its folder."""
        self._run(_GenerateFeedback, assignment, student)
        folder = self.folder / "feedback" / student / assignment
        # nbgrader copies along whatever the student's code wrote beside the notebook.
        for path in sorted(folder.rglob("*"), reverse=True):
            if path.is_dir():
                path.rmdir()
            elif path.suffix != ".html":
                path.unlink()
        return folder

    def _config(self) -> Config:
        config = PyFileConfigLoader("nbgrader_config.py", path=str(ROOT)).load_config()
        config.CourseDirectory.root = str(self.folder)
        config.CourseDirectory.source_directory = str(self.source)
        for step in ("release", "submitted", "autograded", "feedback"):
            config.CourseDirectory[f"{step}_directory"] = step
        config.CourseDirectory.db_url = self.db_url
        return config

    def _run(self, converter: Any, assignment: str, student: str) -> None:
        directory = CourseDirectory(config=self.config)
        directory.assignment_id = assignment
        directory.student_id = student
        app = converter(coursedir=directory, config=self.config)
        app.force = True
        with _quiet(), warnings.catch_warnings():
            # The database layer remarks on the order in which nbgrader adds its rows; nothing is lost.
            warnings.filterwarnings("ignore", message="Object of type <Submitted")
            result = capture_log(app)
        if result["success"]:
            return
        if "KeyboardInterrupt" in result.get("error", ""):
            raise KeyboardInterrupt
        raise GradingError(_reason(result.get("log", "") + "\n" + result.get("error", "")))


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Keep nbgrader's log off the screen; what matters of it becomes the reason."""
    logger = logging.getLogger("traitlets")
    before, propagate = logger.handlers[:], logger.propagate
    logger.handlers, logger.propagate = [logging.NullHandler()], False
    try:
        yield
    finally:
        logger.handlers, logger.propagate = before, propagate


def _reason(log: str) -> str:
    """Take the one line of nbgrader's log that says what went wrong."""
    plain = re.sub(r"\x1b\[[0-9;]*m", "", log)
    errors = re.findall(r"^\s*(?:[\w.]+\.)?(\w*(?:Error|Exception|Entry|KernelError)): (.+)$", plain, re.MULTILINE)
    # nbgrader ends with its own "see the traceback above".
    told = [text if name == "NbGraderException" else f"{name}: {text}" for name, text in errors if "above" not in text]
    logged = re.findall(r"^\[ERROR\] (.+)$", plain, re.MULTILINE)
    return (told or logged or ["nbgrader stopped without saying why"])[-1].strip()[:300]


def release(assignment: str, labs: Path = LABS, source: Path = SOLUTIONS) -> Path:
    """Write the student's version of an assignment.

    Parameters
    ----------
    assignment : str
        Name of its folder, for example ``"week1"`` [text].
    labs : Path
        Where releases go.
    source : Path
        Where solutions lie.

    Returns
    -------
    Path
        The folder ``labs/<assignment>``, the same bytes on every run.
    """
    with tempfile.TemporaryDirectory() as scratch:
        made = Course(Path(scratch), source).generate(assignment)
        target = labs / assignment
        if target.exists():
            shutil.rmtree(target)
        shutil.copytree(made, target)
    return target
