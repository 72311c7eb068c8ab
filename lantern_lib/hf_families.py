"""What a model family fixes in its code and does not write into ``config.json``, and which fields it may write."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

WindowRule = Literal["none", "all", "from_layer", "pattern", "chunks"]

# Fields that say nothing about the number of parameters or the size of the cache.
HARMLESS = frozenset(
    """
    architectures attention_dropout attn_logit_softcapping auto_map bos_token_id cache_implementation
    dtype embd_pdrop eos_token_id final_logit_softcapping hidden_act hidden_activation id2label
    initializer_range label2id max_position_embeddings original_max_position_embeddings pad_token_id
    partial_rotary_factor pretraining_tp query_pre_attn_scalar resid_pdrop rms_norm_eps
    rope_local_base_freq rope_parameters rope_scaling rope_theta torch_dtype transformers_version
    unk_token_id use_cache _name_or_path _attn_implementation attn_implementation max_sequence_length
    rope_interleave rope_interleaved rotary_dim rotary_pct rotary_emb_base layer_norm_epsilon layer_norm_eps norm_eps
    hidden_dropout attention_softmax_in_fp32 alibi apply_residual_connection_post_layernorm sep_token_id
    residual_multiplier embedding_multiplier logits_scaling attention_multiplier hidden_dropout_prob
    output_attentions output_hidden_states output_router_logits router_aux_loss_coef router_z_loss_coef
    router_jitter_noise aux_loss_alpha seq_aux norm_topk_prob routed_scaling_factor scoring_func topk_method
    n_group topk_group ep_size num_experts_shard is_decoder cross_attention_hidden_size add_cross_attention
    swiglu_limit initial_context_length use_bidirectional_attention bidirectional unsloth_fixed unsloth_version
    attn_temperature_tuning attn_scale floor_scale use_bfloat16 return_dict problem_type task_specific_params
    tokenizer_class prefix torchscript num_labels decoder_start_token_id gradient_checkpointing model_max_length
    quantization _commit_hash chunk_size_feed_forward max_batch_size mscale vocab_size_per_layer_input
    use_mrope moe_router_dtype tf_legacy_loss pruned_heads chat_template
    """.split()  # noqa: SIM905
)
#: Fields that every family may write and the translator reads.
READ = frozenset(
    """
    model_type num_hidden_layers hidden_size intermediate_size num_attention_heads num_key_value_heads
    head_dim vocab_size tie_word_embeddings attention_bias mlp_bias sliding_window use_sliding_window
    max_window_layers sliding_window_pattern _sliding_window_pattern layer_types quantization_config
    """.split()  # noqa: SIM905
)
#: Fields of a file that wraps a language model and a tower which concern pictures and sound only.
WRAPPER = frozenset(
    """
    text_config vision_config audio_config image_token_id image_token_index video_token_id video_token_index
    audio_token_id boi_token_id boi_token_index eoi_token_id eoi_token_index boa_token_id eoa_token_id eoa_token_index
    vision_start_token_id vision_end_token_id vision_token_id mm_tokens_per_image spatial_merge_size
    vision_feature_layer vision_feature_select_strategy projector_hidden_act multimodal_projector_bias
    media_placeholder_token_id ignore_index model_type use_unified_vision_chunk video_placeholder
    """.split()  # noqa: SIM905
)


@dataclass(frozen=True)
class ExpertFields:
    """Where a family writes its experts: names of fields, and what its code fixes."""

    count: str
    chosen: str
    size: str
    shared_count: str = ""
    shared_size: str = ""
    shared_gate: bool = False
    router_vectors: int = 0
    expert_bias: bool = False
    dense_size: str = "intermediate_size"


@dataclass(frozen=True)
class Family:
    """One ``model_type``: arguments of the shape, the rule of its windows, its experts, fields of its own, and the
    values that its code takes where a file is silent."""

    shape: dict[str, Any] = field(default_factory=dict)
    tied: bool = False
    window: WindowRule = "none"
    pattern: int = 0
    experts: ExpertFields | None = None
    latent: bool = False
    hybrid: bool = False
    mtp_field: str = ""
    mtp_tables: int = 0
    own_fields: str = ""
    defaults: dict[str, int] = field(default_factory=dict)

    @property
    def fields(self) -> frozenset[str]:
        """Names that this family's file may hold and the translator reads."""
        names = set(self.own_fields.split()) | ({self.mtp_field} if self.mtp_field else set())
        kinds = self.experts
        if kinds is not None:
            names |= {kinds.count, kinds.chosen, kinds.size, kinds.shared_count, kinds.shared_size, kinds.dense_size}
        if self.latent:
            names |= {
                "kv_lora_rank",
                "q_lora_rank",
                "qk_rope_head_dim",
                "qk_nope_head_dim",
                "v_head_dim",
                "qk_head_dim",
            }
        if self.hybrid:
            names |= {"full_attention_interval", "linear_conv_kernel_dim", "mamba_ssm_dtype", "attn_output_gate"}
            names |= {
                f"linear_{part}" for part in ("key_head_dim", "value_head_dim", "num_key_heads", "num_value_heads")
            }
        return READ | (names - {""})


