"""Diagrams of part E: attack surfaces, the context window, four gates, the cache's side channel, what tenants share."""

from __future__ import annotations

from lantern_lib.figures.diagram import WIDE, Canvas, Diagram, wide_and_narrow
from lantern_lib.figures.roles import ARITHMETIC, ATTACKER, CONTROL, MEMORY, TOTAL, USER, Role
from lantern_lib.guardrails.cache_scope import ttft_seconds
from lantern_lib.hardware import Replica
from lantern_lib.model_config import ModelConfig
from lantern_lib.units import format_quantity


def surfaces() -> Diagram:
    """Draw the three attack surfaces of a service, who comes to each, and how it fails.

    Returns
    -------
    Diagram
        A still diagram.

    Examples
    --------
    >>> surfaces().steps
    0
    """
    found: list[tuple[Role, str, list[str], list[str]]] = [
        (ARITHMETIC, "The model", ["someone who writes", "a text that it reads"], ["obeys the wrong words"]),
        (MEMORY, "The infrastructure", ["a customer next door,", "a leak, a tampered file"], ["tells what is shared"]),
        (CONTROL, "The agent", ["anyone whose words", "can move its tools"], ["acts with your rights"]),
    ]

    def draw(canvas: Canvas) -> None:
        wide = canvas.width == WIDE
        for index, (role, title, comes, fails) in enumerate(found):
            if wide:
                x = 2 + index * 242.0
                canvas.box(x, 4, 230, 62, ATTACKER, rows=comes)
                canvas.path(f"M{x + 115:.0f} 68v22", ATTACKER, arrow=True)
                canvas.box(x, 94, 230, 58, role, title=title, rows=fails, solid=True)
            else:
                y = 4 + index * 130.0
                canvas.box(2, y, 344, 36, ATTACKER, rows=[" ".join(comes)])
                canvas.path(f"M174 {y + 38:.0f}v14", ATTACKER, arrow=True)
                canvas.box(2, y + 56, 344, 56, role, title=title, rows=fails, solid=True)

    words = "; ".join(f"{title}: {' '.join(comes)}, and it {fails[0]}" for _, title, comes, fails in found)
    return Diagram(
        "Three attack surfaces",
        f"Three boxes, each with who comes to it and how it fails. {words}.",
        *wide_and_narrow(draw),
    )


