"""The one number that the notes print in G3, counted on the page; see ``test_published_a.py`` for the shape."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

PUBLISHED = "published_g3"
PAGE = Path(__file__).resolve().parent.parent / "book" / "g" / "g3.md"


def questions() -> list[list[str]]:
    """Return the cells of each question of the page's table."""
    text = PAGE.read_text(encoding="utf-8")
    return [[cell.strip() for cell in row.split("|")[1:-1]] for row in re.findall(r"^\| \d \|.*\|$", text, re.M)]


COMPUTE: dict[str, Callable[..., float]] = {"pages.questions": lambda: len(questions())}


def test_published_number(entry: dict[str, Any], hold: Callable[..., None]) -> None:
    hold(entry, COMPUTE)


def test_each_question_says_what_is_known_and_what_would_settle_it() -> None:
    """And has a page of its own, or a section on this one."""
    text = PAGE.read_text(encoding="utf-8")
    for number, question, raised, known, settled in questions():
        assert all((raised, known, settled)), question
        page = re.search(r"\((q\d)\.md\)", question)
        if page:
            assert page[1] == f"q{number}"
            assert (PAGE.parent / f"{page[1]}.md").exists()
        else:
            assert f"## Question {number}:" in text


def test_no_compute_entry_is_unused(entries: list[dict[str, Any]]) -> None:
    assert set(COMPUTE) == {e["compute"] for e in entries}
