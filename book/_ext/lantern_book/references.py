"""What the ``claim`` and ``fact`` roles share: the nodes, the uses found on a page, and the popover.

A role writes a :class:`LedgerRef` that holds plain text, so that every builder and every table of
contents can print it. Only when an HTML page is written does the text become a button that opens
a popover, with the browser's own popover API and no script.

Class names for the stylesheet: ``lt-claim`` and ``lt-fact`` (the buttons), ``lt-popover``,
``lt-popover-title`` and ``lt-popover-table``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from docutils import nodes
from sphinx.environment.collectors import EnvironmentCollector
from sphinx.util import logging
from sphinx.util.docutils import SphinxRole

if TYPE_CHECKING:
    from docutils.nodes import Node, system_message
    from sphinx.application import Sphinx
    from sphinx.environment import BuildEnvironment
    from sphinx.writers.html5 import HTML5Translator

logger = logging.getLogger(__name__)

_CLOSING = re.compile(r"[.,:;!?)\]’”%]+")
_ROLE_TEXT = re.compile(r"(?P<text>.+?)\s*<(?P<id>[^<>\s]+)>\s*", re.DOTALL)
# A figure names the numbers drawn in it: <svg data-claims="a3-ring a3-floor" data-facts="h100-peak">.
_FIGURE_LIST = re.compile(r"""data-(claim|fact)s=(?:"([^"]*)"|'([^']*)')""")


class Use(NamedTuple):
    """One place that shows a claim or a fact; a figure's list shows no text of its own."""

    kind: str
    id: str
    text: str | None
    line: int


class LedgerRef(nodes.Inline, nodes.TextElement):
    """A reference to a claim or fact: plain text everywhere but in the body of an HTML page."""


class LedgerButton(nodes.Inline, nodes.TextElement):
    """The text as a button that opens its popover. Only HTML pages have it."""


class LedgerRole(SphinxRole):
    """The role ``{claim}`text <id>``` or ``{fact}`text <id>```."""

    def run(self) -> tuple[list[Node], list[system_message]]:
        """Return the reference; text without an id is a warning, and stays plain text."""
        match = _ROLE_TEXT.fullmatch(self.text)
        if match is None:
            warn(
                f"{self.name} role {self.text!r} names no id; write {{{self.name}}}`text <id>`",
                (self.env.docname, exact_line(self.env, self.env.docname, f"`{self.text}`", self.lineno)),
            )
            return [nodes.Text(self.text)], []
        text = _spaces(match["text"])
        node = LedgerRef(self.rawtext, text, kind=self.name, ledger_id=match["id"])
        node.source, node.line = self.get_source_info()
        return [node], []


class UseCollector(EnvironmentCollector):
    """Keep ``env.lantern_uses``: for every page, the claims and facts that it shows."""

    def clear_doc(self, app: Sphinx, env: BuildEnvironment, docname: str) -> None:
        """Forget a page that is read again or gone."""
        uses_by_page(env).pop(docname, None)

    def merge_other(self, app: Sphinx, env: BuildEnvironment, docnames: set[str], other: BuildEnvironment) -> None:
        """Take over what another process read."""
        theirs = uses_by_page(other)
        uses_by_page(env).update({name: theirs[name] for name in docnames if name in theirs})

    def process_doc(self, app: Sphinx, doctree: nodes.document) -> None:
        """Collect the roles of a page, and the lists that its figures carry."""
        docname = app.env.docname
        uses = [
            Use(
                node["kind"],
                node["ledger_id"],
                node.astext(),
                exact_line(app.env, docname, f"<{node['ledger_id']}>", node.line or 1),
            )
            for node in doctree.findall(LedgerRef)
        ]
        for raw in doctree.findall(nodes.raw):
            for kind, double, single in _FIGURE_LIST.findall(raw.astext()):
                uses += [Use(kind, name, None, raw.line or 1) for name in (double or single).split()]
        uses_by_page(app.env)[docname] = uses


def uses_by_page(env: BuildEnvironment) -> dict[str, list[Use]]:
    """Return the uses that the environment holds, by page."""
    if not hasattr(env, "lantern_uses"):
        env.lantern_uses = {}  # type: ignore[attr-defined]
    return env.lantern_uses  # type: ignore[attr-defined]


def check_uses(env: BuildEnvironment, kind: str, printed: dict[str, str]) -> set[str]:
    """Warn of every use whose id is unknown or whose text differs; return the ids in use.

    Parameters
    ----------
    env : BuildEnvironment
        Sphinx's environment, all pages read.
    kind : {"claim", "fact"}
        Which of the two to check.
    printed : dict of str to str
        What each known id prints.
    """
    used: set[str] = set()
    for docname, uses in sorted(uses_by_page(env).items()):
        for use in uses:
            if use.kind != kind:
                continue
            used.add(use.id)
            if use.id not in printed:
                warn(f"unknown {kind} {use.id!r}", (docname, use.line))
            elif use.text is not None and use.text != _spaces(printed[use.id]):
                warn(
                    f"{kind} {use.id!r}: the page prints {use.text!r}, the {kind} is {printed[use.id]!r}",
                    (docname, use.line),
                )
    return used


