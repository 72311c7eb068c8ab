"""Time a real decoder on this machine, beside the floor that the course's formulas give for it.

The machine is described by two measured rates, so that the comparison holds on any laptop: bytes per second of a
copy, and FLOPs per second of a matrix product. Times are never an answer of a lab; their pattern is.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from lantern_lib import step
from lantern_lib.hardware import Accelerator, Link, Replica
from lantern_lib.model_config import ModelConfig
from lantern_lib.tiny.arrays import Floats
from lantern_lib.tiny.decoder import Decoder
from lantern_lib.tiny.shapes import tensor_shapes
from lantern_lib.units import require_int


@dataclass(frozen=True)
class Timing:
    """A decode step as it was measured, and its floor.

    Parameters
    ----------
    batch_size : int
        Sequences decoded together [sequences].
    measured_seconds : float
        Median time of a step [seconds].
    floor : StepCost
        What the formulas of page A3 give for the measured machine.
    """

    batch_size: int
    measured_seconds: float
    floor: step.StepCost

    @property
    def share(self) -> float:
        """Floor over measured time: 1 is perfect [ratio]."""
        return self.floor.total_seconds / self.measured_seconds


def seconds_of(action: Callable[[], object], repeats: int = 5) -> float:
    """Return the median time of doing something, after one time that does not count.

    Parameters
    ----------
    action : callable
        What to do, without arguments.
    repeats : int
        How often it is timed [count].

    Returns
    -------
    float
        Median [seconds].

    Raises
    ------
    ValueError
        If `repeats` is not a whole number of 1 or more.

    Examples
    --------
    >>> seconds_of(lambda: None) < 1
    True
    """
    action()
    times = []
    for _ in range(require_int("repeats", repeats)):
        started = time.perf_counter()
        action()
        times.append(time.perf_counter() - started)
    return statistics.median(times)


def copy_bandwidth(num_bytes: int = 256_000_000, repeats: int = 5) -> float:
    """Measure how fast this machine copies an array, in bytes read and written.

    Parameters
    ----------
    num_bytes : int
        Size of the array; take the size of the model's weights, since a small array stays in a nearer memory [bytes].
    repeats : int
        How often it is timed [count].

    Returns
    -------
    float
        Twice the array's size over the median time [bytes/s].

    Raises
    ------
    ValueError
        If a number is not a whole number of 1 or more.

    Examples
    --------
    >>> copy_bandwidth(1_000_000, repeats=3) > 0
    True
    """
    source = np.ones(require_int("num_bytes", num_bytes), np.uint8)
    target = np.empty_like(source)
    # Both directions cross the same wires.
    return 2 * source.nbytes / seconds_of(lambda: np.copyto(target, source), repeats)


def matrix_rate(size: int = 1024, repeats: int = 5) -> float:
    """Measure how fast this machine multiplies two square matrices of 32-bit numbers.

    Parameters
    ----------
    size : int
        Rows and columns [count].
    repeats : int
        How often it is timed [count].

    Returns
    -------
    float
        ``2 size^3`` over the median time [FLOPs/s].

    Raises
    ------
    ValueError
        If a number is not a whole number of 1 or more.

    Examples
    --------
    >>> matrix_rate(64, repeats=3) > 0
    True
    """
    square = np.ones((require_int("size", size), size), np.float32)
    out = np.empty_like(square)
    return 2.0 * size**3 / seconds_of(lambda: np.matmul(square, square, out=out), repeats)


def this_machine(weights_bytes: int = 256_000_000) -> Replica:
    """Describe this machine by what it reached, so that the course's formulas can be asked about it.

    Parameters
    ----------
    weights_bytes : int
        Size of the model that will run, for :func:`copy_bandwidth` [bytes].

    Returns
    -------
    Replica
        One "accelerator" with the measured rates and efficiencies of 1. Its memory size is not measured.

    Raises
    ------
    ValueError
        If `weights_bytes` is not a whole number of 1 or more.

    Examples
    --------
    >>> this_machine(1_000_000).tp_size
    1
    """
    no_link = Link("none", bandwidth=1.0, latency_seconds=0.0, source="a machine by itself")
    measured = Accelerator(
        "this machine",
        memory_bytes=1e9,
        memory_bandwidth=copy_bandwidth(weights_bytes),
        peak_flops=matrix_rate(),
        link=no_link,
        source="measured now; the memory's size is a placeholder",
    )
    return Replica(measured, compute_efficiency=1.0, bandwidth_efficiency=1.0)


def random_decoder(config: ModelConfig, rng: np.random.Generator) -> Decoder:
    """Return a decoder of any size with random weights: it says nothing, and takes as long as if it did.

    Parameters
    ----------
    config : ModelConfig
        The shape: gated, without biases, tables not tied.
    rng : numpy.random.Generator
        Where the weights come from.

    Returns
    -------
    Decoder
        In 32-bit numbers.

    Examples
    --------
    >>> from lantern_lib.tiny.shapes import DRAFT
    >>> random_decoder(DRAFT, np.random.default_rng(1)).config.num_layers
    2
    """
    weights: dict[str, Floats] = {}
    for name, shape in tensor_shapes(config).items():
        spread = shape[-1] ** -0.5 if len(shape) > 1 else 1.0
        weights[name] = rng.standard_normal(shape, dtype=np.float32) * np.float32(spread)
    return Decoder(config, weights)


def decode_against_batch(
    model: Decoder,
    replica: Replica,
    batch_sizes: Sequence[int] = (1, 2, 4, 8, 16, 32, 64),
    context_len: int = 128,
    repeats: int = 7,
) -> list[Timing]:
    """Time real decode steps at several batch sizes, each beside its floor.

    Parameters
    ----------
    model : Decoder
        The model.
    replica : Replica
        The machine, from :func:`this_machine`.
    batch_sizes : sequence of int
        Sequences decoded together [sequences].
    context_len : int
        Cached tokens of each [tokens].
    repeats : int
        Steps that are timed [count].

    Returns
    -------
    list of Timing
        One for each batch size.

    Raises
    ------
    ValueError
        If a number is not a whole number of 1 or more.

    Notes
    -----
    The floor counts what numpy moves: as many bytes for each number as the decoder's precision has. Its launch
    overheads, a few microseconds for each of some hundred calls, are not in the floor: a small model shows them
    best. Page B5 says what such overheads weigh.

    Examples
    --------
    >>> from lantern_lib import tiny
    >>> timings = decode_against_batch(tiny.load("draft"), this_machine(400_000), (1, 4), 16, repeats=2)
    >>> [timing.batch_size for timing in timings]
    [1, 4]
    """
    require_int("context_len", context_len)
    size = float(np.dtype(model.dtype).itemsize)
    config = replace(model.config, weight_bytes=size, kv_bytes=size)
    timings = []
    for batch_size in batch_sizes:
        cache = model.new_cache(batch_size, context_len + 1)
        tokens = np.zeros((batch_size, 1), np.int64)
        full = np.full(batch_size, context_len)

        def one_step(cache=cache, tokens=tokens, full=full) -> None:  # type: ignore[no-untyped-def]
            cache.lengths = full
            model.extend(cache, tokens)

        measured = seconds_of(one_step, repeats)
        timings.append(Timing(batch_size, measured, step.decode_step(config, replica, batch_size, context_len)))
    return timings
