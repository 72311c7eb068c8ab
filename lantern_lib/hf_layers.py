"""The parts of :func:`lantern_lib.hf_config.from_hf_config`: attention, kinds of layers, feed-forward blocks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lantern_lib.hf_families import Family
from lantern_lib.model_parts import Experts, FullAttention, LatentAttention, RecurrentLayers
from lantern_lib.units import require_int

#: No side of a matrix, and no number of layers or experts, is larger.
LARGEST = 10**9
_FULL, _WINDOWED, _LINEAR = "full_attention", ("sliding_attention", "chunked_attention"), "linear_attention"


def required(config: Mapping[str, Any], field: str) -> int:
    """Return a number that must be in the file.

    Parameters
    ----------
    config : mapping
        The parsed file.
    field : str
        Name of the field [text].

    Returns
    -------
    int
        Its value [count].

    Raises
    ------
    ValueError
        If it is missing or no whole number of 1 or more.

    Examples
    --------
    >>> required({"hidden_size": 4096}, "hidden_size")
    4096
    """
    if config.get(field) is None:
        raise ValueError(f"{field} must be in the config, got nothing. The shape is incomplete without it.")
    return _number(field, config[field])


def _number(field: str, value: object) -> int:
    number = require_int(field, value)
    if number > LARGEST:
        raise ValueError(f"{field} must be at most {LARGEST:,}, got a number of {len(str(number)[:4000])} digits.")
    return number


def _optional(config: Mapping[str, Any], field: str, default: int) -> int:
    return default if config.get(field) is None else _number(field, config[field])


def attention(config: Mapping[str, Any], family: Family, hidden_size: int, num_heads: int) -> dict[str, Any]:
    """Return the sizes of heads, latents and biases.

    Parameters
    ----------
    config : mapping
        The parsed file.
    family : Family
        Its family.
    hidden_size, num_heads : int
        Width and query heads [count].

    Returns
    -------
    dict
        Arguments of :class:`lantern_lib.model_config.ModelConfig`.

    Raises
    ------
    ValueError
        If a field is missing, out of range or not represented.

    Examples
    --------
    >>> from lantern_lib.hf_families import FAMILIES
    >>> attention({"num_key_value_heads": 8}, FAMILIES["llama"], 4096, 32)
    {'num_kv_heads': 8, 'head_dim': 128}
    """
    if family.latent:
        part = LatentAttention(
            kv_rank=required(config, "kv_lora_rank"),
            rope_dim=required(config, "qk_rope_head_dim"),
            nope_dim=required(config, "qk_nope_head_dim"),
            value_dim=required(config, "v_head_dim"),
            query_rank=None if config.get("q_lora_rank") is None else required(config, "q_lora_rank"),
        )
        return {"latent": part, "num_kv_heads": 1, "head_dim": part.cached_numbers}
    if "new_decoder_architecture" in family.fields:
        return _falcon(config, hidden_size, num_heads)
    num_kv_heads = _optional(config, "num_key_value_heads", num_heads)
    found: dict[str, Any] = {"num_kv_heads": num_kv_heads, "head_dim": _head_dim(config, hidden_size, num_heads)}
    if "use_qk_norm" in family.fields and "qk_norm" in family.shape:
        found["qk_norm"] = bool(config.get("use_qk_norm", False))
    if "attention_k_eq_v" in family.fields:
        shared = bool(config.get("attention_k_eq_v", False))
        heads = _optional(config, "num_global_key_value_heads", num_kv_heads) if shared else num_kv_heads
        size = _optional(config, "global_head_dim", found["head_dim"])
        found["full_attention"] = FullAttention(heads, size, keys_are_values=shared)
    if config.get("use_qk_norm", True) is False and family.shape.get("qk_norm_full"):
        found["qk_norm_full"] = False
    if family.hybrid and config.get("attn_output_gate") is False:
        found["output_gate"] = False
    return found


def _falcon(config: Mapping[str, Any], hidden_size: int, num_heads: int) -> dict[str, Any]:
    new = bool(config.get("new_decoder_architecture", False))
    if new:
        num_kv_heads = _optional(config, "num_kv_heads", num_heads)
        norms = _optional(config, "num_ln_in_parallel_attn", 2)
    else:
        num_kv_heads = 1 if config.get("multi_query", True) else num_heads
        norms = 1 if config.get("parallel_attn", True) else 2
    bias = bool(config.get("bias", False))
    return {
        "num_kv_heads": num_kv_heads,
        "head_dim": _head_dim(config, hidden_size, num_heads),
        "norms_per_layer": norms,
        "qkv_bias": bias,
        "output_bias": bias,
        "mlp_bias": bias,
        "intermediate_size": _optional(config, "ffn_hidden_size", 4 * hidden_size),
    }


def _head_dim(config: Mapping[str, Any], hidden_size: int, num_heads: int) -> int:
    """Use the declared size; only where none is declared does the width divide among the heads."""
    if config.get("head_dim") is not None:
        return _number("head_dim", config["head_dim"])
    if hidden_size % num_heads:
        raise ValueError(
            f"head_dim must be declared, got nothing: hidden_size {hidden_size} is no multiple of"
            f" num_attention_heads {num_heads}."
        )
    return hidden_size // num_heads


def layers(config: Mapping[str, Any], family: Family, num_layers: int) -> dict[str, Any]:
    """Return which layers have a window and which keep a state.

    Parameters
    ----------
    config : mapping
        The parsed file.
    family : Family
        Its family.
    num_layers : int
        All layers [count].

    Returns
    -------
    dict
        Arguments of :class:`lantern_lib.model_config.ModelConfig`.

    Raises
    ------
    ValueError
        For a layer type that is unknown, or a number of types that is not that of the layers.

    Examples
    --------
    >>> from lantern_lib.hf_families import FAMILIES
    >>> layers({"sliding_window": 1024}, FAMILIES["gemma3_text"], 62)
    {'sliding_window': 1024, 'num_sliding_layers': 52}
    """
    kinds = _layer_types(config, family, num_layers)
    found: dict[str, Any] = {}
    if family.hybrid:
        interval = _optional(config, "full_attention_interval", 4)
        linear = kinds.count(_LINEAR) if kinds else num_layers - num_layers // interval
        found["recurrent"] = _gated_delta(config, linear) if linear else None
    window, num_sliding = _windows(config, family, num_layers, kinds)
    if window is None:
        return found
    return found | {"sliding_window": window, "num_sliding_layers": num_sliding}


def _layer_types(config: Mapping[str, Any], family: Family, num_layers: int) -> list[str]:
    kinds = config.get("layer_types")
    if kinds is None:
        return []
    allowed = {_FULL, *_WINDOWED} | ({_LINEAR} if family.hybrid else set())
    known = isinstance(kinds, list) and all(isinstance(kind, str) for kind in kinds)
    unknown = sorted(set(kinds) - allowed) if known else ["no list of names"]
    if unknown or len(kinds) != num_layers:
        names = "sliding_attention or full_attention" if not family.hybrid else "linear_attention or full_attention"
        raise ValueError(
            f"layer_types must name {names} for each of {num_layers} layers, got"
            f" {len(kinds) if known else type(kinds).__name__} entries"
            f"{' with ' + ', '.join(unknown)[:80] if unknown else ''}."
        )
    return list(kinds)


def _gated_delta(config: Mapping[str, Any], num_layers: int) -> RecurrentLayers:
    """Return the linear attention of Qwen3-Next: gated delta rule, short convolution, gated norm."""
    width = required(config, "hidden_size")
    key_heads, value_heads = required(config, "linear_num_key_heads"), required(config, "linear_num_value_heads")
    key_dim, value_dim = required(config, "linear_key_head_dim"), required(config, "linear_value_head_dim")
    kernel = _optional(config, "linear_conv_kernel_dim", 4)
    keys, values = key_heads * key_dim, value_heads * value_dim
    mixed = 2 * keys + values
    # The convolution's tail stays at 16 bits; the state of the rule is kept as the file says.
    state_number = 4 if config.get("mamba_ssm_dtype") == "float32" else 2
    state = 2 * (kernel - 1) * mixed + state_number * value_heads * key_dim * value_dim
    return RecurrentLayers(
        num_layers,
        ((width, mixed + values), (width, 2 * value_heads), (values, width)),
        vector_parameters=mixed * kernel + 2 * value_heads + value_dim,
        state_bytes=float(state),
        draft_state_bytes=2.0 * mixed,
    )


def _windows(config: Mapping[str, Any], family: Family, num_layers: int, kinds: list[str]) -> tuple[int | None, int]:
    """Return the window and how many layers have it."""
    rule = family.window
    field = "attention_chunk_size" if rule == "chunks" else "sliding_window"
    window = config.get(field)
    if rule == "none" and window is not None:
        raise ValueError(f"sliding_window must be absent for this model_type, got {window!r}.")
    if rule == "from_layer" and not config.get("use_sliding_window", False):
        window = None
    if window is None:
        return None, 0
    window = _number(field, window)
    if kinds:
        return window, sum(kinds.count(kind) for kind in _WINDOWED)
    if rule == "all":
        return window, num_layers
    if rule == "from_layer":
        return window, max(0, num_layers - required(config, "max_window_layers"))
    pattern = config.get("sliding_window_pattern") or config.get("_sliding_window_pattern") or family.pattern
    # Every pattern-th layer sees everything; the others are windowed.
    return window, num_layers - num_layers // require_int("sliding_window_pattern", pattern)


def feed_forward(config: Mapping[str, Any], family: Family, num_layers: int) -> dict[str, Any]:
    """Return the dense block and the experts.

    Parameters
    ----------
    config : mapping
        The parsed file.
    family : Family
        Its family.
    num_layers : int
        All layers [count].

    Returns
    -------
    dict
        Arguments of :class:`lantern_lib.model_config.ModelConfig`.

    Raises
    ------
    ValueError
        If a field is missing or out of range.

    Examples
    --------
    >>> from lantern_lib.hf_families import FAMILIES
    >>> mixtral = {"intermediate_size": 14336, "num_local_experts": 8, "num_experts_per_tok": 2}
    >>> feed_forward(mixtral, FAMILIES["mixtral"], 32)["experts"].num_layers
    32
    """
    names = family.experts
    if names is None:
        given = "new_decoder_architecture" in family.fields
        return {} if given else {"intermediate_size": required(config, "intermediate_size")}
    expert_size = required(config, names.size)
    shared = 0
    if names.shared_count:
        shared = expert_size * require_int(names.shared_count, config.get(names.shared_count) or 0, minimum=0)
    elif names.shared_size:
        shared = required(config, names.shared_size)
    if config.get("shared_intermediate_size"):
        raise ValueError(f"shared_intermediate_size must be 0, got {config['shared_intermediate_size']!r}.")
    num_expert_layers = _expert_layers(config, num_layers)
    vectors = names.router_vectors
    if config.get("use_routing_bias") is False or config.get("topk_method", "noaux_tc") != "noaux_tc":
        vectors = 0
    dense = config.get(names.dense_size)
    found: dict[str, Any] = {
        # A model whose layers all have experts may leave the dense size out: nothing uses it.
        "intermediate_size": expert_size
        if dense is None and num_expert_layers == num_layers
        else required(config, names.dense_size),
    }
    if num_expert_layers:
        found["experts"] = Experts(
            required(config, names.count),
            required(config, names.chosen),
            expert_size,
            num_expert_layers,
            shared_size=shared,
            shared_gate=names.shared_gate,
            router_vectors=vectors,
            expert_bias=names.expert_bias,
        )
    return found


def _expert_layers(config: Mapping[str, Any], num_layers: int) -> int:
    """Count the layers with experts: after the first dense ones, or every so many."""
    first = require_int("first_k_dense_replace", config.get("first_k_dense_replace") or 0, minimum=0)
    if first > num_layers:
        raise ValueError(f"first_k_dense_replace must be at most {num_layers}, got {first}.")
    step = _optional(config, "decoder_sparse_step", _optional(config, "interleave_moe_layer_step", 1))
    if _optional(config, "moe_layer_freq", 1) != 1:
        raise ValueError(
            f"moe_layer_freq must be 1, got {config['moe_layer_freq']!r}. Other steps are not represented."
        )
    dense = config.get("mlp_only_layers") or []
    if not isinstance(dense, list) or any(not isinstance(each, int) or not 0 <= each < num_layers for each in dense):
        raise ValueError(f"mlp_only_layers must list layers from 0 to {num_layers - 1}, got {str(dense)[:80]}.")
    # Counted, not listed: a file may claim any number of layers.
    left_out = sum(layer >= first and (layer + 1) % step == 0 for layer in set(dense))
    return int(num_layers // step - first // step - left_out)
