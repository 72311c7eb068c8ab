"""Many simulations that know nothing of one another, on one machine or on several.

A sweep hands points to any ``concurrent.futures.Executor`` and writes each result when it comes. There is no
scheduler here: processes are the standard library's, several machines are Dask's (``lantern-lib[cluster]``)::

    from distributed import Client
    from lantern_lib.simulator.sweep import read_sweep, sweep

    with Client("tcp://scheduler:8786") as client:
        sweep(points, client.get_executor(), path="knee.csv")
    rows = read_sweep("knee.csv")

A killed sweep is continued by starting it again. A script that starts one needs ``if __name__ == "__main__":``, since
each worker process begins by importing the script.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import pickle
import sys
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sized
from concurrent.futures import BrokenExecutor, CancelledError, Executor, Future, ProcessPoolExecutor
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any

import numpy as np

from lantern_lib.simulator.sweep_files import OWN_COLUMNS, CsvTable, Table, errors, lock, table
from lantern_lib.simulator.sweep_keys import Function, Point, code_version, library_version, point_key
from lantern_lib.simulator.sweep_point import run_point
from lantern_lib.units import require_int

_NUMBERS = (int, float, np.bool_, np.integer, np.floating)


@dataclass(frozen=True)
class SweepReport:
    """What a sweep did: points computed now, points found in the file, points that raised; and its time [seconds]."""

    num_computed: int
    num_skipped: int
    num_failed: int
    seconds: float

    @property
    def summary(self) -> str:
        """One line with the counts."""
        return (
            f"{self.num_computed:,} points computed in {self.seconds:,.1f} s, {self.num_skipped:,} were there already,"
            f" {self.num_failed:,} raised"
        )


def _attempt(function: Function, point: Point) -> tuple[str, dict[str, float], str]:
    """Run on a worker: the worker's code version, and numbers or an error."""
    try:
        numbers = dict(function(point))
        wrong = [name for name, value in numbers.items() if not isinstance(value, _NUMBERS)]
        if wrong or not numbers:
            raise TypeError(f"results must be numbers by name, got {numbers!r}.")
        if taken := {*point, *OWN_COLUMNS} & set(numbers):
            raise ValueError(f"results must have other names than the point, got {', '.join(sorted(taken))} twice.")
    except Exception as error:
        return library_version(), {}, f"{type(error).__name__}: {error}"
    return library_version(), numbers, ""


def _die_with_parent() -> None:
    """Keep a worker from waiting for ever for a parent that was killed."""

    def watch() -> None:
        parent = multiprocessing.parent_process()
        if parent is not None:
            parent.join()
            os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


class _TextBar:
    """A line on stderr that is rewritten; what tqdm offers, as far as it is used here."""

    def __init__(self, total: int | None = None) -> None:
        self.total, self.count, self.note, self.next = total, 0, "", 0.0

    def update(self, more: int) -> None:
        self.count += more
        if time.monotonic() >= self.next or self.count == self.total:
            self.next = time.monotonic() + 0.5
            of = "" if self.total is None else f" of {self.total:,}"
            print(f"\r{self.count:,}{of} points{self.note}", end="", file=sys.stderr, flush=True)

    def set_postfix_str(self, text: str, refresh: bool = True) -> None:
        self.note = f", {text}"

    def close(self) -> None:
        print(file=sys.stderr)


def _bar(points: Iterable[Point], progress: bool) -> Any:
    total = len(points) if isinstance(points, Sized) else None
    try:
        from tqdm import tqdm
    except ImportError:
        tqdm = None
    if not progress:
        return None
    if tqdm is None:
        return _TextBar(total)
    return tqdm(total=total, unit="point", mininterval=0.5 if sys.stderr.isatty() else 30.0)


