"""What a load test measures, from the times of its requests.

Names are those of public benchmarks. Definitions are this course's; where tools differ, the docstring says
how. Two numbers may be compared only when they were counted alike.
"""

from lantern_lib.metrics.columns import Columns, Percentiles, Summary, summary
from lantern_lib.metrics.machines import mbu, mfu
from lantern_lib.metrics.requests import (
    RequestRecord,
    Slo,
    duration,
    e2el,
    goodput,
    itl,
    meets,
    output_throughput,
    percentile,
    request_throughput,
    tpot,
    ttft,
)

__all__ = [
    "Columns",
    "Percentiles",
    "RequestRecord",
    "Slo",
    "Summary",
    "duration",
    "e2el",
    "goodput",
    "itl",
    "mbu",
    "meets",
    "mfu",
    "output_throughput",
    "percentile",
    "request_throughput",
    "summary",
    "tpot",
    "ttft",
]
