"""Read the start-up log of vLLM, SGLang or TensorRT-LLM: the parts of memory, the pool, and what its numbers mean."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass

from lantern_lib import kv_cache
from lantern_lib.engine_rules import version_numbers
from lantern_lib.log_lines import Engine, Found, numbers, refuses, restarts, words
from lantern_lib.model_config import ModelConfig
from lantern_lib.units import GIB, format_quantity, require_int

#: The largest log that is read. A start writes some hundred lines.
MAX_CHARACTERS = 5_000_000
#: Numbers that are settings: they stand before the engine starts and hold for every rank.
_SETTINGS = frozenset({"fraction", "max_model_len", "tp_size", "block_size", "max_num_tokens", "max_num_seqs"})
#: What the parts of a log may miss of the whole before it is worth a word: two printed decimals, five times [bytes].
SUM_TOLERANCE_BYTES = 0.15 * GIB


@dataclass(frozen=True)
class EngineLog:
    """What a start-up log says, on one GPU: sizes in bytes, counts in tokens and blocks; None where it is silent.

    ``pools`` has the pool of every rank that printed one; the smallest decides. ``needed_bytes`` and
    ``estimated_max_len`` are what an engine that refuses says it would need, and the length that would fit; ``denied``
    is whether it says so in words.
    """

    engine: Engine
    version: str
    cache_format: str
    fraction: float | None
    device_bytes: float | None
    budget_bytes: float | None
    weight_bytes: float | None
    activation_bytes: float | None
    runtime_bytes: float | None
    graph_bytes: float | None
    free_bytes: float | None
    pools: tuple[float, ...]
    printed_tokens: int | None
    blocks: int | None
    block_size: int | None
    max_model_len: int | None
    concurrency: float | None
    tp_size: int | None
    max_num_tokens: int | None
    max_num_seqs: int | None
    needed_bytes: float | None
    estimated_max_len: int | None
    groups: bool
    denied: bool

    @property
    def pool_bytes(self) -> float | None:
        """The pool of the poorest rank [bytes]."""
        return min(self.pools) if self.pools else None

    @property
    def tokens(self) -> int | None:
        """Tokens that the pool holds: as printed, or blocks times their size [tokens]."""
        if self.printed_tokens is not None:
            return self.printed_tokens
        return self.blocks * self._tokens_of_a_block if self.blocks is not None else None

    @property
    def _tokens_of_a_block(self) -> int:
        """As printed, or the power of two that the printed concurrency needs, or the engine's default [tokens]."""
        if self.block_size is not None:
            return self.block_size
        if self.blocks and self.max_model_len and self.concurrency is not None and self.concurrency >= 0.1:
            return int(2 ** round(math.log2(max(1.0, self.concurrency * self.max_model_len / self.blocks))))
        return {"vLLM": 16, "SGLang": 1, "TensorRT-LLM": 64}[self.engine]

    @property
    def bytes_per_token(self) -> float | None:
        """Pool over tokens: cache of one token on one GPU, if every layer keeps the whole context [bytes]."""
        if not self.tokens or self.pool_bytes is None or self.pool_bytes <= 0:
            return None
        return self.pool_bytes / self.tokens

    @property
    def gap_bytes(self) -> float | None:
        """Budget less the printed parts and the pool, None where one is missing [bytes].

        Above :data:`SUM_TOLERANCE_BYTES` the setting was another than the log's text says, or a part is not printed.
        """
        budget = self.budget_bytes
        if budget is None and self.fraction is not None and self.device_bytes is not None:
            budget = self.fraction * self.device_bytes
        parts = (self.weight_bytes, self.activation_bytes, self.runtime_bytes, self.pool_bytes)
        if self.engine != "vLLM" or budget is None or any(part is None for part in parts):
            return None
        return budget - sum(part for part in parts if part is not None) - (self.graph_bytes or 0.0)

    @property
    def refused(self) -> bool:
        """Whether the engine did not start for want of memory."""
        without = self.pool_bytes is not None and self.pool_bytes <= 0
        short = self.concurrency is not None and self.concurrency < 1
        return without or short or self.denied or self.needed_bytes is not None

    @property
    def profiles_whole_prompts(self) -> bool:
        """Whether the peak was measured with a prompt of the full length, as vLLM before 0.8 did [yes or no]."""
        if self.version:
            return self.engine == "vLLM" and version_numbers(self.version) < (0, 8)
        return self.engine == "vLLM" and self.blocks is not None

    def concurrency_at(self, context_len: int, model: ModelConfig | None = None) -> float:
        """Return how many conversations of one length the pool holds.

        Parameters
        ----------
        context_len : int
            Length of each [tokens].
        model : ModelConfig, optional
            The shape: windows and recurrent states are then counted by layer; without it every token costs the same.

        Returns
        -------
        float
            Conversations, not rounded [count].

        Raises
        ------
        ValueError
            If `context_len` is below 1, or the log has neither tokens nor a pool that the model could divide.
        """
        require_int("context_len", context_len)
        if model is not None and self.pool_bytes is not None:
            one = kv_cache.bytes_per_sequence_per_gpu(model, context_len, self.tp_size or 1)
            return max(0.0, self.pool_bytes / one)
        if self.tokens is None:
            raise ValueError("tokens must be in the log, got none. Give the model, so that the pool can be divided.")
        return self.tokens / context_len

    @property
    def meaning(self) -> tuple[str, ...]:
        """What the engine means by its own numbers, a sentence each."""
        return tuple(_meaning(self))

    @property
    def advice(self) -> tuple[str, ...]:
        """What to change to fit more, the strongest first, a sentence each."""
        return tuple(_advice(self))

    @property
    def summary(self) -> str:
        """One line with what was found."""
        sizes = (
            ("weights", self.weight_bytes),
            ("activation peak", self.activation_bytes),
            ("runtime", self.runtime_bytes),
            ("recorded graphs", self.graph_bytes),
            ("pool", self.pool_bytes),
        )
        parts = [f"{name} {format_quantity(size, 'GiB', 2)}" for name, size in sizes if size is not None]
        parts += [f"{self.tokens:,} tokens"] if self.tokens is not None else []
        name = f"{self.engine} {self.version}".strip()
        return f"{name}: {', '.join(parts) or 'no sizes'}"


