"""Every number that the two source documents print about batching and paging; see ``test_published_a.py``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from lantern_lib import scheduler
from lantern_lib.kv_blocks import paged_slots
from lantern_lib.scheduler import Schedule
from lantern_lib.workload import output_lengths_512

PUBLISHED = "published_b1"
LENGTHS = output_lengths_512()
TOTAL, MEAN = sum(LENGTHS), sum(LENGTHS) / len(LENGTHS)
POLICIES: dict[str, Callable[..., Schedule]] = {
    "static": scheduler.static_batching,
    "continuous": scheduler.continuous_batching,
}


def run(policy: str, slots: int) -> Schedule:
    return POLICIES[policy](LENGTHS, slots)


def warm_up(policy: str) -> Schedule:
    """Its lab is not printed; this workload gives all four of its figures."""
    lengths = [400 if index % 8 == 0 else 20 for index in range(24)]
    return POLICIES[policy](lengths, 8, [index // 4 for index in range(24)])


def uneven(long: int, short: int, slots: int) -> Schedule:
    return scheduler.static_batching([long] + [short] * (slots - 1), slots)


def idle_steps(long: int, short: int, slots: int) -> int:
    batch = uneven(long, short, slots)
    return batch.total_steps - max(use.end_step for use in batch.uses[1:])


def tokens_per_step(**batch: int) -> float:
    return uneven(**batch).busy_slot_steps / uneven(**batch).total_steps


COMPUTE: dict[str, Callable[..., float]] = {
    "lengths.mean": lambda: MEAN,
    "lengths.shortest": lambda: min(LENGTHS),
    "lengths.longest": lambda: max(LENGTHS),
    "lengths.count": lambda: len(LENGTHS),
    "lengths.total": lambda: run("continuous", 8).busy_slot_steps,
    "steps": lambda policy, slots: run(policy, slots).total_steps,
    "steps_ratio": lambda slots: run("static", slots).total_steps / run("continuous", slots).total_steps,
    "busy": lambda policy, slots: run(policy, slots).busy_share,
    "mean_over_longest": lambda: MEAN / max(LENGTHS),
    "least_steps": lambda slots: scheduler.least_steps(LENGTHS, slots),
    "above_bound": lambda slots: run("continuous", slots).total_steps / scheduler.least_steps(LENGTHS, slots) - 1,
    "partial_groups": lambda slots: sum(len(LENGTHS) % each > 0 for each in slots),
    "reserved": lambda each: each * len(LENGTHS),
    "reserved_empty": lambda each: 1 - TOTAL / (each * len(LENGTHS)),
    "reserved_over_used": lambda each: each * len(LENGTHS) / TOTAL,
    "paged_slots": lambda block: paged_slots(LENGTHS, block),
    "paged_empty": lambda block: 1 - TOTAL / paged_slots(LENGTHS, block),
    "mean_waste": lambda block: (paged_slots(range(1, block + 1), block) - sum(range(1, block + 1))) / block,
    "mean_waste_over_mean": lambda block: COMPUTE["mean_waste"](block) / MEAN,
    "expected_empty": lambda block: COMPUTE["mean_waste"](block) / (COMPUTE["mean_waste"](block) + MEAN),
    "idle_steps": idle_steps,
    "tokens_per_step": tokens_per_step,
    "warm_up_ticks": lambda policy: warm_up(policy).total_steps,
    "warm_up_latency": lambda policy: warm_up(policy).mean_latency_from_admission,
    "warm_up_ratio": lambda: warm_up("static").total_steps / warm_up("continuous").total_steps,
}


def test_published_number(entry: dict[str, Any], hold: Callable[..., None]) -> None:
    hold(entry, COMPUTE)


def test_latency_from_arrival_is_far_larger() -> None:
    """The warm-up's latencies leave out the queue; by hand from the two schedules, 934 and 89."""
    assert round(warm_up("static").mean_latency_from_arrival) == 934
    assert round(warm_up("continuous").mean_latency_from_arrival) == 89


def test_every_corrected_number_is_known(entries: list[dict[str, Any]]) -> None:
    corrected = [e["id"] for e in entries if "corrected" in e]
    assert corrected == ["B1.der_partial_group", "B2.cap_95", "S2.4.2.batch1"]


def test_no_compute_entry_is_unused(entries: list[dict[str, Any]]) -> None:
    assert set(COMPUTE) == {e["compute"] for e in entries}
