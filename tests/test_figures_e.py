"""Figures of part E: well-formed, inside their frame, in the roles' colours, with what the library computes."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any

import pytest

pytest.importorskip("altair", reason="figures need the labs extra")

from lantern_lib import H100, LANTERN_70B, Replica
from lantern_lib.figures import part_e as diagrams
from lantern_lib.figures import part_e_plots as plots
from lantern_lib.figures.diagram import Diagram
from tests.figure_rules import drawings, once, rows_of

FOUR = Replica(H100, tp_size=4)
DIAGRAMS: dict[str, Callable[[], Diagram]] = {
    "surfaces": diagrams.surfaces,
    "context_window": diagrams.context_window,
    "gates": diagrams.gates,
    "side_channel": lambda: diagrams.side_channel(LANTERN_70B, FOUR, 1500, 500),
    "shared_surfaces": diagrams.shared_surfaces,
}


PLOTS = once(
    {
        "timing": lambda: plots.timing(LANTERN_70B, FOUR, public_len=1500, num_probes=8),
        "three_ingredients": plots.three_ingredients,
    }
)


@pytest.fixture(scope="module")
def timing() -> Any:
    return PLOTS["timing"]()


@pytest.mark.parametrize(
    ("name", "texts"),
    [
        ("surfaces", ["The model", "The infrastructure", "The agent"]),
        ("context_window", ["System prompt", "User's message", "Page or mail", "Tool's answer", "one row of tokens"]),
        ("gates", ["Validate", "Confirm", "Sandbox", "Egress", "credentials", "record"]),
        ("side_channel", ["Tenant A", "Tenant B", "2,000 tokens", "41.9 ms", "14.3 ms"]),
        ("shared_surfaces", ["Prefix cache", "GPU memory", "Time in the batch", "Logs, telemetry", "Weights, images"]),
    ],
)
def test_both_drawings_say_what_the_page_says(name: str, texts: list[str]) -> None:
    for svg in drawings(DIAGRAMS[name]()):
        shown = " ".join(text.text or "" for text in svg.iter("text"))
        for expected in texts:
            assert expected in shown


def test_the_probe_before_a_scope_takes_as_long_as_the_first_request() -> None:
    for svg in drawings(DIAGRAMS["side_channel"]()):
        shown = " ".join(text.text or "" for text in svg.iter("text"))
        assert re.findall(r"after ([\d.]+ ms)", shown) == ["41.9 ms", "14.3 ms", "41.9 ms"]


def test_only_the_session_with_all_three_is_exposed() -> None:
    rows = rows_of(plots.three_ingredients())
    assert len(rows) == 12
    for row in rows:
        bad = (row["p"], row["u"], row["c"]) == ("yes", "yes", "yes")
        assert row["bad"] == bad
        assert (row["verdict"] == "Exposed") == bad
        assert [row["on0"] == 1, row["on1"] == 1, row["on2"] == 1] == [row[key] == "yes" for key in "puc"]


def test_the_timing_ring_reads_the_closed_form(timing: Any) -> None:
    rows = rows_of(timing)
    assert len(rows) == len(plots.SECRETS) * len(plots.NOISES_MS) * len(plots.PROBES)
    (row,) = [r for r in rows if (r["secret"], r["noise"], r["probes"]) == ("500", "100", 8)]
    assert row["right"] == pytest.approx(100 * (1 - math.exp(-8 * 27.6296 / 100) / 2), abs=0.1)
    assert row["text"] == "shared: right in 95 of 100, signal 28 ms"
    for row in rows:
        assert row["blind"] == 50
        assert row["played"] == pytest.approx(row["right"], abs=400 * 0.5 / math.sqrt(1000))


def test_the_ring_starts_only_on_a_stop() -> None:
    with pytest.raises(ValueError, match="^num_probes must be a stop"):
        plots.timing(LANTERN_70B, FOUR, public_len=1500, num_probes=5)


def test_diagrams_are_sound(any_diagram: Any, sound_diagram: Callable[[Any], None]) -> None:
    sound_diagram(any_diagram)


def test_plots_are_sound(any_plot: Any, sound_plot: Callable[[Any], None]) -> None:
    sound_plot(any_plot)
