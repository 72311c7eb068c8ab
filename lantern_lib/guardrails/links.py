"""The addresses that a rendered answer would load or offer: an image is a request before anybody clicks.

This finds the usual ways of Markdown and HTML. It is a second line: the first is to render nothing but text, and
the last is the network, which refuses what slips through.
"""

from __future__ import annotations

import re
from html import unescape
from html.parser import HTMLParser

from lantern_lib.guardrails.egress import AllowList, Decision

_ADDRESS = r"(<[^<>\n]*>|[^\s()<>]*(?:\([^\s()<>]*\)[^\s()<>]*)*)"
_MARKDOWN = (
    re.compile(r"\]\(\s*" + _ADDRESS),
    re.compile(r"^ {0,3}\[[^\]\n]+\]:\s*" + _ADDRESS, re.M),
    re.compile(r"<([a-zA-Z][a-zA-Z0-9+.-]{1,31}:[^\s<>]*)>"),
    re.compile(r"(?<![\w\"'=(<])((?:https?|ftp)://[^\s<>\"']+)", re.I),
)
_STYLE = re.compile(r"(?:url\(|@import)\s*[\"']?([^\"')\s;]+)", re.I)
_ATTRIBUTES = {
    "action", "background", "cite", "data", "formaction", "href", "longdesc", "manifest", "ping", "poster", "src",
    "srcset", "imagesrcset", "xlink:href",
}  # fmt: skip


class _Html(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.found: list[str] = []
        self._in_style = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._in_style = tag == "style"
        for name, value in attrs:
            text = value or ""
            if name in ("srcset", "imagesrcset"):
                self.found += [part.split()[0] for part in text.split(",") if part.strip()]
            elif name in _ATTRIBUTES:
                self.found += text.split() if name == "ping" else [text.strip()]
            elif name == "srcdoc":
                self.found += links(text)
            elif name == "style":
                self.found += _STYLE.findall(text)
            elif name == "content" and tag == "meta" and "url=" in text.lower():
                self.found.append(re.split("url=", text, maxsplit=1, flags=re.I)[1].strip(" '\""))

    def handle_data(self, data: str) -> None:
        if self._in_style:
            self.found += _STYLE.findall(data)
            self._in_style = False


def links(text: str) -> list[str]:
    """Return every address in Markdown or HTML that rendering would load or offer.

    Parameters
    ----------
    text : str
        What the model wrote [text].

    Returns
    -------
    list of str
        Addresses as they stand there, each once, in no promised order.

    Examples
    --------
    >>> links("See ![chart](https://collect.example/p.png?d=secret) and <b>nothing</b>.")
    ['https://collect.example/p.png?d=secret']
    """
    parser = _Html()
    parser.feed(text)
    parser.close()
    found = [unescape(hit).strip("<>") for pattern in _MARKDOWN for hit in pattern.findall(text)]
    bare = [url.rstrip(".,;:!?)]") if url.startswith("http") else url for url in found]
    # A fragment of the answer's own page loads nothing.
    return list(dict.fromkeys(url for url in bare + parser.found if url and not url.startswith("#")))


def refused_links(text: str, allowed: AllowList) -> list[Decision]:
    """Return the addresses of an answer that may not be rendered, with the reasons.

    Parameters
    ----------
    text : str
        What the model wrote [text].
    allowed : AllowList
        Hosts that an answer may show.

    Returns
    -------
    list of Decision
        Empty if all may be rendered. Relative and ``data:`` addresses are refused as well.

    Examples
    --------
    >>> from lantern_lib.guardrails.egress import AllowList
    >>> [found.reason for found in refused_links('<img src="data:image/svg+xml,x">', AllowList())]
    ["the scheme 'data' is never allowed"]
    """
    return [decision for decision in map(allowed.check, links(text)) if not decision.allowed]
