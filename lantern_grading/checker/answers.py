"""What the grader may ask of the student's side; this module runs inside the sandbox."""

from __future__ import annotations

import builtins
import contextlib
from collections.abc import Callable
from typing import Any

from lantern_grading.checker.cells import Cells, TimeUp, time_limit
from lantern_grading.checker.codec import CodecError
from lantern_grading.checker.pristine import Pristine
from lantern_grading.checker.writeback import may_change

MAX_ERROR = 2000
#: How many values are taken from something that may never end.
MAX_STEPS = 100_000


class Answers:
    """The requests, each by its name with ``do_`` in front: what is returned is the answer's parts."""

    cells: Cells
    _classes: dict[str, type]
    _saved: list[dict[str, Any]]
    _moments: dict[int, dict[str, Any]]
    _pristine: Pristine | None
    _encode: Callable[[Any], bytes]
    _decode: Callable[[bytes], Any]

    def do_at(self, moment: int, asked: list[str], wall: float) -> Any:
        """Let all names stand for what they did after so many cells; return those that the exam asks for.

        Functions look names up when they are called, so it is the notebook's own namespace that changes. A name that
        came only later is kept: a helper may stand below. But what was Python's own until then is Python's own.
        """
        last = self._moments[max(self._moments)]
        later = {name: value for name, value in last.items() if not hasattr(builtins, name)}
        namespace = self.cells.namespace
        namespace.clear()
        namespace.update(later | self._moments[moment])
        found = {}
        for name in asked:
            # To say what an object is may run code of its class.
            with contextlib.suppress(CodecError, KeyError, TimeUp), time_limit(wall / 2):
                found[name] = self._encode(namespace[name])
        return (found,)

    def do_call(self, target: Any, args: list[bytes], kwargs: dict[str, bytes], cpu: float, wall: float) -> Any:
        """Call something; say what it returns, and which of its arguments it changed."""
        values = [self._decode(data) for data in args]
        named = {name: self._decode(data) for name, data in kwargs.items()}
        self.cells.quiet()
        with time_limit(wall, cpu):
            result = target(*values, **named)
        changed = {}
        for key, value, data in [
            *zip(range(len(args)), values, args, strict=True),
            *((name, named[name], kwargs[name]) for name in kwargs),
        ]:
            if may_change(value):
                with contextlib.suppress(CodecError):
                    if (now := self._encode(value)) != data:
                        changed[key] = now
        return result, changed

    def do_get(self, target: Any, name: str, wall: float) -> Any:
        """Read an attribute."""
        with time_limit(wall):
            return (getattr(target, name),)

    def do_set(self, target: Any, name: str, value: Any, wall: float) -> Any:
        """Set an attribute."""
        with time_limit(wall):
            setattr(target, name, value)
        return (None,)

    def do_special(self, target: Any, name: str, args: list[Any], wall: float) -> Any:
        """Ask for a length, an item, membership, or for all values."""
        with time_limit(wall):
            if name == "__iter__":
                return ([value for value, _ in zip(target, range(MAX_STEPS), strict=False)],)
            return (getattr(type(target), name)(target, *args),)

    def do_isinstance(self, target: Any, kind: Any) -> Any:
        """Say whether something is an instance of a class."""
        return (isinstance(target, kind),)

    def do_stand_in(self, week: int, names: list[str]) -> Any:
        """Put correct versions in place of the student's functions."""
        from lantern_lib.labs import stand_ins

        names_now, right = self.cells.namespace, stand_ins(week)
        self._saved.append({name: names_now[name] for name in names if name in names_now} | {"": names})
        names_now.update({name: right[name] for name in names})
        return (None,)

    def do_stand_back(self) -> Any:
        """Put the student's functions back."""
        saved = self._saved.pop()
        for name in saved.pop(""):
            self.cells.namespace.pop(name, None)
        self.cells.namespace.update(saved)
        return (None,)

    def do_leans_on(self, target: Any, past: list[str], week: int) -> Any:
        """Say which module with answers a function reaches."""
        from lantern_lib.labs import leans_on

        with time_limit(5.0):
            return (leans_on(target, past, week),)

    def do_kernel_test(self, source: str, wall: float) -> Any:
        """Run a test in this process, with Python and its libraries as they were before the student's code."""
        with time_limit(wall):
            if self._pristine:
                self._pristine.put_back()
                self.cells.install()
            space = self.cells.namespace
            *body, last = source
            exec(compile(body[0], "<test>", "exec", dont_inherit=True), space)
            return (eval(compile(last, "<test>", "eval", dont_inherit=True), space) if last else None,)

    def _raised(self, error: BaseException) -> tuple[Any, ...]:
        names, text, line = ["Exception"], "(its text could not be read)", ""
        with contextlib.suppress(BaseException):
            names = [
                self._key_of(kind) for kind in type(error).__mro__ if isinstance(kind, type) and kind is not object
            ]
            text = str(error)[:MAX_ERROR]
        with contextlib.suppress(BaseException):
            line = self._line_of(error)
        return "raised", names, text, line

    def _key_of(self, kind: type) -> str:
        key = f"{kind.__module__}:{kind.__qualname__}"
        return key if self._classes.get(key) is kind else kind.__name__

    def _line_of(self, error: BaseException) -> str:
        found, at = "", error.__traceback__
        while at is not None:
            lines = self.cells.sources.get(at.tb_frame.f_code.co_filename)
            if lines and at.tb_lineno <= len(lines):
                found = lines[at.tb_lineno - 1].strip()
            at = at.tb_next
        return found
