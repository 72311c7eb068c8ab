"""Who is in the class: from a CSV file of one's own, of Canvas or of Moodle, into the gradebook."""

from __future__ import annotations

import csv
import io
import re
import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from nbgrader import api
from sqlalchemy import Connection, select, update

from lantern_grading.classroom import student_id
from lantern_grading.database import IDENTITIES

_STUDENT = api.Student.__table__

#: Our column, and what it is called elsewhere (in small letters).
_COLUMNS: dict[str, tuple[str, ...]] = {
    "id": ("id", "student id", "username", "sis login id", "sis user id", "id number", "email address"),
    "last_name": ("last_name", "last name", "lastname", "surname"),
    "first_name": ("first_name", "first name", "firstname"),
    "email": ("email", "email address"),
    "name": ("student", "full name", "name"),
}


@dataclass(frozen=True)
class Person:
    """One row of the roster. Only the gradebook keeps names."""

    student: str
    last_name: str = ""
    first_name: str = ""
    email: str = ""
    canvas: str = ""

    @property
    def full_name(self) -> str:
        """First name and last name."""
        return f"{self.first_name} {self.last_name}".strip()


def table(path: Path, *, strip: bool = True) -> list[dict[str, str]]:
    """Read a CSV file with a header, as spreadsheets and platforms write it.

    Parameters
    ----------
    path : Path
        The file; commas, semicolons or tabs. A cell may have several lines.
    strip : bool
        Whether to leave out blanks around a cell.

    Returns
    -------
    list of dict
        One for each row, by the header's names.

    Raises
    ------
    ValueError
        If there is no such file, or no header.
    """
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except OSError as error:
        raise ValueError(f"the file {path} cannot be read: {error.strerror}.") from None
    except UnicodeDecodeError:
        text = path.read_bytes().decode("cp1252", "replace")
    first = text.split("\n", 1)[0]
    sign = max(",;\t", key=first.count)
    rows = list(csv.reader(io.StringIO(text, newline=""), delimiter=sign))
    if not rows or len(rows[0]) < 1 or not any(rows[0]):
        raise ValueError(f"the file {path} must begin with the names of its columns.")
    header = [name.strip() for name in rows[0]]
    cells = ([cell.strip() if strip else cell for cell in row] for row in rows[1:] if any(row))
    return [dict(zip(header, row, strict=False)) for row in cells]


def read(path: Path) -> list[Person]:
    """Read a roster.

    Parameters
    ----------
    path : Path
        CSV with the columns ``id,last_name,first_name,email,canvas`` (only ``id`` is needed), or the gradebook
        that Canvas exports, or the participants that Moodle exports.

    Returns
    -------
    list of Person
        In the file's order.

    Raises
    ------
    ValueError
        If an id is missing, stands twice, or cannot be a folder's name; with its line.
    """
    people: list[Person] = []
    seen: dict[str, int] = {}
    for line, row in enumerate(table(path), 2):
        lower = {name.lower(): value for name, value in row.items()}
        if _is_nobody(lower):
            continue
        person = _person(lower, line)
        if person.student in seen:
            raise ValueError(f"id must stand once, got {person.student!r} in lines {seen[person.student]} and {line}.")
        seen[person.student] = line
        people.append(person)
    if not people:
        raise ValueError(f"the roster {path} must have a row for each student, got none.")
    return people


def _is_nobody(row: Mapping[str, str]) -> bool:
    """Tell the rows of Canvas's gradebook that are no people: manual posting, points possible, the test student."""
    name = (row.get("student") or f"{row.get('lastname', '')}, {row.get('firstname', '')}").strip(" ,").lower()
    posting = {value for value in row.values() if value}
    if posting and all(re.match("(?:muted|manual posting)", value, re.IGNORECASE) for value in posting):
        return True
    return name in ("points possible", "student, test", "test student")


def _person(row: Mapping[str, str], line: int) -> Person:
    canvas_export = "sis login id" in row or "sis user id" in row
    own = {
        column: next((row[name] for name in names if row.get(name) and not (canvas_export and name == "id")), "")
        for column, names in _COLUMNS.items()
    }
    if not own["id"]:
        raise ValueError(f"id must be in every row, got none in line {line}. Name a column id, or SIS Login ID.")
    try:
        student = student_id(own["id"])
    except ValueError as error:
        raise ValueError(f"line {line}: {error}") from None
    last, first = own["last_name"], own["first_name"]
    if own["name"] and not last:
        last, _, first = (part.strip() for part in own["name"].partition(","))
        if not first:
            first, _, last = own["name"].rpartition(" ")
    return Person(student, last, first, own["email"], row.get("id", "") if canvas_export else row.get("canvas", ""))


def enter(connection: Connection, people: Iterable[Person]) -> tuple[int, int]:
    """Put people in the gradebook; nobody is taken out.

    Parameters
    ----------
    connection : Connection
        In a transaction.
    people : iterable of Person
        The roster.

    Returns
    -------
    (int, int)
        How many are new, and how many were there [count].
    """
    known = set(connection.execute(select(_STUDENT.c.id)).scalars())
    new = 0
    for person in people:
        values = {
            "last_name": _harmless(person.last_name) or None,
            "first_name": _harmless(person.first_name) or None,
            "email": _harmless(person.email) or None,
            "lms_user_id": person.canvas or None,
        }
        if person.student in known:
            connection.execute(update(_STUDENT).where(_STUDENT.c.id == person.student).values(values))
        else:
            connection.execute(_STUDENT.insert().values(id=person.student, **values))
            known.add(person.student)
            new += 1
    return new, len(known) - new


def everybody(connection: Connection) -> list[Person]:
    """Read the people in the gradebook, sorted by id."""
    rows = connection.execute(select(_STUDENT).order_by(_STUDENT.c.id)).mappings()
    return [
        Person(row["id"], row["last_name"] or "", row["first_name"] or "", row["email"] or "", row["lms_user_id"] or "")
        for row in rows
    ]


def identify(connection: Connection, student: str, platform: str, name: str) -> None:
    """Remember what a platform calls a student."""
    key = (IDENTITIES.c.student == student) & (IDENTITIES.c.platform == platform)
    connection.execute(IDENTITIES.delete().where(key))
    connection.execute(IDENTITIES.insert().values(student=student, platform=platform, name=name))


def identities(connection: Connection, platform: str) -> dict[str, str]:
    """Return the students by what a platform calls them."""
    wanted = select(IDENTITIES.c.name, IDENTITIES.c.student).where(IDENTITIES.c.platform == platform)
    return {one: other for one, other in connection.execute(wanted).all()}  # noqa: C416


def squeezed(name: str) -> str:
    """Write a name so that it can be compared: small letters and digits of any alphabet, nothing else.

    Canvas's names of files have ``_`` besides; an archive that a Mac packed has ``ü`` in two signs.

    Examples
    --------
    >>> squeezed("O'Brien, Ada M."), squeezed("Mu\u0308ller_Zo\u00eb") == squeezed("MÜLLER ZOË")
    ('obrienadam', True)
    """
    return re.sub(r"[\W_]", "", unicodedata.normalize("NFKC", name).lower())


def _harmless(name: str) -> str:
    """Take the signs of a tag out of a name.

    People choose their names on a platform, and formgrader writes them into its pages as they are.

    Examples
    --------
    >>> _harmless("Ada <img src=x>")
    'Ada ‹img src=x›'
    """
    return name.translate(str.maketrans("<>", "‹›"))
