"""What a stream of requests looks like: how it arrives, and how much of it a cache of a given size has seen before."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lantern_lib.units import require_non_negative, require_positive
from lantern_lib.workload.requests import Workload

#: The reuse distance of a block that was never there before: no cache is large enough.
NEVER = np.iinfo(np.int64).max


def gap_variation(arrival_seconds: ArrayLike) -> float:
    """Return the coefficient of variation of the gaps between arrivals.

    Parameters
    ----------
    arrival_seconds : array of float
        At least three arrivals, in order [seconds].

    Returns
    -------
    float
        Standard deviation over mean of the gaps: 1 for Poisson arrivals, 0 for evenly spaced ones [ratio].

    Raises
    ------
    ValueError
        If there are fewer than three arrivals, or all come at once.

    Notes
    -----
    Used on page D5. Stamps that are rounded to ticks raise it: many gaps are then zero.

    Examples
    --------
    >>> gap_variation([0, 2, 4, 6])
    0.0
    """
    gaps = np.diff(np.asarray(arrival_seconds, np.float64))
    if len(gaps) < 2 or not gaps.sum() > 0:
        raise ValueError(
            f"arrival_seconds must be three or more that do not all come at once, got {len(gaps) + 1} over"
            f" {gaps.sum()} s. Two gaps are the least that can vary."
        )
    return float(gaps.std() / gaps.mean())


def window_counts(arrival_seconds: ArrayLike, window_seconds: float) -> NDArray[np.int64]:
    """Return how many arrivals fall into each window.

    Parameters
    ----------
    arrival_seconds : array of float
        Arrivals in order [seconds].
    window_seconds : float
        Length of a window [seconds].

    Returns
    -------
    array of int
        Requests in each whole window from the first arrival; the last, unfinished window is left out [requests].

    Raises
    ------
    ValueError
        If the window is not above 0, or the trace does not fill two windows.

    Examples
    --------
    >>> window_counts([0, 1, 2, 10, 11, 25], 10).tolist()
    [3, 2]
    """
    require_positive("window_seconds", window_seconds)
    arrivals = np.asarray(arrival_seconds, np.float64)
    span = float(arrivals[-1] - arrivals[0])
    whole = int(span // window_seconds)
    if whole < 2:
        raise ValueError(
            f"window_seconds must fit at least twice into the {span:g} s of the trace, got {window_seconds!r}."
            " One window has nothing to be compared with."
        )
    windows = ((arrivals - arrivals[0]) // window_seconds).astype(np.int64)
    return np.bincount(windows[windows < whole], minlength=whole)


@dataclass(frozen=True)
class Burstiness:
    """How uneven arrivals are over windows of one length.

    ``dispersion`` is the variance of the counts over their mean, 1 for Poisson arrivals at any window; ``peak`` is the
    fullest window over the mean.
    """

    window_seconds: float
    dispersion: float
    peak: float


def burstiness(arrival_seconds: ArrayLike, window_seconds: float) -> Burstiness:
    """Return how uneven arrivals are over windows of one length.

    Parameters
    ----------
    arrival_seconds : array of float
        Arrivals in order [seconds].
    window_seconds : float
        Length of a window [seconds].

    Returns
    -------
    Burstiness
        Index of dispersion and peak over mean of the counts in whole windows.

    Raises
    ------
    ValueError
        If the window is not above 0, or the trace does not fill two windows.

    Notes
    -----
    The index of dispersion is ``var(counts) / mean(counts)``. It grows with the window where the rate itself drifts,
    and falls below 1 where something spaces the arrivals. Used on page D5.

    Examples
    --------
    >>> burstiness([0, 1, 2, 10, 11, 12, 20], 10)
    Burstiness(window_seconds=10, dispersion=0.0, peak=1.0)
    """
    counts = window_counts(arrival_seconds, window_seconds)
    mean = counts.mean()
    return Burstiness(window_seconds, float(counts.var() / mean), float(counts.max() / mean))


def _earlier_and_greater(values: NDArray[np.int64]) -> NDArray[np.int64]:
    """Count, for each of the distinct values, the greater ones before it.

    One bit at a time from the top: among values that agree in all higher bits, those with this bit set are the greater.
    """
    rank = np.empty(len(values), np.int64)
    rank[np.argsort(values)] = np.arange(len(values))
    count = np.zeros(len(values), np.int64)
    order = np.arange(len(values))
    for bit in reversed(range(len(values).bit_length())):
        high = rank[order] >> bit
        is_set = high & 1
        before = np.cumsum(is_set) - is_set
        group = high >> 1
        first = np.concatenate(([True], group[1:] != group[:-1]))
        before -= np.maximum.accumulate(np.where(first, before, 0))
        count[order[is_set == 0]] += before[is_set == 0]
        order = order[np.argsort(high, kind="stable")]
    return count


def reuse_distances(work: Workload) -> NDArray[np.int64]:
    """Return how far back each block was last used, in other blocks.

    Parameters
    ----------
    work : Workload
        Requests whose prompts have named blocks.

    Returns
    -------
    array of int
        For each of ``work.block_ids`` in order: how many different other blocks were used since its last use, or
        :data:`NEVER` [blocks].

    Raises
    ------
    ValueError
        If the prompts have no named blocks.

    Notes
    -----
    Mattson's stack distance. An LRU cache of C blocks has a block if and only if its distance is below C, so one pass
    answers for every size. With p the last use of access i, the distance is the ``i − p − 1`` accesses between, less
    those whose own last use lies after p, because they repeat a block. Whoever uses a block uses all blocks before it
    in the prompt too, so within a prompt distances never fall: what an LRU cache has of it is a prefix. Used on page
    D5.

    Examples
    --------
    >>> from lantern_lib.workload import Request
    >>> rows = [Request(t, 20, 1, prefix_blocks=b) for t, b in enumerate([(1, 2), (1, 3), (1, 2)])]
    >>> [int(d) if d < NEVER else None for d in reuse_distances(Workload.from_requests(rows, block_size=10))]
    [None, None, 1, None, 1, 2]
    """
    if not len(work.block_ids):
        raise ValueError("work must have block_ids, got none. Only a trace with named blocks shows what is shared.")
    ids, count = work.block_ids, len(work.block_ids)
    by_id = np.argsort(ids, kind="stable")
    same = ids[by_id][1:] == ids[by_id][:-1]
    again = np.zeros(count, bool)
    last = np.zeros(count, np.int64)
    again[by_id[1:][same]] = True
    last[by_id[1:][same]] = by_id[:-1][same]
    at = np.flatnonzero(again)
    distances = np.full(count, NEVER)
    distances[at] = at - last[at] - 1 - _earlier_and_greater(last[at])
    return distances


def reuse_share(distances: NDArray[np.int64], capacity_blocks: float) -> float:
    """Return the share of blocks that an LRU cache of one size already has.

    Parameters
    ----------
    distances : array of int
        What :func:`reuse_distances` returns [blocks].
    capacity_blocks : float
        Size of the cache; infinity for one that forgets nothing [blocks].

    Returns
    -------
    float
        Blocks found over blocks asked for [ratio].

    Raises
    ------
    ValueError
        If the size is negative.

    Examples
    --------
    >>> reuse_share(np.array([NEVER, NEVER, 1, NEVER, 1, 2]), 2)
    0.3333333333333333
    """
    if capacity_blocks == float("inf"):
        return float(np.mean(distances < NEVER))
    return float(np.mean(distances < require_non_negative("capacity_blocks", capacity_blocks)))
