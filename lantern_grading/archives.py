"""Reading an archive that nobody vouches for: names are checked, sizes counted while reading, links left out."""

from __future__ import annotations

import io
import stat
import zipfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import PurePosixPath

from lantern_grading.reading import MAX_FILES, MAX_NOTEBOOK_BYTES, is_notebook

MAX_ENTRIES = 100_000
#: All that one student's files may hold.
MAX_STUDENT_BYTES = 2 * MAX_NOTEBOOK_BYTES


@dataclass
class Unpacked:
    """Files from an archive by name, and one sentence for each entry that was left out."""

    files: dict[str, bytes] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)


def safe_name(name: str) -> str | None:
    """Return an entry's name as a relative path, or None if it could lead anywhere else.

    Parameters
    ----------
    name : str
        As it stands in the archive [text].

    Returns
    -------
    str or None
        With forward slashes.

    Examples
    --------
    >>> safe_name("a/b.ipynb"), safe_name("../b.ipynb"), safe_name("/etc/passwd"), safe_name("C:\\\\b.ipynb")
    ('a/b.ipynb', None, None, None)
    """
    path = PurePosixPath(name.replace("\\", "/"))
    parts = [part for part in path.parts if part != "."]
    if path.is_absolute() or not parts or ".." in parts or ":" in parts[0] or not name.isprintable():
        return None
    return None if any(len(part.encode()) > 200 for part in parts) else "/".join(parts)


def entries(archive: zipfile.ZipFile, notes: list[str]) -> Iterator[tuple[str, zipfile.ZipInfo]]:
    """Yield the plain files of an archive with their safe names; what is left out is noted.

    Parameters
    ----------
    archive : ZipFile
        The archive.
    notes : list of str
        Receives a sentence for each entry that is left out.

    Yields
    ------
    (str, ZipInfo)
        Name and entry, each name once.

    Raises
    ------
    ValueError
        If it has more entries than any class.
    """
    listed = archive.infolist()
    if len(listed) > MAX_ENTRIES:
        raise ValueError(f"archive must have {MAX_ENTRIES:,} entries at most, got {len(listed):,}.")
    seen: set[str] = set()
    for entry in listed:
        if entry.is_dir():
            continue
        name, mode = safe_name(_read_name(entry)), entry.external_attr >> 16
        if name is None:
            notes.append(f"An entry with an unsafe name was left out: {ascii(entry.filename)[:80]}.")
        elif stat.S_IFMT(mode) not in (0, stat.S_IFREG):
            notes.append(f"{name} is a link or a device and was left out.")
        elif entry.flag_bits & 0x1:
            notes.append(f"{name} is encrypted and was left out.")
        elif name in seen:
            notes.append(f"{name} stands in the archive twice; the first one was taken.")
        else:
            seen.add(name)
            yield name, entry


def _read_name(entry: zipfile.ZipInfo) -> str:
    """Return an entry's name. Canvas writes UTF-8 and does not say so: ``unicode_names`` of rubyzip is off."""
    if entry.flag_bits & 0x800:
        return entry.filename
    try:
        return entry.filename.encode("cp437").decode("utf-8")
    except UnicodeError:
        return entry.filename


def read_entry(archive: zipfile.ZipFile, entry: zipfile.ZipInfo, most: int = MAX_NOTEBOOK_BYTES) -> bytes:
    """Read one entry, but never more than was allowed, whatever its header says.

    Parameters
    ----------
    archive : ZipFile
        The archive.
    entry : ZipInfo
        Which.
    most : int
        The limit [bytes].

    Returns
    -------
    bytes
        Its content.

    Raises
    ------
    ValueError
        If it is larger, or damaged.
    """
    try:
        with archive.open(entry) as file:
            content = file.read(most + 1)
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, OSError, RuntimeError) as error:
        raise ValueError(f"it is damaged ({type(error).__name__})") from None
    if len(content) > most:
        raise ValueError(f"it has more than {most:,} bytes")
    return content


def unpack_inner(name: str, content: bytes) -> Unpacked:
    """Unpack an archive that a student handed in, one level deep and within a student's limits.

    Parameters
    ----------
    name : str
        For the notes [text].
    content : bytes
        The archive.

    Returns
    -------
    Unpacked
        Its files; none if it is no archive.
    """
    out = Unpacked()
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            left = MAX_STUDENT_BYTES
            for inner, entry in entries(archive, out.notes):
                if len(out.files) >= MAX_FILES:
                    out.notes.append(f"{name} holds more than {MAX_FILES} files; the others were left out.")
                    break
                try:
                    out.files[inner] = read_entry(archive, entry, min(left, MAX_NOTEBOOK_BYTES))
                except ValueError as error:
                    out.notes.append(f"{inner} in {name} was left out: {error}.")
                    continue
                left -= len(out.files[inner])
    except (zipfile.BadZipFile, ValueError) as error:
        out.notes.append(f"{name} could not be unpacked: {error}.")
    if any(is_notebook(inner) for inner in out.files):
        out.notes.append(f"The work came in an archive, {name}; it was unpacked.")
    return out
