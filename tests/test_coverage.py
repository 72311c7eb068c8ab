"""Every section, table, figure, box, derivation and exercise of the two source documents has its place in the book.

``data/coverage.json`` names each item by source, section, kind and number, with a label in our own words, the page
that covers it, and an anchor on that page: the name of a figure, or the beginning of a line (a heading, the title of a
fold or box, the head of a table, an exercise), without the marks of its directive.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parent.parent
BOOK = ROOT / "book"
ROWS: list[dict[str, str | None]] = json.loads((ROOT / "tests/data/coverage.json").read_text(encoding="utf-8"))
IDS = [str(row["id"]) for row in ROWS]

# What the documents hold, counted once by hand and once by the parsers below.
COUNTS = {
    ("notes", "section"): 45,
    ("notes", "figure"): 59,
    ("notes", "table"): 23,
    ("notes", "derivation"): 10,
    ("notes", "fold"): 3,
    ("notes", "check box"): 11,
    ("notes", "open question"): 5,
    ("notes", "exercise"): 12,
    ("warm-up", "section"): 29,
    ("warm-up", "table"): 5,
    ("warm-up", "step"): 7,
    ("warm-up", "criterion"): 13,
    ("warm-up", "mistake"): 14,
    ("warm-up", "question"): 6,
}

# Headings of the notes that have no letter, and the section that stands for them.
UNLETTERED = {"The story: Lantern": "Story", "How to read the notes": "How to read"}
# The warm-up's tables were lost in its conversion; a sentence with these words announced each.
LOST_TABLES = {"2.3": "Two variants", "3.2": "Batching raises", "6.3": "Worked", "6.5": "From the lab", "7": "The JD"}


def page_of(name: str) -> Path:
    return BOOK / f"{name}.md"


def bare(line: str) -> str:
    """Take the marks of a heading, a fold or a box off a line."""
    return re.sub(r"^(?::+\{[\w-]+\}|#+)\s*", "", line.strip())


def has(text: str, anchor: str) -> bool:
    if anchor.startswith("fig-"):
        return re.search(rf"name: {re.escape(anchor)}[,}}]", text) is not None
    return any(bare(line).startswith(anchor) for line in text.splitlines())


def note_items(text: str) -> Iterator[str]:
    """Name the items of the notes in the way of ``coverage.json``."""
    marks = {
        r"\| ?---": "table",
        r'<details class="more"><summary>Derivation': "derivation",
        r'<details class="more"><summary>(?!Derivation)': "fold",
        r'<details class="answer">': "exercise",
        r'<aside class="chk">': "check box",
        r'<aside class="q">': "open question",
    }
    section, seen = "", Counter[str]()
    for line in text.splitlines():
        if heading := re.match(r"##{1,2} (.*)", line):
            section = UNLETTERED.get(heading[1]) or heading[1].split(".")[0]
            seen.clear()
            yield f"notes {section} section"
        elif figure := re.match(r'<figure .*id="inf-([\w-]+)"', line):
            yield f"notes {section} figure {figure[1]}"
        for mark, kind in marks.items():
            if re.match(mark, line):
                seen[kind] += 1
                yield f"notes {section} {kind} {seen[kind]}"


def warm_up_items(text: str) -> Iterator[str]:
    """Name the items of the warm-up, whose table of contents tells headings from lists."""
    titles = set(re.findall(r"^ *• (\d+(?:\.\d)?\.? .+)$", text, re.M))
    section, seen = "", Counter[str]()
    lines = text.splitlines()
    for number, line in enumerate(lines):
        if line in titles:
            section = line.split()[0].rstrip(".")
            yield f"warm-up {section} section"
            continue
        items = {"8": (r"\d\. ", "step"), "9": ("• ", "criterion"), "10": (r"\S", "mistake"), "11": ("Q: ", "question")}
        mark, kind = items.get(section, ("(?!)", ""))
        if re.match(mark, line) and (section != "10" or lines[number - 1] == ""):
            seen[kind] += 1
            yield f"warm-up {section} {kind} {seen[kind]}"
        if LOST_TABLES.get(section, "\n") in line:
            yield f"warm-up {section} table 1"


def document(folder: Path, beginning: str) -> str:
    """Read the one document in a folder that has some words near its beginning."""
    texts = [path.read_text(encoding="utf-8") for path in sorted(folder.glob("*.txt"))]
    (text,) = [text for text in texts if beginning in text[:400]]
    return text


def test_every_item_has_a_name_of_its_own_and_a_label() -> None:
    assert len(IDS) == len(set(IDS))
    for row in ROWS:
        assert set(row) == {"id", "source", "section", "kind", "label", "page", "anchor"}
        assert row["label"], row["id"]
        assert str(row["id"]).startswith(f"{row['source']} {row['section']} {row['kind']}"), row["id"]


def test_the_counts_are_those_of_the_documents() -> None:
    assert Counter((str(row["source"]), str(row["kind"])) for row in ROWS) == COUNTS


@pytest.mark.parametrize("row", ROWS, ids=[str(row["id"]) for row in ROWS])
def test_an_item_is_covered_where_it_says(row: dict[str, str | None]) -> None:
    name, anchor = str(row["page"]), row["anchor"]
    text = page_of(name).read_text(encoding="utf-8")
    assert anchor, f"{row['id']}: {name} is there now; name the place on it"
    assert has(text, anchor), f"{row['id']}: {name} has no {anchor!r}"


def test_every_page_that_covers_something_is_in_the_contents() -> None:
    contents = yaml.safe_load((BOOK / "_toc.yml").read_text(encoding="utf-8"))
    listed = {contents["root"]}
    for part in contents["parts"]:
        for chapter in part["chapters"]:
            sections = chapter.get("sections", [])
            listed |= {chapter["file"], *(section["file"] for section in sections)}
            listed |= {page["file"] for section in sections for page in section.get("sections", [])}
    assert {str(row["page"]) for row in ROWS} <= listed


def test_an_anchor_that_is_not_there_is_seen() -> None:
    text = "# A9. Title\n:::{dropdown} Derivation: a\n:mystnb: {figure: {name: fig-one, caption: x}}\n"
    assert has(text, "Derivation: a")
    assert has(text, "A9. Title")
    assert has(text, "fig-one")
    assert not has(text, "Derivation: b")
    assert not has(text, "fig-on")


def test_nothing_of_the_notes_is_missing(outside: Callable[[str], Path]) -> None:
    found = list(note_items(document(outside("sources"), "The Art of LLM Inference")))
    assert found
    assert Counter(found) == Counter(name for name in IDS if name.startswith("notes"))


def test_nothing_of_the_warm_up_is_missing(outside: Callable[[str], Path]) -> None:
    found = list(warm_up_items(document(outside("sources"), "Warmup")))
    assert found
    assert Counter(found) == Counter(name for name in IDS if name.startswith("warm-up"))
