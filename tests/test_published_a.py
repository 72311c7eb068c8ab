"""Every number that the two source documents print for Part A, recomputed by the library.

``data/published_a.json`` holds one entry per printed number: where it stands, what it is, its
inputs, the printed text, and a tolerance of half a unit of its last digit. The values come from the
documents and from an independent recomputation, never from this library. ``corrected`` marks a number
that is printed wrongly there; it is tested at its right value.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from lantern_lib import ACCELERATORS, H100, LANTERN_70B, ModelConfig, Replica, kv_cache, roofline, step, transformer
from lantern_lib.hardware import H100_80GIB

PUBLISHED = "published_a"
COUNT = transformer.parameters(LANTERN_70B)
ROUND_WEIGHTS = 2 * 70e9  # the warm-up rounds the model to 70 billion parameters
EIGHT_B = replace(LANTERN_70B, name="8B of exercise 1", num_layers=32, hidden_size=4096, num_heads=32)


def model(kv_heads: int = 8) -> ModelConfig:
    return replace(LANTERN_70B, num_kv_heads=kv_heads)


def budget(tp: int, kv_heads: int = 8, card_gib: int | None = None, weights: float | None = None, **rule: Any) -> Any:
    card = H100 if card_gib is None else H100_80GIB
    return kv_cache.memory_budget(model(kv_heads), Replica(card, tp_size=tp), stored_weight_bytes=weights, **rule)


def conversations(context: int, **inputs: Any) -> int:
    return budget(**inputs).conversations(context)


def decode(tp: int, batch: int, context: int) -> step.StepCost:
    return step.decode_step(LANTERN_70B, Replica(H100, tp_size=tp), batch, context)


def prefill(tp: int, prompt: int) -> step.StepCost:
    return step.prefill_step(LANTERN_70B, Replica(H100, tp_size=tp), prompt)


def crossing_batch(tp: int, context: int) -> float:
    """Batch at which arithmetic takes as long as memory, from two steps: both are linear in the batch."""
    one, two = decode(tp, 1, context), decode(tp, 2, context)
    slope = (two.compute_seconds - one.compute_seconds) - (two.memory_seconds - one.memory_seconds)
    return 1 + (one.memory_seconds - one.compute_seconds) / slope


def ridge(tp: int) -> float:
    replica = Replica(H100, tp_size=tp)
    return roofline.ridge_point(replica.flops_per_second, replica.bandwidth)


def round_intensity(batch: int, context: int) -> float:
    moved = ROUND_WEIGHTS + batch * kv_cache.bytes_per_sequence(LANTERN_70B, context)
    return roofline.arithmetic_intensity(2 * 70e9 * batch, moved)


def per_token_fall(batch: int, context: int) -> float:
    cache = kv_cache.bytes_per_sequence(LANTERN_70B, context)
    return (ROUND_WEIGHTS + cache) / (ROUND_WEIGHTS / batch + cache)


def answer_arithmetic(tp: int, tokens: int) -> float:
    return tokens * decode(tp, 1, 0).compute_seconds


def count_metrics() -> int:
    page = Path(__file__).parent.parent / "book" / "a" / "a1.md"
    table = page.read_text(encoding="utf-8").split("| Metric |", 1)[1].split("\n\n", 1)[0]
    return sum(line.startswith("| **") for line in table.splitlines())


COMPUTE: dict[str, Callable[..., float]] = {
    "sparse_to_dense": lambda sparse: sparse / 2,
    "one_direction": lambda both: both / 2 * (H100.link.bandwidth / 450e9),
    "parameters.attention_per_layer": lambda: COUNT.attention / 80,
    "parameters.feed_forward_per_layer": lambda: COUNT.feed_forward / 80,
    "parameters.matrices_per_layer": lambda: (COUNT.attention + COUNT.feed_forward) / 80,
    "parameters.matrices_of_layers": lambda: COUNT.attention + COUNT.feed_forward,
    "parameters.table": lambda: COUNT.embedding,
    "parameters.without_norms": lambda: COUNT.total - COUNT.norms,
    "parameters.multiplied": lambda: COUNT.multiplied,
    "weights.without_norms": lambda: 2 * (COUNT.total - COUNT.norms),
    "weights.stored": lambda: transformer.weight_bytes(LANTERN_70B),
    "weights.streamed": lambda: transformer.streamed_weight_bytes(LANTERN_70B),
    "flops.token": lambda context: transformer.token_flops(LANTERN_70B, context).total,
    "flops.token_attention": lambda context: transformer.token_flops(LANTERN_70B, context).attention,
    "flops.token_growth": lambda context: (
        transformer.token_flops(LANTERN_70B, context).total / transformer.token_flops(LANTERN_70B).total - 1
    ),
    "flops.prompt": lambda prompt: transformer.prompt_flops(LANTERN_70B, prompt).total,
    "flops.prompt_attention": lambda prompt: transformer.prompt_flops(LANTERN_70B, prompt).attention,
    "replica.flops_per_second": lambda tp: Replica(H100, tp_size=tp).flops_per_second,
    "replica.bandwidth": lambda tp: Replica(H100, tp_size=tp).bandwidth,
    "prefill.compute_seconds": lambda tp, prompt: prefill(tp, prompt).compute_seconds,
    "prefill.communication_seconds": lambda tp, prompt: prefill(tp, prompt).communication_seconds,
    "prefill.total_seconds": lambda tp, prompt: prefill(tp, prompt).total_seconds,
    "prompt_reuse": lambda prompt: (
        transformer.prompt_flops(LANTERN_70B, prompt).matrices / transformer.token_flops(LANTERN_70B).matrices
    ),
    "answer_arithmetic": answer_arithmetic,
    "answer_over_arithmetic": lambda tp, tokens, context: (
        tokens * decode(tp, 1, context).total_seconds / answer_arithmetic(tp, tokens)
    ),
    "request_seconds": lambda tp, prompt, output, context: step.request_seconds(
        LANTERN_70B, Replica(H100, tp_size=tp), prompt, output, context
    ),
    "decode.compute_seconds": lambda **i: decode(**i).compute_seconds,
    "decode.communication_seconds": lambda **i: decode(**i).communication_seconds,
    "decode.total_seconds": lambda **i: decode(**i).total_seconds,
    "decode.tokens_per_second": lambda **i: decode(**i).tokens_per_second,
    "decode.weight_seconds": lambda tp: decode(tp, 1, 0).memory_seconds,
    "decode.repeated_seconds": lambda tokens, **i: tokens * decode(**i).total_seconds,
    "decode.extra_share": lambda batch, over, **i: (
        decode(batch=batch, **i).total_seconds / decode(batch=over, **i).total_seconds - 1
    ),
    "decode.token_ratio": lambda batch, over, **i: (
        decode(batch=batch, **i).tokens_per_second / decode(batch=over, **i).tokens_per_second
    ),
    "ridge.point": ridge,
    "ridge.peak": lambda: roofline.ridge_point(H100.peak_flops, H100.memory_bandwidth),
    "ridge.batch": lambda tp: roofline.ridge_batch(
        Replica(H100, tp_size=tp).flops_per_second, Replica(H100, tp_size=tp).bandwidth
    ),
    "ridge.crossing_batch": crossing_batch,
    "kv.bytes_per_token": lambda kv_heads=8: kv_cache.bytes_per_token(model(kv_heads)),
    "kv.bytes_per_sequence": lambda context: kv_cache.bytes_per_sequence(LANTERN_70B, context),
    "kv.full_head_ratio": lambda: kv_cache.bytes_per_token(model(64)) / kv_cache.bytes_per_token(LANTERN_70B),
    "kv.layout_ratio": lambda kv_heads, over: (
        kv_cache.bytes_per_token(model(over)) / kv_cache.bytes_per_token(model(kv_heads))
    ),
    "kv.tokens_outweighing_model": lambda: (
        transformer.weight_bytes(LANTERN_70B) / kv_cache.bytes_per_token(LANTERN_70B)
    ),
    "kv.batch_bytes": lambda batch, context: batch * kv_cache.bytes_per_sequence(LANTERN_70B, context),
    "kv.share_of_traffic": lambda batch, context: (
        batch * kv_cache.bytes_per_sequence(LANTERN_70B, context) / decode(4, batch, context).moved_bytes
    ),
    "budget.total": lambda **i: budget(**i).total_bytes,
    "budget.after_weights": lambda **i: budget(**i).total_bytes - budget(**i).weight_bytes,
    "budget.pool": lambda **i: budget(**i).pool_bytes,
    "budget.conversations": conversations,
    "budget.conversations_ratio": lambda kv_heads, over, **i: (
        conversations(kv_heads=kv_heads, **i) / conversations(kv_heads=over, **i)
    ),
    "budget.first_refused": lambda **i: conversations(**i) + 1,
    "catalogue.peak_flops_8bit": lambda accelerator: ACCELERATORS[accelerator].peak_flops_8bit or 0.0,
    "catalogue.memory": lambda accelerator, count: count * ACCELERATORS[accelerator].memory_bytes,
    "catalogue.bandwidth": lambda accelerator, count: count * ACCELERATORS[accelerator].memory_bandwidth,
    "efficiency_ratio": lambda assumed, engine: assumed / engine,
    "eight.weights": lambda parameters: 2 * parameters,
    "eight.step_seconds": lambda parameters: 2 * parameters / Replica(H100).bandwidth,
    "eight.tokens_per_second": lambda parameters: Replica(H100).bandwidth / (2 * parameters),
    "eight.kv_bytes_per_token": lambda: kv_cache.bytes_per_token(EIGHT_B),
    "uncached_tokens": lambda tokens: tokens * (tokens + 1) / 2,
    "round_model.weights": lambda: ROUND_WEIGHTS,
    "round_model.memory_seconds": lambda: ROUND_WEIGHTS / H100.memory_bandwidth,
    "round_model.compute_seconds": lambda: 2 * 70e9 / H100.peak_flops,
    "round_model.intensity": round_intensity,
    "round_model.compute_share": lambda batch: (
        round_intensity(batch, 0) / roofline.ridge_point(H100.peak_flops, H100.memory_bandwidth)
    ),
    "round_model.per_token_fall": per_token_fall,
    "page.count_metrics": count_metrics,
}


def test_published_number(entry: dict[str, Any], hold: Callable[..., None]) -> None:
    hold(entry, COMPUTE)


def test_every_corrected_number_is_known(entries: list[dict[str, Any]]) -> None:
    corrected = [e["id"] for e in entries if "corrected" in e]
    assert corrected == ["A3.ridge_printed_operands", "A3.chk_exact", "S2.2.3.67x_true", "S2.3.1.arith"]


def test_no_compute_entry_is_unused(entries: list[dict[str, Any]]) -> None:
    assert set(COMPUTE) == {e["compute"] for e in entries}
