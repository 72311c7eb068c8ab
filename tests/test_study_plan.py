"""Part G against the rest of the course: its names, its links, its plan and its figure."""

from __future__ import annotations

import importlib
import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

from lantern_lib.figures import part_g

ROOT = Path(__file__).resolve().parent.parent
BOOK = ROOT / "book"
G1 = (BOOK / "g/g1.md").read_text(encoding="utf-8")
LIST = G1.split(":::{div} lt-lookup lt-terms")[1].split("\n:::\n")[0]
# One entry: its number, its name, and its three lines.
ENTRIES = re.findall(r"^(\d+) (.+)\n: (.+)\n: (.+)\n: (.+)$", LIST, re.M)
PAGES = tuple(sorted((BOOK / "g").glob("*.md")))

# What the notes have one row for, by words that its entry must hold.
IDEAS = (
    *("prefill", "flops", "roofline", "kv cache", "gqa", "flashattention", "continuous batching", "pagedattention"),
    *("prefix caching", "chunked prefill", "disaggregation", "little's law", "quantisation", "speculative decoding"),
    *("tensor, pipeline", "cache-aware routing", "agent", "injection", "side channel", "aws", "mbu"),
    *("mixture of experts", "cost of a token", "prompt-cache api", "build or buy", "rollouts"),
)


def modules() -> set[str]:
    return {path.stem for path in (ROOT / "lantern_lib").iterdir() if path.suffix == ".py" or path.is_dir()}


def named(text: str) -> list[str]:
    """Return what a text names in code: modules of the library and what they hold."""
    return re.findall(r"`([A-Za-z]\w*(?:\.\w+)*)`", re.sub(r"\{[\w:]+\}`[^`]*`", "", text))


def resolve(name: str) -> object:
    """Follow a dotted name from the library down."""
    found: object = importlib.import_module("lantern_lib")
    parts = name.split(".")
    for index, part in enumerate(parts):
        if part in getattr(found, "__dataclass_fields__", ()):
            return part
        if not hasattr(found, part):
            importlib.import_module(".".join(["lantern_lib", *parts[: index + 1]]))
        found = getattr(found, part)
    return found


def test_the_list_has_the_ideas_of_the_notes_in_their_order() -> None:
    assert [int(number) for number, *_ in ENTRIES] == list(range(1, 27))
    assert len(IDEAS) == len(ENTRIES)
    for idea, entry in zip(IDEAS, ENTRIES, strict=True):
        assert idea in " ".join(entry).lower(), entry[1]


@pytest.mark.parametrize("idea", ENTRIES, ids=[f"{number} {name}" for number, name, *_ in ENTRIES])
def test_an_idea_has_a_page_a_name_in_the_library_a_lab_or_none_and_terms(idea: tuple[str, ...]) -> None:
    _, _, says, where, search = idea
    pages, names, lab = where.split(" · ")
    assert says.endswith(".")
    assert re.search(r"\b[A-F]\d\b", pages)
    assert search.startswith("Search: ")
    assert search.count('"') >= 2
    lab = re.sub(r"\[([^]]+)\]\([^)]+\)", r"\1", lab)  # a link's words
    assert lab == "the simulator" or re.fullmatch(r"no lab|labs? [1-8]( and [1-8])?", lab)
    for name in named(names):
        assert resolve(name) is not None


@pytest.mark.parametrize("path", PAGES, ids=[path.stem for path in PAGES])
def test_a_page_names_only_what_the_library_has(path: Path) -> None:
    for name in named(path.read_text(encoding="utf-8")):
        if name.split(".")[0] in modules():
            assert resolve(name) is not None, name
        else:
            assert name == "lantern_lib" or resolve(name), name


@pytest.mark.parametrize("path", PAGES, ids=[path.stem for path in PAGES])
def test_every_page_that_is_there_is_linked(path: Path) -> None:
    """A section is named with a link, but for the line that says what a page needs."""
    text = path.read_text(encoding="utf-8")
    for known in (
        r"(?s)```.*?```",
        r"\[[^\]]*\]\([^)]*\)",
        r"\{[\w:]+\}`[^`]*`",
        r"(?m)^# .*$",
        r"their\s+C1",
        r"(?m)^\*.*\*$",
    ):
        text = re.sub(known, "", text)
    for name in set(re.findall(r"(?<![\w/])([A-G]\d)(?![\w/])", text)):
        target = BOOK / name[0].lower() / f"{name.lower()}.md"
        assert target == path or not target.exists(), f"{path.stem} names {name} without a link"
    if re.search(r"Capacity(?! Blocks)", text):
        assert not (BOOK / "c/capacity_types.md").exists(), f"{path.stem} names the page on capacity without a link"


def test_the_plan_names_labs_that_are_there_or_not_yet() -> None:
    """The lead turns a lab's number into a link once its page exists."""
    plan = (BOOK / "g/g2.md").read_text(encoding="utf-8").split("| Week | Read |")[1].split("\n\n")[0]
    rows = re.findall(r"^\| (\d) \|.* \*\*(\[?)Lab (\d)[^|]* \|$", plan, re.M)
    assert [week for week, *_ in rows] == list("12345678")
    for week, link, lab in rows:
        assert week == lab
        assert bool(link) == (BOOK / f"labs/week{week}.md").exists(), f"lab {week}: a link when its page is there"


def test_eleven_neighbours_have_terms_and_a_reason() -> None:
    listed = (BOOK / "g/g4.md").read_text(encoding="utf-8").split(":::{div} lt-terms")[1].split("\n:::\n")[0]
    rows = re.findall(r"^(\w.+)\n: (.+)\n: Search: (.+)$", listed, re.M)
    assert len(rows) == 11
    for _, reason, terms in rows:
        assert terms.count(",") >= 2
        assert len(reason) > 100


def test_every_source_says_what_was_seen_of_it() -> None:
    text = (BOOK / "g/g5.md").read_text(encoding="utf-8")
    rows = [row for row in re.findall(r"^\| (.+) \|$", text, re.M) if not row.startswith(("---", "Source"))]
    assert len(rows) > 35
    for row in rows:
        source, good_for, seen = row.split(" | ")
        assert good_for
        assert re.match(r"read: |quoted|–", seen), source


def test_every_key_of_the_bibliography_that_part_g_cites_is_there() -> None:
    keys = set(re.findall(r"^@\w+\{([^,]+),", (BOOK / "references.bib").read_text(encoding="utf-8"), re.M))
    cited = {key for path in PAGES for key in re.findall(r"\{cite:p\}`([^`]+)`", path.read_text(encoding="utf-8"))}
    assert len(cited) > 25
    assert cited <= keys


def test_the_figure_has_the_weeks_of_the_plan_and_its_text_stays_inside() -> None:
    diagram = part_g.weeks()
    assert len(part_g.WEEKS) == 8
    for svg in ElementTree.fromstring(diagram._repr_html_()):
        width = float(svg.get("width", "0"))
        words = [text.text or "" for text in svg.iter("text")]
        assert [word[0] for word in words if re.match(r"\d  ", word)] == list("12345678")
        for text in svg.iter("text"):
            size, line = float(text.get("font-size", "0")), text.text or ""
            assert float(text.get("x", "0")) + 0.62 * size * len(line) <= width + 0.12 * 0.62 * size * len(line), line
        for rect in svg.iter("rect"):
            assert float(rect.get("x", "0")) + float(rect.get("width", "0")) <= width
    for week in part_g.WEEKS:
        assert " ".join(week.leaves) in diagram.description
