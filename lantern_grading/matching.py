"""Which cell of a notebook is which answer: by name, then by content, then by place."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

from lantern_grading.outcome import Cell
from lantern_grading.raw_cells import RawCell
from lantern_grading.template import Role, Template, TemplateCell

_DEFINES = re.compile(r"^(?:async\s+def|def|class)\s+(\w+)", re.MULTILINE)
#: Share of lines that a cell has in common with an instructor's cell to be taken for a changed copy of it.
_COPY = 0.6


@dataclass
class Match:
    """Cells of one notebook under way to a paper."""

    raw: list[RawCell]
    taken: dict[int, str] = field(default_factory=dict)  # raw cell -> name of the cell of the release
    dropped: set[int] = field(default_factory=set)  # copies of what the instructor wrote
    notes: list[str] = field(default_factory=list)
    answers: dict[str, int] = field(default_factory=dict)
    cells: list[Cell] = field(default_factory=list)
    rank: tuple[int, int] = (0, 0)

    def free(self) -> list[int]:
        """Return the numbers of the cells that nothing claims yet."""
        return [number for number in range(len(self.raw)) if number not in self.taken and number not in self.dropped]

    def take(self, number: int, cell: TemplateCell) -> None:
        """Give a cell of the notebook the name of one of the release."""
        self.taken[number] = cell.cell_id
        if cell.role in (Role.ANSWER, Role.WRITTEN):
            self.answers[cell.cell_id] = number


def matched(raw: list[RawCell], template: Template) -> Match:
    """Match the cells of a notebook with those of the release.

    Parameters
    ----------
    raw : list of RawCell
        The notebook.
    template : Template
        The release.

    Returns
    -------
    Match
        The student's cells in their order, what was repaired, and how good the match is.
    """
    match = Match(raw)
    by_name = {cell.cell_id: cell for cell in template.cells}
    claims: dict[str, list[int]] = {}
    for number, each in enumerate(raw):
        name = next((name for name in each.names if name in by_name), None)
        if name is not None:
            claims.setdefault(name, []).append(number)
    for name, numbers in claims.items():
        _claimed(match, by_name[name], numbers)
    _by_content(match, template)
    if claims or match.answers:  # a place in another week's notebook means nothing
        _by_position(match, template)
    _report(match, template)
    _fill(match, by_name)
    changed = sum(_even(raw[at].source) != _even(by_name[name].source) for name, at in match.answers.items())
    match.rank = (changed, len(match.answers))
    return match


def _claimed(match: Match, cell: TemplateCell, numbers: list[int]) -> None:
    """Give a name to the best of the cells that bear it; the others are copies."""
    if cell.role in (Role.ANSWER, Role.WRITTEN):
        best = max(numbers, key=lambda number: _fits(match.raw[number], cell, number))
    else:
        best = max(numbers, key=lambda number: (_even(match.raw[number].source) == _even(cell.source), -number))
    if cell.role is Role.ANSWER and not _could_be(match.raw[best], cell):
        return  # the name is on another cell than the one it was given to
    match.take(best, cell)
    for number in numbers:
        if number == best:
            continue
        same = _even(match.raw[number].source) in (_even(match.raw[best].source), _even(cell.source))
        if same:
            match.dropped.add(number)
    if len(numbers) > 1 and cell.role in (Role.ANSWER, Role.WRITTEN):
        match.notes.append(f"There were {len(numbers)} cells with the name {cell.cell_id}; the fullest was graded.")


def _could_be(raw: RawCell, cell: TemplateCell) -> bool:
    """Tell a cell that bears an answer's name from one on which the name was put by accident."""
    wanted = _names(cell.source)
    return not wanted or bool(wanted & _names(raw.source)) or not _names(raw.source)


def _fits(raw: RawCell, cell: TemplateCell, number: int) -> tuple[int, bool, int]:
    wanted = _names(cell.source)
    return (len(wanted & _names(raw.source)), _even(raw.source) != _even(cell.source), number)


