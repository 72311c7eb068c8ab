"""The class on one static page: how the scores lie, which tasks and which slips, what was slow, what failed."""

from __future__ import annotations

import statistics
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence

from lantern_grading.harmless import escaped
from lantern_grading.ledger import Attempt
from lantern_grading.marks import Mark, task
from lantern_grading.template import Role, Template

_STYLE = """
body{font:16px/1.5 system-ui,sans-serif;max-width:70rem;margin:2rem auto;padding:0 1rem;color:#1b1b1b;background:#fff}
table{border-collapse:collapse;margin:.5rem 0 1.5rem}th,td{text-align:left;vertical-align:top;padding:.25rem .7rem;
border-bottom:1px solid #ccc}td.n,th.n{text-align:right;font-variant-numeric:tabular-nums}
.bar{display:inline-block;height:.8rem;background:#1f5fa8;vertical-align:middle}td.w{width:20rem}
td.m{max-width:45rem;overflow-wrap:anywhere}
@media(prefers-color-scheme:dark){body{color:#e8e8e8;background:#161616}th,td{border-color:#444}.bar{background:#7db7f5}}
"""
_POLICY = "default-src 'none'; style-src 'unsafe-inline'"
_MOST_ROWS = 20


def page(template: Template, marks: Sequence[Mark], attempts: Mapping[str, Attempt]) -> str:
    """Write the dashboard.

    Parameters
    ----------
    template : Template
        The release.
    marks : sequence of Mark
        How everybody stands.
    attempts : mapping
        The newest attempt of each student.

    Returns
    -------
    str
        A whole HTML document: escaped text, no script, nothing from elsewhere. It names students by id.
    """
    scored = [attempts[mark.student] for mark in marks if mark.score is not None and mark.student in attempts]
    parts = [
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">',
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<title>{escaped(template.assignment)}: the class</title><style>{_STYLE}</style></head><body>",
        f"<h1>{escaped(template.assignment)}: the class</h1>",
        *_states(marks),
        *_distribution(marks),
        *_tasks(template, scored),
        *_messages(scored),
        *_slowest(scored),
        *_failures(marks, attempts),
        "</body></html>\n",
    ]
    return "\n".join(parts)


def _table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """Build a table from cells that are HTML already; a name that begins with # heads numbers."""
    classes = [' class="n"' if name.startswith("#") else "" for name in header]
    head = "".join(f"<th{kind}>{escaped(name.lstrip('#'))}</th>" for kind, name in zip(classes, header, strict=True))
    body = [
        "<tr>" + "".join(f"<td{kind}>{cell}</td>" for kind, cell in zip(classes, row, strict=True)) + "</tr>"
        for row in rows
    ]
    return [f"<table><thead><tr>{head}</tr></thead><tbody>", *body, "</tbody></table>"]


def _bar(share: float) -> str:
    return f'<span class="bar" style="width:{max(0.0, min(1.0, share)) * 18:.2f}rem"></span>'


def _states(marks: Sequence[Mark]) -> list[str]:
    counts = Counter(mark.status for mark in marks)
    rows = [[escaped(status), str(count)] for status, count in counts.most_common()]
    waiting = sum(1 for mark in marks if mark.score is not None and mark.waiting)
    return ["<h2>States</h2>", *_table(["State", "#Students"], rows), f"<p>{waiting} wait for points by hand.</p>"]


def _distribution(marks: Sequence[Mark]) -> list[str]:
    shares = [mark.score / mark.max_score for mark in marks if mark.score is not None and mark.max_score]
    if not shares:
        return ["<h2>Scores</h2><p>Nobody has a score yet.</p>"]
    counts = Counter(min(int(share * 10), 9) for share in shares)
    most = max(counts.values())
    rows = []
    for tenth in range(10):
        label = f"{tenth * 10} % to {'100 %' if tenth == 9 else f'below {tenth * 10 + 10} %'}"
        rows.append([label, str(counts[tenth]), _bar(counts[tenth] / most)])
    words = (
        f"<p>{len(shares)} scores: mean {statistics.fmean(shares):.1%}, median {statistics.median(shares):.1%} of the"
        " points; parts that wait for a person count as nothing yet.</p>"
    )
    return ["<h2>Scores</h2>", words, *_table(["Share of the points", "#Students", ""], rows)]


def _tasks(template: Template, scored: Sequence[Attempt]) -> list[str]:
    if not scored:
        return []
    most: dict[str, float] = defaultdict(float)
    for cell in template.of(Role.TEST):
        most[task(cell.cell_id)] += cell.points
    got: dict[str, list[float]] = {name: [] for name in most}
    for attempt in scored:
        own: dict[str, float] = defaultdict(float)
        for test in attempt.tests:
            own[task(test.grade_id)] += test.score
        for name in got:
            got[name].append(own[name])
    rows = []
    for name, points in got.items():
        mean = statistics.fmean(points) / most[name] if most[name] else 0.0
        full = sum(1 for each in points if each >= most[name]) / len(points)
        rows.append([escaped(name), f"{most[name]:g}", f"{mean:.0%}", f"{full:.0%}", _bar(mean)])
    return ["<h2>Tasks</h2>", *_table(["Task", "#Points", "#Mean", "#Full points", ""], rows)]


def _messages(scored: Sequence[Attempt]) -> list[str]:
    """Count what the tests said: the same slip gives the same sentence."""
    counts: Counter[tuple[str, str]] = Counter()
    for attempt in scored:
        counts.update({(test.grade_id, test.message) for test in attempt.tests if test.message})
    rows = [
        [escaped(name), str(count), escaped(message[:400])] for (name, message), count in counts.most_common(_MOST_ROWS)
    ]
    if not rows:
        return []
    return ["<h2>What the tests said most</h2>", *_table(["Test", "#Students", "Message"], rows)]


def _slowest(scored: Sequence[Attempt]) -> list[str]:
    slow = sorted(scored, key=lambda attempt: -attempt.seconds)[:_MOST_ROWS]
    if not slow:
        return []
    rows = [[escaped(attempt.student), f"{attempt.seconds:.2f}", escaped(_slow_test(attempt))] for attempt in slow]
    total = sum(attempt.seconds for attempt in scored)
    words = f"<p>{total:.1f} s of work in all, {total / len(scored):.3f} s a submission.</p>"
    return ["<h2>Slowest</h2>", words, *_table(["Student", "#Seconds", "Slowest test"], rows)]


def _slow_test(attempt: Attempt) -> str:
    test = max(attempt.tests, key=lambda test: test.seconds, default=None)
    if test is None:
        return ""
    limit = f", ended by the limit of {test.limit}" if test.limit else ""
    return f"{test.grade_id}, {test.seconds:.2f} s{limit}"


def _failures(marks: Sequence[Mark], attempts: Mapping[str, Attempt]) -> list[str]:
    rows = [
        [escaped(mark.student), escaped(mark.status), escaped(mark.reason)]
        for mark in marks
        if mark.reason and mark.status != "graded by hand"
    ]
    repaired = sum(1 for attempt in attempts.values() if attempt.notes)
    parts = [f"<h2>Failures</h2><p>{repaired} submissions were repaired on the way in.</p>"]
    return [*parts, *(_table(["Student", "State", "Reason"], rows) if rows else ["<p>None.</p>"])]
