"""Every number that the notes print in D3 and D4, recomputed; see ``test_published_a.py`` for the shape."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from lantern_lib import H100, LANTERN_70B, Replica, agents, cache_tiers, kv_cache, step
from lantern_lib.quantization import with_storage

PUBLISHED = "published_d3"
FOUR = Replica(H100, tp_size=4)


def sessions(context: int) -> int:
    return kv_cache.memory_budget(LANTERN_70B, FOUR).conversations(context)


def decode(batch: int, context: int) -> step.StepCost:
    return step.decode_step(LANTERN_70B, FOUR, batch, context)


def call(ttft: float, tokens: int, tool: float, context: int) -> agents.CallBudget:
    return agents.CallBudget(ttft, tokens, decode(sessions(context), context).total_seconds, (tool,))


COMPUTE: dict[str, Callable[..., float]] = {
    "session.bytes": lambda context: kv_cache.bytes_per_sequence(LANTERN_70B, context),
    "sessions": sessions,
    "reload.speedup": lambda context, bandwidth: (
        cache_tiers.reload_or_recompute(LANTERN_70B, FOUR, context, bandwidth).speedup
    ),
    "step.seconds": lambda batch, context: decode(batch, context).total_seconds,
    "step.rate": lambda batch, context: decode(batch, context).tokens_per_second,
    "call.seconds": lambda ttft, tokens, per_token, tool: (
        agents.CallBudget(ttft, tokens, per_token, (tool,)).total_seconds
    ),
    "call.decode_seconds": lambda tokens, context: call(0.0, tokens, 0.0, context).decode_seconds,
    "task.seconds": lambda calls, ttft, tokens, context, tool: calls * call(ttft, tokens, tool, context).total_seconds,
    "task.success": lambda per_call, calls: agents.task_success(per_call, calls),
}


def test_published_number(entry: dict[str, Any], hold: Callable[..., None]) -> None:
    hold(entry, COMPUTE)


def test_the_faster_link_of_the_caption() -> None:
    """The notes draw it and print no number: 0.11 s, which is 31.1 times."""
    both = cache_tiers.reload_or_recompute(LANTERN_70B, FOUR, 34_500, 100e9)
    assert both.reload_seconds == pytest.approx(0.11, abs=0.005)
    assert both.speedup == pytest.approx(31.1, abs=0.05)


def test_with_the_storage_of_month_3() -> None:
    """What the notes' own B8 makes of D3 and D4: 38 sessions, 15.6 times, 28.1 ms, 1,351 tokens a second."""
    small = with_storage(LANTERN_70B, weight_bits=8, kv_bits=8)
    most = kv_cache.memory_budget(small, FOUR).conversations(34_500)
    cost = step.decode_step(small, FOUR, most, 34_500)
    assert most == 38
    assert cache_tiers.reload_or_recompute(small, FOUR, 34_500, 25e9).speedup == pytest.approx(15.6, abs=0.05)
    assert cost.total_seconds == pytest.approx(0.0281, abs=0.00005)
    assert cost.tokens_per_second == pytest.approx(1351, abs=0.5)


def test_no_compute_entry_is_unused(entries: list[dict[str, Any]]) -> None:
    assert set(COMPUTE) == {e["compute"] for e in entries}
