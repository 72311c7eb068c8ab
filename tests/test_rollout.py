"""Sizes of comparisons against brute force and simulation, and ramps against a walk second by second."""

from __future__ import annotations

import math

import numpy as np
import pytest

from lantern_lib import rollout


def binomial(limit: int, size: int, share: float) -> float:
    """Add up the chances one by one, with exact coefficients."""
    return math.fsum(math.comb(size, k) * share**k * (1 - share) ** (size - k) for k in range(limit + 1))


@pytest.mark.parametrize("share", [0.5, 0.1, 0.03, 0.01])
@pytest.mark.parametrize("confidence", [0.8, 0.95, 0.99])
def test_a_change_is_seen_by_the_first_size_that_is_enough(share: float, confidence: float) -> None:
    size, missed = 0, 1.0
    while 1 - missed < confidence:
        size, missed = size + 1, missed * (1 - share)
    assert rollout.answers_to_see_a_change(share, confidence) == size


@pytest.mark.parametrize(
    ("before", "after", "confidence", "power"),
    [
        (0.1, 0.2, 0.95, 0.95),
        (0.1, 0.3, 0.95, 0.95),
        (0.05, 0.2, 0.9, 0.8),
        (0.3, 0.45, 0.95, 0.8),
        (0.01, 0.5, 0.9, 0.9),
    ],
)
def test_no_smaller_set_does_what_the_plan_promises(
    before: float, after: float, confidence: float, power: float
) -> None:
    """Try every size from one on, and every limit, in exact arithmetic."""

    def limits(size: int) -> list[int]:
        return [
            limit
            for limit in range(size)
            if binomial(limit, size, before) >= confidence and 1 - binomial(limit, size, after) >= power
        ]

    size = next(n for n in range(1, 400) if limits(n))
    plan = rollout.replay_plan(before, after, confidence, power)
    assert plan.num_prompts == size
    assert plan.max_failures in limits(size)


def test_the_large_plan_keeps_both_promises() -> None:
    """Ten thousand prompts: the normal curve is close, and an exact sum in logarithms decides."""
    plan = rollout.replay_plan(0.10, 0.11)

    def at_most(share: float) -> float:
        n, c = plan.num_prompts, plan.max_failures
        logs = [
            math.lgamma(n + 1)
            - math.lgamma(k + 1)
            - math.lgamma(n - k + 1)
            + k * math.log(share)
            + (n - k) * math.log1p(-share)
            for k in range(c + 1)
        ]
        return math.fsum(map(math.exp, logs))

    assert at_most(0.10) >= 0.95
    assert 1 - at_most(0.11) >= 0.95
    normal = ((1.6449 * math.sqrt(0.09) + 1.6449 * math.sqrt(0.0979)) / 0.01) ** 2
    assert plan.num_prompts == pytest.approx(normal, rel=0.005)


def test_pairs_catch_what_they_promise_in_a_simulation() -> None:
    """A sign test on simulated pairs of half the size of the notes' loss, so that it takes seconds."""
    size = rollout.paired_answers(0.03, 0.01)
    rng = np.random.default_rng(7)

    def alarms(worse: float, better: float) -> float:
        counts = rng.multinomial(size, [worse, better, 1 - worse - better], size=20_000)
        apart = counts[:, 0] + counts[:, 1]
        return float(np.mean((counts[:, 0] - counts[:, 1]) / np.sqrt(np.maximum(apart, 1)) > 1.6449))

    assert alarms(0.03, 0.01) == pytest.approx(0.95, abs=0.01)
    assert alarms(0.02, 0.02) == pytest.approx(0.05, abs=0.01)


def test_samples_catch_what_they_promise_in_a_simulation() -> None:
    size = rollout.sampled_answers(0.10, 0.15)
    rng = np.random.default_rng(7)

    def alarms(after: float) -> float:
        old, new = rng.binomial(size, 0.10, 20_000) / size, rng.binomial(size, after, 20_000) / size
        scatter = np.sqrt((old * (1 - old) + new * (1 - new)) / size)
        return float(np.mean((new - old) / scatter > 1.6449))

    assert alarms(0.15) == pytest.approx(0.95, abs=0.01)
    assert alarms(0.10) == pytest.approx(0.05, abs=0.01)


def test_half_the_loss_takes_four_times_the_samples_and_twice_the_pairs_or_texts() -> None:
    assert rollout.sampled_answers(0.1, 0.105) / rollout.sampled_answers(0.1, 0.11) == pytest.approx(4, rel=0.03)
    assert rollout.paired_answers(0.0075, 0.0025) / rollout.paired_answers(0.015, 0.005) == pytest.approx(2, rel=0.03)
    assert rollout.answers_to_see_a_change(0.005) / rollout.answers_to_see_a_change(0.01) == pytest.approx(2, rel=0.03)


STAGES = [rollout.Stage(0.01, 600), rollout.Stage(0.2, 300), rollout.Stage(1, 1)]


@pytest.mark.parametrize("num_scored", [3, 15, 16, 100, 135, 136, 1000])
def test_a_ramp_against_a_walk_in_tenths_of_a_second(num_scored: int) -> None:
    shares = [0.01] * 6000 + [0.2] * 3000 + [1.0] * 40_000
    missing, ticks = float(num_scored), 0
    while missing > 1e-9:
        missing, ticks = missing - shares[ticks] * 10 * 0.25 / 10, ticks + 1
    got = rollout.ramp_exposure(STAGES, arrival_rate=10, num_scored=num_scored, scored_share=0.25, react_seconds=60)
    assert got.seconds == pytest.approx(ticks / 10, abs=0.11)
    assert got.share == shares[ticks - 1]
    assert got.requests == pytest.approx(num_scored * 4 + 600 * got.share)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: rollout.answers_to_see_a_change(0.0), "changed_share must be"),
        (lambda: rollout.answers_to_see_a_change(0.1, 1.0), "confidence must be below certainty"),
        (lambda: rollout.replay_plan(0.2, 0.1), "failing_before must be below failing_after = 0.1"),
        (lambda: rollout.replay_plan(0.1, 1.0), "failing_after must be below"),
        (lambda: rollout.paired_answers(0.01, 0.02), "better_share must be below worse_share"),
        (lambda: rollout.paired_answers(0.8, 0.7), r"worse_share \+ better_share must be"),
        (lambda: rollout.sampled_answers(0.1, 0.1), "failing_before must be below"),
        (
            lambda: rollout.ramp_exposure([], arrival_rate=1, num_scored=1, scored_share=1),
            "stages must be at least one",
        ),
        (lambda: rollout.Stage(0, 1), "share must be"),
    ],
)
def test_a_bad_argument_is_named(call: object, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        call()  # type: ignore[operator]


def test_a_change_of_everything_shows_in_one_answer() -> None:
    assert rollout.answers_to_see_a_change(1) == 1
