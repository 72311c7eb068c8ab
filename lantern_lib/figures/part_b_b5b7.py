"""Diagrams of pages B5 and B7. Numbers in them are computed by the library, never typed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

from lantern_lib import step, transformer
from lantern_lib.figures.diagram import NARROW, WIDE, Canvas, Diagram, wide_and_narrow
from lantern_lib.figures.roles import ARITHMETIC, CONTROL, MEMORY, MUTED, TEXT, TOTAL, USER, Role
from lantern_lib.hardware import Replica
from lantern_lib.model_config import ModelConfig
from lantern_lib.quantization import with_storage
from lantern_lib.units import format_quantity


def storages(
    model: ModelConfig, replica: Replica, context_len: int, batch_size: int, widths: tuple[int, ...] = (16, 8, 4)
) -> Diagram:
    """Draw weights in several widths with their bytes, their step and their throughput.

    Parameters
    ----------
    model : ModelConfig
        The shape.
    replica : Replica
        The machine with its efficiencies.
    context_len : int
        Cached tokens of each sequence [tokens].
    batch_size : int
        Batch of the throughput [sequences].
    widths : tuple of int
        Bits of one stored weight, the widest first [bits].

    Returns
    -------
    Diagram
        A still diagram; each bar is drawn to the scale of its kind.

    Examples
    --------
    >>> from lantern_lib import H100, LANTERN_70B
    >>> "4 bits: 35.3 GB" in storages(LANTERN_70B, Replica(H100, tp_size=4), 2000, 64).description
    True
    """
    rows = []
    for bits in widths:
        stored = with_storage(model, bits)
        alone = step.decode_step(stored, replica, 1, context_len).total_seconds
        rate = step.decode_step(stored, replica, batch_size, context_len).tokens_per_second
        rows.append((bits, transformer.weight_bytes(stored), alone, rate))
    kinds: list[tuple[str, str, Role, Callable[[float], str]]] = [
        ("weights", "weights", MEMORY, lambda value: format_quantity(value, "GB", 1)),
        ("step at batch 1", "batch 1", TOTAL, lambda value: format_quantity(value, "ms", 1)),
        (f"tokens/s at batch {batch_size}", f"batch {batch_size}", USER, lambda value: f"{value:,.0f}"),
    ]

    def draw(canvas: Canvas) -> None:
        wide = canvas.width == WIDE
        left, pitch = (92.0, 212.0) if wide else (4.0, 116.0)
        full = pitch - (86 if wide else 10)
        for column, (name, short, role, _) in enumerate(kinds):
            canvas.text(left + column * pitch, 16, name if wide else short, colour=role.colour, bold=True, size=13)
        for row, (bits, *values) in enumerate(rows):
            y = 34 + row * (46 if wide else 76)
            canvas.text(4, y + (19 if wide else 14), f"{bits} bits", bold=True)
            bar = y if wide else y + 22
            for column, (value, (_, _, role, show)) in enumerate(zip(values, kinds, strict=True)):
                largest = max(values[column] for _, *values in rows)
                x, length = left + column * pitch, full * value / largest
                canvas.bar(x, bar, length, 26 if wide else 16, role)
                at, base = (x + length + 8, bar + 18) if wide else (x, bar + 33)
                canvas.text(at, base, show(value) + ("" if wide or column < 2 else " tok/s"), size=12.5)

    listed = "; ".join(
        f"{bits} bits: {format_quantity(size, 'GB', 1)}, {format_quantity(alone, 'ms', 1)} at batch 1, {rate:,.0f}"
        f" tokens/s at batch {batch_size}"
        for bits, size, alone, rate in rows
    )
    return Diagram(
        "The same weights in three widths", f"Bars for each width of a weight. {listed}.", *wide_and_narrow(draw)
    )


@dataclass(frozen=True)
class _Grid:
    """Rows of token boxes, with the name of each row beside it or, on a phone, above it."""

    canvas: Canvas

    @property
    def wide(self) -> bool:
        return self.canvas.width == WIDE

    @property
    def size(self) -> tuple[float, float, float]:
        """Left edge, width of a box, and the gap after it."""
        return (196.0, 92.0, 12.0) if self.wide else (4.0, 78.0, 9.0)

    def top(self, row: int) -> float:
        return 4 + row * 72.0 if self.wide else 26 + row * 94.0

    def x(self, index: int) -> float:
        left, width, gap = self.size
        return left + index * (width + gap)

    def name(self, row: int, title: str, note: str, role: Role) -> None:
        y = self.top(row)
        if self.wide:
            self.canvas.text(4, y + 17, title, colour=role.colour, bold=True)
            self.canvas.text(4, y + 35, note, colour=MUTED, size=12.5)
        else:
            self.canvas.text(4, y - 10, title, colour=role.colour, bold=True, size=12.5)
            self.canvas.text(NARROW - 4, y - 10, note, colour=MUTED, size=11.5, anchor="end")

    def write(self, row: int, index: int, words: str, colour: str, *, below: float = 22, size: float = 13) -> None:
        middle = self.x(index) + self.size[1] / 2
        self.canvas.text(middle, self.top(row) + below, words, colour=colour, anchor="middle", size=size)

    def token(self, row: int, index: int, word: str, role: Role | None, *, solid: bool = False, note: str = "") -> None:
        self.canvas.box(self.x(index), self.top(row), self.size[1], 34, role, solid=solid)
        colour = role.colour if role else MUTED
        self.write(row, index, word, colour)
        if note:
            self.write(row, index, note, colour, below=50, size=12)


def speculative_round(
    kept: int = 2, words: tuple[str, ...] = ("disk", "was", "nearly", "full"), own: str = "not"
) -> Diagram:
    """Draw one round of speculative decoding: propose, check, keep the beginning, go on.

    Parameters
    ----------
    kept : int
        Drafted tokens that pass before one fails [tokens].
    words : tuple of str
        The drafted tokens.
    own : str
        What the large model puts in place of the first that fails.

    Returns
    -------
    Diagram
        Four steps that unfold.

    Raises
    ------
    ValueError
        If `kept` does not leave a draft that fails.

    Examples
    --------
    >>> speculative_round().steps
    4
    """
    if not 0 <= kept < len(words):
        raise ValueError(f"kept must be below the {len(words)} drafted tokens and not negative, got {kept!r}.")
    count = len(words)

    def draw(canvas: Canvas) -> None:
        grid = _Grid(canvas)
        _, w, gap = grid.size
        with canvas.step(1):
            grid.name(0, "Draft model", f"{count} small steps", USER)
            for index, word in enumerate(words):
                grid.token(0, index, word, USER)
                if index:
                    canvas.path(f"M{grid.x(index) - gap + 1:.0f} {grid.top(0) + 17:.0f}h{gap - 3:.0f}", arrow=True)
        with canvas.step(2):
            grid.name(1, "Large model", f"one step checks all {count}", ARITHMETIC)
            canvas.box(grid.x(0), grid.top(1), count * (w + gap) - gap, 34, ARITHMETIC, solid=True)
            for index in range(count):
                grid.write(1, index, "pass" if index < kept else ("fail" if index == kept else "not used"), TEXT)
        with canvas.step(3):
            grid.name(2, "Kept", f"{kept} drafts and one of its own", TOTAL)
            for index in range(kept):
                grid.token(2, index, words[index], TOTAL, solid=True)
            grid.token(2, kept, own, ARITHMETIC, solid=True, note="its own")
            for index in range(kept + 1, count):
                grid.token(2, index, words[index], None, note="dropped")
        with canvas.step(4):
            grid.name(3, "Next round", f"begins {kept + 1} tokens later", USER)
            grid.token(3, 0, "…", USER)
            gained = f"{kept + 1} tokens from one large step"
            canvas.text(grid.x(1), grid.top(3) + 22, gained, colour=TOTAL.colour, bold=True)

    return Diagram(
        "The large model checks, it does not write",
        f"A draft model proposes {count} tokens in {count} small steps. The large model scores all of them in one step."
        f" The first {kept} pass and are kept, the next fails and is replaced by a token of the large model's own, and"
        f" what follows is dropped. The round gave {kept + 1} tokens.",
        *wide_and_narrow(draw),
        steps=4,
    )


def benchmark_loop() -> Diagram:
    """Draw how a measurement is made, read and used.

    Returns
    -------
    Diagram
        A still diagram with five stations in a loop.

    Examples
    --------
    >>> benchmark_loop().title
    'A benchmark is a loop'
    """
    stations: list[tuple[Role, str, tuple[str, str]]] = [
        (USER, "1 Measure", ("real lengths,", "fixed rates")),
        (TOTAL, "2 Convert", ("to MFU and MBU,", "beside the floor")),
        (CONTROL, "3 Locate", ("which part of the", "step is too long")),
        (ARITHMETIC, "4 Profile", ("see it in a trace", "before changing")),
        (MEMORY, "5 Change", ("one thing only,", "then again")),
    ]
    until = "until the promise holds at the rate you need"

    def draw(canvas: Canvas) -> None:
        wide = canvas.width == WIDE
        w, h = (130.0, 84.0) if wide else (NARROW - 44.0, 84.0)
        spots = [(2 + i * 146.0, 4.0) for i in range(5)] if wide else [(2.0, 4 + i * 104.0) for i in range(5)]
        for (x, y), (role, title, rows) in zip(spots, stations, strict=True):
            canvas.box(x, y, w, h, role, title=title, rows=rows)
        for (x, y), (to_x, to_y) in pairwise(spots):
            start = f"M{x + w + 1:.0f} {y + h / 2:.0f}" if wide else f"M{x + w / 2:.0f} {y + h + 1:.0f}"
            canvas.path(start + (f"H{to_x - 2:.0f}" if wide else f"V{to_y - 2:.0f}"), arrow=True)
        (x, y), (end_x, end_y) = spots[-1], spots[0]
        if wide:
            back = f"M{x + w / 2:.0f} {y + h + 2:.0f}V{y + h + 26:.0f}H{end_x + w / 2:.0f}V{end_y + h + 4:.0f}"
            canvas.path(back, CONTROL, arrow=True)
            canvas.text(
                WIDE / 2,
                y + h + 46,
                "until the promise holds at the rate you need",
                anchor="middle",
                colour=CONTROL.colour,
            )
            return
        side = x + w + 20
        back = f"M{x + w + 2:.0f} {y + h / 2:.0f}H{side:.0f}V{end_y + h / 2:.0f}H{end_x + w + 4:.0f}"
        canvas.path(back, CONTROL, arrow=True)
        canvas.text(2, y + h + 24, until, colour=CONTROL.colour, size=12.5)

    listed = "; ".join(f"{title}: {' '.join(rows)}" for _, title, rows in stations)
    return Diagram(
        "A benchmark is a loop", f"Five stations in a circle. {listed}. Then measure again.", *wide_and_narrow(draw)
    )


def step_gap(model: ModelConfig, replica: Replica, context_len: int, measured_seconds: float) -> Diagram:
    """Draw a measured decode step at batch 1 beside its floor, divided into what the floor explains and the rest.

    Parameters
    ----------
    model : ModelConfig
        The shape.
    replica : Replica
        The machine with its efficiencies.
    context_len : int
        Cached tokens [tokens].
    measured_seconds : float
        The measured step, longer than its floor [seconds].

    Returns
    -------
    Diagram
        A still diagram to scale.

    Raises
    ------
    ValueError
        If the measured step is shorter than its floor.

    Examples
    --------
    >>> from lantern_lib import H100, LANTERN_70B
    >>> "unexplained 10.7 ms" in step_gap(LANTERN_70B, Replica(H100, tp_size=4), 2000, 0.025).description
    True
    """
    floor = step.decode_step(model, replica, 1, context_len)
    if measured_seconds < floor.total_seconds:
        raise ValueError(
            f"measured_seconds must be at least the floor of {floor.total_seconds:.4g} seconds, got"
            f" {measured_seconds!r}. A time below the floor did not measure this work."
        )
    at_peak = floor.memory_seconds * replica.bandwidth_efficiency
    parts: list[tuple[str, float, Role | None]] = [
        ("read at peak bandwidth", at_peak, MEMORY),
        ("read at the assumed efficiency", floor.memory_seconds - at_peak, MEMORY),
        ("communication", floor.communication_seconds, TOTAL),
        ("unexplained", measured_seconds - floor.total_seconds, CONTROL),
    ]

    def draw(canvas: Canvas) -> None:
        scale = (canvas.width - 8) / measured_seconds
        x = 4.0
        for index, (_, seconds, role) in enumerate(parts):
            canvas.bar(x, 24, seconds * scale - 1.5, 34, role, (0.9, 0.5, 0.85, 0.3)[index])
            x += seconds * scale
        edge = 4 + floor.total_seconds * scale
        canvas.path(f"M{edge:.1f} 18V64", width=2)
        canvas.text(edge - 6, 14, f"floor {format_quantity(floor.total_seconds, 'ms', 1)}", anchor="end", bold=True)
        canvas.text(
            canvas.width - 4, 14, f"measured {format_quantity(measured_seconds, 'ms')}", anchor="end", bold=True
        )
        for index, (name, seconds, role) in enumerate(parts):
            y = 84 + index * 20
            canvas.bar(4, y - 11, 13, 13, role, (0.9, 0.5, 0.85, 0.3)[index])
            canvas.text(26, y, f"{name}: {format_quantity(seconds, 'ms', 1)}", size=13)

    listed = ", ".join(f"{name} {format_quantity(seconds, 'ms', 1)}" for name, seconds, _ in parts)
    return Diagram(
        "What a floor explains of a measured step",
        f"One bar of {format_quantity(measured_seconds, 'ms')} to scale: {listed}. The floor ends at"
        f" {format_quantity(floor.total_seconds, 'ms', 1)}.",
        *wide_and_narrow(draw),
    )
