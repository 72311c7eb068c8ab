"""Explorable plots of pages D3 and D4: where a session waits, where a request goes, and who gets the tokens."""

from __future__ import annotations

import math
from typing import Any

import altair as alt

from lantern_lib import cache_tiers, fairness
from lantern_lib.cache_tiers import Candidate
from lantern_lib.fairness import TenantRequest
from lantern_lib.figures.explore import WIDTH, grips, knob, label, readout, ring, rows_chart, selector
from lantern_lib.figures.roles import ARITHMETIC, CONTROL, MEMORY, TOTAL, USER
from lantern_lib.hardware import H100, Replica
from lantern_lib.model_config import ModelConfig
from lantern_lib.units import GB, TB

CONTEXTS = (6_000, 34_500, 64_500)
WAITS = (0.1, 0.2, 0.5, 1, 2, 3, 5, 10, 20, 30, 60, 120, 300, 600, 1800, 3600)
LINKS = (25, 100)
QUEUES = tuple(half / 2 for half in range(17))
APPENDED = 1500  # the tokens of a turn, which no replica has cached
AGENT_CONTEXTS = (2_000, 4_000, 6_000, 10_000, 15_000, 20_000, 27_000, 34_500)
CACHES = ("none of it", "all but the last turn")
FAN_OUT, CHAT_PROMPT, CHAT_ANSWER, AGENT_ANSWER, SLOTS = 10, 2_000, 400, 300, 12


def _lasting(seconds: float) -> str:
    return f"{seconds:g} s" if seconds < 60 else f"{seconds / 60:g} min"


def _waiting_rows(model: ModelConfig) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    for link in LINKS:
        memory = cache_tiers.Tier("CPU memory", 1 * TB, link * GB, 0.0, cache_tiers.EXAMPLE_TIERS[0].price)
        for context in CONTEXTS:
            options = cache_tiers.places(model, Replica(H100, tp_size=4), context, [memory])
            for stop, wait in enumerate(WAITS):
                keep, moved, drop = (place.cost(wait) for place in options)
                best = cache_tiers.cheapest_place(options, [wait]).name
                text = {"keep": "keep it", "CPU memory": "move it to CPU memory", "drop": "drop it"}[best]
                costs = {"keep": keep, "moved": moved, "drop": drop}
                rows.append(
                    {"context": f"{context:,}", "link": f"{link} GB/s", "stop": stop, "wait": wait}
                    | {name: float(f"{cost:.3g}") for name, cost in costs.items()}
                    | {
                        "best": float(f"{min(costs.values()):.3g}"),
                        "best_text": f"{_lasting(wait)}: {text}",
                        "cost_text": f"keep {keep:.2g}, move {moved:.2g}, drop {drop:.2g}",
                    }
                )
    return rows


def waiting(
    model: ModelConfig, *, wait_seconds: float, context_len: int = 34_500, link_rate: int = 25
) -> alt.LayerChart:
    """Plot what a waiting session costs in GPU memory, in CPU memory and dropped, over the wait.

    Parameters
    ----------
    model : ModelConfig
        The shape, on four H100.
    wait_seconds : float
        Where the ring stands first, one of :data:`WAITS` [seconds].
    context_len : int
        First choice of :data:`CONTEXTS` [tokens].
    link_rate : int
        First choice of :data:`LINKS`, to CPU memory [GB/s].

    Returns
    -------
    altair.LayerChart
        One panel with a ring and two selectors.

    Raises
    ------
    ValueError
        If `wait_seconds` is no stop of the slider.

    Examples
    --------
    >>> from lantern_lib import LANTERN_70B
    >>> len(waiting(LANTERN_70B, wait_seconds=3).to_dict()["description"]) > 100
    True
    """
    rows = _waiting_rows(model)
    grip = ring("Wait", "wait_seconds", wait_seconds, WAITS)
    x = alt.X(
        "wait:Q",
        title="time until the session returns, seconds",
        axis=alt.Axis(values=[0.1, 1, 10, 60, 600, 3600], format="~g"),
        scale=alt.Scale(type="log", domain=[0.09, 4000], nice=False),
    )
    base = rows_chart(rows).transform_filter("datum.context == context && datum.link == link").encode(x=x)
    here = base.transform_filter(grip)

    def y(field: str) -> alt.Y:
        return alt.Y(
            f"{field}:Q",
            title="cost, seconds of a replica",
            scale=alt.Scale(type="log", domain=[0.001, 10_000], nice=False),
            axis=alt.Axis(values=[0.001, 0.01, 0.1, 1, 10, 100, 1000], format="~g"),
        )

    chart: alt.LayerChart = alt.layer(
        base.mark_line(stroke=MEMORY.light, strokeWidth=2.4).encode(y=y("keep")),
        base.mark_line(stroke=TOTAL.light, strokeWidth=2.4).encode(y=y("moved")),
        base.mark_line(stroke=ARITHMETIC.light, strokeDash=list(ARITHMETIC.dash)).encode(y=y("drop")),
        label(base, "keep in GPU memory", "wait", "keep", MEMORY, 300, dx=-8),
        label(base, "move to CPU memory", "wait", "moved", TOTAL, 10, align="left", dx=0, dy=22),
        label(base, "drop, compute again", "wait", "drop", ARITHMETIC, 1, align="left", dx=-44, dy=-8),
        knob(here, "best"),
        readout(here, "best", "best_text", 16),
        readout(here, "cost", "cost_text", 34),
        grips(base, 260, grip),
    )
    return chart.add_params(
        selector("context", "Context", [f"{c:,}" for c in CONTEXTS], f"{context_len:,}"),
        selector("link", "Host link", [f"{rate} GB/s" for rate in LINKS], f"{link_rate} GB/s"),
    ).properties(
        width=WIDTH,
        height=260,
        description=(
            "Cost of a waiting session in seconds of a replica, over the time until it returns, both axes logarithmic."
            " Keeping the cache in GPU memory rises in proportion to the wait. Moving it to CPU memory is almost flat"
            " and lower from about the time of the reload on. Dropping it and computing again is flat and highest"
            " until the wait is long."
        ),
        usermeta={"lantern": {"stops": {"ring": [_lasting(wait) for wait in WAITS]}}},
    )


