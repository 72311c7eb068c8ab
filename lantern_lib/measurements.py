"""Published measurements of engines, and the floor that the model of part A gives for the same work.

A floor here takes the data sheet's peaks and nothing else: no efficiency, no communication. What is left between it
and a measurement is what an engine, its kernels and its links really cost.
"""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from lantern_lib import kv_cache, step, transformer
from lantern_lib.hardware import A100, A6000, GH200, H100, H200, RTX_4090, RTX_PRO_6000, Accelerator, Replica
from lantern_lib.model_config import ModelConfig
from lantern_lib.models import find_model
from lantern_lib.units import require_int, require_positive

Work = Literal["decode", "prefill", "both"]

#: What each metric of the table measures.
WORK: dict[str, Work] = {
    "tpot": "decode",
    "itl": "decode",
    "single_stream_decode": "decode",
    "batch_latency": "decode",
    "ttft": "prefill",
    "output_throughput": "both",
}
CARDS: dict[str, Accelerator] = {
    "H100": H100,
    "H200": H200,
    "GH200": GH200,
    "A100-80": A100,
    "A6000": A6000,
    "RTX4090": RTX_4090,
    "RTXPRO6000": RTX_PRO_6000,
}
WEIGHT_BYTES = {"bf16": 2.0, "fp16": 2.0, "fp8": 1.0, "int8": 1.0}

#: Shapes, by the name that the table has; the names of the book write them with spaces.
MODELS: dict[str, ModelConfig] = {
    name: replace(find_model(shipped), name=shown)
    for name, shipped, shown in (
        ("Llama-7B", "Llama-2-7B", "Llama 2 7B"),
        ("Llama-2-7B", "Llama-2-7B", "Llama 2 7B"),
        ("Llama-2-70B", "Llama-2-70B", "Llama 2 70B"),
        ("Llama-3-8B", "Llama-3-8B", "Llama 3 8B"),
        ("Llama-3-70B", "Llama-3-70B", "Llama 3 70B"),
        ("Llama-3.3-70B", "Llama-3.3-70B", "Llama 3 70B"),
        ("Llama-3.1-405B", "Llama-3.1-405B", "Llama 3.1 405B"),
        ("Mistral-7B", "Mistral-7B-v0.1", "Mistral 7B"),
        ("Qwen2.5-7B", "Qwen2.5-7B", "Qwen2.5 7B"),
        ("Qwen2.5-72B", "Qwen2.5-72B", "Qwen2.5 72B"),
        ("Qwen3-1.7B", "Qwen3-1.7B", "Qwen3 1.7B"),
        ("Qwen3-30B-A3B", "Qwen3-30B-A3B", "Qwen3 30B-A3B"),
        ("Mixtral-8x7B", "Mixtral-8x7B", "Mixtral 8x7B"),
    )
}


