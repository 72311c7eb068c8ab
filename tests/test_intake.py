"""Honest but broken submissions come through as their author meant them, and the rest is refused in words."""

from __future__ import annotations

import codecs
import copy
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from lantern_grading import mutants
from lantern_grading.intake import Rejection, read_paper
from lantern_grading.outcome import Paper
from lantern_grading.reading import HandedIn, content_hash, read_folder
from lantern_grading.template import Role, Template, load

Notebook = dict[str, Any]


@pytest.fixture(scope="module")
def template() -> Template:
    return load("week1")


@pytest.fixture(scope="module")
def filled() -> Notebook:
    """The reference's answers in the released notebook, as plain JSON."""
    return json.loads(json.dumps(mutants.submission("week1")))


def handed_in(**files: bytes) -> HandedIn:
    listed = tuple(files.items())
    return HandedIn(listed, content_hash(listed))


def as_bytes(notebook: Notebook) -> bytes:
    return json.dumps(notebook, ensure_ascii=False).encode()


def only(notebook: Notebook, name: str = "week1.ipynb") -> HandedIn:
    return handed_in(**{name: as_bytes(notebook)})


def answers(paper: Paper) -> dict[str, str]:
    return {cell.cell_id: cell.source for cell in paper.cells if cell.cell_id}


def cell_of(notebook: Notebook, name: str) -> Any:
    return next(cell for cell in notebook["cells"] if cell["id"] == name)


def accepted(submission: HandedIn, template: Template) -> Paper:
    paper = read_paper(submission, template)
    assert isinstance(paper, Paper), paper
    return paper


@pytest.fixture(scope="module")
def meant(filled: Notebook, template: Template) -> dict[str, str]:
    """What the reference answers, taken from the notebook without the code under test."""
    wanted = {cell.cell_id for cell in template.of(Role.ANSWER, Role.WRITTEN)}
    return {cell["id"]: "".join(cell["source"]) for cell in filled["cells"] if cell["id"] in wanted}


def test_a_clean_submission_needs_no_repair(filled: Notebook, template: Template, meant: dict[str, str]) -> None:
    paper = accepted(only(filled), template)
    assert answers(paper) == meant
    assert len(meant) == 8
    assert paper.notes == ()
    assert [cell for cell in paper.cells if not cell.cell_id] == []  # nothing of the instructor's is taken from it


def no_metadata(notebook: Notebook) -> None:
    for cell in notebook["cells"]:
        cell["metadata"] = {}
        del cell["id"]
    notebook["nbformat_minor"] = 4


def no_metadata_shuffled_outputs(notebook: Notebook) -> None:
    no_metadata(notebook)
    for cell in notebook["cells"]:
        cell["metadata"] = {"id": "x" * 9, "colab": {"base_uri": "https://example.org"}}


def old_format(notebook: Notebook) -> None:
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            cell["input"] = cell.pop("source")
            cell["language"] = "python"
        del cell["id"]
    notebook["worksheets"] = [{"cells": notebook.pop("cells")}]
    notebook["nbformat"] = 3


def graded_cells_deleted(notebook: Notebook) -> None:
    notebook["cells"] = [cell for cell in notebook["cells"] if not cell["id"].endswith(("visible", "hidden", "input"))]


def visible_changed(notebook: Notebook) -> None:
    cell_of(notebook, "w1-t1-visible")["source"] = "print('all is well')"


def points_changed(notebook: Notebook) -> None:
    for cell in notebook["cells"]:
        about = cell["metadata"].get("nbgrader", {})
        about.update(points=1000, schema_version=99, locked=False)
        cell["metadata"]["tags"] = ["lantern-in-kernel", "raises-exception", "skip-execution"]


def other_kernel(notebook: Notebook) -> None:
    notebook["metadata"]["kernelspec"] = {"name": "sagemath", "display_name": "Sage", "language": "sage"}


def no_kernel(notebook: Notebook) -> None:
    notebook["metadata"] = {}


def schema_number(notebook: Notebook) -> None:
    notebook["nbformat"], notebook["nbformat_minor"] = 7, 99


def answer_turned_to_markdown(notebook: Notebook) -> None:
    cell_of(notebook, "w1-t3-cache")["cell_type"] = "markdown"


def setup_deleted(notebook: Notebook) -> None:
    notebook["cells"].remove(cell_of(notebook, "w1-setup"))


def windows(notebook: Notebook) -> None:
    for cell in notebook["cells"]:
        cell["source"] = "".join(cell["source"]).replace("\n", "\r\n")


