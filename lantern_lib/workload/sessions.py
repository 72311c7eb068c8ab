"""Sessions as a workload: one row a call, with the blocks that a call has in common with the one before."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from lantern_lib.units import require_int
from lantern_lib.workload.requests import Request, Session, Workload


def session_rows(sessions: Sequence[Session], block_size: int) -> tuple[Workload, NDArray[np.float64]]:
    """Lay sessions out as rows of a workload.

    Parameters
    ----------
    sessions : sequence of Session
        In any order.
    block_size : int
        Tokens of one block of cache [tokens].

    Returns
    -------
    tuple of Workload and array of float
        One row a call, the calls of a session one after the other; and for each row the pause since the answer
        before it, or for a session's first call its start [seconds].

    Raises
    ------
    ValueError
        If there is no session, or `block_size` is below 1.

    Notes
    -----
    When a call arrives is for the run to find out, so the workload's own arrival times are only the sessions'
    starts. A call shares the whole blocks within its ``reused_len`` with the prompt before it. What it repeats of
    the answer before it is computed again: answers have no named blocks here.

    Examples
    --------
    >>> from lantern_lib.workload import Call, Session
    >>> work, gaps = session_rows([Session((Call(40, 5), Call(64, 5, gap_seconds=9.0, reused_len=40)))], block_size=16)
    >>> work[0].prefix_blocks, work[1].prefix_blocks, gaps.tolist()
    ((0, 1), (0, 1, 2, 3), [0.0, 9.0])
    """
    require_int("block_size", block_size)
    if not sessions:
        raise ValueError("sessions must hold at least one session, got none.")
    rows: list[Request] = []
    gaps: list[float] = []
    fresh = 0
    for number, session in enumerate(sorted(sessions, key=lambda each: each.start_seconds)):
        names: tuple[int, ...] = ()
        for place, call in enumerate(session.calls):
            kept = names[: call.reused_len // block_size]
            new = call.prompt_len // block_size - len(kept)
            names = kept + tuple(range(fresh, fresh + new))
            fresh += new
            start = session.start_seconds
            rows.append(Request(start, call.prompt_len, call.output_len, session=number, prefix_blocks=names))
            gaps.append(call.gap_seconds if place else start)
    return Workload.from_requests(rows, block_size), np.array(gaps)
