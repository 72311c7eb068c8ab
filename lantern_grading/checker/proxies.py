"""The other end of the pipe, as the trusted process sees it: calls, their answers, their errors, their traces."""

from __future__ import annotations

import builtins
import contextlib
import keyword
import time
from collections.abc import Callable, Collection, Iterator, Mapping, MutableMapping, Sequence
from typing import Any

import numpy as np

from lantern_grading.checker.codec import CodecError, Reference
from lantern_grading.checker.decode import Reader
from lantern_grading.checker.generators import follow
from lantern_grading.checker.leaning import leans_by_text
from lantern_grading.checker.lending import Lending
from lantern_grading.checker.link import Link, ProcessLate
from lantern_grading.checker.remotes import Remote, RemoteCall, RemoteClass, kind_of
from lantern_grading.checker.telling import Telling
from lantern_grading.checker.writeback import restore
from lantern_lib.check_place import Here
from lantern_lib.check_time import TimeUp
from lantern_lib.labs import allowed_modules

#: A function that did not end once gets so much for each later call.
AGAIN_SECONDS = 0.5
_KINDS = ("class", "call", "thing")


class Place(Here):
    """The other end of the pipe, where the student's functions live.

    Parameters
    ----------
    incoming, outgoing : int
        The pipes' descriptors.
    classes : mapping of str to type
        The instructor's and the library's classes, by the name that both sides use.
    call_seconds : float
        A call is stopped after this time on the clock [seconds].
    slow : collection of str
        Functions that did not come to an end before.
    alive : callable
        Told now and then that calls are answered.
    """

    def __init__(
        self,
        incoming: int,
        outgoing: int,
        classes: dict[str, type],
        call_seconds: float,
        slow: Collection[str] = (),
        alive: Callable[[], object] = lambda: None,
    ) -> None:
        self.classes, self.call_seconds, self.slow = classes, call_seconds, set(slow)
        self._alive, self._told = alive, time.monotonic()
        self.late = False  # whether a call was stopped
        self.epoch = 0  # grows with everything that may change the student's objects
        self.cpu_left = 0.0  # of the innermost time limit, 0 without one
        self._remotes: dict[int, Remote] = {}
        self.sources: tuple[str, ...] = ()  # the student's cells up to the place of the test, to be read
        self.later: tuple[str, ...] = ()  # and those after it
        self.telling = Telling()
        self.said: list[str] = []  # texts of the student's errors since a test began
        self.methods: Mapping[str, Collection[str] | None] = {}  # see `Exam.methods`
        self.write_back = True
        self.changed: list[tuple[Any, Any]] = []  # values that functions changed, and how they were
        self._lending = Lending(classes)
        self.link = Link(incoming, outgoing, self._lending.writer, Reader(classes, self._refer))

    # References

    def _refer(self, reference: Reference) -> Any:
        if reference.ours:
            return self._lending.of(reference)
        what, name, special = reference.about
        if what not in _KINDS or type(name) is not str or type(special) is not list:
            raise CodecError("no reference.")
        plain = name.isidentifier() and not keyword.iskeyword(name) and len(name) < 80
        name = name if plain and self.telling.name(name) else "object"  # else it could say what a hidden test asks
        if reference.number not in self._remotes:
            if what == "thing":
                kind = kind_of(name, tuple(str(part) for part in special))
            else:
                kind = RemoteClass if what == "class" else RemoteCall
            self._remotes[reference.number] = kind(self, reference.number, name)
        return self._remotes[reference.number]

    # Requests

    def ask(self, what: str, *arguments: Any) -> Any:
        """Ask something that returns one value."""
        self.epoch += what != "get"
        timed = {"get", "set", "special"}
        extra = (self.call_seconds,) if what in timed else ()
        reply = self.link.request(what, *arguments, *extra, seconds=self.call_seconds)
        return self._answer("", reply, ends=what == "special" and arguments[1] == "__next__")[0]

    def get(self, remote: Remote, name: str) -> Any:
        """Read an attribute."""
        kept = remote._known.get(name)
        if kept and kept[0] in (self.epoch, -1):
            return kept[1]
        value = self.ask("get", remote, name)
        if isinstance(value, RemoteCall) and not isinstance(remote, RemoteCall):
            asked = self.methods.get(type(remote).__name__, frozenset())
            if asked is not None and name not in asked:
                # A method is told what the test compares with, so only those are called that the exam asks for.
                raise AttributeError(f"a {type(remote).__name__} has no method {name} that was asked for")
        # Nothing over there changes between two calls.
        remote._known[name] = (self.epoch, value)
        if isinstance(value, RemoteCall) and isinstance(remote, RemoteClass):
            value.__dict__["_label"] = f"{remote._label}.{name}"
            remote._known[name] = (-1, value)
        return value

    def call(self, remote: RemoteCall, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
        """Call a function; what it changes of its arguments is changed here too, unless that is switched off."""
        self.epoch += 1
        if time.monotonic() > self._told + 1.0:
            self._told = time.monotonic()
            self._alive()
        again = remote._label in self.slow
        wall = min(self.call_seconds, 2 * AGAIN_SECONDS) if again else self.call_seconds
        cpu = AGAIN_SECONDS if again else max(self.cpu_left, 0.0)
        if self.cpu_left < 0:
            raise TimeUp
        encode = self.link.writer.encode
        packed, named = [encode(value) for value in args], {name: encode(value) for name, value in kwargs.items()}
        try:
            reply = self.link.request("call", remote, packed, named, cpu, wall, seconds=wall, serve=self._lending.serve)
        except ProcessLate:
            self.late = True
            self.slow.add(remote._label)
            raise TimeUp from None
        if self.cpu_left:
            self.cpu_left = (self.cpu_left - min(max(reply[0], 0.0), wall)) or -1.0
        result = self._answer(remote._label, reply)
        given: dict[Any, Any] = {**dict(enumerate(args)), **kwargs}
        sent: dict[Any, bytes] = {**dict(enumerate(packed)), **named}
        self._note(result[1] if len(result) > 1 else None, {key: (given[key], sent[key]) for key in given})
        if isinstance(remote, RemoteClass) and isinstance(result[0], Remote):
            asked = self.methods.get(remote._label, frozenset())
            result[0].__dict__["_made"] = asked is None or "__contains__" in asked
        return result[0]

    def _answer(self, label: str, reply: tuple[Any, ...], ends: bool = False) -> tuple[Any, ...]:
        if reply[1] == "late":
            self.late = True
            self.slow.add(label)
            raise TimeUp
        if reply[1] == "ok" and len(reply) > 2:
            return reply[2:]
        if reply[1] == "raised" and len(reply) == 5:
            error = self._error(*reply[2:])
            if isinstance(error, StopIteration) and not ends:
                # It would end a loop of the test's own, which then has compared nothing.
                raise RuntimeError(f"your code raised {type(error).__name__}") from None
            raise error
        return (None,)

    def _error(self, names: Any, text: Any, line: Any) -> Exception:
        """Make an exception that looks like the student's: first known kind, its name and text; never its behaviour."""
        names = [name for name in names if type(name) is str] if type(names) is list else []
        kinds = [self.classes.get(name, getattr(builtins, name, None)) for name in names]
        usable = [k for k in kinds if isinstance(k, type) and issubclass(k, Exception) and k is not ExceptionGroup]
        name = names[0].rpartition(":")[2].rpartition(".")[2] if names else "Exception"
        text = text if type(text) is str else ""
        kind = usable[0] if usable else Exception
        if not self.telling.name(name) and names and names[0] not in self.classes:
            name = kind.__name__
        self.said.append(text)
        body = {"__init__": lambda self, *_: None, "__str__": lambda self: text}
        error: Exception = type(name if name.isidentifier() else "Exception", (kind,), body)(text)
        error.lantern_line = line if type(line) is str else ""  # type: ignore[attr-defined]
        return error

    def _note(self, changed: Any, given: dict[Any, tuple[Any, bytes]]) -> None:
        """Change arguments as the function over there did, and remember how they were."""
        if type(changed) is not dict:
            return
        for key, data in changed.items():
            if key not in given or type(data) is not bytes:
                continue
            value, before = given[key]
            with contextlib.suppress(CodecError):
                after = self.link.reader.decode(data)
                if isinstance(value, np.random.Generator):
                    follow(value, after)
                    continue
                self.changed.append((value, self.link.reader.decode(before)))
                if self.write_back:
                    restore(value, after)

    def undo(self) -> None:
        """Give the instructor's values back what functions did to them."""
        while self.changed:
            restore(*self.changed.pop())

    # What a Task needs to know of the place

    @contextlib.contextmanager
    def given(self, names: MutableMapping[str, Any], week: int, functions: Sequence[str]) -> Iterator[None]:
        """Put correct versions in place on both sides."""
        with super().given(names, week, functions):
            self.ask("stand_in", week, list(functions))
            try:
                yield
            finally:
                if not self.link.lost:
                    self.ask("stand_back")

    def leans_on(self, function: Any, past: Collection[str], week: int) -> str:
        """Ask the other side, where the function's own names are."""
        if not isinstance(function, Remote):
            return super().leans_on(function, past, week)
        found = self.ask("leans_on", function, sorted(past), week)
        if found != "":
            return found[:100] if type(found) is str else "something unknown"
        # The other side may deny it; the text of its cells cannot.
        return leans_by_text(self.sources, function._label.split(".")[0], past, allowed_modules(week), self.later)

    @contextlib.contextmanager
    def time_limit(self, seconds: float) -> Iterator[None]:
        """Limit the processor time of the calls in the body, all together."""
        before, self.cpu_left = self.cpu_left, seconds
        try:
            yield
        finally:
            self.cpu_left = before

    def line_of(self, function: Any, error: BaseException) -> str:
        """Return the student's line; the runner lets it through only if it is one of theirs."""
        return str(getattr(error, "lantern_line", ""))[:200] or super().line_of(function, error)
