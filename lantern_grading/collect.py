"""Collecting: what a platform or a folder gives becomes submissions; nothing that came in is ever thrown away."""

from __future__ import annotations

import re
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from sqlalchemy import Connection

from lantern_grading import receipts, roster
from lantern_grading.classroom import Classroom, replace_file, student_id, utc
from lantern_grading.database import Database, GradingStopped
from lantern_grading.harmless import one_line
from lantern_grading.platforms import Incoming, from_folder, from_zip, matcher
from lantern_grading.reading import content_hash, is_theirs, read_folder
from lantern_grading.receipts import Receipt
from lantern_grading.worksheet import Worksheet, read_worksheet

PLATFORMS = ("folder", "canvas", "moodle")


@dataclass
class Collected:
    """What collecting did, by student id; names stay in the gradebook."""

    new: list[str] = field(default_factory=list)
    replaced: list[str] = field(default_factory=list)
    unchanged: list[str] = field(default_factory=list)
    refused: list[tuple[str, str]] = field(default_factory=list)
    unknown: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def table(self) -> str:
        """Return the summary as text."""
        counted = {"new": self.new, "replaced by a newer file": self.replaced, "as before": self.unchanged}
        lines = [f"  {len(names):6,}  {text}" for text, names in counted.items()]
        told = [f"{student}: not taken. {why}" for student, why in self.refused]
        told += [f"{key}: nobody on the roster; kept in unmatched/." for key in self.unknown]
        # Names of folders and files are other people's words.
        return "\n".join([*lines, *(f"  {one_line(text)}" for text in [*told, *self.notes])])

    @property
    def clean(self) -> bool:
        """Whether everything found its place."""
        return not (self.refused or self.unknown)


def collect(
    classroom: Classroom,
    assignment: str,
    source: Path,
    platform: str = "folder",
    *,
    times: Mapping[str, datetime] | None = None,
    worksheet: Path | None = None,
    zone: str = "",
) -> Collected:
    """Take in what was handed in.

    Parameters
    ----------
    classroom : Classroom
        The class.
    assignment : str
        For which assignment [text].
    source : Path
        A folder with one folder a student, or an archive of one of the platforms.
    platform : str
        ``"folder"``, ``"canvas"`` or ``"moodle"`` [text].
    times : mapping, optional
        When the platform received each student's file, with zone.
    worksheet : Path, optional
        Moodle's grading worksheet: it tells who is who, and when a file came.
    zone : str
        In which time zone the worksheet's times are, for example ``"Europe/Berlin"`` [text].

    Returns
    -------
    Collected
        What became of each.

    Raises
    ------
    ValueError
        If the source cannot be read, or somebody else is at work in the class.
    """
    if platform not in PLATFORMS:
        raise ValueError(f"platform must be one of {', '.join(PLATFORMS)}, got {platform!r}.")
    student_id(assignment)
    report = Collected()
    if source.is_dir() and platform == "folder":
        incoming = from_folder(source)
    elif source.is_file():
        incoming = from_zip(source, platform, report.notes)
    else:
        raise ValueError(f"source must be a folder or an archive as {platform} gives it, got {source}.")
    with classroom.lock(), Database(classroom.db_url) as database:
        with database.reading() as connection:
            people = roster.everybody(connection)
            known = roster.identities(connection, _called(platform, assignment))
        sheet = read_worksheet(worksheet, people, zone) if worksheet else Worksheet()
        find = matcher(platform, people, known, sheet)
        received = {**sheet.received, **(times or {})}
        for each in incoming:
            try:
                for student in find(each) or [None]:
                    _take(classroom, database, assignment, platform, each, student, received, report)
            except OSError as error:
                raise GradingStopped(f"{error.strerror}. Nothing is lost: make room and collect again.") from error
    return report


def _called(platform: str, assignment: str) -> str:
    # Moodle gives a person another number in each assignment; Canvas always the same.
    return f"moodle:{assignment}" if platform == "moodle" else platform


def _take(
    classroom: Classroom,
    database: Database,
    assignment: str,
    platform: str,
    incoming: Incoming,
    student: str | None,
    received: Mapping[str, datetime],
    report: Collected,
) -> None:
    files = sorted((name, content) for name, content in incoming.files.items() if is_theirs(name))
    digest = content_hash(files)
    if student is None:
        # The number, and never the name: this is printed.
        key = re.sub(r"[^\w.-]", "-", incoming.key)[:80].lstrip(".") or "nameless"
        _write(classroom.folder / "unmatched" / assignment / f"{key}-{digest[:12]}", files)
        report.unknown.append(key)
        return
    student_id(student)
    report.notes += [f"{student}: {note}" for note in incoming.notes]
    moment = received.get(student)
    with database.reading() as connection:
        before = receipts.find(connection, assignment, student)
    receipt = Receipt(
        assignment, student, digest, utc(moment) if moment else None, incoming.late, platform, True, ""
    )  # fmt: skip
    place = classroom.submitted(student, assignment)
    there = place.is_dir() and read_folder(place).content_hash == digest
    if there and before is not None and vars(before) == vars(receipt):
        report.unchanged.append(student)
        return
    if not there and (why := _too_late(classroom, receipt, before)):
        _write(classroom.folder / "archive" / assignment / student / digest[:12], files)
        refused = Receipt(**{**vars(receipt), "kept": False, "note": why})
        database.write(lambda c: receipts.write(c, refused))
        report.refused.append((student, why))
        return
    existed = place.is_dir()
    if not there:
        _replace(classroom, assignment, student, files)
        # What grading will see, also where a limit of reading leaves something out.
        receipt = Receipt(**{**vars(receipt), "content_hash": read_folder(place).content_hash})

    def change(connection: Connection) -> None:
        receipts.write(connection, receipt)
        if incoming.person and platform != "folder":
            roster.identify(connection, student, _called(platform, assignment), incoming.key)

    database.write(change)
    (report.unchanged if there else report.replaced if existed else report.new).append(student)


def _too_late(classroom: Classroom, new: Receipt, before: Receipt | None) -> str:
    rules = classroom.late
    days = receipts.days_late(rules, new.assignment, new.student, new)
    if before is None or rules.replace_on_time or not days:
        return ""
    if receipts.days_late(rules, new.assignment, new.student, before):
        return ""
    return f"It came {days} day(s) late, and the file that was on time stands. The late one is kept in archive/."


def _replace(classroom: Classroom, assignment: str, student: str, files: list[tuple[str, bytes]]) -> None:
    """Put a submission in its place, and the one that lay there in the archive."""
    place = classroom.submitted(student, assignment)
    part = place.with_name(f".{assignment}.part")
    if part.exists():
        shutil.rmtree(part)
    _write(part, files)
    if place.is_dir():
        kept = classroom.folder / "archive" / assignment / student / read_folder(place).content_hash[:12]
        kept.parent.mkdir(parents=True, exist_ok=True)
        if kept.exists():
            shutil.rmtree(place)
        else:
            place.rename(kept)
    part.rename(place)


def _write(folder: Path, files: list[tuple[str, bytes]]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in files:
        replace_file(folder / name, content)
