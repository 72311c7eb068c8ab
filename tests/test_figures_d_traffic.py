"""Plots of page D5: readings against the summary and the published numbers, descriptions, stops and colours."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("altair", reason="figures need the labs extra")

from lantern_lib import H100, LANTERN_70B, Replica
from lantern_lib.figures import part_d_traffic_plots as plots
from tests.figure_rules import once, reading, rows_of

SUMMARY = json.loads((Path(__file__).resolve().parent.parent / "book/data/traces.json").read_text(encoding="utf-8"))
FOUR = Replica(H100, tp_size=4)
PLOTS = once(
    {
        "lifetimes": lambda: plots.lifetimes(SUMMARY["agents"], LANTERN_70B, FOUR),
        "reuse": lambda: plots.reuse(SUMMARY["mooncake"], capacity_tokens=5_000_000, pool_tokens=448_281),
        "arrivals": lambda: plots.arrivals(SUMMARY),
    }
)


@pytest.mark.parametrize(("lifetime", "lost", "low", "high"), [(300, 36, 21.2, 28.6), (3600, 4, 15.2, 18.6)])
def test_the_lifetime_ring_reads_the_bill(lifetime: int, lost: int, low: float, high: float) -> None:
    row = reading(PLOTS["lifetimes"](), at=lifetime)
    assert row["lost_text"].endswith(f"{lost} of 649 calls too late")
    assert row["bill_text"] == f"bill: {low} or {high} percent"


def test_each_shelf_has_its_best_lifetime_where_the_break_even_puts_it() -> None:
    """GPU memory below its 66 s, host memory below its two and a half hours: after a last call all is for nothing."""
    rows = rows_of(PLOTS["lifetimes"]())
    assert min(rows, key=lambda row: row["gpu"])["at"] == 30
    assert min(rows, key=lambda row: row["host"])["at"] == 2700
    assert all(row["host"] < row["gpu"] for row in rows)


@pytest.mark.parametrize(("size", "share"), [(0.45, 4.3), (5, 20.6), (26, 35.5), (100, 36.6)])
def test_the_reuse_ring_reads_the_curve(size: float, share: float) -> None:
    row = reading(PLOTS["reuse"](), at=size)
    assert row["text"] == f"{size:g} million tokens: {share} percent reused"


def test_the_curve_of_reuse_never_falls() -> None:
    shares = [row["percent"] for row in rows_of(PLOTS["reuse"]())]
    assert shares == sorted(shares)
    assert shares[-1] <= 100 * SUMMARY["mooncake"]["reuse"]["unlimited"]


def test_the_band_is_where_poisson_minutes_would_lie() -> None:
    for name, outside in (("Azure chat", "35 of 58"), ("Azure code", "52 of 57"), ("Mooncake chat", "16 of 58")):
        (row,) = [r for r in rows_of(PLOTS["arrivals"]()) if (r["trace"], r["minute"]) == (name, 0)]
        assert row["text"] == f"{outside} minutes outside"
        mean = (row["low"] + row["high"]) / 2
        assert ((row["high"] - mean) / 2) ** 2 == pytest.approx(mean, rel=0.01)


def test_a_ring_starts_only_on_a_stop_and_a_selector_on_a_trace() -> None:
    with pytest.raises(ValueError, match="^lifetime_seconds must be a stop"):
        plots.lifetimes(SUMMARY["agents"], LANTERN_70B, FOUR, lifetime_seconds=301)
    with pytest.raises(ValueError, match="^capacity_tokens must be a stop"):
        plots.reuse(SUMMARY["mooncake"], capacity_tokens=3, pool_tokens=1)
    with pytest.raises(ValueError, match="^trace must be one of"):
        plots.arrivals(SUMMARY, trace="azure")


def test_plots_are_sound(any_plot: Any, sound_plot: Callable[[Any], None]) -> None:
    sound_plot(any_plot)
