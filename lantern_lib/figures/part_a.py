"""Diagrams of part A. Numbers in them are computed by the library, never typed."""

from __future__ import annotations

import math

from lantern_lib import step, transformer
from lantern_lib.figures.diagram import NARROW, WIDE, Canvas, Diagram, wide_and_narrow
from lantern_lib.figures.roles import ARITHMETIC, CONTROL, MEMORY, MUTED, ROLES, TOTAL, USER, Role
from lantern_lib.hardware import Accelerator, Replica
from lantern_lib.model_config import ModelConfig
from lantern_lib.roofline import ridge_point
from lantern_lib.units import format_quantity


def legend(columns: int = 2) -> Diagram:
    """Draw the six roles with their colours and dashes.

    Parameters
    ----------
    columns : int
        Columns of the wide drawing; the narrow one has one [count].

    Returns
    -------
    Diagram
        The colour key of every figure.

    Examples
    --------
    >>> legend().title
    'One colour for each role'
    """

    def draw(canvas: Canvas) -> None:
        across = columns if canvas.width == WIDE else 1
        pitch = canvas.width / across
        for index, role in enumerate(ROLES):
            x, y = index % across * pitch, index // across * 40
            canvas.path(f"M{x + 2:.0f} {y + 20:.0f}h46", role, width=4)
            canvas.text(x + 60, y + 17, role.name, colour=role.colour, bold=True)
            canvas.text(x + 60, y + 33, role.meaning, colour=MUTED, size=12.5)

    names = ", ".join(f"{role.name} ({role.meaning})" for role in ROLES)
    return Diagram(
        "One colour for each role", f"A colour and a dash for each of six roles: {names}.", *wide_and_narrow(draw)
    )


def phases(model: ModelConfig, replica: Replica, prompt_len: int, output_len: int) -> Diagram:
    """Draw one request as a prefill and a decode loop, with a time bar to scale.

    Parameters
    ----------
    model : ModelConfig
        The shape.
    replica : Replica
        The machine, with nothing else to do.
    prompt_len, output_len : int
        Tokens read and written [tokens].

    Returns
    -------
    Diagram
        Four steps: the prompt, the prefill, the decode loop, the time bar.

    Examples
    --------
    >>> from lantern_lib import H100, LANTERN_70B
    >>> phases(LANTERN_70B, Replica(H100, tp_size=4), 2000, 400).steps
    4
    """
    first = step.prefill_step(model, replica, prompt_len).total_seconds
    each = step.decode_step(model, replica, 1, prompt_len).total_seconds
    total = first + (output_len - 1) * each
    prompt, answer = f"{prompt_len:,} tokens", f"{output_len:,} tokens"
    ttft, tpot = format_quantity(first, "ms"), format_quantity(each, "ms", 1)

    def draw(canvas: Canvas) -> None:
        wide = canvas.width == WIDE
        w, h = (164, 94) if wide else (NARROW - 4, 94)
        spots = [(2 + i * 184, 4) for i in range(4)] if wide else [(2, 4 + i * 120) for i in range(4)]
        contents: list[tuple[Role, str, list[str]]] = [
            (USER, "Prompt", [prompt, "sent at once"]),
            (ARITHMETIC, "Prefill", ["all tokens in one pass", f"{ttft} in all", "compute-bound"]),
            (MEMORY, "Decode, a loop", ["one token a step", f"{tpot} each", "memory-bound"]),
            (USER, "Answer", [answer, "one at a time"]),
        ]
        for number, ((x, y), (role, title, rows)) in enumerate(zip(spots, contents, strict=True)):
            with canvas.step(min(number + 1, 3)):
                if number:
                    canvas.path(
                        f"M{x - 18} {y + h / 2:.0f}h15" if wide else f"M{x + w / 2:.0f} {y - 23}v20", arrow=True
                    )
                canvas.box(x, y, w, h, role, title=title, rows=rows)
        with canvas.step(4):
            _time_bar(canvas, canvas.height + 36, first, total, ttft)

    return Diagram(
        "A request is a prefill, then a decode loop",
        f"A prompt of {prompt} is read in one compute-bound pass of {ttft}, which gives the first token. Then a loop of"
        f" {output_len - 1:,} memory-bound steps of {tpot} gives the others. To scale, the pause before the first token"
        f" is {first / total:.0%} of the {format_quantity(total, 's', 1)} the answer takes.",
        *wide_and_narrow(draw),
        steps=4,
    )


