"""Mutation of the labs' solutions: every small change of an answer should lose points in a hidden test.

The changes are those of Cosmic Ray (extra ``mutation``). Each runs in a process of its own, with the tests that read
the changed cell. What survives and cannot be told from the answer stands in ``tests/mutants/survivors.toml``.
"""

from __future__ import annotations

import argparse
import contextlib
import difflib
import math
import multiprocessing
import os
import resource
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass

from nbformat.notebooknode import NotebookNode

from lantern_grading import mutants, reach
from lantern_grading.paths import ROOT, SOLUTIONS
from lantern_grading.regions import SOLUTION, split

SURVIVORS = ROOT / "tests" / "mutants" / "survivors.toml"
# One replacement for each arithmetic operator, where Cosmic Ray would try eleven: the nearest in meaning.
_ARITHMETIC = {"Add_Sub", "Sub_Add", "Mul_Div", "Div_Mul", "FloorDiv_Div", "Div_FloorDiv", "Mod_FloorDiv", "Pow_Mul"}
_LOGIC = {
    "AddNot", "NumberReplacer", "ReplaceAndWithOr", "ReplaceOrWithAnd", "ReplaceTrueWithFalse", "ReplaceFalseWithTrue",
    "ReplaceBreakWithContinue", "ReplaceContinueWithBreak", "ZeroIterationForLoop", "ReplaceUnaryOperator_Delete_Not",
    "ReplaceUnaryOperator_Delete_USub",
}  # fmt: skip


@dataclass(frozen=True)
class Change:
    """One changed line of one solution cell."""

    cell: str
    old: str  # the line as it stands, without the space around it
    new: str
    source: str  # the whole cell, changed


def changes(cell: NotebookNode) -> Iterator[Change]:
    """Yield what Cosmic Ray's operators make of a solution cell; changes of its public lines are left out."""
    from cosmic_ray.mutating import mutate_code
    from cosmic_ray.plugins import get_operator, operator_names

    own = set(split(cell.source, SOLUTION)[1])
    seen = {cell.source}
    for name in operator_names():
        short = name.split("/")[-1]
        family, _, rest = short.partition("_")
        chosen = short in _LOGIC or family == "ReplaceComparisonOperator"
        if not (chosen or (family == "ReplaceBinaryOperator" and rest in _ARITHMETIC)):
            continue
        occurrence = 0
        while (made := mutate_code(cell.source.encode(), get_operator(name)(), occurrence)) is not None:
            occurrence += 1
            text = made.decode() if isinstance(made, bytes) else made
            lines = [d for d in difflib.ndiff(cell.source.split("\n"), text.split("\n")) if d[0] in "+-"]
            old, new = ([line[2:] for line in lines if line[0] == sign] for sign in "-+")
            if text not in seen and old and old[0] in own:
                seen.add(text)
                yield Change(cell.id, old[0].strip(), " ".join(line.strip() for line in new), text)


def survives(notebook: NotebookNode, change: Change, tests: set[str], seconds: float) -> bool:
    """Say whether no hidden test notices a change; one that takes more processor time than that is noticed."""
    context = multiprocessing.get_context("fork")
    answer = context.SimpleQueue()

    def attempt() -> None:
        # Processor time: a change that never ends is noticed, a busy machine is not.
        resource.setrlimit(resource.RLIMIT_CPU, (math.ceil(seconds), math.ceil(seconds) + 1))
        with open(os.devnull, "w") as sink, contextlib.redirect_stderr(sink):
            raised = mutants.run(notebook, {change.cell: change.source}, tests)
        answer.put(sorted(raised))

    process = context.Process(target=attempt)
    process.start()
    process.join()
    return process.exitcode == 0 and answer.get() == []


def known(week: str = "") -> list[dict[str, str]]:
    """Read the survivors that nobody can tell from the answer, with the reason of each."""
    entries: list[dict[str, str]] = tomllib.loads(SURVIVORS.read_text(encoding="utf-8")).get("survivor", [])
    return [entry for entry in entries if entry["cell"].startswith(f"w{week.removeprefix('week')}")]


def main(arguments: list[str] | None = None) -> int:
    """Change a lab's solution in every small way, and list what no hidden test notices."""
    parser = argparse.ArgumentParser(prog="python -m lantern_grading.mutation", description=__doc__)
    parser.add_argument("week", help="for example week3")
    parser.add_argument("--cell", default="", help="only cells whose id contains this")
    parser.add_argument(
        "--seconds", type=float, default=30, help="of processor time, after which a change counts as noticed"
    )
    given = parser.parse_args(arguments)
    os.chdir(SOLUTIONS / given.week)
    notebook = mutants.solution(given.week)
    origins = reach.reach(notebook)
    listed = {(entry["cell"], entry["old"], entry["new"]) for entry in known(given.week)}
    total, equal, unknown = 0, 0, []
    for cell in notebook.cells:
        about = cell.metadata.get("nbgrader", {})
        if cell.cell_type != "code" or not about.get("solution") or given.cell not in cell.id:
            continue
        task = "-".join(cell.id.split("-")[:2]) + "-"
        hidden = {t for t in origins if t.startswith(task) and not t.endswith("-visible")}
        for change in changes(cell):
            total += 1
            if (change.cell, change.old, change.new) in listed:
                equal += 1
            elif survives(notebook, change, hidden, given.seconds):
                unknown.append(change)
                print(f"SURVIVES {change.cell}\n  - {change.old}\n  + {change.new}", flush=True)
    killed = total - equal - len(unknown)
    share = killed / max(total - equal, 1)
    print(
        f"{given.week}: {total} changes, {equal} equal to the answer, {killed} of {total - equal} noticed ({share:.1%})"
    )
    return int(share < 0.95)


if __name__ == "__main__":
    sys.exit(main())
