"""The engine in leaps: work grows with requests, not with tokens.

Between two events nothing in the batch changes: the same sequences decode, the same prompt is read in equal
pieces. Each step then computes as many tokens as the one before, and the cache it reads and the pairs
it attends to grow by the same amounts. So both parts of the step's time are straight lines in the number of the
step, their maximum has at most one bend, and the sum of any number of steps has a closed form
(``cost.run_seconds``). An event is what can change the batch:

- a sequence writes its last token. All decode in step, so a counter of rounds and a heap of the rounds in which
  they finish tell when; nobody's tokens are counted;
- a request arrives that could be admitted. The step in which it is noticed is a root of the closed form
  (``cost.leap``). While the batch is full, or the head of the queue has no room, arrivals change nothing
  until somebody leaves, and are taken in then;
- a prompt is read to its end, or the next piece would be a shorter one;
- the free blocks end. Sequences take a new block every ``block_size`` rounds, at a phase that is theirs; a count of
  sequences by phase tells how many blocks each round takes;
- a waiting request's deadline passes while memory keeps it out.

Preemption, eviction and admission happen at events only, by the same rules as in ``reference``, and the two
agree on every record.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from heapq import heappop, heappush

from lantern_lib.simulator.config import EngineConfig
from lantern_lib.simulator.cost import leap
from lantern_lib.simulator.decoding import Decoding, Served
from lantern_lib.simulator.intake import Intake
from lantern_lib.simulator.records import Recorder, Status
from lantern_lib.simulator.segments import SegmentPool, Segments
from lantern_lib.simulator.sources import TIE_SECONDS, Source
from lantern_lib.workload.requests import Workload

#: More steps than any run has; one leap is never longer.
ENDLESS = 2**40
#: More blocks than any run needs, for memory that never ends.
UNLIMITED = 2**62


#: Who reads how many tokens of a prompt in one step.
Chunks = list[tuple[Served, int]]


class Engine:
    """One replica that leaps from event to event.

    Parameters
    ----------
    config : EngineConfig
        The replica and its rules.
    workload : Workload
        The requests.
    source : Source
        When they arrive.
    records : Recorder
        Where their times go.
    replica : int
        Number written into the records.
    on_event : callable, optional
        Called with the engine at the beginning of each event, to watch it.
    segments : Segments, optional
        Those of the workload, where several engines serve it.
    """

    def __init__(
        self,
        config: EngineConfig,
        workload: Workload,
        source: Source,
        records: Recorder,
        replica: int = 0,
        on_event: Callable[[Engine], None] | None = None,
        segments: Segments | None = None,
    ) -> None:
        self.config, self.source, self.records, self.on_event = config, source, records, on_event
        self.intake = Intake(config, workload, source, records, replica)
        self.segments = segments or (Segments(workload) if self.intake.named else None)
        sizes = self.segments.sizes if self.segments else ()
        self.pool = SegmentPool(
            UNLIMITED if config.num_blocks is None else config.num_blocks, sizes, config.host_blocks
        )
        self.waiting = self.intake.waiting
        self.chunked = config.prefill == "chunked"
        self.paged = config.admission == "blocks"
        cost = config.cost
        self.checked = cost.checked_tokens
        self.prices = (cost.token_seconds, cost.pair_seconds, cost.weight_seconds, cost.cached_token_seconds)
        self.fixed = (cost.fixed_seconds, cost.message_seconds, cost.draft_seconds)
        self.now = self.stall = 0.0
        self.num_events = self.num_steps = 0
        self.batch = Decoding(cost.tokens_per_round, config.block_size)
        self.decoding = self.batch.members
        self._flight: tuple[int, Chunks, int] | None = None  # steps under way, who reads, how many decode
        self._lands = 0.0  # when they end
        self.partial: Served | None = None  # whose prompt is being read in pieces
        self.sent_back: dict[int, Served] = {}

    @property
    def num_running(self) -> int:
        """Sequences in the batch, the one whose prompt is being read included [sequences]."""
        reading = [] if self._flight is None else [one for one, _ in self._flight[1]]
        left = self.partial is not None and self.partial not in reading
        return len(self.decoding) + len(reading) + left

    def run_until(self, limit: float = math.inf, max_events: int = 10_000_000) -> None:
        """Serve up to a time, or until nobody is left.

        Steps that begin before that time are begun, and those that end by then are ended. One that is under way
        stays so until the next call, or :meth:`land`: nobody can know its tokens yet.

        Parameters
        ----------
        limit : float
            The time [seconds].
        max_events : int
            Refuse to take more events than this, over the engine's life [events].

        Raises
        ------
        TooManyEventsError
            If it takes more events.
        """
        source, waiting, intake = self.source, self.waiting, self.intake
        while True:
            if self._flight is not None:
                if self._lands > limit + TIE_SECONDS:
                    return
                self.land()
            if self.now >= limit - TIE_SECONDS:
                return
            if source.next_seconds <= self.now + TIE_SECONDS:
                intake.arrive(self.now)
            self.num_events += 1
            if self.num_events > max_events:
                raise intake.too_many(max_events, self.now, self.num_running)
            preempted = self.paged and self.pool.available < 0 and self._make_room()
            if self.pool.idle:
                self.pool.trim()
            if self.on_event is not None:
                self.on_event(self)
            budget, chunks = self._continue_prompt()
            if waiting and not preempted:
                self._admit(budget, chunks)
            if chunks or self.decoding:
                self._leap(chunks, preempted, limit)
            elif source.next_seconds < limit:
                self.now = max(self.now, source.next_seconds)
            else:
                return

    def land(self) -> None:
        """End the steps that are under way: hand out their tokens, and let those go who have their last."""
        if self._flight is None:
            return
        steps, chunks, num_decoding = self._flight
        self._flight = None
        self.now = self._lands
        self.num_steps += steps
        if num_decoding:
            self._pass_rounds(steps)
        for one, size in chunks:
            self._read(one, steps * size)

    def _make_room(self) -> bool:
        """Send the last sequences back to the queue while the next tokens have no room."""
        config, pool = self.config, self.pool
        while pool.available < 0:
            one = self._last()
            if one is self.partial:
                self.partial = None
            else:
                one.private = config.blocks(self.batch.leave(one)) - one.shared
            pool.release(one.segments, one.private, one.computed // config.block_size)
            if config.preemption == "swap":
                self.stall += one.computed * config.swap_token_seconds
            else:
                one.computed = 0
            one.segments, one.shared = (), 0
            self.records.preemptions[one.row] += 1
            self.records.status[one.row] = Status.WAITING
            self.sent_back[one.row] = one
            heappush(self.waiting, (one.priority, one.place, one.row))
        return True

    def _last(self) -> Served:
        """The sequence of the least urgent class that arrived last."""
        if not self.intake.many_priorities:
            if self.partial is not None:
                return self.partial
            return self.decoding[max(self.decoding)]
        running = [*self.decoding.values(), *([self.partial] if self.partial else [])]
        return max(running, key=lambda one: (one.priority, one.place))

    def _continue_prompt(self) -> tuple[int, Chunks]:
        """Return the next piece of the unfinished prompt, and what the step can take besides."""
        budget = self.config.token_budget
        if not self.chunked:
            return budget, []
        budget -= self.checked * len(self.decoding)
        one = self.partial
        if one is None or budget <= 0:
            return budget, []
        size = min(one.unread, budget)
        return budget - size, [(one, size)]

    def _admit(self, budget: int, chunks: Chunks) -> None:
        """Take from the queue while batch, step and memory have room, and add the pieces to be read."""
        waiting, intake, pool, config = self.waiting, self.intake, self.pool, self.config
        segments, chunked, block_size = self.segments, self.chunked, config.block_size
        late = config.max_wait_seconds is not None
        while waiting and budget > 0 and len(self.decoding) + len(chunks) < config.max_batch:
            if late and intake.drop_if_late(self.now):
                continue
            priority, place, row = waiting[0]
            one = (self.sent_back.get(row) if self.sent_back else None) or self._new(priority, place, row)
            wanted = () if segments is None or one.computed else segments.of(row)
            most_found = (one.prompt + one.written - 1) // block_size
            found = sum(pool.find(wanted, most_found)) * block_size if wanted else 0
            unread = one.unread - found
            if not chunked and chunks and unread > budget:
                break
            final = one.written if self.paged else one.output
            total = -(-(one.prompt + final) // block_size)
            grant = pool.admit(total, wanted, most_found)
            if grant is None:
                break
            heappop(waiting)
            self.sent_back.pop(row, None)
            _, loaded, one.segments, one.shared = grant
            self.stall += one.computed * config.swap_token_seconds + loaded * config.host_block_seconds
            one.computed += found
            one.private = total - one.shared
            intake.scheduled(row, self.now, found)
            if one.written and unread == 1:
                self._join(one)
                budget -= self.checked if chunked else 0
            else:
                size = min(unread, budget) if chunked else unread
                chunks.append((one, size))
                budget -= size

    def _new(self, priority: int, place: int, row: int) -> Served:
        one = Served(row, priority, place, self.records.prompt_len[row], self.records.output_len[row])
        if self.config.prefilled:
            one.written, one.computed = 1, one.prompt
        return one

    def _join(self, one: Served) -> None:
        self.batch.join(one)
        if self.paged:
            private = self.config.blocks(one.prompt + one.written) - one.shared
            self.pool.private += private - one.private
            one.private = private

    def _leap(self, chunks: Chunks, preempted: bool, limit: float) -> None:
        """Choose how many steps are alike, and begin them."""
        num_decoding = 0 if chunks and not self.chunked else len(self.decoding)
        num_tokens = self.checked * num_decoding
        read = self.batch.context if num_decoding else 0
        attended, size = self.checked * read, 0
        grown = num_decoding * self.batch.per_round
        for one, size in chunks:
            num_tokens += size
            attended += size * one.computed + size * (size + 1) / 2
            read += one.computed
        by_token, by_pair, weights, by_cached = self.prices
        fixed, by_message, draft = self.fixed
        compute, memory = num_tokens * by_token + attended * by_pair, weights + read * by_cached
        other = fixed + num_tokens * by_message + (draft if num_decoding else 0.0)
        steps = 1 if preempted or self.stall else self._most_steps(chunks, num_decoding)
        if steps == 1:
            spent = (compute if compute > memory else memory) + other + self.stall
            self.stall = 0.0
        else:
            line = (compute, (self.checked * grown + size * size) * by_pair, memory, (grown + size) * by_cached)
            until = self._next_change(chunks, limit) - self.now - TIE_SECONDS
            steps, spent = leap(until, steps, *line, other)
        self._flight = steps, chunks, num_decoding
        self._lands = self.now + spent

    def _most_steps(self, chunks: Chunks, num_decoding: int) -> int:
        """Return how many steps are alike at most, arrivals aside."""
        steps = ENDLESS
        if chunks:
            one, size = chunks[0]
            unread = one.unread
            if len(chunks) > 1 or size >= unread:
                return 1
            steps = (unread - 1) // size
        if num_decoding:
            steps = min(steps, self.batch.rounds_left())
            if self.paged:
                # The blocks of the first step's tokens are there already.
                steps = 1 + self.batch.rounds_in(self.pool.available, steps - 1)
        return steps

    def _next_change(self, chunks: Chunks, limit: float) -> float:
        """Return when, at the earliest, somebody could be admitted or dropped who cannot be now [seconds]."""
        num_running = len(self.decoding)
        if chunks or num_running >= self.config.max_batch:
            return limit
        if self.chunked and self.config.token_budget <= self.checked * num_running:
            return limit
        until = limit
        if not self.waiting or self.intake.many_priorities:
            until = min(until, self.source.next_seconds)
        if self.waiting and (deadline := self.intake.deadline(self.waiting[0][2])) is not None:
            until = min(until, deadline)
        return until

    def _pass_rounds(self, rounds: int) -> None:
        """Let all decoding sequences write, and take out those that are done."""
        batch, pool = self.batch, self.pool
        if self.paged and rounds > 1:
            pool.private += batch.blocks_taken(rounds - 1)
            if pool.idle:
                pool.trim()
        batch.pass_rounds(rounds)
        while (one := batch.ended()) is not None:
            context = batch.leave(one)
            if self.paged:
                # The last token is never read, so it has no place in the cache.
                one.private = self.config.blocks(context - 1) - one.shared
            self._finish(one)
        if self.paged:
            pool.private += batch.phases[(1 - batch.rounds) % batch.block_size]

    def _finish(self, one: Served) -> None:
        self.pool.release(one.segments, one.private)
        self.records.last[one.row] = self.now
        self.intake.over(one.row, self.now, Status.FINISHED)

    def _read(self, one: Served, num_tokens: int) -> None:
        """Put tokens of a prompt into the cache; the last of them gives the next token of the answer."""
        one.computed += num_tokens
        unread = one.unread
        self.partial = one if unread else None
        if unread == 1 and one.written:
            self.partial = None  # all that is left is a token of its own answer: it decodes again
            self._join(one)
        if unread:
            return
        if not one.written:
            self.records.first[one.row] = self.now
        one.written += 1
        if one.written == one.output:
            self._finish(one)
        else:
            self._join(one)
