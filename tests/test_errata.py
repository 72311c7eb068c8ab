"""The errata page holds every number of the source documents that a second computation does not confirm."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
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


# Every erratum that a second reader noted, with the place its row names and a mark that stands in that row.
ERRATA = {
    "S1-1": ("Notes D3, caption", "er-reload"),
    "S1-2": ("Notes C3", "er-2400-fit"),
    "S1-3": ("Notes B1, step 4", "er-partial"),
    "S1-4": ("Notes F1", "sf-load-slow"),
    "S1-5": ("Notes A3", "er-quotient"),
    "S1-6": ("Notes A3, check box", "er-ridge"),
    "S1-7": ("Notes B2, caption", "er-waste-rounded"),
    "S1-8": ("Notes F4, exercise 1", "er-overload"),
    "S1-9": ("Notes A5", "B8 does not mention it"),
    "S1-10": ("Notes F2", "er-c3-price"),
    "S1-11": ("Notes B7", "er-mbu-never"),
    "S1-12": ("Notes G2", "C1 lists no five"),
    "S1-13": ('Notes A2, "Keep", and a row of G1', "a2-token"),
    "S1-14": ("Notes C3, F1 and F2 against B8", "er-8-cost"),
    "S1-15": ("Notes C4, exercise 1", "c4-prefill"),
    "S1-16": ("Notes B6", "b6-moe-left"),
    "S1-17": ("Notes A3, step 5", "er-times-224"),
    "S1-18": ("Notes D4 against D1", "d4-mean"),
    "S1-19": ("Notes A1 against D4", "er-299"),
    "S1-20": ("Notes A2 and B3", "er-four-rounded"),
    "S2-1": ("Warm-up 6.5", "er-month"),
    "S2-2": ("Warm-up 11", "er-cross-half"),
    "S2-3": ("Warm-up 6.5", "er-month-share"),
    "S2-4": ("Warm-up 3.1", "er-arithmetic-ratio"),
    "S2-5": ("Warm-up 11", "er-8000-gib"),
    "S2-6": ("Warm-up 2.3", "a4-mqa-step"),
    "S2-7": ("Warm-up 11", "even by that sum the first would not round so"),
    "S2-8": ("Warm-up 4.2", "er-slots-share"),
    "S2-9": ("Warm-up 3.1 against 2.4", "er-eight-cards"),
    "S2-10": ("Warm-up 2.4", "er-total-fit"),
    "S2-11": ("Warm-up 3.3", "The prompt is part of the context"),
    "S2-12": ("Warm-up 4.1", "the system's falls with the batch, the user's rises"),
    "S2-13": ("Warm-up 8", "There are five"),
    "X1": ("Conversations of ", "a4-eight-8192"),
    "X2": ("Going wider", "b6.md"),
    "X3": ("All-reduces", "er-all-reduces"),
    "X4": ("Ridge", "a3-ridge-peak"),
    "X5": ("A card's memory", "a4-units"),
    "X6": ("Parameters", "a2-total"),
    "X7": ("Bytes read by a step", "a3-round"),
    "X8": ("FLOPs of a prompt", "er-huge-rule"),
    "X9": ("A conversation of ", "er-8000-gib"),
    "X10": ("Continuous over static batching", "distribution of lengths"),
    "X11": ("Cost of running a model oneself", "engineers"),
}
# What is open, left out, lost or not to be found again: place and mark, as above.
OPEN = [
    ("Notes A2", "a2-norms"),
    ("Notes A3", "er-below"),
    ("Notes A3, meeting point", "a3-never"),
    ("Notes A4, A6, B2", "GiB"),
    ("Notes A6, exercise 1", "quick estimate"),
    ("Notes B1, step 2", "b1-spread-32"),
    ("Notes B1 and B2", "generator"),
    ("Notes B2", "er-lost"),
    ("Notes B2, derivation", "er-block-slots"),
    ("Notes B3, table", "er-part-chunk"),
    ("Notes B3", "er-prompt-alone"),
    ("Notes B3", "b3-reread-512"),
    ("Notes B6", "ring"),
    ("Notes B8, exercise 2", "b8-gain-2"),
    ("Notes C2, OpenAI column", "c2-tenth-off"),
    ("Notes C3", "c3-raw-tpot"),
    ("Notes C3", "hold some too"),
    ("Notes D1", "d1-in-out"),
    ("Notes D2, table", "d2-rel-5"),
    ("Notes D2, compaction", "d2-m-2-5"),
    ("Notes D3", "d3-fit-exact"),
    ("Notes E3", "e3-replicas"),
    ("Notes F2", "sf-even-rate"),
    ("Notes A3 and B6, check boxes", "second program"),
    ("Warm-up 2.1", "square"),
    ("Warm-up 2.2, 4.1, 6.3", "formulas"),
    ("Warm-up 2.3", "a4-mqa-fit"),
    ("Warm-up 3.2", "er-fall"),
    ("Warm-up 3.2", "a3-system-128"),
    ("Warm-up 4.3", "guess"),
    ("Warm-up 6.3", "capacity_types-volume"),
    ("Warm-up 6.3", "capacity_types-use-10"),
    ("Warm-up 6.5", "er-month-short"),
    ("Warm-up 6.5", "capacity_types-own-20"),
    ("Warm-up 7", "gates"),
]


def row(place: str, mark: str) -> str | None:
    """Return the row whose first cell is a place (or begins with it, before a number) and that holds a mark."""
    for line in PAGE.splitlines():
        first = line.split("|")[1].strip() if line.startswith("|") else ""
        named = first == place or (place.endswith(" ") and first.startswith(place))
        if named and re.search(rf"{re.escape(mark)}(?![\w-])", line):
            return line
    return None


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


@pytest.mark.parametrize("name", ERRATA)
def test_every_erratum_has_its_row(name: str) -> None:
    assert row(*ERRATA[name]), name


@pytest.mark.parametrize(("place", "mark"), OPEN)
def test_what_is_open_has_its_row(place: str, mark: str) -> None:
    assert row(place, mark)


def test_no_row_stands_twice() -> None:
    rows = [line.split("|")[1:3] for line in PAGE.splitlines() if line.startswith("| ")]
    said = [(place.strip(), what.strip()) for place, what in rows]
    heads = {pair for pair in said if pair[0] in ("Where", "Topic", "---")}
    assert len(said) - sum(pair in heads for pair in said) == len(set(said) - heads)


def test_the_list_of_errata_is_complete(outside: Callable[[str], Path]) -> None:
    """The second reader's own list, where it is at hand, has the same numbers."""
    noted = outside("reference/errata_of_sources.md").read_text(encoding="utf-8")
    numbers = re.findall(r"^\*\*(S[12]-\d+) \(", noted, re.M) + re.findall(r"^\| (X\d+) \(", noted, re.M)
    assert len(numbers) > 40
    assert set(numbers) == set(ERRATA)
