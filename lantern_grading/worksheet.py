"""Moodle's grading worksheet: who is who, who is in which group, and when a file came.

Its columns are those of ``mod/assign/gradingtable.php`` in github.com/moodle/moodle, in the English of
``mod/assign/lang/en/assign.php``: Identifier ("Participant 5003"), Full name, the fields that the site shows (Email
address, ID number), Status, Group (of a group assignment only), Grade, Maximum grade, Grade can be changed, Last
modified (submission), Last modified (grade), Feedback comments. Under blind marking names and addresses are missing.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from dateutil import parser as dates
from dateutil import tz

from lantern_grading.roster import Person, squeezed, table

Row = Mapping[str, str]


@dataclass(frozen=True)
class Worksheet:
    """What the worksheet of one assignment says.

    ``groups`` has the members by the squeezed name of their group, and is empty if everybody works alone.
    """

    students: Mapping[str, str] = field(default_factory=dict)  # by Moodle's number
    received: Mapping[str, datetime] = field(default_factory=dict)  # by student
    groups: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


def number_of(row: Row) -> str:
    """Return Moodle's number of a row, or nothing.

    Examples
    --------
    >>> number_of({"Identifier": "Participant 5003"})
    '5003'
    """
    found = re.search(r"\d+", row.get("Identifier", ""))
    return found[0] if found else ""


def finder(people: Iterable[Person]) -> Callable[[Row], str | None]:
    """Return what finds the student of a row: by e-mail address, ID number, or a name that one person has.

    Parameters
    ----------
    people : iterable of Person
        The roster.

    Returns
    -------
    callable
        From a row to a student's id, or None.
    """
    people = list(people)
    ids = {person.student for person in people}
    mails = {person.email.lower(): person.student for person in people if person.email}
    names: dict[str, list[str]] = {}
    for person in people:
        names.setdefault(squeezed(person.full_name), []).append(person.student)

    def find(row: Row) -> str | None:
        number = row.get("ID number", "")
        same = names.get(squeezed(row.get("Full name", "")), [])
        by_name = same[0] if len(same) == 1 else None
        return mails.get(row.get("Email address", "").lower()) or (number if number in ids else None) or by_name

    return find


def read_worksheet(path: Path, people: Iterable[Person], zone: str) -> Worksheet:
    """Read the worksheet.

    Parameters
    ----------
    path : Path
        As downloaded.
    people : iterable of Person
        The roster.
    zone : str
        The time zone of its times; without, they are not used [text].

    Returns
    -------
    Worksheet
        What is said of the people on the roster.

    Raises
    ------
    ValueError
        If it is no worksheet, or there is no such zone.
    """
    rows = table(path)
    if not rows or "Identifier" not in rows[0]:
        raise ValueError(
            f"the worksheet {path.name} must have the column Identifier. Moodle: View all submissions, in English."
        )
    place = tz.gettz(zone) if zone else None
    if zone and place is None:
        raise ValueError(f"zone must be a time zone's name, got {zone!r}. Write for example Europe/Berlin.")
    find = finder(people)
    students: dict[str, str] = {}
    received: dict[str, datetime] = {}
    groups: dict[str, tuple[str, ...]] = {}
    for row in rows:
        number, student = number_of(row), find(row)
        if not number or student is None:
            continue
        students[number] = student
        if moment := _when(row.get("Last modified (submission)", ""), place):
            received[student] = moment
        if "Group" in row:
            group = squeezed(row["Group"])
            groups[group] = (*groups.get(group, ()), student)
    return Worksheet(students, received, groups)


def _when(text: str, place: object) -> datetime | None:
    if place is None or not text.strip(" -"):
        return None
    try:
        return dates.parse(text).replace(tzinfo=place).astimezone(UTC)  # type: ignore[arg-type]
    except (ValueError, OverflowError):
        return None
