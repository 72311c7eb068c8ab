"""A day's demand, and a floor of committed capacity under it with the rest spilled to a pool that bills per token."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lantern_lib.pricing.rates import HOURS_PER_MONTH
from lantern_lib.units import require_non_negative, require_positive, require_share, round_up

# Hours 0 to 23 of a working day, in tenths of the mean hour: a quiet night, a steep morning, two humps around lunch and
# an evening that fades. A shape made up for the course, round so that every sum can be done by hand; it adds up to 240.
_SHAPE = (3, 2, 2, 2, 2, 3, 5, 8, 12, 16, 20, 20, 16, 17, 19, 17, 15, 13, 11, 10, 9, 8, 6, 4)


def daily_demand(mean_tokens_per_hour: float) -> tuple[float, ...]:
    """Return the tokens that are asked for in each hour of a day.

    Parameters
    ----------
    mean_tokens_per_hour : float
        Mean of the day [tokens].

    Returns
    -------
    tuple of float
        24 hours from midnight; the peak is twice the mean, the quietest hours a fifth of it [tokens].

    Raises
    ------
    ValueError
        If the mean is not above 0.

    Notes
    -----
    Synthetic and the same every day: no weekend, no growth, no bad day. Nearest-rank percentiles, over the mean: 0.2
    at 10, 0.3 at 25, 0.5 at 33, 0.9 at 50, 1.6 at 75, 1.9 at 90 and 2.0 at 100.

    Examples
    --------
    >>> day = daily_demand(10)
    >>> len(day), sum(day), max(day), min(day)
    (24, 240.0, 20.0, 2.0)
    """
    mean = require_positive("mean_tokens_per_hour", mean_tokens_per_hour)
    return tuple(tenths * mean / 10 for tenths in _SHAPE)


def demand_percentile(demand: Sequence[float], q: float) -> float:
    """Return the demand that a share of all hours does not exceed, by nearest rank.

    Parameters
    ----------
    demand : sequence of float
        Tokens of each hour [tokens].
    q : float
        The share of the hours; 0 gives the quietest hour, 1 the peak [ratio].

    Returns
    -------
    float
        One of the hours' own values [tokens].

    Raises
    ------
    ValueError
        If there is no hour, or `q` is outside [0, 1].

    Notes
    -----
    The value of rank ``⌈q n⌉`` (at least 1) of the sorted hours: sort, count, read off. Latencies are reported by
    :func:`lantern_lib.metrics.percentile`, which interpolates; a floor is bought for an hour that exists.

    Examples
    --------
    >>> demand_percentile(daily_demand(10), 0.5), demand_percentile(daily_demand(10), 1)
    (9.0, 20.0)
    """
    share = require_share("q", q, "Give 0.5 for the median.")
    if not demand:
        raise ValueError("demand must be at least one hour, got none.")
    ordered = sorted(float(require_non_negative("demand", tokens)) for tokens in demand)
    return ordered[max(round_up(share * len(ordered)), 1) - 1]


@dataclass(frozen=True)
class SpilloverPlan:
    """A month of a floor with spillover. Tokens and dollars are of the month, the floor of an hour."""

    floor_tokens_per_hour: float
    total_tokens: float
    floor_tokens: float
    spilled_tokens: float
    refused_tokens: float
    floor_dollars: float
    spill_dollars: float
    floor_utilization: float
    share_of_hours_above: float

    @property
    def total_dollars(self) -> float:
        """The whole bill [dollars]."""
        return self.floor_dollars + self.spill_dollars

    @property
    def floor_share(self) -> float:
        """Share of the tokens served by the floor [ratio]."""
        return self.floor_tokens / self.total_tokens


def plan_with_spillover(
    demand: Sequence[float],
    floor_tokens_per_hour: float,
    *,
    floor_token_hour_dollars: float,
    spill_price: float,
    pool_refusal: float = 0.0,
    hours_per_month: float = HOURS_PER_MONTH,
) -> SpilloverPlan:
    """Return what a month costs with a committed floor and the rest spilled to a pool.

    Parameters
    ----------
    demand : sequence of float
        Tokens of each hour of a period that repeats, a day for example [tokens].
    floor_tokens_per_hour : float
        Committed capacity at the mix of this demand; 0 is no floor [tokens].
    floor_token_hour_dollars : float
        Price of committed capacity for one token in one hour, used or not: monthly price over monthly capacity
        [dollars].
    spill_price : float
        Blended price of a spilled token, at the same mix [dollars].
    pool_refusal : float
        Share of the spilled tokens that the pool refuses; they are not paid. 1 means that there is no spill [ratio].
    hours_per_month : float
        Hours that the month has [hours].

    Returns
    -------
    SpilloverPlan
        The bill, who serves what, and what is refused.

    Raises
    ------
    ValueError
        If a value is out of range or the demand is empty or zero throughout.

    Notes
    -----
    Hour by hour: the floor serves ``min(demand, floor)``, the pool the rest. Nothing waits from one hour to the
    next, and the floor can be bought in any size; real units come in steps. Page on capacity types.

    Examples
    --------
    >>> day = daily_demand(10)
    >>> plan = plan_with_spillover(day, 9, floor_token_hour_dollars=3, spill_price=4.5, hours_per_month=24)
    >>> plan.floor_tokens, plan.spilled_tokens, plan.floor_dollars, plan.spill_dollars, plan.floor_utilization
    (162.0, 78.0, 648.0, 351.0, 0.75)
    """
    floor = require_non_negative("floor_tokens_per_hour", floor_tokens_per_hour)
    committed = require_non_negative("floor_token_hour_dollars", floor_token_hour_dollars)
    price = require_non_negative("spill_price", spill_price)
    refusal = require_share("pool_refusal", pool_refusal)
    hours = [require_non_negative("demand", tokens) for tokens in demand]
    if not sum(hours):
        raise ValueError("demand must be above 0 in some hour, got none.")
    days = require_positive("hours_per_month", hours_per_month) / len(hours)
    on_floor = sum(min(tokens, floor) for tokens in hours) * days
    above = sum(max(tokens - floor, 0.0) for tokens in hours) * days
    spilled = above * (1 - refusal)
    return SpilloverPlan(
        floor_tokens_per_hour=floor,
        total_tokens=sum(hours) * days,
        floor_tokens=on_floor,
        spilled_tokens=spilled,
        refused_tokens=above * refusal,
        floor_dollars=floor * committed * hours_per_month,
        spill_dollars=spilled * price,
        floor_utilization=on_floor / (floor * hours_per_month) if floor else 0.0,
        share_of_hours_above=sum(tokens > floor for tokens in hours) / len(hours),
    )
