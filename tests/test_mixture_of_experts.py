"""Experts: every choice counted out, choices drawn at random, limits."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations, product

import numpy as np
import pytest

from lantern_lib import H100, H200, Replica
from lantern_lib import mixture_of_experts as experts
from lantern_lib.hardware import Link

MOE = experts.DEEPSEEK_V3
# Counts in small numbers: 10 experts of 6 weights each, 2 chosen, and 8 weights that every token uses.
TOY = experts.ExpertConfig("toy", 68.0, 20.0, 10, 2, 3, 4)


@pytest.mark.parametrize(
    ("count", "chosen", "batch"), [(3, 1, 1), (3, 1, 4), (4, 2, 3), (5, 2, 3), (5, 3, 3), (4, 4, 2)]
)
def test_the_expectation_is_the_mean_over_every_choice(count: int, chosen: int, batch: int) -> None:
    choices = list(combinations(range(count), chosen))
    touched = [len(set().union(*tokens)) for tokens in product(choices, repeat=batch)]
    assert experts.expected_experts(count, chosen, batch) == pytest.approx(sum(touched) / len(touched))


@pytest.mark.parametrize("batch", [1, 8, 64])
def test_the_expectation_is_what_random_routing_gives(batch: int) -> None:
    rng = np.random.default_rng(20)
    trials = 2000
    counts = np.array(
        [np.unique(np.argsort(rng.random((batch, 256)), axis=1)[:, :8]).size for _ in range(trials)], dtype=float
    )
    # Five standard errors of the mean; at batch 1 there is no spread and nothing is allowed.
    allowed = 5 * counts.std() / trials**0.5 + 1e-9
    assert abs(experts.expected_experts(256, 8, batch) - counts.mean()) <= allowed


def test_limits_of_the_expectation() -> None:
    assert experts.expected_experts(256, 8, 1) == pytest.approx(8)
    assert experts.expected_experts(256, 8, 10_000) == pytest.approx(256)
    values = [experts.expected_experts(256, 8, b) for b in range(1, 100)]
    assert values == sorted(values)
    assert all(value <= 8 * b for b, value in enumerate(values, 1))


def test_a_toy_model_is_taken_apart_as_it_was_built() -> None:
    assert TOY.expert_parameters == pytest.approx(60)
    assert experts.stored_weight_bytes(TOY) == 68
    assert experts.token_flops(TOY) == 40
    assert experts.streamed_weight_bytes(TOY, 1) == pytest.approx(8 + 12)
    # Two tokens: 2 experts, and of the other 8 each is chosen by the second with 1 chance in 5.
    assert experts.streamed_weight_bytes(TOY, 2) == pytest.approx(8 + 6 * (2 + 8 * 0.2))


def test_a_step_reads_the_active_weights_alone_and_all_in_a_crowd() -> None:
    assert experts.streamed_weight_bytes(MOE, 1) == pytest.approx(37e9)
    assert experts.streamed_weight_bytes(MOE, 10_000) == pytest.approx(671e9)
    sixteen_bit = replace(MOE, weight_bytes=2.0)
    assert experts.streamed_weight_bytes(sixteen_bit, 7) == 2 * experts.streamed_weight_bytes(MOE, 7)


def test_memory_names_its_rule() -> None:
    p5, p5e = Replica(H100, tp_size=8), Replica(H200, tp_size=8)
    assert experts.memory_left_bytes(MOE, p5, reserve=0) == 0
    assert experts.memory_left_bytes(MOE, p5e, reserve=0) == 457e9
    assert experts.memory_left_bytes(MOE, p5e) == pytest.approx(344.2e9)


def test_an_exchange_counts_what_is_sent() -> None:
    bare = Link("bare", 1.0, 0.0)
    # Each of 5 tokens sends 4 numbers of 2 bytes to 2 experts, 3 of 4 parts leave, there and back, in 3 layers.
    assert experts.exchange_seconds(TOY, 5, 4, bare) == pytest.approx(5 * 4 * 2 * 2 * 3 / 4 * 2 * 3)
    assert experts.exchange_seconds(TOY, 5, 1, bare) == 0


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"num_experts": 0}, "num_experts must be a whole number of 1 or more, got 0"),
        ({"experts_per_token": 10}, r"experts_per_token must be below num_experts \(10\), got 10"),
        ({"active_parameters": 68.0}, "active_parameters must be from 14 .* got 68"),
        ({"active_parameters": 13.0}, "active_parameters must be from 14 .* got 13"),
        ({"weight_bytes": 0.0}, "weight_bytes must be a finite number above 0, got 0.0"),
    ],
)
def test_an_impossible_model_is_refused(change: dict[str, float], message: str) -> None:
    with pytest.raises(ValueError, match="^" + message):
        replace(TOY, **change)  # type: ignore[arg-type]


def test_bad_calls_are_refused() -> None:
    with pytest.raises(ValueError, match=r"^experts_per_token must be at most num_experts \(4\), got 5"):
        experts.expected_experts(4, 5, 1)
    with pytest.raises(ValueError, match="^batch_size must be"):
        experts.streamed_weight_bytes(MOE, 0)
    with pytest.raises(ValueError, match="^reserve must be"):
        experts.memory_left_bytes(MOE, Replica(H200, tp_size=8), reserve=1)
    with pytest.raises(ValueError, match="^tokens_per_rank must be"):
        experts.exchange_seconds(MOE, 0, 8, H100.link)
