"""``lantern simulate``: one replica under an open loop of random arrivals."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lantern_lib.cli.report import Report, Table, Value, quantity
from lantern_lib.hardware import Replica
from lantern_lib.memory_plan import MemoryPlan
from lantern_lib.metrics import Percentiles, Slo, summary
from lantern_lib.simulator import EngineConfig, Result, step_model
from lantern_lib.simulator import simulate as run
from lantern_lib.simulator.config import Prefill
from lantern_lib.units import require_int
from lantern_lib.workload.arrivals import Exponential, poisson

#: Enough for ten hours at thirty requests a second, and half a minute of computing.
MOST_REQUESTS = 1_000_000


@dataclass(frozen=True)
class Load:
    """Requests that come at random.

    ``rate`` in requests a second, lengths in tokens, answers with a mean of ``output_len`` and very different lengths
    unless ``equal``; ``seed`` is where chance begins.
    """

    rate: float
    prompt_len: int
    output_len: int
    num_requests: int = 2000
    equal: bool = False
    seed: int = 1


@dataclass(frozen=True)
class Settings:
    """How the engine is set; ``overhead_seconds`` is what every step loses."""

    max_batch: int = 256
    prefill: Prefill = "chunked"
    token_budget: int = 2048
    overhead_seconds: float = 0.0


def simulate(
    plan: MemoryPlan,
    replica: Replica,
    load: Load,
    settings: Settings | None = None,
    slo: Slo | None = None,
    inputs: dict[str, Value] | None = None,
) -> Report:
    """Serve a load on one replica whose cache is what an engine would have.

    Parameters
    ----------
    plan : MemoryPlan
        The memory, which gives the pool.
    replica : Replica
        The cards with their efficiencies.
    load : Load
        The requests.
    settings : Settings, optional
        How the engine is set.
    slo : Slo, optional
        A promise to each user.
    inputs : dict, optional
        What was typed.

    Returns
    -------
    Report
        It does not fit if the pool holds no request, or if 5 percent of requests or more miss the promise.

    Raises
    ------
    ValueError
        If a number is out of range.

    Examples
    --------
    >>> from lantern_lib import H100
    >>> from lantern_lib.memory_plan import plan_memory
    >>> from lantern_lib.models import find_model
    >>> plan = plan_memory(find_model("Llama-3.1-8B"), H100, fraction=0.9)
    >>> simulate(plan, Replica(H100), Load(rate=5, prompt_len=1000, output_len=100, num_requests=200)).fits
    True
    """
    settings = settings or Settings()
    require_int("seed", load.seed, minimum=0)
    if require_int("num_requests", load.num_requests) > MOST_REQUESTS:
        raise ValueError(f"num_requests must be at most {MOST_REQUESTS:,}, got {load.num_requests:,}.")
    title = f"{plan.model.name} on {replica.tp_size} × {replica.accelerator.name}, {load.rate:g} requests/s"
    blocks = plan.tokens // plan.rule.block_size
    if not blocks:
        return Report("simulate", title, (), (f"It does not fit: {plan.summary}.",), False, inputs or {})
    config = EngineConfig(
        cost=step_model(plan.model, replica, overhead_seconds=settings.overhead_seconds),
        max_batch=settings.max_batch,
        prefill=settings.prefill,
        token_budget=settings.token_budget,
        num_blocks=blocks,
        block_size=plan.rule.block_size,
        admission="blocks",
    )
    lengths = load.output_len if load.equal else Exponential(load.output_len)
    work = poisson(load.num_requests, load.rate, load.prompt_len, lengths, np.random.default_rng(load.seed))
    return _report(title, plan, run(work, config), slo, inputs or {})


def _times(name: str, label: str, times: Percentiles, unit: str, decimals: int) -> Table:
    rows = (
        quantity(f"{name}_seconds_{key}", words, getattr(times, key), unit, decimals)
        for key, words in (("mean", "mean"), ("p50", "half within"), ("p95", "95 percent"), ("p99", "99 percent"))
    )
    return Table(label, tuple(rows))


def _report(title: str, plan: MemoryPlan, result: Result, slo: Slo | None, inputs: dict[str, Value]) -> Report:
    found = summary(result, slo)
    rows = [
        quantity(
            "pool_tokens", "pool", plan.tokens, "tokens", 0, plan.rule.name + " on this card, as `lantern size` says"
        ),
        quantity("finished", "requests answered", found.num_finished, working=f"over {found.duration_seconds:,.1f} s"),
        quantity("unfinished", "… and not", found.num_unfinished, working="larger than the pool"),
        quantity(
            "preemptions", "preemptions", int(result.num_preemptions.sum()), working="sent back for want of blocks"
        ),
        quantity("output_tokens_per_second", "answer tokens", found.output_throughput, "tokens/s"),
        quantity("requests_per_second", "requests a second", found.request_throughput, "", 2),
    ]
    kept = not found.num_unfinished
    notes = [
        "Steps take their floor at the efficiencies given: an engine needs longer, near the limit very much longer."
    ]
    if slo is not None:
        share = found.goodput / found.request_throughput * found.num_finished / len(result)
        rows.append(
            quantity("promise_kept", "promise kept", share, "percent", 1, "of all requests, each one's own times")
        )
        kept = kept and share > 0.95
        notes += [] if kept else ["The promise is broken: it is kept for 95 percent of requests or fewer."]
    tables = (
        Table("Run", tuple(rows)),
        _times("ttft", "Time to the first token", found.ttft, "s", 3),
        _times("tpot", "Time for each further token", found.tpot, "ms", 2),
        _times("e2el", "Time of a whole request", found.e2el, "s", 2),
    )
    return Report("simulate", title, tables, tuple(notes), kept, inputs)
