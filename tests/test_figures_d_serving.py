"""Figures of pages D3 and D4: well-formed, inside their frame, in the roles' colours, with the published numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

pytest.importorskip("altair", reason="figures need the labs extra")

from lantern_lib import H100, LANTERN_70B, Replica
from lantern_lib.agents import CallBudget
from lantern_lib.cache_tiers import EXAMPLE_TIERS
from lantern_lib.figures import part_d_serving as diagrams
from lantern_lib.figures import part_d_serving_plots as plots
from lantern_lib.figures.diagram import Diagram
from tests.figure_rules import drawings, once, reading

FOUR = Replica(H100, tp_size=4)
CALL = CallBudget(0.4, 300, 0.027006, (3.0,))
PLANS = {"as it is": CALL, "half the words": CallBudget(0.4, 150, 0.027006, (3.0,))}
DIAGRAMS: dict[str, Callable[[], Diagram]] = {
    "recompute": lambda: diagrams.recompute(LANTERN_70B, FOUR, 34_500, (25e9, 100e9)),
    "tiers": lambda: diagrams.tiers(LANTERN_70B, FOUR, 34_500, EXAMPLE_TIERS),
    "call_budget": lambda: diagrams.call_budget(CALL, 40, PLANS),
    "idempotency": diagrams.idempotency,
}
PLOTS = once(
    {
        "waiting": lambda: plots.waiting(LANTERN_70B, wait_seconds=3),
        "routing": lambda: plots.routing(LANTERN_70B, queue_seconds=2.0),
        "fair": lambda: plots.fair(agent_context=34_500),
    }
)


@pytest.mark.parametrize(
    ("name", "texts"),
    [
        ("recompute", ["3.5 s", "0.45 s, 7.8 times faster", "0.11 s, 31.1 times faster", "load 11.3 GB at 25 GB/s"]),
        ("tiers", ["12 sessions, there at once", "88 sessions, back in 0.5 s", "Remote store"]),
        ("call_budget", ["One call: 11.5 s", "decoding 8.1 s", "first token 0.4 s", "tools 3.0 s", "7.7 minutes"]),
        ("idempotency", ["The customer gets two mails", "The customer gets one mail", "reply lost"]),
    ],
)
def test_a_diagram_shows_the_published_numbers(name: str, texts: list[str]) -> None:
    for svg in drawings(DIAGRAMS[name]()):
        shown = " ".join(text.text or "" for text in svg.iter("text"))
        for expected in texts:
            assert expected in shown


def test_the_bars_of_reload_and_recompute_are_to_one_scale() -> None:
    for svg in drawings(DIAGRAMS["recompute"]()):
        again, slow, fast = (float(rect.get("width", "0")) for rect in svg.iter("rect"))
        assert again / slow == pytest.approx(3.516 / 0.4522, rel=0.01)
        assert slow / fast == pytest.approx(4, rel=0.01)


def test_the_parts_of_a_call_are_to_one_scale() -> None:
    for svg in drawings(DIAGRAMS["call_budget"]()):
        first, decode, tool = [float(rect.get("width", "0")) + 1 for rect in svg.iter("rect")][:3]
        assert decode / first == pytest.approx(8.1 / 0.4, rel=0.02)
        assert decode / tool == pytest.approx(8.1 / 3, rel=0.02)


@pytest.mark.parametrize(
    ("wait", "keep", "text"),
    [(0.1, 0.1 / 12.99, "keep it"), (3, 3 / 12.99, "move it"), (3600, 3600 / 12.99, "move it")],
)
def test_the_waiting_ring_reads_the_share_of_the_pool(wait: float, keep: float, text: str) -> None:
    row = reading(PLOTS["waiting"](), wait=wait, context="34,500", link="25 GB/s")
    assert row["keep"] == pytest.approx(keep, rel=0.01)
    assert row["drop"] == pytest.approx(3.52, abs=0.005)
    assert text in row["best_text"]
    assert row["best"] == min(row["keep"], row["moved"], row["drop"])


@pytest.mark.parametrize(("queue", "to"), [(0.0, "its cache"), (3.0, "its cache"), (3.5, "an idle replica")])
def test_the_routing_ring_turns_where_the_hit_saves_no_more(queue: float, to: str) -> None:
    """A hit of 33,000 tokens saves 3.3 s of prefill."""
    row = reading(PLOTS["routing"](), queue=queue, context="34,500")
    assert row["best_text"].endswith(to)
    assert row["hit"] - queue == pytest.approx(0.19, abs=0.005)
    assert row["miss"] == pytest.approx(3.52, abs=0.005)


def test_the_fair_ring_reads_the_shares_of_the_weights() -> None:
    """By hand, with 1 for a fresh token, 0.1 for a cached one and 4 for output: chat's 3,600 beside the agent's."""
    chat = 2_000 + 4 * 400
    for cache, agent in (("none of it", 34_500 + 1_200), ("all but the last turn", 1_500 + 3_300 + 1_200)):
        row = reading(PLOTS["fair"](), cache=cache, context=34_500)
        assert row["tokens"] == pytest.approx(50, abs=1)
        assert row["requests"] == pytest.approx(100 * chat / (chat + agent), abs=1.5)
        assert row["arrival"] == pytest.approx(100 * chat / (chat + 10 * agent), abs=1)


def test_a_ring_starts_only_on_a_stop() -> None:
    with pytest.raises(ValueError, match="^wait_seconds must be a stop"):
        plots.waiting(LANTERN_70B, wait_seconds=4)
    with pytest.raises(ValueError, match="^queue_seconds must be a stop"):
        plots.routing(LANTERN_70B, queue_seconds=2.2)
    with pytest.raises(ValueError, match="^agent_context must be a stop"):
        plots.fair(agent_context=3_000)


def test_diagrams_are_sound(any_diagram: Any, sound_diagram: Callable[[Any], None]) -> None:
    sound_diagram(any_diagram)


def test_plots_are_sound(any_plot: Any, sound_plot: Callable[[Any], None]) -> None:
    sound_plot(any_plot)
