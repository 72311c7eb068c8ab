"""The capstone's machine: where a promise breaks, how far one change moves that, and what a closed loop says of it.

``python -m lantern_lib.studies.capstone OUT`` measures everything and writes it for the page (half a minute).
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from lantern_lib.book_data import json_lines, write_data
from lantern_lib.hardware import H100, Replica
from lantern_lib.metrics import Summary, summary
from lantern_lib.model_config import LANTERN_70B
from lantern_lib.quantization import with_storage
from lantern_lib.simulator import (
    ClosedLoop,
    EngineConfig,
    LeastLoaded,
    engine_for,
    simulate,
    simulate_fleet,
)
from lantern_lib.studies import bench
from lantern_lib.units import require_int, require_positive

SEEDS, MINUTES = (1, 2, 3), 5
TOLERANCE, LOW, HIGH = 0.05, 0.5, 12.5
#: Fixed numbers of users of the closed loop, who send again as soon as they have an answer.
USERS = (1, 2, 4, 8, 16, 24, 32, 48, 64, 80, 96, 128)
CLOSED_REQUESTS = 1500


@dataclass(frozen=True)
class Change:
    """What is changed on Lantern's replica of four H100.

    Parameters
    ----------
    words : str
        What the change is called [text].
    setting : Setting
        The engine.
    weight_bits, kv_bits : int
        How a weight and a number of the cache are stored [bits].
    replicas : int
        How many of them stand behind one door [replicas].

    Examples
    --------
    >>> eight = Change("8-bit weights", bench.Setting(chunk=0), weight_bits=8)
    >>> eight.engine().num_blocks > Change("none", bench.Setting(chunk=0)).engine().num_blocks
    True
    """

    words: str
    setting: bench.Setting
    weight_bits: int = 16
    kv_bits: int = 16
    replicas: int = 1

    def __post_init__(self) -> None:
        require_int("replicas", self.replicas)
        if self.setting.draft_len and self.weight_bits + self.kv_bits < 32:
            raise ValueError(f"weight_bits must be 16 with drafts, got {self.weight_bits}. One change at a time.")

    def engine(self) -> EngineConfig:
        """The settings of one replica."""
        config = self.setting.engine()
        if self.weight_bits == self.kv_bits == 16:
            return config
        model = with_storage(LANTERN_70B, weight_bits=self.weight_bits, kv_bits=self.kv_bits)
        small = engine_for(model, Replica(H100, tp_size=4), block_size=bench.BLOCK_SIZE)
        return replace(config, cost=small.cost, num_blocks=small.num_blocks)


START = bench.Setting(chunk=0)
CHANGES = (
    Change("as it is", START),
    Change("steps of 512 tokens", replace(START, chunk=512)),
    Change("batch cap 128", replace(START, max_batch=128)),
    Change("half of each prompt cached", replace(START, hit_percent=50)),
    Change("8-bit weights", START, weight_bits=8),
    Change("8-bit weights and cache", START, weight_bits=8, kv_bits=8),
    Change("three drafts", replace(START, draft_len=3)),
    Change("two replicas", START, replicas=2),
)


def measure(change: Change, rate: float, seed: int = SEEDS[0], minutes: float = MINUTES) -> Summary:
    """Run a change at a rate, open loop.

    Parameters
    ----------
    change : Change
        The machine.
    rate : float
        Requests per second, for all replicas together [requests/s].
    seed : int
        Where the chance comes from.
    minutes : float
        For how long requests arrive [minutes].

    Returns
    -------
    Summary
        Without the first minute.

    Examples
    --------
    >>> one, two = (measure(Change("", START, replicas=n), 4, minutes=2) for n in (1, 2))
    >>> two.tpot.p95 < one.tpot.p95
    True
    """
    work, engine = change.setting.work(rate, minutes, seed), change.engine()
    alone = change.replicas == 1
    done = simulate(work, engine) if alone else simulate_fleet(work, [engine] * change.replicas, LeastLoaded())
    return summary(done, bench.PROMISE, warm_up_seconds=min(bench.WARM_UP_SECONDS, minutes * 15))


def keeps(run: Summary) -> bool:
    """Tell whether a run kept the promise to 95 percent.

    Parameters
    ----------
    run : Summary
        What was measured.

    Returns
    -------
    bool
        True if both 95th percentiles are within their limits.

    Examples
    --------
    >>> keeps(measure(CHANGES[0], 1, minutes=2))
    True
    """
    return bench.kept_up_to([1.0], [run.ttft.p95], [run.tpot.p95]) > 0


def knee(change: Change, tolerance: float = TOLERANCE, minutes: float = MINUTES) -> float:
    """Return the highest rate at which more than half of the seeds keep the promise.

    Parameters
    ----------
    change : Change
        The machine.
    tolerance : float
        How near to it the search ends [requests/s].
    minutes : float
        For how long requests arrive in each run [minutes].

    Returns
    -------
    float
        A rate that was tried and kept, 0 if the lowest is broken [requests/s].

    Raises
    ------
    ValueError
        If `tolerance` is not above 0.

    Notes
    -----
    Halving between :data:`LOW` and :data:`HIGH`, with the same seeds at every rate: a higher rate gets the same
    requests, only denser. Page of the capstone.

    Examples
    --------
    >>> 1 < knee(CHANGES[0], tolerance=1.0, minutes=2) < 5
    True
    """
    limit = require_positive("tolerance", tolerance)

    def kept(rate: float) -> bool:
        return 2 * sum(keeps(measure(change, rate, seed, minutes)) for seed in SEEDS) > len(SEEDS)

    low, high = LOW, HIGH
    if not kept(low):
        return 0.0
    while high - low > limit:
        halfway = (low + high) / 2
        low, high = (halfway, high) if kept(halfway) else (low, halfway)
    return low


def floor_rate(change: Change) -> float:
    """Return the rate that floors and Little's law allow, before anything is simulated.

    Parameters
    ----------
    change : Change
        The machine.

    Returns
    -------
    float
        Highest rate of any number of seats whose mean time per token is within the promise [requests/s].

    Notes
    -----
    A request takes ``s(B) = prefill + answer × step(B) / (B × tokens a step)`` of a machine with B seats in use. It
    sits there for ``B s(B)`` seconds, so its mean time per token is that over the answer. No queue, no chance, prompts
    and decode steps one after the other. Page of the capstone.

    Examples
    --------
    >>> round(floor_rate(CHANGES[0]), 2)
    3.55
    """
    engine, answer = change.engine(), bench.OUTPUT_LEN
    cost, prompt = engine.cost, bench.PROMPT_LEN
    cached = bench.PROMPT_LEN * change.setting.hit_percent // 100 // bench.BLOCK_SIZE * bench.BLOCK_SIZE
    fresh = prompt - cached
    prefill = cost.step_seconds(fresh, fresh * cached + fresh * (fresh + 1) / 2, cached)
    memory = (engine.capacity_tokens or 0) // (prompt + answer)
    best, pace = 0.0, bench.PROMISE.tpot_seconds or 0.0
    for seats in range(1, min(engine.max_batch, memory) + 1):
        tokens = seats * cost.checked_tokens
        context = prompt + answer / 2
        step = cost.step_seconds(tokens, tokens * context, seats * context, decoding=True)
        busy = prefill + answer * step / (seats * cost.tokens_per_round)
        if seats * busy / answer <= pace:
            best = max(best, 1 / busy)
    return best * change.replicas


def closed_loop(users: int) -> dict[str, float]:
    """Test the machine as it is with a fixed number of users who send as soon as they have an answer.

    Parameters
    ----------
    users : int
        How many [users].

    Returns
    -------
    dict
        ``users``, the ``rate`` that came about [requests/s], 95th percentiles ``ttft`` and ``tpot`` [seconds].

    Examples
    --------
    >>> closed_loop(4)["rate"] < 2
    True
    """
    work = START.work(1.0, CLOSED_REQUESTS / 60, SEEDS[0])
    run = simulate(work, START.engine(), source=ClosedLoop(work, users))
    found = summary(run, warm_up_seconds=bench.WARM_UP_SECONDS)
    return {
        "users": users,
        "rate": round(found.request_throughput, 3),
        "ttft": round(found.ttft.p95, 4),
        "tpot": round(found.tpot.p95, 5),
    }


def row(change: Change, rates: Sequence[float] = bench.RATES) -> dict[str, Any]:
    """Return what is measured of one change.

    Parameters
    ----------
    change : Change
        The machine.
    rates : sequence of float
        Where the percentiles are taken [requests/s].

    Returns
    -------
    dict
        ``words``, ``replicas``, ``ttft`` [milliseconds] and ``tpot`` [tenths of a millisecond] at every rate, ``knee``
        and ``floor`` [requests/s].

    Examples
    --------
    >>> row(CHANGES[0], (1,))["words"]
    'as it is'
    """
    runs = [measure(change, rate) for rate in rates]
    return {
        "words": change.words,
        "replicas": change.replicas,
        "ttft": [round(run.ttft.p95 * 1e3) for run in runs],
        "tpot": [round(run.tpot.p95 * 1e4) for run in runs],
        "knee": knee(change),
        "floor": floor_rate(change),
    }


def _text() -> str:
    changes, users = json_lines(map(row, CHANGES)), json_lines(map(closed_loop, USERS))
    return f'{{"rates": {json.dumps(bench.RATES)},\n"changes": [\n{changes}\n],\n"closed": [\n{users}\n]}}\n'


#: Write everything to the file that is named.
main = partial(write_data, "lantern_lib.studies.capstone OUT", make=_text)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
