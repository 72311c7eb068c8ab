"""The fixed lists of lengths that pages and tests share."""

from __future__ import annotations


def output_lengths_512() -> tuple[int, ...]:
    """Return the 512 output lengths on which pages B1 and B2 count.

    Returns
    -------
    tuple of int
        Output lengths in the order of arrival, 8 to 516, mean 182.7 [tokens].

    Notes
    -----
    ``x ← (1,664,525 x + 1,013,904,223) mod 2³²`` from 12,345; the first length uses the state after one
    step. ``k`` is the third byte of the state from the right, and a length is ``8 + k² // 128``: a square, so most
    answers are short and a few are long.

    Examples
    --------
    >>> lengths = output_lengths_512()
    >>> lengths[:5], len(lengths), sum(lengths), max(lengths)
    ((33, 36, 9, 154, 484), 512, 93526, 516)
    """
    state, lengths = 12345, []
    for _ in range(512):
        state = (1664525 * state + 1013904223) % 2**32
        byte = (state >> 16) % 256
        lengths.append(8 + byte * byte // 128)
    return tuple(lengths)
