"""Every number that the notes print in F4, recomputed; see ``test_published_a.py`` for the shape."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from lantern_lib import autoscale, queueing

PUBLISHED = "published_f3"
GROWTH = 2
RATE = 1.0  # requests a second of one replica; only ratios matter here


def doubled(planned: float) -> tuple[float, ...]:
    """Return a demand on ten replicas that doubles within a minute, from five minutes on."""
    return autoscale.surge(10 * planned, 10 * planned * GROWTH, start=300, rise=60, hold=600, total=1500)


def alone(planned: float, cold_start_seconds: float = 90) -> tuple[float, int]:
    """Run it through an autoscaler that decides when the climb is over: growth of the line, and seconds until help.

    The growth is divided by what the fleet can do, so it is the overload as a share of that.
    """
    fleet = autoscale.Fleet(10, RATE, cold_start_seconds)
    late = autoscale.Policy("late", interval_seconds=360, clear_seconds=1e9)
    outcome = autoscale.run_surge(doubled(planned), fleet, late)
    grown = next(now for now, size in enumerate(outcome.fleet) if size > 10)
    return (outcome.waiting[grown - 1] - outcome.waiting[grown - 2]) / (10 * RATE), grown - 360


def base_that_lands_at(worst: float) -> float:
    """Try plans in steps of a percent: the highest whose doubled load the queue still serves within the factor."""
    limit = queueing.MM1(worst, 1).mean_time_seconds * (1 + 1e-9)
    return max(p / 100 for p in range(1, 50) if queueing.MM1(GROWTH * p / 100, 1).mean_time_seconds <= limit)


COMPUTE: dict[str, Callable[..., float]] = {
    "surge.lands": lambda planned: max(doubled(planned)) / (10 * RATE),
    "surge.overload": lambda planned: alone(planned)[0],
    "queueing.factor": lambda utilization: queueing.MM1(utilization, 1).mean_time_seconds,
    "surge.base_that_lands_at": base_that_lands_at,
    "surge.seconds_alone": lambda cold_start_seconds: alone(0.65, cold_start_seconds)[1],
}


def test_published_number(entry: dict[str, Any], hold: Callable[..., None]) -> None:
    hold(entry, COMPUTE)


def test_no_compute_entry_is_unused(entries: list[dict[str, Any]]) -> None:
    assert set(COMPUTE) == {e["compute"] for e in entries}
