"""What an agent's session costs under a prompt cache, with and without lost caches, and when to compact it."""

from __future__ import annotations

from collections.abc import Collection

from lantern_lib.prompt_cache.policy import Bill, CachePolicy
from lantern_lib.units import require_int, require_non_negative
from lantern_lib.workload import Call, Session


def call_bills(
    session: Session, policy: CachePolicy, *, input_price: float = 1.0, output_price: float = 0.0
) -> tuple[Bill, ...]:
    """Return the bill of each call of a session.

    Parameters
    ----------
    session : Session
        Its calls, with their gaps and how much of each prompt stood in the call before.
    policy : CachePolicy
        The terms of the cache.
    input_price : float
        Price of one fresh input token; 1 gives token-prices [token-prices or dollars].
    output_price : float
        Price of one output token in the same unit; 0 leaves the answers out [token-prices or dollars].

    Returns
    -------
    tuple of Bill
        One for each call, in order.

    Raises
    ------
    ValueError
        If a price is negative.

    Notes
    -----
    A call whose gap is longer than the lifetime finds nothing. Any other reads ``reused_len`` tokens, rounded down
    to the cache's step; below the minimum it reads none. The rest is written, or fresh if the whole prompt is below
    the minimum. The gap counts from the answer before, so the time of the answer itself is left out. Used on
    pages D2 and D5.

    Examples
    --------
    >>> from lantern_lib.prompt_cache import ANTHROPIC
    >>> calls = (Call(6000, 300), Call(7500, 300, gap_seconds=3, reused_len=6000))
    >>> [bill.cost for bill in call_bills(Session(calls), ANTHROPIC)]
    [7500.0, 2475.0]
    """
    require_non_negative("input_price", input_price)
    require_non_negative("output_price", output_price)
    bills = []
    for turn, call in enumerate(session.calls):
        alive = turn > 0 and call.gap_seconds <= policy.lifetime_seconds
        read = policy.found(call.reused_len) if alive else 0
        stored = call.prompt_len if call.prompt_len >= policy.minimum_tokens else 0
        bills.append(
            policy.bill(
                call.prompt_len, read, stored, call.output_len, input_price=input_price, output_price=output_price
            )
        )
    return tuple(bills)


def session_bill(session: Session, policy: CachePolicy, *, input_price: float = 1.0, output_price: float = 0.0) -> Bill:
    """Return the bill of a whole session.

    Parameters
    ----------
    session : Session
        Its calls, with their gaps and how much of each prompt stood in the call before.
    policy : CachePolicy
        The terms of the cache.
    input_price : float
        Price of one fresh input token; 1 gives token-prices [token-prices or dollars].
    output_price : float
        Price of one output token in the same unit; 0 leaves the answers out [token-prices or dollars].

    Returns
    -------
    Bill
        The sum of :func:`call_bills`.

    Raises
    ------
    ValueError
        If a price is negative.

    Notes
    -----
    See :func:`call_bills` for what hits and what misses. Derived on page D2.

    Examples
    --------
    >>> from lantern_lib.prompt_cache import ANTHROPIC, agent_session
    >>> session_bill(agent_session(20, 6000, 1500), ANTHROPIC).cost
    80175.0
    """
    bills = call_bills(session, policy, input_price=input_price, output_price=output_price)
    return sum(bills, start=Bill())


