"""A prompt cache finds what the documents say it finds, and bills it to the token."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest

from lantern_lib.prompt_cache import (
    ANTHROPIC,
    OPENAI,
    PROVIDERS,
    Bill,
    Block,
    CachePolicy,
    PromptRequest,
    agent_session,
    bill_requests,
    break_even_uses,
    breakpoints,
    call_bills,
    compaction_calls,
    session_bill,
    session_requests,
    spread_turns,
)
from lantern_lib.workload import Call, Session


def counts(requests: list[PromptRequest], policy: CachePolicy) -> list[tuple[int, int, int]]:
    return [(b.read_tokens, b.written_tokens, b.fresh_tokens) for b in bill_requests(requests, policy)]


def conversation(at: float, length: int, mark: int | None = None, start: int = 0, **more: str) -> PromptRequest:
    """Blocks of 100 tokens, numbered from 1; the marked one has the given number."""
    blocks = [Block("messages", f"b{n}", 100, n == (mark or length)) for n in range(start + 1, start + length + 1)]
    return PromptRequest(at, tuple(blocks), **more)  # type: ignore[arg-type]


# --- the session of the page, against a loop that knows the rule of the notes and nothing else ---


def loop(missing: set[int], write: float = 1.25) -> float:
    cost, context = 0.0, 6000
    for turn in range(20):
        if turn == 0 or turn in missing:
            cost += write * context
        else:
            cost += 0.1 * (context - 1500) + write * 1500
        context += 1500
    return cost


@pytest.mark.parametrize("write", [1.25, 2.0])
@pytest.mark.parametrize("misses", range(20))
def test_a_session_costs_what_a_loop_adds_up(misses: int, write: float) -> None:
    turns = spread_turns(misses, 20)
    session = agent_session(20, 6000, 1500, slow_turns=turns, slow_seconds=301)
    bill = session_bill(session, replace(ANTHROPIC, write_price=write))
    assert len(set(turns)) == misses
    assert bill.cost == pytest.approx(loop(set(turns), write))
    assert bill.input_tokens == 405_000
    assert bill.fresh_tokens == 0


def test_an_hour_keeps_what_five_minutes_lose() -> None:
    """By hand: 2 x 6,000 first, then reads of 37,050 and 19 writes of 3,000; a miss less costs an hour's premium."""
    slow = agent_session(20, 6000, 1500, slow_turns=(19,), slow_seconds=600)
    assert session_bill(slow, ANTHROPIC.extended()).cost == pytest.approx(12_000 + 37_050 + 57_000)
    assert session_bill(slow, ANTHROPIC).cost == pytest.approx(80_175 + 43_125 - 5_175)
    assert session_bill(slow, OPENAI).cost == pytest.approx(80_175)


def test_a_gap_as_long_as_the_lifetime_is_still_in_time() -> None:
    gaps = (300.0, 300.001)
    costs = [call_bills(Session((Call(2000, 1), Call(2100, 1, gap, 2000))), ANTHROPIC)[1].cost for gap in gaps]
    assert costs == pytest.approx([200 + 125, 2625])


def test_a_session_below_the_minimum_is_sent_fresh() -> None:
    calls = (Call(900, 10), Call(1000, 10, 1.0, 900), Call(1100, 10, 1.0, 1000), Call(1200, 10, 1.0, 1100))
    found = [(b.read_tokens, b.written_tokens, b.fresh_tokens) for b in call_bills(Session(calls), ANTHROPIC)]
    assert found == [(0, 0, 900), (0, 0, 1000), (0, 1100, 0), (1100, 100, 0)]


def test_reads_come_in_whole_steps() -> None:
    calls = (Call(2000, 10), Call(2500, 10, 1.0, 2000))
    bill = call_bills(Session(calls), replace(ANTHROPIC, granularity_tokens=128))[1]
    assert (bill.read_tokens, bill.written_tokens) == (1920, 580)


def test_dollars_are_token_prices_times_the_price() -> None:
    session = agent_session(20, 6000, 1500, output_len=300)
    bill = session_bill(session, ANTHROPIC, input_price=5e-6, output_price=25e-6)
    assert bill.cost == pytest.approx(80_175 * 5e-6 + 6000 * 25e-6)
    assert bill.output_tokens == 6000


