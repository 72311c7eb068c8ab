"""Users who wait, sessions that go on, and the blocks they share."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from lantern_lib.queueing import closed_loop
from lantern_lib.simulator import ClosedLoop, EngineConfig, SessionLoop, StepModel, simulate, simulate_by_steps
from lantern_lib.simulator.pool import Pool
from lantern_lib.simulator.segments import SegmentPool, Segments
from lantern_lib.workload import Call, Exponential, Request, Session, Workload, evenly, session_rows

UNIT = 1e-4
SERVER = EngineConfig(StepModel(token_seconds=UNIT), max_batch=1, token_budget=1)


def test_a_closed_loop_has_the_throughput_of_its_model() -> None:
    """Exponential service and thinking: the machine-repair model, which the library has as a closed form."""
    count, generator = 60_000, np.random.default_rng(41)
    work = evenly(count, 1.0, Exponential(0.5 / UNIT), 1, generator)
    users, think = 4, 2.0
    result = simulate(work, SERVER, source=ClosedLoop(work, users, generator.exponential(think, count)))
    expected = closed_loop(users, service_rate=2.0, think_seconds=think)
    assert count / result.end_seconds == pytest.approx(expected.throughput, rel=0.02)
    stay = (result.last_token_seconds - result.arrival_seconds).mean()
    assert stay == pytest.approx(expected.mean_time_seconds, rel=0.03)


def agent(number: int) -> Session:
    """Four calls; each repeats the prompt before it and adds 256 tokens."""
    calls = [Call(512, 20)]
    calls += [Call(512 + 256 * i, 20, gap_seconds=30.0 + number, reused_len=512 + 256 * (i - 1)) for i in (1, 2, 3)]
    return Session(tuple(calls), start_seconds=float(number))


COST = StepModel(token_seconds=1e-3, weight_seconds=2e-2, cached_token_seconds=1e-6)


def test_a_call_waits_for_the_answer_and_the_gap() -> None:
    work, gaps = session_rows([agent(n) for n in range(5)], 16)
    config = EngineConfig(COST, num_blocks=4000, prefix_cache=True)
    result = simulate(work, config, source=SessionLoop(work, gaps))
    for session in range(5):
        rows = np.flatnonzero(work.session == session)
        assert result.arrival_seconds[rows[0]] == session
        waited = result.arrival_seconds[rows[1:]] - result.last_token_seconds[rows[:-1]]
        assert waited == pytest.approx(30.0 + session)
        # With room for everything, a call finds all that it repeats.
        assert result.cached_len[rows].tolist() == [0, 512, 768, 1024]


def test_a_small_cache_forgets_sessions_in_their_gaps() -> None:
    work, gaps = session_rows([agent(n) for n in range(5)], 16)
    config = EngineConfig(COST, num_blocks=100, prefix_cache=True)
    result = simulate(work, config, source=SessionLoop(work, gaps))
    assert result.cached_len.sum() < 0.5 * 5 * (512 + 768 + 1024)
    assert result.finished.all()


def test_the_host_keeps_what_the_pool_cannot() -> None:
    """Everything evicted is loaded again: as many tokens are found as with endless memory, for the price of loading."""
    work, gaps = session_rows([agent(n) for n in range(5)], 16)
    config = EngineConfig(COST, num_blocks=100, prefix_cache=True, host_blocks=4000, host_block_seconds=1e-4)
    tiered, endless, single = (
        simulate(work, each, source=SessionLoop(work, gaps))
        for each in (config, replace(config, num_blocks=4000), replace(config, host_blocks=0))
    )
    assert tiered.cached_len.tolist() == endless.cached_len.tolist()
    assert endless.end_seconds < tiered.end_seconds < single.end_seconds


def test_a_source_says_what_it_lacks() -> None:
    work = evenly(3, 1.0, 5, 5)
    with pytest.raises(ValueError, match="gap_seconds must have one entry for each of 3"):
        SessionLoop(work, np.zeros(2))
    with pytest.raises(ValueError, match="num_users"):
        ClosedLoop(work, 0)
    with pytest.raises(ValueError, match="think_seconds"):
        ClosedLoop(work, 1, -1.0)
    with pytest.raises(ValueError, match="sessions must hold"):
        session_rows([], 16)


@pytest.mark.parametrize("host_blocks", [0, 15, 300])
def test_segments_count_what_blocks_count(host_blocks: int) -> None:
    """The same requests come and go in a pool of single blocks and in a pool of segments."""
    generator = np.random.default_rng(42)
    rows = []
    for row in range(60):
        family, shared, own = (int(n) for n in generator.integers(0, (3, 20, 20)))
        names = tuple(family * 100 + i for i in range(shared)) + tuple(1000 * (row + 1) + i for i in range(own))
        rows.append(Request(0.0, max(1, 4 * len(names) + int(generator.integers(0, 4))), 1, prefix_blocks=names))
    work = Workload.from_requests(rows, block_size=4)
    segments = Segments(work)
    assert sum(segments.sizes) == len(set(work.block_ids))
    singles, runs = Pool(90, host_blocks), SegmentPool(90, segments.sizes, host_blocks)
    inside: dict[int, tuple[object, object, int]] = {}
    admitted = found = 0
    for _ in range(8000):
        row = int(generator.integers(0, 60))
        if row in inside:
            names, held, private = inside.pop(row)
            computed = int(generator.integers(0, 30)) if generator.random() < 0.2 else None
            # Only one that nobody else reads may be forgotten half-way, as in the engine.
            if computed is not None and any(singles.holders[n] > 1 for n in names):  # type: ignore[attr-defined]
                computed = None
            singles.release(names, private, computed)  # type: ignore[arg-type]
            runs.release(held, private, computed)  # type: ignore[arg-type]
        else:
            names = list(work[row].prefix_blocks)
            total = -(-(int(work.prompt_len[row]) + 2) // 4)
            most = (int(work.prompt_len[row]) - 1) // 4
            one, other = singles.admit(total, names, most), runs.admit(total, segments.of(row), most)
            assert (one is None) == (other is None)
            if one is not None and other is not None:
                assert (one[0], one[1], len(one[2])) == (other[0], other[1], other[3])
                inside[row] = (one[2], other[2], total - other[3])
                admitted += 1
                found += one[0] + one[1]
        assert singles.available == runs.available
        assert (len(singles.idle), len(singles.host)) == (runs.num_idle, runs.num_host)
    assert admitted > 500
    assert found > 500


def test_a_name_that_follows_two_others_is_refused() -> None:
    rows = [Request(0.0, 40, 1, prefix_blocks=(1, 3)), Request(0.0, 40, 1, prefix_blocks=(2, 3))]
    work = Workload.from_requests(rows, block_size=4)
    with pytest.raises(ValueError, match=r"block_ids .* row 0"):
        simulate(work, EngineConfig(COST, num_blocks=90, block_size=4, prefix_cache=True))


def test_memory_is_that_of_the_columns() -> None:
    """Nothing is kept for a request that is over: the peak beside the columns does not grow with their length."""
    import tracemalloc

    config = replace(SERVER, cost=StepModel(weight_seconds=0.1), max_batch=8, prefill="chunked", token_budget=8)
    peaks = []
    for count in (2_000, 8_000):
        work = evenly(count, 4.0, 3, 5)
        tracemalloc.start()
        simulate(work, config)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    columns = 8 * 9 + 8 * 1 + 1  # nine columns of eight bytes, the arrival times again, a byte for the status
    assert peaks[1] - peaks[0] < 1.3 * columns * 6_000


def test_sessions_agree_with_the_loop_of_steps() -> None:
    work, gaps = session_rows([agent(n) for n in range(8)], 16)
    config = EngineConfig(COST, num_blocks=200, prefix_cache=True, admission="blocks", prefill="chunked", max_batch=16)
    fast = simulate(work, config, source=SessionLoop(work, gaps))
    slow = simulate_by_steps(work, config, source=SessionLoop(work, gaps))
    np.testing.assert_allclose(fast.last_token_seconds, slow.last_token_seconds, rtol=1e-9)
    assert fast.cached_len.tolist() == slow.cached_len.tolist()
