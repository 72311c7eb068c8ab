"""Figures of pages C3 and C4: well-formed, inside their frame, in the roles' colours, with the published numbers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest

pytest.importorskip("altair", reason="figures need the labs extra")

from lantern_lib import H100, LANTERN_70B, Replica, capacity
from lantern_lib.figures import part_c_capacity as diagrams
from lantern_lib.figures import part_c_capacity_plots as plots
from lantern_lib.figures.diagram import Diagram
from lantern_lib.figures.roles import ARITHMETIC, MEMORY
from tests.figure_rules import drawings, once, rows_with

FOUR = Replica(H100, tp_size=4)
CHAT = capacity.Traffic(20, 2000, 400)
SHARED = replace(CHAT, num_cached_tokens=1500)
THREE = [
    ("Raw capacity", capacity.plan_fleet(LANTERN_70B, FOUR, CHAT)),
    ("Headroom", capacity.plan_fleet(LANTERN_70B, FOUR, CHAT, max_utilization=0.65)),
    ("Headroom and cache", capacity.plan_fleet(LANTERN_70B, FOUR, SHARED, max_utilization=0.65)),
]
DIAGRAMS: dict[str, Callable[[], Diagram]] = {
    "five_questions": diagrams.five_questions,
    "sizing": lambda: diagrams.sizing(THREE, 3.0, 0.050),
}


@pytest.mark.parametrize(
    "expected",
    [
        ("5 replicas, 20 GPUs", "60 dollars an hour", "2.08 a million", "a token every 65 ms, but 50 ms are promised"),
        ("7 replicas, 28 GPUs", "84 dollars an hour", "2.92 a million", "a token every 32 ms"),
        ("4 replicas, 16 GPUs", "48 dollars an hour", "1.67 a million", "a token every 23 ms"),
    ],
)
def test_the_sizing_shows_the_published_plans(expected: tuple[str, ...]) -> None:
    for svg in drawings(DIAGRAMS["sizing"]()):
        shown = " ".join(text.text or "" for text in svg.iter("text"))
        for words in expected:
            assert words in shown
    assert shown.count("promised") == 1


def test_the_work_in_the_sizing_is_to_scale() -> None:
    """Decode 1.27 in every row; prefill 3.24, 3.24 and 0.84; seven frames fill the width."""
    for svg in drawings(DIAGRAMS["sizing"]()):
        unit = (float(svg.get("width", "0")) - 8) / 7
        bars = [(r.get("fill"), float(r.get("width", "0")) / unit) for r in svg.iter("rect")]
        answers = [amount for fill, amount in bars if fill == MEMORY.colour]
        prompts = [amount for fill, amount in bars if fill == ARITHMETIC.colour]
        assert answers == pytest.approx([1.27] * 3, abs=0.01)
        assert prompts == pytest.approx([3.24, 3.24, 0.84], abs=0.01)
        frames = [p for p in svg.iter("path") if (p.get("d") or "").endswith("z")]
        assert len([p for p in frames if "v26" in (p.get("d") or "")]) == 5 + 7 + 4


PLOTS = once(
    {
        "capacity_sweep": lambda: plots.capacity_sweep(
            LANTERN_70B,
            arrival_rate=20,
            prompt_len=2000,
            output_len=400,
            num_cached_tokens=1500,
            max_utilization=0.65,
            dollars_per_gpu_hour=3.0,
        )
    }
)


@pytest.mark.parametrize(("rate", "replicas"), [(1, 1), (2, 1), (5, 1), (10, 2), (20, 4), (50, 9), (100, 17)])
def test_the_ring_reads_the_published_replicas(rate: int, replicas: int) -> None:
    (row,) = [r for r in rows_with(PLOTS["capacity_sweep"], "stop") if r["rate"] == rate and r["bits"] == "16 bits"]
    assert row["cached"] == 4 * replicas
    assert row["cached_cost"] == pytest.approx(12e6 * replicas / (3600 * rate * 400), abs=1e-3)
    assert f"{4 * replicas} GPUs" in row["cached_text"]


def test_the_ring_reads_both_storages_at_twenty() -> None:
    rows = {r["bits"]: r for r in rows_with(PLOTS["capacity_sweep"], "stop") if r["rate"] == 20}
    assert [rows["16 bits"][key] // 4 for key in ("raw", "room", "cached")] == [5, 7, 4]
    assert [rows["8 bits"][key] // 4 for key in ("raw", "room", "cached")] == [4, 7, 3]
    assert rows["16 bits"]["raw_text"] == "raw: 20 GPUs, $2.08, 65 ms"


def test_the_curves_go_through_every_stop() -> None:
    """The corners are computed apart from the readings; between two of them the fleet stays the same."""
    corners = rows_with(PLOTS["capacity_sweep"], "order")
    for bits in plots.STORAGE:
        for key, _, _ in plots.PLANS:
            curve = [c for c in corners if c["bits"] == bits and c["plan"] == key]
            assert curve[0]["rate"] == 1
            assert curve[-1]["rate"] == 100
            assert [c["order"] for c in curve] == list(range(len(curve)))
            for row in (r for r in rows_with(PLOTS["capacity_sweep"], "stop") if r["bits"] == bits):
                held = [
                    a["gpus"]
                    for a, b in pairwise(curve)
                    if a["gpus"] == b["gpus"] and a["rate"] <= row["rate"] <= b["rate"]
                ]
                assert row[key] in held, (bits, key, row["rate"])


def test_a_step_up_costs_as_much_as_the_extra_replica() -> None:
    for before, after in pairwise(rows_with(PLOTS["capacity_sweep"], "order")):
        if before["plan"] == after["plan"] and before["rate"] == after["rate"] and after["order"]:
            assert after["gpus"] == before["gpus"] + 4
            assert after["cost"] / before["cost"] == pytest.approx(after["gpus"] / before["gpus"], abs=2e-3)


def test_a_ring_starts_only_on_a_stop() -> None:
    with pytest.raises(ValueError, match="^arrival_rate must be a stop"):
        plots.capacity_sweep(
            LANTERN_70B,
            arrival_rate=21,
            prompt_len=2000,
            output_len=400,
            num_cached_tokens=1500,
            max_utilization=0.65,
            dollars_per_gpu_hour=3.0,
        )


def test_diagrams_are_sound(any_diagram: Any, sound_diagram: Callable[[Any], None]) -> None:
    sound_diagram(any_diagram)


def test_plots_are_sound(any_plot: Any, sound_plot: Callable[[Any], None]) -> None:
    sound_plot(any_plot)
