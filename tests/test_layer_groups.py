"""Pools of layers that cache differently, against what vLLM printed."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lantern_lib import LANTERN_70B, kv_cache
from lantern_lib.layer_groups import grouped_pool
from lantern_lib.models import find_model
from lantern_lib.units import GIB


def test_a_hybrid_without_drafts() -> None:
    """5.98 GiB on an RTX 5090, an 8-bit cache, length 131,072: 4.33 times, 567,978 tokens."""
    model = replace(find_model("Qwen3.6-35B-A3B"), kv_bytes=1)
    pool = grouped_pool(model, 5.98 * GIB, 131_072, kept_states=2)
    assert pool.tokens == 567_978
    assert round(pool.concurrency, 2) == 4.33
    assert pool.groups == (("full", 1), ("state", 3))


@pytest.mark.parametrize(("drafts", "kept"), [(2, 2), (3, 1)])
def test_a_hybrid_that_drafts(drafts: int, kept: int) -> None:
    """110.59 GiB a GPU on two H200, length 184,320: 17.54 times, 3,233,564 tokens.

    The log does not say how many tokens are drafted; two with a state more and three without give the same blocks.
    """
    pool = grouped_pool(
        find_model("Qwen3.6-27B"), 110.59 * GIB, 184_320, tp_size=2, num_drafts=drafts, kept_states=kept
    )
    assert pool.tokens == 3_233_564
    assert (pool.block_size, pool.group_size) == (800, 17)
    # The table of logs says about 11 percent of the pool: here states, and the cache of the layer that drafts.
    assert 3 * (drafts + kept) / pool.request_blocks + 1 / 17 == pytest.approx(0.11, abs=0.005)


def test_one_kind_of_layers_has_places_for_tokens() -> None:
    pool = grouped_pool(LANTERN_70B, 40 * GIB, 8192, tp_size=4)
    per_token = kv_cache.bytes_per_token_per_gpu(LANTERN_70B, 4)
    assert pool.num_blocks == int(40 * GIB // (16 * per_token))
    assert pool.tokens == pool.num_blocks * 16
    assert pool.groups == (("full", 1),)


def test_windows_in_groups_save_less_than_windows_by_layer() -> None:
    """A window holds the tokens of the running step too."""
    model = find_model("Gemma-3-27B")
    pool = grouped_pool(model, 20 * GIB, 100_000)
    by_layer = 20 * GIB / kv_cache.bytes_per_sequence(model, 100_000)
    everywhere = 20 * GIB / (kv_cache.bytes_per_token(model) * 100_000)
    assert everywhere < pool.concurrency < by_layer
    assert pool.groups == (("full", 1), ("window", 6))
    short = grouped_pool(model, 20 * GIB, 1000)
    assert short.request_blocks == 7 * 63


def test_kinds_of_nearly_one_size_share_it() -> None:
    """Twelve and fourteen: groups of twelve would leave two layers alone in a group. Twelve and eighteen do not."""
    even = replace(LANTERN_70B, num_layers=26, num_sliding_layers=14, sliding_window=100)
    uneven = replace(LANTERN_70B, num_layers=30, num_sliding_layers=18, sliding_window=100)
    assert grouped_pool(even, GIB, 1000).group_size == 14
    assert grouped_pool(uneven, GIB, 1000).group_size == 12


def test_what_it_does_not_group() -> None:
    with pytest.raises(ValueError, match="^full_attention must be None"):
        grouped_pool(find_model("Gemma-4-31B"), GIB, 1000)
    for name in ("max_model_len", "tp_size", "kept_states", "block_size"):
        with pytest.raises(ValueError, match=f"^{name} must be"):
            grouped_pool(LANTERN_70B, GIB, **({"max_model_len": 1000} | {name: 0}))  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="^pool_bytes must be"):
        grouped_pool(LANTERN_70B, -GIB, 1000)
