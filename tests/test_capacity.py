"""Sizing a fleet: hand-computed demands, a slow simulation of the fixed point, and the edges."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from lantern_lib import H100, LANTERN_70B, ModelConfig, Replica, capacity, kv_cache, step

FOUR = Replica(H100, tp_size=4)
EIGHT_BIT = replace(LANTERN_70B, weight_bytes=1.0, kv_bytes=1.0)
CHAT = capacity.Traffic(20, 2000, 400)
SHARED = capacity.Traffic(20, 2000, 400, num_cached_tokens=1500)
# Plans of page C3: traffic, allowed utilisation; then replicas with 16 and with 8 bits.
PLANS = {"raw": (CHAT, 1.0, 5, 4), "headroom": (CHAT, 0.65, 7, 7), "cached": (SHARED, 0.65, 4, 3)}
CASES = [
    pytest.param(model, traffic, share, count, id=f"{name}-{bits}")
    for name, (traffic, share, sixteen, eight) in PLANS.items()
    for bits, model, count in ((16, LANTERN_70B, sixteen), (8, EIGHT_BIT, eight))
]


def demand(model: ModelConfig = LANTERN_70B, traffic: capacity.Traffic = CHAT) -> capacity.Demand:
    return capacity.fleet_demand(model, FOUR, traffic)


def test_the_demand_adds_up_by_hand() -> None:
    """186 conversations in (0.9 × 320 − 141.105) GB; 8,000 tokens a second; twenty prompts of 162 ms."""
    found = demand()
    assert found.decode.num_tokens == int((0.9 * 320e9 - 141.1074e9) // (2400 * 327_680)) == 186
    assert found.decode_replicas == pytest.approx(8000 / 6301, abs=1e-4)
    assert found.prefill_replicas == pytest.approx(20 * 0.16196, abs=1e-4)
    assert found.replicas == found.decode_replicas + found.prefill_replicas
    assert found.requests_per_second == pytest.approx(1 / (400 / 6301 + 0.16196), abs=1e-3)


def test_eight_bit_storage_helps_decode_and_leaves_the_prompts() -> None:
    """Errata of the notes: 552 conversations, 40.5 ms of arithmetic against 26.7 ms of memory, 83 percent prompts."""
    found = demand(EIGHT_BIT)
    assert found.decode.num_tokens == 552
    assert round(found.decode.compute_seconds * 1e3, 1) == 40.5
    assert round(found.decode.memory_seconds * 1e3, 1) == 26.7
    assert round(found.decode.tokens_per_second) == 11_833
    assert round(found.decode_replicas, 2) == 0.68
    assert found.prefill_replicas == demand().prefill_replicas
    assert round(found.prefill_share, 2) == 0.83


@pytest.mark.parametrize(("model", "traffic", "share", "replicas"), CASES)
def test_a_plan_is_the_first_number_of_replicas_that_is_not_too_busy(
    model: ModelConfig, traffic: capacity.Traffic, share: float, replicas: int
) -> None:
    plan = capacity.plan_fleet(model, FOUR, traffic, max_utilization=share)
    busy = demand(model, traffic).replicas
    assert plan.num_replicas == next(n for n in range(1, 100) if busy / n <= share) == replicas
    assert plan.num_gpus == 4 * replicas
    assert plan.utilization == pytest.approx(busy / replicas)


def settle(model: ModelConfig, traffic: capacity.Traffic, num_replicas: int) -> tuple[float, float]:
    """Repeat Little's law until the batch stands still; return the batch and the time per token."""
    rate = traffic.arrival_rate / num_replicas
    new = traffic.prompt_len - traffic.num_cached_tokens
    left = 1 - rate * step.prefill_step(model, FOUR, new, traffic.num_cached_tokens).total_seconds
    batch, gap = 0.0, 0.0
    for _ in range(20_000):
        low = max(1, math.floor(batch))
        one, two = (step.decode_step(model, FOUR, b, traffic.context_len).total_seconds for b in (low, low + 1))
        gap = (one + max(0.0, batch - low) * (two - one)) / left
        after = rate * traffic.output_len * gap
        if abs(after - batch) < 1e-9:
            break
        batch = after
    return batch, gap


@pytest.mark.parametrize(("model", "traffic", "share", "replicas"), CASES)
def test_the_load_is_where_iterating_littles_law_ends(
    model: ModelConfig, traffic: capacity.Traffic, share: float, replicas: int
) -> None:
    """From an empty fleet the iteration climbs to the smallest fixed point."""
    load = capacity.plan_fleet(model, FOUR, traffic, max_utilization=share).load
    batch, gap = settle(model, traffic, replicas)
    assert load.batch_size == pytest.approx(batch, rel=1e-6)
    assert load.tpot_seconds == pytest.approx(gap, rel=1e-6)


@pytest.mark.parametrize(("name", "batch", "ms"), [("raw", 103, 65), ("headroom", 37, 32), ("cached", 46, 23)])
def test_the_load_has_the_batch_and_the_gap_of_the_errata(name: str, batch: int, ms: int) -> None:
    traffic, _, replicas, _ = PLANS[name]
    load = capacity.steady_load(demand(traffic=traffic), replicas)
    assert round(load.batch_size) == batch
    assert round(load.tpot_seconds * 1e3) == ms


