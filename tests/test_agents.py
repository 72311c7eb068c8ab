"""Tasks of many calls, against loops, draws and a real prefix tree."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from lantern_lib import agents
from lantern_lib.agents import CallBudget, Delivery, Loss
from lantern_lib.prefix_tree import PrefixTree


def test_a_call_is_the_sum_of_its_steps_and_tools() -> None:
    clock = 0.4
    for _ in range(299):
        clock += 0.027
    exact = CallBudget(0.4, 300, 0.027, (3.0,), include_first=False)
    assert exact.total_seconds == pytest.approx(clock + 3.0)
    assert CallBudget(0.4, 300, 0.027, (3.0,)).total_seconds == pytest.approx(clock + 0.027 + 3.0)


def test_tools_in_turn_add_up_and_together_take_as_long_as_the_longest() -> None:
    call = CallBudget(0.4, 300, 0.027, (1.0, 4.0, 2.0))
    together = CallBudget(0.4, 300, 0.027, (1.0, 4.0, 2.0), parallel=True)
    assert call.wait_seconds - together.wait_seconds == 3.0
    assert CallBudget(0.4, 300, 0.027, parallel=True).wait_seconds == CallBudget(0.4, 300, 0.027).wait_seconds == 0


def test_twice_the_decoding_speed_is_less_than_twice_the_task() -> None:
    plain, quick = (CallBudget(0.4, 300, 0.027, (3.0,), speedup=factor) for factor in (1.0, 2.0))
    assert 40 * quick.total_seconds == pytest.approx(298)
    assert 1.5 < plain.total_seconds / quick.total_seconds < 1.6


@pytest.mark.parametrize(("retries", "detected"), [(0, 1.0), (1, 1.0), (1, 0.5), (3, 0.25)])
def test_success_is_the_sum_over_all_ways_of_a_call(retries: int, detected: float) -> None:
    """Every sequence of right, seen and unseen failures of one call, with its chance."""
    chances = {"right": 0.9, "seen": 0.1 * detected, "unseen": 0.1 * (1 - detected)}
    good = 0.0
    for ways in itertools.product(chances, repeat=retries + 1):
        first = next((way for way in ways if way != "seen"), "seen")
        if first == "right":
            good += float(np.prod([chances[way] for way in ways]))
    assert agents.task_success(0.9, 1, retries, detected) == pytest.approx(good)
    assert agents.task_success(0.9, 7, retries, detected) == pytest.approx(good**7)


@pytest.mark.parametrize(("task", "calls"), [(0.95, 40), (0.5, 3), (1.0, 10)])
def test_the_target_of_a_call_makes_the_task(task: float, calls: int) -> None:
    chance = 1.0
    for _ in range(calls):
        chance *= agents.per_call_target(task, calls)
    assert chance == pytest.approx(task)


def test_a_key_makes_one_effect_of_any_sequence_of_losses() -> None:
    for length in range(1, 5):
        for losses in itertools.product(("none", "request", "reply"), repeat=length):
            sent = losses[: losses.index("none") + 1] if "none" in losses else losses
            arrived = sum(loss != "request" for loss in sent)
            answered = "none" in losses
            assert agents.deliver(losses, keyed=False) == Delivery(len(sent), arrived, answered)
            assert agents.deliver(losses, keyed=True) == Delivery(len(sent), min(arrived, 1), answered)


@pytest.mark.parametrize(("request_loss", "reply_loss", "attempts"), [(0.0, 0.01, 3), (0.2, 0.3, 1), (0.2, 0.3, 4)])
def test_the_chance_of_a_second_effect_is_that_of_all_sequences(
    request_loss: float, reply_loss: float, attempts: int
) -> None:
    arrives = 1 - request_loss
    chances: dict[Loss, float] = {
        "request": request_loss,
        "reply": arrives * reply_loss,
        "none": arrives * (1 - reply_loss),
    }
    twice = sum(
        float(np.prod([chances[loss] for loss in losses]))
        for losses in itertools.product(chances, repeat=attempts)
        if agents.deliver(losses, keyed=False).effects > 1
    )
    assert agents.duplicate_probability(request_loss, reply_loss, attempts) == pytest.approx(twice)


def test_the_chance_of_a_second_effect_is_what_draws_show() -> None:
    """Forty calls, up to three attempts each, ten thousand tasks."""
    rng = np.random.default_rng(11)
    tasks, calls = 10_000, 40
    request, reply = (rng.random((tasks, calls, 3)) < 0.01 for _ in range(2))
    done = np.cumsum(~request & ~reply, axis=2)
    sent = np.concatenate([np.ones((tasks, calls, 1), bool), done[:, :, :-1] == 0], axis=2)
    share = ((sent & ~request).sum(axis=2) > 1).any(axis=1).mean()
    expected = agents.duplicate_probability(0.01, 0.01, 3, calls)
    assert abs(share - expected) < 4 * (expected * (1 - expected) / tasks) ** 0.5


@pytest.mark.parametrize("keep", [True, False])
@pytest.mark.parametrize(("written", "received"), [(200, 180), (200, 200), (200, 0), (0, 0)])
def test_a_prefix_tree_finds_what_a_broken_stream_leaves(keep: bool, written: int, received: int) -> None:
    before, answer = list(range(500)), list(range(1000, 1000 + written))
    tree = PrefixTree(10_000)
    tree.insert(before + answer)
    resumed = agents.after_break(len(before), written, received, keep=keep)
    prompt = before + (answer[:received] if keep else [])
    assert len(prompt) == resumed.context_len
    assert tree.match(prompt) == resumed.num_cached_tokens
    assert resumed.written_again == written - (received if keep else 0)
    edited = [*prompt[:-3], 7, 7, 7]  # the third thing one could do, and why not to
    assert tree.match(edited) == len(prompt) - 3


def test_bad_input_is_named() -> None:
    with pytest.raises(ValueError, match="^losses must be none, request, reply"):
        agents.deliver(["lost"], keyed=True)  # type: ignore[list-item]
    with pytest.raises(ValueError, match="^losses must hold"):
        agents.deliver([], keyed=True)
    with pytest.raises(ValueError, match="^received_len must be at most written_len = 5"):
        agents.after_break(10, 5, 6, keep=True)
    with pytest.raises(ValueError, match="^per_call must be a fraction"):
        agents.task_success(0.0, 40)
    with pytest.raises(ValueError, match="^tool_seconds must be"):
        CallBudget(0.4, 300, 0.027, (-1.0,))
    with pytest.raises(ValueError, match="^speedup must be"):
        CallBudget(0.4, 300, 0.027, speedup=0.0)
