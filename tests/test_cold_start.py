"""Cold starts and what waits because of them: sums by hand, a second-by-second replay, brute force, and the edges."""

from __future__ import annotations

import math

import pytest

from lantern_lib import H100, LANTERN_70B, Replica, cold_start
from lantern_lib.cold_start import ColdStart, Failover, Phase, Surge

FOUR = Replica(H100, tp_size=4)
EIGHT = Replica(H100, tp_size=8)
START = ColdStart((Phase("launch", 120), Phase("image", 40), Phase("weights", 282), Phase("compile", 145)))


def test_the_weights_of_the_published_shape() -> None:
    """70,553,706,496 numbers of two bytes, norms included."""
    assert cold_start.shard_bytes(LANTERN_70B, FOUR) == 70_553_706_496 * 2 / 4
    assert cold_start.shard_bytes(LANTERN_70B, EIGHT) == 70_553_706_496 * 2 / 8


def test_a_wider_replica_loads_faster_only_if_each_gpu_has_its_own_stream() -> None:
    pods = {cold_start.weight_load_seconds(LANTERN_70B, machine, 2e9) for machine in (FOUR, EIGHT)}
    assert pods == {141_107_412_992 / 2e9}
    four, eight = (
        cold_start.weight_load_seconds(LANTERN_70B, machine, 2e9, rate_is_for="gpu") for machine in (FOUR, EIGHT)
    )
    assert four == 2 * eight


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ({"bytes_per_second": 0}, "bytes_per_second must be"),
        ({"bytes_per_second": 2e9, "rate_is_for": "node"}, "rate_is_for must be one of pod, gpu, got 'node'"),
    ],
)
def test_a_load_refuses_what_it_does_not_know(bad: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        cold_start.weight_load_seconds(LANTERN_70B, FOUR, **bad)  # type: ignore[arg-type]


def test_a_start_is_the_sum_of_its_phases() -> None:
    assert START.total_seconds == 587
    assert START.longest.name == "weights"
    assert START.share("compile") == 145 / 587
    assert START.without("launch", "image").total_seconds == 427
    assert START.summary == "587 s: launch 120 s, image 40 s, weights 282 s, compile 145 s"


def test_a_start_names_what_it_does_not_have() -> None:
    with pytest.raises(ValueError, match="name must be one of launch, image, weights, compile, got 'warm'"):
        START.without("warm")
    with pytest.raises(ValueError, match="name must be one of"):
        START.share("warm")
    with pytest.raises(ValueError, match="phases must be at least one"):
        START.without("launch", "image", "weights", "compile")
    with pytest.raises(ValueError, match="seconds must be"):
        Phase("launch", -1)


@pytest.mark.parametrize(("base", "lands"), [(0.5, 1.0), (0.65, 1.3), (0.4, 0.8)])
def test_a_doubling_lands_where_the_notes_say(base: float, lands: float) -> None:
    """Exercise 1 of F4: half a fleet saturates, two thirds are overloaded by 30 percent, four tenths are not."""
    assert cold_start.utilisation_after_surge(base, 2) == pytest.approx(lands)
    assert cold_start.base_utilisation_for(0.8, 2) == pytest.approx(0.4)


@pytest.mark.parametrize("factor", [1, 1.2, 2, 3.5])
@pytest.mark.parametrize("target", [0.3, 0.8, 1.0])
def test_what_is_planned_for_is_what_is_landed_on(target: float, factor: float) -> None:
    base = cold_start.base_utilisation_for(target, factor)
    assert cold_start.utilisation_after_surge(base, factor) == pytest.approx(target)


def test_surges_refuse_what_makes_no_sense() -> None:
    with pytest.raises(ValueError, match=r"base_utilization must be a fraction in \[0, 1\], got 1.3"):
        cold_start.utilisation_after_surge(1.3, 2)
    with pytest.raises(ValueError, match="factor must be at least 1, got 0.5"):
        cold_start.base_utilisation_for(0.8, 0.5)
    with pytest.raises(ValueError, match="factor must be at least 1"):
        Surge(0.9, 60)
    with pytest.raises(ValueError, match="ramp_seconds must be"):
        Surge(2, -1)


def test_a_step_has_grown_at_once() -> None:
    assert [Surge(3, 0).factor_after(seconds) for seconds in (0, 10)] == [3, 3]
    assert Surge(3, 100).factor_after(50) == 2
    assert Surge(3, 100).factor_after(1e6) == 3


def warm_by_replay(demand: float, surge: Surge, cold: int, busy: float, step: float = 0.1) -> int:
    """Replay a surge in small steps: order what is needed when it is needed; it serves one cold start later."""
    running = serving = ordered = math.ceil(demand / busy)
    on_the_way: list[tuple[float, int]] = []
    warm, now = 0, 0.0
    while now <= surge.ramp_seconds + cold:
        needed = math.ceil(demand * surge.factor_after(now) / busy - 1e-9)
        if needed > ordered:
            on_the_way.append((now + cold, needed - ordered))
            ordered = needed
        serving = running + sum(count for due, count in on_the_way if due <= now + 1e-9)
        warm = max(warm, needed - serving)
        now += step
    return warm


@pytest.mark.parametrize("demand", [0.7, 4.51, 31.0])
@pytest.mark.parametrize(("factor", "ramp"), [(2, 60), (2, 1800), (1.3, 300), (5, 0), (1, 60)])
@pytest.mark.parametrize("cold", [0, 30, 159, 587])
def test_the_warm_pool_is_the_largest_gap_of_a_replay(demand: float, factor: float, ramp: float, cold: int) -> None:
    surge = Surge(factor, ramp)
    found = cold_start.warm_pool_size(demand, surge, cold, max_utilization=0.65)
    assert found == warm_by_replay(demand, surge, cold, 0.65)


def test_a_surge_faster_than_the_start_is_held_whole() -> None:
    sudden = {cold_start.warm_pool_size(4.51, Surge(2, 60), cold, max_utilization=0.65) for cold in (60, 90, 600)}
    assert sudden == {math.ceil(9.02 / 0.65) - math.ceil(4.51 / 0.65)}


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
    got = cold_start.smallest_standby(demand, cold, max_shed_seconds=loss, fleet_replicas=fleet, found_share=found)
    assert got == first


def test_a_standby_refuses_a_fleet_that_is_too_small() -> None:
    with pytest.raises(ValueError, match=r"fleet_replicas must be at least 5 for a demand of 4.51 replicas, got 4"):
        cold_start.smallest_standby(4.51, 60, max_shed_seconds=60, fleet_replicas=4)
    with pytest.raises(ValueError, match=r"found_share must be a fraction in \[0, 1\]"):
        cold_start.smallest_standby(4.51, 60, max_shed_seconds=60, fleet_replicas=7, found_share=50)