@dataclass(frozen=True)
class Measurement:
    """One published number, with what a floor needs to know about it.

    Parameters
    ----------
    id, source, url : str
        Its name in the table, where it was published, and the address where there is one.
    model, card, precision, engine : str
        As the table names them; keys of :data:`MODELS`, :data:`CARDS` and :data:`WEIGHT_BYTES`.
    tp_size : int
        Cards that share the model [count].
    batch_size : int or None
        Sequences together; None where requests were offered without limit [sequences].
    prompt_len, output_len : int
        Tokens of each prompt and answer, 0 where the source does not say [tokens].
    context_len : int
        Mean context of a decode step [tokens].
    metric : str
        Key of :data:`WORK`.
    value : float
        Seconds, or tokens per second [seconds or 1/s].
    grade : str
        A: read at the source; B: one number inferred, or a secondary page.
    rejected : str
        Why it must not be used, empty if it may.

    Raises
    ------
    ValueError
        If a name is unknown, or a number out of range.

    Examples
    --------
    >>> one = Measurement("m", "a log", "", "Llama-2-70B", "H100", "fp16", "vLLM", 4, 1, 512, 0, 512, "tpot", 0.0297)
    >>> one.work, one.replica.tp_size, one.measured_seconds
    ('decode', 4, 0.0297)
    """

    id: str
    source: str
    url: str
    model: str
    card: str
    precision: str
    engine: str
    tp_size: int
    batch_size: int | None
    prompt_len: int
    output_len: int
    context_len: int
    metric: str
    value: float
    grade: str = "A"
    rejected: str = ""

    def __post_init__(self) -> None:
        known: dict[str, Collection[str]] = {"model": MODELS, "card": CARDS, "precision": WEIGHT_BYTES, "metric": WORK}
        for field, names in known.items():
            if getattr(self, field) not in names:
                raise ValueError(
                    f"{field} must be one of {', '.join(names)}, got {getattr(self, field)!r}. Leave the row out, or"
                    " add it to the module's catalogue."
                )
        require_int("tp_size", self.tp_size)
        require_positive("value", self.value, "Give seconds, or tokens per second.")
        for field in ("prompt_len", "output_len", "context_len"):
            require_int(field, getattr(self, field), minimum=0)
        if self.batch_size is not None:
            require_int("batch_size", self.batch_size)
        if self.work == "decode" and not (self.batch_size and self.context_len):
            raise ValueError(
                f"batch_size and context_len must be known for {self.metric}, got {self.batch_size} and"
                f" {self.context_len}. A decode step reads the cache of every sequence."
            )

    @property
    def work(self) -> Work:
        """Whether a decode step, a prompt or whole requests were timed."""
        return WORK[self.metric]

    @property
    def shape(self) -> ModelConfig:
        """The model, its weights stored as they were."""
        return replace(MODELS[self.model], weight_bytes=WEIGHT_BYTES[self.precision])

    @property
    def replica(self) -> Replica:
        """The cards at their peaks; an 8-bit model computes with the 8-bit units where there are any."""
        card = CARDS[self.card]
        if self.precision == "fp8" and card.peak_flops_8bit is not None:
            card = replace(card, peak_flops=card.peak_flops_8bit)
        return Replica(card, self.tp_size, compute_efficiency=1.0, bandwidth_efficiency=1.0)

    @property
    def measured_seconds(self) -> float:
        """Time of the step, of the prompt, or of a whole batch of requests [seconds]."""
        if self.metric == "single_stream_decode":
            return 1 / self.value
        if self.metric == "batch_latency":
            return self.value / self.output_len
        if self.metric == "output_throughput":
            return (self.batch_size or 1) * self.output_len / self.value
        return self.value

    @property
    def summary(self) -> str:
        """One line that names the run."""
        batch = f"batch {self.batch_size:,}" if self.batch_size else "no limit"
        name, card = MODELS[self.model].name, CARDS[self.card].name
        return f"{name} in {self.precision} on {self.tp_size} × {card}, {batch}, {self.engine}"


@dataclass(frozen=True)
class Floor:
    """The least time that a piece of work can take, beside the time it took [seconds].

    ``memory_seconds`` is 0 where the batch is unknown: then only arithmetic bounds the work.
    """

    compute_seconds: float
    memory_seconds: float
    measured_seconds: float

    @property
    def seconds(self) -> float:
        """The longer of arithmetic and memory [seconds]."""
        return max(self.compute_seconds, self.memory_seconds)

    @property
    def share(self) -> float:
        """Floor over measurement: 1 would be perfect, above 1 is impossible [ratio]."""
        return self.seconds / self.measured_seconds

    @property
    def mfu(self) -> float:
        """Share of peak arithmetic that was reached [ratio]."""
        return self.compute_seconds / self.measured_seconds

    @property
    def mbu(self) -> float:
        """Share of peak memory bandwidth that was reached [ratio]."""
        return self.memory_seconds / self.measured_seconds


def floor(measurement: Measurement) -> Floor:
    """Return the floor of the work that was measured.

    Parameters
    ----------
    measurement : Measurement
        The run.

    Returns
    -------
    Floor
        Arithmetic, memory and the measured time [seconds].

    Notes
    -----
    Decode: streamed weights and the cache at the mean context, over the peak bandwidth. Prefill: the FLOPs of the
    prompt, and one read of the weights. Whole requests: all FLOPs of a batch, and the bytes of its decode steps;
    prompt and decode may overlap perfectly. Of a mixture of experts a step reads the experts that the batch is
    expected to touch. Communication, launches and scheduling are left out, which is what the comparison is for. Open
    question 1 uses it.

    Examples
    --------
    >>> one = Measurement("m", "a log", "", "Llama-2-70B", "H100", "fp16", "vLLM", 4, 1, 512, 0, 512, "tpot", 0.0297)
    >>> round(floor(one).seconds * 1e3, 2), round(floor(one).mbu, 3)
    (10.27, 0.346)
    """
    model, replica = measurement.shape, measurement.replica
    if measurement.work == "prefill":
        cost = step.prefill_step(model, replica, measurement.prompt_len)
    elif measurement.work == "decode":
        cost = step.decode_step(model, replica, measurement.batch_size or 1, measurement.context_len)
    else:
        flops, moved = _whole_requests(measurement)
        return Floor(flops / replica.flops_per_second, moved / replica.bandwidth, measurement.measured_seconds)
    return Floor(
        cost.flops / replica.flops_per_second, cost.moved_bytes / replica.bandwidth, measurement.measured_seconds
    )


