"""A student's own parameters: drawn once, kept, and put into the exam whatever the submission says."""

import functools
import itertools
import json
import random
from pathlib import Path

import nbformat
import pytest

from lantern_grading import mutants, reach, variants
from lantern_grading.__main__ import main
from lantern_grading.course import Course

ROOT = Path(__file__).resolve().parents[1]
WEEKS = variants.weeks()
EVERY_WEEK = pytest.mark.parametrize("week", [pytest.param(w, marks=pytest.mark.xdist_group(w)) for w in WEEKS])


@functools.cache
def reached(week):
    """What each test cell of a lab reads. Call it inside the lab. It runs the lab once, with its own parameters."""
    return reach.reach(mutants.solution(week))


def own_parameters(week):
    cell = next(c for c in mutants.solution(week).cells if "parameters" in c.metadata.get("tags", []))
    names = {}
    exec(cell.source, names)
    return {name: value for name, value in names.items() if name != "__builtins__"}


def test_every_lab_has_variants():
    assert sorted(path.parent.name for path in ROOT.glob("solutions/*/*.ipynb")) == WEEKS


@EVERY_WEEK
def test_choices_are_the_labs_parameters_and_at_least_two(week):
    own, offered = own_parameters(week), variants.choices(week)
    assert offered.keys() == own.keys()
    for name, values in offered.items():
        assert own[name] in values or name in ("num_experts", "seed"), f"{name}: the lab's own value is no choice"
        assert len(values) == len(set(values)) >= 2
        assert {type(value) for value in values} == {type(own[name])}


def test_draws_do_not_change_between_versions():
    # Written down once: a draw that changes takes a student's numbers away in the middle of the week.
    assert variants.draw("week3", "ada", "a seed") == {
        "accelerator_name": "H100", "tp_size": 4, "num_decoders": 16, "prompt_len": 10_000, "tpot_limit_seconds": 0.08,
        "seed": 7,
    }  # fmt: skip


def test_all_choices_come_up_about_equally_often_and_apart():
    drawn = [variants.draw("week2", f"student {number}", "x") for number in range(1000)]
    for name, values in variants.choices("week2").items():
        for value in values:
            # Five standard deviations of a binomial count.
            chance = 1 / len(values)
            count = sum(each[name] == value for each in drawn)
            assert abs(count - 1000 * chance) < 5 * (1000 * chance * (1 - chance)) ** 0.5, (name, value)
    pairs = {(each["num_slots"], each["block_size"]) for each in drawn}
    assert len(pairs) == 20  # all combinations: the parameters are drawn one by one
    assert variants.draw("week2", "ada", "x") != variants.draw("week2", "ada", "y")


@EVERY_WEEK
def test_the_solution_passes_twenty_variants(week, monkeypatch):
    monkeypatch.chdir(ROOT / "solutions" / week)
    solution, origins, offered = mutants.solution(week), reached(week), variants.choices(week)
    rng = random.Random(20)

    def cases(values):
        # A test runs again only if a parameter that it reads has a value it did not have before.
        return {(test, *(values[name] for name in sorted(reads & offered.keys()))) for test, reads in origins.items()}

    done = cases(own_parameters(week))  # what raises with the lab's own parameters has raised in `reached`
    for _ in range(20):
        values = {name: rng.choice(options) for name, options in offered.items()}
        fresh = cases(values) - done
        assert mutants.run(variants.inject(solution, values), only={test for test, *_ in fresh}) == {}, values
        done |= fresh
    for name, options in offered.items():
        if len(options) > 1 and any(name in reads for reads in origins.values()):
            assert len({key for key in done if name in origins[key[0]]}) > 1, name


@EVERY_WEEK
def test_an_instance_is_the_release_with_one_cell_more(week, tmp_path):
    folder = variants.write(week, "ada", tmp_path / "out", course=tmp_path)
    made, released = mutants.released(week, folder.parent), mutants.released(week)
    extra = [cell for cell in made.cells if cell.id.endswith("-given")]
    assert len(extra) == 1
    place = made.cells.index(extra[0])
    assert made.cells[place - 1].metadata["tags"] == ["parameters"]
    assert extra[0].metadata["tags"] == ["injected-parameters"]
    assert not extra[0].metadata["editable"]
    assert {**made, "cells": [cell for cell in made.cells if cell is not extra[0]]} == dict(released)
    got = {}
    exec(extra[0].source, got)
    assert {name: got[name] for name in variants.choices(week)} == variants.recorded(week, "ada", tmp_path)
    files = {path.relative_to(ROOT / "labs" / week) for path in (ROOT / "labs" / week).rglob("*")}
    assert files == {path.relative_to(folder) for path in folder.rglob("*")}
    # The same again, and never over somebody's work.
    before = (folder / f"{week}.ipynb").read_bytes()
    assert (variants.write(week, "ada", tmp_path / "out", course=tmp_path) / f"{week}.ipynb").read_bytes() == before
    (folder / f"{week}.ipynb").write_bytes(before + b" ")
    with pytest.raises(ValueError, match="Move it away"):
        variants.write(week, "ada", tmp_path / "out", course=tmp_path)


@EVERY_WEEK
def test_the_untouched_instance_gets_nothing(week, monkeypatch, tmp_path):
    monkeypatch.chdir(ROOT / "solutions" / week)
    variants.give(week, "ada", tmp_path)
    exam = variants.exam_source(week, "ada", course=tmp_path)
    stubs = {c.id: c.source for c in mutants.released(week).cells if c.metadata.get("nbgrader", {}).get("solution")}
    assert mutants.run(exam, stubs).keys() == {cell.id for cell in exam.cells if reach.is_test(cell)}


