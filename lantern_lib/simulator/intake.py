"""What happens to a request outside the batch: it arrives, is refused, waits, is dropped, is over."""

from __future__ import annotations

import math
from heapq import heappop, heappush

from lantern_lib.simulator.config import EngineConfig
from lantern_lib.simulator.records import Recorder, Result, Status
from lantern_lib.simulator.sources import TIE_SECONDS, Source
from lantern_lib.workload.requests import Workload


class TooManyEventsError(RuntimeError):
    """A run took more events than it was allowed. The message says what was still waiting."""


def no_answer(config: EngineConfig) -> tuple[str, ...]:
    """Say, for each status, what a sender without an answer is told.

    Parameters
    ----------
    config : EngineConfig
        The replica and its rules.

    Returns
    -------
    tuple of str
        By the number of the status [text].

    Examples
    --------
    >>> from lantern_lib.simulator import EngineConfig, Status, StepModel
    >>> no_answer(EngineConfig(StepModel(weight_seconds=1.0), max_waiting=9))[Status.SHED_QUEUE]
    'came when 9 requests waited already; try again later'
    """
    capacity = config.capacity_tokens or 0
    return (
        "had not arrived when the run ended",
        "still waited when the run ended",
        "still ran when the run ended",
        "",
        f"and the whole machine has {capacity:,}; shorten it, or send it to a larger one",
        f"came when {config.max_waiting} requests waited already; try again later",
        f"had waited {config.max_wait_seconds} seconds when its turn came",
    )


class Intake:
    """The queue of one replica and the records of its requests.

    ``waiting`` is a heap of (priority, place in the order of arrival, row): a lower priority first, then the
    older. A request that was sent back keeps its place, so it goes before all that came later.
    """

    def __init__(
        self, config: EngineConfig, workload: Workload, source: Source, records: Recorder, replica: int = 0
    ) -> None:
        self.config, self.source, self.records, self.replica = config, source, records, replica
        self.waiting: list[tuple[int, int, int]] = []
        self._num_arrived = 0
        self._priority = None if not workload.priority.any() else workload.priority
        self._workload = workload
        self.named = config.prefix_cache and len(workload.block_ids) > 0
        if self.named and workload.block_size != config.block_size:
            raise ValueError(
                f"block_size must be the workload's {workload.block_size} for a prefix cache, got {config.block_size}."
                " A name stands for a whole block."
            )

    @property
    def many_priorities(self) -> bool:
        """Whether a later arrival can go before an earlier one."""
        return self._priority is not None

    def arrive(self, now: float) -> None:
        """Take in everything that has arrived by now: reject, turn away or queue it."""
        source, records, config = self.source, self.records, self.config
        capacity, most = config.num_blocks, config.max_waiting
        while source.next_seconds < math.inf and source.next_seconds <= now + TIE_SECONDS:
            seconds = source.next_seconds
            row = source.take()
            records.arrival[row] = seconds
            records.replica[row] = self.replica
            if capacity is not None and config.blocks(records.prompt_len[row] + records.output_len[row]) > capacity:
                self.over(row, seconds, Status.REJECTED)
            elif most is not None and len(self.waiting) >= most:
                self.over(row, seconds, Status.SHED_QUEUE)
            else:
                records.status[row] = Status.WAITING
                priority = 0 if self._priority is None else int(self._priority[row])
                heappush(self.waiting, (priority, self._num_arrived, row))
                self._num_arrived += 1

    def over(self, row: int, now: float, status: Status) -> None:
        """Note that a request will get no further token."""
        self.records.status[row] = status
        self.source.ended(row, now)

    def deadline(self, row: int) -> float | None:
        """Return when a waiting request is dropped, None if it is not [seconds]."""
        limit = self.config.max_wait_seconds
        # Who was scheduled once has been promised an answer.
        if limit is None or self.records.scheduled[row] == self.records.scheduled[row]:
            return None
        return self.records.arrival[row] + limit

    def drop_if_late(self, now: float) -> bool:
        """Drop the head of the queue if it has waited too long. Tell whether it was."""
        row = self.waiting[0][2]
        deadline = self.deadline(row)
        if deadline is None or now < deadline - TIE_SECONDS:
            return False
        heappop(self.waiting)
        self.over(row, now, Status.SHED_DEADLINE)
        return True

    def names(self, row: int) -> list[int]:
        """Return the names of a prompt's full blocks, none without a prefix cache."""
        if not self.named:
            return []
        starts, most = self._workload.block_starts, self.records.prompt_len[row] // self.config.block_size
        first = int(starts[row])
        return self._workload.block_ids[first : min(int(starts[row + 1]), first + most)].tolist()  # type: ignore[no-any-return]

    def scheduled(self, row: int, now: float, num_cached: int) -> None:
        """Note that a request was admitted; only the first time counts."""
        records = self.records
        records.status[row] = Status.RUNNING
        if records.scheduled[row] != records.scheduled[row]:
            records.scheduled[row] = max(now, records.arrival[row])
            records.cached[row] = num_cached

    def result(self, num_events: int, num_steps: int, now: float) -> Result:
        """Hand over the records."""
        return self.records.result(num_events, num_steps, now, no_answer(self.config))

    def too_many(self, most: int, now: float, num_running: int) -> TooManyEventsError:
        """Say where a run stood that took too many events."""
        return TooManyEventsError(
            f"max_events must be above {most} for this run: at {now:.6g} seconds {len(self.waiting)} requests wait,"
            f" {num_running} run, and the next arrival is at {self.source.next_seconds:.6g} seconds."
            " Shorten the run, or allow more."
        )
