"""How much of a machine was used: arithmetic and memory bandwidth over their peaks."""

from __future__ import annotations

from lantern_lib.units import require_non_negative, require_positive


def mfu(flops: float, seconds: float, peak_flops: float) -> float:
    """Return the model FLOPs utilisation: useful arithmetic over the peak.

    Parameters
    ----------
    flops : float
        What the model needs, without recomputation [FLOPs].
    seconds : float
        Time it took [seconds].
    peak_flops : float
        Dense peak of all accelerators, before any efficiency [FLOPs/s].

    Returns
    -------
    float
        The share; low in decode by nature, which is no fault of the engine [ratio].

    Raises
    ------
    ValueError
        If time or peak is not above 0, or `flops` is negative.

    Examples
    --------
    >>> round(mfu(64 * 139e9, 0.0187, 4 * 989e12), 3)
    0.12
    """
    peak = require_positive("peak_flops", peak_flops, "Give the dense peak of all cards together.")
    return require_non_negative("flops", flops) / (require_positive("seconds", seconds) * peak)


def mbu(moved_bytes: float, seconds: float, peak_bandwidth: float) -> float:
    """Return the memory-bandwidth utilisation: bytes that had to move over the peak.

    Parameters
    ----------
    moved_bytes : float
        Weights and cache that the steps read [bytes].
    seconds : float
        Time it took [seconds].
    peak_bandwidth : float
        Peak of all accelerators, before any efficiency [bytes/s].

    Returns
    -------
    float
        The share; the one to watch in decode [ratio].

    Raises
    ------
    ValueError
        If time or peak is not above 0, or `moved_bytes` is negative.

    Examples
    --------
    >>> round(mbu(180.9e9, 0.0187, 4 * 3.35e12), 2)
    0.72
    """
    peak = require_positive("peak_bandwidth", peak_bandwidth, "Give the peak of all cards together.")
    return require_non_negative("moved_bytes", moved_bytes) / (require_positive("seconds", seconds) * peak)
