"""Every number that the notes print in C3 and C4, recomputed; see ``test_published_a.py`` for the shape."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from lantern_lib import H100, LANTERN_70B, Replica, capacity
from lantern_lib.prompt_cache import ANTHROPIC, break_even_uses

PUBLISHED = "published_c"
FOUR = Replica(H100, tp_size=4)
DOLLARS = 3.0


def traffic(rate: float = 20, cached: int = 0) -> capacity.Traffic:
    return capacity.Traffic(rate, 2000, 400, num_cached_tokens=cached)


def demand(cached: int = 0, **rule: bool) -> capacity.Demand:
    return capacity.fleet_demand(LANTERN_70B, FOUR, traffic(cached=cached), **rule)


def plan(rate: float, cached: int, max_utilization: float) -> capacity.Plan:
    return capacity.plan_fleet(LANTERN_70B, FOUR, traffic(rate, cached), max_utilization=max_utilization)


def cached_cost(uses: int, read: float, write: float) -> float:
    """Price of some uses of a prefix, in uses without a cache: the first writes, the others read."""
    return write + sum(read for _ in range(uses - 1))


COMPUTE: dict[str, Callable[..., float]] = {
    "traffic.context_len": lambda: traffic().context_len,
    "traffic.num_cached_tokens": lambda cached: (
        traffic(cached=cached).prompt_len - traffic(cached=cached).num_new_tokens
    ),
    "demand.batch": lambda: demand().decode.num_tokens,
    "demand.decode_rate": lambda: demand().decode.tokens_per_second,
    "demand.prefill_seconds": lambda **i: demand(**i).prefill.total_seconds,
    "demand.decode_replicas": lambda: demand().decode_replicas,
    "demand.prefill_replicas": lambda **i: demand(**i).prefill_replicas,
    "demand.prefill_share": lambda: demand().prefill_share,
    "demand.replicas": lambda **i: demand(**i).replicas,
    "demand.over_utilization": lambda max_utilization, **i: demand(**i).replicas / max_utilization,
    "plan.num_replicas": lambda **i: plan(**i).num_replicas,
    "plan.num_gpus": lambda **i: plan(**i).num_gpus,
    "plan.dollars_per_hour": lambda **i: plan(**i).dollars_per_hour(DOLLARS),
    "plan.dollars_per_million": lambda **i: plan(**i).dollars_per_million(DOLLARS),
    "plan.saved_per_hour": lambda cached, max_utilization: (
        plan(20, cached[0], max_utilization).dollars_per_hour(DOLLARS)
        - plan(20, cached[1], max_utilization).dollars_per_hour(DOLLARS)
    ),
    "prompt_cache.cost": cached_cost,
    "prompt_cache.saved_by_all_uses": lambda read, write: write - read,
    "prompt_cache.break_even_uses": lambda read, write: break_even_uses(
        replace(ANTHROPIC, read_price=read, write_price=write)
    ),
    "prompt_cache.never_read": lambda write: write - 1,
}


def test_published_number(entry: dict[str, Any], hold: Callable[..., None]) -> None:
    hold(entry, COMPUTE)


def test_the_exact_price_of_a_cached_prefix_changes_no_printed_count() -> None:
    """The notes price the rest of a prompt as a prompt of its own; its tokens attend to the cached ones too."""
    exact, simple = demand(1000), demand(1000, attend_cached=False)
    assert round(exact.prefill.total_seconds * 1e3, 2) == 82.28
    assert round(simple.prefill.total_seconds * 1e3, 2) == 80.96
    for rate in (1, 2, 5, 10, 20, 50, 100):
        for cached in (1000, 1500):
            counts = {
                capacity.plan_fleet(
                    LANTERN_70B, FOUR, traffic(rate, cached), max_utilization=0.65, attend_cached=attend
                ).num_replicas
                for attend in (True, False)
            }
            assert len(counts) == 1, (rate, cached)


def test_no_compute_entry_is_unused(entries: list[dict[str, Any]]) -> None:
    assert set(COMPUTE) == {e["compute"] for e in entries}
