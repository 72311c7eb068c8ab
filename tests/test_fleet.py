"""Fleets against single replicas, and against a queue that is worked off by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from lantern_lib.simulator import (
    EngineConfig,
    LeastLoaded,
    LongestPrefix,
    RoundRobin,
    Router,
    SessionAffinity,
    Status,
    StepModel,
    simulate,
    simulate_disaggregated,
    simulate_fleet,
)
from lantern_lib.workload import Exponential, Request, Workload, at_once, poisson

COST = StepModel(token_seconds=1e-3, pair_seconds=1e-6, weight_seconds=2e-2, cached_token_seconds=1e-5)
CONFIG = EngineConfig(COST, max_batch=8, prefill="chunked", token_budget=64, num_blocks=400, admission="blocks")


def work(count: int = 300, rate: float = 3.0) -> Workload:
    return poisson(count, rate, Exponential(200), Exponential(60), np.random.default_rng(21))


@pytest.mark.parametrize("router", [RoundRobin(), LeastLoaded(), SessionAffinity(), LongestPrefix(3)])
def test_a_fleet_of_one_is_a_replica(router: Router) -> None:
    alone, fleet = simulate(work(), CONFIG), simulate_fleet(work(), [CONFIG], router)
    for name in ("scheduled_seconds", "first_token_seconds", "last_token_seconds"):
        np.testing.assert_allclose(getattr(fleet, name), getattr(alone, name), rtol=1e-9)


def test_round_robin_deals_the_workload_out() -> None:
    whole = work()
    fleet = simulate_fleet(whole, [CONFIG] * 3, RoundRobin())
    for number in range(3):
        part = Workload(whole.arrival_seconds[number::3], whole.prompt_len[number::3], whole.output_len[number::3])
        np.testing.assert_allclose(fleet.last_token_seconds[number::3], simulate(part, CONFIG).last_token_seconds)
    assert fleet.replica.tolist() == [row % 3 for row in range(300)]


def test_the_least_loaded_is_the_one_with_the_shortest_queue() -> None:
    """Single servers: a request leaves its own service after the one before it; loads are counted by departures."""
    unit, count = 1e-3, 2000
    generator = np.random.default_rng(22)
    arrivals = np.cumsum(generator.exponential(1 / 5.0, count))
    service = generator.integers(50, 900, count)
    jobs = Workload(arrivals, service, np.ones(count, np.int64))
    config = EngineConfig(StepModel(token_seconds=unit), max_batch=1, token_budget=1)
    got = simulate_fleet(jobs, [config] * 3, LeastLoaded())
    departures: list[list[float]] = [[], [], []]
    chosen, ends = [], []
    for seconds, size in zip(arrivals, service, strict=True):
        loads = [sum(end > seconds for end in server[-200:]) for server in departures]
        server = departures[int(np.argmin(loads))]
        server.append(max(seconds, server[-1] if server else 0.0) + size * unit)
        chosen.append(int(np.argmin(loads)))
        ends.append(server[-1])
    assert got.replica.tolist() == chosen
    np.testing.assert_allclose(got.last_token_seconds, ends, rtol=1e-9)


def sessions() -> Workload:
    """Sixty sessions of six calls; each call repeats the session's prompt and adds four blocks."""
    generator = np.random.default_rng(23)
    rows = []
    for session in range(60):
        begin = float(generator.random()) * 100
        for call in range(6):
            names = tuple(session * 1000 + i for i in range(4 * (call + 1)))
            rows.append(Request(begin + 40 * call, 64 * (call + 1), 20, session=session, prefix_blocks=names))
    return Workload.from_requests(rows, block_size=16)


