"""A student's own parameters: drawn once, kept, and put into the exam whatever the submission says."""

import copy
import functools
import itertools
import json
import random
import zipfile
from dataclasses import replace
from functools import partial
from pathlib import Path

import nbformat
import pytest

from lantern_grading import exam as exams
from lantern_grading import ledger, marks, mutants, privacy, reach, regrade, run, variants
from lantern_grading.__main__ import main
from lantern_grading.checker.program import modules
from lantern_grading.classroom import Classroom
from lantern_grading.database import Database
from lantern_grading.ledger import Attempt
from lantern_grading.outcome import State, TestResult, Trust
from lantern_grading.preprocessors import GiveParameters
from lantern_grading.sandboxed import SandboxGrader, close
from lantern_grading.template import Role, load
from lantern_grading.variants import notebooks

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
        assert mutants.run(notebooks.inject(solution, values), only={test for test, *_ in fresh}) == {}, values
        done |= fresh
    for name, options in offered.items():
        if len(options) > 1 and any(name in reads for reads in origins.values()):
            assert len({key for key in done if name in origins[key[0]]}) > 1, name


@EVERY_WEEK
def test_an_instance_is_the_release_with_one_cell_more(week, tmp_path):
    folder = notebooks.write(week, "ada", tmp_path / "out", course=tmp_path)
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
    assert (notebooks.write(week, "ada", tmp_path / "out", course=tmp_path) / f"{week}.ipynb").read_bytes() == before
    (folder / f"{week}.ipynb").write_bytes(before + b" ")
    with pytest.raises(ValueError, match="Move it away"):
        notebooks.write(week, "ada", tmp_path / "out", course=tmp_path)


@EVERY_WEEK
def test_the_untouched_instance_gets_nothing(week, monkeypatch, tmp_path):
    monkeypatch.chdir(ROOT / "solutions" / week)
    variants.give(week, "ada", tmp_path)
    exam = notebooks.exam_source(week, "ada", course=tmp_path)
    stubs = {c.id: c.source for c in mutants.released(week).cells if c.metadata.get("nbgrader", {}).get("solution")}
    assert mutants.run(exam, stubs).keys() == {cell.id for cell in exam.cells if reach.is_test(cell)}


def test_the_exam_is_the_source_with_the_recorded_values(tmp_path):
    assert notebooks.exam_source("week3", "ada", course=tmp_path) == mutants.solution("week3")
    values = variants.give("week3", "ada", tmp_path)
    exam = notebooks.exam_source("week3", "ada", course=tmp_path)
    names = {}
    for cell in itertools.islice((c for c in exam.cells if c.cell_type == "code"), 2):
        exec(cell.source, names)
    assert {name: names[name] for name in values} == values
    # The record decides, not the choices of the day.
    (tmp_path / "variants" / "week3" / "ada.json").write_text(json.dumps({**values, "seed": 12345}))
    assert variants.give("week3", "ada", tmp_path)["seed"] == 12345
    assert "seed = 12345" in notebooks.exam_source("week3", "ada", course=tmp_path).cells[3].source


def test_papermill_itself_replaces_the_cell(tmp_path):
    from papermill.parameterize import parameterize_notebook

    made = notebooks.inject(mutants.solution("week2"), {"num_slots": 7})
    made.metadata["papermill"] = {}
    for cell in made.cells:
        cell.metadata.setdefault("tags", [])  # papermill's loader does that
    again = parameterize_notebook(made, {"num_slots": 9}, kernel_name="python3", language="python")
    assert [c.source for c in again.cells if "injected-parameters" in c.metadata.get("tags", [])] == [
        "# Parameters\nnum_slots = 9\n"
    ]
    assert [c.source for c in notebooks.inject(again, {}).cells] == [c.source for c in mutants.solution("week2").cells]


@EVERY_WEEK
def test_the_graders_exam_is_the_notebook_with_the_record(week, tmp_path):
    """Two ways to one exam: the grader puts a cell into what it has read, the other reads a notebook that has it."""
    values = variants.give(week, "ada", tmp_path)
    exam, template = exams.read(week), load(week)
    own = variants.own_cell(template.parameters, values)
    made = exam.given_to(*own)
    written = exams.of(week, notebooks.exam_source(week, "ada", course=tmp_path), ROOT / "solutions" / week)
    assert made == written
    assert made != exam
    assert modules(made) == modules(exam)  # so that sandboxes that wait serve every student
    # The release of that student, and a hash that tells the draw.
    mine = template.given_to(*own)
    assert [c.cell_id for c in mine.cells] == [c.cell_id for c in made.cells]
    other = variants.own_cell(template.parameters, {**values, "seed": -1})
    assert len({template.exam_hash, mine.exam_hash, template.given_to(*other).exam_hash}) == 3
    assert exam.given_to(own[0], "") == exam
    assert template.given_to(own[0], "") == template


