"""A student's feedback: one static page of escaped text, without script, without anything from elsewhere."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lantern_grading.harmless import escaped
from lantern_grading.ledger import Attempt
from lantern_grading.outcome import State, TestResult

_STYLE = """
body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;color:#1b1b1b;background:#fff}
table{border-collapse:collapse;width:100%}th,td{text-align:left;vertical-align:top;padding:.4rem .6rem;border-bottom:1px
solid #ccc}td.n,th.n{text-align:right;white-space:nowrap}p.m{margin:.2rem 0 0;white-space:pre-wrap;
overflow-wrap:anywhere}small{color:#555}.lost{font-weight:600}
@media(prefers-color-scheme:dark){body{color:#e8e8e8;background:#161616}th,td{border-color:#444}small{color:#aaa}}
"""
# The page obeys nothing, even if something had come through the escaping.
_POLICY = "default-src 'none'; style-src 'unsafe-inline'"

#: What the numbers on the page begin with, so that an old page is known from a new one.
STAMP = "lantern-feedback"


@dataclass(frozen=True)
class Graded:
    """One graded cell as the gradebook has it: by hand before automatic."""

    name: str
    score: float
    max_score: float
    by_hand: bool
    waiting: bool
    comment: str = ""


def page(attempt: Attempt, grades: Sequence[Graded], *, penalty: float = 0.0, stamp: str = "") -> str:
    """Write the feedback on a student's newest submission.

    Parameters
    ----------
    attempt : Attempt
        How it stands.
    grades : sequence of Graded
        All graded cells in the order of the notebook.
    penalty : float
        What is taken off for being late [points].
    stamp : str
        Names this version of the page [text].

    Returns
    -------
    str
        A whole HTML document. Everything in it that is not ours is escaped text.
    """
    title = f"{attempt.assignment}: feedback"
    parts = [
        "<!DOCTYPE html>",
        '<html lang="en"><head><meta charset="utf-8">',
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f'<meta name="{STAMP}" content="{escaped(stamp)}">',
        f"<title>{escaped(title)}</title><style>{_STYLE}</style></head><body>",
        f"<h1>{escaped(title)}</h1>",
        *_standing(attempt, grades, penalty),
    ]
    if attempt.notes:
        items = "".join(f"<li>{escaped(note)}</li>" for note in attempt.notes)
        parts.append(f"<h2>What was repaired</h2><ul>{items}</ul>")
    if attempt.scored or attempt.scores == "kept" or any(grade.by_hand for grade in grades):
        parts += _table(attempt, grades)
    parts.append(
        "<p><small>Isolated: the test ran apart from your code. In-kernel: it ran beside it. Hidden tests show their"
        " name, their points and their message.</small></p></body></html>\n"
    )
    return "\n".join(parts)


def _standing(attempt: Attempt, grades: Sequence[Graded], penalty: float) -> list[str]:
    said = {
        State.GRADED: "Your submission was graded.",
        State.WITH_FAILURES: "Your submission was graded, and something broke on the way.",
        State.REJECTED: "Your submission could not be graded.",
        State.NEEDS_PERSON: "Your submission waits for a person: the fault is not yours.",
    }
    lines = [f"<p>{said[attempt.state]} {escaped(attempt.reason)}</p>"]
    if attempt.scores == "kept":
        lines.append("<p>The points are those of the last time that it could be graded.</p>")
    waiting = [grade for grade in grades if grade.waiting]
    if attempt.scores == "none" and len(waiting) == len(grades):
        return [*lines, "<p>There are no points yet.</p>"]
    total, most = sum(grade.score for grade in grades), sum(grade.max_score for grade in grades)
    line = f"(Score: {max(0.0, total - penalty):g} / {most:g})"
    if penalty:
        line += f", {total:g} less {penalty:g} for being late"
    lines.append(f'<p class="lost">{line}</p>')
    if waiting:
        lines.append(f"<p>{len(waiting)} of {len(grades)} parts still wait for a person.</p>")
    return lines


def _table(attempt: Attempt, grades: Sequence[Graded]) -> list[str]:
    tests = {test.grade_id: test for test in attempt.tests}
    rows = ['<table><thead><tr><th>Part</th><th class="n">Points</th><th>Ran</th></tr></thead><tbody>']
    for grade in grades:
        score = "waits" if grade.waiting and not grade.by_hand else f"{grade.score:g}"
        lost = ' class="lost"' if not grade.waiting and grade.score < grade.max_score else ""
        test = tests.get(grade.name)
        where = "by hand" if grade.by_hand or test is None else str(test.trust)
        rows.append(
            f"<tr><td><span{lost}>{escaped(grade.name)}</span>{_words(grade, test)}</td>"
            f'<td class="n">{score} of {grade.max_score:g}</td><td>{where}</td></tr>'
        )
    return [*rows, "</tbody></table>"]


def _words(grade: Graded, test: TestResult | None) -> str:
    words = [test.message] if test is not None and test.message else []
    if test is not None and test.limit:
        words.append(f"It ended at the limit of {test.limit}.")
    if grade.comment:
        words.append(f"Comment: {grade.comment}")
    return "".join(f'<p class="m">{escaped(word)}</p>' for word in words)
