"""When a file came in, as the platform says."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from sqlalchemy import Connection, select, text

from lantern_grading.database import RECEIPTS, Database
from lantern_grading.late import LateRules
from lantern_grading.roster import table


@dataclass(frozen=True)
class Receipt:
    """A file came in. ``received`` is in UTC without zone, or None where the platform did not say."""

    assignment: str
    student: str
    content_hash: str
    received: datetime | None
    late: bool
    platform: str
    kept: bool = True
    note: str = ""


def write(connection: Connection, receipt: Receipt) -> None:
    """Add a receipt."""
    connection.execute(RECEIPTS.insert().values(**vars(receipt)))


def find(connection: Connection, assignment: str, student: str, content_hash: str | None = None) -> Receipt | None:
    """Return the newest receipt of a student's file that was kept, or of exactly this content."""
    wanted = [RECEIPTS.c.assignment == assignment, RECEIPTS.c.student == student, RECEIPTS.c.kept]
    if content_hash is not None:
        wanted.append(RECEIPTS.c.content_hash == content_hash)
    row = connection.execute(select(RECEIPTS).where(*wanted).order_by(RECEIPTS.c.id.desc()).limit(1)).mappings().first()
    return None if row is None else Receipt(**{name: value for name, value in row.items() if name != "id"})


def days_late(rules: LateRules, assignment: str, student: str, receipt: Receipt | None) -> int:
    """Count the days that a received file is late [days]; without a receipt nobody knows, and it counts as on time."""
    if receipt is None:
        return 0
    received = receipt.received.replace(tzinfo=UTC) if receipt.received else None
    return rules.days_late(assignment, student, received, receipt.late)


def read_times(path: Path) -> dict[str, datetime]:
    """Read when files came: CSV with the columns ``student`` and ``received``, the latter with its zone.

    Parameters
    ----------
    path : Path
        The file.

    Returns
    -------
    dict of str to datetime
        By student.

    Raises
    ------
    ValueError
        If a time cannot be read, or has no zone.
    """
    found = {}
    for line, row in enumerate(table(path), 2):
        try:
            moment = datetime.fromisoformat(row.get("received", ""))
        except ValueError:
            moment = datetime.min
        if moment.tzinfo is None or not row.get("student"):
            raise ValueError(
                f"line {line} of {path.name} must have a student and a time received with its zone, got"
                f" {row.get('received', '')!r}. Write 2026-10-09T17:59:00+02:00."
            )
        found[row["student"]] = moment.astimezone(UTC)
    return found


@contextmanager
def advisory_lock(database: Database) -> Iterator[None]:
    """Hold PostgreSQL's own lock, which ends with the connection; ValueError if another machine has it."""
    with database.engine.connect() as connection:
        number = 0x1A47E27
        if not connection.execute(text("SELECT pg_try_advisory_lock(:number)"), {"number": number}).scalar():
            raise ValueError("course must not be in use, got one that another machine is grading. Wait for it to end.")
        try:
            yield
        finally:
            connection.execute(text("SELECT pg_advisory_unlock(:number)"), {"number": number})
