"""What being late costs: by the time at which the platform received a file, never by what the file says."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

_DAY_SECONDS = 86_400.0


@dataclass(frozen=True)
class LateRules:
    """The late rules of a class.

    Parameters
    ----------
    grace_seconds : float
        Nothing happens in this time after the due date [seconds].
    share_per_day : float
        Part of the assignment's points that each day begun takes off [ratio].
    largest_share : float
        At most this part is taken off [ratio].
    replace_on_time : bool
        Whether a late file may replace one that was on time.
    due : mapping
        Due date by assignment, with its time zone.
    extensions : mapping
        Other due dates, by assignment and student.
    """

    grace_seconds: float = 0.0
    share_per_day: float = 0.0
    largest_share: float = 1.0
    replace_on_time: bool = False
    due: Mapping[str, datetime] = field(default_factory=dict)
    extensions: Mapping[str, Mapping[str, datetime]] = field(default_factory=dict)

    @staticmethod
    def read(late: Mapping[str, Any], due: Mapping[str, Any], extensions: Mapping[str, Any]) -> LateRules:
        """Read the tables ``[late]``, ``[due]`` and ``[extensions.<assignment>]`` of ``class.toml``."""
        known = {"grace_seconds", "share_per_day", "largest_share", "replace_on_time"}
        if unknown := sorted(set(late) - known):
            raise ValueError(f"late must have the keys {', '.join(sorted(known))}, got {unknown[0]!r}.")
        for name in ("share_per_day", "largest_share"):
            if not _is_number(late.get(name, 0)) or not 0 <= late.get(name, 0) <= 1:
                raise ValueError(f"{name} must be a number from 0 to 1, got {late[name]!r}. A tenth is 0.1.")
        if not _is_number(late.get("grace_seconds", 0)) or late.get("grace_seconds", 0) < 0:
            raise ValueError(f"grace_seconds must be 0 or more, got {late['grace_seconds']!r}.")
        dates = {name: _moment(f"due.{name}", value) for name, value in due.items()}
        more = {
            assignment: {
                student: _moment(f"extensions.{assignment}.{student}", value) for student, value in own.items()
            }
            for assignment, own in extensions.items()
        }
        return LateRules(**dict(late), due=dates, extensions=more)

    def due_for(self, assignment: str, student: str) -> datetime | None:
        """Return when a student's work is due, or None if there is no date."""
        return self.extensions.get(assignment, {}).get(student, self.due.get(assignment))

    def days_late(self, assignment: str, student: str, received: datetime | None, marked_late: bool) -> int:
        """Count the days begun since the due date.

        Parameters
        ----------
        assignment, student : str
            Whose work [text].
        received : datetime or None
            When the platform received it, with its zone.
        marked_late : bool
            Whether the platform calls it late. Without a time this counts as one day.

        Returns
        -------
        int
            0 for work that is on time [days].

        Examples
        --------
        >>> rules = LateRules(due={"week1": datetime(2026, 10, 9, 18, tzinfo=UTC)}, grace_seconds=600)
        >>> times = [datetime(2026, 10, day, 18, minute, tzinfo=UTC) for day, minute in [(9, 10), (9, 11), (10, 11)]]
        >>> [rules.days_late("week1", "ada", time, False) for time in times]
        [0, 1, 2]
        """
        due = self.due_for(assignment, student)
        if received is None or due is None:
            extended = student in self.extensions.get(assignment, {})
            return int(marked_late and not extended)
        over = (received - due - timedelta(seconds=self.grace_seconds)).total_seconds()
        # In whole steps from the due date itself: the grace opens no day of its own.
        return 0 if over <= 0 else math.ceil(((received - due).total_seconds()) / _DAY_SECONDS)

    def penalty(self, days: int, max_score: float) -> float:
        """Return what is taken off for so many days [points].

        Examples
        --------
        >>> LateRules(share_per_day=0.1, largest_share=0.5).penalty(3, 100)
        30.0
        >>> LateRules(share_per_day=0.1, largest_share=0.5).penalty(9, 100)
        50.0
        """
        return round(min(days * self.share_per_day, self.largest_share) * max_score, 9)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _moment(name: str, value: Any) -> datetime:
    if isinstance(value, datetime) and value.tzinfo is not None:
        return value.astimezone(UTC)
    raise ValueError(f"{name} must be a date and time with its zone, got {value!r}. Write 2026-10-09T18:00:00+02:00.")
