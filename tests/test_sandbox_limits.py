"""Limits and scratch files: what is refused before anything starts."""

import os
import tarfile
from dataclasses import fields
from io import BytesIO

import pytest

from lantern_grading.sandbox import Limits, SandboxError, Scratch


@pytest.mark.parametrize("name", [field.name for field in fields(Limits)])
@pytest.mark.parametrize("value", [0, -1, float("inf"), float("nan"), True, "5", None])
def test_a_limit_is_a_positive_number(name, value):
    with pytest.raises(ValueError, match=f"^{name} must be a positive number, got "):
        Limits(**{name: value})


def test_bytes_and_counts_are_whole():
    with pytest.raises(ValueError, match="open_files must be a whole number, got 2.5"):
        Limits(open_files=2.5)
    assert Limits(cell_seconds=0.5).cell_seconds == 0.5


@pytest.mark.parametrize("name", ["/etc/passwd", "../a", "a/../../b", "", ".", "a\0b"])
def test_a_name_that_leaves_the_folder_is_refused(name):
    with pytest.raises(ValueError, match="files must have relative paths"):
        Scratch(((name, b""),))


@pytest.fixture
def folder(tmp_path):
    """A submission's folder, with more in it than there should be."""
    (tmp_path / "outside.txt").write_text("the answer")
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "more.txt").write_text("more")
    folder = tmp_path / "handed in"
    (folder / "configs").mkdir(parents=True)
    (folder / "configs" / "small model.json").write_text("{}")
    (folder / "helper.py").write_text("x = 1")
    for name in ("week1.ipynb", "WEEK1.IPYNB", "gradebook.db", ".hidden", "marks.sqlite3"):
        (folder / name).write_text("never")
    (folder / "__pycache__").mkdir()
    (folder / "__pycache__" / "helper.pyc").write_text("never")
    (folder / "link.txt").symlink_to(tmp_path / "outside.txt")
    (folder / "folder").symlink_to(tmp_path / "elsewhere")
    os.mkfifo(folder / "pipe")
    return folder


def test_a_folder_gives_its_regular_files_and_says_what_it_refused(folder):
    scratch = Scratch.of_folder(folder)
    assert dict(scratch.files) == {"configs/small model.json": b"{}", "helper.py": b"x = 1"}
    assert scratch.refused == (
        "folder was left out: it is a link.",
        "link.txt was left out: it is a link.",
        "pipe was left out: it is no regular file.",
    )


def test_a_large_file_is_left_out_without_being_read(folder):
    with (folder / "terabyte.bin").open("wb") as file:
        file.truncate(2**40)
    scratch = Scratch.of_folder(folder, Limits(file_bytes=1000))
    assert "terabyte.bin" not in dict(scratch.files)
    assert any(line.startswith("terabyte.bin was left out: it is larger than 1000 bytes") for line in scratch.refused)


def test_too_much_stops_before_all_is_read(folder):
    with pytest.raises(SandboxError, match="holds too much for a sandbox"):
        Scratch.of_folder(folder, Limits(scratch_files=3))
    with pytest.raises(SandboxError, match="--cwd"):
        Scratch.of_folder(folder, Limits(scratch_bytes=8))


def test_files_are_packed_as_they_are():
    name = "ü" * 80 + "/" + "long " * 30 + ".txt"
    with tarfile.open(fileobj=BytesIO(Scratch(((name, b"\0\1"),)).packed())) as archive:
        member = archive.getmember(name)
        assert member.isreg()
        assert archive.extractfile(member).read() == b"\0\1"
    assert Scratch().packed() == b""
