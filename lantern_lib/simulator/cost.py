"""The step model as a handful of numbers, and the time of many alike steps at once."""

from __future__ import annotations

import math
from dataclasses import dataclass

from lantern_lib import kv_cache, speculative, transformer
from lantern_lib.collectives import all_reduce_seconds
from lantern_lib.hardware import Replica
from lantern_lib.model_config import ModelConfig
from lantern_lib.step import ALL_REDUCES_PER_LAYER
from lantern_lib.units import require_int, require_non_negative, require_positive


@dataclass(frozen=True)
class StepModel:
    """What a step costs, as numbers that are multiplied by counts.

    Parameters
    ----------
    token_seconds : float
        Arithmetic of one token with all matrices [seconds/token].
    pair_seconds : float
        Arithmetic of one token that attends to one cached token [seconds].
    weight_seconds : float
        Reading all streamed weights once [seconds].
    cached_token_seconds : float
        Reading the cache of one token [seconds/token].
    message_seconds : float
        Sending one token's vectors in all collectives of a step [seconds/token].
    fixed_seconds : float
        What every step takes besides: latency of the collectives, launch and scheduling [seconds].
    tokens_per_round : float
        Tokens that one decode step gives each sequence; above 1 with speculation [tokens].
    checked_tokens : int
        Tokens computed for each sequence in one decode step, the drafts included [tokens].
    draft_seconds : float
        Time of drafting, in each step that decodes [seconds].

    Examples
    --------
    >>> StepModel(weight_seconds=0.5).step_seconds(num_tokens=3, attended=30, read_tokens=30)
    0.5
    """

    token_seconds: float = 0.0
    pair_seconds: float = 0.0
    weight_seconds: float = 0.0
    cached_token_seconds: float = 0.0
    message_seconds: float = 0.0
    fixed_seconds: float = 0.0
    tokens_per_round: float = 1
    checked_tokens: int = 1
    draft_seconds: float = 0.0

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if name not in ("tokens_per_round", "checked_tokens"):
                require_non_negative(name, value)
        require_int("checked_tokens", self.checked_tokens, hint="Without speculation it is 1.")
        require_positive("tokens_per_round", self.tokens_per_round)
        if not 1 <= self.tokens_per_round <= self.checked_tokens:
            raise ValueError(
                f"tokens_per_round must be between 1 and checked_tokens = {self.checked_tokens}, got"
                f" {self.tokens_per_round!r}. A round keeps at least its own token and at most what it checked."
            )
        if self.fixed_seconds + self.weight_seconds + self.token_seconds + self.message_seconds <= 0:
            raise ValueError("weight_seconds must be above 0, or another part; got none. A step that takes no time.")

    def step_seconds(self, num_tokens: int, attended: float, read_tokens: float, *, decoding: bool = False) -> float:
        """Return the time of one step.

        Parameters
        ----------
        num_tokens : int
            Tokens computed [tokens].
        attended : float
            Cached tokens that each of them attends to, itself included, summed over the tokens [pairs].
        read_tokens : float
            Cached tokens that are read [tokens].
        decoding : bool
            Whether the step decodes, and so drafts.

        Returns
        -------
        float
            The longer of arithmetic and memory, plus what overlaps with neither [seconds].
        """
        compute = num_tokens * self.token_seconds + attended * self.pair_seconds
        memory = self.weight_seconds + read_tokens * self.cached_token_seconds
        other = self.fixed_seconds + num_tokens * self.message_seconds + (self.draft_seconds if decoding else 0.0)
        return max(compute, memory) + other


def step_model(
    model: ModelConfig,
    replica: Replica,
    *,
    overhead_seconds: float = 0.0,
    acceptance: float | None = None,
    draft_len: int = 0,
    draft_token_seconds: float = 0.0,
) -> StepModel:
    """Reduce the library's step costs to coefficients.

    Parameters
    ----------
    model : ModelConfig
        The shape, without windowed layers.
    replica : Replica
        The machine with its efficiencies and its tensor-parallel degree.
    overhead_seconds : float
        Launch and scheduling of each step, which the floors leave out [seconds].
    acceptance : float, optional
        Chance that a drafted token is kept, in [0, 1]; without it nothing is drafted [ratio].
    draft_len : int
        Tokens drafted in one round [tokens].
    draft_token_seconds : float
        Time in which the draft model writes one token for the whole batch [seconds].

    Returns
    -------
    StepModel
        The coefficients [seconds].

    Raises
    ------
    ValueError
        If a number is out of range or the model has windowed layers, experts or recurrent layers.

    Notes
    -----
    Equal to ``step.decode_step``, ``step.prefill_step``, ``chunked_prefill.mixed_step`` and
    ``speculative.verify_step``: all of them are linear in tokens, attended pairs and cached tokens, but for one
    maximum. A window would bend the line, so a model with windows is refused. Speculation is taken at its
    mean: every round gives every sequence the expected number of tokens.

    Examples
    --------
    >>> from lantern_lib import H100, LANTERN_70B, Replica
    >>> cost = step_model(LANTERN_70B, Replica(H100, tp_size=4))
    >>> round(cost.step_seconds(64, 64 * 2000, 64 * 2000) * 1e3, 1)
    18.7
    """
    if model.num_sliding_layers:
        raise ValueError(
            f"num_sliding_layers must be 0, got {model.num_sliding_layers}. A window bends the line that leaps follow."
        )
    if model.experts is not None or model.recurrent is not None:
        raise ValueError(
            f"model must be dense with attention in every layer, got {model.name}. The experts that a step reads bend"
            " the line that leaps follow, and a recurrent state has no blocks."
        )
    matrices, with_one = transformer.token_flops(model, 0).total, transformer.token_flops(model, 1).total
    link, ranks, collectives = replica.accelerator.link, replica.tp_size, ALL_REDUCES_PER_LAYER * model.num_layers
    latency = all_reduce_seconds(0, ranks, link)
    drafts = require_int("draft_len", draft_len, minimum=0 if acceptance is None else 1)
    if acceptance is None and drafts:
        raise ValueError(
            f"acceptance must be given with draft_len = {drafts}, got None. 0.8 keeps four drafts of five."
        )
    kept = 1 if acceptance is None else speculative.expected_tokens(acceptance, drafts)
    return StepModel(
        token_seconds=matrices / replica.flops_per_second,
        pair_seconds=(with_one - matrices) / replica.flops_per_second,
        weight_seconds=transformer.streamed_weight_bytes(model) / replica.bandwidth,
        cached_token_seconds=kv_cache.bytes_per_token(model) / replica.bandwidth,
        # Vectors between layers stay at 16 bits, whatever the weights are stored in.
        message_seconds=collectives * (all_reduce_seconds(2 * model.hidden_size, ranks, link) - latency),
        fixed_seconds=collectives * latency + require_non_negative("overhead_seconds", overhead_seconds),
        tokens_per_round=int(kept) if kept == int(kept) else kept,
        checked_tokens=1 + drafts,
        draft_seconds=drafts * require_non_negative("draft_token_seconds", draft_token_seconds),
    )


