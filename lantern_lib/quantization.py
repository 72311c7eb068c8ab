"""Weights and cache stored in fewer bits.

Only the stored size changes. Arithmetic, activations and all-reduces stay at 16 bits: the weights are
expanded on their way into the arithmetic units.
"""

from __future__ import annotations

from dataclasses import replace
from numbers import Integral

from lantern_lib.model_config import ModelConfig
from lantern_lib.units import require_int, require_non_negative

#: Bits of a stored number that the course knows.
STORED_BITS = (4, 8, 16)


def _require_bits(name: str, value: object) -> int:
    if not isinstance(value, Integral) or value not in STORED_BITS:
        raise ValueError(
            f"{name} must be 4, 8 or 16, got {value!r}. It is the number of bits that one stored number takes."
        )
    return int(value)


def bytes_per_number(bits: int, group_size: int | None = None, scale_bytes: float = 2.0) -> float:
    """Return the stored size of one number, with its share of the scale it needs to be read back.

    Parameters
    ----------
    bits : int
        Bits of the number itself: 4, 8 or 16 [bits].
    group_size : int, optional
        Numbers that share one scale; without it scales are left out [count].
    scale_bytes : float
        Size of what a group stores besides its numbers: scale and zero point [bytes].

    Returns
    -------
    float
        Average stored size [bytes].

    Raises
    ------
    ValueError
        If `bits` is none of the three, `group_size` is not a whole number of 1 or more, or
        `scale_bytes` is negative.

    Notes
    -----
    ``bits / 8 + scale_bytes / group_size``. Derived on page B5.

    Examples
    --------
    >>> bytes_per_number(4)
    0.5
    >>> bytes_per_number(4, group_size=128)
    0.515625
    """
    size = _require_bits("bits", bits) / 8
    scale = require_non_negative("scale_bytes", scale_bytes, "A 16-bit scale is 2 bytes.")
    if group_size is None:
        return size
    return size + scale / require_int("group_size", group_size, hint="128 numbers to a scale is usual.")


def with_storage(
    model: ModelConfig,
    weight_bits: int = 16,
    kv_bits: int = 16,
    *,
    group_size: int | None = None,
    scale_bytes: float = 2.0,
) -> ModelConfig:
    """Return the same model with its weights and its cache stored in other widths.

    Parameters
    ----------
    model : ModelConfig
        The shape; its own widths, and the format of its file, are replaced.
    weight_bits, kv_bits : int
        Bits of one stored weight and of one cached number: 4, 8 or 16 [bits].
    group_size : int, optional
        Weights that share one scale; without it scales are left out [count].
    scale_bytes : float
        What each group of weights stores besides [bytes].

    Returns
    -------
    ModelConfig
        The model, named after its storage.

    Raises
    ------
    ValueError
        If a width is not 4, 8 or 16, `group_size` is not a whole number of 1 or more, or
        `scale_bytes` is negative.

    Notes
    -----
    Every weight is stored in the same width, tables and norms too; real files often keep those at
    16 bits. Steps of the result compute and communicate as before. Used on page B5.

    Examples
    --------
    >>> from lantern_lib import H100, LANTERN_70B, Replica, step
    >>> half = with_storage(LANTERN_70B, weight_bits=8)
    >>> round(step.decode_step(half, Replica(H100, tp_size=4), 1, 2000).total_seconds * 1e3, 1)
    7.8
    """
    _require_bits("weight_bits", weight_bits)
    _require_bits("kv_bits", kv_bits)
    return replace(
        model,
        name=f"{model.name} ({weight_bits}-bit weights, {kv_bits}-bit cache)",
        weight_bytes=bytes_per_number(weight_bits, group_size, scale_bytes),
        kv_bytes=bytes_per_number(kv_bits),
        storage=None,
    )
