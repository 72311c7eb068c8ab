"""What stands for a student's functions, classes and objects in the trusted process.

A stand-in has a name and a number and no behaviour of its own: comparisons, arithmetic and truth are those of any
plain object, so that an object which claims to equal everything equals nothing here.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lantern_grading.checker.proxies import Place


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


@functools.lru_cache(1000)
def kind_of(name: str, special: tuple[str, ...]) -> type:
    """Return the kind of stand-in for an object, named as the student would see it.

    Parameters
    ----------
    name : str
        Of the object's class; an identifier.
    special : tuple of str
        What its class can do.
    """
    known = {"__len__", "__getitem__", "__iter__", "__contains__", "__next__"} & set(special)
    body: dict[str, Any] = {part: _special(part) for part in known}
    return type(name, (Remote,), {**body, "__module__": "__main__"})
