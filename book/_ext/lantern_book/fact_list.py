"""The directive ``fact-list``: every fact of the book as a table, with its source, date and status."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from docutils import nodes
from sphinx.util.docutils import SphinxDirective

from lantern_book.facts import day, facts_path, load_facts, source_title
from lantern_book.glossary import NO_TERMS

if TYPE_CHECKING:
    from sphinx.application import Sphinx

_HEADINGS = ("Fact", "Source", "Date", "Status")


class FactList(SphinxDirective):
    """Print all facts in the order of ``facts.toml``; the page is read again when the file changes."""

    def run(self) -> list[nodes.Node]:
        """Return the table."""
        path = facts_path(self.env.app)
        self.env.note_dependency(str(path))
        facts = load_facts(path)[0].values()
        rows = [(f.text, source_title(self.env.app, f.source), day(f.date), f.status) for f in facts]
        group = nodes.tgroup("", *(nodes.colspec(colwidth=width) for width in (15, 55, 18, 12)), cols=len(_HEADINGS))
        group += nodes.thead("", _row(_HEADINGS))
        group += nodes.tbody("", *(_row(row) for row in rows))
        return [nodes.table("", group, classes=[NO_TERMS])]


def _row(cells: tuple[str, ...]) -> nodes.row:
    return nodes.row("", *(nodes.entry("", nodes.paragraph("", cell)) for cell in cells))


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the directive."""
    app.add_directive("fact-list", FactList)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
