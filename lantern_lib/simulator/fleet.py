"""Several replicas: a router in front of equal ones, and pools that divide the work between prefill and decode."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Protocol

import numpy as np

from lantern_lib.simulator.config import EngineConfig
from lantern_lib.simulator.engine import UNLIMITED, Engine
from lantern_lib.simulator.intake import no_answer
from lantern_lib.simulator.records import Recorder, Result, Status
from lantern_lib.simulator.segments import Segments
from lantern_lib.simulator.sources import Inbox
from lantern_lib.units import require_int, require_non_negative
from lantern_lib.workload.requests import Workload


class Backend:
    """An engine with its inbox, as a router sees it."""

    def __init__(
        self, config: EngineConfig, workload: Workload, records: Recorder, number: int, segments: Segments | None
    ) -> None:
        self.inbox = Inbox()
        self.engine = Engine(config, workload, self.inbox, records, number, segments=segments)

    @property
    def num_waiting(self) -> int:
        """Requests that it has not begun [requests]."""
        return len(self.inbox) + len(self.engine.waiting)

    @property
    def load(self) -> int:
        """Requests that it has and has not finished [requests]."""
        return self.num_waiting + self.engine.num_running

    def cached_blocks(self, row: int) -> int:
        """How many leading blocks of a prompt are in its cache now [blocks]."""
        segments = self.engine.segments
        return 0 if segments is None else sum(self.engine.pool.find(segments.of(row), UNLIMITED))


class Router(Protocol):
    """Who gets a request. ``looks`` says whether :meth:`choose` looks at the replicas' present state."""

    looks: bool

    def choose(self, row: int, session: int, replicas: Sequence[Backend]) -> int:
        """Return the number of a replica."""
        ...


class RoundRobin:
    """Each in turn, whatever it has to do."""

    looks = False

    def __init__(self) -> None:
        self._next = 0

    def choose(self, row: int, session: int, replicas: Sequence[Backend]) -> int:
        """Return the next number."""
        chosen = self._next % len(replicas)
        self._next += 1
        return chosen


class LeastLoaded:
    """The one with the fewest unfinished requests; of several the first."""

    looks = True

    def choose(self, row: int, session: int, replicas: Sequence[Backend]) -> int:
        """Return the number of the least loaded."""
        return min(range(len(replicas)), key=lambda number: replicas[number].load)


class SessionAffinity(LeastLoaded):
    """A session stays where it began, on the replica that was least loaded then; requests without one go there too."""

    def __init__(self) -> None:
        self._home: dict[int, int] = {}

    def choose(self, row: int, session: int, replicas: Sequence[Backend]) -> int:
        """Return the session's home."""
        if session < 0:
            return super().choose(row, session, replicas)
        if session not in self._home:
            self._home[session] = super().choose(row, session, replicas)
        return self._home[session]


class LongestPrefix(LeastLoaded):
    """The replica that has most of the prompt in its cache, unless too many wait there; then the least loaded.

    Parameters
    ----------
    max_waiting : int
        With more requests waiting, the cache is not worth the queue [requests].
    """

    def __init__(self, max_waiting: int) -> None:
        self.max_waiting = require_int("max_waiting", max_waiting, minimum=0)

    def choose(self, row: int, session: int, replicas: Sequence[Backend]) -> int:
        """Return the number of the best cache, or of the least loaded."""
        cached = [each.cached_blocks(row) for each in replicas]
        best = max(range(len(replicas)), key=lambda number: (cached[number], -replicas[number].load))
        if not cached[best] or replicas[best].num_waiting > self.max_waiting:
            return super().choose(row, session, replicas)
        return best


