"""The one translator of public ``config.json`` names."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from lantern_lib.model_config import ModelConfig
from lantern_lib.units import require_int

_BYTES_OF_DTYPE = {"bfloat16": 2.0, "float16": 2.0, "float32": 4.0}

# What a family fixes in its code and does not write into config.json.
_FAMILIES: dict[str, dict[str, Any]] = {
    "llama": {},
    "mistral": {"window": "all"},
    "qwen2": {"qkv_bias": True, "window": "from_layer"},
    "qwen3": {"qk_norm": True, "window": "from_layer"},
    "gemma": {"tied": True},
    "gemma2": {"tied": True, "norms": 4, "window": "pattern", "pattern": 2},
    "gemma3_text": {"tied": True, "norms": 4, "qk_norm": True, "window": "pattern", "pattern": 6},
    "phi3": {"window": "all"},
}

# Fields that say nothing about the number of parameters or the size of the cache.
_HARMLESS = frozenset(
    """
    architectures attention_dropout attn_logit_softcapping auto_map bos_token_id cache_implementation
    dtype embd_pdrop eos_token_id final_logit_softcapping hidden_act hidden_activation id2label
    initializer_range label2id max_position_embeddings original_max_position_embeddings pad_token_id
    partial_rotary_factor pretraining_tp query_pre_attn_scalar resid_pdrop rms_norm_eps
    rope_local_base_freq rope_parameters rope_scaling rope_theta torch_dtype transformers_version
    unk_token_id use_cache _name_or_path _attn_implementation
    """.split()  # noqa: SIM905
)
_READ = frozenset(
    """
    model_type num_hidden_layers hidden_size intermediate_size num_attention_heads num_key_value_heads
    head_dim vocab_size tie_word_embeddings attention_bias mlp_bias sliding_window use_sliding_window
    max_window_layers sliding_window_pattern _sliding_window_pattern layer_types quantization_config
    """.split()  # noqa: SIM905
)


def from_hf_config(
    config: Mapping[str, Any],
    *,
    name: str = "",
    kv_bytes: float = 2.0,
    pad_vocab_multiple: int = 1,
    ignore: Collection[str] = (),
) -> ModelConfig:
    """Translate a public ``config.json`` of a dense decoder into a :class:`ModelConfig`.

    Covers the families llama, mistral, qwen2, qwen3, gemma, gemma2, gemma3_text and phi3. What it
    can't represent is refused by field, never guessed.

    Parameters
    ----------
    config : mapping
        The parsed file.
    name : str
        What to call the model [text].
    kv_bytes : float
        Bytes of one cached number; the file does not say [bytes].
    pad_vocab_multiple : int
        An engine may store the vocabulary padded to a multiple of this [count].
    ignore : collection of str
        Fields you know to have no effect on parameters or cache.

    Returns
    -------
    ModelConfig
        The shape.

    Raises
    ------
    ValueError
        For a missing field, a field it does not know, a family, data type or layer type it can't
        represent; the message begins with the field's name.

    Examples
    --------
    >>> shape = from_hf_config({"model_type": "llama", "num_hidden_layers": 32, "hidden_size": 4096,
    ...     "intermediate_size": 14336, "num_attention_heads": 32, "num_key_value_heads": 8,
    ...     "vocab_size": 128256, "torch_dtype": "bfloat16"}, name="an 8B")
    >>> shape.head_dim, shape.num_kv_heads
    (128, 8)
    """
    family = _family(config)
    for field in config:
        if field not in _READ and field not in _HARMLESS and field not in ignore:
            raise ValueError(
                f"{field} is not a field this translator knows, got {config[field]!r}."
                " If it changes neither parameters nor cache, pass ignore=(...)."
            )
    if config.get("quantization_config") is not None:
        raise ValueError(
            f"quantization_config must be absent, got {config['quantization_config']!r}."
            " Translate the 16-bit checkpoint and set weight_bytes."
        )
    num_heads = _required(config, "num_attention_heads")
    hidden_size = _required(config, "hidden_size")
    require_int("pad_vocab_multiple", pad_vocab_multiple)
    vocab_size = _required(config, "vocab_size")
    bias = bool(config.get("attention_bias", False))
    num_layers = _required(config, "num_hidden_layers")
    window, num_sliding = _windows(config, family, num_layers)
    return ModelConfig(
        name=name or str(config.get("_name_or_path") or config["model_type"]),
        num_layers=num_layers,
        hidden_size=hidden_size,
        intermediate_size=_required(config, "intermediate_size"),
        num_heads=num_heads,
        num_kv_heads=_optional(config, "num_key_value_heads", num_heads),
        head_dim=_head_dim(config, hidden_size, num_heads),
        vocab_size=-(-vocab_size // pad_vocab_multiple) * pad_vocab_multiple,
        tied_embeddings=bool(config.get("tie_word_embeddings", family.get("tied", False))),
        qkv_bias=bias or family.get("qkv_bias", False),
        output_bias=bias,
        mlp_bias=bool(config.get("mlp_bias", False)),
        qk_norm=family.get("qk_norm", False),
        norms_per_layer=family.get("norms", 2),
        sliding_window=window,
        num_sliding_layers=num_sliding,
        weight_bytes=_weight_bytes(config),
        kv_bytes=kv_bytes,
        source="config.json",
    )


def _family(config: Mapping[str, Any]) -> dict[str, Any]:
    if not isinstance(config, Mapping):
        raise ValueError(f"config must be a mapping of field names, got {type(config).__name__}.")
    model_type = config.get("model_type")
    if model_type not in _FAMILIES:
        hint = " Pass its text_config." if "text_config" in config else ""
        raise ValueError(f"model_type must be one of {', '.join(_FAMILIES)}, got {model_type!r}.{hint}")
    return _FAMILIES[model_type]


def _required(config: Mapping[str, Any], field: str) -> int:
    if config.get(field) is None:
        raise ValueError(f"{field} must be in the config, got nothing. The shape is incomplete without it.")
    return require_int(field, config[field])


def _optional(config: Mapping[str, Any], field: str, default: int) -> int:
    return default if config.get(field) is None else require_int(field, config[field])


def _head_dim(config: Mapping[str, Any], hidden_size: int, num_heads: int) -> int:
    """Use the declared size; only where none is declared does the width divide among the heads."""
    if config.get("head_dim") is not None:
        return require_int("head_dim", config["head_dim"])
    if hidden_size % num_heads:
        raise ValueError(
            f"head_dim must be declared, got nothing: hidden_size {hidden_size} is no multiple of"
            f" num_attention_heads {num_heads}."
        )
    return hidden_size // num_heads


def _weight_bytes(config: Mapping[str, Any]) -> float:
    dtype = config.get("torch_dtype", config.get("dtype")) or "bfloat16"
    if dtype not in _BYTES_OF_DTYPE:
        raise ValueError(f"torch_dtype must be one of {', '.join(_BYTES_OF_DTYPE)}, got {dtype!r}.")
    return _BYTES_OF_DTYPE[dtype]


def _windows(config: Mapping[str, Any], family: dict[str, Any], num_layers: int) -> tuple[int | None, int]:
    """Return the window and how many layers have it."""
    rule = family.get("window")
    window = config.get("sliding_window")
    if rule is None and window is not None:
        raise ValueError(f"sliding_window must be absent for this model_type, got {window!r}.")
    if rule == "from_layer" and not config.get("use_sliding_window", False):
        window = None
    if window is None:
        return None, 0
    window = require_int("sliding_window", window)
    layer_types = config.get("layer_types")
    if layer_types is not None:
        unknown = set(layer_types) - {"sliding_attention", "full_attention"}
        if unknown or len(layer_types) != num_layers:
            raise ValueError(
                f"layer_types must name sliding_attention or full_attention for each of {num_layers} layers,"
                f" got {len(layer_types)} entries{' with ' + ', '.join(sorted(unknown)) if unknown else ''}."
            )
        return window, list(layer_types).count("sliding_attention")
    if rule == "all":
        return window, num_layers
    if rule == "from_layer":
        return window, max(0, num_layers - _required(config, "max_window_layers"))
    pattern = config.get("sliding_window_pattern") or config.get("_sliding_window_pattern") or family["pattern"]
    # Every pattern-th layer sees everything; the others are windowed.
    return window, num_layers - num_layers // require_int("sliding_window_pattern", pattern)