def _meaning(log: EngineLog) -> list[str]:
    said = []
    if log.engine == "vLLM":
        said.append("The pool is that of one GPU, and sizes printed as GB are GiB.")
        if log.groups:
            said.append(
                "Layers cache differently, so the printed tokens are concurrency times length, not places for tokens."
            )
        elif log.tokens is not None:
            said.append("The printed tokens are those of the whole group: blocks of the poorest GPU times their size.")
    elif log.engine == "SGLang":
        said.append("The tokens are places in the pool of one GPU; sizes printed as GB are GiB.")
        said.append("The static fraction covers weights and pool; activations live in what it leaves.")
    else:
        said.append("The fraction is of the memory that was free once weights and buffers were there.")
    if len(log.pools) > 1 and max(log.pools) - min(log.pools) > SUM_TOLERANCE_BYTES:
        spread = format_quantity(max(log.pools) - min(log.pools), "GiB", 2)
        said.append(f"The ranks differ by {spread}; the poorest decides for all.")
    if log.gap_bytes is not None and abs(log.gap_bytes) > SUM_TOLERANCE_BYTES:
        gap = format_quantity(log.gap_bytes, "GiB", 2)
        said.append(f"The printed parts miss the budget by {gap}: another setting held, or a part is not printed.")
    return said


def _gained(log: EngineLog, more_bytes: float) -> str:
    each = log.bytes_per_token
    tokens = f", about {int(more_bytes / each):,} tokens" if each and not log.groups else ""
    return f"{format_quantity(more_bytes, 'GiB', 2)}{tokens}"


def _advice(log: EngineLog) -> list[str]:
    said = []
    length = {"vLLM": "--max-model-len", "SGLang": "--context-length", "TensorRT-LLM": "--max_seq_len"}[log.engine]
    usable = log.estimated_max_len or log.tokens
    if log.refused and usable:
        said.append(f"It starts with {length} of at most {usable:,}.")
    elif log.refused:
        said.append("Nothing is left for the cache: add GPUs, or store the weights in fewer bytes.")
    elif log.max_model_len and log.tokens and log.profiles_whole_prompts:
        said.append(
            f"A smaller {length} lowers the activation peak, unless prompts are cut: this engine tried its peak with a"
            " prompt of that length."
        )
    elif log.max_model_len and log.tokens:
        said.append(f"A smaller {length} frees nothing: it is a limit, not an allotment.")
    if log.device_bytes is not None and log.fraction is not None and log.fraction < 0.95:
        base = log.device_bytes if log.engine != "TensorRT-LLM" else log.free_bytes or log.device_bytes
        said.append(
            f"A fraction of 0.95 instead of {log.fraction:g} gives {_gained(log, (0.95 - log.fraction) * base)}."
        )
    if log.activation_bytes is not None and log.activation_bytes > 2 * GIB:
        peak = format_quantity(log.activation_bytes, "GiB", 2)
        said.append(
            f"The activation peak of {peak} follows the sequences and tokens of one step: halving --max-num-seqs and"
            f" --max-num-batched-tokens gives up to {_gained(log, log.activation_bytes / 2)}."
        )
    if log.graph_bytes is not None and log.graph_bytes > 0.1 * GIB:
        said.append(f"Recorded steps take {_gained(log, log.graph_bytes)}; fewer sizes to record give it back.")
    if log.cache_format in ("", "auto", "bfloat16", "float16") and log.tokens:
        said.append("A cache of 8 bits holds twice the tokens.")
    return said


