"""How fast the simulator is, in CPU seconds.

    python benchmarks/simulator.py [--traces FOLDER] [--million] [--save OUT DATE MACHINE]

FOLDER holds public traces under their own names: azure2023_conv.csv, azure2023_code.csv (TIMESTAMP, ContextTokens,
GeneratedTokens) and mooncake_conversation.jsonl (timestamp, input_length, output_length, hash_ids).
OUT is book/data/simulator_speed.json, whose numbers the book prints; DATE and MACHINE say when and on what they were
measured. Each row is the fastest of three runs, since other programs only ever make one slower.
"""

from __future__ import annotations

import argparse
import csv
import gc
import json
import math
import resource
import time
from collections.abc import Callable
from datetime import datetime
from pathlib import Path

import numpy as np

from lantern_lib import A100, ModelConfig, Replica
from lantern_lib.simulator import EngineConfig, Result, engine_for, simulate, simulate_by_steps
from lantern_lib.workload import Exponential, Workload, poisson

LLAMA_8B = ModelConfig(
    "Llama 3.1 8B", 32, 4096, 14336, 32, 8, 128, 128256, source="config.json of meta-llama/Llama-3.1-8B"
)
MACHINE = Replica(A100)
#: vLLM serves the same card with about so many sequences and tokens a step.
CHUNKED = {"prefill": "chunked", "token_budget": 2048, "admission": "blocks"}


ROWS: list[dict[str, float | str]] = []


def timed(run: Callable[[], Result], times: int = 3) -> tuple[Result, float]:
    """Return a run's result and the CPU seconds of the fastest of some runs, without the collector's."""
    best = math.inf
    for _ in range(times):
        gc.collect()
        begin = time.process_time()
        result = run()
        best = min(best, time.process_time() - begin)
    return result, best


def row(name: str, run: Callable[[], Result]) -> float:
    """Print one line of the table; return requests per CPU second."""
    result, seconds = timed(run)
    rate = len(result) / seconds
    events = result.num_events / len(result)
    found = float(result.cached_len.sum() / result.prompt_len.sum())
    ROWS.append(
        {
            "name": name,
            "requests": len(result),
            "cpu_seconds": float(f"{seconds:.3g}"),
            "rate": float(f"{rate:.3g}"),
            "events": float(f"{events:.3g}"),
            "steps": float(f"{result.num_steps / len(result):.3g}"),
            "found": float(f"{found:.3g}"),
        }
    )
    print(
        f"{name:58s} {len(result):9,} {seconds:8.3f} {rate:11,.0f} {events:7.2f}"
        f" {result.num_steps / len(result):8.2f} {int(result.num_preemptions.sum()):7,}"
        f" {found:7.1%} {result.finished.mean():7.1%}"
    )
    return rate


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


def read_azure(path: Path) -> Workload:
    """Read a trace with a time stamp, a prompt length and an answer length in each line."""
    with path.open(encoding="utf-8") as file:
        lines = [line for line in csv.DictReader(file) if int(line["GeneratedTokens"]) and int(line["ContextTokens"])]
    stamps = [datetime.fromisoformat(line["TIMESTAMP"][:26]).timestamp() for line in lines]
    lengths = [[int(line[name]) for line in lines] for name in ("ContextTokens", "GeneratedTokens")]
    order = np.argsort(stamps, kind="stable")
    return Workload(np.array(stamps)[order] - min(stamps), *(np.array(column)[order] for column in lengths))


def read_mooncake(path: Path) -> Workload:
    """Read a trace whose prompts have named blocks of 512 tokens."""
    lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    return Workload(
        np.array([line["timestamp"] for line in lines]) / 1000,
        np.array([line["input_length"] for line in lines]),
        np.array([max(1, line["output_length"]) for line in lines]),
        block_size=512,
        block_ids=np.concatenate([line["hash_ids"] for line in lines]),
        block_starts=np.cumsum([0, *(len(line["hash_ids"]) for line in lines)]),
    )


