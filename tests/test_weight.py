"""No script holds the text back, and the third-party files in the tree are the ones we chose."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest
from lantern_book.look import Reader

ROOT = Path(__file__).resolve().parent.parent
BOOK = ROOT / "book"


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
