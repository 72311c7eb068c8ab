"""The strips of wrong formulas: every factor is there, in its strip, and read as it is."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("altair", reason="figures need the labs extra")

from lantern_lib.figures import part_calculator_plots as plots
from lantern_lib.memory_report import read_pools
from lantern_lib.models import public_models
from lantern_lib.usual_formulas import LOG_MISTAKES, MISTAKES, wrong_formulas, wrong_on_log
from tests.figure_rules import once, rows_with

POOLS = Path(__file__).resolve().parent.parent / "book" / "data" / "kv_pools.csv"
TABLES = {
    words: {name: wrong_formulas(entry.model, length) for name, entry in public_models().items()}
    for words, length in (("1,024", 1024), ("131,072", 131_072))
}
LOGS = {row.id: found for row in read_pools(POOLS) if (found := wrong_on_log(row))}

PLOTS = once(
    {
        "models": lambda: plots.wrong_by_model(TABLES, model="Llama-3-70B", context="1,024"),
        "logs": lambda: plots.wrong_by_log(LOGS, log="kv04"),
    }
)


def test_every_factor_of_every_model_is_a_mark() -> None:
    rows = rows_with(PLOTS["models"], "shown")
    assert len(rows) == sum(len(found) for table in TABLES.values() for found in table.values())
    assert {row["choice"] for row in rows} == set(TABLES)
    assert {row["kind"] for row in rows} == set(plots.KINDS)
    assert len({row["strip"] for row in rows}) == len(MISTAKES)


def test_every_factor_of_a_log_is_a_mark_but_those_of_nothing() -> None:
    nothing = sum(wrong.said == 0 for found in LOGS.values() for wrong in found)
    assert nothing == 2
    assert len(rows_with(PLOTS["logs"], "shown")) == sum(len(found) for found in LOGS.values()) - nothing


@pytest.mark.parametrize(
    ("choice", "name", "worst"),
    [
        ("1,024", "Llama-3-70B", "worst: query heads for key-value heads, 8.0 ×"),
        ("1,024", "Falcon-7B", "worst: query heads for key-value heads, 71 ×"),
        ("1,024", "Llama-2-7B", "worst: parameters for bytes, 1/2.0"),
        ("131,072", "Phi-3-mini-4k", "worst: windows counted as full, 64 ×"),
    ],
)
def test_the_ring_reads_the_worst_mistake(choice: str, name: str, worst: str) -> None:
    (row,) = [row for row in rows_with(PLOTS["models"], "worst") if (row["choice"], row["name"]) == (choice, name)]
    assert row["worst"] == worst


@pytest.mark.parametrize("name", ["models", "logs"])
def test_marks_lie_inside_the_axis_and_inside_the_frame(name: str) -> None:
    low, high = plots._SPAN
    for row in rows_with(PLOTS[name], "shown"):
        assert low < row["factor"] < high
        assert plots.HEAD < row["strip"] < PLOTS[name].to_dict()["height"]


@pytest.mark.parametrize("name", ["models", "logs"])
def test_readouts_are_short_enough_for_a_phone(name: str) -> None:
    for row in rows_with(PLOTS[name], "worst"):
        assert len(row["name"]) <= 48
        assert len(row["worst"]) <= 56


def test_strips_have_their_mistakes_words() -> None:
    for name, mistakes in (("models", MISTAKES), ("logs", LOG_MISTAKES)):
        texts = json.dumps(PLOTS[name].to_dict(), ensure_ascii=False)
        for mistake in mistakes:
            assert mistake.words in texts


def test_a_ring_starts_only_on_a_name() -> None:
    with pytest.raises(ValueError, match="^model must be a stop"):
        plots.wrong_by_model(TABLES, model="nobody", context="1,024")
    with pytest.raises(ValueError, match="^log must be a stop"):
        plots.wrong_by_log(LOGS, log="kv99")


def test_plots_are_sound(any_plot: Any, sound_plot: Callable[[Any], None]) -> None:
    sound_plot(any_plot)
