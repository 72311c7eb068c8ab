"""A class's folder: what lies where, who may write, and the rules of its ``class.toml``."""

from __future__ import annotations

import contextlib
import fcntl
import os
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from lantern_grading.late import LateRules

_KEYS = {"gradebook", "seed", "late", "due", "extensions"}


@dataclass(frozen=True)
class Classroom:
    """One class.

    ``submitted/<student>/<assignment>`` is what came in, ``autograded`` and ``feedback`` are made from it,
    ``reports`` holds what the instructor reads. The gradebook is ``gradebook.db``, or what ``class.toml`` says.
    """

    folder: Path
    db_url: str
    late: LateRules = field(default_factory=LateRules)

    @staticmethod
    def open(folder: Path) -> Classroom:
        """Read a class's settings.

        Parameters
        ----------
        folder : Path
            The class's folder.

        Returns
        -------
        Classroom
            The class.

        Raises
        ------
        ValueError
            If there is no such folder, or if ``class.toml`` says something that has no meaning.
        """
        if not folder.is_dir():
            raise ValueError(f"course must be the class's folder, got {folder}: {folder} is not a folder.")
        folder = folder.resolve()
        settings = folder / "class.toml"
        try:
            told = tomllib.loads(settings.read_text(encoding="utf-8")) if settings.is_file() else {}
        except tomllib.TOMLDecodeError as error:
            raise ValueError(f"class.toml must be TOML, got something else: {error}.") from None
        if unknown := sorted(set(told) - _KEYS):
            raise ValueError(f"class.toml must have the keys {', '.join(sorted(_KEYS))}, got {unknown[0]!r}.")
        url = str(told.get("gradebook", f"sqlite:///{folder / 'gradebook.db'}"))
        late = LateRules.read(told.get("late", {}), told.get("due", {}), told.get("extensions", {}))
        return Classroom(folder, url, late)

    def submitted(self, student: str, assignment: str) -> Path:
        """Where a student's submission lies."""
        return self.folder / "submitted" / student / assignment

    def autograded(self, student: str, assignment: str) -> Path:
        """Where formgrader looks for the graded notebook."""
        return self.folder / "autograded" / student / assignment / f"{assignment}.ipynb"

    def feedback(self, student: str, assignment: str) -> Path:
        """Where the student's page lies, as nbgrader names it."""
        return self.folder / "feedback" / student / assignment / f"{assignment}.html"

    def report(self, name: str) -> Path:
        """Where a report for the instructor lies."""
        return self.folder / "reports" / name

    def handed_in(self, assignment: str) -> list[str]:
        """Return the students who have a folder for the assignment, sorted."""
        return [name for name in self._folders(assignment) if _can_be_id(name)]

    def nameless(self, assignment: str) -> list[str]:
        """Return folders whose names cannot be an id: they are not graded, and reported."""
        return [name for name in self._folders(assignment) if not _can_be_id(name)]

    def _folders(self, assignment: str) -> list[str]:
        top = self.folder / "submitted"
        return sorted(
            path.name
            for path in top.glob("*")
            if not path.is_symlink() and (path / assignment).is_dir() and not (path / assignment).is_symlink()
        )

    @contextlib.contextmanager
    def lock(self) -> Iterator[None]:
        """Let nobody else collect, grade or erase in this class meanwhile; ValueError if somebody does.

        The lock is the system's: it is gone when the process is, however that ends.
        """
        handle = os.open(self.folder / ".lantern-grading.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                holder = os.pread(handle, 100, 0).decode("ascii", "replace").strip()
                raise ValueError(
                    f"course must not be in use, got one where process {holder or '?'} is at work. Wait for it to end."
                ) from None
            os.ftruncate(handle, 0)
            os.pwrite(handle, f"{os.getpid()}\n".encode(), 0)
            yield
        finally:
            os.close(handle)


def student_id(name: str) -> str:
    """Accept what can name a student's folder and rows.

    Parameters
    ----------
    name : str
        The id [text].

    Returns
    -------
    str
        The same.

    Raises
    ------
    ValueError
        If it is empty, long, or could lead out of its folder.

    Examples
    --------
    >>> student_id("ada [2]")
    'ada [2]'
    """
    bad = not name.strip() or len(name.encode()) > 100 or name.startswith(".") or name != name.strip()
    # Formgrader writes ids into its pages as they are: one with a tag in it would act as the person who grades.
    if bad or any(sign in name for sign in "/\\\0<>") or not name.isprintable():
        raise ValueError(
            f"student must be a name of 1 to 100 bytes without slashes, < or >, or a dot in front, got {name!r}."
        )
    return name


def _can_be_id(name: str) -> bool:
    try:
        return student_id(name) == name
    except ValueError:
        return False


def replace_file(path: Path, content: bytes) -> None:
    """Write a file so that whoever reads it sees the old one or the whole new one, also after a crash.

    Parameters
    ----------
    path : Path
        The file; its folder is made.
    content : bytes
        What it will hold.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".{path.name}.part")
    try:
        with part.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


def utc(moment: datetime) -> datetime:
    """Return a moment as nbgrader keeps it: in UTC, without zone."""
    return moment.astimezone(UTC).replace(tzinfo=None)
