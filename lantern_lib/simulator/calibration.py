"""Three numbers that a data sheet does not tell, fitted to a measured run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from lantern_lib import hardware
from lantern_lib.metrics import Columns
from lantern_lib.model_config import ModelConfig
from lantern_lib.simulator.config import EngineConfig
from lantern_lib.simulator.cost import step_model
from lantern_lib.simulator.run import simulate
from lantern_lib.workload.requests import Workload

#: Where the search begins, how far it steps at first, and how finely it ends.
START = (0.6, 0.8, 0.001)
FIRST_STEPS = (0.1, 0.1, 0.001)
LAST_STEPS = (0.004, 0.004, 0.00004)


@dataclass(frozen=True)
class Calibration:
    """What a measured run says about a machine.

    ``config`` is the engine with these costs, ``error`` what was left between simulation and measurement over the
    requests that were used [ratio], and ``num_runs`` how many simulations the search took.
    """

    replica: hardware.Replica
    overhead_seconds: float
    config: EngineConfig
    error: float
    num_runs: int

    @property
    def summary(self) -> str:
        """One line with the three numbers."""
        return (
            f"{self.replica.compute_efficiency:.3g} of peak arithmetic, {self.replica.bandwidth_efficiency:.3g} of peak"
            f" bandwidth, {self.overhead_seconds * 1e3:.3g} ms a step; error {self.error:.1%} in {self.num_runs} runs"
        )


def difference(simulated: Columns, measured: Columns, used: NDArray[np.bool_]) -> float:
    """Return how far a simulated run is from a measured one.

    Parameters
    ----------
    simulated, measured : Columns
        Records of the same requests, in the same order.
    used : array of bool, shape (n,)
        Which requests to compare.

    Returns
    -------
    float
        Root mean square of the relative errors of TPOT, plus that of the times of last tokens over the longest of
        them [ratio].

    Notes
    -----
    Not TTFT: near saturation it multiplies a small error of the step's time several times.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> times = {"first_token_seconds": np.array([1.0]), "last_token_seconds": np.array([3.0])}
    >>> run = SimpleNamespace(arrival_seconds=np.array([0.0]), output_len=np.array([11]), **times)
    >>> difference(run, run, np.array([True]))
    0.0
    """
    ends = np.stack([run.last_token_seconds[used] for run in (simulated, measured)])
    firsts = np.stack([run.first_token_seconds[used] for run in (simulated, measured)])
    several = measured.output_len[used] > 1
    spent = (ends - firsts)[:, several]
    pace = spent[0] / spent[1] - 1 if several.any() else np.zeros(1)
    drift = (ends[0] - ends[1]) / ends[1].max()
    return float(np.sqrt(np.mean(pace**2)) + np.sqrt(np.mean(drift**2)))


def calibrate(
    model: ModelConfig,
    accelerator: hardware.Accelerator,
    workload: Workload,
    measured: Columns,
    config: EngineConfig,
    *,
    used: NDArray[np.bool_] | None = None,
    tp_size: int = 1,
) -> Calibration:
    """Fit two efficiencies and an overhead to a measured run.

    Parameters
    ----------
    model : ModelConfig
        The shape.
    accelerator : Accelerator
        The card with its peaks.
    workload : Workload
        What was sent, at the times when it was.
    measured : Columns
        What came back, one record for each request of the workload, on the workload's clock.
    config : EngineConfig
        The engine's settings, its number of blocks above all; its costs are replaced.
    used : array of bool, shape (n,), optional
        Which requests to fit to; keep the others to test the result on. All if not given.
    tp_size : int
        Accelerators that share the model [count].

    Returns
    -------
    Calibration
        The fit.

    Raises
    ------
    ValueError
        If there is no request to fit to.

    Notes
    -----
    A pattern search: step in one number at a time while :func:`difference` falls, then halve the steps. The result is
    the best near the start, which is enough for three numbers that each push the times one way. It says nothing
    about another card, and with a wrong number of blocks it fits nonsense.

    Examples
    --------
    >>> from lantern_lib import A100, LANTERN_70B, Replica
    >>> from lantern_lib.simulator import engine_for
    >>> from lantern_lib.workload import evenly
    >>> work = evenly(20, 1.0, 500, 50)
    >>> truth = engine_for(LANTERN_70B, Replica(A100, 4, 0.7, 0.75), overhead_seconds=0.002)
    >>> fit = calibrate(LANTERN_70B, A100, work, simulate(work, truth), truth, tp_size=4)
    >>> fit.error < 0.005
    True
    """
    chosen = np.full(len(workload), True) if used is None else used
    if not chosen.any():
        raise ValueError("used must hold at least one request, got none.")

    def engine(point: tuple[float, ...]) -> EngineConfig:
        replica = hardware.Replica(accelerator, tp_size, point[0], point[1])
        return replace(config, cost=step_model(model, replica, overhead_seconds=point[2]))

    def error(point: tuple[float, ...]) -> float:
        if not (0 < point[0] <= 1 and 0 < point[1] <= 1 and point[2] >= 0):
            return float("inf")
        return difference(simulate(workload, engine(point)), measured, chosen)

    point, best, num_runs = _search(error)
    replica = hardware.Replica(accelerator, tp_size, point[0], point[1])
    return Calibration(replica, point[2], engine(point), best, num_runs)


def _search(error: Callable[[tuple[float, ...]], float]) -> tuple[tuple[float, ...], float, int]:
    point: tuple[float, ...] = START
    steps: tuple[float, ...] = FIRST_STEPS
    best, num_runs = error(point), 1
    while any(step > last for step, last in zip(steps, LAST_STEPS, strict=True)):
        before = best
        for axis in range(len(point)):
            for sign in (1, -1):
                moved = (*point[:axis], point[axis] + sign * steps[axis], *point[axis + 1 :])
                tried = error(moved)
                num_runs += 1
                if tried < best:
                    point, best = moved, tried
                    break
        if best == before:
            steps = tuple(step / 2 for step in steps)
    return point, best, num_runs
