"""Reader of agent sessions: each call with its pause, and how much of its prompt the call before had."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lantern_lib.workload.inputs import Source, json_object, moment, numbered_lines, refuse, source_name, token_count
from lantern_lib.workload.requests import Call, Session

MAX_SESSION_BYTES = 64 * 2**20  # a session of a thousand calls at half a million tokens, one id for each 64
ZERO_TOKENS = "zero tokens"


@dataclass(frozen=True)
class AgentSession:
    """One session of an agent, or of a sub-agent that it started, with what the capture says about each call.

    Parameters
    ----------
    name : str
        The session's id; a sub-agent's has its number behind a slash [text].
    session : Session
        Its calls.
    stops : tuple of str
        Why each answer ended: ``"tool_use"``, ``"end_turn"``, or ``""`` where the capture does not say.
    server_seconds : tuple of float
        How long each answer took, NaN where the capture does not say [seconds].
    """

    name: str
    session: Session
    stops: tuple[str, ...]
    server_seconds: tuple[float, ...]


@dataclass(frozen=True)
class SessionTrace:
    """What a reader found: sessions, rows dropped for which reason, and calls that began before the last answer's end.

    The gap of such an overlapping call counts as zero.
    """

    sessions: tuple[AgentSession, ...]
    dropped: Mapping[str, int]
    overlapping: int


def _ids(record: dict[str, Any], place: str) -> NDArray[np.int64]:
    given = record.get("hash_ids")
    try:
        ids = np.asarray(given)
    except (ValueError, OverflowError):
        ids = np.zeros(1)
    if not isinstance(given, list) or ids.ndim != 1 or (ids.size and ids.dtype != np.int64):
        refuse(place, "hash_ids", "a list of whole numbers below 2**63", given)
    return ids.astype(np.int64)


class _Reading:
    """The calls of one session as they are read."""

    def __init__(self, block_size: int) -> None:
        self.block_size = block_size
        self.calls: list[Call] = []
        self.stops: list[str] = []
        self.server_seconds: list[float] = []
        self.start = self.began = self.ended = 0.0
        self.before = np.zeros(0, np.int64)
        self.dropped = self.overlapping = 0

    def add(self, record: dict[str, Any], place: str) -> None:
        now = moment(record, "t", place)
        if now < self.began:
            refuse(place, "t", f"at least the {self.began} of the call before", now, "Sort the calls by time.")
        prompt_len, output_len = token_count(record, "in", place), token_count(record, "out", place)
        ids = _ids(record, place)
        took = moment(record, "api_time", place) if record.get("api_time") is not None else math.nan
        if not prompt_len or not output_len:
            self.dropped += 1
            return
        gap = 0.0
        if not self.calls:
            self.start = now
        else:
            gap = max(0.0, now - self.ended)
            self.overlapping += now < self.ended
        self.calls.append(Call(prompt_len, output_len, gap, min(self._shared(ids), prompt_len)))
        self.stops.append(str(record.get("stop") or ""))
        self.server_seconds.append(took)
        self.before, self.began = ids, now
        self.ended = now + (0.0 if math.isnan(took) else took)

    def _shared(self, ids: NDArray[np.int64]) -> int:
        both = min(len(ids), len(self.before))
        different = np.flatnonzero(ids[:both] != self.before[:both])
        return self.block_size * int(different[0] if different.size else both)

    def done(self, name: str, offset: float) -> AgentSession:
        session = Session(tuple(self.calls), offset + self.start)
        return AgentSession(name, session, tuple(self.stops), tuple(self.server_seconds))


def _calls_of(record: dict[str, Any], place: str) -> list[dict[str, Any]]:
    calls = record.get("requests")
    if not isinstance(calls, list) or not all(isinstance(call, dict) for call in calls):
        refuse(place, "requests", "a list of objects", calls)
    return calls


def read_agent_session(source: Source) -> SessionTrace:
    """Read one file of kv-cache-tester: a session of a coding agent, and the sub-agents it started.

    Parameters
    ----------
    source : Source
        A path (plain or gzip) or an open file: one JSON object with block_size and requests; each request with t in
        seconds, in, out, hash_ids and, where known, stop and api_time; a request of type ``subagent`` has requests.

    Returns
    -------
    SessionTrace
        The session, then its sub-agents. Calls with zero tokens on either side are dropped, and so is a session
        that has no other.

    Raises
    ------
    ValueError
        If the file is not in the format or longer than 64 MiB.

    Notes
    -----
    A gap runs from the end of an answer to the next call. Where the capture has no duration of the answer
    (``api_time``) it runs from the call's start, so it is a few seconds too long. Ids are local to a session: what
    sessions share cannot be seen. A sub-agent's times count from its own start. Used on page D5.

    Examples
    --------
    >>> import io
    >>> calls = '{"t": 0, "in": 130, "out": 5, "hash_ids": [1, 2], "api_time": 4, "stop": "tool_use"},'
    >>> calls += '{"t": 9, "in": 200, "out": 5, "hash_ids": [1, 2, 3]}'
    >>> text = '{"id": "s1", "block_size": 64, "requests": [' + calls + "]}"
    >>> read_agent_session(io.StringIO(text)).sessions[0].session.calls[1]
    Call(prompt_len=200, output_len=5, gap_seconds=5.0, reused_len=128)
    """
    name = source_name(source)
    text = "\n".join(line for _, line in numbered_lines(source, MAX_SESSION_BYTES))
    top = json_object(text, name)
    block_size = token_count(top, "block_size", name)
    if not block_size:
        refuse(name, "block_size", "at least 1 token", block_size)
    waiting = [(str(top.get("id", name)), 0.0, _calls_of(top, name))]
    sessions, dropped, overlapping, agents = [], 0, 0, 0
    while waiting:
        title, offset, records = waiting.pop(0)
        reading = _Reading(block_size)
        for number, record in enumerate(records, 1):
            place = f"{name}, call {number} of {title}"
            if record.get("type") == "subagent":
                agents += 1
                start = offset + moment(record, "t", place)
                waiting.append((f"{title}/{agents}", start, _calls_of(record, place)))
            else:
                reading.add(record, place)
        dropped += reading.dropped
        overlapping += reading.overlapping
        if reading.calls:
            sessions.append(reading.done(title, offset))
    return SessionTrace(tuple(sessions), {ZERO_TOKENS: dropped}, overlapping)


def read_agent_sessions(sources: str | Path | Iterable[Source]) -> SessionTrace:
    """Read many sessions.

    Parameters
    ----------
    sources : path of a folder, or iterable of Source
        A folder's ``*.json`` and ``*.json.gz`` in the order of their names, or the files themselves.

    Returns
    -------
    SessionTrace
        All sessions, one file after the other.

    Raises
    ------
    ValueError
        If a file is not in the format, or there is none.

    Examples
    --------
    >>> import io
    >>> text = '{"id": "a", "block_size": 64, "requests": [{"t": 0, "in": 9, "out": 1, "hash_ids": []}]}'
    >>> len(read_agent_sessions([io.StringIO(text), io.StringIO(text)]).sessions)
    2
    """
    if isinstance(sources, str | Path):
        folder = Path(sources)
        sources = sorted(path for path in folder.iterdir() if path.name.endswith((".json", ".json.gz")))
    parts = [read_agent_session(source) for source in sources]
    if not parts:
        raise ValueError("sources must hold at least one session file, got none. Name the folder with the files.")
    return SessionTrace(
        tuple(session for part in parts for session in part.sessions),
        {ZERO_TOKENS: sum(part.dropped[ZERO_TOKENS] for part in parts)},
        sum(part.overlapping for part in parts),
    )
