"""Figures of pages B6 and B8: inside their frame, in the roles' colours, with the published numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

pytest.importorskip("altair", reason="figures need the labs extra")

from lantern_lib import H100, LANTERN_70B, Replica
from lantern_lib.figures import part_b_parallelism as diagrams
from lantern_lib.figures import part_b_parallelism_plots as plots
from lantern_lib.figures.diagram import Diagram
from lantern_lib.mixture_of_experts import DEEPSEEK_V3
from tests.figure_rules import drawings, once, rows_of

DIAGRAMS: dict[str, Callable[[], Diagram]] = {
    "layouts": lambda: diagrams.layouts(LANTERN_70B),
    "expert_routing": lambda: diagrams.expert_routing(DEEPSEEK_V3),
    "part_b_result": lambda: diagrams.part_b_result(LANTERN_70B, Replica(H100, tp_size=4), 64, 2000, 8192),
}
SHOWN = {
    "layouts": ["160 sums a step", "Tensor", "Pipeline", "Replicas", "Experts"],
    "expert_routing": ["stored: 671 GB", "one token: 37 GB", "2 of 8"],
    "part_b_result": ["54", "162", "18.7 ms", "10.3 ms", "3,419 tokens/s", "6,226 tokens/s"],
}
PLOTS = once(
    {
        "tensor_degree": lambda: plots.tensor_degree(LANTERN_70B),
        "experts_touched": lambda: plots.experts_touched(DEEPSEEK_V3),
    }
)


@pytest.mark.parametrize("name", DIAGRAMS)
def test_a_diagram_shows_its_numbers(name: str) -> None:
    for svg in drawings(DIAGRAMS[name]()):
        shown = [text.text or "" for text in svg.iter("text")]
        for words in SHOWN[name]:
            assert any(words in line for line in shown), words


@pytest.mark.parametrize(
    ("gpus", "step", "rate", "fits"), [(2, "27.3 ms", "72", 4), (4, "14.3 ms", "855", 224), (8, "7.8 ms", "771", 663)]
)
def test_the_ring_reads_the_published_table(gpus: int, step: str, rate: str, fits: int) -> None:
    where = {"accelerator": "H100", "context": "2,000", "gpus": gpus}
    (row,) = [r for r in rows_of(PLOTS["tensor_degree"]()) if all(r[k] == v for k, v in where.items())]
    assert f"{gpus} GPUs: {step}" in row["step_text"]
    assert "1.3 of it sums" in row["step_text"]
    assert row["rate_text"].startswith(f"{rate} tokens/s")
    assert row["fits"] == fits


def test_the_expert_ring_begins_with_the_active_weights() -> None:
    first, *_, last = rows_of(PLOTS["experts_touched"]())
    assert (first["touched"], first["read"]) == (8, 37)
    assert last["touched"] > 255


def test_a_ring_starts_only_on_a_stop() -> None:
    with pytest.raises(ValueError, match="^tp_size must be a stop"):
        plots.tensor_degree(LANTERN_70B, tp_size=3)
    with pytest.raises(ValueError, match="^context_len must be one of"):
        plots.tensor_degree(LANTERN_70B, context_len=3)
    with pytest.raises(ValueError, match="^batch_size must be a stop"):
        plots.experts_touched(DEEPSEEK_V3, batch_size=3)


def test_diagrams_are_sound(any_diagram: Any, sound_diagram: Callable[[Any], None]) -> None:
    sound_diagram(any_diagram)


def test_plots_are_sound(any_plot: Any, sound_plot: Callable[[Any], None]) -> None:
    sound_plot(any_plot)
