"""The questions of the calculator page, their answers, and the tables that the page computes from.

The page has no kernel: ``book/_static/sizing.js`` holds the same functions once more. It takes every constant from
:func:`tables`, and the tests hold its answers to those of this module.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from typing import Any

from lantern_lib import hardware, hf_families, hf_layers, kv_cache, memory_plan, transformer
from lantern_lib.calibration import Spread, measured_spread, peak_replica
from lantern_lib.capacity import SECONDS_PER_HOUR, dollars_per_million
from lantern_lib.engine_rules import RULES, EngineRule, Range, device_memory, engine_rule, with_fraction
from lantern_lib.hardware import Accelerator, Replica
from lantern_lib.hf_config import MAX_CHARACTERS, MUST_BE_OFF
from lantern_lib.hf_quantization import stored_format
from lantern_lib.measurements import Measurement
from lantern_lib.memory_plan import MemoryPlan, plan_memory
from lantern_lib.model_config import LANTERN_70B, ModelConfig
from lantern_lib.models import public_models
from lantern_lib.step import StepCost, decode_step
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
#: Largest degree, context and batch that a question may ask for.
MAX_DEGREE, MAX_CONTEXT, MAX_BATCH = 1024, 100_000_000, 1_000_000


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

    Raises
    ------
    ValueError
        If a name is unknown or a number out of range.
    """

    model: ModelConfig
    card: str = "H100 SXM"
    tp_size: int = 1
    engine: str = "vLLM 0.8"
    fraction: float = 0.9
    weight_bits: int | None = None
    kv_bits: int = 16
    context_len: int = 8192
    batch_size: int = 1
    gpu_hour_dollars: float = 3.0

    def __post_init__(self) -> None:
        for field, value, known in (("card", self.card, CARDS), ("engine", self.engine, ENGINES)):
            if value not in known:
                raise ValueError(f"{field} must be one of {', '.join(known)}, got {value!r:.60}.")
        if self.weight_bits is not None and self.weight_bits not in (16, *STORED):
            raise ValueError(f"weight_bits must be 16, 8, 4 or as the file stores them, got {self.weight_bits!r}.")
        if self.kv_bits not in KV_BYTES:
            raise ValueError(f"kv_bits must be 16 or 8, got {self.kv_bits!r}.")
        limits = {"tp_size": MAX_DEGREE, "context_len": MAX_CONTEXT, "batch_size": MAX_BATCH}
        for field, most in limits.items():
            if require_int(field, getattr(self, field)) > most:
                raise ValueError(f"{field} must be at most {most:,}, got {getattr(self, field):,}.")
        require_positive("gpu_hour_dollars", self.gpu_hour_dollars)
        if transformer.parameters(self.model).in_checkpoint > MAX_PARAMETERS:
            raise ValueError(f"model must have at most {MAX_PARAMETERS:,} parameters, got more. Is it a real config?")
        if not self.model.attention_layers:
            raise ValueError(
                "model must have a layer with attention, got only layers with a state. Nothing of it would grow."
            )

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
        """Cache of one conversation on the fullest GPU [bytes]."""
        return kv_cache.bytes_per_sequence_per_gpu(self.model, self.question.context_len, self.question.tp_size)

    @property
    def conversations(self) -> tuple[int, int, int]:
        """Whole conversations in the pool, in its low end and in its high end [count]."""
        pool, one = self.plan.pool, self.sequence_bytes
        usual, low, high = (max(0, int(size // one)) for size in (pool.value, pool.low, pool.high))
        return usual, low, high

    @property
    def million_dollars(self) -> float:
        """Price of a million output tokens while the batch is full [dollars]."""
        asked = self.question
        return dollars_per_million(asked.gpu_hour_dollars, asked.tp_size, self.step.tokens_per_second)

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
            "streamed_bytes": transformer.streamed_weight_bytes(model, step.num_tokens),
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
    Memory as :func:`lantern_lib.memory_plan.plan_memory`, without a rotary table; the step as
    :func:`lantern_lib.step.decode_step` with the course's efficiencies. Page "The calculator".

    Examples
    --------
    >>> from lantern_lib.models import find_model
    >>> found = answer(Question(find_model("Llama-3.1-8B"), batch_size=64))
    >>> found.conversations[0], round(found.step.total_seconds * 1e3, 1)
    (51, 31.2)
    """
    model, card = question.stored_model, CARDS[question.card]
    rule = with_fraction(ENGINES[question.engine], question.fraction)
    load = (question.batch_size, question.context_len)
    return Answer(
        question=question,
        model=model,
        plan=plan_memory(model, card, question.tp_size, rule),
        step=decode_step(model, Replica(card, question.tp_size), *load),
        floor=decode_step(model, peak_replica(card, question.tp_size), *load),
    )


def tables(measurements: Iterable[Measurement] = ()) -> dict[str, Any]:
    """Return all tables and constants that the page's script computes from.

    Parameters
    ----------
    measurements : iterable of Measurement
        Published times; with them the tables say what single streams reached of the peak.

    Returns
    -------
    dict
        Plain values for JSON: models, cards, engines, families of ``config.json``, limits.

    Raises
    ------
    ValueError
        If measurements are given and none is of a single stream.

    Examples
    --------
    >>> found = tables()
    >>> len(found["models"]) > 20, found["cards"]["H100 SXM"]["memory_bandwidth"]
    (True, 3350000000000.0)
    """
    rows = list(measurements)
    spreads = [measured_spread(rows, "decode", degree) for degree in (1, 4)] if rows else []
    plain = Replica(hardware.H100)
    return {
        "models": _models(),
        "cards": {name: _card(card) for name, card in CARDS.items()},
        "engines": {name: asdict(rule) for name, rule in ENGINES.items()},
        "families": {name: _family(family) for name, family in hf_families.FAMILIES.items()},
        "wrapped": hf_families.WRAPPED,
        "harmless": sorted(hf_families.HARMLESS),
        "read": sorted(hf_families.READ),
        "wrapper": sorted(hf_families.WRAPPER - {"audio_config"}),
        "must_be_off": sorted(MUST_BE_OFF),
        "stored": {str(bits): kind for bits, kind in STORED.items()},
        "kv_bytes": {str(bits): size for bits, size in KV_BYTES.items()},
        "limits": {
            "characters": MAX_CHARACTERS,
            "side": hf_layers.LARGEST,
            "parameters": MAX_PARAMETERS,
            "tp_size": MAX_DEGREE,
            "context_len": MAX_CONTEXT,
            "batch_size": MAX_BATCH,
        },
        "stream_copies": memory_plan.STREAM_COPIES,
        "block_copies": memory_plan.BLOCK_COPIES,
        "vision_share": memory_plan.VISION_SHARE,
        "efficiencies": {"compute": plain.compute_efficiency, "bandwidth": plain.bandwidth_efficiency},
        "seconds_per_hour": SECONDS_PER_HOUR,
        "spreads": [_spread(spread) for spread in spreads],
    }


def _models() -> dict[str, Any]:
    """List the shipped models as the files that they come from; the course's own has the shape of one of them."""
    found: dict[str, Any] = {}
    for name, entry in public_models().items():
        shape = replace(entry.model, name=LANTERN_70B.name, source=LANTERN_70B.source)
        aliases = [*entry.aliases, *([LANTERN_70B.name] if shape == LANTERN_70B else [])]
        kept = {"config": entry.config, "aliases": aliases, "extra": list(entry.extra)}
        found[name] = kept | {"mtp": list(entry.mtp) if entry.mtp else None, "origin": entry.origin}
    return found


def _card(card: Accelerator) -> dict[str, Any]:
    shown = device_memory(card)
    return {
        "size": _triple(shown.size),
        "large": shown.large,
        "memory_bandwidth": card.memory_bandwidth,
        "peak_flops": card.peak_flops,
        "link": {"bandwidth": card.link.bandwidth, "latency_seconds": card.link.latency_seconds},
    }


def _family(family: hf_families.Family) -> dict[str, Any]:
    made = asdict(family)
    own = sorted(family.fields - hf_families.READ)
    return {key: value for key, value in made.items() if value} | {"own_fields": own}


def _spread(spread: Spread) -> dict[str, float]:
    return {"low": spread.low, "middle": spread.middle, "high": spread.high, "num_rows": spread.num_rows}
