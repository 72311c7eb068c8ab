"""Diagrams of pages D1 and D2: the agent's loop, its traffic beside a chat's, and four ways to lose a cache."""

from __future__ import annotations

from dataclasses import replace

from lantern_lib.figures.diagram import WIDE, Canvas, Diagram, wide_and_narrow
from lantern_lib.figures.roles import ARITHMETIC, CONTROL, MEMORY, MUTED, USER, Role
from lantern_lib.prompt_cache import ANTHROPIC, bill_requests, session_requests
from lantern_lib.workload import Session


def agent_loop(session: Session) -> Diagram:
    """Draw the loop of an agent, and the prompts of its first calls and its last, to scale.

    Parameters
    ----------
    session : Session
        Its calls; four or more.

    Returns
    -------
    Diagram
        Five steps: the prompt, the model, the tool, the result appended, and the calls that follow.

    Examples
    --------
    >>> from lantern_lib.prompt_cache import agent_session
    >>> agent_loop(agent_session(20, 6000, 1500)).steps
    5
    """
    stations: list[tuple[Role, str, list[str]]] = [
        (USER, "Prompt", ["tools, rules, task,", "all that happened"]),
        (ARITHMETIC, "Model", ["reads all of it,", "asks for a tool"]),
        (CONTROL, "Tool", ["runs for seconds", "or for minutes"]),
        (MEMORY, "Result", ["is appended:", "the prompt grows"]),
    ]
    lengths = [call.prompt_len for call in session.calls]
    shown = [0, 1, 2, len(lengths) - 1]

    def calls(canvas: Canvas, top: float) -> None:
        names = 66.0
        full = canvas.width - names - (72 if canvas.width == WIDE else 62)
        for row, turn in enumerate(shown):
            y = top + row * 27 + (14 if row == 3 else 0)
            if row == 3:
                canvas.text(names + 4, y - 3, "…", colour=MUTED)
            canvas.text(0, y + 14, f"call {turn + 1}", size=13)
            new = lengths[turn] - session.calls[turn].reused_len
            old = full * session.calls[turn].reused_len / lengths[-1]
            if old:
                canvas.bar(names, y, old - 1, 18, MEMORY, 0.35)
            canvas.bar(names + old, y, full * new / lengths[-1], 18, USER)
            canvas.text(names + full * lengths[turn] / lengths[-1] + 8, y + 14, f"{lengths[turn]:,}", size=13)
        words = ["tokens of each prompt: green is new,", "pale blue was all sent before"]
        y = top + 4 * 27 + 34
        canvas.lines(0, y, [" ".join(words)] if canvas.width == WIDE else words, colour=MUTED, size=13)

    def draw(canvas: Canvas) -> None:
        wide = canvas.width == WIDE
        w, h, pitch = (156, 84, 187) if wide else (250, 70, 94)
        for number, (role, title, rows) in enumerate(stations):
            x, y = (2 + number * pitch, 2) if wide else (2, 2 + number * pitch)
            with canvas.step(number + 1):
                if number:
                    across = f"M{x - pitch + w + 3} {y + h / 2:.0f}h{pitch - w - 7}"
                    canvas.path(across if wide else f"M{x + w / 2:.0f} {y - pitch + h + 3}v{pitch - h - 7}", arrow=True)
                canvas.box(x, y, w, h, role, title=title, rows=rows)
        with canvas.step(5):
            if wide:
                canvas.path(f"M641 {h + 5}v30H80v-26", USER, arrow=True)
                canvas.text(360, h + 28, "call again, with everything", colour=USER.colour, size=13, anchor="middle")
                calls(canvas, h + 62)
            else:
                canvas.path("M255 319H292V37H256", USER, arrow=True)
                canvas.lines(298, 170, ["again,", "with", "every-", "thing"], colour=USER.colour, size=13)
                calls(canvas, 382)

    return Diagram(
        "The loop of an agent",
        "The prompt, made of tools, rules, the task and all that happened, goes to the model; the model reads all of it"
        " and asks for a tool; the tool runs for seconds or minutes while the session waits; its result is appended,"
        f" and the whole is sent again. The first call sends {lengths[0]:,} tokens, the second {lengths[1]:,}, and call"
        f" {len(lengths)} sends {lengths[-1]:,}, almost all of it sent before.",
        *wide_and_narrow(draw),
        steps=5,
    )


