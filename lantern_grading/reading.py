"""What was handed in, as files and bytes: nothing of it is trusted, obeyed or run."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

#: A lab with its outputs has some hundred kilobytes. Outputs are dropped, so that a notebook full of pictures is fine.
MAX_NOTEBOOK_BYTES = 32_000_000
MAX_FILES = 200
MAX_FILES_BYTES = 32_000_000

#: Files that platforms and editors add.
_NOT_THEIRS = (".ipynb_checkpoints", "__MACOSX", "__pycache__", ".git", ".DS_Store", "timestamp.txt")


@dataclass(frozen=True)
class HandedIn:
    """The files of one submission, without links and devices, and what was left out."""

    files: tuple[tuple[str, bytes], ...]
    content_hash: str
    notes: tuple[str, ...] = ()

    @property
    def by_name(self) -> dict[str, bytes]:
        """Content by name."""
        return dict(self.files)


def content_hash(files: Iterable[tuple[str, bytes]], left_out: Iterable[str] = ()) -> str:
    """Name the content of a submission.

    Parameters
    ----------
    files : iterable of (str, bytes)
        Name and content.
    left_out : iterable of str
        What stood beside them and was not read [text].

    Returns
    -------
    str
        64 hexadecimal digits, the same for the same files in any order [text].
    """
    digest = hashlib.sha256()
    for name, content in sorted(files):
        digest.update(f"{name}\0{len(content)}\0".encode("utf-8", "surrogatepass") + content)
    for name in sorted(left_out):
        digest.update(b"\1" + name.encode("utf-8", "surrogatepass"))
    return digest.hexdigest()


def read_folder(folder: Path) -> HandedIn:
    """Read a submission's folder: plain files only, within limits, and no link is followed.

    Parameters
    ----------
    folder : Path
        The folder.

    Returns
    -------
    HandedIn
        The files, with one sentence for each that was left out.
    """
    files: list[tuple[str, bytes]] = []
    left_out: list[str] = []
    total = 0
    for name, size in _plain_files(folder, folder, left_out):
        most = MAX_NOTEBOOK_BYTES if is_notebook(name) else MAX_FILES_BYTES
        if size > most or total + size > MAX_NOTEBOOK_BYTES + MAX_FILES_BYTES:
            left_out.append(f"{name} has {size:,} bytes, more than is read")
            continue
        if len(files) >= MAX_FILES:
            left_out.append(f"only the first {MAX_FILES} files were read")
            break
        # Opened without following a link that has been put there meanwhile, and never more than was allowed.
        handle = os.open(folder / name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        with os.fdopen(handle, "rb") as file:
            content = file.read(most + 1)
        total += len(content)
        files.append((name, content))
    return HandedIn(tuple(files), content_hash(files, left_out), tuple(f"Left out: {text}." for text in left_out))


def _plain_files(top: Path, folder: Path, left_out: list[str], depth: int = 0) -> Iterable[tuple[str, int]]:
    if depth > 8:
        left_out.append("folders in more than eight folders")
        return
    with os.scandir(folder) as entries:
        listed = sorted(entries, key=lambda entry: entry.name)
    for entry in listed:
        name = Path(entry.path).relative_to(top).as_posix()
        if entry.name in _NOT_THEIRS:
            continue
        mode = entry.stat(follow_symlinks=False).st_mode
        if stat.S_ISDIR(mode):
            yield from _plain_files(top, Path(entry.path), left_out, depth + 1)
        elif stat.S_ISREG(mode):
            yield name, entry.stat(follow_symlinks=False).st_size
        else:
            left_out.append(f"{name} is no plain file (a link or a device)")


def is_theirs(name: str) -> bool:
    """Tell a file of the student's from what platforms and editors put beside it.

    Examples
    --------
    >>> is_theirs("data/a.csv"), is_theirs("__MACOSX/._week1.ipynb"), is_theirs(".ipynb_checkpoints/week1.ipynb")
    (True, False, False)
    """
    parts = PurePosixPath(name).parts
    return 0 < len(parts) <= 8 and not any(part in _NOT_THEIRS for part in parts)


def is_notebook(name: str) -> bool:
    """Tell whether a file's name is one that a notebook has, also after a browser or a mail program added to it.

    Parameters
    ----------
    name : str
        The name [text].

    Returns
    -------
    bool
        True for ``week1.ipynb``, ``week1 (2).IPYNB``, ``week1.ipynb.txt`` and ``week1.json``.
    """
    path = PurePosixPath(name.lower())
    if any(part in _NOT_THEIRS for part in PurePosixPath(name).parts) or path.name.startswith("._"):
        return False
    return path.suffix == ".ipynb" or ".ipynb." in path.name or (path.suffix == ".json" and len(path.parts) == 1)
