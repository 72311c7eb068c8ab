"""Run one replica over a workload."""

from __future__ import annotations

import math
from collections.abc import Callable

from lantern_lib.simulator.config import EngineConfig
from lantern_lib.simulator.engine import Engine
from lantern_lib.simulator.plain import is_plain, serve_plainly
from lantern_lib.simulator.records import Recorder, Result
from lantern_lib.simulator.sources import OpenLoop, Source
from lantern_lib.units import require_int
from lantern_lib.workload.requests import Workload


def simulate(
    workload: Workload,
    config: EngineConfig,
    *,
    source: Source | None = None,
    horizon_seconds: float = math.inf,
    max_events: int = 10_000_000,
    on_event: Callable[[Engine], None] | None = None,
) -> Result:
    """Serve a workload on one replica.

    Parameters
    ----------
    workload : Workload
        The requests.
    config : EngineConfig
        The replica and its rules.
    source : Source, optional
        When requests arrive, for example ``ClosedLoop(workload, num_users=8)``; without it when the workload says.
    horizon_seconds : float
        Stop at the first step that would begin at or after this time [seconds].
    max_events : int
        Refuse to take more events than this [events].
    on_event : callable, optional
        Called with the engine at every event, for plots over time and for checks.

    Returns
    -------
    Result
        One record for each request.

    Raises
    ------
    TooManyEventsError
        If the run takes more events; the message says who was still waiting.

    Notes
    -----
    Exact for the step model, up to rounding: equal to ``reference.simulate_by_steps``. The module ``engine`` says why.

    Examples
    --------
    >>> from lantern_lib.simulator import EngineConfig, StepModel
    >>> from lantern_lib.workload import Request, Workload
    >>> pair = Workload.from_requests([Request(0.0, 10, 3), Request(0.5, 10, 1)])
    >>> result = simulate(pair, EngineConfig(StepModel(weight_seconds=1.0)))
    >>> result.first_token_seconds.tolist(), result.last_token_seconds.tolist()
    ([1.0, 2.0], [4.0, 2.0])
    """
    require_int("max_events", max_events)
    if source is None and on_event is None and horizon_seconds == math.inf and is_plain(workload, config):
        return serve_plainly(workload, config, max_events)
    records = Recorder(workload)
    engine = Engine(config, workload, OpenLoop(workload) if source is None else source, records, on_event=on_event)
    engine.run_until(horizon_seconds, max_events)
    engine.land()
    # Arrivals during the last step are in the records too, as waiting.
    engine.intake.arrive(horizon_seconds)
    return engine.intake.result(engine.num_events, engine.num_steps, engine.now)
