"""Readers of public request traces: who came when, with how many tokens.

Each reader takes a path (plain or gzip) or an open file, keeps one row of columns a request and nothing else, and sorts
by arrival. A row that no engine could serve is dropped and counted with its reason; a row that is not what the format
says is an error that names file, line and field. Times count from the first request.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lantern_lib.units import require_int
from lantern_lib.workload.inputs import (
    Source,
    json_object,
    moment,
    numbered_lines,
    refuse,
    source_name,
    token_count,
)
from lantern_lib.workload.requests import Workload

AZURE_COLUMNS = ("TIMESTAMP", "ContextTokens", "GeneratedTokens")
ZERO_TOKENS = "zero tokens"
UNFINISHED = "unfinished"


@dataclass(frozen=True)
class Trace:
    """What a reader found: the requests, and how many rows it dropped for which reason."""

    workload: Workload
    dropped: Mapping[str, int]


@dataclass(frozen=True)
class RequestLog:
    """Requests with the times an engine logged for them, all on one clock that starts with the first arrival.

    The four columns have one entry for each row of ``workload`` [seconds].
    """

    workload: Workload
    queued_seconds: NDArray[np.float64]
    scheduled_seconds: NDArray[np.float64]
    first_token_seconds: NDArray[np.float64]
    last_token_seconds: NDArray[np.float64]
    dropped: Mapping[str, int]

    def times(self) -> Iterator[tuple[float, float, float, int]]:
        """Yield arrival, first token, last token and output length, as ``metrics.RequestRecord`` takes them."""
        work = self.workload
        columns = (work.arrival_seconds, self.first_token_seconds, self.last_token_seconds, work.output_len)
        for arrival, first, last, output_len in zip(*columns, strict=True):
            yield float(arrival), float(first), float(last), int(output_len)


def _in_order(source: Source, arrivals: array[float]) -> tuple[NDArray[np.intp], NDArray[np.float64]]:
    """Return the order of arrival and the sorted arrivals, counted from the first."""
    if not arrivals:
        raise ValueError(f"{source_name(source)} must hold at least one request that can be served, got none.")
    column = np.frombuffer(arrivals, np.float64)
    order = np.argsort(column, kind="stable")
    return order, column[order] - column[order[0]]


def _counts(column: array[int]) -> NDArray[np.int64]:
    return np.frombuffer(column, np.int64) if column else np.zeros(0, np.int64)


def _csv_count(text: str, field: str, place: str) -> int:
    text = text.strip()
    if not (text.isascii() and text.isdigit()) or len(text) > 9:
        refuse(place, field, "a whole number from 0 to a billion", text, "It counts tokens.")
    return int(text)


def _azure_places(source: Source, lines: Iterator[tuple[str, str]]) -> tuple[list[int], int]:
    place, header = next(lines, (f"{source_name(source)}, line 1", ""))
    names = [name.strip() for name in header.split(",")]
    missing = [name for name in AZURE_COLUMNS if name not in names]
    if missing:
        refuse(place, "the header", f"a row of names with {', '.join(AZURE_COLUMNS)}", header)
    return [names.index(name) for name in AZURE_COLUMNS], len(names)


def read_azure(source: Source) -> Trace:
    """Read an Azure inference trace: a CSV with a time and two token counts a row.

    Parameters
    ----------
    source : Source
        A path (plain or gzip) or an open file with the columns TIMESTAMP, ContextTokens, GeneratedTokens, in any order.

    Returns
    -------
    Trace
        The requests. Rows with zero tokens on either side are dropped: nothing was asked, or nothing answered.

    Raises
    ------
    ValueError
        If the header or a row is not in the format, or no request is left.

    Notes
    -----
    Timestamps are taken to the microsecond. The rows need not be sorted. Used on page D5.

    Examples
    --------
    >>> import io
    >>> rows = "TIMESTAMP,ContextTokens,GeneratedTokens\\n2023-11-16 18:17:03.98,4808,10\\n2023-11-16 18:17:04.03,7,0"
    >>> trace = read_azure(io.StringIO(rows))
    >>> trace.workload[0].prompt_len, dict(trace.dropped)
    (4808, {'zero tokens': 1})
    """
    lines = numbered_lines(source)
    (at_time, at_prompt, at_output), width = _azure_places(source, lines)
    arrivals, prompts, outputs = array("d"), array("q"), array("q")
    start: datetime | None = None
    dropped = 0
    for place, line in lines:
        fields = line.split(",")
        if len(fields) != width:
            refuse(place, "the row", f"{width} fields", line, "Is the file complete?")
        prompt_len = _csv_count(fields[at_prompt], AZURE_COLUMNS[1], place)
        output_len = _csv_count(fields[at_output], AZURE_COLUMNS[2], place)
        try:
            now = datetime.fromisoformat(fields[at_time].strip())
            start = start or now
            seconds = (now - start).total_seconds()
        except (ValueError, TypeError):  # TypeError: one row has a time zone and another has none
            refuse(place, AZURE_COLUMNS[0], "a time like 2023-11-16 18:17:03.9799600", fields[at_time])
        if not prompt_len or not output_len:
            dropped += 1
            continue
        arrivals.append(seconds)
        prompts.append(prompt_len)
        outputs.append(output_len)
    order, sorted_arrivals = _in_order(source, arrivals)
    return Trace(Workload(sorted_arrivals, _counts(prompts)[order], _counts(outputs)[order]), {ZERO_TOKENS: dropped})


def _block_ids(record: dict[str, Any], prompt_len: int, block_size: int, place: str) -> array[int]:
    given = record.get("hash_ids")
    expected = -(-prompt_len // block_size)
    if not isinstance(given, list) or len(given) != expected:
        got = f"{len(given)} entries" if isinstance(given, list) else given
        refuse(place, "hash_ids", f"a list of {expected} ids, one for each {block_size} tokens of input_length", got)
    try:
        ids = array("q", given)
    except (TypeError, OverflowError):
        refuse(place, "hash_ids", "a list of whole numbers below 2**63", given)
    if ids and min(ids) < 0:
        refuse(place, "hash_ids", "a list of whole numbers of 0 or more", min(ids))
    return ids


def read_mooncake(source: Source, block_size: int = 512, *, partial_blocks: bool = False) -> Trace:
    """Read a Mooncake trace: one JSON object a line, with the names of the prompt's blocks.

    Parameters
    ----------
    source : Source
        A path (plain or gzip) or an open file with timestamp in milliseconds, input_length, output_length and hash_ids.
    block_size : int
        Tokens that one id stands for [tokens].
    partial_blocks : bool
        Keep the id of a last block that the prompt does not fill, as the trace has it; an engine that shares whole
        blocks cannot use it.

    Returns
    -------
    Trace
        The requests with their blocks. Rows with zero tokens on either side are dropped.

    Raises
    ------
    ValueError
        If a line is not in the format, or no request is left.

    Notes
    -----
    An id names a block together with everything before it, so equal ids mean equal prefixes. Used on page D5.

    Examples
    --------
    >>> import io
    >>> line = '{"timestamp": 3000, "input_length": 1100, "output_length": 5, "hash_ids": [0, 4, 9]}'
    >>> read_mooncake(io.StringIO(line)).workload[0].prefix_blocks
    (0, 4)
    """
    require_int("block_size", block_size)
    arrivals, prompts, outputs, starts, ids = array("d"), array("q"), array("q"), array("q", [0]), array("q")
    dropped = 0
    for place, line in numbered_lines(source):
        record = json_object(line, place)
        seconds = moment(record, "timestamp", place) / 1e3
        prompt_len, output_len = (token_count(record, name, place) for name in ("input_length", "output_length"))
        blocks = _block_ids(record, prompt_len, block_size, place)
        if not prompt_len or not output_len:
            dropped += 1
            continue
        arrivals.append(seconds)
        prompts.append(prompt_len)
        outputs.append(output_len)
        ids.extend(blocks if partial_blocks else blocks[: prompt_len // block_size])
        starts.append(len(ids))
    order, sorted_arrivals = _in_order(source, arrivals)
    begins = _counts(starts)
    counts = np.diff(begins)[order]
    # Row by row in the new order: the first name of each prompt, then those that follow it.
    ends = np.cumsum(counts)
    at = np.repeat(begins[:-1][order] - (ends - counts), counts) + np.arange(ends[-1])
    work = Workload(
        sorted_arrivals,
        _counts(prompts)[order],
        _counts(outputs)[order],
        block_size=block_size,
        block_ids=_counts(ids)[at],
        block_starts=np.concatenate(([0], ends)),
    )
    return Trace(work, {ZERO_TOKENS: dropped})


_LOGGED = ("queued_ts", "scheduled_ts", "first_token_ts", "last_token_ts")


def read_request_log(source: Source) -> RequestLog:
    """Read what a vLLM run logged of its requests, one JSON object a line.

    Parameters
    ----------
    source : Source
        A path (plain or gzip) or an open file with input_toks, output_toks, arrival_time, queued_ts, scheduled_ts,
        first_token_ts and last_token_ts, times in seconds.

    Returns
    -------
    RequestLog
        Requests and their times. Rows with zero tokens, and rows without a last token (aborted), are dropped.

    Raises
    ------
    ValueError
        If a line is not in the format, its times do not rise, or no request is left.

    Notes
    -----
    Arrivals are on the wall clock and the other times on the engine's own. The two are laid on each other where an
    arrival was queued soonest; that shortest way into the queue counts as zero, so a time to first token is at most
    that much too short. Used on page B7.

    Examples
    --------
    >>> import io
    >>> line = '{"input_toks": 9, "output_toks": 3, "arrival_time": 100.0, "queued_ts": 7.0, "scheduled_ts": 7.5,'
    >>> log = read_request_log(io.StringIO(line + '"first_token_ts": 8.0, "last_token_ts": 8.5}'))
    >>> list(log.times())
    [(0.0, 1.0, 1.5, 3)]
    """
    arrivals, prompts, outputs = array("d"), array("q"), array("q")
    logged = tuple(array("d") for _ in _LOGGED)
    dropped = {ZERO_TOKENS: 0, UNFINISHED: 0}
    for place, line in numbered_lines(source):
        record = json_object(line, place)
        prompt_len, output_len = (token_count(record, name, place) for name in ("input_toks", "output_toks"))
        arrival = moment(record, "arrival_time", place)
        if any(record.get(name) is None for name in _LOGGED[1:]):
            dropped[UNFINISHED] += 1
            continue
        times = [moment(record, name, place) for name in _LOGGED]
        if sorted(times) != times:
            refuse(place, "the times", f"in the order {', '.join(_LOGGED)}", times)
        if not prompt_len or not output_len:
            dropped[ZERO_TOKENS] += 1
            continue
        arrivals.append(arrival)
        prompts.append(prompt_len)
        outputs.append(output_len)
        for column, seconds in zip(logged, times, strict=True):
            column.append(seconds)
    order, sorted_arrivals = _in_order(source, arrivals)
    queued, scheduled, first, last = (np.frombuffer(column, np.float64)[order] for column in logged)
    shift = float(np.min(queued - sorted_arrivals))
    work = Workload(sorted_arrivals, _counts(prompts)[order], _counts(outputs)[order])
    return RequestLog(work, queued - shift, scheduled - shift, first - shift, last - shift, dropped)
