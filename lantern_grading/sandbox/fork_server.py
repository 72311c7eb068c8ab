"""Sandboxes whose program need not be started: a process that has loaded it forks a copy of itself into each.

Starting Python and numpy takes most of the time of a small paper. bubblewrap makes each sandbox as ever; only its
program comes by another way.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from lantern_grading.sandbox import layout, seccomp
from lantern_grading.sandbox.entering import ORDER_BYTES
from lantern_grading.sandbox.errors import SandboxError
from lantern_grading.sandbox.limits import Limits
from lantern_grading.sandbox.starter import launch

_ANSWER_SECONDS = 60.0
_GONE = "The process that forks into sandboxes has ended."


class ForkServer:
    """A process with a loaded program, outside of all sandboxes; only code of ours runs in it.

    Parameters
    ----------
    command : sequence of str
        Starts the program, which calls `entering.main` with the number of a socket; it is the last word of the command.
    first : bytes
        What it reads from its standard input.
    """

    def __init__(self, command: Sequence[str], first: bytes) -> None:
        self._control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._control.settimeout(_ANSWER_SECONDS)
        with theirs:
            line = [*command, str(theirs.fileno())]
            self._popen = launch(line, pass_fds=[theirs.fileno()], cwd="/", env=layout.environment())
        here = str(layout.visible()[f"{layout.LIBRARY}/lantern_lib"].parent)
        self._control.send(json.dumps([here, layout.LIBRARY]).encode())
        assert self._popen.stdin is not None
        assert self._popen.stdout is not None
        assert self._popen.stderr is not None
        self._pipes = (self._popen.stdin, self._popen.stdout, self._popen.stderr)
        view = memoryview(first)
        with contextlib.suppress(OSError):  # whoever sends an order will see that it has ended
            while view:
                view = view[self._popen.stdin.write(view) or 0 :]

    @property
    def pid(self) -> int:
        """The process, as this side numbers it."""
        return self._popen.pid

    def enter(self, handles: Sequence[int], *, limits: Limits, uid: int | None) -> int:
        """Have a copy enter a sandbox.

        Parameters
        ----------
        handles : sequence of int
            The sandbox's first process; what says that the sandbox stands; what it lives by; then three pipes: what
            the program reads, what it writes, and its errors.
        limits : Limits
            Of one process.
        uid : int, optional
            The user that the copy becomes, where there is no user namespace.

        Returns
        -------
        int
            The process whose child is in the sandbox.

        Raises
        ------
        SandboxError
            If the process has ended.
        """
        order: dict[str, Any] = {
            "limits": limits.of_a_process(),
            "uid": uid,
            "filter": seccomp.program().hex(),
            "home": layout.HOME,
            "environment": layout.environment(),
        }
        try:
            socket.send_fds(self._control, [json.dumps(order).encode()], list(handles))
            answer = self._control.recv(ORDER_BYTES)
        except OSError:
            answer = b""
        if not answer:
            raise SandboxError(f"{_GONE} It said: {self._last_words()}")
        return int(answer)

    def cpu_seconds(self) -> float:
        """Return its own time on the processor, with that of copies that have ended [seconds]."""
        with contextlib.suppress(OSError):
            fields = Path(f"/proc/{self._popen.pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
            return sum(int(field) for field in fields[11:15]) / os.sysconf("SC_CLK_TCK")
        return 0.0

    def close(self) -> None:
        """End it. Sandboxes that it has entered go on."""
        self._control.close()
        with contextlib.suppress(ProcessLookupError):
            self._popen.kill()
        self._popen.wait()
        for pipe in self._pipes:
            with contextlib.suppress(OSError):
                pipe.close()

    def _last_words(self) -> str:
        self._popen.kill()
        lines = self._pipes[2].read().decode("utf-8", "replace").strip().splitlines()
        return lines[-1][:300] if lines else "nothing"
