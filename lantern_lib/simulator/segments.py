"""A pool that counts shared blocks by the run instead of one by one.

A prompt of 2,000 tokens has 125 blocks of 16, and almost all of them go the same way all the time: the blocks of a
system prompt are in every prompt, the blocks of one user's question in one. A **segment** is a run of blocks that
occur in the same prompts only. Whoever holds its first block holds all of it, they become idle together,
and the last of them is given away first; so how many of its blocks are left says all there is to know. The pool
does with segments what ``pool.Pool`` does with blocks, with work by the segment.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from lantern_lib.workload.requests import Workload


class Segments:
    """The segments of a workload's prompts.

    Parameters
    ----------
    workload : Workload
        Requests whose prompts have named blocks.

    Raises
    ------
    ValueError
        If a name follows one name here and another there: then it does not stand for everything before it.

    Examples
    --------
    >>> from lantern_lib.workload import Request, Workload
    >>> rows = [Request(0.0, 9, 1, prefix_blocks=(1, 2, 3, 4)), Request(0.0, 9, 1, prefix_blocks=(1, 2, 5))]
    >>> segments = Segments(Workload.from_requests(rows, block_size=2))
    >>> [[segments.sizes[s] for s in segments.of(row)] for row in (0, 1)]
    [[2, 2], [2, 1]]
    """

    def __init__(self, workload: Workload) -> None:
        full = workload.prompt_len // workload.block_size
        given = np.diff(workload.block_starts)
        lengths = np.minimum(given, full)
        starts = np.concatenate([[0], np.cumsum(lengths)])
        names = workload.block_ids
        if (lengths < given).any():  # a name for a last block that is not full
            names = names[np.arange(starts[-1]) + np.repeat(workload.block_starts[:-1] - starts[:-1], lengths)]
        if len(names) and names.max() > 8 * len(names):
            names = np.unique(names, return_inverse=True)[1]
        first = np.zeros(len(names), bool)
        first[starts[:-1][lengths > 0]] = True
        self._check(names, first, starts)
        # A name stands for all before it, so a name that occurs as often as its predecessor always follows it.
        counts = np.bincount(names, minlength=1)
        # One token has to be computed: of a prompt that ends with a block, the last one cannot come from the cache.
        whole = (lengths == full) & (workload.prompt_len % workload.block_size == 0) & (full > 0)
        last = names[starts[1:][whole] - 1]
        counts[last] = -counts[last]
        occurring = counts[names]
        breaks = first
        breaks[1:] |= occurring[1:] != occurring[:-1]
        begins = np.flatnonzero(breaks)
        number = np.full(len(counts), -1)
        number[names[begins]] = np.arange(len(begins))
        ids = number[names[begins]]
        sizes = np.zeros(len(begins), np.int64)
        sizes[ids] = np.diff(np.append(begins, len(names)))
        self.sizes: list[int] = sizes.tolist()
        self._ids: list[int] = ids.tolist()
        self._starts: list[int] = np.searchsorted(begins, starts).tolist()

    @staticmethod
    def _check(names: NDArray[np.int64], first: NDArray[np.bool_], starts: NDArray[np.int64]) -> None:
        before = np.empty_like(names)
        before[1:] = names[:-1]
        before[first] = -1
        follows = np.empty(names.max(initial=0) + 1, np.int64)
        follows[names] = before
        bad = np.flatnonzero(follows[names] != before)
        if bad.size:
            row = int(np.searchsorted(starts, bad[0], side="right")) - 1
            raise ValueError(
                f"block_ids must name a block together with everything before it, got a name in row {row} that follows"
                " another name elsewhere. Hash each block with the hash of the block before."
            )

    def of(self, row: int) -> list[int]:
        """Return the segments of a prompt, in order.

        Parameters
        ----------
        row : int
            The request.

        Returns
        -------
        list of int
            Their numbers, for ``sizes``.
        """
        return self._ids[self._starts[row] : self._starts[row + 1]]


class SegmentPool:
    """Counts of blocks, with the shared ones by segment; see :class:`lantern_lib.simulator.pool.Pool`.

    Parameters
    ----------
    num_blocks : int
        Blocks in memory [blocks].
    sizes : sequence of int
        Blocks of each segment [blocks].
    host_blocks : int
        Blocks in the host's memory [blocks].

    Examples
    --------
    >>> pool = SegmentPool(num_blocks=4, sizes=[2, 1])
    >>> pool.admit(total=3, segments=[0], most_found=2)
    (0, 0, [0], 2)
    >>> pool.release([0], private=1)
    >>> pool.admit(total=4, segments=[0, 1], most_found=3)
    (2, 0, [0, 1], 3)
    >>> pool.available
    0
    """

    __slots__ = (
        "_sizes",
        "held",
        "holders",
        "host",
        "host_blocks",
        "idle",
        "num_blocks",
        "num_host",
        "num_idle",
        "private",
    )

    def __init__(self, num_blocks: int, sizes: Sequence[int] = (), host_blocks: int = 0) -> None:
        self.num_blocks, self._sizes, self.host_blocks = num_blocks, sizes, host_blocks
        self.private = self.held = self.num_idle = self.num_host = 0
        self.holders: dict[int, int] = {}
        self.idle: OrderedDict[int, int] = OrderedDict()  # segment: blocks that are left of it
        self.host: OrderedDict[int, int] = OrderedDict()  # segment: blocks that follow those

    @property
    def available(self) -> int:
        """Blocks that nobody holds, idle ones included; negative when more was promised than there is [blocks]."""
        return self.num_blocks - self.private - self.held

    def find(self, segments: Sequence[int], most: int) -> tuple[int, int]:
        """Return how many leading blocks are cached, and how many after them the host has, at most `most` [blocks]."""
        found = loaded = 0
        for segment in segments:
            size = self._sizes[segment]
            if found + loaded + size > most:
                break
            left = size if segment in self.holders else self.idle.get(segment, 0)
            if loaded and left:
                break
            found += left
            if left < size:
                more = self.host.get(segment, 0)
                loaded += more
                if left + more < size:
                    break
        return found, loaded

    def admit(
        self, total: int, segments: Sequence[int] = (), most_found: int = 0
    ) -> tuple[int, int, Sequence[int], int] | None:
        """Give a request its blocks, or nothing at all if they do not suffice.

        Parameters
        ----------
        total : int
            Blocks it needs, the shared ones included [blocks].
        segments : sequence of int
            Segments of its prompt.
        most_found : int
            At most so many blocks may come from the cache [blocks].

        Returns
        -------
        tuple or None
            Blocks found in the cache, blocks to be loaded from the host, the segments it holds from now on and their
            blocks; None if there is no room.
        """
        available = self.num_blocks - self.private - self.held
        if not segments:
            if total > available:
                return None
            self.private += total
            if self.idle:
                self.trim()
            return 0, 0, (), 0
        found, loaded = self.find(segments, most_found)
        woken = before = 0
        for segment in segments:
            if before >= found:
                break
            before += self._sizes[segment]
            woken += self.idle.get(segment, 0)
        if total - found + woken > available:
            return None
        mine, shared, before = [], 0, 0
        for segment in segments:
            size = self._sizes[segment]
            if before < found or (segment not in self.holders and segment not in self.idle):
                count = self.holders.get(segment, 0)
                self.holders[segment] = count + 1
                if not count:
                    self.held += size
                    self.num_idle -= self.idle.pop(segment, 0)
                    self.num_host -= self.host.pop(segment, 0)
                mine.append(segment)
                shared += size
            before += size
        self.private += total - shared
        if self.idle:
            self.trim()
        return found, loaded, mine, shared

    def release(self, segments: Sequence[int], private: int, num_computed: int | None = None) -> None:
        """Take a request's blocks back; its segments stay as idle.

        Parameters
        ----------
        segments : sequence of int
            What it held.
        private : int
            Its other blocks [blocks].
        num_computed : int, optional
            Only so many leading blocks have their content; the rest is forgotten [blocks].
        """
        self.private -= private
        if not segments:
            return
        end = 0 if num_computed is None else sum(self._sizes[segment] for segment in segments)
        # The end of a prompt goes first, so that what is left is still a beginning.
        for segment in reversed(segments):
            size = self._sizes[segment]
            end -= size
            count = self.holders[segment] - 1
            if count:
                self.holders[segment] = count
                continue
            del self.holders[segment]
            self.held -= size
            left = size if num_computed is None else max(0, min(size, num_computed - end))
            if left:
                self.idle[segment] = left
                self.num_idle += left

    def trim(self) -> None:
        """Give idle blocks away until what is held has its room."""
        excess = self.num_idle - self.num_blocks + self.private + self.held
        while excess > 0 and self.idle:
            segment, left = next(iter(self.idle.items()))
            gone = min(left, excess)
            if gone == left:
                del self.idle[segment]
            else:
                self.idle[segment] = left - gone
            self.num_idle -= gone
            excess -= gone
            if self.host_blocks:
                self._to_host(segment, gone)

    def _to_host(self, segment: int, num_blocks: int) -> None:
        self.host[segment] = self.host.get(segment, 0) + num_blocks
        self.host.move_to_end(segment)
        self.num_host += num_blocks
        while self.num_host > self.host_blocks:
            oldest, left = next(iter(self.host.items()))
            gone = min(left, self.num_host - self.host_blocks)
            if gone == left:
                del self.host[oldest]
            else:
                self.host[oldest] = left - gone
            self.num_host -= gone
