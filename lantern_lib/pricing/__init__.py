"""What capacity costs: per token, provisioned, a floor with spillover, or one's own machines.

All amounts are in dollars, all volumes in tokens, prices in dollars for one token.
"""

from lantern_lib.pricing.demand import SpilloverPlan, daily_demand, demand_percentile, plan_with_spillover
from lantern_lib.pricing.options import KINDS, Choice, Option, Requirements, cheapest_option, refusals
from lantern_lib.pricing.owning import Fleet, fleet_for
from lantern_lib.pricing.rates import (
    HOURS_PER_MONTH,
    MixCapacity,
    Provisioned,
    TokenPrices,
    blended_price,
    break_even_tokens,
    break_even_utilization,
)

__all__ = [
    "HOURS_PER_MONTH",
    "KINDS",
    "Choice",
    "Fleet",
    "MixCapacity",
    "Option",
    "Provisioned",
    "Requirements",
    "SpilloverPlan",
    "TokenPrices",
    "blended_price",
    "break_even_tokens",
    "break_even_utilization",
    "cheapest_option",
    "daily_demand",
    "demand_percentile",
    "fleet_for",
    "plan_with_spillover",
    "refusals",
]
