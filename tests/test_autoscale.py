"""The surge against closed forms, conservation, and a search over all commitments."""

from __future__ import annotations

import random

import pytest

from lantern_lib.autoscale import Fleet, Policy, commitment, run_surge, surge

STEP = (20.0,) * 100 + (50.0,) * 900  # a jump that stays


def test_a_fleet_that_never_grows_piles_up_the_difference() -> None:
    """The line grows by what arrives beyond the capacity; the wait is the line over the capacity."""
    outcome = run_surge(STEP, Fleet(3, 10, cold_start_seconds=60), Policy("blind", "cpu"))
    assert set(outcome.fleet) == {3}
    assert outcome.wait_seconds[99] == 0
    assert outcome.wait_seconds[999] == pytest.approx((50 - 30) * 900 / 30)


def test_the_line_grows_for_the_cold_start_and_drains_by_what_is_spare() -> None:
    """A jump from 20 to 50 at 30 served: growth 20 a second until the order of second 105 serves at 165."""
    policy = Policy("queue", target_utilization=1.0, clear_seconds=15, interval_seconds=15, max_replicas=10)
    outcome = run_surge(STEP, Fleet(3, 10, cold_start_seconds=60), policy)
    first = next(now for now, size in enumerate(outcome.fleet) if size > 3)
    assert first == 105 + 60
    # At 105 the line holds 120 and the signal sees 30 + 8, one replica; at 120 it sees 30 + 28, and so on to ten.
    assert outcome.fleet[165] == 4
    assert outcome.fleet[180] == 6
    assert max(outcome.fleet) == 10
    assert outcome.waiting[164] == pytest.approx(20 * 65)


def test_busy_servers_ask_for_one_over_the_target_at_a_time() -> None:
    outcome = run_surge(STEP + (50.0,) * 2000, Fleet(4, 5, cold_start_seconds=300), Policy("busy", "busy", 0.5))
    sizes = sorted(set(outcome.fleet))
    assert sizes == [4, 8, 16, 20] or sizes == [
        4,
        8,
        16,
        24,
    ]  # each a doubling, until the demand or the account ends it
    assert outcome.fleet.index(8) < outcome.fleet.index(16)
    assert outcome.fleet.index(16) - outcome.fleet.index(8) >= 300


def test_a_forecast_as_long_as_the_cold_start_is_never_late() -> None:
    demand = surge(20, 50, start=300, rise=60, hold=300, total=900)
    for cold in (30, 60, 120):
        policy = Policy("ahead", foresight_seconds=cold + 15)
        assert run_surge(demand, Fleet(7, 4.4, cold), policy).longest_wait_seconds == 0


def test_refusing_keeps_the_wait_and_counts_the_rest() -> None:
    """Thirty are served and fifty come: twenty a second are refused once the line is as long as allowed."""
    outcome = run_surge(STEP, Fleet(3, 10, cold_start_seconds=60), Policy("blind", "cpu", max_wait_seconds=10))
    assert outcome.longest_wait_seconds == pytest.approx(10)
    assert outcome.shed == pytest.approx(20 * 900 - 30 * 10)
    assert outcome.late_seconds == 0


def test_the_warm_pool_comes_first_and_its_size_is_its_limit() -> None:
    policy = Policy("warm", num_warm=2, clear_seconds=15)
    outcome = run_surge(STEP, Fleet(3, 10, cold_start_seconds=200, warm_start_seconds=10), policy)
    quick = [size for now, size in enumerate(outcome.fleet) if now < 300]
    assert max(quick) == 5
    assert outcome.fleet.index(5) <= 135
    assert max(outcome.fleet) > 5


