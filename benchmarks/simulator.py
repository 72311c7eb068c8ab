"""How fast the simulator is, in CPU seconds."""

from __future__ import annotations

import gc
import math
import resource
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from plain_loop import check, step_by_step

from lantern_lib import A100, ModelConfig, Replica
from lantern_lib.simulator import EngineConfig, Result, engine_for, simulate, simulate_by_steps
from lantern_lib.workload import Exponential, Workload, poisson
from lantern_lib.workload.traces import read_azure, read_mooncake

LLAMA_8B = ModelConfig(
    "Llama 3.1 8B", 32, 4096, 14336, 32, 8, 128, 128256, source="config.json of meta-llama/Llama-3.1-8B"
)
MACHINE = Replica(A100)
#: vLLM serves the same card with about so many sequences and tokens a step.
CHUNKED = {"prefill": "chunked", "token_budget": 2048, "admission": "blocks"}


#: Runs of each row; the fastest counts, since other programs only ever add.
REPEATS = 3

Row = dict[str, Any]


def timed(run: Callable[[], Any], repeats: int = REPEATS) -> tuple[Any, float]:
    """Return a run's result and its CPU seconds, without the collector's."""
    best = math.inf
    for _ in range(repeats):
        gc.collect()
        begin = time.process_time()
        result = run()
        best = min(best, time.process_time() - begin)
    return result, best


def heading() -> None:
    """Print the names of the columns."""
    print(
        f"{'setting':58s} {'requests':>9s} {'CPU s':>8s} {'requests/s':>11s} {'events':>7s} {'steps':>8s}"
        f" {'preempt':>7s} {'cached':>7s} {'done':>7s}"
    )


def row(name: str, run: Callable[[], Result]) -> Row:
    """Measure one setting, print its line of the table and return it."""
    result, seconds = timed(run)
    count = len(result)
    measured = {
        "setting": name,
        "requests": count,
        "cpu_seconds": round(seconds, 4),
        "requests_per_cpu_second": round(count / seconds),
        "events_per_request": round(result.num_events / count, 2),
        "steps_per_request": round(result.num_steps / count, 2),
        "preemptions": int(result.num_preemptions.sum()),
        "cached_share": round(float(result.cached_len.sum() / result.prompt_len.sum()), 4),
        "finished_share": round(float(result.finished.mean()), 4),
    }
    name, count, *rest = measured.values()
    print("{:58s} {:9,} {:8.3f} {:11,} {:7.2f} {:8.2f} {:7,} {:7.1%} {:7.1%}".format(name, count, *rest), flush=True)
    return measured


def standard(count: int, seed: int = 1) -> Workload:
    """Three requests a second, prompts of 2,000 and answers of 400."""
    return poisson(count, 3.0, 2000, 400, np.random.default_rng(seed))


