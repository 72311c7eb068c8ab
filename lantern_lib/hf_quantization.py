"""How a checkpoint is quantised, from the ``quantization_config`` of its file."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from lantern_lib.model_parts import StoredFormat
from lantern_lib.units import require_int

_ALL = ("attention", "feed_forward", "experts", "shared_experts", "recurrent")
_LAYER = re.compile(r"layers\.(\d+)\.")
#: What a name in the list of modules that are left alone says about a component.
_NAMES = {
    "attention": re.compile(r"attn|attention", re.I),
    "shared_experts": re.compile(r"shared_?expert", re.I),
    "experts": re.compile(r"(?<!shared_)experts(?!_gate)", re.I),
    "recurrent": re.compile(r"linear_attn|mamba|\.conv", re.I),
    "feed_forward": re.compile(r"mlp\W*\(?(gate\||up|down|gate_up|gate_proj)|feed_forward|mlp(\.\*|\$|$)", re.I),
}


def _refuse(quantization: object, why: str) -> ValueError:
    shown = repr(quantization)
    shown = shown if len(shown) <= 120 else shown[:117] + "..."
    return ValueError(
        f"quantization_config must be of a known method, got {shown}: {why}. Translate the 16-bit checkpoint and set"
        " weight_bytes or storage."
    )


def _left_alone(quantization: Mapping[str, Any], num_layers: int) -> set[str]:
    """Return the components that the file leaves at 16 bits: named for all layers, or for at least half of them."""
    listed: list[Any] = []
    for key in ("ignore", "ignored_layers", "modules_to_not_convert", "exclude_modules"):
        value = quantization.get(key)
        listed += value if isinstance(value, list) else []
    found: dict[str, set[int]] = {}
    kept: set[str] = set()
    for name in (each for each in listed if isinstance(each, str) and len(each) < 300):
        for component, pattern in _NAMES.items():
            if not pattern.search(name) or (component == "attention" and _NAMES["recurrent"].search(name)):
                continue
            layer = _LAYER.search(name)
            if layer is None:
                kept.add(component)
            else:
                found.setdefault(component, set()).add(int(layer[1]))
    return kept | {component for component, layers in found.items() if 2 * len(layers) >= num_layers}


def _groups(quantization: Mapping[str, Any]) -> Iterable[Mapping[str, Any]]:
    groups = quantization.get("config_groups")
    if not isinstance(groups, Mapping):
        return []
    weights = [group.get("weights") for group in groups.values() if isinstance(group, Mapping)]
    return [each for each in weights if isinstance(each, Mapping)]


def _block(strategy: object, weights: Mapping[str, Any]) -> tuple[int, int]:
    if strategy in ("group", "tensor_group"):
        return (1, require_int("quantization_config.group_size", weights.get("group_size")))
    if strategy == "block":
        structure = weights.get("block_structure")
        if not isinstance(structure, list) or len(structure) != 2:
            raise _refuse(structure, "block_structure must be two numbers")
        rows, columns = (require_int("quantization_config.block_structure", each) for each in structure)
        return (rows, columns)
    if strategy == "channel":
        return (1, 0)
    if strategy == "tensor":
        return (0, 0)
    raise _refuse(strategy, "strategy must be group, tensor_group, block, channel or tensor")


def _from_groups(quantization: Mapping[str, Any]) -> tuple[float, tuple[int, int], float]:
    weights = list(_groups(quantization))
    if not weights:
        raise _refuse(quantization, "config_groups has no weights")
    kinds = [[each.get(field) for field in ("num_bits", "strategy", "group_size")] for each in weights]
    if any(kind != kinds[0] for kind in kinds):
        raise _refuse(quantization, "its groups differ, which one format can't represent")
    one = weights[0]
    bits = require_int("quantization_config.num_bits", one.get("num_bits"))
    block = _block(one.get("strategy"), one)
    scale = 1.0 if bits == 4 and one.get("type") == "float" else 2.0
    return bits / 8, block, scale + (0.0 if one.get("symmetric", True) else bits / 8)


def _grouped(quantization: Mapping[str, Any], zero_point: bool) -> tuple[float, tuple[int, int], float]:
    bits = require_int("quantization_config.bits", quantization.get("bits", quantization.get("w_bit")))
    group = quantization.get("group_size", quantization.get("q_group_size"))
    size = 0 if group == -1 else require_int("quantization_config.group_size", group)
    return bits / 8, (1, size), 2.0 + (bits / 8 if zero_point else 0.0)


def _fp8(quantization: Mapping[str, Any]) -> tuple[float, tuple[int, int], float]:
    block = quantization.get("weight_block_size")
    if block is None:
        return 1.0, (0, 0), 4.0
    if not isinstance(block, list) or len(block) != 2:
        raise _refuse(block, "weight_block_size must be two numbers")
    rows, columns = (require_int("quantization_config.weight_block_size", each) for each in block)
    return 1.0, (rows, columns), 4.0


def _modelopt(quantization: Mapping[str, Any]) -> tuple[float, tuple[int, int], float]:
    inner = quantization.get("quantization")
    algorithm = str(quantization.get("quant_algo") or (inner.get("quant_algo") if isinstance(inner, Mapping) else ""))
    if algorithm.upper().startswith("NVFP4") or quantization.get("quant_method") in ("modelopt_fp4", "nvfp4"):
        return 0.5, (1, 16), 1.0
    if algorithm.upper().startswith("FP8"):
        return 1.0, (0, 0), 4.0
    if quantization.get("config_groups"):
        return _from_groups(quantization)
    raise _refuse(quantization, f"quant_algo {algorithm!r} is unknown")


def stored_format(quantization: object, num_layers: int) -> StoredFormat:
    """Translate a ``quantization_config`` into what the file stores.

    Parameters
    ----------
    quantization : object
        The field of ``config.json``, a mapping.
    num_layers : int
        Layers of the model: a list of modules may name each of them [count].

    Returns
    -------
    StoredFormat
        Bytes of a number, blocks and their scales, and which components are quantised.

    Raises
    ------
    ValueError
        For a method it does not know, or a field that is missing or out of range.

    Notes
    -----
    Tables, output matrix, norms and routers stay at 16 bits in all of these methods unless a file says otherwise.

    Examples
    --------
    >>> stored_format({"quant_method": "fp8", "weight_block_size": [128, 128]}, 61).block
    (128, 128)
    >>> stored_format({"quant_method": "awq", "bits": 4, "group_size": 128}, 32).scale_bytes
    2.5
    """
    if not isinstance(quantization, Mapping):
        raise _refuse(quantization, "it is no mapping")
    method = quantization.get("quant_method")
    quantized = set(_ALL)
    if method == "mxfp4":
        number, block, scale = 0.5, (1, 32), 1.0
        quantized = {"experts"}
    elif method in ("fp8", "fbgemm_fp8"):
        number, block, scale = _fp8(quantization)
        block = (1, 0) if method == "fbgemm_fp8" else block
    elif method == "compressed-tensors":
        number, block, scale = _from_groups(quantization)
    elif method in ("gptq", "awq", "auto-round"):
        number, block, scale = _grouped(quantization, zero_point=bool(quantization.get("zero_point", True)))
    elif method in ("modelopt", "modelopt_fp4", "nvfp4"):
        number, block, scale = _modelopt(quantization)
    elif method == "bitsandbytes" and quantization.get("load_in_4bit"):
        number, block, scale = 0.5, (1, 64), 1.0 if quantization.get("bnb_4bit_use_double_quant") else 4.0
    elif method == "bitsandbytes":
        number, block, scale = 1.0, (1, 0), 4.0
    else:
        raise _refuse(quantization, f"quant_method {str(method)[:40]!r} is unknown")
    kept = quantized - _left_alone(quantization, require_int("num_layers", num_layers))
    return StoredFormat(str(method), number, block, scale, tuple(name for name in _ALL if name in kept))
