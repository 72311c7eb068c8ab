"""Every number that the notes print in part E, recomputed; see ``test_published_a.py`` for the shape."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from lantern_lib import H100, LANTERN_70B, Replica, step, transformer
from lantern_lib.fairness import TokenWeights
from lantern_lib.guardrails.quotas import Refusal, TokenQuota

PUBLISHED = "published_e"
FOUR = Replica(H100, tp_size=4)
BOOK = Path(__file__).resolve().parent.parent / "book"


def seconds(prompt_len: int) -> float:
    return step.prefill_step(LANTERN_70B, FOUR, prompt_len).total_seconds


def flops(prompt_len: int) -> float:
    return transformer.prompt_flops(LANTERN_70B, prompt_len).total


def attention_share(prompt_len: int) -> float:
    """Count pairs of tokens one row at a time, where the library has a formula."""
    pairs = sum(range(1, prompt_len + 1))
    of_pairs = 4 * LANTERN_70B.num_layers * LANTERN_70B.num_heads * LANTERN_70B.head_dim * pairs
    return of_pairs / flops(prompt_len)


def items(page: str, dropdown: str) -> int:
    """Count the numbered items under a dropdown of a page."""
    text = (BOOK / "e" / f"{page}.md").read_text(encoding="utf-8")
    (body,) = re.findall(rf":::\{{dropdown\}} [^\n]*{dropdown}.*?\n:::", text, re.S)
    return len(re.findall(r"^\d+\. ", body, re.M))


COMPUTE: dict[str, Callable[..., float]] = {
    "filter.missed_share": lambda caught: 1 - caught,
    "prefill.seconds": seconds,
    "prefill.flops": flops,
    "prefill.times_seconds": lambda prompt_len, than: seconds(prompt_len) / seconds(than),
    "prefill.times_flops": lambda prompt_len, than: flops(prompt_len) / flops(than),
    "prefill.times_answer": lambda prompt_len, output_len, context_len: (
        flops(prompt_len) / (output_len * transformer.token_flops(LANTERN_70B, context_len).total)
    ),
    "prefill.attention_share": attention_share,
    "tenant.rate": lambda requests_per_second, tenants: requests_per_second / tenants,
    "page.items": items,
}


def test_published_number(entry: dict[str, Any], hold: Callable[..., None]) -> None:
    hold(entry, COMPUTE)


def test_a_few_giant_prompts_a_second_need_a_fleet() -> None:
    """The notes say that a few a second can saturate a fleet; a queue of them, served one by one, says how many."""
    replicas = 66
    free = [0.0] * replicas
    for number in range(600):
        sent, first = number / 3, min(range(replicas), key=free.__getitem__)
        assert free[first] <= sent, "with 66 replicas nobody waits"
        free[first] = sent + seconds(131_072)
    assert 3 * seconds(131_072) > 65, "with 65 the work of a second takes longer than a second"


def test_a_quota_in_tokens_sees_what_one_in_requests_does_not() -> None:
    quota = TokenQuota(60_000, 1000, TokenWeights(1, 0.1, 5))
    assert isinstance(quota.reserve("ana", 131_072, 1, now=0), Refusal)
    granted = sum(not isinstance(quota.reserve("ana", 2000, 400, now=0), Refusal) for _ in range(60))
    assert granted == 60_000 // (2000 + 5 * 400)


def test_no_compute_entry_is_unused(entries: list[dict[str, Any]]) -> None:
    assert set(COMPUTE) == {e["compute"] for e in entries}
