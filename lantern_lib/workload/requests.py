"""A workload as columns: one row a request, in order of arrival."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lantern_lib.units import require_int, require_non_negative


@dataclass(frozen=True)
class Request:
    """One request, a row of a ``Workload``.

    ``prefix_blocks`` names the full blocks of the prompt from its beginning, a name for what stands in the block and
    everything before it: two requests share a prefix exactly as far as these agree.
    """

    arrival_seconds: float
    prompt_len: int
    output_len: int
    priority: int = 0
    session: int = -1
    prefix_blocks: tuple[int, ...] = ()


@dataclass(frozen=True)
class Call:
    """One call of a session: lengths [tokens], and the pause since the answer before it [seconds].

    ``reused_len`` is how many of the prompt's first tokens stood, unchanged, in the session's call before.
    """

    prompt_len: int
    output_len: int
    gap_seconds: float = 0.0
    reused_len: int = 0

    def __post_init__(self) -> None:
        require_int("prompt_len", self.prompt_len)
        require_int("output_len", self.output_len)
        require_non_negative("gap_seconds", self.gap_seconds)
        require_int("reused_len", self.reused_len, minimum=0)
        if self.reused_len > self.prompt_len:
            raise ValueError(
                f"reused_len must be at most prompt_len = {self.prompt_len}, got {self.reused_len}."
                " A call cannot reuse more tokens than it sends."
            )


@dataclass(frozen=True)
class Session:
    """Calls that follow one another; each waits for the answer before it, then for its gap."""

    calls: tuple[Call, ...]
    start_seconds: float = 0.0

    def __post_init__(self) -> None:
        require_non_negative("start_seconds", self.start_seconds)
        if not self.calls:
            raise ValueError("calls must hold at least one call, got none. A session starts with a call.")


def _whole(name: str, values: ArrayLike, minimum: int) -> NDArray[np.int64]:
    given = np.asarray(values)
    with np.errstate(invalid="ignore"):
        column = given.astype(np.int64)
    bad = np.flatnonzero((column != given) | (column < minimum))
    if bad.size:
        row = int(bad[0])
        raise ValueError(f"{name} must hold integers of at least {minimum}, got {given[row]} in row {row}.")
    return column


@dataclass(frozen=True)
class Workload:
    """Requests in order of arrival, as columns of equal length.

    Parameters
    ----------
    arrival_seconds : array of float, shape (n,)
        When each request arrives, never falling [seconds].
    prompt_len, output_len : array of int, shape (n,)
        Its lengths, at least 1 [tokens].
    priority : array of int, shape (n,), optional
        Its class; a lower number goes first. All 0 if left out.
    session : array of int, shape (n,), optional
        Which session it belongs to, -1 for none. All -1 if left out.
    block_size : int
        Tokens of one block of ``block_ids`` [tokens]; 0 where prompts have no named blocks.
    block_ids : array of int, shape (m,), optional
        Names of the prompts' blocks, one prompt after the other.
    block_starts : array of int, shape (n + 1,), optional
        Prompt i has the names ``block_ids[block_starts[i]:block_starts[i + 1]]``.
    """

    arrival_seconds: NDArray[np.float64]
    prompt_len: NDArray[np.int64]
    output_len: NDArray[np.int64]
    priority: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))
    session: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))
    block_size: int = 0
    block_ids: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))
    block_starts: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))

    def __post_init__(self) -> None:
        arrivals = np.asarray(self.arrival_seconds, dtype=np.float64)
        count = len(arrivals)
        columns: dict[str, Any] = {"arrival_seconds": arrivals}
        columns["prompt_len"] = _whole("prompt_len", self.prompt_len, 1)
        columns["output_len"] = _whole("output_len", self.output_len, 1)
        for name, default in (("priority", 0), ("session", -1)):
            given = getattr(self, name)
            columns[name] = _whole(name, given, default) if len(given) else np.full(count, default, np.int64)
        require_int("block_size", self.block_size, minimum=0)
        columns["block_ids"] = _whole("block_ids", self.block_ids, 0)
        starts = self.block_starts if len(self.block_starts) else np.zeros(count + 1, np.int64)
        columns["block_starts"] = _whole("block_starts", starts, 0)
        for name, column in columns.items():
            object.__setattr__(self, name, column)
        self._check(count)

    def _check(self, count: int) -> None:
        if not count:
            raise ValueError("arrival_seconds must hold at least one request, got none. An empty trace serves nobody.")
        for name in ("prompt_len", "output_len", "priority", "session"):
            if len(getattr(self, name)) != count:
                raise ValueError(
                    f"{name} must have one entry for each of {count} requests, got {len(getattr(self, name))}."
                )
        steps = np.diff(self.arrival_seconds, prepend=0.0)
        bad = np.flatnonzero(~(np.isfinite(self.arrival_seconds) & (steps >= 0)))
        if bad.size:
            row = int(bad[0])
            raise ValueError(
                f"arrival_seconds must not fall and must start at 0 or later, got {self.arrival_seconds[row]!r} in row"
                f" {row}. Sort the requests by arrival and count from the first."
            )
        starts = self.block_starts
        if (
            len(starts) != count + 1
            or starts[0] != 0
            or starts[-1] != len(self.block_ids)
            or (np.diff(starts) < 0).any()
        ):
            raise ValueError(
                f"block_starts must rise from 0 to the {len(self.block_ids)} block_ids in {count + 1} entries,"
                f" got {len(starts)} entries. It has one more than there are requests."
            )
        if len(self.block_ids) and not self.block_size:
            raise ValueError("block_size must be given with block_ids, got 0. Say how many tokens a block holds.")

    def __len__(self) -> int:
        return len(self.arrival_seconds)

    def __getitem__(self, row: int) -> Request:
        blocks = self.block_ids[self.block_starts[row] : self.block_starts[row + 1]]
        return Request(
            float(self.arrival_seconds[row]),
            int(self.prompt_len[row]),
            int(self.output_len[row]),
            int(self.priority[row]),
            int(self.session[row]),
            tuple(int(b) for b in blocks),
        )

    def __iter__(self) -> Iterator[Request]:
        return (self[row] for row in range(len(self)))

    @classmethod
    def from_requests(cls, requests: Sequence[Request], block_size: int = 0) -> Workload:
        """Collect requests into columns, sorted by arrival; equal arrivals keep their order."""
        rows = sorted(requests, key=lambda r: r.arrival_seconds)
        starts = np.cumsum([0, *(len(r.prefix_blocks) for r in rows)])
        return cls(
            arrival_seconds=np.array([r.arrival_seconds for r in rows], np.float64),
            prompt_len=np.array([r.prompt_len for r in rows]),
            output_len=np.array([r.output_len for r in rows]),
            priority=np.array([r.priority for r in rows], np.int64),
            session=np.array([r.session for r in rows], np.int64),
            block_size=block_size,
            block_ids=np.array([b for r in rows for b in r.prefix_blocks], np.int64),
            block_starts=starts,
        )

    def first(self, count: int) -> Workload:
        """The first ``count`` requests as a workload of their own."""
        require_int("count", count)
        count = min(count, len(self))
        columns = {
            n: getattr(self, n)[:count] for n in ("arrival_seconds", "prompt_len", "output_len", "priority", "session")
        }
        starts = self.block_starts[: count + 1]
        return replace(self, **columns, block_ids=self.block_ids[: starts[-1]], block_starts=starts)
