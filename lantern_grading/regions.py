"""The marked regions of a lab's source: solutions, hidden tests, mark schemes."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

HIDDEN = "HIDDEN TESTS"
SOLUTION = "SOLUTION"

#: Shorter lines (`else:`, `)`) say nothing about where they come from.
_TELLING = 16
_SAYS_NOTHING = re.compile(
    r"""(?:import|from)\ | "\w+":\ (?:[\[{(]|\d+,)$ | (?:raise\ |return\ )?[\w.]+\($ | \w+=(?:True|False|None),$""",
    re.VERBOSE,
)


def split(source: str, region: str) -> tuple[list[str], list[str]]:
    """Divide a cell's lines into those outside and those inside the marked regions.

    Parameters
    ----------
    source : str
        The cell [text].
    region : str
        :data:`HIDDEN` or :data:`SOLUTION` [text].

    Returns
    -------
    (list of str, list of str)
        Lines outside, lines inside; the markers are in neither.

    Examples
    --------
    >>> split("a\\n### BEGIN SOLUTION\\nb\\n### END SOLUTION\\nc", SOLUTION)
    (['a', 'c'], ['b'])
    """
    outside: list[str] = []
    inside: list[str] = []
    within = False
    for line in source.split("\n"):
        if f"BEGIN {region}" in line:
            within = True
        elif f"END {region}" in line:
            within = False
        else:
            (inside if within else outside).append(line)
    return outside, inside


def without(source: str, region: str) -> str:
    """Return a cell's source without the marked regions.

    Parameters
    ----------
    source : str
        The cell [text].
    region : str
        Which regions [text].

    Returns
    -------
    str
        What is left [text].
    """
    return "\n".join(split(source, region)[0])


def secret_lines(cells: Iterable[Any], region: str) -> set[str]:
    """Collect the telling lines of all regions that stand nowhere else in the notebook.

    An import tells nothing, and any module may hold the same one. Nor does a line that only opens a
    call, or a list under a key, or switches one option: an index of words can hold it by chance.

    Parameters
    ----------
    cells : iterable of notebook cells
        The cells, as nbformat gives them.
    region : str
        Which regions [text].

    Returns
    -------
    set of str
        Lines without the space around them [text].
    """
    secret: set[str] = set()
    public: list[str] = []
    for cell in cells:
        outside, inside = split(cell["source"], region)
        public += outside
        stripped = [line.strip() for line in inside]
        secret.update(line for line in stripped if len(line) >= _TELLING and not _SAYS_NOTHING.match(line))
    everything_public = "\n".join(public)
    return {line for line in secret if line not in everything_public}
