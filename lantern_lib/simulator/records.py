"""One record for each request, kept as columns."""

from __future__ import annotations

import math
from array import array
from dataclasses import dataclass
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from lantern_lib.workload.requests import Workload


class Status(IntEnum):
    """How far a request has come."""

    UNSENT = 0
    WAITING = 1
    RUNNING = 2
    FINISHED = 3
    REJECTED = 4
    SHED_QUEUE = 5
    SHED_DEADLINE = 6


@dataclass(frozen=True)
class Result:
    """What happened to every request of a workload, as columns of equal length; row i is request i.

    Times that never came are NaN. ``cached_len`` counts prompt tokens that were found in the cache, or in the host's
    memory, when the request was admitted first; ``num_preemptions`` how often it was sent back; ``replica`` is where it
    ran (-1: nowhere).
    """

    arrival_seconds: NDArray[np.float64]
    scheduled_seconds: NDArray[np.float64]
    first_token_seconds: NDArray[np.float64]
    last_token_seconds: NDArray[np.float64]
    prompt_len: NDArray[np.int64]
    output_len: NDArray[np.int64]
    status: NDArray[np.int8]
    cached_len: NDArray[np.int64]
    num_preemptions: NDArray[np.int64]
    replica: NDArray[np.int64]
    num_events: int = 0
    num_steps: int = 0
    end_seconds: float = 0.0
    reasons: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.arrival_seconds)

    @property
    def finished(self) -> NDArray[np.bool_]:
        """Which requests got their last token."""
        return np.asarray(self.status == Status.FINISHED)

    def reason(self, row: int) -> str:
        """Say in a sentence why a request has no answer; empty if it has one.

        Parameters
        ----------
        row : int
            Which request.

        Returns
        -------
        str
            The sentence [text].
        """
        status = Status(int(self.status[row]))
        if status is Status.FINISHED:
            return ""
        if status is not Status.REJECTED:
            return self.reasons[status]
        tokens = int(self.prompt_len[row] + self.output_len[row])
        return f"needs {tokens:,} tokens of cache, {self.reasons[status]}"


class Recorder:
    """Columns that a run fills in, of the same size from the first request to the last."""

    def __init__(self, workload: Workload) -> None:
        count = len(workload)
        self.prompt_len = array("q", workload.prompt_len.tobytes())
        self.output_len = array("q", workload.output_len.tobytes())
        self.arrival = array("d", [math.nan]) * count
        self.scheduled = array("d", self.arrival)
        self.first = array("d", self.arrival)
        self.last = array("d", self.arrival)
        self.status = array("b", bytes(count))
        self.cached = array("q", bytes(8 * count))
        self.preemptions = array("q", bytes(8 * count))
        self.replica = array("q", [-1]) * count

    def result(self, num_events: int, num_steps: int, end_seconds: float, reasons: tuple[str, ...]) -> Result:
        """Hand the columns over without copying them."""
        return Result(
            arrival_seconds=np.frombuffer(self.arrival),
            scheduled_seconds=np.frombuffer(self.scheduled),
            first_token_seconds=np.frombuffer(self.first),
            last_token_seconds=np.frombuffer(self.last),
            prompt_len=np.frombuffer(self.prompt_len, np.int64),
            output_len=np.frombuffer(self.output_len, np.int64),
            status=np.frombuffer(self.status, np.int8),
            cached_len=np.frombuffer(self.cached, np.int64),
            num_preemptions=np.frombuffer(self.preemptions, np.int64),
            replica=np.frombuffer(self.replica, np.int64),
            num_events=num_events,
            num_steps=num_steps,
            end_seconds=end_seconds,
            reasons=reasons,
        )
