"""The same metrics of a whole run at once, from columns of times."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from lantern_lib.metrics.requests import Slo
from lantern_lib.units import require_non_negative


class Columns(Protocol):
    """Requests of a run as columns; a time that never came is NaN. ``simulator.Result`` is one."""

    @property
    def arrival_seconds(self) -> NDArray[np.float64]:
        """When each arrived [seconds]."""
        ...

    @property
    def first_token_seconds(self) -> NDArray[np.float64]:
        """When its first token came [seconds]."""
        ...

    @property
    def last_token_seconds(self) -> NDArray[np.float64]:
        """When its last one did [seconds]."""
        ...

    @property
    def output_len(self) -> NDArray[np.int64]:
        """Tokens of its answer [tokens]."""
        ...


@dataclass(frozen=True)
class Percentiles:
    """Mean and percentiles of one time [seconds]; NaN where nothing was measured."""

    mean: float
    p50: float
    p90: float
    p95: float
    p99: float


def _percentiles(values: NDArray[np.float64]) -> Percentiles:
    if not values.size:
        return Percentiles(*[float("nan")] * 5)
    p50, p90, p95, p99 = (float(value) for value in np.percentile(values, (50, 90, 95, 99)))
    return Percentiles(float(values.mean()), p50, p90, p95, p99)


@dataclass(frozen=True)
class Summary:
    """What a run measured, and what it left out.

    ``num_finished`` requests are measured. Left out are ``num_warm_up`` that arrived too early and ``num_unfinished``
    that have no last token: refused, dropped, or cut off by the end of the run. ``goodput`` is NaN without a promise.
    """

    num_finished: int
    num_warm_up: int
    num_unfinished: int
    duration_seconds: float
    ttft: Percentiles
    tpot: Percentiles
    e2el: Percentiles
    request_throughput: float
    output_throughput: float
    goodput: float

    @property
    def summary(self) -> str:
        """One line with the counts."""
        return (
            f"{self.num_finished:,} requests measured over {self.duration_seconds:,.1f} s;"
            f" left out: {self.num_warm_up:,} of the warm-up, {self.num_unfinished:,} without an answer"
        )


def summary(columns: Columns, slo: Slo | None = None, *, warm_up_seconds: float = 0.0) -> Summary:
    """Measure a run from its records.

    Parameters
    ----------
    columns : Columns
        One record for each request.
    slo : Slo, optional
        A promise, for the goodput.
    warm_up_seconds : float
        Leave out requests that arrived less than this after the first one [seconds].

    Returns
    -------
    Summary
        Times of the requests that finished, and how many are left out.

    Raises
    ------
    ValueError
        If `warm_up_seconds` is negative.

    Notes
    -----
    Each number is the function of that name over the requests that are measured; TPOT of those with two tokens or
    more. A run that ends early lacks its longest answers, so its times look too good: look at ``num_unfinished``
    first.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> run = SimpleNamespace(
    ...     arrival_seconds=np.array([0.0, 1.0, 2.0]),
    ...     first_token_seconds=np.array([1.0, 2.0, np.nan]),
    ...     last_token_seconds=np.array([4.0, 5.0, np.nan]),
    ...     output_len=np.array([100, 150, 100]),
    ... )
    >>> measured = summary(run, Slo(ttft_seconds=1.0))
    >>> measured.output_throughput, measured.goodput, measured.num_unfinished
    (50.0, 0.4, 1)
    """
    arrival, last = columns.arrival_seconds, columns.last_token_seconds
    begin = require_non_negative("warm_up_seconds", warm_up_seconds)
    begin += np.min(arrival, initial=np.inf, where=~np.isnan(arrival))
    early, over = arrival < begin, ~np.isnan(last)
    kept = over & ~early
    sent, first, end, length = arrival[kept], columns.first_token_seconds[kept], last[kept], columns.output_len[kept]
    ttfts, e2els, several = first - sent, end - sent, length > 1
    tpots = np.where(several, (end - first) / np.maximum(length - 1, 1), 0.0)
    seconds = float(end.max() - sent.min()) if sent.size else float("nan")
    good = np.full(sent.size, slo is not None)
    if slo is not None:
        for limit, values in ((slo.ttft_seconds, ttfts), (slo.tpot_seconds, tpots), (slo.e2el_seconds, e2els)):
            good &= values <= (np.inf if limit is None else limit)
    return Summary(
        num_finished=int(kept.sum()),
        num_warm_up=int(early.sum()),
        num_unfinished=int((~over & ~early).sum()),
        duration_seconds=seconds,
        ttft=_percentiles(ttfts),
        tpot=_percentiles(tpots[several]),
        e2el=_percentiles(e2els),
        request_throughput=sent.size / seconds,
        output_throughput=float(length.sum()) / seconds,
        goodput=float("nan") if slo is None else float(good.sum()) / seconds,
    )
