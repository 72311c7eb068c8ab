"""What stands for a student's functions, classes and objects in the trusted process.

A stand-in has a name and a number and no behaviour of its own: comparisons, arithmetic and truth are those of any
plain object, so that an object which claims to equal everything equals nothing here.
"""

from __future__ import annotations

import builtins
import contextlib
import keyword
import time
import types
from collections.abc import Callable, Collection, Iterator, Mapping, MutableMapping, Sequence
from typing import Any

import numpy as np

from lantern_grading.checker.codec import CodecError, Reference
from lantern_grading.checker.decode import Reader
from lantern_grading.checker.encode import Writer
from lantern_grading.checker.generators import follow
from lantern_grading.checker.leaning import leans_by_text
from lantern_grading.checker.link import Link, ProcessLate
from lantern_grading.checker.telling import Telling
from lantern_grading.checker.writeback import restore
from lantern_lib.check_place import Here
from lantern_lib.check_time import TimeUp
from lantern_lib.labs import allowed_modules

#: A function that did not end once gets so much for each later call.
AGAIN_SECONDS = 0.5
_KINDS = ("class", "call", "thing")
_FUNCTIONS = (types.FunctionType, types.BuiltinFunctionType, types.MethodType, np.ufunc)


class Remote:
    """Something of the student's, by number. Underscores are not followed across the pipe."""

    def __init__(self, place: Place, number: int, name: str) -> None:
        self.__dict__.update(_place=place, _number=number, _label=name, _known={}, _made=False)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return self._place.get(self, name)

    def __setattr__(self, name: str, value: Any) -> None:
        self._place.ask("set", self, name, value)


class RemoteCall(Remote):
    """A function of the student's."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call it over there."""
        return self._place.call(self, args, kwargs)

    def __repr__(self) -> str:
        return f"<function {self._label}>"


class RemoteClass(RemoteCall):
    """A class of the student's."""

    def __instancecheck__(self, thing: Any) -> bool:
        return isinstance(thing, Remote) and self._place.ask("isinstance", thing, self) is True

    def __repr__(self) -> str:
        return f"<class {self._label}>"


def _special(name: str) -> Any:
    def ask(self: Remote, *args: Any) -> Any:
        if name == "__contains__" and not self._made:
            # It would be told the expected value, and could say yes to anything. Its members are data.
            return any(part is args[0] or part == args[0] for part in self)
        value = self._place.ask("special", self, name, list(args))
        return iter(value) if name == "__iter__" else value

    return ask


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
        self._keys = {kind: key for key, kind in classes.items() if hasattr(kind, "__dataclass_fields__")}
        self._remotes: dict[int, Remote] = {}
        self._kinds: dict[tuple[str, ...], type] = {}
        self._lent: list[Any] = []
        self._lent_numbers: dict[int, int] = {}
        self.sources: tuple[str, ...] = ()  # the student's cells, to be read
        self.telling = Telling()
        self.said: list[str] = []  # texts of the student's errors since a test began
        self.methods: Mapping[str, Collection[str] | None] = {}  # see `Exam.methods`
        self.write_back = True
        self.changed: list[tuple[Any, Any]] = []  # values that functions changed, and how they were
        self.link = Link(incoming, outgoing, Writer(self._keys, self._lend), Reader(classes, self._refer))

    # References

    def _refer(self, reference: Reference) -> Any:
        if reference.ours:
            if reference.number >= len(self._lent):
                raise CodecError("no such object.")
            return self._lent[reference.number]
        what, name, special = reference.about
        if what not in _KINDS or type(name) is not str or type(special) is not list:
            raise CodecError("no reference.")
        plain = name.isidentifier() and not keyword.iskeyword(name) and len(name) < 80
        name = name if plain and self.telling.name(name) else "object"  # else it could say what a hidden test asks
        if reference.number not in self._remotes:
            if what == "thing":
                kind = self._kind(name, tuple(str(part) for part in special))
            else:
                kind = RemoteClass if what == "class" else RemoteCall
            self._remotes[reference.number] = kind(self, reference.number, name)
        return self._remotes[reference.number]

    def _kind(self, name: str, special: tuple[str, ...]) -> type:
        key = (name, *special)
        if key not in self._kinds:
            known = {"__len__", "__getitem__", "__iter__", "__contains__", "__next__"} & set(special)
            body: dict[str, Any] = {part: _special(part) for part in known}
            # Named as the student would see it.
            self._kinds[key] = type(name, (Remote,), {**body, "__module__": "__main__"})
        return self._kinds[key]

    def _lend(self, value: Any) -> Reference:
        if isinstance(value, Remote):
            return Reference(True, value._number)
        key = self._lent_key(value)
        number = self._lent_numbers.get(id(value))
        if number is None:
            number = self._lent_numbers[id(value)] = len(self._lent)
            self._lent.append(value)
        return Reference(False, number, (key,))

    def _lent_key(self, value: Any) -> str:
        """Return how an object is announced; only functions and objects of the exam or the library are lent."""
        kind = type(value)
        if isinstance(value, _FUNCTIONS):
            return "function"
        if kind.__module__ == "__main__" or kind.__module__.split(".")[0] == "lantern_lib":
            key = f"{kind.__module__}:{kind.__qualname__}"
            return key if key in self.classes else ""
        raise CodecError(f"a {kind.__name__} cannot be passed to the sandbox; mark the test in-kernel.")

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
            reply = self.link.request("call", remote, packed, named, cpu, wall, seconds=wall, serve=self._serve)
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

    # The student's questions about the instructor's objects

    def _serve(self, message: tuple[Any, ...]) -> tuple[Any, ...]:
        _, token, number, what, name, packed = message
        try:
            args, kwargs = Reader(self.classes, self._only_ours).decode(packed)
            target = self._lent[number]
            if type(name) is not str or name.startswith("_"):
                raise AttributeError(f"{name} is not to be used")
            value = getattr(target, name) if name else target
            if what == "get":
                kind, value = ("method", None) if callable(value) else ("value", value)
            else:
                kind, value = "value", value(*args, **kwargs)
            self.link.writer.encode(value)
        except Exception as error:
            key = f"{type(error).__module__}:{type(error).__qualname__}"
            return ("answer", token, "raised", key if key in self.classes else type(error).__name__, str(error)[:2000])
        return ("answer", token, kind, value)

    def _only_ours(self, reference: Reference) -> Any:
        if not reference.ours:
            raise CodecError("only plain values can be passed to an object of the test.")
        return self._refer(reference)

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
        return leans_by_text(self.sources, function._label.split(".")[0], past, allowed_modules(week))

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
