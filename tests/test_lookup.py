"""The list of ideas on page G1, filtered in a real browser; what it needs is told in ``test_browser.py``."""

from __future__ import annotations

import pytest
from lantern_book.look import Reader, Visit

pytestmark = pytest.mark.browser


def shown(visit: Visit) -> list[str]:
    """Return the names of the entries that a reader sees."""
    return [term.inner_text() for term in visit.page.locator(".lt-lookup dt").all() if term.is_visible()]


def test_typing_leaves_the_entries_that_hold_every_word(reader: Reader) -> None:
    with reader.visit("g/g1") as visit:
        field = visit.page.get_by_role("searchbox", name="Show entries with")
        assert len(shown(visit)) == 26
        field.fill("speculative")
        assert shown(visit) == ["14 Speculative decoding"]
        assert visit.page.locator(".lt-lookup output").inner_text().strip() == "1 of 26"
        field.fill("SPLITWISE pool")
        assert shown(visit) == ["11 Disaggregation"]
        field.fill("kv_cache.")
        assert [name.split()[0] for name in shown(visit)] == ["4", "5"]
        hidden = visit.page.locator(".lt-lookup dd").first
        assert not hidden.is_visible(), "what explains a hidden entry is hidden with it"
        field.fill("no such idea")
        assert shown(visit) == []
        field.fill("")
        assert len(shown(visit)) == 26
        assert visit.errors == []


def test_the_list_is_whole_without_script(reader: Reader) -> None:
    with reader.visit("g/g1", java_script_enabled=False) as visit:
        assert len(shown(visit)) == 26
        assert visit.page.locator(".lt-lookup input").count() == 0


def test_only_the_page_with_a_list_loads_the_script(reader: Reader) -> None:
    for name, loads in (("g/g1", True), ("g/g4", False)):
        with reader.visit(name) as visit:
            assert any("lookup.js" in path for path in visit.weights()) is loads, name
