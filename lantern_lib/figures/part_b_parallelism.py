"""Diagrams of pages B6 and B8: four layouts, experts, and what part B changed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from lantern_lib import kv_cache, step
from lantern_lib import mixture_of_experts as experts
from lantern_lib.figures.diagram import WIDE, Canvas, Diagram, wide_and_narrow
from lantern_lib.figures.roles import ARITHMETIC, CONTROL, MEMORY, MUTED, TOTAL, USER, Role
from lantern_lib.hardware import Replica
from lantern_lib.mixture_of_experts import ExpertConfig
from lantern_lib.model_config import ModelConfig
from lantern_lib.units import format_quantity

_GPUS = 4
_PITCH, _GPU_WIDTH, _GPU_HEIGHT = 39, 30, 74


def _gpus(canvas: Canvas, x: float, y: float) -> list[float]:
    lefts = [x + i * _PITCH for i in range(_GPUS)]
    for left in lefts:
        canvas.box(left, y, _GPU_WIDTH, _GPU_HEIGHT)
    return lefts


def _draw_tensor(canvas: Canvas, x: float, y: float) -> None:
    lefts = _gpus(canvas, x, y)
    for row in range(_GPUS):
        level = y + 9 + 16 * row
        canvas.path(f"M{lefts[0] + 15} {level + 5}H{lefts[-1] + 15}", TOTAL, width=2.4)
        for left in lefts:
            canvas.bar(left + 10, level, 10, 10, MEMORY, 1)


def _draw_pipeline(canvas: Canvas, x: float, y: float) -> None:
    for row, left in enumerate(_gpus(canvas, x, y)):
        level = y + 9 + 16 * row
        canvas.bar(left + 4, level, 22, 10, MEMORY, 1)
        if row < _GPUS - 1:
            canvas.path(f"M{left + 26} {level + 5}h9v16h6", TOTAL, width=2.2)


def _draw_replicas(canvas: Canvas, x: float, y: float) -> None:
    for left in _gpus(canvas, x, y):
        canvas.circle(left + 15, y - 9, 4.5, USER)
        for row in range(_GPUS):
            canvas.bar(left + 4, y + 9 + 16 * row, 22, 10, MEMORY, 1)


def _draw_experts(canvas: Canvas, x: float, y: float) -> None:
    lefts = _gpus(canvas, x, y)
    for start in lefts:
        for end in lefts:
            canvas.path(f"M{start + 15} {y + 20}L{end + 15} {y + 44}", TOTAL, width=1.4)
    for left in lefts:
        canvas.bar(left + 4, y + 9, 22, 10, MEMORY, 1)
        for spot in range(4):
            canvas.bar(left + 4 + spot % 2 * 12, y + 46 + spot // 2 * 12, 10, 10, ARITHMETIC, 1)


def layouts(model: ModelConfig) -> Diagram:
    """Draw four ways to spread a model over four GPUs.

    Parameters
    ----------
    model : ModelConfig
        The shape, for the number of all-reduces.

    Returns
    -------
    Diagram
        A still diagram: what each GPU holds, what crosses between them, what it buys.

    Examples
    --------
    >>> from lantern_lib import LANTERN_70B
    >>> "160 sums a step" in layouts(LANTERN_70B).description
    True
    """
    sums = f"{step.ALL_REDUCES_PER_LAYER * model.num_layers} sums a step"
    panels: list[tuple[str, Callable[[Canvas, float, float], None], tuple[str, str, str]]] = [
        ("Tensor", _draw_tensor, ("a part of each matrix", sums, "a faster step, room")),
        ("Pipeline", _draw_pipeline, ("some of the layers", "one vector a border", "room, no faster step")),
        ("Replicas", _draw_replicas, ("the whole model", "nothing", "more requests")),
        ("Experts", _draw_experts, ("some of the experts", "2 exchanges a layer", "room for experts")),
    ]

    def draw(canvas: Canvas) -> None:
        wide = canvas.width == WIDE
        for index, (title, picture, words) in enumerate(panels):
            x, y = (4 + index * 182.0, 16.0) if wide else (4.0, 16 + index * 134.0)
            canvas.text(x, y, title, bold=True, size=14.5, colour=TOTAL.colour)
            picture(canvas, x, y + 28)
            column, top = (x, y + 126) if wide else (x + 164, y + 16)
            for row, (name, text) in enumerate(zip(("each holds", "crosses", "buys"), words, strict=True)):
                canvas.text(column, top + 36 * row, name, colour=MUTED, size=12)
                canvas.text(column, top + 36 * row + 16, text, size=13)

    listed = ". ".join(f"{t}: each GPU holds {w[0]}; {w[1]} crosses between them; it buys {w[2]}" for t, _, w in panels)
    return Diagram("Four ways to spread a model", f"{listed}.", *wide_and_narrow(draw))


def expert_routing(model: ExpertConfig, shown: int = 8, chosen: tuple[int, ...] = (1, 2)) -> Diagram:
    """Draw a router that sends a token to a few experts, with stored and used weights to scale.

    Parameters
    ----------
    model : ExpertConfig
        The model whose weights are drawn to scale.
    shown : int
        Experts to draw [count].
    chosen : tuple of int
        Which of them the token goes to, counted from 0.

    Returns
    -------
    Diagram
        A still diagram.

    Examples
    --------
    >>> from lantern_lib.mixture_of_experts import DEEPSEEK_V3
    >>> "671 GB" in expert_routing(DEEPSEEK_V3).description
    True
    """
    stored = experts.stored_weight_bytes(model)
    used = experts.streamed_weight_bytes(model, 1)
    amounts = [format_quantity(amount, "GB") for amount in (stored, used)]

    def draw(canvas: Canvas) -> None:
        wide = canvas.width == WIDE
        columns = shown if wide else shown // 2
        middle, pitch = canvas.width / 2, (canvas.width - 4) / columns
        canvas.box(middle - 60, 2, 120, 32, USER)
        canvas.text(middle, 23, "one token", anchor="middle", colour=USER.colour, bold=True)
        canvas.path(f"M{middle} 36v14", arrow=True)
        canvas.box(middle - 80, 52, 160, 32, CONTROL)
        canvas.text(middle, 73, f"router: {len(chosen)} of {shown}", anchor="middle", colour=CONTROL.colour, bold=True)
        for index in range(shown):
            x, y = 2 + index % columns * pitch, 124 + index // columns * 58
            picked = index in chosen
            if picked:
                end = x + pitch / 2 - 4
                canvas.path(f"M{middle} 86C{middle} 106 {end:.0f} 100 {end:.0f} {y - 3}", arrow=True)
            canvas.box(x, y, pitch - 8, 42, ARITHMETIC if picked else MEMORY, solid=picked)
            colour = ARITHMETIC.colour if picked else MEMORY.colour
            canvas.text(x + pitch / 2 - 4, y + 18, f"expert {index + 1}", anchor="middle", size=12, colour=colour)
            state = "computed" if picked else "stored"
            canvas.text(x + pitch / 2 - 4, y + 34, state, anchor="middle", size=12, colour=colour)
        _scale(canvas, canvas.height + 30, model, (stored, used), amounts)

    return Diagram(
        "All experts are stored, few are computed",
        f"A router sends one token to {len(chosen)} of {shown} experts; the others are stored and not used. To scale,"
        f" {model.name} stores {amounts[0]} of weights and one token uses {amounts[1]} of them.",
        *wide_and_narrow(draw),
    )


def _scale(canvas: Canvas, y: float, model: ExpertConfig, sizes: tuple[float, float], amounts: list[str]) -> None:
    full = canvas.width - 8
    words = ("stored", "used by one token")
    for index, (size, amount, word, role) in enumerate(zip(sizes, amounts, words, (MEMORY, ARITHMETIC), strict=True)):
        level = y + 46 * index
        canvas.text(4, level, f"{model.name}, {word}: {amount}", colour=role.colour, bold=True, size=13)
        canvas.bar(4, level + 7, full * size / sizes[0], 16, role)


def part_b_result(
    model: ModelConfig, replica: Replica, batch_size: int, step_context: int, fit_context: int
) -> Diagram:
    """Draw three measures of one replica with 16-bit and with 8-bit storage.

    Parameters
    ----------
    model : ModelConfig
        The shape at 16 bits.
    replica : Replica
        The machine.
    batch_size : int
        Sequences decoded together [sequences].
    step_context, fit_context : int
        Context of the step, and of the conversations that are counted [tokens].

    Returns
    -------
    Diagram
        A still diagram of bars, each pair to its own scale.

    Examples
    --------
    >>> from lantern_lib import H100, LANTERN_70B
    >>> "from 54 to 162" in part_b_result(LANTERN_70B, Replica(H100, tp_size=4), 64, 2000, 8192).description
    True
    """
    small = replace(model, weight_bytes=1.0, kv_bytes=1.0)
    steps = [step.decode_step(m, replica, batch_size, step_context) for m in (model, small)]
    fits = [kv_cache.memory_budget(m, replica).conversations(fit_context) for m in (model, small)]
    rows: list[tuple[str, list[float], list[str], Role]] = [
        (f"conversations of {fit_context:,} tokens", [*map(float, fits)], [f"{n:,}" for n in fits], MEMORY),
        (
            f"step at batch {batch_size}",
            [s.total_seconds for s in steps],
            [format_quantity(s.total_seconds, "ms", 1) for s in steps],
            TOTAL,
        ),
        (
            f"throughput at batch {batch_size}",
            [s.tokens_per_second for s in steps],
            [format_quantity(s.tokens_per_second, "tokens/s") for s in steps],
            USER,
        ),
    ]

    def draw(canvas: Canvas) -> None:
        full = canvas.width - 8 - 64 - 128
        for index, (title, values, texts, role) in enumerate(rows):
            y = 16 + index * 82
            canvas.text(4, y, title, bold=True, colour=role.colour)
            for line, (when, value, text) in enumerate(zip(("day 5", "month 3"), values, texts, strict=True)):
                level = y + 10 + 26 * line
                canvas.text(4, level + 14, when, size=12.5, colour=MUTED)
                canvas.bar(68, level, full * value / max(values), 18, role, 0.45 if line == 0 else 0.95)
                canvas.text(76 + full * value / max(values), level + 14, text, size=13.5, bold=line == 1)

    listed = "; ".join(f"{title} from {texts[0]} to {texts[1]}" for title, _, texts, _ in rows)
    return Diagram(
        "Part B in Lantern's numbers",
        f"{replica.tp_size} GPUs with 16-bit weights and cache on day 5, and with 8 bits in month 3: {listed}.",
        *wide_and_narrow(draw),
    )
