"""Diagrams of pages B1 and B2: the engine's loop, blocks, and the tree of prefixes."""

from __future__ import annotations

from collections.abc import Sequence

from lantern_lib.figures.diagram import WIDE, Canvas, Diagram, wide_and_narrow
from lantern_lib.figures.roles import ARITHMETIC, CONTROL, MEMORY, MUTED, TOTAL, USER, Role
from lantern_lib.kv_blocks import BlockPool
from lantern_lib.prefix_tree import PrefixTree


def engine_loop() -> Diagram:
    """Draw one step of an engine as a loop.

    Returns
    -------
    Diagram
        Five steps: the queue, the scheduler, the block manager, the forward pass, the tokens.

    Examples
    --------
    >>> engine_loop().steps
    5
    """
    stations: list[tuple[Role, str, list[str]]] = [
        (USER, "Waiting", ["requests in order", "of arrival"]),
        (CONTROL, "Scheduler", ["retire who is done,", "admit who may ride"]),
        (MEMORY, "Block manager", ["does the cache fit?", "hand out blocks"]),
        (ARITHMETIC, "Forward pass", ["one for the whole", "batch"]),
    ]

    def draw(canvas: Canvas) -> None:
        wide = canvas.width == WIDE
        w, h, pitch = (156, 84, 187) if wide else (250, 84, 108)
        for number, (role, title, rows) in enumerate(stations):
            x, y = (2 + number * pitch, 2) if wide else (2, 2 + number * pitch)
            with canvas.step(number + 1):
                if number:
                    start = f"M{x - pitch + w + 3} {y + h / 2:.0f}h{pitch - w - 7}"
                    canvas.path(start if wide else f"M{x + w / 2:.0f} {y - pitch + h + 3}v{pitch - h - 7}", arrow=True)
                canvas.box(x, y, w, h, role, title=title, rows=rows)
        with canvas.step(5):
            if wide:
                canvas.path(f"M641 {h + 5}v34", arrow=True)
                canvas.box(563, 126, 155, 84, USER, title="Tokens", rows=["one for each rider,", "sent at once"])
                canvas.path(f"M560 168H267V{h + 6}", CONTROL, arrow=True)
                canvas.text(280, 160, "not finished: next step", colour=CONTROL.colour, size=13)
                canvas.text(280, 186, "finished: its blocks are free again", colour=MUTED, size=13)
            else:
                canvas.path("M127 413v20", arrow=True)
                canvas.box(2, 436, 250, 66, USER, title="Tokens", rows=["one for each rider, sent at once"])
                canvas.path("M255 469H292V152H256", CONTROL, arrow=True)
                canvas.lines(300, 270, ["not", "done:", "next", "step"], colour=CONTROL.colour, size=13)
                canvas.text(2, 524, "finished: its blocks are free again", colour=MUTED, size=13)

    return Diagram(
        "An engine is one loop",
        "Requests wait in order. In every step the scheduler retires who is done and admits who may ride, the block"
        " manager gives each rider room in the cache or refuses, one forward pass serves the whole batch, and each"
        " rider gets one token. Who is not finished rides in the next step; the blocks of the others are free again.",
        *wide_and_narrow(draw),
        steps=5,
    )


