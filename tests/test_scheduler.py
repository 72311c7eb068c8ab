"""Batching against a loop over steps and a queue of events, and admission against memory counted by hand."""

from __future__ import annotations

import heapq
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lantern_lib import scheduler
from lantern_lib.admission import Request, rejection, run_with_budget
from lantern_lib.scheduler import continuous_batching, static_batching
from lantern_lib.workload import output_lengths_512

LENGTHS = st.lists(st.integers(1, 40), min_size=1, max_size=40)
SLOTS = st.integers(1, 10)


def event_queue(lengths: list[int], num_slots: int) -> int:
    """Continuous batching as events: a new request begins whenever the earliest one ends."""
    ends: list[int] = []
    for length in lengths:
        start = heapq.heappop(ends) if len(ends) == num_slots else 0
        heapq.heappush(ends, start + length)
    return max(ends)


def step_loop(lengths: list[int], num_slots: int, arrivals: list[int], static: bool) -> tuple[int, float]:
    """Both policies token by token; steps, and the mean time from arrival to the answer."""
    waiting, left, batch, latency, now = list(range(len(lengths))), list(lengths), [], 0, 0
    while waiting or batch:
        done = [r for r in batch if left[r] <= 0]
        if not static or len(done) == len(batch):
            latency += sum(now - arrivals[r] for r in done)
            batch = [r for r in batch if r not in done]
        if not static or not batch:
            while waiting and arrivals[waiting[0]] <= now and len(batch) < num_slots:
                batch.append(waiting.pop(0))
        if waiting or batch:
            left = [n - (r in batch) for r, n in enumerate(left)]
            now += 1
    return now, latency / len(lengths)


@given(LENGTHS, SLOTS, st.data())
def test_policies_agree_with_a_loop_over_steps(lengths: list[int], slots: int, data: st.DataObject) -> None:
    gaps = data.draw(st.lists(st.integers(0, 9), min_size=len(lengths), max_size=len(lengths)))
    arrivals = [sum(gaps[: i + 1]) for i in range(len(gaps))]
    for policy, static in ((static_batching, True), (continuous_batching, False)):
        run = policy(lengths, slots, arrivals)
        assert (run.total_steps, pytest.approx(run.mean_latency_from_arrival)) == step_loop(
            lengths, slots, arrivals, static
        )


@pytest.mark.parametrize("slots", [1, 3, 8, 12, 16, 24, 32, 48, 64])
def test_counts_of_the_512_requests_agree_with_an_event_queue(slots: int) -> None:
    lengths = list(output_lengths_512())
    assert continuous_batching(lengths, slots).total_steps == event_queue(lengths, slots)
    groups = [lengths[i : i + slots] for i in range(0, 512, slots)]
    assert static_batching(lengths, slots).total_steps == sum(max(group) for group in groups)


def assert_no_overlap(run: scheduler.Schedule) -> None:
    for slot in range(run.num_slots):
        uses = sorted((u.start_step, u.release_step) for u in run.uses if u.slot == slot)
        assert all(first[1] <= second[0] for first, second in pairwise(uses))


@given(LENGTHS, SLOTS)
def test_a_slot_serves_one_request_at_a_time_and_no_token_is_lost(lengths: list[int], slots: int) -> None:
    for run in (static_batching(lengths, slots), continuous_batching(lengths, slots)):
        assert_no_overlap(run)
        assert [u.end_step - u.start_step for u in run.uses] == lengths
        assert all(0 <= u.slot < slots for u in run.uses)
        assert run.busy_share <= 1
    assert scheduler.least_steps(lengths, slots) <= continuous_batching(lengths, slots).total_steps
    assert continuous_batching(lengths, slots).total_steps <= static_batching(lengths, slots).total_steps


@given(LENGTHS, SLOTS)
def test_a_slot_idles_only_when_nobody_waits(lengths: list[int], slots: int) -> None:
    run = continuous_batching(lengths, slots)
    last_start = max(u.start_step for u in run.uses)
    for now in range(last_start):
        assert sum(u.start_step <= now < u.end_step for u in run.uses) == min(slots, len(lengths))


def test_of_several_free_slots_the_lowest_is_taken() -> None:
    """Slot 1 is free after step 1, slot 0 after step 2; the third request arrives when both are."""
    assert [u.slot for u in continuous_batching([2, 1, 1], 2, [0, 0, 2]).uses] == [0, 1, 0]


def test_equal_lengths_gain_nothing() -> None:
    assert static_batching([9] * 24, 8).total_steps == continuous_batching([9] * 24, 8).total_steps == 27


