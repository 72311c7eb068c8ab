"""Every number that the notes print in D1 and D2, recomputed; see ``test_published_a.py`` for the shape."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from lantern_lib import H100, LANTERN_70B, Replica, prompt_cache, step
from lantern_lib.prompt_cache import ANTHROPIC, Bill
from lantern_lib.workload import Session

PUBLISHED = "published_d"


def agent(slow: tuple[int, ...] = (), output_len: int = 300) -> Session:
    return prompt_cache.agent_session(20, 6000, 1500, output_len=output_len, slow_turns=slow, slow_seconds=600)


def bills(misses: int = 0) -> tuple[Bill, ...]:
    return prompt_cache.call_bills(agent(prompt_cache.spread_turns(misses, 20)), ANTHROPIC)


def total(misses: int = 0) -> Bill:
    return prompt_cache.session_bill(agent(prompt_cache.spread_turns(misses, 20)), ANTHROPIC)


def relative(misses: int) -> float:
    return total(misses).cost / total().input_tokens


def points(turn: int) -> float:
    missed = prompt_cache.session_bill(agent((turn,)), ANTHROPIC).cost
    return (missed - total().cost) / total().input_tokens


def prefill_seconds(tp: int, prompt: int) -> float:
    return step.prefill_step(LANTERN_70B, Replica(H100, tp_size=tp), prompt).total_seconds


def prefill_share(tp: int, prompt: int, output: int, context: int) -> float:
    """Share of a replica's time that reads prompts, as C3 counts it: the rest decodes at the largest batch."""
    replica = Replica(H100, tp_size=tp)
    most = int((0.9 * 4 * 80e9 - 2 * 70_552_387_584) // (327_680 * context))
    decoding = output * step.decode_step(LANTERN_70B, replica, most, context).total_seconds / most
    return prefill_seconds(tp, prompt) / (prefill_seconds(tp, prompt) + decoding)


def compaction(context: int, summary: int) -> float:
    return prompt_cache.compaction_calls(context, summary, ANTHROPIC)


COMPUTE: dict[str, Callable[..., float]] = {
    "session.context": lambda turn: agent().calls[turn].prompt_len,
    "session.input_tokens": lambda: total().input_tokens,
    "session.over_final": lambda: total().input_tokens / agent().calls[-1].prompt_len,
    "session.input_over_output": lambda output_len: (
        total().input_tokens / sum(call.output_len for call in agent(output_len=output_len).calls)
    ),
    "session.cost": lambda misses: total(misses).cost,
    "session.relative": relative,
    "session.over_uncached": lambda misses: relative(misses) - 1,
    "session.rise": lambda misses: total(misses).cost / total().cost - 1,
    "session.times_cheaper": lambda misses: 1 / relative(misses),
    "session.points_of_a_miss": points,
    "session.read_tokens": lambda: total().read_tokens,
    "session.read_cost": lambda: ANTHROPIC.read_price * total().read_tokens,
    "session.later_write_cost": lambda: ANTHROPIC.write_price * sum(bill.written_tokens for bill in bills()[1:]),
    "call.cost": lambda turn, misses: bills(misses)[turn].cost,
    "call.write_cost": lambda turn: ANTHROPIC.write_price * bills()[turn].written_tokens,
    "call.read_tokens": lambda turn: bills()[turn].read_tokens,
    "call.miss_over_hit": lambda turn: bills(1)[turn].cost / bills()[turn].cost,
    "turns_sum": lambda last: sum((agent().calls[t].prompt_len - 6000) // 1500 for t in range(last + 1)),
    "prefill_seconds": prefill_seconds,
    "prefill_share": prefill_share,
    "compaction.factor": lambda: ANTHROPIC.write_price / ANTHROPIC.read_price,
    "compaction.calls": compaction,
    "compaction.whole_calls": lambda context, summary: math.floor(compaction(context, summary)) + 1,
}


def test_published_number(entry: dict[str, Any], hold: Callable[..., None]) -> None:
    hold(entry, COMPUTE)


def test_every_number_of_the_sections_is_here(entries: list[dict[str, Any]]) -> None:
    assert len(entries) == 44
    assert set(COMPUTE) == {e["compute"] for e in entries}
