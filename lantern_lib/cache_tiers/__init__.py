"""Where the cache of a waiting session lies, what bringing it back costs, and which replica a request goes to."""

from lantern_lib.cache_tiers.holding import (
    Place,
    break_even_seconds,
    cheapest_place,
    expected_cost,
    open_sessions,
    places,
)
from lantern_lib.cache_tiers.routing import Candidate, first_token_seconds, route
from lantern_lib.cache_tiers.tiers import EXAMPLE_TIERS, Reload, Tier, reload_or_recompute

__all__ = [
    "EXAMPLE_TIERS",
    "Candidate",
    "Place",
    "Reload",
    "Tier",
    "break_even_seconds",
    "cheapest_place",
    "expected_cost",
    "first_token_seconds",
    "open_sessions",
    "places",
    "reload_or_recompute",
    "route",
]
