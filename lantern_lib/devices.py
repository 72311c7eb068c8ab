"""How much memory a card really shows to a program, which is neither its name nor its data sheet.

A new card is a line here. What engines do with the memory is :mod:`lantern_lib.engine_rules`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from lantern_lib.hardware import Accelerator
from lantern_lib.units import GB, GIB, require_positive


@dataclass(frozen=True)
class Range:
    """A number with the least and the most it may be, all in one unit [bytes]."""

    value: float
    low: float
    high: float

    def __post_init__(self) -> None:
        if not self.low <= self.value <= self.high:
            raise ValueError(f"low, value and high must not fall, got {self.low!r}, {self.value!r}, {self.high!r}.")


@dataclass(frozen=True)
class DeviceMemory:
    """What one card shows to a program.

    Parameters
    ----------
    name : str
        Product name.
    size : Range
        Memory that the driver reports as total [bytes].
    large : bool
        Whether vLLM takes its large default batch on it: 70 GiB or more, and no A100.

    Examples
    --------
    >>> round(device_memory("H100").size.value / 1e9, 1)
    85.0
    """

    name: str
    size: Range
    large: bool = False


def _shown(name: str, gib: float, low: float, high: float, *, large: bool = False) -> DeviceMemory:
    return DeviceMemory(name, Range(gib * GIB, low * GIB, high * GIB), large)


#: Total memory that engines and drivers print at start, in GiB: usual value, least and most that was seen. Cards whose
#: memory corrects errors by itself lose a sixteenth to it, which is why 48 GB show 44.5 GiB.
DEVICES: dict[str, DeviceMemory] = {
    each.name: each
    for each in (
        _shown("H100", 79.18, 79.1, 79.65, large=True),
        _shown("H100 NVL", 93.1, 92.9, 93.6, large=True),
        _shown("H200", 139.8, 139.7, 140.5, large=True),
        _shown("H20", 95.1, 94.9, 95.6, large=True),
        _shown("H20 141 GB", 139.8, 139.7, 140.5, large=True),
        _shown("H20-3e", 139.8, 139.7, 140.5, large=True),
        _shown("H800", 79.18, 79.1, 79.65, large=True),
        _shown("GH200", 94.5, 94.4, 95.6, large=True),
        _shown("B200", 178.4, 177.9, 180.0, large=True),
        _shown("GB200", 184.3, 183.0, 185.5, large=True),
        _shown("MI300X", 191.98, 191.5, 192.0, large=True),
        _shown("MI355X", 287.98, 287.5, 288.0, large=True),
        _shown("A100", 79.2, 79.1, 79.35),
        _shown("A100 40 GB", 39.39, 39.3, 39.6),
        _shown("A800", 79.2, 79.1, 79.35),
        _shown("L40S", 44.5, 44.3, 44.7),
        _shown("L40", 44.4, 44.3, 44.7),
        _shown("L20", 44.5, 44.3, 44.7),
        _shown("A40", 44.4, 44.3, 44.7),
        _shown("RTX A6000", 47.4, 47.3, 47.6),
        _shown("RTX 6000 Ada", 47.4, 47.3, 47.6),
        _shown("RTX PRO 6000", 94.97, 94.5, 95.6, large=True),
        _shown("A10", 22.1, 21.9, 22.5),
        _shown("A10G", 22.1, 21.9, 22.5),
        _shown("L4", 22.05, 21.9, 22.5),
        _shown("RTX A5000", 23.57, 23.4, 23.7),
        _shown("RTX 3090", 23.58, 23.4, 23.7),
        _shown("RTX 4090", 23.55, 23.4, 23.65),
        _shown("RTX 5090", 31.36, 31.3, 31.85),
        _shown("RTX 4060", 7.75, 7.6, 7.8),
        _shown("T4", 14.6, 14.5, 14.8),
        _shown("V100", 31.73, 31.6, 31.8),
        _shown("V100 16 GB", 15.77, 15.7, 15.8),
    )
}
#: Words of a product's name that say nothing about its memory.
_BESIDE = re.compile(
    r"nvidia|geforce|tesla|amd|instinct|sxm\d?|pcie|hbm\d\w?|class|generation|blackwell|workstation|server|edition|oam"
)
_BYTES_IN_NAME = re.compile(r"(\d+)\s*gi?b")


def _card_key(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", _BESIDE.sub("", name.lower()))


def device_memory(card: Accelerator | DeviceMemory | str) -> DeviceMemory:
    """Return what a card shows to a program.

    Parameters
    ----------
    card : Accelerator, DeviceMemory or str
        A card of the catalogue, its name, or a size such as ``"80GB"`` or ``"24GB-class"`` where that is all that is
        known [text].

    Returns
    -------
    DeviceMemory
        The bytes that a driver reports.

    Raises
    ------
    ValueError
        If the name is unknown and holds no size.

    Notes
    -----
    A product's "80 GB" are 79.2 GiB, 85.0 billion bytes: 6 percent more than 80 billion. Where only a size is known it
    is taken as GiB less 2 percent, give or take what the catalogue's cards show: from 92 to 100 percent.

    Examples
    --------
    >>> [round(device_memory(card).size.value / 2**30, 1) for card in ("H100", "RTX 4090 24GB", "80GB-class")]
    [79.2, 23.6, 79.2]
    """
    if isinstance(card, DeviceMemory):
        return card
    if isinstance(card, Accelerator):
        known = _find(card.name)
        if known is not None:
            return known
        return _from_size(card.name, card.memory_bytes / GB)
    if not isinstance(card, str):
        raise ValueError(f"card must be an Accelerator or a name, got {type(card).__name__}.")
    known = _find(card)
    if known is not None:
        return known
    size = _BYTES_IN_NAME.search(card.lower())
    if size is None or not 1 <= int(size[1]) <= 1024:
        raise ValueError(f"card must be one of {', '.join(DEVICES)}, or a size like '80GB', got {card[:60]!r}.")
    return _from_size(card, int(size[1]))


def _find(name: str) -> DeviceMemory | None:
    """Find a card by its whole name, or by its name without the size that follows it."""
    keys = {_card_key(known): known for known in DEVICES}
    exact = _card_key(name)
    bare = _card_key(_BYTES_IN_NAME.sub("", name.lower()))
    for key in (exact, bare):
        for prefix in ("", "rtx"):
            if prefix + key in keys:
                return DEVICES[keys[prefix + key]]
    return None


def _from_size(name: str, gigabytes: float) -> DeviceMemory:
    gib = gigabytes * GIB
    if 75 <= gigabytes <= 81:
        # Every card of this size shows the same; which of them it is decides the default batch.
        return DeviceMemory(name, Range(79.2 * GIB if gigabytes == 80 else 0.99 * gib, 0.988 * gib, 1.0 * gib), True)
    return DeviceMemory(name, Range(0.98 * gib, 0.92 * gib, gib), gigabytes >= 75)


def known_size(gib: float) -> DeviceMemory:
    """Return a card of which only the printed size is known.

    Parameters
    ----------
    gib : float
        What an engine printed as the device's total [GiB].

    Returns
    -------
    DeviceMemory
        A card of that size.

    Raises
    ------
    ValueError
        If the size is not a finite number above 0.

    Examples
    --------
    >>> known_size(79.22).large
    True
    """
    size = require_positive("gib", gib) * GIB
    return DeviceMemory(f"{gib:g} GiB", Range(size, size, size), large=gib >= 70)
