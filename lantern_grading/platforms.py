"""What the files of a class are called when a platform hands them over, and who handed them in.

Canvas (``lib/content_zipper.rb`` in github.com/instructure/canvas-lms): the sortable name in small letters and without
signs, ``LATE`` if it is, the user's number, the file's number, the file. Letters of all alphabets, digits and ``_``
stay in the name. A file that was handed in again is ``week1-1.ipynb``. In an anonymous assignment ``anon_`` and five
signs stand for name and number. The work of a group has the group's name and the number of one member.

Moodle (``mod/assign/classes/downloader.php`` in github.com/moodle/moodle): the full name, in which ``_`` became a
space, the number of the participant, ``assignsubmission`` and the kind of submission; then a folder, or the file in
the same name. In older versions the folder's name ends in ``_``. Under blind marking the name is ``Participant``. The
work of a group has the group's name and number, and of those in no group ``Default group`` and no number.
"""

from __future__ import annotations

import re
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from lantern_grading.archives import MAX_STUDENT_BYTES, entries, read_entry, unpack_inner
from lantern_grading.reading import MAX_FILES, is_notebook, read_folder
from lantern_grading.roster import Person, squeezed
from lantern_grading.worksheet import Worksheet

#: ``lovelaceada_LATE_12345_67890_week1-2.ipynb``, ``LATE_anon_aB3xZ_67890_week1.ipynb``, ``lovelaceada_123_text.html``.
_CANVAS = re.compile(
    r"(?:(?P<who>(?!(?:LATE_)?anon_[0-9A-Za-z]{5}_)[^/]+?)_)?(?P<late>LATE_)?(?P<key>\d+|anon_[0-9A-Za-z]{5})"
    r"_(?:(?P<what>text|link)\.html|(?P<file>\d+)_(?P<name>[^/]+))"
)
#: ``Ada Lovelace_123456_assignsubmission_file/week1.ipynb``, and the same in one name without a folder.
_MOODLE = re.compile(r"(?P<who>[^/]+?)(?:_(?P<key>\d+))?_assignsubmission_(?P<what>[a-z]+)_?/?(?P<name>.*)")


@dataclass
class Incoming:
    """What one person or group handed in, by what the platform calls it. ``person``: whether the key is a person's."""

    key: str
    who: str = ""
    late: bool = False
    files: dict[str, bytes] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    person: bool = True


def from_folder(top: Path) -> list[Incoming]:
    """Read a folder that has one folder for each student, named by id.

    Parameters
    ----------
    top : Path
        The folder.

    Returns
    -------
    list of Incoming
        Sorted by name.
    """
    found = []
    for path in sorted(top.iterdir()):
        if path.is_dir() and not path.is_symlink() and not path.name.startswith("."):
            read = read_folder(path)
            found.append(Incoming(path.name, files=read.by_name, notes=list(read.notes)))
    return found


def from_zip(path: Path, platform: str, notes: list[str]) -> list[Incoming]:
    """Read the archive that a platform gives.

    Parameters
    ----------
    path : Path
        The archive.
    platform : str
        ``"canvas"``, ``"moodle"`` or ``"folder"`` for one folder a student [text].
    notes : list of str
        Receives a sentence for each entry that belongs to nobody.

    Returns
    -------
    list of Incoming
        In the archive's order.

    Raises
    ------
    ValueError
        If it is no archive, or nothing in it has a name as that platform gives.
    """
    found: dict[str, Incoming] = {}
    texts = 0
    try:
        with zipfile.ZipFile(path) as archive:
            for name, entry in entries(archive, notes):
                placed = _placed(name, platform)
                if placed is None:
                    notes.append(f"An entry has no name as {platform} gives: {ascii(name)[:80]}.")
                    continue
                key, who, late, inner = placed
                if not inner:
                    texts += 1
                    notes.append(f"{key}: a text or a link was handed in. Only files are taken.")
                    continue
                student = found.setdefault(key, Incoming(key, who))
                student.late |= late
                _take(student, inner, archive, entry)
    except zipfile.BadZipFile as error:
        raise ValueError(f"the archive {path.name} cannot be read: {error}.") from None
    if not found and not texts:
        raise ValueError(f"the archive {path.name} must hold files named as {platform} names them, got none.")
    for student in found.values():
        _open_archives(student)
    return list(found.values())


def _placed(name: str, platform: str) -> tuple[str, str, bool, str] | None:
    """Tell key, name, lateness and file of an entry; no file if a text was handed in."""
    if platform == "canvas":
        match = _CANVAS.fullmatch(name.rsplit("/", 1)[-1])
        return (match["key"], match["who"] or "", bool(match["late"]), match["name"] or "") if match else None
    if platform == "moodle":
        match = _MOODLE.fullmatch(name)
        if match is None or (match["what"] == "file" and not match["name"]):
            return None
        return match["key"] or "no-number", match["who"], False, match["name"] if match["what"] == "file" else ""
    key, _, inner = name.partition("/")
    return (key, "", False, inner) if inner else None


def _take(student: Incoming, name: str, archive: zipfile.ZipFile, entry: zipfile.ZipInfo) -> None:
    if len(student.files) >= MAX_FILES:
        student.notes.append(f"{name} was left out: there are more than {MAX_FILES} files.")
        return
    left = MAX_STUDENT_BYTES - sum(map(len, student.files.values()))
    if name in student.files:
        # Canvas numbers its files; two of one name are two uploads.
        stem, dot, ending = name.rpartition(".")
        name = f"{stem} ({len(student.files)}){dot}{ending}"
    try:
        student.files[name] = read_entry(archive, entry, min(left, MAX_STUDENT_BYTES // 2))
    except ValueError as error:
        student.notes.append(f"{name} was left out: {error}.")


def _open_archives(student: Incoming) -> None:
    """Unpack what a student packed, if there is no notebook beside it."""
    if any(is_notebook(name) for name in student.files):
        return
    for name in [name for name in student.files if name.lower().endswith(".zip")]:
        inner = unpack_inner(name, student.files[name])
        student.notes += inner.notes
        if inner.files:
            del student.files[name]
            student.files |= inner.files


def matcher(
    platform: str, people: list[Person], known: Mapping[str, str], sheet: Worksheet
) -> Callable[[Incoming], list[str]]:
    """Return what finds the students' ids for what a platform says.

    By what is known from before, then by the platform's list, then by the number on the roster, and last by a
    name that only one person has. In an assignment for groups, by the group's name alone: its number is no person's.

    Parameters
    ----------
    platform : str
        Which [text].
    people : list of Person
        The roster.
    known : mapping
        Students by what the platform called them before.
    sheet : Worksheet
        The platform's own list.

    Returns
    -------
    callable
        From an Incoming to students' ids: one, all members of a group, or none.
    """
    roster = {person.student for person in people}
    numbers = {person.canvas: person.student for person in people if person.canvas} if platform == "canvas" else {}
    names: dict[str, list[str]] = {}
    for person in people:
        squeezed_name = squeezed(person.last_name + person.first_name if platform == "canvas" else person.full_name)
        if squeezed_name:
            names.setdefault(squeezed_name, []).append(person.student)

    def find(incoming: Incoming) -> list[str]:
        if platform == "folder":
            return [incoming.key] if not roster or incoming.key in roster else []
        if sheet.groups:
            incoming.person = False
            return list(sheet.groups.get(squeezed(incoming.who), ()))
        for table in (known, sheet.students, numbers):
            if incoming.key in table:
                return [table[incoming.key]]
        same = names.get(squeezed(incoming.who), [])
        return same if len(same) == 1 else []

    return find
