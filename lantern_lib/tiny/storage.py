"""Real matrices stored in a few bits and read back: by row, by group, and a whole model.

:mod:`lantern_lib.quantization` says what small numbers cost in bytes and time; this module shows what they
cost in accuracy.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import numpy as np

from lantern_lib.tiny.arrays import Floats, Ints
from lantern_lib.units import require_int


def _require_bits(bits: object) -> int:
    number = require_int("bits", bits, minimum=2, hint="One bit has no room for a sign and a size.")
    if number > 8:
        raise ValueError(f"bits must be at most 8, got {bits!r}. The codes are stored in bytes.")
    return number


def quantize(weights: Floats, bits: int, per: Literal["tensor", "row"] = "row") -> tuple[Ints, Floats]:
    """Round a matrix to whole numbers of a few bits, symmetric around zero.

    Parameters
    ----------
    weights : array
        The matrix, shape (rows, columns).
    bits : int
        Bits of a code, 2 to 8 [bits].
    per : {"tensor", "row"}
        What shares one scale [text].

    Returns
    -------
    (array of int8, array)
        Codes of the matrix's shape in ``-(2^(bits-1) - 1) … 2^(bits-1) - 1``, and scales of shape (rows, 1) or (1, 1).

    Raises
    ------
    ValueError
        If `bits` is not a whole number from 2 to 8 or `per` is neither.

    Notes
    -----
    ``scale = max |w| / (2^(bits-1) - 1)``, ``code = round(w / scale)``. A row of zeros gets the scale 1.
    Used in the lab of week 4.

    Examples
    --------
    >>> codes, scales = quantize(np.array([[0.52, -1.4, 0.2]]), bits=4)
    >>> codes.tolist(), scales.round(6).tolist()
    ([[3, -7, 1]], [[0.2]])
    """
    largest = 2 ** (_require_bits(bits) - 1) - 1
    if per not in ("tensor", "row"):
        raise ValueError(f"per must be 'tensor' or 'row', got {per!r}.")
    reach = np.abs(weights).max(axis=1 if per == "row" else None, keepdims=True)
    scales: Floats = np.where(reach > 0, reach / largest, 1.0)
    return np.rint(weights / scales).astype(np.int8), scales


def restore(codes: Ints, scales: Floats) -> Floats:
    """Read back what :func:`quantize` stored.

    Parameters
    ----------
    codes : array of int
        Shape (rows, columns).
    scales : array
        Shape (rows, 1) or (1, 1).

    Returns
    -------
    array
        The matrix, each number off by half a scale at most.

    Examples
    --------
    >>> restore(np.array([[3, -7]]), np.array([[0.5]])).tolist()
    [[1.5, -3.5]]
    """
    matrix: Floats = codes * scales
    return matrix


def quantize_groups(weights: Floats, bits: int, group_size: int) -> tuple[Ints, Floats, Floats]:
    """Round a matrix to whole numbers of a few bits, group by group, between each group's least and largest.

    Parameters
    ----------
    weights : array
        The matrix, shape (rows, columns).
    bits : int
        Bits of a code, 2 to 8 [bits].
    group_size : int
        Neighbours in a row that share a scale and an offset; it divides the columns [count].

    Returns
    -------
    (array of uint8, array, array)
        Codes of the matrix's shape in ``0 … 2^bits - 1``, scales and offsets of shape (rows, columns / group_size).

    Raises
    ------
    ValueError
        If `bits` is not a whole number from 2 to 8 or `group_size` does not divide the columns.

    Notes
    -----
    ``offset = min``, ``scale = (max - min) / (2^bits - 1)``, ``code = round((w - offset) / scale)``. A group of
    equal numbers gets the scale 1. Used in the lab of week 4.

    Examples
    --------
    >>> codes, scales, offsets = quantize_groups(np.array([[1.0, 4.0, 8.0, 8.0]]), bits=2, group_size=2)
    >>> codes.tolist(), scales.tolist(), offsets.tolist()
    ([[0, 3, 0, 0]], [[1.0, 1.0]], [[1.0, 8.0]])
    """
    steps = 2 ** _require_bits(bits) - 1
    rows, columns = weights.shape
    if columns % require_int("group_size", group_size):
        raise ValueError(f"group_size must divide the {columns} columns, got {group_size!r}.")
    groups = weights.reshape(rows, -1, group_size)
    offsets, spread = groups.min(axis=2), np.ptp(groups, axis=2)
    scales: Floats = np.where(spread > 0, spread / steps, 1.0)
    codes = np.rint((groups - offsets[..., None]) / scales[..., None]).astype(np.uint8)
    return codes.reshape(rows, columns), scales, offsets


def restore_groups(codes: Ints, scales: Floats, offsets: Floats) -> Floats:
    """Read back what :func:`quantize_groups` stored.

    Parameters
    ----------
    codes : array of int
        Shape (rows, columns).
    scales, offsets : array
        Shape (rows, groups).

    Returns
    -------
    array
        The matrix, each number off by half a scale at most.

    Examples
    --------
    >>> restore_groups(np.array([[0, 3]]), np.array([[2.0]]), np.array([[1.0]])).tolist()
    [[1.0, 7.0]]
    """
    groups = codes.reshape(*scales.shape, -1)
    matrix: Floats = groups * scales[..., None] + offsets[..., None]
    return matrix.reshape(codes.shape)


def quantize_model(weights: Mapping[str, Floats], bits: int, group_size: int) -> dict[str, Floats]:
    """Store every matrix of a model in a few bits and read it back.

    Parameters
    ----------
    weights : mapping of str to array
        Tensors by name.
    bits : int
        Bits of a code, 2 to 8 [bits].
    group_size : int
        Neighbours in a row that share a scale and an offset [count].

    Returns
    -------
    dict of str to array
        The same names: matrices as they are read back, vectors (the norms' gains) as they were.

    Raises
    ------
    ValueError
        As :func:`quantize_groups`.

    Examples
    --------
    >>> stored = quantize_model({"a": np.array([[0.0, 0.4, 1.0]]), "gain": np.array([0.4])}, 2, 3)
    >>> stored["a"].round(3).tolist(), stored["gain"].tolist()
    ([[0.0, 0.333, 1.0]], [0.4])
    """
    return {
        name: restore_groups(*quantize_groups(tensor, bits, group_size)) if tensor.ndim == 2 else tensor
        for name, tensor in weights.items()
    }


def stored_bytes(rows: int, columns: int, bits: int, group_size: int, group_bytes: int = 4) -> int:
    """Return the size of a matrix that is stored in groups.

    Parameters
    ----------
    rows, columns : int
        Its shape [count].
    bits : int
        Bits of a code [bits].
    group_size : int
        Neighbours in a row that share a scale and an offset; it divides the columns [count].
    group_bytes : int
        What each group stores besides its codes: two numbers of 16 bits, or one without an offset [bytes].

    Returns
    -------
    int
        Codes without gaps, the last byte filled up, and all groups [bytes].

    Examples
    --------
    >>> stored_bytes(8192, 28672, bits=4, group_size=32, group_bytes=2)
    132120576
    """
    return -(-rows * columns * bits // 8) + rows * columns // group_size * group_bytes


def model_bytes(weights: Mapping[str, Floats], bits: int, group_size: int, group_bytes: int = 4) -> int:
    """Return the size of a model as :func:`quantize_model` would store it.

    Parameters
    ----------
    weights : mapping of str to array
        Tensors by name.
    bits : int
        Bits of a code; 16 for the model as it is [bits].
    group_size : int
        Neighbours in a row that share a scale and an offset [count].
    group_bytes : int
        What each group stores besides its codes [bytes].

    Returns
    -------
    int
        Matrices in few bits, vectors at 16 [bytes].

    Examples
    --------
    >>> model_bytes({"a": np.zeros((2, 8)), "gain": np.zeros(8)}, bits=4, group_size=8)
    32
    """
    total = 0
    for tensor in weights.values():
        if tensor.ndim == 2 and bits < 16:
            rows, columns = tensor.shape
            total += stored_bytes(rows, columns, bits, group_size, group_bytes)
        else:
            total += 2 * tensor.size
    return total