def _whole_requests(measurement: Measurement) -> tuple[float, float]:
    """Return FLOPs and bytes of a batch of requests from prompt to last token; no bytes if the batch is unknown."""
    model, prompt, answer = measurement.shape, measurement.prompt_len, measurement.output_len
    flops = transformer.prompt_flops(model, prompt).total
    if answer > 1:
        flops += transformer.prompt_flops(model, answer - 1, num_cached_tokens=prompt).total
    if measurement.batch_size is None:
        return flops, 0.0
    weights = answer * transformer.streamed_weight_bytes(model, measurement.batch_size)
    cache = sum(kv_cache.bytes_per_sequence(model, prompt + i) for i in range(1, answer))
    return measurement.batch_size * flops, weights + measurement.batch_size * cache


def _rows(path: str | Path) -> Iterator[dict[str, str]]:
    with Path(path).open(encoding="utf-8", newline="") as file:
        yield from csv.DictReader(file)


def read_measurements(path: str | Path) -> tuple[Measurement, ...]:
    """Read the rows of a table that a floor can be computed for.

    Parameters
    ----------
    path : str or Path
        The table, as in the folder ``data`` of the book [text].

    Returns
    -------
    tuple of Measurement
        Used rows and rejected ones, in the table's order; rows marked as left out are skipped.

    Raises
    ------
    ValueError
        If a row names something unknown.

    Examples
    --------
    >>> import tempfile
    >>> head = "id,source,url,model,card,tp,precision,engine,batch,prompt_tokens,output_tokens,context_tokens,"
    >>> row = "m,a log,,Llama-2-70B,H100,4,fp16,vLLM,1,512,,,"
    >>> with tempfile.NamedTemporaryFile("w+", suffix=".csv") as file:
    ...     _ = file.write(f"{head}metric,value,unit,grade,status,reason\\n{row}tpot,29.7,ms,A,used,\\n")
    ...     file.flush()
    ...     read_measurements(file.name)[0].value
    0.0297
    """
    return tuple(_measurement(row) for row in _rows(path) if row["status"] != "left out")


def _measurement(row: dict[str, str]) -> Measurement:
    prompt, answer = int(row["prompt_tokens"] or 0), int(row["output_tokens"] or 0)
    value = float(row["value"])
    return Measurement(
        id=row["id"],
        source=row["source"],
        url=row["url"],
        model=row["model"],
        card=row["card"],
        precision=row["precision"],
        engine=row["engine"],
        tp_size=int(row["tp"]),
        batch_size=None if row["batch"] == "max" else int(row["batch"]),
        prompt_len=prompt,
        output_len=answer,
        context_len=int(row["context_tokens"] or prompt + answer // 2),
        metric=row["metric"],
        value=value / 1e3 if row["unit"] == "ms" else value,
        grade=row["grade"],
        rejected=row["reason"] if row["status"] == "rejected" else "",
    )


def left_out(path: str | Path) -> dict[str, int]:
    """Count the rows of a table that have no floor, by reason.

    Parameters
    ----------
    path : str or Path
        The table [text].

    Returns
    -------
    dict of str to int
        How many rows each reason keeps out [count].

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.NamedTemporaryFile("w+", suffix=".csv") as file:
    ...     _ = file.write("id,status,reason\\na,left out,no lengths given\\nb,used,\\n")
    ...     file.flush()
    ...     left_out(file.name)
    {'no lengths given': 1}
    """
    return dict(Counter(row["reason"] for row in _rows(path) if row["status"] == "left out"))
