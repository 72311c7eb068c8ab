"""The engine in leaps against the loop of steps, against queueing theory, and against its own books."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest

from lantern_lib.queueing import MD1, MM1
from lantern_lib.simulator import (
    ClosedLoop,
    Engine,
    EngineConfig,
    Result,
    SessionLoop,
    Source,
    Status,
    StepModel,
    TooManyEventsError,
    simulate,
    simulate_by_steps,
)
from lantern_lib.simulator.plain import is_plain
from lantern_lib.workload import Request, Workload, at_once, evenly, poisson

COUNTS = ("status", "cached_len", "num_preemptions", "replica")
TIMES = ("arrival_seconds", "scheduled_seconds", "first_token_seconds", "last_token_seconds")


@dataclass(frozen=True)
class Case:
    """A random workload with random settings."""

    work: Workload
    config: EngineConfig
    loop: str
    pauses: np.ndarray[Any, np.dtype[np.float64]]
    horizon: float

    def source(self) -> Source | None:
        """A new source for each run, since a run uses it up."""
        if self.loop == "closed":
            return ClosedLoop(self.work, 1 + len(self.work) // 7, self.pauses)
        if self.loop == "sessions":
            return SessionLoop(self.work, self.pauses)
        return None


def random_work(generator: np.random.Generator, capacity: int, block_size: int, named: bool) -> Workload:
    count = int(generator.integers(1, 50))
    share = generator.choice([0.1, 0.3, 0.7], 2)
    prompts, outputs = (generator.integers(1, max(2, int(capacity * s)), count) for s in share)
    names: list[int] = []
    starts = [0]
    for row, blocks in enumerate(prompts // block_size):
        family, shared = int(generator.integers(0, 4)), int(generator.integers(0, blocks + 1))
        names += [family * 1000 + i for i in range(shared)]
        names += [10_000 * (row + 1) + i for i in range(blocks - shared)]
        starts.append(len(names))
    return Workload(
        np.sort(generator.random(count)) * float(generator.choice([0.01, 1, 10, 50])),
        prompts,
        outputs,
        priority=generator.integers(0, 3, count) if generator.random() < 0.3 else np.zeros(0, np.int64),
        session=generator.integers(0, 1 + count // 5, count),
        block_size=block_size if named else 0,
        block_ids=np.array(names if named else [], np.int64),
        block_starts=np.array(starts if named else [], np.int64),
    )


def random_case(seed: int) -> Case:
    generator = np.random.default_rng(seed)
    num_blocks, block_size = int(generator.integers(20, 120)), int(generator.choice([1, 2, 4, 16]))
    paged, named, swap = generator.random(3) < (0.5, 0.5, 0.3)
    drafts = 0 if paged or generator.random() < 0.7 else int(generator.integers(1, 5))
    sizes = (1e-3, 1e-5, 2e-2, 3e-5, 1e-5, 1e-3)
    cost = StepModel(
        *(float(x) * size for x, size in zip(generator.random(6), sizes, strict=True)),
        tokens_per_round=1 + drafts * float(generator.random()) if drafts else 1,
        checked_tokens=1 + drafts,
        draft_seconds=float(generator.random()) * 1e-3,
    )
    max_batch = int(generator.integers(1, 20))
    config = EngineConfig(
        cost,
        max_batch=max_batch,
        prefill="chunked" if generator.random() < 0.5 else "separate",
        token_budget=int(max_batch * (1 + drafts) + generator.integers(0, 60)),
        num_blocks=num_blocks,
        block_size=block_size,
        admission="blocks" if paged else "final",
        preemption="swap" if swap else "recompute",
        swap_token_seconds=float(generator.random()) * 1e-4,
        prefix_cache=bool(named),
        host_blocks=int(generator.integers(1, 200)) if generator.random() < 0.4 else 0,
        host_block_seconds=float(generator.random()) * 1e-3,
        prefilled=bool(generator.random() < 0.1),
        max_waiting=int(generator.integers(1, 20)) if generator.random() < 0.2 else None,
        max_wait_seconds=float(generator.random()) * 3 if generator.random() < 0.2 else None,
    )
    work = random_work(generator, num_blocks * block_size, block_size, bool(named))
    if config.prefilled:
        work = replace(work, output_len=work.output_len + 1)
    loop = str(generator.choice(["open", "open", "closed", "sessions"]))
    horizon = float(generator.random() * 20) if generator.random() < 0.2 else np.inf
    return Case(work, config, loop, generator.random(len(work)), horizon)


def check_books(engine: Engine) -> None:
    """Count again, from the sequences, what the engine keeps in running totals."""
    config, pool, rounds = engine.config, engine.pool, engine.batch.rounds
    running = [*engine.decoding.values(), *([engine.partial] if engine.partial else [])]
    contexts = [one.base + rounds * engine.batch.per_round for one in engine.decoding.values()]
    assert engine.batch.context == pytest.approx(sum(contexts), rel=1e-9, abs=1e-6)
    held: dict[int, int] = {}
    private = 0
    for one in running:
        for segment in one.segments:
            held[segment] = held.get(segment, 0) + 1
        tokens = one.prompt + one.output
        if config.admission == "blocks":
            tokens = int(one.base + rounds) if one.place in engine.decoding else one.prompt + one.written
        assert one.shared == sum(engine.segments.sizes[s] for s in one.segments) if engine.segments else not one.shared
        private += config.blocks(tokens) - one.shared
    assert pool.holders == held
    assert pool.private == private
    assert not set(pool.idle) & set(held)
    assert pool.held == sum(engine.segments.sizes[s] for s in held) if engine.segments else not pool.held
    assert pool.num_idle == sum(pool.idle.values())
    assert 0 <= pool.num_idle <= pool.available
    assert pool.num_host == sum(pool.host.values()) <= pool.host_blocks
    assert not set(pool.host) & set(held)
    assert len(running) <= config.max_batch


def assert_alike(left: Result, right: Result) -> None:
    for name in COUNTS:
        assert np.array_equal(getattr(left, name), getattr(right, name)), name
    for name in TIMES:
        np.testing.assert_allclose(getattr(left, name), getattr(right, name), rtol=1e-9, atol=1e-9, err_msg=name)


@pytest.mark.parametrize("part", range(8))
def test_leaps_agree_with_steps_on_every_record(part: int) -> None:
    for seed in range(part * 250, (part + 1) * 250):
        case = random_case(seed)
        slow = simulate_by_steps(case.work, case.config, source=case.source(), horizon_seconds=case.horizon)
        watch = check_books if seed % 2 else None
        fast = simulate(case.work, case.config, source=case.source(), horizon_seconds=case.horizon, on_event=watch)
        assert_alike(fast, slow)
        if case.horizon == np.inf:
            assert fast.num_steps == slow.num_steps
            assert fast.status.min() >= Status.FINISHED  # nobody is left waiting


def test_the_random_cases_reach_every_rule() -> None:
    """Otherwise the agreement above could be about nothing."""
    results = [(c := random_case(seed), simulate(c.work, c.config, source=c.source())) for seed in range(300)]
    statuses = np.concatenate([result.status for _, result in results])
    assert set(statuses) >= {Status.FINISHED, Status.REJECTED, Status.SHED_QUEUE, Status.SHED_DEADLINE}
    for preemption in ("recompute", "swap"):
        assert sum(r.num_preemptions.sum() for c, r in results if c.config.preemption == preemption) > 100
    assert sum(r.cached_len.sum() for _, r in results) > 1000
    tiered = [(c, r) for c, r in results if c.config.host_blocks and c.config.prefix_cache]
    alone = [simulate(c.work, replace(c.config, host_blocks=0), source=c.source()) for c, _ in tiered]
    assert sum((r.cached_len != a.cached_len).sum() for (_, r), a in zip(tiered, alone, strict=True)) > 20
    assert sum(c.config.cost.checked_tokens > 1 for c, _ in results) > 20
    assert sum(is_plain(c.work, c.config) and c.loop == "open" for c, _ in results) > 5


def test_the_plain_path_agrees_with_the_engine() -> None:
    for seed in range(200):
        case = random_case(seed)
        config = replace(
            case.config,
            prefill="separate",
            admission="final",
            prefix_cache=False,
            prefilled=False,
            max_waiting=None,
            max_wait_seconds=None,
        )
        work = replace(case.work, priority=np.zeros(len(case.work), np.int64))
        assert is_plain(work, config)
        assert_alike(simulate(work, config), simulate(work, config, on_event=check_books))


SECOND = StepModel(weight_seconds=1.0)


def test_a_single_server_with_constant_service_is_an_m_d_1_queue() -> None:
    """One token a request and one request a step: service takes a step's time, whatever else happens."""
    count, rate = 200_000, 0.7
    work = poisson(count, rate, 1, 1, np.random.default_rng(11))
    result = simulate(work, EngineConfig(SECOND, max_batch=1))
    wait = result.scheduled_seconds - result.arrival_seconds
    assert wait.mean() == pytest.approx(MD1(rate, 1.0).mean_wait_seconds, rel=0.03)


