"""Metrics against tokens counted one by one."""

from __future__ import annotations

import statistics
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lantern_lib import metrics
from lantern_lib.metrics import RequestRecord, Slo

GAPS = st.lists(st.floats(0, 3), min_size=2, max_size=30)


def record(arrival: float, gaps: list[float]) -> RequestRecord:
    """A request whose first gap is the wait for the first token."""
    times, now = [], arrival
    for gap in gaps:
        now += gap
        times.append(now)
    return RequestRecord(arrival, times[0], times[-1], len(times), tuple(times))


@given(st.floats(0, 100), GAPS)
def test_each_metric_is_a_mean_or_a_sum_of_the_gaps(arrival: float, gaps: list[float]) -> None:
    one = record(arrival, gaps)
    assert metrics.ttft(one) == pytest.approx(gaps[0], abs=1e-9)
    assert metrics.tpot(one) == pytest.approx(statistics.fmean(gaps[1:]), abs=1e-9)
    assert metrics.tpot(one, include_first=True) == pytest.approx(statistics.fmean(gaps), abs=1e-9)
    assert metrics.itl(one) == pytest.approx(gaps[1:], abs=1e-9)
    assert metrics.e2el(one) == pytest.approx(sum(gaps), abs=1e-9)


def test_a_pause_shows_in_the_gaps_and_not_in_their_mean() -> None:
    one = record(0.0, [0.2] + [0.018] * 398 + [0.678])
    assert metrics.tpot(one) < 0.020
    assert max(metrics.itl(one)) == pytest.approx(0.678)


@given(st.lists(st.tuples(st.floats(0, 50), GAPS), min_size=1, max_size=8), st.floats(0.1, 3), st.floats(0.1, 3))
def test_goodput_counts_the_requests_that_keep_both_limits(
    all_gaps: list[tuple[float, list[float]]], first: float, each: float
) -> None:
    records = [record(arrival, [gap + 0.01 for gap in gaps]) for arrival, gaps in all_gaps]
    kept, tokens = 0, 0
    for one in records:
        late = one.first_token_seconds - one.arrival_seconds > first
        slow = one.last_token_seconds - one.first_token_seconds > each * (one.output_len - 1)
        tokens += one.output_len
        kept += not late and not slow
    start, end = min(r.arrival_seconds for r in records), max(r.last_token_seconds for r in records)
    good = metrics.goodput(records, Slo(ttft_seconds=first, tpot_seconds=each))
    # A mean that equals its limit may fall on either side in binary.
    if all(abs(metrics.tpot(r) - each) > 1e-9 for r in records):
        assert good * (end - start) == pytest.approx(kept, abs=1e-6)
    assert good <= metrics.request_throughput(records) == pytest.approx(len(records) / (end - start))
    assert metrics.output_throughput(records) == pytest.approx(tokens / (end - start))


def test_an_end_to_end_limit_counts_too_and_one_token_keeps_any_rate() -> None:
    one = RequestRecord(0.0, 1.0, 1.0, 1)
    assert metrics.meets(one, Slo(tpot_seconds=1e-9))
    assert not metrics.meets(one, Slo(e2el_seconds=0.9))


def test_a_percentile_lies_between_its_neighbours() -> None:
    values = [float(n) for n in range(101)]
    assert metrics.percentile(values, 0.95) == pytest.approx(95)
    assert metrics.percentile([1.0, 2.0], 0.75) == pytest.approx(1.75)
    assert metrics.percentile(reversed(values), 1) == 100


@given(st.floats(1, 1e15), st.floats(1e-3, 1e3))
def test_utilisation_of_a_machine_at_its_peak_is_one(peak: float, seconds: float) -> None:
    assert metrics.mfu(peak * seconds, seconds, peak) == pytest.approx(1)
    assert metrics.mbu(peak * seconds / 4, seconds, peak) == pytest.approx(0.25)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: RequestRecord(1.0, 0.5, 2.0, 3), "^first_token_seconds must be"),
        (lambda: RequestRecord(0.0, 2.0, 1.0, 3), "^first_token_seconds must be"),
        (lambda: RequestRecord(0.0, 1.0, 2.0, 0), "^output_len must be"),
        (lambda: RequestRecord(0.0, 1.0, 2.0, 3, (1.0, 2.0)), "^token_seconds must be one time"),
        (lambda: metrics.tpot(RequestRecord(0.0, 1.0, 1.0, 1)), "^output_len must be 2 or more"),
        (lambda: metrics.itl(RequestRecord(0.0, 1.0, 2.0, 3)), "^token_seconds must be given"),
        (lambda: metrics.percentile([], 0.5), "^values must be"),
        (lambda: metrics.percentile([1.0], 95), "^q must be"),
        (lambda: Slo(), "^ttft_seconds must be given"),
        (lambda: Slo(tpot_seconds=0), "^tpot_seconds must be"),
        (lambda: metrics.duration([]), "^records must be"),
        (lambda: metrics.mfu(1, 1, 0), "^peak_flops must be"),
        (lambda: metrics.mbu(-1, 1, 1), "^moved_bytes must be"),
    ],
)
def test_bad_input_is_named(call: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()  # type: ignore[operator]


def test_a_summary_of_columns_is_the_functions_over_records() -> None:
    generator = np.random.default_rng(5)
    count = 200
    arrival = np.sort(generator.random(count)) * 100
    first = arrival + generator.random(count)
    length = generator.integers(1, 50, count)
    last = np.where(length > 1, first + generator.random(count) * 5, first)
    last[::7] = np.nan
    run = SimpleNamespace(
        arrival_seconds=arrival, first_token_seconds=first, last_token_seconds=last, output_len=length
    )
    slo = Slo(ttft_seconds=0.6, tpot_seconds=0.3)
    got = metrics.summary(run, slo, warm_up_seconds=20)
    early = arrival < arrival[0] + 20
    rows = [i for i in range(count) if not early[i] and last[i] == last[i]]
    records = [RequestRecord(float(arrival[i]), float(first[i]), float(last[i]), int(length[i])) for i in rows]
    assert (got.num_finished, got.num_warm_up) == (len(rows), early.sum())
    assert got.num_finished + got.num_warm_up + got.num_unfinished == count
    assert got.goodput == pytest.approx(metrics.goodput(records, slo))
    assert got.output_throughput == pytest.approx(metrics.output_throughput(records))
    assert got.request_throughput == pytest.approx(metrics.request_throughput(records))
    assert got.ttft.p95 == pytest.approx(metrics.percentile(map(metrics.ttft, records), 0.95))
    assert got.tpot.mean == pytest.approx(np.mean([metrics.tpot(r) for r in records if r.output_len > 1]))
    assert got.e2el.p99 == pytest.approx(metrics.percentile(map(metrics.e2el, records), 0.99))


def test_a_summary_of_nothing_says_so() -> None:
    nothing = np.array([np.nan])
    run = SimpleNamespace(
        arrival_seconds=np.array([1.0]),
        first_token_seconds=nothing,
        last_token_seconds=nothing,
        output_len=np.array([3]),
    )
    got = metrics.summary(run)
    assert got.num_finished == 0
    assert got.num_unfinished == 1
    assert np.isnan(got.ttft.mean)
    assert "1 without an answer" in got.summary
