"""What a stranger wrote, made harmless: shown as it was typed, and nothing in it does anything."""

from __future__ import annotations

import base64
import binascii
import html
import re
from collections.abc import Mapping
from typing import Any

from lantern_grading.outcome import CellOutput

MAX_TEXT_CHARS = 20_000
MAX_PICTURE_BYTES = 2_000_000
MAX_PICTURE_PIXELS = 25_000_000  # a small file can claim to be a picture that fills a browser's memory
MAX_OUTPUTS = 20

_PNG = b"\x89PNG\r\n\x1a\n"
#: What Markdown, HTML or MathJax would read as more than a letter.
_ACTIVE = re.compile(r"[^\w ,.]|_", re.ASCII)
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


def plain_text(text: str) -> str:
    """Write a text so that a reader of Markdown sees it as it was typed, and nothing in it does anything.

    Parameters
    ----------
    text : str
        Anything.

    Returns
    -------
    str
        One line of HTML whose every sign with a meaning is a numbered entity.

    Examples
    --------
    >>> plain_text("2 < 3")
    '<pre style="white-space: pre-wrap">2 &#60; 3</pre>'
    >>> plain_text("![x](http://example.org)")
    '<pre style="white-space: pre-wrap">&#33;&#91;x&#93;&#40;http&#58;&#47;&#47;example.org&#41;</pre>'
    """
    clean = _CONTROL.sub("\N{REPLACEMENT CHARACTER}", text)[:MAX_TEXT_CHARS]
    return f'<pre style="white-space: pre-wrap">{_ACTIVE.sub(lambda sign: f"&#{ord(sign[0])};", clean)}</pre>'


def clean(text: str) -> str:
    """Take out of a text what a terminal or a page could obey, and shorten it.

    Examples
    --------
    >>> clean("a\\x1b[31mb")
    'a\N{REPLACEMENT CHARACTER}[31mb'
    """
    short = text if len(text) <= MAX_TEXT_CHARS else text[:MAX_TEXT_CHARS] + " [shortened]"
    return _CONTROL.sub("\N{REPLACEMENT CHARACTER}", short)


def one_line(text: str) -> str:
    """Write a text so that it can be printed as part of a line, whatever is in it.

    Examples
    --------
    >>> one_line("a\\n  b: graded")
    'a b: graded'
    """
    return clean(" ".join(text.split()))


def escaped(text: object) -> str:
    """Write a text as HTML that shows it.

    Examples
    --------
    >>> escaped("<b> & 'c'")
    '&lt;b&gt; &amp; &#x27;c&#x27;'
    """
    return html.escape(clean(str(text)), quote=True)


def outputs_of(cell: CellOutput | None) -> list[dict[str, Any]]:
    """Rebuild what a cell showed, as nbformat's outputs of texts and pictures that were looked at."""
    outputs = []
    for output in (cell.outputs if cell else ())[:MAX_OUTPUTS]:
        made = _output(output)
        if made is not None:
            outputs.append(made)
    return outputs


def _output(output: Mapping[str, Any]) -> dict[str, Any] | None:
    """Rebuild one output from its text or its picture; anything else is left out."""
    kind = output.get("output_type")
    if kind == "stream":
        name = "stderr" if output.get("name") == "stderr" else "stdout"
        return {"output_type": "stream", "name": name, "text": clean(_joined(output.get("text")))}
    if kind == "error":
        lines = output.get("traceback")
        listed = [clean(str(line)) for line in lines[:60]] if isinstance(lines, list | tuple) else []
        name, value = clean(str(output.get("ename", "Error"))), clean(str(output.get("evalue", "")))
        return {"output_type": "error", "ename": name, "evalue": value, "traceback": listed or [f"{name}: {value}"]}
    data = output.get("data")
    if kind not in ("display_data", "execute_result") or not isinstance(data, Mapping):
        return None
    kept = {}
    if "image/png" in data and (picture := _picture(data["image/png"])):
        kept["image/png"] = picture
    if "text/plain" in data:
        kept["text/plain"] = clean(_joined(data["text/plain"]))
    return {"output_type": "display_data", "metadata": {}, "data": kept} if kept else None


def _joined(text: Any) -> str:
    return "".join(map(str, text)) if isinstance(text, list | tuple) else str(text or "")


def _picture(text: Any) -> str:
    try:
        content = base64.b64decode(_joined(text).replace("\n", ""), validate=True)
    except (binascii.Error, ValueError):
        return ""
    if not content.startswith(_PNG) or len(content) > MAX_PICTURE_BYTES:
        return ""
    width, height = int.from_bytes(content[16:20], "big"), int.from_bytes(content[20:24], "big")
    if content[12:16] != b"IHDR" or not 0 < width * height <= MAX_PICTURE_PIXELS:
        return ""
    return base64.b64encode(content).decode()
