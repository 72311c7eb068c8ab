"""Agents on one replica: sessions drawn from the quantiles of a public trace, with three kinds of cache.

``python -m lantern_lib.studies.desks TRACES_JSON OUT`` runs the sweep and writes it for the page (about a minute).
TRACES_JSON is the summary that the book holds, ``book/data/traces.json``.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lantern_lib.book_data import json_lines, significant, write_data
from lantern_lib.hardware import H100, Replica
from lantern_lib.kv_cache import bytes_per_token
from lantern_lib.metrics import summary
from lantern_lib.model_config import LANTERN_70B
from lantern_lib.quantization import with_storage
from lantern_lib.simulator import EngineConfig, SessionLoop, Status, engine_for, simulate
from lantern_lib.units import require_int, require_one_of
from lantern_lib.workload import Call, Session, session_rows

#: 8-bit weights and cache, as Lantern runs it since page B8; with 16 bits four of these sessions fill the machine.
MODEL = with_storage(LANTERN_70B, weight_bits=8, kv_bits=8)
BLOCK_SIZE, TOKEN_BUDGET, MAX_BATCH = 256, 2048, 64
#: Host memory for idle caches and the way to it, as pages D5 and D3 assume them.
HOST_BYTES, HOST_BANDWIDTH = 1e12, 25e9
CACHES = ("none", "pool", "host")
AGENTS = (1, 2, 4, 8, 12, 16, 24, 32, 48)
HOURS, WARM_UP_HOURS, BETWEEN_SECONDS, SEEDS = 4.5, 1.5, 60.0, (5, 6, 7)


def drawn(quantiles: Mapping[str, float], share: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return values at shares between 0 and 1 of a distribution of which some quantiles are known.

    Parameters
    ----------
    quantiles : mapping of str to float
        Share as text to value, all above 0 [any unit].
    share : array of float
        Uniform numbers [ratio].

    Returns
    -------
    array of float
        On straight lines of the logarithm between the quantiles; outside them the outermost [unit of `quantiles`].

    Examples
    --------
    >>> drawn({"0.1": 1.0, "0.9": 100.0}, np.array([0.0, 0.5, 1.0])).round(6).tolist()
    [1.0, 10.0, 100.0]
    """
    known = np.array([float(text) for text in quantiles])
    values: NDArray[np.float64] = np.exp(np.interp(share, known, np.log(np.array(list(quantiles.values())))))
    return values


def draw_session(agents: Mapping[str, Any], generator: np.random.Generator, start_seconds: float = 0.0) -> Session:
    """Draw a session that looks like those of the trace, call by call.

    Parameters
    ----------
    agents : mapping
        The ``agents`` of the summary of traces.
    generator : numpy.random.Generator
        Where the chance comes from.
    start_seconds : float
        When its first call is sent [seconds].

    Returns
    -------
    Session
        Its calls.

    Notes
    -----
    Turns, first prompt, pauses and answers are independent of one another. How much a prompt grows and how much of it
    is new go together: both come from the same uniform number, because a rewritten history is what makes a call new.
    Sessions with long pauses, and pauses that come in rows, are lost by that.

    Examples
    --------
    >>> flat = {"0.1": 50.0, "0.9": 50.0}
    >>> names = ("turns", "first_prompt_len", "growth", "new_tokens", "output_len", "gap_seconds")
    >>> known = {name: flat for name in names} | {"longest_gap_seconds": 50.0}
    >>> session = draw_session(known, np.random.default_rng(1))
    >>> len(session.calls), session.calls[1].prompt_len, session.calls[1].reused_len
    (50, 100, 50)
    """
    turns = round(float(drawn(agents["turns"], generator.random(1))[0]))
    changes = generator.random(turns)
    growth, new = (np.rint(drawn(agents[name], changes)).astype(int) for name in ("growth", "new_tokens"))
    answers = np.rint(drawn(agents["output_len"], generator.random(turns))).astype(int)
    # The rare pause of hours decides what an hour of lifetime is worth, so the longest one is known too.
    pauses = agents["gap_seconds"] | {"1": agents["longest_gap_seconds"]}
    gaps = drawn(pauses, generator.random(turns))
    prompt = round(float(drawn(agents["first_prompt_len"], generator.random(1))[0]))
    calls = [Call(prompt, int(answers[0]))]
    for turn in range(1, turns):
        before, prompt = prompt, prompt + int(growth[turn])
        kept = max(0, min(before, prompt - int(new[turn])))
        calls.append(Call(prompt, int(answers[turn]), gap_seconds=float(gaps[turn]), reused_len=kept))
    return Session(tuple(calls), start_seconds)


