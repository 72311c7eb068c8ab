"""One student's data: all of it in an archive, or none of it any more."""

from __future__ import annotations

import io
import json
import shutil
import zipfile
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from nbgrader import api
from sqlalchemy import Connection, delete, select

from lantern_grading.classroom import Classroom, replace_file, student_id
from lantern_grading.database import OWN_TABLES, Database

_STUDENT = api.Student.__table__
_SUBMISSION = api.SubmittedAssignment.__table__
_SUBMITTED = api.SubmittedNotebook.__table__
_PARTS = (api.Grade.__table__, api.Comment.__table__)


def _places(classroom: Classroom, student: str) -> list[Path]:
    """List the folders and files that hold only what is this student's."""
    tops = [classroom.folder / name for name in ("submitted", "autograded", "feedback")]
    tops += sorted(path for path in (classroom.folder / "archive").glob("*") if path.is_dir())
    records = [path / f"{student}.json" for path in sorted((classroom.folder / "variants").glob("*"))]
    return [top / student for top in tops if (top / student).is_dir()] + [path for path in records if path.is_file()]


def _rows(connection: Connection, student: str) -> dict[str, list[dict[str, Any]]]:
    """Read every row that is about a student."""
    submissions = select(_SUBMISSION.c.id).where(_SUBMISSION.c.student_id == student)
    notebooks = select(_SUBMITTED.c.id).where(_SUBMITTED.c.assignment_id.in_(submissions))
    wanted = {
        _STUDENT: _STUDENT.c.id == student,
        _SUBMISSION: _SUBMISSION.c.student_id == student,
        _SUBMITTED: _SUBMITTED.c.assignment_id.in_(submissions),
        **{table: table.c.notebook_id.in_(notebooks) for table in _PARTS},
        **{table: table.c.student == student for table in OWN_TABLES},
    }
    return {
        table.name: [dict(row) for row in connection.execute(select(table).where(which)).mappings()]
        for table, which in wanted.items()
    }


def export(classroom: Classroom, student: str, out: Path) -> Path:
    """Write all that the class holds about one student.

    Parameters
    ----------
    classroom : Classroom
        The class.
    student : str
        The id [text].
    out : Path
        The archive; it ends in ``.zip``.

    Returns
    -------
    Path
        The archive: ``gradebook.json``, and the files as they lie in the class's folder.

    Raises
    ------
    ValueError
        If the class knows nobody of that id.
    """
    student_id(student)
    if out.suffix != ".zip":
        raise ValueError(f"out must end in .zip, got {out.name!r}.")
    with Database(classroom.db_url) as database, database.reading() as connection:
        rows = _rows(connection, student)
    places = _places(classroom, student)
    if not places and not any(rows.values()):
        raise ValueError(f"student must be in the class, got {student!r}.")
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("gradebook.json", json.dumps(rows, indent=1, default=_text))
        for place in places:
            for path in sorted(place.rglob("*")) if place.is_dir() else [place]:
                if path.is_file() and not path.is_symlink():
                    archive.write(path, path.relative_to(classroom.folder).as_posix())
    replace_file(out, content.getvalue())
    return out


def _text(value: object) -> str:
    return (
        value.isoformat()
        if isinstance(value, datetime)
        else str(value)
        if isinstance(value, timedelta)
        else repr(value)
    )


def erase(classroom: Classroom, student: str) -> int:
    """Take a student out of the class: rows, files, and reports that name the id.

    Reports are not changed but removed; they are made anew by the next command that writes them. Backups and what
    was uploaded elsewhere are not reached.

    Parameters
    ----------
    classroom : Classroom
        The class.
    student : str
        The id [text].

    Returns
    -------
    int
        How many rows, folders and files are gone [count].

    Raises
    ------
    ValueError
        If the class knows nobody of that id.
    """
    student_id(student)
    with classroom.lock(), Database(classroom.db_url) as database:
        with database.reading() as connection:
            rows = _rows(connection, student)
        places = _places(classroom, student)
        if not places and not any(rows.values()):
            raise ValueError(f"student must be in the class, got {student!r}.")

        def change(connection: Connection) -> None:
            submissions = select(_SUBMISSION.c.id).where(_SUBMISSION.c.student_id == student)
            notebooks = select(_SUBMITTED.c.id).where(_SUBMITTED.c.assignment_id.in_(submissions))
            for table in _PARTS:
                connection.execute(delete(table).where(table.c.notebook_id.in_(notebooks)))
            connection.execute(delete(_SUBMITTED).where(_SUBMITTED.c.assignment_id.in_(submissions)))
            connection.execute(delete(_SUBMISSION).where(_SUBMISSION.c.student_id == student))
            connection.execute(delete(_STUDENT).where(_STUDENT.c.id == student))
            for table in OWN_TABLES:
                connection.execute(delete(table).where(table.c.student == student))

        # Files first: if this stops in between, the rows still say that there is something to erase.
        for place in places:
            shutil.rmtree(place) if place.is_dir() else place.unlink()
        for report in (classroom.folder / "reports").glob("*"):
            if report.is_file() and student.encode() in report.read_bytes():
                report.unlink()
        database.write(change)
        if database.engine.dialect.name == "sqlite":
            raw = database.engine.raw_connection()
            try:
                raw.cursor().execute("VACUUM")
            finally:
                raw.close()
    return sum(map(len, rows.values())) + len(places)
