"""Claims in the book: what cells computed, what pages print, and the derivation a reader can open.

``lantern_lib.claims.claim`` publishes a record from a cell. Here the records of all pages are
collected, every ``claim`` role is compared with its record, and ``claims.json`` is written next to
the pages. Build warnings: unknown id, other text than the claim's, an id on two pages, a claim that
no page shows.
"""

from __future__ import annotations

import hashlib
import json
import re
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from myst_nb.ext.glue.crossref import read_glue_cache
from sphinx.environment.collectors import EnvironmentCollector

from lantern_book import references
from lantern_book.references import warn

if TYPE_CHECKING:
    from docutils import nodes
    from sphinx.application import Sphinx
    from sphinx.environment import BuildEnvironment

_GLUE_PREFIX = "claim:"
# A notebook may hold an object only under a type that ends in +json, with glue's prefix before it too.
RECORD_MIME = "application/vnd.lantern.claim+json"


class PageClaim(NamedTuple):
    """A claim, the page that computes it, and the line of its ``claim()`` call."""

    record: dict[str, Any]
    docname: str
    line: int


class ClaimCollector(EnvironmentCollector):
    """Keep ``env.lantern_claims``: for every page, the claims that its cells published."""

    def clear_doc(self, app: Sphinx, env: BuildEnvironment, docname: str) -> None:
        """Forget a page that is read again or gone."""
        claims_by_page(env).pop(docname, None)

    def merge_other(self, app: Sphinx, env: BuildEnvironment, docnames: set[str], other: BuildEnvironment) -> None:
        """Take over what another process read."""
        theirs = claims_by_page(other)
        claims_by_page(env).update({name: theirs[name] for name in docnames if name in theirs})

    def process_doc(self, app: Sphinx, doctree: nodes.document) -> None:
        """Collect the claims among the outputs of a page."""
        env = app.env
        # myst-nb keeps the keys of this reading; its file alone might be left from an earlier one.
        keys = getattr(env, "nb_metadata", {}).get(env.docname, {}).get("glue", [])
        names = [key for key in keys if key.startswith(_GLUE_PREFIX)]
        if not names:
            return
        glued = read_glue_cache(env.mystnb_config.output_folder, env.docname)
        claims_by_page(env)[env.docname] = [
            PageClaim(record, env.docname, _call_line(env, record["id"]))
            for record in (glued[name]["data"][RECORD_MIME] for name in names)
        ]


def claims_by_page(env: BuildEnvironment) -> dict[str, list[PageClaim]]:
    """Return the claims that the environment holds, by page."""
    if not hasattr(env, "lantern_claims"):
        env.lantern_claims = {}  # type: ignore[attr-defined]
    return env.lantern_claims  # type: ignore[attr-defined]


def all_claims(env: BuildEnvironment) -> dict[str, PageClaim]:
    """Return the claims of all pages by id; of two with one id, the first page's."""
    found: dict[str, PageClaim] = {}
    for _, claims in sorted(claims_by_page(env).items()):
        for item in claims:
            found.setdefault(item.record["id"], item)
    return found


def check(app: Sphinx, env: BuildEnvironment) -> list[str]:
    """Compare all pages with all claims; return the pages to write again because a claim changed."""
    known = all_claims(env)
    for claims in claims_by_page(env).values():
        for item in claims:
            first = known[item.record["id"]]
            if first.docname != item.docname:
                warn(
                    f"claim {item.record['id']!r} is also made on page {first.docname!r} (line {first.line})",
                    (item.docname, item.line),
                )
    printed = {name: item.record["printed"] for name, item in known.items()}
    used = references.check_uses(env, "claim", printed)
    for name in sorted(known.keys() - used):
        item = known[name]
        warn(
            f"no page shows claim {name!r} ({item.record['printed']}); use it in a role, or delete it",
            (item.docname, item.line),
        )
    return _changed_pages(env, known)


def resolve(app: Sphinx, doctree: nodes.document, docname: str) -> None:
    """Let the claims of a page open their derivations, in HTML."""
    if app.builder.format != "html":
        return
    uses = references.uses_by_page(app.env).get(docname, [])
    known = all_claims(app.env)
    wanted = {use.id for use in uses if use.kind == "claim"} & known.keys()
    popovers = {name: _popover(app, docname, known[name]) for name in wanted}
    references.turn_into_buttons(doctree, "claim", popovers)


def write_json(app: Sphinx, exception: Exception | None) -> None:
    """Write ``claims.json`` at the root of the HTML output, sorted by id."""
    if exception is not None or app.builder.format != "html":
        return
    pages: dict[str, set[str]] = {}
    for docname, uses in references.uses_by_page(app.env).items():
        for use in uses:
            if use.kind == "claim":
                pages.setdefault(use.id, set()).add(docname)
    ledger = {
        name: {**item.record, "page": item.docname, "shown_on": sorted(pages.get(name, ()))}
        for name, item in all_claims(app.env).items()
    }
    text = json.dumps(ledger, indent=1, sort_keys=True, ensure_ascii=False)
    Path(app.outdir, "claims.json").write_text(text + "\n", "utf8")


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the role, the collector and the checks."""
    references.register(app, "claim")
    app.add_env_collector(ClaimCollector)
    app.connect("env-updated", check)
    app.connect("doctree-resolved", resolve)
    app.connect("build-finished", write_json)
    return {"parallel_read_safe": True, "parallel_write_safe": True, "env_version": 1}


def _changed_pages(env: BuildEnvironment, known: dict[str, PageClaim]) -> list[str]:
    """Return the pages that show a claim which changed since the last build, wherever it was computed."""
    now = {
        docname: hashlib.sha256(repr([known.get(use.id) for use in uses if use.kind == "claim"]).encode()).hexdigest()
        for docname, uses in references.uses_by_page(env).items()
    }
    before = getattr(env, "lantern_claim_digests", {})
    env.lantern_claim_digests = now  # type: ignore[attr-defined]
    return [docname for docname, digest in now.items() if before.get(docname) != digest]


def _popover(app: Sphinx, docname: str, item: PageClaim) -> str:
    record = item.record
    inputs = "<br>".join(f"<code>{escape(name)}</code>: {escape(text)}" for name, text in record["inputs"])
    where = "this page"
    if item.docname != docname:
        link = app.builder.get_relative_uri(docname, item.docname)
        where = f'<a href="{escape(link)}">{escape(app.env.titles[item.docname].astext())}</a>'
    value = record["value"]
    digits = f"{int(value):,}" if value.is_integer() else repr(value)
    rows = [
        ("Expression", f"<code>{escape(record['expression'])}</code>" if record["expression"] else ""),
        ("Value", escape(f"{digits} {record['unit']}".rstrip())),
        ("Inputs", inputs),
        ("Note", escape(record["note"] or "")),
        ("Computed on", where),
        ("Claim", f"<code>{escape(record['id'])}</code>"),
    ]
    label = f"How {record['printed']} is computed"
    return references.popover("claim", record["id"], record["printed"], label, rows)


def _call_line(env: BuildEnvironment, name: str) -> int:
    """Return the line that writes a claim's id; ids made in a loop are found by their first ``claim(``."""
    lines = Path(env.doc2path(env.docname)).read_text("utf8").splitlines()
    quoted = re.compile(rf"""["']{re.escape(name)}["']""")
    for pattern in (quoted, re.compile(r"\bclaim\(")):
        for number, line in enumerate(lines, 1):
            if pattern.search(line):
                return number
    return 1
