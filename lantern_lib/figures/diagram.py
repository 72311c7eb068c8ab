"""Diagrams as inline SVG: text stays text, colours follow the page, and there is a layout for phones."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from html import escape

from lantern_lib.figures.roles import MUTED, PANEL, TEXT, Role

WIDE, NARROW = 720, 350


@dataclass
class Canvas:
    """One drawing of a fixed width; the height grows with what is drawn.

    Coordinates are pixels of the drawing, from the top left corner. Shapes are kept as SVG text.
    """

    width: int
    height: float = 0.0
    parts: list[str] = field(default_factory=list)

    def _add(self, markup: str, bottom: float) -> None:
        self.parts.append(markup)
        self.height = max(self.height, bottom)

    @contextmanager
    def step(self, number: int) -> Iterator[None]:
        """Put what is drawn inside into one step of a diagram that unfolds."""
        self.parts.append(f'<g data-step="{number}">')
        yield
        self.parts.append("</g>")

    def text(
        self,
        x: float,
        y: float,
        words: str,
        *,
        colour: str = TEXT,
        size: float = 13.5,
        anchor: str = "start",
        bold: bool = False,
    ) -> None:
        """Write one line; `y` is its baseline."""
        weight = ' font-weight="600"' if bold else ""
        self._add(
            f'<text x="{x:.1f}" y="{y:.1f}" fill="{colour}" font-size="{size}" text-anchor="{anchor}"{weight}>'
            f"{escape(words)}</text>",
            y + 5,
        )

    def lines(self, x: float, y: float, rows: Sequence[str], *, pitch: float = 17.5, **style: str | float) -> None:
        """Write several lines below each other."""
        for index, row in enumerate(rows):
            self.text(x, y + index * pitch, row, **style)  # type: ignore[arg-type]

    def box(
        self,
        x: float,
        y: float,
        width: float,
        height: float,
        role: Role | None = None,
        *,
        title: str = "",
        rows: Sequence[str] = (),
        solid: bool = False,
    ) -> None:
        """Draw a rounded box with a bold title in its role's colour and lines of text under it."""
        edge = role.colour if role else MUTED
        dash = f' stroke-dasharray="{" ".join(map(str, role.dash))}"' if role and role.dash and not solid else ""
        fill, opacity = (edge, 0.16) if solid else (PANEL, 1)
        self._add(
            f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" rx="7" fill="{fill}"'
            f' fill-opacity="{opacity}" stroke="{edge}" stroke-width="1.6"{dash}/>',
            y + height + 2,
        )
        if title:
            self.text(x + 12, y + 22, title, colour=edge if role else TEXT, bold=True, size=14)
        self.lines(x + 12, y + (41 if title else 22), rows, size=13)

    def bar(self, x: float, y: float, width: float, height: float, role: Role | None, opacity: float = 0.85) -> None:
        """Draw a filled bar without text."""
        fill = role.colour if role else MUTED
        self._add(
            f'<rect x="{x:.1f}" y="{y:.1f}" width="{max(width, 0.8):.1f}" height="{height:.1f}" rx="2" fill="{fill}"'
            f' fill-opacity="{opacity}"/>',
            y + height,
        )

    def path(self, d: str, role: Role | None = None, *, arrow: bool = False, width: float = 1.8) -> None:
        """Draw a line, with an arrow head at its end if wanted."""
        colour = role.colour if role else MUTED
        dash = f' stroke-dasharray="{" ".join(map(str, role.dash))}"' if role and role.dash else ""
        head = ' marker-end="url(#ARROW)"' if arrow else ""
        self.parts.append(f'<path d="{d}" fill="none" stroke="{colour}" stroke-width="{width}"{dash}{head}/>')

    def circle(self, x: float, y: float, radius: float, role: Role) -> None:
        """Draw a dot."""
        self._add(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{radius}" fill="{role.colour}"/>', y + radius)


def wide_and_narrow(draw: Callable[[Canvas], None]) -> tuple[Canvas, Canvas]:
    """Let one function draw both layouts of a diagram.

    Parameters
    ----------
    draw : callable
        Draws on the canvas it is given; the canvas's width says which layout it is.

    Returns
    -------
    (Canvas, Canvas)
        The wide and the narrow drawing.

    Examples
    --------
    >>> wide, narrow = wide_and_narrow(lambda canvas: canvas.text(0, 20, f"{canvas.width} px"))
    >>> wide.width, narrow.width
    (720, 350)
    """
    wide, narrow = Canvas(WIDE), Canvas(NARROW)
    draw(wide)
    draw(narrow)
    return wide, narrow


@dataclass(frozen=True)
class Diagram:
    """A finished diagram: a wide and a narrow drawing of the same content.

    ``title`` names it and ``description`` says what it shows, for people who do not see it.
    ``steps`` is how many parts unfold, 0 for a still one; without script all parts show.
    """

    title: str
    description: str
    wide: Canvas
    narrow: Canvas
    steps: int = 0

    def _svg(self, canvas: Canvas, kind: str, display: str) -> str:
        ident = "d" + hashlib.sha256((self.title + kind).encode()).hexdigest()[:8]
        body = "".join(canvas.parts).replace("#ARROW", f"#{ident}-arrow")
        steps = f' data-steps="{self.steps}"' if self.steps else ""
        return (
            f'<svg class="lt-{kind}" viewBox="0 0 {canvas.width} {canvas.height + 4:.0f}" width="{canvas.width}"'
            f' role="img" aria-labelledby="{ident}-t {ident}-d"{steps} font-family="inherit"'
            f' style="display:var(--lt-{kind}-display, {display});max-width:100%;height:auto;margin:0 auto">'
            f'<title id="{ident}-t">{escape(self.title)}</title><desc id="{ident}-d">{escape(self.description)}</desc>'
            f'<defs><marker id="{ident}-arrow" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7"'
            f' orient="auto-start-reverse"><path d="M0 0L8 4L0 8z" fill="{MUTED}"/></marker></defs>{body}</svg>'
        )

    def __repr__(self) -> str:
        return f"{self.title}. {self.description}"

    def _repr_html_(self) -> str:
        wide, narrow = self._svg(self.wide, "wide", "block"), self._svg(self.narrow, "narrow", "none")
        return f'<div class="lt-diagram">{wide}{narrow}</div>'
