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

from lantern_grading.checker.encode import Writer
from lantern_grading.checker.program import modules, modules_of_tests
from lantern_grading.exam import Exam
from lantern_grading.sandbox import Backend, Limits, Process

# Takes the pipes away from the code that will run, then the program: what runs is never read from a file that
# a submission could bring along.
_BOOT = """
import gc, os, sys, marshal, struct, types
gc.disable()  # what is loaded now stays; nothing in it is worth a search
incoming, outgoing, nothing = os.dup(0), os.dup(1), os.open(os.devnull, os.O_RDWR)
for handle in (0, 1):
    os.dup2(nothing, handle)
incoming, outgoing = os.fdopen(incoming, "rb"), os.fdopen(outgoing, "wb")
parts = marshal.loads(incoming.read(struct.unpack("<I", incoming.read(4))[0]))
for name, code in parts:
    module = sys.modules[name] = types.ModuleType(name)
    module.__path__ = []
    exec(code, module.__dict__)
sys.modules["lantern_grading.checker.worker"].main(incoming, outgoing)
"""
_PARTS = ("codec", "encode", "decode", "writeback", "cells", "answers", "distant", "worker")


def _program() -> bytes:
    parts: list[tuple[str, Any]] = [
        (name, compile("", name, "exec")) for name in ("lantern_grading", "lantern_grading.checker")
    ]
    for name in _PARTS:
        path = Path(__file__).with_name(f"{name}.py")
        parts.append(
            (f"lantern_grading.checker.{name}", compile(path.read_text(encoding="utf-8"), f"<{name}>", "exec"))
        )
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
        self._exam, self._loaded = exam, False
        self._backend, self._spare, self._ahead = backend, spare, limits.total_seconds
        self._limits = replace(limits, total_seconds=2 * limits.total_seconds)
        nobody = Writer({}, lambda value: (_ for _ in ()).throw(TypeError(repr(value))))
        first = nobody.encode({"modules": modules(exam)})
        self._first = _program() + struct.pack("<I", len(first)) + first
        self._ready: deque[tuple[float, Process]] = deque()

    def __enter__(self) -> Pool:
        self.fill()
        self._load()
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
        process = process or self._start()
        self.fill()
        self._load()
        return process

    def close(self) -> None:
        """End those that nobody took."""
        while self._ready:
            self._ready.popleft()[1].close()

    def _load(self) -> None:
        """Load here what the tests use, while the sandboxes load: the process of each paper is a fork of this one."""
        if not self._loaded:
            self._loaded = True
            for name in modules_of_tests(self._exam):
                with contextlib.suppress(ImportError):
                    importlib.import_module(name)

    def _start(self) -> Process:
        process = self._backend.start([self._backend.python, "-P", "-c", _BOOT], limits=self._limits)
        view = memoryview(self._first)
        try:
            while view:
                view = view[os.write(process.stdin.fileno(), view) :]
        except OSError:
            pass  # whoever takes it will see that it has ended
        return process
