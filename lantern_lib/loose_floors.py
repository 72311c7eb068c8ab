"""Floors of measurements that do not say their lengths: weaker than those of :mod:`lantern_lib.measurements`, and true.

A decode step reads the weights at least, and a token needs two operations for each weight that it uses, whatever the
context. A measurement below even that is wrong.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace

from lantern_lib import transformer
from lantern_lib.hardware import B200, H20, H100_NVL, H800, Accelerator
from lantern_lib.measurements import CARDS
from lantern_lib.model_config import ModelConfig
from lantern_lib.models import find_model
from lantern_lib.units import require_positive

_CARDS: dict[str, Accelerator] = {**CARDS, "H100-NVL": H100_NVL, "H800": H800, "H20": H20, "B200": B200}
#: Bytes of a weight by the word that a table has, the least of several.
_BYTES = {"bf16": 2.0, "fp16": 2.0, "fp8": 1.0, "int8": 1.0, "fp4/fp8": 0.5, "int4": 0.5}
#: Four-bit units do twice the products of eight-bit ones, where there are any.
_FOUR_BIT_FACTOR = 2.0
#: Time of one token or step in milliseconds; streams and totals in tokens per second.
_STEP_TIMES = ("tpot", "tpot_mean", "itl")
_RATES = ("output_throughput", "single_stream_decode", "decode_throughput", "prefill_throughput", "request_throughput")


@dataclass(frozen=True)
class LooseFloor:
    """The least time for a token and the measured one, or why there is none [seconds].

    ``what`` says what the floor counts: the weights of a step, or the operations of a token.
    """

    floor_seconds: float | None
    measured_seconds: float | None
    what: str

    @property
    def share(self) -> float | None:
        """Floor over measurement, None without a floor: above 1 the measurement is wrong [ratio]."""
        if self.floor_seconds is None or self.measured_seconds is None:
            return None
        return self.floor_seconds / self.measured_seconds


def _shape(name: str, precision: str) -> ModelConfig | None:
    try:
        model = find_model(name.removesuffix("-FP8"))
    except ValueError:
        return None
    return replace(model, storage=None, weight_bytes=_BYTES[precision])


def loose_floor(row: Mapping[str, str]) -> LooseFloor:
    """Return the floor of a measurement from its model, card and precision alone.

    Parameters
    ----------
    row : mapping of str to str
        ``model``, ``card``, ``tp``, ``precision``, ``batch``, ``metric``, ``value`` and ``unit`` as the tables have
        them.

    Returns
    -------
    LooseFloor
        Seconds of one token or one step, or the reason why there is none.

    Raises
    ------
    ValueError
        If `value` is no number above 0.

    Examples
    --------
    >>> row = {"model": "Llama-3.1-8B", "card": "H100", "tp": "1", "precision": "fp16", "batch": "4",
    ...     "metric": "tpot", "value": "6.59", "unit": "ms"}
    >>> found = loose_floor(row)
    >>> found.what, round(found.share, 2)
    ('weights of one step', 0.68)
    """
    if "draft" in row["model"]:
        return LooseFloor(None, None, "several tokens a step, and how many is not said")
    if row["card"] not in _CARDS:
        return LooseFloor(None, None, "the card is not named")
    model = _shape(row["model"], row["precision"]) if row["precision"] in _BYTES else None
    if model is None:
        return LooseFloor(None, None, "the shape or its format is not known")
    card = _CARDS[row["card"]]
    value = require_positive("value", float(row["value"]))
    cards = int(row["tp"]) if row["tp"].isdigit() else 1
    weights = transformer.streamed_weight_bytes(model) / (cards * card.memory_bandwidth)
    batch = re.match(r"\d+$", row["batch"])
    if row["metric"] in _STEP_TIMES:
        return LooseFloor(weights, value / 1e3, "weights of one step")
    if row["metric"] not in _RATES:
        return LooseFloor(None, None, f"{row['metric']} has no floor without lengths")
    if row["metric"] == "single_stream_decode":
        return LooseFloor(weights, 1 / value, "weights of one step")
    if row["metric"] == "output_throughput" and batch and row["unit"] == "tok/s":
        return LooseFloor(weights, int(batch[0]) / value, "weights of one step")
    peak = card.peak_flops
    if model.weight_bytes <= 1 and card.peak_flops_8bit is not None:
        peak = card.peak_flops_8bit * (_FOUR_BIT_FACTOR if model.weight_bytes < 1 else 1.0)
    # A request has one token at least; rates of one GPU are stated so.
    flops = 2.0 * transformer.parameters(model).multiplied
    return LooseFloor(flops / (cards * peak), 1 / value, "operations of one token")
