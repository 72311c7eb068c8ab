"""A calibrated engine predicts what it was not fitted to: another workload, and the second half of two real runs."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lantern_lib import A100, Accelerator, ModelConfig, Replica
from lantern_lib.hardware import NVLINK_3
from lantern_lib.metrics import summary
from lantern_lib.simulator import EngineConfig, StepModel, calibrate, engine_for, simulate, simulate_by_steps
from lantern_lib.workload import Exponential, Workload, poisson

Column = np.ndarray[Any, np.dtype[np.float64]]
LLAMA_8B = ModelConfig("Llama 3.1 8B", 32, 4096, 14336, 32, 8, 128, 128256)


def test_a_fit_predicts_another_workload() -> None:
    """Measured here is the loop of steps, not the engine that the fit runs."""
    truth = engine_for(
        LLAMA_8B, Replica(A100, 1, 0.4, 0.65), overhead_seconds=0.003, prefill="chunked", token_budget=512, max_batch=64
    )
    light, heavy = (
        poisson(150, rate, Exponential(700), Exponential(120), np.random.default_rng(seed))
        for rate, seed in ((2.0, 31), (9.0, 32))
    )
    fit = calibrate(LLAMA_8B, A100, light, simulate_by_steps(light, truth), truth)
    assert fit.error < 0.01
    assert "ms a step" in fit.summary
    predicted, measured = summary(simulate(heavy, fit.config)), summary(simulate_by_steps(heavy, truth))
    assert predicted.tpot.mean == pytest.approx(measured.tpot.mean, rel=0.03)
    assert predicted.duration_seconds == pytest.approx(measured.duration_seconds, rel=0.03)


def test_a_fit_needs_a_request() -> None:
    work = poisson(3, 1.0, 10, 10, np.random.default_rng(1))
    config = EngineConfig(StepModel(weight_seconds=1.0))
    with pytest.raises(ValueError, match="used must hold at least one request"):
        calibrate(LLAMA_8B, A100, work, simulate(work, config), config, used=np.full(3, False))


@dataclass(frozen=True)
class Log:
    """The times that an engine logged, as columns."""

    arrival_seconds: Column
    first_token_seconds: Column
    last_token_seconds: Column
    output_len: np.ndarray[Any, np.dtype[np.int64]]


#: Folder, peaks of the card, blocks that the engine reported (None: far more than it used), most sequences.
RUNS = {
    "RTX4090": (165e12, 1.008e12, 2588, 256),
    "RTXPRO6000": (504e12, 1.792e12, None, 128),
}


@pytest.mark.parametrize("card", RUNS)
def test_the_first_half_of_a_real_run_predicts_the_second(card: str, outside: Callable[[str], Path]) -> None:
    """300 conversations, ten new ones a second, on vLLM 0.19: fitted to those that were over first."""
    path = outside(f"traces/vllm/vllm_{card}_Llama-3.1-8B/requests.jsonl")
    lines = sorted((json.loads(line) for line in path.read_text().splitlines()), key=lambda line: line["queued_ts"])
    begin = lines[0]["queued_ts"]
    queued, first, last = (
        np.array([line[name] - begin for line in lines]) for name in ("queued_ts", "first_token_ts", "last_token_ts")
    )
    prompts, outputs = (np.array([line[name] for line in lines]) for name in ("input_toks", "output_toks"))
    peak, bandwidth, num_blocks, max_batch = RUNS[card]
    config = EngineConfig(
        StepModel(weight_seconds=1.0),
        max_batch=max_batch,
        prefill="chunked",
        token_budget=2048,
        num_blocks=num_blocks or 40_000,
        admission="blocks",
    )
    early = last <= np.median(last)
    work, log = Workload(queued, prompts, outputs), Log(queued, first, last, outputs)
    fit = calibrate(LLAMA_8B, Accelerator(card, 24e9, bandwidth, peak, NVLINK_3), work, log, config, used=early)
    got = simulate(work, fit.config)
    assert bool(got.num_preemptions.sum()) == (num_blocks is not None)
    late = ~early
    pace = [((run.last_token_seconds - run.first_token_seconds) / (outputs - 1))[late].mean() for run in (got, log)]
    assert pace[0] == pytest.approx(pace[1], rel=0.05)
    assert got.last_token_seconds.max() == pytest.approx(last.max(), rel=0.05)
    if num_blocks is not None:
        # A wrong pool is the error that no efficiency mends.
        endless = simulate(work, replace(fit.config, num_blocks=12_500))
        assert endless.last_token_seconds.max() < 0.8 * last.max()
