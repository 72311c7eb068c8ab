"""The notebook that formgrader and ``nbgrader generate_feedback`` open: what the student wrote, as data.

It is made from the release and from plain text. No markup, metadata or output of a submission is taken over as
such: what a student wrote in Markdown is shown as it was typed, and outputs are text and checked pictures.
"""

from __future__ import annotations

import base64
import binascii
import html
import json
import re
import textwrap
from collections.abc import Mapping
from typing import Any

from lantern_grading.ledger import Attempt
from lantern_grading.outcome import CellOutput, Outcome, Paper, TestResult
from lantern_grading.template import Role, Template, TemplateCell

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


def autograded(template: Template, paper: Paper | None, outcome: Outcome, attempt: Attempt) -> bytes:
    """Write the notebook of one graded submission; without a paper, one that says why there is none.

    Parameters
    ----------
    template : Template
        The release: every cell of the instructor comes from it, without hidden tests.
    paper : Paper or None
        What the student wrote.
    outcome : Outcome
        Results and outputs.
    attempt : Attempt
        For the notes on top.

    Returns
    -------
    bytes
        A notebook of format 4.5, the same for the same input.
    """
    cells = [_text("lantern-state", _summary(attempt))]
    results = {test.grade_id: test for test in outcome.tests}
    shown = {output.index: output for output in outcome.outputs}
    own, added = _placed(template, paper)
    for cell in template.cells:
        for index in added.get(cell.cell_id, []):
            cells.append(_added(index, paper, shown))
        cells.append(_cell(cell, own.get(cell.cell_id), paper, shown, results))
    for index in added.get("", []):
        cells.append(_added(index, paper, shown))
    metadata = {
        "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
        "language_info": {"name": "python"},
    }
    notebook = {"cells": cells, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}
    return (json.dumps(notebook, indent=1, sort_keys=True) + "\n").encode()


def _placed(template: Template, paper: Paper | None) -> tuple[dict[str, int], dict[str, list[int]]]:
    """Give each cell of the paper a place: answers their own, the others before the answer that follows them."""
    own: dict[str, int] = {}
    added: dict[str, list[int]] = {}
    waiting: list[int] = []
    for index, cell in enumerate(paper.cells if paper else ()):
        if cell.cell_id:
            own[cell.cell_id] = index
            added.setdefault(cell.cell_id, []).extend(waiting)
            waiting = []
        else:
            waiting.append(index)
    added.setdefault("", []).extend(waiting)
    return own, added


def _cell(
    cell: TemplateCell, index: int | None, paper: Paper | None, shown: Mapping[int, CellOutput], results: Mapping
) -> dict[str, Any]:
    if cell.role in (Role.ANSWER, Role.WRITTEN):
        source = paper.cells[index].source if paper and index is not None else "(nothing was handed in for this)"
        if cell.kind == "markdown":
            return _text(cell.cell_id, plain_text(source), _about(cell))
        return _code(cell.cell_id, source, _outputs(shown.get(-1 if index is None else index)), _about(cell))
    if cell.kind == "markdown":
        return _text(cell.cell_id, cell.source, _about(cell))
    test = results.get(cell.cell_id)
    outputs = _verdict(test) if test is not None else []
    return _code(cell.cell_id, cell.source, outputs, _about(cell))


def _added(index: int, paper: Paper | None, shown: Mapping[int, CellOutput]) -> dict[str, Any]:
    assert paper is not None
    cell = paper.cells[index]
    if cell.kind == "code":
        return _code(f"added-{index}", cell.source, _outputs(shown.get(index)), {})
    return _text(f"added-{index}", plain_text(cell.source))


def _about(cell: TemplateCell) -> dict[str, Any]:
    if cell.role is Role.FREE or not cell.saved:  # no cell of the gradebook's, as a student's own parameters
        return {}
    about: dict[str, Any] = {
        "cell_type": cell.kind,
        "checksum": cell.checksum,
        "grade": cell.role in (Role.TEST, Role.WRITTEN),
        "grade_id": cell.cell_id,
        "locked": cell.role in (Role.TEST, Role.GIVEN),
        "schema_version": 3,
        "solution": cell.role in (Role.ANSWER, Role.WRITTEN),
        "task": False,
    }
    if about["grade"]:
        about["points"] = cell.points
    return {"nbgrader": about}


def _text(name: str, source: str, metadata: dict[str, Any] | None = None) -> dict[str, Any]:
    return {"cell_type": "markdown", "id": _identity(name), "metadata": metadata or {}, "source": source}


def _code(name: str, source: str, outputs: list[dict[str, Any]], metadata: dict[str, Any]) -> dict[str, Any]:
    return {
        "cell_type": "code",
        "execution_count": None,
        "id": _identity(name),
        "metadata": metadata,
        "outputs": outputs,
        "source": source,
    }


def _identity(name: str) -> str:
    return re.sub(r"[^\w-]", "-", name, flags=re.ASCII)[:64] or "cell"


def _summary(attempt: Attempt) -> str:
    """Say on top how the submission stands. Names of files in it are the student's words."""
    lines = [f"Grading: {attempt.state}."]
    lines += [attempt.reason] if attempt.reason else []
    lines += [f"- {note}" for note in attempt.notes]
    return plain_text("\n".join(lines))


def _verdict(test: TestResult) -> list[dict[str, Any]]:
    where = f"{test.score:g} of {test.max_score:g} points, {test.trust}."
    if not test.message:
        return [{"output_type": "stream", "name": "stdout", "text": f"{where}\n"}]
    message = clean(test.message)
    limit = f" Ended by the limit of {clean(test.limit)}." if test.limit else ""
    lines = [*textwrap.wrap(message, 100), where + limit]
    return [{"output_type": "error", "ename": "Test", "evalue": message, "traceback": lines}]


def clean(text: str) -> str:
    """Take out of a text what a terminal or a page could obey, and shorten it.

    Examples
    --------
    >>> clean("a\\x1b[31mb")
    'a\N{REPLACEMENT CHARACTER}[31mb'
    """
    short = text if len(text) <= MAX_TEXT_CHARS else text[:MAX_TEXT_CHARS] + " [shortened]"
    return _CONTROL.sub("\N{REPLACEMENT CHARACTER}", short)


def _outputs(cell: CellOutput | None) -> list[dict[str, Any]]:
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
