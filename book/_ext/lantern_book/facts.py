"""Facts in the book: numbers from outside (papers, price lists, service limits), each with its source.

``facts.toml`` in the book's source folder holds one table for each fact::

    [gpu-hour]
    text = "$98.32"                  # what a page prints
    source = "Provider price list"   # a key of the bibliography, or a title
    url = "https://example.org/prices"
    date = "2025-11-03"              # when it was true
    status = "read"                  # read at the source, quoted by another, or assumed
    kind = "price"                   # price, limit, result or spec
    max_age_days = 180               # optional; prices and limits show their date when older

Build warnings: unknown id, other text than the fact's, a fact that no page shows, a malformed entry.
"""

from __future__ import annotations

import datetime
import hashlib
import json
import os
import tomllib
from dataclasses import asdict, dataclass
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lantern_book import references
from lantern_book.references import warn

if TYPE_CHECKING:
    from docutils import nodes
    from sphinx.application import Sphinx
    from sphinx.environment import BuildEnvironment

STATUS = {
    "read": "read at the source",
    "quoted": "as quoted by another author; not read at the source",
    "assumed": "assumed for this course",
}
_KINDS = ("price", "limit", "result", "spec")
_AGEING_KINDS = ("price", "limit")
_DEFAULT_MAX_AGE_DAYS = 365


@dataclass(frozen=True)
class Fact:
    """One outside number. ``max_age_days`` is an age [days]; ``line`` is its line in facts.toml."""

    id: str
    text: str
    source: str
    date: datetime.date
    status: str
    kind: str
    url: str = ""
    max_age_days: int = _DEFAULT_MAX_AGE_DAYS
    line: int = 1

    def __post_init__(self) -> None:
        """Refuse a malformed entry, naming the field, the value and what is allowed."""
        for field in ("text", "source"):
            value = getattr(self, field)
            if not isinstance(value, str) or not value.strip():
                raise ValueError(f"{field} must be a text that is not empty, got {value!r}")
        for field, allowed in (("status", tuple(STATUS)), ("kind", _KINDS)):
            if getattr(self, field) not in allowed:
                raise ValueError(f"{field} must be one of {', '.join(allowed)}, got {getattr(self, field)!r}")
        if not isinstance(self.url, str) or (self.url and not self.url.startswith(("https://", "http://"))):
            raise ValueError(f"url must begin with https:// or http://, got {self.url!r}")
        days = self.max_age_days
        if isinstance(days, bool) or not isinstance(days, int) or days <= 0:
            raise ValueError(f"max_age_days must be a positive whole number of days, got {days!r}")

    def is_dated(self, today: datetime.date) -> bool:
        """Say whether a price or limit is so old that the page must show its date."""
        return self.kind in _AGEING_KINDS and (today - self.date).days > self.max_age_days


def load_facts(path: Path) -> tuple[dict[str, Fact], list[tuple[int, str]]]:
    """Read facts.toml.

    Parameters
    ----------
    path : Path
        The file; a book without one has no facts.

    Returns
    -------
    tuple
        The good facts by id, and the problems as (line, message).
    """
    if not path.exists():
        return {}, []
    text = path.read_text("utf8")
    try:
        entries = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        return {}, [(1, f"not valid TOML: {error}")]
    lines = {line.strip().strip("[]\"'"): n for n, line in enumerate(text.splitlines(), 1) if line[:1] == "["}
    facts: dict[str, Fact] = {}
    problems: list[tuple[int, str]] = []
    for name, entry in entries.items():
        line = lines.get(name, 1)
        try:
            facts[name] = _fact(name, entry, line)
        except (TypeError, ValueError) as error:
            problems.append((line, f"fact {name!r}: {error}"))
    return facts, problems


def build_date() -> datetime.date:
    """Return the date that ages are measured against: SOURCE_DATE (YYYY-MM-DD), or else today."""
    given = os.environ.get("SOURCE_DATE")
    return datetime.date.fromisoformat(given) if given else datetime.date.today()


def check(app: Sphinx, env: BuildEnvironment) -> list[str]:
    """Compare all pages with all facts; return the pages to write again because a fact changed."""
    path = facts_path(app)
    facts, problems = load_facts(path)
    for line, message in problems:
        warn(message, f"{path}:{line}")
    used = references.check_uses(env, "fact", {name: fact.text for name, fact in facts.items()})
    for name in sorted(facts.keys() - used):
        warn(f"no page shows fact {name!r} ({facts[name].text})", f"{path}:{facts[name].line}")
    today = build_date()
    now = {}
    for docname, uses in references.uses_by_page(env).items():
        shown = [facts.get(use.id) for use in uses if use.kind == "fact"]
        state = repr([(fact, fact and fact.is_dated(today)) for fact in shown])
        now[docname] = hashlib.sha256(state.encode()).hexdigest()
    before = getattr(env, "lantern_fact_digests", {})
    env.lantern_fact_digests = now  # type: ignore[attr-defined]
    return [docname for docname, digest in now.items() if before.get(docname) != digest]


