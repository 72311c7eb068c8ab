"""Every number that the notes print for B5 and B7, recomputed by the library. See ``test_published_a.py``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from lantern_lib import H100, LANTERN_70B, Replica, kv_cache, quantization, speculative, step, transformer

PUBLISHED = "published_b5"
FOUR = Replica(H100, tp_size=4)
PEAK_BANDWIDTH = 4 * H100.memory_bandwidth
PEAK_FLOPS = 4 * H100.peak_flops
ONE = step.decode_step(LANTERN_70B, FOUR, 1, 2000)


def decode(batch: int, **storage: int) -> step.StepCost:
    return step.decode_step(quantization.with_storage(LANTERN_70B, **storage), FOUR, batch, 2000)


def over_16_bits(batch: int, **storage: int) -> float:
    """Step time with a storage over the step time at 16 bits."""
    return decode(batch, **storage).total_seconds / decode(batch).total_seconds


def conversations(context: int, **storage: int) -> int:
    model = quantization.with_storage(LANTERN_70B, **storage)
    return kv_cache.memory_budget(model, FOUR).conversations(context)


def mbu(milliseconds: float) -> float:
    return ONE.moved_bytes / (milliseconds * 1e-3 * PEAK_BANDWIDTH)


def floor_mfu(prompt: int) -> float:
    cost = step.prefill_step(LANTERN_70B, FOUR, prompt)
    return cost.flops / (cost.total_seconds * PEAK_FLOPS)


def best_speedup(acceptance: float, draft_cost: float) -> float:
    length = speculative.best_draft_len(acceptance, draft_cost)
    return speculative.speedup(acceptance, length, draft_cost)


COMPUTE: dict[str, Callable[..., float]] = {
    "storage.weight_bytes": lambda **s: transformer.weight_bytes(quantization.with_storage(LANTERN_70B, **s)),
    "storage.step_seconds": lambda batch, **s: decode(batch, **s).total_seconds,
    "storage.tokens_per_second": lambda batch, **s: decode(batch, **s).tokens_per_second,
    "storage.conversations": conversations,
    "storage.step_ratio": over_16_bits,
    "storage.token_ratio": lambda batch, **s: 1 / over_16_bits(batch, **s),
    "speculative.expected_tokens": speculative.expected_tokens,
    "speculative.speedup": speculative.speedup,
    "speculative.best_draft_len": speculative.best_draft_len,
    "speculative.best_speedup": best_speedup,
    "draft_seconds": lambda draft_cost: draft_cost * ONE.total_seconds,
    "draft_share": lambda milliseconds: milliseconds * 1e-3 / ONE.total_seconds,
    "communication_seconds": lambda: ONE.communication_seconds,
    "moved_bytes": lambda: ONE.moved_bytes,
    "mbu": mbu,
    "mbu_over_assumed": lambda milliseconds: mbu(milliseconds) / FOUR.bandwidth_efficiency,
    "floor_mbu": lambda: mbu(ONE.total_seconds * 1e3),
    "floor_mfu": floor_mfu,
}


def test_published_number(entry: dict[str, Any], hold: Callable[..., None]) -> None:
    hold(entry, COMPUTE)


def test_every_corrected_number_is_known(entries: list[dict[str, Any]]) -> None:
    assert [e["id"] for e in entries if "corrected" in e] == ["B7.best_mbu", "B7.best_mfu"]


def test_no_compute_entry_is_unused(entries: list[dict[str, Any]]) -> None:
    assert set(COMPUTE) == {e["compute"] for e in entries}