def agent_session(
    num_calls: int,
    first_context_len: int,
    tokens_per_turn: int,
    *,
    output_len: int = 300,
    tool_seconds: float = 3.0,
    slow_turns: Collection[int] = (),
    slow_seconds: float = 600.0,
) -> Session:
    """Return an append-only session: every turn adds the same number of tokens to the context.

    Parameters
    ----------
    num_calls : int
        Calls [count].
    first_context_len : int
        Prompt of call 0 [tokens].
    tokens_per_turn : int
        What each turn appends, the answer before and the tool's result included [tokens].
    output_len : int
        Answer of each call [tokens].
    tool_seconds : float
        Gap before each later call [seconds].
    slow_turns : collection of int
        Later calls, counted from 0, that wait for a slow tool [indices].
    slow_seconds : float
        Gap before those [seconds].

    Returns
    -------
    Session
        Call ``t`` sends ``first_context_len + t tokens_per_turn`` tokens.

    Raises
    ------
    ValueError
        If a length is no whole number of 1 or more, or a slow turn is not one of the later calls.

    Notes
    -----
    ``c_t = c_0 + t Δ``; all but the last ``Δ`` tokens stood in the call before. Derived on page D1.

    Examples
    --------
    >>> [call.prompt_len for call in agent_session(3, 6000, 1500).calls]
    [6000, 7500, 9000]
    """
    require_int("num_calls", num_calls)
    require_int("first_context_len", first_context_len)
    require_int("tokens_per_turn", tokens_per_turn)
    for turn in slow_turns:
        if not 1 <= turn < num_calls:
            raise ValueError(
                f"slow_turns must lie between 1 and {num_calls - 1}, got {turn!r}. Call 0 has no tool before it."
            )
    calls = [Call(first_context_len, output_len)]
    for turn in range(1, num_calls):
        context_len = first_context_len + turn * tokens_per_turn
        gap = slow_seconds if turn in slow_turns else tool_seconds
        calls.append(Call(context_len, output_len, gap, context_len - tokens_per_turn))
    return Session(tuple(calls))


def spread_turns(num_misses: int, num_calls: int) -> tuple[int, ...]:
    """Return which calls lose their cache when the losses are spread evenly, the last call among them.

    Parameters
    ----------
    num_misses : int
        Calls that find no cache [count].
    num_calls : int
        Calls of the session; the first cannot miss, it has nothing to find [count].

    Returns
    -------
    tuple of int
        ``floor((num_calls − 1) j / num_misses)`` for j from 1 to `num_misses` [indices].

    Raises
    ------
    ValueError
        If there are more misses than later calls.

    Notes
    -----
    Rounding down instead of to the nearest decides which calls miss, and with five misses it moves the bill by
    about a point. Used on page D2.

    Examples
    --------
    >>> spread_turns(2, 20), spread_turns(5, 20)
    ((9, 19), (3, 7, 11, 15, 19))
    """
    require_int("num_misses", num_misses, minimum=0)
    later = require_int("num_calls", num_calls) - 1
    if num_misses > later:
        raise ValueError(f"num_misses must be at most {later}, got {num_misses}. The first call has nothing to find.")
    return tuple(later * j // num_misses for j in range(1, num_misses + 1))


def compaction_calls(context_len: int, summary_len: int, policy: CachePolicy, *, output_price: float = 0.0) -> float:
    """Return after how many further calls a summary in place of the context has paid for itself.

    Parameters
    ----------
    context_len : int
        Tokens that are replaced [tokens].
    summary_len : int
        Tokens of the summary, fewer than `context_len` [tokens].
    policy : CachePolicy
        The terms of the cache.
    output_price : float
        Price of one token of the summary when a model writes it, in fresh input tokens; 0 takes the summary as a
        gift [ratio].

    Returns
    -------
    float
        Further calls; the next whole number above it is the first that pays [calls].

    Raises
    ------
    ValueError
        If the summary is not shorter than the context, or a length is below 1.

    Notes
    -----
    ``(w + p) σ / (r (c − σ))``: each further call saves ``r (c − σ)``, and the summary is written by the model at
    ``p`` and into the cache at ``w``. The call that writes it reads the context once more, which is left out; it
    adds ``c / (c − σ)`` calls. Derived on page D2.

    Examples
    --------
    >>> from lantern_lib.prompt_cache import ANTHROPIC
    >>> compaction_calls(30_000, 5_000, ANTHROPIC), compaction_calls(30_000, 5_000, ANTHROPIC, output_price=5)
    (2.5, 12.5)
    """
    require_int("context_len", context_len)
    require_int("summary_len", summary_len)
    require_non_negative("output_price", output_price)
    if summary_len >= context_len:
        raise ValueError(
            f"summary_len must be below context_len = {context_len}, got {summary_len}. A summary makes it shorter."
        )
    saved = policy.read_price * (context_len - summary_len)
    return (policy.write_price + output_price) * summary_len / saved
