"""Diagrams of page F3: what scales a fleet, three kinds of capacity, a rollout, a failure, and incidents."""

from __future__ import annotations

from collections.abc import Sequence

from lantern_lib.figures.diagram import WIDE, Canvas, Diagram, wide_and_narrow
from lantern_lib.figures.roles import ARITHMETIC, CONTROL, MEMORY, MUTED, TOTAL, USER, Role
from lantern_lib.rollout import ReplayPlan

Boxes = list[tuple[Role, str, list[str]]]


def _time(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} min"


def _draw_chain(canvas: Canvas, boxes: Boxes, height: float) -> None:
    """Draw boxes with arrows between them, side by side or on top of each other, one step each."""
    wide = canvas.width == WIDE
    gap = 22.0
    w = (canvas.width - 4 - gap * (len(boxes) - 1)) / len(boxes) if wide else canvas.width - 4.0
    for index, (role, title, rows) in enumerate(boxes):
        shown = rows if wide else [" ".join(rows[:2]), *rows[2:]]
        h = height if wide else 34.0 + 17.5 * len(shown)
        x, y = (2 + index * (w + gap), 4.0) if wide else (2.0, canvas.height + (gap if index else 4.0))
        with canvas.step(index + 1):
            if index:
                start = f"M{x - gap + 2:.0f} {y + h / 2:.0f}h{gap - 4:.0f}" if wide else f"M40 {y - gap + 2:.0f}v18"
                canvas.path(start, arrow=True)
            canvas.box(x, y, w, h, role, title=title, rows=shown)


def scaling(warm_seconds: float, cold_seconds: float, promise_seconds: float) -> Diagram:
    """Draw what an autoscaler listens to, and what it can call on, quickest first.

    Parameters
    ----------
    warm_seconds, cold_seconds : float
        Time until a replica of the warm pool, and a new one, serves [seconds].
    promise_seconds : float
        Wait beyond which requests are refused [seconds].

    Returns
    -------
    Diagram
        Four steps, from the signal to the new node.

    Examples
    --------
    >>> "A new node serves after 5 min" in scaling(10, 300, 10).description
    True
    """
    warm, cold, promise = _time(warm_seconds), _time(cold_seconds), _time(promise_seconds)
    boxes: Boxes = [
        (USER, "Signals", ["queue depth,", "cache pressure,", "the forecast"]),
        (CONTROL, f"Shed: {_time(0)}", ["refuse who would", f"wait over {promise},", "batch work first"]),
        (TOTAL, f"Warm pool: {warm}", ["weights loaded,", "idle and paid,", "a few replicas"]),
        (MEMORY, f"New node: {cold}", ["launch, image,", "weights, compile;", "if there is one"]),
    ]

    def draw(canvas: Canvas) -> None:
        _draw_chain(canvas, boxes, 96)

    return Diagram(
        "From a signal to more capacity, quickest first",
        "Queue depth, cache pressure and a forecast drive the autoscaler. Refusing whoever would wait more than"
        f" {promise} works at once; a replica of the warm pool serves after {warm}. A new node serves after {cold}, if"
        " the provider has one.",
        *wide_and_narrow(draw),
        steps=4,
    )


def capacity_kinds(replicas: Sequence[int], base: int, batch_hours: Sequence[int]) -> Diagram:
    """Draw a day of demand and the capacity that covers it: committed, by the hour, and interruptible.

    Parameters
    ----------
    replicas : sequence of int
        Replicas that readers need in each hour of the day [count].
    base : int
        Replicas under commitment [count].
    batch_hours : sequence of int
        Hours in which interruptible capacity works on what has no reader.

    Returns
    -------
    Diagram
        A still diagram; a column is an hour.

    Examples
    --------
    >>> "2 of 5 committed replica-hours stand idle" in capacity_kinds([1, 3, 0, 3, 3], 1, [2]).description
    False
    >>> "1 of 5 committed replica-hours stand idle" in capacity_kinds([1, 3, 0, 3, 3], 1, [2]).description
    True
    """
    most, hours = max(replicas), len(replicas)
    idle = sum(max(0, base - need) for need in replicas)
    above = sum(max(0, need - base) for need in replicas)

    def draw(canvas: Canvas) -> None:
        left, unit = 30.0, 150 / most
        pitch = (canvas.width - left - 4) / hours
        floor = 200.0
        for hour, need in enumerate(replicas):
            x, held = left + hour * pitch, min(need, base)
            canvas.bar(x, floor - held * unit, pitch - 1.5, held * unit, MEMORY)
            if need < base:
                canvas.bar(x, floor - base * unit, pitch - 1.5, (base - need) * unit, MEMORY, 0.25)
            elif need > base:
                canvas.bar(x, floor - need * unit, pitch - 1.5, (need - base) * unit, CONTROL)
            if hour in batch_hours:
                canvas.bar(x, floor + 30, pitch - 1.5, 20, TOTAL)
            if hour % 6 == 0:
                canvas.text(x, floor + 16, f"{hour}:00", size=12, colour=MUTED)
        for count in (base, most):
            canvas.text(left - 6, floor - count * unit + 10, f"{count}", anchor="end", size=12, bold=True)
        wide = canvas.width == WIDE
        canvas.text(left, 16, "by the hour, or a block", colour=CONTROL.colour, bold=True, size=12.5)
        canvas.text(left, 34, "committed (pale: idle)", colour=MEMORY.colour, bold=True, size=12.5)
        tail = ": work without a reader" if wide else ""
        canvas.text(left, floor + 68, "interruptible" + tail, colour=TOTAL.colour, bold=True, size=12.5)
        canvas.text(canvas.width - 4, 16, "replicas in each hour", size=12, anchor="end", colour=MUTED)

    return Diagram(
        "Three kinds of capacity over a day",
        f"Columns for {hours} hours. Readers need from {min(replicas)} to {most} replicas. {base} are committed;"
        f" {idle} of {base * hours} committed replica-hours stand idle, shown pale. {above} replica-hours above the"
        " base are bought by the hour or as a block. In a separate row, interruptible capacity does work without a"
        " reader, in"
        f" {len(batch_hours)} hours.",
        *wide_and_narrow(draw),
    )


