"""The figures of the lab pages show their numbers, to scale and inside their frame."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest

from lantern_lib.figures.labs import widths_and_loss
from lantern_lib.figures.roles import PAGE_COLOURS

ROWS = [(16, 2_018_000, 1.93), (4, 633_000, 1.97), (2, 381_000, 3.66)]


def test_bars_are_to_scale_and_labelled() -> None:
    diagram = widths_and_loss(ROWS)
    assert len(diagram.description) > 80
    for svg in ElementTree.fromstring(diagram._repr_html_()):
        width = float(svg.get("width", "0"))
        shown = [text.text or "" for text in svg.iter("text")]
        assert {"2,018 KB", "633 KB", "381 KB", "1.93", "1.97", "3.66"} <= set(shown)
        for text in svg.iter("text"):
            size, x, words = float(text.get("font-size", "0")), float(text.get("x", "0")), text.text or ""
            assert size >= 11
            assert x + 0.62 * size * len(words) <= width + 8, words
        colours = {e.get(key) for e in svg.iter() for key in ("fill", "stroke")} - {None, "none"}
        assert colours <= set(PAGE_COLOURS.values())
        lengths = [float(bar.get("width", "0")) for bar in svg.iter("rect")]
        sizes, losses = lengths[0::2], lengths[1::2]
        for (_, size, loss), first, second in zip(ROWS, sizes, losses, strict=True):
            assert first / sizes[0] == pytest.approx(size / ROWS[0][1], abs=0.01)
            assert second / losses[-1] == pytest.approx(loss / ROWS[-1][2], abs=0.01)
