"""Parameters of the vision towers that come with a language model: stored with it, read by no decode step."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lantern_lib.units import require_int


def _read(config: Mapping[str, Any], field: str) -> int:
    if config.get(field) is None:
        raise ValueError(
            f"vision_config.{field} must be in the config, got nothing. The tower is incomplete without it."
        )
    return require_int(f"vision_config.{field}", config[field])


def siglip_parameters(vision: Mapping[str, Any], text_size: int) -> int:
    """Count a SigLIP tower and the projection of Gemma 3.

    Parameters
    ----------
    vision : mapping
        The ``vision_config`` of the file.
    text_size : int
        Width of the language model [count].

    Returns
    -------
    int
        Patches, positions, layers with biases, last norm; then one norm and one matrix [count].

    Raises
    ------
    ValueError
        If a field is missing or no whole number.

    Examples
    --------
    >>> tower = {"hidden_size": 1152, "intermediate_size": 4304, "num_hidden_layers": 27, "patch_size": 14,
    ...     "image_size": 896}
    >>> siglip_parameters(tower, 5376)
    423060336
    """
    width, inner = _read(vision, "hidden_size"), _read(vision, "intermediate_size")
    layers, patch, side = (_read(vision, name) for name in ("num_hidden_layers", "patch_size", "image_size"))
    embedded = 3 * patch**2 * width + width + (side // patch) ** 2 * width
    layer = 4 * (width**2 + width) + 2 * width * inner + inner + width + 2 * 2 * width
    return embedded + layers * layer + 2 * width + width * text_size + width


def pixtral_parameters(vision: Mapping[str, Any], text_size: int, merge: int = 2) -> int:
    """Count a Pixtral tower and the projection of Mistral 3.

    Parameters
    ----------
    vision : mapping
        The ``vision_config`` of the file.
    text_size : int
        Width of the language model [count].
    merge : int
        Patches along a side that are merged to one token [count].

    Returns
    -------
    int
        Patches, layers without biases, norms; then the merger and two matrices [count].

    Raises
    ------
    ValueError
        If a field is missing or no whole number.

    Examples
    --------
    >>> tower = {"hidden_size": 1024, "intermediate_size": 4096, "num_hidden_layers": 24, "patch_size": 14}
    >>> pixtral_parameters(tower, 5120)
    438958080
    """
    width, inner = _read(vision, "hidden_size"), _read(vision, "intermediate_size")
    layers, patch = _read(vision, "num_hidden_layers"), _read(vision, "patch_size")
    merge = require_int("merge", merge)
    embedded = 3 * patch**2 * width + width
    layer = 4 * width**2 + 3 * width * inner + 2 * width
    merged = merge**2 * width * width + width
    return embedded + layers * layer + merged + width * text_size + text_size**2


def qwen_parameters(vision: Mapping[str, Any]) -> int:
    """Count the tower of Qwen3.5 and its merger.

    Parameters
    ----------
    vision : mapping
        The ``vision_config`` of the file.

    Returns
    -------
    int
        Patches of two pictures, positions, layers with biases; then one norm and two matrices with biases [count].

    Raises
    ------
    ValueError
        If a field is missing or no whole number.

    Examples
    --------
    >>> tower = {"depth": 27, "hidden_size": 1152, "in_channels": 3, "intermediate_size": 4304, "patch_size": 16,
    ...     "num_position_embeddings": 2304, "out_hidden_size": 5120, "spatial_merge_size": 2, "temporal_patch_size": 2}
    >>> qwen_parameters(tower)
    460730096
    """
    width, inner, out = (_read(vision, name) for name in ("hidden_size", "intermediate_size", "out_hidden_size"))
    channels, patch, frames = (_read(vision, name) for name in ("in_channels", "patch_size", "temporal_patch_size"))
    embedded = channels * frames * patch**2 * width + width + _read(vision, "num_position_embeddings") * width
    layer = 4 * (width**2 + width) + 2 * width * inner + inner + width + 2 * 2 * width
    merged = width * _read(vision, "spatial_merge_size") ** 2
    return embedded + _read(vision, "depth") * layer + 2 * width + merged**2 + merged + merged * out + out


def vision_parameters(config: Mapping[str, Any], text_size: int) -> int:
    """Count the vision tower of a file that has one.

    Parameters
    ----------
    config : mapping
        The whole file, with ``model_type`` and ``vision_config``.
    text_size : int
        Width of the language model [count].

    Returns
    -------
    int
        Parameters of tower and projection [count].

    Raises
    ------
    ValueError
        For a tower that it does not know.

    Examples
    --------
    >>> vision_parameters({"model_type": "llava", "vision_config": {}}, 4096)
    Traceback (most recent call last):
    ...
    ValueError: vision_config must be that of gemma3, mistral3 or qwen3_5, got model_type 'llava'. Pass its\
 text_config, or ignore=('vision_config',) to leave the tower out.
    """
    vision, kind = config["vision_config"], config.get("model_type")
    if not isinstance(vision, Mapping):
        raise ValueError(f"vision_config must be a mapping, got {type(vision).__name__}.")
    if kind == "gemma3":
        return siglip_parameters(vision, text_size)
    if kind == "mistral3":
        return pixtral_parameters(vision, text_size, config.get("spatial_merge_size", 2))
    if kind in ("qwen3_5", "qwen3_5_moe"):
        return qwen_parameters(vision)
    raise ValueError(
        f"vision_config must be that of gemma3, mistral3 or qwen3_5, got model_type {kind!r}. Pass its text_config, or"
        " ignore=('vision_config',) to leave the tower out."
    )