def hand_in(course, student, week, notebook):
    path = course / "submitted" / student / week / f"{week}.ipynb"
    path.parent.mkdir(parents=True, exist_ok=True)
    nbformat.write(notebook, path)


def answered(notebook, week):
    """Fill an instance with the reference answers."""
    answers = {cell.cell_id: cell.answer for cell in exams.read(week).answers}
    for cell in notebook.cells:
        cell.source = answers.get(cell.id, cell.source)
    return notebook


def marks_of(course, week, source=ROOT / "solutions"):
    """Grade what is new in the real sandbox; return the scores, and what the run said."""
    classroom, template = Classroom.open(course), load(week, source)
    try:
        report = run.grade(classroom, template, SandboxGrader.of(week, source))
    finally:
        close()
    with Database(classroom.db_url) as database:
        return {mark.student: mark.score for mark in marks.read(classroom, database, template)}, report


@pytest.mark.grading
def test_one_student_has_a_variant_and_another_the_lab_and_both_get_full_marks(tmp_path):
    course = tmp_path / "class"
    instance = notebooks.write("week2", "ada", tmp_path / "out", course=course) / "week2.ipynb"
    hand_in(course, "ada", "week2", answered(nbformat.read(instance, 4), "week2"))
    hand_in(course, "bob", "week2", answered(mutants.released("week2"), "week2"))
    full = exams.read("week2").max_score
    scores, report = marks_of(course, "week2")
    assert scores == {"ada": full, "bob": full}
    assert report.clean
    # What is shown of ada's has what was given to ada; an unmodified nbgrader knows nothing of that cell.
    shown = {
        student: nbformat.read(course / "autograded" / student / "week2" / "week2.ipynb", 4)
        for student in ("ada", "bob")
    }
    own = [cell for cell in shown["ada"].cells if cell.id == "w2-given"]
    assert [cell.source for cell in own] == [variants.own_cell("w2-", variants.recorded("week2", "ada", course))[1]]
    assert [cell.metadata for cell in own] == [{}]
    assert not [cell for cell in shown["bob"].cells if cell.id == "w2-given"]
    # The draw is part of the exam: nobody is graded again without need, and ada is when the record changes.
    assert marks_of(course, "week2")[1].graded_now == 0
    record = course / "variants" / "week2" / "ada.json"
    values = json.loads(record.read_text())
    offered = variants.choices("week2")["num_slots"]
    record.write_text(json.dumps({**values, "num_slots": next(v for v in offered if v != values["num_slots"])}))
    scores, report = marks_of(course, "week2")
    assert (scores, report.graded_now) == ({"ada": full, "bob": full}, 1)
    # A record that cannot be read: no grade by other parameters, and the old score is kept and labelled.
    record.write_text("{")
    scores, report = marks_of(course, "week2")
    assert [(student, state) for student, state, _ in report.troubles] == [("ada", "needs a person")]
    assert "must hold what ada was given" in report.table()
    assert scores == {"ada": full, "bob": full}


def probing_exam(folder, values):
    """Write an exam with two tests that only look at the parameters; return the folder of all sources."""
    folder.mkdir(parents=True)
    probe = f"assert (num_ranks, context_len) == {(values['num_ranks'], values['context_len'])}"
    tests = {"w5-t1-visible": probe, "w5-t1-hidden": f"### BEGIN HIDDEN TESTS\n{probe}\n### END HIDDEN TESTS"}
    exam = mutants.solution("week5")
    exam.cells = [cell for cell in exam.cells if not reach.is_test(cell) or cell.id in tests]
    for cell in exam.cells:
        cell.source = tests.get(cell.id, cell.source)
    nbformat.write(exam, folder / "week5.ipynb")
    return folder.parent


