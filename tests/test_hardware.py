from __future__ import annotations

from dataclasses import replace

import pytest

from lantern_lib import ACCELERATORS, H100, H200, TRAINIUM2, Link, Replica

BAD = [0, -1, float("nan"), float("inf"), True, "80"]


@pytest.mark.parametrize("field", ["memory_bytes", "memory_bandwidth", "peak_flops", "peak_flops_8bit"])
@pytest.mark.parametrize("bad", BAD)
def test_an_accelerator_refuses_bad_constants(field: str, bad: object) -> None:
    with pytest.raises(ValueError, match=f"^{field} must be a finite number above 0, got"):
        replace(H100, **{field: bad})


@pytest.mark.parametrize(("field", "bad"), [("bandwidth", 0), ("latency_seconds", -1), ("latency_seconds", "8")])
def test_a_link_refuses_bad_constants(field: str, bad: object) -> None:
    with pytest.raises(ValueError, match=f"^{field} must be"):
        replace(H100.link, **{field: bad})


@pytest.mark.parametrize("field", ["compute_efficiency", "bandwidth_efficiency"])
@pytest.mark.parametrize("bad", [0, 1.1, -0.5, float("nan"), True, "0.5"])
def test_efficiencies_lie_above_zero_and_at_most_one(field: str, bad: object) -> None:
    with pytest.raises(ValueError, match=f"^{field} must be a fraction in"):
        Replica(H100, **{field: bad})


@pytest.mark.parametrize("bad", [0, -1, 2.0, True, "4"])
def test_tp_size_is_a_whole_number(bad: object) -> None:
    with pytest.raises(ValueError, match="^tp_size must be a whole number of 1 or more"):
        Replica(H100, tp_size=bad)  # type: ignore[arg-type]


def test_every_constant_has_a_source_and_a_date() -> None:
    for name, card in ACCELERATORS.items():
        assert card.source, name
        assert len(card.date) == 10, name
        assert card.link.source, name


def test_a_replica_scales_everything_but_the_link() -> None:
    one, eight = Replica(H200), Replica(H200, tp_size=8)
    assert eight.memory_bytes == 8 * one.memory_bytes
    assert eight.bandwidth == 8 * one.bandwidth
    assert eight.flops_per_second == 8 * one.flops_per_second


def test_sixteen_trainium2_make_the_instance_that_is_sold() -> None:
    """The EC2 Trn2 page: 16 chips, 1.5 TB, 46 TB/s, 20.8 petaFLOPS at 8 bits."""
    assert 16 * TRAINIUM2.memory_bytes == pytest.approx(1.5e12, rel=0.03)
    assert 16 * TRAINIUM2.memory_bandwidth == pytest.approx(46e12, rel=0.01)
    assert TRAINIUM2.peak_flops_8bit is not None
    assert 16 * TRAINIUM2.peak_flops_8bit == pytest.approx(20.8e15, rel=0.01)


def test_the_summary_names_gb_and_gib_apart() -> None:
    assert "(80 GB," in Replica(H100, tp_size=4).summary
    assert "GiB," in Replica(replace(H100, memory_bytes=80 * 2**30)).summary


def test_link_is_importable_by_name() -> None:
    assert Link("bench", 1e9, 0.0).latency_seconds == 0
