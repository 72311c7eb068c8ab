"""From the bytes of a notebook to its cells: of any format, repaired where that can be, and none of them believed."""

from __future__ import annotations

import codecs
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from lantern_grading.reading import MAX_NOTEBOOK_BYTES

MAX_SOURCE_CHARS = 400_000
MAX_CELLS = 2_000


class Unreadable(ValueError):  # noqa: N818 (it names what the file is)
    """A file that holds no notebook; the text says why, in words for the student."""


@dataclass(frozen=True)
class RawCell:
    """A cell as it stands in the file. The names are claims that nobody has checked."""

    kind: str
    source: str
    names: tuple[str, ...] = ()


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