def test_a_single_server_with_exponential_service_is_an_m_m_1_queue() -> None:
    count, rate, unit = 200_000, 0.6, 1e-5
    generator = np.random.default_rng(12)
    service = np.maximum(1, np.rint(generator.exponential(1 / unit, count)).astype(np.int64))
    work = Workload(np.cumsum(generator.exponential(1 / rate, count)), service, np.ones(count, np.int64))
    result = simulate(work, EngineConfig(StepModel(token_seconds=unit), max_batch=1, token_budget=1))
    stay = result.last_token_seconds - result.arrival_seconds
    queue = MM1(rate, 1.0)
    assert stay.mean() == pytest.approx(queue.mean_time_seconds, rel=0.05)
    assert np.percentile(stay, 95) == pytest.approx(queue.time_percentile(0.95), rel=0.05)


def test_littles_law_holds_for_every_run() -> None:
    """The time average of requests in the system, integrated over arrivals and departures, is rate times stay."""
    for seed in range(60):
        case = random_case(seed)
        result = simulate(case.work, case.config)
        done = result.finished
        if not done.any():
            continue
        begins, ends = result.arrival_seconds[done], result.last_token_seconds[done]
        times = np.concatenate([begins, ends])
        order = np.argsort(times, kind="stable")
        number = np.cumsum(np.concatenate([np.ones(done.sum()), -np.ones(done.sum())])[order])
        area = (number[:-1] * np.diff(times[order])).sum()
        span = ends.max() - begins.min()
        assert area / span == pytest.approx(done.sum() / span * (ends - begins).mean(), rel=1e-9)
        assert number.min() == 0


