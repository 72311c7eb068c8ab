"""The notebook that formgrader and ``nbgrader generate_feedback`` open: what the student wrote, as data.

It is made from the release and from plain text. No markup, metadata or output of a submission is taken over as
such: what a student wrote in Markdown is shown as it was typed, and outputs are text and checked pictures.
"""

from __future__ import annotations

import json
import re
import textwrap
from collections.abc import Mapping
from typing import Any

from lantern_grading.harmless import clean, outputs_of, plain_text
from lantern_grading.ledger import Attempt
from lantern_grading.outcome import CellOutput, Outcome, Paper, TestResult
from lantern_grading.template import Role, Template, TemplateCell


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
        return _code(cell.cell_id, source, outputs_of(shown.get(-1 if index is None else index)), _about(cell))
    if cell.kind == "markdown":
        return _text(cell.cell_id, cell.source, _about(cell))
    test = results.get(cell.cell_id)
    outputs = _verdict(test) if test is not None else []
    return _code(cell.cell_id, cell.source, outputs, _about(cell))


def _added(index: int, paper: Paper | None, shown: Mapping[int, CellOutput]) -> dict[str, Any]:
    assert paper is not None
    cell = paper.cells[index]
    if cell.kind == "code":
        return _code(f"added-{index}", cell.source, outputs_of(shown.get(index)), {})
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