# --- hand numbers ---


def test_a_prefix_pays_from_the_second_use_or_the_third() -> None:
    for policy, first in ((ANTHROPIC, 2), (ANTHROPIC.extended(), 3), (OPENAI, 2), (OPENAI.extended(), 3)):
        uses = next(n for n in itertools.count(1) if policy.write_price + 0.1 * (n - 1) < n)
        assert uses == first
        assert math.ceil(break_even_uses(policy)) == first


@pytest.mark.parametrize(
    ("context", "summary", "gift", "at_four", "at_five"),
    [(30_000, 5_000, 3, 11, 13), (30_000, 10_000, 7, 27, 32), (10_000, 5_000, 13, 53, 63)],
)
def test_compaction_pays_after_as_many_calls_as_a_count_says(
    context: int, summary: int, gift: int, at_four: int, at_five: int
) -> None:
    for price, expected in ((0, gift), (4, at_four), (5, at_five)):
        calls = next(m for m in itertools.count(1) if (1.25 + price) * summary + 0.1 * summary * m < 0.1 * context * m)
        assert calls == expected
        assert math.floor(compaction_calls(context, summary, ANTHROPIC, output_price=price)) + 1 == expected


# --- documented behaviour ---


def test_the_lookback_reaches_twenty_blocks_and_not_twenty_one() -> None:
    """An entry after block 15: a mark on block 34 looks back to 15 and finds it, one on 35 looks back to 16."""
    first, second = conversation(0, 10), conversation(10, 15)
    assert counts([first, second], ANTHROPIC) == [(0, 0, 1000), (0, 1500, 0)]  # 1,000 tokens are below the minimum
    assert counts([second, conversation(20, 34)], ANTHROPIC)[1] == (1500, 1900, 0)
    assert counts([second, conversation(20, 35)], ANTHROPIC)[1] == (0, 3500, 0)
    assert counts([second, conversation(20, 35)], OPENAI)[1] == (1500, 2000, 0)


def test_a_second_mark_brings_a_far_entry_back_into_reach() -> None:
    far = conversation(20, 35)
    both = replace(far, blocks=tuple(replace(b, breakpoint=b.content in {"b15", "b35"}) for b in far.blocks))
    assert counts([conversation(10, 15), both], ANTHROPIC)[1] == (1500, 2000, 0)


def test_a_mark_on_a_block_that_changes_is_never_found_again() -> None:
    """An entry stands only where a mark stood, so the stable part before the mark is not found either."""

    def ask(at: float, mark_stable: bool) -> PromptRequest:
        stable = Block("system", "rules", 3000, mark_stable)
        return PromptRequest(at, (stable, Block("messages", f"it is {at}", 20, not mark_stable)))

    assert counts([ask(0, False), ask(9, False)], ANTHROPIC) == [(0, 3020, 0)] * 2
    assert counts([ask(0, True), ask(9, True)], ANTHROPIC) == [(0, 3000, 20), (3000, 0, 20)]


CHANGES = [("tools", 0), ("system", 2000), ("settings", 5000), ("last", 9000)]


@pytest.mark.parametrize(("what", "kept"), CHANGES)
def test_a_change_breaks_its_own_part_and_all_after_it(what: str, kept: int) -> None:
    def ask(at: float, changed: bool) -> PromptRequest:
        def name(part: str) -> str:
            return f"{part}, new" if changed and part == what else part

        blocks = (
            Block("tools", name("tools"), 2000, True),
            Block("system", name("system"), 3000, True),
            Block("messages", "first", 4000, True),
            Block("messages", name("last"), 50, True),
        )
        return PromptRequest(at, blocks, settings=name("settings"))

    same, changed = ask(0, False), ask(1, True)
    assert counts([same, changed], ANTHROPIC)[1] == (kept, 9050 - kept, 0)
    assert counts([same, ask(1, False)], ANTHROPIC)[1] == (9050, 0, 0)


