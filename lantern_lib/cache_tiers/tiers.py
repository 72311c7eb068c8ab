"""Stores below GPU memory, and what bringing a cache back from one costs against computing it again."""

from __future__ import annotations

from dataclasses import dataclass

from lantern_lib import kv_cache
from lantern_lib.hardware import Replica
from lantern_lib.model_config import ModelConfig
from lantern_lib.step import prefill_step
from lantern_lib.units import GB, TB, require_int, require_non_negative, require_positive


@dataclass(frozen=True)
class Tier:
    """A store below GPU memory, as one replica sees it.

    Parameters
    ----------
    name : str
        What it is called.
    capacity_bytes : float
        What of it belongs to one replica [bytes].
    bandwidth : float
        Rate at which it gives a cache back to the GPUs [bytes/s].
    latency_seconds : float
        Time before the first byte comes [seconds].
    price : float
        What the whole of it costs, in prices of one replica [ratio].

    Examples
    --------
    >>> cpu = Tier("CPU memory", 1 * TB, 25 * GB)
    >>> cpu.sessions(11.3e9), round(cpu.reload_seconds(11.3e9), 2), round(cpu.reloads_per_second(11.3e9), 1)
    (88, 0.45, 2.2)
    """

    name: str
    capacity_bytes: float
    bandwidth: float
    latency_seconds: float = 0.0
    price: float = 0.0

    def __post_init__(self) -> None:
        require_positive("capacity_bytes", self.capacity_bytes, "Give bytes, for example 1 * TB.")
        require_positive("bandwidth", self.bandwidth, "Give bytes per second, for example 25 * GB.")
        require_non_negative("latency_seconds", self.latency_seconds)
        require_non_negative("price", self.price)

    def sessions(self, size_bytes: float) -> int:
        """Whole sessions of one size that fit [count]."""
        return int(self.capacity_bytes // require_positive("size_bytes", size_bytes))

    def reload_seconds(self, size_bytes: float) -> float:
        """Time to bring one session back when nobody else uses the link [seconds]."""
        return self.latency_seconds + require_positive("size_bytes", size_bytes) / self.bandwidth

    def reloads_per_second(self, size_bytes: float) -> float:
        """Rate of returning sessions at which the link is busy all the time [1/s]."""
        return self.bandwidth / require_positive("size_bytes", size_bytes)


#: Illustrative tiers of one four-GPU replica: assumptions of the course, not measurements.
EXAMPLE_TIERS = (
    Tier("CPU memory", 1 * TB, 25 * GB, 0.0, 0.05),
    Tier("Local SSD", 15 * TB, 10 * GB, 0.001, 0.02),
    Tier("Remote store", 1000 * TB, 5 * GB, 0.01, 0.2),
)


@dataclass(frozen=True)
class Reload:
    """Bringing a cache back against computing it again; ``size_bytes`` [bytes], times [seconds]."""

    context_len: int
    size_bytes: float
    reload_seconds: float
    recompute_seconds: float

    @property
    def speedup(self) -> float:
        """How many times faster reloading is; below 1 it is slower [ratio]."""
        return self.recompute_seconds / self.reload_seconds

    @property
    def break_even_bandwidth(self) -> float:
        """Rate below which computing again is the faster way, latency left out [bytes/s]."""
        return self.size_bytes / self.recompute_seconds


def reload_or_recompute(
    model: ModelConfig, replica: Replica, context_len: int, bandwidth: float, latency_seconds: float = 0.0
) -> Reload:
    """Compare loading a session's cache over a link with prefilling its context again.

    Parameters
    ----------
    model : ModelConfig
        The shape, with the width of its cache.
    replica : Replica
        The machine that would prefill.
    context_len : int
        Tokens of the session [tokens].
    bandwidth : float
        Rate of the link to the replica, one way [bytes/s].
    latency_seconds : float
        Time before the first byte comes [seconds].

    Returns
    -------
    Reload
        Both times and the size.

    Raises
    ------
    ValueError
        If the context is not a whole number of 1 or more, or the rate is not above 0.

    Notes
    -----
    ``context × bytes per token / bandwidth`` against one prefill step of the whole context. Nothing else
    uses the link or the GPUs, and nothing overlaps. Derived on page D3.

    Examples
    --------
    >>> from lantern_lib import H100, LANTERN_70B
    >>> both = reload_or_recompute(LANTERN_70B, Replica(H100, tp_size=4), 34_500, 25e9)
    >>> round(both.reload_seconds, 2), round(both.recompute_seconds, 2), round(both.speedup, 1)
    (0.45, 3.52, 7.8)
    """
    size = kv_cache.bytes_per_sequence(model, require_int("context_len", context_len))
    rate = require_positive("bandwidth", bandwidth, "Give bytes per second in one direction.")
    seconds = require_non_negative("latency_seconds", latency_seconds) + size / rate
    return Reload(context_len, size, seconds, prefill_step(model, replica, context_len).total_seconds)
