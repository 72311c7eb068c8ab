"""Cold starts and what waits because of them: sums by hand, a second-by-second replay, brute force, and the edges."""

from __future__ import annotations

import math

import pytest

from lantern_lib import H100, LANTERN_70B, Replica, cold_start
from lantern_lib.cold_start import ColdStart, Phase, Surge

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
    assert cold_start.utilization_after_surge(base, 2) == pytest.approx(lands)
    assert cold_start.base_utilization_for(0.8, 2) == pytest.approx(0.4)


@pytest.mark.parametrize("factor", [1, 1.2, 2, 3.5])
@pytest.mark.parametrize("target", [0.3, 0.8, 1.0])
def test_what_is_planned_for_is_what_is_landed_on(target: float, factor: float) -> None:
    base = cold_start.base_utilization_for(target, factor)
    assert cold_start.utilization_after_surge(base, factor) == pytest.approx(target)


def test_surges_refuse_what_makes_no_sense() -> None:
    with pytest.raises(ValueError, match=r"base_utilization must be a fraction in \[0, 1\], got 1.3"):
        cold_start.utilization_after_surge(1.3, 2)
    with pytest.raises(ValueError, match="factor must be at least 1, got 0.5"):
        cold_start.base_utilization_for(0.8, 0.5)
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
