"""Arithmetic intensity, ridge point, and which of the two limits binds."""

from __future__ import annotations

from typing import Literal

from lantern_lib.units import require_non_negative, require_positive

Bound = Literal["compute", "memory"]


def arithmetic_intensity(flops: float, moved_bytes: float) -> float:
    """Return the FLOPs done for each byte moved.

    Parameters
    ----------
    flops : float
        Arithmetic of the step [FLOPs].
    moved_bytes : float
        Memory traffic of the step [bytes].

    Returns
    -------
    float
        Intensity [FLOPs/byte].

    Raises
    ------
    ValueError
        If `flops` is negative or `moved_bytes` is not above 0.

    Notes
    -----
    Defined by Williams, Waterman and Patterson (2009); used on page A3.

    Examples
    --------
    >>> arithmetic_intensity(2 * 64 * 70e9, 2 * 70e9)
    64.0
    """
    return require_non_negative("flops", flops) / require_positive("moved_bytes", moved_bytes)


def ridge_point(flops_per_second: float, bandwidth: float) -> float:
    """Return the intensity at which arithmetic and memory take the same time.

    Parameters
    ----------
    flops_per_second : float
        Arithmetic rate, after efficiency if that is what you compare [FLOPs/s].
    bandwidth : float
        Memory bandwidth by the same convention [bytes/s].

    Returns
    -------
    float
        Ridge point [FLOPs/byte].

    Raises
    ------
    ValueError
        If either is not above 0.

    Notes
    -----
    State the convention: an H100 has 295 at its peaks and 184.5 at 0.5 and 0.8 of them. Page A3.

    Examples
    --------
    >>> round(ridge_point(989e12, 3.35e12), 1)
    295.2
    >>> round(ridge_point(0.5 * 989e12, 0.8 * 3.35e12), 1)
    184.5
    """
    return require_positive("flops_per_second", flops_per_second) / require_positive("bandwidth", bandwidth)


def ridge_batch(flops_per_second: float, bandwidth: float, weight_bytes: float = 2.0) -> float:
    """Return the batch at which a decode step without a cache turns compute-bound.

    Parameters
    ----------
    flops_per_second, bandwidth : float
        As in :func:`ridge_point` [FLOPs/s], [bytes/s].
    weight_bytes : float
        Bytes of one weight [bytes].

    Returns
    -------
    float
        Crossover batch [sequences].

    Raises
    ------
    ValueError
        If an argument is not above 0.

    Notes
    -----
    A step does 2 B FLOPs for each weight and moves `weight_bytes` for it, so the intensity is
    2 B / `weight_bytes`. Page A3.

    Examples
    --------
    >>> round(ridge_batch(0.5 * 989e12, 0.8 * 3.35e12), 1)
    184.5
    """
    return ridge_point(flops_per_second, bandwidth) * require_positive("weight_bytes", weight_bytes) / 2


def bound(compute_seconds: float, memory_seconds: float) -> Bound:
    """Tell which of two overlapping times binds; a tie counts as compute.

    Parameters
    ----------
    compute_seconds, memory_seconds : float
        The two times [seconds].

    Returns
    -------
    {"compute", "memory"}
        The longer one.

    Raises
    ------
    ValueError
        If a time is negative.

    Examples
    --------
    >>> bound(0.07e-3, 13.0e-3)
    'memory'
    """
    arithmetic = require_non_negative("compute_seconds", compute_seconds)
    return "compute" if arithmetic >= require_non_negative("memory_seconds", memory_seconds) else "memory"
