from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lantern_lib import H100, LANTERN_70B, Replica, collectives, kv_cache, roofline, step

FOUR = Replica(H100, tp_size=4)


@given(batch=st.integers(1, 256), tp=st.sampled_from([2, 4, 8]), context=st.integers(0, 10_000))
def test_one_formula_written_out_by_hand(batch: int, tp: int, context: int) -> None:
    """Lantern's shape with every constant typed in, in one expression; norm vectors are streamed, not multiplied."""
    multiplied = 80 * (2 * 8192 * 8192 + 2 * 8192 * 1024 + 3 * 8192 * 28672) + 128256 * 8192
    arithmetic = batch * (2 * multiplied + 4 * 80 * 64 * 128 * context) / (tp * 0.5 * 989e12)
    norms = 161 * 8192
    memory = (2 * (multiplied + norms) + batch * context * 327_680) / (tp * 0.8 * 3.35e12)
    communication = 160 * (8e-6 + 2 * (tp - 1) / tp * batch * 8192 * 2 / 450e9)
    expected = max(arithmetic, memory) + communication
    got = step.decode_step(LANTERN_70B, Replica(H100, tp_size=tp), batch, context).total_seconds
    assert got == pytest.approx(expected, rel=1e-9)


def test_a_single_gpu_does_not_communicate() -> None:
    assert step.decode_step(LANTERN_70B, Replica(H100), 8, 100).communication_seconds == 0
    assert collectives.all_reduce_seconds(1e6, 1, H100.link) == 0


@given(batch=st.integers(1, 80))
def test_without_a_context_doubling_the_batch_halves_the_time_per_token(batch: int) -> None:
    """While memory binds and nothing is communicated; this is why batching pays."""
    one, two = (step.decode_step(LANTERN_70B, Replica(H100), b, 0) for b in (batch, 2 * batch))
    assert one.bound == two.bound == "memory"
    assert two.total_seconds / (2 * batch) == pytest.approx(one.total_seconds / batch / 2, rel=1e-12)


def test_with_a_long_context_it_does_not() -> None:
    one, two = (step.decode_step(LANTERN_70B, FOUR, b, 32_000) for b in (8, 16))
    assert two.total_seconds / 16 > 1.3 * one.total_seconds / 8 / 2


def test_a_ring_moves_what_a_counted_ring_moves() -> None:
    """Count the pieces that one rank sends: a reduce-scatter and an all-gather of g − 1 rounds each."""
    for ranks in (2, 4, 8):
        piece, sent = 1200 / ranks, 0.0
        for _phase in ("reduce-scatter", "all-gather"):
            for _round in range(ranks - 1):
                sent += piece
        link = replace(H100.link, bandwidth=10.0, latency_seconds=0.0)
        assert collectives.all_reduce_seconds(1200, ranks, link) == pytest.approx(sent / 10.0)


@given(prompt=st.integers(1, 5000), cached=st.integers(0, 5000))
def test_prefill_in_two_pieces_does_the_same_arithmetic(prompt: int, cached: int) -> None:
    whole = step.prefill_step(LANTERN_70B, FOUR, prompt + cached + 1)
    first = step.prefill_step(LANTERN_70B, FOUR, cached + 1)
    rest = step.prefill_step(LANTERN_70B, FOUR, prompt, cached + 1)
    assert first.flops + rest.flops == whole.flops


def test_where_the_lines_meet() -> None:
    """Below the ridge batch memory binds, above it arithmetic does; without a cache the two meet there."""
    ridge = roofline.ridge_batch(FOUR.flops_per_second, FOUR.bandwidth)
    below, above = int(ridge), int(ridge) + 1
    assert step.decode_step(LANTERN_70B, FOUR, below, 0).bound == "memory"
    assert step.decode_step(LANTERN_70B, FOUR, above, 0).bound == "compute"
    # 1,100 at a context of 2,000, and never above 2,403: worked by hand in the errata of the sources.
    assert step.decode_step(LANTERN_70B, FOUR, 1099, 2000).bound == "memory"
    assert step.decode_step(LANTERN_70B, FOUR, 1100, 2000).bound == "compute"
    assert step.decode_step(LANTERN_70B, FOUR, 10**9, 2404).bound == "memory"


