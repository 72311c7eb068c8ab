"""Figures of pages F1 and F2: well-formed, in the roles' colours, complete, and with the numbers of the pages."""

from __future__ import annotations

import itertools
import re
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("altair", reason="figures need the labs extra")

from lantern_lib import H100, LANTERN_70B, Replica, capacity
from lantern_lib.figures import part_f_architecture as diagrams
from lantern_lib.figures import part_f_architecture_plots as plots
from lantern_lib.figures.diagram import Diagram
from tests.figure_rules import drawings, once, tables_of, words

BOOK = Path(__file__).parents[1] / "book"
FACTS = tomllib.loads((BOOK / "facts.toml").read_text("utf8"))
FOUR = Replica(H100, tp_size=4)
DEMAND = capacity.fleet_demand(LANTERN_70B, FOUR, capacity.Traffic(20, 2000, 400))
BUDGET = {"launch_seconds": 120.0, "image_seconds": 40.0, "compile_seconds": 145.0}
PRICES = {"api_million_dollars": 2.0, "dollars_per_gpu_hour": 3.0, "people_dollars": 25_000.0}
DIAGRAMS: dict[str, Callable[[], Diagram]] = {
    "aws_path": diagrams.aws_path,
    "build_or_buy": diagrams.build_or_buy,
    "bedrock_options": diagrams.bedrock_options,
}
PLOTS = once(
    {
        "cold_start": lambda: plots.cold_start(LANTERN_70B, FOUR, **BUDGET),
        "cost_by_utilisation": lambda: plots.cost_by_utilisation(DEMAND, **PRICES),
    }
)


@pytest.mark.parametrize("name", DIAGRAMS)
def test_the_narrow_drawing_says_what_the_wide_one_says(name: str) -> None:
    """Line breaks and order may differ, and a last sentence may be shorter."""
    wide, narrow = (set(re.findall(r"[\w&,.-]+", words(svg))) for svg in drawings(DIAGRAMS[name]()))
    assert len(wide & narrow) / len(wide) > 0.9, wide ^ narrow


def test_the_path_has_the_blocks_of_the_pages_table_and_its_limit() -> None:
    page = (BOOK / "f" / "f1.md").read_text("utf8")
    rows = re.findall(r"^\| (\d)\. (\w+)", page, re.M)
    blocks = [re.match(r"(\d)\. (\w+)", block.title) for block in diagrams.PATH + diagrams.BESIDE]
    assert [int(number) for number, _ in rows] == list(range(1, 9))
    assert [(block[1], block[2]) for block in blocks if block][:1] == rows[:1]
    assert [block[1] for block in blocks if block] == [number for number, _ in rows]
    assert FACTS["f1-idle"]["text"] == f"{diagrams.IDLE_TIMEOUT_SECONDS} seconds"
    assert f"{diagrams.IDLE_TIMEOUT_SECONDS} s of silence" in diagrams.aws_path().description


def test_each_way_runs_more_than_the_one_before_and_from_the_top_down() -> None:
    columns = [[cells[way][1] for _, cells in diagrams.STACK] for way in range(3)]
    assert [sum(column) for column in columns] == [2, 3, 6]
    for column in columns:
        assert column == sorted(column, reverse=True)


def test_the_saving_of_a_global_profile_is_the_fact() -> None:
    assert FACTS["f2-global"]["text"] == f"about {diagrams.GLOBAL_SAVING_PERCENT} percent"


def test_the_compiling_budget_is_the_sum_of_the_measured_parts() -> None:
    parts = [FACTS[f"f1-vllm-{part}"]["text"] for part in ("trace", "compile", "graphs")]
    assert sum(int(text.removesuffix(" s")) for text in parts) == BUDGET["compile_seconds"]


def rows_where(name: str, **where: Any) -> list[dict[str, Any]]:
    rows = [row for table in tables_of(PLOTS[name]()) for row in table]
    return [row for row in rows if all(row.get(key) == value for key, value in where.items())]


