"""The step as coefficients against the library's step costs, and leaps against a loop over their steps."""

from __future__ import annotations

import numpy as np
import pytest

from lantern_lib import A100, H100, LANTERN_70B, ModelConfig, Replica, kv_cache
from lantern_lib.chunked_prefill import mixed_step
from lantern_lib.simulator import EngineConfig, StepModel, engine_for, step_model
from lantern_lib.simulator.cost import leap, run_seconds
from lantern_lib.speculative import expected_tokens, verify_step
from lantern_lib.step import decode_step, prefill_step

SMALL = ModelConfig("8B", 32, 4096, 14336, 32, 8, 128, 128256, tied_embeddings=True, qkv_bias=True, kv_bytes=1.0)
MACHINES = [
    (LANTERN_70B, Replica(H100, tp_size=4)),
    (LANTERN_70B, Replica(H100, tp_size=8, compute_efficiency=0.9, bandwidth_efficiency=0.3)),
    (SMALL, Replica(A100)),
]


@pytest.mark.parametrize(("model", "replica"), MACHINES)
def test_coefficients_give_the_steps_of_the_library(model: ModelConfig, replica: Replica) -> None:
    cost = step_model(model, replica)
    generator = np.random.default_rng(1)
    for _ in range(200):
        batch, context, prompt, cached = (int(n) for n in generator.integers(1, 9000, 4))
        batch = batch % 300 + 1
        pairs = batch * context
        decode = decode_step(model, replica, batch, context).total_seconds
        assert cost.step_seconds(batch, pairs, pairs) == pytest.approx(decode, rel=1e-12)
        prefill = prefill_step(model, replica, prompt, cached).total_seconds
        attended = sum(range(cached + 1, cached + prompt + 1))
        assert cost.step_seconds(prompt, attended, cached) == pytest.approx(prefill, rel=1e-12)
        mixed = mixed_step(model, replica, batch, context, prompt, cached).total_seconds
        assert cost.step_seconds(batch + prompt, pairs + prompt * cached, pairs) == pytest.approx(mixed, rel=1e-12)


def test_speculation_and_overhead_are_coefficients_too() -> None:
    model, replica = MACHINES[0]
    cost = step_model(model, replica, overhead_seconds=0.002, acceptance=0.8, draft_len=4, draft_token_seconds=0.001)
    check = verify_step(model, replica, 64, 2000, 4).total_seconds
    got = cost.step_seconds(64 * 5, 5 * 64 * 2000, 64 * 2000, decoding=True)
    assert got == pytest.approx(check + 0.002 + 4 * 0.001, rel=1e-12)
    assert cost.tokens_per_round == expected_tokens(0.8, 4)
    assert cost.checked_tokens == 5


def test_a_leap_is_the_sum_of_its_steps() -> None:
    generator = np.random.default_rng(2)
    crossed = 0
    for _ in range(2000):
        compute, up, memory, rise, other = (float(x) for x in generator.random(5) * generator.choice([0.01, 0.1, 1], 5))
        steps = int(generator.integers(1, 60))
        each = [max(compute + j * up, memory + j * rise) for j in range(steps)]
        crossed += (compute > memory) != (compute + steps * up > memory + steps * rise)
        assert run_seconds(steps, compute, up, memory, rise) == pytest.approx(sum(each), rel=1e-12)
        until = float(generator.random()) * 1.2 * (sum(each) + steps * other)
        ends = np.cumsum(np.array(each) + other)
        wanted = min(steps, int(np.searchsorted(ends, until)) + 1)
        got, spent = leap(until, steps, compute, up, memory, rise, other)
        assert (got, spent) == (wanted, pytest.approx(ends[wanted - 1], rel=1e-12))
    assert crossed > 200


def test_an_engine_takes_its_memory_from_the_machine() -> None:
    model, replica = MACHINES[0]
    config = engine_for(model, replica, max_batch=9, block_size=1)
    pool = kv_cache.memory_budget(model, replica).pool_bytes
    assert config.capacity_tokens == pool // kv_cache.bytes_per_token(model)
    assert config.max_batch == 9


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: StepModel(weight_seconds=-1.0), "weight_seconds .* -1.0"),
        (lambda: StepModel(pair_seconds=1.0), "takes no time"),
        (lambda: StepModel(weight_seconds=1.0, tokens_per_round=2.5), "tokens_per_round .* checked_tokens"),
        (lambda: step_model(LANTERN_70B, Replica(H100), draft_len=3), "acceptance .* draft_len = 3"),
        (lambda: step_model(LANTERN_70B, Replica(H100), acceptance=0.5), "draft_len"),
        (
            lambda: step_model(
                ModelConfig("w", 2, 64, 64, 1, 1, 64, 9, sliding_window=8, num_sliding_layers=1), Replica(H100)
            ),
            "num_sliding_layers .* window",
        ),
        (lambda: engine_for(LANTERN_70B, Replica(H100)), "room for the weights"),
        (lambda: EngineConfig(StepModel(weight_seconds=1.0), max_batch=0), "max_batch"),
        (
            lambda: EngineConfig(StepModel(weight_seconds=1.0), prefill="mixed"),
            "prefill .* separate, chunked, got 'mixed'",
        ),  # type: ignore[arg-type]
        (
            lambda: EngineConfig(StepModel(weight_seconds=1.0), prefill="chunked", max_batch=64, token_budget=32),
            "token_budget .* 64",
        ),
        (lambda: EngineConfig(StepModel(weight_seconds=1.0), admission="blocks"), "num_blocks .* None"),
        (
            lambda: EngineConfig(
                StepModel(weight_seconds=1.0, tokens_per_round=2, checked_tokens=2), admission="blocks", num_blocks=9
            ),
            "admission .* speculation",
        ),
    ],
)
def test_settings_that_cannot_be_are_named(make: object, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        make()  # type: ignore[operator]
