"""Three designs of a fleet: prompts in steps of their own, prompts in chunks, and two pools.

``python -m lantern_lib.studies.designs OUT`` runs the sweep and writes it for the page (some minutes).
"""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from lantern_lib.book_data import json_lines, significant, write_data
from lantern_lib.capacity import Traffic, fleet_demand
from lantern_lib.chunked_prefill import cache_transfer
from lantern_lib.hardware import H100, Replica
from lantern_lib.metrics import Summary, summary
from lantern_lib.model_config import LANTERN_70B
from lantern_lib.simulator import (
    EngineConfig,
    LeastLoaded,
    Result,
    engine_for,
    simulate_disaggregated,
    simulate_fleet,
)
from lantern_lib.units import require_positive
from lantern_lib.workload import Exponential, Workload, poisson

NUM_REPLICAS, OUTPUT_LEN = 8, 400
PROMPT_LENS = (500, 1000, 2000, 4000, 8000)
#: Rates of the sweep, over what the fleet could do if prompts and answers took turns and nobody came at random.
LOADS = (0.2, 0.4, 0.6, 0.7, 0.8, 0.9, 1.0, 1.1, 1.2)
SECONDS, WARM_UP_SECONDS, SEED = 120, 30.0, 11
#: Splits of the fleet that the sweep tries [replicas that read prompts].
SPLITS = (3, 4, 5, 6, 7)
CHUNKS = (512, 2048)
#: A replica's network as page B3 has it, and the slow share of it that transfers are seen to reach.
NETWORK, NETWORK_SHARE = 200e9, 0.25


@dataclass(frozen=True)
class Design:
    """How eight replicas share the work.

    ``kind`` is ``separate``, ``chunked``, ``pools`` or ``free``; the last one answers requests whose prompts cost
    nothing, to measure what prompts cost. ``number`` is the chunk [tokens] or the replicas that read prompts.
    """

    kind: str
    number: int = 0

    @property
    def name(self) -> str:
        """Its key in the sweep's results [text]."""
        return f"{self.kind}-{self.number}" if self.number else self.kind

    def run(self, work: Workload) -> Result:
        """Serve a workload."""
        whole = engine_for(LANTERN_70B, Replica(H100, tp_size=4))
        if self.kind == "pools":
            per_token = cache_transfer(LANTERN_70B, 1, NETWORK, NETWORK_SHARE).seconds
            pools = [whole] * self.number, [whole] * (NUM_REPLICAS - self.number)
            return simulate_disaggregated(work, *pools, transfer_token_seconds=per_token)
        return simulate_fleet(work, [self.config(whole)] * NUM_REPLICAS, LeastLoaded())

    def config(self, whole: EngineConfig) -> EngineConfig:
        """Settings of each replica of a design with one pool."""
        if self.kind == "free":
            return replace(whole, prefilled=True)
        if self.kind == "chunked":
            return replace(whole, prefill="chunked", token_budget=self.number)
        return whole


def designs() -> list[Design]:
    """Return all designs of the sweep.

    Returns
    -------
    list of Design
        Free prompts, separate steps, two chunk sizes, and the fleet in two pools of every size of :data:`SPLITS`.

    Examples
    --------
    >>> [design.name for design in designs()][:4]
    ['free', 'separate', 'chunked-512', 'chunked-2048']
    """
    pools = [Design("pools", number) for number in SPLITS]
    return [Design("free"), Design("separate"), *(Design("chunked", chunk) for chunk in CHUNKS), *pools]


def turns_rate(prompt_len: int, *, free: bool = False) -> float:
    """Return the requests a second that the fleet could do if prompts and answers took turns.

    Parameters
    ----------
    prompt_len : int
        Tokens of each prompt [tokens].
    free : bool
        Whether prompts cost nothing.

    Returns
    -------
    float
        Replicas over the demand of one request a second, page C3's model [requests/s].

    Examples
    --------
    >>> round(turns_rate(2000), 1), round(turns_rate(2000, free=True), 1)
    (35.5, 126.0)
    """
    demand = fleet_demand(LANTERN_70B, Replica(H100, tp_size=4), Traffic(1.0, prompt_len, OUTPUT_LEN))
    return NUM_REPLICAS / (demand.decode_replicas + (0.0 if free else demand.prefill_replicas))


