"""Limits and scratch files: what is refused before anything starts."""

import os
import tarfile
from dataclasses import fields
from io import BytesIO

import pytest

from lantern_grading.sandbox import Limits, SandboxError, Scratch, private


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


def test_odd_folders_are_read_or_refused_but_never_a_surprise(tmp_path, monkeypatch):
    deep = tmp_path.joinpath(*["d"] * 30)
    deep.mkdir(parents=True)
    (deep / "bottom.txt").touch()
    (tmp_path / os.fsdecode(b"\xff.txt")).write_text("odd")
    scratch = Scratch.of_folder(tmp_path)
    assert [content for _, content in scratch.files] == [b"odd"]
    assert scratch.refused == ("/".join(["d"] * 21) + " was left out: it lies too deep.",)
    with tarfile.open(fileobj=BytesIO(scratch.packed())) as archive:
        assert os.fsencode(archive.getnames()[0]) == b"\xff.txt"
    monkeypatch.setattr("lantern_grading.sandbox.scratch._MOST_ENTRIES", 1)
    with pytest.raises(SandboxError, match="more than 1 entries"):
        Scratch.of_folder(tmp_path)
    assert Scratch.of_folder(tmp_path / "nowhere").refused == (". was left out: it cannot be read.",)


def test_files_are_packed_as_they_are():
    name = "ü" * 80 + "/" + "long " * 30 + ".txt"
    with tarfile.open(fileobj=BytesIO(Scratch(((name, b"\0\1"),)).packed())) as archive:
        member = archive.getmember(name)
        assert member.isreg()
        assert archive.extractfile(member).read() == b"\0\1"
    assert Scratch().packed() == b""


def test_a_private_folder_is_swept_when_its_grader_was_killed(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setattr(private, "_PATH_BYTES", 1000)
    live, lock = private.folder()
    assert live.stat().st_mode & 0o777 == 0o700
    dead, young, other = (tmp_path / name for name in ("lantern-k-dead", "lantern-k-young", "other"))
    for path in (dead, young, other):
        path.mkdir()
        (path / "k-1").touch()
    (tmp_path / "lantern-k-link").symlink_to(other)
    for path in (live, dead, other):
        os.utime(path, (1, 1))
    second = private.folder()
    assert not dead.exists()
    assert live.exists()
    assert young.exists()
    assert (other / "k-1").exists()
    private.remove(*second)
    private.remove(live, lock)
    assert not live.exists()