@pytest.mark.parametrize("signal", ["cpu", "busy", "queue"])
@pytest.mark.parametrize("max_wait", [5.0, float("inf")])
def test_nothing_is_lost_or_made(signal: str, max_wait: float) -> None:
    """Follow the line second by second: arrivals are served, refused or still there."""
    demand = surge(20, 70, start=100, rise=60, hold=300, total=800)
    fleet = Fleet(6, 4.0, cold_start_seconds=90)
    outcome = run_surge(demand, fleet, Policy("x", signal, max_wait_seconds=max_wait))
    line, served = 0.0, 0.0
    shed = 0.0
    for arriving, size, left in zip(demand, outcome.fleet, outcome.waiting, strict=True):
        done = min(line + arriving, size * 4.0)
        shed += line + arriving - done - left
        line, served = left, served + done
    assert shed == pytest.approx(outcome.shed, abs=1e-6)
    assert served + outcome.shed + line == pytest.approx(sum(demand))


def test_waits_are_those_of_single_requests_served_in_order() -> None:
    """Number the requests, give each a place at the pace of the fleet, and note who waits how long."""
    fleet = Fleet(3, 10, cold_start_seconds=60)
    demand = surge(20, 50, start=50, rise=20, hold=300, total=600)
    outcome = run_surge(demand, fleet, Policy("queue", max_replicas=8))
    arrival = [now for now, rate in enumerate(demand) for _ in range(round(rate))]
    grid = [
        now for now, size in enumerate(outcome.fleet) for _ in range(size * 10)
    ]  # one place for each served request
    place = 0
    last: dict[int, int] = {}
    for came in arrival:
        while place < len(grid) and grid[place] < came:
            place += 1
        last[came] = grid[place] - came
        place += 1
    assert max(last.values()) > 10
    for came, wait in last.items():
        assert outcome.wait_seconds[came] == pytest.approx(wait, abs=1.5)


def test_late_requests_are_those_who_arrive_in_late_seconds() -> None:
    outcome = run_surge(STEP, Fleet(3, 10, cold_start_seconds=60, promise_seconds=10), Policy("blind", "cpu"))
    late = [wait > 10 for wait in outcome.wait_seconds]
    assert outcome.late_seconds == sum(late)
    assert outcome.late == pytest.approx(sum(rate for rate, is_late in zip(STEP, late, strict=True) if is_late))


def test_the_commitment_is_the_cheapest_of_all() -> None:
    rng = random.Random(11)
    for _ in range(200):
        hours = [rng.randrange(0, 9) for _ in range(24)]
        if not max(hours):
            continue
        ratio = rng.choice([0.3, 0.45, 0.55, 0.8])

        def cost(base: int, hours: list[int] = hours, ratio: float = ratio) -> float:
            return ratio * base * len(hours) + sum(max(0, need - base) for need in hours)

        assert cost(commitment(hours, ratio)) == pytest.approx(min(cost(base) for base in range(10)))


def test_a_surge_is_as_long_and_as_large_as_it_says() -> None:
    demand = surge(20, 50, start=300, rise=60, hold=1200, total=2400)
    assert len(demand) == 2400
    assert demand[:300] == (20.0,) * 300
    assert demand[359:1560] == (50.0,) * 1201
    assert demand[1619:] == pytest.approx((20.0,) * 781)
    assert sum(demand) == pytest.approx(20 * 2400 + 30 * (60 + 1200))


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: run_surge([], Fleet(1, 1, 1), Policy("x")), "demand must be at least one second"),
        (lambda: Policy("x", "memory"), "signal must be one of cpu, busy, queue"),
        (lambda: Policy("x", max_wait_seconds=-1), "max_wait_seconds must be at least 0"),
        (lambda: Policy("x", max_wait_seconds=float("nan")), "max_wait_seconds must be at least 0"),
        (lambda: Fleet(0, 1, 1), "num_replicas must be"),
        (lambda: Fleet(1, 1, -1), "cold_start_seconds must be"),
        (lambda: surge(1, 2, start=10, rise=10, hold=10, total=30), "total must be"),
        (lambda: commitment([], 0.5), "replicas must be at least one hour"),
        (lambda: commitment([1], 0), "price_ratio must be"),
    ],
)
def test_a_bad_argument_is_named(call: object, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        call()  # type: ignore[operator]