def _by_content(match: Match, template: Template) -> None:
    """Find cells that have lost their names: the instructor's by their text, answers by what they define."""
    here = set(match.taken.values())
    missing = [cell for cell in template.cells if cell.cell_id not in here]
    texts = {_even(cell.source): cell for cell in template.cells}
    for number in match.free():
        cell = texts.get(_even(match.raw[number].source))
        if cell is None:
            continue
        if cell in missing and cell.cell_id not in match.taken.values():
            match.take(number, cell)
        elif cell.role not in (Role.ANSWER, Role.WRITTEN) or cell.cell_id in match.answers:
            match.dropped.add(number)
    for cell in missing:
        wanted = _names(cell.source)
        rivals = [number for number in match.free() if wanted & _names(match.raw[number].source)]
        if cell.role is Role.ANSWER and cell.cell_id not in match.answers and rivals:
            match.take(max(rivals, key=lambda number: _fits(match.raw[number], cell, number)), cell)
    for number in match.free():
        for cell in template.of(Role.TEST, Role.GIVEN, Role.FREE):
            if cell.cell_id not in match.taken.values() and _alike(match.raw[number].source, cell.source) >= _COPY:
                match.take(number, cell)
                break


def _by_position(match: Match, template: Template) -> None:
    """Find what is still missing between its neighbours: a written answer has no text to be known by."""
    for place, cell in enumerate(template.cells):
        if cell.role not in (Role.ANSWER, Role.WRITTEN) or cell.cell_id in match.answers:
            continue
        at = {name: number for number, name in match.taken.items()}
        before = [at[c.cell_id] for c in template.cells[:place] if c.cell_id in at]
        after = [at[c.cell_id] for c in template.cells[place + 1 :] if c.cell_id in at]
        if not before and not after:
            continue
        first, last = max(before, default=-1), min(after, default=len(match.raw))
        between = [number for number in match.free() if first < number < last and match.raw[number].kind == cell.kind]
        if cell.role is Role.ANSWER:
            between = [number for number in between if not _names(match.raw[number].source)]
        if between:
            best = max(between, key=lambda number: len(match.raw[number].source))
            match.take(best, cell)


def _report(match: Match, template: Template) -> None:
    at = {name: number for number, name in match.taken.items()}
    lost = [name for name, number in match.answers.items() if name not in match.raw[number].names]
    if lost:
        match.notes.append(f"{_several(lost)} had lost the name and was found by content or place.")
    for cell in template.cells:
        number = at.get(cell.cell_id)
        if number is None:
            if cell.role in (Role.ANSWER, Role.WRITTEN):
                match.notes.append(f"There is no cell for {cell.cell_id}.")
            elif cell.role in (Role.TEST, Role.GIVEN):
                match.notes.append(f"The instructor's cell {cell.cell_id} was deleted; it was used all the same.")
        elif cell.role in (Role.TEST, Role.GIVEN) and not cell.drawn:
            if _even(match.raw[number].source) != _even(cell.source):
                match.notes.append(f"The instructor's cell {cell.cell_id} was changed; the original was used.")
        elif cell.kind != match.raw[number].kind and cell.role in (Role.ANSWER, Role.WRITTEN):
            match.notes.append(
                f"The cell {cell.cell_id} had become {match.raw[number].kind}; it was read as {cell.kind}."
            )


def _fill(match: Match, by_name: dict[str, TemplateCell]) -> None:
    """Put the student's cells in their order: answers, and what the student added or changed."""
    for number, raw in enumerate(match.raw):
        if number in match.dropped:
            continue
        cell = by_name.get(match.taken.get(number, ""))
        if cell is None:
            if raw.source.strip():
                match.cells.append(Cell("", raw.kind, raw.source))
        elif cell.role in (Role.ANSWER, Role.WRITTEN):
            match.cells.append(Cell(cell.cell_id, cell.kind, raw.source))
        elif cell.role is Role.FREE and raw.kind == "code" and _even(raw.source) != _even(cell.source):
            match.cells.append(Cell("", raw.kind, raw.source))


def _several(names: Iterable[str]) -> str:
    listed = list(names)
    return listed[0] if len(listed) == 1 else ", ".join(listed[:-1]) + f" and {listed[-1]}"


def _even(source: str) -> str:
    return "\n".join(line.rstrip() for line in source.strip().split("\n"))


def _names(source: str) -> set[str]:
    return set(_DEFINES.findall(source))


def _alike(one: str, other: str) -> float:
    """Return the share of lines that two texts have in common."""
    left = {line.strip() for line in one.split("\n")} - {""}
    right = {line.strip() for line in other.split("\n")} - {""}
    return len(left & right) / max(len(left | right), 1)