def test_the_exam_is_the_source_with_the_recorded_values(tmp_path):
    assert variants.exam_source("week3", "ada", course=tmp_path) == mutants.solution("week3")
    values = variants.give("week3", "ada", tmp_path)
    exam = variants.exam_source("week3", "ada", course=tmp_path)
    names = {}
    for cell in itertools.islice((c for c in exam.cells if c.cell_type == "code"), 2):
        exec(cell.source, names)
    assert {name: names[name] for name in values} == values
    # The record decides, not the choices of the day.
    (tmp_path / "variants" / "week3" / "ada.json").write_text(json.dumps({**values, "seed": 12345}))
    assert variants.give("week3", "ada", tmp_path)["seed"] == 12345
    assert "seed = 12345" in variants.exam_source("week3", "ada", course=tmp_path).cells[3].source


def test_papermill_itself_replaces_the_cell(tmp_path):
    from papermill.parameterize import parameterize_notebook

    made = variants.inject(mutants.solution("week2"), {"num_slots": 7})
    made.metadata["papermill"] = {}
    for cell in made.cells:
        cell.metadata.setdefault("tags", [])  # papermill's loader does that
    again = parameterize_notebook(made, {"num_slots": 9}, kernel_name="python3", language="python")
    assert [c.source for c in again.cells if "injected-parameters" in c.metadata.get("tags", [])] == [
        "# Parameters\nnum_slots = 9\n"
    ]
    assert [c.source for c in variants.inject(again, {}).cells] == [c.source for c in mutants.solution("week2").cells]


@pytest.mark.grading
def test_a_submission_is_graded_with_what_its_student_was_given(tmp_path):
    """In nbgrader: a test of the exam that reads the parameters sees the record, not the submission's edits."""
    source = tmp_path / "instructor" / "week5"
    source.mkdir(parents=True)
    values = variants.give("week5", "ada", tmp_path)
    probe = f"assert num_ranks == {values['num_ranks']}, num_ranks\nassert context_len == {values['context_len']}"
    tests = {"w5-t1-visible": probe, "w5-t1-hidden": f"### BEGIN HIDDEN TESTS\n{probe}\n### END HIDDEN TESTS"}
    exam = mutants.solution("week5")
    for cell in exam.cells:
        cell.source = tests.get(cell.id, "pass" if reach.is_test(cell) else cell.source)
    nbformat.write(exam, source / "week5.ipynb")
    course = Course(tmp_path, tmp_path / "instructor")
    labs = course.generate("week5").parent

    def hand_in(student, notebook):
        (tmp_path / "submitted" / student / "week5").mkdir(parents=True)
        nbformat.write(notebook, tmp_path / "submitted" / student / "week5" / "week5.ipynb")
        course.autograde("week5", student)
        done = nbformat.read(tmp_path / "autograded" / student / "week5" / "week5.ipynb", as_version=4)
        assert sum(cell.id.endswith("-given") for cell in done.cells) == (student != "eve")
        return [
            output.get("ename")
            for cell in done.cells
            if cell.id in tests
            for output in cell.outputs
            if output.output_type == "error"
        ]

    instance = nbformat.read(variants.write("week5", "ada", tmp_path, course=tmp_path, labs=labs) / "week5.ipynb", 4)
    assert hand_in("ada", instance) == []
    # The same student with the drawn values changed by hand, and with the cell thrown away.
    for cell in instance.cells:
        if cell.id == "w5-given":
            cell.source = "num_ranks = 3\ncontext_len = 1"
    (tmp_path / "submitted" / "ada").rename(tmp_path / "earlier")
    assert hand_in("ada", instance) == []
    (tmp_path / "submitted" / "ada").rename(tmp_path / "earlier too")
    instance.cells = [cell for cell in instance.cells if cell.id != "w5-given"]
    assert hand_in("ada", instance) == []
    # The control: somebody without a draw brings ada's cell along and is graded with the lab's own values.
    given = {"num_ranks": values["num_ranks"], "context_len": values["context_len"]}
    assert given != {"num_ranks": 4, "context_len": 2000}
    assert hand_in("eve", variants.inject(instance, given)) == ["AssertionError", "AssertionError"]


def test_the_command_writes_and_lists(tmp_path, capsys):
    flags = ["variant", "week2", "--course", str(tmp_path), "--out", str(tmp_path / "out")]
    assert main([*flags, "--student", "ada", "bob [2]"]) == 0
    folders = [str(tmp_path / "out" / name / "week2") for name in ("ada", "bob [2]")]
    assert capsys.readouterr().out.splitlines() == folders
    assert main([*flags, "--list"]) == 0
    header, *rows = (line.split("\t") for line in capsys.readouterr().out.splitlines())
    assert header == ["student", *variants.choices("week2")]
    for row in rows:
        assert row[1:] == [str(value) for value in variants.recorded("week2", row[0], tmp_path).values()]
    assert [row[0] for row in rows] == ["ada", "bob [2]"]
    assert (tmp_path / "variants" / "seed.txt").stat().st_mode & 0o077 == 0


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("week99", "--student", "ada"), "week must be one of week1, "),
        (("week2", "--student", "../ada"), "student must be a name of 1 to 100 bytes"),
        (("week2", "--student", ".hidden"), "student must be a name of 1 to 100 bytes"),
        (("week2", "--student", ""), "student must be a name of 1 to 100 bytes"),
        (("week2",), "Say --student ID, or --list."),
    ],
)
def test_wrong_arguments_are_refused_in_a_line(arguments, words, tmp_path, capsys):
    assert main(["variant", *arguments, "--course", str(tmp_path), "--out", str(tmp_path)]) == 1
    told = capsys.readouterr().err
    assert words in told
    assert len(told.splitlines()) == 1
    assert list(tmp_path.iterdir()) == []
