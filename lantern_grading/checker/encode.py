"""Values to bytes; see :mod:`lantern_grading.checker.codec`."""

from __future__ import annotations

import dataclasses
import struct
from abc import ABCMeta
from array import array
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable, Mapping
from fractions import Fraction
from itertools import repeat
from operator import is_
from typing import Any

import numpy as np

from lantern_grading.checker.codec import (
    F8,
    GENERATORS,
    HALF,
    I8,
    MAX_BYTES,
    MAX_DEPTH,
    MAX_INT_BYTES,
    MAX_ITEMS,
    REST,
    U4,
    U8,
    CodecError,
    Reference,
)


class Writer:
    """Turn values into bytes.

    Parameters
    ----------
    keys : mapping of type to str
        The dataclasses that the other side knows, by their class.
    other : callable
        Returns the :class:`Reference` of anything else, or raises CodecError.
    """

    def __init__(self, keys: Mapping[type, str], other: Callable[[Any], Reference]) -> None:
        self.keys, self._other = keys, other
        self._fields: dict[type, tuple[str, ...]] = {}
        self._parts: list[bytes] = []
        self._left = self._deepest = 0
        # By the id of a list or dict: its number, how many parts it has in all, how deep it is, and itself, so that no
        # other gets its id.
        self._shared: dict[int, tuple[int, int, int, Any]] = {}

    def encode(self, value: Any) -> bytes:
        """Return a value's bytes; CodecError if it is too deep or too large."""
        before = self._parts, self._left, self._deepest, self._shared
        self._parts, self._left, self._deepest, self._shared = [], MAX_ITEMS, 0, {}
        try:
            self._put(value, 0)
            data = b"".join(self._parts)
        finally:
            self._parts, self._left, self._deepest, self._shared = before
        if len(data) > MAX_BYTES:
            raise CodecError(f"the value takes {len(data):,} bytes; {MAX_BYTES:,} can be passed.")
        return data

    def _put(self, value: Any, depth: int) -> None:
        # Nothing here runs code of a student's class, or of its metaclass: it might never end.
        kind = type(value)
        if not _ordinary(kind):
            self._reference(self._other(value), depth)
            return
        put = _WRITE.get(kind)
        if put is not None:
            self._parts.append(put(value))
        elif kind is list or kind is dict:
            self._once(value, depth)
        elif kind in _SEQUENCES:
            self._sequence(_SEQUENCES[kind], value, depth)
        elif kind in _MAPPINGS:
            self._sequence(b"d", _flat(value), depth)
        elif kind in self.keys:
            self._record(kind, [value], b"C", depth)
        elif kind is np.ndarray and value.dtype.kind in "biufc":
            self._array(value)
        elif kind in _SCALARS and value.dtype.kind in "biufc":
            self._parts.append(b"n" + _text(value.dtype.str) + value.tobytes())
        elif kind is np.random.Generator and type(value.bit_generator) in GENERATORS.values():
            state = np.random.Generator.bit_generator.__get__(value).state  # type: ignore[attr-defined]
            inner = state["state"]
            self._parts.append(
                b"G"
                + _text(state["bit_generator"])
                + inner["state"].to_bytes(16, "little")
                + inner["inc"].to_bytes(16, "little")
                + REST.pack(int(state["has_uint32"]), int(state["uinteger"]))
            )
        elif kind is Fraction and type(value.numerator) is int and type(value.denominator) is int:
            self._parts.append(b"q" + _int(value.numerator) + _int(value.denominator))
        elif issubclass(kind, tuple) and kind.__bases__ == (tuple,) and _words(names := kind.__dict__.get("_fields")):
            self._parts.append(b"N" + _text(str.__str__(kind.__name__)))
            self._sequence(b"l", list(names), depth + 1)
            self._sequence(b"l", list(tuple.__iter__(value)), depth + 1)
        elif kind is Reference:
            self._reference(value, depth)
        else:
            self._reference(self._other(value), depth)

    def _once(self, value: list[Any] | dict[Any, Any], depth: int) -> None:
        """Write a list or a dict, or which one before it is the same: it is one object on the other side too."""
        known = self._shared.get(id(value))
        if known:
            self._enter(known[1], depth + known[2])
            self._parts.append(b"m" + U4.pack(known[0]))
            return
        left, deepest, self._deepest = self._left, self._deepest, depth
        self._parts.append(b"=")
        self._sequence(*((b"l", value) if type(value) is list else (b"d", _flat(value))), depth)
        self._shared[id(value)] = len(self._shared), left - self._left + 1, self._deepest - depth, value
        self._deepest = max(self._deepest, deepest)

    def _reference(self, value: Reference, depth: int) -> None:
        self._parts.append(b"H" + (b"\1" if value.ours else b"\0") + U8.pack(value.number))
        self._put(value.about, depth + 1)

    def _sequence(self, tag: bytes, value: Any, depth: int) -> None:
        count = len(value)
        self._enter(count, depth)
        if count > 3 and _alike(value) and self._column(tag, value if type(value) is list else list(value), depth):
            return
        self._parts.append(tag + b"*" + U4.pack(count))
        for part in value:
            self._put(part, depth + 1)

    def _column(self, tag: bytes, values: list[Any], depth: int) -> bool:
        """Write values of one type in one piece, if there is a way for that type."""
        kind, count = type(values[0]), U4.pack(len(values))
        if kind is float:
            self._parts.append(tag + b"f" + count + array("d", values).tobytes())
        elif kind is int and min(values) >= -HALF and max(values) < HALF:
            self._parts.append(tag + b"i" + count + array("q", values).tobytes())
        elif kind is str:
            texts = [text.encode("utf-8", "surrogatepass") for text in values]
            self._parts += [tag + b"s" + count, array("I", map(len, texts)).tobytes(), *texts]
        elif kind in _SCALARS and values[0].dtype.kind in "biufc":
            column = np.array(values)
            self._parts += [tag + b"n" + _text(column.dtype.str) + count, column.tobytes()]
        elif kind in self.keys:
            self._parts.append(tag + b"K")
            self._record(kind, values, count, depth)
        else:
            return kind is np.ndarray and self._arrays(tag, values)
        return True

    def _arrays(self, tag: bytes, values: list[Any]) -> bool:
        """Write arrays of one shape and type as one, if they are that."""
        dtype, shape = values[0].dtype, values[0].shape
        alike = dtype.kind in "biufc" and dtype.isnative and 0 < len(shape) < 16
        if not alike or any(value.dtype != dtype or value.shape != shape for value in values):
            return False
        self._parts.append(tag)
        self._array(np.stack(values))
        return True

    def _record(self, kind: type, values: list[Any], head: bytes, depth: int) -> None:
        """Write the fields of one or many records, one column after the other."""
        if kind not in self._fields:
            self._fields[kind] = tuple(field.name for field in dataclasses.fields(kind))
        names = self._fields[kind]
        self._enter(len(names), depth)
        self._parts.append(head + _text(self.keys[kind]) + U4.pack(len(names)))
        for name in names:
            self._parts.append(_text(name))
            try:
                column = [value.__dict__[name] for value in values]
            except (AttributeError, KeyError):
                column = [getattr(value, name) for value in values]
            if head == b"C":
                self._put(column[0], depth + 1)
            else:
                self._sequence(b"l", column, depth + 1)

    def _array(self, value: Any) -> None:
        if value.nbytes > MAX_BYTES or value.ndim > 16:
            raise CodecError(f"an array of {value.nbytes:,} bytes and {value.ndim} axes is too large to be passed.")
        shape = struct.pack(f"<B{value.ndim}Q", value.ndim, *value.shape)
        data = value.tobytes()
        self._parts.append(b"a" + _text(value.dtype.str) + shape + U4.pack(len(data)) + data)

    def _enter(self, count: int, depth: int) -> None:
        self._left -= count
        self._deepest = max(self._deepest, depth)
        if depth > MAX_DEPTH or self._left < 0:
            raise CodecError(
                "the value is nested too deeply." if depth > MAX_DEPTH else "the value has too many parts."
            )