def test_a_read_renews_the_lifetime_and_silence_ends_it() -> None:
    kept = [conversation(at, 20) for at in (0, 299, 598, 897)]
    assert [read for read, _, _ in counts(kept, ANTHROPIC)] == [0, 2000, 2000, 2000]
    assert [read for read, _, _ in counts([kept[0], conversation(301, 20)], ANTHROPIC)] == [0, 0]
    assert [read for read, _, _ in counts([kept[0], conversation(301, 20)], ANTHROPIC.extended())] == [0, 2000]
    assert [read for read, _, _ in counts([kept[0], conversation(1800, 20)], OPENAI)] == [0, 2000]


def test_four_marks_at_most_and_the_end_by_itself() -> None:
    many = PromptRequest(0, tuple(Block("messages", f"b{n}", 500, n < 5) for n in range(8)))
    assert breakpoints(many, OPENAI) == [2, 3, 4, 7]
    with pytest.raises(ValueError, match="^breakpoint must mark at most 4 blocks, got 5"):
        breakpoints(many, ANTHROPIC)
    assert counts([replace(many, blocks=many.blocks[5:])], ANTHROPIC) == [(0, 0, 1500)]  # nothing marked
    assert counts([replace(many, blocks=many.blocks[5:])], OPENAI) == [(0, 1500, 0)]


def test_terms_are_the_documented_ones() -> None:
    assert {n: (p.read_price, p.write_price, p.extended_write_price) for n, p in PROVIDERS.items()} == {
        "Anthropic": (0.1, 1.25, 2.0),
        "OpenAI": (0.1, 1.25, 2.5),
    }
    assert [p.lifetime_seconds for p in PROVIDERS.values()] == [300, 1800]
    assert [p.extended().lifetime_seconds for p in PROVIDERS.values()] == [3600, 43_200]
    assert [p.extended().write_price for p in PROVIDERS.values()] == [2.0, 2.5]


# --- any sequence, against a second, token by token, account ---


def by_tokens(requests: list[PromptRequest], policy: CachePolicy) -> list[tuple[int, int, int]]:
    """Prompts as lists of letters, entries as copies of their beginning; every pair is compared letter by letter."""
    entries: list[dict[str, object]] = []
    rows = []
    for request in requests:
        letters: list[tuple[str, str, str, int]] = []
        ends = []
        for block in request.blocks:
            setting = request.settings if block.part == "messages" else "any"
            letters += [(block.part, block.content, setting, n) for n in range(block.num_tokens)]
            ends.append(len(letters))
        marked = [n for n, block in enumerate(request.blocks) if block.breakpoint]
        if policy.automatic:
            marked = [*[n for n in marked if n != len(ends) - 1][-3:], len(ends) - 1]
        read = 0
        for entry in entries:
            copy = entry["letters"]
            assert isinstance(copy, list)
            if entry["until"] < request.at_seconds or letters[: len(copy)] != copy:  # type: ignore[operator]
                continue
            place = ends.index(len(copy))
            if any(0 <= m - place < (policy.lookback_blocks or 10**9) for m in marked):
                read = max(read, len(copy))
        for entry in entries:
            copy = entry["letters"]
            assert isinstance(copy, list)
            if entry["until"] >= request.at_seconds and len(copy) <= read and letters[: len(copy)] == copy:  # type: ignore[operator]
                entry["until"] = request.at_seconds + policy.lifetime_seconds
        stored = 0
        for mark in marked:
            if ends[mark] >= policy.minimum_tokens:
                stored = ends[mark]
                entries.append({"letters": letters[:stored], "until": request.at_seconds + policy.lifetime_seconds})
        written = max(stored - read, 0)
        rows.append((read, written, len(letters) - read - written))
    return rows