class _Sweep:
    """A sweep under way: what is done, what is under way, and where results go."""

    def __init__(self, results: Table, failures: CsvTable, version: str, check: bool, bar: Any) -> None:
        self.results, self.failures, self.version, self.check, self.bar = results, failures, version, check, bar
        self.under_way: dict[Future[Any], tuple[str, Point]] = {}
        self.finished: SimpleQueue[Future[Any]] = SimpleQueue()
        self.done: set[int] = set()
        self.computed = self.skipped = self.failed = 0
        self.point_names: set[str] = set()
        self.first_row: dict[str, Any] | None = None

    def find_done(self, retry: bool) -> None:
        """Learn which points the files hold; of each only a number is kept."""
        self.first_row = next(self.results.rows(), None)
        for rows in (self.results, self.failures):
            for row in rows.rows(OWN_COLUMNS):
                if row["version"] != self.version:
                    raise ValueError(
                        f"path must hold results of the same code (version {self.version}), got {row['version']}. Write"
                        f" to another file, or pass version={row['version']!r} if nothing that matters has changed."
                    )
                if rows is self.results or not retry:
                    self.done.add(int(row["key"], 16))

    def key(self, point: Point) -> str:
        """Name a point. A file has one set of columns, so that a point with other names cannot be written to it."""
        if not self.point_names:
            self.point_names = set(point)
            if (row := self.first_row) is not None:
                named = {name: row[name] for name in point if name in row}
                if set(named) != set(point) or point_key(named, self.version) != row["key"]:
                    raise ValueError(
                        f"point must have the names of those in the file, got {', '.join(point)}. Choose another."
                    )
        if set(point) != self.point_names or self.point_names & set(OWN_COLUMNS):
            raise ValueError(
                f"point must have the names {', '.join(sorted(self.point_names))} like the first, and neither key nor"
                f" version; got {', '.join(point)}."
            )
        return point_key(point, self.version)

    def run(self, points: Iterable[Point], pool: Executor, function: Function, in_flight: int) -> None:
        for point in points:
            key = self.key(point)
            number = int(key, 16)
            if number in self.done:
                self.skipped += 1
                self.tick()
                continue
            self.done.add(number)
            while len(self.under_way) >= in_flight:
                self.take(self.finished.get())
            future = pool.submit(_attempt, function, point)
            self.under_way[future] = key, point
            future.add_done_callback(self.finished.put)
            self.take_what_is_there()
        while self.under_way:
            self.take(self.finished.get())

    def take_what_is_there(self) -> None:
        try:
            while True:
                self.take(self.finished.get_nowait())
        except Empty:
            return

    def take(self, future: Future[Any]) -> None:
        """Write what a point gave; what broke the executor itself ends the sweep."""
        key, point = self.under_way.pop(future)
        try:
            version, numbers, error = future.result()
        except (BrokenExecutor, CancelledError) as broken:
            broken.add_note("Recorded results are safe: start the sweep again to continue.")
            raise
        except Exception as lost:  # a result that cannot be sent, or a point that killed each worker it was given to
            version, numbers, error = library_version(), {}, f"{type(lost).__name__}: {lost}"
        if self.check and version != library_version():
            raise RuntimeError(
                f"workers must have version {library_version()} of the library, one has {version}. Install the same."
            )
        row = {"key": key, "version": self.version}
        if not error:
            try:
                self.results.append({**row, **point, **numbers})
            except ValueError as other:  # names that differ from those of the first result
                error = f"ValueError: {other}"
        if error:
            self.failures.append({**row, "point": dict(point), "error": error})
        self.computed, self.failed = self.computed + (not error), self.failed + bool(error)
        self.tick()

    def tick(self) -> None:
        if self.bar is not None:
            if self.failed:
                self.bar.set_postfix_str(f"{self.failed:,} raised", refresh=False)
            self.bar.update(1)

    def stop(self) -> None:
        """Give up what has not begun, and keep what has ended."""
        for future in self.under_way:
            future.cancel()

    def keep(self) -> None:
        """Write what has ended since."""
        for future in [
            each for each in self.under_way if each.done() and not each.cancelled() and not each.exception()
        ]:
            self.take(future)


@contextmanager
def _opened(path: Path) -> Iterator[tuple[Table, CsvTable]]:
    results, failures = table(path), errors(path)
    with lock(path):
        results.open()
        failures.open()
        try:
            yield results, failures
        finally:
            results.close()
            failures.close()
            if not failures.num_rows:
                failures.path.unlink()