@pytest.mark.parametrize(
    ("source", "pod", "gpu"), [("0.5 GB/s", 282.2, 70.6), ("2 GB/s", 70.6, 17.6), ("10 GB/s", 14.1, 3.5)]
)
def test_the_weights_are_drawn_to_scale(source: str, pod: float, gpu: float) -> None:
    for start, seconds in zip(plots.STARTS, (pod, gpu, pod), strict=True):
        (row,) = rows_where("cold_start", source=source, bits="16 bits", start=start, phase="weights")
        assert row["b"] - row["a"] == pytest.approx(seconds, abs=0.06)
        (half,) = rows_where("cold_start", source=source, bits="8 bits", start=start, phase="weights")
        assert half["b"] - half["a"] == pytest.approx(seconds / 2, abs=0.1)


def test_the_phases_of_a_bar_follow_each_other_without_gaps() -> None:
    for source in plots.SOURCES:
        for start in plots.STARTS:
            bar = sorted(rows_where("cold_start", source=source, bits="16 bits", start=start), key=lambda row: row["a"])
            assert bar[0]["a"] == 0
            assert all(one["b"] == pytest.approx(two["a"]) for one, two in itertools.pairwise(bar))
            assert len(bar) == (2 if start == plots.STARTS[2] else 4)
            said = re.search(r": (\d+) s,", bar[0]["text"])
            assert said
            assert int(said[1]) == pytest.approx(bar[-1]["b"], abs=0.56)  # both are rounded


@pytest.mark.parametrize(
    ("engine", "busy", "dollars"),
    [("at the floor", 100, 0.31), ("at the floor", 65, 0.48), ("at half the floor", 65, 0.96)],
)
def test_the_ring_reads_the_published_prices(engine: str, busy: int, dollars: float) -> None:
    (row,) = rows_where("cost_by_utilisation", engine=engine, bill="1, GPUs only", busy=busy)
    assert row["own"] == pytest.approx(dollars, abs=0.005)
    assert row["text"] == f"{busy}% busy: ${dollars:.2f} a million"


@pytest.mark.parametrize(
    ("bill", "floor", "half"),
    [
        ("1, GPUs only", "pays above 16%", "pays above 31%"),
        ("1, full bill", "pays above 76%", "never pays at this price"),
        ("7, full bill", "pays above 24%", "pays above 49%"),
    ],
)
def test_the_crossing_is_where_the_verdict_says(bill: str, floor: str, half: str) -> None:
    """By hand: (n + m) × 12 dollars and 25,000 / 730 an hour, over n × 38.33 million tokens at 2 dollars."""
    for engine, verdict in (("at the floor", floor), ("at half the floor", half)):
        rows = rows_where("cost_by_utilisation", bill=bill, engine=engine)
        assert {row["verdict"] for row in rows} == {verdict}
        cheaper = [row["busy"] for row in rows if row["own"] < 2.0]
        said = re.search(r"\d+", verdict)
        assert (min(cheaper) >= int(said[0])) if said else not cheaper


def test_a_ring_names_its_stops_and_starts_on_one() -> None:
    spec = PLOTS["cost_by_utilisation"]().to_dict()
    stops = {row["stop"] for row in rows_where("cost_by_utilisation")}
    assert len(spec["usermeta"]["lantern"]["stops"]["ring"]) == len(stops) == len(plots.PERCENT_BUSY)
    with pytest.raises(ValueError, match="^percent_busy must be a stop"):
        plots.cost_by_utilisation(DEMAND, **PRICES, percent_busy=66)


def test_diagrams_are_sound(any_diagram: Any, sound_diagram: Callable[[Any], None]) -> None:
    sound_diagram(any_diagram)


def test_plots_are_sound(any_plot: Any, sound_plot: Callable[[Any], None]) -> None:
    sound_plot(any_plot)
