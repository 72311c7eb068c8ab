"""What was handed in, as bytes, to cells: nothing of it is trusted, obeyed or run."""

from __future__ import annotations

import codecs
import hashlib
import json
import os
import stat
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

#: A lab with its outputs has some hundred kilobytes. Outputs are dropped, so that a notebook full of pictures is fine.
MAX_NOTEBOOK_BYTES = 32_000_000
MAX_SOURCE_CHARS = 400_000
MAX_CELLS = 2_000
MAX_FILES = 200
MAX_FILES_BYTES = 32_000_000

#: Files that platforms and editors add.
_NOT_THEIRS = (".ipynb_checkpoints", "__MACOSX", "__pycache__", ".git", ".DS_Store", "timestamp.txt")


class Unreadable(ValueError):  # noqa: N818 (it names what the file is)
    """A file that holds no notebook; the text says why, in words for the student."""


@dataclass(frozen=True)
class RawCell:
    """A cell as it stands in the file. The names are claims that nobody has checked."""

    kind: str
    source: str
    names: tuple[str, ...] = ()


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


def read_notebook(content: bytes) -> tuple[list[RawCell], list[str]]:
    """Read the cells of a notebook of any format from 2 to 4.5, and repair what can be repaired.

    Parameters
    ----------
    content : bytes
        The file.

    Returns
    -------
    (list of RawCell, list of str)
        The cells without their outputs, and one sentence for each repair.

    Raises
    ------
    Unreadable
        If it is no notebook; it says what it seems to be instead.
    """
    if len(content) > MAX_NOTEBOOK_BYTES:
        raise Unreadable(f"The file is larger than {MAX_NOTEBOOK_BYTES:,} bytes. Clear its outputs and save it again.")
    text, notes = _decoded(content)
    try:
        data = json.loads(text)
    except RecursionError:
        raise Unreadable("The file nests too deeply to be a notebook.") from None
    except ValueError as error:
        raise Unreadable(_looks_like(content, text, error)) from None
    listed = _listed(data, notes)
    if len(listed) > MAX_CELLS:
        raise Unreadable(f"The notebook has {len(listed):,} cells, more than {MAX_CELLS:,}.")
    cells = [cell for each in listed if (cell := _cell(each)) is not None]
    if len(cells) < len(listed):
        notes.append("Some entries of the notebook were no cells and were left out.")
    if sum(len(cell.source) for cell in cells) > MAX_SOURCE_CHARS:
        raise Unreadable(f"The cells of the notebook hold more than {MAX_SOURCE_CHARS:,} characters.")
    return _evened(cells, notes), notes


def _decoded(content: bytes) -> tuple[str, list[str]]:
    if content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return content.decode("utf-16", "replace"), ["The file was UTF-16; it was read as such."]
    if content.startswith(codecs.BOM_UTF8):
        content, notes = content[len(codecs.BOM_UTF8) :], ["The file began with a byte order mark; it was left out."]
    else:
        notes = []
    try:
        return content.decode("utf-8"), notes
    except UnicodeDecodeError:
        # Every byte has a meaning in Latin-1; Windows' own version of it has quotes where Latin-1 has controls.
        try:
            return content.decode("cp1252"), [*notes, "The file was not UTF-8; it was read as Latin-1."]
        except UnicodeDecodeError:
            return content.decode("latin-1"), [*notes, "The file was not UTF-8; it was read as Latin-1."]


def _looks_like(content: bytes, text: str, error: ValueError) -> str:
    start = text.lstrip()[:200].lower()
    lines = text.splitlines()
    if not content.strip(b"\0 \t\r\n"):
        return "The file is empty."
    if any(line.startswith("<<<<<<< ") for line in lines) and any(line.startswith(">>>>>>> ") for line in lines):
        return "The file holds a merge conflict that was not resolved."
    if content.startswith(b"PK\x03\x04"):
        return "The file is an archive with the name of a notebook."
    if start.startswith(("<!doctype", "<html")):
        return "The file is a web page and not a notebook. Download the notebook itself."
    if not start.startswith("{"):
        return "The file is not a notebook: it does not begin like one."
    if "Expecting" in str(error) or "Unterminated" in str(error):
        position = getattr(error, "pos", 0)
        if position >= len(text.rstrip()) - 1 or "Unterminated" in str(error):
            return "The file breaks off in the middle; it was not saved or sent to its end."
    return f"The file is damaged in line {getattr(error, 'lineno', '?')}."


def _listed(data: Any, notes: list[str]) -> list[Any]:
    """Return the cells of format 4, or those of the worksheets of formats 2 and 3."""
    if not isinstance(data, Mapping):
        raise Unreadable("The file is not a notebook: it holds no cells.")
    if isinstance(data.get("cells"), list):
        return list(data["cells"])
    sheets = data.get("worksheets")
    if isinstance(sheets, list):
        notes.append("The notebook was in an old format; it was converted.")
        found: list[Any] = []
        for sheet in sheets:
            if isinstance(sheet, Mapping) and isinstance(sheet.get("cells"), list):
                found += sheet["cells"]
        return found
    raise Unreadable("The file is not a notebook: it holds no cells.")


def _cell(data: Any) -> RawCell | None:
    if not isinstance(data, Mapping):
        return None
    source = data.get("source", data.get("input", ""))
    if isinstance(source, list):
        source = "".join(part for part in source if isinstance(part, str))
    if not isinstance(source, str):
        return None
    kind = "code" if data.get("cell_type") == "code" else "markdown"
    metadata = data.get("metadata")
    about = metadata.get("nbgrader") if isinstance(metadata, Mapping) else None
    names = [about.get("grade_id")] if isinstance(about, Mapping) else []
    names.append(data.get("id"))
    return RawCell(kind, source, tuple(name for name in names if isinstance(name, str) and 0 < len(name) <= 128))


def _evened(cells: list[RawCell], notes: list[str]) -> list[RawCell]:
    """Give all cells one kind of line end, and text that can be written as UTF-8."""
    evened = []
    for cell in cells:
        source = cell.source.replace("\r\n", "\n").replace("\r", "\n")
        evened.append(RawCell(cell.kind, source.encode("utf-8", "replace").decode("utf-8"), cell.names))
    if any("\r" in cell.source for cell in cells):
        notes.append("The lines ended as on Windows; they were evened out.")
    return evened
