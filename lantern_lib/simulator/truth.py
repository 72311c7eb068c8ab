"""Hold the simulator against two real runs, and boil the comparison down to the small file that the book shows.

``python -m lantern_lib.simulator.truth TRACES OUT DATE`` reads the folder TRACES (``vllm/vllm_*/requests.jsonl`` and
``mooncake_conversation.jsonl``) and writes OUT. Nothing of a log or a trace but means and shares is kept.
"""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lantern_lib.book_data import significant, write_data
from lantern_lib.hardware import NVLINK_3, Accelerator, Replica
from lantern_lib.kv_cache import memory_budget
from lantern_lib.metrics import Columns
from lantern_lib.model_config import ModelConfig
from lantern_lib.simulator.calibration import Calibration, calibrate
from lantern_lib.simulator.config import EngineConfig
from lantern_lib.simulator.cost import StepModel, step_model
from lantern_lib.simulator.run import simulate
from lantern_lib.units import GB, TB, TFLOPS
from lantern_lib.workload.requests import Workload
from lantern_lib.workload.traces import read_mooncake, read_request_log

LLAMA_8B = ModelConfig(
    "Llama 3.1 8B", 32, 4096, 14336, 32, 8, 128, 128256, source="config.json of meta-llama/Llama-3.1-8B"
)
#: Blocks of 16 tokens that hold all of a run's conversations at once.
ENDLESS = 40_000
#: Sizes of a cache for the public trace [blocks of 512 tokens].
CACHE_BLOCKS = (1_000, 10_000, 50_000, 100_000, 1_000_000)
SOURCES = {
    "vllm": ("LLMServingSim 2.0, logs of vLLM 0.19.0 with 300 ShareGPT conversations at ten a second", "MIT"),
    "mooncake": ("Mooncake, FAST 2025 release, conversation trace", "Apache-2.0"),
}


@dataclass(frozen=True)
class MeasuredRun:
    """One card, how its engine was set, and what its log says of memory.

    ``memory_bytes`` is the device's memory as the log has it, 0 where it has none; ``num_blocks`` the blocks that the
    engine gave out, None where the log does not say.
    """

    folder: str
    card: Accelerator
    max_batch: int
    num_blocks: int | None
    device_bytes: int = 0


# One card each, so the link between cards is never used.
RUNS = {
    "RTX 4090": MeasuredRun(
        "vllm_RTX4090_Llama-3.1-8B",
        Accelerator("RTX 4090", 24 * GB, 1.008 * TB, 165 * TFLOPS, NVLINK_3, source="NVIDIA data sheet, as quoted"),
        256,
        2588,
        25_250_627_584,
    ),
    "RTX PRO 6000": MeasuredRun(
        "vllm_RTXPRO6000_Llama-3.1-8B",
        Accelerator("RTX PRO 6000", 96 * GB, 1.792 * TB, 504 * TFLOPS, NVLINK_3, source="NVIDIA data sheet, as quoted"),
        128,
        None,
    ),
}


def measures(run: Columns, used: NDArray[np.bool_]) -> dict[str, float]:
    """Return the three numbers by which runs are compared.

    Parameters
    ----------
    run : Columns
        Records of all requests, each with two tokens or more.
    used : array of bool, shape (n,)
        Which requests to take the means of.

    Returns
    -------
    dict of str to float
        Mean TTFT, mean TPOT, and the time of the last token of all [seconds].

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> times = {"first_token_seconds": np.array([1.0]), "last_token_seconds": np.array([3.0])}
    >>> run = SimpleNamespace(arrival_seconds=np.array([0.5]), output_len=np.array([11]), **times)
    >>> measures(run, np.array([True]))
    {'ttft': 0.5, 'tpot': 0.2, 'makespan': 3.0}
    """
    pace = (run.last_token_seconds - run.first_token_seconds) / (run.output_len - 1)
    wait = run.first_token_seconds - run.arrival_seconds
    found = {"ttft": wait[used].mean(), "tpot": pace[used].mean(), "makespan": run.last_token_seconds.max()}
    return {name: significant(float(value)) for name, value in found.items()}


@dataclass(frozen=True)
class _Log:
    arrival_seconds: NDArray[np.float64]
    first_token_seconds: NDArray[np.float64]
    last_token_seconds: NDArray[np.float64]
    output_len: NDArray[np.int64]


@dataclass(frozen=True)
class _Fitted:
    run: MeasuredRun
    work: Workload
    log: _Log
    early: NDArray[np.bool_]
    fit: Calibration

    def predicted(self, config: EngineConfig) -> dict[str, float]:
        """Measures of the half that was not fitted to, with the number of preemptions of the whole run."""
        result = simulate(self.work, config)
        return measures(result, ~self.early) | {"preemptions": int(result.num_preemptions.sum())}


def _fit(folder: Path, run: MeasuredRun) -> _Fitted:
    read = read_request_log(folder / run.folder / "requests.jsonl")
    # The engine's own clock: what a client adds before and after is not the simulator's to know.
    order = np.argsort(read.queued_seconds, kind="stable")
    begin = read.queued_seconds.min()
    columns = (read.queued_seconds, read.first_token_seconds, read.last_token_seconds)
    queued, first, last = (column[order] - begin for column in columns)
    prompts, outputs = read.workload.prompt_len[order], read.workload.output_len[order]
    work, log = Workload(queued, prompts, outputs), _Log(queued, first, last, outputs)
    config = EngineConfig(
        StepModel(weight_seconds=1.0),
        max_batch=run.max_batch,
        prefill="chunked",
        token_budget=2048,
        num_blocks=run.num_blocks or ENDLESS,
        admission="blocks",
    )
    early = log.last_token_seconds <= np.median(log.last_token_seconds)
    return _Fitted(run, work, log, early, calibrate(LLAMA_8B, run.card, work, log, config, used=early))


