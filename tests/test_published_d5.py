"""Every number that the notes print in D5, recomputed; see ``test_published_a.py`` for the shape."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest

from lantern_lib import H100, LANTERN_70B, Replica, kv_cache, prompt_cache, step
from lantern_lib.prompt_cache import ANTHROPIC
from lantern_lib.workload import Call, Session
from lantern_lib.workload.gaps import cache_use, call_columns

PUBLISHED = "published_d5"
CALLS, FIRST, ADDED = 20, 6000, 1500
LAST = FIRST + ADDED * (CALLS - 1)
FOUR = Replica(H100, tp_size=4)


def session(misses: int) -> Session:
    """Let the cache expire before as many calls, spread evenly, the last call always among them."""
    return prompt_cache.agent_session(CALLS, FIRST, ADDED, slow_turns=prompt_cache.spread_turns(misses, CALLS))


def session_price(misses: int) -> float:
    return prompt_cache.session_bill(session(misses), ANTHROPIC).cost


def prefix_bill(prefix: int, calls: int) -> prompt_cache.Bill:
    """One prefix that many calls share within the lifetime, as one session that does not grow."""
    first, again = Call(prefix, 1), Call(prefix, 1, 1.0, reused_len=prefix)
    return prompt_cache.session_bill(Session((first,) + (again,) * (calls - 1)), ANTHROPIC)


def call_seconds(call: float, decode: float, speedup: float) -> float:
    return call - decode + decode / speedup


COMPUTE: dict[str, Callable[..., float]] = {
    "session.uncached": lambda: sum(FIRST + ADDED * turn for turn in range(CALLS)),
    "session.cached": session_price,
    "session.share": lambda misses: session_price(misses) / sum(FIRST + ADDED * turn for turn in range(CALLS)),
    "session.cache_bytes": lambda: kv_cache.bytes_per_sequence(LANTERN_70B, LAST),
    "replica.sessions": lambda: kv_cache.memory_budget(LANTERN_70B, FOUR).conversations(LAST),
    "replica.rebuild_seconds": lambda: step.prefill_step(LANTERN_70B, FOUR, LAST).total_seconds,
    "prefix.uncached": lambda prefix, calls: prefix * calls,
    "prefix.write": lambda prefix, calls: ANTHROPIC.write_price * prefix_bill(prefix, calls).written_tokens,
    "prefix.reads": lambda prefix, calls: ANTHROPIC.read_price * prefix_bill(prefix, calls).read_tokens,
    "prefix.cached": lambda prefix, calls: prefix_bill(prefix, calls).cost,
    "prefix.saving": lambda prefix, calls: 1 - prefix_bill(prefix, calls).cost / (prefix * calls),
    "task.decode_seconds": lambda call, decode, speedup, calls: decode / speedup,
    "task.call_seconds": lambda call, decode, speedup, calls: call_seconds(call, decode, speedup),
    "task.seconds": lambda call, decode, speedup, calls: calls * call_seconds(call, decode, speedup),
    "task.reduction": lambda call, decode, speedup, calls: 1 - call_seconds(call, decode, speedup) / call,
    "task.rest_share": lambda call, decode, speedup, calls: (call - decode) / call_seconds(call, decode, speedup),
}


def test_published_number(entry: dict[str, Any], hold: Callable[..., None]) -> None:
    hold(entry, COMPUTE)


def test_a_session_priced_call_by_call() -> None:
    """The notes' own sum, without the library: write the first, then read the old part and write the new."""
    price = 1.25 * FIRST
    for turn in range(1, CALLS):
        price += 0.1 * (FIRST + ADDED * (turn - 1)) + 1.25 * ADDED
    assert math.isclose(price, session_price(0))
    assert math.isclose(price, 80_175)


@pytest.mark.parametrize("misses", [0, 1, 2, 5, 10, 19])
def test_columns_of_calls_are_billed_as_the_session_is(misses: int) -> None:
    """Two programs with one meaning: the bill call by call, and what a lifetime does to many sessions at once."""
    use = cache_use(call_columns([session(misses)]), ANTHROPIC.lifetime_seconds)
    assert math.isclose(use.price(ANTHROPIC.write_price, ANTHROPIC.read_price), session_price(misses))


def test_no_compute_entry_is_unused(entries: list[dict[str, Any]]) -> None:
    assert set(COMPUTE) == {e["compute"] for e in entries}
