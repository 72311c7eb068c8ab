"""A task of many calls: how long it takes, how often it ends well, and what a repeated call does twice."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from lantern_lib.units import require_fraction, require_int, require_non_negative, require_positive

Loss = Literal["none", "request", "reply"]


@dataclass(frozen=True)
class CallBudget:
    """Where the time of one call of an agent goes.

    Parameters
    ----------
    ttft_seconds : float
        Time to first token: queue and prefill [seconds].
    output_len : int
        Tokens of the answer [tokens].
    tpot_seconds : float
        Time per output token without speculation [seconds].
    tool_seconds : tuple of float
        Time of each tool that the answer asks for [seconds].
    parallel : bool
        Whether the tools run at the same time.
    speedup : float
        How many times faster speculation makes decoding [ratio].
    include_first : bool
        Whether the first token is priced as a step too, as a round sum does. The prefill gives it, so the
        exact count has one step fewer than tokens.

    Examples
    --------
    >>> call = CallBudget(0.4, 300, 0.027, (3.0,))
    >>> round(call.decode_seconds, 2), round(call.total_seconds, 1)
    (8.1, 11.5)
    """

    ttft_seconds: float
    output_len: int
    tpot_seconds: float
    tool_seconds: tuple[float, ...] = ()
    parallel: bool = False
    speedup: float = 1.0
    include_first: bool = True

    def __post_init__(self) -> None:
        require_non_negative("ttft_seconds", self.ttft_seconds)
        require_int("output_len", self.output_len)
        require_non_negative("tpot_seconds", self.tpot_seconds)
        for seconds in self.tool_seconds:
            require_non_negative("tool_seconds", seconds)
        require_positive("speedup", self.speedup, "1 is decoding without speculation.")

    @property
    def decode_seconds(self) -> float:
        """Time in which the answer is written, after its first token [seconds]."""
        return (self.output_len - (not self.include_first)) * self.tpot_seconds / self.speedup

    @property
    def wait_seconds(self) -> float:
        """Time for the tools: the longest if they run together, else the sum [seconds]."""
        return max(self.tool_seconds, default=0.0) if self.parallel else sum(self.tool_seconds)

    @property
    def total_seconds(self) -> float:
        """Time from sending the call to the last tool's result [seconds]."""
        return self.ttft_seconds + self.decode_seconds + self.wait_seconds


def task_success(per_call: float, num_calls: int, retries: int = 0, detected: float = 1.0) -> float:
    """Return the chance that every call of a task ends well.

    Parameters
    ----------
    per_call : float
        Chance that one attempt ends well, in (0, 1] [ratio].
    num_calls : int
        Calls that all have to succeed [count].
    retries : int
        Further attempts that a call has after a failure that is seen [count].
    detected : float
        Share of failures that are seen, in (0, 1]; one that is not goes into the next call unnoticed [ratio].

    Returns
    -------
    float
        ``(p Σ ((1 − p) detected)^i) ^ num_calls`` with i from 0 to `retries` [ratio].

    Raises
    ------
    ValueError
        If a chance is outside (0, 1] or a count is no whole number.

    Notes
    -----
    Attempts fail independently. A model that misreads a task misreads it again, so retries help against lost
    messages and busy tools more than against wrong answers. Derived on page D4.

    Examples
    --------
    >>> round(task_success(0.99, 40), 2), round(task_success(0.999, 40), 2), round(task_success(0.99, 40, 1), 3)
    (0.67, 0.96, 0.996)
    """
    chance = require_fraction("per_call", per_call)
    count = require_int("num_calls", num_calls)
    again = (1 - chance) * require_fraction("detected", detected)
    call: float = chance * sum(again**attempt for attempt in range(require_int("retries", retries, minimum=0) + 1))
    return float(call**count)


def per_call_target(task: float, num_calls: int) -> float:
    """Return how reliable one call has to be for a task of many.

    Parameters
    ----------
    task : float
        Chance that the whole task shall have, in (0, 1] [ratio].
    num_calls : int
        Calls of the longest task that is promised [count].

    Returns
    -------
    float
        ``task ^ (1 / num_calls)`` [ratio].

    Raises
    ------
    ValueError
        If `task` is outside (0, 1] or `num_calls` is below 1.

    Examples
    --------
    >>> round(per_call_target(0.95, 40), 4)
    0.9987
    """
    return float(require_fraction("task", task) ** (1 / require_int("num_calls", num_calls)))


@dataclass(frozen=True)
class Delivery:
    """What became of one tool call that was sent until it was answered or given up.

    ``attempts`` is how often it was sent, ``effects`` how often the tool acted, ``acknowledged`` whether the
    caller knows.
    """

    attempts: int
    effects: int
    acknowledged: bool


