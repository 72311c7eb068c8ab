"""Bytes to values; see :mod:`lantern_grading.checker.codec`."""

from __future__ import annotations

import dataclasses
import functools
import struct
from array import array
from collections import deque, namedtuple
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any

import numpy as np

from lantern_grading.checker.codec import (
    F8,
    GENERATORS,
    I8,
    MAX_BYTES,
    MAX_DEPTH,
    MAX_INT_BYTES,
    MAX_ITEMS,
    NO_SEED,
    REST,
    U4,
    U8,
    CodecError,
    Reference,
)

_MAKE: dict[int, Callable[[list[Any]], Any]] = {
    ord("l"): lambda parts: parts,
    ord("t"): tuple,
    ord("S"): set,
    ord("Z"): frozenset,
    ord("U"): deque,
    ord("d"): lambda flat: dict(zip(flat[::2], flat[1::2], strict=True)),
}


class Reader:
    """Turn bytes into values.

    Parameters
    ----------
    classes : mapping of str to type
        The dataclasses that may be made, by name. No code of theirs runs.
    other : callable
        Makes something of a :class:`Reference`, or raises CodecError.
    """

    def __init__(self, classes: Mapping[str, type], other: Callable[[Reference], Any]) -> None:
        self._classes, self._other = classes, other

    def decode(self, data: bytes) -> Any:
        """Return the value of some bytes; CodecError if they are none."""
        if len(data) > MAX_BYTES:
            raise CodecError("too many bytes.")
        self._data, self._at, self._left = data, 0, MAX_ITEMS
        self._deepest = 0
        self._shared: list[
            tuple[int, int, Any]
        ] = []  # how many parts a list or dict has in all, how deep it is, itself
        try:
            value = self._get(0)
        except CodecError:
            raise
        except Exception as error:  # whatever numpy makes of a strange name: no code of the bytes' own is run
            raise CodecError(f"no value: {type(error).__name__}") from None
        if self._at != len(data):
            raise CodecError("bytes are left over.")
        return value

    def _take(self, count: int) -> bytes:
        end = self._at + count
        if end > len(self._data):
            raise CodecError("bytes are missing.")
        part = self._data[self._at : end]
        self._at = end
        return part

    def _count(self, each: int) -> int:
        """Read how many things follow, each of so many bytes at least."""
        count: int = U4.unpack_from(self._data, self._at)[0]
        self._at += 4
        if count * each > len(self._data) - self._at:
            raise CodecError("too many parts.")
        return count

    def _parts(self, each: int = 1) -> int:
        count = self._count(each)
        self._left -= count
        if self._left < 0:
            raise CodecError("too many parts.")
        return count

    def _text(self, depth: int = 0) -> str:
        return self._take(self._count(1)).decode("utf-8", "surrogatepass")

    def _int(self, depth: int = 0) -> int:
        size = self._count(1)
        if size > MAX_INT_BYTES:
            raise CodecError("a whole number is too large.")
        return int.from_bytes(self._take(size), "little", signed=True)

    def _small(self, depth: int) -> int:
        self._at += 8
        return I8.unpack_from(self._data, self._at - 8)[0]  # type: ignore[no-any-return]

    def _float(self, depth: int) -> float:
        self._at += 8
        return F8.unpack_from(self._data, self._at - 8)[0]  # type: ignore[no-any-return]

    def _get(self, depth: int) -> Any:
        if depth > MAX_DEPTH + 4:
            raise CodecError("too deep.")
        if depth > self._deepest:
            self._deepest = depth
        tag = self._data[self._at]
        self._at += 1
        make = _MAKE.get(tag)
        if make is not None:
            return make(self._members(depth))
        read = _READ.get(tag)
        if read is None:
            raise CodecError(f"unknown kind {tag}.")
        return read(self, depth)

    def _once(self, depth: int) -> Any:
        """Read a list or dict that may come again."""
        if self._data[self._at : self._at + 1] not in (b"l", b"d"):
            raise CodecError("no list and no dict.")
        left, deepest, self._deepest = self._left, self._deepest, depth
        value = self._get(depth)
        self._shared.append((left - self._left + 1, self._deepest - depth, value))
        self._deepest = max(self._deepest, deepest)
        return value

    def _again(self, depth: int) -> Any:
        """Return one that was read. It counts as if it were written out: a short message is no value of any size."""
        count, height, value = self._shared[U4.unpack(self._take(4))[0]]
        self._left -= count
        self._deepest = max(self._deepest, depth + height)
        if self._left < 0 or self._deepest > MAX_DEPTH + 4:
            raise CodecError("too many parts, or too deep.")
        return value

    def _members(self, depth: int) -> Any:
        form = self._data[self._at]
        self._at += 1
        if form == _EACH:
            return [self._get(depth + 1) for _ in range(self._parts())]
        if form in (_FLOATS, _INTS):
            count = self._parts(8)
            numbers = array("d" if form == _FLOATS else "q")
            numbers.frombytes(self._take(8 * count))
            return numbers.tolist()
        if form == _SCALARS:
            dtype = _dtype(self._text())
            count = self._parts(dtype.itemsize)
            return list(np.frombuffer(self._take(dtype.itemsize * count), dtype=dtype))
        if form == _TEXTS:
            lengths = array("I")
            lengths.frombytes(self._take(4 * self._parts(4)))
            return [self._take(length).decode("utf-8", "surrogatepass") for length in lengths]
        if form == _ARRAYS:
            stacked = self._array(depth)
            self._left -= len(stacked)
            if self._left < 0:
                raise CodecError("too many parts.")
            return [part.copy() for part in stacked]
        if form == _RECORDS:
            return self._records(self._parts(0), depth, column=True)
        raise CodecError(f"unknown form {form}.")

    def _record(self, depth: int) -> Any:
        return self._records(1, depth)[0]

    def _records(self, count: int, depth: int, column: bool = False) -> list[Any]:
        kind = self._classes[self._text()]
        names = {field.name for field in dataclasses.fields(kind)}
        given: dict[str, Any] = {}
        for _ in range(self._count(1)):
            name = self._text()
            value = self._get(depth + 1)
            given[name] = value if column else [value]
        if given.keys() != names or any(type(v) is not list or len(v) != count for v in given.values()):
            raise CodecError(f"no {kind.__name__}.")
        made = [kind.__new__(kind) for _ in range(count)]
        for name, values in given.items():
            for thing, value in zip(made, values, strict=True):
                object.__setattr__(thing, name, value)
        return made

    def _array(self, depth: int) -> Any:
        dtype = _dtype(self._text())
        axes = self._take(1)[0]
        shape = struct.unpack(f"<{axes}Q", self._take(8 * axes))
        return np.frombuffer(self._take(self._count(1)), dtype=dtype).reshape(shape).copy()

    def _scalar(self, depth: int) -> Any:
        dtype = _dtype(self._text())
        return np.frombuffer(self._take(dtype.itemsize), dtype=dtype)[0]

    def _generator(self, depth: int) -> Any:
        name = self._text()
        made = GENERATORS[name](NO_SEED)
        inner = {key: int.from_bytes(self._take(16), "little") for key in ("state", "inc")}
        has, rest = REST.unpack(self._take(REST.size))
        made.state = {"bit_generator": name, "state": inner, "has_uint32": has, "uinteger": rest}
        return np.random.Generator(made)

    def _named(self, depth: int) -> Any:
        name, fields, values = self._text(), self._get(depth + 1), self._get(depth + 1)
        return namedtuple(name, [str(field) for field in fields])(*values)  # type: ignore[misc]

    def _range(self, depth: int) -> range:
        made = range(self._int(), self._int(), self._int())
        self._left -= len(made)
        if self._left < 0:
            raise CodecError("too many parts.")
        return made

    def _reference(self, depth: int) -> Any:
        ours = self._take(1) == b"\1"
        number: int = U8.unpack(self._take(8))[0]
        about = self._get(depth + 1)
        if type(about) is not tuple:
            raise CodecError("no reference.")
        return self._other(Reference(ours, number, about))


