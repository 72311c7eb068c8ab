"""Diagrams of pages B3 and B4: long prompts, separate pools, queues, the scheduler, load tests."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from lantern_lib import chunked_prefill, step
from lantern_lib.figures.diagram import WIDE, Canvas, Diagram, wide_and_narrow
from lantern_lib.figures.roles import ARITHMETIC, CONTROL, MEMORY, MUTED, TOTAL, USER, Role
from lantern_lib.hardware import Replica
from lantern_lib.model_config import ModelConfig
from lantern_lib.queueing import MM1
from lantern_lib.units import format_quantity


def collision(
    model: ModelConfig, replica: Replica, num_decoders: int, context_len: int, prompt_len: int, chunk_size: int
) -> Diagram:
    """Draw what a long prompt does to running users, in one step and in chunks, on one time axis.

    Parameters
    ----------
    model : ModelConfig
        The shape.
    replica : Replica
        The machine.
    num_decoders : int
        Running users [sequences].
    context_len : int
        Their context [tokens].
    prompt_len : int
        The prompt that arrives [tokens].
    chunk_size : int
        Chunk of the lower row [tokens].

    Returns
    -------
    Diagram
        A still diagram; a dot is a token for every running user.

    Examples
    --------
    >>> from lantern_lib import H100, LANTERN_70B
    >>> "678 ms" in collision(LANTERN_70B, Replica(H100, tp_size=4), 32, 4000, 8000, 512).description
    True
    """
    each = step.decode_step(model, replica, num_decoders, context_len).total_seconds
    plans = [
        chunked_prefill.chunk_schedule(model, replica, num_decoders, context_len, prompt_len, size)
        for size in (prompt_len, chunk_size)
    ]
    span = 3 * each + max(plan.ttft_seconds for plan in plans) + 2 * each
    pauses = [format_quantity(plan.pause_seconds, "ms") for plan in plans]
    ends = [format_quantity(plan.ttft_seconds, "ms") for plan in plans]
    normal = format_quantity(each, "ms", 1)
    titles = [f"One step of {pauses[0]}", f"{plans[1].num_steps} steps of {pauses[1]}"]

    def draw(canvas: Canvas) -> None:
        scale = (canvas.width - 8) / span
        for row, plan in enumerate(plans):
            top = 4 + row * 124
            canvas.text(4, top + 14, titles[row], colour=ARITHMETIC.colour, bold=True)
            canvas.text(4, top + 33, f"first token of the newcomer after {ends[row]}", size=12.5)
            now, x = 0.0, 4.0
            durations = [each] * 3 + [plan.pause_seconds] * plan.num_steps
            while sum(durations) + each <= span:
                durations.append(each)
            for index, seconds in enumerate(durations):
                role = ARITHMETIC if 3 <= index < 3 + plan.num_steps else MEMORY
                canvas.bar(x, top + 46, seconds * scale - 1, 24, role)
                now += seconds
                x = 4 + now * scale
                canvas.circle(x - 1, top + 83, 2.6, USER)
        canvas.text(4, 234, f"one dot: a token for each of {num_decoders} users", colour=USER.colour, size=12.5)
        at, anchor = (250.0, "end") if canvas.width != WIDE else (234.0, "end")
        canvas.text(
            canvas.width - 4, at, f"blue: a normal step, {normal}", colour=MEMORY.colour, size=12.5, anchor=anchor
        )

    return Diagram(
        "A long prompt in one step, and in chunks",
        f"Two rows on one time axis. Above, a prompt of {prompt_len:,} tokens is read in one step of {pauses[0]}, and"
        f" {num_decoders} running users get no token meanwhile; a normal step takes {normal}. Below, it is read in"
        f" {plans[1].num_steps} chunks of {chunk_size:,}; the users get a token every {pauses[1]}, and the newcomer's"
        f" first token comes after {ends[1]} instead of {ends[0]}.",
        *wide_and_narrow(draw),
    )


def disaggregation(model: ModelConfig, prompt_len: int, link_bandwidth: float) -> Diagram:
    """Draw the way of a request through a prefill pool and a decode pool.

    Parameters
    ----------
    model : ModelConfig
        The shape.
    prompt_len : int
        The prompt whose cache is handed over [tokens].
    link_bandwidth : float
        Network of a replica, one way [bytes/s].

    Returns
    -------
    Diagram
        Four steps: router, prefill, transfer, decode.

    Examples
    --------
    >>> from lantern_lib import LANTERN_70B
    >>> disaggregation(LANTERN_70B, 8000, 200e9).steps
    4
    """
    sent = chunked_prefill.cache_transfer(model, prompt_len, link_bandwidth)
    size, time = format_quantity(sent.size_bytes, "GiB", 1), format_quantity(sent.seconds, "ms")
    rate = format_quantity(link_bandwidth, "GB/s")
    boxes: list[tuple[Role, str, list[str]]] = [
        (CONTROL, "Router", [f"prompt of {prompt_len:,}", "picks two replicas"]),
        (ARITHMETIC, "Prefill pool", ["compute-bound", "sized for TTFT"]),
        (TOTAL, "Network", [f"{size} of cache", f"{time} at {rate}"]),
        (MEMORY, "Decode pool", ["memory-bound", "sized for TPOT"]),
    ]

    def draw(canvas: Canvas) -> None:
        wide = canvas.width == WIDE
        w, h = (160.0, 78.0) if wide else (canvas.width - 4.0, 78.0)
        for index, (role, title, rows) in enumerate(boxes):
            x, y = (2 + index * 185.0, 4.0) if wide else (2.0, 4 + index * 102.0)
            with canvas.step(index + 1):
                if index:
                    canvas.path(
                        f"M{x - 23:.0f} {y + h / 2:.0f}h20" if wide else f"M{w / 2:.0f} {y - 22:.0f}v19", arrow=True
                    )
                canvas.box(x, y, w, h, role, title=title, rows=rows)

    return Diagram(
        "Prefill and decode on different GPUs",
        f"A router sends a prompt of {prompt_len:,} tokens to a replica of the prefill pool, which is compute-bound and"
        f" sized for TTFT. Its cache, {size}, crosses the network once, {time} at {rate}. A replica of the decode pool,"
        " memory-bound and sized for TPOT, streams the answer.",
        *wide_and_narrow(draw),
        steps=4,
    )


def queue(utilizations: Sequence[float]) -> Diagram:
    """Draw the mean time in an M/M/1 system at some utilisations, in service times.

    Parameters
    ----------
    utilizations : sequence of float
        Shares of time that the server is busy, each below 1 [ratio].

    Returns
    -------
    Diagram
        One bar each; the dark part is the service itself.

    Examples
    --------
    >>> "95 percent busy: 20 service times" in queue((0.5, 0.95)).description
    True
    """
    times = [MM1(share, 1).mean_time_seconds for share in utilizations]

    def draw(canvas: Canvas) -> None:
        left, right = (118.0, 140.0) if canvas.width == WIDE else (60.0, 46.0)
        unit = (canvas.width - left - right) / max(times)
        for index, (share, time) in enumerate(zip(utilizations, times, strict=True)):
            y = 26.0 + index * 36
            label = f"{share:.0%} busy" if canvas.width == WIDE else f"{share:.0%}"
            canvas.text(left - 12, y + 17, label, anchor="end")
            canvas.bar(left, y, unit, 24, MEMORY)
            canvas.bar(left + unit + 1, y, (time - 1) * unit - 1, 24, USER, 0.55)
            words = f"{time:.0f}" if canvas.width != WIDE else f"{time:.0f} service times"
            canvas.text(left + time * unit + 8, y + 17, words, bold=True, size=13)
        canvas.text(left, 15, "served", colour=MEMORY.colour, bold=True, size=12.5)
        canvas.text(left + 60, 15, "waiting", colour=USER.colour, bold=True, size=12.5)
        canvas.text(canvas.width - 4, 15, "in service times", anchor="end", size=12.5, colour=MUTED)

    listed = "; ".join(
        f"{s:.0%} busy: {t:.0f} service times".replace("%", " percent")
        for s, t in zip(utilizations, times, strict=True)
    )
    return Diagram(
        "Waiting explodes near full",
        f"Bars of the mean time in the system for the simplest queue. {listed}. One service time of each bar is the"
        " service itself, the rest is waiting.",
        *wide_and_narrow(draw),
    )


def scheduler() -> Diagram:
    """Draw the four decisions of a scheduler and when each is taken.

    Returns
    -------
    Diagram
        Five steps: the loop, then one decision each.

    Examples
    --------
    >>> scheduler().steps
    5
    """
    decisions: list[tuple[str, list[str]]] = [
        ("Admission", ["does the cache of", "the whole request fit?"]),
        ("Order", ["who goes first, and how", "many prompt tokens?"]),
        ("Preemption", ["memory ends: whom to", "pause, keep or recompute?"]),
        ("Shedding", ["too many wait: whom", "to refuse at once?"]),
    ]

    def draw(canvas: Canvas) -> None:
        wide = canvas.width == WIDE
        with canvas.step(1):
            canvas.box(2, 4, canvas.width - 6, 40, TOTAL, rows=["Before each step, the scheduler decides:"], solid=True)
        for index, (title, rows) in enumerate(decisions):
            pressed = index >= 2
            w = 350.0 if wide else canvas.width - 6.0
            x = 2 + index % 2 * 364.0 if wide else 2.0
            y = 82 + index // 2 * 118.0 if wide else 82 + index * 90.0 + (28 if pressed else 0)
            with canvas.step(index + 2):
                if index % 2 == 0:
                    words = "under pressure" if pressed else "in every step"
                    canvas.text(4, y - 12, words, colour=CONTROL.colour if pressed else USER.colour, bold=True, size=13)
                canvas.box(x, y, w, 78, CONTROL if pressed else USER, title=title, rows=rows)

    return Diagram(
        "The four decisions of a scheduler",
        "Before each step a scheduler decides. In every step: admission (does the cache of the whole request fit?) and"
        " order (who goes first, and how many prompt tokens?). Under pressure: preemption (memory ends, whom to pause,"
        " and is the cache kept or computed again?) and shedding (too many wait, whom to refuse at once?).",
        *wide_and_narrow(draw),
        steps=5,
    )


def stalled_requests(
    sends: Callable[[float, int], float], num_requests: int, service: float, stall: tuple[float, float]
) -> list[tuple[float, float]]:
    """Send requests to one server that stands still for a while; return when each was sent and answered.

    Parameters
    ----------
    sends : callable
        From the last answer and the request's number to when it is sent [seconds].
    num_requests : int
        Requests [count].
    service : float
        Time of one [seconds].
    stall : tuple of float
        When the server stops and when it goes on; a request in service then begins again [seconds].

    Returns
    -------
    list of tuple
        Pairs of sent and answered [seconds].

    Examples
    --------
    >>> stalled_requests(lambda answered, number: answered, 3, 1.0, (1.0, 4.0))
    [(0.0, 1.0), (1.0, 5.0), (5.0, 6.0)]
    """
    answered, found = 0.0, []
    for number in range(num_requests):
        sent = sends(answered, number)
        start = max(sent, answered)
        if start + service > stall[0] and start < stall[1]:
            start = stall[1]
        answered = start + service
        found.append((sent, answered))
    return found


def open_loop(service: float, interval: float, stall: tuple[float, float], until: float) -> Diagram:
    """Draw a closed-loop and an open-loop test of the same server, which stands still for a while.

    Parameters
    ----------
    service : float
        Time of one request [seconds].
    interval : float
        Time between two requests of the open-loop test [seconds].
    stall : tuple of float
        When the server stops and when it goes on [seconds].
    until : float
        No request is sent after this [seconds].

    Returns
    -------
    Diagram
        A still diagram; each line is a request from sending to its answer.

    Examples
    --------
    >>> "1 of 9" in open_loop(1, 1.25, (4, 9), 14).description
    True
    """
    many = int(until / min(service, interval)) + 1
    tests = [
        (
            "Closed: send when the last answer is back",
            stalled_requests(lambda answered, _: answered, many, service, stall),
        ),
        (
            f"Open: send every {interval:g} s, whatever happens",
            stalled_requests(lambda _, n: n * interval, many, service, stall),
        ),
    ]
    tests = [(title, [pair for pair in pairs if pair[0] < until]) for title, pairs in tests]
    slow = [sum(answered - sent > 2 * service for sent, answered in pairs) for _, pairs in tests]
    counts = [f"{late} of {len(pairs)}" for late, (_, pairs) in zip(slow, tests, strict=True)]
    end = max(answered for _, pairs in tests for _, answered in pairs)

    def draw(canvas: Canvas) -> None:
        scale, top = (canvas.width - 12) / end, 4.0
        for (title, pairs), count in zip(tests, counts, strict=True):
            height = 8.0 * len(pairs)
            canvas.text(4, top + 14, title, bold=True, size=13)
            canvas.text(4, top + 32, f"{count} requests slow", colour=CONTROL.colour, bold=True, size=13)
            canvas.bar(6 + stall[0] * scale, top + 42, (stall[1] - stall[0]) * scale, height + 6, None, 0.15)
            for index, (sent, answered) in enumerate(pairs):
                late = answered - sent > 2 * service
                y = top + 46 + index * 8.0
                canvas.bar(6 + sent * scale, y, (answered - sent) * scale, 5, CONTROL if late else USER)
            top += 42 + height + 22
        canvas.text(4, top + 4, "grey: the server stands still", colour=MUTED, size=12.5)

    return Diagram(
        "Two tests of one server",
        f"A server takes {service:g} s for a request and stands still from {stall[0]:g} to {stall[1]:g} s. The"
        f" closed-loop test sends again only after an answer and calls {counts[0]} requests slow. The open-loop test"
        f" sends every {interval:g} s and finds {counts[1]} slow: all that arrive in the stall or behind it.",
        *wide_and_narrow(draw),
    )