def _time_bar(canvas: Canvas, y: float, first: float, total: float, ttft: str) -> None:
    full = canvas.width - 8
    split = full * first / total
    canvas.bar(4, y, split, 20, ARITHMETIC)
    canvas.bar(4 + split + 1, y, full - split - 1, 20, MEMORY)
    canvas.text(4, y - 8, f"first token after {ttft}", colour=ARITHMETIC.colour, size=12.5, bold=True)
    canvas.text(canvas.width - 4, y + 38, f"last token after {format_quantity(total, 's', 1)}", anchor="end", size=12.5)
    canvas.text(4, y + 38, "time, to scale", colour=MUTED, size=12.5)


def replica(model: ModelConfig, machine: Replica) -> Diagram:
    """Draw the GPUs that share one model, what each holds, and how often they add up.

    Parameters
    ----------
    model : ModelConfig
        The shape.
    machine : Replica
        The machine; its cards are drawn one by one.

    Returns
    -------
    Diagram
        A still diagram.

    Examples
    --------
    >>> from lantern_lib import H100, LANTERN_70B
    >>> "35.3 GB" in replica(LANTERN_70B, Replica(H100, tp_size=4)).description
    True
    """
    count = machine.tp_size
    share = format_quantity(transformer.weight_bytes(model) / count, "GB", 1)
    memory = format_quantity(machine.accelerator.memory_bytes, "GB")
    reduces = step.ALL_REDUCES_PER_LAYER * model.num_layers

    def draw(canvas: Canvas) -> None:
        wide = canvas.width == WIDE
        columns = count if wide else 2
        pitch = (canvas.width - 4) / columns
        rows = -(-count // columns)
        for index in range(count):
            x, y = 2 + index % columns * pitch, 2 + index // columns * 118
            canvas.box(x, y, pitch - 12, 104, title=f"GPU {index + 1}", rows=[f"1/{count} of every matrix"])
            filled = (pitch - 36) * transformer.weight_bytes(model) / count / machine.accelerator.memory_bytes
            canvas.bar(x + 12, y + 54, pitch - 36, 14, None, 0.18)
            canvas.bar(x + 12, y + 54, filled, 14, MEMORY)
            canvas.text(x + 12, y + 88, f"{share} of {memory}", colour=MEMORY.colour, size=12.5)
        y = 2 + rows * 118 + 10
        for index in range(count):
            if index // columns == rows - 1:
                canvas.path(f"M{2 + index % columns * pitch + (pitch - 12) / 2:.0f} {y - 24}V{y - 3}", TOTAL)
        label = [f"all-reduce: {step.ALL_REDUCES_PER_LAYER} a layer, {reduces} a step,", "the quarters are added"]
        text = [" ".join(label)] if wide else label
        canvas.box(2, y - 3, canvas.width - 16, 36 if wide else 54, TOTAL, rows=text, solid=True)

    return Diagram(
        f"{count} GPUs act as one",
        f"Each of {count} GPUs holds 1/{count} of every matrix, {share} of its {memory}. After attention and after the"
        f" feed-forward block of each layer an all-reduce adds their partial results: {reduces} times a step.",
        *wide_and_narrow(draw),
    )


def bound(model: ModelConfig, machine: Replica, batches: tuple[int, ...], prompt_len: int, context_len: int) -> Diagram:
    """Draw decode steps and a prefill on the axis of arithmetic intensity, with the ridge between them.

    Parameters
    ----------
    model : ModelConfig
        The shape.
    machine : Replica
        The machine with its efficiencies.
    batches : tuple of int
        Decode batches to mark [sequences].
    prompt_len : int
        Prefill to mark [tokens].
    context_len : int
        Context of the decode steps [tokens].

    Returns
    -------
    Diagram
        A still diagram with a logarithmic axis.

    Examples
    --------
    >>> from lantern_lib import H100, LANTERN_70B
    >>> "ridge at 184.5" in bound(LANTERN_70B, Replica(H100, tp_size=4), (1, 64), 2000, 2000).description
    True
    """
    ridge = ridge_point(machine.flops_per_second, machine.bandwidth)
    marks: list[tuple[str, float, Role]] = [
        (f"decode, batch {b}", step.decode_step(model, machine, b, context_len).arithmetic_intensity, MEMORY)
        for b in batches
    ]
    prefill = step.prefill_step(model, machine, prompt_len).arithmetic_intensity
    marks.append((f"prefill, {prompt_len:,} tokens", prefill, ARITHMETIC))

    def draw(canvas: Canvas) -> None:
        left, right, axis = 14, canvas.width - 14, 132
        low, high = math.log10(0.6), math.log10(4000)

        def place(intensity: float) -> float:
            return left + (right - left) * (math.log10(intensity) - low) / (high - low)

        at = place(ridge)
        canvas.bar(left, 34, at - left, axis - 34, MEMORY, 0.10)
        canvas.bar(at, 34, right - at, axis - 34, ARITHMETIC, 0.12)
        size = 13.5 if canvas.width == WIDE else 11.5
        canvas.text(left + 6, 52, "memory-bound", colour=MEMORY.colour, bold=True, size=size)
        canvas.text(right - 2, 52, "compute-bound", colour=ARITHMETIC.colour, bold=True, anchor="end", size=size)
        canvas.path(f"M{at:.1f} 26V{axis}", CONTROL, width=2)
        canvas.text(at, 18, f"ridge {ridge:.1f}", colour=CONTROL.colour, bold=True, anchor="middle")
        canvas.path(f"M{left} {axis}H{right}")
        for tick in (1, 10, 100, 1000):
            canvas.path(f"M{place(tick):.1f} {axis}v5")
            canvas.text(place(tick), axis + 20, f"{tick:,}", anchor="middle", size=12, colour=MUTED)
        canvas.text(left, axis + 40, "FLOPs for each byte moved", size=12.5, colour=MUTED)
        for index, (name, intensity, role) in enumerate(marks):
            x, y = place(intensity), 78 + 18 * index
            canvas.circle(x, y, 5.5, role)
            if x < at:
                after = x < canvas.width * 0.45
                canvas.text(x + (11 if after else -11), y + 4, name, size=12.5, anchor="start" if after else "end")
            else:
                _beside(canvas, x, y, at, name)

    listed = "; ".join(f"{name}: {intensity:,.1f}" for name, intensity, _ in marks)
    return Diagram(
        "One request, two regimes",
        f"A logarithmic axis of FLOPs per byte with the ridge at {ridge:.1f}. {listed}. Decode lies far to the left,"
        " in the memory-bound range; prefill lies to the right, in the compute-bound range.",
        *wide_and_narrow(draw),
    )


def _beside(canvas: Canvas, x: float, y: float, ridge: float, name: str) -> None:
    """Label a dot on the right of the ridge, on two lines where one would cross it."""
    if x - ridge > 6.6 * len(name):
        canvas.text(x - 11, y + 4, name, size=12.5, anchor="end")
        return
    first, _, rest = name.partition(", ")
    canvas.text(x, y - 24, first, size=12, anchor="middle")
    canvas.text(x, y - 10, rest, size=12, anchor="middle")


def kv_layout(model: ModelConfig, cached_tokens: int = 5) -> Diagram:
    """Draw what one layer keeps for earlier tokens, and how the new token's query uses it.

    Parameters
    ----------
    model : ModelConfig
        The shape, for the numbers of heads.
    cached_tokens : int
        Earlier tokens to draw [tokens].

    Returns
    -------
    Diagram
        A still diagram.

    Examples
    --------
    >>> from lantern_lib import LANTERN_70B
    >>> kv_layout(LANTERN_70B).title
    'The cache keeps keys and values, not queries'
    """
    share = model.num_heads // model.num_kv_heads

    def draw(canvas: Canvas) -> None:
        wide = canvas.width == WIDE
        shown = cached_tokens if wide else 3
        w, gap = (104, 13) if wide else (76, 8)
        top, new = 84, 2 + shown * (w + gap) + 14
        for index in range(shown):
            x = 2 + index * (w + gap)
            canvas.text(x + w / 2, 74, f"token {index + 1}", anchor="middle", size=12.5, colour=MUTED)
            canvas.box(x, top, w, 34, MEMORY, solid=True)
            canvas.text(x + w / 2, top + 22, "key", anchor="middle", colour=MEMORY.colour, bold=True)
            canvas.box(x, top + 42, w, 34, MEMORY, solid=True)
            canvas.text(x + w / 2, top + 64, "value", anchor="middle", colour=MEMORY.colour, bold=True)
        canvas.text(new + w / 2, 74, "new token", anchor="middle", size=12.5, colour=USER.colour, bold=True)
        canvas.box(new, top, w, 34, USER)
        canvas.text(new + w / 2, top + 22, "query", anchor="middle", colour=USER.colour, bold=True)
        for index in range(shown):
            key = 2 + index * (w + gap) + w / 2
            canvas.path(
                f"M{new + w / 2:.0f} {top - 26}C{new:.0f} 12 {key:.0f} 12 {key:.0f} {top - 26}", USER, arrow=True
            )
        canvas.text(2, 14, "score against each key", colour=USER.colour, size=12.5, bold=True)
        notes = [
            f"kept, in each layer: {model.num_kv_heads} keys and values of {model.head_dim} numbers",
            f"used once, then dropped: {model.num_heads} queries, {share} to each key",
        ]
        if not wide:
            notes = [part for note in notes for part in note.replace(": ", ":|").split("|")]
        canvas.lines(2, top + 102, notes, size=13)

    return Diagram(
        "The cache keeps keys and values, not queries",
        "One layer. Each earlier token has left a key and a value in the cache. The new token brings a query, which is"
        f" scored against every cached key; the scores weight the values. {model.num_heads} query heads share"
        f" {model.num_kv_heads} pairs of keys and values, and queries are not kept.",
        *wide_and_narrow(draw),
    )


def hierarchy(card: Accelerator, sram_bytes: float, host_bandwidth: float, network_bandwidth: float) -> Diagram:
    """Draw the levels of memory with their speed and what an engine keeps there.

    Parameters
    ----------
    card : Accelerator
        The card whose memory and link are drawn.
    sram_bytes : float
        On-chip memory of all its units [bytes].
    host_bandwidth, network_bandwidth : float
        Rate of one card to the host's memory and to other machines, one way [bytes/s].

    Returns
    -------
    Diagram
        A still diagram; bar lengths show bandwidth on a logarithmic scale.

    Examples
    --------
    >>> from lantern_lib import H100
    >>> "3.35 TB/s" in hierarchy(H100, 35e6, 64e9, 50e9).description
    True
    """
    levels: list[tuple[str, str, float | None, str]] = [
        ("On-chip memory", format_quantity(sram_bytes, "MB"), None, "the tiles being multiplied"),
        ("HBM on the card", format_quantity(card.memory_bytes, "GB"), card.memory_bandwidth, "weights and live cache"),
        ("Other GPUs", "in the machine", card.link.bandwidth, "the rest of each split matrix"),
        ("Host memory", "in the machine", host_bandwidth, "cache of those who wait"),
        ("Other machines", "over the network", network_bandwidth, "other replicas, cache handed on"),
    ]

    def rate(bandwidth: float | None) -> str:
        if bandwidth is None:
            return "fastest"
        big = bandwidth >= 1e12
        return format_quantity(bandwidth, "TB/s" if big else "GB/s", 2 if big else 0)

    def draw(canvas: Canvas) -> None:
        wide = canvas.width == WIDE
        pitch, full = (54.0, 330.0) if wide else (74.0, canvas.width - 8.0)
        for index, (name, size, bandwidth, keeps) in enumerate(levels):
            y = 4 + index * pitch
            share = 1.0 if bandwidth is None else (math.log10(bandwidth) - 9.8) / (13.6 - 9.8)
            canvas.text(4, y + 14, name, bold=True)
            canvas.text(4 + full, y + 14, size, anchor="end", size=12.5, colour=MUTED)
            canvas.bar(4, y + 21, full * share, 14, MEMORY, 0.95 - 0.15 * index)
            x, first = (full + 28, y + 33) if wide else (4.0, y + 51)
            canvas.text(x, first, rate(bandwidth), colour=MEMORY.colour, bold=True)
            canvas.text(x + 88, first, keeps, size=13)

    listed = "; ".join(f"{n}, {s}, {rate(b)}: {k}" for n, s, b, k in levels)
    return Diagram(
        "Each step down is larger and slower",
        f"{listed}. An engine moves data down as little as it can.",
        *wide_and_narrow(draw),
    )
