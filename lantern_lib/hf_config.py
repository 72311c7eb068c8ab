"""The one translator of public ``config.json`` names."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any

from lantern_lib import hf_layers
from lantern_lib.hf_families import FAMILIES, HARMLESS, WRAPPED, WRAPPER, Family
from lantern_lib.hf_quantization import stored_format
from lantern_lib.model_config import ModelConfig
from lantern_lib.units import require_int
from lantern_lib.vision_tower import vision_parameters

_BYTES_OF_DTYPE = {"bfloat16": 2.0, "float16": 2.0, "float32": 4.0}
#: The largest file that is read. Real ones have a few thousand characters, long lists of modules some hundred thousand.
MAX_CHARACTERS = 5_000_000
#: Parts that would change the count or the cache, and that no shape here has: only switched off are they accepted.
MUST_BE_OFF = frozenset(
    """
    audio_config hidden_size_per_layer_input num_kv_shared_layers enable_moe_block use_double_wide_mlp
    expert_intermediate_size top_k_experts cross_attention_layers index_topk
    lm_head_bias qkv_bias
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
    """Translate a public ``config.json`` of a decoder into a :class:`ModelConfig`.

    Covers dense decoders, mixtures of experts, latent attention, windows, hybrids with linear attention and quantised
    checkpoints of the families of :data:`lantern_lib.hf_families.FAMILIES`, and the language part of files that wrap
    one. What it can't represent is refused by field, never guessed.

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
    if not isinstance(config, Mapping):
        raise ValueError(f"config must be a mapping of field names, got {type(config).__name__}.")
    model_type = config.get("model_type")
    if config.get("text_config") is not None and isinstance(model_type, str) and model_type in WRAPPED:
        return _wrapped(config, name, kv_bytes, pad_vocab_multiple, ignore)
    family = _family(config)
    _require_known(config, family.fields, ignore)
    config = family.defaults | {key: value for key, value in config.items() if value is not None}
    num_layers = hf_layers.required(config, "num_hidden_layers")
    num_heads = hf_layers.required(config, "num_attention_heads")
    hidden_size = hf_layers.required(config, "hidden_size")
    require_int("pad_vocab_multiple", pad_vocab_multiple)
    vocab_size = hf_layers.required(config, "vocab_size")
    bias = bool(config.get("attention_bias", False))
    shape: dict[str, Any] = {"qkv_bias": bias, "output_bias": bias, "mlp_bias": bool(config.get("mlp_bias", False))}
    shape |= family.shape
    shape |= hf_layers.attention(config, family, hidden_size, num_heads)
    shape |= hf_layers.layers(config, family, num_layers)
    shape |= hf_layers.feed_forward(config, family, num_layers)
    if family.mtp_field and config.get(family.mtp_field):
        mtp_layers = require_int(family.mtp_field, config[family.mtp_field], minimum=0)
        shape |= {"mtp_layers": mtp_layers, "mtp_tables": mtp_layers * family.mtp_tables}
    if config.get("quantization_config") is not None:
        shape["storage"] = stored_format(config["quantization_config"], num_layers)
    return ModelConfig(
        name=name or str(config.get("_name_or_path") or config["model_type"]),
        num_layers=num_layers,
        hidden_size=hidden_size,
        num_heads=num_heads,
        vocab_size=-(-vocab_size // pad_vocab_multiple) * pad_vocab_multiple,
        tied_embeddings=bool(config.get("tie_word_embeddings", family.tied)),
        weight_bytes=_weight_bytes(config),
        kv_bytes=kv_bytes,
        source="config.json",
        **shape,
    )


def read_config(text: str) -> dict[str, Any]:
    """Parse the text of a ``config.json``.

    Parameters
    ----------
    text : str
        What the file holds [text].

    Returns
    -------
    dict
        The fields, for :func:`from_hf_config`.

    Raises
    ------
    ValueError
        If it is too long, no JSON, nested too deeply, no object, or holds NaN or an infinity.

    Examples
    --------
    >>> read_config('{"model_type": "llama"}')
    {'model_type': 'llama'}
    """
    if not isinstance(text, str):
        raise ValueError(f"text must be the text of a config.json, got {type(text).__name__}.")
    if len(text) > MAX_CHARACTERS:
        raise ValueError(
            f"text must have at most {MAX_CHARACTERS:,} characters, got {len(text):,}. Is it a config.json?"
        )
    try:
        config = json.loads(text, parse_constant=_no_constant)
    except json.JSONDecodeError as error:
        raise ValueError(
            f"text must be JSON, got none at line {error.lineno}, column {error.colno}: {error.msg}."
        ) from None
    except _NotFiniteError as error:
        raise ValueError(f"text must hold finite numbers, got {error}.") from None
    except ValueError:
        raise ValueError("text must hold numbers of a few digits, got one of thousands.") from None
    except RecursionError:
        raise ValueError("text must be a flat object, got one nested too deeply. Is it a config.json?") from None
    if not isinstance(config, dict):
        raise ValueError(f"text must be a JSON object, got {type(config).__name__}. A config.json begins with a brace.")
    return config


class _NotFiniteError(ValueError):
    """A number that JSON does not have and Python reads."""


def _no_constant(name: str) -> float:
    raise _NotFiniteError(name)


def _family(config: Mapping[str, Any]) -> Family:
    model_type = config.get("model_type")
    if not isinstance(model_type, str) or model_type not in FAMILIES:
        hint = " Pass its text_config." if "text_config" in config else ""
        known = ", ".join([*FAMILIES, *WRAPPED])
        raise ValueError(f"model_type must be one of {known}, got {_short(model_type)}.{hint}")
    return FAMILIES[model_type]


def _short(value: object) -> str:
    shown = repr(value)
    return shown if len(shown) <= 80 else shown[:77] + "..."


def _require_known(config: Mapping[str, Any], fields: Collection[str], ignore: Collection[str]) -> None:
    for field in config:
        off = field in MUST_BE_OFF and not config[field]
        if field not in fields and field not in HARMLESS and field not in ignore and not off:
            raise ValueError(
                f"{_short(field)[1:-1]} is not a field this translator knows, got {_short(config[field])}."
                " If it changes neither parameters nor cache, pass ignore=(...)."
            )


def _wrapped(
    config: Mapping[str, Any], name: str, kv_bytes: float, pad_vocab_multiple: int, ignore: Collection[str]
) -> ModelConfig:
    """Translate the part that speaks, and count the tower that sees where it is known."""
    text = config["text_config"]
    if not isinstance(text, Mapping):
        raise ValueError(f"text_config must be a mapping of field names, got {type(text).__name__}.")
    shared = ("quantization_config", "torch_dtype", "dtype", "tie_word_embeddings")
    inner = {key: config[key] for key in shared if config.get(key) is not None} | dict(text)
    if inner.get("model_type") not in FAMILIES:
        inner["model_type"] = WRAPPED[config["model_type"]]
    model = from_hf_config(inner, name=name, kv_bytes=kv_bytes, pad_vocab_multiple=pad_vocab_multiple, ignore=ignore)
    outside = {key: value for key, value in config.items() if key not in shared and key != "text_config"}
    _require_known(outside, WRAPPER - {"audio_config"}, ignore)
    if config.get("vision_config") is None or "vision_config" in ignore:
        return model
    tower = ("vision tower", vision_parameters(config, model.hidden_size))
    return replace(model, extra=(*model.extra, tower))


def _weight_bytes(config: Mapping[str, Any]) -> float:
    dtype = config.get("torch_dtype", config.get("dtype")) or "bfloat16"
    if not isinstance(dtype, str) or dtype not in _BYTES_OF_DTYPE:
        raise ValueError(f"torch_dtype must be one of {', '.join(_BYTES_OF_DTYPE)}, got {_short(dtype)}.")
    return _BYTES_OF_DTYPE[dtype]
