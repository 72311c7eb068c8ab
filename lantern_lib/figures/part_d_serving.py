"""Diagrams of pages D3 and D4: reload and recompute, tiers, the time of a task, a repeated tool call."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from lantern_lib import kv_cache
from lantern_lib.agents import CallBudget, deliver
from lantern_lib.cache_tiers import Tier, reload_or_recompute
from lantern_lib.figures.diagram import WIDE, Canvas, Diagram, wide_and_narrow
from lantern_lib.figures.roles import ARITHMETIC, ATTACKER, CONTROL, MEMORY, MUTED, TOTAL, USER, Role
from lantern_lib.hardware import Replica
from lantern_lib.model_config import ModelConfig
from lantern_lib.units import format_quantity


def recompute(model: ModelConfig, replica: Replica, context_len: int, bandwidths: Sequence[float]) -> Diagram:
    """Draw how long a session's cache takes to compute again and to load, to one scale.

    Parameters
    ----------
    model : ModelConfig
        The shape.
    replica : Replica
        The machine.
    context_len : int
        Tokens of the session [tokens].
    bandwidths : sequence of float
        Rates of the link from the host [bytes/s].

    Returns
    -------
    Diagram
        One bar for computing, one for each rate.

    Examples
    --------
    >>> from lantern_lib import H100, LANTERN_70B
    >>> "0.45 s" in recompute(LANTERN_70B, Replica(H100, tp_size=4), 34_500, (25e9,)).description
    True
    """
    both = [reload_or_recompute(model, replica, context_len, rate) for rate in bandwidths]
    size = format_quantity(both[0].size_bytes, "GB", 1)
    rows: list[tuple[str, float, str, Role]] = [
        (f"compute {context_len:,} tokens again", both[0].recompute_seconds, "s", ARITHMETIC)
    ]
    for rate, one in zip(bandwidths, both, strict=True):
        name = f"load {size} at {format_quantity(rate, 'GB/s')}"
        rows.append((name, one.reload_seconds, f"s, {one.speedup:.1f} times faster", MEMORY))

    def draw(canvas: Canvas) -> None:
        scale = (canvas.width - 80) / both[0].recompute_seconds
        for index, (name, seconds, words, role) in enumerate(rows):
            top = 4.0 + index * 56
            canvas.text(4, top + 13, name, colour=role.colour, bold=True, size=13)
            canvas.bar(4, top + 20, seconds * scale, 24, role)
            digits = 1 if role is ARITHMETIC else 2
            canvas.text(12 + seconds * scale, top + 37, f"{seconds:.{digits}f} {words}", size=13)

    listed = "; ".join(f"{name}: {seconds:.2f} {words}" for name, seconds, words, _ in rows)
    return Diagram(
        "Computing a cache again, and loading it",
        f"Bars to one scale for a session whose cache is {size}. {listed}. The bars of loading are short.",
        *wide_and_narrow(draw),
    )


def tiers(model: ModelConfig, replica: Replica, context_len: int, stores: Sequence[Tier]) -> Diagram:
    """Draw a router over the stores of a waiting session's cache.

    Parameters
    ----------
    model : ModelConfig
        The shape.
    replica : Replica
        The machine.
    context_len : int
        Tokens of the session [tokens].
    stores : sequence of Tier
        The tiers below GPU memory.

    Returns
    -------
    Diagram
        Steps from the router down to the last store.

    Examples
    --------
    >>> from lantern_lib import H100, LANTERN_70B
    >>> from lantern_lib.cache_tiers import EXAMPLE_TIERS
    >>> tiers(LANTERN_70B, Replica(H100, tp_size=4), 34_500, EXAMPLE_TIERS).steps
    5
    """
    size = kv_cache.bytes_per_sequence(model, context_len)
    fits = kv_cache.memory_budget(model, replica).conversations(context_len)
    levels = [("GPU memory", f"{fits} sessions, there at once")] + [
        (store.name, f"{store.sessions(size):,} sessions, back in {store.reload_seconds(size):.1f} s")
        for store in stores
    ]

    def draw(canvas: Canvas) -> None:
        full = canvas.width - 4.0
        words = ["knows which store of which replica", "holds the session's prefix"]
        with canvas.step(1):
            canvas.box(2, 4, full, 78, CONTROL, title="Router", rows=words)
        for index, (name, row) in enumerate(levels):
            with canvas.step(index + 2):
                width = full * (0.7 + 0.3 * index / (len(levels) - 1))
                top = 104.0 + index * 76
                canvas.path(f"M{canvas.width / 2:.0f} {top - 20:.0f}v17", arrow=True)
                role = MEMORY if index + 1 < len(levels) else TOTAL
                canvas.box(2 + (full - width) / 2, top, width, 56, role, title=name, rows=[row], solid=not index)

    listed = "; ".join(f"{name}: {row}" for name, row in levels)
    return Diagram(
        "A router over four stores of cache",
        f"A router, which knows where each session's prefix lies, stands over four stores. {listed}. Each store down"
        f" holds more and gives back more slowly. A session has {context_len:,} tokens.",
        *wide_and_narrow(draw),
        steps=len(levels) + 1,
    )


def call_budget(call: CallBudget, num_calls: int, variants: Mapping[str, CallBudget]) -> Diagram:
    """Draw the time of one call of an agent, and of a task of many by several plans.

    Parameters
    ----------
    call : CallBudget
        The call as it is.
    num_calls : int
        Calls of the task, one after the other [count].
    variants : mapping of str to CallBudget
        The plans for the task, by name.

    Returns
    -------
    Diagram
        One call above, tasks below, each group to its own scale.

    Examples
    --------
    >>> call = CallBudget(0.4, 300, 0.027, (3.0,))
    >>> "7.7 minutes" in call_budget(call, 40, {"as it is": call}).description
    True
    """
    parts: list[tuple[str, Callable[[CallBudget], float], Role | None]] = [
        ("first token", lambda c: c.ttft_seconds, USER),
        ("decoding", lambda c: c.decode_seconds, MEMORY),
        ("tools", lambda c: c.wait_seconds, None),
    ]
    minutes = {name: num_calls * plan.total_seconds / 60 for name, plan in variants.items()}

    def bar(canvas: Canvas, top: float, one: CallBudget, scale: float) -> float:
        x = 4.0
        for _, part, role in parts:
            width = part(one) * scale
            canvas.bar(x, top, width - 1, 24, role, 0.85 if role else 0.45)
            x += width
        return x

    def draw(canvas: Canvas) -> None:
        canvas.text(4, 17, f"One call: {call.total_seconds:.1f} s", bold=True)
        bar(canvas, 26, call, (canvas.width - 8) / call.total_seconds)
        x = 4.0
        for name, part, role in parts:
            words = f"{name} {part(call):.1f} s"
            canvas.text(x, 70, words, colour=role.colour if role else MUTED, size=12, bold=True)
            x += 180.0 if canvas.width == WIDE else (118.0 if name == "first token" else 104.0)
        canvas.text(4, 104, f"The task: {num_calls} calls, one after the other", bold=True)
        scale = (canvas.width - 108) / max(plan.total_seconds for plan in variants.values())
        for index, (name, plan) in enumerate(variants.items()):
            top = 116.0 + index * 50
            canvas.text(4, top + 12, name, size=12.5)
            end = bar(canvas, top + 18, plan, scale)
            canvas.text(end + 6, top + 35, f"{minutes[name]:.1f} minutes", size=12.5, bold=True)

    told = ", ".join(f"{name} {part(call):.1f} s" for name, part, _ in parts)
    plans = "; ".join(f"{name}: {value:.1f} minutes" for name, value in minutes.items())
    return Diagram(
        "The time of a call, and of a task",
        f"One call takes {call.total_seconds:.1f} s: {told}. A task of {num_calls} calls takes, by plan: {plans}."
        " Decoding is the longest part of most.",
        *wide_and_narrow(draw),
    )


def idempotency() -> Diagram:
    """Draw a tool call whose reply is lost and which is sent again, without and with an idempotency key.

    Returns
    -------
    Diagram
        Four steps in two sequences: sent, reply lost, sent again, what the tool did.

    Examples
    --------
    >>> "two mails" in idempotency().description
    True
    """
    counts = ["one mail", "two mails"]
    cases = [("No key", False, ATTACKER), ("One key for all attempts", True, USER)]
    done = [deliver(["reply", "none"], keyed=keyed).effects for _, keyed, _ in cases]

    def arrow(canvas: Canvas, start: float, end: float, y: float, words: str, role: Role | None = None) -> None:
        canvas.text((start + end) / 2, y - 7, words, size=12, anchor="middle")
        canvas.path(f"M{start:.0f} {y:.0f}H{end:.0f}", role, arrow=True)

    def sequence(canvas: Canvas, left: float, top: float, width: float, case: int) -> None:
        title, keyed, role = cases[case]
        agent, tool = left + 34.0, left + width - 62.0
        with canvas.step(1):
            canvas.text(left, top + 14, title, bold=True, colour=role.colour)
            canvas.text(agent, top + 40, "agent", size=12.5, anchor="middle", bold=True)
            canvas.text(tool, top + 40, "tool", size=12.5, anchor="middle", bold=True)
            for x in (agent, tool):
                canvas.path(f"M{x:.0f} {top + 48:.0f}V{top + 232:.0f}", width=1.2)
            arrow(canvas, agent + 3, tool - 5, top + 76, "send mail, key k" if keyed else "send mail")
            canvas.text(tool + 8, top + 94, "mail 1", size=12, bold=True, colour=role.colour)
        with canvas.step(2):
            middle = (agent + tool) / 2
            canvas.path(f"M{tool - 5:.0f} {top + 116:.0f}H{middle + 12:.0f}", ATTACKER)
            canvas.text(middle, top + 121, "×", anchor="middle", colour=ATTACKER.colour, bold=True, size=17)
            canvas.text(middle, top + 104, "reply lost", size=12, anchor="middle")
        with canvas.step(3):
            arrow(canvas, agent + 3, tool - 5, top + 162, "again, key k" if keyed else "again")
            words = "knows k" if keyed else "mail 2"
            canvas.text(tool + 8, top + 180, words, size=12, bold=True, colour=role.colour)
        with canvas.step(4):
            arrow(canvas, tool - 5, agent + 5, top + 208, "same result" if keyed else "result")
            canvas.box(left, top + 240, width, 36, role, rows=[f"The customer gets {counts[done[case] - 1]}"])

    def draw(canvas: Canvas) -> None:
        wide = canvas.width == WIDE
        for case in range(2):
            left, top = (2.0 + 364 * case, 0.0) if wide else (2.0, 296.0 * case)
            sequence(canvas, left, top, 350.0 if wide else 344.0, case)

    return Diagram(
        "A tool call that is sent twice",
        "Two sequences between an agent and a tool that sends mail. In both the reply to the first request is lost and"
        f" the agent sends again. Without a key the tool acts again, and the customer gets {counts[done[0] - 1]}. With"
        f" one key for both attempts the tool answers from its record, and the customer gets {counts[done[1] - 1]}.",
        *wide_and_narrow(draw),
        steps=4,
    )
