"""Stored widths against packed bytes and the exact total of the model, and what a width must not change."""

from __future__ import annotations

import struct
from itertools import product

import pytest

from lantern_lib import H100, LANTERN_70B, Replica, kv_cache, quantization, step, transformer

FOUR = Replica(H100, tp_size=4)


@pytest.mark.parametrize("bits", [4, 8, 16])
def test_weights_take_their_bits(bits: int) -> None:
    model = quantization.with_storage(LANTERN_70B, weight_bits=bits)
    assert transformer.weight_bytes(model) * 8 == bits * 70_553_706_496


@pytest.mark.parametrize("group", [2, 32, 128])
def test_a_packed_file_has_the_size_of_its_groups(group: int) -> None:
    """Pack 4,096 four-bit numbers group by group, as a file holds them: a scale, then two numbers a byte."""
    packed = b"".join(struct.pack(f"e{group // 2}s", 1.0, bytes(group // 2)) for _ in range(4096 // group))
    assert quantization.bytes_per_number(4, group) * 4096 == len(packed)


def test_scales_count_for_weights_only() -> None:
    model = quantization.with_storage(LANTERN_70B, 4, 8, group_size=32, scale_bytes=4)
    assert model.weight_bytes == 0.625
    assert model.kv_bytes == 1


@pytest.mark.parametrize(("weight_bits", "kv_bits"), list(product((4, 8, 16), repeat=2)))
def test_a_width_changes_bytes_and_nothing_else(weight_bits: int, kv_bits: int) -> None:
    model = quantization.with_storage(LANTERN_70B, weight_bits, kv_bits)
    before = step.decode_step(LANTERN_70B, FOUR, 64, 2000)
    after = step.decode_step(model, FOUR, 64, 2000)
    assert after.compute_seconds == before.compute_seconds
    assert after.communication_seconds == before.communication_seconds
    cache = 64 * 2000 * 2 * 80 * 8 * 128 * kv_bits / 8
    weights = before.moved_bytes - 64 * 2000 * 327_680
    assert after.moved_bytes == pytest.approx(weights * weight_bits / 16 + cache, rel=1e-12)
    assert kv_cache.bytes_per_token(model) == 327_680 * kv_bits / 16


def test_sixteen_bits_change_nothing() -> None:
    model = quantization.with_storage(LANTERN_70B)
    assert (model.weight_bytes, model.kv_bytes) == (2, 2)
    assert model.num_layers == LANTERN_70B.num_layers


@pytest.mark.parametrize("bits", [0, 2, 3, 6, 32, -8, True, "8", None, float("nan"), 4.5, 8.0])
@pytest.mark.parametrize("field", ["weight_bits", "kv_bits"])
def test_other_widths_are_refused(field: str, bits: object) -> None:
    with pytest.raises(ValueError, match=f"^{field} must be 4, 8 or 16, got "):
        quantization.with_storage(LANTERN_70B, **{field: bits})  # type: ignore[arg-type]


def test_groups_are_checked() -> None:
    with pytest.raises(ValueError, match=r"^group_size must be a whole number of 1 or more, got 0\."):
        quantization.bytes_per_number(4, 0)
    with pytest.raises(ValueError, match=r"^scale_bytes must be a finite number of 0 or more, got -1\."):
        quantization.bytes_per_number(4, 32, -1)
