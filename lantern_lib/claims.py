"""The ledger of numbers: what a page prints must be what the library computes.

A claim ties a printed quantity to a value. ``claim("a3-step-b1", step.total_seconds, "14.3 ms")``
passes if the value, in the printed unit, rounds to the printed number at the printed precision;
otherwise it raises and the page does not build. A passing claim is published as output of its
cell, from where the book's ``claim`` role reads it.
"""

from __future__ import annotations

import ast
import html
import inspect
import types
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from lantern_lib.units import parse_quantity, rounds_to

_PREFIX = "application/papermill.record/"
# A notebook may hold an object only under a type that ends in +json.
_RECORD = _PREFIX + "application/vnd.lantern.claim+json"


class ClaimError(ValueError):
    """A printed number is not what the computation gives, or a claim is malformed."""


@dataclass(frozen=True)
class Claim:
    """One printed quantity with its derivation. ``value`` is in base units [unit given by ``unit``]."""

    id: str
    printed: str
    value: float
    unit: str
    expression: str
    inputs: list[list[str]]
    note: str
    holds: bool = True


_ledger: dict[str, Claim] = {}


def claim(
    id: str,
    value: float,
    printed: str,
    note: str = "",
    *,
    digits: int | None = None,
    relation: str = "equals",
) -> None:
    """Check that a value is what the page prints, and publish its derivation.

    Parameters
    ----------
    id : str
        Name of the claim, beginning with its section: ``a3-step-b1``.
    value : float
        The computed value [base unit of the printed one].
    printed : str
        What the reader sees [text].
    note : str
        Convention or assumption that the reader should know [text].
    digits : int, optional
        Significant digits that a round number means [count].
    relation : {"equals", "above", "below"}
        ``above`` and ``below`` claim that the value exceeds, or stays under, the printed quantity.

    Raises
    ------
    ClaimError
        If the value is not what is printed, or the id is taken by another printed text.

    Examples
    --------
    >>> claim("doc-tokens", 64 / 0.018719, "3,419 tokens/s")
    >>> claim("doc-tokens-wrong", 64 / 0.018719, "3,500 tokens/s")
    Traceback (most recent call last):
    ...
    lantern_lib.claims.ClaimError: doc-tokens-wrong: printed '3,500 tokens/s', computed 3,418.986 tokens/s
    """
    quantity = parse_quantity(printed)
    if isinstance(value, bool) or (not isinstance(value, int | float) and not hasattr(value, "__float__")):
        raise ClaimError(f"{id}: the value must be a number, got {value!r}")
    number = float(value)
    shown = number / quantity.scale
    holds = {
        "equals": lambda: rounds_to(number, quantity, digits),
        "above": lambda: shown > quantity.number,
        "below": lambda: shown < quantity.number,
    }
    if relation not in holds:
        raise ClaimError(f"{id}: relation must be one of {', '.join(holds)}, got {relation!r}")
    if not holds[relation]():
        raise ClaimError(f"{id}: printed {printed!r}, computed {shown:,.7g} {quantity.unit}".rstrip())
    if id in _ledger and _ledger[id].printed != printed:
        raise ClaimError(f"{id}: printed {printed!r} here and {_ledger[id].printed!r} before; use two ids")
    expression, inputs = _derivation(inspect.currentframe())
    record = Claim(id, printed, number, quantity.base_unit, expression, inputs, note)
    _ledger[id] = record
    _publish(record)


def printed(id: str) -> str:
    """Return the printed text of a claim made so far, for labels in figures.

    Parameters
    ----------
    id : str
        The claim.

    Returns
    -------
    str
        What the page prints [text].

    Raises
    ------
    ClaimError
        If there is no such claim yet.

    Examples
    --------
    >>> claim("doc-fit", 54, "54 conversations")
    >>> printed("doc-fit")
    '54 conversations'
    """
    if id not in _ledger:
        raise ClaimError(f"{id}: no such claim was made so far")
    return _ledger[id].printed


def summary(prefix: str = "") -> str:
    """Say in one line how many claims were made and hold.

    Parameters
    ----------
    prefix : str
        Count only the ids that begin so [text].

    Returns
    -------
    str
        For example ``34 claims hold``; a claim that fails stops its page, so all counted ones hold.

    Examples
    --------
    >>> claim("sum-one", 1, "1")
    >>> summary("sum-")
    '1 claim holds'
    """
    count = sum(id.startswith(prefix) for id in _ledger)
    return f"{count} claim holds" if count == 1 else f"{count} claims hold"


