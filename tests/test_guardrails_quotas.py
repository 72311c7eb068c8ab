"""Token quotas: what a tenant can spend is bounded, whatever runs at once."""

from __future__ import annotations

import math
import threading

import numpy as np
import pytest

from lantern_lib.fairness import TokenWeights
from lantern_lib.guardrails.quotas import Refusal, Reservation, TokenQuota

WEIGHTS = TokenWeights(uncached_input=1, cached_input=0.1, output=5)


def test_a_charge_is_the_sum_of_its_tokens_one_by_one() -> None:
    parts = [1.0] * 500 + [0.1] * 1500 + [5.0] * 300
    assert WEIGHTS.charge(500, 1500, 300) == pytest.approx(math.fsum(parts))


def test_reserve_and_settle_by_hand() -> None:
    quota = TokenQuota(1000, 10, WEIGHTS)
    first = quota.reserve("ana", 300, 100, now=0)  # 300 + 500
    assert isinstance(first, Reservation)
    assert quota.level("ana", now=0) == 200
    assert quota.reserve("ana", 300, 1, now=1) == Refusal("ana", pytest.approx(9.5))  # 305 wanted, 210 there
    assert quota.settle(first, cached_input=200, output=20, now=1) == 220  # 100 + 20 + 100
    assert quota.level("ana", now=1) == 790
    assert quota.level("ana", now=100) == 1000


def test_after_the_stated_wait_it_fits_and_just_before_it_does_not() -> None:
    quota = TokenQuota(1000, 10, WEIGHTS)
    assert isinstance(quota.reserve("ana", 900, 1, now=0), Reservation)
    refused = quota.reserve("ana", 500, 1, now=0)
    assert isinstance(refused, Refusal)
    assert isinstance(quota.reserve("ana", 500, 1, now=refused.retry_after_seconds - 0.01), Refusal)
    assert isinstance(quota.reserve("ana", 500, 1, now=refused.retry_after_seconds + 1e-9), Reservation)


def test_what_can_never_fit_is_told_so_and_tenants_do_not_share() -> None:
    quota = TokenQuota(1000, 10, WEIGHTS)
    assert quota.reserve("ana", 131_072, 1, now=0) == Refusal("ana", math.inf)
    assert isinstance(quota.reserve("ana", 500, 100, now=0), Reservation)
    assert quota.level("ben", now=0) == 1000


def test_charging_only_at_the_end_would_overspend_and_reserving_does_not() -> None:
    """Twenty requests start within one second on a quota for two; each uses all that it may."""
    quota = TokenQuota(2000, 1, WEIGHTS)
    granted = [quota.reserve("ana", 500, 100, now=0.05 * i) for i in range(20)]
    running = [g for g in granted if isinstance(g, Reservation)]
    spent = sum(quota.settle(g, 0, 100, now=10) for g in running)
    assert len(running) == 2
    assert spent <= 2000 + 1 * 10
    # A gate that only looks whether something is left, and charges at the end, lets all twenty in.
    level, let_in = 2000.0, 0
    for _ in range(20):
        let_in += level > 0
    assert let_in * WEIGHTS.charge(500, 0, 100) == 20_000


def test_no_interval_spends_more_than_capacity_refill_and_what_was_open() -> None:
    rng = np.random.default_rng(8)
    quota, now = TokenQuota(5000, 50, WEIGHTS), 0.0
    charges: list[tuple[float, float]] = []
    running: list[tuple[float, Reservation]] = []
    opened: list[tuple[float, float]] = [(0.0, 0.0)]
    for _ in range(5000):
        now += float(rng.exponential(0.5))
        if running and rng.random() < 0.5:
            begun, one = running.pop(int(rng.integers(len(running))))
            used = quota.settle(one, int(rng.integers(one.prompt_len + 1)), int(rng.integers(one.max_tokens + 1)), now)
            charges.append((begun, used))
        else:
            opened.append((now, sum(one.amount for _, one in running)))
            found = quota.reserve("ana", int(rng.integers(1, 1500)), int(rng.integers(1, 200)), now)
            if isinstance(found, Reservation):
                running.append((now, found))
    begun, used = np.array(sorted(charges)).T
    for start, reserved in opened[::5]:
        later = begun >= start
        allowed = 5000 + reserved + 50 * (begun[later] - start)
        assert np.all(np.cumsum(used[later]) <= allowed + 1e-6)
    assert np.sum(used) > 0.5 * 50 * now  # the quota was the limit, not the demand


def test_what_is_given_back_may_be_spent_within_the_same_moment() -> None:
    """The bound has to count open reserves: here ten thousand are spent at once on a capacity of five thousand."""
    quota = TokenQuota(5000, 50, WEIGHTS)
    first = quota.reserve("ana", 4995, 1, now=0)
    second = quota.reserve("ana", 4995, 1, now=100)
    assert isinstance(first, Reservation)
    assert isinstance(second, Reservation)
    quota.settle(first, 4995, 0, now=100)
    assert quota.level("ana", now=100) == pytest.approx(5000 - 499.5)


def test_threads_cannot_overspend() -> None:
    quota, start = TokenQuota(10_000, 1e-9, WEIGHTS), threading.Barrier(16)
    granted: list[Reservation] = []

    def work() -> None:
        start.wait()
        for _ in range(50):
            found = quota.reserve("ana", 75, 5, now=0)  # 100 each
            if isinstance(found, Reservation):
                granted.append(found)

    threads = [threading.Thread(target=work) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(granted) == 100
    assert len({g.number for g in granted}) == 100
    assert quota.level("ana", now=0) == pytest.approx(0)


def test_a_clock_that_runs_backwards_gives_nothing() -> None:
    quota = TokenQuota(1000, 10, WEIGHTS)
    quota.reserve("ana", 900, 10, now=100)
    assert quota.level("ana", now=50) == 50
    assert quota.level("ana", now=100) == 50
    assert quota.level("ana", now=110) == 150


def test_mistakes_are_named() -> None:
    quota = TokenQuota(1000, 10, WEIGHTS)
    one = quota.reserve("ana", 100, 10, now=0)
    assert isinstance(one, Reservation)
    with pytest.raises(ValueError, match="^cached_input and output"):
        quota.settle(one, 0, 11, now=0)
    with pytest.raises(ValueError, match="^cached_input and output"):
        quota.settle(one, 101, 0, now=0)
    quota.settle(one, 0, 0, now=0)
    with pytest.raises(ValueError, match="^reservation must be open"):
        quota.settle(one, 0, 0, now=0)
    with pytest.raises(ValueError, match="^max_tokens"):
        quota.reserve("ana", 100, 0, now=0)
    with pytest.raises(ValueError, match="^cached_input must be at most"):
        TokenWeights(1, 2, 5)
    with pytest.raises(ValueError, match="^capacity_tokens"):
        TokenQuota(0, 1, WEIGHTS)