def _ordinary(kind: type) -> bool:
    """Say whether a class can be looked up and compared without code of its metaclass."""
    return type(kind) is type or type(kind) is ABCMeta


def _alike(values: Any) -> bool:
    kind = type(next(iter(values)))
    return _ordinary(kind) and all(map(is_, map(type, values), repeat(kind)))


def _words(names: Any) -> bool:
    return type(names) is tuple and all(type(name) is str for name in names)


def _flat(value: Any) -> list[Any]:
    return [part for pair in dict.items(value) for part in pair]


def _int(value: int) -> bytes:
    size = value.bit_length() // 8 + 1
    if size > MAX_INT_BYTES:
        raise CodecError(f"a whole number of {size:,} bytes is too large to be passed.")
    return U4.pack(size) + value.to_bytes(size, "little", signed=True)


def _text(value: str) -> bytes:
    data = value.encode("utf-8", "surrogatepass")
    return U4.pack(len(data)) + data


_WRITE: dict[type, Callable[[Any], bytes]] = {
    type(None): lambda value: b"0",
    bool: lambda value: b"T" if value else b"F",
    int: lambda value: b"j" + I8.pack(value) if -HALF <= value < HALF else b"i" + _int(value),
    float: lambda value: b"f" + F8.pack(value),
    complex: lambda value: b"c" + struct.pack("<dd", value.real, value.imag),
    str: lambda value: b"s" + _text(value),
    bytes: lambda value: b"b" + U4.pack(len(value)) + value,
    bytearray: lambda value: b"y" + U4.pack(len(value)) + bytes(value),
    range: lambda value: b"r" + _int(value.start) + _int(value.stop) + _int(value.step),
}
_SEQUENCES: dict[type, bytes] = {list: b"l", tuple: b"t", set: b"S", frozenset: b"Z", deque: b"U"}
_SCALARS = frozenset(np.sctypeDict.values())
# A counter or an ordered dict of the standard library is as good as a dict.
_MAPPINGS = (dict, OrderedDict, defaultdict, Counter)
