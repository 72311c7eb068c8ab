"""Statistics of traffic against loops that do the same thing the long way, and against the public traces."""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest

from lantern_lib.workload import Call, Request, Session, Workload
from lantern_lib.workload.gaps import cache_use, call_columns, holding_break_even_seconds, machine_seconds
from lantern_lib.workload.statistics import (
    NEVER,
    burstiness,
    gap_variation,
    reuse_distances,
    reuse_share,
    window_counts,
)
from lantern_lib.workload.traces import read_azure, read_mooncake


def some_prompts(seed: int, requests: int = 60) -> list[tuple[int, ...]]:
    """Prompts that are paths from the root of one tree, so that equal names mean equal beginnings."""
    rng = np.random.default_rng(seed)
    names: dict[tuple[int, ...], int] = {}
    prompts = []
    for _ in range(requests):
        path = tuple(int(step) for step in rng.integers(0, 2, size=rng.integers(1, 7)))
        prompts.append(tuple(names.setdefault(path[: n + 1], len(names)) for n in range(len(path))))
    return prompts


def workload(prompts: Sequence[tuple[int, ...]]) -> Workload:
    rows = [Request(float(n), 10 * len(p), 1, prefix_blocks=p) for n, p in enumerate(prompts)]
    return Workload.from_requests(rows, block_size=10)


def lru_hits(prompts: Sequence[tuple[int, ...]], capacity: int) -> list[list[bool]]:
    """Play an LRU cache of one size, use by use."""
    cache: OrderedDict[int, None] = OrderedDict()
    found = []
    for prompt in prompts:
        row = []
        for block in prompt:
            row.append(block in cache)
            cache[block] = None
            cache.move_to_end(block)
            if len(cache) > capacity:
                cache.popitem(last=False)
        found.append(row)
    return found


@pytest.mark.parametrize("seed", range(4))
def test_one_pass_gives_the_hits_of_an_lru_cache_of_every_size(seed: int) -> None:
    prompts = some_prompts(seed)
    distances = reuse_distances(workload(prompts))
    for capacity in (1, 2, 3, 5, 8, 13, 21, 200):
        played = [hit for row in lru_hits(prompts, capacity) for hit in row]
        assert (distances < capacity).tolist() == played
        assert reuse_share(distances, capacity) == pytest.approx(np.mean(played))
    assert reuse_share(distances, math.inf) == np.mean(distances < NEVER)
    assert reuse_share(distances, 0) == 0


@pytest.mark.parametrize("seed", range(4))
def test_what_a_cache_has_of_a_prompt_is_a_beginning(seed: int) -> None:
    prompts = some_prompts(seed)
    work = workload(prompts)
    distances = reuse_distances(work)
    for start, end in zip(work.block_starts, work.block_starts[1:], strict=False):
        assert (np.diff(distances[start:end].astype(float)) >= 0).all()


def test_reuse_needs_named_blocks() -> None:
    with pytest.raises(ValueError, match="block_ids"):
        reuse_distances(Workload([0.0], [1], [1]))  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="capacity_blocks"):
        reuse_share(np.array([1]), -1)


def test_windows_are_counted_as_a_loop_counts_them() -> None:
    arrivals = np.sort(np.random.default_rng(1).uniform(5, 105, 400))
    counts = window_counts(arrivals, 7)
    start, expected = arrivals[0], []
    while start + 7 * (len(expected) + 1) <= arrivals[-1]:
        low = start + 7 * len(expected)
        expected.append(sum(low <= a < low + 7 for a in arrivals))
    assert counts.tolist() == expected
    mean = sum(expected) / len(expected)
    found = burstiness(arrivals, 7)
    assert found.dispersion == pytest.approx(sum((c - mean) ** 2 for c in expected) / len(expected) / mean)
    assert found.peak == pytest.approx(max(expected) / mean)


def test_poisson_arrivals_have_dispersion_one_and_batches_their_size() -> None:
    """Five at once, at Poisson times: the variance of the counts is five times their mean."""
    times = np.cumsum(np.random.default_rng(2).exponential(0.1, 60_000))
    for window in (1, 10):
        # The standard error of an index of dispersion over n windows is sqrt(2 / n); four of them.
        slack = 4 * math.sqrt(2 / len(window_counts(times, window)))
        assert burstiness(times, window).dispersion == pytest.approx(1, abs=slack)
        assert burstiness(np.repeat(times, 5), window).dispersion == pytest.approx(5, rel=slack)
    assert gap_variation(times) == pytest.approx(1, abs=0.02)


def test_too_short_a_trace_says_so() -> None:
    with pytest.raises(ValueError, match="three or more"):
        gap_variation([1.0, 1.0, 1.0])
    with pytest.raises(ValueError, match="fit at least twice"):
        window_counts([0.0, 1.0, 19.0], 10)
    with pytest.raises(ValueError, match="window_seconds"):
        window_counts([0.0, 1.0], 0)


