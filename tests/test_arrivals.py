"""Drawn workloads have the moments they promise."""

from __future__ import annotations

import numpy as np
import pytest

from lantern_lib.workload import Exponential, Lognormal, Mixture, at_once, evenly, gamma, poisson


@pytest.mark.parametrize("cv", [0.5, 1.0, 3.0])
def test_gaps_have_the_mean_and_the_variation_that_were_asked_for(cv: float) -> None:
    count = 200_000
    work = gamma(count, 5.0, cv, 10, 10, np.random.default_rng(7))
    gaps = np.diff(work.arrival_seconds, prepend=0.0)
    assert gaps.mean() == pytest.approx(0.2, abs=5 * 0.2 * cv / count**0.5)
    assert gaps.std() / gaps.mean() == pytest.approx(cv, rel=0.03)


def test_counts_of_a_poisson_stream_vary_as_much_as_their_mean() -> None:
    """The law of rare events, on counts, which the code never draws."""
    work = poisson(200_000, 5.0, 10, 10, np.random.default_rng(8))
    counts = np.bincount((work.arrival_seconds / 2).astype(int))[:-1]
    assert counts.mean() == pytest.approx(10, rel=0.01)
    assert counts.var() / counts.mean() == pytest.approx(1, abs=0.03)


def test_lengths_have_their_moments() -> None:
    generator = np.random.default_rng(9)
    short = Exponential(400).draw(200_000, generator)
    assert short.min() == 1
    assert short.mean() == pytest.approx(400, rel=0.01)
    assert short.std() == pytest.approx((400 * 399) ** 0.5, rel=0.02)  # geometric: sqrt(1 − p) / p
    long = Lognormal(1000, 1.0).draw(200_000, generator)
    assert np.median(long) == pytest.approx(1000, rel=0.02)
    assert long.mean() == pytest.approx(1000 * np.exp(0.5), rel=0.02)
    assert Lognormal(1000, 1.0, maximum=1500).draw(1000, generator).max() == 1500
    kinds = Mixture(((3, 10), (1, Exponential(100)))).draw(100_000, generator)
    assert kinds.mean() == pytest.approx(0.75 * 10 + 0.25 * 100, rel=0.03)


def test_a_seed_repeats_a_workload() -> None:
    first, second, other = (poisson(50, 2.0, 10, Exponential(9), np.random.default_rng(s)) for s in (3, 3, 4))
    assert list(first) == list(second) != list(other)


def test_what_needs_no_chance_takes_none() -> None:
    assert evenly(4, 4.0, 10, 2).arrival_seconds.tolist() == [0, 0.25, 0.5, 0.75]
    assert set(at_once(4, 10, 2).arrival_seconds) == {0.0}
    with pytest.raises(ValueError, match="generator .*default_rng"):
        evenly(4, 4.0, Exponential(3), 2)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda g: poisson(10, -1.0, 5, 5, g), "rate .* -1.0"),
        (lambda g: poisson(0, 1.0, 5, 5, g), "num_requests"),
        (lambda g: gamma(10, 1.0, 0.0, 5, 5, g), "cv .* evenly"),
        (lambda g: poisson(10, 1.0, 0, 5, g), "length .* 0"),
        (lambda g: Exponential(0.5), "mean"),
        (lambda g: Lognormal(10, 0.0), "sigma"),
        (lambda g: Mixture(()), "parts"),
        (lambda g: Mixture(((-1, 5),)), "share"),
    ],
)
def test_a_wrong_parameter_is_named(make: object, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        make(np.random.default_rng(0))  # type: ignore[operator]