def engine(cache: str) -> EngineConfig:
    """Set up Lantern's replica with one kind of cache.

    Parameters
    ----------
    cache : str
        ``none``, ``pool`` (idle prefixes stay in GPU memory while there is room) or ``host`` (and then move to the
        host's memory).

    Returns
    -------
    EngineConfig
        Chunked prefill, and the final length of each call set aside.

    Raises
    ------
    ValueError
        For another kind.

    Examples
    --------
    >>> engine("host").host_blocks > engine("pool").num_blocks > 5000
    True
    """
    require_one_of("cache", cache, CACHES)
    block_bytes = BLOCK_SIZE * bytes_per_token(MODEL)
    return engine_for(
        MODEL,
        Replica(H100, tp_size=4),
        block_size=BLOCK_SIZE,
        max_batch=MAX_BATCH,
        prefill="chunked",
        token_budget=TOKEN_BUDGET,
        prefix_cache=cache != "none",
        host_blocks=int(HOST_BYTES // block_bytes) if cache == "host" else 0,
        host_block_seconds=block_bytes / HOST_BANDWIDTH if cache == "host" else 0.0,
    )


def measure(
    agents: Mapping[str, Any], num_agents: int, cache: str, *, hours: float = HOURS, seed: int = SEEDS[0]
) -> dict[str, float]:
    """Let a number of agents work on one replica, each session followed by the next.

    Parameters
    ----------
    agents : mapping
        The ``agents`` of the summary of traces.
    num_agents : int
        Sessions at the same time [sessions].
    cache : str
        See :func:`engine`.
    hours : float
        For how long; the first third is not measured [hours].
    seed : int
        Where the chance comes from.

    Returns
    -------
    dict of str to float
        ``calls`` finished in an hour, ``ttft50`` and ``ttft95`` [seconds], ``tpot95`` [seconds], the share ``found``
        of prompt tokens in the cache, and the share ``refused`` of calls that are larger than the machine.

    Raises
    ------
    ValueError
        If a number or the kind of cache is out of range.

    Notes
    -----
    A call is sent when the answer before it is there and its pause is over, so slow answers thin the traffic: calls in
    an hour is the honest measure. Used on page q3.

    Examples
    --------
    >>> flat = {"0.1": 20.0, "0.9": 20.0}
    >>> names = ("turns", "first_prompt_len", "growth", "new_tokens", "output_len", "gap_seconds")
    >>> known = {name: flat for name in names} | {"longest_gap_seconds": 20.0}
    >>> round(measure(known, 2, "none", hours=0.2)["calls"], -2)
    300.0
    """
    require_int("num_agents", num_agents)
    generator = np.random.default_rng(seed)
    desks = []
    for desk in range(num_agents):
        calls: list[Call] = []
        busy = 0.0
        while busy < hours * 3600:
            session = draw_session(agents, generator)
            opening = Call(session.calls[0].prompt_len, session.calls[0].output_len, BETWEEN_SECONDS)
            calls += [opening, *session.calls[1:]]
            busy += sum(call.gap_seconds for call in session.calls) + BETWEEN_SECONDS
        desks.append(Session(tuple(calls), desk * BETWEEN_SECONDS / num_agents))
    work, gaps = session_rows(desks, BLOCK_SIZE)
    result = simulate(work, engine(cache), source=SessionLoop(work, gaps), horizon_seconds=hours * 3600)
    warm = hours * WARM_UP_HOURS / HOURS * 3600
    times = summary(result, warm_up_seconds=warm)
    sent = result.arrival_seconds >= warm
    done = sent & result.finished
    refused = sent & (result.status == Status.REJECTED)
    values = {
        "calls": done.sum() / (hours - warm / 3600),
        "ttft50": times.ttft.p50,
        "ttft95": times.ttft.p95,
        "tpot95": times.tpot.p95,
        "found": result.cached_len[done].sum() / result.prompt_len[done].sum(),
        "refused": refused.sum() / max(1, (done | refused).sum()),
    }
    return {name: significant(value, 4) for name, value in values.items()}


def _text(traces: str) -> str:
    agents = json.loads(Path(traces).read_text(encoding="utf-8"))["agents"]
    rows = (
        {"seed": seed, "agents": n, "cache": cache} | measure(agents, n, cache, seed=seed)
        for seed in SEEDS
        for n in AGENTS
        for cache in CACHES
    )
    return f"[\n{json_lines(rows)}\n]\n"


#: Read the summary of traces, and write the sweep to the file that is named.
main = partial(write_data, "lantern_lib.studies.desks TRACES_JSON OUT", make=_text)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
