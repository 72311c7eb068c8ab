"""The glossary, and the links that its terms become on other pages."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from docutils import nodes
from docutils.utils import new_document
from lantern_book.glossary import NO_TERMS, Entry, entries, link_first_uses
from sphinx import addnodes
from sphinx_design.dropdown import dropdown_title

ROOT = Path(__file__).resolve().parent.parent
BOOK = ROOT / "book"
PAGE = (BOOK / "glossary.md").read_text(encoding="utf-8")

KNOWN = (
    Entry(("batch",), "glossary", "term-batch", "a/a3"),
    Entry(("prefill",), "glossary", "term-prefill", "a/a1"),
    Entry(("chunked prefill",), "glossary", "term-chunked-prefill", "b/b3"),
    Entry(("time to first token", "TTFT"), "glossary", "term-ttft", "a/a1"),
    Entry(("floor (of a time)",), "glossary", "term-floor", "b/b7"),
)


def page(*children: nodes.Node) -> nodes.document:
    doctree = new_document("page")
    doctree += children
    return doctree


def paragraph(*pieces: str | nodes.Node) -> nodes.paragraph:
    return nodes.paragraph("", "", *(nodes.Text(each) if isinstance(each, str) else each for each in pieces))


def link(doctree: nodes.document, docname: str = "b/b1") -> list[str]:
    return link_first_uses(doctree, KNOWN, docname, lambda entry: f"../{entry.page}.html#{entry.target}")


# ---- the transform ----------------------------------------------------------------------------


def test_the_first_use_is_linked_and_no_word_is_lost() -> None:
    doctree = page(paragraph("Two batches. A batch waits."), paragraph("Each batch again."))
    before = doctree.astext()
    assert link(doctree) == ["batches"]
    assert doctree.astext() == before
    (reference,) = doctree.findall(nodes.reference)
    assert (reference["refuri"], reference["classes"]) == ("../glossary.html#term-batch", ["lt-term"])


@pytest.mark.parametrize(
    ("text", "linked"),
    [
        ("PREFILL first", ["PREFILL"]),
        ("a Batch's end", ["Batch"]),
        ("batching, prefilled, micro-batch, batch-1, rebatch", []),
        ("A chunked prefill, then a prefill", ["chunked prefill", "prefill"]),
        ("Chunked prefills, then chunked prefill", ["Chunked prefills"]),
        ("TTFT is the time to first token", ["TTFT"]),
        ("time to\nfirst token", ["time to\nfirst token"]),
        ("A floor, or a floor (of a time)", []),
    ],
)
def test_what_counts_as_a_use(text: str, linked: list[str]) -> None:
    assert link(page(paragraph(text))) == linked


def test_a_name_is_found_across_the_texts_that_a_line_break_leaves() -> None:
    doctree = page(paragraph("the time", "\n", "to first token"))
    assert link(doctree) == ["time\nto first token"]
    assert doctree.astext() == "the time\nto first token"


def test_other_than_prose_stays_as_it_is() -> None:
    cell = nodes.thead("", nodes.row("", nodes.entry("", paragraph("batch"))))
    doctree = page(
        nodes.title("", "A batch"),
        nodes.rubric("", "A batch"),
        dropdown_title("", "", nodes.inline("", "A batch")),
        nodes.caption("", "A batch"),
        cell,
        nodes.literal_block("", "batch"),
        nodes.math_block("", "batch"),
        nodes.raw("", "<b>batch</b>", format="html"),
        nodes.comment("", "batch"),
        nodes.container("", paragraph("batch"), classes=[NO_TERMS]),
        paragraph(nodes.literal("", "batch"), nodes.math("", "batch"), nodes.strong("", "batch")),
        paragraph(nodes.reference("", "batch", refuri="#"), nodes.emphasis("", "batch")),
    )
    before = doctree.pformat()
    assert link(doctree) == []
    assert doctree.pformat() == before
    doctree += nodes.table("", nodes.tbody("", nodes.row("", nodes.entry("", paragraph("batch")))))
    assert link(doctree) == ["batch"], "the body of a table is prose"


@pytest.mark.parametrize("docname", ["a/a3", "glossary"])
def test_the_page_that_explains_a_term_does_not_link_it(docname: str) -> None:
    linked = link(page(paragraph("a batch and a prefill")), docname)
    assert linked == ([] if docname == "glossary" else ["prefill"])


def test_a_longer_name_that_is_explained_here_hides_the_shorter_one_in_it() -> None:
    assert link(page(paragraph("chunked prefill")), "b/b3") == []


def test_entries_are_read_with_their_names_and_their_page() -> None:
    terms = [nodes.term("", name, ids=[f"term-{name}"]) for name in ("prefill", "reading")]
    target = addnodes.pending_xref("", nodes.Text("A1"), reftarget="a/a1")
    item = nodes.definition_list_item("", *terms, nodes.definition("", paragraph("The pass (", target, ").")))
    doctree = page(addnodes.glossary("", nodes.definition_list("", item)))
    assert list(entries(doctree, "words")) == [Entry(("prefill", "reading"), "words", "term-prefill", "a/a1")]


# ---- the page ---------------------------------------------------------------------------------


def written_entries() -> list[tuple[list[str], str]]:
    """Names and definition of each entry, as they stand in the source."""
    blocks = "\n\n".join(re.findall(r"^```\{glossary\}\n(.*?)^```$", PAGE, re.M | re.S)).split("\n\n")
    parted = [block.strip("\n").split("\n") for block in blocks if block.strip()]
    return [
        ([line for line in lines if line[0] != " "], " ".join(line.strip() for line in lines if line[0] == " "))
        for lines in parted
    ]


def prose(path: Path) -> str:
    """A page without its code and front matter, bold marks and line breaks gone."""
    text = re.sub(r"^```\{code-cell\}.*?^```$|\A---.*?^---$", "", path.read_text(encoding="utf-8"), flags=re.M | re.S)
    return " ".join(text.replace("**", "").split())


def used(name: str, text: str) -> bool:
    word = re.sub(r" \(.*\)$", "", name)
    return re.search(rf"(?<![\w-]){re.escape(word)}(e?s)?(?![\w-])", text, re.IGNORECASE) is not None


def test_every_entry_is_defined_and_names_its_page() -> None:
    assert len(written_entries()) > 80
    for names, definition in written_entries():
        target = re.search(r"\((?:\[[^\]]+\]\(([^)]+\.md)\))", definition)
        assert target, names
        assert (BOOK / target[1]).exists(), names


def test_entries_are_sorted_and_each_name_stands_once() -> None:
    firsts = [names[0].lower() for names, _ in written_entries()]
    assert firsts == sorted(firsts)
    every = [name.lower() for names, _ in written_entries() for name in names]
    assert len(every) == len(set(every))
    heads = re.findall(r"^## (\w) to (\w)$", PAGE, re.M)
    assert [head[0] for head in heads] == sorted(head[0] for head in heads)


def test_the_page_that_an_entry_names_uses_the_term() -> None:
    for names, definition in written_entries():
        target = re.search(r"\]\(([^)]+\.md)\)", definition)
        assert target
        text = prose(BOOK / target[1])
        assert any(used(name, text) for name in names), f"{target[1]} does not use {names}"
