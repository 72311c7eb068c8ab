"""What the trusted process lends to the sandbox: functions and objects of the instructor's, by number."""

from __future__ import annotations

import types
from typing import Any

import numpy as np

from lantern_grading.checker.codec import CodecError, Reference
from lantern_grading.checker.decode import Reader
from lantern_grading.checker.encode import Writer
from lantern_grading.checker.remotes import Remote

_FUNCTIONS = (types.FunctionType, types.BuiltinFunctionType, types.MethodType, np.ufunc)


class Lending:
    """Keeps what was lent, and answers what the student's code asks of it.

    Parameters
    ----------
    classes : dict of str to type
        The instructor's and the library's classes, by the name that both sides use.
    """

    def __init__(self, classes: dict[str, type]) -> None:
        keys = {kind: key for key, kind in classes.items() if hasattr(kind, "__dataclass_fields__")}
        self.writer = Writer(keys, self._lend)
        self._classes, self._reader = classes, Reader(classes, self._only_ours)
        self._lent: list[Any] = []
        self._numbers: dict[int, int] = {}

    def of(self, reference: Reference) -> Any:
        """Return what was lent by a number; CodecError if nothing was."""
        if reference.number >= len(self._lent):
            raise CodecError("no such object.")
        return self._lent[reference.number]

    def serve(self, message: tuple[Any, ...]) -> tuple[Any, ...]:
        """Answer a question about an object: an attribute, or a call. Underscores are not followed."""
        _, token, number, what, name, packed = message
        try:
            args, kwargs = self._reader.decode(packed)
            target = self._lent[number]
            if type(name) is not str or name.startswith("_"):
                raise AttributeError(f"{name} is not to be used")
            value = getattr(target, name) if name else target
            if what == "get":
                kind, value = ("method", None) if callable(value) else ("value", value)
            else:
                kind, value = "value", value(*args, **kwargs)
            self.writer.encode(value)
        except Exception as error:
            key = f"{type(error).__module__}:{type(error).__qualname__}"
            return ("answer", token, "raised", key if key in self._classes else type(error).__name__, str(error)[:2000])
        return ("answer", token, kind, value)

    def _lend(self, value: Any) -> Reference:
        if isinstance(value, Remote):
            return Reference(True, value._number)
        key = self._key_of(value)
        number = self._numbers.get(id(value))
        if number is None:
            number = self._numbers[id(value)] = len(self._lent)
            self._lent.append(value)
        return Reference(False, number, (key,))

    def _key_of(self, value: Any) -> str:
        """Return how an object is announced; only functions and objects of the exam or the library are lent."""
        kind = type(value)
        if isinstance(value, _FUNCTIONS):
            return "function"
        if kind.__module__ == "__main__" or kind.__module__.split(".")[0] == "lantern_lib":
            key = f"{kind.__module__}:{kind.__qualname__}"
            return key if key in self._classes else ""
        raise CodecError(f"a {kind.__name__} cannot be passed to the sandbox; mark the test in-kernel.")

    def _only_ours(self, reference: Reference) -> Any:
        if not reference.ours:
            raise CodecError("only plain values can be passed to an object of the test.")
        return self.of(reference)
