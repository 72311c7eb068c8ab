"""What a provider's prompt cache finds in a sequence of requests: exact prefixes, breakpoints, lifetimes.

A model of what two public interfaces document, small enough to break on purpose. A prompt is a row of blocks, tools
before system before messages. An entry is stored where a breakpoint stands and is found again only by a request whose
blocks agree with it from the first to that place.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace

from lantern_lib.prompt_cache.policy import Bill, CachePolicy
from lantern_lib.units import require_int, require_non_negative, require_one_of
from lantern_lib.workload import Session

PARTS = ("tools", "system", "messages")


@dataclass(frozen=True)
class Block:
    """One block of a prompt: the part it belongs to, what stands in it, its length [tokens], and its mark.

    Blocks of the same ``content`` are the same, letter by letter.
    """

    part: str
    content: str
    num_tokens: int
    breakpoint: bool = False

    def __post_init__(self) -> None:
        require_one_of("part", self.part, PARTS)
        require_int("num_tokens", self.num_tokens)


@dataclass(frozen=True)
class PromptRequest:
    """A request: when it is sent [seconds], its blocks, its answer [tokens] and its settings.

    ``settings`` names images, the configuration of thinking and the choice of tools; a change of it reaches the
    messages only.
    """

    at_seconds: float
    blocks: tuple[Block, ...]
    output_len: int = 0
    settings: str = ""

    def __post_init__(self) -> None:
        require_non_negative("at_seconds", self.at_seconds)
        require_int("output_len", self.output_len, minimum=0)
        if not self.blocks:
            raise ValueError("blocks must hold at least one block, got none. A request sends something.")
        order = [PARTS.index(block.part) for block in self.blocks]
        if order != sorted(order):
            raise ValueError(
                f"blocks must stand in the order {', '.join(PARTS)}, got {[b.part for b in self.blocks]}."
                " That is the order in which a prompt is put together."
            )

    def prefixes(self) -> list[tuple[Hashable, int]]:
        """Name and length of the prefix that ends with each block."""
        ends: list[tuple[Hashable, int]] = []
        names: tuple[Hashable, ...] = ()
        length = 0
        for block in self.blocks:
            setting = self.settings if block.part == "messages" else ""
            names += ((block.part, block.content, setting),)
            length += block.num_tokens
            ends.append((names, length))
        return ends


def session_requests(
    session: Session, *, tools_len: int, system_len: int, blocks_per_turn: int = 1
) -> tuple[PromptRequest, ...]:
    """Return an append-only session as requests, marked after tools, after system and at the end.

    Parameters
    ----------
    session : Session
        Calls of which each begins with the whole prompt of the one before.
    tools_len, system_len : int
        Lengths of the tool definitions and of the system prompt, the first of every prompt [tokens].
    blocks_per_turn : int
        Blocks in which a turn arrives; several where tools run side by side [count].

    Returns
    -------
    tuple of PromptRequest
        Blocks are called ``tools``, ``system``, ``task`` and ``turn 1.1``, turn and place in it.

    Raises
    ------
    ValueError
        If a call rewrites what was sent before, or a turn has fewer tokens than blocks.

    Notes
    -----
    Requests follow each other by their gaps; answering takes no time here. Used on page D2.

    Examples
    --------
    >>> from lantern_lib.prompt_cache import agent_session
    >>> first, second = session_requests(agent_session(2, 6000, 1500), tools_len=3000, system_len=1000)
    >>> [(block.content, block.num_tokens) for block in second.blocks]
    [('tools', 3000), ('system', 1000), ('task', 2000), ('turn 1.1', 1500)]
    """
    require_int("blocks_per_turn", blocks_per_turn)
    task_len = session.calls[0].prompt_len - tools_len - system_len
    blocks = [
        Block("tools", "tools", tools_len, breakpoint=True),
        Block("system", "system", system_len, breakpoint=True),
        Block("messages", "task", task_len),
    ]
    requests: list[PromptRequest] = []
    at, sent = session.start_seconds, session.calls[0].prompt_len
    for turn, call in enumerate(session.calls):
        if turn and call.reused_len != sent:
            raise ValueError(
                f"reused_len must be all {sent} tokens that were sent before, got {call.reused_len} in call {turn}."
                " Only an append-only session has blocks that stay."
            )
        added = call.prompt_len - sent if turn else 0
        for place in range(blocks_per_turn if added else 0):
            share = added // blocks_per_turn + (added % blocks_per_turn if place == blocks_per_turn - 1 else 0)
            blocks.append(Block("messages", f"turn {turn}.{place + 1}", share))
        at, sent = at + call.gap_seconds, call.prompt_len
        requests.append(PromptRequest(at, (*blocks[:-1], replace(blocks[-1], breakpoint=True)), call.output_len))
    return tuple(requests)


def breakpoints(request: PromptRequest, policy: CachePolicy) -> list[int]:
    """Return the blocks of a request after which its prefix is stored.

    Parameters
    ----------
    request : PromptRequest
        The request with its marks.
    policy : CachePolicy
        The terms: how many marks, and whether the end is one by itself.

    Returns
    -------
    list of int
        Indices of blocks, rising.

    Raises
    ------
    ValueError
        If more blocks are marked than the terms allow and the terms do not place any by themselves.

    Notes
    -----
    Where the end is a breakpoint by itself, it takes one of the places and the latest marks the others. Used on
    page D2.

    Examples
    --------
    >>> from lantern_lib.prompt_cache import ANTHROPIC, OPENAI
    >>> request = PromptRequest(0, (Block("system", "a", 2000, breakpoint=True), Block("messages", "b", 50)))
    >>> breakpoints(request, ANTHROPIC), breakpoints(request, OPENAI)
    ([0], [0, 1])
    """
    marked = [index for index, block in enumerate(request.blocks) if block.breakpoint]
    if policy.automatic:
        last = len(request.blocks) - 1
        others = [index for index in marked if index != last]
        return [*others[max(len(others) - (policy.max_breakpoints - 1), 0) :], last]
    if len(marked) > policy.max_breakpoints:
        raise ValueError(
            f"breakpoint must mark at most {policy.max_breakpoints} blocks, got {len(marked)}."
            " Keep the ends of tools, system and the last message."
        )
    return marked


def _longest_alive(
    ends: Sequence[tuple[Hashable, int]], marks: Sequence[int], store: dict[Hashable, float], now: float, window: int
) -> int:
    """Index of the last block of the longest entry that is alive and in reach of a mark, or -1."""
    for index in range(len(ends) - 1, -1, -1):
        in_reach = any(index <= mark and (not window or mark - index < window) for mark in marks)
        if in_reach and store.get(ends[index][0], -1.0) >= now:
            return index
    return -1


def bill_requests(
    requests: Sequence[PromptRequest], policy: CachePolicy, *, input_price: float = 1.0, output_price: float = 0.0
) -> tuple[Bill, ...]:
    """Return what each request of a sequence reads, writes and sends fresh, and its bill.

    Parameters
    ----------
    requests : sequence of PromptRequest
        In the order of their times; the cache begins empty.
    policy : CachePolicy
        The terms of the cache.
    input_price : float
        Price of one fresh input token; 1 gives token-prices [token-prices or dollars].
    output_price : float
        Price of one output token in the same unit [token-prices or dollars].

    Returns
    -------
    tuple of Bill
        One for each request, in order.

    Raises
    ------
    ValueError
        If the times fall, a price is negative, or a request has too many marks.

    Notes
    -----
    From each breakpoint the cache looks back, the marked block included, over at most ``lookback_blocks`` blocks for
    an entry that an earlier request stored and that is alive; the longest counts. What follows it, up to the last
    breakpoint, is written; the rest is fresh. A prefix below the minimum is not stored. A read renews every entry
    inside what was read, an assumption where the documents speak of the entry that is read. Entries are there as
    soon as a request was sent; really they come with the first token of its answer, so requests sent at the same
    moment do not help each other. Used on page D2.

    Examples
    --------
    >>> from lantern_lib.prompt_cache import ANTHROPIC
    >>> head = (Block("tools", "search", 2000), Block("system", "be brief", 1000, breakpoint=True))
    >>> first, second = (PromptRequest(t, (*head, Block("messages", f"question {t}", 100))) for t in (0, 60))
    >>> [(b.read_tokens, b.written_tokens, b.fresh_tokens) for b in bill_requests([first, second], ANTHROPIC)]
    [(0, 3000, 100), (3000, 0, 100)]
    """
    require_non_negative("input_price", input_price)
    require_non_negative("output_price", output_price)
    store: dict[Hashable, float] = {}
    bills = []
    before = 0.0
    for request in requests:
        now = request.at_seconds
        if now < before:
            raise ValueError(f"requests must be in order of at_seconds, got {now:g} after {before:g}. Sort them.")
        before = now
        ends = request.prefixes()
        marks = breakpoints(request, policy)
        found = _longest_alive(ends, marks, store, now, policy.lookback_blocks)
        read = policy.found(ends[found][1]) if found >= 0 else 0
        kept = [index for index in marks if ends[index][1] >= policy.minimum_tokens]
        renewed = [index for index in range(found + 1) if store.get(ends[index][0], -1.0) >= now]
        store |= {ends[index][0]: now + policy.lifetime_seconds for index in kept + renewed}
        stored = ends[kept[-1]][1] if kept else 0
        bills.append(
            policy.bill(
                ends[-1][1], read, stored, request.output_len, input_price=input_price, output_price=output_price
            )
        )
    return tuple(bills)
