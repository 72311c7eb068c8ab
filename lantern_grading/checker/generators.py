"""A generator of random numbers that was lent: how far it was used, and nothing else."""

from __future__ import annotations

from typing import Any

import numpy as np

#: More draws than any lab needs from one generator.
MAX_DRAWS = 1 << 40
_MULTIPLIER = 0x2360ED051FC65DA44385DF649FCCF645
_MASK = (1 << 128) - 1


def steps_between(first: int, second: int, increment: int) -> int:
    """Return how many steps of PCG64 lead from one state to another.

    Parameters
    ----------
    first, second : int
        States of the generator, 128 bits.
    increment : int
        Its odd constant, which picks the stream.

    Returns
    -------
    int
        Steps, from 0 to 2^128 - 1 [count].

    Notes
    -----
    Bit by bit from the lowest, as in M. E. O'Neill's ``pcg_extras`` distance: a step of 2^k changes bit k and
    none below.

    Examples
    --------
    >>> import numpy as np
    >>> used = np.random.PCG64(1)
    >>> state = used.state["state"]
    >>> _ = used.random_raw(37)
    >>> steps_between(state["state"], used.state["state"]["state"], state["inc"])
    37
    """
    multiplier, plus, bit, steps = _MULTIPLIER, increment, 1, 0
    while first != second and bit <= _MASK:
        if (first ^ second) & bit:
            first = (first * multiplier + plus) & _MASK
            steps |= bit
        plus = (multiplier + 1) * plus & _MASK
        multiplier = multiplier * multiplier & _MASK
        bit <<= 1
    return steps


def follow(lent: np.random.Generator, returned: Any) -> None:
    """Advance a generator to where a copy of it has come; one that was not only drawn from is not followed.

    Parameters
    ----------
    lent : numpy.random.Generator
        The grader's own.
    returned : object
        What came back.
    """
    if not isinstance(returned, np.random.Generator):
        return
    mine, theirs = lent.bit_generator.state, returned.bit_generator.state
    if mine["bit_generator"] != "PCG64" or theirs["bit_generator"] != "PCG64":
        return
    here, there = mine["state"], theirs["state"]
    if here["inc"] == there["inc"] and steps_between(here["state"], there["state"], here["inc"]) <= MAX_DRAWS:
        lent.bit_generator.state = theirs
