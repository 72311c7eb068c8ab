"""Every number that the warm-up prints in 6.3, 6.5, 10 and 11; see ``test_published_a.py`` for the shape."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from lantern_lib import H100, LANTERN_70B, Replica, kv_cache, pricing, roofline, scheduler
from lantern_lib.hardware import H100_80GIB

PUBLISHED = "published_pricing"
PRICES = pricing.TokenPrices(3e-6, 12e-6)
FLEET = pricing.Fleet(group_gpus=8, gpu_hour_dollars=3, people_dollars=25_000)
ROUND_PARAMETERS = 70e9
RIDGE = roofline.ridge_point(H100.peak_flops, H100.memory_bandwidth)


def use(percent: float) -> float:
    return pricing.break_even_utilization(12_000, pricing.blended_price(PRICES, percent / 100), 4e9)


def budget(kv_heads: int) -> kv_cache.MemoryBudget:
    return kv_cache.memory_budget(
        replace(LANTERN_70B, num_kv_heads=kv_heads),
        Replica(H100_80GIB, tp_size=8),
        stored_weight_bytes=2 * ROUND_PARAMETERS,
        reserve_from="remainder",
    )


def warm_up(policy: Callable[..., scheduler.Schedule]) -> scheduler.Schedule:
    """Its lab is not printed; see ``test_published_b1.py`` for this workload, which gives its figures."""
    lengths = [400 if index % 8 == 0 else 20 for index in range(24)]
    return policy(lengths, 8, [index // 4 for index in range(24)])


def warm_up_ratio(name: str) -> float:
    static, continuous = warm_up(scheduler.static_batching), warm_up(scheduler.continuous_batching)
    return float(getattr(static, name) / getattr(continuous, name))


COMPUTE: dict[str, Callable[..., float]] = {
    "break_even_utilization": use,
    "utilization_ratio": lambda percent, over: use(percent) / use(over),
    "price_ratio": lambda: pricing.blended_price(PRICES, 1) / pricing.blended_price(PRICES, 0),
    "fleet.monthly_dollars": lambda: FLEET.monthly_dollars(1e9),
    "fleet.token_dollars": lambda billions: FLEET.token_dollars(billions * 1e9),
    "fleet.crossover_tokens": lambda percent: FLEET.crossover_tokens(pricing.blended_price(PRICES, percent / 100)),
    "kv.full_head_ratio": lambda: (
        kv_cache.bytes_per_token(replace(LANTERN_70B, num_kv_heads=64)) / kv_cache.bytes_per_token(LANTERN_70B)
    ),
    "kv.bytes_per_token": lambda: kv_cache.bytes_per_token(LANTERN_70B),
    "kv.bytes_per_sequence": lambda context: kv_cache.bytes_per_sequence(LANTERN_70B, context),
    "round_model.weights": lambda: 2 * ROUND_PARAMETERS,
    "round_model.flops": lambda: 2 * ROUND_PARAMETERS,
    "round_model.compute_share": lambda: (
        roofline.arithmetic_intensity(2 * ROUND_PARAMETERS, 2 * ROUND_PARAMETERS) / RIDGE
    ),
    "ridge.peak": lambda: RIDGE,
    "budget.pool": lambda: budget(8).pool_bytes,
    "budget.conversations": lambda kv_heads: budget(kv_heads).conversations(8192),
    "warm_up.ticks_ratio": lambda: warm_up_ratio("total_steps"),
    "warm_up.latency_ratio": lambda: warm_up_ratio("mean_latency_from_admission"),
}


def test_published_number(entry: dict[str, Any], hold: Callable[..., None]) -> None:
    hold(entry, COMPUTE)


def test_the_wrong_sum_is_the_one_that_lost_its_thousands() -> None:
    """The printed 17,545 adds 25 where 25,000 are meant, and the printed crossing follows from it."""
    assert FLEET.group_dollars + 25 == 17_545
    assert 4 < (FLEET.group_dollars + 25) / 3.9e-6 / 1e9 < 5


def test_every_corrected_number_is_known(entries: list[dict[str, Any]]) -> None:
    corrected = {e["id"] for e in entries if "corrected" in e}
    wrong_sum = {"S2.6.5.monthly", "S2.11.175k", "S2.11.1750", "S2.11.088", "S2.11.cross"}
    assert corrected == wrong_sum | {"S2.11.8000"}


def test_these_sections_of_the_warm_up_are_complete(outside: Callable[[str], Path]) -> None:
    """Every number of the independent recomputation in sections 6, 7, 10 and 11 stands in some published list."""
    golden = json.loads(outside("reference/golden_numbers.json").read_text(encoding="utf-8"))["numbers"]
    wanted = {e["id"] for e in golden if e["seed"] == "S2" and e["section"].split(".")[0] in {"6", "7", "10", "11"}}
    lists = (Path(__file__).parent / "data").glob("published_*.json")
    there = {e["id"] for path in lists for e in json.loads(path.read_text(encoding="utf-8"))}
    assert len(wanted) == 26
    assert wanted <= there


def test_no_compute_entry_is_unused(entries: list[dict[str, Any]]) -> None:
    assert set(COMPUTE) == {e["compute"] for e in entries}