def test_a_closed_loop_never_has_more_requests_than_users() -> None:
    work = evenly(200, 1.0, 10, 5)
    source = ClosedLoop(work, num_users=7, think_seconds=2.0)
    result = simulate(work, EngineConfig(StepModel(weight_seconds=0.1), max_batch=3), source=source)
    times = np.concatenate([result.arrival_seconds, result.last_token_seconds])
    change = np.concatenate([np.ones(200), -np.ones(200)])
    # Where one request ends and another begins at the same time, the end comes first.
    number = np.cumsum(change[np.lexsort((change, times.round(6)))])
    assert number.max() == 7
    assert result.finished.all()


def test_a_lone_request_takes_the_sum_of_its_steps() -> None:
    """Prefill, then one decode step for every further token, each of them slower than the one before."""
    cost = StepModel(token_seconds=1e-3, pair_seconds=1e-5, weight_seconds=2e-2, cached_token_seconds=3e-5)
    prefill = max(100 * 1e-3 + 5050 * 1e-5, 2e-2)
    decodes = [max(1e-3 + (100 + i) * 1e-5, 2e-2 + (100 + i) * 3e-5) for i in range(1, 400)]
    result = simulate(Workload.from_requests([Request(3.0, 100, 400)]), EngineConfig(cost))
    assert result.first_token_seconds[0] == pytest.approx(3 + prefill, rel=1e-12)
    assert result.last_token_seconds[0] == pytest.approx(3 + prefill + sum(decodes), rel=1e-12)


