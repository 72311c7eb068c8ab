"""What a page costs to load, and that the third-party files in the tree are the ones we chose."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest
from lantern_book.look import Reader

ROOT = Path(__file__).resolve().parent.parent
BOOK = ROOT / "book"
KILOBYTE = 1000

# Everything the browser asks for on a first visit, read to the end, each file gzipped [bytes].
TEXT_BUDGET = 300 * KILOBYTE
PLOT_BUDGET = 650 * KILOBYTE


@pytest.mark.browser
@pytest.mark.parametrize(
    ("name", "has_plot", "budget"),
    [
        ("index", False, TEXT_BUDGET),
        ("a/a1", False, TEXT_BUDGET),
        ("a/a2", False, TEXT_BUDGET),
        ("a/a3", True, PLOT_BUDGET),
        ("a/a4", True, PLOT_BUDGET),
        ("b/b1", True, PLOT_BUDGET),
        ("b/b5", True, PLOT_BUDGET),
        ("b/b7", False, TEXT_BUDGET),
        ("c/c3", True, PLOT_BUDGET),
        ("c/c4", False, TEXT_BUDGET),
        ("d/d2", True, PLOT_BUDGET),
        ("f/f3", True, PLOT_BUDGET),
        ("f/f4", False, TEXT_BUDGET),
        ("f/f1", True, PLOT_BUDGET),
        ("f/f2", True, PLOT_BUDGET),
        ("errata", False, TEXT_BUDGET),
    ],
)
def test_a_first_visit_stays_within_its_budget(reader: Reader, name: str, has_plot: bool, budget: int) -> None:
    with reader.visit(name) as visit:
        visit.read_to_the_end()
        weights = visit.weights()
    assert any("vega" in path for path in weights) is has_plot, "the plot library must load where a plot is"
    heaviest = sorted(weights.items(), key=lambda item: -item[1])[:8]
    assert sum(weights.values()) < budget, heaviest


@pytest.mark.browser
def test_no_script_stands_before_the_text(reader: Reader) -> None:
    """A slow script can't hold the text back: none is fetched until the article has been read."""
    with reader.visit("a/a3") as visit:
        held = visit.page.evaluate(
            "[...document.querySelectorAll('script[src]')].filter(script => !script.defer && !script.async &&"
            " (script.compareDocumentPosition(document.querySelector('article')) & Node.DOCUMENT_POSITION_FOLLOWING))"
            ".map(script => script.src)"
        )
        assert held == []


def test_vendored_files_are_the_recorded_ones() -> None:
    recorded = {}
    for line in (BOOK / "_ext/lantern_book/vendor/SHA256SUMS").read_text().splitlines():
        digest, name = line.split("  ")
        recorded[name] = digest
    kept = [path for path in (BOOK / "_static/vendor").rglob("*") if path.is_file()]
    kept.append(BOOK / "_ext/lantern_book/vendor/katex.min.js")
    found = {p.relative_to(BOOK).as_posix(): hashlib.sha256(p.read_bytes()).hexdigest() for p in kept}
    assert found == recorded


def test_every_vendored_library_has_its_licence() -> None:
    for folder in (BOOK / "_static/vendor").iterdir():
        assert "Permission" in (text := (folder / "LICENSE").read_text()) or "Redistribution" in text
