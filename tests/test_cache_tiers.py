"""Tiers, places and routing, against hand sums, brute force and a simulated pool."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest

from lantern_lib import H100, LANTERN_70B, Replica, kv_cache, step
from lantern_lib import cache_tiers as tiers
from lantern_lib.cache_tiers import Candidate, Place, Tier
from lantern_lib.quantization import with_storage

FOUR = Replica(H100, tp_size=4)
SIZE = 34_500 * 2 * 80 * 8 * 128 * 2  # tokens, key and value, layers, heads, head size, bytes
PLACES = [Place("keep", 0.5, 0.0), Place("near", 0.1, 0.4), Place("far", 0.01, 1.1), Place("drop", 0.0, 3.0)]


def test_reload_and_recompute_by_hand() -> None:
    """Matrices of the multiplied weights and causal attention over half the square, at half of four peaks."""
    both = tiers.reload_or_recompute(LANTERN_70B, FOUR, 34_500, 25e9)
    assert both.size_bytes == SIZE
    assert both.reload_seconds == SIZE / 25e9
    flops = 34_500 * 139.0e9 + 4 * 80 * 8192 * 34_500**2 / 2
    assert both.recompute_seconds == pytest.approx(flops / (4 * 989e12 * 0.5), rel=0.12)  # all-reduces come on top
    assert both.speedup * both.reload_seconds == pytest.approx(both.recompute_seconds)


def test_at_the_break_even_rate_both_take_as_long() -> None:
    rate = tiers.reload_or_recompute(LANTERN_70B, FOUR, 34_500, 25e9).break_even_bandwidth
    assert tiers.reload_or_recompute(LANTERN_70B, FOUR, 34_500, rate).speedup == pytest.approx(1)
    assert tiers.reload_or_recompute(LANTERN_70B, FOUR, 34_500, rate, latency_seconds=0.1).speedup < 1


def test_half_the_bytes_double_the_gain_and_leave_the_recompute() -> None:
    small = with_storage(LANTERN_70B, weight_bits=8, kv_bits=8)
    wide, thin = (tiers.reload_or_recompute(model, FOUR, 34_500, 25e9) for model in (LANTERN_70B, small))
    assert thin.recompute_seconds == wide.recompute_seconds
    assert thin.speedup == pytest.approx(2 * wide.speedup)
    assert (
        kv_cache.memory_budget(small, FOUR).conversations(34_500) == int((288e9 - 70.553706496e9) // (SIZE / 2)) == 38
    )


def test_a_link_at_its_rate_of_returns_is_busy_all_the_time() -> None:
    """Counted: as many reloads, one after the other, as fill an hour."""
    link = Tier("CPU memory", 1e12, 25e9)
    done, now = 0, 0.0
    while now + link.reload_seconds(SIZE) <= 3600:
        now += link.reload_seconds(SIZE)
        done += 1
    assert done == int(3600 * link.reloads_per_second(SIZE))
    assert link.sessions(SIZE) == len(range(SIZE, int(1e12) + 1, SIZE))


@pytest.mark.parametrize("context", [1, 2000, 34_500, 64_500])
def test_the_price_of_keeping_is_the_share_of_the_pool(context: int) -> None:
    keep, *below, drop = tiers.places(LANTERN_70B, FOUR, context)
    pool = 288e9 - 2 * 70_553_706_496
    assert keep.holding_rate == pytest.approx(context * 327_680 / pool)
    assert drop.cost(1e6) == step.prefill_step(LANTERN_70B, FOUR, context).total_seconds
    for place, tier in zip(below, tiers.EXAMPLE_TIERS, strict=True):
        assert place.return_seconds == tier.latency_seconds + context * 327_680 / tier.bandwidth
        assert place.return_cost == pytest.approx(place.return_seconds * keep.holding_rate)


def test_a_price_on_the_users_wait_makes_every_return_dearer() -> None:
    free, priced = (tiers.places(LANTERN_70B, FOUR, 34_500, wait_price=price) for price in (0.0, 2.0))
    for before, after in zip(free, priced, strict=True):
        assert after.return_cost - before.return_cost == pytest.approx(2 * after.return_seconds)


def test_the_cheapest_place_is_that_of_a_sum_over_all_waits() -> None:
    rng = np.random.default_rng(3)
    chosen = set()
    for _ in range(200):
        waits = list(rng.exponential(10 ** rng.uniform(-1, 3), size=7))
        sums = {p.name: sum(p.holding_rate * wait + p.return_cost for wait in waits) for p in PLACES}
        best = tiers.cheapest_place(PLACES, waits).name
        assert sums[best] == min(sums.values())
        chosen.add(best)
    assert chosen == {"keep", "near", "far", "drop"}


def test_before_the_break_even_staying_is_cheaper_and_after_it_moving() -> None:
    for stay, move in ((a, b) for a in PLACES for b in PLACES if a.holding_rate > b.holding_rate):
        turn = tiers.break_even_seconds(stay, move)
        assert stay.cost(0.99 * turn) < move.cost(0.99 * turn)
        assert stay.cost(1.01 * turn) > move.cost(1.01 * turn)
    assert tiers.break_even_seconds(Place("a", 1, 5), Place("b", 0, 5)) == 0
    assert math.isinf(tiers.break_even_seconds(Place("a", 0, 0), Place("b", 0, 1)))


@pytest.mark.parametrize("wait", [0.0, 1.0, 5.9, 6.0, 6.1, 7.0, 50.0, 1e5])
def test_a_limit_at_the_break_even_costs_at_most_twice_the_best(wait: float) -> None:
    keep, drop = PLACES[0], PLACES[3]
    limit = tiers.break_even_seconds(keep, drop)
    cost = tiers.expected_cost(keep, [wait], limit, drop)
    assert cost <= 2 * min(keep.cost(wait), drop.cost(wait)) + 1e-12
    assert cost == (keep.cost(wait) if wait <= limit else keep.cost(limit) + drop.return_cost)


def simulated_sessions(pool: int, active: float, waiting: float, back: float, sessions: int) -> float:
    """Run sessions in turn through a pool of seats; return the share of time that the seats are busy."""
    free = [0.0] * pool
    ready = [0.0] * sessions
    busy, horizon = 0.0, 4000.0
    while True:
        who = min(range(sessions), key=ready.__getitem__)
        seat = min(range(pool), key=free.__getitem__)
        start = max(ready[who], free[seat])
        if start > horizon:
            return busy / (pool * horizon)
        free[seat] = start + back + active
        ready[who] = free[seat] + waiting - back
        busy += min(active + back, horizon - start)


@pytest.mark.parametrize("waiting", [3.0, 30.0])
def test_so_many_open_sessions_just_fill_the_pool(waiting: float) -> None:
    most = tiers.open_sessions(12, 8.5, waiting, 0.45)
    assert simulated_sessions(12, 8.5, waiting, 0.45, math.ceil(most)) > 0.98
    assert simulated_sessions(12, 8.5, waiting, 0.45, round(0.8 * most)) < 0.85
    assert tiers.open_sessions(12, 8.5, 0.0, 0.45) == 12


def test_the_router_is_best_by_brute_force_over_matches_and_queues() -> None:
    """The rule in words: the longest match, unless its queue is longer by more than the match saves."""

    def prefill(cached: int) -> float:
        return step.prefill_step(LANTERN_70B, FOUR, 10_000 - cached, cached).total_seconds

    for cached, queues in product([(0, 4000, 9000), (0, 0, 500)], product([0.0, 0.2, 0.5, 3.0], repeat=3)):
        fleet = [Candidate(str(n), c, q) for n, (c, q) in enumerate(zip(cached, queues, strict=True))]
        got = tiers.route(LANTERN_70B, FOUR, 10_000, fleet)
        assert got.queue_seconds + prefill(got.num_cached_tokens) == min(
            each.queue_seconds + prefill(each.num_cached_tokens) for each in fleet
        )
        longest = max(fleet, key=lambda each: (each.num_cached_tokens, -each.queue_seconds))
        loses = any(
            longest.queue_seconds - other.queue_seconds
            > prefill(other.num_cached_tokens) - prefill(longest.num_cached_tokens)
            for other in fleet
        )
        assert (got is not longest) == loses


def test_of_equals_the_longer_match_and_a_full_match_computes_one_token() -> None:
    one = tiers.first_token_seconds(LANTERN_70B, FOUR, 100, Candidate("all", 100, 0.0))
    assert one == step.prefill_step(LANTERN_70B, FOUR, 1, 99).total_seconds
    twins = [Candidate("first", 10, 1.0), Candidate("second", 10, 1.0)]
    assert tiers.route(LANTERN_70B, FOUR, 100, twins).name == "first"


def test_bad_input_is_named() -> None:
    with pytest.raises(ValueError, match="^num_cached_tokens must be at most prompt_len = 10"):
        tiers.first_token_seconds(LANTERN_70B, FOUR, 10, Candidate("a", 11, 0.0))
    with pytest.raises(ValueError, match="^candidates must hold"):
        tiers.route(LANTERN_70B, FOUR, 10, [])
    with pytest.raises(ValueError, match="^waits must hold"):
        tiers.expected_cost(PLACES[0], [])
    with pytest.raises(ValueError, match="^after must be a Place"):
        tiers.expected_cost(PLACES[0], [1.0], 5.0)
    with pytest.raises(ValueError, match="^limit_seconds must be"):
        tiers.expected_cost(PLACES[0], [1.0], -math.inf, PLACES[3])
    with pytest.raises(ValueError, match="^options must hold"):
        tiers.cheapest_place([], [1.0])
    with pytest.raises(ValueError, match="^bandwidth must be"):
        Tier("x", 1.0, 0.0)
    with pytest.raises(ValueError, match="^holding_rate must be"):
        Place("x", -1.0, 0.0)
    with pytest.raises(ValueError, match="^batch_size must be at most 0"):
        tiers.places(LANTERN_70B, FOUR, 10_000_000)
