"""Honest submissions of the labs, drawn at random: what a class hands in when nobody means any harm."""

from __future__ import annotations

import functools
import random
from dataclasses import replace
from pathlib import Path

from nbformat.notebooknode import NotebookNode

from lantern_grading import exam as exams
from lantern_grading import mutants, reach
from lantern_grading.exam import Exam
from lantern_grading.outcome import Cell, Paper

ROOT = Path(__file__).resolve().parents[2]
LABS = {path.stem: mutants.load(path) for path in sorted((ROOT / "tests" / "mutants").glob("week*.toml"))}


@functools.cache
def exam_of(name: str) -> Exam:
    return exams.read(name)


@functools.cache
def stubs_of(name: str) -> dict[str, str]:
    """Read what was given out for each answer."""
    return {cell.id: cell.source for cell in mutants.released(name).cells}


def draw(name: str, number: int) -> dict[str, str]:
    """Draw the answers of one student: the same for the same lab and number."""
    rng = random.Random(f"{name} {number}")
    stubs, answers = stubs_of(name), {}
    for cell in exam_of(name).answers:
        wrong = [mutant for mutant in LABS[name].mutants if mutant.cell == cell.cell_id]
        luck = rng.random()
        if luck < 0.15:
            answers[cell.cell_id] = stubs[cell.cell_id]
        elif luck < 0.65 and wrong:
            answers[cell.cell_id] = replace(cell, source=rng.choice(wrong).applied(cell.source)).answer
        else:
            answers[cell.cell_id] = cell.answer
    return answers


def paper(name: str, answers: dict[str, str]) -> Paper:
    """Return the answers as the checker gets them."""
    return Paper(tuple(Cell(cell_id, "code", source) for cell_id, source in answers.items()), exam_of(name).files)


def notebook(name: str, answers: dict[str, str]) -> NotebookNode:
    """Return the answers in the notebook that was given out."""
    filled = mutants.released(name)
    for cell in filled.cells:
        cell.source = answers.get(cell.id, cell.source)
    return filled


def points_of_the_runner(name: str, answers: dict[str, str]) -> dict[str, float]:
    """Score answers in this process, in the lab's folder, without sandbox, checker or nbgrader: all points or none."""
    solution = solution_of(name)
    raised = mutants.run(solution, answers)
    return {
        cell.id: 0.0 if cell.id in raised else float(cell.metadata["nbgrader"]["points"])
        for cell in solution.cells
        if reach.is_test(cell)
    }


@functools.cache
def solution_of(name: str) -> NotebookNode:
    return mutants.solution(name)