def sweep(
    points: Iterable[Point],
    executor: Executor | None = None,
    *,
    path: str | Path,
    function: Function = run_point,
    workers: int | None = None,
    in_flight: int = 64,
    retry: bool = False,
    progress: bool = True,
    version: str | None = None,
) -> SweepReport:
    """Run independent simulations and write each result when it comes; start it again to continue.

    Parameters
    ----------
    points : iterable of mapping
        What the function is given, all with the same names; may be a generator, which is read as results come in.
    executor : concurrent.futures.Executor, optional
        Who computes, for example ``client.get_executor()`` of Dask; without it `workers` processes of this machine.
    path : str or Path
        Where results go, ending in ``.csv`` or ``.parquet``; one that is there is continued.
    function : callable
        Takes a point and returns numbers by name; defined by ``def`` in a module, so that a worker can import it.
    workers : int, optional
        Processes, where no executor is given; without it one for each processor [processes].
    in_flight : int
        Most points that are handed over and not yet written [points].
    retry : bool
        Compute points again that raised in an earlier run.
    progress : bool
        Show a bar on stderr.
    version : str, optional
        Says which code computes; without it a hash of the function's file and of the library [text].

    Returns
    -------
    SweepReport
        What was done.

    Raises
    ------
    ValueError
        If a setting is out of range, another sweep writes to `path`, or other code has written to it.
    RuntimeError
        If a worker has other code than this process.
    concurrent.futures.BrokenExecutor
        If a worker process of this machine died; what was recorded stays.

    Notes
    -----
    No recorded point is computed again: points are known by a hash of themselves and of the code. After a kill at
    most `in_flight` points that were under way are begun anew. Memory holds `in_flight` points, and one number for
    each point done. A point that raises is recorded with its error in ``*.errors.csv`` and does not stop the others.

    Examples
    --------
    >>> import tempfile
    >>> from concurrent.futures import ThreadPoolExecutor
    >>> points = [{"rate": rate, "num_requests": 50} for rate in (1.0, 2.0)]
    >>> with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(1) as pool:
    ...     first = sweep(points, pool, path=f"{folder}/knee.csv", progress=False)
    ...     again = sweep(points, pool, path=f"{folder}/knee.csv", progress=False)
    >>> first.num_computed, again.num_computed, again.num_skipped
    (2, 0, 2)
    """
    require_int("in_flight", in_flight)
    require_int("workers", workers or 1)
    chosen = version or code_version(function)
    pickle.dumps(function)
    begin = time.monotonic()
    bar = None
    with _opened(Path(path)) as (results, failures):
        state = _Sweep(results, failures, chosen, version is None, None)
        state.find_done(retry)
        state.bar = bar = _bar(points, progress)
        try:
            with _pool(executor, workers) as pool:
                try:
                    state.run(points, pool, function, in_flight)
                finally:
                    state.stop()
        finally:
            state.keep()
            if bar is not None:
                bar.close()
    return SweepReport(state.computed, state.skipped, state.failed, time.monotonic() - begin)


def _pool(executor: Executor | None, workers: int | None) -> AbstractContextManager[Executor]:
    """Start worker processes, or use what was given and leave it running."""
    if executor is not None:
        return nullcontext(executor)
    # Not forked: a fork takes along locks that another thread holds.
    fresh = multiprocessing.get_context("spawn")
    return ProcessPoolExecutor(workers or os.cpu_count(), mp_context=fresh, initializer=_die_with_parent)


def _sort_key(row: Mapping[str, Any]) -> list[tuple[int, Any]]:
    ranks = []
    for name, value in row.items():
        if name not in OWN_COLUMNS:
            number = isinstance(value, (int, float))
            ranks.append((0, value) if number else (1, value) if isinstance(value, str) else (2, json.dumps(value)))
    return ranks


def read_sweep(path: str | Path) -> list[dict[str, Any]]:
    """Read the results of a sweep, also of one that is still running.

    Parameters
    ----------
    path : str or Path
        What :func:`sweep` was given.

    Returns
    -------
    list of dict
        Each point with its numbers, sorted by the point: in the same order, whoever was done first.

    Raises
    ------
    ValueError
        If a line is not whole.

    Examples
    --------
    >>> import tempfile
    >>> from concurrent.futures import ThreadPoolExecutor
    >>> with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(1) as pool:
    ...     points = ({"rate": rate, "num_requests": 50} for rate in (2.0, 1.0))
    ...     _ = sweep(points, pool, path=f"{folder}/knee.csv", progress=False)
    ...     rows = read_sweep(f"{folder}/knee.csv")
    >>> [(row["rate"], row["num_finished"]) for row in rows]
    [(1.0, 50.0), (2.0, 50.0)]
    """
    unique = {row["key"]: row for row in table(Path(path)).rows()}
    ordered = sorted(unique.values(), key=_sort_key)
    return [{name: value for name, value in row.items() if name not in OWN_COLUMNS} for row in ordered]


def read_errors(path: str | Path) -> list[dict[str, Any]]:
    """Read which points of a sweep raised, and have no result by now.

    Parameters
    ----------
    path : str or Path
        What :func:`sweep` was given.

    Returns
    -------
    list of dict
        ``point`` and ``error``, the latest of each point, sorted by the point.

    Examples
    --------
    >>> import tempfile
    >>> from concurrent.futures import ThreadPoolExecutor
    >>> with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(1) as pool:
    ...     _ = sweep([{"rate": -1.0}], pool, path=f"{folder}/knee.csv", progress=False)
    ...     read_errors(f"{folder}/knee.csv")[0]["error"]
    'ValueError: rate must be a finite number above 0, got -1.0. Give requests per second.'
    """
    solved = {row["key"] for row in table(Path(path)).rows(OWN_COLUMNS)}
    latest = {row["key"]: row for row in errors(Path(path)).rows() if row["key"] not in solved}
    ordered = sorted(latest.values(), key=lambda row: _sort_key(row["point"]))
    return [{"point": row["point"], "error": row["error"]} for row in ordered]