def test_the_lengths_are_the_fixed_list() -> None:
    """Its head, its two extremes and how often the shortest occurs, from an independent reconstruction."""
    lengths = output_lengths_512()
    assert lengths[:10] == (33, 36, 9, 154, 484, 326, 465, 80, 193, 170)
    assert (min(lengths), lengths.count(8), len(set(lengths))) == (8, 23, 194)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([], 4), "^lengths must hold at least one request"),
        (([3, 0], 4), r"^lengths\[1\] must be a whole number of 1 or more, got 0"),
        (([3], 0), "^num_slots must be a whole number of 1 or more, got 0"),
        (([3, 3], 1, [0]), "^arrivals must have one step for each of 2 requests, got 1"),
        (([3, 3], 1, [2, 1]), r"^arrivals\[1\] must be 2 or more, got 1"),
    ],
)
def test_bad_input_is_named(arguments: tuple[Any, ...], message: str) -> None:
    for policy in (static_batching, continuous_batching):
        with pytest.raises(ValueError, match=message):
            policy(*arguments)


REQUESTS = st.lists(st.builds(Request, st.integers(1, 20), st.integers(1, 20), st.integers(0, 30)), max_size=15)


@given(REQUESTS, SLOTS, st.integers(1, 80), st.integers(1, 8))
def test_two_rules_never_lose_anybody(requests: list[Request], slots: int, capacity: int, block: int) -> None:
    too_large = {i for i, r in enumerate(requests) if len(range(0, r.final_len, block)) > capacity // block}
    for rule in ("final", "blocks"):
        run = run_with_budget(requests, slots, capacity, rule, block)  # type: ignore[arg-type]
        assert run.overrun_step is None
        assert {r.request for r in run.rejected} == too_large
        assert sorted(run.finished) == sorted(set(range(len(requests))) - too_large)
        assert run.peak_tokens <= capacity
        assert rule == "blocks" or run.preemptions == 0


@given(REQUESTS, SLOTS)
def test_with_room_for_all_the_rules_are_continuous_batching(requests: list[Request], slots: int) -> None:
    ordered = sorted(requests, key=lambda r: r.arrival_step)
    for rule in ("prompt", "final", "blocks"):
        run = run_with_budget(ordered, slots, 10_000, rule)  # type: ignore[arg-type]
        if ordered:
            lengths, arrivals = [r.output_len for r in ordered], [r.arrival_step for r in ordered]
            assert run.total_steps == continuous_batching(lengths, slots, arrivals).total_steps


def test_admitting_by_prompt_ends_in_mid_step() -> None:
    """Two of 4 + 4 tokens fill 10 after one step; in the second, memory ends with both half served."""
    pair = [Request(4, 4), Request(4, 4)]
    run = run_with_budget(pair, 2, 10, "prompt")
    assert (run.overrun_step, run.lost, run.finished, run.peak_tokens) == (1, (0, 1), (), 10)


def test_blocks_run_more_at_once_than_final_lengths() -> None:
    """The second starts while the first still needs little, is sent back once, and costs 5 tokens again."""
    pair = [Request(4, 4), Request(4, 4)]
    final, blocks = (run_with_budget(pair, 2, 10, rule) for rule in ("final", "blocks"))  # type: ignore[arg-type]
    assert (final.total_steps, final.preemptions) == (8, 0)
    assert (blocks.total_steps, blocks.preemptions, blocks.recomputed_tokens) == (7, 1, 5)


def test_the_youngest_is_preempted_and_comes_back_first() -> None:
    """After one step 5 + 5 fill 10. The second gives way to the first, and returns before the third."""
    run = run_with_budget([Request(4, 4), Request(4, 2), Request(4, 1)], 2, 10, "blocks")
    assert (run.finished, run.preemptions, run.total_steps) == ((0, 1, 2), 1, 6)


def test_what_can_never_fit_is_refused_with_a_reason() -> None:
    run = run_with_budget([Request(900, 200), Request(5, 5)], 2, 1000, "final")
    assert [r.request for r in run.rejected] == [0]
    assert run.rejected[0].reason.startswith("needs 1,100 tokens of cache and the whole machine has 1,000")
    assert run.finished == (1,)
    assert rejection(Request(15, 1), 31, block_size=16) is None
    assert rejection(Request(16, 1), 31, block_size=16) is not None


def test_a_rule_has_a_name() -> None:
    with pytest.raises(ValueError, match="^rule must be one of prompt, final, blocks, got 'hope'"):
        run_with_budget([], 1, 1, "hope")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="^output_len must be"):
        Request(1, 0)
