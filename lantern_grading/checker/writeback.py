"""What a student's function did to its arguments: done to the instructor's own, and undone after the test."""

from __future__ import annotations

import dataclasses
from collections import deque
from typing import Any

import numpy as np

_PLAIN = (list, dict, set, bytearray, deque, np.ndarray)


def may_change(value: Any) -> bool:
    """Say whether a function could change a value that it is given.

    Examples
    --------
    >>> may_change([1]), may_change((1, "a")), may_change((1, [2]))
    (True, False, True)
    """
    kind = type(value)
    if kind in _PLAIN or kind is np.random.Generator:
        return True
    if kind is tuple:
        return any(may_change(part) for part in value)
    if dataclasses.is_dataclass(kind):
        settings = kind.__dataclass_params__  # type: ignore[attr-defined]
        if settings.frozen and settings.eq:
            return any(may_change(getattr(value, field.name)) for field in dataclasses.fields(kind))
        return True
    return False


def restore(value: Any, wanted: Any) -> None:
    """Make a value equal to another one in place, as far as its type allows; parts keep their identity.

    Parameters
    ----------
    value, wanted : Any
        What is changed, and what it shall be like. Nothing happens if their types differ.

    Examples
    --------
    >>> inner = [1]
    >>> outer = {"a": inner, "b": 2}
    >>> restore(outer, {"a": [1, 5]})
    >>> outer, inner
    ({'a': [1, 5]}, [1, 5])
    """
    kind = type(value)
    if kind is not type(wanted):
        return
    if kind is list:
        value[:] = [_merged(a, b) for a, b in zip(value, wanted, strict=False)] + wanted[len(value) :]
    elif kind is dict:
        new = {key: _merged(value[key], part) if key in value else part for key, part in wanted.items()}
        value.clear()
        value.update(new)
    elif kind is set:
        value.clear()
        value.update(wanted)
    elif kind is deque:
        value.clear()
        value.extend(wanted)
    elif kind is bytearray:
        value[:] = wanted
    elif kind is np.ndarray:
        if value.shape == wanted.shape and value.dtype == wanted.dtype and value.flags.writeable:
            value[...] = wanted
    elif kind is tuple and len(value) == len(wanted):
        for a, b in zip(value, wanted, strict=True):
            restore(a, b)
    elif dataclasses.is_dataclass(kind):
        for field in dataclasses.fields(kind):
            new = _merged(getattr(value, field.name), getattr(wanted, field.name))
            object.__setattr__(value, field.name, new)


def _merged(old: Any, new: Any) -> Any:
    """Keep the old part, changed in place, where that can be."""
    if type(old) is type(new) and may_change(old) and type(old) is not np.random.Generator:
        if type(old) is np.ndarray and (old.shape, old.dtype) != (new.shape, new.dtype):
            return new
        restore(old, new)
        return old
    return new