def run_seconds(steps: int, compute: float, compute_growth: float, memory: float, memory_growth: float) -> float:
    """Return the time of consecutive steps whose arithmetic and memory times grow evenly.

    Parameters
    ----------
    steps : int
        How many [steps].
    compute, memory : float
        Times of the first step's two parts [seconds].
    compute_growth, memory_growth : float
        What each part gains from one step to the next, 0 or more [seconds].

    Returns
    -------
    float
        ``Σ max(compute + j compute_growth, memory + j memory_growth)`` over the steps [seconds].

    Notes
    -----
    Two lines cross at most once. Before the crossing one part is the longer one in every step and after it
    the other, so the sum is two arithmetic series, however many steps there are.

    Examples
    --------
    >>> run_seconds(4, compute=1.0, compute_growth=2.0, memory=4.0, memory_growth=0.0)
    20.0
    """
    last = steps - 1
    gap, growth = compute - memory, compute_growth - memory_growth
    end = gap + growth * last
    if gap >= 0 and end >= 0:
        return steps * compute + compute_growth * (steps * last / 2)
    if gap <= 0 and end <= 0:
        return steps * memory + memory_growth * (steps * last / 2)
    first = min(last, math.ceil(-gap / growth))  # steps before the crossing
    lower = (memory, memory_growth) if gap < 0 else (compute, compute_growth)
    upper = (compute, compute_growth) if gap < 0 else (memory, memory_growth)
    before = first * lower[0] + lower[1] * (first * (first - 1) / 2)
    rest = steps - first
    return before + rest * (upper[0] + upper[1] * first) + upper[1] * (rest * (rest - 1) / 2)


def leap(
    seconds: float,
    most: int,
    compute: float,
    compute_growth: float,
    memory: float,
    memory_growth: float,
    other: float,
) -> tuple[int, float]:
    """Take alike steps until a time has passed, or until there are no more of them.

    Parameters
    ----------
    seconds : float
        The time, for example until an arrival; may be infinite [seconds].
    most : int
        Steps that are alike, at least 1 [steps].
    compute, compute_growth, memory, memory_growth : float
        As in :func:`run_seconds` [seconds].
    other : float
        What each step takes besides [seconds].

    Returns
    -------
    tuple of int and float
        The smallest number of steps, from 1, that ends at or after the time, or `most`; and what they
        take together [steps, seconds].

    Notes
    -----
    While one part is the longer one in every step, the time of k steps is ``k a + g k (k − 1) / 2``: the root
    of a square, where a step more or less settles what rounding left open. With a crossing inside, bisection.

    Examples
    --------
    >>> leap(10.5, 100, compute=1.0, compute_growth=0.0, memory=0.5, memory_growth=0.0, other=0.0)
    (11, 11.0)
    """
    gap = compute - memory
    end = gap + (compute_growth - memory_growth) * (most - 1)
    if gap * end < 0:
        return _leap_over_a_crossing(seconds, most, compute, compute_growth, memory, memory_growth, other)
    if gap + end >= 0:
        first, half = compute + other, compute_growth / 2
    else:
        first, half = memory + other, memory_growth / 2
    spent = most * (first + half * (most - 1))
    if spent <= seconds or most == 1:
        return most, spent
    if seconds <= first:
        return 1, first
    linear = first - half
    steps = min(most, math.ceil(2 * seconds / (linear + math.sqrt(linear * linear + 4 * half * seconds))))
    spent = steps * (first + half * (steps - 1))
    while spent < seconds and steps < most:
        steps += 1
        spent = steps * (first + half * (steps - 1))
    while steps > 1 and (before := (steps - 1) * (first + half * (steps - 2))) >= seconds:
        steps, spent = steps - 1, before
    return steps, spent


def _leap_over_a_crossing(
    seconds: float, most: int, compute: float, compute_growth: float, memory: float, memory_growth: float, other: float
) -> tuple[int, float]:
    def spent(steps: int) -> float:
        return run_seconds(steps, compute, compute_growth, memory, memory_growth) + steps * other

    if spent(most) <= seconds:
        return most, spent(most)
    low, high = 1, most
    while low < high:
        middle = (low + high) // 2
        if spent(middle) >= seconds:
            high = middle
        else:
            low = middle + 1
    return low, spent(low)