def measure(design: Design, prompt_len: int, rate: float, *, seconds: float = SECONDS, seed: int = SEED) -> Summary:
    """Run a design at a rate.

    Parameters
    ----------
    design : Design
        How the fleet shares the work.
    prompt_len : int
        Tokens of each prompt [tokens].
    rate : float
        Requests per second for the whole fleet [requests/s].
    seconds : float
        For how long requests arrive [seconds].
    seed : int
        Where the chance comes from.

    Returns
    -------
    Summary
        Times of the requests that arrived after the warm-up.

    Raises
    ------
    ValueError
        If a number is out of range.

    Examples
    --------
    >>> pools = measure(Design("pools", 4), 2000, 8, seconds=60)
    >>> mixed = measure(Design("separate"), 2000, 8, seconds=60)
    >>> pools.tpot.p95 < mixed.tpot.p95
    True
    """
    count = max(2, round(require_positive("rate", rate) * seconds))
    work = poisson(count, rate, prompt_len, Exponential(OUTPUT_LEN), np.random.default_rng(seed))
    result = design.run(work)
    if design.kind == "free":
        # The token that came with the request is not written here: its time is the arrival.
        first = np.where(np.isnan(result.first_token_seconds), result.arrival_seconds, result.first_token_seconds)
        result = replace(result, first_token_seconds=first)
    return summary(result, warm_up_seconds=min(WARM_UP_SECONDS, seconds / 4))


def highest_rate(
    rates: Sequence[float], ttft: Sequence[float], tpot: Sequence[float], ttft_limit: float, tpot_limit: float
) -> float:
    """Return the rate at which the first limit is reached.

    Parameters
    ----------
    rates : sequence of float
        Rising [requests/s].
    ttft, tpot : sequence of float
        A percentile of each at every rate [seconds].
    ttft_limit, tpot_limit : float
        What is promised [seconds].

    Returns
    -------
    float
        Between two rates of the sweep on the line of logarithms; 0 if the lowest breaks a limit, the highest if none
        does [requests/s].

    Examples
    --------
    >>> highest_rate((1, 2), (0.1, 0.1), (0.02, 0.08), 1.0, 0.04)
    1.5
    """
    found = math.inf
    for values, limit in ((ttft, ttft_limit), (tpot, tpot_limit)):
        over = [place for place, value in enumerate(values) if value > limit]
        if over and over[0] == 0:
            return 0.0
        if over:
            low, high = math.log(max(values[over[0] - 1], 1e-9)), math.log(values[over[0]])
            share = (math.log(limit) - low) / (high - low)
            found = min(found, rates[over[0] - 1] + share * (rates[over[0]] - rates[over[0] - 1]))
    return min(found, rates[-1])


def row(design: Design, prompt_len: int) -> dict[str, Any]:
    """Return one design at all loads.

    Parameters
    ----------
    design : Design
        How the fleet shares the work.
    prompt_len : int
        Tokens of each prompt [tokens].

    Returns
    -------
    dict
        ``design``, ``prompt_len``, ``rates`` [requests/s], and the 95th percentiles ``ttft`` and ``tpot`` [seconds].

    Examples
    --------
    >>> row(Design("pools", 6), 8000)["design"]
    'pools-6'
    """
    full = turns_rate(prompt_len, free=design.kind == "free")
    rates = [round(full * load, 3) for load in LOADS]
    runs = [measure(design, prompt_len, rate) for rate in rates]
    return {
        "design": design.name,
        "prompt_len": prompt_len,
        "rates": rates,
        "ttft": [significant(run.ttft.p95, 4) for run in runs],
        "tpot": [significant(run.tpot.p95, 4) for run in runs],
    }


def _text() -> str:
    rows = (row(design, length) for length in PROMPT_LENS for design in designs())
    return f"[\n{json_lines(rows)}\n]\n"


#: Write the sweep to the file that is named.
main = partial(write_data, "lantern_lib.studies.designs OUT", make=_text)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