@pytest.mark.grading
def test_the_record_decides_and_not_the_submission(tmp_path):
    course = tmp_path / "class"
    # A draw that differs from the lab's own values in both that are looked at, for four students.
    offered = variants.choices("week5")
    own = {"num_ranks": 4, "context_len": 2000}
    values = {name: next(v for v in options if v != own.get(name)) for name, options in offered.items()}
    (course / "variants" / "week5").mkdir(parents=True)
    source = probing_exam(tmp_path / "instructor" / "week5", values)
    instance = notebooks.inject(mutants.released("week5"), values)
    changed, thrown_away, wrong_place = (copy.deepcopy(instance) for _ in range(3))
    lies = "num_ranks = 3\ncontext_len = 1"
    for cell in changed.cells:
        cell.source = lies if cell.id == "w5-given" else cell.source
    thrown_away.cells = [cell for cell in thrown_away.cells if cell.id != "w5-given"]
    moved = next(cell for cell in wrong_place.cells if cell.id == "w5-given")
    wrong_place.cells.remove(moved)
    wrong_place.cells.append(moved)
    full = exams.read("week5", source).max_score
    for number, handed_in in enumerate((instance, changed, thrown_away, wrong_place)):
        (course / "variants" / "week5" / f"ada{number}.json").write_text(json.dumps(values))
        hand_in(course, f"ada{number}", "week5", handed_in)
    # The control: somebody without a draw brings the cell along and is graded with the lab's own values.
    hand_in(course, "eve", "week5", instance)
    full = exams.read("week5", source).max_score
    assert marks_of(course, "week5", source)[0] == {**{f"ada{number}": full for number in range(4)}, "eve": 0}


def test_nbgraders_own_autograde_reads_the_record_too(tmp_path):
    from traitlets.config import Config

    values = variants.give("week5", "ada", tmp_path)
    step = GiveParameters(config=Config({"GiveParameters": {"course": str(tmp_path)}}))
    lies = notebooks.inject(mutants.released("week5"), {"num_ranks": 3})
    for student, expected in (("ada", [variants.own_cell("w5-", values)[1]]), ("eve", [])):
        made, _ = step.preprocess(lies, {"nbgrader": {"assignment": "week5", "student": student}})
        own = [cell for cell in made.cells if cell.id == "w5-given"]
        assert [cell.source for cell in own] == expected
        assert not any("nbgrader" in cell.metadata for cell in own)


def test_a_students_draws_are_exported_and_erased(tmp_path):
    for student in ("quentin", "bob"):
        variants.give("week5", student, tmp_path)
    classroom = Classroom.open(tmp_path)
    with zipfile.ZipFile(privacy.export(classroom, "quentin", tmp_path / "out" / "one.zip")) as archive:
        assert json.loads(archive.read("variants/week5/quentin.json")) == variants.recorded(
            "week5", "quentin", tmp_path
        )
        assert "bob" not in " ".join(archive.namelist())
    assert privacy.erase(classroom, "quentin") == 1
    assert variants.given("week5", tmp_path).keys() == {"bob"}


def test_who_moved_is_asked_of_each_students_own_exam(tmp_path):
    template = load("week5")
    variants.give("week5", "ada", tmp_path)
    classroom = Classroom.open(tmp_path)
    mine = run.exam_hash(classroom, template, "ada")
    assert mine != template.exam_hash == run.exam_hash(classroom, template, "bob")
    tests = tuple(TestResult(c.cell_id, 0.0, c.points, Trust.ISOLATED, False) for c in template.of(Role.TEST))
    better = (replace(tests[0], score=1.0), *tests[1:])

    def attempt(student, exam, tests):
        return Attempt("week5", student, "content", exam, State.GRADED, tests)

    with Database(classroom.db_url) as database:

        def record(connection):
            for student, now in (("ada", mine), ("bob", template.exam_hash)):
                ledger.write(connection, attempt(student, "an older exam", tests), "new")
                ledger.write(connection, attempt(student, now, better), "new")

        database.write(record)
        with database.reading() as connection:
            asked = partial(run.exam_hash, classroom, template)
            found = regrade.moves(connection, "week5", template.exam_hash, asked)
    assert [(move.student, move.change) for move in found] == [("ada", 1.0), ("bob", 1.0)]


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
    assert main(["variant", *arguments, "--course", str(tmp_path), "--out", str(tmp_path)]) == 2
    told = capsys.readouterr().err
    assert words in told
    assert len(told.splitlines()) == 1
    assert list(tmp_path.iterdir()) == []
