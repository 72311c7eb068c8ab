"""Jobs over any ``concurrent.futures.Executor``: few at a time, and one that kills its worker harms no other."""

from __future__ import annotations

import contextlib
import ctypes
import multiprocessing
import os
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import (
    FIRST_COMPLETED,
    BrokenExecutor,
    CancelledError,
    Executor,
    Future,
    ProcessPoolExecutor,
    wait,
)
from typing import Any

from lantern_grading.assess import Assessed, Grader, Job, assess, lost
from lantern_grading.template import Template

_MMAP_THRESHOLD = -3  # in malloc.h
_OWN_BYTES = 32 * 1024  # smaller than a paper


def _die_with_parent() -> None:
    """Keep a worker from waiting for ever for a grader that was killed."""

    def watch() -> None:
        parent = multiprocessing.parent_process()
        if parent is not None:
            parent.join()
            os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def _steady_heap() -> None:
    """Have each paper lie in memory of its own, which goes back when it is freed.

    In the common heap small things that live longer settle in the holes that papers leave, and the grader grows by
    the size of a paper with each paper.
    """
    with contextlib.suppress(OSError, AttributeError):  # another C library than glibc
        ctypes.CDLL(None).mallopt(_MMAP_THRESHOLD, _OWN_BYTES)


def processes(count: int) -> Executor:
    """Return an executor of that many fresh processes."""
    # Not forked: a fork would share the gradebook's connection and its lock.
    context = multiprocessing.get_context("spawn")
    return ProcessPoolExecutor(count, mp_context=context, initializer=_die_with_parent)


def results(
    jobs: Iterable[Job],
    template: Template,
    grader: Grader,
    *,
    executor: Executor | None = None,
    count: int = 1,
) -> Iterator[Assessed]:
    """Grade jobs and give each result when it is there.

    Parameters
    ----------
    jobs : iterable of Job
        May be a generator: it is asked for the next when there is room.
    template : Template
        The release.
    grader : Grader
        Grades a paper.
    executor : Executor, optional
        Where to grade, for example ``distributed.Client(...).get_executor()``; processes of this machine without.
    count : int
        Number of processes; with 1 and no executor the jobs run here [count].

    Yields
    ------
    Assessed
        In the order in which they end.
    """
    _steady_heap()
    if executor is None and count == 1:
        for job in jobs:
            yield assess(template, grader, job)
    elif executor is not None:
        yield from _stream(jobs, template, grader, executor, 4 * (os.cpu_count() or 1), _refuse)
    else:
        yield from _own_processes(jobs, template, grader, count)


def _refuse(broken: Exception, jobs: list[Job]) -> Iterator[Assessed]:
    raise broken


def _own_processes(jobs: Iterable[Job], template: Template, grader: Grader, count: int) -> Iterator[Assessed]:
    waiting = iter(jobs)

    def alone(broken: Exception, suspects: list[Job]) -> Iterator[Assessed]:
        """One of these killed its worker, and with it the pool. Each gets a process of its own."""
        for job in suspects:
            with processes(1) as cell:
                try:
                    yield cell.submit(assess, template, grader, job).result()
                except BrokenExecutor:
                    yield lost(job, "it ended without a word, as when memory runs out")

    while True:
        broke: list[bool] = []

        def mend(broken: Exception, suspects: list[Job], broke: list[bool] = broke) -> Iterator[Assessed]:
            broke.append(True)
            yield from alone(broken, suspects)

        pool = processes(count)
        try:
            yield from _stream(waiting, template, grader, pool, 2 * count, mend)
        finally:
            pool.shutdown(wait=not broke, cancel_futures=True)
        if not broke:
            return


def _stream(
    jobs: Iterable[Job],
    template: Template,
    grader: Grader,
    pool: Executor,
    in_flight: int,
    mend: Callable[[Exception, list[Job]], Iterator[Assessed]],
) -> Iterator[Assessed]:
    under_way: dict[Future[Any], Job] = {}
    waiting = iter(jobs)
    more = True
    try:
        while more or under_way:
            while more and len(under_way) < in_flight:
                job = next(waiting, None)
                if job is None:
                    more = False
                    break
                try:
                    under_way[pool.submit(assess, template, grader, job)] = job
                except BrokenExecutor as broken:
                    yield from mend(broken, [*under_way.values(), job])
                    under_way.clear()
                    return
            done, _ = wait(under_way, return_when=FIRST_COMPLETED) if under_way else (set(), None)
            for future in done:
                job = under_way.pop(future)
                try:
                    yield future.result()
                except (BrokenExecutor, CancelledError) as broken:
                    yield from mend(broken, [job, *under_way.values()])
                    under_way.clear()
                    return
                except Exception as error:  # an executor of many machines that gave a job up
                    yield lost(job, type(error).__name__)
    finally:
        for future in under_way:
            future.cancel()