def _cells(canvas: Canvas, pool: BlockPool, top: float, across: int, size: float) -> float:
    """Draw memory as a grid of blocks, each with the letters of who points at it; return the bottom."""
    owners: dict[int, str] = {}
    for request in pool.requests:
        for block in pool.table(request):
            owners[block] = owners[block] + f" {request}" if block in owners else str(request)
    for block in range(pool.num_blocks):
        x, y = 3 + block % across * size, top + block // across * 40
        names = owners.get(block, "")
        role = None if not names else TOTAL if " " in names else MEMORY
        canvas.bar(x, y, size - 5, 34, role, 0.22 if role else 0.1)
        canvas.text(x + (size - 5) / 2, y + 15, f"{block}", anchor="middle", size=12, colour=MUTED)
        canvas.text(
            x + (size - 5) / 2,
            y + 30,
            names,
            anchor="middle",
            size=13,
            bold=True,
            colour=role.colour if role else MUTED,
        )
    return top + -(-pool.num_blocks // across) * 40


def paging(
    prompt_len: int, shared_len: int, output_lens: tuple[int, int], block_size: int, reserved_len: int
) -> Diagram:
    """Draw two requests with a reservation each, and as blocks of which they share some.

    Parameters
    ----------
    prompt_len, shared_len : int
        Tokens of each prompt, and how many of them are the same at its beginning [tokens].
    output_lens : tuple of int
        Answers of the two [tokens].
    block_size : int
        Tokens of one block [tokens].
    reserved_len : int
        Tokens that a contiguous cache keeps for each [tokens].

    Returns
    -------
    Diagram
        Above the reservations to scale, below the blocks that a pool really gave out.

    Examples
    --------
    >>> "1 block is shared" in paging(40, 16, (30, 9), 16, 256).description
    True
    """
    lengths = [prompt_len + output for output in output_lens]
    pool = BlockPool(16, block_size)
    pool.allocate("A", range(prompt_len))
    pool.fork("A", "B", shared_len)
    pool.append("B", range(prompt_len - shared_len))
    # Both grow a token at a time, so their blocks lie between each other's.
    for written in range(max(output_lens)):
        for name, output in zip("AB", output_lens, strict=True):
            if written < output:
                pool.append(name, [0])
    tables = {name: pool.table(name) for name in "AB"}
    num_shared = len(set(tables["A"]) & set(tables["B"]))
    num_used = pool.num_blocks - pool.num_free

    def draw(canvas: Canvas) -> None:
        wide, full = canvas.width == WIDE, canvas.width - 6.0
        canvas.text(3, 18, f"One piece each: {reserved_len:,} tokens are reserved", bold=True)
        for index, (name, length) in enumerate(zip("AB", lengths, strict=True)):
            y = 30 + index * 46
            canvas.box(3, y, full, 36, CONTROL)
            canvas.bar(5, y + 3, (full - 4) * length / reserved_len, 30, MEMORY)
            words = f"{name}: {length} used, {reserved_len - length} empty" + (
                " and nobody else may have them" if wide else ""
            )
            canvas.text(12 + (full - 4) * length / reserved_len, y + 23, words, size=13)
        top = 150.0
        canvas.text(3, top, f"Blocks of {block_size}: {num_used} of {pool.num_blocks} in use", bold=True)
        bottom = _cells(canvas, pool, top + 12, 16 if wide else 8, full / (16 if wide else 8))
        for index, name in enumerate("AB"):
            line_y = bottom + 22 + index * 24
            listed = ", ".join(str(block) for block in tables[name])
            canvas.text(3, line_y, f"Table of {name}:  blocks {listed}", size=13)
        blocks = "block is" if num_shared == 1 else "blocks are"
        line = [f"{num_shared} {blocks} shared: the same beginning,", "stored once"]
        canvas.lines(3, bottom + 70, [" ".join(line)] if wide else line, colour=TOTAL.colour, bold=True, size=13)

    return Diagram(
        "A reservation, and a table of blocks",
        f"Above: requests A and B reserve {reserved_len:,} tokens each and use {lengths[0]} and {lengths[1]}. Below:"
        f" the same two in blocks of {block_size} hold {num_used} blocks, wherever one was free; their tables list"
        f" them in order, and {num_shared} {'block is' if num_shared == 1 else 'blocks are'} shared because both"
        " requests begin with the same tokens.",
        *wide_and_narrow(draw),
    )


def _numbers(start: int, count: int) -> list[int]:
    return list(range(start, start + count))


def radix_tree(system_len: int, turns: Sequence[int], new_len: int) -> Diagram:
    """Draw cached prefixes as a tree, and a new request that walks it.

    Parameters
    ----------
    system_len : int
        Tokens with which every conversation begins [tokens].
    turns : sequence of int
        Tokens of three parts: conversation 1, and the first and second turn of conversation 2 [tokens].
    new_len : int
        Tokens that the third turn of conversation 2 adds [tokens].

    Returns
    -------
    Diagram
        Five steps: the common beginning, the two conversations, the next turn, and the new request.

    Examples
    --------
    >>> radix_tree(1500, (400, 600, 300), 50).description.endswith("2,400 of 2,450 tokens are found, 50 are computed.")
    True
    """
    system, one = _numbers(0, system_len), _numbers(10_000, turns[0])
    two, more = _numbers(20_000, turns[1]), _numbers(30_000, turns[2])
    cached = [system + one, system + two, system + two + more]
    tree = PrefixTree(1_000_000)
    for sequence in cached:
        tree.insert(sequence)
    new = system + two + more + _numbers(40_000, new_len)
    found, apart = tree.match(new), sum(map(len, (cached[0], cached[2])))

    def draw(canvas: Canvas) -> None:
        wide = canvas.width == WIDE
        w = 222 if wide else 168
        left, right = (90, 408) if wide else (2, 180)
        root = (canvas.width - w) / 2
        places = [
            (root, 2, TOTAL, "System and tools", system_len, None),
            (left, 92, MEMORY, "Conversation 1", turns[0], 0),
            (right, 92, MEMORY, "Conversation 2", turns[1], 0),
            (right, 182, MEMORY, "its next turn", turns[2], 2),
            (right, 272, ARITHMETIC, "new request", new_len, 3),
        ]
        for number, (x, y, role, title, tokens, parent) in enumerate(places):
            with canvas.step(number + 1):
                if parent is not None:
                    px, py = places[parent][0] + w / 2, places[parent][1] + 60
                    canvas.path(f"M{px:.0f} {py + 3:.0f}L{x + w / 2:.0f} {y - 4}", arrow=True)
                row = f"{tokens:,} tokens" + (", computed" if parent == 3 else "")
                canvas.box(x, y, w, 60, role, title=title, rows=[row], solid=role is TOTAL)
        with canvas.step(5):
            words = [
                f"The new request finds {found:,} of its {len(new):,} tokens.",
                f"Stored: {tree.num_tokens:,}; without sharing {apart:,}.",
            ]
            canvas.lines(left, 360, words, size=12.5, pitch=20, colour=TOTAL.colour)

    return Diagram(
        "Prefix caching is a tree",
        f"A tree of cached tokens. The root holds {system_len:,} tokens that every conversation begins with;"
        f" conversation 1 adds {turns[0]:,}, conversation 2 adds {turns[1]:,} and then {turns[2]:,}. Stored are"
        f" {tree.num_tokens:,} tokens where two separate copies would take {apart:,}. A new request walks down to its"
        f" longest cached prefix: {found:,} of {len(new):,} tokens are found, {len(new) - found:,} are computed.",
        *wide_and_narrow(draw),
        steps=5,
    )
