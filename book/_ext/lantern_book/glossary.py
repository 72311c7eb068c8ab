"""The glossary's terms in the text of other pages: the first use of each is a link to its entry.

The entries stand in Sphinx's own ``glossary`` directive, one definition for all names of a thing. The first
link of a definition names the page that explains the term; there the term stays as it is. A name with a
qualifier in parentheses, ``floor (of a commitment)``, is not looked for: the word alone has other meanings.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, NamedTuple

from docutils import nodes
from sphinx import addnodes
from sphinx.environment.collectors import EnvironmentCollector
from sphinx_design.dropdown import dropdown_title

from lantern_book.references import LedgerButton, LedgerRef

if TYPE_CHECKING:
    from sphinx.application import Sphinx
    from sphinx.environment import BuildEnvironment

# Where a term is a heading, a name in code, part of something that opens, or already stressed.
NO_PROSE = (
    nodes.title, nodes.subtitle, nodes.rubric, nodes.caption, nodes.thead, dropdown_title,
    nodes.literal, nodes.math, nodes.raw, nodes.FixedTextElement, nodes.Invisible,
    nodes.reference, addnodes.pending_xref, LedgerRef, LedgerButton,
    nodes.strong, nodes.emphasis, nodes.citation, nodes.footnote,
)  # fmt: skip
# A class for what quotes others' words: nothing in it is linked.
NO_TERMS = "lt-no-terms"


class Entry(NamedTuple):
    """An entry: all its names, the page and the id it has there, and the page that explains it."""

    names: tuple[str, ...]
    page: str
    target: str
    explained_on: str


class EntryCollector(EnvironmentCollector):
    """Keep ``env.lantern_glossary``: for every page, the entries that it holds."""

    def clear_doc(self, app: Sphinx, env: BuildEnvironment, docname: str) -> None:
        """Forget a page that is read again or gone."""
        entries_by_page(env).pop(docname, None)

    def merge_other(self, app: Sphinx, env: BuildEnvironment, docnames: set[str], other: BuildEnvironment) -> None:
        """Take over what another process read."""
        theirs = entries_by_page(other)
        entries_by_page(env).update({name: theirs[name] for name in docnames if name in theirs})

    def process_doc(self, app: Sphinx, doctree: nodes.document) -> None:
        """Collect the entries of a page."""
        if found := list(entries(doctree, app.env.docname)):
            entries_by_page(app.env)[app.env.docname] = found


def entries_by_page(env: BuildEnvironment) -> dict[str, list[Entry]]:
    """Return the entries that the environment holds, by page."""
    if not hasattr(env, "lantern_glossary"):
        env.lantern_glossary = {}  # type: ignore[attr-defined]
    return env.lantern_glossary  # type: ignore[attr-defined]


def entries(doctree: nodes.document, docname: str) -> Iterator[Entry]:
    """Yield the glossary entries of a page that has just been read."""
    for glossary in doctree.findall(addnodes.glossary):
        for item in glossary.findall(nodes.definition_list_item):
            terms = [child for child in item.children if isinstance(child, nodes.term)]
            links = (link["reftarget"] for link in item.findall(addnodes.pending_xref))
            yield Entry(tuple(term.astext() for term in terms), docname, terms[0]["ids"][0], next(links, ""))


def link_first_uses(
    doctree: nodes.Element, known: Iterable[Entry], docname: str, address: Callable[[Entry], str]
) -> list[str]:
    """Make the first use of each term on a page a link to its entry.

    Parameters
    ----------
    doctree : Element
        The page, changed in place.
    known : iterable of Entry
        The entries; those that this page holds or explains are recognised and stay as they are.
    docname : str
        The page's name.
    address : callable
        Gives the link from this page to an entry.

    Returns
    -------
    list of str
        The words that became links, in the order of the page.

    Notes
    -----
    A match is of whole words in any case, also in the plural, and the longest name wins. A name that was
    linked already is passed over as a whole: *prefill* is not looked for inside a second *chunked prefill*.
    """
    wanted = {name.lower(): entry for entry in known for name in entry.names if not name.endswith(")")}
    if not wanted:
        return []
    words = "|".join(_pattern(name) for name in sorted(wanted, key=len, reverse=True))
    pattern = re.compile(rf"(?<![\w-])(?P<name>{words})(?:e?s)?(?![\w-])", re.IGNORECASE)
    linked: list[str] = []
    done = {entry.target for entry in wanted.values() if docname in (entry.page, entry.explained_on)}
    for text in list(_prose(doctree)):
        pieces: list[nodes.Node] = []
        end = 0
        for match in pattern.finditer(text):
            entry = wanted[" ".join(match["name"].lower().split())]
            if entry.target in done:
                continue
            done.add(entry.target)
            linked.append(match[0])
            link = nodes.reference("", match[0], internal=True, refuri=address(entry), classes=["lt-term"])
            pieces += [nodes.Text(text[end : match.start()]), link]
            end = match.end()
        if pieces:
            text.parent.replace(text, [*pieces, nodes.Text(text[end:])])
    return linked


def _pattern(name: str) -> str:
    """Return the expression for a name; a page may break the line inside it."""
    return r"\s+".join(map(re.escape, name.split()))


def _prose(node: nodes.Element) -> Iterator[nodes.Text]:
    """Yield the texts of a page in its order, each as long as it goes: MyST begins a new one with each line."""
    for index in reversed(range(1, len(node.children))):
        before, after = node.children[index - 1 : index + 1]
        if isinstance(before, nodes.Text) and isinstance(after, nodes.Text):
            node[index - 1 : index + 1] = [nodes.Text(before + after)]
    for child in list(node.children):
        if isinstance(child, nodes.Text):
            yield child
        elif isinstance(child, nodes.Element) and not isinstance(child, NO_PROSE) and NO_TERMS not in child["classes"]:
            yield from _prose(child)


def check(app: Sphinx, env: BuildEnvironment) -> list[str]:
    """Return every page when an entry has changed, for each page carries links to entries."""
    now = sorted(entry for found in entries_by_page(env).values() for entry in found)
    before = getattr(env, "lantern_glossary_linked", [])
    env.lantern_glossary_linked = now  # type: ignore[attr-defined]
    return [] if now == before else sorted(env.found_docs)


def resolve(app: Sphinx, doctree: nodes.document, docname: str) -> None:
    """Link the terms of a page, in HTML."""
    if app.builder.format != "html":
        return
    known = [entry for found in entries_by_page(app.env).values() for entry in found]

    def address(entry: Entry) -> str:
        return f"{app.builder.get_relative_uri(docname, entry.page)}#{entry.target}"

    link_first_uses(doctree, known, docname, address)


def setup(app: Sphinx) -> None:
    """Register the collector, the check and the links."""
    app.add_env_collector(EntryCollector)
    app.connect("env-updated", check)
    app.connect("doctree-resolved", resolve)
