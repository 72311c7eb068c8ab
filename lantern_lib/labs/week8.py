"""Week 8: what stands in for a student's functions. Records and services are the notebook's own."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from lantern_lib import metrics
from lantern_lib.pricing import plan_with_spillover

#: Library modules that a student may use besides those of every week: the simulator is the lab's tool.
ALLOWED: frozenset[str] = frozenset(
    {"quantization", "simulator", "workload", "labs"}
    | {f"simulator.{part}" for part in ("config", "cost", "records", "run")}
    | {"workload.requests", "workload.arrivals"}
)


def _schedule(rate: float, seconds: float, seed: int) -> list[float]:
    # A tenth more than ten standard deviations of a Poisson count: the last gap always ends after the test.
    count = int(rate * seconds + 10 * math.sqrt(rate * seconds) + 100)
    times = np.cumsum(np.random.default_rng(seed).exponential(size=count)) / rate
    found: list[float] = times[times < seconds].tolist()
    return found


def _report(records: Sequence[Any], promise: Any, seconds: float, warm_up_seconds: float) -> dict[str, float]:
    late = [record for record in records if record.arrival_seconds >= warm_up_seconds]
    done = np.array(
        [
            (r.first_token_seconds - r.arrival_seconds, r.last_token_seconds - r.first_token_seconds, r.output_len - 1)
            for r in late
            if r.last_token_seconds is not None
        ],
        np.float64,
    ).reshape(-1, 3)
    waits, paces = done[:, 0], done[:, 1] / np.maximum(done[:, 2], 1)
    several = paces[done[:, 2] > 0]
    good = (waits <= promise.ttft_seconds) & (paces <= promise.tpot_seconds)
    return {
        "measured": len(done),
        "unfinished": len(late) - len(done),
        "ttft_p95_seconds": metrics.percentile(waits, 0.95) if len(done) else math.inf,
        "tpot_p95_seconds": metrics.percentile(several, 0.95) if len(several) else math.inf,
        "goodput": int(good.sum()) / (seconds - warm_up_seconds),
    }


def _is_kept(measured: dict[str, float], promise: Any) -> bool:
    late = measured["ttft_p95_seconds"] > promise.ttft_seconds or measured["tpot_p95_seconds"] > promise.tpot_seconds
    return not late and 20 * measured["unfinished"] <= measured["measured"] + measured["unfinished"]


def _find_knee(
    service: Any, promise: Any, trial: Any, low: float, high: float, tolerance: float
) -> tuple[float, list[tuple[float, bool]]]:
    tried: dict[float, bool] = {}
    kept, broken = 0.0, math.inf
    at = low
    while at not in tried:
        runs = [
            _report(service.run(_schedule(at, trial.seconds, n), n), promise, trial.seconds, trial.warm_up_seconds)
            for n in trial.seeds
        ]
        tried[at] = 2 * sum(_is_kept(run, promise) for run in runs) > len(runs)
        kept, broken = (at, broken) if tried[at] else (kept, at)
        if kept and broken == math.inf:
            at = high
        elif kept and broken - kept > tolerance:
            at = (kept + broken) / 2
    return kept, list(tried.items())


def _million_dollars(hour_dollars: float, rate: float, tokens_per_request: float) -> float:
    return hour_dollars / (rate * tokens_per_request * 3600) * 1e6 if rate else math.inf


def _replicas_needed(hourly_rates: Sequence[float], knee: float, utilization: float, spares: int = 0) -> int:
    return math.ceil(max(hourly_rates) / (knee * utilization)) + spares


def _bill(demand: Sequence[float], offer: Any, units: int, pool_price: float) -> dict[str, float]:
    room = units * offer.unit_tokens_per_hour
    month = plan_with_spillover(demand, room, floor_token_hour_dollars=0.0, spill_price=pool_price)
    fixed = units * offer.unit_dollars + offer.standing_dollars * (units > 0)
    return {
        "fixed_dollars": fixed,
        "spill_dollars": month.spill_dollars,
        "total_dollars": fixed + month.spill_dollars,
        "spilled_share": month.spilled_tokens / month.total_tokens,
        "utilization": month.floor_utilization,
    }


def _cheapest_units(demand: Sequence[float], offer: Any, pool_price: float) -> int:
    bills = [_bill(demand, offer, 0, pool_price)["total_dollars"]]
    while len(bills) * offer.unit_tokens_per_hour < max(demand) + offer.unit_tokens_per_hour:
        bills.append(_bill(demand, offer, len(bills), pool_price)["total_dollars"])
    return bills.index(min(bills))


STAND_INS: dict[str, Callable[..., Any]] = {
    "schedule": _schedule,
    "report": _report,
    "is_kept": _is_kept,
    "find_knee": _find_knee,
    "million_dollars": _million_dollars,
    "replicas_needed": _replicas_needed,
    "bill": _bill,
    "cheapest_units": _cheapest_units,
}