def synthetic() -> None:
    """The rows that need no trace."""
    work = standard(20_000)
    plain = engine_for(LLAMA_8B, MACHINE, max_batch=128)
    vary = poisson(20_000, 3.0, 2000, Exponential(400), np.random.default_rng(3))
    full = poisson(20_000, 20.0, 2000, 400, np.random.default_rng(4))
    leaps = row("plain, cap 128", lambda: simulate(work, plain))
    row("plain, exponential answers", lambda: simulate(vary, plain))
    row("plain, 20 requests/s (saturated)", lambda: simulate(full, plain))
    row("plain settings, general engine", lambda: simulate(work, plain, on_event=lambda engine: None))
    chunked = engine_for(LLAMA_8B, MACHINE, max_batch=128, **CHUNKED)
    row("chunked, blocks", lambda: simulate(work, chunked))
    small = EngineConfig(chunked.cost, max_batch=128, num_blocks=3000, **CHUNKED)  # type: ignore[arg-type]
    row("chunked, blocks, small pool: preemption", lambda: simulate(work, small))
    shared = engine_for(LLAMA_8B, MACHINE, max_batch=128, prefix_cache=True, **CHUNKED)
    row("chunked, blocks of 16, prefix cache", lambda: simulate(with_prefixes(work, 16), shared))
    first = work.first(5_000)
    steps = row("plain, one turn a step (reference)", lambda: simulate_by_steps(first, plain))
    print(f"leaps over steps: {leaps / steps:.0f} times")


def traces(folder: Path) -> None:
    """Whole public traces on one machine, as they come."""
    config = engine_for(LLAMA_8B, MACHINE, max_batch=256, **CHUNKED)
    for name in ("azure2023_conv", "azure2023_code"):
        work = read_azure(folder / f"{name}.csv")
        row(f"{name}, chunked, blocks", lambda work=work: simulate(work, config))  # type: ignore[misc]
    work = read_mooncake(folder / "mooncake_conversation.jsonl")
    cached = engine_for(LLAMA_8B, MACHINE, max_batch=256, block_size=512, prefix_cache=True, **CHUNKED)
    row("mooncake_conversation, chunked, blocks, prefix cache", lambda: simulate(work, cached))


def growth() -> dict[str, float]:
    """A million requests: time for each tenfold, and memory beside the columns."""
    plain = engine_for(LLAMA_8B, MACHINE, max_batch=128)
    seconds, peaks = [], []
    for count in (10_000, 100_000, 1_000_000):
        work = standard(count)
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        result, spent = timed(lambda work=work: simulate(work, plain), 1)  # type: ignore[misc]
        after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        seconds.append(spent)
        peaks.append((after - before) / count * 1024)
        print(
            f"{count:9,} requests: {spent:7.3f} CPU seconds, {count / spent:9,.0f} requests per second,"
            f" peak memory grew by {peaks[-1]:.0f} bytes a request"
        )
        del result
    exponent = math.log(seconds[-1] / seconds[0]) / math.log(100)
    print(f"CPU seconds grow as requests to the power {exponent:.2f}")
    return {"requests": 1_000_000, "cpu_seconds": float(f"{seconds[-1]:.3g}"), "exponent": float(f"{exponent:.2f}")}


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--traces", type=Path, help="folder of public traces")
    parser.add_argument("--million", action="store_true", help="also runs of up to a million requests")
    parser.add_argument("--save", nargs=3, metavar=("OUT", "DATE", "MACHINE"), help="write the rows for the book")
    options = parser.parse_args()
    print(
        f"{'setting':58s} {'requests':>9s} {'CPU s':>8s} {'requests/s':>11s} {'events':>7s} {'steps':>8s}"
        f" {'preempt':>7s} {'cached':>7s} {'done':>7s}"
    )
    synthetic()
    if options.traces:
        traces(options.traces)
    million = growth() if options.million else {}
    if options.save:
        out, date, machine = options.save
        saved = {"date": date, "machine": machine, "rows": ROWS, "million": million}
        Path(out).write_text(json.dumps(saved, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
