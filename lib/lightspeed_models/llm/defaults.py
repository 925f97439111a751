"""What a config.json may leave out, by architecture.

Source: the configuration classes of huggingface/transformers 5.24. A key that is null is not left
out; of a key that is not here, and that no family has a default of, a config.json is refused.
"""

from typing import Any

_V3 = {"q_lora_rank": 1536, "n_shared_experts": 1, "first_k_dense_replace": 3}
_QWEN_VL = {"num_key_value_heads": 32}
DEFAULTS: dict[str, dict[str, Any]] = {
    "Gemma4ForCausalLM": {"hidden_size_per_layer_input": 256},
    "Gemma4ForConditionalGeneration": {"hidden_size_per_layer_input": 256},
    "DeepseekV2ForCausalLM": {"q_lora_rank": 1536, "n_shared_experts": 2},
    "DeepseekV3ForCausalLM": _V3,
    "DeepseekV32ForCausalLM": _V3,
    "DeepseekV4ForCausalLM": {"n_shared_experts": 1, "num_hash_layers": 3},
    "Ernie4_5ForCausalLM": {"num_key_value_heads": 2},
    "Ernie4_5_MoeForCausalLM": {
        "num_key_value_heads": 4, "moe_num_shared_experts": 2, "moe_layer_start_index": 1,
    },
    "Exaone4ForCausalLM": {"num_key_value_heads": 32},
    "GPTNeoXForCausalLM": {"attention_bias": True},
    "GemmaForCausalLM": {"num_key_value_heads": 16},
    "Gemma3ForCausalLM": {"num_attention_heads": 8},
    "Gemma3ForConditionalGeneration": {"num_attention_heads": 8, "vocab_size": 262208},
    "GlmForCausalLM": {"num_key_value_heads": 2, "attention_bias": True},
    "Glm4ForCausalLM": {"num_key_value_heads": 2, "attention_bias": True},
    "Glm4vForConditionalGeneration": {"num_key_value_heads": 2, "attention_bias": True},
    "Glm4MoeLiteForCausalLM": {
        "q_lora_rank": 768, "n_shared_experts": 1, "first_k_dense_replace": 1,
    },
    "Glm4MoeForCausalLM": {
        "num_key_value_heads": 8, "n_shared_experts": 1, "first_k_dense_replace": 1,
    },
    "GlmMoeDsaForCausalLM": _V3 | {"q_lora_rank": 2048},
    "KimiK2ForCausalLM": _V3,
    "KimiK25ForConditionalGeneration": _V3,
    "MiniMaxM2ForCausalLM": {"num_key_value_heads": 8, "head_dim": 128},
    "NemotronHForCausalLM": {"n_shared_experts": 1},
    "PhiMoEForCausalLM": {"num_key_value_heads": 8},
    "PhimoeForCausalLM": {"num_key_value_heads": 8},
    "Qwen2ForCausalLM": _QWEN_VL,
    "Qwen2MoeForCausalLM": {
        "num_key_value_heads": 16, "shared_expert_intermediate_size": 5632,
    },
    "Qwen3ForCausalLM": _QWEN_VL,
    "Qwen3NextForCausalLM": {"shared_expert_intermediate_size": 512},
    "Qwen3VLForConditionalGeneration": _QWEN_VL,
    "Qwen3_5ForCausalLM": {"num_key_value_heads": 4},
    "Qwen3_5ForConditionalGeneration": {"num_key_value_heads": 4},
    "Qwen3_5MoeForCausalLM": {"shared_expert_intermediate_size": 512},
    "Qwen3_5MoeForConditionalGeneration": {"shared_expert_intermediate_size": 512},
    "SeedOssForCausalLM": {"num_key_value_heads": 8, "attention_bias": True},
    "SmolLM3ForCausalLM": {"num_key_value_heads": 4, "tie_word_embeddings": True},
    "StableLmForCausalLM": {"num_key_value_heads": 32},
    "Starcoder2ForCausalLM": {"num_key_value_heads": 2, "use_bias": True},
    "ExaoneMoeForCausalLM": {"num_shared_experts": 1, "first_k_dense_replace": 1},
    "SolarOpenForCausalLM": {"n_shared_experts": 1, "num_key_value_heads": 8, "head_dim": 128},
    "BambaForCausalLM": {"num_key_value_heads": 8},
    "FalconH1ForCausalLM": {"num_key_value_heads": 8},
    "Lfm2MoeForCausalLM": {"num_dense_layers": 2},
    "KimiLinearForCausalLM": {"num_shared_experts": 1, "first_k_dense_replace": 1},
}  # fmt: skip
