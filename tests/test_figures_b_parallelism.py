"""Figures of pages B6 and B8: inside their frame, in the roles' colours, with the published numbers."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any
from xml.etree import ElementTree

import pytest

pytest.importorskip("altair", reason="figures need the labs extra")

from lantern_lib import H100, LANTERN_70B, Replica
from lantern_lib.figures import part_b_parallelism as diagrams
from lantern_lib.figures import part_b_parallelism_plots as plots
from lantern_lib.figures.diagram import Diagram
from lantern_lib.figures.roles import PAGE_COLOURS, ROLES
from lantern_lib.mixture_of_experts import DEEPSEEK_V3

DIAGRAMS: dict[str, tuple[Callable[[], Diagram], list[str]]] = {
    "layouts": (
        lambda: diagrams.layouts(LANTERN_70B),
        ["160 sums a step", "Tensor", "Pipeline", "Replicas", "Experts"],
    ),
    "expert_routing": (lambda: diagrams.expert_routing(DEEPSEEK_V3), ["stored: 671 GB", "one token: 37 GB", "2 of 8"]),
    "part_b_result": (
        lambda: diagrams.part_b_result(LANTERN_70B, Replica(H100, tp_size=4), 64, 2000, 8192),
        ["54", "162", "18.7 ms", "10.3 ms", "3,419 tokens/s", "6,226 tokens/s"],
    ),
}
PLOTS: dict[str, Callable[[], Any]] = {
    "tensor_degree": lambda: plots.tensor_degree(LANTERN_70B),
    "experts_touched": lambda: plots.experts_touched(DEEPSEEK_V3),
}


@pytest.mark.parametrize("name", DIAGRAMS)
def test_a_diagram_stays_inside_and_shows_its_numbers(name: str) -> None:
    make, expected = DIAGRAMS[name]
    diagram = make()
    assert len(diagram.description) > 80
    neutral = re.compile(r"var\(--lt-(text|muted|rule|surface|panel), #[0-9a-f]{6}\)$")
    allowed = {role.colour for role in ROLES} | {"none"}
    for svg in ElementTree.fromstring(diagram._repr_html_()):
        width = float(svg.get("width", "0"))
        for text in svg.iter("text"):
            size, x, words = float(text.get("font-size", "0")), float(text.get("x", "0")), text.text or ""
            length = 0.62 * size * len(words)
            start = {"start": x, "middle": x - length / 2, "end": x - length}[text.get("text-anchor", "start")]
            assert size >= 11, words
            assert start >= -length * 0.1, words
            assert start + length <= width + length * 0.12, words
        for element in svg.iter():
            for colour in filter(None, (element.get("fill"), element.get("stroke"))):
                assert colour in allowed or neutral.match(colour), colour
        shown = [text.text or "" for text in svg.iter("text")]
        for words in expected:
            assert any(words in line for line in shown), words


def rows_of(name: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = max(
        (json.loads(t) for t in re.findall(r'"values": (\[\{.*?\}\])', json.dumps(PLOTS[name]().to_dict()))), key=len
    )
    return found


@pytest.mark.parametrize("name", PLOTS)
def test_a_plot_is_described_light_and_in_plain_colours(name: str) -> None:
    spec = PLOTS[name]().to_dict()
    rows = rows_of(name)
    assert len(spec["description"]) > 150
    assert len(spec["usermeta"]["lantern"]["stops"]["ring"]) == len({row["stop"] for row in rows})
    assert len(rows) < 200
    text = json.dumps({k: v for k, v in spec.items() if k not in ("datasets", "data")})
    assert "var(" not in text
    assert set(re.findall(r'"(?:fill|stroke|color)": (?:\{"value": )?"(#[0-9a-f]{6})"', text)) <= set(PAGE_COLOURS)


@pytest.mark.parametrize(
    ("gpus", "step", "rate", "fits"), [(2, "27.3 ms", "72", 4), (4, "14.3 ms", "855", 224), (8, "7.8 ms", "771", 663)]
)
def test_the_ring_reads_the_published_table(gpus: int, step: str, rate: str, fits: int) -> None:
    where = {"accelerator": "H100", "context": "2,000", "gpus": gpus}
    (row,) = [r for r in rows_of("tensor_degree") if all(r[k] == v for k, v in where.items())]
    assert f"{gpus} GPUs: {step}" in row["step_text"]
    assert "1.3 of it sums" in row["step_text"]
    assert row["rate_text"].startswith(f"{rate} tokens/s")
    assert row["fits"] == fits


def test_the_expert_ring_begins_with_the_active_weights() -> None:
    first, *_, last = rows_of("experts_touched")
    assert (first["touched"], first["read"]) == (8, 37)
    assert last["touched"] > 255


def test_a_ring_starts_only_on_a_stop() -> None:
    with pytest.raises(ValueError, match="^tp_size must be a stop"):
        plots.tensor_degree(LANTERN_70B, tp_size=3)
    with pytest.raises(ValueError, match="^context_len must be one of"):
        plots.tensor_degree(LANTERN_70B, context_len=3)
    with pytest.raises(ValueError, match="^batch_size must be a stop"):
        plots.experts_touched(DEEPSEEK_V3, batch_size=3)