@functools.lru_cache(64)
def _dtype(name: str) -> Any:
    dtype = np.dtype(name)
    if dtype.kind not in "biufc":
        raise CodecError(f"no numbers: {name!r}.")
    return dtype


_EACH, _FLOATS, _INTS, _SCALARS, _RECORDS, _TEXTS, _ARRAYS = b"*finKsa"
_READ: dict[int, Callable[[Reader, int], Any]] = {
    ord("0"): lambda reader, depth: None,
    ord("T"): lambda reader, depth: True,
    ord("F"): lambda reader, depth: False,
    ord("i"): Reader._int,
    ord("j"): Reader._small,
    ord("f"): Reader._float,
    ord("c"): lambda reader, depth: complex(*struct.unpack("<dd", reader._take(16))),
    ord("s"): Reader._text,
    ord("b"): lambda reader, depth: reader._take(reader._count(1)),
    ord("y"): lambda reader, depth: bytearray(reader._take(reader._count(1))),
    ord("q"): lambda reader, depth: Fraction(reader._int(), reader._int()),
    ord("r"): Reader._range,
    ord("="): Reader._once,
    ord("m"): Reader._again,
    ord("a"): Reader._array,
    ord("n"): Reader._scalar,
    ord("C"): Reader._record,
    ord("G"): Reader._generator,
    ord("N"): Reader._named,
    ord("H"): Reader._reference,
}
