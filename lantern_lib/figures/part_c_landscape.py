"""Diagrams of pages C1 and C2: the layers of a serving stack, the usual path, public evidence, a postmortem."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date

from lantern_lib.figures.diagram import WIDE, Canvas, Diagram, wide_and_narrow
from lantern_lib.figures.roles import ARITHMETIC, CONTROL, MUTED, TOTAL, USER, Role


@dataclass(frozen=True)
class Bug:
    """One bug of the postmortem: its kind, when it went in and was taken out, and what it did [dates, text]."""

    title: str
    role: Role
    began: date
    fixed: date
    done: date
    cause: str
    effect: str


#: The bugs, from the post of September 2025; ``done`` is when the last platform had the fix. The percentages are
#: facts of page C2, and a test holds the two together.
BUGS = (
    Bug(
        "Routing error",
        CONTROL,
        date(2025, 8, 5),
        date(2025, 9, 4),
        date(2025, 9, 18),
        "short requests sent to long-context servers",
        "Sonnet 4: 0.8 percent, at worst 16 percent",
    ),
    Bug(
        "Misconfiguration",
        TOTAL,
        date(2025, 8, 25),
        date(2025, 9, 2),
        date(2025, 9, 2),
        "a runtime setting raised unlikely tokens",
        "Thai or Chinese letters in English answers",
    ),
    Bug(
        "Compiler bug",
        ARITHMETIC,
        date(2025, 8, 25),
        date(2025, 9, 4),
        date(2025, 9, 12),
        "approximate top-k dropped the best token",
        "at some batch sizes, on some models",
    ),
)
BALANCING = date(2025, 8, 29)


def layers() -> Diagram:
    """Draw the three layers of a serving stack over three replicas, with the question each answers.

    Returns
    -------
    Diagram
        Three steps, from the kernels up.

    Examples
    --------
    >>> layers().steps
    3
    """
    rows: list[tuple[str, Role, list[str], list[str]]] = [
        (
            "Orchestration (parts C and D)",
            CONTROL,
            [
                "NVIDIA Dynamo, llm-d, your own router",
                "Which replica? How many workers of",
                "each kind? Where does the cache live?",
            ],
            ["the whole fleet"],
        ),
        (
            "Engine (part B)",
            TOTAL,
            ["vLLM, SGLang, TensorRT-LLM", "Who rides in the next step? Whose", "cache fits? How much prompt now?"],
            ["replica 1", "replica 2", "replica 3"],
        ),
        (
            "Kernels (part A)",
            ARITHMETIC,
            [
                "FlashAttention, FlashInfer and others",
                "How does one operation use",
                "the units and the memory of a chip?",
            ],
            ["its GPUs", "its GPUs", "its GPUs"],
        ),
    ]

    def draw(canvas: Canvas) -> None:
        wide = canvas.width == WIDE
        left, pitch = (352.0, 104.0) if wide else (2.0, 150.0)
        span = canvas.width - left - 4
        for index, (title, role, words, boxes) in enumerate(rows):
            top = 4 + index * pitch
            with canvas.step(len(rows) - index):
                canvas.text(4, top + 20, title, colour=role.colour, bold=True, size=14)
                canvas.lines(4, top + 40, words, size=13)
                y, height = (top, 78.0) if wide else (top + 88, 40.0)
                width = (span - 12.0 * (len(boxes) - 1)) / len(boxes)
                for number, label in enumerate(boxes):
                    x = left + number * (width + 12)
                    canvas.box(x, y, width, height, role, solid=True)
                    canvas.text(
                        x + width / 2, y + height / 2 + 5, label, colour=role.colour, bold=True, anchor="middle"
                    )
                    if index and wide:
                        canvas.path(f"M{x + width / 2:.0f} {y - 24:.0f}v20", arrow=True)

    return Diagram(
        "The three layers of a serving stack",
        "Above, orchestration spans the whole fleet (NVIDIA Dynamo, llm-d or a router of your own): it picks a"
        " replica for each request, sets the number of workers and says where the cache lives. Under it"
        " each replica has an engine (vLLM, SGLang, TensorRT-LLM), which decides who rides in the next step. Under"
        " each engine are kernels such as FlashAttention and FlashInfer, which run one operation on its GPUs.",
        *wide_and_narrow(draw),
        steps=3,
    )


def usual_path() -> Diagram:
    """Draw the three stations of a start-up: a lab's API, a hosted platform, its own fleet.

    Returns
    -------
    Diagram
        Three steps, each with what is paid for, where Lantern stands and when to go on.

    Examples
    --------
    >>> "own fleet" in usual_path().description
    True
    """
    stations: list[tuple[str, Role, list[str], list[str], list[str]]] = [
        (
            "1. A lab's API",
            TOTAL,
            ["the lab's own models", "paid by the token", "nothing to run"],
            ["Lantern on day one"],
            ["go on when open", "weights are enough"],
        ),
        (
            "2. Host or Bedrock",
            TOTAL,
            ["many models, one API", "paid by the token", "their engine"],
            ["what is small or spiky"],
            ["go on when load is", "steady, prefixes shared"],
        ),
        (
            "3. Your own fleet",
            ARITHMETIC,
            ["open weights", "paid by the GPU-hour", "your engine"],
            ["Lantern, month 5: agents"],
            ["keep 1 and 2 for", "peaks and outages"],
        ),
    ]

    def draw(canvas: Canvas) -> None:
        wide = canvas.width == WIDE
        width = 208.0 if wide else canvas.width - 6.0
        for index, (title, role, rows, lantern, onward) in enumerate(stations):
            x, y = (2 + index * 253.0, 4.0) if wide else (2.0, 4 + index * 196.0)
            with canvas.step(index + 1):
                canvas.box(x, y, width, 96, role, title=title, rows=rows, solid=True)
                canvas.lines(x + 12, y + 120, lantern, size=13, colour=USER.colour, bold=True)
                canvas.lines(x + 12, y + 138, onward, size=13, colour=CONTROL.colour)
                if index:
                    canvas.path(
                        f"M{x - 42:.0f} {y + 48:.0f}h38" if wide else f"M{width / 2:.0f} {y - 26:.0f}v22", arrow=True
                    )

    return Diagram(
        "The usual path of a start-up",
        "Three stations. First a lab's API: paid by the token, nothing to run; Lantern is here on day one. Then a"
        " hosted platform or Bedrock: many models behind one API, somebody else's engine, for what is small or spiky."
        " Last an own fleet: open weights, paid by the GPU-hour, your engine; Lantern's agents in month 5. One goes on"
        " when open weights are enough, and again when load is steady and prefixes are shared; the first two stay for"
        " peaks.",
        *wide_and_narrow(draw),
        steps=3,
    )


def evidence() -> Diagram:
    """Draw the four kinds of public evidence on how large providers serve, stated and inferred.

    Returns
    -------
    Diagram
        A still diagram; filled boxes are stated by a source, the dashed one is concluded.

    Examples
    --------
    >>> "dashed" in evidence().description
    True
    """
    kinds: list[tuple[str, Role, list[str], bool]] = [
        ("1. The API surface", TOTAL, ["prices, limits, rules of the cache:", "what is cheap for their machine"], True),
        ("2. Postmortems", TOTAL, ["what broke, where, for how many:", "how serving fails in production"], True),
        (
            "3. Reports on open weights",
            TOTAL,
            ["shapes, layouts, tiers of cache:", "how one large fleet is built"],
            True,
        ),
        (
            "4. Inference",
            CONTROL,
            ["likely parts: paging, quantisation, …", "not how combined, not how many GPUs"],
            False,
        ),
    ]

    def draw(canvas: Canvas) -> None:
        wide = canvas.width == WIDE
        width = 350.0 if wide else canvas.width - 6.0
        for index, (title, role, rows, stated) in enumerate(kinds):
            x, y = (2 + index % 2 * 364.0, 4 + index // 2 * 92.0) if wide else (2.0, 4 + index * 92.0)
            canvas.box(x, y, width, 78, role, title=title, rows=rows, solid=stated)
        y = 204.0 if wide else 388.0
        canvas.text(4, y, "filled: a source says it", colour=TOTAL.colour, bold=True, size=12.5)
        x, y = (368.0, y) if wide else (4.0, y + 19)
        canvas.text(x, y, "dashed: concluded from outside", colour=CONTROL.colour, bold=True, size=12.5)

    return Diagram(
        "Four kinds of public evidence",
        "Four boxes. Three are filled, because a source states what they hold: the API surface (prices, limits and"
        " cache rules), postmortems (what broke, where and for how many) and reports on open weights (shapes, layouts,"
        " tiers of cache). The fourth is dashed: what is concluded from outside, such as paging and quantisation,"
        " without the combination or the number of GPUs.",
        *wide_and_narrow(draw),
    )


def postmortem() -> Diagram:
    """Draw the three bugs of the postmortem of September 2025 on one time axis.

    Returns
    -------
    Diagram
        A still diagram: a bar is a bug in production, its pale end the fix on its way to the last platform.

    Examples
    --------
    >>> "16 percent" in postmortem().description
    True
    """
    first, last = date(2025, 8, 1), date(2025, 9, 20)

    def draw(canvas: Canvas) -> None:
        scale = (canvas.width - 8) / (last - first).days
        bottom = 4 + len(BUGS) * 92.0

        def at(day: date) -> float:
            return 4 + (day - first).days * scale

        for row, bug in enumerate(BUGS):
            top = 4 + row * 92.0
            canvas.text(4, top + 14, bug.title, colour=bug.role.colour, bold=True, size=14)
            canvas.text(4, top + 33, bug.cause, size=13)
            canvas.text(4, top + 51, bug.effect, size=13, colour=USER.colour)
            canvas.bar(at(bug.began), top + 60, at(bug.fixed) - at(bug.began), 16, bug.role)
            if bug.done > bug.fixed:
                canvas.bar(at(bug.fixed), top + 60, at(bug.done) - at(bug.fixed), 16, bug.role, 0.35)
            if bug is BUGS[0]:  # the change worsened this one only
                canvas.path(f"M{at(BALANCING):.1f} {top + 56:.0f}v24", width=2.4)
        canvas.path(f"M4 {bottom + 6:.1f}H{canvas.width - 4}")
        for day, anchor in ((date(2025, 8, 5), "middle"), (BALANCING, "middle"), (date(2025, 9, 18), "end")):
            x = at(day) + (8 if anchor == "end" else 0)
            canvas.path(f"M{at(day):.1f} {bottom + 2:.1f}v8")
            canvas.text(x, bottom + 26, f"{day.day} {day:%b}", size=12.5, anchor=anchor, colour=MUTED)
        canvas.text(4, bottom + 46, "upright line: load balancing changed", size=12.5, colour=MUTED)
        canvas.text(4, bottom + 64, "pale: fixes reach the last model or platform", size=12.5, colour=MUTED)

    listed = "; ".join(
        f"{bug.title.lower()}, {bug.began.day} {bug.began:%B} to {bug.fixed.day} {bug.fixed:%B}: {bug.cause};"
        f" {bug.effect}"
        for bug in BUGS
    )
    return Diagram(
        "Three bugs, none of them the model",
        f"Bars on a time axis from August to September 2025. {listed}. A vertical line marks the change of load"
        " balancing on 29 August, after which far more requests were sent to the wrong servers.",
        *wide_and_narrow(draw),
    )
