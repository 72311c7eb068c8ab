"""The commonest setting without what the others need: one queue, whole prompts, final lengths set aside.

The same leaps as in ``engine`` and the same records, several times faster. First come, first served by open
loop needs no queue at all: those who wait are the rows from the head to the last that has arrived.
"""

from __future__ import annotations

from array import array
from heapq import heappop, heappush
from math import inf
from typing import TypeAlias

import numpy as np

from lantern_lib.simulator.config import EngineConfig
from lantern_lib.simulator.cost import leap
from lantern_lib.simulator.intake import TooManyEventsError, no_answer
from lantern_lib.simulator.records import Recorder, Result, Status
from lantern_lib.simulator.sources import TIE_SECONDS
from lantern_lib.workload.requests import Workload


def is_plain(workload: Workload, config: EngineConfig) -> bool:
    """Tell whether :func:`serve_plainly` does all that is asked.

    Parameters
    ----------
    workload : Workload
        The requests.
    config : EngineConfig
        The replica and its rules.

    Returns
    -------
    bool
        True if nothing is chunked, preempted, shared, put first or turned away for waiting.

    Examples
    --------
    >>> from lantern_lib.simulator import EngineConfig, StepModel
    >>> from lantern_lib.workload import Request, Workload
    >>> one = Workload.from_requests([Request(0.0, 10, 3)])
    >>> is_plain(one, EngineConfig(StepModel(weight_seconds=1.0)))
    True
    """
    rules = config.prefill == "separate" and config.admission == "final"
    others = config.prefix_cache or config.prefilled or config.max_waiting or config.max_wait_seconds
    return rules and not others and not workload.priority.any()


def serve_plainly(workload: Workload, config: EngineConfig, max_events: int) -> Result:
    """Serve a workload to its end on one replica whose setting is plain.

    Parameters
    ----------
    workload : Workload
        The requests.
    config : EngineConfig
        A replica for which :func:`is_plain` holds.
    max_events : int
        Refuse to take more events than this [events].

    Returns
    -------
    Result
        The records that ``engine`` would give, up to rounding.

    Raises
    ------
    TooManyEventsError
        If the run takes more events.

    Examples
    --------
    >>> from lantern_lib.simulator import EngineConfig, StepModel
    >>> from lantern_lib.workload import Request, Workload
    >>> one = Workload.from_requests([Request(0.0, 10, 3)])
    >>> serve_plainly(one, EngineConfig(StepModel(weight_seconds=1.0)), max_events=10).last_token_seconds.tolist()
    [3.0]
    """
    records = Recorder(workload)
    blocks = -(-(workload.prompt_len + workload.output_len) // config.block_size)
    fits = np.full(len(workload), True) if config.num_blocks is None else blocks <= config.num_blocks
    result = records.result(0, 0, 0.0, no_answer(config))
    result.arrival_seconds[:] = workload.arrival_seconds
    result.replica[:] = 0
    result.status[:] = np.where(fits, Status.FINISHED, Status.REJECTED)
    rows = np.flatnonzero(fits)
    if not len(rows):
        return result
    columns = (records.scheduled, records.first, records.last)
    some, parts = workload, columns
    if len(rows) < len(workload):
        some = Workload(workload.arrival_seconds[rows], workload.prompt_len[rows], workload.output_len[rows])
        first, second, third = (array("d", bytes(8 * len(rows))) for _ in range(3))
        parts = (first, second, third)
    outcome = _serve(some, array("q", blocks[rows].tobytes()), config, parts, max_events)
    if parts is not columns:
        for column, part in zip(columns, parts, strict=True):
            np.frombuffer(column)[rows] = np.frombuffer(part)
    return records.result(*outcome, no_answer(config))


#: Scheduled, first token, last token.
_Columns: TypeAlias = "tuple[array[float], array[float], array[float]]"


def _serve(
    workload: Workload, needs: array[int], config: EngineConfig, columns: _Columns, max_events: int
) -> tuple[int, int, float]:
    """Serve requests that all fit. Return events, steps and the time of the end."""
    cost, count, (scheduled, first, last) = config.cost, len(workload), columns
    checked, each = cost.checked_tokens, cost.tokens_per_round
    arrival, prompt = array("d", workload.arrival_seconds.tobytes()), array("q", workload.prompt_len.tobytes())
    arrival.append(inf)
    lasting = array("q", np.ceil((workload.output_len - 1 - 1e-6) / each).astype(np.int64).tobytes())
    by_pair, by_cached, free = checked * cost.pair_seconds, cost.cached_token_seconds, config.num_blocks or 2**62
    by_token, by_message, other = checked * cost.token_seconds, checked * cost.message_seconds, cost.fixed_seconds
    other += cost.draft_seconds
    finishing: list[int] = []  # round × count + row
    head = running = rounds = events = steps = 0
    context: float = 0
    now = 0.0
    while head < count or finishing:
        events += 1
        if events > max_events:
            raise TooManyEventsError(f"max_events must be above {max_events}, got to {now:.6g} seconds and row {head}.")
        begin, tokens, attended = head, 0, 0
        while running < config.max_batch and arrival[head] <= now + TIE_SECONDS:
            length = prompt[head]
            if needs[head] > free or (tokens and tokens + length > config.token_budget):
                break
            tokens, attended = tokens + length, attended + length * (length + 1) // 2
            free -= needs[head]
            running, head = running + 1, head + 1
        if tokens:
            start, now, steps = now, now + cost.step_seconds(tokens, attended, 0), steps + 1
            for row in range(begin, head):
                scheduled[row], first[row] = max(start, arrival[row]), now
                # An answer of one token is done, after no round at all.
                heappush(finishing, (rounds + lasting[row]) * count + row)
                context += prompt[row] + 1
        elif not finishing:
            now = arrival[head]
            continue
        else:
            most, grown = finishing[0] // count - rounds, running * each
            wait = arrival[head] - now - TIE_SECONDS
            if running == config.max_batch or wait <= 0:
                wait = inf  # whoever has arrived already and was not admitted waits for room, not for time
            compute, memory = running * by_token + context * by_pair, cost.weight_seconds + context * by_cached
            fixed = other + running * by_message
            most, spent = leap(wait, most, compute, grown * by_pair, memory, grown * by_cached, fixed)
            now, steps, rounds, context = now + spent, steps + most, rounds + most, context + most * grown
        while finishing and finishing[0] < (rounds + 1) * count:
            row = heappop(finishing) % count
            last[row] = now
            free += needs[row]
            running -= 1
            context -= prompt[row] + 1 + lasting[row] * each
    return events, steps, now