def deliver(losses: Sequence[Loss], *, keyed: bool) -> Delivery:
    """Send one tool call at least once and count how often the tool acts.

    Parameters
    ----------
    losses : sequence of {"none", "request", "reply"}
        What is lost at each attempt that may be made. The first "none" ends it.
    keyed : bool
        Whether all attempts carry one idempotency key, by which the tool answers a repeated request from its
        records.

    Returns
    -------
    Delivery
        Attempts, effects, and whether an answer came.

    Raises
    ------
    ValueError
        If no attempt is allowed, or a loss has another name.

    Notes
    -----
    To the caller a lost request and a lost reply look the same: silence. The tool's record of keys and results
    is taken to last as long as the retries do. Used on page D4.

    Examples
    --------
    >>> deliver(["reply", "none"], keyed=False), deliver(["reply", "none"], keyed=True).effects
    (Delivery(attempts=2, effects=2, acknowledged=True), 1)
    """
    if not losses:
        raise ValueError("losses must hold at least one attempt, got none.")
    effects, records = 0, set[str]()
    for attempt, loss in enumerate(losses, start=1):
        if loss not in get_args(Loss):
            raise ValueError(f"losses must be {', '.join(get_args(Loss))}, got {loss!r} at attempt {attempt}.")
        key = "the call" if keyed else f"attempt {attempt}"
        if loss != "request" and key not in records:
            records.add(key)
            effects += 1
        if loss == "none":
            return Delivery(attempt, effects, acknowledged=True)
    return Delivery(len(losses), effects, acknowledged=False)


def duplicate_probability(request_loss: float, reply_loss: float, max_attempts: int, num_calls: int = 1) -> float:
    """Return the chance that a tool without idempotency keys acts more than once on some call.

    Parameters
    ----------
    request_loss : float
        Chance that a request does not arrive, in [0, 1) [ratio].
    reply_loss : float
        Chance that the reply to one that arrived does not come back, in [0, 1) [ratio].
    max_attempts : int
        Attempts before the caller gives up; 1 is at-most-once [count].
    num_calls : int
        Tool calls of a task [count].

    Returns
    -------
    float
        Chance that at least one call has a second effect [ratio].

    Raises
    ------
    ValueError
        If a chance is outside [0, 1) or a count is below 1.

    Notes
    -----
    With ``c`` the chance of a lost request, ``b = (1 − c) × reply_loss`` that of an effect without reply,
    ``a = 1 − b − c`` and n attempts, the chance of exactly one effect is ``a (1 − cⁿ) / (1 − c) + n b cⁿ⁻¹``
    and of none ``cⁿ``. Losses are independent. Derived on page D4.

    Examples
    --------
    >>> round(duplicate_probability(0.0, 0.01, 3), 4), round(duplicate_probability(0.0, 0.01, 3, 40), 2)
    (0.01, 0.33)
    """
    lost = require_fraction("request_loss", request_loss, zero=True)
    silent = (1 - lost) * require_fraction("reply_loss", reply_loss, zero=True)
    tries = require_int("max_attempts", max_attempts)
    none = lost**tries
    one = (1 - lost - silent) * (1 - none) / (1 - lost) + tries * silent * lost ** (tries - 1)
    return 1 - min(1.0, none + one) ** require_int("num_calls", num_calls)


@dataclass(frozen=True)
class Resumed:
    """A conversation after a broken stream: the next prompt, what of it is cached, what is written again [tokens]."""

    context_len: int
    num_cached_tokens: int
    written_again: int


def after_break(context_len: int, written_len: int, received_len: int, *, keep: bool) -> Resumed:
    """Return what the next call finds when a response stopped half-way.

    Parameters
    ----------
    context_len : int
        Tokens before the response, cached on the server [tokens].
    written_len : int
        Tokens of the response that the server wrote and cached [tokens].
    received_len : int
        Tokens of it that reached the client [tokens].
    keep : bool
        Whether the client keeps the part it has and goes on from it, or cuts it off and asks again.

    Returns
    -------
    Resumed
        The next prompt and how much of it the server need not compute.

    Raises
    ------
    ValueError
        If a length is no whole number, or more was received than written.

    Notes
    -----
    A prefix matches as far as both sides hold the same tokens, so either policy keeps what stood before the
    response. What the server wrote and the client does not have is lost. Neither policy edits the part: an
    edited part would match only up to the edit. Used on page D4.

    Examples
    --------
    >>> after_break(34_500, 200, 180, keep=True), after_break(34_500, 200, 180, keep=False).written_again
    (Resumed(context_len=34680, num_cached_tokens=34680, written_again=20), 200)
    """
    before = require_int("context_len", context_len)
    written = require_int("written_len", written_len, minimum=0)
    received = require_int("received_len", received_len, minimum=0)
    if received > written:
        raise ValueError(f"received_len must be at most written_len = {written:,}, got {received:,}.")
    kept = received if keep else 0
    return Resumed(before + kept, before + kept, written - kept)
