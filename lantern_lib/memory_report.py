"""Every published start-up log beside what the planner says: predicted, reported, ratio, why."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from lantern_lib.devices import DeviceMemory, known_size
from lantern_lib.engine_rules import engine_rule
from lantern_lib.memory_plan import MemoryPlan, plan_memory
from lantern_lib.model_config import ModelConfig
from lantern_lib.model_parts import StoredFormat
from lantern_lib.models import find_model
from lantern_lib.units import GIB

_DENSE = ("attention", "feed_forward", "experts", "shared_experts")
#: Stored formats that a log names in a word.
FORMATS: dict[str, StoredFormat] = {
    "fp8": StoredFormat("fp8", 1.0, (1, 0), 4.0),
    "fp8 blocks": StoredFormat("fp8", 1.0, (128, 128), 4.0),
    "w8a8": StoredFormat("w8a8", 1.0, (1, 0), 2.0),
    "awq": StoredFormat("awq", 0.5, (1, 128), 2.5, _DENSE),
    "gptq-int4": StoredFormat("gptq", 0.5, (1, 128), 2.5, _DENSE),
    "nvfp4": StoredFormat("nvfp4", 0.5, (1, 16), 1.0),
}


@dataclass(frozen=True)
class PoolRow:
    """One start-up log: what was set, and what was printed.

    Sizes are in bytes on one GPU. ``None`` is what the source does not say. ``poorest`` says that tokens are those of a
    GPU that had less than the printed bytes; ``flag`` says why the parts or the pool must not be trusted.
    """

    id: str
    source: str
    grade: str
    model: str
    stored: str
    kv_bytes: float
    card: str
    tp_size: int
    ep_size: int
    context_parallel: int
    engine: str
    version: str
    fraction: float | None
    device_bytes: float | None
    max_num_tokens: int | None
    max_num_seqs: int | None
    max_positions: int
    weight_bytes: float | None
    activation_bytes: float | None
    runtime_bytes: float | None
    graph_bytes: float | None
    pool_bytes: float | None
    tokens: int | None
    poorest: bool
    flag: str
    note: str

    @property
    def shape(self) -> ModelConfig:
        """The model as it was stored, with its cache as it was kept."""
        model = find_model(self.model)
        if self.stored:
            model = replace(model, storage=FORMATS[self.stored])
        return replace(model, kv_bytes=self.kv_bytes)

    @property
    def device(self) -> DeviceMemory | str:
        """The card: by its printed size where that is known, of its kind where that is."""
        return self.card if self.card or self.device_bytes is None else known_size(self.device_bytes / GIB)

    @property
    def plan(self) -> MemoryPlan | None:
        """What the planner says, None where model or card are not named."""
        if not self.model or not (self.card or self.device_bytes):
            return None
        return plan_memory(
            self.shape,
            self.device,
            self.tp_size,
            self.engine,
            version=self.version,
            fraction=self.fraction,
            max_num_tokens=self.max_num_tokens,
            max_num_seqs=self.max_num_seqs,
            max_positions=self.max_positions,
            ep_size=self.ep_size,
            context_parallel=self.context_parallel,
        )

    @property
    def reported_bytes(self) -> float | None:
        """The pool as printed, or the printed tokens in bytes."""
        if self.pool_bytes is not None:
            return self.pool_bytes
        plan = self.plan
        return self.tokens * plan.bytes_per_token if plan is not None and self.tokens is not None else None

    @property
    def parts_gap_bytes(self) -> float | None:
        """Printed pool less fraction × total less the printed parts, None where a part is missing [bytes]."""
        parts = (self.weight_bytes, self.activation_bytes, self.runtime_bytes, self.pool_bytes)
        if self.fraction is None or self.device_bytes is None or any(part is None for part in parts):
            return None
        taken = sum(part for part in parts if part is not None)
        counts_graphs = engine_rule(self.engine, self.version).graphs[0] > 0
        return self.fraction * self.device_bytes - taken - (self.graph_bytes or 0.0 if counts_graphs else 0.0)


@dataclass(frozen=True)
class RowReport:
    """A row beside the plan: pools of one GPU, whether the interval holds the printed one, and why [bytes]."""

    row: PoolRow
    predicted_bytes: float | None
    low_bytes: float | None
    high_bytes: float | None
    reported_bytes: float | None
    why: str

    @property
    def ratio(self) -> float | None:
        """Predicted over reported, None where one is missing or the engine refused."""
        if self.predicted_bytes is None or self.reported_bytes is None or self.reported_bytes <= 0:
            return None
        return self.predicted_bytes / self.reported_bytes

    @property
    def covered(self) -> bool | None:
        """Whether the printed pool lies in the interval, None where there is nothing to compare."""
        if self.low_bytes is None or self.high_bytes is None or self.reported_bytes is None:
            return None
        return self.low_bytes <= self.reported_bytes <= self.high_bytes

    @property
    def summary(self) -> str:
        """One line of the table."""
        if self.predicted_bytes is None or self.reported_bytes is None:
            return f"{self.row.id}: not predicted; {self.why}"
        ratio = "" if self.ratio is None else f", ratio {self.ratio:.2f}"
        inside = "inside" if self.covered else "outside"
        return (
            f"{self.row.id}: predicted {self.predicted_bytes / GIB:.2f} GiB, reported {self.reported_bytes / GIB:.2f}"
            f" GiB{ratio}, {inside} the interval; {self.why}"
        )


def _number(row: Mapping[str, str], key: str, scale: float = 1.0) -> float | None:
    return float(row[key]) * scale if row.get(key) else None


def _whole(row: Mapping[str, str], key: str) -> int | None:
    return int(row[key]) if row.get(key) else None


def read_pools(path: str | Path) -> tuple[PoolRow, ...]:
    """Read a table of start-up logs.

    Parameters
    ----------
    path : str or Path
        The table, as in the folder ``data`` of the book [text].

    Returns
    -------
    tuple of PoolRow
        Its rows, in bytes.

    Raises
    ------
    ValueError
        If a number can't be read.

    Examples
    --------
    >>> import tempfile
    >>> head = "id,source,grade,model,stored,kv_bytes,card,tp,ep,cp,engine,version,fraction,device_gib,max_num_tokens,"
    >>> head += "max_num_seqs,max_positions,weight_gib,activation_gib,runtime_gib,graph_gib,pool_gib,tokens,poorest,"
    >>> head += "flag,note"
    >>> with tempfile.NamedTemporaryFile("w+", suffix=".csv") as file:
    ...     _ = file.write(f"{head}\\nk,a log,A,Qwen3-32B,,2,H100,1,1,1,vLLM,0.11,0.9,79.18,,,,61.03,,,,4.45,,,,\\n")
    ...     file.flush()
    ...     print(report_row(read_pools(file.name)[0]).summary)
    k: predicted 4.45 GiB, reported 4.45 GiB, ratio 1.00, inside the interval; activation peak is the least certain part
    """
    with Path(path).open(encoding="utf-8", newline="") as file:
        return tuple(_pool_row(row) for row in csv.DictReader(file))


def _pool_row(row: Mapping[str, str]) -> PoolRow:
    return PoolRow(
        id=row["id"],
        source=row["source"],
        grade=row["grade"],
        model=row["model"],
        stored=row["stored"],
        kv_bytes=float(row["kv_bytes"] or 2),
        card=row["card"],
        tp_size=int(row["tp"] or 1),
        ep_size=int(row["ep"] or 1),
        context_parallel=int(row["cp"] or 1),
        engine=row["engine"],
        version=row["version"],
        fraction=_number(row, "fraction"),
        device_bytes=_number(row, "device_gib", GIB),
        max_num_tokens=_whole(row, "max_num_tokens"),
        max_num_seqs=_whole(row, "max_num_seqs"),
        max_positions=_whole(row, "max_positions") or 0,
        weight_bytes=_number(row, "weight_gib", GIB),
        activation_bytes=_number(row, "activation_gib", GIB),
        runtime_bytes=_number(row, "runtime_gib", GIB),
        graph_bytes=_number(row, "graph_gib", GIB),
        pool_bytes=_number(row, "pool_gib", GIB),
        tokens=_whole(row, "tokens"),
        poorest=row["poorest"] == "yes",
        flag=row["flag"],
        note=row["note"],
    )


def _least_certain(plan: MemoryPlan) -> str:
    parts = {name: part.high - part.low for name, part in plan.parts.items()}
    low, high = plan.rule.fraction_usual
    parts["the fraction, which the source does not state,"] = (high - low) * plan.device.size.value
    return max(parts, key=lambda name: parts[name])


def report_row(row: PoolRow) -> RowReport:
    """Lay the plan of a row beside what was printed.

    Parameters
    ----------
    row : PoolRow
        The log.

    Returns
    -------
    RowReport
        Both pools, and the reason of their difference as far as we know it.

    Examples
    --------
    >>> row = PoolRow("k", "a log", "A", "", "", 2.0, "", 1, 1, 1, "vLLM", "", None, None, None, None, 0, None,
    ...     None, None, None, None, 7344, False, "", "")
    >>> report_row(row).why
    'model or card not named'
    """
    plan, reported = row.plan, row.reported_bytes
    if plan is None or reported is None:
        why = row.flag or ("model or card not named" if plan is None else "no pool printed")
        return RowReport(row, None, None, None, reported, why)
    pool = plan.pool
    why = row.flag or row.note or f"{_least_certain(plan)} is the least certain part"
    return RowReport(row, pool.value, pool.low, pool.high, reported, why)


def report_pools(path: str | Path) -> tuple[RowReport, ...]:
    """Lay the plan of every row of a table beside what was printed.

    Parameters
    ----------
    path : str or Path
        The table, as in the folder ``data`` of the book [text].

    Returns
    -------
    tuple of RowReport
        One for each row, also for those that can't be predicted, with the reason.

    Raises
    ------
    ValueError
        If a number can't be read.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.NamedTemporaryFile("w+", suffix=".csv") as file:
    ...     report_pools(file.name)
    ()
    """
    return tuple(report_row(row) for row in read_pools(path))


def token_gap(row: PoolRow) -> tuple[float, float] | None:
    """Compare printed tokens with printed bytes over the cache of a token.

    Parameters
    ----------
    row : PoolRow
        The log.

    Returns
    -------
    (float, float) or None
        Computed less printed tokens, and how many the rounding of the printed bytes and the blocks allow; None where
        the row does not print both, or the model allots by kinds of layers, which gives tokens another meaning
        [tokens].

    Examples
    --------
    >>> row = PoolRow("k", "a log", "A", "Llama-3-8B", "", 2.0, "", 1, 1, 1, "vLLM", "", None, None, None, None, 0,
    ...     None, None, None, None, 5.29 * 2**30, 43296, False, "", "")
    >>> token_gap(row)
    (39.68, 57.0)
    """
    if not row.model or row.tokens is None or row.pool_bytes is None:
        return None
    model = row.shape
    if model.recurrent is not None:
        return None
    plan = plan_memory(model, "H100", row.tp_size, row.engine, context_parallel=row.context_parallel)
    rounding = 0.005 * GIB / plan.bytes_per_token
    return round(row.pool_bytes / plan.bytes_per_token - row.tokens, 2), round(rounding + plan.rule.block_size, 0)
