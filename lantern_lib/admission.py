"""Who may enter: admission to a memory that counts tokens, under three rules."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from lantern_lib.units import require_int, require_one_of

Rule = Literal["prompt", "final", "blocks"]
RULES: tuple[Rule, ...] = ("prompt", "final", "blocks")


@dataclass(frozen=True)
class Request:
    """Lengths of one request [tokens] and the step in which it arrives."""

    prompt_len: int
    output_len: int
    arrival_step: int = 0

    def __post_init__(self) -> None:
        require_int("prompt_len", self.prompt_len)
        require_int("output_len", self.output_len)
        require_int("arrival_step", self.arrival_step, minimum=0)

    @property
    def final_len(self) -> int:
        """Tokens in the cache when it is done [tokens]."""
        return self.prompt_len + self.output_len


@dataclass(frozen=True)
class Rejection:
    """A request that was refused on arrival, and the sentence that its sender gets."""

    request: int
    reason: str


@dataclass(frozen=True)
class BudgetRun:
    """What happened to a list of requests.

    ``finished`` and ``lost`` hold request numbers, ``overrun_step`` is the step in which memory ended and
    the whole batch with it (None if it never did), ``peak_tokens`` and ``mean_running`` say how full memory
    and batch were.
    """

    rule: Rule
    total_steps: int
    finished: tuple[int, ...]
    rejected: tuple[Rejection, ...]
    lost: tuple[int, ...]
    overrun_step: int | None
    preemptions: int
    recomputed_tokens: int
    peak_tokens: int
    mean_running: float

    @property
    def summary(self) -> str:
        """One line with the outcome."""
        end = f"memory ended in step {self.overrun_step:,}" if self.overrun_step is not None else "memory held"
        return (
            f"admission by {self.rule}: {len(self.finished):,} finished in {self.total_steps:,} steps,"
            f" {len(self.rejected):,} rejected, {len(self.lost):,} lost, {self.preemptions:,} preempted; {end}"
        )


def rejection(request: Request, capacity_tokens: int, block_size: int = 1) -> str | None:
    """Say why a request can never be served, or that it can.

    Parameters
    ----------
    request : Request
        What wants to enter.
    capacity_tokens : int
        Tokens that the whole memory holds [tokens].
    block_size : int
        Tokens of one block; a request rounds up to whole blocks [tokens].

    Returns
    -------
    str or None
        The reason, or None if it fits into an empty machine [text].

    Raises
    ------
    ValueError
        If `capacity_tokens` or `block_size` is below 1.

    Examples
    --------
    >>> rejection(Request(900, 200), 1000)
    'needs 1,100 tokens of cache and the whole machine has 1,000; shorten it, or send it to a larger one'
    >>> rejection(Request(900, 100), 1000) is None
    True
    """
    require_int("capacity_tokens", capacity_tokens)
    require_int("block_size", block_size)
    needs = _blocks(request.final_len, block_size) * block_size
    has = capacity_tokens // block_size * block_size
    if needs <= has:
        return None
    return f"needs {needs:,} tokens of cache and the whole machine has {has:,}; shorten it, or send it to a larger one"


def _blocks(tokens: int, block_size: int) -> int:
    return -(-tokens // block_size)


@dataclass
class _Engine:
    """The state of one run; a request is (number, tokens written)."""

    requests: Sequence[Request]
    num_slots: int
    capacity: int  # in blocks
    rule: Rule
    block_size: int
    waiting: deque[int] = field(default_factory=deque)
    running: list[int] = field(default_factory=list)  # in the order of admission
    written: dict[int, int] = field(default_factory=dict)
    preemptions: int = 0
    recomputed: int = 0

    def held(self, request: int, more: int = 0) -> int:
        """Blocks that a running request fills, with `more` tokens."""
        tokens = self.requests[request].prompt_len + self.written[request] + more
        return _blocks(tokens, self.block_size)

    def promised(self, request: int) -> int:
        """Blocks that the rule counts for a request when it decides about a newcomer."""
        if self.rule == "final":
            return _blocks(self.requests[request].final_len, self.block_size)
        # By prompt, what is there now; by blocks, what the coming step needs as well.
        return self.held(request, more=1 if self.rule == "blocks" else 0)

    def preempt_until_the_step_fits(self) -> bool:
        """Send the youngest back to the queue while the coming token has no room. Tell if any was."""
        before = self.preemptions
        while sum(self.held(r, more=1) for r in self.running) > self.capacity:
            youngest = self.running.pop()
            self.waiting.appendleft(youngest)
            self.preemptions += 1
            self.recomputed += self.requests[youngest].prompt_len + self.written[youngest]
        return self.preemptions > before

    def admit(self) -> None:
        while self.waiting and len(self.running) < self.num_slots:
            used = sum(self.promised(r) for r in self.running)
            if used + self.promised(self.waiting[0]) > self.capacity:
                return
            self.running.append(self.waiting.popleft())


def run_with_budget(
    requests: Sequence[Request], num_slots: int, capacity_tokens: int, rule: Rule, block_size: int = 1
) -> BudgetRun:
    """Run requests through continuous batching with a memory that can end.

    Parameters
    ----------
    requests : sequence of Request
        In order of arrival.
    num_slots : int
        Most requests in one step [slots].
    capacity_tokens : int
        Tokens that the cache holds [tokens].
    rule : {"prompt", "final", "blocks"}
        Admit if the tokens that are there now fit; if the final lengths of all fit; or if the next step's
        blocks fit, and preempt the youngest when blocks run out.
    block_size : int
        Tokens of one block; 1 counts single tokens [tokens].

    Returns
    -------
    BudgetRun
        Who finished, who was refused, who was lost, and how full it was.

    Raises
    ------
    ValueError
        If a number is below 1 or `rule` is none of the three.

    Notes
    -----
    Each step: arrive, retire, admit, compute. A request that is larger than the memory is refused on
    arrival. A preempted one keeps its written tokens, and their cache is computed again when it returns; the
    time for that is not counted. When memory ends in mid-step, everyone in the batch is lost and the run
    stops. Page B1.

    Examples
    --------
    >>> pair = [Request(4, 4), Request(4, 4)]
    >>> run_with_budget(pair, 2, 10, "prompt").lost, run_with_budget(pair, 2, 10, "final").total_steps
    ((0, 1), 8)
    >>> run_with_budget(pair, 2, 10, "blocks").preemptions
    1
    """
    require_int("num_slots", num_slots)
    require_one_of("rule", rule, RULES)
    reasons = {i: rejection(r, capacity_tokens, block_size) for i, r in enumerate(requests)}
    engine = _Engine(requests, num_slots, capacity_tokens // block_size, rule, block_size)
    engine.written = dict.fromkeys(range(len(requests)), 0)
    coming = deque(sorted((i for i, why in reasons.items() if why is None), key=lambda i: requests[i].arrival_step))
    finished: list[int] = []
    step = peak = ridden = 0
    overrun = None
    while coming or engine.waiting or engine.running:
        while coming and requests[coming[0]].arrival_step <= step:
            engine.waiting.append(coming.popleft())
        finished += [r for r in engine.running if engine.written[r] == requests[r].output_len]
        engine.running = [r for r in engine.running if engine.written[r] < requests[r].output_len]
        if not (rule == "blocks" and engine.preempt_until_the_step_fits()):
            engine.admit()
        if not (coming or engine.waiting or engine.running):
            break
        for request in engine.running:
            engine.written[request] += 1
        filled = sum(engine.held(r) for r in engine.running)
        if filled > engine.capacity:
            overrun = step
            break
        peak, ridden, step = max(peak, filled * block_size), ridden + len(engine.running), step + 1
    return BudgetRun(
        rule=rule,
        total_steps=step,
        finished=tuple(finished),
        rejected=tuple(Rejection(i, why) for i, why in reasons.items() if why is not None),
        lost=tuple(engine.running) if overrun is not None else (),
        overrun_step=overrun,
        preemptions=engine.preemptions,
        recomputed_tokens=engine.recomputed,
        peak_tokens=peak,
        mean_running=ridden / step if step else 0.0,
    )
