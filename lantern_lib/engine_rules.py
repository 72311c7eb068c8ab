"""How engines divide a card's memory, and how much a card really shows.

The rules are those of the engines' start-up code and logs, by version; every constant has its reason beside it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Literal

from lantern_lib.hardware import Accelerator
from lantern_lib.units import GB, GIB, require_fraction, require_int, require_positive

FractionOf = Literal["total", "free", "static"]


@dataclass(frozen=True)
class Range:
    """A number with the least and the most it may be, all in one unit [bytes]."""

    value: float
    low: float
    high: float

    def __post_init__(self) -> None:
        if not self.low <= self.value <= self.high:
            raise ValueError(f"low, value and high must not fall, got {self.low!r}, {self.value!r}, {self.high!r}.")


@dataclass(frozen=True)
class DeviceMemory:
    """What one card shows to a program.

    Parameters
    ----------
    name : str
        Product name.
    size : Range
        Memory that the driver reports as total [bytes].
    large : bool
        Whether vLLM takes its large default batch on it: 70 GiB or more, and no A100.

    Examples
    --------
    >>> round(device_memory("H100").size.value / 1e9, 1)
    85.0
    """

    name: str
    size: Range
    large: bool = False


def _shown(name: str, gib: float, low: float, high: float, *, large: bool = False) -> DeviceMemory:
    return DeviceMemory(name, Range(gib * GIB, low * GIB, high * GIB), large)


#: Total memory that engines and drivers print at start, in GiB: usual value, least and most that was seen. Cards whose
#: memory corrects errors by itself lose a sixteenth to it, which is why 48 GB show 44.5 GiB.
DEVICES: dict[str, DeviceMemory] = {
    each.name: each
    for each in (
        _shown("H100", 79.18, 79.1, 79.65, large=True),
        _shown("H100 NVL", 93.1, 92.9, 93.6, large=True),
        _shown("H200", 139.8, 139.7, 140.5, large=True),
        _shown("H20", 95.1, 94.9, 95.6, large=True),
        _shown("H20 141 GB", 139.8, 139.7, 140.5, large=True),
        _shown("H800", 79.18, 79.1, 79.65, large=True),
        _shown("GH200", 94.5, 94.4, 95.6, large=True),
        _shown("B200", 178.4, 177.9, 180.0, large=True),
        _shown("GB200", 184.3, 183.0, 185.5, large=True),
        _shown("A100", 79.2, 79.1, 79.35),
        _shown("A100 40 GB", 39.39, 39.3, 39.6),
        _shown("A800", 79.2, 79.1, 79.35),
        _shown("L40S", 44.5, 44.3, 44.7),
        _shown("L20", 44.5, 44.3, 44.7),
        _shown("A40", 44.4, 44.3, 44.7),
        _shown("RTX A6000", 47.4, 47.3, 47.6),
        _shown("RTX 6000 Ada", 47.4, 47.3, 47.6),
        _shown("RTX PRO 6000", 94.97, 94.5, 95.6, large=True),
        _shown("A10", 22.1, 21.9, 22.5),
        _shown("A10G", 22.1, 21.9, 22.5),
        _shown("L4", 22.05, 21.9, 22.5),
        _shown("RTX A5000", 23.57, 23.4, 23.7),
        _shown("RTX 3090", 23.58, 23.4, 23.7),
        _shown("RTX 4090", 23.55, 23.4, 23.65),
        _shown("RTX 5090", 31.36, 31.3, 31.85),
        _shown("RTX 4060", 7.75, 7.6, 7.8),
        _shown("T4", 14.6, 14.5, 14.8),
        _shown("V100", 31.73, 31.6, 31.8),
        _shown("V100 16 GB", 15.77, 15.7, 15.8),
    )
}
_BYTES_IN_NAME = re.compile(r"(\d+)\s*gi?b")


def _card_key(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", re.sub(r"nvidia|geforce|tesla|sxm\d?|pcie|hbm\d\w?|class", "", name.lower()))


def device_memory(card: Accelerator | DeviceMemory | str) -> DeviceMemory:
    """Return what a card shows to a program.

    Parameters
    ----------
    card : Accelerator, DeviceMemory or str
        A card of the catalogue, its name, or a size such as ``"80GB"`` or ``"24GB-class"`` where that is all that is
        known [text].

    Returns
    -------
    DeviceMemory
        The bytes that a driver reports.

    Raises
    ------
    ValueError
        If the name is unknown and holds no size.

    Notes
    -----
    A product's "80 GB" are 79.2 GiB, 85.0 billion bytes: 6 percent more than 80 billion. Where only a size is known it
    is taken as GiB less 2 percent, give or take what the catalogue's cards show: from 92 to 100 percent.

    Examples
    --------
    >>> [round(device_memory(card).size.value / 2**30, 1) for card in ("H100", "RTX 4090 24GB", "80GB-class")]
    [79.2, 23.6, 79.2]
    """
    if isinstance(card, DeviceMemory):
        return card
    if isinstance(card, Accelerator):
        known = _find(card.name)
        if known is not None:
            return known
        return _from_size(card.name, card.memory_bytes / GB)
    if not isinstance(card, str):
        raise ValueError(f"card must be an Accelerator or a name, got {type(card).__name__}.")
    known = _find(card)
    if known is not None:
        return known
    size = _BYTES_IN_NAME.search(card.lower())
    if size is None or not 1 <= int(size[1]) <= 1024:
        raise ValueError(f"card must be one of {', '.join(DEVICES)}, or a size like '80GB', got {card[:60]!r}.")
    return _from_size(card, int(size[1]))


def _find(name: str) -> DeviceMemory | None:
    """Find a card by its whole name, or by its name without the size that follows it."""
    keys = {_card_key(known): known for known in DEVICES}
    exact = _card_key(name)
    bare = _card_key(_BYTES_IN_NAME.sub("", name.lower()))
    for key in (exact, bare):
        for prefix in ("", "rtx"):
            if prefix + key in keys:
                return DEVICES[keys[prefix + key]]
    return None


def _from_size(name: str, gigabytes: float) -> DeviceMemory:
    gib = gigabytes * GIB
    if 75 <= gigabytes <= 81:
        # Every card of this size shows the same; which of them it is decides the default batch.
        return DeviceMemory(name, Range(79.2 * GIB if gigabytes == 80 else 0.99 * gib, 0.988 * gib, 1.0 * gib), True)
    return DeviceMemory(name, Range(0.98 * gib, 0.92 * gib, gib), gigabytes >= 75)


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
    sampler_bytes : float
        Peak of sampling for one sequence and one entry of the vocabulary [bytes].
    logits_bytes : float
        Peak of the output matrix for one token of the step and one entry of the vocabulary [bytes].
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
    sampler_bytes: float = 0.0
    logits_bytes: float = 0.0
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

    def token_budget(self, device: DeviceMemory) -> int:
        """Return the tokens of a step that the engine takes by default on a card.

        Parameters
        ----------
        device : DeviceMemory
            The card.

        Returns
        -------
        int
            Most tokens of one step [tokens].
        """
        return self.large_num_tokens if device.large else self.max_num_tokens

    def sequence_budget(self, device: DeviceMemory) -> int:
        """Return the sequences of a step that the engine takes by default on a card.

        Parameters
        ----------
        device : DeviceMemory
            The card.

        Returns
        -------
        int
            Most sequences of one step [count].
        """
        return self.large_num_seqs if device.large else self.max_num_seqs


#: Peak of sampling a row of logits, for each entry: the row in 16 and 32 bits, its sorted copy with 64-bit places,
#: probabilities, sums and masks. Eight published start-up logs give 38 to 40 (H100, A100, three vocabularies, 256 to
#: 2,048 sequences); it explains why a model of 0.6B and one of 32B set aside the same 5.6 GiB.
SAMPLER_BYTES = 39.0

_VLLM = EngineRule(
    name="vLLM",
    version="0.8",
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
    # The first form of the new core made logits for every token of the step, and sampled none; the old core, which was
    # still the default, sampled. The larger of both is taken.
    replace(
        _VLLM,
        version="0.7",
        large_num_seqs=256,
        logits_bytes=2.0,
        runtime=(0.6 * GIB, 0.14 * GIB, 1.9 * GIB),
        runtime_shared=(0.6 * GIB, 0.1 * GIB, 1.9 * GIB),
    ),
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
        runtime=(0.6 * GIB, 0.3 * GIB, 1.2 * GIB),
        runtime_shared=(0.5 * GIB, 0.2 * GIB, 1.2 * GIB),
        block_size=1,
    ),
    # An engine file allots buffers for its largest batch when it is built: 1.7 GiB with a small batch, 4.0 with 25 long
    # sequences were left between weights, pool and total.
    EngineRule(
        name="TensorRT-LLM",
        version="0.0",
        fraction=0.9,
        fraction_of="free",
        fraction_usual=(0.85, 0.95),
        max_num_tokens=8192,
        max_num_seqs=256,
        large_num_seqs=256,
        runtime=(1.2 * GIB, 0.4 * GIB, 4.5 * GIB),
        runtime_shared=(0.6 * GIB, 0.2 * GIB, 1.5 * GIB),
        block_size=32,
    ),
)


def _version(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d{1,6}", text)[:3])


def engine_rule(engine: str = "vLLM", version: str = "") -> EngineRule:
    """Return how an engine divides memory.

    Parameters
    ----------
    engine : str
        vLLM, SGLang or TensorRT-LLM; capitals and hyphens do not matter [text].
    version : str
        Its version, such as ``"0.11.0"``; without it the rule is that of vLLM 0.8 to 0.20, with ranges over all
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
    wanted = _version(version) if isinstance(version, str) else ()
    if not wanted:
        return _VLLM_UNKNOWN if names[key] == "vLLM" else rules[-1]
    return [rule for rule in rules if _version(rule.version) <= wanted][-1]


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


def known_size(gib: float) -> DeviceMemory:
    """Return a card of which only the printed size is known.

    Parameters
    ----------
    gib : float
        What an engine printed as the device's total [GiB].

    Returns
    -------
    DeviceMemory
        A card of that size.

    Raises
    ------
    ValueError
        If the size is not a finite number above 0.

    Examples
    --------
    >>> known_size(79.22).large
    True
    """
    size = require_positive("gib", gib) * GIB
    return DeviceMemory(f"{gib:g} GiB", Range(size, size, size), large=gib >= 70)
