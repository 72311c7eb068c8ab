"""The calculator's place on its page: the tables for the script, and one answer that stands there without it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from html import escape
from typing import Any

from lantern_lib.calculator import Answer
from lantern_lib.units import format_quantity

#: Parts of the bar, first to last, with the colour of their role; the script has the same list.
PARTS = (
    ("weights", "weights", "memory"),
    ("rotary table", "rotary table", "total"),
    ("runtime", "runtime", "muted"),
    ("recorded graphs", "recorded graphs", "control"),
    ("activation peak", "activations", "arithmetic"),
    ("pool", "pool for the cache", "user"),
    ("rest", "left to others", "rest"),
)


@dataclass(frozen=True)
class Panel:
    """Tables and an answer, shown as HTML."""

    tables: dict[str, Any]
    found: Answer

    def _sizes(self) -> list[tuple[str, str, float]]:
        plan = self.found.plan
        sizes = {name: part.value for name, part in plan.parts.items()} | {"pool": plan.pool.value}
        sizes["rest"] = plan.device.size.value - sum(sizes.values())
        return [(label, role, sizes[name]) for name, label, role in PARTS if sizes[name] > 0]

    @property
    def description(self) -> str:
        """What the bar shows, in words."""
        parts = ", ".join(f"{label} {format_quantity(size, 'GB', 2)}" for label, _, size in self._sizes())
        return f"Memory of one GPU, {format_quantity(self.found.plan.device.size.value, 'GB', 2)}: {parts}."

    def __repr__(self) -> str:
        return self.description

    def _repr_html_(self) -> str:
        whole = self.found.plan.device.size.value
        bar = "".join(
            f'<span class="lt-membar__part lt-membar__{role}" style="width:{100 * size / whole:.3f}%"></span>'
            for _, role, size in self._sizes()
        )
        key = "".join(
            f'<li><span class="lt-membar__swatch lt-membar__{role}"></span>{label}'
            f" {format_quantity(size, 'GB', 2)}</li>"
            for label, role, size in self._sizes()
        )
        data = json.dumps(self.tables, separators=(",", ":")).replace("<", "\\u003c")
        return (
            f'<div class="lt-calculator"><script type="application/json" class="lt-calculator__data">{data}</script>'
            f'<div class="lt-calculator__static"><div class="lt-membar" role="img"'
            f' aria-label="{escape(self.description)}">{bar}</div><ul class="lt-membar__key">{key}</ul></div></div>'
        )


def panel(tables: dict[str, Any], found: Answer) -> Panel:
    """Return the calculator with an answer of the library in its place.

    Parameters
    ----------
    tables : dict
        Of :func:`lantern_lib.calculator_tables.tables`.
    found : Answer
        What a reader without script sees; its pool must be above zero.

    Returns
    -------
    Panel
        Shown as HTML in a notebook.

    Raises
    ------
    ValueError
        If the model of the answer does not fit its cards.

    Examples
    --------
    >>> from lantern_lib.calculator import Question, answer
    >>> from lantern_lib.models import find_model
    >>> panel({}, answer(Question(find_model("Qwen3-8B"))))
    Memory of one GPU, 85.02 GB: weights 16.38 GB, runtime 0.15 GB, activations 6.07 GB, pool for the cache 53.92 GB,\
 left to others 8.50 GB.
    """
    if not found.plan.fits:
        raise ValueError("found must have a pool above 0, got a model that does not fit. Show one that does.")
    return Panel(tables, found)
