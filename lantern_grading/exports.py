"""Marks for Canvas and Moodle: their own file comes back with one column filled, and nothing else changed.

Only a score that belongs to the file that lies there, and of which no part waits for a person, is written.

The columns are those of ``lib/gradebook_exporter.rb`` and ``lib/gradebook_importer.rb`` in
github.com/instructure/canvas-lms, and of Moodle's worksheet (see ``worksheet``), which its importer finds by the names
Identifier, Grade and Last modified (grade).
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from lantern_grading.marks import Mark, number_text
from lantern_grading.roster import Person, table
from lantern_grading.worksheet import finder, number_of

#: The columns with which Canvas finds a student, in its order; the name is one column, or two by the teacher's choice.
_CANVAS_STUDENT = (
    *("Student", "LastName", "FirstName", "ID", "SIS User ID", "SIS Login ID", "Integration ID", "Root Account"),
    "Section",
)
#: What stands in a cell that is not for us to fill: excused; not assigned, or anonymous until it is posted.
_NOT_OURS = ("EX", "N/A")


@dataclass(frozen=True)
class Export:
    """A table to upload, and who is not in it."""

    text: str
    written: tuple[str, ...]
    left_out: tuple[tuple[str, str], ...]  # student, why


def canvas(marks: Sequence[Mark], people: Sequence[Person], gradebook: Path, column: str, partial: bool) -> Export:
    """Fill a column of the gradebook that Canvas exports.

    Parameters
    ----------
    marks : sequence of Mark
        The marks.
    people : sequence of Person
        The roster.
    gradebook : Path
        The file from Canvas: Gradebook, Export.
    column : str
        The assignment's column: all of its name, or how it begins [text].
    partial : bool
        Write also scores of which a part waits for a person.

    Returns
    -------
    Export
        With the columns that name a student, and the one that was filled.

    Raises
    ------
    ValueError
        If the column is not there, or counts other points than the lab.
    """
    rows = table(gradebook, strip=False)
    header = list(rows[0]) if rows else []
    name_column = "LastName" if "LastName" in header else "Student"
    for name in (name_column, "ID"):
        if name not in header:
            raise ValueError(f"{gradebook.name} must be a gradebook from Canvas with the column {name}, got none.")
    found = [name for name in header if name == column] or [
        name for name in header if re.match(rf"{re.escape(column)}\b", name)
    ]
    if len(found) != 1:
        raise ValueError(f"column must name one column of {gradebook.name}, got {column!r}, which fits {len(found)}.")
    keep = [name for name in _CANVAS_STUDENT if name in header] + found
    by_number = {person.canvas: person.student for person in people if person.canvas}
    places = {mark.student: mark for mark in marks}
    filled: list[list[str]] = []
    seen: dict[str, str] = {}
    for row in rows:
        if row[name_column].strip().lower() == "points possible":
            _same_points(row.get(found[0], ""), marks, gradebook.name)
            filled.append([row.get(name, "") for name in keep])
            continue
        student = by_number.get(row["ID"]) or next(
            (row[name] for name in ("SIS Login ID", "SIS User ID") if row.get(name) in places), None
        )
        if student is None or student not in places:
            continue
        there = row.get(found[0], "").strip()
        if there.upper() in _NOT_OURS:
            seen[student] = f"Canvas has {there} there"
            continue
        seen[student] = ""
        filled.append([*(row.get(name, "") for name in keep[:-1]), _score(places[student], partial)])
    return Export(_text(keep, filled, quoted=False), *_who(marks, seen, partial))


def moodle(
    marks: Sequence[Mark], people: Sequence[Person], worksheet: Path, numbers: Mapping[str, str], partial: bool
) -> Export:
    """Fill the column Grade of Moodle's grading worksheet.

    Parameters
    ----------
    marks : sequence of Mark
        The marks.
    people : sequence of Person
        The roster.
    worksheet : Path
        The file from Moodle: View all submissions, Download grading worksheet.
    numbers : mapping
        Students by Moodle's number, from collecting.
    partial : bool
        Write also scores of which a part waits for a person.

    Returns
    -------
    Export
        The whole worksheet.

    Raises
    ------
    ValueError
        If a column is missing, or it counts other points than the lab.
    """
    rows = table(worksheet, strip=False)
    header = list(rows[0]) if rows else []
    for name in ("Identifier", "Grade"):
        if name not in header:
            raise ValueError(f"{worksheet.name} must be a grading worksheet with the column {name}, got none.")
    most = next((name for name in header if name.lower() == "maximum grade"), "")
    find = finder(people)
    places = {mark.student: mark for mark in marks}
    filled: list[list[str]] = []
    seen: dict[str, str] = {}
    for row in rows:
        if row.get(most):
            _same_points(row[most], marks, worksheet.name)
        student = numbers.get(number_of(row)) or find(row)
        if student in places:
            locked = row.get("Grade can be changed", "").strip().lower() == "no"
            seen[student] = "Moodle says that the grade cannot be changed" if locked else ""
            if not locked:
                row = {**row, "Grade": _score(places[student], partial)}
        filled.append([row.get(name, "") for name in header])
    return Export(_text(header, filled, quoted=True), *_who(marks, seen, partial))


def _same_points(text: str, marks: Sequence[Mark], name: str) -> None:
    most = next((mark.max_score for mark in marks if mark.max_score), None)
    try:
        there = float(text.replace(",", "."))
    except ValueError:
        return
    if most is not None and abs(there - most) > 1e-6:
        raise ValueError(f"{name} must count {most:g} points for this lab, got {there:g}. Change it on the platform.")


def _score(mark: Mark, partial: bool) -> str:
    return number_text(mark.score) if mark.complete or (partial and mark.score is not None) else ""


def _who(
    marks: Sequence[Mark], seen: Mapping[str, str], partial: bool
) -> tuple[tuple[str, ...], tuple[tuple[str, str], ...]]:
    """Tell who was written and who was left out; ``seen`` has what stands against each student of the file."""
    written, left_out = [], []
    for mark in marks:
        if seen.get(mark.student) == "" and _score(mark, partial):
            written.append(mark.student)
        elif mark.status != "not submitted":
            left_out.append((mark.student, seen.get(mark.student, "not in the platform's file") or _why(mark)))
    return tuple(written), tuple(left_out)


def _why(mark: Mark) -> str:
    return f"{mark.waiting} part(s) wait for a person" if mark.score is not None else mark.status


def _text(header: Sequence[str], rows: Sequence[Sequence[str]], *, quoted: bool) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n", quoting=csv.QUOTE_ALL if quoted else csv.QUOTE_MINIMAL)
    writer.writerow(header)
    writer.writerows(rows)
    return text.getvalue()
