"""Mixed steps and chunk schedules against arithmetic written out by hand and a loop over the tokens."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lantern_lib import H100, LANTERN_70B, Replica
from lantern_lib.chunked_prefill import best_chunk, cache_transfer, chunk_schedule, free_chunk, mixed_step
from lantern_lib.step import decode_step

FOUR = Replica(H100, tp_size=4)
# The shape and the machine as plain numbers, so that nothing below uses the code under test.
MATRICES = 80 * (2 * 8192 * 8192 + 2 * 8192 * 1024 + 3 * 8192 * 28672) + 8192 * 128256
NORMS = (2 * 80 + 1) * 8192  # streamed, not multiplied
RATE, BANDWIDTH = 4 * 0.5 * 989e12, 4 * 0.8 * 3.35e12


def by_hand(decoders: int, context: int, chunk: int, chunk_context: int) -> float:
    """Add up the step token by token."""
    flops = 0.0
    for token in range(decoders + chunk):
        attended = context if token < decoders else chunk_context
        flops += 2 * MATRICES + 4 * 80 * 64 * 128 * attended
    moved = 2.0 * (MATRICES + NORMS)
    for _ in range(decoders):
        moved += 2 * 80 * 8 * 128 * 2 * context
    message = (decoders + chunk) * 8192 * 2
    communication = 160 * (8e-6 + 2 * 3 / 4 * message / 450e9)
    return max(flops / RATE, moved / BANDWIDTH) + communication


@given(st.integers(0, 200), st.integers(0, 20_000), st.integers(1, 3000), st.integers(0, 20_000))
def test_a_mixed_step_is_the_sum_of_its_tokens(decoders: int, context: int, chunk: int, chunk_context: int) -> None:
    got = mixed_step(LANTERN_70B, FOUR, decoders, context, chunk, chunk_context).total_seconds
    assert got == pytest.approx(by_hand(decoders, context, chunk, chunk_context), rel=1e-9)


@given(st.integers(1, 200), st.integers(0, 20_000))
def test_without_a_chunk_it_is_a_decode_step(decoders: int, context: int) -> None:
    mixed = mixed_step(LANTERN_70B, FOUR, decoders, context, 0)
    assert mixed.total_seconds == pytest.approx(
        decode_step(LANTERN_70B, FOUR, decoders, context).total_seconds, rel=1e-12
    )


@given(st.integers(1, 20_000), st.integers(1, 20_000))
def test_a_schedule_is_the_prompt_cut_into_pieces(prompt: int, chunk: int) -> None:
    pieces, left = [], prompt
    while left:
        pieces.append(min(chunk, left))
        left -= pieces[-1]
    exact = chunk_schedule(LANTERN_70B, FOUR, 32, 4000, prompt, chunk, partial_last=True)
    rounded = chunk_schedule(LANTERN_70B, FOUR, 32, 4000, prompt, chunk)
    times = [by_hand(32, 4000, piece, 4000) for piece in (pieces[0], pieces[-1])]
    assert exact.num_steps == rounded.num_steps == len(pieces)
    assert exact.ttft_seconds == pytest.approx((len(pieces) - 1) * times[0] + times[1], rel=1e-9)
    assert exact.ttft_seconds <= rounded.ttft_seconds <= exact.ttft_seconds + exact.pause_seconds


@pytest.mark.parametrize(("chunk", "milliseconds"), [(2048, 690), (512, 738), (256, 811), (128, 1232)])
def test_a_last_chunk_that_is_partly_filled_ends_sooner(chunk: int, milliseconds: int) -> None:
    exact = chunk_schedule(LANTERN_70B, FOUR, 32, 4000, 8000, chunk, partial_last=True)
    assert exact.ttft_seconds * 1e3 == pytest.approx(milliseconds, abs=0.5)


@given(st.floats(0.0185, 0.5), st.integers(1, 2000))
def test_the_best_chunk_keeps_the_target_and_the_next_does_not(target: float, most: int) -> None:
    best = best_chunk(LANTERN_70B, FOUR, 32, 4000, target, most)
    if best:
        assert by_hand(32, 4000, best, 4000) <= target * (1 + 1e-9)
    if best < most:
        assert by_hand(32, 4000, best + 1, 4000) > target * (1 - 1e-9)


def test_the_free_chunk_is_the_last_one_that_memory_hides() -> None:
    """Each further token takes the same arithmetic, so the crossing is one division."""
    crossing = (
        (2 * (MATRICES + NORMS) + 32 * 4000 * 327_680) / BANDWIDTH * RATE / (2 * MATRICES + 4 * 80 * 64 * 128 * 4000)
    )
    assert free_chunk(LANTERN_70B, FOUR, 32, 4000) == int(crossing - 32) == 191
    assert free_chunk(LANTERN_70B, FOUR, 2000, 1) == 0


def test_a_transfer_divides_by_what_the_link_reaches() -> None:
    full = cache_transfer(LANTERN_70B, 8000, 200e9)
    assert full.size_bytes == 8000 * 327_680
    assert cache_transfer(LANTERN_70B, 8000, 200e9, 0.25).seconds == pytest.approx(4 * full.seconds)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: mixed_step(LANTERN_70B, FOUR, 0, 4000, 0), "^chunk_size must be 1 or more"),
        (lambda: mixed_step(LANTERN_70B, FOUR, -1, 4000, 0), "^num_decoders must be"),
        (lambda: mixed_step(LANTERN_70B, FOUR, 1, 4000, 1, -1), "^chunk_context_len must be"),
        (lambda: chunk_schedule(LANTERN_70B, FOUR, 32, 4000, 8000, 0), "^chunk_size must be"),
        (lambda: chunk_schedule(LANTERN_70B, FOUR, 32, 4000, 0, 8), "^prompt_len must be"),
        (lambda: best_chunk(LANTERN_70B, FOUR, 32, 4000, 0.018), "^tpot_target_seconds must be at least 0.01844"),
        (lambda: cache_transfer(LANTERN_70B, 8000, 0), "^link_bandwidth must be"),
        (lambda: cache_transfer(LANTERN_70B, 8000, 1e9, 1.5), "^link_efficiency must be"),
    ],
)
def test_bad_input_is_named(call: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()  # type: ignore[operator]
