from __future__ import annotations

from typing import Any

import pytest

from lantern_lib import LANTERN_70B, ModelConfig, from_hf_config

LLAMA: dict[str, Any] = {
    "model_type": "llama",
    "num_hidden_layers": 80,
    "hidden_size": 8192,
    "intermediate_size": 28672,
    "num_attention_heads": 64,
    "num_key_value_heads": 8,
    "vocab_size": 128256,
    "torch_dtype": "bfloat16",
    "rope_theta": 500000.0,
}
REQUIRED = ["num_hidden_layers", "hidden_size", "intermediate_size", "num_attention_heads", "vocab_size"]


def test_a_llama_config_is_lantern() -> None:
    model = from_hf_config(LLAMA, name="Lantern 70B")
    assert model == ModelConfig(**(vars(LANTERN_70B) | {"source": "config.json"}))


@pytest.mark.parametrize("field", REQUIRED)
@pytest.mark.parametrize("absent", ["missing", "null"])
def test_a_missing_field_is_named(field: str, absent: str) -> None:
    config = {k: v for k, v in LLAMA.items() if k != field} | ({field: None} if absent == "null" else {})
    with pytest.raises(ValueError, match=f"^{field} must be in the config"):
        from_hf_config(config)


@pytest.mark.parametrize("field", [*REQUIRED, "num_key_value_heads", "head_dim"])
@pytest.mark.parametrize("bad", [0, -8, 2.5, True, "64", float("nan")])
def test_a_bad_number_is_named(field: str, bad: object) -> None:
    with pytest.raises(ValueError, match=f"^{field} must be a whole number"):
        from_hf_config(LLAMA | {field: bad})


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("num_local_experts", 8),
        ("n_routed_experts", 256),
        ("kv_lora_rank", 512),
        ("vision_config", {}),
        ("num_nextn_predict_layers", 1),
        ("some_new_field", 3),
        ("quantization_config", {"bits": 4}),
        ("torch_dtype", "float8_e4m3fn"),
        ("sliding_window", 4096),
    ],
)
def test_what_it_cannot_represent_is_refused_by_field(field: str, value: object) -> None:
    with pytest.raises(ValueError, match=f"^{field} "):
        from_hf_config(LLAMA | {field: value})


@pytest.mark.parametrize("model_type", ["t5", "mamba2", "bert", ["llama"], None])
def test_an_unknown_family_is_refused(model_type: object) -> None:
    with pytest.raises(ValueError, match="^model_type must be one of llama, mistral, .*, got"):
        from_hf_config(LLAMA | {"model_type": model_type})
    with pytest.raises(ValueError, match="^model_type must be one of"):
        from_hf_config(LLAMA | {"model_type": model_type, "text_config": LLAMA})


def test_a_vision_config_points_to_its_text_part() -> None:
    with pytest.raises(ValueError, match="Pass its text_config"):
        from_hf_config({"model_type": "llava", "text_config": {}, "vision_config": {}})
    with pytest.raises(ValueError, match="^vision_config must be that of gemma3, mistral3 or qwen3_5, got .*llama4"):
        from_hf_config({"model_type": "llama4", "text_config": LLAMA, "vision_config": {"depth": 3}})


def test_a_field_can_be_ignored_by_name() -> None:
    assert from_hf_config(LLAMA | {"some_new_field": 3}, ignore={"some_new_field"}).num_layers == 80


def test_heads_that_do_not_divide() -> None:
    with pytest.raises(ValueError, match=r"^num_kv_heads must divide num_heads \(64\), got 7"):
        from_hf_config(LLAMA | {"num_key_value_heads": 7})
    with pytest.raises(ValueError, match="^head_dim must be declared"):
        from_hf_config(LLAMA | {"num_attention_heads": 60, "num_key_value_heads": 6})


@pytest.mark.parametrize("declared", [None, "absent"])
def test_head_dim_falls_back_to_the_width_only_when_none_is_declared(declared: object) -> None:
    config = LLAMA if declared == "absent" else LLAMA | {"head_dim": None}
    assert from_hf_config(config).head_dim == 128
    assert from_hf_config(LLAMA | {"head_dim": 256}).head_dim == 256


