"""Parts that fail: how often a fleet loses one, what stands still with it, and how many spares that takes."""

from __future__ import annotations

import math

from lantern_lib.units import require_fraction, require_int, require_non_negative, require_positive


def seconds_between_failures(part_seconds: float, num_parts: int) -> float:
    """Return the mean time from one failure in a fleet to the next.

    Parameters
    ----------
    part_seconds : float
        Mean time between failures of one part [seconds].
    num_parts : int
        Parts that all have to work [count].

    Returns
    -------
    float
        ``part_seconds / num_parts`` [seconds].

    Raises
    ------
    ValueError
        If the time is not above 0 or there is no part.

    Notes
    -----
    Failures are independent and come at a constant rate. Parts of one machine, one rack or one batch do
    not quite keep to that. Used on page F3.

    Examples
    --------
    >>> seconds_between_failures(8e8, 8)
    100000000.0
    """
    return require_positive("part_seconds", part_seconds) / require_int("num_parts", num_parts)


def group_availability(part_seconds: float, num_parts: int, repair_seconds: float) -> float:
    """Return the share of time that a group works which stands still when any of its parts fails.

    Parameters
    ----------
    part_seconds, num_parts
        As in :func:`seconds_between_failures`.
    repair_seconds : float
        From a failure until the whole group serves again [seconds].

    Returns
    -------
    float
        ``1 / (1 + num_parts × repair_seconds / part_seconds)`` [ratio].

    Raises
    ------
    ValueError
        If a time is out of range or there is no part.

    Notes
    -----
    Working and standing still take turns; nothing fails in a group that stands still. Used on page F3.

    Examples
    --------
    >>> group_availability(900.0, 9, 100.0)
    0.5
    """
    require_non_negative("repair_seconds", repair_seconds)
    return 1 / (1 + repair_seconds / seconds_between_failures(part_seconds, num_parts))


def groups_to_own(num_needed: int, availability: float, confidence: float) -> int:
    """Return how many groups to own so that enough of them work.

    Parameters
    ----------
    num_needed : int
        Groups that the traffic takes [count].
    availability : float
        Share of time that one group works [ratio].
    confidence : float
        Wanted share of time in which enough work, below 1 [ratio].

    Returns
    -------
    int
        Groups, spares included [count].

    Raises
    ------
    ValueError
        If a share is not in (0, 1] or `confidence` is 1.

    Notes
    -----
    Groups fail independently; the number that work is binomial. Used on page F3.

    Examples
    --------
    >>> groups_to_own(7, 0.99, 0.999)
    9
    """
    require_int("num_needed", num_needed)
    require_fraction("availability", availability)
    require_fraction("confidence", confidence)
    if confidence == 1:
        raise ValueError("confidence must be below 1, got 1. No number of spares is certain to be enough.")
    owned = num_needed
    while _chance_that_enough_work(owned, num_needed, availability) < confidence:
        owned += 1
    return owned


def _chance_that_enough_work(owned: int, num_needed: int, availability: float) -> float:
    down = 1 - availability
    return sum(
        math.comb(owned, failed) * down**failed * availability ** (owned - failed)
        for failed in range(owned - num_needed + 1)
    )
