"""What the course changes in nbgrader's notebooks: named stubs, and feedback without hidden tests."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from nbformat.notebooknode import NotebookNode
from nbgrader import preprocessors
from nbgrader.preprocessors import NbGraderPreprocessor
from traitlets import Unicode
from traitlets.config import Config

from lantern_grading import variants
from lantern_grading.regions import HIDDEN, secret_lines, without
from lantern_grading.variants import notebooks

_ANSI = re.compile(r"\x1b\[[0-9;]*m")
REMOVED = "[removed: this output showed hidden tests]"


class NamedStubs(preprocessors.ClearSolutions):
    """Replace a solution by a stub that raises NotImplementedError with task and function name."""

    def preprocess_cell(self, cell: NotebookNode, resources: Any, cell_index: int) -> tuple[NotebookNode, Any]:
        """Clear the solution, then name what is to be written."""
        cell, resources = super().preprocess_cell(cell, resources, cell_index)
        task = re.search(r"-t(\d+)-", cell.metadata.get("nbgrader", {}).get("grade_id", ""))
        if cell.cell_type == "code" and task:
            cell.source = _named(cell.source, f"Task {task[1]}")
        return cell, resources


def _named(source: str, task: str) -> str:
    lines, function, owner = [], "", ""
    for line in source.split("\n"):
        if heading := re.match(r"(?:class|def) (\w+)", line):
            owner = f"{heading[1]}." if line.startswith("class") else ""
        definition = re.match(r"\s*def (\w+)", line)
        function = owner + definition[1] if definition else function
        lines.append(line.replace("NotImplementedError()", f'NotImplementedError("{task}: {function}")'))
    return "\n".join(lines)


class HideHiddenTests(NbGraderPreprocessor):
    """Take hidden tests out of feedback: their source, and every output that quotes them.

    A failed hidden test keeps its message and nothing else. nbgrader itself shows all of it.
    """

    def preprocess(self, nb: NotebookNode, resources: Any) -> tuple[NotebookNode, Any]:
        """Clean all cells of a graded notebook."""
        secrets = secret_lines(nb.cells, HIDDEN)
        for cell in nb.cells:
            # A task with hidden tests may not talk about them through prints either.
            hides = bool(secret_lines([cell], HIDDEN))
            cell.source = without(cell.source, HIDDEN)
            if cell.cell_type == "code":
                outputs = cell.outputs
                if hides:
                    outputs = [output for output in outputs if output.output_type == "error"]
                cell.outputs = [_clean(output, secrets, hides) for output in outputs]
        return nb, resources


class GiveParameters(NbGraderPreprocessor):
    """Put a student's recorded parameters into a submission, for nbgrader's own ``autograde``.

    Whatever the submission says about them itself is thrown away.
    """

    course = Unicode(str(variants.COURSE), help="The class's folder.").tag(config=True)

    def preprocess(self, nb: NotebookNode, resources: Any) -> tuple[NotebookNode, Any]:
        """Replace the cell with the parameters by one made from the record."""
        about = resources["nbgrader"]
        nb = notebooks.inject(nb, variants.recorded(about["assignment"], about["student"], Path(self.course)))
        for cell in nb.cells:
            if notebooks.INJECTED in cell.metadata.get("tags", []):
                # The gradebook knows the cells that all students share, and trips over others.
                del cell.metadata["nbgrader"]
        return nb, resources


def _clean(output: NotebookNode, secrets: set[str], hides: bool) -> NotebookNode:
    if output.output_type == "error":
        message = f"{output.ename}: {output.evalue}"
        if hides or _tells("\n".join(output.traceback), secrets):
            output.evalue = REMOVED if _tells(message, secrets) else output.evalue
            output.traceback = textwrap.wrap(f"{output.ename}: {output.evalue}", 100)
    elif output.output_type == "stream":
        output.text = REMOVED if _tells(output.text, secrets) else output.text
    elif any(_tells(str(value), secrets) for value in output.data.values()):
        output.data = NotebookNode({"text/plain": REMOVED})
    return output


def _tells(text: str, secrets: Iterable[str]) -> bool:
    # A representation such as repr(In) escapes quotes and line ends; compare without either.
    plain = _ANSI.sub("", text)
    bare = plain.replace("\\", "")
    return any(secret in plain or secret.replace("\\", "") in bare for secret in secrets)


def release_preprocessors() -> list[type]:
    """Return nbgrader's steps of a release, with stubs that carry names."""
    return [
        preprocessors.IncludeHeaderFooter,
        preprocessors.LockCells,
        NamedStubs,
        preprocessors.ClearOutput,
        preprocessors.CheckCellMetadata,
        preprocessors.ComputeChecksums,
        preprocessors.SaveCells,
        preprocessors.ClearHiddenTests,
        preprocessors.ClearMarkScheme,
        preprocessors.ComputeChecksums,
        preprocessors.CheckCellMetadata,
    ]


def feedback_preprocessors() -> list[Any]:
    """Return nbgrader's steps of feedback, with hidden tests taken out."""
    from nbconvert.preprocessors import CSSHTMLHeaderPreprocessor

    return [preprocessors.GetGrades, HideHiddenTests, CSSHTMLHeaderPreprocessor]


def autograde_defaults(config: Config) -> None:
    """Set what plain nbgrader leaves open: a tag that skips cells, and cells that were deleted."""
    # nbclient skips cells that carry a tag of this name; nobody can know an unguessable one.
    config.Execute.skip_cells_with_tag = "lantern-no-cell-is-skipped"
    # A kernel's own remarks (level 50 leaves none) would fill the instructor's screen.
    config.Execute.extra_arguments = ["--HistoryManager.hist_file=:memory:", "--IPKernelApp.log_level=50"]
    config.OverwriteCells.add_missing_cells = True
    config.Autograde.sanitize_preprocessors = [
        preprocessors.ClearOutput,
        preprocessors.DeduplicateIds,
        preprocessors.OverwriteKernelspec,
        GiveParameters,
        preprocessors.OverwriteCells,
        preprocessors.CheckCellMetadata,
    ]
    config.NamedStubs.code_stub = {"python": "# Your code here.\nraise NotImplementedError()"}
    config.NamedStubs.text_stub = "*Write your answer here.*"
