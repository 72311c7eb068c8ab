"""The stored models, read from the package."""

from __future__ import annotations

from importlib.resources import files
from typing import Literal

import numpy as np

from lantern_lib.tiny.arrays import Floats
from lantern_lib.tiny.decoder import Decoder
from lantern_lib.tiny.shapes import DRAFT, TARGET

_CONFIGS = {"target": TARGET, "draft": DRAFT}


def load_weights(name: Literal["target", "draft"] = "target") -> dict[str, Floats]:
    """Read the tensors of a tiny model as they are stored, at 16 bits.

    Parameters
    ----------
    name : {"target", "draft"}
        The model, or its draft [text].

    Returns
    -------
    dict of str to array of float16
        By the names of :func:`lantern_lib.tiny.shapes.tensor_shapes`.

    Raises
    ------
    ValueError
        For another name.

    Notes
    -----
    numpy's own format, so that no package beyond numpy is needed; nothing in it can run code.

    Examples
    --------
    >>> sum(tensor.size for tensor in load_weights("target").values())
    1009024
    """
    if name not in _CONFIGS:
        raise ValueError(f"name must be 'target' or 'draft', got {name!r}.")
    path = files("lantern_lib.tiny") / "weights" / f"{name}.npz"
    with path.open("rb") as file, np.load(file, allow_pickle=False) as stored:
        return {tensor: stored[tensor] for tensor in stored.files}


def load(name: Literal["target", "draft"] = "target", dtype: type = np.float32) -> Decoder:
    """Return a tiny model ready to decode.

    Parameters
    ----------
    name : {"target", "draft"}
        The model, or its draft [text].
    dtype : type
        Precision while it runs.

    Returns
    -------
    Decoder
        The model.

    Raises
    ------
    ValueError
        For another name.

    Examples
    --------
    >>> load("draft").config.num_layers
    2
    """
    weights = load_weights(name)
    return Decoder(_CONFIGS[name], weights, dtype)