def _last(found: list[Found], field: str) -> float | None:
    values = [each.value for each in found if each.field == field]
    return values[-1] if values else None


def _whole(found: list[Found], field: str) -> int | None:
    value = _last(found, field)
    return int(value) if value is not None else None


def _pools(found: list[Found]) -> tuple[float, ...]:
    pools = [each.value for each in found if each.field == "pool"]
    pools += [each.value for each in found if each.field == "pool_bytes"]
    keys = [each.value for each in found if each.field == "keys"]
    values = [each.value for each in found if each.field == "values"]
    return tuple(pools + [key + value for key, value in zip(keys, values, strict=False)])


def read_engine_log(text: str) -> EngineLog:
    """Read the start-up log of an engine.

    Parameters
    ----------
    text : str
        The log, or the part of it from the start to the first request [text].

    Returns
    -------
    EngineLog
        The last start in it: parts, pool, tokens, and what they mean.

    Raises
    ------
    ValueError
        If it is no text, too long, or has no line about memory that any of the three engines writes.

    Notes
    -----
    Read are vLLM from 0.2 to now, SGLang, and TensorRT-LLM with both of its runtimes. Several ranks may write into one
    log. Escape codes, cut lines and whatever else stands in it are passed over.

    Examples
    --------
    >>> log = read_engine_log('''INFO 03-21 [worker.py:267] model weights take 12.55GiB; non_torch_memory takes 0.16GiB
    ... INFO 03-21 [worker.py:267] the rest of the memory reserved for KV Cache is 56.18GiB.
    ... INFO 03-21 [executor_base.py:111] # cuda blocks: 7191, # CPU blocks: 512''')
    >>> log.tokens, round(log.bytes_per_token)
    (115056, 524291)
    """
    if not isinstance(text, str):
        raise ValueError(f"text must be the text of a log, got {type(text).__name__}.")
    if len(text) > MAX_CHARACTERS:
        raise ValueError(
            f"text must have at most {MAX_CHARACTERS:,} characters, got {len(text):,}. The part up to the first request"
            " is enough."
        )
    begin = restarts(text)
    everything = list(numbers(text))
    if not everything:
        count = len(text.splitlines())
        raise ValueError(
            "text must hold lines about memory as vLLM, SGLang or TensorRT-LLM write them at start, got"
            f" {count:,} lines without any."
        )
    engine = Counter(each.engine for each in everything if each.field not in _SETTINGS) or Counter(
        each.engine for each in everything
    )
    name = engine.most_common(1)[0][0]
    # Settings may stand before the line that says that the engine starts; what was measured may not.
    found = [e for e in everything if e.engine == name and (e.line >= begin or e.field in _SETTINGS)]
    version, cache = words(text)
    return _log(name, version, cache, found, refuses(text))


def _runtime(found: list[Found], weights: float | None) -> float | None:
    """Return what lies outside the allocator: as printed, or all that was consumed less the weights."""
    consumed, printed = _last(found, "consumed"), _last(found, "runtime")
    if printed is None and consumed is not None and weights is not None:
        return max(0.0, consumed - weights)
    return printed


def _log(name: Engine, version: str, cache: str, found: list[Found], denied: bool) -> EngineLog:
    weights = _last(found, "weights")
    return EngineLog(
        engine=name,
        version=version,
        cache_format=cache,
        fraction=_last(found, "fraction"),
        device_bytes=_last(found, "device"),
        budget_bytes=_last(found, "budget"),
        weight_bytes=weights,
        activation_bytes=_last(found, "activation"),
        runtime_bytes=_runtime(found, weights),
        graph_bytes=_last(found, "graphs"),
        free_bytes=_last(found, "free"),
        pools=_pools(found),
        printed_tokens=_whole(found, "tokens"),
        blocks=_whole(found, "blocks"),
        block_size=_whole(found, "block_size"),
        max_model_len=_whole(found, "max_model_len"),
        concurrency=_last(found, "concurrency"),
        tp_size=_whole(found, "tp_size"),
        max_num_tokens=_whole(found, "max_num_tokens"),
        max_num_seqs=_whole(found, "max_num_seqs"),
        needed_bytes=_last(found, "needed"),
        estimated_max_len=_whole(found, "estimated_max_len"),
        groups=_last(found, "groups") is not None,
        denied=denied,
    )
