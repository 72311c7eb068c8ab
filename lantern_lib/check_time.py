"""A limit for a student's loop that never ends: it is stopped where it runs, on any operating system."""

from __future__ import annotations

import contextlib
import ctypes
import threading
import time
from collections.abc import Iterator

from lantern_lib.units import require_positive


class TimeUp(BaseException):
    """Raised in the middle of work that took too long. No Exception: the work must not catch it as one."""


@contextlib.contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Raise :class:`TimeUp` in the body when it has used too much of the processor.

    Parameters
    ----------
    seconds : float
        Processor time of this process, so that a busy machine fails nobody [seconds].

    Returns
    -------
    context manager
        The limit holds inside it.

    Raises
    ------
    ValueError
        If `seconds` is not above 0.

    Notes
    -----
    A loop in Python is stopped at its next instruction. A call that waits inside C is not.

    Examples
    --------
    >>> try:
    ...     with time_limit(0.05):
    ...         while True:
    ...             pass
    ... except TimeUp:
    ...     print("stopped")
    stopped
    """
    end = time.process_time() + require_positive("seconds", seconds)
    worker, lock, done = threading.get_ident(), threading.Lock(), threading.Event()

    def watch() -> None:
        while not done.wait(0.02):
            if time.process_time() > end:
                with lock:
                    # Decided under the lock, so that work which has just ended is left alone.
                    if not done.is_set():
                        ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(worker), ctypes.py_object(TimeUp))
                return

    threading.Thread(target=watch, daemon=True).start()
    try:
        yield
    finally:
        with lock:
            done.set()
