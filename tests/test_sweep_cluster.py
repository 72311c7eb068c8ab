"""Sweeps over a Dask cluster that is really there: two worker processes, one of which may be killed."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from lantern_lib.simulator.sweep import read_sweep, sweep
from lantern_lib.simulator.sweep_point import run_point

SWEPT = Path(__file__).resolve().parent / "swept"
# One process starts the cluster and runs all of them.
pytestmark = [pytest.mark.cluster, pytest.mark.xdist_group("cluster")]


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the file in which workers note what they begin."""
    return tmp_path_factory.mktemp("cluster") / "log"


@pytest.fixture(scope="module")
def client(missing: Callable[[str], None], log: Path) -> Iterator[Any]:
    """Return a client of a cluster on this machine that nobody else can reach."""
    try:
        from distributed import Client, LocalCluster
    except ImportError:
        missing("no distributed; it is in the extra called cluster")
        return
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(SWEPT))
        patch.setenv("SWEPT_LOG", str(log))
        options = {"n_workers": 2, "threads_per_worker": 1, "processes": True, "dashboard_address": "127.0.0.1:0"}
        with (
            LocalCluster(host="127.0.0.1", local_directory=str(log.parent), **options) as cluster,
            Client(cluster) as client,
        ):
            yield client


def test_a_cluster_gives_what_a_loop_gives(client: Any, tmp_path: Path) -> None:
    points = [{"rate": rate, "seed": seed, "num_requests": 40} for rate in (1.0, 2.0) for seed in range(5)]
    report = sweep(points, client.get_executor(), path=tmp_path / "out.csv", progress=False)
    assert report.num_computed == 10
    # Written and read as text, and still the same to the last bit; a promise that nobody made is no number.
    expected = [{**point, **run_point(point)} for point in points]
    for row in (rows := read_sweep(tmp_path / "out.csv")) + expected:
        del row["goodput"]
    assert rows == expected


def test_a_killed_worker_changes_nothing(client: Any, log: Path, tmp_path: Path) -> None:
    from swept_points import numbers

    workers = set(client.run(os.getpid).values())
    assert len(workers) == 2
    assert os.getpid() not in workers
    killed = []

    def points() -> Iterator[dict[str, Any]]:
        for x in range(60):
            if x == 30:  # its queue is full of points: eight are under way
                killed.append(int(log.read_text().splitlines()[-1].split()[1]))
                os.kill(killed[0], signal.SIGKILL)
            yield {"x": x, "seconds": 0.05}

    report = sweep(
        points(), client.get_executor(), path=tmp_path / "out.csv", function=numbers, in_flight=8, progress=False
    )
    assert killed[0] in workers
    assert (report.num_computed, report.num_failed) == (60, 0)
    begun = [int(line.split()[0]) for line in log.read_text().splitlines()]
    assert len(begun) > 60  # the point that the worker died over was begun again
    expected = [{"x": x, "seconds": 0.05, **numbers({"x": x})} for x in range(60)]
    assert read_sweep(tmp_path / "out.csv") == expected
    end = time.monotonic() + 60
    while killed[0] in client.run(os.getpid).values() or len(client.run(os.getpid)) < 2:
        assert time.monotonic() < end, "the cluster did not replace its worker"
        time.sleep(0.2)
