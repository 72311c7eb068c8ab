"""One point of a sweep: a named setting under a drawn load, and what it measures as plain numbers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from lantern_lib.hardware import A100, H100, H200, Replica
from lantern_lib.metrics import Slo, summary
from lantern_lib.model_config import LANTERN_70B, ModelConfig
from lantern_lib.simulator.config import engine_for
from lantern_lib.simulator.run import simulate
from lantern_lib.units import require_one_of
from lantern_lib.workload.arrivals import Exponential, Lengths, gamma

#: Model and machine by the name that a point gives.
SETTINGS: dict[str, tuple[ModelConfig, Replica]] = {
    name: (LANTERN_70B, Replica(accelerator, tp_size))
    for name, accelerator, tp_size in (
        ("lantern-4xh100", H100, 4),
        ("lantern-8xh100", H100, 8),
        ("lantern-4xh200", H200, 4),
        ("lantern-4xa100", A100, 4),
    )
}
_LOAD: dict[str, Any] = {
    "setting": "lantern-4xh100",
    "rate": 1.0,
    "cv": 1.0,
    "num_requests": 1000,
    "prompt_len": 2000,
    "output_len": 400,
    "vary_lengths": False,
    "seed": 1,
    "warm_up_seconds": 0.0,
    "ttft_slo_seconds": None,
    "tpot_slo_seconds": None,
}


def run_point(point: Mapping[str, Any]) -> dict[str, float]:
    """Simulate one point and summarise it.

    Parameters
    ----------
    point : mapping
        What differs from the defaults: ``setting`` (a name in :data:`SETTINGS`), ``rate`` [requests/s], ``cv`` of the
        gaps [ratio], ``num_requests``, mean ``prompt_len`` and ``output_len`` [tokens], ``vary_lengths`` (exponential
        lengths), ``seed``, ``warm_up_seconds`` and two limits ``ttft_slo_seconds`` and ``tpot_slo_seconds`` [seconds].
        Any other name is a setting of ``engine_for``, such as ``max_batch``.

    Returns
    -------
    dict
        Times [seconds], throughputs [requests/s, tokens/s] and counts, by name.

    Raises
    ------
    ValueError
        If a value is out of range or the setting has no such name.
    TypeError
        If the engine has no setting of a name.

    Notes
    -----
    The seed is the point's own, so that a point gives the same numbers on every machine and in any order.

    Examples
    --------
    >>> measured = run_point({"rate": 2.0, "num_requests": 200, "max_batch": 64})
    >>> round(measured["tpot_p95"] * 1e3), round(measured["num_finished"])
    (26, 200)
    """
    load = {name: point.get(name, default) for name, default in _LOAD.items()}
    rules = {name: value for name, value in point.items() if name not in _LOAD}
    require_one_of("setting", load["setting"], SETTINGS)
    prompts: int | Lengths = load["prompt_len"]
    outputs: int | Lengths = load["output_len"]
    if load["vary_lengths"]:
        prompts, outputs = Exponential(load["prompt_len"]), Exponential(load["output_len"])
    generator = np.random.default_rng(load["seed"])
    work = gamma(load["num_requests"], load["rate"], load["cv"], prompts, outputs, generator)
    result = simulate(work, engine_for(*SETTINGS[load["setting"]], **rules))
    limits = (load["ttft_slo_seconds"], load["tpot_slo_seconds"])
    slo = None if limits == (None, None) else Slo(*limits)
    measured = summary(result, slo, warm_up_seconds=load["warm_up_seconds"])
    times = {"ttft": measured.ttft, "tpot": measured.tpot, "e2el": measured.e2el}
    numbers = {f"{name}_{part}": value for name, each in times.items() for part, value in vars(each).items()}
    numbers |= {name: float(value) for name, value in vars(measured).items() if name not in times}
    return numbers | {
        "num_preemptions": float(result.num_preemptions.sum()),
        "cached_share": float(result.cached_len.sum() / result.prompt_len.sum()),
    }
