"""The errata page holds every number of the source documents that a second computation does not confirm."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PAGE = (ROOT / "book" / "errata.md").read_text(encoding="utf-8")

# The number that the documents print, and what the page must show for it: a role's text, or words.
SHOWN = {
    "A3.ridge_printed_operands": "184.7",
    "A3.chk_exact": "184.515",
    "B1.der_partial_group": "zero",
    "B2.cap_95": "96 percent",
    "B7.best_mbu": "0.728",
    "B7.best_mfu": "0.442",
    "C3.batch112": "186",
    "D3.eight": "7.8 times",
    "F4.ex1_third": "30 percent",
    "G2.five_features": "C1 lists no five",
    "S2.2.3.67x_true": "64 times",
    "S2.3.1.arith": "0.1416 ms",
    "S2.4.2.batch1": "1.75",
    "S2.6.5.monthly": "42,520 dollars",
    "S2.11.8000": "2.4 GiB",
    "S2.11.175k": "42,520 dollars",
    "S2.11.1750": "42.52 dollars",
    "S2.11.088": "2.13 dollars",
    "S2.11.cross": "10.9 billion",
}


def right_column() -> str:
    """Join the third column of every table whose heads are where, what it says, right, why."""
    rows = [line.split("|") for line in PAGE.splitlines() if line.startswith("|")]
    return "\n".join(row[3] for row in rows if len(row) == 6)


@pytest.mark.parametrize("number", SHOWN)
def test_a_wrong_number_has_its_right_value_on_the_page(number: str) -> None:
    shown, words = SHOWN[number], right_column()
    role = re.search(rf"\{{claim\}}`{re.escape(shown)} <[a-z0-9-]+>`", words)
    assert role or (shown in words and not shown[0].isdigit()), number


def test_every_corrected_number_of_the_tests_is_listed_here() -> None:
    corrected = {
        entry["id"]
        for path in (ROOT / "tests" / "data").glob("published_*.json")
        for entry in json.loads(path.read_text(encoding="utf-8"))
        if "corrected" in entry
    }
    assert corrected
    assert corrected <= set(SHOWN)


def test_every_place_is_a_section_of_a_document() -> None:
    places = re.findall(r"^\| ((?:Notes|Warm-up) [^|]+?) \|", PAGE, re.M)
    assert len(places) > 35
    for place in places:
        assert re.match(r"Notes [A-G]\d|Warm-up \d", place), place
