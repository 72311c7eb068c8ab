from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lantern_lib import H100, LANTERN_70B, Replica, kv_cache
from lantern_lib.hardware import H100_80GIB

SMALL = replace(LANTERN_70B, num_layers=3, num_heads=4, num_kv_heads=2, head_dim=5, hidden_size=16)


def cached_bytes(model: Any, context: int) -> int:
    """Allocate the cache and ask numpy how large it is."""
    dtype = {2.0: np.float16, 1.0: np.int8, 4.0: np.float32}[model.kv_bytes]
    total = 0
    for layer in range(model.num_layers):
        kept = min(context, model.sliding_window) if layer < model.num_sliding_layers else context
        total += 2 * np.empty((kept, model.num_kv_heads, model.head_dim), dtype).nbytes
    return total


@given(
    context=st.integers(0, 40),
    kv_bytes=st.sampled_from([1.0, 2.0, 4.0]),
    num_kv_heads=st.sampled_from([1, 2, 4]),
    window=st.integers(1, 50),
    num_sliding_layers=st.integers(0, 3),
)
def test_bytes_equal_the_allocated_arrays(context: int, window: int, **changes: Any) -> None:
    model = replace(SMALL, sliding_window=window, **changes)
    assert kv_cache.bytes_per_sequence(model, context) == cached_bytes(model, context)


@pytest.mark.parametrize(
    ("name", "shape", "kv_bytes"),
    [
        ("Llama-3-8B", (32, 8, 128), 131_072),
        ("Llama-2-7B, a head each", (32, 32, 128), 524_288),
        ("Qwen2.5-7B", (28, 4, 128), 57_344),
        ("Llama-3.1-405B", (126, 8, 128), 516_096),
    ],
)
def test_public_models(name: str, shape: tuple[int, int, int], kv_bytes: int) -> None:
    """Bytes per token as public start-up logs imply them: printed cache size over printed tokens."""
    layers, kv_heads, head_dim = shape
    heads = 4 * kv_heads
    model = replace(LANTERN_70B, num_layers=layers, num_heads=heads, num_kv_heads=kv_heads, head_dim=head_dim)
    assert kv_cache.bytes_per_token(model) == kv_bytes, name


@given(
    tp_size=st.integers(1, 16),
    context=st.integers(1, 200_000),
    reserve=st.floats(0, 0.9),
    rule=st.sampled_from(["total", "remainder"]),
)
def test_budget_adds_up_and_counts_like_a_loop(tp_size: int, context: int, reserve: float, rule: Any) -> None:
    budget = kv_cache.memory_budget(LANTERN_70B, Replica(H100, tp_size=tp_size), reserve=reserve, reserve_from=rule)
    one = kv_cache.bytes_per_sequence(LANTERN_70B, context)
    fits = budget.conversations(context)
    used = budget.weight_bytes + budget.reserve_bytes
    if fits == 0:
        assert used + one > budget.total_bytes
    else:
        assert used + fits * one <= budget.total_bytes * (1 + 1e-12)
        assert used + (fits + 1) * one > budget.total_bytes
        parts = budget.weight_bytes + budget.reserve_bytes + budget.pool_bytes
        assert parts == pytest.approx(budget.total_bytes, rel=1e-12)


def test_the_walk_from_162_to_183() -> None:
    """Each step changes one convention; the four numbers are worked by hand in the errata of the sources."""
    eight, eight_gib = Replica(H100, tp_size=8), Replica(H100_80GIB, tp_size=8)
    one = 8192 * 327_680
    lantern = kv_cache.memory_budget(LANTERN_70B, eight)
    rounded = kv_cache.memory_budget(LANTERN_70B, eight, stored_weight_bytes=140e9)
    cards = kv_cache.memory_budget(LANTERN_70B, eight_gib, stored_weight_bytes=140e9)
    remainder = kv_cache.memory_budget(LANTERN_70B, eight_gib, stored_weight_bytes=140e9, reserve_from="remainder")
    walk = [round(b.pool_bytes / one, 1) for b in (lantern, rounded, cards, remainder)]
    assert walk == [162.0, 162.4, 178.2, 183.5]


def test_a_model_that_does_not_fit_serves_nobody() -> None:
    for rule in ("total", "remainder"):
        budget = kv_cache.memory_budget(LANTERN_70B, Replica(H100), reserve_from=rule)  # type: ignore[arg-type]
        assert budget.pool_bytes == 0
        assert budget.conversations(1) == 0


@given(context=st.integers(1, 100_000), tp_size=st.integers(2, 8))
def test_more_memory_never_fits_fewer(context: int, tp_size: int) -> None:
    fewer = kv_cache.memory_budget(LANTERN_70B, Replica(H100, tp_size=tp_size)).conversations(context)
    more = kv_cache.memory_budget(LANTERN_70B, Replica(H100, tp_size=tp_size + 1)).conversations(context)
    twice = kv_cache.memory_budget(LANTERN_70B, Replica(H100, tp_size=tp_size)).conversations(2 * context)
    assert twice <= fewer <= more


@pytest.mark.parametrize("bad", [0, -1, 1.5, float("nan"), True, "8192"])
def test_bad_context(bad: Any) -> None:
    with pytest.raises(ValueError, match="^context_len must be a whole number of 1 or more, got"):
        kv_cache.memory_budget(LANTERN_70B, Replica(H100, tp_size=4)).conversations(bad)


@pytest.mark.parametrize("bad", [1, -0.1, float("nan"), True, "0.1"])
def test_bad_reserve(bad: Any) -> None:
    with pytest.raises(ValueError, match=r"^reserve must be a fraction in \[0, 1\), got"):
        kv_cache.memory_budget(LANTERN_70B, Replica(H100), reserve=bad)


def test_bad_rule_and_weights() -> None:
    with pytest.raises(ValueError, match="^reserve_from must be 'total' or 'remainder', got 'rest'"):
        kv_cache.memory_budget(LANTERN_70B, Replica(H100), reserve_from="rest")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="^stored_weight_bytes must be"):
        kv_cache.memory_budget(LANTERN_70B, Replica(H100), stored_weight_bytes=-1)
