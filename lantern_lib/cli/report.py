"""What a command found, before anybody decides how to print it."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, field
from typing import Any

from lantern_lib.devices import Range
from lantern_lib.units import format_quantity

Value = float | int | str | bool | None


@dataclass(frozen=True)
class Row:
    """One line: the name that programs read, the words for people, the value in base units, and how it came about."""

    key: str
    label: str
    value: Value
    shown: str
    working: str = ""
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True)
class Table:
    """Lines that belong together."""

    title: str
    rows: tuple[Row, ...]


@dataclass(frozen=True)
class Report:
    """The answer of a command: tables, sentences, and whether what was asked for fits."""

    command: str
    title: str
    tables: tuple[Table, ...]
    notes: tuple[str, ...] = ()
    fits: bool = True
    inputs: dict[str, Value] = field(default_factory=dict)

    def as_json(self) -> str:
        """Return the report for programs: base units, null for what is not finite."""
        values: dict[str, Any] = {}
        for row in (row for table in self.tables for row in table.rows):
            values[row.key] = _finite(row.value)
            if row.low is not None:
                values[row.key + "_low"], values[row.key + "_high"] = _finite(row.low), _finite(row.high)
        content = {
            "command": self.command,
            "inputs": {name: _finite(value) for name, value in self.inputs.items()},
            "fits": self.fits,
            "values": values,
            "notes": list(self.notes),
        }
        return json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False)


def _finite(value: Value) -> Value:
    return None if isinstance(value, float) and not math.isfinite(value) else value


def quantity(
    key: str,
    label: str,
    value: float | Range | None,
    unit: str = "",
    decimals: int = 0,
    working: str = "",
) -> Row:
    """Return a line for a value in base units.

    Parameters
    ----------
    key, label : str
        What programs and people call it [text].
    value : float, Range or None
        The value, with its interval if it has one; None prints as a dash [base unit of `unit`].
    unit : str
        The unit to print in, of :data:`lantern_lib.units.UNITS` [text].
    decimals : int
        Digits after the point [count].
    working : str
        How it came about [text].

    Returns
    -------
    Row
        The line.

    Examples
    --------
    >>> quantity("pool_bytes", "pool", Range(2e9, 1e9, 3e9), "GB", 1).shown
    '2.0 GB (1.0 to 3.0)'
    """
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return Row(key, label, None, "–", working)
    if not isinstance(value, Range):
        shown = "never" if value == math.inf else format_quantity(value, unit, decimals)
        return Row(key, label, value, shown, working)
    shown = format_quantity(value.value, unit, decimals)
    if value.low == value.high:
        return Row(key, label, value.value, shown, working, value.low, value.high)
    low, high = (format_quantity(each, unit, decimals).split(" ")[0] for each in (value.low, value.high))
    return Row(key, label, value.value, f"{shown} ({low} to {high})", working, value.low, value.high)
