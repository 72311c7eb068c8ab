"""Week 6: what stands in for a student's functions, on a provider that fits in one process."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any

from lantern_lib.labs.model_server import PARTS, Block, Message, Terms, Usage, count_tokens, prefix_keys

#: Library modules that a student may use besides those of every week.
ALLOWED: frozenset[str] = frozenset({"labs.model_server"})


def _prompt_blocks(tools: Sequence[Message], system: str, messages: Sequence[Message]) -> list[Block]:
    ordered = sorted(tools, key=lambda tool: str(tool["name"]))
    texts = {
        "tools": [json.dumps(tool, sort_keys=True) for tool in ordered],
        "system": [system] if system else [],
        "messages": [json.dumps(message, sort_keys=True) for message in messages],
    }
    return [
        Block(part, text, mark=place == len(texts[part]))
        for part in PARTS
        for place, text in enumerate(texts[part], start=1)
    ]


def _look_up(entries: Mapping[str, float], blocks: Sequence[Block], at_seconds: float, terms: Terms) -> int:
    best, reach = 0, 0
    for place, key in reversed(list(enumerate(prefix_keys(blocks), start=1))):
        reach = terms.lookback_blocks if blocks[place - 1].mark else reach
        if reach > 0 and key in entries and at_seconds <= entries[key]:
            best = max(best, place)
        reach -= 1
    return best


def _serve(
    entries: Mapping[str, float], blocks: Sequence[Block], at_seconds: float, terms: Terms
) -> tuple[Usage, dict[str, float]]:
    found, total, read, stored = _look_up(entries, blocks, at_seconds, terms), 0, 0, 0
    kept = dict(entries)
    for place, (key, block) in enumerate(zip(prefix_keys(blocks), blocks, strict=True), start=1):
        total += count_tokens(block.text)
        read = total if place == found else read
        stores = block.mark and total >= terms.minimum_tokens
        stored = total if stores else stored
        if stores or (place <= found and key in entries and at_seconds <= entries[key]):
            kept[key] = at_seconds + terms.lifetime_seconds
    written = max(stored, read) - read
    return Usage(read, written, total - read - written), kept


def _session_log(requests: Sequence[Message], times: Sequence[float], terms: Terms) -> list[Usage]:
    entries: dict[str, float] = {}
    log: list[Usage] = []
    for number, request in enumerate(requests):
        used, entries = _serve(entries, _prompt_blocks(**request), times[number], terms)
        log += [used]
    return log


def _totals(log: Sequence[Usage]) -> dict[str, float]:
    sums = {name: sum(getattr(usage, name) for usage in log) for name in ("read", "written", "fresh")}
    return {**sums, "hit_share": sums["read"] / (sum(sums.values()) or 1)}


def _lost_calls(log: Sequence[Usage]) -> list[int]:
    return [call for call, (a, b) in enumerate(pairwise(log), start=1) if a.read + a.written > b.read]


def _call_cost(usage: Usage, terms: Terms) -> float:
    amounts = (usage.read, usage.written, usage.fresh, usage.output)
    prices = (terms.read_price, terms.write_price, 1.0, terms.output_price)
    return terms.input_price * sum(map(math.prod, zip(amounts, prices, strict=True)))


def _session_bill(log: Sequence[Usage], terms: Terms) -> dict[str, float]:
    bare = [Usage(0, 0, u.read + u.written + u.fresh, u.output) for u in log]
    cost, without = (sum(_call_cost(usage, terms) for usage in each) for each in (log, bare))
    return {"cost": cost, "without_cache": without, "saved_share": 1 - cost / without if without else 0.0}


STAND_INS: dict[str, Callable[..., Any]] = {
    "prompt_blocks": _prompt_blocks,
    "look_up": _look_up,
    "serve": _serve,
    "session_log": _session_log,
    "totals": _totals,
    "lost_calls": _lost_calls,
    "call_cost": _call_cost,
    "session_bill": _session_bill,
}
