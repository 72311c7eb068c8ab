"""Runs inside the sandbox, in the kernel, before the first cell. Good manners only: the walls are outside.

It needs nothing but IPython: of this package the sandbox sees this file alone.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any

SETTINGS = "/lantern/kernel.json"  # the provisioner's, with what one cell may print
NOTE = "\n[output ends here: a cell may print {} characters]\n"


class Cap:
    """Lets a stream write so much in each cell, and then says so once.

    Examples
    --------
    >>> import io
    >>> stream = io.StringIO()
    >>> cap = Cap(stream, 5)
    >>> cap("abc"), cap("defg"), cap("h")
    (3, 4, 1)
    >>> stream.getvalue()
    'abcde\\n[output ends here: a cell may print 5 characters]\\n'
    """

    def __init__(self, stream: Any, most: int) -> None:
        self._write, self._most, self._left = stream.write, most, most

    def __call__(self, text: str) -> int:
        """Write what is left to write; the caller is told that all was written."""
        if not isinstance(text, str):
            self._write(text)  # the stream knows the right complaint
        if self._left > 0:
            self._write(text[: self._left] + (NOTE.format(self._most) if len(text) > self._left else ""))
            self._left -= len(text)
        return len(text)

    def again(self) -> None:
        """Begin a new cell."""
        self._left = self._most


def load_ipython_extension(shell: Any) -> None:
    """Cap what cells print, and let modules beside the notebook be imported, after those of the same name elsewhere."""
    sys.path.append(os.getcwd())
    with open(SETTINGS, encoding="utf-8") as file:
        most = json.load(file)["lantern_output"]
    for stream in (sys.stdout, sys.stderr):
        stream.write = cap = Cap(stream, most)
        shell.events.register("pre_run_cell", lambda _, cap=cap: cap.again())
