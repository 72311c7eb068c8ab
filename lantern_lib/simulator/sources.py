"""Where requests come from: a schedule that waits for nobody, users who wait for answers, sessions."""

from __future__ import annotations

import math
from array import array
from collections import deque
from heapq import heappop, heappush
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from lantern_lib.units import require_int, require_non_negative
from lantern_lib.workload.requests import Workload

#: Times that are closer than this are the same time. Equal steps and even arrivals make exact ties, and rounding must
#: not decide them: an arrival that falls on the beginning of a step belongs to it.
TIE_SECONDS = 1e-9


class Source(Protocol):
    """What an engine asks about arrivals.

    ``next_seconds`` is when the next request arrives, infinite when none is known; :meth:`take` hands it over;
    :meth:`ended` is told of every request that got its last token or was turned away, and may bring new arrivals.
    """

    next_seconds: float

    def take(self) -> int:
        """Hand over the next request: its row in the workload."""
        ...

    def ended(self, row: int, now: float) -> None:
        """Hear that a request is over."""
        ...


class OpenLoop:
    """Requests arrive when the workload says, whatever the engine does."""

    def __init__(self, workload: Workload) -> None:
        self._times = array("d", workload.arrival_seconds.tobytes())
        self._next = 0
        self.next_seconds = self._times[0]

    def take(self) -> int:
        """Hand over the next row."""
        row = self._next
        self._next = row + 1
        self.next_seconds = self._times[row + 1] if row + 1 < len(self._times) else math.inf
        return row

    def ended(self, row: int, now: float) -> None:
        """Take no notice."""


class _Agenda:
    """Arrivals that are known one at a time: the earliest first, equal ones in the order they were noted."""

    def __init__(self) -> None:
        self._heap: list[tuple[float, int, int]] = []
        self._noted = 0
        self.next_seconds = math.inf

    def note(self, row: int, seconds: float) -> None:
        heappush(self._heap, (seconds, self._noted, row))
        self._noted += 1
        self.next_seconds = self._heap[0][0]

    def take(self) -> int:
        """Hand over the row that arrives first."""
        row = heappop(self._heap)[2]
        self.next_seconds = self._heap[0][0] if self._heap else math.inf
        return row


def _pauses(name: str, seconds: NDArray[np.float64], workload: Workload) -> array[float]:
    if len(seconds) != len(workload):
        raise ValueError(f"{name} must have one entry for each of {len(workload)} requests, got {len(seconds)}.")
    return array("d", [require_non_negative(name, pause) for pause in seconds.tolist()])


class ClosedLoop(_Agenda):
    """A fixed number of users; each sends the workload's next row when it has thought about its last answer.

    The workload's own arrival times play no part.

    Parameters
    ----------
    workload : Workload
        Requests in the order in which they are sent.
    num_users : int
        Users, all of whom begin at time 0 [users].
    think_seconds : float or array of float
        From an answer's last token to the next request of that user; one for all, or one for each answer [seconds].
    """

    def __init__(self, workload: Workload, num_users: int, think_seconds: float | NDArray[np.float64] = 0.0) -> None:
        super().__init__()
        self._think = _pauses("think_seconds", np.broadcast_to(think_seconds, len(workload)), workload)
        self._row = 0
        for user in range(min(require_int("num_users", num_users), len(workload))):
            self.note(user, 0.0)

    def take(self) -> int:
        """Hand over the next row to whoever is the first to have finished thinking."""
        super().take()
        row = self._row
        self._row = row + 1
        if self._row == len(self._think):
            self.next_seconds = math.inf
        return row

    def ended(self, row: int, now: float) -> None:
        """Let the user who got this answer think."""
        if self._row < len(self._think):
            self.note(row, now + self._think[row])


class SessionLoop(_Agenda):
    """Sessions whose next call waits for the answer before it and then for its gap.

    Parameters
    ----------
    workload : Workload
        One row a call, with ``session``; the rows of a session stand in the order of its calls.
    gap_seconds : array of float, shape (n,)
        For each row, the pause since the answer before it; for a session's first call its start [seconds].
    """

    def __init__(self, workload: Workload, gap_seconds: NDArray[np.float64]) -> None:
        super().__init__()
        self._gaps = _pauses("gap_seconds", gap_seconds, workload)
        self._following: dict[int, int] = {}
        last: dict[int, int] = {}
        for row, session in enumerate(workload.session.tolist()):
            if session >= 0 and session in last:
                self._following[last[session]] = row
            else:
                self.note(row, self._gaps[row])
            last[session] = row

    def ended(self, row: int, now: float) -> None:
        """Send the session's next call after its gap."""
        following = self._following.pop(row, None)
        if following is not None:
            self.note(following, now + self._gaps[following])


class Inbox:
    """What a router has sent to one replica and the replica has not taken in yet."""

    def __init__(self) -> None:
        self._rows: deque[tuple[float, int]] = deque()
        self.next_seconds = math.inf

    def __len__(self) -> int:
        return len(self._rows)

    def put(self, row: int, seconds: float) -> None:
        """Send a request; times never fall."""
        if not self._rows:
            self.next_seconds = seconds
        self._rows.append((seconds, row))

    def take(self) -> int:
        """Hand over the oldest."""
        row = self._rows.popleft()[1]
        self.next_seconds = self._rows[0][0] if self._rows else math.inf
        return row

    def ended(self, row: int, now: float) -> None:
        """Take no notice."""
