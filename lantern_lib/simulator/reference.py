"""The engine as a loop to read: one turn of it is one step.

Each turn: arrivals join the queue; sequences whose next token has no room go back to it; newcomers are admitted;
the step is timed; whoever got a last token leaves. ``engine`` does the same faster; this loop says what it
has to do.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from heapq import heappop, heappush

from lantern_lib.simulator.config import EngineConfig
from lantern_lib.simulator.intake import Intake
from lantern_lib.simulator.pool import Pool
from lantern_lib.simulator.records import Recorder, Result, Status
from lantern_lib.simulator.sources import TIE_SECONDS, OpenLoop, Source
from lantern_lib.workload.requests import Workload


@dataclass(eq=False)
class _Served:
    """A request in the engine: ``written`` tokens of its answer are known and ``computed`` tokens are in the cache."""

    row: int
    key: tuple[int, int]  # its class and its place in the order of arrival
    prompt: int
    output: int
    written: float = 0
    computed: float = 0
    held: int = 0  # blocks
    names: Sequence[int] = ()

    @property
    def known(self) -> float:
        return self.prompt + self.written

    @property
    def decodes(self) -> bool:
        """Only the last written token is not in the cache yet."""
        return self.written > 0 and self.computed == self.known - 1


Chunks = list[tuple[_Served, int]]


class _StepLoop:
    def __init__(self, config: EngineConfig, workload: Workload, source: Source) -> None:
        self.config, self.cost, self.source = config, config.cost, source
        self.records = Recorder(workload)
        self.intake = Intake(config, workload, source, self.records)
        self.pool = Pool(2**62 if config.num_blocks is None else config.num_blocks, config.host_blocks)
        self.chunked = config.prefill == "chunked"
        self.running: list[_Served] = []
        self.sent_back: dict[int, _Served] = {}
        self.now = self.stall = 0.0
        self.num_steps = 0

    def new(self, row: int, key: tuple[int, int]) -> _Served:
        prompt = self.records.prompt_len[row]
        one = _Served(row, key, prompt, self.records.output_len[row])
        if self.config.prefilled:
            one.written, one.computed = 1, prompt
        return one

    def blocks_of(self, one: _Served) -> int:
        final = self.config.admission == "final"
        return self.config.blocks(one.prompt + one.output if final else int(one.known))

    def make_room(self) -> bool:
        """Give every sequence the blocks of its next token; while they do not suffice, the last one goes back."""
        for one in self.running:
            more = self.blocks_of(one) - one.held
            one.held += more
            self.pool.private += more
        before = len(self.running)
        while self.pool.available < 0:
            one = max(self.running, key=lambda each: each.key)
            self.running.remove(one)
            self.pool.release(one.names, one.held - len(one.names), int(one.computed) // self.config.block_size)
            if self.config.preemption == "swap":
                self.stall += one.computed * self.config.swap_token_seconds
            else:
                one.computed = 0
            one.names = ()
            self.records.preemptions[one.row] += 1
            self.records.status[one.row] = Status.WAITING
            self.sent_back[one.row] = one
            heappush(self.intake.waiting, (*one.key, one.row))
        self.pool.trim()
        return len(self.running) < before

    def admit(self, budget: int) -> Chunks:
        """Take from the queue while batch, step and memory have room. Return who reads how much in this step."""
        chunks: Chunks = []
        while self.intake.waiting and len(self.running) < self.config.max_batch and budget > 0:
            if self.intake.drop_if_late(self.now):
                continue
            priority, place, row = self.intake.waiting[0]
            one = self.sent_back.get(row) or self.new(row, (priority, place))
            names: Sequence[int] = [] if one.computed else self.intake.names(row)
            most_found = int(one.known - 1) // self.config.block_size
            found = sum(self.pool.find(names, most_found)) * self.config.block_size
            unread = int(one.known - one.computed) - found
            if not self.chunked and chunks and unread > budget:
                break
            total = self.blocks_of(one)
            grant = self.pool.admit(total, names, most_found)
            if grant is None:
                break
            heappop(self.intake.waiting)
            self.sent_back.pop(row, None)
            _, loaded, names = grant
            self.stall += one.computed * self.config.swap_token_seconds + loaded * self.config.host_block_seconds
            one.computed, one.held, one.names = one.computed + found, total, names
            self.intake.scheduled(row, self.now, found)
            self.running.append(one)
            if not one.decodes:
                chunks.append((one, min(unread, budget) if self.chunked else unread))
                budget -= chunks[-1][1]
            elif self.chunked:
                budget -= self.cost.checked_tokens
        return chunks

    def plan(self, preempted: bool) -> tuple[list[_Served], Chunks]:
        """Decide who decodes in this step, and who reads how many tokens of a prompt."""
        if not self.chunked:
            prompts = [] if preempted else self.admit(self.config.token_budget)
            return ([] if prompts else self.running), prompts
        budget = self.config.token_budget - self.cost.checked_tokens * sum(one.decodes for one in self.running)
        chunks: Chunks = []
        for one in self.running:  # at most one has an unfinished prompt
            if not one.decodes and budget > 0:
                chunks.append((one, min(int(one.known - one.computed), budget)))
                budget -= chunks[-1][1]
        if not preempted:
            chunks += self.admit(budget)
        return [one for one in self.running if one.decodes], chunks

    def step(self, decoders: list[_Served], chunks: Chunks) -> None:
        """Let the time of one step pass and hand out its tokens."""
        checked, context = self.cost.checked_tokens, sum(one.known for one in decoders)
        num_tokens = checked * len(decoders) + sum(size for _, size in chunks)
        attended = checked * context + sum(size * one.computed + size * (size + 1) / 2 for one, size in chunks)
        read = context + sum(one.computed for one, _ in chunks)
        self.now += self.stall + self.cost.step_seconds(num_tokens, attended, read, decoding=bool(decoders))
        self.stall = 0.0
        self.num_steps += 1
        for one in sorted(decoders, key=lambda each: each.key[1]):
            self.write(one, self.cost.tokens_per_round)
        for one, size in chunks:
            one.computed += size
            if one.computed == one.known:
                self.write(one, 1)

    def write(self, one: _Served, tokens: float) -> None:
        one.written += tokens
        one.computed = one.known - 1
        if math.isnan(self.records.first[one.row]) and not self.config.prefilled:
            self.records.first[one.row] = self.now
        if one.written >= one.output - 1e-6:
            self.records.last[one.row] = self.now
            self.running.remove(one)
            self.pool.release(one.names, one.held - len(one.names))
            self.intake.over(one.row, self.now, Status.FINISHED)

    def run(self, horizon: float, max_events: int) -> Result:
        while self.now < horizon - TIE_SECONDS:
            self.intake.arrive(self.now)
            decoders, chunks = self.plan(self.make_room())
            if decoders or chunks:
                self.step(decoders, chunks)
            elif self.source.next_seconds < horizon:
                self.now = max(self.now, self.source.next_seconds)
            else:
                break
            if self.num_steps > max_events:
                raise self.intake.too_many(max_events, self.now, len(self.running))
        self.intake.arrive(horizon)
        return self.intake.result(self.num_steps, self.num_steps, self.now)


def simulate_by_steps(
    workload: Workload,
    config: EngineConfig,
    *,
    source: Source | None = None,
    horizon_seconds: float = math.inf,
    max_events: int = 10_000_000,
) -> Result:
    """Serve a workload on one replica, one step at a time.

    Parameters
    ----------
    workload : Workload
        The requests.
    config : EngineConfig
        The replica and its rules.
    source : Source, optional
        When requests arrive; without it when the workload says.
    horizon_seconds : float
        Stop at the first step that would begin at or after this time [seconds].
    max_events : int
        Refuse to take more steps than this [steps].

    Returns
    -------
    Result
        One record for each request.

    Raises
    ------
    TooManyEventsError
        If the run takes more steps; the message says who was still waiting.

    Examples
    --------
    >>> from lantern_lib.simulator import EngineConfig, StepModel
    >>> from lantern_lib.workload import Request, Workload
    >>> pair = Workload.from_requests([Request(0.0, 10, 3), Request(0.5, 10, 1)])
    >>> result = simulate_by_steps(pair, EngineConfig(StepModel(weight_seconds=1.0)))
    >>> result.first_token_seconds.tolist(), result.last_token_seconds.tolist()
    ([1.0, 2.0], [4.0, 2.0])
    """
    loop = _StepLoop(config, workload, OpenLoop(workload) if source is None else source)
    return loop.run(horizon_seconds, max_events)
