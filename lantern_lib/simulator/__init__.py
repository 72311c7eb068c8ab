"""A discrete-event simulator of serving: one replica, its rules, and fleets of them."""

from lantern_lib.simulator.calibration import Calibration, calibrate
from lantern_lib.simulator.config import EngineConfig, engine_for
from lantern_lib.simulator.cost import StepModel, step_model
from lantern_lib.simulator.engine import Engine
from lantern_lib.simulator.fleet import (
    LeastLoaded,
    LongestPrefix,
    RoundRobin,
    Router,
    SessionAffinity,
    simulate_disaggregated,
    simulate_fleet,
)
from lantern_lib.simulator.intake import TooManyEventsError
from lantern_lib.simulator.records import Result, Status
from lantern_lib.simulator.reference import simulate_by_steps
from lantern_lib.simulator.run import simulate
from lantern_lib.simulator.sources import ClosedLoop, OpenLoop, SessionLoop, Source

__all__ = [
    "Calibration",
    "ClosedLoop",
    "Engine",
    "EngineConfig",
    "LeastLoaded",
    "LongestPrefix",
    "OpenLoop",
    "Result",
    "RoundRobin",
    "Router",
    "SessionAffinity",
    "SessionLoop",
    "Source",
    "Status",
    "StepModel",
    "TooManyEventsError",
    "calibrate",
    "engine_for",
    "simulate",
    "simulate_by_steps",
    "simulate_disaggregated",
    "simulate_fleet",
    "step_model",
]
