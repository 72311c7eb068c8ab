"""One colour and one dash per role, for every figure of the course.

The book and its dark mode set the CSS variables; the value behind the comma is for notebooks, where
the variable does not exist.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Role:
    """A role that something plays in a figure: its colour, its dash and what it stands for."""

    name: str
    variable: str
    light: str
    dash: tuple[int, ...]
    meaning: str

    @property
    def colour(self) -> str:
        """The colour as CSS reads it."""
        return f"var({self.variable}, {self.light})"


MEMORY = Role("memory", "--lt-memory", "#1f5fa8", (), "bytes that are stored or moved")
ARITHMETIC = Role("arithmetic", "--lt-arithmetic", "#a3541a", (7, 3), "FLOPs and the units that do them")
TOTAL = Role("shared or total", "--lt-total", "#6a3fb5", (), "what is shared, and sums")
USER = Role("user", "--lt-user", "#1e7a3c", (2, 3), "people, prompts and what they see")
CONTROL = Role("control", "--lt-control", "#b0307f", (9, 3, 2, 3), "limits, rules and decisions")
ATTACKER = Role("attacker", "--lt-attacker", "#c0262d", (1, 2), "someone who means harm")

ROLES = (MEMORY, ARITHMETIC, TOTAL, USER, CONTROL, ATTACKER)

# Neutral colours: the variable of the page, and its value in the light theme.
NEUTRALS = {
    "--lt-text": "#1d2430",
    "--lt-muted": "#55606e",
    "--lt-rule": "#dedcd4",
    "--lt-surface": "#fefefc",
    "--lt-panel": "#f5f4ef",
}
TEXT, MUTED, RULE, SURFACE, PANEL = (f"var({name}, {value})" for name, value in NEUTRALS.items())

#: What a plot writes, and what the book makes of it. A plot is drawn on a canvas in JupyterLab, where
#: no variable can be resolved, so it holds plain colours.
PAGE_COLOURS = {role.light: role.colour for role in ROLES} | {v: f"var({n}, {v})" for n, v in NEUTRALS.items()}
PLOT_TEXT, PLOT_MUTED, PLOT_SURFACE = NEUTRALS["--lt-text"], NEUTRALS["--lt-muted"], NEUTRALS["--lt-surface"]