def routing(model: ModelConfig, *, queue_seconds: float, context_len: int = 34_500) -> alt.LayerChart:
    """Plot the time to first token by affinity and by balance, over the queue where the cache is.

    Parameters
    ----------
    model : ModelConfig
        The shape, on four H100.
    queue_seconds : float
        Where the ring stands first, one of :data:`QUEUES` [seconds].
    context_len : int
        First choice of :data:`CONTEXTS` [tokens].

    Returns
    -------
    altair.LayerChart
        One panel with a ring and a selector.

    Raises
    ------
    ValueError
        If `queue_seconds` is no stop of the slider.

    Examples
    --------
    >>> from lantern_lib import LANTERN_70B
    >>> len(routing(LANTERN_70B, queue_seconds=2.0).to_dict()["description"]) > 100
    True
    """
    machine, rows = Replica(H100, tp_size=4), []
    for context in CONTEXTS:
        for stop, seconds in enumerate(QUEUES):
            both = [Candidate("its cache", context - APPENDED, seconds), Candidate("an idle replica", 0, 0.0)]
            hit, miss = (cache_tiers.first_token_seconds(model, machine, context, each) for each in both)
            chosen = cache_tiers.route(model, machine, context, both).name
            rows.append(
                {"context": f"{context:,}", "stop": stop, "queue": seconds}
                | {"hit": round(hit, 2), "miss": round(miss, 2), "best": round(min(hit, miss), 2)}
                | {
                    "best_text": f"queue {seconds:g} s: to {chosen}",
                    "time_text": f"cache {hit:.1f} s, idle {miss:.1f} s",
                }
            )
    grip = ring("Queue", "queue_seconds", queue_seconds, QUEUES)
    x = alt.X(
        "queue:Q",
        title="queue at the replica that holds the cache, seconds",
        scale=alt.Scale(domain=[0, 8], nice=False),
    )
    base = rows_chart(rows).transform_filter("datum.context == context").encode(x=x)
    here = base.transform_filter(grip)

    def y(field: str) -> alt.Y:
        return alt.Y(f"{field}:Q", title="time to first token, seconds", scale=alt.Scale(domain=[0, 11], nice=False))

    chart: alt.LayerChart = alt.layer(
        base.mark_line(stroke=TOTAL.light, strokeWidth=9, opacity=0.22).encode(y=y("best")),
        base.mark_line(stroke=MEMORY.light, strokeWidth=2.4).encode(y=y("hit")),
        base.mark_line(stroke=ARITHMETIC.light, strokeDash=list(ARITHMETIC.dash)).encode(y=y("miss")),
        label(base, "wait for the cache", "queue", "hit", MEMORY, 7, dx=-14, dy=-2),
        label(base, "compute again elsewhere", "queue", "miss", ARITHMETIC, 8, dx=-4, dy=16),
        knob(here, "best"),
        readout(here, "best", "best_text", 16),
        readout(here, "time", "time_text", 34),
        grips(base, 240, grip),
    )
    return chart.add_params(
        selector("context", "Context", [f"{c:,}" for c in CONTEXTS], f"{context_len:,}")
    ).properties(
        width=WIDTH,
        height=240,
        description=(
            "Time to first token over the queue at the replica that holds a session's cache. Waiting for the cache"
            " rises in a straight line from almost nothing. Computing the whole context on an idle replica is flat."
            " The router follows the lower of the two, so the longer the context the longer it waits for a hit."
        ),
        usermeta={"lantern": {"stops": {"ring": [f"{seconds:g} s" for seconds in QUEUES]}}},
    )