def test_absent_kv_heads_means_one_for_each_query_head() -> None:
    config = {k: v for k, v in LLAMA.items() if k != "num_key_value_heads"}
    assert from_hf_config(config).num_kv_heads == 64


def test_biases_by_family() -> None:
    llama = from_hf_config(LLAMA | {"attention_bias": True, "mlp_bias": True})
    qwen = from_hf_config(LLAMA | {"model_type": "qwen2"})
    assert (llama.qkv_bias, llama.output_bias, llama.mlp_bias) == (True, True, True)
    assert (qwen.qkv_bias, qwen.output_bias, qwen.mlp_bias) == (True, False, False)


def test_vocabulary_padding_rounds_up() -> None:
    assert from_hf_config(LLAMA | {"vocab_size": 32001}, pad_vocab_multiple=64).vocab_size == 32064
    assert from_hf_config(LLAMA, pad_vocab_multiple=64).vocab_size == 128256


def test_windows() -> None:
    qwen = LLAMA | {"model_type": "qwen2", "sliding_window": 4096, "max_window_layers": 70}
    assert from_hf_config(qwen).num_sliding_layers == 0
    assert from_hf_config(qwen | {"use_sliding_window": True}).num_sliding_layers == 10
    layers = ["sliding_attention"] * 60 + ["full_attention"] * 20
    gemma = LLAMA | {"model_type": "gemma2", "sliding_window": 4096, "layer_types": layers}
    assert from_hf_config(gemma).num_sliding_layers == 60
    with pytest.raises(ValueError, match=r"^layer_types must name .*linear_attention"):
        from_hf_config(gemma | {"layer_types": ["linear_attention"] * 80})


@pytest.mark.parametrize("config", [None, [], "config.json", 3])
def test_a_config_must_be_a_mapping(config: object) -> None:
    with pytest.raises(ValueError, match="^config must be a mapping"):
        from_hf_config(config)  # type: ignore[arg-type]


@pytest.mark.parametrize("field", ["num_layers", "hidden_size", "head_dim", "vocab_size", "num_kv_heads"])
@pytest.mark.parametrize("bad", [0, -1, 1.0, True, "8", float("nan")])
def test_a_shape_refuses_bad_fields(field: str, bad: object) -> None:
    with pytest.raises(ValueError, match=f"^{field} must be a whole number of 1 or more, got"):
        ModelConfig(**(vars(LANTERN_70B) | {field: bad}))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"weight_bytes": 0}, "^weight_bytes must be"),
        ({"kv_bytes": float("inf")}, "^kv_bytes must be"),
        ({"num_sliding_layers": 3}, "^sliding_window must be given"),
        ({"num_sliding_layers": 81, "sliding_window": 10}, "^num_sliding_layers must be at most"),
        ({"sliding_window": 0}, "^sliding_window must be a whole number"),
    ],
)
def test_a_shape_refuses_what_does_not_go_together(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        ModelConfig(**(vars(LANTERN_70B) | changes))


MOE = LLAMA | {"model_type": "qwen3_moe", "num_experts": 8, "num_experts_per_tok": 2, "moe_intermediate_size": 768}


@pytest.mark.parametrize(("step", "dense"), [(1, []), (2, [1, 2, 7]), (3, [0, 5, 5]), (7, [6])])
def test_layers_with_experts_are_counted_as_a_list_of_them_would(step: int, dense: list[int]) -> None:
    shape = from_hf_config(MOE | {"decoder_sparse_step": step, "mlp_only_layers": dense})
    listed = [n for n in range(LLAMA["num_hidden_layers"]) if (n + 1) % step == 0 and n not in dense]
    assert shape.experts is not None
    assert shape.experts.num_layers == len(listed)


def test_a_file_may_claim_any_number_of_layers() -> None:
    shape = from_hf_config(MOE | {"num_hidden_layers": 10**9})
    assert shape.experts is not None
    assert shape.experts.num_layers == 10**9


def test_the_groups_of_a_quantised_file_may_be_anything() -> None:
    groups = {"a": {"weights": {"num_bits": [4], "strategy": {}}}}
    quantization = {"quant_method": "compressed-tensors", "format": "pack-quantized", "config_groups": groups}
    with pytest.raises(ValueError, match="quantization_config"):
        from_hf_config(LLAMA | {"quantization_config": quantization})
