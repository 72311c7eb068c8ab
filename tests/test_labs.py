"""The labs: released as they are written, full marks for the solution, none for nothing, and each
misconception found, named, and paid for in its own task only."""

import functools
import re
import subprocess
import sys
from pathlib import Path

import papermill
import pytest
from lantern_book.kernels import kernel_config

from lantern_grading import archive, leaks, mutants, reach, regions
from lantern_lib import labs
from lantern_lib.checks import CheckFailed, NotWritten

ROOT = Path(__file__).resolve().parents[1]
LABS = [mutants.load(path) for path in sorted((ROOT / "tests" / "mutants").glob("week*.toml"))]
EVERY_LAB = pytest.mark.parametrize("lab", LABS, ids=lambda lab: lab.name)
STUB = re.compile(r'^\s*raise NotImplementedError\("Task (\d+): (\w+(?:\.\w+)?)"\)')


def command(*arguments, timeout=120):
    # A process of its own: nbgrader's own warnings are not this project's.
    return subprocess.run(
        [sys.executable, "-m", "lantern_grading", *map(str, arguments)],
        cwd=ROOT, capture_output=True, text=True, timeout=timeout, check=True,
    )  # fmt: skip


def files(folder):
    return {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def task_of(cell_id):
    return "-".join(cell_id.split("-")[:2]) + "-"


def grading(cell):
    return cell.metadata.get("nbgrader", {})


def solution_cells(notebook):
    return [cell for cell in notebook.cells if grading(cell).get("solution") and cell.cell_type == "code"]


def stubs(lab):
    return {cell.id: cell.source for cell in mutants.released(lab.name).cells}


def parameters(lab, given):
    """The source of the parameters cell with other values."""
    source = next(cell.source for cell in mutants.solution(lab.name).cells if cell.id == f"{lab.prefix}parameters")
    for name, value in given.items():
        source, count = re.subn(rf"^{name} = .*$", f"{name} = {value!r}", source, flags=re.M)
        assert count == 1, f"{name} is no parameter of {lab.name}"
    return {f"{lab.prefix}parameters": source}


@functools.cache
def reached(name):
    """For each test cell of a lab: the solution cells and parameters whose values it reads. Call it inside the lab."""
    return reach.reach(mutants.solution(name))


@pytest.fixture
def inside(monkeypatch):
    """Return a function that goes to the folder of a lab's solution, where it finds its other files."""
    return lambda lab: monkeypatch.chdir(ROOT / "solutions" / lab.name)


def test_every_solution_is_tested():
    assert [lab.name for lab in LABS] == sorted(path.parent.name for path in ROOT.glob("solutions/*/*.ipynb"))


def test_releases_equal_what_is_committed(tmp_path):
    command("release", *(lab.name for lab in LABS), "--labs", tmp_path, timeout=300)
    made, committed = files(tmp_path), files(ROOT / "labs")
    assert made.keys() == committed.keys()
    changed = {name.parts[0] for name in made if made[name] != committed[name]}
    assert not changed, f"run `python -m lantern_grading release {' '.join(sorted(changed))}`"


@EVERY_LAB
def test_points_are_those_the_lab_promises(lab):
    cells = mutants.solution(lab.name).cells
    prompts = "\n".join(cell.source for cell in cells if cell.cell_type == "markdown")
    points: dict[str, float] = {}
    for cell in cells:
        if grading(cell).get("grade"):
            task = cell.id.split("-")[1]
            points[task] = points.get(task, 0) + grading(cell)["points"]
    assert sum(points.values()) == lab.points
    for task, count in points.items():
        assert f"## Task {task[1:]}." in prompts
        heading = next(line for line in prompts.splitlines() if line.startswith(f"## Task {task[1:]}."))
        assert f"({count:g} points" in heading
        assert any(
            line.startswith(f"| {task[1:]} |") and line.endswith(f"| {count:g} |") for line in prompts.splitlines()
        )


@EVERY_LAB
def test_sources_are_stripped_and_named(lab):
    for notebook in (mutants.solution(lab.name), mutants.released(lab.name)):
        assert notebook.metadata.kernelspec.name == "python3"
        for cell in notebook.cells:
            if cell.cell_type == "code":
                assert cell.outputs == []
                assert cell.execution_count is None
            if grading(cell):
                assert grading(cell)["grade_id"] == cell.id
                assert cell.id.startswith(lab.prefix)
                assert grading(cell)["schema_version"] == 3


GIVEN = [(lab, given) for lab in LABS for given in [{}, *lab.given]]


@pytest.mark.parametrize(("lab", "given"), GIVEN, ids=[f"{lab.name}-{given}" for lab, given in GIVEN])
def test_the_solution_passes_whatever_was_given(inside, lab, given):
    inside(lab)
    assert mutants.run(mutants.solution(lab.name), parameters(lab, given)) == {}


def test_papermill_gives_other_parameters(tmp_path):
    # One lab stands for all: how papermill gives them does not differ, and what they do is tested above.
    lab = LABS[0]
    notebook = papermill.execute_notebook(
        ROOT / "solutions" / lab.name / f"{lab.name}.ipynb", None, lab.given[0], cwd=ROOT / "solutions" / lab.name,
        progress_bar=False, execution_timeout=60, config=kernel_config(str(tmp_path)),
    )  # fmt: skip
    assert any("injected-parameters" in cell.metadata.get("tags", []) for cell in notebook.cells)


@EVERY_LAB
def test_papermill_finds_the_parameters(lab):
    found = papermill.inspect_notebook(ROOT / "solutions" / lab.name / f"{lab.name}.ipynb")
    assert {name for given in lab.given for name in given} <= set(found)


@EVERY_LAB
def test_the_untouched_lab_gets_nothing_and_says_what_to_write(inside, lab):
    # The hidden tests of the solution, run against the stubs of the release.
    inside(lab)
    solution = mutants.solution(lab.name)
    raised = mutants.run(solution, {cell.id: stubs(lab)[cell.id] for cell in solution_cells(solution)})
    tests = {cell.id for cell in solution.cells if grading(cell).get("grade") and not grading(cell)["solution"]}
    assert raised.keys() == tests
    for cell, error in raised.items():
        assert isinstance(error, NotWritten), (cell, error)
        assert str(error).startswith(f"Task {cell.split('-')[1][1:]}: "), cell
        assert "is not written yet" in str(error)


@EVERY_LAB
def test_every_stub_names_its_task(lab):
    released = stubs(lab)
    for cell in solution_cells(mutants.solution(lab.name)):
        found = [STUB.match(line) for line in released[cell.id].splitlines() if "NotImplementedError" in line]
        assert found, f"{cell.id} has no stub"
        for match in found:
            assert match, f"{cell.id} has a stub that does not say what to write"
            assert match[1] == cell.id.split("-")[1][1:]
            assert re.search(rf"^\s*(def|class) {match[2].split('.')[-1]}\b", released[cell.id], re.M)


MUTANTS = [
    pytest.param(lab, mutant, id=f"{lab.name}: {mutant.name}", marks=pytest.mark.xdist_group(lab.name))
    for lab in LABS
    for mutant in lab.mutants
]


@EVERY_LAB
def test_every_task_has_mutants_with_names_of_their_own(lab):
    tasks = {task_of(cell.id) for cell in solution_cells(mutants.solution(lab.name))}
    assert {mutant.task for mutant in lab.mutants} == tasks
    assert len({mutant.name for mutant in lab.mutants}) == len(lab.mutants) >= 10


def misled(lab, mutant, only=None):
    """Run a solution with a misconception in it."""
    solution = mutants.solution(lab.name)
    source = next(cell.source for cell in solution.cells if cell.id == mutant.cell)
    return mutants.run(solution, {mutant.cell: mutant.applied(source)}, only)


@pytest.mark.parametrize(("lab", "mutant"), MUTANTS)
def test_a_misconception_loses_its_task_only_and_is_named(inside, lab, mutant):
    inside(lab)
    # Tests that read nothing of the changed cell end as they do for the solution; the test below holds that.
    touched = {test for test, origins in reached(lab.name).items() if mutant.cell in origins}
    assert {test for test in reached(lab.name) if test.startswith(mutant.task)} <= touched
    raised = misled(lab, mutant, touched)
    assert all(isinstance(error, CheckFailed) for error in raised.values()), raised
    assert {cell for cell in raised if not cell.startswith(mutant.task)} == set(), raised
    hidden = [str(error) for cell, error in raised.items() if not cell.endswith("-visible")]
    assert any(mutant.says in text for text in hidden), raised


@EVERY_LAB
def test_tests_that_read_nothing_of_a_cell_need_not_run(inside, lab):
    inside(lab)
    for mutant in (lab.mutants[0], lab.mutants[-1]):
        touched = {test for test, origins in reached(lab.name).items() if mutant.cell in origins}
        assert touched < reached(lab.name).keys()
        in_part, whole = misled(lab, mutant, touched), misled(lab, mutant)
        assert {cell: str(error) for cell, error in in_part.items()} == {c: str(e) for c, e in whole.items()}


ALL_TASKS = [
    (lab, task) for lab in LABS for task in sorted({task_of(c.id) for c in solution_cells(mutants.solution(lab.name))})
]


@pytest.mark.parametrize(("lab", "task"), ALL_TASKS, ids=[task for _, task in ALL_TASKS])
def test_no_failure_is_inherited(inside, lab, task):
    # All other tasks left unwritten, this one right: its tests pass.
    inside(lab)
    solution = mutants.solution(lab.name)
    others = {cell.id: stubs(lab)[cell.id] for cell in solution_cells(solution) if not cell.id.startswith(task)}
    own = {cell.id for cell in solution.cells if reach.is_test(cell) and cell.id.startswith(task)}
    assert own
    assert mutants.run(solution, others, own) == {}


@EVERY_LAB
def test_labs_import_no_module_that_holds_answers(lab):
    """The cells that a student's code shares its names with; tests may import what they like as an oracle."""
    allowed = labs.allowed_modules(int(lab.name.removeprefix("week"))) | {"lantern_lib.labs", "lantern_lib.checks"}
    for cell in mutants.solution(lab.name).cells:
        if cell.cell_type != "code" or grading(cell).get("grade"):
            continue
        if cell.id == f"{lab.prefix}measure":
            continue  # it stands after the last task; an answer that leans on what it imports is still refused
        for module in re.findall(r"^\s*from (lantern_lib\.[\w.]+) import", cell.source, re.M):
            assert module in allowed, f"{cell.id} imports {module}"
        for names in re.findall(r"^\s*from lantern_lib import (.+)$", cell.source, re.M):
            for name in names.split(","):
                module = f"lantern_lib.{name.strip()}"
                is_module = (ROOT / "lantern_lib" / f"{name.strip()}.py").exists() or (
                    ROOT / "lantern_lib" / name.strip()
                ).is_dir()
                assert not is_module or module in allowed, f"{cell.id} imports {module}"
        assert "from_hf_config" not in cell.source or lab.name != "week1"


def test_an_answer_by_import_is_not_taken(inside):
    inside(LABS[0])
    leaning = "from lantern_lib import kv_cache\ndef kv_bytes_per_token(model): return kv_cache.bytes_per_token(model)"
    raised = mutants.run(mutants.solution("week1"), {"w1-t3-cache": leaning}, {"w1-t3-visible", "w1-t3-hidden"})
    assert raised.keys() == {"w1-t3-hidden"}
    assert "leans on lantern_lib.kv_cache" in str(raised["w1-t3-hidden"])


def test_no_hidden_test_and_no_solution_is_released(tmp_path):
    hidden, solutions = leaks.secrets(regions.HIDDEN), leaks.secrets(regions.SOLUTION)
    assert len(hidden) > 200
    assert len(solutions) > 50
    assert leaks.find(ROOT / "labs", hidden | solutions) == []
    written = [
        cell.source.split("\n")[0]
        for lab in LABS
        for cell in mutants.solution(lab.name).cells
        if cell.cell_type == "markdown" and grading(cell).get("grade")
    ]
    assert len(written) == len(LABS)
    assert leaks.find(ROOT / "labs", written) == []  # the model answers to the written questions
    for name in ("lantern.zip", "lantern.tar.gz"):
        # The library holds formulas of its own, so solutions are looked for in the labs above only.
        assert leaks.find(archive.write(tmp_path / name), hidden) == []


def test_leaks_are_found_where_they_are(tmp_path):
    # The control of the test above: the same search finds every hidden line where it does stand.
    hidden = leaks.secrets(regions.HIDDEN)
    assert {text for _, text in leaks.find(ROOT / "solutions", hidden)} == hidden
    (tmp_path / "page.html").write_text("<pre><span>secret</span> <span>=</span> <span>a &lt; b</span></pre>")
    assert leaks.find(tmp_path, ["secret = a < b"]) == [(str(tmp_path / "page.html"), "secret = a < b")]
    (tmp_path / "page.html").unlink()
    (tmp_path / "cell.json").write_text(r'{"source": "print(\"secret\")"}')
    assert leaks.find(tmp_path, ['print("secret")']) != []


def test_the_student_archive_is_the_same_every_time_and_holds_what_it_should(tmp_path):
    for name in ("a.zip", "a.tar.gz"):
        first, second = archive.write(tmp_path / name), archive.write(tmp_path / "again" / name)
        assert first.read_bytes() == second.read_bytes()
    held = archive.contents()
    assert {name.split("/")[0] for name in held} <= {
        "README.md", "AGENTS.md", "Makefile", "pyproject.toml", "LICENSE", "LICENSE-TEXT", "labs", "lantern_lib",
    }  # fmt: skip
    assert {"labs/week1/week1.ipynb", "labs/week1/configs/gemma-2-9b.json", "lantern_lib/checks.py"} <= held.keys()
    assert not [name for name in held if "solutions" in name or "test" in name or "__pycache__" in name]


def test_another_ending_is_refused(tmp_path):
    with pytest.raises(ValueError, match=r"out must end in \.zip or \.tar\.gz, got 'a\.rar'"):
        archive.write(tmp_path / "a.rar")
