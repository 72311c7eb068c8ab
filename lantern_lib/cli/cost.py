"""``lantern cost``: what a million tokens cost, from a measured rate or from a model on cards."""

from __future__ import annotations

from lantern_lib import kv_cache
from lantern_lib.capacity import SECONDS_PER_HOUR, Traffic, dollars_per_million, plan_fleet
from lantern_lib.cli.report import Report, Table, Value, quantity
from lantern_lib.hardware import Replica
from lantern_lib.model_config import ModelConfig
from lantern_lib.pricing import Fleet, break_even_utilization
from lantern_lib.units import require_positive

WITHOUT_PEOPLE = "A million tokens here pay for GPUs alone: no engineers, no spares, no network."


def measured_cost(
    gpu_hour: float,
    num_gpus: int,
    tokens_per_second: float,
    utilization: float = 1.0,
    price: float | None = None,
    people: float = 0.0,
    inputs: dict[str, Value] | None = None,
) -> Report:
    """Return the price of a million tokens at a rate that somebody measured.

    Parameters
    ----------
    gpu_hour : float
        One GPU for one hour [dollars].
    num_gpus : int
        GPUs that are paid [count].
    tokens_per_second : float
        What they make together while busy [tokens/s].
    utilization : float
        Share of the paid time that they are busy [ratio].
    price : float, optional
        What a million tokens cost elsewhere [dollars].
    people : float
        Engineers and on-call in a month [dollars].
    inputs : dict, optional
        What was typed.

    Returns
    -------
    Report
        It does not fit if even a full machine costs more than the other price.

    Raises
    ------
    ValueError
        If a number is out of range.

    Examples
    --------
    >>> measured_cost(2.5, 1, 700).tables[0].rows[0].shown
    '0.992 dollars'
    """
    own = dollars_per_million(gpu_hour, num_gpus, tokens_per_second, utilization)
    fleet = Fleet(num_gpus, gpu_hour, people)
    rows = [
        quantity(
            "dollars_per_million",
            "a million tokens",
            own,
            "dollars",
            3,
            f"{gpu_hour:g} × {num_gpus} an hour / ({tokens_per_second:g} tokens/s × 3,600 × {utilization:g})",
        ),
        quantity("dollars_per_month", "a month", fleet.group_dollars, "dollars", 0, f"{fleet.hours_per_month:g} hours"),
    ]
    title = f"Cost of {num_gpus} {'GPU' if num_gpus == 1 else 'GPUs'} at {tokens_per_second:g} tokens/s"
    if price is None:
        return Report("cost", title, (Table("Cost", tuple(rows)),), (WITHOUT_PEOPLE,), True, inputs or {})
    table, note = _beside_price(fleet, price, tokens_per_second)
    return Report("cost", title, (Table("Cost", tuple(rows)), table), (WITHOUT_PEOPLE, *note), not note, inputs or {})


def _beside_price(fleet: Fleet, price: float, tokens_per_second: float) -> tuple[Table, tuple[str, ...]]:
    """Return where the fleet meets a price per million, and a sentence if even full it never does."""
    each = require_positive("price", price, "It is dollars for a million tokens.") / 1e6
    monthly = fleet.group_dollars + fleet.standing_dollars
    hours = fleet.hours_per_month
    share = break_even_utilization(monthly, each, tokens_per_second * SECONDS_PER_HOUR * hours)
    volume = fleet.crossover_tokens(each)
    rows = (
        quantity("people_dollars", "people in a month", fleet.people_dollars, "dollars"),
        quantity("break_even_tokens", "break-even in a month", volume, "million", 0, f"{monthly:,.0f} dollars / price"),
        quantity("break_even_utilization", "… of its capacity", share, "percent", 1, "above 100 it never pays"),
    )
    never = ("It does not pay: even full, these GPUs make fewer tokens than break even.",) if share > 1 else ()
    return Table(f"Beside {price:g} dollars a million", rows), never


def fleet_cost(
    model: ModelConfig,
    replica: Replica,
    traffic: Traffic,
    gpu_hour: float,
    max_utilization: float = 1.0,
    price: float | None = None,
    people: float = 0.0,
    inputs: dict[str, Value] | None = None,
) -> Report:
    """Return the smallest fleet for a traffic, and what its tokens cost.

    Parameters
    ----------
    model, replica : ModelConfig, Replica
        The shape, and one group of cards.
    traffic : Traffic
        Requests that arrive.
    gpu_hour : float
        One GPU for one hour [dollars].
    max_utilization : float
        Share of time that a replica may be busy [ratio].
    price : float, optional
        What a million tokens, prompts and answers, cost elsewhere [dollars].
    people : float
        Engineers and on-call in a month [dollars].
    inputs : dict, optional
        What was typed.

    Returns
    -------
    Report
        It does not fit if a replica holds no conversation.

    Raises
    ------
    ValueError
        If a number is out of range.

    Examples
    --------
    >>> from lantern_lib import H100, LANTERN_70B
    >>> report = fleet_cost(LANTERN_70B, Replica(H100, 4), Traffic(20, 2000, 400, 1500), 3.0, 0.65)
    >>> [row.shown for row in report.tables[0].rows][:2]
    ['4', '16']
    """
    title = f"{model.name} on {replica.tp_size} × {replica.accelerator.name} a replica, {traffic.summary}"
    budget = kv_cache.memory_budget(model, replica)
    if budget.conversations(traffic.context_len) < 1:
        note = f"It does not fit: {budget.summary}. Add GPUs, or store weights or cache in fewer bytes."
        return Report("cost", title, (), (note,), False, inputs or {})
    plan = plan_fleet(model, replica, traffic, max_utilization=max_utilization)
    fleet = Fleet(plan.num_gpus, gpu_hour, people)
    parts = f"{plan.demand.decode_replicas:.2f} decode + {plan.demand.prefill_replicas:.2f} prefill"
    rows = (
        quantity("replicas", "replicas", plan.num_replicas, working=f"{parts}, busy at most {max_utilization:.0%}"),
        quantity("gpus", "GPUs", plan.num_gpus, working=f"{replica.tp_size} a replica"),
        quantity("utilization", "busy", plan.utilization, "percent", 1),
        quantity("dollars_per_hour", "an hour", plan.dollars_per_hour(gpu_hour), "dollars", 2),
        quantity("dollars_per_month", "a month", fleet.group_dollars, "dollars", 0, f"{fleet.hours_per_month:g} hours"),
        quantity(
            "dollars_per_million_output",
            "a million answer tokens",
            plan.dollars_per_million(gpu_hour),
            "dollars",
            3,
            "they carry the prompts",
        ),
        quantity(
            "dollars_per_million",
            "a million tokens",
            plan.dollars_per_million(gpu_hour, blended=True),
            "dollars",
            3,
            "prompts and answers alike",
        ),
    )
    notes: tuple[str, ...] = (WITHOUT_PEOPLE, "Rates are those of floors: the fleet is the least that could do it.")
    if price is None:
        return Report("cost", title, (Table("Cost", rows),), notes, True, inputs or {})
    full = traffic.tokens_per_second / plan.utilization
    table, never = _beside_price(fleet, price, full)
    return Report("cost", title, (Table("Cost", rows), table), (*notes, *never), not never, inputs or {})
