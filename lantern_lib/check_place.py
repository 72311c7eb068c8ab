"""Where the functions under test live: beside the tests, or somewhere else."""

from __future__ import annotations

import contextlib
import traceback
from collections.abc import Callable, Collection, Iterator, Mapping, MutableMapping, Sequence
from typing import Any

from lantern_lib.check_time import time_limit
from lantern_lib.labs import leans_on, stand_ins

#: The name in a namespace under which a test finds another place than :class:`Here`.
PLACE = "__lantern_place__"


class Here:
    """The functions live in the namespace of the tests, in this process.

    A grader that keeps a student's process apart puts an object with the same methods into the tests'
    namespace, under the name :data:`PLACE`.

    Examples
    --------
    >>> names = {"double": lambda x: x + x}
    >>> with Here().given(names, 1, ["ridge_point"]):
    ...     sorted(names)
    ['double', 'ridge_point']
    >>> sorted(names)
    ['double']
    """

    @contextlib.contextmanager
    def given(self, names: MutableMapping[str, Any], week: int, functions: Sequence[str]) -> Iterator[None]:
        """Put correct versions of functions into a namespace while the body runs.

        Parameters
        ----------
        names : mutable mapping
            The namespace.
        week : int
            The lab's week [count].
        functions : sequence of str
            Keys of :func:`lantern_lib.labs.stand_ins` [text].
        """
        right = stand_ins(week)
        before = {name: names.pop(name) for name in functions if name in names}
        names.update({name: right[name] for name in functions})
        try:
            yield
        finally:
            for name in functions:
                names.pop(name, None)
            names.update(before)

    def leans_on(self, function: Callable[..., Any], past: Collection[str], week: int) -> str:
        """Return the first library module with answers that a function reaches, or an empty text."""
        return leans_on(function, past, week)

    def time_limit(self, seconds: float) -> contextlib.AbstractContextManager[None]:
        """Raise TimeUp in the body when what it calls has used too much of the processor."""
        return time_limit(seconds)

    def line_of(self, function: Callable[..., Any], error: BaseException) -> str:
        """Return the function's own line in which an error came up, or an empty text."""
        code = getattr(function, "__code__", None)
        frames = traceback.extract_tb(error.__traceback__)
        lines = [frame.line for frame in frames if code is not None and frame.filename == code.co_filename]
        return (lines[-1] or "") if lines else ""


def place_of(names: Mapping[str, Any]) -> Here:
    """Return where the functions of a namespace live.

    Parameters
    ----------
    names : mapping
        The namespace of the tests.

    Returns
    -------
    Here
        Or an object with its methods.

    Examples
    --------
    >>> type(place_of({})).__name__
    'Here'
    """
    found = names.get(PLACE)
    return found if isinstance(found, Here) else Here()