def _costs(run: MeasuredRun, compute: float, bandwidth: float, overhead: float) -> StepModel:
    return step_model(LLAMA_8B, Replica(run.card, 1, compute, bandwidth), overhead_seconds=overhead)


def _slower(cost: StepModel, factor: float) -> StepModel:
    times = {name: factor * value for name, value in vars(cost).items() if name.endswith("_seconds")}
    return replace(cost, **times)


def _compare(fitted: _Fitted, other: Calibration) -> dict[str, Any]:
    run, fit = fitted.run, fitted.fit
    three = (fit.replica.compute_efficiency, fit.replica.bandwidth_efficiency, fit.overhead_seconds)
    theirs = (other.replica.compute_efficiency, other.replica.bandwidth_efficiency, other.overhead_seconds)
    settings = {
        "fit": fit.config,
        "other": replace(fit.config, cost=_costs(run, *theirs)),
        "course": replace(fit.config, cost=_costs(run, 0.5, 0.8, 0.0)),
        "floor": replace(fit.config, cost=_costs(run, 1.0, 1.0, 0.0)),
        "slower": replace(fit.config, cost=_slower(fit.config.cost, 1.05)),
    }
    row: dict[str, Any] = {"requests": len(fitted.work), "held_out": int((~fitted.early).sum())}
    if run.num_blocks:
        device = replace(run.card, memory_bytes=float(run.device_bytes))
        tokens = memory_budget(LLAMA_8B, Replica(device, 1), reserve=0.1).pool_bytes / (2 * 32 * 8 * 128 * 2)
        settings["fraction"] = replace(fit.config, num_blocks=int(tokens // 16))
        settings["endless"] = replace(fit.config, num_blocks=ENDLESS)
        row |= {"pool_tokens": 16 * run.num_blocks, "fraction_tokens": 16 * int(tokens // 16)}
    row["fitted"] = dict(zip(("compute", "bandwidth", "overhead"), (significant(x) for x in three), strict=True))
    row |= {"fit_runs": fit.num_runs, "max_batch": run.max_batch}
    row["measured"] = measures(fitted.log, ~fitted.early)
    row["settings"] = {name: fitted.predicted(config) for name, config in settings.items()}
    return row


def cache_reuse(work: Workload, num_blocks: int) -> float:
    """Return the share of a trace's named blocks that the simulator's prefix cache finds.

    Parameters
    ----------
    work : Workload
        Requests with named blocks.
    num_blocks : int
        Size of the cache [blocks].

    Returns
    -------
    float
        Blocks found over all blocks asked for, those of a prompt's end that are not full among them [ratio].

    Notes
    -----
    Served one at a time with answers of one token, so that the cache holds prompts only and the order is the
    trace's: what remains is the cache's own rule. Compare ``workload.statistics.reuse_share``, which plays no engine.

    Examples
    --------
    >>> from lantern_lib.workload import Request
    >>> rows = [Request(float(i), 33, 1, prefix_blocks=(1, 2)) for i in range(2)]
    >>> round(cache_reuse(Workload.from_requests(rows, block_size=16), 8), 2)
    0.33
    """
    alone = replace(work, output_len=np.ones(len(work), np.int64))
    config = EngineConfig(
        StepModel(weight_seconds=1e-9),
        max_batch=1,
        num_blocks=num_blocks,
        block_size=work.block_size,
        prefix_cache=True,
    )
    found = simulate(alone, config).cached_len.sum() // work.block_size
    return float(found / (-(-work.prompt_len // work.block_size)).sum())


def summarise(folder: str | Path, date: str) -> dict[str, Any]:
    """Return the comparison with both runs, and the reuse of the public trace.

    Parameters
    ----------
    folder : str or Path
        The folder of the logs and the trace [text].
    date : str
        The day the files were fetched [text].

    Returns
    -------
    dict
        What ``book/data/vllm_runs.json`` holds.

    Raises
    ------
    ValueError
        If a file is not in its format.
    OSError
        If one is missing.

    Examples
    --------
    >>> summarise("no such folder", "2026-11-29")  # doctest: +IGNORE_EXCEPTION_DETAIL
    Traceback (most recent call last):
    ...
    FileNotFoundError: no such folder/vllm/vllm_RTX4090_Llama-3.1-8B/requests.jsonl
    """
    folder = Path(folder)
    fitted = {name: _fit(folder / "vllm", run) for name, run in RUNS.items()}
    first, second = fitted
    others = {first: second, second: first}
    trace = read_mooncake(folder / "mooncake_conversation.jsonl").workload
    return {
        "sources": {key: {"source": s, "licence": terms, "date": date} for key, (s, terms) in SOURCES.items()},
        "runs": {name: _compare(each, fitted[others[name]].fit) for name, each in fitted.items()},
        "mooncake": {
            "block_size": trace.block_size,
            "lru": [[blocks, significant(cache_reuse(trace, blocks))] for blocks in CACHE_BLOCKS],
        },
    }


def _text(folder: str, date: str) -> str:
    return json.dumps(summarise(folder, date), allow_nan=False, indent=1) + "\n"


#: Read the logs, and write the comparison to the file that is named.
main = partial(write_data, "lantern_lib.simulator.truth TRACES OUT DATE", make=_text)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
