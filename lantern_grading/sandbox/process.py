"""A running sandbox: its pipes, its limits, its end."""

from __future__ import annotations

import contextlib
import os
import select
import subprocess
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import IO

from lantern_grading.sandbox.errors import SandboxError
from lantern_grading.sandbox.limits import Limits
from lantern_grading.sandbox.watch import Members

_POLL_SECONDS = 0.1
_END_SECONDS = 10.0


class Process:
    """One sandbox, until it ends or is closed. A context manager; leaving it kills.

    Parameters
    ----------
    popen : subprocess.Popen
        The program that holds the sandbox.
    limits : Limits
        Held from now on by a thread of its own.
    members : Members
        Finds the processes of the sandbox.
    pipes : tuple of files, optional
        This side's ends of what the command reads, what it writes, and its errors, unbuffered; the program's own
        without.
    root : Path, optional
        Where this side sees the sandbox's files.
    after : callable, optional
        Called once at the end, for example to stop a container.
    """

    def __init__(
        self,
        popen: subprocess.Popen[bytes],
        *,
        limits: Limits,
        members: Members,
        pipes: tuple[IO[bytes], IO[bytes], IO[bytes]] | None = None,
        root: Path | None = None,
        after: Callable[[], None] | None = None,
    ) -> None:
        stdin, stdout, stderr = pipes or (popen.stdin, popen.stdout, popen.stderr)
        assert stdin is not None
        assert stdout is not None
        assert stderr is not None
        self.stdin: IO[bytes] = stdin  #: what the command reads; unbuffered
        self.stdout: IO[bytes] = stdout  #: what it writes; unbuffered, for the caller to read with a limit
        self.reason = ""  #: the limit that ended it: "time", "processor time", "memory", "files", or empty
        self._popen, self._limits, self._members, self._root = popen, limits, members, root
        self._after, self._closed = after, False
        self._errors = _Capped(stderr, limits.output_bytes)
        self._printed: _Capped | None = None
        self._deadline = time.monotonic() + limits.total_seconds
        self._over = threading.Event()
        self._watcher = threading.Thread(target=self._watch, daemon=True, name="sandbox-watchdog")
        self._watcher.start()

    def __enter__(self) -> Process:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def pid(self) -> int:
        """The process that holds the sandbox, as this side numbers it."""
        return self._popen.pid

    def poll(self) -> int | None:
        """Return the exit status, or None while it runs."""
        return self._popen.poll()

    def begin(self) -> None:
        """Count the time in all from now, not from the start: for one that was started before its turn."""
        self._deadline = time.monotonic() + self._limits.total_seconds

    def wait(self, timeout: float | None = None) -> int:
        """Wait for the end and return the exit status; subprocess.TimeoutExpired after `timeout` seconds."""
        return self._popen.wait(timeout)

    def errors(self) -> str:
        """Return what it wrote to standard error so far, up to the limit."""
        return self._errors.text()

    def drain(self) -> None:
        """Read and keep standard output in the background, up to the limit, instead of leaving it to the caller."""
        self._printed = self._printed or _Capped(self.stdout, self._limits.output_bytes)

    def printed(self) -> str:
        """Return what `drain` has read so far."""
        return self._printed.text() if self._printed else ""

    def inside(self, path: str) -> Path:
        """Return where this side finds a file of the sandbox; SandboxError where it cannot."""
        if self._root is None:
            raise SandboxError("This kind of sandbox shows no files to the outside. Use pipes.")
        return self._root / path.lstrip("/")

    def members(self) -> int:
        """Count the processes of the sandbox that run now."""
        return self._members.count()

    def cpu_seconds(self) -> float:
        """Add up what its processes have used of the processor so far [seconds]."""
        return self._members.cpu_seconds()

    def kill(self, reason: str = "") -> None:
        """End every process of the sandbox at once."""
        if reason and not self.reason and self._popen.poll() is None:
            self.reason = reason
        self._members.kill()
        with contextlib.suppress(ProcessLookupError):
            self._popen.kill()

    def close(self) -> None:
        """Kill, wait, and make sure that nothing is left; SandboxError if something is."""
        if self._closed:
            return
        self._closed = True
        self._over.set()
        self.kill()
        try:
            self._popen.wait(_END_SECONDS)
        except subprocess.TimeoutExpired:
            raise SandboxError(f"The sandbox (process {self.pid}) did not end within {_END_SECONDS:g} s.") from None
        finally:
            if self._after:
                self._after()
            self._watcher.join(_END_SECONDS)
            self._errors.close()
            if self._printed:
                self._printed.close()
            for pipe in (self.stdin, self.stdout):
                with contextlib.suppress(OSError):
                    pipe.close()
        left = self._members.left(_END_SECONDS)
        self._members.close()
        if left:
            raise SandboxError(f"{left} processes of a submission are left after its end (sandbox {self.pid}).")

    def _watch(self) -> None:
        while not self._over.wait(min(_POLL_SECONDS, max(self._deadline - time.monotonic(), 0))):
            if self._popen.poll() is not None:
                return
            if time.monotonic() >= self._deadline:
                self.kill("time")
            elif self._members.resident_bytes() > self._limits.memory_bytes:
                self.kill("memory")
            elif self._members.cpu_seconds() > self._limits.cpu_seconds:
                self.kill("processor time")
            elif self._members.scratch_files() > self._limits.scratch_files:
                self.kill("files")


class _Capped:
    """Reads a pipe to its end and keeps the beginning, so that a flood neither blocks nor fills memory."""

    def __init__(self, pipe: IO[bytes], most: int) -> None:
        self._pipe, self._most = pipe, most
        self._kept = bytearray()
        self._stop_read, self._stop_write = os.pipe()
        self._thread = threading.Thread(target=self._read, daemon=True, name="sandbox-output")
        self._thread.start()

    def _read(self) -> None:
        handle = self._pipe.fileno()
        waiting = select.poll()
        waiting.register(handle, select.POLLIN)
        waiting.register(self._stop_read, select.POLLIN)
        while True:
            if handle not in [ready for ready, _ in waiting.poll()]:
                return
            part = os.read(handle, 65536)
            if not part:
                return
            self._kept += part[: self._most - len(self._kept)]

    def text(self) -> str:
        return bytes(self._kept).decode("utf-8", "replace")

    def close(self) -> None:
        """Stop reading, also if a process that got away still holds the pipe."""
        self._thread.join(0.5)
        os.write(self._stop_write, b"x")
        self._thread.join()
        for handle in (self._stop_read, self._stop_write):
            os.close(handle)
        self._pipe.close()
