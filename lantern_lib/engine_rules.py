"""How engines divide a card's memory.

The rules are those of the engines' start-up code and logs, by version; every constant has its reason beside it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

from lantern_lib.devices import DeviceMemory
from lantern_lib.units import GIB, require_fraction, require_int

#: From here on vLLM calls a card large [bytes].
LARGE_BYTES = 70 * GIB
FractionOf = Literal["total", "free", "static"]


class StepLimits(NamedTuple):
    """Most tokens and most sequences of one step [count]."""

    num_tokens: int
    num_seqs: int


@dataclass(frozen=True)
class EngineRule:
    """How one engine, at one version, sizes its pool.

    Parameters
    ----------
    name, version : str
        The engine, and the first version that this rule holds for.
    fraction : float
        Its default share of memory, in (0, 1] [ratio].
    fraction_of : {"total", "free", "static"}
        What the share is of: all memory, less what a step takes (vLLM); what is free once weights and buffers are
        loaded (TensorRT-LLM); all that was free at the start, weights and pool together (SGLang).
    fraction_usual : (float, float)
        What most published logs set, used where a setting is not known [ratio].
    max_num_tokens, max_num_seqs : int
        Defaults of a small card: tokens and sequences of a step [count].
    large_num_tokens, large_num_seqs : int
        Defaults of a large card [count].
    large_a100 : bool
        Whether an A100 of 80 GB counts as large.
    sampler_bytes : float
        Peak of sampling for one sequence and one entry of the vocabulary [bytes].
    logits_bytes : float
        Peak of the output matrix for one token of the step and one entry of the vocabulary; at most for the default's
        tokens, since the core that made them cut prompts to those [bytes].
    stream_copies, block_copies : int
        Vectors of the model's width, and of the feed-forward block, that live at once in a step, in 16-bit numbers.
        The stream, its normed copy and the block's sum; gate and up, and their product. A log of an 8B with 29,000
        tokens a step printed 2.99 GiB; 3 and 3 give 2.99 [count].
    runtime : (float, float, float)
        Memory outside the allocator on one GPU alone: usual, least, most [bytes].
    runtime_shared : (float, float, float)
        What is added with the first doubling of GPUs, and with each further one [bytes].
    graphs : (float, float, float)
        Recorded steps that are taken off before the pool is sized: usual, least, most [bytes].
    block_size : int
        Tokens of a block [tokens].
    """

    name: str
    version: str
    fraction: float
    fraction_of: FractionOf
    fraction_usual: tuple[float, float]
    max_num_tokens: int = 2048
    max_num_seqs: int = 256
    large_num_tokens: int = 8192
    large_num_seqs: int = 1024
    large_a100: bool = False
    sampler_bytes: float = 0.0
    logits_bytes: float = 0.0
    stream_copies: int = 3
    block_copies: int = 3
    runtime: tuple[float, float, float] = (0.14 * GIB, 0.07 * GIB, 0.6 * GIB)
    runtime_shared: tuple[float, float, float] = (0.4 * GIB, 0.1 * GIB, 1.0 * GIB)
    graphs: tuple[float, float, float] = (0.0, 0.0, 0.0)
    block_size: int = 16

    def __post_init__(self) -> None:
        require_fraction("fraction", self.fraction)
        if self.fraction_of not in ("total", "free", "static"):
            raise ValueError(f"fraction_of must be 'total', 'free' or 'static', got {self.fraction_of!r}.")
        for field in ("max_num_tokens", "max_num_seqs", "large_num_tokens", "large_num_seqs", "block_size"):
            require_int(field, getattr(self, field))

    def is_large(self, device: DeviceMemory) -> bool:
        """Return whether the engine takes its larger defaults on a card.

        Parameters
        ----------
        device : DeviceMemory
            The card.

        Returns
        -------
        bool
            Yes for 70 GiB and more; whether for an A100 too depends on the version.
        """
        return device.large or (self.large_a100 and device.size.value >= LARGE_BYTES)

    def step_limits(self, device: DeviceMemory) -> StepLimits:
        """Return what a step may hold on a card if nobody sets it.

        Parameters
        ----------
        device : DeviceMemory
            The card.

        Returns
        -------
        StepLimits
            Most tokens and most sequences of one step [count].
        """
        if self.is_large(device):
            return StepLimits(self.large_num_tokens, self.large_num_seqs)
        return StepLimits(self.max_num_tokens, self.max_num_seqs)


#: Peak of sampling a row of logits, for each entry: the row in 16 and 32 bits, its sorted copy with 64-bit places,
#: probabilities, sums and masks. Eight published start-up logs give 38 to 40 (H100, A100, three vocabularies, 256 to
#: 2,048 sequences); it explains why a model of 0.6B and one of 32B set aside the same 5.6 GiB.
SAMPLER_BYTES = 39.0

_VLLM = EngineRule(
    name="vLLM",
    version="0.9",
    fraction=0.9,
    fraction_of="total",
    fraction_usual=(0.85, 0.98),
    sampler_bytes=SAMPLER_BYTES,
)
#: For a log that does not say its version: the widest of what the versions since 0.5 take.
_VLLM_UNKNOWN = replace(
    _VLLM, version="unknown", runtime=(0.14 * GIB, 0.07 * GIB, 1.9 * GIB), graphs=(0.0, 0.0, 1.3 * GIB)
)
#: Rules, newest last. A version has the rule of the last one that is not above it.
RULES: tuple[EngineRule, ...] = (
    # The whole prompt is one step: the budget is the longest context. Only the allocator's own peak counts, so that a
    # part of the pool was imaginary.
    replace(
        _VLLM,
        version="0.0",
        max_num_tokens=8192,
        large_num_seqs=256,
        runtime=(0.2 * GIB, 0.0, 0.6 * GIB),
        runtime_shared=(0.1 * GIB, 0.0, 0.4 * GIB),
    ),
    # The remedy counted what the allocator held without using it: a 70B on four cards lost a third of its pool to it.
    replace(
        _VLLM,
        version="0.2.4",
        max_num_tokens=8192,
        large_num_seqs=256,
        runtime=(0.6 * GIB, 0.2 * GIB, 3.0 * GIB),
        runtime_shared=(1.0 * GIB, 0.1 * GIB, 6.0 * GIB),
    ),
    # All memory outside the allocator counts, the driver's own part too: 0.35 and 1.79 GiB were printed.
    replace(
        _VLLM,
        version="0.5",
        max_num_tokens=8192,
        large_num_seqs=256,
        runtime=(0.6 * GIB, 0.2 * GIB, 1.9 * GIB),
        runtime_shared=(0.6 * GIB, 0.1 * GIB, 1.9 * GIB),
    ),
    # Two cores, of which the old one was still the default. It counted only what grows while it starts: ten logs print
    # 0.01 to 0.16 GiB on one GPU, 0.2 to 0.5 on two to sixteen. The new one counted all, about 0.9 in the one log
    # there is; it made logits for every token of the step and sampled none. The larger peak is taken, and a runtime
    # between the two.
    replace(
        _VLLM,
        version="0.7",
        large_num_seqs=256,
        logits_bytes=2.0,
        runtime=(0.35 * GIB, 0.0, 1.9 * GIB),
        runtime_shared=(0.12 * GIB, 0.0, 1.9 * GIB),
    ),
    # For three weeks every card had room for 1,024 sequences; small ones ran out of memory, and it was taken back.
    replace(_VLLM, version="0.8", max_num_seqs=1024),
    replace(_VLLM, version="0.8.4"),
    # For one release an A100 of 80 GB was large, too.
    replace(_VLLM, version="0.8.5", large_a100=True),
    _VLLM,
    # An estimate of the recorded steps is taken off before the pool is sized: -0.9 to 1.3 GiB were printed.
    replace(_VLLM, version="0.21", graphs=(0.5 * GIB, 0.0, 1.3 * GIB)),
    # What is left beside weights and pool serves activations, so they do not count.
    EngineRule(
        name="SGLang",
        version="0.0",
        fraction=0.88,
        fraction_of="static",
        fraction_usual=(0.8, 0.93),
        runtime=(0.5 * GIB, 0.3 * GIB, 1.2 * GIB),
        runtime_shared=(0.3 * GIB, 0.0, 1.2 * GIB),
        block_size=1,
    ),
    # An engine file allots buffers for its largest batch when it is built. It plans them ahead, so that a sum or a
    # product takes the place of what it is made from: 4.0 GiB were left between weights, pool and total with 25 prompts
    # of 2,048 tokens, 0.7 with 4,096 tokens.
    EngineRule(
        name="TensorRT-LLM",
        version="0.0",
        fraction=0.9,
        fraction_of="free",
        fraction_usual=(0.85, 0.95),
        max_num_tokens=8192,
        max_num_seqs=256,
        large_num_seqs=256,
        stream_copies=2,
        block_copies=2,
        runtime=(1.2 * GIB, 0.4 * GIB, 4.5 * GIB),
        runtime_shared=(0.6 * GIB, 0.2 * GIB, 1.5 * GIB),
        block_size=32,
    ),
)


def version_numbers(text: str) -> tuple[int, ...]:
    """Return the first three numbers of a version, for comparison.

    Parameters
    ----------
    text : str
        A version as engines print it [text].

    Returns
    -------
    tuple of int
        At most three numbers, none if the text has none [count].

    Examples
    --------
    >>> version_numbers("v0.19.1rc1.dev71") < version_numbers("0.21")
    True
    """
    return tuple(int(part) for part in re.findall(r"\d{1,6}", text)[:3])


def engine_rule(engine: str = "vLLM", version: str = "") -> EngineRule:
    """Return how an engine divides memory.

    Parameters
    ----------
    engine : str
        vLLM, SGLang or TensorRT-LLM; capitals and hyphens do not matter [text].
    version : str
        Its version, such as ``"0.11.0"``; without it the rule is that of vLLM 0.9 to 0.20, with ranges over all
        versions [text].

    Returns
    -------
    EngineRule
        The rule.

    Raises
    ------
    ValueError
        If the engine is none of the three.

    Examples
    --------
    >>> engine_rule("vllm", "0.6.4").large_num_seqs, engine_rule("vllm", "v0.11.0").large_num_seqs
    (256, 1024)
    >>> engine_rule("TensorRT-LLM").fraction_of
    'free'
    """
    key = re.sub(r"[^a-z]", "", engine.lower()) if isinstance(engine, str) else ""
    names = {re.sub(r"[^a-z]", "", rule.name.lower()): rule.name for rule in RULES} | {"trtllm": "TensorRT-LLM"}
    if key not in names:
        raise ValueError(f"engine must be one of vLLM, SGLang and TensorRT-LLM, got {engine!r:.60}.")
    rules = [rule for rule in RULES if rule.name == names[key]]
    wanted = version_numbers(version) if isinstance(version, str) else ()
    if not wanted:
        return _VLLM_UNKNOWN if names[key] == "vLLM" else rules[-1]
    return [rule for rule in rules if version_numbers(rule.version) <= wanted][-1]


def with_fraction(rule: EngineRule, fraction: float) -> EngineRule:
    """Return the same rule with a fraction that was set.

    Parameters
    ----------
    rule : EngineRule
        The rule.
    fraction : float
        The setting, in (0, 1] [ratio].

    Returns
    -------
    EngineRule
        The rule, certain of its fraction.

    Raises
    ------
    ValueError
        If the fraction is outside (0, 1].

    Examples
    --------
    >>> with_fraction(engine_rule(), 0.95).fraction_usual
    (0.95, 0.95)
    """
    share = require_fraction("fraction", fraction, "0.9 lets an engine use nine tenths.")
    return replace(rule, fraction=share, fraction_usual=(share, share))
