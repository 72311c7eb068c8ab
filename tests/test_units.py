from __future__ import annotations

import math
from decimal import ROUND_HALF_EVEN, Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lantern_lib import units

NOT_NUMBERS = [float("nan"), float("inf"), -float("inf"), True, False, "3", None, [1]]


@pytest.mark.parametrize(
    ("text", "base", "unit"),
    [
        ("14.3 ms", 0.0143, "seconds"),
        ("320 KiB", 327_680, "bytes"),
        ("146.9 GB", 146.9e9, "bytes"),
        ("2.5 GiB of cache", 2.5 * 2**30, "bytes"),
        ("3.35 TB/s", 3.35e12, "bytes/s"),
        ("3,419 tokens/s", 3419, "tokens/s"),
        ("139.0 GFLOPs", 139e9, "FLOPs"),
        ("989 teraFLOPS", 989e12, "FLOPs/s"),
        ("15 percent", 0.15, "ratio"),
        ("49 times", 49, "ratio"),
        ("54 conversations", 54, ""),
        ("three", 3, ""),
        ("Twelve layers", 12, ""),
        ("70.55 billion", 70.55e9, ""),
        ("70,552,387,584", 70_552_387_584, ""),
    ],
)
def test_parse(text: str, base: float, unit: str) -> None:
    quantity = units.parse_quantity(text)
    assert quantity.number * quantity.scale == pytest.approx(base, rel=1e-12)
    assert quantity.base_unit == unit


@pytest.mark.parametrize("text", ["", "about 3", "ms", "GB 3"])
def test_parse_refuses_what_does_not_begin_with_a_number(text: str) -> None:
    with pytest.raises(ValueError, match="must begin with a number"):
        units.parse_quantity(text)


def test_gigabytes_and_gibibytes_are_never_the_same() -> None:
    assert not units.rounds_to(2.5 * 2**30, units.parse_quantity("2.5 GB"))
    assert units.rounds_to(2.5 * 2**30, units.parse_quantity("2.7 GB"))


@given(st.floats(0.001, 1e7), st.integers(0, 4))
def test_what_python_rounds_is_accepted_and_its_neighbours_are_not(value: float, decimals: int) -> None:
    """The oracle is decimal arithmetic on the exact binary value."""
    step = Decimal(1).scaleb(-decimals)
    right = Decimal(value).quantize(step, ROUND_HALF_EVEN)
    assert units.rounds_to(value, units.parse_quantity(f"{right:,}"))
    assert not units.rounds_to(value, units.parse_quantity(f"{right + 2 * step:,}"))


@given(st.floats(1e-9, 1e15), st.sampled_from(sorted(u for u in units.UNITS if u)))
def test_what_is_formatted_is_accepted_as_printed(value: float, unit: str) -> None:
    assert units.rounds_to(value, units.parse_quantity(units.format_quantity(value, unit, 3)))


def test_significant_digits() -> None:
    assert units.rounds_to(430_617, units.parse_quantity("430,000 tokens"), digits=2)
    assert not units.rounds_to(436_000, units.parse_quantity("430,000 tokens"), digits=2)
    assert not units.rounds_to(float("nan"), units.parse_quantity("1"))


@pytest.mark.parametrize("bad", [*NOT_NUMBERS, 0, -1])
def test_require_positive(bad: object) -> None:
    with pytest.raises(ValueError, match=r"^bandwidth must be a finite number above 0, got .*\. Use bytes\.$"):
        units.require_positive("bandwidth", bad, "Use bytes.")


@pytest.mark.parametrize("bad", [*NOT_NUMBERS, -1e-9])
def test_require_non_negative(bad: object) -> None:
    with pytest.raises(ValueError, match="latency_seconds must be a finite number of 0 or more, got"):
        units.require_non_negative("latency_seconds", bad)


@pytest.mark.parametrize("bad", [*NOT_NUMBERS, 0, 2.0, -3])
def test_require_int(bad: object) -> None:
    with pytest.raises(ValueError, match="tp_size must be a whole number of 1 or more, got"):
        units.require_int("tp_size", bad)


@pytest.mark.parametrize("bad", [*NOT_NUMBERS, 0, 1.01, -0.5])
def test_require_fraction(bad: object) -> None:
    with pytest.raises(ValueError, match=r"compute_efficiency must be a fraction in \(0, 1\], got"):
        units.require_fraction("compute_efficiency", bad)


@pytest.mark.parametrize("bad", [*NOT_NUMBERS, 1, 1.5, -0.1])
def test_require_fraction_from_zero(bad: object) -> None:
    with pytest.raises(ValueError, match=r"reserve must be a fraction in \[0, 1\), got"):
        units.require_fraction("reserve", bad, zero=True)


@pytest.mark.parametrize("bad", [*NOT_NUMBERS, 1.001, -0.1])
def test_require_share(bad: object) -> None:
    with pytest.raises(ValueError, match=r"found_share must be a fraction in \[0, 1\], got"):
        units.require_share("found_share", bad)
    assert units.require_share("found_share", 0) == 0.0
    assert units.require_share("found_share", 1) == 1.0


@pytest.mark.parametrize("bad", ["both", "", None, 1, ["chunked"]])
def test_require_one_of(bad: object) -> None:
    with pytest.raises(ValueError, match=r"^prefill must be one of separate, chunked, got .*\. Choose one\.$"):
        units.require_one_of("prefill", bad, ("separate", "chunked"), "Choose one.")


@pytest.mark.parametrize("whole", [0, 1, 3, 1000, 10**9])
def test_a_count_is_rounded_up_unless_rounding_made_it_larger(whole: int) -> None:
    above, below = math.nextafter(whole, math.inf), math.nextafter(whole, -math.inf)
    assert units.round_up(whole) == units.round_up(above) == units.round_up(below) == whole
    assert units.round_up(whole + max(whole, 1) * 1e-8) == whole + max(1, whole // 10**8)
    assert units.round_up(-0.5) == 0


def test_numpy_numbers_are_numbers() -> None:
    numpy = pytest.importorskip("numpy")
    assert units.require_int("batch_size", numpy.int64(3)) == 3
    assert units.require_positive("bandwidth", numpy.float32(2)) == 2.0


def test_format_refuses_an_unknown_unit() -> None:
    with pytest.raises(ValueError, match="unit must be one of .*, got 'furlong'"):
        units.format_quantity(1, "furlong")
