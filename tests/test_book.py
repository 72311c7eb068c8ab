"""The built book: complete, its own host only, no hidden test or solution in it, ledgers that agree.

The book is taken as it lies; ``make test`` builds it clean first.
"""

from __future__ import annotations

import json
import os
import re
import tomllib
from pathlib import Path

import pytest
import yaml

from lantern_grading import leaks, regions

pytestmark = [pytest.mark.book, pytest.mark.usefixtures("site")]

ROOT = Path(__file__).resolve().parent.parent
HTML = Path(os.environ.get("LANTERN_HTML", ROOT / "_build" / "html"))


def toc_pages() -> list[str]:
    toc = yaml.safe_load((ROOT / "book" / "_toc.yml").read_text(encoding="utf-8"))
    names = [toc["root"]]
    for part in toc["parts"]:
        for chapter in part["chapters"]:
            names += [chapter["file"], *(section["file"] for section in chapter.get("sections", []))]
    return names


def html_files() -> list[Path]:
    return sorted(HTML.rglob("*.html"))


def test_every_page_of_the_contents_is_built_and_new() -> None:
    for name in toc_pages():
        page = HTML / f"{name}.html"
        assert page.exists(), name
        assert page.stat().st_mtime >= (ROOT / "book" / f"{name}.md").stat().st_mtime, (
            f"{name} is older than its source"
        )


def test_no_hidden_test_and_no_solution_is_in_the_site() -> None:
    hidden, solutions = leaks.secrets(regions.HIDDEN), leaks.secrets(regions.SOLUTION)
    assert len(hidden) > 100
    assert len(solutions) > 20
    assert leaks.find(HTML, hidden) == []
    # Formulas of a solution may stand in a page's own cells; a solution's marker and its functions may not.
    functions = {line for line in solutions if line.startswith(("def ", "return {**"))}
    assert leaks.find(HTML, functions | {"BEGIN SOLUTION", "BEGIN HIDDEN TESTS", "NotImplementedError"}) == []


def test_no_page_source_of_a_lab_is_published() -> None:
    """What stands under labs/ are the book's own pages about labs, one for each file there."""
    published = {path.relative_to(HTML).as_posix() for path in HTML.rglob("*")}
    assert not {name for name in published if "solutions" in name or name.endswith(".ipynb")}
    pages = {path.stem for path in (ROOT / "book" / "labs").glob("*.md")}
    assert {Path(name).name.split(".")[0] for name in published if "week" in name} <= pages


def test_no_page_loads_anything_from_another_host() -> None:
    loads = re.compile(r"<(?:script|img|iframe|source|video|audio|embed)\b[^>]*\bsrc=[\"'](?:https?:)?//", re.I)
    links = re.compile(r"<link\b[^>]*\bhref=[\"'](?:https?:)?//[^>]*>", re.I)
    for page in html_files():
        text = page.read_text(encoding="utf-8")
        assert not loads.findall(text), page.name
        assert not [tag for tag in links.findall(text) if "canonical" not in tag], page.name
    for sheet in HTML.rglob("*.css"):
        found = re.findall(r"(?:@import|url\()\s*[\"']?(?:https?:)?//[^)\"']+", sheet.read_text(encoding="utf-8"))
        assert not found, sheet.name


def test_every_link_inside_the_site_leads_somewhere() -> None:
    for page in html_files():
        for target in re.findall(r"<a\b[^>]*\bhref=\"([^\"#?:]+)[\"#?]", page.read_text(encoding="utf-8")):
            assert (page.parent / target).exists(), f"{page.relative_to(HTML)} links to {target}"


def test_the_ledgers_agree_with_the_pages() -> None:
    claims = json.loads((HTML / "claims.json").read_text(encoding="utf-8"))
    entries = claims.values() if isinstance(claims, dict) else claims
    text = "".join(page.read_text(encoding="utf-8") for page in html_files())
    printed = {entry["id"]: entry["printed"] for entry in entries}
    assert len(printed) > 200
    buttons = re.findall(r'popovertarget="lt-claim-([\w-]+)">([^<]*)</button>', text)
    assert {name for name, _ in buttons} == set(printed)
    for name, shown in buttons:
        assert shown.replace("&#x27;", "'") == printed[name], name
    facts = json.loads((HTML / "facts.json").read_text(encoding="utf-8"))
    owned = tomllib.loads((ROOT / "book" / "facts.toml").read_text(encoding="utf-8"))
    assert {entry["id"] for entry in (facts.values() if isinstance(facts, dict) else facts)} == set(owned)


def test_every_fact_is_listed_with_its_source_spelled_out() -> None:
    owned = tomllib.loads((ROOT / "book" / "facts.toml").read_text(encoding="utf-8"))
    keys = re.findall(r"^@\w+\{([^,]+),", (ROOT / "book" / "references.bib").read_text(encoding="utf-8"), re.M)
    table = (HTML / "sources.html").read_text(encoding="utf-8").split("<tbody>")[1].split("</tbody>")[0]
    assert table.count("<tr") == len(owned)
    shown = table + "".join(
        popover
        for page in html_files()
        for popover in re.findall(r'id="lt-fact-.*?</div>', page.read_text(encoding="utf-8"), re.S)
    )
    assert not [key for key in keys if re.search(rf">{key}\b", shown)]


def test_page_sources_have_one_language_of_numbers() -> None:
    """Each page that claims anything ends with its check box."""
    for name in toc_pages():
        source = (ROOT / "book" / f"{name}.md").read_text(encoding="utf-8")
        if re.search(r'^\s*claim\(f?"', source, re.M):
            assert source.rstrip().endswith("```"), name
            assert "check_box(" in source[-80:], name
