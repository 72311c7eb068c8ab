"""The tables that the calculator's page computes from, so that its script holds no constant a second time."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, replace
from typing import Any

from lantern_lib import calculator, hardware, hf_families, hf_layers, memory_plan
from lantern_lib.calculator import CARDS, ENGINES, KV_BYTES, STORED
from lantern_lib.capacity import SECONDS_PER_HOUR
from lantern_lib.devices import device_memory
from lantern_lib.engine_rules import LARGE_BYTES
from lantern_lib.hardware import Accelerator, Replica
from lantern_lib.hf_config import MAX_CHARACTERS, MUST_BE_OFF
from lantern_lib.measurements import Measurement
from lantern_lib.model_config import LANTERN_70B
from lantern_lib.models import public_models
from lantern_lib.spreads import Spread, measured_spread


def tables(measurements: Iterable[Measurement] = ()) -> dict[str, Any]:
    """Return all tables and constants that the page's script computes from.

    Parameters
    ----------
    measurements : iterable of Measurement
        Published times; with them the tables say what single streams reached of the peak.

    Returns
    -------
    dict
        Plain values for JSON: models, cards, engines, families of ``config.json``, limits.

    Raises
    ------
    ValueError
        If measurements are given and none is of a single stream.

    Examples
    --------
    >>> found = tables()
    >>> len(found["models"]) > 20, found["cards"]["H100 SXM"]["memory_bandwidth"]
    (True, 3350000000000.0)
    """
    rows = list(measurements)
    spreads = [measured_spread(rows, "decode", degree) for degree in (1, 4)] if rows else []
    plain = Replica(hardware.H100)
    return {
        "models": _models(),
        "cards": {name: _card(card) for name, card in CARDS.items()},
        "engines": {name: asdict(rule) for name, rule in ENGINES.items()},
        "families": {name: _family(family) for name, family in hf_families.FAMILIES.items()},
        "wrapped": hf_families.WRAPPED,
        "harmless": sorted(hf_families.HARMLESS),
        "read": sorted(hf_families.READ),
        "wrapper": sorted(hf_families.WRAPPER - {"audio_config"}),
        "must_be_off": sorted(MUST_BE_OFF),
        "stored": {str(bits): kind for bits, kind in STORED.items()},
        "kv_bytes": {str(bits): size for bits, size in KV_BYTES.items()},
        "limits": {
            "characters": MAX_CHARACTERS,
            "side": hf_layers.LARGEST,
            "parameters": calculator.MAX_PARAMETERS,
            "fields": calculator.LIMITS,
            "open": calculator.OPEN,
        },
        "large_bytes": LARGE_BYTES,
        "vision_share": memory_plan.VISION_SHARE,
        "efficiencies": {"compute": plain.compute_efficiency, "bandwidth": plain.bandwidth_efficiency},
        "seconds_per_hour": SECONDS_PER_HOUR,
        "spreads": [_spread(spread) for spread in spreads],
    }


def _models() -> dict[str, Any]:
    """List the shipped models as the files that they come from; the course's own has the shape of one of them."""
    found: dict[str, Any] = {}
    for name, entry in public_models().items():
        shape = replace(entry.model, name=LANTERN_70B.name, source=LANTERN_70B.source)
        aliases = [*entry.aliases, *([LANTERN_70B.name] if shape == LANTERN_70B else [])]
        kept = {"config": entry.config, "aliases": aliases, "extra": list(entry.extra)}
        found[name] = kept | {"mtp": list(entry.mtp) if entry.mtp else None, "origin": entry.origin}
    return found


def _card(card: Accelerator) -> dict[str, Any]:
    shown = device_memory(card)
    return {
        "size": [shown.size.value, shown.size.low, shown.size.high],
        "large": shown.large,
        "memory_bandwidth": card.memory_bandwidth,
        "peak_flops": card.peak_flops,
        "link": {"bandwidth": card.link.bandwidth, "latency_seconds": card.link.latency_seconds},
    }


def _family(family: hf_families.Family) -> dict[str, Any]:
    made = asdict(family)
    own = sorted(family.fields - hf_families.READ)
    return {key: value for key, value in made.items() if value} | {"own_fields": own}


def _spread(spread: Spread) -> dict[str, float]:
    return {"low": spread.low, "middle": spread.middle, "high": spread.high, "num_rows": spread.num_rows}
