"""The keys of a config.json: each is asked for by a family, known to be harmless, or refused."""

import re
from collections.abc import Mapping
from typing import Any

# Keys that say how a model is trained, sampled, stored or positioned: none changes a count.
_HARMLESS = re.compile(
    r"""_name_or_path|transformers_version|.*auto_map|architectures|model_type|use_cache|(torch_)?dtype
    |.*token_id|.*_token_index|.*dropout|.*_pdrop|.*drop_rate|initializer_range|.*init_.*|.*_eps(ilon)?
    |(rms_)?norm_eps|hidden_act.*|activation.*|mlp_hidden_act|mamba_hidden_act|hidden_activation
    |output_.*|return_dict.*|router_.*|.*aux_loss.*|seq_aux|moe_router_(dtype|scaling_factor)
    |.*rope.*|rotary.*|rope|partial_rotary.*|max_position_embeddings|n_positions|n_ctx|seq_length
    |model_max_length|max_sequence_length|original_max_position_embeddings|initial_context_length
    |norm_topk_prob|n_group|topk_group|topk_method|scoring_func|routed_scaling_factor|ep_size
    |pretraining_tp|quantization_config|.*softcap.*|logit_.*|logits_.*|.*_multiplier|query_pre_attn_scalar
    |use_bidirectional_attention|attn_implementation|_attn_.*|attention_value_scale|swiglu_.*
    |rescale_prenorm_residual|residual_in_fp32|num_logits_to_keep
    |time_step_.*|chunk_size|mamba_chunk_size|mamba_ssm.*dtype|use_mamba_kernels|expand|mamba_expand
    |bad_words_ids|begin_suppress_tokens|suppress_tokens|id2label|label2id|num_labels|is_decoder
    |torchscript|use_bfloat16|task_specific.*
    |do_sample|early_stopping|max_length|min_length|num_beams|num_beam_groups|num_return_sequences
    |repetition_penalty|length_penalty|diversity_penalty|temperature|top_[kp]|typical_p|no_repeat.*
    |encoder_no_repeat.*|remove_invalid_values|forced_.*|finetuning_task|prefix|problem_type
    |chunk_size_feed_forward|exponential_decay.*|tf_legacy_loss
    |tokenizer_class|gradient_checkpointing|reorder_and_upcast_attn|scale_attn.*
    |summary_.*|apply_residual_connection_post_layernorm|slow_but_exact|masked_softmax_fusion
    |attention_softmax_in_fp32|offset_alibi|skip_bias_add.*|unk_token_id|cache_implementation
    |use_parallel_.*|attn_temperature_tuning|floor_scale|attn_scale|clip_qkv
    |no_rope_layer_interval|no_rope_layers
    |indexer_rope_interleave|index_share_for_mtp_iteration
    |vocab_size_per_layer_input|time_step_rank|qk_head_dim|layernorm_.*_(alpha|beta)
    |postnorm|shared_moe_mode|moe_shared_expert_overlap|use_grouped_topk|image_.*|video_.*|vision_.*
    |audio_.*|.*_soft_tokens.*|boa_.*|eoa_.*|boi_.*|eoi_.*|ignore_index|media_placeholder.*
    |use_unified_vision_chunk|projector_.*|multimodal_.*|spatial_merge_size|interleave_mrope
    |special_tokens.*|attention_probs.*|z_loss_weight|beta_(fast|slow)|mscale.*
    |scale_emb|scale_depth|dim_model_base|context_window_size|prefill_chunk_size|attention_sink_size
    |predict_special_tokens|is_llama_config|transformers\.js_config|full_attn_mod|interpolate_factor
    |scale_attention_softmax.*|mm_tokens.*|unsloth_.*|_from_model_config|_commit_hash
    |_experts_impl.*|.*_attn_(alpha|beta)_factor|mlp_(alpha|beta)_factor|tensor_parallel_size
    |qkv_layout|checkpoint.*|neftune.*|use_flash_attn.*
    """,
    re.X,
)
# Draft layers that a server may use to guess tokens ahead; nobody counts them as the model.
_DRAFT = ("num_nextn_predict_layers", "num_mtp_modules", "num_mtp_layers", "use_mtp",
          "mtp_transformer_layers", "mtp_num_hidden_layers", "mtp_use_dedicated_embeddings",
          "mtp_layers_block_type",
          "mtp_hybrid_override_pattern")  # fmt: skip
TOWERS = ("vision_config", "audio_config")


class ConfigRefused(ValueError):
    """A config.json that can't be counted; `refused` says why, key by key."""

    def __init__(self, reasons: list[str]) -> None:
        self.refused = reasons
        super().__init__("; ".join(reasons))


