"""``lantern explain-log``: what a start-up log says, what it means, and what to change."""

from __future__ import annotations

from lantern_lib.cli.report import Report, Row, Table, Value, quantity
from lantern_lib.engine_logs import EngineLog
from lantern_lib.model_config import ModelConfig


def explain_log(
    log: EngineLog,
    context_len: int | None = None,
    model: ModelConfig | None = None,
    inputs: dict[str, Value] | None = None,
) -> Report:
    """Return the parts of a log, with the engine's meaning of its numbers.

    Parameters
    ----------
    log : EngineLog
        What was read.
    context_len : int, optional
        Length of a conversation; the log's own limit if not given [tokens].
    model : ModelConfig, optional
        The shape, so that windows and states count by layer.
    inputs : dict, optional
        What was typed.

    Returns
    -------
    Report
        It does not fit if the engine refused to start.

    Examples
    --------
    >>> from lantern_lib.engine_logs import read_engine_log
    >>> log = read_engine_log("INFO [executor_base.py:111] # cuda blocks: 7191, # CPU blocks: 512")
    >>> report = explain_log(log, 8192)
    >>> report.fits, [row.shown for table in report.tables for row in table.rows if row.key == "tokens"]
    (True, ['115,056 tokens'])
    """
    context = context_len or log.max_model_len
    tables = [_memory(log)]
    if log.tokens is not None or (model is not None and log.pool_bytes is not None):
        tables.append(_pool(log, context, model))
    notes = (*log.meaning, *log.advice)
    name = f"{log.engine} {log.version}".strip()
    title = f"Start-up log of {name}" + (": it did not start" if log.refused else "")
    return Report("explain-log", title, tuple(tables), notes, not log.refused, inputs or {})


def _memory(log: EngineLog) -> Table:
    fraction = Row("fraction", "fraction", log.fraction, "–" if log.fraction is None else f"{log.fraction:g}")
    sizes = (
        ("device_bytes", "the card shows", log.device_bytes, ""),
        ("budget_bytes", "budget", log.budget_bytes, "as printed"),
        ("weights_bytes", "− weights", log.weight_bytes, ""),
        ("activation_peak_bytes", "− activation peak", log.activation_bytes, "follows tokens and sequences of a step"),
        ("runtime_bytes", "− runtime", log.runtime_bytes, "outside the allocator"),
        ("recorded_graphs_bytes", "− recorded graphs", log.graph_bytes, ""),
        ("pool_bytes", "= pool of a GPU", log.pool_bytes, _ranks(log)),
        ("gap_bytes", "not explained", log.gap_bytes, "budget − parts − pool"),
        ("needed_bytes", "it says it needs", log.needed_bytes, ""),
    )
    rows = [quantity(key, label, value, "GiB", 2, working) for key, label, value, working in sizes if value is not None]
    return Table("Memory of one GPU", (fraction, *rows))


def _ranks(log: EngineLog) -> str:
    return f"the poorest of {len(log.pools)} ranks" if len(log.pools) > 1 else ""


def _pool(log: EngineLog, context: int | None, model: ModelConfig | None) -> Table:
    rows = []
    if log.tokens is not None:
        blocks = "as printed" if log.printed_tokens is not None else f"{log.blocks:,} blocks"
        rows.append(quantity("tokens", "tokens", log.tokens, "tokens", 0, blocks))
    if log.bytes_per_token is not None:
        rows.append(quantity("bytes_per_token", "bytes of a token", log.bytes_per_token, "bytes", 0, "pool / tokens"))
    if context:
        source = "windows and states by layer" if model is not None else "tokens / context"
        held = log.concurrency_at(context, model)
        rows.append(quantity("conversations", f"conversations of {context:,}", held, "", 2, source))
    if log.concurrency is not None:
        rows.append(
            quantity("printed_concurrency", "the engine's own figure", log.concurrency, "", 2, "at its longest")
        )
    return Table("The pool", tuple(rows))
