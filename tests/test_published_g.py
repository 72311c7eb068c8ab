"""Every number that the notes print in G1 to G3, counted or recomputed; see ``test_published_a.py`` for the shape."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from lantern_lib import LANTERN_70B, kv_cache

PUBLISHED = "published_g"
ROOT = Path(__file__).resolve().parent.parent


def page(name: str) -> str:
    return (ROOT / "book" / f"{name}.md").read_text(encoding="utf-8")


def plan() -> list[str]:
    """Return the rows of the eight-week plan."""
    table = page("g/g2").split("| Week | Read |")[1].split("\n\n")[0]
    return re.findall(r"^\| \d \|.*$", table, re.M)


def features() -> int:
    """Count the numbered features under C1's heading that promises five."""
    listed = page("c/c1").split("## Five features")[1].split("\n## ")[0]
    return len(re.findall(r"^\d\. \*\*", listed, re.M))


def open_boxes() -> int:
    rows = json.loads((ROOT / "tests/data/coverage.json").read_text(encoding="utf-8"))
    return sum(row["source"] == "notes" and row["kind"] == "open question" for row in rows)


COMPUTE: dict[str, Callable[..., float]] = {
    "cache.bytes_per_token": lambda: kv_cache.bytes_per_token(LANTERN_70B),
    "plan.weeks": lambda: len(plan()),
    "engines.features": features,
    "boxes.open": open_boxes,
}


def test_published_number(entry: dict[str, Any], hold: Callable[..., None]) -> None:
    hold(entry, COMPUTE)


def test_week_six_leads_to_the_page_that_has_the_five_features() -> None:
    assert re.search(r"^\| 6 \|.*five features of \[C1\]\(\.\./c/c1\.md\)", plan()[5])


def test_no_compute_entry_is_unused(entries: list[dict[str, Any]]) -> None:
    assert set(COMPUTE) == {e["compute"] for e in entries}
