"""Sweeps: nothing recorded is lost or computed twice, whoever is killed, and the order of the ends does not show."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import BrokenExecutor, Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lantern_lib import H100, LANTERN_70B, Replica
from lantern_lib.metrics import RequestRecord, percentile, ttft
from lantern_lib.simulator import engine_for, simulate_by_steps, sweep_files
from lantern_lib.simulator.sweep import read_errors, read_sweep, sweep
from lantern_lib.simulator.sweep_files import CsvTable, decode, encode, lock, table
from lantern_lib.simulator.sweep_keys import code_version, point_key
from lantern_lib.simulator.sweep_point import run_point
from lantern_lib.workload import poisson

SWEPT = Path(__file__).resolve().parent / "swept"
ROOT = SWEPT.parent.parent
Points = Any


@pytest.fixture
def swept(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    """Return the module of the swept functions, where workers find it too, with a log of its own."""
    monkeypatch.syspath_prepend(str(SWEPT))
    monkeypatch.setenv("SWEPT_LOG", str(tmp_path / "log"))
    import swept_points

    return swept_points


@pytest.fixture
def calls(tmp_path: Path) -> Callable[[], list[int]]:
    """Return a reader of the points that were computed, in the order of their beginnings."""
    log = tmp_path / "log"
    return lambda: [int(line.split()[0]) for line in log.read_text().splitlines()] if log.exists() else []


def serially(function: Callable[[Mapping[str, Any]], dict[str, float]], points: list[dict[str, Any]]) -> Points:
    """What a loop without any sweep gives."""
    return [{**point, **function(point)} for point in points]


def until(true: Callable[[], bool], what: str, seconds: float = 60.0) -> None:
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, f"waited {seconds:g} s for {what}"
        time.sleep(0.02)


@pytest.mark.parametrize("name", ["out.csv", "out.parquet"])
def test_processes_give_what_a_loop_gives(name: str, swept: Any, tmp_path: Path, parquet: None) -> None:
    points = [{"x": x, "seconds": 0.0} for x in range(30)]
    report = sweep(reversed(points), path=tmp_path / name, function=swept.numbers, workers=2, progress=False)
    assert (report.num_computed, report.num_skipped, report.num_failed) == (30, 0, 0)
    assert read_sweep(tmp_path / name) == serially(swept.numbers, points)
    assert read_errors(tmp_path / name) == []
    assert sorted(file.name for file in tmp_path.iterdir() if file.name != "log") == [name]


@pytest.fixture
def parquet(request: pytest.FixtureRequest, missing: Callable[[str], None]) -> None:
    """Skip the Parquet half of a test where pyarrow is not installed."""
    if "parquet" in request.node.name:
        try:
            import pyarrow  # noqa: F401
        except ImportError:
            missing("no pyarrow; it is in the extra called sweep")


def test_the_default_point_measures_what_the_loop_of_steps_does(tmp_path: Path) -> None:
    """One record at a time, through the definitions of the metrics, from the engine that takes every step."""
    points = [{"rate": rate, "num_requests": 40, "max_batch": 16, "seed": 7} for rate in (3.0, 1.0)]
    sweep(points, path=tmp_path / "knee.csv", workers=1, progress=False)
    rows = read_sweep(tmp_path / "knee.csv")
    assert [row["rate"] for row in rows] == [1.0, 3.0]
    for row in rows:
        work = poisson(40, row["rate"], 2000, 400, np.random.default_rng(7))
        run = simulate_by_steps(work, engine_for(LANTERN_70B, Replica(H100, tp_size=4), max_batch=16))
        columns = (run.arrival_seconds, run.first_token_seconds, run.last_token_seconds, run.output_len)
        records = [RequestRecord(*map(float, each[:3]), int(each[3])) for each in zip(*columns, strict=True)]
        assert row["ttft_p95"] == pytest.approx(percentile([ttft(record) for record in records], 0.95), rel=1e-9)
        assert row["num_finished"] == 40


def test_promises_and_lengths_of_a_point() -> None:
    loose = run_point({"num_requests": 60, "vary_lengths": True, "ttft_slo_seconds": 1e6})
    tight = run_point({"num_requests": 60, "vary_lengths": True, "tpot_slo_seconds": 1e-6})
    assert loose["goodput"] == pytest.approx(loose["request_throughput"])
    # Only an answer of one token keeps a limit on the gaps between tokens.
    assert tight["goodput"] < 0.1 * loose["goodput"]
    assert np.isnan(run_point({"num_requests": 5})["goodput"])
    with pytest.raises(ValueError, match="setting must be one of lantern-4xh100"):
        run_point({"setting": "lantern"})


def test_a_killed_sweep_continues_where_it_stopped(swept: Any, calls: Any, tmp_path: Path) -> None:
    import psutil

    path = tmp_path / "out.csv"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), str(SWEPT)])}
    script = subprocess.Popen([sys.executable, SWEPT / "run_swept.py", path], env=environment)
    try:
        until(lambda: path.exists() and path.read_bytes().count(b"\n") > 20, "twenty results")
        with pytest.raises(ValueError, match=f"'out.csv', to which process {script.pid} is writing"):
            sweep([{"x": 1}], path=path, function=swept.numbers, progress=False)
    finally:
        script.send_signal(signal.SIGKILL)
        script.wait()
    kept = {row["x"] for row in read_sweep(path)}
    workers = {int(line.split()[1]) for line in (tmp_path / "log").read_text().splitlines()}

    def gone(worker: int) -> bool:
        try:
            return bool(psutil.Process(worker).status() == psutil.STATUS_ZOMBIE)
        except psutil.NoSuchProcess:
            return True

    assert len(workers) == 2
    until(lambda: all(map(gone, workers)), "the workers to follow their parent")
    assert 20 <= len(kept) < 200
    before = calls()
    with path.open("ab") as file:
        file.write(b"a4be2f,12,torn")  # what a kill in the middle of a write leaves
    points = [{"x": x, "seconds": 0.0} for x in range(200)]

    report = sweep(
        [{**point, "seconds": 0.02} for point in points],
        path=path,
        function=swept.numbers,
        workers=2,
        progress=False,
    )
    after = calls()[len(before) :]
    assert report.num_skipped == len(kept)
    assert sorted(after) == sorted(set(range(200)) - kept)
    assert max(Counter(calls()).values()) <= 2
    # Begun and not recorded: one on each worker, and what two had ended and one writer had not taken yet.
    assert len(set(before) - kept) <= 8
    rows = read_sweep(path)
    assert [{**row, "seconds": 0.0} for row in rows] == serially(swept.numbers, points)


@pytest.mark.parametrize("name", ["out.csv", "out.parquet"])
def test_an_interrupted_sweep_keeps_what_ended(
    name: str, swept: Any, calls: Any, tmp_path: Path, parquet: None
) -> None:
    path = tmp_path / name

    def points(last: int) -> Iterator[dict[str, int]]:
        for x in range(40):
            if x == last:
                raise KeyboardInterrupt
            yield {"x": x}

    with ThreadPoolExecutor(2) as pool:
        with pytest.raises(KeyboardInterrupt):
            sweep(points(25), pool, path=path, function=swept.numbers, in_flight=4, progress=False)
        kept = len(read_sweep(path))
        assert 21 <= kept <= 25
        sweep(points(99), pool, path=path, function=swept.numbers, in_flight=4, progress=False)
    assert len(read_sweep(path)) == 40
    assert len(calls()) <= 40 + 25 - kept


@pytest.mark.parametrize("name", ["out.csv", "out.parquet"])
def test_a_key_that_looks_like_a_number_stays_a_text(name: str, tmp_path: Path, parquet: None) -> None:
    """Sixteen hexadecimal digits can be a number with an exponent, or a whole one."""
    keys = ["6446023173489e53", "1234567812345678", "00e1234567812345", "abcdef0123456789"]
    for _ in range(2):  # the second time the rows are there already
        results = table(tmp_path / name)
        results.open()
        for key in keys:
            results.append({"key": key, "version": "1e5", "y": 2.0})
        results.close()
    found = list(table(tmp_path / name).rows(("key", "version")))
    assert found == [{"key": key, "version": "1e5"} for key in 2 * keys]


def test_a_dead_process_ends_the_sweep_and_loses_nothing(swept: Any, calls: Any, tmp_path: Path) -> None:
    points = [{"x": x} for x in range(20)]
    with pytest.raises(BrokenExecutor) as raised:
        sweep(points, path=tmp_path / "out.csv", function=swept.deadly, workers=1, progress=False)
    assert raised.value.__notes__ == ["Recorded results are safe: start the sweep again to continue."]
    assert [row["x"] for row in read_sweep(tmp_path / "out.csv")] == [0, 1, 2, 3, 4]
    assert read_errors(tmp_path / "out.csv") == []


def test_points_that_raise_are_recorded_and_retried_on_request(swept: Any, calls: Any, tmp_path: Path) -> None:
    path, points = tmp_path / "out.csv", [{"x": x} for x in range(6)]
    with ThreadPoolExecutor(2) as pool:

        def go(**options: Any) -> tuple[int, int, int]:
            report = sweep(points, pool, path=path, function=swept.picky, progress=False, **options)
            return report.num_computed, report.num_skipped, report.num_failed

        assert go() == (3, 0, 3)
        assert [error["point"]["x"] for error in read_errors(path)] == [1, 3, 5]
        assert read_errors(path)[0]["error"] == "ValueError: x must be even,\ngot 1."
        assert go() == (0, 6, 0)
        assert go(retry=True) == (0, 3, 3)
        (tmp_path / "log.kind").touch()
        assert go(retry=True) == (3, 3, 0)
    assert read_errors(path) == []
    assert read_sweep(path) == [{"x": x, "half": x / 2} for x in range(6)]
    assert Counter(calls()) == {0: 1, 2: 1, 4: 1, 1: 3, 3: 3, 5: 3}


@pytest.mark.parametrize(
    ("function", "said"),
    [("uneven", "columns must be"), ("wordy", "results must be numbers"), ("twice", "other names than the point")],
)
def test_results_of_another_shape_are_errors(function: str, said: str, swept: Any, tmp_path: Path) -> None:
    points = [{"x": x} for x in (1, 2, 3)]
    with ThreadPoolExecutor(1) as pool:
        report = sweep(points, pool, path=tmp_path / "a.csv", function=getattr(swept, function), progress=False)
    failed = read_errors(tmp_path / "a.csv")
    assert report.num_failed == len(failed) == (1 if function == "uneven" else 3)
    assert all(said in each["error"] for each in failed)


def test_few_points_are_under_way(swept: Any, tmp_path: Path) -> None:
    """A generator is asked for the next point only while there is room, and every end is on disk by then."""
    path, most = tmp_path / "out.csv", 0

    def points() -> Iterator[dict[str, int]]:
        nonlocal most
        for x in range(60):
            written = max(0, path.read_bytes().count(b"\n") - 1)
            most = max(most, x - written)
            yield {"x": x, "seconds": 0.02}

    with ThreadPoolExecutor(2) as pool:
        sweep(points(), pool, path=path, function=swept.numbers, in_flight=5, progress=False)
    assert most == 5


def test_alike_points_are_one(swept: Any, calls: Any, tmp_path: Path) -> None:
    points: list[dict[str, Any]] = [{"x": 2, "y": 1.0}, {"y": 1, "x": 2}, {"x": np.int64(2), "y": np.float64(1)}]
    with ThreadPoolExecutor(1) as pool:
        report = sweep(points, pool, path=tmp_path / "out.csv", function=swept.numbers, progress=False)
    assert (report.num_computed, report.num_skipped, calls()) == (1, 2, [2])


def test_a_key_is_the_same_everywhere() -> None:
    """Half of the SHA-256 of ``a {"rate": 2, "seed": 1}``, from ``sha256sum``."""
    assert point_key({"seed": 1, "rate": 2.0}, "a") == "e825b3ff8eda5621"
    assert point_key({"seed": 1, "rate": 2.5}, "a") != point_key({"seed": 1, "rate": 2.5}, "b")


def test_other_code_does_not_continue_a_file(swept: Any, tmp_path: Path) -> None:
    path, points = tmp_path / "out.csv", [{"x": 1}, {"x": 2}]
    with ThreadPoolExecutor(1) as pool:
        sweep(points[:1], pool, path=path, function=swept.numbers, progress=False)
        with pytest.raises(ValueError, match="path must hold results of the same code"):
            sweep(points, pool, path=path, function=swept.deadly, progress=False)
        version = code_version(swept.numbers)
        report = sweep(points, pool, path=path, function=swept.numbers, version=version, progress=False)
    assert report.num_skipped == 1


@pytest.mark.parametrize("name", ["out.csv", "out.parquet"])
def test_other_names_do_not_continue_a_file(name: str, swept: Any, tmp_path: Path, parquet: None) -> None:
    """Found before anything is computed, also for values that a column of numbers does not hold."""
    kinds = {"yes": True, "none": None, "text": "2.5", "list": [1, 2.5], "large": 2**60 + 1, "whole": 2.0}
    points, path = [{"x": 1, **kinds}, {"x": 2, **kinds}], tmp_path / name
    with ThreadPoolExecutor(1) as pool:

        def go(points: Points) -> int:
            return sweep(points, pool, path=path, function=swept.numbers, progress=False).num_computed

        assert go(points[:1]) == 1
        for other in ({**points[1], "more": 1}, {"x": 2}):
            with pytest.raises(ValueError, match="point must have the names of those in the file"):
                go([other])
        assert go(points) == 1
    assert read_sweep(path) == serially(swept.numbers, points)


def test_a_worker_with_other_code_is_refused(swept: Any, tmp_path: Path) -> None:
    class Elsewhere(ThreadPoolExecutor):
        def submit(self, *_: Any, **__: Any) -> Future[Any]:
            future: Future[Any] = Future()
            future.set_result(("0123456789ab", {"half": 1.0}, ""))
            return future

    with pytest.raises(RuntimeError, match=r"workers must have version .* one has 0123456789ab"):
        sweep([{"x": 1}], Elsewhere(1), path=tmp_path / "out.csv", function=swept.numbers, progress=False)
    assert read_sweep(tmp_path / "out.csv") == []


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"path": "out.txt"}, r"path must end in \.csv or \.parquet"),
        ({"in_flight": 0}, "in_flight"),
        ({"workers": -1}, "workers"),
        ({"function": lambda point: {"half": 1.0}}, "function must be defined by def"),
        ({"points": [{"x": 1}, {"y": 1}]}, "point must have the names x"),
        ({"points": [{"key": 1}]}, "neither key nor version"),
        ({"points": [{"x": float("nan")}]}, "point must hold numbers"),
        ({"points": [{"x": {1, 2}}]}, "point must hold numbers"),
    ],
)
def test_what_cannot_be_swept_is_refused(change: dict[str, Any], said: str, swept: Any, tmp_path: Path) -> None:
    arguments: dict[str, Any] = {"points": [{"x": 1}], "path": "out.csv", "function": swept.numbers, **change}
    arguments["path"] = tmp_path / arguments["path"]
    with ThreadPoolExecutor(1) as pool, pytest.raises(ValueError, match=said):
        sweep(executor=None if "workers" in change else pool, progress=False, **arguments)
    assert not list(tmp_path.glob("*.lock"))


def test_one_process_does_not_write_twice_to_a_file(swept: Any, tmp_path: Path) -> None:
    path = tmp_path / "out.csv"

    def points() -> Iterator[dict[str, int]]:
        yield {"x": 1}
        with pytest.raises(ValueError, match="this process is writing already"):
            sweep([{"x": 2}], pool, path=path, function=swept.numbers, progress=False)
        yield {"x": 3}

    with ThreadPoolExecutor(1) as pool:
        assert sweep(points(), pool, path=path, function=swept.numbers, progress=False).num_computed == 2
    with lock(path):
        assert (tmp_path / "out.csv.lock").read_text() == str(os.getpid())
    assert not (tmp_path / "out.csv.lock").exists()


@given(st.recursive(st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(), st.lists))
def test_a_cell_gives_back_what_was_written(value: object) -> None:
    text = encode(value)
    again = decode(text)
    assert again == value
    assert type(again) is type(value)
    assert "\n" not in text
    assert "\r" not in text


@pytest.mark.parametrize("cut", range(1, 40, 3))
def test_a_torn_line_is_cut_off(cut: int, tmp_path: Path) -> None:
    table = CsvTable(tmp_path / "out.csv")
    table.open()
    for x in range(3):
        table.append({"key": f"{x:016x}", "version": "v", "text": "a,b\nc" * x})
    table.close()
    whole = table.path.read_bytes()
    table.path.write_bytes(whole[:-cut])
    left = whole[:-cut].count(b"\n") - 1
    assert [row["text"] for row in table.rows()] == ["a,b\nc" * x for x in range(left)]
    table.open()
    table.append({"key": "f", "version": "v", "text": "new"})
    table.close()
    assert [row["text"] for row in table.rows()] == ["a,b\nc" * x for x in range(left)] + ["new"]


def test_a_line_of_another_hand_is_named(tmp_path: Path) -> None:
    (tmp_path / "out.csv").write_text("key,version,x\na,b,1\na,b\n")
    with pytest.raises(ValueError, match=r"out\.csv, line 3 must have 3 cells, got 2"):
        read_sweep(tmp_path / "out.csv")


def test_parquet_parts_are_one_table(
    swept: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, parquet: None
) -> None:
    import pyarrow.parquet

    monkeypatch.setattr(sweep_files, "PART_ROWS", 7)
    path, points = tmp_path / "out.parquet", [{"x": x, "name": f"{x}"} for x in range(20)]
    with ThreadPoolExecutor(2) as pool:
        sweep(points[:16], pool, path=path, function=swept.numbers, progress=False)
        journal, last = path / "_journal.csv", sorted(path.glob("part-*"))[-1]
        assert [file.num_rows for file in map(pyarrow.parquet.read_metadata, sorted(path.glob("part-*")))] == [7, 7, 2]
        # A kill between the writing of a part and the emptying of the journal leaves the rows in both.
        held = pyarrow.parquet.read_table(last, columns=["key", "version"]).to_pylist()
        again = [row for row in sweep_files.ParquetTable(path).rows() if row["key"] in {each["key"] for each in held}]
        journalled = CsvTable(journal)
        journalled.open()
        for row in again:
            journalled.append(row)
        journalled.close()
        assert len(read_sweep(path)) == 16
        report = sweep(points, pool, path=path, function=swept.numbers, progress=False)
    assert (report.num_computed, report.num_skipped) == (4, 16)
    assert pyarrow.parquet.read_table(path).num_rows == 20
    assert read_sweep(path) == serially(swept.numbers, points)


def test_progress_without_tqdm(
    swept: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "tqdm", None)
    with ThreadPoolExecutor(1) as pool:
        report = sweep([{"x": x} for x in range(4)], pool, path=tmp_path / "out.csv", function=swept.picky)
    shown = capsys.readouterr()
    assert shown.err.endswith("4 of 4 points, 2 raised\n")
    assert shown.out == ""
    assert report.summary.startswith("2 points computed in 0.")


def test_progress_with_tqdm(
    swept: Any, tmp_path: Path, missing: Callable[[str], None], capsys: pytest.CaptureFixture[str]
) -> None:
    try:
        import tqdm  # noqa: F401
    except ImportError:
        missing("no tqdm; it is in the extra called sweep")
    with ThreadPoolExecutor(1) as pool:
        sweep([{"x": x} for x in range(4)], pool, path=tmp_path / "out.csv", function=swept.numbers)
    assert "4/4" in capsys.readouterr().err


def test_a_sweep_to_csv_needs_no_extra(tmp_path: Path) -> None:
    """In an interpreter that cannot import any of them."""
    code = (
        "import sys; sys.modules.update(dict.fromkeys(['tqdm', 'pyarrow', 'distributed', 'dask']))\n"
        "from concurrent.futures import ThreadPoolExecutor as Pool\n"
        "from lantern_lib.simulator.sweep import read_sweep, sweep\n"
        f"sweep([{{'num_requests': 9}}], Pool(1), path={str(tmp_path / 'a.csv')!r})\n"
        f"try: sweep([{{'num_requests': 9}}], Pool(1), path={str(tmp_path / 'a.parquet')!r})\n"
        "except ValueError as error: print(error)"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout == "path must end in .csv without pyarrow, got 'a.parquet'. Install lantern-lib[sweep].\n"
    assert len(read_sweep(tmp_path / "a.csv")) == 1
