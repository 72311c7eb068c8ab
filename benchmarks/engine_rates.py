"""The rates of this machine: python engine_rates.py read|copy|multiply THREADS SECONDS, in a process of its own.

Prints the best rate, the median, and how many repeats there were. The number of threads of a matrix product is set by
the caller, in the environment.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from lantern_lib.tiny.measure import copy_bandwidth, matrix_rate

#: As large as the smallest of the model's files, and far larger than the caches near a core [bytes].
ARRAY_BYTES = 256_000_000


def read_rate(threads: int) -> Callable[[], float]:
    """Return a function that reads an array once, each thread its own part, and gives the bytes per second."""
    parts = np.array_split(np.ones(ARRAY_BYTES // 8, np.int64), threads)
    pool = ThreadPoolExecutor(threads)

    def once() -> float:
        started = time.perf_counter()
        # An or of all numbers reads each once and writes nothing; numpy lets other threads run meanwhile.
        list(pool.map(np.bitwise_or.reduce, parts))
        return ARRAY_BYTES / (time.perf_counter() - started)

    return once


def copy_rate(threads: int) -> Callable[[], float]:
    """Return a function that copies, each thread its own array."""
    pool = ThreadPoolExecutor(threads)
    share = ARRAY_BYTES // threads
    return lambda: sum(pool.map(lambda _: copy_bandwidth(share, repeats=1), range(threads)))


def main() -> None:
    """Repeat one of them for some seconds."""
    case, threads, seconds = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
    ways = {
        "read": lambda: read_rate(threads),
        "copy": lambda: copy_rate(threads),
        "multiply": lambda: lambda: matrix_rate(768, repeats=1),
    }
    once = ways[case]()
    rates = []
    until = time.perf_counter() + seconds
    while time.perf_counter() < until or len(rates) < 5:
        rates.append(once())
    print(max(rates), statistics.median(rates), len(rates))


if __name__ == "__main__":
    main()
