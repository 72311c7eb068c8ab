"""Exact totals of public models, and sums against explicit loops."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lantern_lib import LANTERN_70B, ModelConfig, from_hf_config, transformer

# config.json fields of public models, and the total that their published checkpoints hold (bytes of the
# safetensors index over two, where no rotary buffers or vision towers are stored with it).
PUBLIC: dict[str, tuple[dict[str, Any], int]] = {
    "Llama-2-70B": (
        {
            "model_type": "llama",
            "num_hidden_layers": 80,
            "hidden_size": 8192,
            "intermediate_size": 28672,
            "num_attention_heads": 64,
            "num_key_value_heads": 8,
            "vocab_size": 32000,
        },
        68_976_648_192,
    ),
    "Llama-2-7B": (
        {
            "model_type": "llama",
            "num_hidden_layers": 32,
            "hidden_size": 4096,
            "intermediate_size": 11008,
            "num_attention_heads": 32,
            "vocab_size": 32000,
        },
        6_738_415_616,
    ),
    "Llama-3-8B": (
        {
            "model_type": "llama",
            "num_hidden_layers": 32,
            "hidden_size": 4096,
            "intermediate_size": 14336,
            "num_attention_heads": 32,
            "num_key_value_heads": 8,
            "vocab_size": 128256,
        },
        8_030_261_248,
    ),
    "Llama-3.1-405B": (
        {
            "model_type": "llama",
            "num_hidden_layers": 126,
            "hidden_size": 16384,
            "intermediate_size": 53248,
            "num_attention_heads": 128,
            "num_key_value_heads": 8,
            "vocab_size": 128256,
        },
        405_853_388_800,
    ),
    "Qwen2.5-0.5B": (
        {
            "model_type": "qwen2",
            "num_hidden_layers": 24,
            "hidden_size": 896,
            "intermediate_size": 4864,
            "num_attention_heads": 14,
            "num_key_value_heads": 2,
            "vocab_size": 151936,
            "tie_word_embeddings": True,
            "use_sliding_window": False,
            "sliding_window": 32768,
            "max_window_layers": 21,
        },
        494_032_768,
    ),
    "Qwen2.5-7B": (
        {
            "model_type": "qwen2",
            "num_hidden_layers": 28,
            "hidden_size": 3584,
            "intermediate_size": 18944,
            "num_attention_heads": 28,
            "num_key_value_heads": 4,
            "vocab_size": 152064,
        },
        7_615_616_512,
    ),
    "Qwen2.5-72B": (
        {
            "model_type": "qwen2",
            "num_hidden_layers": 80,
            "hidden_size": 8192,
            "intermediate_size": 29568,
            "num_attention_heads": 64,
            "num_key_value_heads": 8,
            "vocab_size": 152064,
        },
        72_706_203_648,
    ),
    "Qwen3-0.6B": (
        {
            "model_type": "qwen3",
            "num_hidden_layers": 28,
            "hidden_size": 1024,
            "intermediate_size": 3072,
            "num_attention_heads": 16,
            "num_key_value_heads": 8,
            "head_dim": 128,
            "vocab_size": 151936,
            "tie_word_embeddings": True,
        },
        596_049_920,
    ),
    "Qwen3-32B": (
        {
            "model_type": "qwen3",
            "num_hidden_layers": 64,
            "hidden_size": 5120,
            "intermediate_size": 25600,
            "num_attention_heads": 64,
            "num_key_value_heads": 8,
            "head_dim": 128,
            "vocab_size": 151936,
        },
        32_762_123_264,
    ),
    "Mistral-7B-v0.1": (
        {
            "model_type": "mistral",
            "num_hidden_layers": 32,
            "hidden_size": 4096,
            "intermediate_size": 14336,
            "num_attention_heads": 32,
            "num_key_value_heads": 8,
            "vocab_size": 32000,
            "sliding_window": 4096,
        },
        7_241_732_096,
    ),
    "Gemma-2-27B": (
        {
            "model_type": "gemma2",
            "num_hidden_layers": 46,
            "hidden_size": 4608,
            "intermediate_size": 36864,
            "num_attention_heads": 32,
            "num_key_value_heads": 16,
            "head_dim": 128,
            "vocab_size": 256000,
            "sliding_window": 4096,
        },
        27_227_128_320,
    ),
    "Gemma-3-27B text": (
        {
            "model_type": "gemma3_text",
            "num_hidden_layers": 62,
            "hidden_size": 5376,
            "intermediate_size": 21504,
            "num_attention_heads": 32,
            "num_key_value_heads": 16,
            "head_dim": 128,
            "vocab_size": 262208,
            "sliding_window": 1024,
        },
        27_009_346_304,
    ),
    "Phi-3-mini-4k": (
        {
            "model_type": "phi3",
            "num_hidden_layers": 32,
            "hidden_size": 3072,
            "intermediate_size": 8192,
            "num_attention_heads": 32,
            "num_key_value_heads": 32,
            "vocab_size": 32064,
            "sliding_window": 2047,
        },
        3_821_079_552,
    ),
}


@pytest.mark.parametrize("name", PUBLIC)
def test_exact_totals_of_public_models(name: str) -> None:
    config, total = PUBLIC[name]
    count = transformer.parameters(from_hf_config(config))
    assert count.total == total
    assert total == count.embedding + count.attention + count.feed_forward + count.head + count.norms + count.biases


@pytest.mark.parametrize(("name", "windowed"), [("Gemma-2-27B", 23), ("Gemma-3-27B text", 52), ("Phi-3-mini-4k", 32)])
def test_windowed_layers_of_public_models(name: str, windowed: int) -> None:
    assert from_hf_config(PUBLIC[name][0]).num_sliding_layers == windowed


def small(**changes: Any) -> ModelConfig:
    shape: dict[str, Any] = {
        "name": "small",
        "num_layers": 3,
        "hidden_size": 12,
        "intermediate_size": 20,
        "num_heads": 4,
        "num_kv_heads": 2,
        "head_dim": 5,
        "vocab_size": 50,
    }
    return ModelConfig(**(shape | changes))


def arrays(model: ModelConfig) -> list[np.ndarray]:
    """Every array of the model, made and not counted: the oracle of the parameter count."""
    d, query, kv = model.hidden_size, model.num_heads * model.head_dim, model.num_kv_heads * model.head_dim
    made = [np.empty((model.vocab_size, d)), np.empty(d)]
    if not model.tied_embeddings:
        made.append(np.empty((d, model.vocab_size)))
    for _ in range(model.num_layers):
        made += [np.empty((d, query)), np.empty((d, kv)), np.empty((d, kv)), np.empty((query, d))]
        made += [np.empty((d, model.intermediate_size))] * (2 if model.gated else 1)
        made += [np.empty((model.intermediate_size, d))]
        made += [np.empty(d)] * model.norms_per_layer
        if model.qk_norm:
            made += [np.empty(model.head_dim)] * 2
        if model.qkv_bias:
            made += [np.empty(query), np.empty(kv), np.empty(kv)]
        if model.output_bias:
            made += [np.empty(d)]
        if model.mlp_bias:
            made += [np.empty(model.intermediate_size)] * (2 if model.gated else 1) + [np.empty(d)]
    return made


@given(
    gated=st.booleans(),
    tied_embeddings=st.booleans(),
    qkv_bias=st.booleans(),
    output_bias=st.booleans(),
    mlp_bias=st.booleans(),
    qk_norm=st.booleans(),
    norms_per_layer=st.integers(0, 4),
    num_kv_heads=st.sampled_from([1, 2, 4]),
)
def test_count_equals_the_arrays_made(**shape: Any) -> None:
    model = small(**shape)
    assert transformer.parameters(model).total == sum(a.size for a in arrays(model))


def test_tied_table_is_stored_once_and_still_multiplied() -> None:
    untied, tied = transformer.parameters(small()), transformer.parameters(small(tied_embeddings=True))
    assert untied.total - tied.total == 50 * 12
    assert untied.multiplied == tied.multiplied
    assert untied.streamed == tied.streamed


@given(
    prompt_len=st.integers(1, 60),
    cached=st.integers(0, 60),
    window=st.integers(1, 80),
    num_sliding_layers=st.integers(0, 3),
)
def test_prompt_attention_equals_a_loop(prompt_len: int, cached: int, window: int, num_sliding_layers: int) -> None:
    model = small(sliding_window=window, num_sliding_layers=num_sliding_layers)
    looped = 0
    for layer in range(model.num_layers):
        for position in range(cached + 1, cached + prompt_len + 1):
            seen = min(position, window) if layer < num_sliding_layers else position
            looped += 4 * model.num_heads * model.head_dim * seen
    assert transformer.prompt_flops(model, prompt_len, cached).attention == looped


def test_matrix_flops_equal_a_product_counted_by_shape() -> None:
    model = small()
    matrices = [a for a in arrays(model) if a.ndim == 2][1:]  # without the input table, a lookup
    assert transformer.token_flops(model).matrices == sum(2 * a.size for a in matrices)


def test_a_prompt_in_two_pieces_costs_the_same() -> None:
    whole = transformer.prompt_flops(LANTERN_70B, 2000).total
    pieces = transformer.prompt_flops(LANTERN_70B, 700).total + transformer.prompt_flops(LANTERN_70B, 1300, 700).total
    assert whole == pieces


@pytest.mark.parametrize("bad", [-1, 1.5, float("nan"), float("inf"), True, "8192"])
def test_bad_context_is_named(bad: object) -> None:
    with pytest.raises(ValueError, match=r"context_len must be a whole number of 0 or more, got .*"):
        transformer.token_flops(LANTERN_70B, bad)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="prompt_len must be"):
        transformer.prompt_flops(LANTERN_70B, bad)  # type: ignore[arg-type]