def lists_of_lines(notebook: Notebook) -> None:
    for cell in notebook["cells"]:
        cell["source"] = "".join(cell["source"]).splitlines(keepends=True)


def duplicate_ids(notebook: Notebook) -> None:
    for cell in notebook["cells"]:
        if "nbgrader" not in cell["metadata"]:
            cell["id"] = "same"


def copied_cells(notebook: Notebook) -> None:
    for name in ("w1-t1-parameters", "w1-t1-visible", "w1-setup", "w1-t8-written"):
        at = notebook["cells"].index(cell_of(notebook, name))
        notebook["cells"].insert(at + 1, copy.deepcopy(notebook["cells"][at]))


def names_swapped(notebook: Notebook) -> None:
    """Two answers bear each other's name, as after a paste into the wrong cell."""
    one, two = cell_of(notebook, "w1-t1-parameters"), cell_of(notebook, "w1-t3-cache")
    one["source"], two["source"] = two["source"], one["source"]


def junk_entries(notebook: Notebook) -> None:
    notebook["cells"][1:1] = [None, "text", {"cell_type": "code", "source": 7}]


def hostile_metadata(notebook: Notebook) -> None:
    for number, cell in enumerate(notebook["cells"]):
        if "nbgrader" not in cell["metadata"]:
            cell["metadata"] = [1, 2] if number % 2 else {"nbgrader": "x", "tags": {"a": 1}}


@pytest.mark.parametrize(
    ("change", "note"),
    [
        (no_metadata, "had lost the name"),
        (no_metadata_shuffled_outputs, "had lost the name"),
        (old_format, "old format"),
        (graded_cells_deleted, "was deleted"),
        (visible_changed, "was changed; the original was used"),
        (points_changed, ""),
        (other_kernel, ""),
        (no_kernel, ""),
        (schema_number, ""),
        (answer_turned_to_markdown, "had become markdown"),
        (setup_deleted, "w1-setup was deleted"),
        (windows, "Windows"),
        (lists_of_lines, ""),
        (duplicate_ids, ""),
        (copied_cells, "2 cells with the name w1-t1-parameters"),
        (names_swapped, "had lost the name"),
        (junk_entries, "no cells"),
        (hostile_metadata, ""),
    ],
)  # fmt: skip
def test_what_was_broken_on_the_way_is_repaired(
    filled: Notebook, template: Template, meant: dict[str, str], change: Callable[[Notebook], None], note: str
) -> None:
    notebook = copy.deepcopy(filled)
    change(notebook)
    paper = accepted(only(notebook), template)
    assert answers(paper) == meant
    assert not note or note in " ".join(paper.notes), paper.notes
    assert note or paper.notes == ()


@pytest.mark.parametrize(
    ("encode", "note"),
    [
        (lambda content: codecs.BOM_UTF8 + content, "byte order mark"),
        (lambda content: content.decode().replace("\n", "\r\n").encode(), ""),
        (lambda content: content.decode().encode("utf-16"), "UTF-16"),
        (lambda content: content.decode().encode("latin-1", "replace"), ""),
        (lambda content: b"\n\n  " + content + b"\n", ""),
    ],
)
def test_other_encodings_are_read(
    filled: Notebook, template: Template, meant: dict[str, str], encode: Callable[[bytes], bytes], note: str
) -> None:
    paper = accepted(handed_in(**{"week1.ipynb": encode(as_bytes(filled))}), template)
    assert answers(paper) == meant
    assert note in " ".join(paper.notes)


def test_latin_1_keeps_its_letters(filled: Notebook, template: Template) -> None:
    notebook = copy.deepcopy(filled)
    cell_of(notebook, "w1-t8-written")["source"] = "Größe, café, naïve"
    paper = accepted(handed_in(**{"week1.ipynb": as_bytes(notebook).decode().encode("latin-1", "replace")}), template)
    assert answers(paper)["w1-t8-written"] == "Größe, café, naïve"
    assert "Latin-1" in " ".join(paper.notes)


@pytest.mark.parametrize(
    "name",
    [
        "week1 (1).ipynb",
        "week1-2.ipynb",
        "Week1_final.IPYNB",
        "week1.ipynb.txt",
        "sub/week1.ipynb",
        "arbeit [ü] +.ipynb",
    ],
)
def test_a_renamed_notebook_is_found(filled: Notebook, template: Template, meant: dict[str, str], name: str) -> None:
    paper = accepted(only(filled, name), template)
    assert answers(paper) == meant
    assert paper.notes == (f"The notebook was called {name}; it was taken for week1.ipynb.",)


