"""What a sweep gains from more processes, and what it costs for each point."""

from __future__ import annotations

import multiprocessing
import os
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Executor, ProcessPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from lantern_lib.simulator.sweep import read_sweep, sweep
from lantern_lib.simulator.sweep_point import run_point

POINTS = [{"rate": 0.5 + seed % 4 / 2, "num_requests": 20_000, "seed": seed} for seed in range(24)]
EMPTY = [{"x": x} for x in range(1_000)]
REPEATS = 2


def nothing(point: Mapping[str, Any]) -> dict[str, float]:
    """A simulation that takes no time, so that all that is left is the sweep."""
    return {"one": 1.0}


@contextmanager
def processes(count: int) -> Iterator[Executor]:
    """Processes of the standard library, started as the sweep starts its own."""
    with ProcessPoolExecutor(count, mp_context=multiprocessing.get_context("spawn")) as pool:
        yield pool


@contextmanager
def dask() -> Iterator[Executor]:
    """A Dask cluster of two processes on this machine."""
    from distributed import Client, LocalCluster

    with tempfile.TemporaryDirectory() as folder:
        options = {"n_workers": 2, "threads_per_worker": 1, "processes": True, "dashboard_address": "127.0.0.1:0"}
        with (
            LocalCluster(host="127.0.0.1", local_directory=folder, **options) as cluster,
            Client(cluster) as client,
        ):
            yield client.get_executor()


class Contender:
    """One way to run all points, measured in turns with the others so that each sees the machine as busy."""

    def __init__(self, name: str, pool: Executor | None, start_seconds: float, folder: Path) -> None:
        self.name, self.pool, self.start_seconds, self.folder = name, pool, start_seconds, folder
        self.seconds = self.empty_seconds = self.empty_cpu_seconds = float("inf")
        self.results: list[dict[str, Any]] = []
        self.turns = 0

    def run(self, points: list[dict[str, Any]], function: Any) -> list[dict[str, Any]]:
        """Run all points; without an executor in a loop."""
        if self.pool is None:
            return [{**point, **function(point)} for point in points]
        self.turns += 1
        path = self.folder / f"{self.name}-{self.turns}.csv"
        sweep(points, self.pool, path=path, function=function, progress=False)
        return read_sweep(path)

    def turn(self) -> None:
        """Measure once more; the fastest time counts."""
        begin = time.perf_counter()
        self.results = self.run(POINTS, run_point)
        middle, used = time.perf_counter(), time.process_time()
        self.run(EMPTY, nothing)
        self.empty_cpu_seconds = min(self.empty_cpu_seconds, time.process_time() - used)
        self.seconds = min(self.seconds, middle - begin)
        self.empty_seconds = min(self.empty_seconds, time.perf_counter() - middle)

    def row(self, loop: Contender) -> dict[str, Any]:
        """What was measured. Results are compared as text, since NaN is not equal to itself."""
        if sorted(map(str, self.results)) != sorted(map(str, loop.results)):
            raise RuntimeError(f"{self.name} gives other results than a loop")
        return {
            "executor": self.name,
            "start_seconds": round(self.start_seconds, 2),
            "points": len(POINTS),
            "seconds": round(self.seconds, 3),
            "speed_up": round(loop.seconds / self.seconds, 2),
            "overhead_milliseconds_per_point": round(self.empty_seconds / len(EMPTY) * 1e3, 3),
            # Of the process that sweeps: how many points a second it can hand out, however many workers there are.
            "own_cpu_milliseconds_per_point": round(self.empty_cpu_seconds / len(EMPTY) * 1e3, 3),
        }


def speed_up() -> dict[str, Any]:
    """Print and return the table. Wall seconds, since that is what a sweep saves."""
    load = os.getloadavg()[0]
    print(
        f"{'executor':26s} {'start s':>8s} {'points':>7s} {'seconds':>9s} {'speed-up':>9s} {'overhead ms/point':>18s}"
        f" {'own CPU ms/point':>17s}"
    )
    starts: dict[str, Callable[[], Any]] = {"1 process": lambda: processes(1), "2 processes": lambda: processes(2)}
    try:
        import distributed  # noqa: F401

        starts["Dask, 2 local processes"] = dask
    except ImportError:
        print("Dask is left out: it is in the extra called cluster.")
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        contenders = [Contender("none: a loop", None, 0.0, folder)]
        for name, start in starts.items():
            begin = time.perf_counter()
            one = Contender(name, stack.enter_context(start()), 0.0, folder)
            one.run(EMPTY[:16], nothing)
            one.start_seconds = time.perf_counter() - begin
            contenders.append(one)
        for _ in range(REPEATS):
            for one in contenders:
                one.turn()
    rows = [one.row(contenders[0]) for one in contenders]
    for row in rows:
        print("{:26s} {:8.2f} {:7d} {:9.3f} {:9.2f} {:18.3f} {:17.3f}".format(*row.values()))
    busy = load > 0.5
    if busy:
        print(f"Other programs ran (load {load:.1f} before): wall seconds and speed-ups mean little, CPU seconds hold.")
    return {"load_before": round(load, 2), "machine_was_busy": busy, "rows": rows}