def rollout(plan: ReplayPlan, canary_share: float, ramp: Sequence[float], slices: int) -> Diagram:
    """Draw the way of a change to all users, and the way back.

    Parameters
    ----------
    plan : ReplayPlan
        The fixed set of prompts and how many may fail.
    canary_share : float
        Share of traffic that meets the change first [ratio].
    ramp : sequence of float
        The shares after that [ratio].
    slices : int
        Slices that are compared each on its own [count].

    Returns
    -------
    Diagram
        Four steps and a way back from each.

    Examples
    --------
    >>> rollout(ReplayPlan(10175, 1067), 0.01, (0.1, 1.0), 6).steps
    4
    """
    shares = [f"{share * 100:.0f}" for share in ramp]
    boxes: Boxes = [
        (
            ARITHMETIC,
            "1 Replay",
            [f"{plan.num_prompts:,} prompts,", f"{plan.max_failures:,} may fail;", "no user sees it"],
        ),
        (USER, "2 Canary", [f"{canary_share * 100:.0f} percent", "of real traffic;", "crashes, latency"]),
        (TOTAL, "3 Compare", ["sampled scores,", f"{slices} slices, each", "on its own"]),
        (MEMORY, "4 Ramp", [f"{', '.join(shares)}", "percent, with", "time between"]),
    ]

    def draw(canvas: Canvas) -> None:
        _draw_chain(canvas, boxes, 96)
        words = "back at any step: the old version stays loaded"
        with canvas.step(4):
            if canvas.width == WIDE:
                canvas.path("M636 106v24H84v-22", CONTROL, arrow=True)
                canvas.text(360, 150, words, anchor="middle", colour=CONTROL.colour, bold=True)
            else:
                canvas.text(4, canvas.height + 18, words, colour=CONTROL.colour, bold=True, size=12)

    return Diagram(
        "The way of a change to all users",
        f"Four steps. Replay: a fixed set of {plan.num_prompts:,} prompts, of which {plan.max_failures:,} may fail."
        f" Canary: {canary_share * 100:.0f} percent of real traffic. Compare: sampled scores in {slices} slices, each"
        f" on its own. Ramp: to {', '.join(shares)} percent. From each step a way leads back, and the old version"
        " stays loaded.",
        *wide_and_narrow(draw),
        steps=4,
    )


def failover(num_replicas: int, utilization: float, cold_seconds: float) -> Diagram:
    """Draw what happens from a failed part to a whole fleet again.

    Parameters
    ----------
    num_replicas : int
        Replicas before the failure [count].
    utilization : float
        How busy each was [ratio].
    cold_seconds : float
        Time until the replacement serves [seconds].

    Returns
    -------
    Diagram
        Five steps.

    Raises
    ------
    ValueError
        If there is no second replica to take over.

    Examples
    --------
    >>> "from 65 to 76 percent" in failover(7, 0.65, 300).description
    True
    """
    if num_replicas < 2:
        raise ValueError(
            f"num_replicas must be at least 2, got {num_replicas}. One replica has nobody to fall back on."
        )
    before, after = utilization * 100, utilization * 100 * num_replicas / (num_replicas - 1)
    boxes: Boxes = [
        (CONTROL, "1 Check", ["a real short", "generation", "fails twice"]),
        (CONTROL, "2 Drain", ["router sends", "nothing new", "there"]),
        (USER, "3 Retry", ["open sessions", "begin again,", "once, marked"]),
        (TOTAL, "4 Take over", [f"{num_replicas - 1} others:", f"{before:.0f} to {after:.0f} %", "or an API"]),
        (MEMORY, "5 Replace", ["new node in", f"{_time(cold_seconds)}; then", "check again"]),
    ]

    def draw(canvas: Canvas) -> None:
        _draw_chain(canvas, boxes, 96)

    return Diagram(
        "From a failed part to a whole fleet",
        "A health check that runs a real generation fails twice. The router sends nothing new to the replica. Open"
        f" sessions are sent again, once, with a mark. The {num_replicas - 1} other replicas go from {before:.0f} to"
        f" {after:.0f} percent busy, and an API takes what is too much. After {_time(cold_seconds)} a replacement"
        " serves, once it has passed the same check.",
        *wide_and_narrow(draw),
        steps=5,
    )


