"""Figures of pages C1 and C2, and the outside facts that they and the pages' tables print."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from lantern_lib.figures import part_c_landscape as diagrams
from lantern_lib.figures.diagram import Diagram
from lantern_lib.figures.roles import CONTROL
from tests.figure_rules import drawings, words

FACTS = tomllib.loads((Path(__file__).parents[1] / "book" / "facts.toml").read_text("utf8"))
DIAGRAMS: dict[str, Callable[[], Diagram]] = {
    "layers": diagrams.layers,
    "usual_path": diagrams.usual_path,
    "evidence": diagrams.evidence,
    "postmortem": diagrams.postmortem,
}


@pytest.mark.parametrize("name", DIAGRAMS)
def test_the_narrow_drawing_says_what_the_wide_one_says(name: str) -> None:
    wide, narrow = drawings(DIAGRAMS[name]())
    assert sorted(words(wide).split()) == sorted(words(narrow).split())


def test_only_what_is_inferred_is_dashed() -> None:
    for svg in drawings(DIAGRAMS["evidence"]()):
        dashes = [(rect.get("stroke-dasharray"), rect.get("stroke")) for rect in svg.iter("rect")]
        assert [bool(dash) for dash, _ in dashes] == [False, False, False, True]
        assert dashes[-1][1] == CONTROL.colour


def test_one_layer_spans_three_replicas_of_two() -> None:
    for svg in drawings(DIAGRAMS["layers"]()):
        boxes = [(float(r.get("x", "0")), float(r.get("y", "0")), float(r.get("width", "0"))) for r in svg.iter("rect")]
        top, replicas = boxes[0], boxes[1:]
        assert len(replicas) == 6
        assert all(x >= top[0] - 0.1 and x + w <= top[0] + top[2] + 0.1 for x, _, w in replicas)
        assert all(y > top[1] for _, y, _ in replicas)


def test_the_bars_of_the_postmortem_lie_on_the_dates_of_the_post() -> None:
    """Each bar from the day a bug went in to the day it was taken out, on one linear axis: by the post, in days."""
    # Routing 5 August to 4 September, on the last platform 18 September; misconfiguration 25 August to
    # 2 September; compiler 25 August to 4 September, on the last model 12 September.
    expected = [(5, 35), (35, 49), (25, 33), (25, 35), (35, 43)]
    for svg in drawings(DIAGRAMS["postmortem"]()):
        bars = [(float(r.get("x", "0")), float(r.get("width", "0"))) for r in svg.iter("rect")]
        day = (bars[2][0] - bars[0][0]) / 20
        found = [(5 + (x - bars[0][0]) / day, 5 + (x + w - bars[0][0]) / day) for x, w in bars]
        assert [time for bar in found for time in bar] == pytest.approx(
            [time for bar in expected for time in bar], abs=0.05
        )


def test_the_postmortem_prints_the_facts_of_the_page() -> None:
    for svg in drawings(DIAGRAMS["postmortem"]()):
        for fact in ("c2-pm-first", "c2-pm-worst"):
            assert FACTS[fact]["text"] in words(svg)
    assert date(2025, 8, 29) == diagrams.BALANCING


# What the notes print in C1 and C2 (dates: 3 November 2026), by the fact that holds it here.
PUBLISHED = {
    "c1-dynamo-engines": {"SGLang", "TensorRT-LLM", "vLLM"},
    "c1-llmd-cncf": {"sandbox"},
    "c1-vllm-formats": {"FP8", "INT8", "INT4", "GPTQ", "AWQ", "GGUF"},
    "c1-vllm-list": {"PagedAttention", "continuous", "chunked", "prefix"},
    "c1-vllm-parallel": {"tensor", "pipeline", "data", "expert"},
    "c1-vllm-context": {"context"},
    "c1-trt-formats": {"FP8", "FP4"},
    "radix-throughput": {"6.4"},
    "c2-a-markers": {"four"},
    "c2-a-min": {"512", "4,096"},
    "c2-a-short": {"5"},
    "c2-a-long": {"1"},
    "c2-a-read": {"0.1"},
    "c2-a-write-short": {"1.25"},
    "c2-a-write-long": {"2"},
    "c2-a-lookback": {"20"},
    "c2-o-min": {"1,024"},
    "c2-o-short": {"30"},
    "c2-o-long": {"12"},
    "c2-o-earlier": {"24"},
    "c2-o-read": {"0.1"},
    "c2-o-upto": {"95"},
    "c2-o-write-short": {"1.25"},
    "c2-o-write-long": {"2.5"},
    "c2-pm-bugs": {"three"},
    "c2-pm-chips": {"Trainium", "NVIDIA", "TPUs"},
    "c2-bedrock-many": {"many"},
    "deepseek-total": {"671"},
    "deepseek-active": {"37"},
}


@pytest.mark.parametrize("fact", PUBLISHED)
def test_a_fact_says_what_the_notes_say(fact: str) -> None:
    """A list is in the fact's source, of which the page prints one word; a number is in the printed text."""
    wanted, entry = PUBLISHED[fact], FACTS[fact]
    told = entry["text"] if any(word[0].isdigit() for word in wanted) else f"{entry['text']} {entry['source']}"
    assert wanted <= set(re.findall(r"[\w.,-]*\w", told))


def test_what_is_read_and_what_is_quoted_is_told_apart() -> None:
    """A number that only the notes report is never called read."""
    ours = {name: fact for name, fact in FACTS.items() if name.startswith(("c1-", "c2-"))}
    assert len(ours) > 50
    for name, fact in ours.items():
        if "3 November 2026" in fact["source"] or "copy in a public repository" in fact["source"]:
            assert fact["status"] == "quoted", name
        if fact["kind"] in ("price", "limit"):
            assert fact["date"] >= date(2026, 10, 1), f"{name}: prices and limits of the newest pages only"


def test_diagrams_are_sound(any_diagram: Any, sound_diagram: Callable[[Any], None]) -> None:
    sound_diagram(any_diagram)