def simulate_fleet(
    workload: Workload,
    configs: Sequence[EngineConfig],
    router: Router,
    *,
    max_events: int = 10_000_000,
) -> Result:
    """Serve a workload on several replicas behind a router.

    Parameters
    ----------
    workload : Workload
        The requests; they arrive when it says.
    configs : sequence of EngineConfig
        One for each replica.
    router : Router
        Chooses a replica for each request when it arrives; routing takes no time. A new one for each run.
    max_events : int
        Refuse to take more events than this on one replica [events].

    Returns
    -------
    Result
        One record for each request, with its ``replica``.

    Raises
    ------
    ValueError
        If there is no replica.
    TooManyEventsError
        If a replica takes more events.

    Notes
    -----
    A router that looks sees every replica as it is at the moment of the arrival; tokens of a step that is under way
    are not there yet.

    Examples
    --------
    >>> from lantern_lib.simulator import EngineConfig, StepModel
    >>> from lantern_lib.workload import at_once
    >>> config = EngineConfig(StepModel(weight_seconds=1.0), max_batch=1)
    >>> simulate_fleet(at_once(4, 5, 1), [config] * 2, LeastLoaded()).last_token_seconds.tolist()
    [1.0, 1.0, 2.0, 2.0]
    """
    if not configs:
        raise ValueError("configs must hold at least one replica, got none.")
    records = Recorder(workload)
    named = [config for config in configs if config.prefix_cache and len(workload.block_ids)]
    segments = Segments(workload) if named else None
    replicas = [Backend(each, workload, records, number, segments) for number, each in enumerate(configs)]
    arrivals = zip(workload.arrival_seconds.tolist(), workload.session.tolist(), strict=True)
    for row, (seconds, session) in enumerate(arrivals):
        if router.looks:
            for each in replicas:
                each.engine.run_until(seconds, max_events)
        replicas[router.choose(row, session, replicas)].inbox.put(row, seconds)
    for each in replicas:
        each.engine.run_until(max_events=max_events)
    engines = [each.engine for each in replicas]
    return records.result(
        sum(engine.num_events for engine in engines),
        sum(engine.num_steps for engine in engines),
        max(engine.now for engine in engines),
        # Who was refused was too large for some replica, so for one of the smallest it is true in any case.
        no_answer(min(configs, key=lambda config: config.num_blocks or UNLIMITED)),
    )


def simulate_disaggregated(
    workload: Workload,
    prefill: Sequence[EngineConfig],
    decode: Sequence[EngineConfig],
    *,
    transfer_token_seconds: float = 0.0,
    transfer_seconds: float = 0.0,
    prefill_router: Router | None = None,
    decode_router: Router | None = None,
) -> Result:
    """Serve a workload on two pools: one reads prompts, the other writes answers.

    Parameters
    ----------
    workload : Workload
        The requests.
    prefill, decode : sequence of EngineConfig
        The replicas of each pool.
    transfer_token_seconds : float
        Handing over the cache of one token, ``cache_transfer(model, 1, bandwidth).seconds`` [seconds/token].
    transfer_seconds : float
        Fixed part of each transfer [seconds].
    prefill_router, decode_router : Router, optional
        Who gets a request in each pool; the least loaded if not given.

    Returns
    -------
    Result
        First tokens from the one pool, last tokens from the other. ``replica`` counts in the pool that wrote the
        answer, or in the prefill pool where the first token was the last.

    Raises
    ------
    ValueError
        If a pool is empty or a time is negative.

    Notes
    -----
    The prefill pool never waits for the decode pool, so it is run first; a prompt's cache leaves its machine as soon
    as the first token is there. Transfers do not wait for one another.

    Examples
    --------
    >>> from lantern_lib.simulator import EngineConfig, StepModel
    >>> from lantern_lib.workload import at_once
    >>> one = [EngineConfig(StepModel(weight_seconds=1.0), max_batch=1)]
    >>> done = simulate_disaggregated(at_once(2, 5, 3), one, one, transfer_seconds=0.5)
    >>> done.first_token_seconds.tolist(), done.last_token_seconds.tolist()
    ([1.0, 2.0], [3.5, 5.5])
    """
    each = require_non_negative("transfer_token_seconds", transfer_token_seconds)
    fixed = require_non_negative("transfer_seconds", transfer_seconds)
    reading = replace(workload, output_len=np.ones(len(workload), np.int64))
    read = simulate_fleet(reading, prefill, prefill_router or LeastLoaded())
    result = replace(read, output_len=workload.output_len.copy())
    rows = np.flatnonzero(read.finished & (workload.output_len > 1))
    if not len(rows):
        return result
    ready = read.first_token_seconds[rows] + fixed + each * workload.prompt_len[rows]
    order = np.argsort(ready, kind="stable")
    rows, ready = rows[order], ready[order]
    columns = {name: getattr(workload, name)[rows] for name in ("prompt_len", "output_len", "priority", "session")}
    arriving = Workload(arrival_seconds=ready, **columns)
    pool = [replace(config, prefilled=True) for config in decode]
    written = simulate_fleet(arriving, pool, decode_router or LeastLoaded())
    for name in ("last_token_seconds", "status", "num_preemptions", "replica"):
        column = getattr(result, name)
        before = column[rows] if name == "num_preemptions" else 0
        column[rows] = getattr(written, name) + before
    # A request that the decode pool refused is refused for its final length there.
    refused = written.reasons[Status.REJECTED] if (written.status == Status.REJECTED).any() else None
    reasons = tuple(refused if refused and i == Status.REJECTED else text for i, text in enumerate(read.reasons))
    return replace(
        result,
        num_events=read.num_events + written.num_events,
        num_steps=read.num_steps + written.num_steps,
        end_seconds=max(read.end_seconds, written.end_seconds),
        reasons=reasons,
    )
