"""Fits against machines that we made, and against published numbers that the fit did not see."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from lantern_lib import H100, step
from lantern_lib.bounded_fit import student_quantile
from lantern_lib.calibration import MOVED_ERROR, Fit, calibrate, moved
from lantern_lib.measurements import MODELS, Measurement, floor, read_measurements
from lantern_lib.spreads import measured_spread, peak_replica

TABLE = read_measurements(Path(__file__).resolve().parent.parent / "book" / "data" / "measured.csv")
ONE = Measurement("m", "a log", "", "Llama-3-8B", "H100", "bf16", "vLLM", 1, 1, 512, 0, 512, "tpot", 0.01)


def timed(one: Measurement, truth: tuple[float, float, float], factor: float = 1.0) -> Measurement:
    """Return the measurement with the time that a machine of three known numbers would take."""
    least = floor(one)
    steps = one.output_len if one.work == "both" else 1
    seconds = max(least.compute_seconds / truth[0], least.memory_seconds / truth[1]) + steps * truth[2]
    value = (one.batch_size or 1) * one.output_len / seconds if one.work == "both" else seconds
    return replace(one, value=value * factor)


def series(truth: tuple[float, float, float], noise: Sequence[float] = ()) -> list[Measurement]:
    decode = [replace(ONE, batch_size=batch, context_len=2000) for batch in (1, 4, 16, 64, 128)]
    prompts = [replace(ONE, metric="ttft", prompt_len=length) for length in (500, 1000, 2000, 4000, 8000)]
    whole = [replace(ONE, metric="output_throughput", batch_size=8, prompt_len=256, output_len=64)]
    runs = [*decode, *prompts, *whole]
    factors = noise or [1.0] * len(runs)
    return [timed(one, truth, factor) for one, factor in zip(runs, factors, strict=True)]


@pytest.mark.parametrize("truth", [(0.5, 0.8, 0.001), (0.3, 0.4, 0.0), (0.9, 0.9, 0.005), (0.18, 0.84, 0.0002)])
def test_a_machine_without_noise_is_found_again(truth: tuple[float, float, float]) -> None:
    fit = calibrate(series(truth))
    found = (fit.compute_efficiency.value, fit.bandwidth_efficiency.value, fit.overhead_seconds.value)
    assert found == pytest.approx(truth, rel=1e-6, abs=1e-9)
    assert fit.scatter < 1e-9
    assert (fit.replica.compute_efficiency, fit.replica.bandwidth_efficiency) == pytest.approx(truth[:2])


def test_intervals_hold_the_truth_as_often_as_they_say() -> None:
    """Of 200 noisy machines: each of three numbers in its interval, and the next measurement too."""
    rng = np.random.default_rng(20261130)
    truth = (0.4, 0.7, 0.002)
    held = np.zeros(4)
    for _ in range(200):
        fit = calibrate(series(truth, list(np.exp(rng.normal(0.0, 0.05, 11)))))
        parts = (fit.compute_efficiency, fit.bandwidth_efficiency, fit.overhead_seconds)
        held[:3] += [part.low <= true <= part.high for part, true in zip(parts, truth, strict=True)]
        new = timed(replace(ONE, batch_size=32, context_len=1000), truth, float(np.exp(rng.normal(0.0, 0.05))))
        guess = fit.predict(floor(new).compute_seconds, floor(new).memory_seconds)
        held[3] += guess.low_seconds <= new.measured_seconds <= guess.high_seconds
    assert (held / 200 > 0.9).all(), held


def test_decode_alone_says_nothing_of_arithmetic() -> None:
    runs = [one for one in series((0.5, 0.8, 0.001)) if one.work == "decode"]
    fit = calibrate(runs)
    assert not fit.compute_efficiency.determined
    assert fit.bandwidth_efficiency.value == pytest.approx(0.8)
    assert "undetermined of peak arithmetic" in fit.summary
    with pytest.raises(ValueError, match="^compute_efficiency must be determined.*Measure long prompts"):
        fit.predict(1.0, 0.1)


def test_a_step_is_predicted_from_its_cost_at_the_peaks() -> None:
    fit = calibrate(series((0.5, 0.8, 0.001)))
    cost = step.decode_step(MODELS["Llama-3-8B"], peak_replica(H100), 16, 2000)
    real = step.decode_step(MODELS["Llama-3-8B"], fit.replica, 16, 2000)
    assert fit.predict_step(cost).seconds == pytest.approx(real.total_seconds + 0.001)


@pytest.mark.parametrize(
    ("field", "value"), [("card", "A100-80"), ("tp_size", 2), ("precision", "fp8")], ids=lambda x: str(x)
)
def test_two_machines_are_not_one(field: str, value: object) -> None:
    runs = series((0.5, 0.8, 0.001))
    with pytest.raises(ValueError, match=f"^{field} must be one for all measurements, got"):
        calibrate([*runs, replace(runs[0], **{field: value})])  # type: ignore[arg-type]


def test_too_few_and_unusable_measurements() -> None:
    runs = series((0.5, 0.8, 0.001))
    with pytest.raises(ValueError, match="^measurements must hold one"):
        calibrate([replace(runs[0], rejected="wrong")])
    with pytest.raises(ValueError, match="^measurements must be more than the 2 numbers they determine, got 2"):
        calibrate(runs[:2])
    with pytest.raises(ValueError, match="^batch_size must be known, got none for m"):
        calibrate([*runs, replace(runs[-1], batch_size=None)])
    assert calibrate([*runs, replace(runs[0], value=99.0, rejected="wrong")]) == calibrate(runs)


def test_numbers_do_not_travel_unsaid() -> None:
    fit = calibrate(series((0.5, 0.8, 0.001)))
    assert moved(fit, "H100") is fit
    with pytest.raises(ValueError, match="^card must be H100 with 1 GPUs, got H100 with 4"):
        moved(fit, "H100", 4)
    with pytest.raises(ValueError, match="^card must be one of"):
        moved(fit, "TPU", knowingly=True)
    guess = moved(fit, "RTX4090", knowingly=True)
    assert "moved from 1 × H100 SXM" in guess.summary
    near, far = fit.predict(0.0, 0.01), guess.predict(0.0, 0.01)
    assert far.high_seconds / far.seconds - 1 > MOVED_ERROR
    assert far.high_seconds - far.low_seconds > near.high_seconds - near.low_seconds
    assert "1 × H100 SXM" in far.why


def group(card: str, tp_size: int, precision: str) -> list[Measurement]:
    wanted = (card, tp_size, precision)
    runs = [one for one in TABLE if (one.card, one.tp_size, one.precision) == wanted and not one.rejected]
    return [one for one in runs if one.work != "both" or one.batch_size is not None]


def look_at(fit: Fit, one: Measurement) -> tuple[bool, float]:
    least = floor(one)
    guess = fit.predict(least.compute_seconds, least.memory_seconds, one.output_len if one.work == "both" else 1)
    assert guess.low_seconds >= least.seconds * (1 - 1e-12)
    return guess.low_seconds <= one.measured_seconds <= guess.high_seconds, guess.seconds / one.measured_seconds


@pytest.mark.parametrize("machine", [("H100", 4, "fp16"), ("H100", 2, "fp8")], ids=str)
def test_published_runs_that_the_fit_did_not_see(machine: tuple[str, int, str]) -> None:
    """Each left out in turn: the interval holds it, and the guess is within a half."""
    runs = group(*machine)
    assert len(runs) >= 8
    seen = [look_at(calibrate([other for other in runs if other is not one]), one) for one in runs]
    assert sum(inside for inside, _ in seen) >= 0.85 * len(seen)
    assert all(0.5 < ratio < 1.5 for _, ratio in seen)


def test_the_measured_spreads() -> None:
    """Single streams of 7B to 72B in 16 bits, and prompts of 1,000 tokens and more, without the rejected series."""
    one, many = measured_spread(TABLE, "decode", 2), measured_spread(TABLE, "decode", 8)
    prompts = measured_spread(TABLE, "prefill")
    assert (round(one.low, 2), round(one.high, 2)) == (0.55, 0.84)
    assert 0.17 <= many.low < 0.2
    assert round(many.high, 2) == 0.64
    assert prompts.low >= 0.18
    assert round(prompts.high, 2) == 0.75
    guess = one.predict(0.01)
    assert guess.low_seconds < guess.seconds < guess.high_seconds
    assert guess.high_seconds == pytest.approx(0.01 / one.low)
    assert f"{one.num_rows} measurements" in guess.summary
    with pytest.raises(ValueError, match="^work must be"):
        measured_spread(TABLE, "both")
    with pytest.raises(ValueError, match="^measurements must hold prefill"):
        measured_spread([ONE], "prefill")


@pytest.mark.parametrize(
    ("freedom", "quantile"),
    [(1, 12.706), (2, 4.303), (3, 3.182), (5, 2.571), (10, 2.228), (30, 2.042), (10_000, 1.960)],
)
def test_student_against_the_printed_table(freedom: int, quantile: float) -> None:
    assert student_quantile(freedom) == pytest.approx(quantile, abs=0.0006)
    assert math.isfinite(student_quantile(freedom, 0.999))
