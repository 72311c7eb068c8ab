"""Week 3: what stands in for a student's functions. A chunk's tokens attend to what is really before them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from lantern_lib import chunked_prefill, metrics, transformer
from lantern_lib.hardware import Replica
from lantern_lib.kv_cache import bytes_per_sequence
from lantern_lib.model_config import ModelConfig

#: Library modules that a student may use besides those of every week.
ALLOWED: frozenset[str] = frozenset({"collectives", "kv_cache", "transformer"})


def _mixed_step(
    model: ModelConfig,
    replica: Replica,
    num_decoders: int,
    context_len: int,
    chunk_size: int = 0,
    num_cached_tokens: int = 0,
) -> dict[str, float]:
    # Page B3 gives all tokens of a chunk one context and does not read their prompt's cache; both are put right here.
    cost = chunked_prefill.mixed_step(model, replica, num_decoders, context_len, chunk_size, chunk_context_len=0)
    flops, moved = cost.flops, cost.moved_bytes
    if chunk_size:
        flops += transformer.prompt_flops(model, chunk_size, num_cached_tokens).attention
        moved += bytes_per_sequence(model, num_cached_tokens)
    compute, memory = flops / replica.flops_per_second, moved / replica.bandwidth
    return {
        "compute_seconds": compute,
        "memory_seconds": memory,
        "communication_seconds": cost.communication_seconds,
        "total_seconds": max(compute, memory) + cost.communication_seconds,
    }


def _poisson_arrivals(rate: float, count: int, generator: np.random.Generator) -> list[float]:
    arrivals: list[float] = np.cumsum(generator.exponential(1 / rate, count)).tolist()
    return arrivals


def _percentile(values: Sequence[float], q: float) -> float:
    return metrics.percentile(values, q)


STAND_INS: dict[str, Callable[..., Any]] = {
    "mixed_step": _mixed_step,
    "percentile": _percentile,
    "poisson_arrivals": _poisson_arrivals,
}
