"""Making a lab's release with nbgrader."""

from __future__ import annotations

import contextlib
import logging
import re
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from nbgrader.converters import GenerateAssignment
from nbgrader.coursedir import CourseDirectory
from nbgrader.utils import capture_log
from traitlets.config.loader import PyFileConfigLoader

from lantern_grading.database import Database
from lantern_grading.paths import LABS, ROOT, SOLUTIONS


class GradingError(ValueError):
    """nbgrader could not do its work; the text says why, in one line."""


def _generate(assignment: str, folder: Path, source: Path) -> Path:
    """Let nbgrader make a release in a scratch folder; GradingError says why it could not."""
    if not (source / assignment / f"{assignment}.ipynb").exists():
        raise GradingError(f"assignment must be a folder of {source} with its notebook, got {assignment!r}.")
    config = PyFileConfigLoader("nbgrader_config.py", path=str(ROOT)).load_config()
    config.CourseDirectory.root = str(folder)
    config.CourseDirectory.source_directory = str(source.resolve())
    config.CourseDirectory.release_directory = "release"
    config.CourseDirectory.db_url = f"sqlite:///{folder / 'gradebook.db'}"
    # nbgrader would make it too, and start a program for that which takes longer than all the rest.
    with Database(config.CourseDirectory.db_url):
        pass
    directory = CourseDirectory(config=config)
    directory.assignment_id = assignment
    app = GenerateAssignment(coursedir=directory, config=config)
    app.force = True
    with _quiet():
        result = capture_log(app)
    if not result["success"]:
        if "KeyboardInterrupt" in result.get("error", ""):
            raise KeyboardInterrupt
        raise GradingError(_reason(result.get("log", "") + "\n" + result.get("error", "")))
    return folder / "release" / assignment


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
        made = _generate(assignment, Path(scratch).resolve(), source)
        target = labs / assignment
        if target.exists():
            shutil.rmtree(target)
        shutil.copytree(made, target)
    return target