_QWEN_EXPERTS = ExpertFields("num_experts", "num_experts_per_tok", "moe_intermediate_size")
_QWEN_SHARED = ExpertFields(
    "num_experts",
    "num_experts_per_tok",
    "moe_intermediate_size",
    shared_size="shared_expert_intermediate_size",
    shared_gate=True,
)
_DEEPSEEK_EXPERTS = ExpertFields(
    "n_routed_experts", "num_experts_per_tok", "moe_intermediate_size", "n_shared_experts", router_vectors=1
)
_DEEPSEEK = Family(
    latent=True,
    experts=_DEEPSEEK_EXPERTS,
    mtp_field="num_nextn_predict_layers",
    mtp_tables=2,
    own_fields="first_k_dense_replace moe_layer_freq",
)
_LOCAL = ExpertFields("num_local_experts", "num_experts_per_tok", "intermediate_size")
_QWEN_SPARSE = "decoder_sparse_step mlp_only_layers"
_HYBRID_SHAPE = {"qk_norm": True, "output_gate": True}

FAMILIES: dict[str, Family] = {
    "llama": Family(),
    "mistral": Family(window="all"),
    "ministral3": Family(window="all"),
    "granite": Family(),
    "qwen2": Family({"qkv_bias": True}, window="from_layer"),
    "qwen3": Family({"qk_norm": True}, window="from_layer"),
    "gemma": Family(tied=True),
    "gemma2": Family({"norms_per_layer": 4}, tied=True, window="pattern", pattern=2),
    "gemma3_text": Family(
        {"norms_per_layer": 4, "qk_norm": True},
        tied=True,
        window="pattern",
        pattern=6,
        defaults={"vocab_size": 262208, "head_dim": 256, "num_attention_heads": 8, "num_key_value_heads": 4},
    ),
    "gemma4_text": Family(
        {"norms_per_layer": 4, "qk_norm": True},
        tied=True,
        window="pattern",
        pattern=6,
        own_fields="global_head_dim num_global_key_value_heads attention_k_eq_v",
    ),
    "phi3": Family(window="all"),
    "olmo2": Family({"qk_norm_full": True}),
    "olmo3": Family({"qk_norm_full": True}, window="pattern", pattern=4),
    "falcon": Family(
        {"gated": False, "norm_bias": True},
        tied=True,
        own_fields="num_kv_heads multi_query new_decoder_architecture parallel_attn bias ffn_hidden_size"
        " num_ln_in_parallel_attn",
    ),
    "mixtral": Family(experts=_LOCAL, window="all"),
    "qwen2_moe": Family({"qkv_bias": True}, experts=_QWEN_SHARED, window="from_layer", own_fields=_QWEN_SPARSE),
    "qwen3_moe": Family({"qk_norm": True}, experts=_QWEN_EXPERTS, window="from_layer", own_fields=_QWEN_SPARSE),
    "qwen3_next": Family(
        _HYBRID_SHAPE, experts=_QWEN_SHARED, hybrid=True, window="from_layer", own_fields=_QWEN_SPARSE
    ),
    "qwen3_5_text": Family(
        _HYBRID_SHAPE, hybrid=True, mtp_field="mtp_num_hidden_layers", own_fields="mtp_use_dedicated_embeddings"
    ),
    "qwen3_5_moe_text": Family(
        _HYBRID_SHAPE,
        experts=_QWEN_SHARED,
        hybrid=True,
        mtp_field="mtp_num_hidden_layers",
        own_fields=f"{_QWEN_SPARSE} mtp_use_dedicated_embeddings",
    ),
    "deepseek_v2": Family(
        latent=True,
        experts=ExpertFields("n_routed_experts", "num_experts_per_tok", "moe_intermediate_size", "n_shared_experts"),
        own_fields="first_k_dense_replace moe_layer_freq",
    ),
    "deepseek_v3": _DEEPSEEK,
    "kimi_k2": _DEEPSEEK,
    "glm4_moe_lite": _DEEPSEEK,
    "glm4_moe": Family(
        {"qk_norm": False, "output_bias": False},
        experts=_DEEPSEEK_EXPERTS,
        mtp_field="num_nextn_predict_layers",
        mtp_tables=2,
        own_fields="first_k_dense_replace moe_layer_freq use_qk_norm",
    ),
    "minimax_m2": Family(
        {"qk_norm_full": True},
        experts=ExpertFields("num_local_experts", "num_experts_per_tok", "intermediate_size", router_vectors=1),
        own_fields="attn_type_list use_qk_norm qk_norm_type use_routing_bias use_mtp num_mtp_modules"
        " mtp_transformer_layers shared_intermediate_size mlp_intermediate_size shared_moe_mode"
        " layernorm_full_attention_beta layernorm_linear_attention_beta layernorm_mlp_beta",
    ),
    "gpt_oss": Family(
        {"qkv_bias": True, "output_bias": True, "attention_sinks": True},
        window="pattern",
        pattern=2,
        experts=ExpertFields(
            "num_local_experts", "num_experts_per_tok", "intermediate_size", router_vectors=1, expert_bias=True
        ),
        own_fields="experts_per_token",
    ),
    "llama4_text": Family(
        window="chunks",
        pattern=4,
        experts=ExpertFields(
            "num_local_experts",
            "num_experts_per_tok",
            "intermediate_size",
            shared_size="intermediate_size",
            dense_size="intermediate_size_mlp",
        ),
        own_fields="interleave_moe_layer_step attention_chunk_size no_rope_layers no_rope_layer_interval use_qk_norm"
        " moe_layers for_llm_compressor",
    ),
}
#: Files that wrap a language model: the family of the part that speaks, where its own ``model_type`` does not say.
WRAPPED = {
    "gemma3": "gemma3_text",
    "gemma4": "gemma4_text",
    "mistral3": "mistral",
    "llama4": "llama4_text",
    "qwen3_5": "qwen3_5_text",
    "qwen3_5_moe": "qwen3_5_moe_text",
    "kimi_k25": "kimi_k2",
}
