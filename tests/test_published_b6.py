"""Every number that the notes print in B6 and B8, recomputed; see ``test_published_a.py`` for the shape."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from lantern_lib import ACCELERATORS, H100, LANTERN_70B, Replica, parallelism, step, transformer
from lantern_lib import mixture_of_experts as experts
from lantern_lib.collectives import all_reduce_seconds
from lantern_lib.hardware import Link

PUBLISHED = "published_b6"
MOE = experts.DEEPSEEK_V3


def layout(tp: int, context: int) -> parallelism.Layout:
    return parallelism.layout(LANTERN_70B, Replica(H100, tp_size=tp), context)


def message(batch: int) -> float:
    """Bytes of one all-reduce, read off the step's communication on a link without latency."""
    bare = Link("bare", 1.0, 0.0)
    card = type(H100)("bare", H100.memory_bytes, H100.memory_bandwidth, H100.peak_flops, bare)
    cost = step.decode_step(LANTERN_70B, Replica(card, tp_size=2), batch, 0)  # two ranks: factor 1
    return cost.communication_seconds / (step.ALL_REDUCES_PER_LAYER * LANTERN_70B.num_layers)


def kept(acceptance: float, draft_len: int) -> float:
    return math.prod([acceptance] * (draft_len + 1))


def speedup(acceptance: float, draft_len: int, draft_cost: float) -> float:
    """Tokens of a round, summed over how many drafts are kept, over its cost."""
    tokens = sum(acceptance**i for i in range(draft_len + 1))
    return tokens / (1 + draft_cost * draft_len)


COMPUTE: dict[str, Callable[..., float]] = {
    "all_reduces": lambda: step.ALL_REDUCES_PER_LAYER * LANTERN_70B.num_layers,
    "ring_factor": lambda tp: all_reduce_seconds(1.0, tp, Link("bare", 1.0, 0.0)),
    "message_bytes": message,
    "parallelism.smallest_degree": lambda context: parallelism.smallest_degree(LANTERN_70B, H100, context),
    "layout.alone_seconds": lambda **i: layout(**i).alone.total_seconds,
    "layout.communication_seconds": lambda **i: layout(**i).alone.communication_seconds,
    "layout.conversations": lambda **i: layout(**i).conversations,
    "layout.tokens_per_second_per_gpu": lambda **i: layout(**i).tokens_per_second_per_gpu,
    "layout.latency_cut": lambda tp, over, context: (
        1 - layout(over, context).alone.total_seconds / layout(tp, context).alone.total_seconds
    ),
    "layout.throughput_ratio": lambda tp, over, context: (
        layout(tp, context).tokens_per_second_per_gpu / layout(over, context).tokens_per_second_per_gpu
    ),
    "experts.stored_bytes": lambda: experts.stored_weight_bytes(MOE),
    "experts.memory_left": lambda accelerator, gpus, reserve: experts.memory_left_bytes(
        MOE, Replica(ACCELERATORS[accelerator], tp_size=gpus), reserve=reserve
    ),
    "experts.token_flops": lambda: experts.token_flops(MOE),
    "experts.over_dense": lambda context: (
        experts.token_flops(MOE) / transformer.token_flops(LANTERN_70B, context).total
    ),
    "queue.service_times": lambda utilization: 1 / (1 - utilization),
    "queue.service_seconds": lambda utilization, mean: mean * (1 - utilization),
    "queue.tail_factor": lambda share: -math.log(1 - share),
    "queue.percentile": lambda share, mean: -math.log(1 - share) * mean,
    "queue.headroom": lambda share, service, target: -math.log(1 - share) * service / target,
    "queue.utilization": lambda share, service, target: 1 + math.log(1 - share) * service / target,
    "speculation.speedup": speedup,
    "speculation.all_kept_and_bonus": kept,
    "speculation.best": lambda acceptance, draft_cost, draft_lens: max(
        draft_lens, key=lambda k: speedup(acceptance, k, draft_cost)
    ),
}


def test_published_number(entry: dict[str, Any], hold: Callable[..., None]) -> None:
    hold(entry, COMPUTE)


def test_the_reserve_that_the_notes_leave_out() -> None:
    """They print 457 GB for the cache; with the reserve that A4 takes everywhere else 344 GB are left."""
    p5e = Replica(ACCELERATORS["H200"], tp_size=8)
    assert experts.memory_left_bytes(MOE, p5e) == 0.9 * 1128e9 - 671e9


def test_no_compute_entry_is_unused(entries: list[dict[str, Any]]) -> None:
    assert set(COMPUTE) == {e["compute"] for e in entries}
