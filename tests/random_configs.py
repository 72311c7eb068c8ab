"""Random files of every family that the translator knows, sound and broken, for tests that compare two programs."""

from __future__ import annotations

import json
import random
from typing import Any

from lantern_lib.hf_families import FAMILIES, WRAPPED

ODD = (
    None,
    True,
    False,
    0,
    -1,
    2.5,
    3.0,
    1e300,
    -0.0,
    10**12,
    10**30,
    "",
    "eight",
    "it's",
    [],
    [1],
    {},
    {"a": [1.5, None]},
    "é\u2028\n",
)
QUANTIZATIONS: tuple[dict[str, Any], ...] = (
    {"quant_method": "fp8", "weight_block_size": [128, 128]},
    {"quant_method": "fp8"},
    {"quant_method": "fbgemm_fp8", "modules_to_not_convert": ["model.layers.0.mlp.down_proj", "lm_head"]},
    {"quant_method": "awq", "bits": 4, "group_size": 128},
    {"quant_method": "gptq", "w_bit": 4, "q_group_size": 64, "zero_point": False},
    {"quant_method": "gptq", "bits": 8, "group_size": -1},
    {"quant_method": "mxfp4", "modules_to_not_convert": ["model.layers.*.self_attn", "model.layers.*.mlp.router"]},
    {"quant_method": "nvfp4"},
    {"quant_method": "modelopt", "quant_algo": "FP8", "exclude_modules": ["lm_head", "model.layers.1.self_attn"]},
    {"quant_method": "modelopt", "quantization": {"quant_algo": "NVFP4"}},
    {"quant_method": "modelopt", "quant_algo": "W4A8"},
    {"quant_method": "bitsandbytes", "load_in_4bit": True, "bnb_4bit_use_double_quant": True},
    {"quant_method": "bitsandbytes", "load_in_8bit": True},
    {"quant_method": "compressed-tensors", "ignore": ["re:.*shared_experts.*"],
     "config_groups": {"group_0": {
         "weights": {"num_bits": 4, "type": "int", "strategy": "group", "group_size": 32, "symmetric": False}}}},
    {"quant_method": "compressed-tensors", "ignore": ["re:.*self_attn.*"],
     "config_groups": {"group_0": {"weights": {"num_bits": 8, "type": "float", "strategy": "channel"}}}},
    {"quant_method": "compressed-tensors",
     "config_groups": {"group_0": {"weights": {"num_bits": 8, "strategy": "block", "block_structure": [128, 64]}}}},
    {"quant_method": "compressed-tensors", "config_groups": {"g": {"weights": {"num_bits": 8, "strategy": "odd"}}}},
    {"quant_method": "aqlm"},
)  # fmt: skip


def _text(rng: random.Random, kind: str) -> dict[str, Any]:
    family = FAMILIES[kind]
    kv_heads = rng.choice((1, 1, 2, 3, 4, 5, 8, 10, 16, 32))
    heads, head_dim = kv_heads * rng.choice((1, 2, 4, 5, 8, 16)), rng.choice((64, 80, 96, 128, 192, 256))
    layers = rng.randint(1, 130)
    config: dict[str, Any] = {
        "model_type": kind,
        "num_hidden_layers": layers,
        "hidden_size": heads * rng.choice((16, 64, 128, 100)),
        "intermediate_size": rng.randint(64, 60_000),
        "num_attention_heads": heads,
        "num_key_value_heads": kv_heads,
        "head_dim": head_dim,
        "vocab_size": rng.randint(1000, 300_000),
        "torch_dtype": rng.choice(("bfloat16", "float16", "float32")),
        "rope_theta": rng.choice((10000.0, 1000000, 5e5)),
    }
    if rng.random() < 0.3:
        config["tie_word_embeddings"] = rng.random() < 0.5
    if rng.random() < 0.2:
        config["attention_bias"], config["mlp_bias"] = rng.random() < 0.5, rng.random() < 0.5
    if rng.random() < 0.3:
        del config["head_dim"]
    if family.window != "none" and rng.random() < 0.7:
        config["attention_chunk_size" if family.window == "chunks" else "sliding_window"] = rng.choice(
            (128, 1024, 4096, 8192)
        )
        config["use_sliding_window"], config["max_window_layers"] = rng.random() < 0.7, rng.randint(1, layers + 3)
        if rng.random() < 0.3:
            config[rng.choice(("sliding_window_pattern", "_sliding_window_pattern"))] = rng.randint(1, 8)
        names = ["full_attention", "sliding_attention"] if not family.hybrid else ["full_attention", "linear_attention"]
        if rng.random() < 0.3:
            config["layer_types"] = [rng.choice(names) for _ in range(layers)]
    if family.latent:
        config |= {"kv_lora_rank": rng.choice((256, 512)), "q_lora_rank": rng.choice((None, 768, 1536))}
        config |= {
            "qk_rope_head_dim": 64,
            "qk_nope_head_dim": rng.choice((128, 192)),
            "v_head_dim": rng.choice((128, 256)),
        }
    if family.hybrid:
        config |= {f"linear_num_{part}_heads": rng.choice((8, 16, 32)) for part in ("key", "value")}
        config |= {f"linear_{part}_head_dim": rng.choice((64, 128)) for part in ("key", "value")}
        config |= {
            "full_attention_interval": rng.choice((1, 2, 4, 5)),
            "mamba_ssm_dtype": rng.choice(("float32", "bfloat16")),
        }
        config["attn_output_gate"] = rng.random() < 0.8
    if family.mtp_field and rng.random() < 0.5:
        config[family.mtp_field] = rng.randint(0, 3)
    _experts(rng, config, layers)
    if kind == "gemma4_text":
        config |= {"attention_k_eq_v": rng.random() < 0.5, "num_global_key_value_heads": 1, "global_head_dim": 512}
    if kind == "falcon":
        config |= {
            "new_decoder_architecture": rng.random() < 0.5,
            "multi_query": rng.random() < 0.5,
            "bias": rng.random() < 0.5,
        }
        config |= {"parallel_attn": rng.random() < 0.5, "num_kv_heads": kv_heads}
    if "use_qk_norm" in family.fields:
        config["use_qk_norm"] = rng.random() < 0.5
    if rng.random() < 0.3:
        config["quantization_config"] = rng.choice(QUANTIZATIONS)
    return config


