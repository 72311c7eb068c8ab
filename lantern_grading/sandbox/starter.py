"""Starts programs from a thread that lives as long as this process."""

from __future__ import annotations

import os
import queue
import subprocess
import threading
from concurrent.futures import Future
from typing import Any

_Job = tuple["Future[subprocess.Popen[bytes]]", list[str], dict[str, Any]]
_lock = threading.Lock()
_jobs: queue.SimpleQueue[_Job] | None = None


def launch(command: list[str], **options: Any) -> subprocess.Popen[bytes]:
    """Start a program in a session of its own, with three unbuffered pipes where the options name no others.

    The kernel ends a sandbox when the *thread* that started it ends, not the process. One started from a
    worker thread would die with that worker.
    """
    global _jobs
    with _lock:
        if _jobs is None:
            _jobs = queue.SimpleQueue()
            threading.Thread(target=_serve, args=(_jobs,), daemon=True, name="sandbox-starter").start()
        jobs = _jobs
    job: Future[subprocess.Popen[bytes]] = Future()
    jobs.put((job, command, options))
    return job.result()


def _serve(jobs: queue.SimpleQueue[_Job]) -> None:
    while True:
        job, command, options = jobs.get()
        try:
            pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
            job.set_result(subprocess.Popen(command, bufsize=0, start_new_session=True, **pipes | options))
        except BaseException as error:
            job.set_exception(error)
        del job


def _after_fork() -> None:
    # A fork copies the queue and not the thread.
    global _jobs, _lock
    _jobs, _lock = None, threading.Lock()


os.register_at_fork(after_in_child=_after_fork)
