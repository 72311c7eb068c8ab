"""From a test cell to its points: it is run, and what its last line gives is a score or a fault of the instructor's."""

from __future__ import annotations

import ast
import contextlib
import functools
import math
from decimal import Decimal
from fractions import Fraction
from numbers import Real
from types import CodeType
from typing import Any

import numpy as np

from lantern_grading.credit import last_value
from lantern_grading.exam import ExamCell


class BadScoreError(ValueError):
    """The last expression of a test cell is no number from 0 to its points: the instructor's fault."""


def run_cell(test: ExamCell, names: dict[str, Any]) -> Any:
    """Run a test cell; return the value of its last expression, as a notebook would show it.

    Parameters
    ----------
    test : ExamCell
        The cell.
    names : dict
        Its global names.

    Returns
    -------
    Any
        None where a notebook shows nothing.
    """
    whole, last = compiled(test.cell_id, test.source)
    exec(whole, names)
    return None if last is None else eval(last, names)


@functools.lru_cache(256)
def compiled(cell_id: str, source: str) -> tuple[CodeType, CodeType | None]:
    """Compile a test cell: all of it, or all but the expression that a notebook would show, and that.

    Parameters
    ----------
    cell_id, source : str
        The cell.

    Returns
    -------
    tuple of code
        The second is None where a notebook shows nothing.
    """
    name = f"<{cell_id}>"
    tree, last = ast.parse(source), last_value(source)
    if last is not None:
        tree.body.pop()
    whole = compile(tree, name, "exec", dont_inherit=True)
    return whole, None if last is None else compile(ast.Expression(last), name, "eval", dont_inherit=True)


def points_of(value: Any, test: ExamCell) -> float:
    """Return the score of a test that ended without an error: all points, or the number that it gave.

    Parameters
    ----------
    value : Any
        The value of its last expression; None for none.
    test : ExamCell
        The test.

    Returns
    -------
    float
        From 0 to the test's points.

    Raises
    ------
    BadScoreError
        For anything else than a number in that range.

    Examples
    --------
    >>> from lantern_grading.exam import Role
    >>> points_of(np.float32(0.5), ExamCell("x", Role.TEST, "code", "", 2.0))
    0.5
    """
    if value is None:
        return float(test.points)
    number = math.nan
    if isinstance(value, Real | Decimal | Fraction | np.number) and not isinstance(value, bool | np.bool_):
        with contextlib.suppress(OverflowError, TypeError, ValueError):
            number = float(value)  # type: ignore[arg-type]
    if not 0 <= number <= test.points:
        raise BadScoreError(
            f"{test.cell_id} must end with a number from 0 to {test.points:g}, or with nothing, got {value!r:.80}."
        )
    return number
