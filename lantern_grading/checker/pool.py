"""Sandboxes that are started before their turn, so that loading Python and numpy costs nobody's time."""

from __future__ import annotations

import contextlib
import importlib
import marshal
import os
import struct
import time
from collections import deque
from dataclasses import replace
from pathlib import Path
from typing import Any

import lantern_grading
from lantern_grading.checker.encode import Writer
from lantern_grading.checker.program import modules, modules_of_tests
from lantern_grading.checker.scoring import compiled
from lantern_grading.exam import Exam
from lantern_grading.outcome import Trust
from lantern_grading.sandbox import Backend, Forking, ForkServer, Limits, Process, SandboxError

# Takes the program from a pipe: what runs is never read from a file that a submission could bring along.
_LOAD = """
import gc, os, sys, marshal, struct, types
gc.disable()  # what is loaded now stays; nothing in it is worth a search
incoming = os.fdopen(os.dup(0), "rb")
parts = marshal.loads(incoming.read(struct.unpack("<I", incoming.read(4))[0]))
for name, code in parts:
    module = sys.modules[name] = types.ModuleType(name)
    module.__path__ = []
    exec(code, module.__dict__)
worker = sys.modules["lantern_grading.checker.worker"]
"""
# Takes the pipes away from the code that will run.
_STARTED = (
    _LOAD
    + """
outgoing, nothing = os.fdopen(os.dup(1), "wb"), os.open(os.devnull, os.O_RDWR)
for handle in (0, 1):
    os.dup2(nothing, handle)
worker.work(incoming, outgoing, worker.load(incoming))
"""
)
_FORKED = (
    _LOAD
    + """
def load():
    with incoming:
        return worker.load(incoming)
sys.modules["lantern_grading.sandbox.entering"].main(int(sys.argv.pop()), load, worker.work)
"""
)
_PARTS = (
    "lantern_grading.sandbox.entering",
    *(
        f"lantern_grading.checker.{name}"
        for name in ("codec", "encode", "decode", "writeback", "cells", "pristine", "answers", "distant", "worker")
    ),
)


def _program() -> bytes:
    packages = ("lantern_grading", "lantern_grading.sandbox", "lantern_grading.checker")
    parts: list[tuple[str, Any]] = [(name, compile("", name, "exec")) for name in packages]
    for name in _PARTS:
        path = Path(lantern_grading.__path__[0], *name.split(".")[1:]).with_suffix(".py")
        parts.append((name, compile(path.read_text(encoding="utf-8"), f"<{path.stem}>", "exec")))
    data = marshal.dumps(parts)
    return struct.pack("<I", len(data)) + data


class Pool:
    """Starts sandboxes for an exam's papers, some ahead of need. A context manager; leaving it ends those left.

    Parameters
    ----------
    exam : Exam
        Decides what is loaded before the student's code comes.
    backend : Backend
        The kind of sandbox.
    limits : Limits
        Of each of them.
    spare : int
        How many are kept ready [count].
    """

    def __init__(self, exam: Exam, backend: Backend, limits: Limits, spare: int = 1) -> None:
        # One that waits for its paper must not run out of time before its turn.
        self._exam, self._prepared = exam, False
        self._backend, self._spare, self._ahead = backend, spare, limits.total_seconds
        self._limits = replace(limits, total_seconds=2 * limits.total_seconds)
        nobody = Writer({}, lambda value: (_ for _ in ()).throw(TypeError(repr(value))))
        in_kernel = any(test.trust is Trust.IN_KERNEL for test in exam.tests)
        # What is not loaded before the student's code cannot be put back for a test that runs beside it.
        ahead = modules_of_tests(exam) if in_kernel else modules(exam)
        first = nobody.encode({"modules": ahead, "in_kernel": in_kernel})
        self._first = _program() + struct.pack("<I", len(first)) + first
        self.server: ForkServer | None = None  #: what is forked into sandboxes, where that is possible
        self._ready: deque[tuple[float, Process]] = deque()

    def __enter__(self) -> Pool:
        self._prepare()
        self.fill()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def fill(self) -> None:
        """Start as many as are to be ready."""
        while len(self._ready) < self._spare:
            self._ready.append((time.monotonic(), self._start()))

    def take(self) -> Process:
        """Return a sandbox that loads or has loaded; the caller closes it. Another is started in its place."""
        process = None
        while self._ready and process is None:
            begun, process = self._ready.popleft()
            if process.poll() is not None or time.monotonic() - begun > self._ahead:
                process.close()
                process = None
        self._prepare()
        process = process or self._start()
        self.fill()
        return process

    def close(self) -> None:
        """End those that nobody took, and what they were forked from."""
        while self._ready:
            self._ready.popleft()[1].close()
        if self.server:
            self.server.close()
        self.server, self._prepared = None, False

    def _prepare(self) -> None:
        """Load here what the tests use, while the program loads: the process of each paper is a fork of this one."""
        if self._prepared:
            return
        self._prepared = True
        if isinstance(self._backend, Forking):
            self.server = self._backend.fork_server([self._backend.python, "-P", "-c", _FORKED], self._first)
        for name in modules_of_tests(self._exam):
            with contextlib.suppress(ImportError):
                importlib.import_module(name)
        for test in self._exam.tests:
            compiled(test.cell_id, test.source)

    def _start(self) -> Process:
        if self.server and isinstance(self._backend, Forking):
            try:
                return self._backend.enter(self.server, self._limits)
            except SandboxError:
                # The program can be started in each sandbox too; that only takes longer.
                self.server.close()
                self.server = None
        process = self._backend.start([self._backend.python, "-P", "-c", _STARTED], limits=self._limits)
        view = memoryview(self._first)
        try:
            while view:
                view = view[os.write(process.stdin.fileno(), view) :]
        except OSError:
            pass  # whoever takes it will see that it has ended
        return process