def _experts(rng: random.Random, config: dict[str, Any], layers: int) -> None:
    family = FAMILIES[config["model_type"]]
    names = family.experts
    if names is None:
        return
    count = rng.choice((4, 8, 60, 64, 128, 256, 512))
    config |= {names.count: count, names.chosen: rng.randint(1, min(count, 12)), names.size: rng.randint(64, 20_000)}
    if names.shared_count:
        config[names.shared_count] = rng.choice((None, 0, 1, 2))
    if names.shared_size:
        config[names.shared_size] = rng.randint(64, 20_000)
    config[names.dense_size] = rng.randint(64, 60_000)
    own = family.own_fields.split()
    if "first_k_dense_replace" in own:
        config["first_k_dense_replace"] = rng.randint(0, min(3, layers))
    if "decoder_sparse_step" in own:
        config["decoder_sparse_step"] = rng.choice((1, 1, 2, 3))
        config["mlp_only_layers"] = [rng.randrange(layers) for _ in range(rng.choice((0, 0, 1, 3)))]
    if "interleave_moe_layer_step" in own:
        config["interleave_moe_layer_step"] = rng.choice((1, 2))
    if "use_routing_bias" in own:
        config["use_routing_bias"] = rng.random() < 0.5


_TOWERS: dict[str, dict[str, Any]] = {
    "gemma3": {"hidden_size": 1152, "intermediate_size": 4304, "num_hidden_layers": 27, "patch_size": 14,
               "image_size": 896},
    "mistral3": {"hidden_size": 1024, "intermediate_size": 4096, "num_hidden_layers": 24, "patch_size": 14},
    "qwen3_5": {"depth": 27, "hidden_size": 1152, "in_channels": 3, "intermediate_size": 4304, "patch_size": 16,
                "num_position_embeddings": 2304, "out_hidden_size": 5120, "spatial_merge_size": 2,
                "temporal_patch_size": 2},
}  # fmt: skip


def random_config(rng: random.Random) -> dict[str, Any]:
    """Return a file that is sound, most of the time; a tenth wrap a language model."""
    if rng.random() > 0.1:
        return _text(rng, rng.choice(list(FAMILIES)))
    kind = rng.choice(list(WRAPPED))
    inner = _text(rng, WRAPPED[kind])
    if rng.random() < 0.5:
        inner["model_type"] = "some_text"
    config = {"model_type": kind, "text_config": inner, "torch_dtype": "bfloat16"}
    tower = _TOWERS.get(kind.removesuffix("_moe"))
    if tower and rng.random() < 0.8:
        config["vision_config"] = dict(tower)
    return config


def broken(rng: random.Random, config: dict[str, Any]) -> str:
    """Return the text of a file with one thing wrong, or nearly: a field, a value, a character, a number."""
    target = rng.choice([config, *(each for each in config.values() if isinstance(each, dict))])
    how = rng.randrange(6)
    if how == 0 and target:
        del target[rng.choice(list(target))]
    elif how == 1 and target:
        field, odd = rng.choice(list(target)), rng.choice(ODD)
        target[field] = str(odd) if field == "model_type" else odd
    elif how == 2:
        target[rng.choice(("use_moe", "num_kv_shared_layers", "lm_head_bias", "it's", "shared_intermediate_size"))] = (
            rng.choice(ODD)
        )
    elif how == 3:
        target["layer_types"] = rng.choice((["full_attention"], ["odd"] * 40, "all", [1, 2], {"a": 1}))
    text = json.dumps(config, ensure_ascii=rng.random() < 0.5, indent=rng.choice((None, 1)))
    if how == 4:
        at = rng.randrange(len(text))
        text = (
            text[:at]
            + rng.choice(("", "x", ",", "}", "]", '"', "\\", "\t", "NaN", "9" * 5000, "-Infinity", "1e999"))
            + text[at + rng.randrange(3) :]
        )
    elif how == 5:
        text = text[: rng.randrange(len(text))]
    return text
