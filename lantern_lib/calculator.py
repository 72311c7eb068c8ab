"""The questions of the calculator page, and their answers.

The page has no kernel: ``book/_static/sizing.js`` holds the same functions once more. It takes every constant from
:mod:`lantern_lib.calculator_tables`, and the tests hold its answers to those of this module.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from lantern_lib import hardware, kv_cache, transformer
from lantern_lib.capacity import dollars_per_million
from lantern_lib.collectives import all_reduce_seconds, all_to_all_seconds
from lantern_lib.devices import Range
from lantern_lib.engine_rules import RULES, EngineRule, engine_rule, with_fraction
from lantern_lib.hardware import Accelerator, Replica
from lantern_lib.hf_quantization import stored_format
from lantern_lib.memory_plan import MemoryPlan, plan_memory
from lantern_lib.model_config import ModelConfig
from lantern_lib.spreads import peak_replica
from lantern_lib.step import ALL_REDUCES_PER_LAYER, StepCost, decode_step
from lantern_lib.units import require_int, require_positive

#: Cards whose speed the catalogue knows, by product name.
CARDS: dict[str, Accelerator] = {
    card.name: card for card in vars(hardware).values() if isinstance(card, Accelerator) and "GiB" not in card.name
}
#: Every rule of every engine, by name and first version, and the one for a version that nobody knows.
ENGINES: dict[str, EngineRule] = {f"{rule.name} {rule.version}": rule for rule in (engine_rule(), *RULES)}
#: How a matrix is usually stored in so many bits: 8-bit floating point with a scale for each matrix, and 4 bits in
#: groups of 128 with a zero point.
STORED: dict[int, dict[str, Any]] = {
    8: {"quant_method": "fp8"},
    4: {"quant_method": "awq", "bits": 4, "group_size": 128},
}
KV_BYTES = {16: 2.0, 8: 1.0}
#: No model is larger, and below it a browser counts exactly.
MAX_PARAMETERS = 10**15
#: The largest number that a question may ask for, by field.
LIMITS = {
    "tp_size": 1024,
    "ep_size": 1024,
    "context_len": 100_000_000,
    "batch_size": 1_000_000,
    "max_num_tokens": 10_000_000,
    "max_num_seqs": 1_000_000,
    "max_positions": 100_000_000,
}
#: Fields that may be left open: the engine's own setting holds, or the model states no longest context.
OPEN = ("max_num_tokens", "max_num_seqs", "max_positions")


@dataclass(frozen=True)
class Question:
    """What the page asks: a model, cards, formats, an engine and a load.

    Parameters
    ----------
    model : ModelConfig
        The shape.
    card : str
        A name of :data:`CARDS` [text].
    tp_size : int
        GPUs that share every matrix [count].
    engine : str
        A name of :data:`ENGINES` [text].
    fraction : float
        The engine's memory setting, in (0, 1] [ratio].
    weight_bits : int or None
        16, 8 or 4; None takes the weights as the file stores them [bits].
    kv_bits : int
        16 or 8 [bits].
    context_len : int
        Tokens of each conversation [tokens].
    batch_size : int
        Conversations decoded together [sequences].
    gpu_hour_dollars : float
        Price of one GPU for an hour [dollars].
    ep_size : int
        GPUs that share the experts: 1, or as many as share the matrices, or a multiple of them. Then there are as many
        groups, each with conversations of its own [count].
    max_num_tokens, max_num_seqs : int, optional
        Most tokens and sequences of one step, the engine's default for the card if not given [count].
    max_positions : int, optional
        Longest context that the model states: a rotary table has a row for each of its positions, and no conversation
        is longer [tokens].

    Raises
    ------
    ValueError
        If a name is unknown or a number out of range.
    """

    model: ModelConfig
    card: str = "H100 SXM"
    tp_size: int = 1
    engine: str = "vLLM 0.9"
    fraction: float = 0.9
    weight_bits: int | None = None
    kv_bits: int = 16
    context_len: int = 8192
    batch_size: int = 1
    gpu_hour_dollars: float = 3.0
    ep_size: int = 1
    max_num_tokens: int | None = None
    max_num_seqs: int | None = None
    max_positions: int | None = None

    def __post_init__(self) -> None:
        for field, value, known in (("card", self.card, CARDS), ("engine", self.engine, ENGINES)):
            if value not in known:
                raise ValueError(f"{field} must be one of {', '.join(known)}, got {value!r:.60}.")
        if self.weight_bits is not None and self.weight_bits not in (16, *STORED):
            raise ValueError(f"weight_bits must be 16, 8, 4 or as the file stores them, got {self.weight_bits!r}.")
        if self.kv_bits not in KV_BYTES:
            raise ValueError(f"kv_bits must be 16 or 8, got {self.kv_bits!r}.")
        for field, most in LIMITS.items():
            value = getattr(self, field)
            if not (value is None and field in OPEN) and require_int(field, value) > most:
                raise ValueError(f"{field} must be at most {most:,}, got {value:,}.")
        require_positive("gpu_hour_dollars", self.gpu_hour_dollars)
        if transformer.parameters(self.model).in_checkpoint > MAX_PARAMETERS:
            raise ValueError(f"model must have at most {MAX_PARAMETERS:,} parameters, got more. Is it a real config?")
        if not self.model.attention_layers:
            raise ValueError(
                "model must have a layer with attention, got only layers with a state. Nothing of it would grow."
            )
        self._require_groups()
        if self.max_positions is not None and self.context_len > self.max_positions:
            raise ValueError(
                f"context_len must be at most max_positions ({self.max_positions:,}), got {self.context_len:,}. The"
                " model has not learnt what comes later."
            )

    def _require_groups(self) -> None:
        """Refuse experts that no engine could lay out so."""
        experts = self.model.experts
        most = 1 if experts is None else experts.num_experts
        if self.ep_size > most:
            raise ValueError(f"ep_size must be at most the experts of a layer ({most:,}), got {self.ep_size:,}.")
        if self.ep_size > self.tp_size and self.ep_size % self.tp_size:
            raise ValueError(
                f"ep_size must be a multiple of tp_size ({self.tp_size:,}), got {self.ep_size:,}. Whole groups share"
                " the experts."
            )

    @property
    def num_groups(self) -> int:
        """Groups of GPUs that hold the matrices once each; experts are spread over all of them [count]."""
        return max(1, self.ep_size // self.tp_size)

    @property
    def num_gpus(self) -> int:
        """All GPUs [count]."""
        return self.tp_size * self.num_groups

    @property
    def stored_model(self) -> ModelConfig:
        """The shape with the formats that were asked for."""
        changed = replace(self.model, kv_bytes=KV_BYTES[self.kv_bits])
        if self.weight_bits is None:
            return changed
        kind = STORED.get(self.weight_bits)
        storage = None if kind is None else stored_format(kind, self.model.num_layers)
        return replace(changed, weight_bytes=2.0, storage=storage)


@dataclass(frozen=True)
class Answer:
    """What the page shows: the plan of memory, one decode step, and the step at the data sheet's peaks."""

    question: Question
    model: ModelConfig
    plan: MemoryPlan
    step: StepCost
    floor: StepCost

    @property
    def sequence_bytes(self) -> float:
        """Cache of one conversation on the fullest GPU of its group [bytes]."""
        return kv_cache.bytes_per_sequence_per_gpu(self.model, self.question.context_len, self.question.tp_size)

    @property
    def conversations(self) -> tuple[int, int, int]:
        """Whole conversations in the pool, in its low end and in its high end [count]."""
        pool, one = self.plan.pool, self.sequence_bytes
        groups = self.question.num_groups
        usual, low, high = (groups * max(0, int(size // one)) for size in (pool.value, pool.low, pool.high))
        return usual, low, high

    @property
    def million_dollars(self) -> float:
        """Price of a million output tokens while the batch is full [dollars]."""
        asked = self.question
        return dollars_per_million(asked.gpu_hour_dollars, asked.num_gpus, self.step.tokens_per_second)

    def numbers(self) -> dict[str, Any]:
        """Return every number of the page by name.

        Returns
        -------
        dict
            Base units; a part of memory is a list of usual, least and most [bytes, seconds, FLOPs, tokens, dollars].
        """
        plan, step, model = self.plan, self.step, self.model
        count = transformer.parameters(model)
        low, high = plan.tokens_range
        parts = {name.replace(" ", "_"): _triple(part) for name, part in plan.parts.items()}
        return parts | {
            "pool": _triple(plan.pool),
            "device": _triple(plan.device.size),
            "num_gpus": self.question.num_gpus,
            "num_tokens": plan.num_tokens,
            "num_seqs": plan.num_seqs,
            "total_parameters": count.total,
            "stored_parameters": count.in_checkpoint,
            "active_parameters": count.active,
            "weight_bytes": transformer.weight_bytes(model),
            "token_bytes": plan.bytes_per_token,
            "sequence_bytes": self.sequence_bytes,
            "pool_tokens": [plan.tokens, low, high],
            "conversations": list(self.conversations),
            "streamed_bytes": transformer.streamed_weight_bytes(model, step.num_tokens)
            + _read_again(model, self.question.num_groups),
            "cache_bytes": step.num_tokens * kv_cache.bytes_per_sequence(model, self.question.context_len),
            "flops": step.flops,
            "compute_seconds": step.compute_seconds,
            "memory_seconds": step.memory_seconds,
            "communication_seconds": step.communication_seconds,
            "step_seconds": step.total_seconds,
            "floor_seconds": self.floor.total_seconds,
            "tokens_per_second": step.tokens_per_second,
            "million_dollars": self.million_dollars,
        }


def _triple(part: Range) -> list[float]:
    return [part.value, part.low, part.high]


def _read_again(model: ModelConfig, num_groups: int) -> float:
    """Return what groups beyond the first read in a step: all weights but experts, their scales, and an input table."""
    unread = {"experts", "scales"} | (set() if model.tied_embeddings else {"embedding"})
    sizes = transformer.component_bytes(model)
    return (num_groups - 1) * sum(size for name, size in sizes.items() if name not in unread)


def _step(question: Question, model: ModelConfig, replica: Replica) -> StepCost:
    """Return one decode step of all groups together, with the efficiencies of a replica.

    Each group decodes its share of the batch and sums over its own GPUs. Tokens go to their experts and back over all:
    two exchanges in each layer with experts (page B6).
    """
    asked = question
    one = decode_step(model, replica, asked.batch_size, asked.context_len)
    if asked.num_groups == 1 or model.experts is None:
        return one
    wide = replace(replica, tp_size=asked.num_gpus)
    moved = one.moved_bytes + _read_again(model, asked.num_groups)
    per_group, per_gpu = (-(-asked.batch_size // parts) for parts in (asked.num_groups, asked.num_gpus))
    link, vector = replica.accelerator.link, 2 * model.hidden_size
    sums = ALL_REDUCES_PER_LAYER * model.num_layers * all_reduce_seconds(per_group * vector, asked.tp_size, link)
    message = per_gpu * model.experts.experts_per_token * vector
    exchanges = 2 * model.experts.num_layers * all_to_all_seconds(message, asked.num_gpus, link)
    return replace(
        one,
        moved_bytes=moved,
        compute_seconds=one.flops / wide.flops_per_second,
        memory_seconds=moved / wide.bandwidth,
        communication_seconds=sums + exchanges,
    )


def answer(question: Question) -> Answer:
    """Answer a question of the calculator.

    Parameters
    ----------
    question : Question
        What is asked.

    Returns
    -------
    Answer
        Memory, step and price, with everything they are made of.

    Raises
    ------
    ValueError
        If the fraction is outside (0, 1].

    Notes
    -----
    Memory as :func:`lantern_lib.memory_plan.plan_memory`; the step as :func:`lantern_lib.step.decode_step` with the
    course's efficiencies, and over groups with the exchanges of page B6. Page "The calculator".

    Examples
    --------
    >>> from lantern_lib.models import find_model
    >>> found = answer(Question(find_model("Llama-3.1-8B"), batch_size=64))
    >>> found.conversations[0], round(found.step.total_seconds * 1e3, 1)
    (51, 31.2)
    """
    model, card = question.stored_model, CARDS[question.card]
    rule = with_fraction(ENGINES[question.engine], question.fraction)
    return Answer(
        question=question,
        model=model,
        plan=plan_memory(
            model,
            card,
            question.tp_size,
            rule,
            max_num_tokens=question.max_num_tokens,
            max_num_seqs=question.max_num_seqs,
            max_positions=question.max_positions or 0,
            ep_size=question.ep_size,
        ),
        step=_step(question, model, Replica(card, question.tp_size)),
        floor=_step(question, model, peak_replica(card, question.tp_size)),
    )
