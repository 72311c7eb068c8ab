"""Diagrams of pages F1 and F2: the path of a request on AWS, who runs what, and two ways to buy on Bedrock."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass

from lantern_lib.figures.diagram import WIDE, Canvas, Diagram, wide_and_narrow
from lantern_lib.figures.roles import ATTACKER, CONTROL, MEMORY, TOTAL, USER, Role

#: Seconds without a byte after which the load balancer closes a connection; a fact of page F1, held by a test.
IDLE_TIMEOUT_SECONDS = 60
#: What a global profile costs less than a geographic one, in percent; a fact of page F2, held by a test.
GLOBAL_SAVING_PERCENT = 10


@dataclass(frozen=True)
class Block:
    """One block of the architecture: its number and name, what it is built from, and what breaks without care."""

    title: str
    role: Role
    service: str
    breaks: str


PATH = (
    Block("1. Edge", TOTAL, "CloudFront, WAF", "cheap floods become dear answers"),
    Block("2. Balancer", TOTAL, "ALB", f"{IDLE_TIMEOUT_SECONDS} s of silence, and a stream is cut"),
    Block("3. Gateway", CONTROL, "ECS or EKS", "counts requests: one long prompt takes all"),
    Block("4. Router", CONTROL, "yours, Dynamo", "takes turns: the session misses its cache"),
    Block("5. Pools", MEMORY, "EKS, GPU nodes", "one is lost: the next is minutes away"),
)
BESIDE = (
    Block("6. Weights, images", MEMORY, "S3, FSx, ECR, KMS", "a slow source makes every start slow"),
    Block("7. Tool plane", ATTACKER, "Fargate, Network Firewall", "in the pool, an obeyed stranger is inside"),
    Block("8. Observability", TOTAL, "Prometheus, OpenTelemetry", "watches the CPU, and scales too late"),
)


def _wide_block(canvas: Canvas, block: Block, x: float, y: float, width: float, *, on_path: bool) -> None:
    canvas.box(x, y, width, 56, block.role, title=block.title, rows=[block.service], solid=on_path)
    letters = int(width / 7.6)
    canvas.lines(x + 4, y + 77, textwrap.wrap(block.breaks, letters), size=12.5)


def _narrow_block(canvas: Canvas, block: Block, y: float, *, on_path: bool) -> None:
    canvas.box(2, y, 344, 56, block.role, title=block.title, rows=[block.breaks], solid=on_path)
    canvas.text(338, y + 22, block.service, anchor="end", size=11.5)


def aws_path() -> Diagram:
    """Draw the eight blocks on and beside the path of one request, with what breaks at each.

    Returns
    -------
    Diagram
        Eight steps: five blocks on the path, then three beside it.

    Examples
    --------
    >>> aws_path().steps
    8
    """

    def draw(canvas: Canvas) -> None:
        wide = canvas.width == WIDE
        for index, block in enumerate(PATH):
            with canvas.step(index + 1):
                if wide:
                    x = 2 + index * 145.5
                    if index:
                        canvas.path(f"M{x - 12:.1f} 32h9", arrow=True)
                    _wide_block(canvas, block, x, 4, 132, on_path=True)
                else:
                    if index:
                        canvas.path(f"M30 {index * 74 - 12}v12", arrow=True)
                    _narrow_block(canvas, block, 4 + index * 74.0, on_path=True)
        for index, block in enumerate(BESIDE):
            with canvas.step(len(PATH) + index + 1):
                if wide:
                    _wide_block(canvas, block, 2 + index * 242.0, 156, 230, on_path=False)
                else:
                    _narrow_block(canvas, block, 382 + index * 66.0, on_path=False)
        canvas.text(4, 272 if wide else 592, "filled: on the path; empty: beside it", size=12.5)

    listed = "; ".join(f"{block.title} ({block.service}): {block.breaks}" for block in PATH + BESIDE)
    return Diagram(
        "The path of one request on AWS",
        "Five filled boxes in a row, and three empty ones beside them, each with what is built from and what breaks if"
        f" nobody takes care. {listed}. Only the fifth holds GPUs. Gateway and router are Lantern's own code.",
        *wide_and_narrow(draw),
        steps=8,
    )


#: Rows from the product down, and for each way to get tokens who runs it: (words, whether it is you).
STACK: tuple[tuple[str, tuple[tuple[str, bool], ...]], ...] = (
    ("Product", (("you", True), ("you", True), ("you", True))),
    ("Gateway, quotas", (("you", True), ("you", True), ("you", True))),
    ("Access, network", (("provider", False), ("your account", True), ("your account", True))),
    ("Engine", (("provider", False), ("AWS", False), ("you", True))),
    ("Weights", (("provider", False), ("provider", False), ("you, open", True))),
    ("GPUs", (("provider", False), ("AWS", False), ("you, rented", True))),
)
WAYS = ("Provider API", "Bedrock", "Own fleet")
RIGHT_WHEN = (
    ("the best models,", "or you are small"),
    ("many providers,", "one AWS account"),
    ("weights, data path", "or latency count"),
)


def build_or_buy() -> Diagram:
    """Draw who runs each layer of the stack, for three ways to get tokens.

    Returns
    -------
    Diagram
        Three steps, one for each way.

    Examples
    --------
    >>> build_or_buy().steps
    3
    """

    def draw(canvas: Canvas) -> None:
        wide = canvas.width == WIDE
        left, pitch, top = (132.0, 36.0, 30.0) if wide else (0.0, 52.0, 44.0)
        width = (canvas.width - left - 4) / 3
        for row, (layer, _) in enumerate(STACK):
            canvas.text(4, top + row * pitch + (21 if wide else -6), layer, bold=True, size=13)
        for column, way in enumerate(WAYS):
            x = left + 2 + column * width
            middle = x + width / 2 - 4
            with canvas.step(column + 1):
                canvas.text(middle, 18, way, bold=True, anchor="middle", size=14 if wide else 13)
                for row, (_, cells) in enumerate(STACK):
                    who, is_you = cells[column]
                    y = top + row * pitch
                    canvas.box(x, y, width - 8, 30, USER if is_you else None, solid=is_you)
                    colour = {"colour": USER.colour} if is_you else {}
                    canvas.text(middle, y + 20, who, anchor="middle", size=13, bold=is_you, **colour)
                y = top + len(STACK) * pitch + (16 if wide else 0)
                size = 13 if wide else 11.5
                for line, words in enumerate(RIGHT_WHEN[column]):
                    canvas.text(middle, y + line * 17.5, words, anchor="middle", size=size, colour=CONTROL.colour)

    told = "; ".join(f"{layer}: {', '.join(who for who, _ in cells)}" for layer, cells in STACK)
    when = "; ".join(f"{way}: {' '.join(words)}" for way, words in zip(WAYS, RIGHT_WHEN, strict=True))
    return Diagram(
        "Who runs what",
        f"A table of six layers, from the product down, and three ways to get tokens: {', '.join(WAYS)}. Green cells"
        f" are run by you. {told}. Right when: {when}.",
        *wide_and_narrow(draw),
        steps=3,
    )


def bedrock_options() -> Diagram:
    """Draw what Bedrock reserves, and what it borrows from other Regions.

    Returns
    -------
    Diagram
        A still diagram.

    Examples
    --------
    >>> "geography" in bedrock_options().description
    True
    """
    kept = ["model units by the hour,", "used or not; kept for none,", "one or six months"]
    profiles = (
        ("Geographic profile", ["another Region answers;", "data stay in the geography"], TOTAL),
        ("Global profile", ["any commercial Region;", f"about {GLOBAL_SAVING_PERCENT} percent cheaper"], CONTROL),
    )

    def draw(canvas: Canvas) -> None:
        wide = canvas.width == WIDE
        w = 214.0 if wide else 342.0
        canvas.box(2, 4, w, 98, MEMORY, title="Provisioned Throughput", rows=kept, solid=True)
        canvas.text(4, 124, "reserved: yours at every hour", size=12.5, colour=MEMORY.colour, bold=True)
        x, y = (250.0, 4.0) if wide else (2.0, 148.0)
        canvas.box(x, y, w, 60, USER, title="Home Region", rows=["on demand, and busy"], solid=True)
        at = (x + 2, 86.0) if wide else (60.0, y + 84)
        canvas.text(*at, "borrowed: if there is room", size=12.5, colour=TOTAL.colour, bold=True)
        for index, (title, rows, role) in enumerate(profiles):
            if wide:
                bx, by = 500.0, 4 + index * 88.0
                canvas.path(f"M{x + w + 2:.0f} {y + 30:.0f}L{bx - 3:.0f} {by + 38:.0f}", arrow=True)
            else:
                bx, by = 40.0, y + 104 + index * 84.0
                canvas.path(f"M20 {y + 62:.0f}V{by + 38:.0f}H37", arrow=True)
            canvas.box(bx, by, w - (bx if not wide else 0), 72, role, title=title, rows=rows)
        bottom = 192.0 if wide else 438.0
        told = ["Not both at once: a profile takes no Provisioned Throughput. Neither retries for you."]
        if not wide:
            told = ["Not both at once: a profile takes no", "Provisioned Throughput. Neither retries."]
        canvas.lines(4, bottom, told, size=12.5)

    return Diagram(
        "Reserved and borrowed capacity on Bedrock",
        "On one side Provisioned Throughput: model units paid by the hour, used or not, with none, one or six months of"
        " commitment. On the other a busy home Region from which two arrows lead away: with a geographic profile"
        " another Region of the same geography answers, and data stay in it; with a global profile any commercial"
        f" Region answers, for about {GLOBAL_SAVING_PERCENT} percent less. The two are not bought together, and neither"
        " retries for the application.",
        *wide_and_narrow(draw),
    )
