"""Figures of pages B1 and B2: well-formed, inside their frame, in the roles' colours, true to the schedules."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest

pytest.importorskip("altair", reason="figures need the labs extra")

from lantern_lib.figures import part_b_batching as diagrams
from lantern_lib.figures import part_b_batching_plots as plots
from lantern_lib.figures.diagram import Diagram
from lantern_lib.workload import output_lengths_512
from tests.figure_rules import drawings, once, rows_with

LENGTHS = output_lengths_512()
DIAGRAMS: dict[str, Callable[[], Diagram]] = {
    "engine": diagrams.engine_loop,
    "paging": lambda: diagrams.paging(40, 32, (38, 9), 16, 256),
    "radix": lambda: diagrams.radix_tree(1500, (400, 600, 300), 50),
}
PLOTS = once(
    {
        "batching": lambda: plots.batching(LENGTHS, num_slots=32),
        "paged": lambda: plots.paged(LENGTHS, block_size=16, reserved_len=4096),
    }
)


def test_the_blocks_drawn_are_those_of_two_requests_that_share_a_beginning() -> None:
    """78 and 49 tokens in blocks of 16 are 5 and 4 blocks, of which 32 common tokens fill 2: 7 in all."""
    for svg in drawings(DIAGRAMS["paging"]()):
        shown = [text.text or "" for text in svg.iter("text")]
        assert "Blocks of 16: 7 of 16 in use" in shown
        assert shown.count("A B") == 2
        assert shown.count("A") == 3
        assert shown.count("B") == 2


@pytest.mark.parametrize("stop", range(len(plots.SLOTS)))
def test_drawn_schedules_do_not_overlap_within_a_slot(stop: int) -> None:
    bars = [bar for bar in rows_with(PLOTS["batching"](), "policy") if bar["stop"] == stop]
    for policy in ("static", "continuous"):
        drawn = [bar for bar in bars if bar["policy"] == policy]
        heights = sorted({(bar["low"], bar["high"]) for bar in drawn})
        assert len(heights) == plots.SLOTS[stop]
        assert all(first[1] < second[0] for first, second in pairwise(heights))
        for low, _ in heights:
            times = sorted((bar["start"], bar["end"]) for bar in drawn if bar["low"] == low)
            assert all(first[1] <= second[0] for first, second in pairwise(times))
            if policy == "continuous":  # filled from the first to the last step that is drawn
                assert sum(end - start for start, end in times) == plots.SHOWN_STEPS


@pytest.mark.parametrize(
    ("slots", "static", "continuous", "ratio"),
    [
        (8, "27,023 steps, 43% busy", "11,880 steps, 98% busy", "2.27 times"),
        (16, "14,894 steps, 39% busy", "6,138 steps, 95% busy", "2.43 times"),
        (32, "7,863 steps, 37% busy", "3,236 steps, 90% busy", "2.43 times"),
        (64, "4,048 steps, 36% busy", "1,771 steps, 83% busy", "2.29 times"),
    ],
)
def test_the_slots_ring_reads_the_published_numbers(slots: int, static: str, continuous: str, ratio: str) -> None:
    (row,) = [row for row in rows_with(PLOTS["batching"](), "slots") if row["slots"] == slots]
    assert static in row["static_text"]
    assert continuous in row["continuous_text"]
    assert ratio in row["ratio_text"]


@pytest.mark.parametrize(
    ("size", "slots", "empty"),
    [(1, "93,526", "0.0"), (16, "97,392", "4.0"), (64, "111,168", "15.9"), (256, "173,568", "46.1")],
)  # fmt: skip
def test_the_block_ring_reads_the_published_numbers(size: int, slots: str, empty: str) -> None:
    (row,) = [row for row in rows_with(PLOTS["paged"](), "block") if row["block"] == size]
    assert row["text"] == f"blocks of {size}: {empty} percent empty"
    assert row["slots_text"].startswith(f"{slots} token-slots")


def test_a_ring_starts_only_on_a_stop() -> None:
    with pytest.raises(ValueError, match="^num_slots must be a stop of the slider"):
        plots.batching(LENGTHS, num_slots=33)
    with pytest.raises(ValueError, match="^block_size must be a stop of the slider"):
        plots.paged(LENGTHS, block_size=17, reserved_len=4096)


def test_diagrams_are_sound(any_diagram: Any, sound_diagram: Callable[[Any], None]) -> None:
    sound_diagram(any_diagram)


def test_plots_are_sound(any_plot: Any, sound_plot: Callable[[Any], None]) -> None:
    sound_plot(any_plot)