def test_of_several_notebooks_the_one_with_the_answers_counts(
    filled: Notebook, template: Template, meant: dict[str, str]
) -> None:
    untouched = as_bytes(json.loads(json.dumps(mutants.released("week1"))))
    files = {
        "week1.ipynb": untouched,
        "week1-Copy1.ipynb": as_bytes(filled),
        "notes.ipynb": b'{"cells": []}',
        "broken.ipynb": b"{",
        ".ipynb_checkpoints/week1-checkpoint.ipynb": untouched,
    }
    paper = accepted(handed_in(**files), template)
    assert answers(paper) == meant
    assert "week1-Copy1.ipynb was graded" in " ".join(paper.notes)
    assert "broken.ipynb could not be read" in " ".join(paper.notes)


def test_a_copy_with_other_content_runs_as_the_student_saw_it(filled: Notebook, template: Template) -> None:
    notebook = copy.deepcopy(filled)
    at = notebook["cells"].index(cell_of(notebook, "w1-t1-visible"))
    scratch = copy.deepcopy(notebook["cells"][at])
    scratch["source"] = "print(num_parameters)"
    stub = copy.deepcopy(cell_of(notebook, "w1-t3-cache"))
    stub["source"] = next(cell.source for cell in template.cells if cell.cell_id == "w1-t3-cache")
    notebook["cells"].insert(at + 1, scratch)
    notebook["cells"].append(stub)  # the untouched copy comes last and does not win
    paper = accepted(only(notebook), template)
    assert [cell.source for cell in paper.cells if not cell.cell_id] == ["print(num_parameters)"]
    assert answers(paper)["w1-t3-cache"] == cell_of(notebook, "w1-t3-cache")["source"]


def test_a_solution_split_over_two_cells_keeps_both(filled: Notebook, template: Template) -> None:
    notebook = copy.deepcopy(filled)
    at = notebook["cells"].index(cell_of(notebook, "w1-t3-cache"))
    helper = {"cell_type": "code", "metadata": {}, "id": "abc", "source": "def helper():\n    return 2", "outputs": []}
    notebook["cells"].insert(at, helper)
    split = copy.deepcopy(notebook["cells"][at + 1])
    split["source"] = "# second half\nLATER = 1"
    notebook["cells"].insert(at + 2, split)
    paper = accepted(only(notebook), template)
    order = [(cell.cell_id, cell.source) for cell in paper.cells]
    place = next(number for number, (name, _) in enumerate(order) if name == "w1-t3-cache")
    assert order[place - 1] == ("", helper["source"])
    assert order[place + 1] == ("", split["source"])


def test_a_deleted_answer_is_said_so_and_the_rest_is_graded(
    filled: Notebook, template: Template, meant: dict[str, str]
) -> None:
    notebook = copy.deepcopy(filled)
    notebook["cells"].remove(cell_of(notebook, "w1-t3-cache"))
    paper = accepted(only(notebook), template)
    assert answers(paper) == {name: text for name, text in meant.items() if name != "w1-t3-cache"}
    assert paper.notes == ("There is no cell for w1-t3-cache.",)


def test_the_instructors_files_are_never_the_students(filled: Notebook, template: Template) -> None:
    files = {
        "week1.ipynb": as_bytes(filled),
        "configs/qwen3-32b.json": b"{}",
        "data.csv": b"1,2",
        "../outside.txt": b"x",
    }
    paper = accepted(handed_in(**files), template)
    assert paper.files == (("data.csv", b"1,2"),)
    assert paper.notes == ("The file configs/qwen3-32b.json was changed; the instructor's was used.",)


WORDS = {
    b"": "empty",
    b"\0\0\0\0": "empty",
    b"<<<<<<< mine\n{}\n=======\n[]\n>>>>>>> theirs\n": "merge conflict",
    b"<!DOCTYPE html><html>": "web page",
    b"PK\x03\x04rest": "archive",
    b"def f():\n    pass\n": "not a notebook",
    b"[1, 2]": "not a notebook",
    b"7": "not a notebook",
    b'{"a": 1}': "holds no cells",
    b'{"cells": 3}': "holds no cells",
    b'{"cells": [], "worksheets": {}}': "none of the answers",
    b'{"cells": [{"cell_type": "code", "source": "1 +': "breaks off",
    b'{"cells": [': "breaks off",
    b'{"cells": [}, ]}': "damaged in line 1",
    b'{"cells": ' + b"[" * 100_000: "nests too deeply",
    b'{"cells": [' + b",".join([b"{}"] * 3000) + b"]}": "3,000 cells",
    b'{"cells": [{"cell_type": "code", "source": "' + b"x" * 500_000 + b'"}]}': "400,000 characters",
    b'{"cells": [' + b"1" * 5000 + b"]}": "damaged",
}


