"""What the commands are given: a model by name or file, a card by name, a log by file."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from lantern_lib import hardware
from lantern_lib.devices import DeviceMemory, device_memory
from lantern_lib.hardware import ACCELERATORS, Accelerator, Replica
from lantern_lib.hf_config import from_hf_config, read_config
from lantern_lib.memory_report import FORMATS
from lantern_lib.model_config import ModelConfig
from lantern_lib.models import find_model
from lantern_lib.units import require_fraction

#: The most characters that are read of a file. The readers refuse less than that in their own words.
MOST_CHARACTERS = 5_000_001
_CACHE_BYTES = {"auto": None, "bf16": 2.0, "fp16": 2.0, "fp8": 1.0, "int8": 1.0}
_DTYPE_BYTES = {"bf16": 2.0, "fp16": 2.0, "fp32": 4.0}
#: What `--dtype` and `--kv-dtype` accept.
DTYPES = ("auto", *_DTYPE_BYTES, *(name.replace(" ", "-") for name in FORMATS))
KV_DTYPES = tuple(_CACHE_BYTES)
#: Every card whose speed is known.
SPEEDS: tuple[Accelerator, ...] = tuple(each for each in vars(hardware).values() if isinstance(each, Accelerator))


@dataclass(frozen=True)
class Card:
    """A card: what it shows as memory, and how fast it is where that is known."""

    device: DeviceMemory
    accelerator: Accelerator | None

    def replica(self, tp_size: int, compute_efficiency: float = 0.5, bandwidth_efficiency: float = 0.8) -> Replica:
        """Return a group of such cards, or say that their speed is not known."""
        if self.accelerator is None:
            known = ", ".join(each.name for each in SPEEDS)
            raise ValueError(f"gpu must be a card of known speed, got {self.device.name!r:.60}. Known are {known}.")
        efficiencies = {"compute_efficiency": compute_efficiency, "bandwidth_efficiency": bandwidth_efficiency}
        for name, value in efficiencies.items():
            require_fraction(name, value)
        return Replica(self.accelerator, tp_size, compute_efficiency, bandwidth_efficiency)


def read_text(path: str) -> str:
    """Return the text of a file, or of the standard input.

    Parameters
    ----------
    path : str
        The file; ``-`` is the standard input [text].

    Returns
    -------
    str
        At most :data:`MOST_CHARACTERS` characters; what is no text is replaced [text].

    Raises
    ------
    OSError
        If it can't be read.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.NamedTemporaryFile("w+") as file:
    ...     _ = file.write("{}")
    ...     file.flush()
    ...     print(read_text(file.name))
    {}
    """
    if path == "-":
        return sys.stdin.read(MOST_CHARACTERS)
    with Path(path).open(encoding="utf-8", errors="replace") as file:
        return file.read(MOST_CHARACTERS)


def _positions(config: Mapping[str, Any]) -> int:
    """Return the rows of the rotary table, which the file of a model that sees has further inside."""
    inner = config.get("text_config")
    found = config.get("max_position_embeddings")
    if found is None and isinstance(inner, Mapping):
        found = inner.get("max_position_embeddings")
    return found if isinstance(found, int) and not isinstance(found, bool) and found > 0 else 0


def read_model(named: str, dtype: str = "auto", kv_dtype: str = "auto") -> tuple[ModelConfig, int]:
    """Return a model by name or by its ``config.json``, stored as asked for.

    Parameters
    ----------
    named : str
        A shipped model's name, or the path of a file, or of a folder that holds a ``config.json`` [text].
    dtype, kv_dtype : str
        How weights and cache are stored, of :data:`DTYPES` and :data:`KV_DTYPES`; ``"auto"`` leaves them [text].

    Returns
    -------
    ModelConfig
        The shape.
    int
        Longest context that the file names, 0 if it names none [tokens].

    Raises
    ------
    ValueError
        If the model is unknown, or the file is no config that can be represented.
    OSError
        If the file can't be read.

    Examples
    --------
    >>> model, positions = read_model("Llama-3.1-8B", dtype="fp8", kv_dtype="fp8")
    >>> model.storage.name, model.kv_bytes, positions
    ('fp8', 1.0, 0)
    """
    positions = 0
    if Path(named).is_dir():
        named = str(Path(named) / "config.json")
    if named == "-" or named.endswith(".json") or Path(named).is_file():
        config = read_config(read_text(named))
        model, positions = from_hf_config(config), _positions(config)
    else:
        model = find_model(named)
    if dtype in _DTYPE_BYTES:
        model = replace(model, storage=None, weight_bytes=_DTYPE_BYTES[dtype])
    elif dtype != "auto":
        model = replace(model, storage={name.replace(" ", "-"): each for name, each in FORMATS.items()}[dtype])
    kv_bytes = _CACHE_BYTES[kv_dtype]
    return (model if kv_bytes is None else replace(model, kv_bytes=kv_bytes)), positions


def find_card(name: str) -> Card:
    """Return a card by name.

    Parameters
    ----------
    name : str
        A product, or a size such as ``80GB`` [text].

    Returns
    -------
    Card
        Its memory, and its speed where that is known.

    Raises
    ------
    ValueError
        If the name is unknown and holds no size.

    Examples
    --------
    >>> find_card("h100").accelerator.name, find_card("24GB").accelerator
    ('H100 SXM', None)
    """
    wanted = name.strip().lower()
    for known, accelerator in ACCELERATORS.items():
        if wanted in (known.lower(), accelerator.name.lower()):
            return Card(device_memory(accelerator), accelerator)
    device = device_memory(name)
    same = (each for each in SPEEDS if device_memory(each).name == device.name)
    return Card(device, next(same, None))
