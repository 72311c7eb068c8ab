"""Shapes of public models against the totals that their publishers' files count."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lantern_lib import H100, Replica, from_hf_config, kv_cache, parallelism, step, transformer
from lantern_lib.hf_config import read_config
from lantern_lib.labs import given_model
from lantern_lib.models import find_model, public_models
from lantern_lib.quantization import with_storage
from lantern_lib.simulator import step_model

#: Names of the public table that differ from ours.
NAMES = {"Mistral-7B-v0.1": "Mistral-7B-v0.1", "Qwen3.5-27B / Qwen3.6-27B": "Qwen3.5-27B", "Kimi-K2": "Kimi-K2"}
EXACT = [name for name, entry in public_models().items() if entry.total_origin and not entry.unexplained]


def test_there_are_many_and_most_are_exact() -> None:
    assert len(public_models()) >= 20
    assert len(EXACT) >= 50


def test_every_total_says_where_it_was_read() -> None:
    """What was written from memory is no oracle: one of these was, and it was the formula's own number."""
    for entry in public_models().values():
        assert bool(entry.published_total) == bool(entry.total_origin), entry.name
    falcon = public_models()["Falcon-7B"]
    assert falcon.published_total == 7_217_189_760
    assert transformer.parameters(falcon.model).total == 7_217_189_760 - 65_024 * 4544, "its head is stored twice"


@pytest.mark.parametrize("name", EXACT)
def test_a_published_total_is_met_to_the_parameter(name: str) -> None:
    entry = public_models()[name]
    count = transformer.parameters(entry.model)
    assert count.in_checkpoint - (0 if entry.counts_scales else count.scales) == entry.published_total


def test_what_is_not_explained_is_said() -> None:
    entry = public_models()["Kimi-K2"]
    assert transformer.parameters(entry.model).total + entry.unexplained == entry.published_total
    assert "do not know" in entry.note
    assert [each.name for each in public_models().values() if each.unexplained] == ["Kimi-K2"]