SESSIONS = (
    Session((Call(100, 10), Call(180, 5, 3.0, 100), Call(150, 5, 50.0, 40), Call(300, 1, 400.0, 150))),
    Session((Call(70, 2),)),
    Session((Call(500, 9), Call(900, 9, 10.0, 500))),
)


@pytest.mark.parametrize("lifetime", [0, 3.0, 10.0, 60.0, 400.0, 1e6])
def test_cache_use_is_what_a_loop_over_the_calls_finds(lifetime: float) -> None:
    written = read = lost = 0
    held = 0.0
    for session in SESSIONS:
        for turn, call in enumerate(session.calls):
            alive = turn > 0 and call.gap_seconds <= lifetime
            read += call.reused_len if alive else 0
            written += call.prompt_len - (call.reused_len if alive else 0)
            lost += turn > 0 and not alive
            last = turn + 1 == len(session.calls)
            pause = math.inf if last else session.calls[turn + 1].gap_seconds
            held += (call.prompt_len + call.output_len) * min(pause, lifetime)
    use = cache_use(call_columns(SESSIONS), lifetime)
    assert (use.written_tokens, use.read_tokens, use.lost_calls) == (written, read, lost)
    assert use.held_token_seconds == pytest.approx(held)
    assert use.price(1.25, 0.1) == pytest.approx(1.25 * written + 0.1 * read)


def test_a_cache_that_never_expires_is_held_for_ever() -> None:
    use = cache_use(call_columns(SESSIONS), math.inf)
    assert use.lost_calls == 0
    assert use.held_token_seconds == math.inf
    with pytest.raises(ValueError, match="lifetime_seconds"):
        cache_use(call_columns(SESSIONS), math.nan)
    with pytest.raises(ValueError, match="sessions"):
        call_columns([])


def test_at_the_break_even_pause_both_cost_the_same() -> None:
    recompute, capacity, share = 2e-4, 5e6, 0.07
    pause = holding_break_even_seconds(recompute, capacity, share)
    assert share * pause / capacity == pytest.approx(recompute)
    # A token that is held so long and one that is computed again cost the machine the same.
    once = machine_seconds(1, 0, recompute, capacity, share)
    assert machine_seconds(0, pause, recompute, capacity, share) == pytest.approx(once) == recompute
    with pytest.raises(ValueError, match="share_of_price"):
        holding_break_even_seconds(1, 1, 1.5)


@pytest.mark.parametrize(
    ("name", "requests", "prompts", "outputs", "variation", "dispersion"),
    [
        ("code", 8819, (1469, 5188, 7436), (13, 55, 251), 13.2, 13),
        ("conv", 19366, (1020, 2735, 4142), (129, 424, 601), 1.09, 1.4),
    ],
)
def test_the_azure_traces_have_their_published_quantiles(
    name: str,
    requests: int,
    prompts: tuple[int, ...],
    outputs: tuple[int, ...],
    variation: float,
    dispersion: float,
    outside: Callable[[str], Path],
) -> None:
    work = read_azure(outside(f"traces/azure2023_{name}.csv")).workload
    assert len(work) == requests
    assert np.quantile(work.prompt_len, (0.5, 0.9, 0.99)) == pytest.approx(prompts, abs=0.6)
    assert np.quantile(work.output_len, (0.5, 0.9, 0.99)) == pytest.approx(outputs, abs=0.6)
    assert gap_variation(work.arrival_seconds) == pytest.approx(variation, abs=0.05)
    assert burstiness(work.arrival_seconds, 1).dispersion == pytest.approx(dispersion, rel=0.02)


def test_the_mooncake_trace_has_its_published_reuse(outside: Callable[[str], Path]) -> None:
    work = read_mooncake(outside("traces/mooncake_conversation.jsonl"), partial_blocks=True).workload
    assert len(work) == 12031
    assert np.quantile(work.prompt_len, (0.5, 0.9, 0.99)) == pytest.approx((6909, 27367, 85400), abs=0.6)
    distances = reuse_distances(work)
    assert reuse_share(distances, math.inf) == pytest.approx(0.366, abs=0.0005)
    # 0.5, 5, 26 and 51 million tokens are a thousand to a hundred thousand blocks of 512.
    for blocks, share in ((1_000, 0.045), (10_000, 0.21), (50_000, 0.35), (100_000, 0.36)):
        assert reuse_share(distances, blocks) == pytest.approx(share, abs=0.005)
    names, counts = np.unique(work.block_ids, return_counts=True)
    assert np.mean(counts == 1) == pytest.approx(0.76, abs=0.005)
    assert (names[counts == 12031]).tolist() == [0]
