"""The text that the tiny models learn from: the book's own prose, without its code.

The vocabulary is that of :mod:`lantern_lib.tiny.text`. Two whole pages are held out.
"""

from __future__ import annotations

import re
from pathlib import Path

from lantern_lib.tiny.text import plain

ROOT = Path(__file__).resolve().parents[1]

#: Pages that no model sees while it learns, by their path in the book.
HELD_OUT = ("a/a5", "b/b8")

_FENCE = re.compile(r"^(`{3,}|~{3,}).*?^\1\s*$", re.M | re.S)
_FRONT_MATTER = re.compile(r"\A---\n.*?\n---\n", re.S)
_ROLE = re.compile(r"\{[\w:]+\}`(.*?)(?: <[^`>]*>)?`", re.S)
_DIRECTIVE = re.compile(r"^:{3,}.*$|^:class:.*$", re.M)
_LINK = re.compile(r"\[([^\]]*)\]\([^)]*\)")


def prose(markdown: str) -> str:
    """Strip a page of front matter, code cells, directives and markup; keep words, tables and formulas.

    Parameters
    ----------
    markdown : str
        A page's source [text].

    Returns
    -------
    str
        Its prose in the models' 96 characters [text].
    """
    text = _FRONT_MATTER.sub("", markdown)
    text = _FENCE.sub("", text)
    text = _ROLE.sub(r"\1", text)
    text = _DIRECTIVE.sub("", text)
    text = _LINK.sub(r"\1", text).replace("**", "").replace("`", "")
    # Lines of a paragraph are broken by hand; a paragraph is one line here.
    text = re.sub(r"(?<=[^\n|])\n(?=[^\n|#*$-])", " ", text)
    return plain(re.sub(r"\n{3,}", "\n\n", text).strip() + "\n\n")


def pages(root: Path = ROOT) -> dict[str, str]:
    """Read the prose of every page of the book.

    Parameters
    ----------
    root : Path
        The project.

    Returns
    -------
    dict of str to str
        Prose by path inside the book, in order of the paths.
    """
    book = root / "book"
    found = sorted(path for path in book.rglob("*.md") if "_build" not in path.parts and "_ext" not in path.parts)
    return {path.relative_to(book).with_suffix("").as_posix(): prose(path.read_text("utf-8")) for path in found}


def split(root: Path = ROOT) -> tuple[str, str]:
    """Return the text to learn from and the text held out.

    Parameters
    ----------
    root : Path
        The project.

    Returns
    -------
    (str, str)
        Both in the models' 96 characters [text].
    """
    every = pages(root)
    return (
        "".join(text for name, text in every.items() if name not in HELD_OUT),
        "".join(every[name] for name in HELD_OUT),
    )