def turn_into_buttons(
    doctree: nodes.document, kind: str, popovers: dict[str, str], suffixes: dict[str, str] | None = None
) -> None:
    """Make the references of a page buttons, and append each popover once, after the text.

    A popover is a ``div`` and may not stand inside a paragraph. A reference inside a link stays
    text, because a button inside a link is invalid.
    """
    shown: dict[str, str] = {}
    for node in list(doctree.findall(LedgerRef)):
        name = node["ledger_id"]
        if node["kind"] != kind or name not in popovers or _inside_link(node):
            continue
        text = node.astext() + (suffixes or {}).get(name, "")
        button = LedgerButton(node.rawsource, text, kind=kind, ledger_id=name)
        node.replace_self(button)
        _hold_punctuation(button)
        shown[name] = popovers[name]
    if shown:
        doctree += nodes.raw("", "\n".join(shown.values()), format="html")


def _hold_punctuation(button: LedgerButton) -> None:
    """Keep a full stop or comma on the line of the number before it: a browser may break after a button."""
    following = button.next_node(descend=False, siblings=True)
    match = _CLOSING.match(following.astext()) if isinstance(following, nodes.Text) else None
    if match is None:
        return
    rest = following.astext()[match.end() :]
    following.parent.replace(following, nodes.Text(rest))
    held = nodes.inline("", "", classes=["lt-nowrap"])
    button.replace_self(held)
    held += [button, nodes.Text(match[0])]


def popover(kind: str, name: str, title: str, label: str, rows: Iterable[tuple[str, str]]) -> str:
    """Return the HTML of a popover.

    Parameters
    ----------
    kind, name : str
        Kind and id of the entry.
    title, label : str
        Heading, and the name that a screen reader speaks [text].
    rows : iterable of (str, str)
        Row heading [text] and content [HTML]; rows without content are left out.
    """
    body = "".join(
        f'<tr><th scope="row">{escape(head)}</th><td>{content}</td></tr>' for head, content in rows if content
    )
    return (
        f'<div popover id="{popover_id(kind, name)}" class="lt-popover" role="dialog"'
        f' aria-label="{escape(label)}"><p class="lt-popover-title">{escape(title)}</p>'
        f'<table class="lt-popover-table"><tbody>{body}</tbody></table></div>'
    )


def popover_id(kind: str, name: str) -> str:
    """Return the HTML id of an entry's popover."""
    return f"lt-{kind}-{escape(name)}"


def exact_line(env: BuildEnvironment, docname: str, needle: str, first: int) -> int:
    """Return the line of the page that holds a text, from a line on; docutils knows only the paragraph's."""
    lines = Path(env.doc2path(docname)).read_text("utf8").splitlines()
    found = (n for n, line in enumerate(lines[first - 1 :], first) if needle in line)
    return next(found, first)


def warn(message: str, location: tuple[str, int] | str) -> None:
    """Log a warning with file and line, which ``-W`` makes an error."""
    logger.warning(message, location=location, type="lantern")


def register(app: Sphinx, kind: str) -> None:
    """Register a role, and with the first role the nodes and the collector."""
    app.add_role(kind, LedgerRole())
    if kind == "claim":
        plain = (_no_markup, _no_markup)
        others = {"latex": plain, "text": plain, "man": plain, "texinfo": plain}
        app.add_node(LedgerRef, html=plain, **others)
        app.add_node(LedgerButton, html=(_open_button, _close_button), **others)
        app.add_env_collector(UseCollector)


def _no_markup(translator: nodes.NodeVisitor, node: Node) -> None:
    """Print the text alone."""


def _open_button(translator: HTML5Translator, node: LedgerButton) -> None:
    target = popover_id(node["kind"], node["ledger_id"])
    translator.body.append(f'<button type="button" class="lt-{node["kind"]}" popovertarget="{target}">')


def _close_button(translator: HTML5Translator, node: LedgerButton) -> None:
    translator.body.append("</button>")


def _inside_link(node: nodes.Element) -> bool:
    parent = node.parent
    while parent is not None:
        if isinstance(parent, nodes.reference):
            return True
        parent = parent.parent
    return False


def _spaces(text: str) -> str:
    """Make every run of white space one blank: prose wraps where it likes."""
    return " ".join(text.split())
