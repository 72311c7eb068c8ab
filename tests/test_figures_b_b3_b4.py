"""Figures of pages B3 and B4: well-formed, inside their frame, in the roles' colours, with the published numbers."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest

pytest.importorskip("altair", reason="figures need the labs extra")

from lantern_lib import H100, LANTERN_70B, Replica
from lantern_lib.figures import part_b_b3_b4 as diagrams
from lantern_lib.figures import part_b_b3_b4_plots as plots
from lantern_lib.figures.diagram import Diagram
from tests.figure_rules import drawings, once, reading, rows_of

FOUR = Replica(H100, tp_size=4)
DIAGRAMS: dict[str, Callable[[], Diagram]] = {
    "collision": lambda: diagrams.collision(LANTERN_70B, FOUR, 32, 4000, 8000, 512),
    "disaggregation": lambda: diagrams.disaggregation(LANTERN_70B, 8000, 200e9),
    "queue": lambda: diagrams.queue((0.5, 0.8, 0.9, 0.95)),
    "scheduler": diagrams.scheduler,
    "open_loop": lambda: diagrams.open_loop(1, 1.25, (4, 9), 14),
}
PLOTS = once(
    {
        "chunk": lambda: plots.chunk(LANTERN_70B, context_len=4000, prompt_len=8000, chunk_size=512),
        "best_chunk": lambda: plots.best_chunk(LANTERN_70B, context_len=4000, prompt_len=8000, tpot_target_ms=50),
        "goodput": lambda: plots.goodput(percent_busy=80),
    }
)


@pytest.mark.parametrize(
    ("name", "texts"),
    [
        ("collision", ["One step of 678 ms", "16 steps of 47 ms", "after 754 ms", "32 users", "18.4 ms"]),
        ("disaggregation", ["2.4 GiB of cache", "13 ms at 200 GB/s", "prompt of 8,000"]),
        ("scheduler", ["Admission", "Order", "Preemption", "Shedding"]),
        ("open_loop", ["1 of 9 requests slow", "9 of 12 requests slow"]),
    ],
)
def test_a_diagram_shows_the_published_numbers(name: str, texts: list[str]) -> None:
    for svg in drawings(DIAGRAMS[name]()):
        shown = " ".join(text.text or "" for text in svg.iter("text"))
        for expected in texts:
            assert expected in shown


def test_the_bars_of_the_queue_are_the_printed_multiples() -> None:
    for svg in drawings(DIAGRAMS["queue"]()):
        widths = [float(rect.get("width", "0")) for rect in svg.iter("rect")]
        unit = widths[0]
        waits = [(width + 1) / unit for width in widths[1::2]]
        assert waits == pytest.approx([1, 4, 9, 19], abs=0.05)


def test_the_open_test_counts_what_arrives_in_the_stall() -> None:
    """By hand: one request a second in turn, and one every 1.25 s, against a stall from 4 to 9."""
    closed = diagrams.stalled_requests(lambda answered, _: answered, 10, 1, (4, 9))
    assert [sent for sent, _ in closed] == [0, 1, 2, 3, 4, 10, 11, 12, 13, 14]
    opened = diagrams.stalled_requests(lambda _, n: n * 1.25, 12, 1, (4, 9))
    assert [answered for _, answered in opened] == [1, 2.25, 3.5, 10, 11, 12, 13, 14, 15, 16, 17, 18]


@pytest.mark.parametrize(
    ("chunk", "pause", "ttft"),
    [(128, "19.6", "1,232"), (256, "26", "818"), (512, "47", "754"), (2048, "177", "707"), (8000, "678", "678")],
)
def test_the_chunk_ring_reads_the_published_table(chunk: int, pause: str, ttft: str) -> None:
    row = reading(PLOTS["chunk"](), decoders="32", chunk=chunk)
    assert f"every {pause} ms" in row["pause_text"]
    assert f"after {ttft} ms" in row["ttft_text"]
    assert "18.4 ms" in row["normal_text"]
    assert "678 ms" in row["whole_text"]


@pytest.mark.parametrize(("busy", "mean", "high"), [(50, 2.0, 6), (80, 5.0, 15), (90, 10.0, 30), (95, 20.0, 60)])
def test_the_goodput_ring_reads_the_published_multiples(busy: int, mean: float, high: int) -> None:
    row = reading(PLOTS["goodput"](), promise="5", busy=busy)
    assert row["time_text"] == f"mean {mean}, 95th percentile {high}"
    # Chance of one exponential stage more in each state: the sum over the states an arrival can find.
    late = sum(
        (1 - busy / 100) * (busy / 100) ** n * math.exp(-5) * 5**k / math.factorial(k)
        for n in range(150)
        for k in range(n + 1)
    )
    assert row["good"] == pytest.approx(busy * (1 - late), abs=0.1)


def test_a_looser_promise_allows_a_larger_chunk_and_a_shorter_wait() -> None:
    rows = [r for r in rows_of(PLOTS["best_chunk"]()) if r["decoders"] == "32" and r["tp"] == "4" and r["chunk"]]
    sizes, waits = [r["chunk"] for r in rows], [r["ttft"] for r in rows]
    assert sizes == sorted(sizes)
    # A last chunk of a few tokens costs a whole step, so the wait may rise by as much and no more.
    assert all(later < earlier + 18.5 for earlier, later in pairwise(waits))
    assert waits[0] > 2 * waits[-1]
    assert reading(PLOTS["best_chunk"](), decoders="32", tp="4", target=50)["chunk"] == 545
    assert "not even" in reading(PLOTS["best_chunk"](), decoders="100", tp="4", target=20)["chunk_text"]


def test_a_ring_starts_only_on_a_stop() -> None:
    with pytest.raises(ValueError, match="^chunk_size must be a stop"):
        plots.chunk(LANTERN_70B, context_len=4000, prompt_len=8000, chunk_size=500)
    with pytest.raises(ValueError, match="^tpot_target_ms must be a stop"):
        plots.best_chunk(LANTERN_70B, context_len=4000, prompt_len=8000, tpot_target_ms=55)
    with pytest.raises(ValueError, match="^percent_busy must be a stop"):
        plots.goodput(percent_busy=81)


def test_diagrams_are_sound(any_diagram: Any, sound_diagram: Callable[[Any], None]) -> None:
    sound_diagram(any_diagram)


def test_plots_are_sound(any_plot: Any, sound_plot: Callable[[Any], None]) -> None:
    sound_plot(any_plot)
