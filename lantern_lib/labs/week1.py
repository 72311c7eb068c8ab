"""Week 1: what stands in for a student's functions. Times leave communication out, as the lab does."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from lantern_lib import kv_cache, roofline, step, transformer
from lantern_lib.hardware import Replica
from lantern_lib.model_config import ModelConfig

#: Library modules that a student may use besides those of every week.
ALLOWED: frozenset[str] = frozenset()


def _components(model: ModelConfig) -> dict[str, int]:
    count = transformer.parameters(model)
    parts = ("embedding", "attention", "feed_forward", "norms", "head", "total")
    return {part: getattr(count, part) for part in parts}


def _decode_seconds_per_token(model: ModelConfig, replica: Replica, batch_size: int, context_len: int = 0) -> float:
    cost = step.decode_step(model, replica, batch_size, context_len)
    return max(cost.compute_seconds, cost.memory_seconds) / batch_size


STAND_INS: dict[str, Callable[..., Any]] = {
    "num_parameters": _components,
    "weights_used": lambda model: transformer.parameters(model).multiplied,
    "flops_per_token": lambda model, context_len: transformer.token_flops(model, context_len).total,
    "prompt_flops": lambda model, prompt_len: transformer.prompt_flops(model, prompt_len).total,
    "kv_bytes_per_token": kv_cache.bytes_per_token,
    "usable_kv_bytes": lambda model, replica, reserve=0.1, reserve_from="total": (
        kv_cache.memory_budget(model, replica, reserve=reserve, reserve_from=reserve_from).pool_bytes
    ),
    "max_concurrent_sequences": lambda model, replica, context_len, reserve=0.1, reserve_from="total": (
        kv_cache.memory_budget(model, replica, reserve=reserve, reserve_from=reserve_from).conversations(context_len)
    ),
    "ridge_point": roofline.ridge_point,
    "decode_seconds_per_token": _decode_seconds_per_token,
}
