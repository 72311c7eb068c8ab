"""Figures of the page on capacity types: well-formed, in the roles' colours, with the published numbers."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

pytest.importorskip("altair", reason="figures need the labs extra")

from lantern_lib.figures import part_c_pricing as diagrams
from lantern_lib.figures import part_c_pricing_plots as plots
from lantern_lib.figures.diagram import Diagram
from lantern_lib.figures.roles import PAGE_COLOURS, ROLES
from lantern_lib.pricing import Fleet, Option, Requirements, TokenPrices
from tests.figure_rules import once, reading, rows_of, tables_of

PRICES = TokenPrices(3e-6, 12e-6)
EU = frozenset({"eu"})
FLEETS = {name: Fleet(8, 3, 25_000, capacity) for name, capacity in (("10", 38.5e9), ("17", 36.4e9), ("50", 28.5e9))}
MIXES = {"10": 0.1, "17": 1 / 6, "50": 0.5}
OFFERS = (
    Option("Pool", "per-token", 18_000, frozenset({"eu", "us"}), "internal"),
    Option("Own machines", "self-hosted", 42_520, EU, "restricted", third_party=False, pinned_weights=True),
)
BANK = Requirements("restricted", EU, third_party_allowed=False)
DIAGRAMS: dict[str, Callable[[], Diagram]] = {"gates": lambda: diagrams.gates(OFFERS, BANK, "a bank")}
PLOTS = once(
    {
        "break_even": lambda: plots.break_even(PRICES, monthly_dollars=12_000, capacity_tokens=4e9, measured_at=0.1),
        "spillover": lambda: plots.spillover(monthly_tokens=4e9, token_price=4.5e-6),
        "owning": lambda: plots.owning(FLEETS, PRICES, MIXES),
    }
)


def test_the_diagram_says_who_is_stopped_and_hides_the_price_of_the_refused() -> None:
    html = DIAGRAMS["gates"]()._repr_html_()
    assert "Pool: stopped by region, class, processor" in html
    assert "chosen: Own machines at 42,520 dollars a month" in html
    assert "18,000" not in html
    assert "var(--lt-" in html
    colours = set(re.findall(r"var\(--lt-[\w-]+, (#[0-9a-f]{6})\)", html))
    assert colours <= {role.light for role in ROLES} | set(PAGE_COLOURS)


def test_a_diagram_without_anything_left_says_so() -> None:
    nowhere = Requirements(allowed_regions=frozenset({"ch"}))
    assert "Left over and chosen: nothing." in diagrams.gates(OFFERS, nowhere, "a bank").description


@pytest.mark.parametrize(("percent", "use"), [(10, 76.9), (20, 62.5), (30, 52.6), (50, 40.0)])
def test_the_break_even_ring_reads_the_table_at_weight_one(percent: int, use: float) -> None:
    row = reading(PLOTS["break_even"](), weight="1", percent=percent)
    assert row["pays"] == pytest.approx(use, abs=0.05)
    assert f"{percent}% output: pays above {use:.1f}% use" == row["pays_text"]


def test_the_mix_drops_out_at_the_weight_of_the_prices() -> None:
    rows = rows_of(PLOTS["break_even"]())
    level = {row["pays"] for row in rows if row["weight"] == "4"}
    assert level == {76.92}
    assert "never" in reading(PLOTS["break_even"](), weight="8", percent=50)["pays_text"]


@pytest.mark.parametrize(("percentile", "dollars"), [(10, 16_800), (50, 16_650), (100, 24_000)])
def test_the_spillover_ring_reads_sums_by_hand(percentile: int, dollars: int) -> None:
    row = reading(PLOTS["spillover"](), pays="67", p=percentile)
    assert row["cost"] == pytest.approx(dollars / 1e3)
    assert row["cost_text"] == f"p{percentile}: {dollars:,} dollars a month"


def test_the_bars_of_the_day_add_up_to_the_month() -> None:
    (hours,) = [t for t in tables_of(PLOTS["spillover"]()) if "h" in t[0]]
    for stop in range(len(plots.FLOOR_PERCENTILES)):
        day = [row for row in hours if row["stop"] == stop]
        assert sum(row["d"] for row in day) * 730 / 24 / 1e3 == pytest.approx(4.0, abs=0.005)
        assert all(row["f"] <= row["d"] for row in day)


@pytest.mark.parametrize(
    ("billions", "full", "bare"), [(1, 42.52, 17.52), (5, 8.50, 3.50), (10, 4.25, 1.75), (20, 2.13, 0.88)]
)
def test_the_owning_ring_reads_the_corrected_table(billions: float, full: float, bare: float) -> None:
    row = reading(PLOTS["owning"](), mix="10", b=billions)
    assert row["full"] == pytest.approx(full, abs=0.005)
    assert row["bare"] == pytest.approx(bare, abs=0.005)
    assert row["price"] == 3.9


def test_the_next_eight_gpus_come_when_eight_are_full() -> None:
    assert [reading(PLOTS["owning"](), mix="10", b=b)["gpus"] for b in (38, 39, 75, 80)] == [8, 16, 16, 24]
    assert [reading(PLOTS["owning"](), mix="50", b=b)["gpus"] for b in (28, 29)] == [8, 16]


def test_a_ring_starts_only_on_a_stop() -> None:
    with pytest.raises(ValueError, match="^percent_output must be a stop"):
        plots.break_even(PRICES, monthly_dollars=1, capacity_tokens=1, measured_at=0.1, percent_output=11)
    with pytest.raises(ValueError, match="^percentile must be a stop"):
        plots.spillover(monthly_tokens=4e9, token_price=4.5e-6, percentile=33)
    with pytest.raises(ValueError, match="^billions must be a stop"):
        plots.owning(FLEETS, PRICES, MIXES, billions=7)
    with pytest.raises(ValueError, match="^fleets must be one for each of"):
        plots.owning({"10": FLEETS["10"]}, PRICES, {"10": 0.1})


def test_plots_are_sound(any_plot: Any, sound_plot: Callable[[Any], None]) -> None:
    sound_plot(any_plot)


def test_diagrams_are_sound(any_diagram: Any, sound_diagram: Callable[[Any], None]) -> None:
    sound_diagram(any_diagram)
