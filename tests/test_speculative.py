"""Speculation against every outcome of a round, against played rounds, and against steps priced by hand."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lantern_lib import H100, LANTERN_70B, Replica, quantization, speculative, step

FOUR = Replica(H100, tp_size=4)
chances = st.floats(0, 1)
lengths = st.integers(1, 40)


def tokens_of(outcome: tuple[bool, ...]) -> int:
    """Tokens of one round: the kept beginning, and one more from the large model."""
    return [*outcome, False].index(False) + 1


@pytest.mark.parametrize("acceptance", [0.0, 0.3, 0.6, 0.8, 0.95, 1.0])
@pytest.mark.parametrize("draft_len", [1, 2, 4, 7])
def test_the_mean_is_the_sum_over_all_outcomes(acceptance: float, draft_len: int) -> None:
    mean = 0.0
    for outcome in product((True, False), repeat=draft_len):
        chance = np.prod([acceptance if kept else 1 - acceptance for kept in outcome])
        mean += float(chance) * tokens_of(outcome)
    assert speculative.expected_tokens(acceptance, draft_len) == pytest.approx(mean, rel=1e-12)


def test_played_rounds_yield_the_formula_and_the_large_models_distribution() -> None:
    """Draw drafts from q, keep with chance min(1, p/q), replace the first rejected from what p has left over.

    Tolerances are four and a half standard errors: with a fixed seed nothing is left to luck, and a
    wrong rule (keep always, or replace from p itself) is off by more than twenty.
    """
    rng = np.random.default_rng(5)
    large, draft = np.array([0.5, 0.3, 0.15, 0.05]), np.array([0.3, 0.3, 0.1, 0.3])
    left = np.maximum(large - draft, 0)
    acceptance = float(np.minimum(large, draft).sum())
    rounds, draft_len = 20_000, 3
    counts, produced, first = [], np.zeros(4), np.zeros(4)
    for _ in range(rounds):
        tokens: list[int] = []
        for guess in rng.choice(4, size=draft_len, p=draft):
            if rng.random() >= large[guess] / draft[guess]:
                tokens.append(int(rng.choice(4, p=left / left.sum())))
                break
            tokens.append(int(guess))
        else:
            tokens.append(int(rng.choice(4, p=large)))
        counts.append(len(tokens))
        first[tokens[0]] += 1
        produced += np.bincount(tokens, minlength=4)
    error = 4.5 * np.std(counts) / np.sqrt(rounds)
    assert abs(np.mean(counts) - speculative.expected_tokens(acceptance, draft_len)) < error
    assert np.all(np.abs(first / rounds - large) < 4.5 * np.sqrt(large * (1 - large) / rounds))
    assert sum(counts) == produced.sum()


@given(acceptance=st.floats(0, 0.99), draft_len=lengths)
def test_the_sum_has_its_closed_form(acceptance: float, draft_len: int) -> None:
    closed = (1 - acceptance ** (draft_len + 1)) / (1 - acceptance)
    assert speculative.expected_tokens(acceptance, draft_len) == pytest.approx(closed, rel=1e-9)


@given(draft_len=lengths, draft_cost=st.floats(0, 2))
def test_the_ends_of_acceptance(draft_len: int, draft_cost: float) -> None:
    """Nothing kept: one token for the whole price. All kept: every draft and one more."""
    cost = 1 + draft_cost * draft_len
    assert speculative.speedup(0, draft_len, draft_cost) == pytest.approx(1 / cost)
    assert speculative.speedup(1, draft_len, draft_cost) == pytest.approx((draft_len + 1) / cost)


@given(acceptance=chances, draft_cost=st.floats(0.001, 2))
def test_the_best_length_beats_its_neighbours(acceptance: float, draft_cost: float) -> None:
    best = speculative.best_draft_len(acceptance, draft_cost)
    gain = speculative.speedup(acceptance, best, draft_cost)
    for other in (best - 1, best + 1, 2 * best):
        if 1 <= other <= 64:
            assert gain >= speculative.speedup(acceptance, other, draft_cost)


def test_a_free_draft_is_drafted_as_long_as_allowed() -> None:
    assert speculative.best_draft_len(0.8, 0, max_draft_len=12) == 12


@pytest.mark.parametrize("batch", [1, 32, 64, 128])
@pytest.mark.parametrize("draft_len", [1, 4, 8])
def test_a_check_computes_every_token_and_reads_once(batch: int, draft_len: int) -> None:
    tokens = batch * (draft_len + 1)
    per_token = 2 * 69_501_714_432 + 4 * 80 * 64 * 128 * 2000
    read = 2 * 69_503_033_344 + batch * 2000 * 327_680
    check = speculative.verify_step(LANTERN_70B, FOUR, batch, 2000, draft_len)
    assert check.num_tokens == tokens
    assert check.flops == pytest.approx(tokens * per_token, rel=1e-12)
    assert check.moved_bytes == pytest.approx(read, rel=1e-12)
    message = tokens * 8192 * 2
    assert check.communication_seconds == pytest.approx(160 * (8e-6 + 1.5 * message / 450e9))
    slowest = max(check.flops / (4 * 989e12 * 0.5), check.moved_bytes / (4 * 3.35e12 * 0.8))
    assert check.total_seconds == pytest.approx(slowest + check.communication_seconds)


@given(batch=st.integers(1, 400), context=st.integers(0, 9000), acceptance=chances, draft_len=st.integers(1, 12))
def test_the_gain_never_rises_with_the_batch(batch: int, context: int, acceptance: float, draft_len: int) -> None:
    def gain(size: int) -> float:
        return speculative.batch_speedup(LANTERN_70B, FOUR, size, context, acceptance, draft_len, 0.05)

    assert gain(batch + 1) <= gain(batch) * (1 + 1e-12)


def test_a_check_that_costs_nothing_extra_gives_the_usual_formula() -> None:
    """Endless arithmetic and no message time: the check is one ordinary step."""
    endless = replace(H100, peak_flops=1e30, link=replace(H100.link, bandwidth=1e30))
    got = speculative.batch_speedup(LANTERN_70B, Replica(endless, tp_size=4), 64, 2000, 0.8, 4, 0.05)
    assert got == pytest.approx(3.3616 / 1.2)


@pytest.mark.parametrize("acceptance", [0.3, 0.5, 0.6, 0.7, 0.8, 0.85])
@pytest.mark.parametrize(("draft_len", "bits"), [(2, 16), (4, 16), (8, 16), (4, 8), (3, 4)])
def test_the_break_even_batch_is_the_first_without_a_gain(acceptance: float, draft_len: int, bits: int) -> None:
    model = quantization.with_storage(LANTERN_70B, weight_bits=bits)

    def time(batch: int) -> tuple[float, float]:
        each = step.decode_step(model, FOUR, batch, 2000).total_seconds
        return each, speculative.verify_step(model, FOUR, batch, 2000, draft_len).total_seconds

    mean = sum(acceptance**i for i in range(draft_len + 1))
    first = next(b for b in range(1, 1025) if mean * time(b)[0] <= time(b)[1] + 0.05 * draft_len * time(b)[0])
    assert speculative.break_even_batch(model, FOUR, 2000, acceptance, draft_len, 0.05) == first


def test_there_may_be_no_break_even_batch() -> None:
    assert speculative.break_even_batch(LANTERN_70B, FOUR, 2000, 1.0, 1, 0.05, max_batch=900) is None
    assert speculative.break_even_batch(LANTERN_70B, FOUR, 2000, 0.0, 1, 0.05) == 1


@pytest.mark.parametrize("bad", [-0.1, 1.1, float("nan"), "0.8", True, None])
def test_acceptance_outside_a_chance_is_refused(bad: object) -> None:
    with pytest.raises(ValueError, match="^acceptance must be "):
        speculative.expected_tokens(bad, 4)  # type: ignore[arg-type]


@pytest.mark.parametrize("bad", [0, -1, 2.5, True])
def test_a_draft_has_a_whole_length(bad: object) -> None:
    with pytest.raises(ValueError, match="^draft_len must be a whole number of 1 or more, got "):
        speculative.speedup(0.8, bad, 0.05)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="^draft_len must be a whole number of 1 or more, got "):
        speculative.verify_step(LANTERN_70B, FOUR, 1, 2000, bad)  # type: ignore[arg-type]


def test_costs_are_checked() -> None:
    with pytest.raises(ValueError, match="^draft_cost must be a finite number of 0 or more"):
        speculative.speedup(0.8, 4, -0.05)
    with pytest.raises(ValueError, match="^check_cost must be a finite number above 0"):
        speculative.speedup(0.8, 4, 0.05, check_cost=0)
