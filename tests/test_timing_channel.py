"""How well a time difference can be told from noise, against an observer who tries."""

from __future__ import annotations

import numpy as np
import pytest

from lantern_lib.timing_channel import error_rate, samples_needed


@pytest.mark.parametrize(("signal", "jitter", "samples"), [(1.0, 1.0, 1), (0.5, 1.0, 9), (0.1, 0.5, 100)])
def test_an_observer_errs_as_often_as_the_formula_says(signal: float, jitter: float, samples: int) -> None:
    rng = np.random.default_rng(4)
    tries = 20_000
    quiet = rng.normal(0.0, jitter, (tries, samples)).mean(axis=1)
    busy = rng.normal(signal, jitter, (tries, samples)).mean(axis=1)
    wrong = ((quiet > signal / 2).mean() + (busy <= signal / 2).mean()) / 2
    assert error_rate(signal, jitter, samples) == pytest.approx(wrong, abs=4 * (wrong / tries) ** 0.5)


@pytest.mark.parametrize("signal", [1e-5, 1e-3, 0.03, 0.2])
@pytest.mark.parametrize("error", [0.001, 0.01, 0.1])
def test_the_samples_are_enough_and_one_less_is_not(signal: float, error: float) -> None:
    count = samples_needed(signal, 0.01, error)
    assert error_rate(signal, 0.01, count) <= error * (1 + 1e-9)
    if count > 1:
        assert error_rate(signal, 0.01, count - 1) > error


def test_a_tenfold_jitter_needs_a_hundredfold_patience() -> None:
    assert samples_needed(1e-4, 1e-2) / samples_needed(1e-4, 1e-3) == pytest.approx(100, rel=1e-3)


@pytest.mark.parametrize("bad", [0, 0.5, 0.7, -1])
def test_an_error_is_below_that_of_a_coin(bad: float) -> None:
    with pytest.raises(ValueError, match="^error must be"):
        samples_needed(1e-3, 1e-3, bad)


def test_bad_arguments_are_named() -> None:
    with pytest.raises(ValueError, match="^signal_seconds must be"):
        samples_needed(0, 1e-3)
    with pytest.raises(ValueError, match="^jitter_seconds must be"):
        error_rate(1e-3, 0, 1)
    with pytest.raises(ValueError, match="^num_samples must be"):
        error_rate(1e-3, 1e-3, 0)
