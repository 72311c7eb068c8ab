"""Failures of fleets against simulated lifetimes and enumerated states."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from lantern_lib import reliability


def test_the_first_failure_of_many_comes_as_much_sooner() -> None:
    lives = np.random.default_rng(3).exponential(1000.0, size=(40_000, 8))
    first = lives.min(axis=1)
    assert reliability.seconds_between_failures(1000, 8) == pytest.approx(first.mean(), rel=0.02)


def test_the_published_log_is_given_back() -> None:
    """16,384 GPUs, 54 days, 419 interruptions: one about every three hours."""
    part_hours = 54 * 24 * 16_384 / 419
    assert reliability.seconds_between_failures(part_hours, 16_384) == pytest.approx(3.1, abs=0.05)


def test_a_group_stands_still_as_long_as_in_a_simulated_life() -> None:
    rng = np.random.default_rng(5)
    works = rng.exponential(900.0, size=(30_000, 3)).min(axis=1)
    assert reliability.group_availability(900, 3, 100) == pytest.approx(works.sum() / (works + 100).sum(), abs=0.005)


@pytest.mark.parametrize(
    ("needed", "works", "confidence"), [(1, 0.5, 0.9), (3, 0.9, 0.99), (4, 0.8, 0.999), (2, 1.0, 0.9)]
)
def test_spares_by_going_through_every_state(needed: int, works: float, confidence: float) -> None:
    def enough(owned: int) -> float:
        states = product((0, 1), repeat=owned)
        return sum(np.prod([works if up else 1 - works for up in state]) for state in states if sum(state) >= needed)

    expected = next(n for n in range(needed, 16) if enough(n) >= confidence)
    assert reliability.groups_to_own(needed, works, confidence) == expected


def test_bad_arguments_are_named() -> None:
    with pytest.raises(ValueError, match="num_parts must be"):
        reliability.seconds_between_failures(1, 0)
    with pytest.raises(ValueError, match="confidence must be below 1"):
        reliability.groups_to_own(1, 0.9, 1)