def with_prefixes(work: Workload, block_size: int, seed: int = 2) -> Workload:
    """Name the prompts' blocks: half of each prompt belongs to one of 50 families, the rest to itself."""
    generator = np.random.default_rng(seed)
    family = generator.integers(0, 50, len(work))
    each = int(work.prompt_len[0]) // block_size
    names = np.arange(len(work) * each).reshape(len(work), each) + 1_000_000
    names[:, : each // 2] = family[:, None] * 1000 + np.arange(each // 2)
    return Workload(
        work.arrival_seconds,
        work.prompt_len,
        work.output_len,
        block_size=block_size,
        block_ids=names.ravel(),
        block_starts=np.arange(len(work) + 1) * each,
    )


def synthetic() -> list[Row]:
    """The rows that need no trace."""
    work = standard(20_000)
    plain = engine_for(LLAMA_8B, MACHINE, max_batch=128)
    vary = poisson(20_000, 3.0, 2000, Exponential(400), np.random.default_rng(3))
    full = poisson(20_000, 20.0, 2000, 400, np.random.default_rng(4))
    chunked = engine_for(LLAMA_8B, MACHINE, max_batch=128, **CHUNKED)
    small = EngineConfig(chunked.cost, max_batch=128, num_blocks=3000, **CHUNKED)  # type: ignore[arg-type]
    shared = engine_for(LLAMA_8B, MACHINE, max_batch=128, prefix_cache=True, **CHUNKED)
    named = with_prefixes(work, 16)
    return [
        row("plain, cap 128", lambda: simulate(work, plain)),
        row("plain, exponential answers", lambda: simulate(vary, plain)),
        row("plain, 20 requests/s (saturated)", lambda: simulate(full, plain)),
        row("plain settings, general engine", lambda: simulate(work, plain, on_event=lambda engine: None)),
        row("chunked, blocks", lambda: simulate(work, chunked)),
        row("chunked, blocks, small pool: preemption", lambda: simulate(work, small)),
        row("chunked, blocks of 16, prefix cache", lambda: simulate(named, shared)),
    ]


def leaps() -> list[Row]:
    """What leaping over steps gains: against the loop to read, and against a loop that only wants to be fast."""
    plain = engine_for(LLAMA_8B, MACHINE, max_batch=128)
    found = []
    for output, rate in ((40, 10.0), (400, 3.0), (4000, 0.3), (40_000, 0.03)):
        work = poisson(
            max(100, 1_200_000 // output) if output > 400 else 3000, rate, 2000, output, np.random.default_rng(1)
        )
        result, leap = timed(lambda work=work: simulate(work, plain))  # type: ignore[misc]
        check(work, plain, result)
        _, tuned = timed(lambda work=work: step_by_step(work, plain))  # type: ignore[misc]
        _, read = timed(lambda work=work: simulate_by_steps(work, plain), repeats=1)  # type: ignore[misc]
        found.append(
            {
                "output_len": output,
                "rate": rate,
                "requests": len(work),
                "steps_per_request": round(result.num_steps / len(work), 1),
                "leap_cpu_seconds": round(leap, 4),
                "tuned_loop_cpu_seconds": round(tuned, 4),
                "reference_cpu_seconds": round(read, 4),
                "tuned_over_leap": round(tuned / leap, 2),
                "reference_over_leap": round(read / leap, 1),
            }
        )
        print(
            f"answers of {output:6,} tokens, {rate:5.2f} requests/s: {result.num_steps / len(work):7.1f} steps a"
            f" request; CPU seconds: leap {leap:.4f}, tuned loop {tuned:.4f} ({tuned / leap:.1f} times), loop to read"
            f" {read:.3f} ({read / leap:.0f} times)",
            flush=True,
        )
    return found


def traces(folder: Path) -> list[Row]:
    """Whole public traces on one machine, as they come."""
    config = engine_for(LLAMA_8B, MACHINE, max_batch=256, **CHUNKED)
    found = []
    for name in ("azure2023_conv", "azure2023_code"):
        work = read_azure(folder / f"{name}.csv").workload
        found.append(row(f"{name}, chunked, blocks", lambda work=work: simulate(work, config)))  # type: ignore[misc]
    named = read_mooncake(folder / "mooncake_conversation.jsonl").workload
    cached = engine_for(LLAMA_8B, MACHINE, max_batch=256, block_size=512, prefix_cache=True, **CHUNKED)
    found.append(row("mooncake_conversation, chunked, blocks, prefix cache", lambda: simulate(named, cached)))
    return found


def growth() -> dict[str, Any]:
    """A million requests: time for each tenfold, and memory beside the columns."""
    plain = engine_for(LLAMA_8B, MACHINE, max_batch=128)
    found = []
    for count in (10_000, 100_000, 1_000_000):
        work = standard(count)
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        result, spent = timed(lambda work=work: simulate(work, plain), repeats=1)  # type: ignore[misc]
        grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / count * 1024
        found.append({"requests": count, "cpu_seconds": round(spent, 4), "peak_bytes_per_request": round(grown)})
        print(
            f"{count:9,} requests: {spent:7.3f} CPU seconds, {count / spent:9,.0f} requests per second,"
            f" peak memory grew by {grown:.0f} bytes a request",
            flush=True,
        )
        del result
    exponent = math.log(found[-1]["cpu_seconds"] / found[0]["cpu_seconds"]) / math.log(100)
    print(f"CPU seconds grow as requests to the power {exponent:.2f}")
    return {"runs": found, "exponent": round(exponent, 3)}
