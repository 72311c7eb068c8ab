"""What the message of a test may tell: the lab's own words, and of the student's only those that stand in the cells.

A student's function sees the inputs of hidden tests. It must have no way to write them into the feedback: not by the
text or the name of an error, not by the name of a class, not by a line that it says is its own.
"""

from __future__ import annotations

import ast
import builtins
import contextlib
import re
from collections.abc import Collection, Iterator, Sequence

from lantern_grading.checker.cells import plain
from lantern_grading.checker.codec import CodecError
from lantern_grading.checker.link import ProcessEnded, ProcessLate
from lantern_lib.checks import CheckFailed

NOT_SHOWN = "[not shown]"
_KINDS = {
    "generator", "dict_keys", "dict_values", "dict_items", "Decimal", "date", "datetime", "timedelta", "Path",
    "PosixPath", "ndarray", "Match", "module", "method", "coroutine", "Fraction", "Enum", "Generator", "matrix",
    "MaskedArray", "DataFrame", "Series", "Figure", "Axes", "Random",
}  # fmt: skip
_WORD = re.compile(r"[A-Za-z_]\w*")
_OURS = (ProcessEnded, ProcessLate, CodecError)  # what the grader says itself
_LINE = " It happened in your line: "
#: What Python says by itself; the names in it must be known.
_PYTHONS = re.compile(
    r"(?:(?:float |integer )?(?:division|modulo)(?: or modulo)? by zero|integer modulo by zero"
    r"|math domain error|math range error"
    r"|(?:list|tuple|string|range object|deque)(?: assignment)? index out of range|pop from (?:an )?empty \w+"
    r"|maximum recursion depth exceeded[a-z ]*|expected a nonnegative input, got (?:-?inf|nan)"
    r"|unsupported operand type\(s\) for \S{1,5}: '(\w+)' and '(\w+)'|'(\w+)' object is not [a-z ]+"
    r"|'(\w+)' object has no attribute '(\w+)'|'(\w+)' object does not support [a-z ]+"
    r"|name '(\w+)' is not defined|\w+ indices must be integers or slices, not (\w+)"
    r"|can't multiply sequence by non-int of type '(\w+)'"
    r"|'\S{1,2}' not supported between instances of '(\w+)' and '(\w+)'"
    r"|can only concatenate \w+ \(not \"(\w+)\"\) to \w+|(\w+)\(\) (?:takes|missing) [a-z0-9 ]+(?:: '(\w+)')?"
    r"|(\w+)\(\) got an unexpected keyword argument '(\w+)'|cannot unpack non-iterable (\w+) object|no error text|)"
)


class Telling:
    """Knows what stands in a student's cells.

    Parameters
    ----------
    sources : sequence of str
        The cells.

    Examples
    --------
    >>> telling = Telling(["def f(x):\\n    raise ValueError('too small')"])
    >>> telling.text("too small"), telling.text("division by zero"), telling.text("seen 7")
    (True, True, False)
    >>> telling.name("f"), telling.name("hidden_7")
    (True, False)
    """

    def __init__(self, sources: Sequence[str] = ()) -> None:
        self.lines = {line.strip() for source in sources for line in source.split("\n")}
        self._names = set(_WORD.findall("\n".join(sources))) | set(dir(builtins)) | _KINDS
        self._texts = {text for source in sources for text in _constants(source)}

    def name(self, name: str) -> bool:
        """Say whether a name stands in the cells, or is one of Python's."""
        return name in self._names

    def text(self, text: str) -> bool:
        """Say whether a text stands in the cells as it is, or is one of Python's own."""
        found = _PYTHONS.fullmatch(text)
        return text in self._texts or bool(found and all(self.name(part) for part in found.groups() if part))

    def message(self, error: BaseException, cell: str, said: Collection[str], *, after: bool, hidden: bool) -> str:
        """Return what a failed test says.

        Parameters
        ----------
        error : BaseException
            What ended it.
        cell : str
            The name under which the test cell was compiled.
        said : collection of str
            The texts of the errors that the student's code raised.
        after : bool
            Whether the student's process has seen inputs of hidden tests.
        hidden : bool
            Whether this test has hidden parts.
        """
        text = self._text(error, cell, hidden)
        head, mark, line = text.partition(_LINE)
        if mark:
            own = next((own for own in sorted(self.lines, key=len, reverse=True) if own and line.startswith(own)), "")
            rest = line[len(own) :] if own else ""
            # After the line only the lab's own hint may follow.
            text = head + (mark + own if own else "") + (rest if rest.startswith(" Mind: ") else "")
        for word in sorted(said, key=len, reverse=True) if after else ():
            if word.strip() and not self.text(word):
                for form in (word, word.rstrip("."), repr(word)[1:-1]):
                    text = text.replace(form, NOT_SHOWN) if form.strip() else text
        return text

    def _text(self, error: BaseException, cell: str, hidden: bool) -> str:
        text, kind = str(error), type(error).__name__
        if isinstance(error, CheckFailed):
            return f"{kind}: {text}" if kind != "CheckFailed" else text
        own = hasattr(error, "lantern_line")
        if isinstance(error, AssertionError) and not own:
            # What a library of comparisons says quotes the values that a hidden test expects.
            quiet = hidden and _raised_in(error) != cell
            return "an assertion does not hold." if quiet or not text else text
        if hidden and not own and not isinstance(error, _OURS) and not self.text(text):
            return f"{kind}, when the test used what your code gave it."
        return f"{kind}: {text}"


def _constants(source: str) -> Iterator[str]:
    with contextlib.suppress(SyntaxError, ValueError, RecursionError, MemoryError):
        for node in ast.walk(ast.parse(plain(source))):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                yield node.value


def _raised_in(error: BaseException) -> str:
    at, name = error.__traceback__, ""
    while at is not None:
        at, name = at.tb_next, at.tb_frame.f_code.co_filename
    return name