@pytest.mark.parametrize("content", WORDS, ids=WORDS.values())
def test_what_cannot_be_read_is_refused_in_words(content: bytes, template: Template) -> None:
    refused = read_paper(handed_in(**{"week1.ipynb": content}), template)
    assert isinstance(refused, Rejection)
    assert WORDS[content] in refused.reason
    assert len(refused.reason) < 200


def test_the_notebook_of_another_week_is_named_as_such(template: Template) -> None:
    other = json.loads(json.dumps(mutants.submission("week2")))
    refused = read_paper(only(other), template)
    assert isinstance(refused, Rejection)
    assert "another week" in refused.reason


def test_no_notebook_at_all(template: Template) -> None:
    refused = read_paper(handed_in(**{"report.pdf": b"%PDF"}), template)
    assert isinstance(refused, Rejection)
    assert refused.reason == "No notebook was handed in."


def test_every_cut_of_a_notebook_is_read_or_refused(filled: Notebook, template: Template) -> None:
    whole = as_bytes(filled)
    for length in range(0, len(whole), len(whole) // 60):
        refused = read_paper(handed_in(**{"week1.ipynb": whole[:length]}), template)
        assert isinstance(refused, Rejection), length
        assert refused.reason


def test_a_folder_is_read_without_links_devices_and_giants(tmp_path: Path, filled: Notebook) -> None:
    secret = tmp_path / "secret.txt"
    secret.write_text("of somebody else")
    folder = tmp_path / "in"
    (folder / "sub").mkdir(parents=True)
    (folder / "week1.ipynb").write_bytes(as_bytes(filled))
    (folder / "sub" / "data.csv").write_text("1")
    (folder / "link.txt").symlink_to(secret)
    (folder / "up").symlink_to(tmp_path)
    os.mkfifo(folder / "pipe")
    with (folder / "huge.bin").open("wb") as file:
        file.truncate(10**12)  # a terabyte that takes no room
    (folder / "timestamp.txt").write_text("1999-01-01 00:00:00 UTC")
    read = read_folder(folder)
    assert [name for name, _ in read.files] == ["sub/data.csv", "week1.ipynb"]
    assert len(read.notes) == 4
    assert "1,000,000,000,000 bytes" in " ".join(read.notes)


def test_a_giant_notebook_is_refused_without_being_read(tmp_path: Path, template: Template) -> None:
    with (tmp_path / "week1.ipynb").open("wb") as file:
        file.truncate(10**12)
    refused = read_paper(read_folder(tmp_path), template)
    assert isinstance(refused, Rejection)
    assert "1,000,000,000,000 bytes" in refused.reason


def test_the_hash_depends_on_names_and_content_and_not_on_order(tmp_path: Path) -> None:
    files = [("a", b"1"), ("b", b"2")]
    assert content_hash(files) == content_hash(files[::-1])
    different = [files, [("a", b"12"), ("b", b"")], [("a1", b""), ("b", b"2")], [("a", b"1")]]
    assert len({content_hash(each) for each in different}) == 4


def test_the_template_is_the_release_and_keeps_the_hidden_tests_apart(template: Template) -> None:
    released = mutants.released("week1")
    assert [(cell.cell_id, cell.source) for cell in template.cells] == [(c.id, c.source) for c in released.cells]
    assert template.max_score == 100
    hidden = [cell for cell in template.cells if "HIDDEN" in cell.saved]
    assert len(hidden) >= 7
    assert not any("HIDDEN" in cell.source for cell in template.cells)


def test_a_changed_source_is_another_exam(tmp_path: Path, template: Template) -> None:
    for name, change in [("same", {}), ("points", {"points": 3}), ("tag", {"tags": ["lantern-in-kernel"]})]:
        notebook = mutants.solution("week1")
        cell = next(cell for cell in notebook.cells if cell.id == "w1-t1-visible")
        cell.metadata["nbgrader"].update({key: value for key, value in change.items() if key == "points"})
        cell.metadata.update({key: value for key, value in change.items() if key == "tags"})
        folder = tmp_path / name / "week1"
        (folder / "configs").mkdir(parents=True)
        for file, content in template.files:
            (folder / file).write_bytes(content)
        (folder / "week1.ipynb").write_text(json.dumps(notebook), encoding="utf-8")
        assert (load("week1", tmp_path / name).exam_hash == template.exam_hash) == (not change)


@pytest.mark.parametrize("name", ["week99", "", "../week1", "."])
def test_an_unknown_assignment_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="assignment must be a folder"):
        load(name)