SIGNALS = ("Latency", "Queue", "Cache", "Hit rate", "Hardware", "Tokens", "Errors", "Dollars")
#: Symptom, what to look at first, the signals that move first and those that follow.
INCIDENTS: tuple[tuple[str, str, tuple[str, ...], tuple[str, ...]], ...] = (
    ("Bad answers", "last change, slice", (), ("Errors",)),
    ("Latency spike", "queue, long prompts", ("Latency", "Queue"), ("Cache", "Hardware")),
    ("Out of memory", "one long context", ("Cache", "Errors"), ("Latency", "Queue")),
    ("Hit rate falls", "prefix, routing", ("Hit rate",), ("Latency", "Queue", "Dollars")),
    ("Cost spike", "an agent in a loop", ("Tokens",), ("Hit rate", "Dollars")),
)


def incidents() -> Diagram:
    """Draw which signals move in which incident.

    Returns
    -------
    Diagram
        A matrix; a full dot moves first, a ring follows.

    Examples
    --------
    >>> "Cost spike: first Tokens" in incidents().description
    True
    """

    def draw(canvas: Canvas) -> None:
        wide = canvas.width == WIDE
        if not wide:
            _draw_incident_list(canvas)
            return
        left, pitch = 176.0, (canvas.width - 176.0) / len(SIGNALS)
        for column, signal in enumerate(SIGNALS):
            canvas.text(left + (column + 0.5) * pitch, 16, signal, anchor="middle", size=12.5, bold=True)
        for row, (symptom, look, first, later) in enumerate(INCIDENTS):
            y = 46.0 + row * 46
            canvas.path(f"M4 {y - 18:.0f}H{canvas.width - 4}", width=0.8)
            canvas.text(4, y + 2, symptom, bold=True, size=14)
            canvas.text(4, y + 20, look, size=12.5, colour=MUTED)
            for column, signal in enumerate(SIGNALS):
                x = left + (column + 0.5) * pitch
                if signal in first:
                    canvas.circle(x, y + 4, 8, CONTROL)
                elif signal in later:
                    canvas.path(f"M{x - 7:.1f} {y + 4:.1f}a7 7 0 1 0 14 0a7 7 0 1 0 -14 0", TOTAL, width=2)
        y = 46.0 + len(INCIDENTS) * 46
        canvas.circle(12, y, 8, CONTROL)
        canvas.text(28, y + 5, "moves first", size=12.5)
        canvas.path(f"M125 {y:.0f}a7 7 0 1 0 14 0a7 7 0 1 0 -14 0", TOTAL, width=2)
        canvas.text(148, y + 5, "follows", size=12.5)

    listed = "; ".join(
        f"{symptom}: first {', '.join(first) or 'none of them'}, then {', '.join(later)}; look at {look}"
        for symptom, look, first, later in INCIDENTS
    )
    return Diagram(
        "Which signals move in which incident", f"Five incidents and eight signals. {listed}.", *wide_and_narrow(draw)
    )


def _draw_incident_list(canvas: Canvas) -> None:
    for row, (symptom, look, first, later) in enumerate(INCIDENTS):
        y = 18.0 + row * 78
        canvas.text(4, y, symptom, bold=True, size=14)
        canvas.text(canvas.width - 4, y, look, size=12.5, colour=MUTED, anchor="end")
        if first:
            canvas.circle(12, y + 17, 6, CONTROL)
        canvas.text(28, y + 22, ", ".join(first) or "first: none of the eight", size=13)
        canvas.path(f"M6 {y + 38:.0f}a6 6 0 1 0 12 0a6 6 0 1 0 -12 0", TOTAL, width=2)
        canvas.text(28, y + 43, ", ".join(later), size=13)
    canvas.text(4, canvas.height + 20, "dot: moves first; ring: follows", size=12.5, colour=MUTED)