def resolve(app: Sphinx, doctree: nodes.document, docname: str) -> None:
    """Let the facts of a page open their sources, and show the date of old prices and limits."""
    uses = {use.id for use in references.uses_by_page(app.env).get(docname, []) if use.kind == "fact"}
    facts = {name: fact for name, fact in load_facts(facts_path(app))[0].items() if name in uses}
    today = build_date()
    dates = {name: f" (as of {day(fact.date)})" for name, fact in facts.items() if fact.is_dated(today)}
    if app.builder.format == "html":
        popovers = {name: _popover(app, fact) for name, fact in facts.items()}
        references.turn_into_buttons(doctree, "fact", popovers, dates)
        return
    for node in doctree.findall(references.LedgerRef):
        if node["kind"] == "fact" and node["ledger_id"] in dates:
            node += references.nodes.Text(dates[node["ledger_id"]])


def write_json(app: Sphinx, exception: Exception | None) -> None:
    """Write ``facts.json`` at the root of the HTML output, sorted by id."""
    if exception is not None or app.builder.format != "html":
        return
    facts = {name: asdict(fact) for name, fact in load_facts(facts_path(app))[0].items()}
    for entry in facts.values():
        del entry["line"]
        entry["date"] = entry["date"].isoformat()
    text = json.dumps(facts, indent=1, sort_keys=True, ensure_ascii=False)
    Path(app.outdir, "facts.json").write_text(text + "\n", "utf8")


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the role and the checks."""
    references.register(app, "fact")
    app.connect("env-updated", check)
    app.connect("doctree-resolved", resolve)
    app.connect("build-finished", write_json)
    return {"parallel_read_safe": True, "parallel_write_safe": True, "env_version": 1}


def facts_path(app: Sphinx) -> Path:
    """Return where the book keeps its facts."""
    return Path(app.srcdir) / "facts.toml"


def _fact(name: str, entry: Any, line: int) -> Fact:
    if not isinstance(entry, dict):
        raise ValueError(f"must be a table, got {entry!r}")
    fields = dict(entry)
    date = fields.pop("date", None)
    if isinstance(date, str):
        date = datetime.date.fromisoformat(date)
    if not isinstance(date, datetime.date):
        raise ValueError(f"date must be YYYY-MM-DD, got {date!r}")
    known = Fact.__dataclass_fields__.keys() - {"id", "date", "line"}
    for field in fields.keys() - known:
        raise ValueError(f"unknown field {field!r}; allowed: {', '.join(sorted(known))}, date")
    for field in ("text", "source", "status", "kind"):
        if field not in fields:
            raise ValueError(f"{field} is missing")
    return Fact(id=name, date=date, line=line, **fields)


def day(date: datetime.date) -> str:
    """Print a date as a reader reads it."""
    return f"{date.day} {date:%B %Y}"


def _popover(app: Sphinx, fact: Fact) -> str:
    source = escape(source_title(app, fact.source))
    if fact.url:
        source = f'<a href="{escape(fact.url)}">{source}</a>'
    rows = [
        ("Source", source),
        ("Date", day(fact.date)),
        ("Status", STATUS[fact.status]),
        ("Kind", fact.kind),
        ("Fact", f"<code>{escape(fact.id)}</code>"),
    ]
    return references.popover("fact", fact.id, fact.text, f"Where {fact.text} comes from", rows)


def source_title(app: Sphinx, source: str) -> str:
    """Return a bibliography entry as authors, title and year; any other source as it stands.

    After the entry's key and a comma may stand where in it the fact is, which is kept.
    """
    key, _, place = source.partition(", ")
    entries = app.env.get_domain("cite").bibdata.data.entries if "cite" in app.env.domains else {}  # type: ignore[attr-defined]
    if key not in entries:
        return source
    entry = entries[key]
    names = [" ".join(person.last_names).strip("{}") for person in entry.persons.get("author", [])]
    authors = names[0] + " et al." if len(names) > 2 else " and ".join(names)
    title = entry.fields.get("title", "").replace("{", "").replace("}", "")
    named = ", ".join(part for part in (authors, title, entry.fields.get("year", "")) if part)
    return f"{named}; {place}" if place else named