def test_affinity_and_prefixes_keep_a_session_where_its_cache_is() -> None:
    jobs, config = sessions(), replace(CONFIG, prefix_cache=True, num_blocks=2000)
    found = {}
    for name, router in {"turn": RoundRobin(), "home": SessionAffinity(), "prefix": LongestPrefix(5)}.items():
        result = simulate_fleet(jobs, [config] * 4, router)
        homes = [len(set(result.replica[jobs.session == s])) for s in range(60)]
        found[name] = result.cached_len.sum() / result.prompt_len.sum()
        assert result.finished.all()
        assert (max(homes) == 1) == (name != "turn")
    # Nothing is evicted at home: of a prompt of n + 1 parts, n were there, and 15 of 21 parts are repeated.
    assert found["home"] == pytest.approx(15 / 21)
    assert found["prefix"] == pytest.approx(15 / 21)
    assert found["turn"] < found["home"] - 0.1


def test_a_long_queue_outweighs_a_cached_prefix() -> None:
    rows = [Request(0.001 * i, 64, 50, prefix_blocks=(1, 2, 3, 4)) for i in range(40)]
    jobs = Workload.from_requests(rows, block_size=16)
    config = replace(CONFIG, prefix_cache=True, max_batch=2)
    patient = simulate_fleet(jobs, [config] * 2, LongestPrefix(1000))
    hasty = simulate_fleet(jobs, [config] * 2, LongestPrefix(2))
    assert set(patient.replica[1:]) == {patient.replica[1]}
    assert set(hasty.replica) == {0, 1}
    assert hasty.end_seconds < 0.7 * patient.end_seconds


def test_two_pools_are_a_prefill_and_a_decode_with_a_transfer_between() -> None:
    """One request: prefill alone, the transfer, then decode steps without any prompt."""
    one = Workload.from_requests([Request(2.0, 500, 30)])
    pool = [EngineConfig(COST, max_batch=8)]
    got = simulate_disaggregated(one, pool, pool, transfer_token_seconds=1e-4, transfer_seconds=0.01)
    prefill = 500 * 1e-3 + 500 * 501 / 2 * 1e-6
    decodes = sum(max(1e-3 + (500 + i) * 1e-6, 2e-2 + (500 + i) * 1e-5) for i in range(1, 30))
    assert got.first_token_seconds[0] == pytest.approx(2 + prefill)
    assert got.last_token_seconds[0] == pytest.approx(2 + prefill + 0.05 + 0.01 + decodes)


def test_no_prompt_interrupts_the_decode_pool() -> None:
    jobs, config = work(rate=6.0), EngineConfig(COST, max_batch=64, num_blocks=4000)
    apart = simulate_disaggregated(jobs, [config] * 2, [config] * 2)
    mixed = simulate_fleet(jobs, [config] * 4, LeastLoaded())
    longest = []
    for run in (apart, mixed):
        several = run.output_len > 10
        spent = (run.last_token_seconds - run.first_token_seconds)[several]
        longest.append((spent / (run.output_len[several] - 1)).max())
    assert apart.finished.all()
    assert longest[0] < 0.7 * longest[1]


def test_the_decode_pool_can_be_too_small_for_a_request() -> None:
    jobs = Workload.from_requests([Request(0.0, 100, 1), Request(0.0, 100, 900)])
    got = simulate_disaggregated(jobs, [EngineConfig(COST)], [EngineConfig(COST, num_blocks=50)])
    assert got.status.tolist() == [Status.FINISHED, Status.REJECTED]
    assert "the whole machine has 800" in got.reason(1)
    assert got.reason(0) == ""


def test_of_unequal_replicas_a_refusal_names_one_that_was_too_small() -> None:
    """100 tokens of prompt and 800 of answer need 900; the small replica has 50 blocks of 16."""
    jobs = Workload.from_requests([Request(0.0, 100, 800)])
    for configs in ([50, 4000, None], [50, None], [50]):
        got = simulate_fleet(jobs, [EngineConfig(COST, num_blocks=blocks) for blocks in configs], RoundRobin())
        assert got.status.tolist() == [Status.REJECTED]
        assert got.reason(0).startswith("needs 900 tokens of cache, and the whole machine has 800")


def test_a_fleet_needs_a_replica() -> None:
    with pytest.raises(ValueError, match="configs must hold at least one replica"):
        simulate_fleet(at_once(1, 1, 1), [], RoundRobin())
