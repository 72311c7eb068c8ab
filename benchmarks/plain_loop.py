"""The fair opponent of a leap: the plain setting one step at a time, as fast as a loop of Python gets.

``simulator.reference`` is written to be read and models everything. This loop models what ``simulator.plain`` does and
no more: whole prompts, final lengths set aside, first come first served. A decode step here is one maximum of two
running sums, and the end of a sequence is looked up by the number of its last step.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lantern_lib.simulator import EngineConfig
from lantern_lib.simulator.sources import TIE_SECONDS
from lantern_lib.workload import Workload

Column = NDArray[np.float64]


def step_by_step(workload: Workload, config: EngineConfig) -> tuple[Column, Column, int]:
    """Return the times of first and last tokens, and how many steps it took. All requests must fit."""
    cost, count, block = config.cost, len(workload), config.block_size
    arrival = [*workload.arrival_seconds.tolist(), float("inf")]
    prompt, output = workload.prompt_len.tolist(), workload.output_len.tolist()
    first, last = [0.0] * count, [0.0] * count
    ending: defaultdict[int, list[int]] = defaultdict(list)
    free, most, budget = config.num_blocks or 2**62, config.max_batch, config.token_budget
    by_token, by_message, each = cost.token_seconds, cost.message_seconds, cost.cached_token_seconds
    pair, weights, fixed = cost.pair_seconds, cost.weight_seconds, cost.fixed_seconds
    head = running = rounds = steps = context = 0
    now, compute, memory, other = 0.0, 0.0, weights, fixed
    grow_compute = grow_memory = 0.0
    while head < count or running:
        changed = False
        if arrival[head] <= now + TIE_SECONDS and running < most:
            begin, tokens, attended = head, 0, 0
            while running < most and arrival[head] <= now + TIE_SECONDS:
                length, need = prompt[head], -(-(prompt[head] + output[head]) // block)
                if need > free or (tokens and tokens + length > budget):
                    break
                tokens, attended, free = tokens + length, attended + length * (length + 1) // 2, free - need
                running, head = running + 1, head + 1
            if tokens:
                now += cost.step_seconds(tokens, attended, 0)
                steps, changed = steps + 1, True
                for row in range(begin, head):
                    first[row] = now
                    ending[rounds + output[row] - 1].append(row)
                    context += prompt[row] + 1
        if not changed:
            if not running:
                now = arrival[head]
                continue
            now += (compute if compute > memory else memory) + other
            compute, memory = compute + grow_compute, memory + grow_memory
            steps, rounds, context = steps + 1, rounds + 1, context + running
        if rounds in ending:
            for row in ending.pop(rounds):
                last[row] = now
                running, context = running - 1, context - prompt[row] - output[row]
                free += -(-(prompt[row] + output[row]) // block)
            changed = True
        if changed:
            grow_compute, grow_memory = running * pair, running * each
            compute, memory = running * by_token + context * pair, weights + context * each
            other = fixed + running * by_message
    return np.array(first), np.array(last), steps


def check(workload: Workload, config: EngineConfig, result: Any) -> None:
    """Raise unless the loop gives the simulator's times: a faster loop of something else would prove nothing."""
    first, last, _ = step_by_step(workload, config)
    np.testing.assert_allclose(first, result.first_token_seconds, rtol=1e-9)
    np.testing.assert_allclose(last, result.last_token_seconds, rtol=1e-9)
