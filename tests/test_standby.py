"""A standby region, against a queue that is run request by request."""

from __future__ import annotations

import math

import pytest

from lantern_lib.standby import (
    Failover,
    late_requests,
    refused_requests,
    replicas_to_hold,
    smallest_standby,
    worst_wait_seconds,
)


def waits(rate: float, demand: float, held: float, fleet: float, start: float, seconds: float) -> list[float]:
    """Serve requests one by one: each takes 1/rate of the whole demand; the server speeds up after the cold start."""
    work = demand / rate
    free, found = 0.0, []
    for number in range(int(seconds * rate)):
        arrival = number / rate
        begin = max(arrival, free)
        if begin < start:
            before = held * (start - begin)
            end = begin + work / held if before >= work else start + (work - before) / fleet
        else:
            end = begin + work / fleet
        found.append(begin - arrival)
        free = end
    return found


@pytest.mark.parametrize(("held", "fleet", "start"), [(1, 4, 300), (1.5, 3, 60), (0.25, 2.5, 120)])
def test_the_worst_wait_and_the_late_are_those_of_a_queue(held: float, fleet: float, start: float) -> None:
    rate, demand = 20.0, 2.1
    seen = waits(rate, demand, held, fleet, start, 20 * start)
    assert seen[-1] == pytest.approx(0, abs=0.2)
    assert worst_wait_seconds(demand, held, start) == pytest.approx(max(seen), abs=0.5)
    for patience in (0.1 * start, 0.4 * start):
        late = sum(wait > patience for wait in seen)
        assert late_requests(rate, demand, held, fleet, start, patience) == pytest.approx(late, rel=0.01, abs=12)


def test_nothing_held_makes_the_first_request_wait_longest() -> None:
    assert worst_wait_seconds(2, 0, 300) == 300
    # They arrive until 540 s after the failure: a request at a waits 300 - a / 2.
    assert late_requests(10, demand=2, held=0, fleet=4, cold_start_seconds=300, patience_seconds=30) == pytest.approx(
        5400
    )


def test_enough_replicas_leave_nobody_waiting() -> None:
    assert worst_wait_seconds(2, 2, 300) == worst_wait_seconds(2, 5, 300) == 0
    assert late_requests(10, 2, 2, 4, 300, 0) == refused_requests(10, 2, 2, 300) == 0


@pytest.mark.parametrize("demand", [1.0, 2.11, 7.5])
@pytest.mark.parametrize("start", [10, 60, 300, 900])
@pytest.mark.parametrize("patience", [0, 5, 30, 120])
def test_what_is_held_is_enough_and_one_less_is_not(demand: float, start: float, patience: float) -> None:
    hold = replicas_to_hold(demand, start, patience)
    assert worst_wait_seconds(demand, hold, start) <= patience + 1e-6
    if hold:
        assert worst_wait_seconds(demand, hold - 1, start) > patience


def test_refused_requests_are_those_above_the_rate_that_is_served() -> None:
    """20 a second for 300 s are 6,000; half of the demand serves half of them."""
    assert refused_requests(20, demand=3, held=1.5, cold_start_seconds=300) == 3000


def test_bad_arguments_are_named() -> None:
    with pytest.raises(ValueError, match="^demand must be"):
        worst_wait_seconds(0, 1, 300)
    with pytest.raises(ValueError, match="^held must be"):
        worst_wait_seconds(2, -1, 300)
    with pytest.raises(ValueError, match="^cold_start_seconds must be"):
        replicas_to_hold(2, 0, 30)
    with pytest.raises(ValueError, match="^patience_seconds must be"):
        replicas_to_hold(2, 300, -1)
    with pytest.raises(ValueError, match="^fleet must be above demand = 2, got 2"):
        late_requests(20, 2, 1, 2, 300, 30)
    with pytest.raises(ValueError, match="^fleet must be above demand = 2, got 1"):
        late_requests(20, 2, 2, 1, 300, 30)
    with pytest.raises(ValueError, match="^arrival_rate must be"):
        refused_requests(0, 2, 1, 300)


def shed_by_loop(failover: Failover, step: float = 0.5) -> tuple[float, float]:
    """Count refused work and the length of a queue in small steps; return seconds of traffic, and until it is empty."""
    shed = queue = now = 0.0
    empty_at = 0.0
    while now < 50_000:
        there = failover.standby_replicas if now < failover.cold_start_seconds else failover.fleet_replicas
        shed += (
            max(0.0, failover.demand_replicas - failover.standby_replicas) * step * (now < failover.cold_start_seconds)
        )
        queue = max(0.0, queue + (failover.demand_replicas - there) * step)
        now += step
        if queue > 1e-6:
            empty_at = now
        elif now > failover.cold_start_seconds:
            break
    return shed / failover.demand_replicas, empty_at


@pytest.mark.parametrize("standby", range(8))
@pytest.mark.parametrize("cold", [60, 320])
def test_a_failover_loses_what_a_loop_counts(standby: int, cold: int) -> None:
    failover = Failover(4.5, standby, cold, fleet_replicas=7)
    shed, empty = shed_by_loop(failover)
    assert failover.shed_seconds == pytest.approx(shed, abs=1e-6)
    assert failover.overload_seconds == pytest.approx(empty, abs=1.0)


def test_a_fleet_of_just_the_demand_never_catches_up() -> None:
    assert Failover(5, 4, 60, fleet_replicas=5).overload_seconds == math.inf
    assert Failover(5, 5, 60, fleet_replicas=5).overload_seconds == 0
    assert "4 of 5 replicas stand by: 20%" in Failover(5, 4, 60, fleet_replicas=5).summary


@pytest.mark.parametrize("demand", [0.4, 4.51, 6.0])
@pytest.mark.parametrize("cold", [0, 30, 60, 61, 159, 587])
@pytest.mark.parametrize("loss", [0, 60, 120])
@pytest.mark.parametrize("found", [0.0, 0.2, 0.5, 0.9, 1.0])
def test_the_smallest_standby_is_the_first_that_keeps_both_rules(
    demand: float, cold: float, loss: float, found: float
) -> None:
    fleet = 9

    def holds(count: int) -> bool:
        in_time = Failover(demand, count, cold, fleet).shed_seconds <= loss + 1e-6
        return in_time and count + found * (fleet - count) >= demand - 1e-6

    first = next(count for count in range(fleet + 1) if holds(count))
    got = smallest_standby(demand, cold, max_shed_seconds=loss, fleet_replicas=fleet, found_share=found)
    assert got == first


def test_a_standby_refuses_a_fleet_that_is_too_small() -> None:
    with pytest.raises(ValueError, match=r"fleet_replicas must be at least 5 for a demand of 4.51 replicas, got 4"):
        smallest_standby(4.51, 60, max_shed_seconds=60, fleet_replicas=4)
    with pytest.raises(ValueError, match=r"found_share must be a fraction in \[0, 1\]"):
        smallest_standby(4.51, 60, max_shed_seconds=60, fleet_replicas=7, found_share=50)
