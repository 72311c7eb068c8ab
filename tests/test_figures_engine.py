"""Plots of the measured engine: every step is a point above its floor, and a readout gives the ratio."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("altair", reason="figures need the labs extra")

from lantern_lib.engine_ledger import EngineRow, best_rows, read_engine_rows
from lantern_lib.figures import engine_cpu_plots as plots
from tests.figure_rules import once

BEST = best_rows(read_engine_rows(Path(__file__).resolve().parent.parent / "book" / "data" / "engine_cpu.csv"))


def plotted(kind: str) -> list[EngineRow]:
    """The rates, and the steps that the page plots: the likeliest token, and the context that every batch has."""
    steps = [row for row in BEST if row.kind == kind and row.case in ("", "greedy") and row.context_len in (0, 128)]
    return [row for row in BEST if row.kind in ("bandwidth", "arithmetic")] + steps


PLOTS = once(
    {
        "decode": lambda: plots.against_floor(plotted("decode"), "decode", choice="Q8_0, 1 thread", size=1),
        "prefill": lambda: plots.against_floor(plotted("prefill"), "prefill", choice="Q8_0, 1 thread", size=256),
    }
)


def points(kind: str) -> list[dict[str, Any]]:
    found = re.findall(r'"values": (\[\{.*?\}\])', json.dumps(PLOTS[kind].to_dict()))
    return next(rows for rows in (json.loads(text) for text in found) if "measured" in rows[0])


@pytest.mark.parametrize("kind", ["decode", "prefill"])
def test_every_step_is_a_point_above_both_floors(kind: str) -> None:
    rows = points(kind)
    assert len(rows) == sum(row.kind == kind for row in plotted(kind))
    assert len({(row["choice"], row["stop"]) for row in rows}) == len(rows)
    for row in rows:
        assert row["measured"] >= max(row["memory"], row["arithmetic"])


@pytest.mark.parametrize("kind", ["decode", "prefill"])
def test_a_readout_gives_the_ratio_and_fits_a_phone(kind: str) -> None:
    for row in points(kind):
        ratio = row["measured"] / max(row["memory"], row["arithmetic"])
        assert float(row["ratio"].split()[-2]) == pytest.approx(ratio, abs=0.06)
        assert len(row["step"]) <= 48
        assert len(row["ratio"]) <= 48


def test_a_choice_or_size_that_is_not_there_is_refused() -> None:
    rows = plotted("prefill")
    with pytest.raises(ValueError, match=r"^choice must be one of"):
        plots.against_floor(rows, "prefill", choice="Q2", size=16)
    with pytest.raises(ValueError, match=r"^size must be a stop"):
        plots.against_floor(rows, "prefill", choice="Q8_0, 1 thread", size=17)
    with pytest.raises(ValueError, match=r"^kind must be decode or prefill"):
        plots.against_floor(rows, "load", choice="Q8_0, 1 thread", size=16)


def test_plots_are_sound(any_plot: Any, sound_plot: Callable[[Any], None]) -> None:
    sound_plot(any_plot)