class Keys:
    """The keys of a config, each of which is asked for, known or refused."""

    def __init__(
        self, config: Mapping[str, Any], defaults: Mapping[str, Any] | None = None
    ) -> None:
        """`defaults` are a family's values of keys that a config.json leaves out."""
        self.config = config
        self.defaults = defaults or {}
        self.asked: set[str] = set()
        self.assumed: list[str] = []
        self.refused: list[str] = []

    def __call__(self, *names: str, default: Any = ...) -> Any:
        """The value of these keys, of which one is there; else the default, which is told."""
        self.asked.update(names)
        there = {name: self.config[name] for name in names if self.config.get(name) is not None}
        values = list(there.values())
        if any(value != values[0] for value in values):
            both = " and ".join(f"{key} = {each!r}" for key, each in there.items())
            raise ConfigRefused([f"{both}: two names for one setting, with two values"])
        if values:
            return values[0]
        for name in names:
            if name in self.defaults and name not in self.config:
                default = self.defaults[name]
        if default is ...:
            raise ConfigRefused([f"{names[0]} is missing, and its default is not known"])
        if default:
            self.assumed.append(f"{names[0]} = {default}, as this family has it")
        return default

    def whole(self, *names: str, default: Any = ..., low: int = 1, high: int = 10**9) -> int:
        """A whole number from `low` to `high`."""
        value = self(*names, default=default)
        if isinstance(value, bool) or not isinstance(value, int) or value < low:
            raise ConfigRefused(
                [f"{names[0]} = {value!r}: expected a whole number of at least {low}"]
            )
        if value > high:
            raise ConfigRefused(
                [f"{names[0]} = {value:,}: expected a whole number of at most {high:,}"]
            )
        return value

    def size(self, *names: str) -> int:
        """A whole number, 0 where the key is missing: the part is not there."""
        return self.whole(*names, default=0, low=0)

    def maybe(self, *names: str) -> int:
        """A whole number of at least 1; where the key is missing or null, 0 for "not said"."""
        there = any(self.config.get(name) is not None for name in names)
        absent = [name for name in names if name not in self.config and self.defaults.get(name)]
        if there or absent:
            return self.whole(*names)
        self.asked.update(names)
        return 0

    def wholes(self, *names: str) -> Any:
        """Whole numbers that have to be there."""
        return tuple(self.whole(name) for name in names)

    def flag(self, name: str, default: bool = False) -> bool:
        """True or false; what is off by default is not told."""
        default = self.defaults.get(name, default)
        null = default and name in self.config and self.config[name] is None
        value = None if null else self(name, default=default)
        if not isinstance(value, bool):
            raise ConfigRefused([f"{name} = {value!r}: expected true or false"])
        return value

    def list(
        self, name: str, length: int, default: Any = None, choices: tuple[Any, ...] = ()
    ) -> list[Any]:
        """One entry a layer, each of them `choices`; a list of more is told."""
        self.asked.add(name)
        value = self.config.get(name)
        if (value is None or value == []) and default is not None:
            return list(default)
        if not isinstance(value, list) or len(value) < length:
            raise ConfigRefused(
                [f"{name}: expected a list with an entry for each of {length} layers"]
            )
        if len(value) > length:
            self.assumed.append(f"{name}: the first {length} of its {len(value)} entries")
        for entry in value[:length]:
            if choices and entry not in choices:
                names = ", ".join(map(str, choices))
                raise ConfigRefused([f"{name} has {entry!r}: known are {names}"])
        return value[:length]

    def layers(self, name: str, count: int) -> set[int] | None:
        """The layers that a list names, counted from 0; None where the key is missing."""
        self.asked.add(name)
        value = self.config.get(name)
        if value is None:
            return None
        if not isinstance(value, list) or any(type(i) is not int or i < 0 for i in value):
            raise ConfigRefused(
                [f"{name} = {value!r}: expected a list of layers, from 0 to {count - 1}"]
            )
        return set(value)

    def only(self, name: str, *choices: Any) -> None:
        """Refuse a key whose other values change what is counted."""
        self.asked.add(name)
        value = self.config.get(name)
        if value is not None and value not in choices:
            self.refused.append(f"{name} = {value!r}: known is {' or '.join(map(repr, choices))}")

    def end(self) -> None:
        """Refuse every key that nobody asked for, unless it is harmless or off."""
        for name in _DRAFT:
            if name not in self.asked and self.config.get(name):
                self.assumed.append(f"{name}: draft layers are not counted")
                self.asked.add(name)
        if isinstance(how := self.config.get("quantization_config"), Mapping):
            method = how.get("quant_method") or how.get("quant_algo") or "its method is not said"
            self.assumed.append(f"quantization_config ({method}): counted before quantizing")
        if isinstance(self.config.get("audio_config"), Mapping):
            self.assumed.append("audio_config: the tower that hears is not counted")
        for name, value in self.config.items():
            if name in self.asked or name in TOWERS or _HARMLESS.fullmatch(name):
                continue
            if value in (None, False, [], {}, "", 0):
                continue
            text = repr(value) if len(repr(value)) < 60 else f"{repr(value)[:57]}..."
            self.refused.append(f"{name} = {text}: not known here; it may change the count")
        if self.refused:
            raise ConfigRefused(self.refused)
