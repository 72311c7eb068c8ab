"""Diagrams of the simulator's page: one run as a timeline, and predicted times beside measured ones."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from lantern_lib.figures.diagram import WIDE, Canvas, Diagram, wide_and_narrow
from lantern_lib.figures.roles import ARITHMETIC, CONTROL, MEMORY, MUTED, TOTAL, USER
from lantern_lib.simulator import EngineConfig, StepModel, simulate, simulate_by_steps
from lantern_lib.units import require_int
from lantern_lib.workload import Workload

#: A small machine with round numbers: two seats, a tenth of a second for a decode step, two milliseconds for each
#: token of a prompt.
TOY = EngineConfig(StepModel(token_seconds=0.002, weight_seconds=0.1), max_batch=2)
#: How settings of the simulator are called in the drawing, in its order.
SETTINGS = {
    "fit": "fitted to the other half",
    "fraction": "memory from the fraction",
    "endless": "memory without end",
    "other": "the other card's numbers",
    "course": "this course's 0.5 and 0.8",
    "floor": "peaks as printed",
}
MEASURES = {"ttft": ("first token", USER), "tpot": ("time per token", MEMORY), "makespan": ("whole run", TOTAL)}


def toy_workload() -> Workload:
    """Return the five requests of the timeline.

    Returns
    -------
    Workload
        Two seats for five people, so that three wait.

    Examples
    --------
    >>> len(toy_workload())
    5
    """
    return Workload(
        np.array([0.0, 0.6, 1.5, 4.2, 6.5]), np.array([300, 400, 250, 500, 300]), np.array([24, 15, 30, 12, 20])
    )


def timeline(workload: Workload | None = None, config: EngineConfig = TOY) -> Diagram:
    """Draw a run as bars: who waits, who is read, who is written to, and where the simulator looks.

    Parameters
    ----------
    workload : Workload, optional
        A handful of requests; :func:`toy_workload` if not given.
    config : EngineConfig
        The engine, with prompts in steps of their own.

    Returns
    -------
    Diagram
        One row a request; below, the steps of the loop and the events of the engine.

    Raises
    ------
    ValueError
        If there are more than eight requests.

    Examples
    --------
    >>> "60 steps" in timeline().description
    True
    """
    work = toy_workload() if workload is None else workload
    if require_int("requests", len(work)) > 8:
        raise ValueError(f"workload must hold at most 8 requests, got {len(work)}. More rows cannot be read.")
    looks: list[float] = []
    result = simulate(work, config, on_event=lambda engine: looks.append(engine.now))
    steps = _step_ends(work, config)
    events = sorted({round(seconds, 6) for seconds in looks})
    end = float(result.last_token_seconds.max())

    def draw(canvas: Canvas) -> None:
        left = 28.0
        scale = (canvas.width - left - 8) / end
        for row in range(len(work)):
            y = 8.0 + row * 31
            canvas.text(0, y + 15, "ABCDEFGH"[row], bold=True)
            times = [
                left + scale * float(column[row])
                for column in (
                    result.arrival_seconds,
                    result.scheduled_seconds,
                    result.first_token_seconds,
                    result.last_token_seconds,
                )
            ]
            for begin, stop, role, opacity in zip(
                times[:-1], times[1:], (CONTROL, ARITHMETIC, MEMORY), (0.25, 0.85, 0.85), strict=True
            ):
                if stop > begin:
                    canvas.bar(begin, y, stop - begin - 0.6, 20, role, opacity)
        y = 8.0 + len(work) * 31 + 14
        for name, seconds in (("steps of the loop", steps), ("events of the engine", events)):
            canvas.text(0, y, f"{name}: {len(seconds)}", size=13, colour=TOTAL.colour)
            for each in seconds:
                canvas.bar(left + scale * each - 0.8, y + 7, 1.6, 15, TOTAL)
            y += 44
        x = 0.0
        for role, words in ((CONTROL, "waits"), (ARITHMETIC, "is read"), (MEMORY, "is written to")):
            canvas.bar(x, y - 8, 12, 12, role, 0.25 if role is CONTROL else 0.85)
            canvas.text(x + 17, y + 3, words, size=13, colour=MUTED)
            x += 86
        canvas.text(canvas.width - 4, y + 3, f"{end:.1f} s", size=13, colour=MUTED, anchor="end")

    return Diagram(
        "A run, step by step and event by event",
        f"{len(work)} requests share an engine with {config.max_batch} seats for {end:.1f} seconds. Each row shows when"
        " one waits, when its prompt is read, and when its answer is written; while one prompt is read, the other"
        f" answers stand still. Below, the loop takes {len(steps)} steps and the engine looks"
        f" {len(events)} times: at arrivals it can admit, after prompts, and when an answer ends.",
        *wide_and_narrow(draw),
    )


def _step_ends(work: Workload, config: EngineConfig) -> list[float]:
    """When each step of the loop ends: a horizon just behind one step lets one more be taken."""
    ends: list[float] = []
    horizon = 0.0
    while True:
        horizon += 1e-6
        run = simulate_by_steps(work, config, horizon_seconds=horizon)
        if run.num_steps > len(ends):
            ends.append(run.end_seconds)
            horizon = run.end_seconds
        else:  # nobody was there: go on at the next arrival
            horizon = float(work.arrival_seconds[work.arrival_seconds > horizon].min())
        if run.finished.all():
            return ends


def errors(run: Mapping[str, Any], setting: str) -> dict[str, float]:
    """Return how far a setting's prediction is from the measured run.

    Parameters
    ----------
    run : mapping
        One of the ``runs`` in ``book/data/vllm_runs.json``.
    setting : str
        One of its ``settings`` [text].

    Returns
    -------
    dict of str to float
        Predicted over measured, less one, for each of :data:`MEASURES` [ratio].

    Examples
    --------
    >>> one = {"ttft": 1.0, "tpot": 2.0, "makespan": 4.0}
    >>> errors({"measured": one, "settings": {"fit": {"ttft": 1.5, "tpot": 2.0, "makespan": 3.0}}}, "fit")
    {'ttft': 0.5, 'tpot': 0.0, 'makespan': -0.25}
    """
    return {name: run["settings"][setting][name] / run["measured"][name] - 1 for name in MEASURES}


def predicted(runs: Mapping[str, Any]) -> Diagram:
    """Draw the errors of every setting for both real runs.

    Parameters
    ----------
    runs : mapping
        The ``runs`` of ``book/data/vllm_runs.json``.

    Returns
    -------
    Diagram
        One block a card; three bars a setting, left of the line too small and right of it too large.

    Examples
    --------
    >>> one = {"ttft": 1.0, "tpot": 2.0, "makespan": 4.0}
    >>> predicted({"a card": {"measured": one, "settings": {"fit": one}}}).title
    'Predicted against measured'
    """
    words = []
    for card, run in runs.items():
        for key, name in SETTINGS.items():
            if key in run["settings"]:
                found = errors(run, key)
                listed = ", ".join(f"{label} {100 * found[m]:+.0f}" for m, (label, _) in MEASURES.items())
                words.append(f"{card}, {name}: {listed} percent.")

    def draw(canvas: Canvas) -> None:
        wide = canvas.width == WIDE
        names = 200.0 if wide else 0.0
        middle = names + (canvas.width - names) / 2
        scale = (canvas.width - names - 96) / 2
        y = 16.0
        x = 0.0
        for label, role in MEASURES.values():
            canvas.bar(x, y - 10, 12, 12, role)
            canvas.text(x + 17, y, label, size=13, colour=role.colour)
            x += 40 + 7 * len(label)
        y += 14
        for card, run in runs.items():
            y += 16
            canvas.text(0, y, card, bold=True)
            y += 8
            top = y
            for key, name in SETTINGS.items():
                if key not in run["settings"]:
                    continue
                if not wide:
                    y += 17
                    canvas.text(0, y - 3, name, size=13)
                else:
                    canvas.text(0, y + 24, name, size=13)
                for measure, (_, role) in MEASURES.items():
                    error = errors(run, key)[measure]
                    width = abs(error) * scale
                    canvas.bar(middle if error > 0 else middle - width, y, width, 11, role)
                    at, anchor = (middle + width + 4, "start") if error > 0 else (middle - width - 4, "end")
                    canvas.text(at, y + 10, f"{100 * error:+.0f}%".replace("-", "−"), size=11.5, anchor=anchor)
                    y += 13
                y += 9
            canvas.path(f"M{middle:.1f} {top - 2:.1f}V{y - 6:.1f}", width=1.2)
        canvas.text(middle - 8, y + 10, "too small", size=12.5, colour=MUTED, anchor="end")
        canvas.text(middle + 8, y + 10, "too large", size=12.5, colour=MUTED)

    return Diagram("Predicted against measured", " ".join(words), *wide_and_narrow(draw))
