"""The files beside a submission: checked, packed, and unpacked inside the sandbox only."""

from __future__ import annotations

import io
import itertools
import os
import stat
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from lantern_grading.sandbox.errors import SandboxError
from lantern_grading.sandbox.limits import Limits

#: A notebook may hold hidden tests, a database the class's marks.
NEVER = (".ipynb", ".db", ".sqlite", ".sqlite3")
_MOST_ENTRIES, _DEEPEST = 20_000, 20  # of one folder; folders in folders


@dataclass(frozen=True)
class Scratch:
    """Regular files for the sandbox's working folder, as data.

    Parameters
    ----------
    files : tuple of (str, bytes)
        Relative POSIX path and content, as in `Paper.files`.
    refused : tuple of str
        What was left out, and why, one sentence each.

    Examples
    --------
    >>> Scratch((("config.json", b"{}"),)).files[0][0]
    'config.json'
    >>> Scratch((("../grades.txt", b""),))
    Traceback (most recent call last):
    ValueError: files must have relative paths that stay in their folder, got '../grades.txt'. Leave it out.
    """

    files: tuple[tuple[str, bytes], ...] = ()
    refused: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for name, _ in self.files:
            path = PurePosixPath(name)
            if path.is_absolute() or ".." in path.parts or not path.parts or "\0" in name:
                raise ValueError(
                    f"files must have relative paths that stay in their folder, got {name!r}. Leave it out."
                )

    @classmethod
    def of_folder(cls, folder: Path, limits: Limits | None = None) -> Scratch:
        """Read a folder: regular files only, no notebook, no database, nothing hidden, no link.

        Raises
        ------
        SandboxError
            If there is more than the sandbox may hold.
        """
        limits = limits or Limits()
        found: list[tuple[str, bytes]] = []
        refused: list[str] = []
        total = 0
        for path, why in _walk(folder):
            name = path.relative_to(folder).as_posix()
            if why:
                refused.append(f"{name} was left out: {why}.")
                continue
            content = _read(path, limits.file_bytes)
            if content is None:
                refused.append(f"{name} was left out: it is larger than {limits.file_bytes} bytes, or it changed.")
                continue
            total += len(content)
            found.append((name, content))
            if len(found) > limits.scratch_files // 2 or total > limits.scratch_bytes // 2:
                raise SandboxError(
                    f"{folder} holds too much for a sandbox (after {len(found)} files and {total} bytes). Run the "
                    "notebook in a folder of its own: papermill takes --cwd, and nbgrader does it by itself."
                )
        return cls(tuple(found), tuple(refused))

    def packed(self) -> bytes:
        """Return the files as a tar archive, or nothing if there are none."""
        if not self.files:
            return b""
        buffer = io.BytesIO()
        with tarfile.open(fileobj=buffer, mode="w", format=tarfile.PAX_FORMAT) as archive:
            for name, content in self.files:
                entry = tarfile.TarInfo(name)
                entry.size, entry.mode = len(content), 0o644
                archive.addfile(entry, io.BytesIO(content))
        return buffer.getvalue()


def _walk(folder: Path, deep: int = 0) -> Iterator[tuple[Path, str]]:
    """Give every file that may be copied, and everything that may not with the reason; what never is goes unsaid."""
    try:
        with os.scandir(folder) as found:
            entries = list(itertools.islice(found, _MOST_ENTRIES + 1))
    except OSError:
        yield folder, "it cannot be read"
        return
    if len(entries) > _MOST_ENTRIES:
        raise SandboxError(f"{folder} has more than {_MOST_ENTRIES} entries. Run the notebook in a folder of its own.")
    for entry in sorted(entries, key=lambda entry: entry.name):
        path = Path(entry.path)
        if entry.name.startswith((".", "__pycache__")) or entry.name.lower().endswith(NEVER):
            continue
        if entry.is_symlink():
            yield path, "it is a link"
        elif entry.is_file(follow_symlinks=False):
            yield path, ""
        elif not entry.is_dir(follow_symlinks=False):
            yield path, "it is no regular file"
        elif deep == _DEEPEST:
            yield path, "it lies too deep"
        else:
            yield from _walk(path, deep + 1)


def _read(path: Path, most: int) -> bytes | None:
    """Read a regular file that may be changing under us; never through a link, never blocking."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    with os.fdopen(handle, "rb") as file:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            return None
        content = file.read(most + 1)
    return content if len(content) <= most else None
