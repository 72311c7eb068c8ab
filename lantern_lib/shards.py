"""Which part of the weights lies on one GPU of several."""

from __future__ import annotations

from lantern_lib.matrices import matrices
from lantern_lib.model_config import ModelConfig
from lantern_lib.transformer import component_bytes
from lantern_lib.units import require_int

#: Components that every GPU holds whole: they are small, or have no heads to divide by.
COPIED = ("router", "norms", "biases")


def weight_bytes_per_gpu(model: ModelConfig, tp_size: int, ep_size: int = 1) -> float:
    """Return the weights on one GPU.

    Parameters
    ----------
    model : ModelConfig
        The shape, with its stored format.
    tp_size : int
        GPUs that share every matrix [count].
    ep_size : int
        GPUs that share the experts, where that is more than share the matrices [count].

    Returns
    -------
    float
        Weights, extra parts and their scales on one GPU; heads for further tokens are not loaded [bytes].

    Raises
    ------
    ValueError
        If a degree is no whole number of 1 or more.

    Notes
    -----
    Matrices, tables and vision towers are divided; routers, norms and biases are copied; projections of key-value heads
    stop dividing at one head a GPU; the down-projections of latent attention have no heads and are copied.

    Examples
    --------
    >>> from lantern_lib.model_config import LANTERN_70B
    >>> round(weight_bytes_per_gpu(LANTERN_70B, 4) / 1e9, 2)
    35.28
    """
    require_int("tp_size", tp_size)
    require_int("ep_size", ep_size)
    sizes = component_bytes(model)
    whole = sum(sizes.values())
    experts_share = max(tp_size, ep_size)
    # Scales lie with the matrices they belong to, which are experts where there are any.
    divided = {"experts": experts_share, "scales": experts_share if model.experts else tp_size}
    total = sum(size / (1 if name in COPIED else divided.get(name, tp_size)) for name, size in sizes.items())
    extra = sum(count for _, count in model.extra) * model.weight_bytes / tp_size
    return min(total + _copied_attention(model, tp_size), whole) + extra


def _copied_attention(model: ModelConfig, tp_size: int) -> float:
    """Return what copies of undivided projections add on one GPU."""
    storage = model.storage
    each = storage.quantized_bytes if storage and "attention" in storage.quantized else model.weight_bytes
    added = 0.0
    if model.latent is not None:
        ranks = {model.latent.query_rank, model.latent.cached_numbers}
        for matrix in matrices(model):
            if matrix.component == "attention" and matrix.inputs == model.hidden_size and matrix.outputs in ranks:
                added += matrix.parameters * (1 - 1 / tp_size)
        return added * each
    for layers in model.attention_layers:
        spare = -(-layers.num_kv_heads // tp_size) / layers.num_kv_heads - 1 / tp_size
        added += layers.num_layers * 2 * model.hidden_size * layers.num_kv_heads * layers.head_dim * max(0.0, spare)
    return added * each