def context_window() -> Diagram:
    """Draw four sources of text that become one row of tokens, and what follows from it.

    Returns
    -------
    Diagram
        A still diagram.

    Examples
    --------
    >>> "one row of tokens" in context_window().description
    True
    """
    sources: list[tuple[Role, str, str]] = [
        (USER, "System prompt", "Lantern writes it"),
        (USER, "User's message", "the user writes it"),
        (ATTACKER, "Page or mail", "anyone writes it"),
        (ATTACKER, "Tool's answer", "who feeds the tool"),
    ]

    def draw(canvas: Canvas) -> None:
        wide = canvas.width == WIDE
        w, gap = (172.0, 9.0) if wide else (170.0, 6.0)
        for index, (role, title, row) in enumerate(sources):
            x = 2 + index % (4 if wide else 2) * (w + gap)
            y = 4.0 if wide else 4 + index // 2 * 66.0
            canvas.box(x, y, w, 56, role, title=title, rows=[row])
        top = 96.0 if wide else 162.0
        for x in (canvas.width * 0.25, canvas.width * 0.75):
            canvas.path(f"M{x:.0f} {top - 33:.0f}v18", arrow=True)
        cell = (canvas.width - 8) / (36 if wide else 20)
        count = 36 if wide else 20
        for index in range(count):
            canvas.bar(4 + index * cell, top - 10, cell - 2, 22, sources[index * 4 // count][0], 0.75)
        canvas.text(
            canvas.width / 2, top + 32, "one row of tokens, read by the same attention", anchor="middle", size=13
        )
        canvas.path(f"M{canvas.width / 2:.0f} {top + 40:.0f}v16", arrow=True)
        w = 330.0 if wide else 344.0
        canvas.box(
            (canvas.width - w) / 2 - 1,
            top + 60,
            w,
            54,
            TOTAL,
            title="The model",
            rows=["no mark says which words may command"],
        )
        canvas.path(f"M{canvas.width / 2:.0f} {top + 116:.0f}v16", arrow=True)
        canvas.box(
            (canvas.width - w) / 2 - 1,
            top + 136,
            w,
            54,
            CONTROL,
            title="Tool calls",
            rows=["made with the rights of the user"],
        )

    return Diagram(
        "One context window, four writers",
        "The system prompt and the user's message, written by Lantern and the user, and a page or mail and a tool's"
        " answer, which others can write, become one row of tokens that the same attention reads. No mark says which"
        " words may command. The model's tool calls are made with the rights of the user.",
        *wide_and_narrow(draw),
    )


def gates() -> Diagram:
    """Draw the four gates between a model's request and the world, and what each stops.

    Returns
    -------
    Diagram
        Six steps: the model, four gates, and where the credentials are.

    Examples
    --------
    >>> gates().steps
    6
    """
    boxes: list[tuple[Role, str, list[str], str]] = [
        (TOTAL, "Model", ["asks, never", "acts"], ""),
        (CONTROL, "Validate", ["known tool,", "right types"], "an odd call"),
        (CONTROL, "Confirm", ["a person sees", "the real call"], "a wrong address"),
        (CONTROL, "Sandbox", ["little memory,", "little time"], "a runaway"),
        (CONTROL, "Egress", ["only hosts", "on the list"], "a stranger"),
    ]

    def draw(canvas: Canvas) -> None:
        wide = canvas.width == WIDE
        for index, (role, title, rows, stops) in enumerate(boxes):
            x, y = (2 + index * 146.0, 4.0) if wide else (2.0, 4 + index * 76.0)
            with canvas.step(index + 1):
                if wide:
                    if index:
                        canvas.path(f"M{x - 13:.0f} 42h10", arrow=True)
                    canvas.box(x, y, 131, 76, role, title=title, rows=rows)
                    if stops:
                        canvas.text(
                            x + 65, 100, f"stops {stops}", colour=ATTACKER.colour, size=11.5, anchor="middle", bold=True
                        )
                else:
                    if index:
                        canvas.path(f"M30 {y - 15:.0f}v12", arrow=True)
                    canvas.box(x, y, 344, 58, role, title=title, rows=[" ".join(rows)])
                    if stops:
                        canvas.text(
                            338, y + 22, f"stops {stops}", colour=ATTACKER.colour, size=12, anchor="end", bold=True
                        )
        with canvas.step(6):
            y = 124.0 if wide else 392.0
            w = canvas.width - 6.0
            rows = (
                ["Tools hold the credentials; the prompt never does."]
                if wide
                else ["Tools hold the credentials,", "the prompt never does."]
            )
            canvas.box(2, y, w, 20 + 17.5 * len(rows), MEMORY, rows=rows, solid=True)
            y += 34 + 17.5 * len(rows)
            words = (
                "The record: what the model asked for, and what ran."
                if wide
                else "The record: what was asked, what ran."
            )
            canvas.box(2, y, w, 37, MEMORY, rows=[words], solid=True)

    listed = "; ".join(f"{title}: {' '.join(rows)}, stops {stops}" for _, title, rows, stops in boxes[1:])
    return Diagram(
        "Four gates between a request and the world",
        f"The model asks and never acts. Its request passes four gates. {listed}. Tools hold the credentials, the"
        " prompt never does, and a record keeps what the model asked for and what ran.",
        *wide_and_narrow(draw),
        steps=6,
    )


def side_channel(model: ModelConfig, replica: Replica, public_len: int, secret_len: int) -> Diagram:
    """Draw how one tenant learns from a shared cache what another has sent, and how a scope ends it.

    Parameters
    ----------
    model : ModelConfig
        The shape.
    replica : Replica
        The machine.
    public_len, secret_len : int
        Tokens that everybody sends, and tokens that only the first tenant sends [tokens].

    Returns
    -------
    Diagram
        Three steps: the victim, the attacker, and the attacker before a scoped cache.

    Examples
    --------
    >>> from lantern_lib import H100, LANTERN_70B
    >>> "14.3 ms" in side_channel(LANTERN_70B, Replica(H100, tp_size=4), 1500, 500).description
    True
    """
    total = public_len + secret_len
    cold, known = (format_quantity(ttft_seconds(model, replica, total, c), "ms", 1) for c in (public_len, total))
    prompt = f"prompt of {total:,} tokens"

    def draw(canvas: Canvas) -> None:
        wide = canvas.width == WIDE
        left, middle, right = (90.0, 360.0, 630.0) if wide else (26.0, 175.0, 324.0)
        for x, role, name in ((left, USER, "Tenant A"), (middle, MEMORY, "Cache"), (right, ATTACKER, "Tenant B")):
            canvas.box(min(max(x - 42, 2), canvas.width - 88), 4, 84, 34, role, rows=[name], solid=True)
            canvas.path(f"M{x:.0f} 40V256M{x:.0f} 298V404", role, width=1.2)

        def says(y: float, start: float, end: float, words: str, role: Role) -> None:
            canvas.text((start + end) / 2, y - 7, words, colour=role.colour, size=12.5, anchor="middle", bold=True)
            canvas.path(f"M{start:.0f} {y:.0f}H{end - 6 if end > start else end + 6:.0f}", role, arrow=True)

        def probe(y: float, answer: str, verdict: str) -> None:
            says(y, right, middle, f"the same {prompt}" if wide else "the same", ATTACKER)
            says(y + 40, middle, right, f"first token after {answer}" if wide else f"after {answer}", ATTACKER)
            canvas.text((middle + right) / 2, y + 62, verdict, colour=ATTACKER.colour, size=12.5, anchor="middle")

        with canvas.step(1):
            says(78, left, middle, prompt if wide else f"{total:,} tokens", USER)
            says(118, middle, left, f"first token after {cold}" if wide else f"after {cold}", USER)
        with canvas.step(2):
            probe(168, known, "so it was sent before")
        with canvas.step(3):
            canvas.box(4, 260, canvas.width - 10, 34, CONTROL, rows=["Now the cache keeps tenants apart:"], solid=True)
            probe(328, cold, "which says nothing")

    return Diagram(
        "A shared cache answers a question nobody may ask",
        f"Tenant A sends a {prompt}, of which {public_len:,} are public and cached; the first token comes after {cold}."
        f" Tenant B sends the same and gets its first token after {known}: so somebody has sent it. With a cache that"
        f" keeps tenants apart, B waits {cold} whether or not A has sent it, which says nothing.",
        *wide_and_narrow(draw),
        steps=3,
    )


def shared_surfaces() -> Diagram:
    """Draw five things that tenants share, how each leaks, and what contains it.

    Returns
    -------
    Diagram
        A still diagram, one row each.

    Examples
    --------
    >>> "Prefix cache" in shared_surfaces().description
    True
    """
    rows: list[tuple[str, str, str]] = [
        ("Prefix cache", "a fast answer tells who was first", "a key with the tenant in it"),
        ("GPU memory", "a bug reads a neighbour's block", "tests, or a replica of one's own"),
        ("Time in the batch", "one long prompt delays everybody", "quotas and caps in tokens"),
        ("Logs, telemetry", "prompts lie there for years", "counts, no text; an end date"),
        ("Weights, images", "a changed file runs for everybody", "a hash taken at review"),
    ]

    def draw(canvas: Canvas) -> None:
        wide = canvas.width == WIDE
        if wide:
            canvas.text(190, 15, "how it leaks or hurts", colour=ATTACKER.colour, bold=True, size=13)
            canvas.text(462, 15, "what contains it", colour=USER.colour, bold=True, size=13)
        else:
            canvas.text(4, 15, "red: how it leaks or hurts", colour=ATTACKER.colour, bold=True, size=12.5)
            canvas.text(4, 33, "green: what contains it", colour=USER.colour, bold=True, size=12.5)
        for index, (title, leaks, contains) in enumerate(rows):
            if wide:
                y = 26 + index * 46.0
                canvas.box(2, y, 168, 36, MEMORY, rows=[title], solid=True)
                canvas.text(190, y + 23, leaks, colour=ATTACKER.colour, size=12.5)
                canvas.text(462, y + 23, contains, colour=USER.colour, size=12.5)
            else:
                y = 44 + index * 90.0
                canvas.box(2, y, 344, 80, MEMORY, title=title, solid=True)
                canvas.text(14, y + 45, leaks, colour=ATTACKER.colour, size=12.5)
                canvas.text(14, y + 65, contains, colour=USER.colour, size=12.5)

    listed = "; ".join(f"{title}: {leaks}; contained by {contains}" for title, leaks, contains in rows)
    return Diagram("Five things that tenants share", f"A list. {listed}.", *wide_and_narrow(draw))
