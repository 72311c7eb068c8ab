"""What makes a result of a sweep the same result: the point, and all code that computes it."""

from __future__ import annotations

import hashlib
import inspect
import json
from collections.abc import Callable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

import lantern_lib

Point = Mapping[str, Any]
Function = Callable[[Point], Mapping[str, float]]


@lru_cache(maxsize=1)
def library_version() -> str:
    """Return a hash of the library's code, and of numpy's version.

    Returns
    -------
    str
        Twelve hexadecimal digits; alike on two machines if they compute alike [text].

    Notes
    -----
    All modules count, those too that a simulation does not use: it is better to compute once too often.

    Examples
    --------
    >>> len(library_version())
    12
    """
    root = Path(str(lantern_lib.__file__)).parent
    digest = hashlib.sha256(np.__version__.encode())
    for path in sorted(root.rglob("*.py")):
        digest.update(path.relative_to(root).as_posix().encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()[:12]


def code_version(function: Function) -> str:
    """Return a hash of all code that a result depends on.

    Parameters
    ----------
    function : callable
        A function of a module, or of a notebook.

    Returns
    -------
    str
        Twelve hexadecimal digits, of the function's name, its file and the library [text].

    Raises
    ------
    ValueError
        If it is not a plain function, so that nobody can tell what it depends on.

    Examples
    --------
    >>> from lantern_lib.simulator.sweep_point import run_point
    >>> len(code_version(run_point))
    12
    """
    if not inspect.isfunction(function) or "<" in function.__qualname__:
        raise ValueError(
            f"function must be defined by def in a module, got {function!r}. Put what else it needs into the point."
        )
    source = Path(inspect.getsourcefile(function) or "")
    code = source.read_bytes() if source.is_file() else inspect.getsource(function).encode()
    parts = (function.__module__.encode(), function.__qualname__.encode(), code, library_version().encode())
    # The main module of one run is another name in another run.
    return hashlib.sha256(b"\0".join(parts[1:] if parts[0] == b"__main__" else parts)).hexdigest()[:12]


def _canonical(value: object) -> object:
    """Make what is equal look equal: 2 and 2.0, a tuple and a list, a number of numpy and of Python."""
    if isinstance(value, Mapping):
        return {name: _canonical(each) for name, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [_canonical(each) for each in value]
    if isinstance(value, np.generic):
        value = value.item()
    return int(value) if isinstance(value, float) and value.is_integer() else value


def point_key(point: Point, version: str) -> str:
    """Return the name of a point in a file of results.

    Parameters
    ----------
    point : mapping
        Names and values that JSON can hold.
    version : str
        Of the code [text].

    Returns
    -------
    str
        Sixteen hexadecimal digits, alike for alike points in any order of names [text].

    Raises
    ------
    ValueError
        If a value is nothing for JSON, or not a number.

    Examples
    --------
    >>> point_key({"rate": 2.0, "seed": 1}, "a") == point_key({"seed": 1, "rate": 2}, "a")
    True
    """
    try:
        text = json.dumps(_canonical(point), sort_keys=True, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"point must hold numbers, texts, None, and lists of them, got {point!r} ({error}). Name what differs, and"
            " build it in the function."
        ) from None
    return hashlib.sha256(f"{version} {text}".encode()).hexdigest()[:16]
