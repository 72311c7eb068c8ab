"""Closed forms against a simulation of single requests, against sums over states, and at their limits."""

from __future__ import annotations

import heapq
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lantern_lib.queueing import MD1, MM1, MMc, closed_loop, erlang_c, mean_number, priority_mean_seconds, utilization

REQUESTS = 300_000


def simulate(gaps: np.ndarray, services: np.ndarray, num_servers: int) -> np.ndarray:
    """Send requests one by one to the server that is free first; return their waits."""
    free, now, waits = [0.0] * num_servers, 0.0, []
    for gap, service in zip(gaps.tolist(), services.tolist(), strict=True):
        now += gap
        start = max(now, heapq.heappop(free))
        waits.append(start - now)
        heapq.heappush(free, start + service)
    return np.array(waits[REQUESTS // 20 :])  # the empty start is not steady state


def samples(rate: float, *, fixed: bool = False) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(20261129)
    gaps = rng.exponential(1 / rate, REQUESTS)
    return gaps, np.ones(REQUESTS) if fixed else rng.exponential(1.0, REQUESTS)


# The mean wait of n requests in a row has the variance rho (2 + 5 rho − 4 rho² + rho³) / (1 − rho)^4 / n (Daley 1968):
# at 0.8 a standard error of 2.1 percent. Twice that, with fixed draws; a lost factor or a wrong rate misses by 20.
NEAR = 0.04


@pytest.mark.parametrize("rate", [0.5, 0.8])
def test_mm1_agrees_with_a_simulation(rate: float) -> None:
    gaps, services = samples(rate)
    waits, queue = simulate(gaps, services, 1), MM1(rate, 1)
    assert waits.mean() == pytest.approx(queue.mean_wait_seconds, rel=NEAR)
    times = waits + services[REQUESTS // 20 :]
    assert times.mean() == pytest.approx(queue.mean_time_seconds, rel=NEAR)
    assert np.quantile(times, 0.95) == pytest.approx(queue.time_percentile(0.95), rel=NEAR)
    assert np.quantile(waits, 0.95) == pytest.approx(queue.wait_percentile(0.95), rel=NEAR)
    assert (times <= 5).mean() == pytest.approx(queue.share_within(5), rel=NEAR)


@pytest.mark.parametrize("rate", [0.5, 0.8])
def test_md1_agrees_with_a_simulation(rate: float) -> None:
    waits = simulate(*samples(rate, fixed=True), 1)
    assert waits.mean() == pytest.approx(MD1(rate, 1).mean_wait_seconds, rel=NEAR)


@pytest.mark.parametrize(("servers", "rate"), [(2, 1.6), (8, 6.4)])
def test_mmc_agrees_with_a_simulation(servers: int, rate: float) -> None:
    waits, queue = simulate(*samples(rate), servers), MMc(rate, 1, servers)
    assert waits.mean() == pytest.approx(queue.mean_wait_seconds, rel=NEAR)
    assert (waits > 0).mean() == pytest.approx(queue.wait_probability, rel=NEAR)
    assert np.quantile(waits, 0.95) == pytest.approx(queue.wait_percentile(0.95), rel=NEAR)


@given(st.integers(1, 12), st.integers(1, 99))
def test_erlang_c_is_the_sum_over_states(servers: int, percent: int) -> None:
    load = Fraction(servers * percent, 100)
    full = load**servers / math.factorial(servers) / (1 - load / servers)
    chance = full / (sum(load**k / math.factorial(k) for k in range(servers)) + full)
    assert erlang_c(float(load), servers) == pytest.approx(float(chance), rel=1e-9)


@given(st.floats(0.01, 0.98))
def test_one_server_is_mm1_and_equal_times_halve_the_wait(busy: float) -> None:
    one, several, equal = MM1(busy, 1), MMc(busy, 1, 1), MD1(busy, 1)
    assert several.mean_time_seconds == pytest.approx(one.mean_time_seconds, rel=1e-9)
    assert several.wait_percentile(0.99) == pytest.approx(one.wait_percentile(0.99), rel=1e-9, abs=1e-12)
    assert equal.mean_wait_seconds == pytest.approx(one.mean_wait_seconds / 2, rel=1e-9)


@pytest.mark.parametrize(("busy", "times"), [(0.5, 2), (0.8, 5), (0.9, 10), (0.95, 20)])
def test_the_curve_bends_where_it_is_printed(busy: float, times: float) -> None:
    assert MM1(busy * 4, 4).mean_time_seconds * 4 == pytest.approx(times)


@given(st.floats(0.01, 0.98))
def test_mean_number_is_the_sum_over_states(busy: float) -> None:
    states = sum(n * (1 - busy) * busy**n for n in range(4000))
    assert MM1(busy, 1).mean_number == pytest.approx(states, rel=1e-6)


def test_an_idle_system_has_no_wait_and_a_percentile_can_be_zero() -> None:
    assert MM1(1e-9, 1).mean_time_seconds == pytest.approx(1)
    assert MM1(0.5, 1).wait_percentile(0.4) == 0
    assert MMc(0.5, 1, 8).wait_percentile(0.95) == 0


@given(st.integers(1, 40), st.floats(0.2, 5), st.floats(0, 20))
def test_a_closed_loop_is_the_sum_over_its_states(users: int, rate: float, think: float) -> None:
    """Chance of n requests at the server, from the balance of arrivals (N − n)/think and services."""
    if think < 0.05:
        assert closed_loop(users, rate).throughput == pytest.approx(rate)
        assert closed_loop(users, rate).mean_time_seconds == pytest.approx(users / rate)
        return
    weights = [1.0]
    for n in range(users):
        weights.append(weights[-1] * (users - n) / think / rate)
    throughput = rate * (1 - weights[0] / sum(weights))
    got = closed_loop(users, rate, think)
    assert got.throughput == pytest.approx(throughput, rel=1e-6)
    assert got.mean_time_seconds == pytest.approx(users / throughput - think, rel=1e-5, abs=1e-6)


@pytest.mark.parametrize("rates", [(0.3, 0.3), (0.1, 0.5), (0.5, 0.2)])
def test_priorities_agree_with_the_balance_of_all_states(rates: tuple[float, float]) -> None:
    """Steady state of the pair (important, other) in the system, solved as a linear system up to 45 of each."""
    most = 45
    index = {(i, j): i * most + j for i in range(most) for j in range(most)}
    flow = np.zeros((most * most, most * most))
    for (i, j), here in index.items():
        moves = [((i + 1, j), rates[0]), ((i, j + 1), rates[1])]
        moves.append(((i - 1, j), 1.0) if i else ((i, j - 1), 1.0))
        for there, rate in moves:
            if there in index:
                flow[index[there], here] += rate
                flow[here, here] -= rate
    flow[-1] = 1
    chances = np.linalg.solve(flow, np.eye(most * most)[-1]).reshape(most, most)
    numbers = (chances.sum(1) @ np.arange(most), chances.sum(0) @ np.arange(most))
    got = priority_mean_seconds(rates, 1)
    assert got == pytest.approx([n / rate for n, rate in zip(numbers, rates, strict=True)], rel=0.01)


@given(st.lists(st.floats(0.01, 0.19), min_size=1, max_size=5), st.floats(1, 9))
def test_priority_moves_waiting_and_removes_none(rates: list[float], service_rate: float) -> None:
    times = priority_mean_seconds(rates, service_rate)
    inside = sum(rate * seconds for rate, seconds in zip(rates, times, strict=True))
    assert inside == pytest.approx(MM1(sum(rates), service_rate).mean_number)
    assert list(times) == sorted(times)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: priority_mean_seconds([], 1), "^arrival_rates must be"),
        (lambda: priority_mean_seconds([0.6, 0.4], 1), "^arrival_rate must be below"),
        (lambda: priority_mean_seconds([0.6, 0], 1), "^arrival_rates must be"),
        (lambda: MM1(1, 1), "^arrival_rate must be below"),
        (lambda: MD1(2, 1), "^arrival_rate must be below"),
        (lambda: MMc(8, 1, 8), "^arrival_rate must be below"),
        (lambda: MMc(1, 1, 0), "^num_servers must be"),
        (lambda: MM1(0, 1), "^arrival_rate must be a finite"),
        (lambda: MM1(0.5, 1).time_percentile(1), "^q must be"),
        (lambda: MM1(0.5, 1).share_within(-1), "^seconds must be"),
        (lambda: utilization(1, math.nan), "^service_rate must be"),
        (lambda: mean_number(1, -1), "^mean_seconds must be"),
        (lambda: closed_loop(0, 1), "^num_users must be"),
        (lambda: closed_loop(1, 1, -1), "^think_seconds must be"),
    ],
)
def test_bad_input_is_named(call: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()  # type: ignore[operator]
