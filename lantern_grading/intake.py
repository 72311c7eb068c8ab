"""From the files of a submission to a paper: which notebook, which cell is which answer, and what was repaired."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import PurePosixPath

from lantern_grading.matching import matched
from lantern_grading.outcome import Paper
from lantern_grading.raw_cells import Unreadable, read_notebook
from lantern_grading.reading import MAX_FILES_BYTES, HandedIn, is_notebook
from lantern_grading.template import Template


@dataclass(frozen=True)
class Rejection:
    """A submission in which nothing can be graded, and why, in words for the student."""

    reason: str
    notes: tuple[str, ...] = ()


def read_paper(handed_in: HandedIn, template: Template) -> Paper | Rejection:
    """Read a submission and match it with what was released.

    Metadata of the submission only helps to find which cell is which. An instructor's cell is never taken
    from it, and neither is a file that was released.

    Parameters
    ----------
    handed_in : HandedIn
        The files.
    template : Template
        The release.

    Returns
    -------
    Paper or Rejection
        The student's cells in their order, or why there are none.
    """
    read, problems = [], []
    named = _notebooks(handed_in)
    for name, content in handed_in.files:
        if name not in named:
            continue
        try:
            cells, notes = read_notebook(content)
        except Unreadable as error:
            problems.append((name, str(error)))
            continue
        read.append((name, matched(cells, template), notes))
    if not read:
        return Rejection(_nothing(handed_in, problems), handed_in.notes)
    exact = f"{template.assignment}.ipynb"
    name, match, notes = max(read, key=lambda each: (*each[1].rank, each[0] == exact, each[0]))
    if not match.answers:
        return Rejection(
            f"{name} has none of the answers of {template.assignment}. Is it the notebook of another week?",
            handed_in.notes,
        )
    notes = [*handed_in.notes, *_choice(name, exact, len(read), problems), *notes, *match.notes]
    files, more = _others(handed_in, template)
    return Paper(tuple(match.cells), files, tuple(dict.fromkeys([*notes, *more])))


def _notebooks(handed_in: HandedIn) -> set[str]:
    """Return the files to look at: those called notebooks, or else what may have lost the ending."""
    named = {name for name, _ in handed_in.files if is_notebook(name)}
    return {name for name in named if ".ipynb" in name.lower()} or named


def _nothing(handed_in: HandedIn, problems: list[tuple[str, str]]) -> str:
    if len(problems) == 1:
        return f"{problems[0][0]}: {problems[0][1]}"
    if problems:
        return "No notebook could be read. " + " ".join(f"{name}: {why}" for name, why in problems)
    too_large = [note for note in handed_in.notes if ".ipynb" in note.lower()]
    return " ".join(["No notebook was handed in.", *too_large])


def _choice(name: str, exact: str, count: int, problems: list[tuple[str, str]]) -> list[str]:
    notes = [f"{other} could not be read and was left out. {why}" for other, why in problems]
    if count > 1:
        notes.append(f"{count} notebooks were handed in; {name} was graded, because it holds the most answers.")
    elif name != exact:
        notes.append(f"The notebook was called {name}; it was taken for {exact}.")
    return notes


def _others(handed_in: HandedIn, template: Template) -> tuple[tuple[tuple[str, bytes], ...], list[str]]:
    released, kept, notes, total = dict(template.files), [], [], 0
    named = _notebooks(handed_in)
    for name, content in handed_in.files:
        path = PurePosixPath(name)
        if name in named or name.endswith(".ipynb") or path.is_absolute() or ".." in path.parts:
            continue
        if name in released:
            if content != released[name]:
                notes.append(f"The file {name} was changed; the instructor's was used.")
            continue
        total += len(content)
        if total > MAX_FILES_BYTES:
            notes.append(f"The files beside the notebook have more than {MAX_FILES_BYTES:,} bytes; some were left out.")
            break
        kept.append((name, content))
    return tuple(kept), notes