def public_table(outside: Callable[[str], Path]) -> list[dict[str, str]]:
    with outside("truth/models.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_the_public_table_of_shapes(outside: Callable[[str], Path]) -> None:
    """Totals by formula, active parameters, the table that is not streamed, and the cache, of every row."""
    compared = 0
    for row in public_table(outside):
        model = find_model(NAMES.get(row["model"], row["model"]))
        count = transformer.parameters(model)
        if row["formula_total_params"]:
            assert count.total == int(row["formula_total_params"]), row["model"]
            compared += 1
        if row["diff"]:
            # Two rows write what they leave out; the third is the tower.
            assert abs(count.extra) == abs(int(row["diff"])), row["model"]
        if row["active_params_per_token"] and row["formula_total_params"] and not int(row["diff"] or 0):
            assert count.active == int(row["active_params_per_token"]), row["model"]
        if row["embedding_params_not_streamed_at_decode"]:
            assert count.total - count.streamed == int(row["embedding_params_not_streamed_at_decode"]), row["model"]
        if row["kv_bytes_per_token_2byte_all_layers"]:
            assert kv_cache.bytes_per_token(model) == int(row["kv_bytes_per_token_2byte_all_layers"]), row["model"]
        if row["kv_bytes_per_token_2byte_full_layers_only"]:
            far = 10**7
            growth = kv_cache.bytes_per_sequence(model, far + 1) - kv_cache.bytes_per_sequence(model, far)
            assert growth == int(row["kv_bytes_per_token_2byte_full_layers_only"]), row["model"]
    assert compared == 20


def test_deepseek_by_component() -> None:
    """Its README: 671 billion and one head for a further token; its files: 41,540,496 scales."""
    count = transformer.parameters(find_model("DeepSeek-V3"))
    assert count.total == 671_026_419_200
    assert count.scales == 41_540_496
    assert count.mtp - 2 * 129280 * 7168 == 13_463_426_304 - 1_853_358_080
    assert 36e9 < count.active - count.embedding < 37.5e9


@pytest.mark.parametrize(
    ("name", "gib", "rel"), [("Llama-3-8B", 14.9575, 1e-5), ("Qwen3-32B", 61.03, 5e-4), ("Qwen3-0.6B", 1.12, 0.01)]
)
def test_weights_are_as_large_as_engines_print(name: str, gib: float, rel: float) -> None:
    assert transformer.weight_bytes(find_model(name)) / 2**30 == pytest.approx(gib, rel=rel)


def test_a_four_bit_file_is_larger_than_bits_times_parameters() -> None:
    """The files of gpt-oss take 65.2 and 13.8 billion bytes."""
    for name, gigabytes in (("gpt-oss-120b", 65.2), ("gpt-oss-20b", 13.8)):
        model = find_model(name)
        assert transformer.weight_bytes(model) / 1e9 == pytest.approx(gigabytes, rel=0.003)
        assert transformer.weight_bytes(model) > 1.08 * transformer.parameters(model).total / 2


@pytest.mark.parametrize("name", list(public_models()))
def test_components_add_up(name: str) -> None:
    model = find_model(name)
    count, sizes = transformer.parameters(model), transformer.component_bytes(model)
    assert sum(sizes.values()) == pytest.approx(transformer.weight_bytes(model))
    assert count.active <= count.total <= count.in_checkpoint
    assert transformer.streamed_weight_bytes(model, 1) <= transformer.streamed_weight_bytes(model, 10**6)
    unread = 0 if model.tied_embeddings else sizes["embedding"]
    assert transformer.streamed_weight_bytes(model, 10**6) == pytest.approx(transformer.weight_bytes(model) - unread)


@pytest.mark.parametrize("name", list(public_models()))
def test_the_cache_of_a_gpu(name: str) -> None:
    """One GPU holds everything; more never hold more; a latent is copied and the rest stops at the heads."""
    model = find_model(name)
    whole = kv_cache.bytes_per_sequence(model, 5000)
    sizes = [kv_cache.bytes_per_sequence_per_gpu(model, 5000, tp) for tp in (1, 2, 4, 8, 16)]
    assert sizes[0] == pytest.approx(whole)
    assert sizes == sorted(sizes, reverse=True)
    heads = max(group.num_kv_heads for group in model.attention_layers)
    if model.latent:
        assert len(set(sizes)) == 1
        assert kv_cache.bytes_per_sequence_per_gpu(model, 5000, 8, context_parallel=8) == pytest.approx(whole / 8)
    elif model.recurrent is None and model.full_attention is None and heads == 8:
        assert sizes[3] == sizes[4] == pytest.approx(whole / 8)
    if model.num_heads % 2 == 0:
        assert parallelism.kv_bytes_per_gpu(model, 5000, 2) == sizes[1]


def test_a_window_saturates_and_a_state_is_there_from_the_start() -> None:
    gemma, hybrid = find_model("Gemma-3-27B"), find_model("Qwen3.5-27B")
    per_layer = 2 * 16 * 128 * 2
    assert kv_cache.bytes_per_sequence(gemma, 100_000) == per_layer * (10 * 100_000 + 52 * 1024)
    state = kv_cache.bytes_per_sequence(hybrid, 0)
    # 48 layers: a 32-bit state of 48 heads of 128 × 128, and three columns of 10,240 channels at 16 bits.
    assert state == 48 * (4 * 48 * 128 * 128 + 2 * 3 * 10240)
    assert kv_cache.bytes_per_sequence(hybrid, 1000) == state + 1000 * 65536


@pytest.mark.parametrize(
    ("name", "same"),
    [("meta-llama/Meta-Llama-3-8B-Instruct", "Llama-3-8B"), ("QWEN3-32b", "Qwen3-32B"), ("gpt_oss-20b", "gpt-oss-20b")],
)
def test_a_name_is_found_however_it_is_written(name: str, same: str) -> None:
    assert transformer.parameters(find_model(name)) == transformer.parameters(public_models()[same].model)


def test_an_unknown_name_gets_the_nearest() -> None:
    with pytest.raises(ValueError, match="^name must be a shipped model, got 'llama-3-9b'.*Llama-3-8B"):
        find_model("llama-3-9b")
    with pytest.raises(ValueError, match="^name must be the name of a model"):
        find_model(3)  # type: ignore[arg-type]


@pytest.mark.parametrize("batch", [1, 8, 64, 512])
def test_a_step_reads_the_experts_that_its_batch_touches(batch: int) -> None:
    """By hand for Mixtral: everything shared, and the share of eight experts that some token goes to."""
    cost = step.decode_step(find_model("Mixtral-8x7B"), Replica(H100, 2), batch, 1000)
    expert, shared = 32 * 3 * 4096 * 14336, 1_605_636_096 - 131_072_000
    touched = 8 * (1 - 0.75**batch)
    assert cost.moved_bytes == pytest.approx(2 * (shared + touched * expert) + batch * 1000 * 131072, rel=1e-9)
    matrices = shared + 2 * expert - 65 * 4096
    assert cost.flops == pytest.approx(batch * (2 * matrices + 4 * 32 * 32 * 128 * 1000), rel=1e-9)


def test_a_leaping_engine_refuses_experts_and_states() -> None:
    for name in ("Mixtral-8x7B", "Qwen3.5-27B"):
        with pytest.raises(ValueError, match=f"^model must be dense with attention in every layer, got {name}"):
            step_model(find_model(name), Replica(H100, 2))


def test_other_widths_replace_the_format_of_a_file() -> None:
    model = with_storage(find_model("gpt-oss-20b"), 16)
    assert model.storage is None
    assert transformer.weight_bytes(model) == 2 * 20_914_757_184


def test_the_week_1_lab_takes_no_model_that_it_does_not_count(tmp_path: Path) -> None:
    for name in ("Mixtral-8x7B", "Qwen3-Next-80B-A3B", "Gemma-2-9B", "Qwen2.5-7B"):
        (tmp_path / "odd.json").write_text(json.dumps(public_models()[name].config), encoding="utf-8")
        with pytest.raises(ValueError, match="^model_name must be a dense gated model without biases and windows"):
            given_model("odd", tmp_path)
    (tmp_path / "odd.json").write_text(json.dumps(public_models()["Qwen3-8B"].config), encoding="utf-8")
    assert given_model("odd", tmp_path).num_layers == 36


def changed(name: str, **fields: Any) -> dict[str, Any]:
    return json.loads(json.dumps(public_models()[name].config)) | fields


@pytest.mark.parametrize(
    ("name", "field", "value"),
    [
        ("Mixtral-8x7B", "num_experts_per_tok", 9),
        ("Mixtral-8x7B", "num_local_experts", 0),
        ("DeepSeek-V3", "kv_lora_rank", None),
        ("DeepSeek-V3", "first_k_dense_replace", 99),
        ("DeepSeek-V3", "moe_layer_freq", 2),
        ("DeepSeek-V3", "index_topk", 2048),
        ("Qwen3-30B-A3B", "mlp_only_layers", [48]),
        ("Qwen3-30B-A3B", "mlp_only_layers", "all"),
        ("Qwen3-Next-80B-A3B", "linear_num_key_heads", None),
        ("Gemma-4-31B", "hidden_size_per_layer_input", 256),
        ("Gemma-4-31B", "num_kv_shared_layers", 10),
        ("Gemma-4-31B", "layer_types", ["full_attention"] * 59),
        ("Gemma-4-31B", "layer_types", [["full_attention"]] * 60),
        ("MiniMax-M2.5", "shared_intermediate_size", 512),
        ("gpt-oss-20b", "quantization_config", {"quant_method": "fp3"}),
        ("gpt-oss-20b", "quantization_config", "mxfp4"),
        ("Qwen3.5-27B", "audio_config", {"layers": 3}),
        ("Qwen3.5-27B", "text_config", [1]),
        ("Gemma-3-27B", "vision_config", []),
    ],
)
def test_what_a_shape_cannot_hold_is_refused_by_field(name: str, field: str, value: object) -> None:
    with pytest.raises(ValueError, match=rf"^{field.replace('num_experts_per_tok', 'experts_per_token')}\b"):
        from_hf_config(changed(name, **{field: value}))


FP8 = {"quant_method": "fp8", "weight_block_size": [128, 128]}
INT4 = {"quant_method": "compressed-tensors", "config_groups": {"a": {"weights": {"num_bits": 4, "type": "int"}}}}


@pytest.mark.parametrize(
    ("quantization", "gigabytes"),
    [
        # Llama 3 8B: 1,050,673,152 numbers in two tables, 6,979,321,856 in matrices, 266,240 in norms.
        (FP8, (2 * 1_050_939_392 + 6_979_321_856 + 4 * 6_979_321_856 / 128**2) / 1e9),
        (
            {"quant_method": "awq", "bits": 4, "group_size": 128},
            (2 * 1_050_939_392 + 6_979_321_856 * (0.5 + 2.5 / 128)) / 1e9,
        ),
        (
            {"quant_method": "modelopt", "quant_algo": "NVFP4"},
            (2 * 1_050_939_392 + 6_979_321_856 * (0.5 + 1 / 16)) / 1e9,
        ),
        (
            {"quant_method": "bitsandbytes", "load_in_4bit": True},
            (2 * 1_050_939_392 + 6_979_321_856 * (0.5 + 4 / 64)) / 1e9,
        ),
    ],
)
def test_stored_sizes_of_an_8b(quantization: dict[str, Any], gigabytes: float) -> None:
    model = from_hf_config(changed("Llama-3-8B", quantization_config=quantization))
    assert transformer.weight_bytes(model) / 1e9 == pytest.approx(gigabytes, rel=1e-6)


def test_modules_left_alone_keep_sixteen_bits() -> None:
    groups = {"a": {"weights": {"num_bits": 8, "type": "float", "strategy": "channel"}}}
    base = {"quant_method": "compressed-tensors", "config_groups": groups}
    named = [f"model.layers.{i}.self_attn.q_proj" for i in range(32)]
    for ignored, kept in (
        ([], set()),
        (["lm_head"], set()),
        (["re:.*self_attn.*"], {"attention"}),
        (named, {"attention"}),
    ):
        model = from_hf_config(changed("Llama-3-8B", quantization_config=base | {"ignore": ignored}))
        assert model.storage is not None
        assert {"attention", "feed_forward"} - set(model.storage.quantized) == kept, ignored
    kimi = find_model("Kimi-K2-Thinking").storage
    assert kimi is not None
    assert set(kimi.quantized) - {"recurrent"} == {"experts"}


def test_a_terse_file_takes_the_values_of_its_code() -> None:
    """Gemma 3 4B writes neither heads nor vocabulary."""
    tower = public_models()["Gemma-3-4B"].config["vision_config"] | {
        "vision_use_head": False,
        "num_attention_heads": 16,
    }
    text = {"model_type": "gemma3_text", "hidden_size": 2560, "intermediate_size": 10240, "num_hidden_layers": 34}
    text |= {"sliding_window": 1024, "rope_scaling": {"factor": 8.0}, "head_dim": None}
    whole = {"model_type": "gemma3", "text_config": text, "vision_config": tower, "image_token_index": 262144}
    assert transformer.parameters(from_hf_config(whole)).in_checkpoint == 4_300_079_472


def test_a_whole_file_is_read_with_all_that_does_not_matter() -> None:
    idle = {"aux_loss_alpha": 0.001, "ep_size": 1, "n_group": 8, "topk_group": 4, "topk_method": "noaux_tc"}
    idle |= {"scoring_func": "sigmoid", "seq_aux": True, "pretraining_tp": 1, "auto_map": {}, "rope_scaling": {"a": 1}}
    assert from_hf_config(changed("DeepSeek-V3", **idle)) == from_hf_config(public_models()["DeepSeek-V3"].config)
    idle = {"attn_type_list": [1] * 62, "mlp_intermediate_size": 8192, "num_mtp_modules": 3, "use_mtp": True}
    idle |= {"layernorm_mlp_beta": 1.0, "shared_intermediate_size": 0, "shared_moe_mode": "sigmoid", "rotary_dim": 64}
    assert from_hf_config(changed("MiniMax-M2.5", **idle)) == from_hf_config(public_models()["MiniMax-M2.5"].config)


nasty = st.sampled_from(
    [
        None,
        True,
        0,
        -1,
        1.5,
        3,
        7,
        10**30,
        float("nan"),
        float("inf"),
        "",
        "x" * 500,
        "\x1b[31m",
        [],
        {},
        [[[]]],
        [1, "a", None],
    ]
)
FIELDS = sorted({field for entry in public_models().values() for field in entry.config})


def sentence(call: Callable[[], int]) -> str:
    """Return what a call refuses with; anything but a count or a ValueError fails the test."""
    try:
        return "" if call() >= 0 else "a negative count\n"
    except ValueError as error:
        return str(error)


@given(st.sampled_from(sorted(public_models())), st.dictionaries(st.sampled_from(FIELDS), nasty, max_size=3))
def test_a_broken_config_gets_one_sentence(name: str, broken: dict[str, Any]) -> None:
    said = sentence(lambda: transformer.parameters(from_hf_config(changed(name, **broken))).total)
    assert "\n" not in said
    assert len(said) < 900


@given(nasty)
def test_junk_is_no_config(junk: Any) -> None:
    with pytest.raises(ValueError, match="^(config|model_type) must be"):
        from_hf_config(junk)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "^text must be JSON, got none at line 1"),
        ("[]", "^text must be a JSON object, got list"),
        ('{"a": NaN}', "^text must hold finite numbers, got NaN"),
        ('{"a": ' + "[" * 100_000, "^text must be (a flat object|JSON)"),
        (" " * 6_000_000, "^text must have at most"),
        (b"{}", "^text must be the text"),
        ('{"model_type": "llama", "hidden_size": 1' + "0" * 5000 + "}", "^text must hold numbers of a few digits"),
    ],
)
def test_a_hostile_file_gets_one_sentence(text: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        from_hf_config(read_config(text))


@given(st.text(max_size=200))
def test_any_text_is_read_or_refused(text: str) -> None:
    assert "\n" not in sentence(lambda: len(read_config(text)))
