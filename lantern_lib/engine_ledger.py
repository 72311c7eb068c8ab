"""What a real engine took on a plain CPU, row by row, beside the floor of the machine it ran on.

The rows are written by ``benchmarks/engine.py``. The floor has three numbers, all measured on that machine: bytes per
second that it reads, FLOPs per second of a matrix product, and the bytes of the model's file.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path

from lantern_lib import step, transformer
from lantern_lib.hardware import Accelerator, Link, Replica
from lantern_lib.hf_config import from_hf_config
from lantern_lib.model_config import ModelConfig
from lantern_lib.units import require_int

#: Kinds of rows: two rates of the machine, two kinds of steps, and two experiments with whole requests.
KINDS = ("bandwidth", "arithmetic", "decode", "prefill", "cache", "load")
#: What the value of each kind counts.
UNITS = {"bandwidth": "bytes/s", "arithmetic": "FLOPs/s"}
#: Numbers that the model's file holds, by the file itself.
NUM_WEIGHTS = 268_098_176


@dataclass(frozen=True)
class EngineRow:
    """One measured number: the best of many repeats, and their median.

    Parameters
    ----------
    kind : str
        One of :data:`KINDS`.
    format : str
        How the weights are stored; empty for a rate of the machine.
    threads : int
        Threads that computed [count].
    slots : int
        Sequences that the engine may run together [count].
    batch_size, context_len : int
        Of a decode step [sequences, tokens].
    prompt_len, num_cached_tokens : int
        Tokens of a prompt, and how many of them the engine did not compute again [tokens].
    rate : float
        Requests offered per second in an open loop, 0 elsewhere [1/s].
    case : str
        What was varied besides: the sampler, the use of the cache, or which number of a load test this is.
    value, median : float
        The shortest time, or the highest rate of the machine, over the repeats; and their median [unit].
    unit : str
        ``s``, ``bytes/s``, ``FLOPs/s`` or ``tokens/s``.
    count : int
        Repeats [count].
    load_average : float
        How many processes wanted a processor in the last minute, this one among them [count].
    weight_bytes : int
        Bytes of all tensors of the file [bytes].
    date, processor, engine, model : str
        When, on what, and with which versions.
    processors, memory_bytes : int
        Of the machine, as its system says [count, bytes].

    Raises
    ------
    ValueError
        If the kind or unit is unknown, or a number is not positive and finite.

    Examples
    --------
    >>> row = EngineRow("decode", "Q8_0", 1, 1, 1, 256, 0, 0, 0.0, "greedy", 0.02, 0.03, "s", 50, 1.0, 285_018_624)
    >>> row.question
    ('decode', 'Q8_0', 1, 1, 1, 256, 0, 0, 0.0, 'greedy')
    """

    kind: str
    format: str
    threads: int
    slots: int
    batch_size: int
    context_len: int
    prompt_len: int
    num_cached_tokens: int
    rate: float
    case: str
    value: float
    median: float
    unit: str
    count: int
    load_average: float
    weight_bytes: int
    date: str = ""
    processor: str = ""
    processors: int = 1
    memory_bytes: int = 0
    engine: str = ""
    model: str = ""

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise ValueError(f"kind must be one of {', '.join(KINDS)}, got {self.kind!r}. Was the file edited by hand?")
        units = {UNITS[self.kind]} if self.kind in UNITS else {"s", "tokens/s"}
        if self.unit not in units:
            raise ValueError(f"unit must be {' or '.join(sorted(units))} for {self.kind}, got {self.unit!r}.")
        require_int("threads", self.threads)
        require_int("count", self.count)
        for name in ("value", "median"):
            number = getattr(self, name)
            if not (math.isfinite(number) and number > 0):
                raise ValueError(
                    f"{name} must be positive and finite, got {number!r}. A time of nothing is no measurement."
                )

    @property
    def question(self) -> tuple[str | int | float, ...]:
        """What was measured: rows that agree here are repeats of one another."""
        return tuple(getattr(self, field.name) for field in fields(self)[:10])


#: The columns of the file, in order.
COLUMNS = tuple(field.name for field in fields(EngineRow))
_NUMBERS = {"int": int, "float": float}


def read_engine_rows(path: str | Path) -> list[EngineRow]:
    """Read a file of rows.

    Parameters
    ----------
    path : str or Path
        A CSV with the columns :data:`COLUMNS`.

    Returns
    -------
    list of EngineRow
        In the file's order.

    Raises
    ------
    ValueError
        If a column is missing or a cell is not what it must be; the line is named.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "rows.csv"
    ...     _ = path.write_text(",".join(COLUMNS) + "\\n", encoding="utf-8")
    ...     read_engine_rows(path)
    []
    """
    rows = []
    with Path(path).open(encoding="utf-8", newline="") as file:
        table = csv.DictReader(file)
        missing = sorted(set(COLUMNS) - set(table.fieldnames or ()))
        if missing:
            raise ValueError(f"columns must include {', '.join(missing)}, got {table.fieldnames}. Is it this file?")
        for record in table:
            try:
                values = {f.name: _NUMBERS.get(str(f.type), str)(record[f.name]) for f in fields(EngineRow)}
                rows.append(EngineRow(**values))
            except (TypeError, ValueError) as error:
                raise ValueError(f"line {table.line_num} of {Path(path).name}: {error}") from None
    return rows


def best_rows(rows: Iterable[EngineRow]) -> list[EngineRow]:
    """Merge runs at different times: keep the best value of each question.

    Parameters
    ----------
    rows : iterable of EngineRow
        Of one machine.

    Returns
    -------
    list of EngineRow
        One for each question, with the repeats of all. A time keeps the shortest; a rate of the machine the highest. A
        row of a load test is no repeat of another: the last one counts.

    Raises
    ------
    ValueError
        If the rows come from more than one machine.

    Examples
    --------
    >>> row = EngineRow("decode", "Q8_0", 1, 1, 1, 256, 0, 0, 0.0, "greedy", 0.02, 0.03, "s", 50, 1.0, 285_018_624)
    >>> [merged] = best_rows([row, replace(row, value=0.015)])
    >>> merged.value, merged.count
    (0.015, 100)
    """
    found: dict[tuple[str | int | float, ...], EngineRow] = {}
    machines = set()
    for row in rows:
        machines.add((row.processor, row.processors))
        old = found.get(row.question)
        if old is None or row.kind == "load":
            found[row.question] = row
            continue
        better = row.value > old.value if row.kind in UNITS else row.value < old.value
        found[row.question] = replace(row if better else old, count=row.count + old.count)
    if len(machines) > 1:
        raise ValueError(f"processor must be one for all rows, got {sorted(machines)}. Compare machines one by one.")
    return list(found.values())


def gemma_270m(weight_bytes: float) -> ModelConfig:
    """Return the shape of the measured model, stored in a given number of bytes.

    Parameters
    ----------
    weight_bytes : float
        Bytes of all tensors of the file [bytes].

    Returns
    -------
    ModelConfig
        Gemma 3 270M with the file's mean bytes a weight, and a cache of 16 bits.

    Notes
    -----
    One mean is exact for a decode step, which reads the whole file once: the table of the vocabulary is the output
    matrix too.

    Examples
    --------
    >>> round(gemma_270m(285_018_624).weight_bytes, 3)
    1.063
    """
    config = {
        "model_type": "gemma3_text",
        "num_hidden_layers": 18,
        "hidden_size": 640,
        "intermediate_size": 2048,
        "num_attention_heads": 4,
        "num_key_value_heads": 1,
        "head_dim": 256,
        "vocab_size": 262_144,
        "sliding_window": 512,
    }
    return replace(from_hf_config(config, name="Gemma 3 270M"), weight_bytes=weight_bytes / NUM_WEIGHTS)


def machine_of(rows: Sequence[EngineRow], threads: int) -> Replica:
    """Describe the machine by the best rates that some threads reached on it.

    Parameters
    ----------
    rows : sequence of EngineRow
        With rows of the kinds ``bandwidth`` and ``arithmetic``.
    threads : int
        Threads that computed [count].

    Returns
    -------
    Replica
        One "accelerator" with the measured rates and efficiencies of 1.

    Raises
    ------
    ValueError
        If no row gives a rate for so many threads.

    Examples
    --------
    >>> row = EngineRow("bandwidth", "", 1, 1, 0, 0, 0, 0, 0.0, "read", 1e10, 1e10, "bytes/s", 9, 1.0, 0)
    >>> rate = replace(row, kind="arithmetic", case="multiply", value=5e10, unit="FLOPs/s")
    >>> machine_of([row, rate], 1).bandwidth
    10000000000.0
    """
    rates = {}
    for kind in UNITS:
        found = [row.value for row in rows if row.kind == kind and row.threads == threads]
        if not found:
            raise ValueError(f"threads must be one that {kind} was measured with, got {threads}. Measure it first.")
        rates[kind] = max(found)
    alone = Link("none", bandwidth=1.0, latency_seconds=0.0, source="a machine by itself")
    memory = max(row.memory_bytes for row in rows) or 1
    measured = Accelerator(
        f"{threads} threads of a CPU", memory, rates["bandwidth"], rates["arithmetic"], alone, source="measured"
    )
    return Replica(measured, compute_efficiency=1.0, bandwidth_efficiency=1.0)


def floor_of(row: EngineRow, machine: Replica) -> step.StepCost:
    """Return the least that a measured step could have taken.

    Parameters
    ----------
    row : EngineRow
        Of the kind ``decode``, ``prefill`` or ``cache``.
    machine : Replica
        From :func:`machine_of`, with the row's threads.

    Returns
    -------
    StepCost
        The step of page A3 for that batch or prompt. The output matrix is counted for one token of a prompt, as
        the engine computes it.

    Raises
    ------
    ValueError
        If the row is of another kind.

    Examples
    --------
    >>> row = EngineRow("decode", "Q8_0", 1, 1, 1, 256, 0, 0, 0.0, "greedy", 0.04, 0.05, "s", 50, 1.0, 285_018_624)
    >>> read = EngineRow("bandwidth", "", 1, 1, 0, 0, 0, 0, 0.0, "read", 1e10, 1e10, "bytes/s", 9, 1.0, 0)
    >>> machine = machine_of([read, replace(read, kind="arithmetic", value=5e10, unit="FLOPs/s")], 1)
    >>> round(floor_of(row, machine).total_seconds * 1e3, 1)
    29.0
    """
    model = gemma_270m(row.weight_bytes)
    if row.kind == "decode":
        return step.decode_step(model, machine, row.batch_size, row.context_len)
    if row.kind not in ("prefill", "cache"):
        raise ValueError(f"kind must be decode, prefill or cache for a floor, got {row.kind!r}. It is no single step.")
    computed = row.prompt_len - row.num_cached_tokens
    cost = step.prefill_step(model, machine, computed, row.num_cached_tokens)
    skipped = 2 * transformer.parameters(model).embedding * (computed - 1)
    flops = cost.flops - skipped
    return replace(cost, flops=flops, compute_seconds=flops / machine.flops_per_second)