def test_the_parts_of_a_request() -> None:
    alone = step.request_seconds(LANTERN_70B, FOUR, 2000, 1)
    assert alone == step.prefill_step(LANTERN_70B, FOUR, 2000).total_seconds
    second = step.request_seconds(LANTERN_70B, FOUR, 2000, 2) - alone
    assert second == pytest.approx(step.decode_step(LANTERN_70B, FOUR, 1, 2001).total_seconds)


def test_intensity_is_the_batch_without_a_cache() -> None:
    assert step.decode_step(LANTERN_70B, FOUR, 64, 0).arithmetic_intensity == pytest.approx(64, rel=3e-5)


@pytest.mark.parametrize("bad", [0, -1, 2.5, float("nan"), float("inf"), True, "64"])
def test_bad_arguments_are_named(bad: Any) -> None:
    with pytest.raises(ValueError, match="^batch_size must be a whole number of 1 or more, got"):
        step.decode_step(LANTERN_70B, FOUR, bad, 0)
    with pytest.raises(ValueError, match="^prompt_len must be a whole number"):
        step.prefill_step(LANTERN_70B, FOUR, bad)
    with pytest.raises(ValueError, match="^output_len must be a whole number"):
        step.request_seconds(LANTERN_70B, FOUR, 10, bad)
    with pytest.raises(ValueError, match="^num_ranks must be a whole number"):
        collectives.all_reduce_seconds(1.0, bad, H100.link)
    with pytest.raises(ValueError, match="^context_len must be a whole number of 0 or more"):
        step.decode_step(LANTERN_70B, FOUR, 1, -1 if bad == 0 else bad)


@pytest.mark.parametrize("bad", [0, -1.0, float("nan"), float("inf"), True, "1"])
def test_roofline_refuses_bad_rates(bad: Any) -> None:
    with pytest.raises(ValueError, match="^bandwidth must be"):
        roofline.ridge_point(1e12, bad)
    with pytest.raises(ValueError, match="^flops_per_second must be"):
        roofline.ridge_batch(bad, 1e12)
    with pytest.raises(ValueError, match="^moved_bytes must be"):
        roofline.arithmetic_intensity(1.0, bad)
    with pytest.raises(ValueError, match="^weight_bytes must be"):
        roofline.ridge_batch(1e12, 1e12, bad)


def test_a_batch_larger_than_fits_is_refused_where_a_budget_is_given() -> None:
    """54 conversations of 8,192 tokens fit on four cards: the published number."""
    budget = kv_cache.memory_budget(LANTERN_70B, FOUR)
    assert step.decode_step(LANTERN_70B, FOUR, 54, 8192, budget=budget).num_tokens == 54
    with pytest.raises(
        ValueError, match=r"^batch_size must be at most 54 at a context of 8,192 tokens, got 55\. Shorten"
    ):
        step.decode_step(LANTERN_70B, FOUR, 55, 8192, budget=budget)
    with pytest.raises(ValueError, match=r"^batch_size must be at most 0 at"):
        step.decode_step(LANTERN_70B, Replica(H100), 1, 1, budget=kv_cache.memory_budget(LANTERN_70B, Replica(H100)))
    assert step.decode_step(LANTERN_70B, FOUR, 55, 8192).total_seconds > 0


@pytest.mark.parametrize("bad", [0, -1, 2.5, float("nan"), True, "54"])
def test_a_bad_batch_is_named_by_the_budget(bad: Any) -> None:
    with pytest.raises(ValueError, match="^batch_size must be a whole number of 1 or more, got"):
        kv_cache.memory_budget(LANTERN_70B, FOUR).require_fits(bad, 8192)
