"""The definitions: what is measured of one request, and of a list of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from lantern_lib.units import require_fraction, require_int, require_positive


@dataclass(frozen=True)
class RequestRecord:
    """The times of one finished request, on one clock.

    Parameters
    ----------
    arrival_seconds : float
        When the user wanted it sent; in an open-loop test its place in the schedule [seconds].
    first_token_seconds : float
        When the first token came back [seconds].
    last_token_seconds : float
        When the last one did [seconds].
    output_len : int
        Tokens of the answer [tokens].
    token_seconds : tuple of float
        When each token came back, if the client kept it [seconds].
    """

    arrival_seconds: float
    first_token_seconds: float
    last_token_seconds: float
    output_len: int
    token_seconds: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        require_int("output_len", self.output_len, hint="A request without an answer has no times to measure.")
        if not self.arrival_seconds <= self.first_token_seconds <= self.last_token_seconds:
            raise ValueError(
                "first_token_seconds must be between arrival_seconds and last_token_seconds, got"
                f" {self.first_token_seconds!r}. Take all three from one clock."
            )
        if self.token_seconds and len(self.token_seconds) != self.output_len:
            raise ValueError(
                f"token_seconds must be one time for each of {self.output_len} tokens, got {len(self.token_seconds)}."
                " A stream may send several tokens in one message."
            )


def ttft(record: RequestRecord) -> float:
    """Return the time to first token.

    Parameters
    ----------
    record : RequestRecord
        One request.

    Returns
    -------
    float
        First token minus arrival, waiting included [seconds].

    Notes
    -----
    Clients agree on the end and not on the beginning. ``vllm bench serve`` starts the clock when it sends; with
    its limit on concurrency a request that waits inside the client has not been sent, so that wait is in no
    number. An engine's own metric starts at arrival in the engine and leaves out the network. Here the
    clock starts when the user wanted the answer. AIPerf passes over empty first messages.

    Examples
    --------
    >>> ttft(RequestRecord(10.0, 10.5, 12.5, output_len=101))
    0.5
    """
    return record.first_token_seconds - record.arrival_seconds


def tpot(record: RequestRecord, *, include_first: bool = False) -> float:
    """Return the mean time per output token.

    Parameters
    ----------
    record : RequestRecord
        One request, with two tokens or more unless the first counts.
    include_first : bool
        Divide the whole time by all tokens, as some tools do.

    Returns
    -------
    float
        ``(last − first) / (output_len − 1)``, or ``e2el / output_len`` [seconds].

    Raises
    ------
    ValueError
        If the answer has one token and the first does not count: there is no gap to average.

    Notes
    -----
    ``vllm bench serve`` leaves the first token out, and AIPerf does too but calls the result inter-token latency.
    GuideLLM documents its time per output token as including the first, so a long wait or prompt raises it;
    its inter-token latency leaves the first out.

    Examples
    --------
    >>> record = RequestRecord(0.0, 2.0, 4.0, output_len=101)
    >>> tpot(record), round(tpot(record, include_first=True), 4)
    (0.02, 0.0396)
    """
    if include_first:
        return e2el(record) / record.output_len
    if record.output_len < 2:
        raise ValueError(f"output_len must be 2 or more, got {record.output_len}. One token has no gap to the next.")
    return (record.last_token_seconds - record.first_token_seconds) / (record.output_len - 1)


def itl(record: RequestRecord) -> tuple[float, ...]:
    """Return the inter-token latencies: every gap on its own.

    Parameters
    ----------
    record : RequestRecord
        One request with the time of each token.

    Returns
    -------
    tuple of float
        ``output_len − 1`` gaps [seconds].

    Raises
    ------
    ValueError
        If the record has no token times.

    Notes
    -----
    Their mean is TPOT; their percentiles show a pause that TPOT averages away. ``vllm bench serve`` pools the
    gaps of all requests, so long answers weigh more; a gap there lies between messages, and a message may
    carry several tokens. AIPerf's number of this name is a mean for each request, that is, :func:`tpot`.

    Examples
    --------
    >>> itl(RequestRecord(0.0, 1.0, 2.0, output_len=3, token_seconds=(1.0, 1.25, 2.0)))
    (0.25, 0.75)
    """
    if not record.token_seconds:
        raise ValueError("token_seconds must be given for inter-token latencies, got (). Keep the time of each token.")
    times = record.token_seconds
    return tuple(later - earlier for earlier, later in pairwise(times))


def e2el(record: RequestRecord) -> float:
    """Return the end-to-end latency.

    Parameters
    ----------
    record : RequestRecord
        One request.

    Returns
    -------
    float
        Last token minus arrival; equals ``ttft + (output_len − 1) tpot`` [seconds].

    Examples
    --------
    >>> e2el(RequestRecord(0.0, 2.0, 4.0, output_len=101))
    4.0
    """
    return record.last_token_seconds - record.arrival_seconds


def percentile(values: Iterable[float], q: float) -> float:
    """Return the value that a share of all values stays within.

    Parameters
    ----------
    values : iterable of float
        At least one value [any unit].
    q : float
        The share, in (0, 1], for example 0.95 [ratio].

    Returns
    -------
    float
        Linear between neighbours in rank [unit of `values`].

    Raises
    ------
    ValueError
        If there is no value or `q` is outside (0, 1].

    Notes
    -----
    A percentile of a mean over each request is not the percentile of the gaps, and percentiles of two
    machines cannot be averaged.

    Examples
    --------
    >>> percentile([1.0, 2.0, 3.0, 4.0, 5.0], 0.5)
    3.0
    """
    ordered = [float(value) for value in values]
    require_fraction("q", q, "Give 0.95 for the 95th percentile.")
    if not ordered:
        raise ValueError("values must be at least one number, got none. Did every request fail?")
    return float(np.percentile(ordered, 100 * q))


@dataclass(frozen=True)
class Slo:
    """A promise to each user; a limit that is None promises nothing. All in seconds."""

    ttft_seconds: float | None = None
    tpot_seconds: float | None = None
    e2el_seconds: float | None = None

    def __post_init__(self) -> None:
        given = [(n, v) for n, v in vars(self).items() if v is not None]
        if not given:
            raise ValueError("ttft_seconds must be given, or another limit; got none. An empty promise is always kept.")
        for name, value in given:
            require_positive(name, value)


def meets(record: RequestRecord, slo: Slo) -> bool:
    """Tell whether one request was served within every limit.

    Parameters
    ----------
    record : RequestRecord
        One request.
    slo : Slo
        The limits; a single-token answer keeps any limit on TPOT.

    Returns
    -------
    bool
        True when none is broken; a value equal to its limit keeps it.

    Examples
    --------
    >>> meets(RequestRecord(0.0, 0.5, 2.5, output_len=101), Slo(ttft_seconds=0.5, tpot_seconds=0.02))
    True
    """
    return (
        (slo.ttft_seconds is None or ttft(record) <= slo.ttft_seconds)
        and (slo.tpot_seconds is None or record.output_len < 2 or tpot(record) <= slo.tpot_seconds)
        and (slo.e2el_seconds is None or e2el(record) <= slo.e2el_seconds)
    )


def duration(records: Sequence[RequestRecord]) -> float:
    """Return the length of a test.

    Parameters
    ----------
    records : sequence of RequestRecord
        All requests of it.

    Returns
    -------
    float
        First arrival to last token, warm-up and drain included [seconds].

    Raises
    ------
    ValueError
        If there is no record.

    Examples
    --------
    >>> duration([RequestRecord(1.0, 2.0, 3.0, 5), RequestRecord(2.0, 3.0, 5.0, 5)])
    4.0
    """
    if not records:
        raise ValueError("records must be at least one request, got none. Did every request fail?")
    return max(r.last_token_seconds for r in records) - min(r.arrival_seconds for r in records)


def output_throughput(records: Sequence[RequestRecord]) -> float:
    """Return the tokens written in a second of the test.

    Parameters
    ----------
    records : sequence of RequestRecord
        All requests of it.

    Returns
    -------
    float
        Output tokens over :func:`duration` [tokens/s].

    Notes
    -----
    Public tools also print a total throughput that adds the prompt's tokens; it is several times larger
    for long prompts. Ask which one a headline means.

    Examples
    --------
    >>> output_throughput([RequestRecord(0.0, 1.0, 4.0, 100), RequestRecord(1.0, 2.0, 5.0, 150)])
    50.0
    """
    return sum(record.output_len for record in records) / duration(records)


def request_throughput(records: Sequence[RequestRecord]) -> float:
    """Return the requests finished in a second of the test.

    Parameters
    ----------
    records : sequence of RequestRecord
        All requests of it.

    Returns
    -------
    float
        Requests over :func:`duration` [requests/s].

    Examples
    --------
    >>> request_throughput([RequestRecord(0.0, 1.0, 4.0, 100), RequestRecord(1.0, 2.0, 5.0, 150)])
    0.4
    """
    return len(records) / duration(records)


def goodput(records: Sequence[RequestRecord], slo: Slo) -> float:
    """Return the requests in a second that were served as promised.

    Parameters
    ----------
    records : sequence of RequestRecord
        All requests of the test, the late ones too.
    slo : Slo
        The promise.

    Returns
    -------
    float
        Requests that keep every limit, over :func:`duration` [requests/s].

    Notes
    -----
    As in DistServe and ``vllm bench serve --goodput``. Some papers count tokens instead of requests.

    Examples
    --------
    >>> good, late = RequestRecord(0.0, 1.0, 4.0, 100), RequestRecord(1.0, 4.0, 5.0, 150)
    >>> goodput([good, late], Slo(ttft_seconds=2.0))
    0.2
    """
    return sum(meets(record, slo) for record in records) / duration(records)
