"""Ways to spread a model: heads dealt out one by one, a pipeline that is really run, limits."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lantern_lib import H100, LANTERN_70B, Replica, kv_cache, parallelism, step
from lantern_lib.collectives import all_reduce_seconds, all_to_all_seconds, send_seconds
from lantern_lib.hardware import NVLINK_4, Link

BARE = Link("bare", 1.0, 0.0)


def dealt(query_heads: int, kv_heads: int, gpus: int) -> int:
    """Key-value heads that the fullest GPU needs when query heads are dealt out in order."""
    share = query_heads // kv_heads
    each = query_heads // gpus
    return max(len({head // share for head in range(gpu * each, (gpu + 1) * each)}) for gpu in range(gpus))


@pytest.mark.parametrize("kv_heads", [1, 2, 4, 8, 16, 64])
@pytest.mark.parametrize("gpus", [1, 2, 4, 8, 16, 32, 64])
def test_the_cache_of_a_gpu_holds_the_heads_its_queries_need(kv_heads: int, gpus: int) -> None:
    model = replace(LANTERN_70B, num_kv_heads=kv_heads)
    one_head = kv_cache.bytes_per_sequence(model, 100) / kv_heads
    assert parallelism.kv_bytes_per_gpu(model, 100, gpus) == dealt(64, kv_heads, gpus) * one_head


@pytest.mark.parametrize("tp", [1, 2, 4, 8])
@pytest.mark.parametrize("context", [2000, 8192, 131_072])
def test_up_to_the_key_value_heads_the_count_is_that_of_the_budget(tp: int, context: int) -> None:
    machine = Replica(H100, tp_size=tp)
    expected = kv_cache.memory_budget(LANTERN_70B, machine).conversations(context)
    assert parallelism.conversations_that_fit(LANTERN_70B, machine, context) == expected


def test_beyond_the_heads_a_card_adds_only_what_its_weights_free() -> None:
    """16 GPUs have twice the memory of 8, and every head twice."""
    sixteen = Replica(H100, tp_size=16)
    whole = kv_cache.memory_budget(LANTERN_70B, sixteen).conversations(2000)
    assert parallelism.conversations_that_fit(LANTERN_70B, sixteen, 2000) == whole // 2


@pytest.mark.parametrize("tp", [3, 5, 128])
def test_a_degree_that_does_not_divide_the_heads_is_refused(tp: int) -> None:
    with pytest.raises(ValueError, match=rf"^tp_size must divide num_heads \(64\), got {tp}"):
        parallelism.kv_bytes_per_gpu(LANTERN_70B, 2000, tp)


def test_a_layout_counts_replicas_and_takes_what_fits() -> None:
    two = parallelism.layout(LANTERN_70B, Replica(H100, tp_size=2), 2000, max_batch=64, num_replicas=4)
    assert two.batch_size == two.conversations == 4
    by_hand = step.decode_step(LANTERN_70B, Replica(H100, tp_size=2), 4, 2000)
    assert two.tokens_per_second == pytest.approx(4 * 4 / by_hand.total_seconds)
    assert two.tokens_per_second_per_gpu == pytest.approx(two.tokens_per_second / 8)
    assert "batch 4 each" in two.summary
    with pytest.raises(ValueError, match="^tp_size must be large enough .* got 1"):
        parallelism.layout(LANTERN_70B, Replica(H100), 2000)


@given(need=st.integers(1, 700))
def test_the_smallest_degree_is_enough_and_the_next_smaller_is_not(need: int) -> None:
    fits = {
        tp: kv_cache.memory_budget(LANTERN_70B, Replica(H100, tp_size=tp)).conversations(2000) for tp in (1, 2, 4, 8)
    }
    enough = [tp for tp, count in fits.items() if count >= need]
    if enough:
        assert parallelism.smallest_degree(LANTERN_70B, H100, 2000, min_conversations=need) == enough[0]
    else:
        with pytest.raises(ValueError, match="^min_conversations must fit on one of 1, 2, 4, 8 GPUs"):
            parallelism.smallest_degree(LANTERN_70B, H100, 2000, min_conversations=need)


@given(stages=st.integers(1, 9), parts=st.integers(1, 30))
def test_the_bubble_is_that_of_a_pipeline_that_runs(stages: int, parts: int) -> None:
    """Part i enters a stage when it has left the one before and the stage is free; every stay takes one turn."""
    free = [0] * stages
    for _ in range(parts):
        ready = 0
        for stage in range(stages):
            ready = free[stage] = max(ready, free[stage]) + 1
    assert parallelism.pipeline_bubble(stages, parts) == pytest.approx(1 - parts / free[-1])


def test_an_exchange_over_a_ring_is_what_its_rounds_send() -> None:
    """Ring all-reduce: g − 1 rounds to add and g − 1 to hand out, a g-th of the message each."""
    for ranks in range(1, 9):
        rounds = sum(1 / ranks for _ in range(2 * (ranks - 1)))
        assert all_reduce_seconds(1.0, ranks, BARE) == pytest.approx(rounds)
        kept = [1 / ranks for other in range(ranks) if other != 0]
        assert all_to_all_seconds(1.0, ranks, BARE) == pytest.approx(sum(kept))


def test_latency_is_paid_once_and_only_with_company() -> None:
    assert send_seconds(0, NVLINK_4) == all_to_all_seconds(0, 8, NVLINK_4) == NVLINK_4.latency_seconds
    assert all_to_all_seconds(1e9, 1, NVLINK_4) == 0
    assert send_seconds(450e9, NVLINK_4) == pytest.approx(1 + NVLINK_4.latency_seconds)


def test_a_boundary_sends_one_vector_a_token() -> None:
    assert parallelism.boundary_seconds(LANTERN_70B, 3, BARE) == 3 * 8192 * 2


def test_bad_numbers_are_named() -> None:
    with pytest.raises(ValueError, match="^num_stages must be"):
        parallelism.pipeline_bubble(0, 1)
    with pytest.raises(ValueError, match="^num_micro_batches must be"):
        parallelism.pipeline_bubble(1, 0)
    with pytest.raises(ValueError, match="^message_bytes must be"):
        send_seconds(-1, NVLINK_4)
    with pytest.raises(ValueError, match="^num_ranks must be"):
        all_to_all_seconds(1, 0, NVLINK_4)
    with pytest.raises(ValueError, match="^num_tokens must be"):
        parallelism.boundary_seconds(LANTERN_70B, 0, NVLINK_4)
    with pytest.raises(ValueError, match="^context_len must be"):
        parallelism.conversations_that_fit(LANTERN_70B, Replica(H100, tp_size=4), 0)
