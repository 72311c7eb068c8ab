"""Times of collective operations between the accelerators of one replica."""

from __future__ import annotations

from lantern_lib.hardware import Link
from lantern_lib.units import require_int, require_non_negative


def all_reduce_seconds(message_bytes: float, num_ranks: int, link: Link) -> float:
    """Return the time in which every rank gets the sum of all ranks' vectors.

    Parameters
    ----------
    message_bytes : float
        Size of one rank's vector [bytes].
    num_ranks : int
        Accelerators that take part [count].
    link : Link
        Their connection.

    Returns
    -------
    float
        Time of one all-reduce; 0 for a single rank [seconds].

    Raises
    ------
    ValueError
        If the size is negative or the number of ranks is below 1.

    Notes
    -----
    A ring sends 2 (g − 1) / g of the message over each link, after a fixed latency. The latency is
    held constant as g grows, which favours wide groups; a ring's real latency grows with g. Used on
    page A3, taken apart in part B.

    Examples
    --------
    >>> from lantern_lib.hardware import NVLINK_4
    >>> round(all_reduce_seconds(16384, 4, NVLINK_4) * 1e6, 3)
    8.055
    """
    require_non_negative("message_bytes", message_bytes)
    require_int("num_ranks", num_ranks)
    if num_ranks == 1:
        return 0.0
    return link.latency_seconds + 2 * (num_ranks - 1) / num_ranks * message_bytes / link.bandwidth


def send_seconds(message_bytes: float, link: Link) -> float:
    """Return the time in which one rank hands a message to one other rank.

    Parameters
    ----------
    message_bytes : float
        Size of the message [bytes].
    link : Link
        The connection; its latency is taken for one transfer.

    Returns
    -------
    float
        Time of the transfer [seconds].

    Raises
    ------
    ValueError
        If the size is negative.

    Notes
    -----
    A pipeline sends once at each boundary between stages. Used on page B6.

    Examples
    --------
    >>> from lantern_lib.hardware import NVLINK_4
    >>> round(send_seconds(64 * 16384, NVLINK_4) * 1e6, 2)
    10.33
    """
    require_non_negative("message_bytes", message_bytes)
    return link.latency_seconds + message_bytes / link.bandwidth


def all_to_all_seconds(message_bytes: float, num_ranks: int, link: Link) -> float:
    """Return the time in which every rank sends an equal share of its message to every rank.

    Parameters
    ----------
    message_bytes : float
        What one rank holds before the exchange [bytes].
    num_ranks : int
        Accelerators that take part [count].
    link : Link
        Their connection.

    Returns
    -------
    float
        Time of one exchange; 0 for a single rank [seconds].

    Raises
    ------
    ValueError
        If the size is negative or the number of ranks is below 1.

    Notes
    -----
    The share that a rank keeps does not travel, so (g − 1) / g of the message leaves over its link, after a
    fixed latency. Even shares are an assumption: tokens crowd at popular experts. Used on page B6.

    Examples
    --------
    >>> from lantern_lib.hardware import NVLINK_4
    >>> round(all_to_all_seconds(900e6, 4, NVLINK_4) * 1e3, 3)
    1.508
    """
    require_non_negative("message_bytes", message_bytes)
    require_int("num_ranks", num_ranks)
    if num_ranks == 1:
        return 0.0
    return link.latency_seconds + (num_ranks - 1) / num_ranks * message_bytes / link.bandwidth
