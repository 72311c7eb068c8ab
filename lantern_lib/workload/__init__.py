"""Requests to serve: what arrives, when, and how long it is."""

from lantern_lib.workload.lengths import output_lengths_512
from lantern_lib.workload.requests import Call, Request, Session, Workload

__all__ = ["Call", "Request", "Session", "Workload", "output_lengths_512"]
