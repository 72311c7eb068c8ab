"""The sequences that decode together: all write in step, so one counter stands for all their tokens."""

from __future__ import annotations

import math
from collections.abc import Sequence
from heapq import heappop, heappush


class Served:
    """A request in the engine.

    ``written`` tokens of its answer are known and ``computed`` tokens are in the cache. Both are up to date while it
    does not decode; while it does, its context is ``base`` plus what the rounds have added since.
    """

    __slots__ = (
        "base",
        "computed",
        "finish",
        "output",
        "place",
        "priority",
        "private",
        "prompt",
        "row",
        "segments",
        "shared",
        "written",
    )

    def __init__(self, row: int, priority: int, place: int, prompt: int, output: int) -> None:
        self.row, self.priority, self.place, self.prompt, self.output = row, priority, place, prompt, output
        self.written = self.computed = 0
        self.base: float = 0
        self.finish = -1  # the round after which it is done, -1 while it does not decode
        self.private = 0  # blocks that it alone holds; up to date while it does not decode
        self.segments: Sequence[int] = ()
        self.shared = 0  # blocks of those

    @property
    def unread(self) -> int:
        """Known tokens that are not in the cache [tokens]."""
        return self.prompt + self.written - self.computed


class Decoding:
    """The decoding batch.

    ``members`` are its sequences by their place in the order of arrival, ``rounds`` counts the decode steps so far, and
    ``context`` is the number of tokens that all of them attend to in the coming one. In a round each sequence
    gains ``per_round`` tokens, so the round in which it ends is known when it joins, and a heap tells which is first.

    A sequence takes a new block in the rounds where its context is a multiple of the block's size, that is,
    at a phase of the counter that stays its own. ``phases`` counts the members by it.
    """

    __slots__ = ("_finishing", "block_size", "context", "members", "per_round", "phases", "rounds")

    def __init__(self, per_round: float, block_size: int) -> None:
        self.per_round, self.block_size = per_round, block_size
        self.rounds = 0
        self.context: float = 0
        self.members: dict[int, Served] = {}
        self.phases = [0] * block_size
        self._finishing: list[tuple[int, int, Served]] = []

    def join(self, one: Served) -> None:
        """Take a sequence in whose last written token is next to be read."""
        context, left, each = one.prompt + one.written, one.output - one.written, self.per_round
        one.finish = self.rounds + (left if each == 1 else math.ceil((left - 1e-6) / each))
        one.base = context - each * self.rounds
        self.context += context
        self.members[one.place] = one
        self.phases[int(one.base) % self.block_size] += 1
        heappush(self._finishing, (one.finish, one.place, one))

    def leave(self, one: Served) -> int:
        """Bring a sequence up to date and let it go. Return the tokens of its coming step [tokens]."""
        context = int(one.base + self.per_round * self.rounds)
        del self.members[one.place]
        self.context = self.context - one.base - self.per_round * self.rounds if self.members else 0
        self.phases[int(one.base) % self.block_size] -= 1
        one.finish = -1
        one.written, one.computed = context - one.prompt, context - 1
        return context

    def rounds_left(self) -> int:
        """Return the rounds until the first member ends [rounds]."""
        finishing = self._finishing
        while finishing[0][2].finish != finishing[0][0]:
            heappop(finishing)  # it was sent back since
        return finishing[0][0] - self.rounds

    def pass_rounds(self, rounds: int) -> None:
        """Let every member write for so many rounds."""
        self.rounds += rounds
        self.context += rounds * len(self.members) * self.per_round

    def ended(self) -> Served | None:
        """Return a member that has its last token, None if none has."""
        while self._finishing and self._finishing[0][0] <= self.rounds:
            finish, _, one = heappop(self._finishing)
            if one.finish == finish:
                return one
        return None

    def blocks_taken(self, rounds: int) -> int:
        """Return how many blocks the members take in coming rounds, one token each a round [blocks]."""
        phases, size = self.phases, self.block_size
        cycles, rest = divmod(rounds, size)
        taken = cycles * len(self.members)
        if rest:
            first = -self.rounds % size
            last = first - rest + 1
            taken += sum(phases[last : first + 1]) if last >= 0 else sum(phases[: first + 1]) + sum(phases[last:])
        return taken

    def rounds_in(self, free: int, most: int) -> int:
        """Return how many rounds, at most `most`, take no more than the free blocks [rounds]."""
        members, size = len(self.members), self.block_size
        if members * (most // size + 1) <= free or self.blocks_taken(most) <= free:
            return most
        cycles, free = divmod(free, members)
        rounds, phase = cycles * size, -self.rounds % size
        while self.phases[phase] <= free:
            free -= self.phases[phase]
            phase -= 1  # from 0 to the last one: a list counts -1 from its end
            rounds += 1
        return rounds