def chat_agent(chat: Session, agent: Session) -> Diagram:
    """Draw one chat request beside an agent's session: calls, tokens in and out, and waiting.

    Parameters
    ----------
    chat, agent : Session
        Their calls.

    Returns
    -------
    Diagram
        Four pairs of bars; both pairs of tokens have one scale.

    Examples
    --------
    >>> from lantern_lib.prompt_cache import agent_session
    >>> "405,000" in chat_agent(agent_session(1, 2000, 1), agent_session(20, 6000, 1500)).description
    True
    """

    def counts(session: Session) -> tuple[int, int, int, float]:
        calls = session.calls
        sent, got = sum(call.prompt_len for call in calls), sum(call.output_len for call in calls)
        return len(calls), sent, got, sum(call.gap_seconds for call in calls)

    (chat_calls, chat_in, chat_out, chat_idle), (calls, sent, got, idle) = counts(chat), counts(agent)
    groups: list[tuple[str, Role, float, float, float, str]] = [
        ("Model calls", CONTROL, chat_calls, calls, calls, ""),
        ("Tokens read by the model", MEMORY, chat_in, sent, sent, ""),
        ("Tokens written, on the same scale", USER, chat_out, got, sent, ""),
        ("Waiting for tools", ARITHMETIC, chat_idle, idle, idle, " s"),
    ]

    def draw(canvas: Canvas) -> None:
        names = 62.0
        full = canvas.width - names - (92 if canvas.width == WIDE else 76)
        for number, (title, role, small, large, scale, unit) in enumerate(groups):
            y = 16 + number * 82
            canvas.text(0, y, title, bold=True, colour=role.colour)
            for row, (who, amount) in enumerate((("chat", small), ("agent", large))):
                top = y + 10 + row * 25
                canvas.text(0, top + 14, who, size=13)
                if amount:
                    canvas.bar(names, top, full * amount / scale, 18, role)
                canvas.text(names + full * amount / scale + 8, top + 14, f"{amount:,.0f}{unit}", size=13)

    return Diagram(
        "A chat request and an agent's session, to scale",
        f"Four pairs of bars. A chat makes {chat_calls} call, reads {chat_in:,} tokens, writes {chat_out:,} and waits"
        f" for no tool. The agent makes {calls} calls, reads {sent:,} tokens, writes {got:,} and waits {idle:.0f}"
        " seconds for its tools. On one scale its reading fills the line, and its writing is hardly to be seen.",
        *wide_and_narrow(draw),
    )


def _found_at_the_end(session: Session, tools_len: int, system_len: int) -> list[tuple[int, int, int]]:
    """Tokens that the last call finds, writes and sends in all, for each of four ways to lose a cache."""
    *earlier, last = session_requests(session, tools_len=tools_len, system_len=system_len)
    late = replace(last, at_seconds=earlier[-1].at_seconds + 2 * ANTHROPIC.lifetime_seconds)
    clock = replace(
        last, blocks=tuple(replace(b, content="it is noon") if b.part == "system" else b for b in last.blocks)
    )
    head = tuple(block for block in last.blocks if block.part != "messages")
    summary = replace(last.blocks[-1], content="summary", num_tokens=5000)
    compact = replace(last, blocks=(*head, summary))
    rows = []
    for before, request in ((earlier, late), (earlier, clock), (earlier, compact), ([], last)):
        bill = bill_requests([*before, request], ANTHROPIC)[-1]
        rows.append((bill.read_tokens, bill.written_tokens, bill.input_tokens))
    return rows


def misses(session: Session, tools_len: int, system_len: int) -> Diagram:
    """Draw four ways to lose a session's cache at its last call, each with its remedy.

    Parameters
    ----------
    session : Session
        An append-only session with short gaps.
    tools_len, system_len : int
        What every prompt begins with [tokens].

    Returns
    -------
    Diagram
        Four strips to scale: what the last call still finds, and what it has to write again.

    Examples
    --------
    >>> from lantern_lib.prompt_cache import agent_session
    >>> misses(agent_session(20, 6000, 1500), 3000, 1500).title
    'Four ways to lose a cache'
    """
    words = [
        ("Time", "the tool took longer than the entry lives", "shorter tools, or the longer lifetime"),
        ("A changed beginning", "a clock in the system prompt", "stable first, what changes last"),
        ("Rewritten history", "old turns became a summary", "summarise rarely, at a natural break"),
        ("Routing", "another machine answers", "send the session where its cache is"),
    ]
    rows = _found_at_the_end(session, tools_len, system_len)
    longest = max(total for _, _, total in rows)

    def draw(canvas: Canvas) -> None:
        wide = canvas.width == WIDE
        full = 330.0 if wide else canvas.width - 2.0
        pitch = 74 if wide else 120
        for number, ((title, what, remedy), (read, written, total)) in enumerate(zip(words, rows, strict=True)):
            y = 18 + number * pitch
            canvas.text(0, y, title, bold=True)
            canvas.text(0, y + 18, what, size=13, colour=MUTED)
            x, top = (canvas.width - full - 2, y - 12) if wide else (0, y + 27)
            if read:
                canvas.bar(x, top, full * read / longest - 1, 20, MEMORY)
            canvas.bar(x + full * read / longest, top, full * written / longest, 20, ARITHMETIC)
            note = f"{read:,} found, {written:,} written" if read else f"none found, {total:,} written"
            canvas.text(x, top + 37, note, size=13)
            if wide:
                canvas.text(0, y + 36, f"Instead: {remedy}", size=13, colour=CONTROL.colour)
            else:
                canvas.text(0, top + 54, remedy, size=13, colour=CONTROL.colour)

    first = rows[1]
    return Diagram(
        "Four ways to lose a cache",
        "Four strips, the prompt of the last call. Time: the tool was slower than the lifetime, nothing is found. A"
        f" changed beginning: a clock in the system prompt leaves {first[0]:,} tokens of tools, and {first[1]:,} are"
        " written again. Rewritten history: a summary makes the prompt short, and all of it after the system prompt is"
        " new. Routing: another machine has no entry. Remedies: shorter tools or a longer lifetime; what is stable"
        " first; rare summaries; sessions sent to where their cache is.",
        *wide_and_narrow(draw),
    )
