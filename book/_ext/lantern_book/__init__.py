"""The Sphinx extension and the build commands of the Lantern book.

As an extension it gives the book its ``claim`` and ``fact`` roles, formulas set while building,
explorable figures, a light theme and links to the glossary. As a command, ``python -m lantern_book``, it executes the
pages, builds the book and looks for numbers in prose that nothing computes.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sphinx.application import Sphinx


def setup(app: Sphinx) -> dict[str, Any]:
    """Register every part of the extension with Sphinx."""
    # Imported here: the commands must start without loading Sphinx and its theme.
    from lantern_book import claims, fact_list, facts, glossary, katex, theme, vega

    for part in (claims, facts, fact_list, katex, vega, theme, glossary):
        part.setup(app)
    return {"parallel_read_safe": True, "parallel_write_safe": True, "env_version": 1}


def skip_slow_grammar() -> None:
    """Let jsonschema do without its check of international addresses, in this process.

    Importing it builds a grammar for 1.2 s, in every process that touches a notebook; nothing
    here has such an address.
    """
    sys.modules.setdefault("rfc3987_syntax", None)  # type: ignore[arg-type]
