"""Requests to serve: what arrives, when, and how long it is."""

from lantern_lib.workload.arrivals import Exponential, Lengths, Lognormal, Mixture, at_once, evenly, gamma, poisson
from lantern_lib.workload.lengths import output_lengths_512
from lantern_lib.workload.requests import Call, Request, Session, Workload
from lantern_lib.workload.sessions import session_rows

__all__ = [
    "Call",
    "Exponential",
    "Lengths",
    "Lognormal",
    "Mixture",
    "Request",
    "Session",
    "Workload",
    "at_once",
    "evenly",
    "gamma",
    "output_lengths_512",
    "poisson",
    "session_rows",
]