def test_at_saturation_the_gap_is_the_full_step_over_what_prompts_leave() -> None:
    """A traffic that keeps exactly three replicas busy: 29.5 ms become 105."""
    three = replace(CHAT, arrival_rate=3 * demand().requests_per_second)
    plan = capacity.plan_fleet(LANTERN_70B, FOUR, three)
    assert plan.num_replicas == 3
    assert plan.utilization == pytest.approx(1)
    assert plan.load.batch_size == pytest.approx(186)
    assert plan.load.tpot_seconds == pytest.approx(0.029517 / (1 - 0.71842), rel=1e-4)


def test_a_trickle_sees_a_step_of_its_own() -> None:
    load = capacity.steady_load(demand(traffic=replace(CHAT, arrival_rate=0.01)), 1)
    alone = step.decode_step(LANTERN_70B, FOUR, 1, 2400).total_seconds
    assert load.batch_size < 0.1
    assert load.tpot_seconds == pytest.approx(alone / (1 - 0.01 * 0.16196), rel=1e-6)


def test_more_replicas_mean_a_smaller_batch_and_a_shorter_gap() -> None:
    loads = [capacity.steady_load(demand(), n) for n in range(5, 40)]
    assert [x.batch_size for x in loads] == sorted((x.batch_size for x in loads), reverse=True)
    assert [x.tpot_seconds for x in loads] == sorted((x.tpot_seconds for x in loads), reverse=True)


def test_the_price_counts_every_paid_hour() -> None:
    """Five machines of 12 dollars; 28.8 million answer tokens and 144 million prompt tokens in the hour."""
    plan = capacity.plan_fleet(LANTERN_70B, FOUR, CHAT)
    assert plan.dollars_per_hour(3) == 60
    assert plan.dollars_per_million(3) == pytest.approx(60 / 28.8)
    assert plan.dollars_per_million(3, blended=True) == pytest.approx(60 / (28.8 + 144))
    one = capacity.dollars_per_million(3, 4, demand().requests_per_second * 400, utilization=plan.utilization)
    assert one == pytest.approx(60 / 28.8), "per replica at its utilisation it is the same price"


def test_an_exact_fit_is_not_rounded_up() -> None:
    for count in (1, 3, 7, 10):
        exact = replace(CHAT, arrival_rate=0.65 * count * demand().requests_per_second)
        assert capacity.plan_fleet(LANTERN_70B, FOUR, exact, max_utilization=0.65).num_replicas == count


def test_a_replica_too_small_is_refused() -> None:
    with pytest.raises(ValueError, match="^tp_size must be large enough"):
        capacity.fleet_demand(LANTERN_70B, Replica(H100), CHAT)
    assert kv_cache.memory_budget(LANTERN_70B, Replica(H100)).conversations(2400) == 0


def test_too_few_replicas_are_refused() -> None:
    with pytest.raises(ValueError, match=r"^num_replicas must be at least 5 for 20 requests/s.*got 4\."):
        capacity.steady_load(demand(), 4)
    with pytest.raises(ValueError, match="^num_replicas must be a whole number"):
        capacity.steady_load(demand(), 0)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"arrival_rate": 0}, "^arrival_rate must be"),
        ({"prompt_len": 0}, "^prompt_len must be"),
        ({"output_len": 2.5}, "^output_len must be"),
        ({"num_cached_tokens": -1}, "^num_cached_tokens must be"),
        ({"num_cached_tokens": 2000}, "^num_cached_tokens must be below prompt_len = 2,000, got 2,000"),
    ],
)
def test_a_traffic_checks_its_fields(fields: dict[str, float], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        replace(CHAT, **fields)  # type: ignore[arg-type]


@pytest.mark.parametrize("share", [0, 1.1, -0.5, math.nan])
def test_an_impossible_utilisation_is_refused(share: float) -> None:
    with pytest.raises(ValueError, match="^max_utilization must be a fraction"):
        capacity.plan_fleet(LANTERN_70B, FOUR, CHAT, max_utilization=share)
    with pytest.raises(ValueError, match="^utilization must be a fraction"):
        capacity.dollars_per_million(3, 4, 1000, utilization=share)


def test_prices_of_nothing_are_refused() -> None:
    plan = capacity.plan_fleet(LANTERN_70B, FOUR, CHAT)
    for call in (plan.dollars_per_hour, plan.dollars_per_million):
        with pytest.raises(ValueError, match="^dollars_per_gpu_hour must be"):
            call(0)
    with pytest.raises(ValueError, match="^tokens_per_second must be"):
        capacity.dollars_per_million(3, 4, 0)


def test_summaries_say_what_was_computed() -> None:
    plan = capacity.plan_fleet(LANTERN_70B, FOUR, SHARED, max_utilization=0.65)
    assert "4 × (4 × H100" in plan.summary
    assert "prompts of 2,000 (1,500 cached)" in plan.summary
    assert "53% busy of at most 65%" in plan.summary
    assert "1.27 replicas decode, 0.84 prefill" in plan.demand.summary
    assert "a token every 22.8 ms" in plan.load.summary
