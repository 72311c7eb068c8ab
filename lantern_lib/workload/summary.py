"""Boil the public traces down to the small file of numbers that the book shows.

``python -m lantern_lib.workload.summary TRACES OUT DATE`` reads the folder TRACES (``azure2023_code.csv``,
``azure2023_conv.csv``, ``mooncake_conversation.jsonl`` and the folder ``agent``) and writes OUT. Nothing of a trace but
counts, quantiles and curves is kept.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Sequence
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lantern_lib.book_data import significant, write_data
from lantern_lib.workload.agents import AgentSession, SessionTrace, read_agent_sessions
from lantern_lib.workload.gaps import CallColumns, cache_use, call_columns
from lantern_lib.workload.requests import Workload
from lantern_lib.workload.statistics import burstiness, gap_variation, reuse_distances, reuse_share, window_counts
from lantern_lib.workload.traces import Trace, read_azure, read_mooncake

SHARES = (0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99)
WINDOWS = (1, 10, 60)
LIFETIMES = (5, 10, 20, 30, 45, 60, 120, 180, 300, 600, 900, 1200, 1800, 2700, 3600, 5400, 7200, 10800)
GAP_EDGES = (0, 60, 300, 3600, math.inf)
CAPACITIES = (0.1, 0.2, 0.3, 0.45, 0.5, 0.7, 1, 1.5, 2, 3, 5, 7, 10, 15, 20, 26, 35, 51, 70, 100)  # [million tokens]
SOURCES = {
    "azure-code": ("Azure LLM inference trace 2023, code", "CC-BY 4.0"),
    "azure-chat": ("Azure LLM inference trace 2023, conversation", "CC-BY 4.0"),
    "mooncake": ("Mooncake, FAST 2025 release, conversation trace", "Apache-2.0"),
    "agents": ("kv-cache-tester, agent sessions", "Apache-2.0"),
}


def quantiles(values: ArrayLike) -> dict[str, float]:
    """Return the quantiles of :data:`SHARES`.

    Parameters
    ----------
    values : array of float
        At least one value [any unit].

    Returns
    -------
    dict of str to float
        Share as text to value, linear between neighbours, five digits [unit of `values`].

    Examples
    --------
    >>> quantiles([1, 2, 3])["0.5"]
    2.0
    """
    return {f"{share:g}": significant(float(np.quantile(np.asarray(values), share))) for share in SHARES}


def request_summary(trace: Trace) -> dict[str, Any]:
    """Return how requests of a trace arrive and how long they are.

    Parameters
    ----------
    trace : Trace
        At least two minutes of requests.

    Returns
    -------
    dict
        Counts, rate, quantiles of lengths, variation of gaps, burstiness, requests in each minute.

    Examples
    --------
    >>> work = Workload(np.arange(0.0, 240.0), np.full(240, 9), np.full(240, 3))
    >>> request_summary(Trace(work, {}))["per_minute"]
    [60, 60, 60]
    """
    work = trace.workload
    arrivals = work.arrival_seconds
    return {
        "requests": len(work),
        "dropped": dict(trace.dropped),
        "seconds": significant(float(arrivals[-1])),
        "rate": significant(len(work) / float(arrivals[-1])),
        "prompt_len": quantiles(work.prompt_len),
        "output_len": quantiles(work.output_len),
        "input_per_output": significant(float(work.prompt_len.sum() / work.output_len.sum())),
        "gap_variation": significant(gap_variation(arrivals)),
        "burstiness": {
            str(window): {"dispersion": significant(found.dispersion), "peak": significant(found.peak)}
            for window, found in ((w, burstiness(arrivals, w)) for w in WINDOWS)
        },
        "per_minute": window_counts(arrivals, 60).tolist(),
    }


def reuse_summary(work: Workload) -> dict[str, Any]:
    """Return what caches of many sizes find of a trace with named blocks.

    Parameters
    ----------
    work : Workload
        The trace, with its partial blocks.

    Returns
    -------
    dict
        Share of blocks found, without a limit and for each of :data:`CAPACITIES` in tokens.

    Examples
    --------
    >>> work = Workload([0.0, 1.0], [20, 20], [1, 1], block_size=10, block_ids=[1, 2, 1, 3], block_starts=[0, 2, 4])
    >>> reuse_summary(work)["unlimited"]
    0.25
    """
    distances = reuse_distances(work)
    used = np.unique(work.block_ids, return_counts=True)[1]
    sizes = [round(1e6 * size) for size in CAPACITIES]
    return {
        "block_size": work.block_size,
        "blocks": len(work.block_ids),
        "unlimited": significant(reuse_share(distances, math.inf)),
        "used_once": significant(float(np.mean(used == 1))),
        "used_most": int(used.max()),
        "lru": [[size, significant(reuse_share(distances, size / work.block_size))] for size in sizes],
    }


def _lifetime_row(calls: CallColumns, lifetime: float) -> dict[str, float]:
    use = cache_use(calls, lifetime)
    row: dict[str, float] = {"lost_calls": use.lost_calls, "written": use.written_tokens, "read": use.read_tokens}
    if lifetime != math.inf:
        row |= {"lifetime": lifetime, "held_token_seconds": significant(use.held_token_seconds, 7)}
    return row


def _reuse_by_gap(calls: CallColumns) -> list[dict[str, Any]]:
    rows = []
    for low, high in pairwise(GAP_EDGES):
        inside = calls.later & (calls.gap_seconds >= low) & (calls.gap_seconds < high)
        tokens = int(calls.prompt_len[inside].sum())
        row = {"from": low, "calls": int(inside.sum()), "prompt": tokens, "reused": int(calls.reused_len[inside].sum())}
        rows.append(row)
    return rows


def _gaps_after(sessions: Sequence[AgentSession], stop: str) -> NDArray[np.float64]:
    found = [
        later.gap_seconds
        for agent in sessions
        for before, later in zip(agent.stops, agent.session.calls[1:], strict=False)
        if before == stop
    ]
    return np.array(found)


def session_summary(trace: SessionTrace) -> dict[str, Any]:
    """Return what agent sessions look like to a cache.

    Parameters
    ----------
    trace : SessionTrace
        The sessions, at least one of them with two calls.

    Returns
    -------
    dict
        Quantiles of turns, lengths, growth and gaps; reuse by gap; use of a cache for each of :data:`LIFETIMES`, in all
        and for each session.

    Examples
    --------
    >>> from lantern_lib.workload import Call, Session
    >>> session = Session((Call(100, 9), Call(150, 9, gap_seconds=7.0, reused_len=100)))
    >>> session_summary(SessionTrace((AgentSession("a", session, ("", ""), (1.0, 2.0)),), {}, 0))["reused_share"]
    0.4
    """
    sessions = [agent.session for agent in trace.sessions]
    calls = call_columns(sessions)
    later = calls.later
    growth = (calls.prompt_len[1:] - calls.prompt_len[:-1])[later[1:]]
    server = np.array([seconds for agent in trace.sessions for seconds in agent.server_seconds])
    after = {stop: _gaps_after(trace.sessions, stop) for stop in ("tool_use", "end_turn", "")}
    return {
        "sessions": len(sessions),
        "calls": len(later),
        "gaps": int(later.sum()),
        "dropped": dict(trace.dropped),
        "calls_without_duration": int(np.isnan(server).sum()),
        "turns": quantiles([len(session.calls) for session in sessions]),
        "first_prompt_len": quantiles([session.calls[0].prompt_len for session in sessions]),
        "prompt_len": quantiles(calls.prompt_len),
        "output_len": quantiles(calls.output_len),
        "growth": quantiles(growth),
        "new_tokens": quantiles((calls.prompt_len - calls.reused_len)[later]),
        "prompt_tokens": int(calls.prompt_len.sum()),
        "output_tokens": int(calls.output_len.sum()),
        "reused_share": significant(float(calls.reused_len.sum() / calls.prompt_len.sum())),
        "gap_seconds": quantiles(calls.gap_seconds[later]),
        "longest_gap_seconds": significant(float(calls.gap_seconds[later].max())),
        "gap_after": {
            stop or "not recorded": {"gaps": len(found), "seconds": quantiles(found)}
            for stop, found in after.items()
            if len(found)
        },
        "by_gap": _reuse_by_gap(calls),
        "lifetimes": [_lifetime_row(calls, lifetime) for lifetime in LIFETIMES],
        "never_lost": _lifetime_row(calls, math.inf),
        "each": [
            {
                "calls": len(session.calls),
                "prompt": int(one.prompt_len.sum()),
                "5m": _lifetime_row(one, 300),
                "1h": _lifetime_row(one, 3600),
            }
            for session, one in ((s, call_columns([s])) for s in sessions)
        ],
    }


def summarise(folder: str | Path, date: str) -> dict[str, Any]:
    """Return the summary of all traces in a folder.

    Parameters
    ----------
    folder : str or Path
        The folder of the traces [text].
    date : str
        The day the files were fetched [text].

    Returns
    -------
    dict
        What ``book/data/traces.json`` holds.

    Raises
    ------
    ValueError
        If a trace is not in its format.
    OSError
        If one is missing.

    Examples
    --------
    >>> summarise("no such folder", "2026-11-29")  # doctest: +IGNORE_EXCEPTION_DETAIL
    Traceback (most recent call last):
    ...
    FileNotFoundError: no such folder/azure2023_code.csv
    """
    folder = Path(folder)
    whole = read_mooncake(folder / "mooncake_conversation.jsonl", partial_blocks=True)
    return {
        "sources": {key: {"source": s, "licence": terms, "date": date} for key, (s, terms) in SOURCES.items()},
        "azure-code": request_summary(read_azure(folder / "azure2023_code.csv")),
        "azure-chat": request_summary(read_azure(folder / "azure2023_conv.csv")),
        "mooncake": request_summary(whole) | {"reuse": reuse_summary(whole.workload)},
        "agents": session_summary(read_agent_sessions(folder / "agent")),
    }


def _text(folder: str, date: str) -> str:
    # One line a top-level entry: small, and a diff still shows what changed.
    return json.dumps(summarise(folder, date), allow_nan=False).replace('}, "', '},\n"') + "\n"


#: Read the traces, and write the summary to the file that is named.
main = partial(write_data, "lantern_lib.workload.summary TRACES OUT DATE", make=_text)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