def chat_share(policy: fairness.Policy, agent_context: int, *, cached: bool, num_steps: int = 4000) -> float:
    """Return a chat tenant's share of service beside an agent that sends ten requests for each of its own.

    Parameters
    ----------
    policy : {"arrival", "requests", "tokens"}
        The scheduler's rule.
    agent_context : int
        Input of an agent's request [tokens].
    cached : bool
        Whether all but the last turn of it is cached.
    num_steps : int
        Steps of the run, in all of which both have requests waiting [steps].

    Returns
    -------
    float
        Its weighted tokens over those of both [ratio].

    Examples
    --------
    >>> round(chat_share("requests", 34_500, cached=False), 2), round(chat_share("tokens", 34_500, cached=False), 2)
    (0.09, 0.5)
    """
    known = agent_context - APPENDED if cached else 0
    agent = TenantRequest("agent", 0, agent_context, AGENT_ANSWER, known)
    rounds = [*[agent] * FAN_OUT, TenantRequest("chat", 0, CHAT_PROMPT, CHAT_ANSWER)]
    run = fairness.serve(rounds * math.ceil(num_steps / 20), policy, num_slots=SLOTS, num_steps=num_steps)
    return run.share("chat")


def fair(*, agent_context: int, cache: str = CACHES[0]) -> alt.LayerChart:
    """Plot a chat tenant's share of service by three rules, over the size of the agent's requests.

    Parameters
    ----------
    agent_context : int
        Where the ring stands first, one of :data:`AGENT_CONTEXTS` [tokens].
    cache : str
        First choice of :data:`CACHES`.

    Returns
    -------
    altair.LayerChart
        One panel with a ring and a selector.

    Raises
    ------
    ValueError
        If `agent_context` is no stop of the slider.

    Examples
    --------
    >>> len(fair(agent_context=34_500).to_dict()["description"]) > 100
    True
    """
    rows = []
    rules: tuple[fairness.Policy, ...] = ("arrival", "requests", "tokens")
    for cached, name in enumerate(CACHES):
        for stop, context in enumerate(AGENT_CONTEXTS):
            shares = {rule: round(100 * chat_share(rule, context, cached=bool(cached)), 1) for rule in rules}
            shown = ", ".join(f"{rule} {share:.0f}%" for rule, share in shares.items())
            rows.append(
                {"cache": name, "stop": stop, "context": context}
                | shares
                | {"context_text": f"agent sends {context:,}; chat gets by", "share_text": shown}
            )
    grip = ring("Agent's request", "agent_context", agent_context, AGENT_CONTEXTS)
    x = alt.X("context:Q", title="agent's input, tokens", scale=alt.Scale(domain=[0, 35_500], nice=False))
    base = rows_chart(rows).transform_filter("datum.cache == cache").encode(x=x)
    here = base.transform_filter(grip)

    def y(field: str) -> alt.Y:
        return alt.Y(
            f"{field}:Q", title="chat's share of service, percent", scale=alt.Scale(domain=[0, 75], nice=False)
        )

    chart: alt.LayerChart = alt.layer(
        base.mark_line(stroke=TOTAL.light, strokeWidth=2).encode(y=y("arrival")),
        base.mark_line(stroke=CONTROL.light, strokeDash=list(CONTROL.dash)).encode(y=y("requests")),
        base.mark_line(stroke=USER.light, strokeWidth=2.6).encode(y=y("tokens")),
        label(base, "count tokens", "context", "tokens", USER, 27_000, dy=-10),
        label(base, "count requests", "context", "requests", CONTROL, 34_500, dx=-12, dy=16),
        label(base, "first come", "context", "arrival", TOTAL, 6_000, align="left", dx=6, dy=-6),
        knob(here, "tokens"),
        knob(here, "requests", first=False),
        readout(here, "context", "context_text", 16),
        readout(here, "share", "share_text", 34),
        grips(base, 240, grip),
    )
    return chart.add_params(selector("cache", "Cached of it", CACHES, cache)).properties(
        width=WIDTH,
        height=240,
        description=(
            "A chat tenant's share of the service of one engine, over the input of an agent that sends ten requests for"
            " each of the chat's. In order of arrival the share is a few percent. Taking requests in turn it is above"
            " half while requests are alike and falls as the agent's grow. By counting tokens it stays at half."
        ),
        usermeta={"lantern": {"stops": {"ring": [f"{c:,}" for c in AGENT_CONTEXTS]}}},
    )
