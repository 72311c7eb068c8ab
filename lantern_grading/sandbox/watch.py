"""Who is in a sandbox: counted, measured and ended from outside."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import time
from collections.abc import Iterator
from pathlib import Path

_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
_TICKS = os.sysconf("SC_CLK_TCK")  # in a second


class Members:
    """The processes of one sandbox. This one knows none: for sandboxes whose engine holds the limits itself."""

    def count(self) -> int:
        """Count the processes that run."""
        return 0

    def resident_bytes(self) -> int:
        """Add up the memory that they have resident."""
        return 0

    def cpu_seconds(self) -> float:
        """Add up their time on the processor, with that of children which have ended."""
        return 0.0

    def scratch_files(self) -> int:
        """Count the files in the scratch folder."""
        return 0

    def kill(self) -> None:
        """End all of them."""

    def left(self, seconds: float) -> int:
        """Wait until all have ended, and count those that have not."""
        deadline = time.monotonic() + seconds
        while (count := self.count()) and time.monotonic() < deadline:
            time.sleep(0.01)
        return count

    def close(self) -> None:
        """Give back what this object holds."""


class Namespace(Members):
    """The processes of a PID namespace, found by its first process; when that one ends, the kernel ends all.

    Parameters
    ----------
    first : int
        Process 1 of the namespace, as this side numbers it.
    """

    def __init__(self, first: int) -> None:
        self._first, self._entered = first, 0
        self.handle = os.pidfd_open(first)  #: stands for that process, whatever gets its number later
        self._identity = self._namespace(first)

    def entered(self, parent: int) -> None:
        """Note a process outside whose child has entered the namespace."""
        self._entered = parent

    def count(self) -> int:
        """Count the processes that run, wherever they were moved."""
        if not self._identity:
            return 0 if self._ended() else len(list(self._all()))
        everyone = (int(name) for name in os.listdir("/proc") if name.isdigit())
        return sum(self._namespace(process) == self._identity and _runs(process) for process in everyone)

    def resident_bytes(self) -> int:
        """Add up the memory that they have resident."""
        total = 0
        for process in self._all():
            with contextlib.suppress(OSError, IndexError, ValueError):
                total += int(Path(f"/proc/{process}/statm").read_text().split()[1]) * _PAGE_BYTES
        return total

    def cpu_seconds(self) -> float:
        """Add up their time on the processor, with that of children which have ended."""
        ticks = 0
        for process in self._all():
            # utime, stime, cutime, cstime: fields 14 to 17, of which the second may hold anything.
            ticks += sum(int(field) for field in _stat(process)[11:15])
        return ticks / _TICKS

    def scratch_files(self) -> int:
        """Count the files in the scratch folder, which is a file system of its own."""
        with contextlib.suppress(OSError):
            state = os.statvfs(f"/proc/{self._first}/root/scratch")
            return state.f_files - state.f_ffree
        return 0

    def kill(self) -> None:
        """End the first process, and with it all."""
        with contextlib.suppress(OSError):
            signal.pidfd_send_signal(self.handle, signal.SIGKILL)

    def close(self) -> None:
        """Close the handle of the first process."""
        os.close(self.handle)

    def _ended(self) -> bool:
        return bool(select.select([self.handle], [], [], 0)[0])

    def _all(self) -> Iterator[int]:
        yield from self._below(self._first)
        for child in _children(self._entered) if self._entered else ():
            # Another process may have got the number of one that has ended.
            if not self._identity or self._namespace(child) == self._identity:
                yield from self._below(child)

    def _below(self, process: int) -> Iterator[int]:
        if not self._ended():
            yield process
            for child in _children(process):
                yield from self._below(child)

    @staticmethod
    def _namespace(process: int) -> int:
        with contextlib.suppress(OSError):
            return os.stat(f"/proc/{process}/ns/pid").st_ino
        return 0


def _runs(process: int) -> bool:
    """Say whether a process is more than an entry that waits to be read: that holds nothing."""
    return _stat(process)[:1] not in ([], ["Z"], ["X"])


def _stat(process: int) -> list[str]:
    """Read the fields after the process's name, or none if it has ended."""
    with contextlib.suppress(OSError):
        return Path(f"/proc/{process}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
    return []


def _children(process: int) -> Iterator[int]:
    for task in _numbers(f"/proc/{process}/task"):
        with contextlib.suppress(OSError):
            yield from map(int, Path(f"/proc/{process}/task/{task}/children").read_text().split())


def _numbers(folder: str) -> list[str]:
    with contextlib.suppress(OSError):
        return os.listdir(folder)
    return []
