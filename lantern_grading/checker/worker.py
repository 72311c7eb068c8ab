"""The student's side, inside the sandbox: runs the cells, then answers the grader's calls.

Nothing that this process says is believed to be more than data. It holds no test and no expected value.
"""

from __future__ import annotations

import builtins
import contextlib
import gc
import importlib
import os
import secrets
import struct
import sys
import time
import types
from pathlib import PurePosixPath
from typing import Any, BinaryIO

from lantern_grading.checker.answers import Answers
from lantern_grading.checker.cells import Cells, TimeUp
from lantern_grading.checker.codec import CodecError, Reference
from lantern_grading.checker.decode import Reader
from lantern_grading.checker.distant import Distant
from lantern_grading.checker.encode import Writer
from lantern_grading.checker.pristine import Pristine

_NAME, _NAMES, _MRO = (type.__dict__[name].__get__ for name in ("__name__", "__dict__", "__mro__"))
_SPECIAL = ("__len__", "__getitem__", "__iter__", "__contains__", "__next__")


class Worker(Answers):
    """Answers requests over a pair of pipes.

    Parameters
    ----------
    incoming, outgoing : binary files
        Frames: four bytes of length, then a value.
    pristine : Pristine, optional
        Puts things back before a test that runs here.
    """

    def __init__(self, incoming: BinaryIO, outgoing: BinaryIO, pristine: Pristine | None = None) -> None:
        self._in, self._out, self._pristine = incoming, outgoing, pristine
        self._held: list[Any] = []
        self._numbers: dict[int, int] = {}
        self._classes: dict[str, type] = {}  # what the instructor's cells and the library define
        self._keys: dict[type, str] = {}
        self._distant: dict[type, type] = {}
        self._saved: list[dict[str, Any]] = []
        self._moments: dict[int, dict[str, Any]] = {}  # what the names stood for, by the number of cells before
        self._encode, self._decode = Writer(self._keys, self._hold).encode, Reader(self._classes, self._refer).decode

    # Frames

    def send(self, message: Any) -> None:
        """Send a value; one that cannot be sent is an error for the caller."""
        data = self._encode(message)
        self._out.write(struct.pack("<I", len(data)) + data)
        self._out.flush()

    def receive(self) -> Any:
        """Wait for a value; the end of the pipe ends the process."""
        head = self._in.read(4)
        if len(head) < 4:
            os._exit(0)
        return self._decode(self._in.read(struct.unpack("<I", head)[0]))

    def _hold(self, value: Any) -> Reference:
        """Keep something that is no data, and say what it is."""
        kind = type(value)
        if issubclass(kind, Distant):
            return Reference(True, object.__getattribute__(value, "_lantern")[1])
        number = self._numbers.get(id(value))
        if number is None:
            number = self._numbers[id(value)] = len(self._held)
            self._held.append(value)
        what = "class" if issubclass(kind, type) else "call" if callable(value) else "thing"
        # Read past what the class, or its metaclass, would say: that may never end.
        inner = value.__func__ if kind is types.MethodType else value
        function = type(inner) is types.FunctionType or type(inner) is types.BuiltinFunctionType
        name = str.__str__(_NAME(value) if what == "class" else inner.__name__ if function else _NAME(kind))
        special = [name for name in _SPECIAL if any(name in _NAMES(base) for base in _MRO(kind))]
        special = special if what == "thing" else []
        return Reference(False, number, (what, name, special))

    def _refer(self, reference: Reference) -> Any:
        if reference.ours:
            return self._held[reference.number]
        key = str(reference.about[0]) if reference.about else ""
        if key == "function":
            return lambda *args, **kwargs: self.ask(reference.number, "call", "", args, kwargs)[1]
        base = self._classes.get(key, object)
        if base not in self._distant:
            name = key.rpartition(":")[2] or "object"
            self._distant[base] = type(name, (Distant,) if base is object else (Distant, base), {})
        made = self._distant[base].__new__(self._distant[base])
        Distant.__init__(made, self, reference.number)
        return made

    # The instructor's objects

    def ask(self, number: int, what: str, name: str, args: Any, kwargs: Any) -> tuple[str, Any]:
        """Read an attribute of the grader's object, or call it, and wait for the answer."""
        token = secrets.token_bytes(16)
        self.send(("ask", token, number, what, name, self._encode((list(args), dict(kwargs)))))
        reply = self.receive()
        if reply[0] != "answer" or reply[1] != token:
            os._exit(3)
        if reply[2] == "raised":
            kind = self._classes.get(reply[3], getattr(builtins, reply[3], RuntimeError))
            error = type(
                reply[3].rpartition(":")[2], (kind,), {"__init__": lambda *_: None, "__str__": lambda _: reply[4]}
            )
            raise error(reply[4])
        return reply[2], reply[3]

    # Cells

    def begin(self, order: dict[str, Any]) -> None:
        """Write the files, run the cells, and tell what came of them."""
        for name, content in order["files"]:
            path = PurePosixPath(name)
            if not path.is_absolute() and ".." not in path.parts:
                with contextlib.suppress(OSError):
                    os.makedirs(path.parent, exist_ok=True)
                    with open(path, "wb") as file:
                        file.write(content)
        self._learn_library(order["library"])
        # At the end: what lies beside a notebook may be imported, and hides nothing.
        sys.path.append("")
        self.cells = Cells(lambda cell, statement: self.send(("at", cell, statement)), order["cell_seconds"])
        outputs: list[Any] = []
        for number, (given, source, stop) in enumerate(order["steps"]):
            if number in order["moments"]:
                self._moments[number] = dict(self.cells.namespace)
            names = self.cells.namespace
            before = dict(names) if given else {}
            shown = self.cells.run(number, source, stop)
            if given:
                # What a student defined before it stays the student's.
                self._learn([value for name, value in names.items() if before.get(name) is not value])
            outputs.append(shown)
        self._moments[len(outputs)] = dict(self.cells.namespace)
        self.send(("ran", outputs))

    def _learn(self, values: list[Any]) -> None:
        """Note the classes that the instructor's cells define: instances of theirs travel by value, or stay there."""
        for value in values:
            if isinstance(value, type) and value.__module__ == "__main__" and value not in self._keys:
                self._classes[f"__main__:{value.__qualname__}"] = value
                if hasattr(value, "__dataclass_fields__"):
                    self._keys[value] = f"__main__:{value.__qualname__}"

    def _learn_library(self, names: list[str]) -> None:
        for name in names:
            module, _, kind = name.partition(":")
            value = getattr(importlib.import_module(module), kind, None)
            if isinstance(value, type):
                self._classes[name] = value
                if hasattr(value, "__dataclass_fields__"):
                    self._keys[value] = name

    # Requests

    def serve(self) -> None:
        """Answer until the grader hangs up."""
        while True:
            message = self.receive()
            if message[0] == "begin":
                self.begin(message[1])
                continue
            what, token, arguments = message[0], message[1], message[2:]
            start = time.process_time()
            try:
                answer: tuple[Any, ...] = ("ok", *getattr(self, f"do_{what}")(*arguments))
            except TimeUp:
                answer = ("late",)
            except BaseException as error:
                answer = self._raised(error)
            try:
                self.send(("reply", token, time.process_time() - start, *answer))
            except CodecError as error:
                self.send(("reply", token, 0.0, "raised", ["ValueError"], f"the result cannot be passed: {error}", ""))


def load(incoming: BinaryIO) -> Pristine | None:
    """Take the grader's first message, and load what takes long.

    Returns
    -------
    Pristine, optional
        How all of it is before a student's code runs, for an exam with tests that run beside that code.
    """
    first = Worker(incoming, incoming).receive()
    for name in first["modules"]:
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    return Pristine() if first["in_kernel"] else None


def work(incoming: BinaryIO, outgoing: BinaryIO, pristine: Pristine | None) -> None:
    """Say that all is loaded, and serve."""
    gc.enable()
    # Until now the grader could read why it does not start.
    os.dup2(os.open(os.devnull, os.O_RDWR), 2)
    worker = Worker(incoming, outgoing, pristine)
    worker.send(("hello", list(sys.version_info[:2])))
    worker.serve()
