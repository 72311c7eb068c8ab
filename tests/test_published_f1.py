"""Every number that the notes print in F1 and F2, recomputed; see ``test_published_a.py`` for the shape."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from lantern_lib import H100, LANTERN_70B, Replica, capacity, cold_start, pricing, quantization

PUBLISHED = "published_f1"
FOUR = Replica(H100, tp_size=4)
CHAT = capacity.Traffic(20, 2000, 400)
DOLLARS = 3.0
EIGHT_BIT = quantization.with_storage(LANTERN_70B, weight_bits=8, kv_bits=8)
PAGE = Path(__file__).resolve().parent.parent / "book" / "f" / "f1.md"


def demand() -> capacity.Demand:
    return capacity.fleet_demand(LANTERN_70B, FOUR, CHAT)


def fleet(floor_share: float = 1.0) -> pricing.Fleet:
    return pricing.fleet_for(demand(), DOLLARS, floor_share=floor_share)


def blocks() -> list[str]:
    """Return the numbered rows of the page's table of blocks."""
    return re.findall(r"^\| \d\. .+$", PAGE.read_text(encoding="utf-8"), re.M)


def load_seconds(gigabytes_per_second: float, rate_is_for: str) -> float:
    return cold_start.weight_load_seconds(LANTERN_70B, FOUR, gigabytes_per_second * 1e9, rate_is_for=rate_is_for)


COMPUTE: dict[str, Callable[..., float]] = {
    "start.shard_bytes": lambda: cold_start.shard_bytes(LANTERN_70B, FOUR),
    "start.load_seconds": load_seconds,
    "start.eight_bit_share": lambda: (
        cold_start.shard_bytes(EIGHT_BIT, FOUR) / cold_start.shard_bytes(LANTERN_70B, FOUR)
    ),
    "page.blocks": lambda: len(blocks()),
    "page.blocks_before_gpus": lambda: next(i for i, row in enumerate(blocks()) if "GPU" in row),
    "demand.requests_per_second": lambda: demand().requests_per_second,
    "demand.tokens_per_second": lambda: demand().requests_per_second * CHAT.context_len,
    "plan.output_million": lambda: capacity.plan_fleet(LANTERN_70B, FOUR, CHAT).dollars_per_million(DOLLARS),
    "plan.num_replicas": lambda: capacity.plan_fleet(LANTERN_70B, FOUR, CHAT).num_replicas,
    "fleet.tokens_per_hour": lambda: fleet().group_capacity_tokens / fleet().hours_per_month,
    "fleet.dollars_per_hour": lambda: fleet().group_dollars / fleet().hours_per_month,
    "fleet.utilization_to_pay": lambda api_million: fleet().utilization_to_pay(api_million * 1e-6),
    "fleet.million_at": lambda utilization, floor_share: fleet(floor_share).token_dollars_at(utilization) * 1e6,
    "replica.million_at_rate": lambda rate: capacity.dollars_per_million(DOLLARS, 4, rate * CHAT.context_len),
}


def test_published_number(entry: dict[str, Any], hold: Callable[..., None]) -> None:
    hold(entry, COMPUTE)


def test_a_pod_takes_four_times_as_long_as_the_notes_say_of_it() -> None:
    """Errata: the printed size and times are one GPU's; a pod at those rates takes 282, 71 and 14 seconds."""
    assert [round(load_seconds(rate, "pod")) for rate in (0.5, 2.0, 10.0)] == [282, 71, 14]
    assert [load_seconds(r, "pod") / load_seconds(r, "gpu") for r in (0.5, 2.0, 10.0)] == [4, 4, 4]


def test_eight_bit_storage_gives_the_values_of_the_errata() -> None:
    small = capacity.fleet_demand(EIGHT_BIT, FOUR, CHAT)
    stored = pricing.fleet_for(small, DOLLARS)
    assert round(cold_start.shard_bytes(EIGHT_BIT, FOUR) / 1e9, 1) == 17.6
    assert round(small.requests_per_second, 1) == 5.1
    assert round(stored.group_capacity_tokens / stored.hours_per_month / 1e6, 1) == 44.1
    assert round(stored.token_dollars_at(1.0) * 1e6, 2) == 0.27


def test_the_break_even_of_fifty_users_is_a_question_in_72_seconds() -> None:
    most = fleet().utilization_to_pay(2e-6) * demand().requests_per_second
    assert round(most, 3) == 0.694
    assert round(50 / most) == 72


def test_no_compute_entry_is_unused(entries: list[dict[str, Any]]) -> None:
    assert set(COMPUTE) == {e["compute"] for e in entries}
