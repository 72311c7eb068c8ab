"""Looking for hidden tests and solutions where they must not be."""

from __future__ import annotations

import gzip
import html
import io
import json
import re
import tarfile
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import nbformat

from lantern_grading.paths import SOLUTIONS
from lantern_grading.regions import secret_lines

_TAG = re.compile(r"<[^>]+>")


def secrets(region: str, source: Path = SOLUTIONS) -> set[str]:
    """Collect what must not get out: the telling lines of all solutions or of all hidden tests.

    Parameters
    ----------
    region : str
        ``regions.HIDDEN`` or ``regions.SOLUTION`` [text].
    source : Path
        The folder of solutions.

    Returns
    -------
    set of str
        Lines [text].
    """
    found: set[str] = set()
    for path in sorted(source.glob("*/*.ipynb")):
        found |= secret_lines(nbformat.read(path, as_version=4).cells, region)
    # A lab's other files are released as they are, so what stands in them is no secret.
    public = [path for path in source.rglob("*") if path.is_file() and path.suffix != ".ipynb"]
    known = "\n".join(path.read_text(encoding="utf-8") for path in public)
    return {line for line in found if line not in known}


def find(root: Path, sentinels: Iterable[str]) -> list[tuple[str, str]]:
    """Find texts in all files below a folder, or in one file; archives are opened.

    Each file is searched as it is, as JSON writes the text, and as a reader of the HTML sees it
    (highlighted code has a tag between any two words).

    Parameters
    ----------
    root : Path
        A folder, a file or an archive.
    sentinels : iterable of str
        Texts to look for [text].

    Returns
    -------
    list of (str, str)
        Where, and which text.
    """
    plain = list(sentinels)
    forms = {json.dumps(text, ensure_ascii=ascii)[1:-1]: text for text in plain for ascii in (True, False)}
    raw_forms, seen_forms = _Forms({text: text for text in plain} | forms), _Forms({text: text for text in plain})
    paths = sorted(path for path in root.rglob("*") if path.is_file()) if root.is_dir() else [root]
    leaks = []
    for path in paths:
        for name, content in _files(str(path), path.read_bytes()):
            raw = content.decode("utf-8", errors="replace")
            seen = html.unescape(_TAG.sub("", raw)) if "<" in raw else ""
            found = raw_forms.within(raw) | seen_forms.within(seen)
            leaks += [(name, text) for text in plain if text in found]
    return leaks


class _Forms:
    """Texts to look for, by their first letters: one pass over a file looks for all of them at once."""

    def __init__(self, texts: Mapping[str, str]) -> None:
        self._length = min(map(len, texts), default=1)
        self._by_start: dict[str, list[tuple[str, str]]] = {}
        for form, text in texts.items():
            self._by_start.setdefault(form[: self._length], []).append((form, text))

    def within(self, content: str) -> set[str]:
        starts, length, found = self._by_start, self._length, set()
        for place in range(len(content) - length + 1):
            start = content[place : place + length]
            if start in starts:
                found |= {text for form, text in starts[start] if content.startswith(form, place)}
        return found


def _files(name: str, content: bytes) -> Iterator[tuple[str, bytes]]:
    """Yield a file, or what an archive holds, however deep."""
    if name.endswith((".zip", ".whl")):
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            for entry in archive.namelist():
                yield from _files(f"{name}!{entry}", archive.read(entry))
    elif name.endswith((".tar.gz", ".tgz", ".tar")):
        with tarfile.open(fileobj=io.BytesIO(content)) as packed:
            for member in packed.getmembers():
                file = packed.extractfile(member)
                if file is not None:
                    yield from _files(f"{name}!{member.name}", file.read())
    elif name.endswith(".gz"):
        yield from _files(name.removesuffix(".gz"), gzip.decompress(content))
    else:
        yield name, content