@pytest.mark.parametrize("policy", [ANTHROPIC, OPENAI], ids=lambda p: p.name)
@pytest.mark.parametrize("seed", range(12))
def test_any_sequence_is_billed_as_a_comparison_letter_by_letter_says(policy: CachePolicy, seed: int) -> None:
    rng = np.random.default_rng(seed)
    small = replace(policy, minimum_tokens=6, lookback_blocks=min(policy.lookback_blocks, 3))
    requests, at = [], 0.0
    for _ in range(40):
        at += float(rng.choice([1.0, 100.0, 400.0, 2000.0], p=[0.5, 0.3, 0.15, 0.05]))
        tools, system = (int(rng.random() < 0.15) for _ in range(2))
        talk = int(rng.integers(1, 9))
        edited = int(rng.integers(0, talk)) if rng.random() < 0.2 else -1
        parts = [("tools", f"t{tools}", 3), ("system", f"s{system}", 2)]
        parts += [("messages", f"m{n}{'x' if n == edited else ''}", 1 + n % 3) for n in range(talk)]
        marks = set(rng.choice(len(parts), size=min(3, len(parts)), replace=False).tolist())
        blocks = tuple(Block(p, c, n, i in marks) for i, (p, c, n) in enumerate(parts))
        requests.append(PromptRequest(at, blocks, settings=str(int(rng.random() < 0.1))))
    expected = by_tokens(requests, small)
    assert counts(requests, small) == expected
    assert sum(read for read, _, _ in expected) > 0
    cost = sum(0.1 * read + 1.25 * written + fresh for read, written, fresh in expected)
    assert sum(bill_requests(requests, small), start=Bill()).cost == pytest.approx(cost)


def test_a_session_and_its_requests_have_one_bill() -> None:
    """The same twenty calls, once as lengths and once as blocks with a mark at the end of each."""
    session = agent_session(20, 6000, 1500, slow_turns=(9, 19), slow_seconds=600)
    requests = session_requests(session, tools_len=3000, system_len=1500)
    assert [request.at_seconds for request in requests[:3]] == [0, 3, 6]
    assert sum(block.num_tokens for block in requests[-1].blocks) == 34_500
    assert bill_requests(requests, ANTHROPIC) == call_bills(session, ANTHROPIC)
    assert bill_requests(requests, OPENAI) == call_bills(session, OPENAI)


def test_parallel_tools_make_more_blocks_than_the_lookback_reaches() -> None:
    """Nothing changed. From 20 new blocks on, only the marks after tools and system are found.

    By hand: 7,500 for the first call, 19 reads of 5,500, and 1.25 times the other 294,500 tokens.
    """
    session = agent_session(20, 6000, 1500)
    for blocks, cost in ((1, 80_175), (19, 80_175), (20, 386_075), (25, 386_075)):
        requests = session_requests(session, tools_len=4500, system_len=1000, blocks_per_turn=blocks)
        assert sum(block.num_tokens for block in requests[-1].blocks) == 34_500
        assert sum(bill_requests(requests, ANTHROPIC), start=Bill()).cost == pytest.approx(cost)
        assert sum(bill_requests(requests, OPENAI), start=Bill()).cost == pytest.approx(80_175)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: replace(ANTHROPIC, read_price=1.0), "^read_price must be below 1"),
        (lambda: replace(ANTHROPIC, lifetime_seconds=0), "^lifetime_seconds"),
        (lambda: replace(ANTHROPIC, lookback_blocks=-1), "^lookback_blocks .* no limit"),
        (lambda: agent_session(20, 6000, 1500, slow_turns=(20,)), "^slow_turns must lie between 1 and 19, got 20"),
        (lambda: agent_session(20, 6000, 0), "^tokens_per_turn"),
        (lambda: spread_turns(20, 20), "^num_misses must be at most 19, got 20"),
        (lambda: compaction_calls(5000, 5000, ANTHROPIC), "^summary_len must be below context_len"),
        (lambda: session_bill(agent_session(2, 10, 5), ANTHROPIC, input_price=-1), "^input_price"),
        (lambda: Block("message", "a", 1), "^part must be one of tools, system, messages"),
        (lambda: Block("tools", "a", 0), "^num_tokens"),
        (lambda: PromptRequest(0, ()), "^blocks must hold at least one"),
        (
            lambda: PromptRequest(0, (Block("system", "a", 1), Block("tools", "b", 1))),
            "^blocks must stand in the order",
        ),
        (
            lambda: session_requests(Session((Call(9, 1), Call(12, 1, 0.0, 8))), tools_len=3, system_len=3),
            "^reused_len must be all 9 tokens .* got 8 in call 1",
        ),
        (lambda: bill_requests([conversation(5, 1), conversation(4, 1)], ANTHROPIC), "^requests must be in order"),
    ],
)
def test_what_is_wrong_is_named(call: object, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        call()  # type: ignore[operator]
