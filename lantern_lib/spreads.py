"""What published measurements reached of the peaks, for a machine that nobody measured."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from lantern_lib.hardware import Accelerator, Replica
from lantern_lib.measurements import Measurement, floor
from lantern_lib.transformer import parameters
from lantern_lib.units import require_int

#: Below this launches take longer than the weights, so that a share of bandwidth says nothing [count].
SMALLEST = 6e9


@dataclass(frozen=True)
class Prediction:
    """A time with the interval that a new measurement should lie in, and where the interval comes from [seconds]."""

    seconds: float
    low_seconds: float
    high_seconds: float
    why: str

    @property
    def summary(self) -> str:
        """One line with the interval."""
        low, value, high = (f"{each * 1e3:.3g}" for each in (self.low_seconds, self.seconds, self.high_seconds))
        return f"{value} ms, {low} to {high} ms: {self.why}"


@dataclass(frozen=True)
class Spread:
    """What a group of measurements reached of a peak: least, middle, most [ratio], and how many they are."""

    what: str
    low: float
    middle: float
    high: float
    num_rows: int

    def predict(self, floor_seconds: float) -> Prediction:
        """Predict a time from its floor, for a machine that nobody measured.

        Parameters
        ----------
        floor_seconds : float
            Time at the peaks [seconds].

        Returns
        -------
        Prediction
            The floor over the middle, between the floor over the most and over the least.
        """
        why = f"{self.num_rows} measurements of {self.what} reached {self.low:.2f} to {self.high:.2f} of the peak"
        return Prediction(floor_seconds / self.middle, floor_seconds / self.high, floor_seconds / self.low, why)


def measured_spread(measurements: Iterable[Measurement], work: str, tp_size: int = 1) -> Spread:
    """Return what measurements of a kind of work reached of their floor.

    Parameters
    ----------
    measurements : iterable of Measurement
        The table; rejected rows, experts, and models too small to fill a card are passed over.
    work : str
        ``"decode"`` for one sequence in 16 bits, ``"prefill"`` for prompts of 1,000 tokens and more [text].
    tp_size : int
        GPUs: decode is split at two, since launches and sums weigh more beyond [count].

    Returns
    -------
    Spread
        Least, middle and most.

    Raises
    ------
    ValueError
        If `work` is neither, or no measurement is of the kind.

    Examples
    --------
    >>> runs = [Measurement("m", "", "", "Llama-3-8B", "H100", "bf16", "vLLM", 1, 1, 1000, 0, 1000, "tpot", seconds)
    ...     for seconds in (0.006, 0.007, 0.009)]
    >>> round(measured_spread(runs, "decode").middle, 2)
    0.65
    """
    require_int("tp_size", tp_size)
    if work not in ("decode", "prefill"):
        raise ValueError(f"work must be 'decode' or 'prefill', got {work!r}.")
    few = tp_size <= 2
    shares = []
    for one in measurements:
        small = parameters(one.shape).total < SMALLEST
        if one.rejected or one.work != work or one.shape.experts is not None or small:
            continue
        if work == "prefill" and one.prompt_len >= 1000:
            shares.append(floor(one).mfu)
        elif work == "decode" and one.batch_size == 1 and one.shape.weight_bytes == 2 and (one.tp_size <= 2) == few:
            shares.append(floor(one).mbu)
    if not shares:
        raise ValueError(f"measurements must hold {work} on {'one or two' if few else 'more'} GPUs, got none.")
    group = "prompts" if work == "prefill" else f"single streams on {'one or two' if few else 'more than two'} GPUs"
    return Spread(group, min(shares), float(np.median(shares)), max(shares), len(shares))


def peak_replica(accelerator: Accelerator, tp_size: int = 1) -> Replica:
    """Return cards at their data sheet's peaks, for the cost that a fit predicts from.

    Parameters
    ----------
    accelerator : Accelerator
        The card.
    tp_size : int
        How many share the model [count].

    Returns
    -------
    Replica
        With both efficiencies 1.

    Examples
    --------
    >>> from lantern_lib.hardware import H100
    >>> peak_replica(H100).bandwidth / 1e12
    3.35
    """
    return Replica(accelerator, tp_size, compute_efficiency=1.0, bandwidth_efficiency=1.0)