@dataclass(frozen=True)
class CheckBox:
    """The list of a section's claims, for the end of a page."""

    section: str
    claims: tuple[Claim, ...]

    @property
    def title(self) -> str:
        """The section as a reader knows it: A3, or Capacity types."""
        return self.section.upper() if len(self.section) <= 3 else self.section.replace("_", " ").capitalize()

    def __repr__(self) -> str:
        lines = [f"Check {self.title}: {summary(self.section + '-')}"]
        return "\n".join(lines + [f"  {c.printed}  =  {c.expression}" for c in self.claims])

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><td>{html.escape(c.printed)}</td><td><code>{html.escape(c.expression)}</code></td>"
            f"<td>{_full(c.value)} {html.escape(c.unit)}</td></tr>"
            for c in self.claims
        )
        head = "<tr><th>Printed</th><th>Computed by</th><th>Value</th></tr>"
        return (
            f'<details class="lt-check"><summary>Check: {summary(self.section + "-")} in'
            f" {self.title}</summary>"
            f'<div class="lt-scroll" tabindex="0" role="region" aria-label="Claims of {self.title}">'
            f"<table><thead>{head}</thead><tbody>{rows}</tbody></table></div></details>"
        )


def _full(value: float) -> str:
    """Print a whole number in full, and any other with enough digits to check it."""
    return f"{value:,.0f}" if value.is_integer() and abs(value) < 1e15 else f"{value:,.10g}"


def check_box(section: str) -> CheckBox:
    """Return the claims of a section, as a box that lists and counts them.

    Parameters
    ----------
    section : str
        The section, for example ``a3`` [text].

    Returns
    -------
    CheckBox
        Shown as a folded table in a notebook.

    Raises
    ------
    ClaimError
        If the section made no claim: an empty check would look like a passed one.

    Examples
    --------
    >>> claim("zz-one", 1, "1")
    >>> check_box("zz")
    Check ZZ: 1 claim holds
      1  =  1
    """
    found = tuple(c for c in _ledger.values() if c.id.startswith(section + "-"))
    if not found:
        raise ClaimError(f"{section}: no claim begins with '{section}-'")
    return CheckBox(section, found)


def _derivation(frame: types.FrameType | None) -> tuple[str, list[list[str]]]:
    """Return the source of the caller's value argument, and what its names stand for."""
    caller = frame.f_back if frame is not None else None
    if caller is None:
        return "", []
    node = _call_node(caller)
    if node is None:
        return "", []
    argument = node.args[1] if len(node.args) > 1 else next(k.value for k in node.keywords if k.arg == "value")
    scope: dict[str, Any] = {**caller.f_globals, **caller.f_locals}
    return ast.unparse(argument), _inputs(argument, scope)


def _call_node(caller: types.FrameType) -> ast.Call | None:
    # IPython brings this library; in a plain script a claim goes without its source.
    try:
        from executing import Source
    except ImportError:
        return None
    node = Source.executing(caller).node
    return node if isinstance(node, ast.Call) else None


def _inputs(argument: ast.expr, scope: Mapping[str, Any]) -> list[list[str]]:
    nodes = [n for n in ast.walk(argument) if isinstance(n, ast.Name)]
    names = [n.id for n in sorted(nodes, key=lambda n: (n.lineno, n.col_offset))]
    found: list[list[str]] = []
    for name in dict.fromkeys(names):
        value = scope.get(name)
        line = getattr(value, "summary", None)
        if isinstance(line, str):
            found.append([name, line])
        elif isinstance(value, int | float) and not isinstance(value, bool):
            found.append([name, f"{value:,.10g}"])
    return found


def _publish(record: Claim) -> None:
    """Glue the claim to the cell's outputs, in the form that the book reads; outside a kernel do nothing."""
    try:
        from IPython import get_ipython
        from IPython.display import display
    except ImportError:
        return
    if get_ipython() is None:
        return
    display(  # type: ignore[no-untyped-call]
        {_PREFIX + "text/plain": record.printed, _RECORD: asdict(record)},
        raw=True,
        metadata={"scrapbook": {"name": f"claim:{record.id}", "mime_prefix": _PREFIX}},
    )
