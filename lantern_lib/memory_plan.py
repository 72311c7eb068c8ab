"""What an engine will have left for the cache, from nothing but model, card, fraction, parallelism and token budget."""

from __future__ import annotations

import math
from dataclasses import dataclass

from lantern_lib import kv_cache
from lantern_lib.devices import DeviceMemory, Range, device_memory
from lantern_lib.engine_rules import EngineRule, engine_rule, with_fraction
from lantern_lib.hardware import Accelerator
from lantern_lib.model_config import ModelConfig
from lantern_lib.shards import weight_bytes_per_gpu
from lantern_lib.transformer import parameters
from lantern_lib.units import GIB, format_quantity, require_int

#: What trying pictures of the largest size may take of a budget: a log of an 11B printed 36.6 of 71.3 GiB.
VISION_SHARE = 0.52


@dataclass(frozen=True)
class MemoryPlan:
    """Where the memory of the poorest GPU goes, part by part.

    Parameters
    ----------
    model : ModelConfig
        The shape.
    device : DeviceMemory
        The card.
    rule : EngineRule
        The engine's rule with its fraction.
    tp_size, context_parallel : int
        GPUs that share every matrix, and those of them that share the tokens [count].
    num_tokens, num_seqs : int
        Most tokens and sequences of one step [count].
    weights, activation, runtime, graphs, rotary : Range
        What each part takes on one GPU [bytes].

    Examples
    --------
    >>> from lantern_lib.models import find_model
    >>> plan = plan_memory(find_model("Qwen3-32B"), "H100", engine="vLLM", version="0.11", fraction=0.9)
    >>> round(plan.pool.value / 2**30, 1), plan.tokens
    (4.4, 18208)
    """

    model: ModelConfig
    device: DeviceMemory
    rule: EngineRule
    tp_size: int
    context_parallel: int
    num_tokens: int
    num_seqs: int
    weights: Range
    activation: Range
    runtime: Range
    graphs: Range
    rotary: Range

    @property
    def parts(self) -> dict[str, Range]:
        """What is taken off, by name [bytes]."""
        return {
            "weights": self.weights,
            "rotary table": self.rotary,
            "activation peak": self.activation,
            "runtime": self.runtime,
            "recorded graphs": self.graphs,
        }

    def _pool(self, size: float, fraction: float, taken: dict[str, float]) -> float:
        if self.rule.fraction_of == "total":
            return fraction * size - sum(taken.values())
        if self.rule.fraction_of == "free":
            free = size - sum(taken.values())
            # What is missing is missing whole: only memory that is there is shared.
            return fraction * free if free > 0 else free
        # The static share covers weights and pool, of what was free once the runtime had started.
        return fraction * (size - taken["runtime"]) - taken["weights"] - taken["rotary table"]

    @property
    def pool(self) -> Range:
        """What is left for the cache on one GPU; below zero the engine does not start [bytes].

        The parts are uncertain for reasons of their own, so their deviations are added as squares.
        """
        usual = {name: part.value for name, part in self.parts.items()}
        size, fraction = self.device.size, self.rule.fraction
        value = self._pool(size.value, fraction, usual)
        down, up = [], []
        for name, part in self.parts.items():
            down.append(value - self._pool(size.value, fraction, usual | {name: part.high}))
            up.append(self._pool(size.value, fraction, usual | {name: part.low}) - value)
        down += [value - self._pool(size.low, fraction, usual), 0.0]
        up += [self._pool(size.high, fraction, usual) - value, 0.0]
        low, high = self.rule.fraction_usual
        down.append(value - self._pool(size.value, min(low, fraction), usual))
        up.append(self._pool(size.value, max(high, fraction), usual) - value)
        return Range(value, value - math.hypot(*down), value + math.hypot(*up))

    @property
    def bytes_per_token(self) -> float:
        """Cache of one token on the fullest GPU while no window is full [bytes]."""
        return kv_cache.bytes_per_token_per_gpu(self.model, self.tp_size, self.context_parallel)

    def tokens_in(self, pool_bytes: float) -> int:
        """Return the tokens that a pool holds in whole blocks.

        Parameters
        ----------
        pool_bytes : float
            Pool of one GPU, the poorest decides [bytes].

        Returns
        -------
        int
            Whole blocks times their size, 0 for a pool below zero [tokens].
        """
        block = self.rule.block_size
        return max(0, int(pool_bytes // (self.bytes_per_token * block))) * block

    @property
    def tokens(self) -> int:
        """Tokens that the pool holds if every layer keeps the whole context [tokens]."""
        return self.tokens_in(self.pool.value)

    @property
    def tokens_range(self) -> tuple[int, int]:
        """Tokens at both ends of the interval [tokens]."""
        return self.tokens_in(self.pool.low), self.tokens_in(self.pool.high)

    def conversations(self, context_len: int) -> int:
        """Return how many conversations of one length fit, if the engine allots windows and states by layer.

        Parameters
        ----------
        context_len : int
            Length of each [tokens].

        Returns
        -------
        int
            Whole conversations [count].

        Raises
        ------
        ValueError
            If `context_len` is below 1.
        """
        require_int("context_len", context_len)
        one = kv_cache.bytes_per_sequence_per_gpu(self.model, context_len, self.tp_size, self.context_parallel)
        return max(0, int(self.pool.value // one))

    @property
    def fits(self) -> bool:
        """Whether anything is left for the cache."""
        return self.pool.value > 0

    @property
    def summary(self) -> str:
        """One line with the parts and what is left."""
        taken = ", ".join(f"{name} {format_quantity(part.value, 'GiB', 2)}" for name, part in self.parts.items())
        pool = self.pool
        return (
            f"{self.model.name} on {self.tp_size} × {self.device.name}, {self.rule.name} {self.rule.fraction:g} of"
            f" {self.rule.fraction_of}: {taken}; pool {format_quantity(pool.value, 'GiB', 2)}"
            f" ({format_quantity(pool.low, 'GiB', 2)} to {format_quantity(pool.high, 'GiB', 2)}) on each GPU"
        )


def _weights(model: ModelConfig, tp_size: int, ep_size: int) -> Range:
    """Return the weights on one GPU, with what loading adds.

    What engines print is within 0.3 percent of the count for 16-bit files; quantised ones are padded and packed, 4-bit
    experts to sides that are multiples of 256.
    """
    size = weight_bytes_per_gpu(model, tp_size, ep_size)
    if model.storage is None:
        return Range(size, 0.995 * size, 1.01 * size)
    if model.storage.name == "mxfp4" and model.experts is not None:
        side = -(-model.hidden_size // 256) * 256
        padded = size * (1 + (side / model.hidden_size - 1) * _expert_share(model))
        return Range(padded, size, 1.03 * padded)
    return Range(size, 0.98 * size, 1.03 * size)


def _expert_share(model: ModelConfig) -> float:
    count = parameters(model)
    storage = model.storage
    stored = count.experts * storage.quantized_bytes + count.scales * storage.scale_bytes if storage else 0.0
    return stored / (stored + (count.total - count.experts) * model.weight_bytes)


def _activation(
    model: ModelConfig, rule: EngineRule, device: DeviceMemory, num_tokens: int, num_seqs: int, tp_size: int
) -> Range:
    """Return the peak of one step: the larger of the feed-forward block and of sampling, which follow each other."""
    logits_tokens = rule.step_limits(device).num_tokens
    forward = (
        num_tokens * 2.0 * (rule.stream_copies * model.hidden_size + _block_numbers(model, tp_size, rule.block_copies))
    )
    sampled = num_seqs * rule.sampler_bytes * model.vocab_size
    logits = min(num_tokens, logits_tokens) * (rule.logits_bytes * model.vocab_size + 2.0 * 2.0 * model.hidden_size)
    last = max(sampled, logits if rule.logits_bytes else 0.0)
    peak = max(forward, last)
    return Range(peak, min(forward, peak), forward + last)


def _block_numbers(model: ModelConfig, tp_size: int, copies: int) -> float:
    """Return the numbers that the widest feed-forward block holds for a token on one GPU.

    A dense block holds gate, up and product. Experts hold that for each chosen one, and each chosen one's output.
    """
    dense = copies * model.intermediate_size / tp_size if model.num_dense_layers else 0.0
    kinds = model.experts
    if kinds is None:
        return dense
    inside = copies * (kinds.experts_per_token * kinds.expert_size + kinds.shared_size) / tp_size
    return max(dense, inside + kinds.experts_per_token * model.hidden_size)


def plan_memory(
    model: ModelConfig,
    accelerator: Accelerator | DeviceMemory | str,
    tp_size: int = 1,
    engine: EngineRule | str = "vLLM",
    *,
    version: str = "",
    fraction: float | None = None,
    max_num_tokens: int | None = None,
    max_num_seqs: int | None = None,
    max_positions: int = 0,
    ep_size: int = 1,
    context_parallel: int = 1,
) -> MemoryPlan:
    """Divide the memory of a GPU as an engine does at its start.

    Parameters
    ----------
    model : ModelConfig
        The shape, with its stored format and the bytes of a cached number.
    accelerator : Accelerator, DeviceMemory or str
        The card, by name if you like [text].
    tp_size : int
        GPUs that share every matrix [count].
    engine : EngineRule or str
        vLLM, SGLang or TensorRT-LLM, or a rule of your own [text].
    version : str
        The engine's version if it is known [text].
    fraction : float, optional
        The engine's memory setting; its default, and an interval over what people set, if not given [ratio].
    max_num_tokens, max_num_seqs : int, optional
        Most tokens and sequences of one step; the engine's default for the card if not given [count].
    max_positions : int
        Longest context of the config: the rotary table has a row for each position [tokens].
    ep_size : int
        GPUs that share the experts, where that is more than share the matrices [count].
    context_parallel : int
        GPUs that share the tokens of a context [count].

    Returns
    -------
    MemoryPlan
        Every part with an interval, and the pool.

    Raises
    ------
    ValueError
        If a name is unknown or a number out of range.

    Notes
    -----
    vLLM: ``fraction × total − weights − activation − runtime (− graphs)``. TensorRT-LLM: ``fraction × (total − all
    that)``. SGLang: ``fraction × (total − runtime) − weights``. Activation is the larger of
    ``2 tokens (3 width + 3 block / tp)`` and ``39 sequences × vocabulary``. The interval is of nearly constant bytes,
    so it widens in percent of the pool as the weights approach the budget.

    Examples
    --------
    >>> from lantern_lib.models import find_model
    >>> plan = plan_memory(find_model("Llama-3.1-8B"), "A100", version="0.11", fraction=0.9)
    >>> plan.tokens, 0.95 < plan.tokens / 451_379 < 1.05
    (450464, True)
    """
    if not kv_cache.bytes_per_token(model):
        raise ValueError(f"model must keep keys and values in some layer, got {model.name}, which keeps none.")
    device = device_memory(accelerator)
    rule = engine if isinstance(engine, EngineRule) else engine_rule(engine, version)
    rule = rule if fraction is None else with_fraction(rule, fraction)
    for name, size in (("tp_size", tp_size), ("ep_size", ep_size), ("context_parallel", context_parallel)):
        require_int(name, size)
    limits = rule.step_limits(device)
    tokens = require_int("max_num_tokens", limits.num_tokens if max_num_tokens is None else max_num_tokens)
    seqs = require_int("max_num_seqs", limits.num_seqs if max_num_seqs is None else max_num_seqs)
    table = require_int("max_positions", max_positions, minimum=0) * 2.0 * _rotary_dim(model)
    activation = _activation(model, rule, device, tokens, seqs, tp_size)
    if model.extra and any("vision" in name for name, _ in model.extra):
        activation = Range(
            activation.value, activation.low, max(activation.high, VISION_SHARE * rule.fraction * device.size.value)
        )
    if max_num_seqs is None and rule.sampler_bytes and rule.is_large(device):
        few = _activation(model, rule, device, tokens, rule.max_num_seqs, tp_size)
        activation = Range(activation.value, min(activation.low, few.value), activation.high)
    doublings = math.log2(max(tp_size, ep_size))
    usual, least, most = (one + doublings * more for one, more in zip(rule.runtime, rule.runtime_shared, strict=True))
    return MemoryPlan(
        model=model,
        device=device,
        rule=rule,
        tp_size=tp_size,
        context_parallel=context_parallel,
        num_tokens=tokens,
        num_seqs=seqs,
        weights=_weights(model, tp_size, ep_size),
        activation=activation,
        runtime=Range(usual, least, most),
        graphs=Range(*rule.graphs),
        rotary=Range(table, table, table),
    )


def _rotary_dim(model: ModelConfig) -> int:
    return model.latent.rope_dim if model.latent else model.head_dim


def require_pool(plan: MemoryPlan) -> float:
    """Return the pool, or say what to change if nothing is left.

    Parameters
    ----------
    plan : MemoryPlan
        The division.

    Returns
    -------
    float
        Pool of one GPU [bytes].

    Raises
    ------
    ValueError
        If nothing is left for the cache.

    Examples
    --------
    >>> from lantern_lib.models import find_model
    >>> require_pool(plan_memory(find_model("Llama-3-70B"), "H100"))
    Traceback (most recent call last):
    ...
    ValueError: tp_size must leave memory for the cache, got 1: weights of 131.42 GiB on a card of 79.18 GiB. Add GPUs,\
 store the weights in fewer bytes, or raise the fraction.
    """
    if plan.fits:
        return plan.pool.value
    raise ValueError(
        f"tp_size must leave memory for the cache, got {plan.tp_size}: weights of"
        f" {plan.weights.value / GIB:.2f} GiB on a card of {plan.device.size.value / GIB:.2f} GiB. Add GPUs, store the"
        " weights in fewer bytes, or raise the fraction."
    )