def test_chunks_fill_the_budget_beside_the_decodes() -> None:
    """By hand: the first prompt takes steps 1 and 2, and the second has three tokens of step 2 and seven of step 3."""
    config = EngineConfig(SECOND, max_batch=4, prefill="chunked", token_budget=8)
    result = simulate(at_once(2, 13, 3), config)
    assert result.scheduled_seconds.tolist() == [0.0, 1.0]
    # Step 3 has one decode and seven prompt tokens, step 4 one decode and the last three.
    assert result.first_token_seconds.tolist() == [2.0, 4.0]
    assert result.last_token_seconds.tolist() == [4.0, 6.0]


def test_a_shared_beginning_is_read_once() -> None:
    cost = StepModel(token_seconds=1.0)
    names = (1, 2)
    work = Workload.from_requests(
        [Request(0.0, 8, 1, prefix_blocks=names), Request(100.0, 8, 1, prefix_blocks=names)], block_size=4
    )
    result = simulate(work, EngineConfig(cost, num_blocks=10, block_size=4, prefix_cache=True))
    # The second block is there too, but a step has to compute at least one token, so it is read again.
    assert result.cached_len.tolist() == [0, 4]
    assert (result.last_token_seconds - result.arrival_seconds).tolist() == [8.0, 4.0]


def test_who_cannot_be_served_is_told_why() -> None:
    work = Workload.from_requests([Request(0.0, 90, 20), Request(0.0, 10, 50), Request(0.1, 9, 9), Request(0.2, 9, 9)])
    config = EngineConfig(SECOND, max_batch=1, num_blocks=6, max_waiting=1)
    result = simulate(work, config)
    assert result.status.tolist() == [Status.REJECTED, Status.FINISHED, Status.WAITING + 2, Status.SHED_QUEUE]
    assert result.reason(0).startswith("needs 110 tokens of cache, and the whole machine has 96")
    assert result.reason(1) == ""
    assert "1 requests waited already" in result.reason(3)
    late = simulate(work, replace(config, max_waiting=None, max_wait_seconds=5.0))
    assert late.status.tolist() == [Status.REJECTED, Status.FINISHED, Status.SHED_DEADLINE, Status.SHED_DEADLINE]
    assert np.isnan(late.last_token_seconds[[0, 2, 3]]).all()
    cut = simulate(work, config, horizon_seconds=3.0)
    assert cut.status.tolist() == [Status.REJECTED, Status.RUNNING, Status.WAITING, Status.SHED_QUEUE]
    assert "still ran" in cut.reason(1)


def test_a_more_urgent_class_goes_first() -> None:
    rows = [Request(0.0, 4, 5), Request(1.0, 4, 5, priority=1), Request(2.0, 4, 5, priority=0)]
    result = simulate(Workload.from_requests(rows), EngineConfig(SECOND, max_batch=1))
    assert result.scheduled_seconds.tolist() == [0.0, 10.0, 5.0]


@pytest.mark.parametrize("serve", [simulate, simulate_by_steps])
@pytest.mark.parametrize("prefill", ["separate", "chunked"])
def test_a_run_that_goes_on_too_long_says_who_waits(serve: Any, prefill: Any) -> None:
    config = EngineConfig(SECOND, max_batch=1, prefill=prefill)
    with pytest.raises(TooManyEventsError, match="max_events must be above 20"):
        serve(at_once(100, 5, 5), config, max_events=20)


def test_names_and_blocks_must_be_of_one_size() -> None:
    work = Workload.from_requests([Request(0.0, 8, 1, prefix_blocks=(1,))], block_size=8)
    with pytest.raises(ValueError, match=r"block_size must be the workload's 8"):
        simulate(work, EngineConfig(SECOND, num_blocks=9, block_size=16, prefix_cache=True))


def test_every_time_of_a_finished_request_is_in_order() -> None:
    for seed in range(100):
        case = random_case(seed)
        result = simulate(case.work, case.config, source=case.source())
        done = result.finished
        if case.config.prefilled:
            assert np.isnan(result.first_token_seconds).all()  # it came from another machine
            continue
        times = np.stack([getattr(result, name)[done] for name in TIMES])
        assert (np.diff(times, axis=0) >= 0).all()
