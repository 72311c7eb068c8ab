"""The lines of start-up logs that say something about memory, by engine."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal

from lantern_lib.units import GIB, MIB

Engine = Literal["vLLM", "SGLang", "TensorRT-LLM"]

#: Longest line that is searched. Lines with all settings of an engine have some ten thousand characters.
MAX_LINE = 20_000
#: No card, pool or weight of this world is larger: what is beyond is noise [GiB].
MAX_GIB = 1e6
#: No number of tokens is larger [tokens].
MAX_COUNT = 10**12

_NUMBER = r"(-?\d{1,9}(?:\.\d{1,9})?)"
_SIZE = rf"{_NUMBER} ?(GiB|GB|MiB|MB)"
_COUNT = r"(\d{1,3}(?:,\d{3}){1,4}|\d{1,15})"
_ESCAPES = re.compile(r"\x1b\[[0-9;?]{0,20}[A-Za-z]|[\x00-\x08\x0b-\x1f\x7f]")


@dataclass(frozen=True)
class Pattern:
    """One kind of line: the engine it belongs to, and the field its number is for."""

    engine: Engine
    field: str
    literal: str
    search: re.Pattern[str]
    read: Callable[[re.Match[str]], float | None]


def _size(match: re.Match[str]) -> float | None:
    # All three engines divide by 2**30 and some print GB.
    number = float(match[1]) * (MIB if match[2].startswith("M") else GIB)
    return number if abs(number) <= MAX_GIB * GIB else None


def _count(match: re.Match[str]) -> float | None:
    number = int(match[1].replace(",", ""))
    return float(number) if number <= MAX_COUNT else None


def _plain(match: re.Match[str]) -> float | None:
    number = float(match[1])
    return number if math.isfinite(number) else None


def _fraction(match: re.Match[str]) -> float | None:
    number = float(match[1])
    return number if 0 < number <= 1 else None


_READERS = {"size": (_SIZE, _size), "count": (_COUNT, _count), "plain": (_NUMBER, _plain)}
_READERS["fraction"] = (_NUMBER, _fraction)

#: Field, kind of number, and the line with a mark where the number stands.
_LINES: dict[Engine, tuple[tuple[str, str, str], ...]] = {
    "vLLM": (
        ("weights", "size", r"Loading model weights took #"),
        ("weights", "size", r"Model loading took #"),
        ("weights", "size", r"model weights take +#"),
        ("weights", "size", r"weights memory: #"),
        ("weights", "size", r"Actual usage(?: is|:) # for weight"),
        # The newest lines do not tell weights from what lies outside the allocator.
        ("consumed", "size", r"Actual usage(?: is|:) # for consumed memory"),
        ("device", "size", r"total_gpu_memory +\(?#"),
        ("device", "size", r"Free memory on device \(\d{1,6}(?:\.\d{1,6})?/#\)"),
        ("fraction", "fraction", r"gpu_memory_utilization +\(?#"),
        ("fraction", "fraction", r"gpu_memory_utilization'?[=:] ?#"),
        ("fraction", "fraction", r"gpu-memory-utilization[= ]#"),
        ("fraction", "fraction", r"Desired GPU memory utilization is \(#,"),
        ("budget", "size", r"instance can use +#"),
        ("budget", "size", r"gpu_memory_utilization \(\d?\.\d{1,6}\) = #"),
        ("budget", "size", r"Desired GPU memory utilization is \(\d?\.?\d{1,6}, #\)"),
        ("runtime", "size", r"non_torch_memory +(?:takes +)?#"),
        ("runtime", "size", r"non-torch forward increase memory: #"),
        ("runtime", "size", r"# for non-torch memory"),
        ("activation", "size", r"PyTorch activation peak memory +(?:takes +)?#"),
        ("activation", "size", r"torch peak memory increase: #"),
        ("activation", "size", r"# for peak activation"),
        ("graphs", "size", r"Estimated CUDA graph memory: #"),
        ("graphs taken", "size", r"# for CUDAGraph memory"),
        ("graphs taken", "size", r"Graph capturing finished in \d{1,6} secs?, took #"),
        ("pool", "size", r"for KV Cache is #"),
        ("pool", "size", r"available_kv_cache_memory +#"),
        ("pool", "size", r"Available KV cache memory: #"),
        ("pool", "size", r"Current (?:kv|KV) cache memory(?: in use is|:) #"),
        ("pool", "size", r"larger than the available KV cache memory \(#"),
        # The name of the device stands before it, and what is swapped to the host's memory comes after.
        ("blocks", "count", r"(?:# (?!CPU)[A-Za-z]{2,8}|\b(?:GPU|cuda|CUDA)) blocks: #"),
        ("tokens", "count", r"GPU KV cache size: # tokens"),
        ("tokens", "count", r"number of tokens that can be stored in KV cache \(#\)"),
        ("max_model_len", "count", r"Maximum concurrency for # tokens per request"),
        ("max_model_len", "count", r"max seq len \(#\)"),
        ("max_model_len", "count", r"max_seq_len=#"),
        ("max_model_len", "count", r"Using max model len #"),
        ("max_model_len", "count", r"'max_model_len': #"),
        ("concurrency", "plain", r"tokens per request: #x"),
        ("needed", "size", r"#(?: of)? KV cache is needed"),
        ("estimated_max_len", "count", r"estimated maximum model length is #"),
        ("tp_size", "count", r"tensor_parallel_size'?[=:] ?#"),
        ("block_size", "count", r"block_size'?[=:] ?#"),
        ("max_num_tokens", "count", r"max_num_batched_tokens'?[=:] ?#"),
        ("max_num_seqs", "count", r"max_num_seqs'?[=:] ?#"),
        ("groups", "count", r"Add # padding layers"),
        ("groups", "count", r"Setting attention block size to # tokens"),
    ),
    "SGLang": (
        ("free", "size", r"Load weight begin\. avail mem=#"),
        ("weights", "size", r"Load weight end\.[^=]{0,80}.{0,400}mem usage=#"),
        ("tokens", "count", r"KV Cache is allocated\..{0,80}#tokens: #"),
        ("keys", "size", r"KV Cache is allocated\..{0,120}K size: #"),
        ("values", "size", r"KV Cache is allocated\..{0,160}V size: #"),
        ("pool", "size", r"KV Cache is allocated\..{0,120}KV size: #"),
        ("left", "size", r"Memory pool end\. avail mem=#"),
        ("graphs taken", "size", r"Capture cuda graph end\..{0,80}mem usage=#"),
        ("tokens", "count", r"max_total_num_tokens=#"),
        ("max_model_len", "count", r"context_len=#"),
        ("max_num_tokens", "count", r"chunked_prefill_size=#"),
        ("max_num_seqs", "count", r"max_running_requests=#"),
        ("fraction", "fraction", r"mem_fraction_static=#"),
        ("fraction", "fraction", r"--mem-fraction-static[= ]#"),
        ("tp_size", "count", r"[ ,(]tp_size=#"),
    ),
    "TensorRT-LLM": (
        ("pool", "size", r"Allocated # for max tokens in paged KV cache"),
        ("tokens", "count", r"for max tokens in paged KV cache \(#\)"),
        ("tokens", "count", r"Using # tokens in paged KV cache"),
        ("pool_bytes", "count", r"Allocate # bytes for k/v cache"),
        ("blocks", "count", r"Number of blocks in KV cache primary pool: #"),
        ("blocks", "count", r"primary blocks=#"),
        ("block_size", "count", r"Number of tokens per block: #"),
        ("block_size", "count", r"tokens per block=#"),
        ("device", "size", r"paged kv cache: total: #"),
        ("free", "size", r"paged kv cache: total: [\d.]{1,12} ?GiB, available: #"),
        ("weights", "size", r"Loaded engine size: #"),
        ("weights", "size", r"[Mm]emory used (?:after loading|for) model weights \(inside torch\).{0,60}: #"),
        ("fraction", "fraction", r"kv_cache_free_gpu_mem(?:ory)?_fraction\W{1,4}#"),
        ("fraction", "fraction", r"free_gpu_memory_fraction\W{1,4}#"),
        ("max_model_len", "count", r"\[TRT-LLM\] \[I\] max_seq_len=#"),
        ("max_num_tokens", "count", r"max_num_requests=\d{1,9}, max_num_tokens=#"),
        ("max_num_seqs", "count", r"max_num_requests=\d{1,9}, max_num_tokens=\d{1,9}, max_batch_size=#"),
        ("max_model_len", "count", r"maxSequenceLen: #"),
        ("max_num_tokens", "count", r"maxNumTokens: #"),
        ("max_num_seqs", "count", r"maxBatchSize: #"),
    ),
}


def _literal(line: str) -> str:
    """Return the longest words that every line of a kind holds: looking for them first keeps a long log cheap."""
    fixed = re.sub(r"\((?:[^()\\]|\\.)*\)\??|\[[^\]]*\]|\{[^}]*\}|.\?", "|", line)
    return max(re.split(r"[#\\|+?*.^$\[\]{}()]", fixed), key=len)


def _compile(engine: Engine, field: str, kind: str, line: str) -> Pattern:
    number, read = _READERS[kind]
    # The last mark is the number; an earlier one is the sign that vLLM and SGLang print.
    before, _, after = line.rpartition("#")
    return Pattern(engine, field, _literal(line), re.compile(before.replace("#", r"\#") + number + after), read)


PATTERNS = tuple(_compile(engine, *line) for engine, lines in _LINES.items() for line in lines)
_RESTART = re.compile(r"Initializing an? (?:V1 )?LLM engine|server_args=ServerArgs|Starting vLLM API server")
_VERSIONS = (
    re.compile(r"LLM engine \(v(\d{1,3}\.\d{1,3}[\w.+]{0,30})"),
    re.compile(r"version (\d{1,3}\.\d{1,3}[\w.+]{0,30})"),
    re.compile(r"vllm[-=]{1,2}(\d{1,3}\.\d{1,3}[\w.+]{0,30})"),
)
_REFUSALS = (
    "No available memory for the cache blocks",
    "is larger than the maximum number of tokens that can be stored in KV cache",
    "leave no GPU memory for the KV cache",
    "Not enough memory. Please try to increase --mem-fraction-static",
)
_CACHE = re.compile(r"kv_cache_dtype'?[=:] ?'?\"?([a-z0-9_]{1,20})")


@dataclass(frozen=True)
class Found:
    """One number of a log: its line, what it is, and its value [bytes, tokens, ratio]."""

    line: int
    engine: Engine
    field: str
    value: float


def clean(line: str) -> str:
    """Return a line without escape codes and control characters, cut to the length that is searched.

    Parameters
    ----------
    line : str
        As it stands in the log [text].

    Returns
    -------
    str
        What a terminal would show of it [text].

    Examples
    --------
    >>> clean("\\x1b[1;36m(EngineCore pid=9)\\x1b[0;0m GPU KV cache size: 178,880 tokens\\r")
    '(EngineCore pid=9) GPU KV cache size: 178,880 tokens'
    """
    return _ESCAPES.sub("", line[:MAX_LINE])


def numbers(text: str) -> Iterator[Found]:
    """Yield the numbers that a log says about memory.

    Parameters
    ----------
    text : str
        The log [text].

    Returns
    -------
    iterator of Found
        In the order of the lines; a line may hold several.

    Examples
    --------
    >>> [(found.field, found.value) for found in numbers("GPU KV cache size: 178,880 tokens")]
    [('tokens', 178880.0)]
    """
    for index, raw in enumerate(text.splitlines()):
        line = clean(raw)
        for pattern in PATTERNS:
            match = pattern.search.search(line) if pattern.literal in line else None
            value = pattern.read(match) if match else None
            if value is not None:
                yield Found(index, pattern.engine, pattern.field, value)


def restarts(text: str) -> int:
    """Return the line where the last start of an engine begins.

    Parameters
    ----------
    text : str
        The log [text].

    Returns
    -------
    int
        Index of the line, 0 if no line says that an engine starts [count].

    Examples
    --------
    >>> restarts("a\\nInitializing a V1 LLM engine (v0.11.0) with config\\nb")
    1
    """
    last = 0
    for index, raw in enumerate(text.splitlines()):
        if _RESTART.search(raw[:MAX_LINE]):
            last = index
    return last


def refuses(text: str) -> bool:
    """Tell whether an engine says in words that nothing, or too little, is left for its cache.

    Parameters
    ----------
    text : str
        The log [text].

    Returns
    -------
    bool
        Whether it holds such a sentence.

    Examples
    --------
    >>> refuses("ValueError: No available memory for the cache blocks. Try increasing")
    True
    """
    return any(words in text for words in _REFUSALS)


def words(text: str) -> tuple[str, str]:
    """Return the engine's version and the format of its cache, as far as the log names them.

    Parameters
    ----------
    text : str
        The log [text].

    Returns
    -------
    (str, str)
        Version and format, empty where no line names them [text].

    Examples
    --------
    >>> words("Initializing a V1 LLM engine (v0.11.0) with config: kv_cache_dtype=fp8, seed=0")
    ('0.11.0', 'fp8')
    """
    version = cache = ""
    for raw in text.splitlines():
        line = clean(raw)
        for pattern in _VERSIONS:
            match = pattern.search(line) if not version else None
            version = match[1] if match else version
        match = _CACHE.search(line)
        cache = match[1] if match else cache
    return version, cache
