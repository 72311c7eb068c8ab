"""Every number that the notes print for chunked prefill (B3) and queueing (B4), recomputed by the library."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from lantern_lib import H100, LANTERN_70B, Replica, chunked_prefill, kv_cache, queueing, step, transformer

PUBLISHED = "published_b3"
FOUR = Replica(H100, tp_size=4)


def mixed(decoders: int, context: int, chunk: int) -> step.StepCost:
    return chunked_prefill.mixed_step(LANTERN_70B, FOUR, decoders, context, chunk)


def schedule(decoders: int, context: int, chunk: int, prompt: int) -> chunked_prefill.ChunkSchedule:
    return chunked_prefill.chunk_schedule(LANTERN_70B, FOUR, decoders, context, prompt, chunk)


def delay(decoders: int, context: int, chunk: int, prompt: int) -> float:
    whole = schedule(decoders, context, prompt, prompt)
    return schedule(decoders, context, chunk, prompt).ttft_seconds / whole.ttft_seconds - 1


def stretch(decoders: int, context: int, chunk: int, prompt: int) -> float:
    pause = schedule(decoders, context, chunk, prompt).pause_seconds
    return pause / step.decode_step(LANTERN_70B, FOUR, decoders, context).total_seconds


def transfer(prompt: int, gigabytes: float) -> chunked_prefill.CacheTransfer:
    return chunked_prefill.cache_transfer(LANTERN_70B, prompt, gigabytes * 1e9)


def percentile_over_mean(q: float) -> float:
    queue = queueing.MM1(arrival_rate=0.9, service_rate=1)
    return queue.time_percentile(q) / queue.mean_time_seconds


COMPUTE: dict[str, Callable[..., float]] = {
    "mixed.step": lambda **i: mixed(**i).total_seconds,
    "mixed.tokens": lambda **i: mixed(**i).num_tokens,
    "mixed.flops": lambda **i: mixed(**i).flops,
    "mixed.bytes": lambda **i: mixed(**i).moved_bytes,
    "mixed.compute": lambda **i: mixed(**i).compute_seconds,
    "mixed.memory": lambda **i: mixed(**i).memory_seconds,
    "mixed.communication": lambda **i: mixed(**i).communication_seconds,
    "schedule.steps": lambda **i: schedule(**i).num_steps,
    "schedule.ttft": lambda **i: schedule(**i).ttft_seconds,
    "schedule.delay": delay,
    "schedule.stretch": stretch,
    "transfer.bytes": lambda prompt: transfer(prompt, 1).size_bytes,
    "transfer.seconds": lambda **i: transfer(**i).seconds,
    "transfer.share": lambda ttft_ms, **i: transfer(**i).seconds / (ttft_ms / 1e3),
    "network.share": lambda gigabits, gpus, of: gigabits * 1e9 / 8 * gpus / of,
    "flops.token": lambda context: transformer.token_flops(LANTERN_70B, context).total,
    "replica.flops_per_second": lambda tp: Replica(H100, tp_size=tp).flops_per_second,
    "replica.bandwidth": lambda tp: Replica(H100, tp_size=tp).bandwidth,
    "weights.streamed": lambda: transformer.streamed_weight_bytes(LANTERN_70B),
    "caches": lambda decoders, context: decoders * kv_cache.bytes_per_sequence(LANTERN_70B, context),
    "mm1.percentile_over_mean": percentile_over_mean,
}


def test_published_number(entry: dict[str, Any], hold: Callable[..., None]) -> None:
    hold(entry, COMPUTE)


def test_no_compute_entry_is_unused(entries: list[dict[str, Any]]) -> None:
    assert set(COMPUTE) == {e["compute"] for e in entries}
