"""The labs: released as they are written, full marks for the solution, none for nothing, and each
misconception found, named, and paid for in its own task only."""

import subprocess
import sys
from pathlib import Path

import pytest

from lantern_grading import archive, leaks, mutants, regions
from lantern_lib.checks import CheckFailed, NotWritten

ROOT = Path(__file__).resolve().parents[1]
WEEK1 = mutants.load(ROOT / "tests" / "mutants" / "week1.toml")
TASKS = {f"w1-t{number}-" for number in range(1, 8)}


def command(*arguments, timeout=120):
    # A process of its own: nbgrader's own warnings are not this project's.
    return subprocess.run(
        [sys.executable, "-m", "lantern_grading", *map(str, arguments)],
        cwd=ROOT, capture_output=True, text=True, timeout=timeout, check=True,
    )  # fmt: skip


def files(folder):
    return {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.fixture
def in_week1(monkeypatch):
    monkeypatch.chdir(ROOT / "solutions" / "week1")


def test_release_equals_what_is_committed(tmp_path):
    command("release", "week1", "--labs", tmp_path)
    made, committed = files(tmp_path / "week1"), files(ROOT / "labs" / "week1")
    assert made.keys() == committed.keys()
    changed = [str(name) for name in made if made[name] != committed[name]]
    assert not changed, "run `python -m lantern_grading release week1`"


def test_points_are_those_the_lab_promises():
    cells = mutants.solution("week1").cells
    prompts = "\n".join(cell.source for cell in cells if cell.cell_type == "markdown")
    points: dict[str, float] = {}
    for cell in cells:
        grading = cell.metadata.get("nbgrader", {})
        if grading.get("grade"):
            task = grading["grade_id"].split("-")[1]
            points[task] = points.get(task, 0) + grading["points"]
    assert sum(points.values()) == 40
    for task, count in points.items():
        assert f"## Task {task[1:]}." in prompts
        heading = next(line for line in prompts.splitlines() if line.startswith(f"## Task {task[1:]}."))
        assert f"({count:g} points" in heading
        assert any(
            line.startswith(f"| {task[1:]} |") and line.endswith(f"| {count:g} |") for line in prompts.splitlines()
        )


def test_sources_are_stripped_and_named():
    for notebook in (mutants.solution("week1"), mutants.released("week1")):
        assert notebook.metadata.kernelspec.name == "python3"
        for cell in notebook.cells:
            if cell.cell_type == "code":
                assert cell.outputs == []
                assert cell.execution_count is None
            grading = cell.metadata.get("nbgrader")
            assert grading is None or grading["grade_id"] == cell.id
            assert grading is None or grading["schema_version"] == 3


@pytest.mark.parametrize(
    ("model", "accelerator", "tp_size"),
    [("lantern-70b", "H100", 4), ("qwen3-32b", "A100", 2), ("gemma-2-9b", "Trainium2", 1), ("lantern-70b", "A100", 1)],
)
def test_the_solution_passes_whatever_was_given(in_week1, model, accelerator, tp_size):
    given = f"model_name, accelerator_name, tp_size = {model!r}, {accelerator!r}, {tp_size}"
    assert mutants.run(mutants.solution("week1"), {"w1-parameters": given}) == {}


def test_papermill_gives_another_model_and_machine(tmp_path):
    subprocess.run(
        [sys.executable, "-m", "papermill", "solutions/week1/week1.ipynb", str(tmp_path / "out.ipynb"),
         "--cwd", "solutions/week1", "--no-progress-bar", "--start-timeout", "30", "--execution-timeout", "30",
         "-p", "model_name", "llama-3.1-8b", "-p", "accelerator_name", "H200", "-p", "tp_size", "1"],
        cwd=ROOT, capture_output=True, timeout=120, check=True,
    )  # fmt: skip
    assert "llama-3.1-8b: 32 layers" in (tmp_path / "out.ipynb").read_text(encoding="utf-8")


def test_the_untouched_lab_gets_nothing_and_says_what_to_write(in_week1):
    # The hidden tests of the solution, run against the stubs of the release.
    solution, stubs = mutants.solution("week1"), {cell.id: cell.source for cell in mutants.released("week1").cells}
    answers = [cell for cell in solution.cells if cell.metadata.get("nbgrader", {}).get("solution")]
    raised = mutants.run(solution, {cell.id: stubs[cell.id] for cell in answers})
    tests = {cell.id for cell in solution.cells if cell.metadata.get("nbgrader", {}).get("grade")} - {"w1-t8-written"}
    assert raised.keys() == tests
    for cell, error in raised.items():
        assert isinstance(error, NotWritten), cell
        assert str(error).startswith(f"Task {cell[4]}: "), cell
        assert "is not written yet" in str(error)


def test_every_stub_names_its_task():
    stubs = [
        (cell.id, line)
        for cell in mutants.released("week1").cells
        for line in cell.source.splitlines()
        if line.strip().startswith("raise NotImplementedError")
    ]
    functions = [line.split('"')[1] for _, line in stubs]
    assert functions == [
        "Task 1: num_parameters", "Task 2: weights_used", "Task 2: flops_per_token", "Task 2: prompt_flops",
        "Task 3: kv_bytes_per_token", "Task 4: usable_kv_bytes", "Task 4: max_concurrent_sequences",
        "Task 5: ridge_point", "Task 5: arithmetic_intensity", "Task 6: prefill_seconds",
        "Task 6: decode_seconds_per_token", "Task 7: model_from_config", "Task 7: report",
    ]  # fmt: skip


def test_every_task_has_mutants_with_names_of_their_own():
    assert {mutant.task for mutant in WEEK1} == TASKS
    assert len({mutant.name for mutant in WEEK1}) == len(WEEK1) >= 14


@pytest.mark.parametrize("mutant", WEEK1, ids=lambda mutant: mutant.name)
def test_a_misconception_loses_its_task_only_and_is_named(in_week1, mutant):
    solution = mutants.solution("week1")
    source = next(cell.source for cell in solution.cells if cell.id == mutant.cell)
    raised = mutants.run(solution, {mutant.cell: mutant.applied(source)})
    assert all(isinstance(error, CheckFailed) for error in raised.values())
    assert {cell for cell in raised if not cell.startswith(mutant.task)} == set()
    hidden = [str(error) for cell, error in raised.items() if not cell.endswith("-visible")]
    assert any(mutant.says in text for text in hidden), raised


@pytest.mark.parametrize("task", sorted(TASKS))
def test_no_failure_is_inherited(in_week1, task):
    # All other tasks left unwritten, this one right: its tests pass.
    solution, stubs = mutants.solution("week1"), {cell.id: cell.source for cell in mutants.released("week1").cells}
    others = {
        cell.id: stubs[cell.id]
        for cell in solution.cells
        if cell.metadata.get("nbgrader", {}).get("solution") and not cell.id.startswith(task)
    }
    raised = mutants.run(solution, others)
    assert [cell for cell in raised if cell.startswith(task)] == []


def test_an_answer_by_import_is_not_taken(in_week1):
    leaning = "from lantern_lib import kv_cache\ndef kv_bytes_per_token(model): return kv_cache.bytes_per_token(model)"
    raised = mutants.run(mutants.solution("week1"), {"w1-t3-cache": leaning})
    assert raised.keys() == {"w1-t3-hidden"}
    assert "leans on lantern_lib.kv_cache" in str(raised["w1-t3-hidden"])


def test_labs_import_no_module_that_holds_answers():
    answers = ("transformer", "kv_cache", "roofline", "collectives", "step", "hf_config", "from_hf_config")
    for cell in mutants.solution("week1").cells:
        if cell.cell_type == "code":
            imports = [line for line in cell.source.splitlines() if line.lstrip().startswith(("import ", "from "))]
            assert not [line for line in imports for name in answers if name in line.replace(",", " ").split()]


def test_no_hidden_test_and_no_solution_is_released(tmp_path):
    hidden, solutions = leaks.secrets(regions.HIDDEN), leaks.secrets(regions.SOLUTION)
    assert len(hidden) > 200
    assert len(solutions) > 50
    assert leaks.find(ROOT / "labs", hidden | solutions) == []
    assert leaks.find(ROOT / "labs", ["54 conversations of 8,192 tokens fit"]) == []  # the written model answer
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
        "README.md", "pyproject.toml", "LICENSE", "LICENSE-TEXT", "labs", "lantern_lib",
    }  # fmt: skip
    assert {"labs/week1/week1.ipynb", "labs/week1/configs/gemma-2-9b.json", "lantern_lib/checks.py"} <= held.keys()
    assert not [name for name in held if "solutions" in name or "test" in name or "__pycache__" in name]


def test_another_ending_is_refused(tmp_path):
    with pytest.raises(ValueError, match=r"out must end in \.zip or \.tar\.gz, got 'a\.rar'"):
        archive.write(tmp_path / "a.rar")
