"""Families whose layers keep a state, or a few tokens, in place of all keys and values.

Sources: the public configuration and modelling code of each architecture (huggingface/transformers
5.24, and moonshotai's for the keys of Kimi-Linear).
"""

from collections.abc import Callable, Mapping
from dataclasses import replace

from lightspeed_models.llm.decoder import Decoder, Experts, Layer, Mlp
from lightspeed_models.llm.keys import ConfigRefused, Keys
from lightspeed_models.llm.mixers import (
    DeltaNet,
    LatentAttention,
    Mamba,
    Mixer,
    SelectiveScan,
    ShortConvolution,
)
from lightspeed_models.llm.parts import alike, attention, decoder, shape

_STATE = ("mamba", "linear_attention")  # one kind of layer, under its old name and its new one
_FULL = ("attention", "full_attention")


def _mamba2(k: Keys, width: int, norm: bool = True) -> Mamba:
    """Mamba-2 by the keys that start with `mamba_`."""
    k.only("mamba_proj_bias", False)
    heads, inner = k.whole("mamba_n_heads"), k.size("mamba_d_ssm")
    inner = inner or k.whole("mamba_expand", default=2) * width
    each = inner // heads
    k.only("mamba_d_head", each, "auto")
    width_of_state, groups, kernel = k.wholes("mamba_d_state", "mamba_n_groups", "mamba_d_conv")
    return Mamba(
        width, heads, each, width_of_state, groups, kernel, k.flag("mamba_conv_bias", True), norm
    )


def _bamba(k: Keys) -> Decoder:
    width, count, _ = shape(k)
    for name in ("attention_bias", "mlp_bias"):
        k.only(name, False)
    k.asked.update({"z_loss_coefficient", "time_step_limit", "attn_rotary_emb"})
    full, state = attention(k, width), _mamba2(k, width)
    plain = Mlp(width, k.whole("intermediate_size"))
    seeing = k.layers("attn_layer_indices", count) or set()
    layers = [Layer(full if i in seeing else state, plain, 2 * width) for i in range(count)]
    return decoder(k, layers)


def _falcon_h1(k: Keys) -> Decoder:
    """Attention and Mamba-2 beside each other in each layer, here one after the other."""
    width, count, _ = shape(k)
    for name in ("attention_bias", "mlp_bias", "projectors_bias", "attn_layer_indices"):
        k.only(name, False)
    names = ("mlp_multipliers", "ssm_multipliers", "mlp_expansion_factor", "mamba_use_mlp")
    k.asked.update({*names, "mamba_norm_before_gate", "time_step_limit"})
    state = Layer(_mamba2(k, width, k.flag("mamba_rms_norm")), None, 0)
    full = Layer(attention(k, width), Mlp(width, k.whole("intermediate_size")), 2 * width)
    return decoder(k, [state, full] * count)


def _granite_hybrid(k: Keys) -> Decoder:
    width, count, _ = shape(k)
    k.only("attention_bias", False)
    names = ("position_embedding_type", "normalization_function", "time_step_limit", "init_method")
    k.asked.update(names)
    layer_names = ("mamba", "linear_attention", "attention", "full_attention")
    name = "layers_block_type" if k.config.get("layers_block_type") else "layer_types"
    kinds = k.list(name, count, ["mamba"] * count, layer_names)
    parts: dict[bool, Mixer] = {}
    if set(kinds) & set(_FULL):
        parts[False] = attention(k, width)
    if set(kinds) & set(_STATE):
        parts[True] = _mamba2(k, width)
    # Of a kind that no layer has, the sizes say nothing.
    unused = ("n_heads", "n_groups", "d_state", "d_head", "d_conv", "conv_bias", "proj_bias")
    k.asked.update({f"mamba_{name}" for name in unused})
    k.asked.update({"num_attention_heads", "num_key_value_heads"})
    shared = Mlp(width, k.whole("shared_intermediate_size", default=1024))
    mlp: Mlp | Experts = shared
    if experts := k.whole("num_local_experts", default=8, low=0):
        sizes = k.whole("intermediate_size"), experts, k.whole("num_experts_per_tok", default=2)
        mlp = Experts(width, *sizes, shared=shared)
    k.asked.update({"intermediate_size", "num_experts_per_tok"})
    return decoder(k, [Layer(parts[kind in _STATE], mlp, 2 * width) for kind in kinds])


def _jamba(k: Keys) -> Decoder:
    """One layer of attention in eight, experts in every other layer."""
    width, count, _ = shape(k)
    k.only("mamba_proj_bias", False)
    k.only("mamba_inner_layernorms", True)
    k.asked.update({"use_mambapy", "use_associative_scan", "calc_logits_for_entire_prompt"})
    inner = k.whole("mamba_expand", default=2) * width
    rank = k.config.get("mamba_dt_rank")
    k.asked.add("mamba_dt_rank")
    rank = k.whole("mamba_dt_rank") if rank not in (None, "auto") else -(-width // 16)
    state_width, kernel = k.whole("mamba_d_state", default=16), k.whole("mamba_d_conv", default=4)
    bias = k.flag("mamba_conv_bias", True)
    state = SelectiveScan(width, inner, state_width, rank, kernel, bias, rank + 2 * state_width)
    full, hidden = attention(k, width, kv=8), k.whole("intermediate_size")
    experts, active = k.whole("num_experts", default=16), k.whole("num_experts_per_tok", default=2)

    def at(kind: str, i: int, period: int, offset: int) -> bool:
        each = k.whole(f"{kind}_layer_period", default=period)
        return i % each == k.whole(f"{kind}_layer_offset", default=offset, low=0)

    plain = Mlp(width, hidden)
    sparse = Experts(width, hidden, experts, active) if experts > 1 else plain
    layers = [
        Layer(
            full if at("attn", i, 8, 4) else state,
            sparse if at("expert", i, 2, 1) else plain,
            2 * width,
        )
        for i in range(count)
    ]
    return decoder(k, layers)


def _mamba1(k: Keys) -> Decoder:
    width, count, _ = shape(k)
    k.only("use_bias", False)
    k.only("mixer_rms_eps", 0, 1e-6)
    k.asked.update({"d_model", "d_inner", "n_layer", "use_mambapy", "use_associative_scan"})
    k.asked.update({"ssm_cfg", "rms_norm", "fused_add_norm", "pad_vocab_size_multiple"})
    inner = k.maybe("intermediate_size") or k.whole("expand", default=2) * width
    rank = k.config.get("time_step_rank")
    k.asked.add("time_step_rank")
    rank = k.whole("time_step_rank") if rank not in (None, "auto") else -(-width // 16)
    state_width, kernel = k.whole("state_size", default=16), k.whole("conv_kernel", default=4)
    mixer = SelectiveScan(width, inner, state_width, rank, kernel, k.flag("use_conv_bias", True))
    return decoder(k, [Layer(mixer, None, width)] * count, tied=True)


def _mamba2_alone(k: Keys) -> Decoder:
    width, count, _ = shape(k)
    k.only("use_bias", False)
    k.only("norm_before_gate", True, False)
    k.asked.update({"time_step_limit", "rms_norm"})
    heads, each = k.wholes("num_heads", "head_dim")
    if heads * each != (inner := k.whole("expand", default=2) * width):
        words = f"num_heads × head_dim = {heads * each}: expand × hidden_size = {inner}"
        raise ConfigRefused([words])
    k.only("intermediate_size", inner)
    states, groups, kernel = k.wholes("state_size", "n_groups", "conv_kernel")
    bias = k.flag("use_conv_bias", True)
    mixer = Mamba(width, heads, each, states, groups, kernel, bias)
    return decoder(k, [Layer(mixer, None, width)] * count)


def _lfm2(k: Keys) -> Decoder:
    """Short convolutions, with attention between them."""
    width, count, _ = shape(k)
    k.only("conv_bias", False)
    names = ("block_dim", "block_mlp_init_scale", "block_out_init_scale", "block_use_swiglu")
    k.asked.update({*names, "block_use_xavier_init", "conv_dim", "conv_dim_out", "num_heads"})
    k.asked.update(
        {"conv_use_xavier_init", "full_attn_idxs", "theta", "tie_embedding", "use_pos_enc"}
    )
    seeing = k.layers("full_attn_idxs", count)
    seeing = set(range(count)) if seeing is None else seeing
    kinds = ["full_attention" if i in seeing else "conv" for i in range(count)]
    kinds = k.list("layer_types", count, kinds, ("full_attention", "conv"))
    full = attention(k, width, norm="head", kv=8)
    short = ShortConvolution(width, k.whole("conv_L_cache", default=3))
    # Where a file names the size twice, the one of the block is used.
    hidden = k.maybe("block_ff_dim") or k.whole("intermediate_size")
    k.asked.add("intermediate_size")
    if experts := k.size("num_experts"):
        dense, bias = k.size("num_dense_layers"), k.flag("use_expert_bias", True)
        sizes = k.whole("moe_intermediate_size"), experts, k.whole("num_experts_per_tok")
        sparse = Experts(width, *sizes, router_vectors=experts * bias)
        mlps = [Mlp(width, hidden) if i < dense else sparse for i in range(count)]
    else:
        if k.flag("block_auto_adjust_ff_dim", True):
            times = k("block_ffn_dim_multiplier", default=1.0)
            if type(times) not in (int, float) or not 0 < times < 1000:
                raise ConfigRefused(
                    [f"block_ffn_dim_multiplier = {times!r}: expected a number above 0"]
                )
            each = k.whole("block_multiple_of", default=256)
            hidden = -(-int(times * int(2 * hidden / 3)) // each) * each
        mlps = [Mlp(width, hidden)] * count
    k.asked.update({"block_ffn_dim_multiplier", "block_multiple_of"})
    layers = [
        Layer(full if kind == "full_attention" else short, mlp, 2 * width)
        for kind, mlp in zip(kinds, mlps, strict=True)
    ]
    if k.config.get("tie_word_embeddings") is None and "tie_embedding" in k.config:
        k.config = {**k.config, "tie_word_embeddings": k.flag("tie_embedding")}
    return decoder(k, layers, tied=True)


def _kimi_linear(k: Keys) -> Decoder:
    """Three layers of a gated delta rule to one of latent attention, and experts."""
    width, count, _ = shape(k)
    k.only("q_lora_rank")
    k.only("attention_bias", False)
    k.only("moe_layer_freq", 1)
    k.only("mla_use_nope", True)
    names = ("head_dim", "num_key_value_heads", "num_expert_group", "moe_renormalize")
    k.asked.update({*names, "moe_router_activation_func", "use_grouped_topk"})
    linear = k.config.get("linear_attn_config")
    k.asked.add("linear_attn_config")
    if isinstance(linear, Mapping):
        own = Keys(linear)
        heads, each, kernel = own.wholes("num_heads", "head_dim", "short_conv_kernel_size")
        seeing = own.layers("full_attn_layers", count + 1) or set()
        own.asked.add("kda_layers")
        own.end()
        kinds = [_FULL[1] if i + 1 in seeing else _STATE[1] for i in range(count)]
    else:
        heads, each = k.wholes("linear_num_heads", "linear_head_dim")
        kernel, kinds = k.whole("linear_conv_kernel_dim"), None
    kinds = k.list("layer_types", count, kinds, (_FULL[1], _STATE[1]))
    delta = DeltaNet(width, heads, heads, each, each, kernel, gate_rank=each)
    sizes = ("kv_lora_rank", "qk_rope_head_dim", "qk_nope_head_dim", "v_head_dim")
    latent = LatentAttention(width, *k.wholes("num_attention_heads", *sizes))
    hidden, shared = k.whole("moe_intermediate_size"), k.size("num_shared_experts")
    experts = k.whole("num_experts")
    sparse = Experts(
        width, hidden, experts, k.whole("num_experts_per_token", "num_experts_per_tok"),
        shared=Mlp(width, shared * hidden) if shared else None, router_vectors=experts,
    )  # fmt: skip
    first, plain = k.size("first_k_dense_replace"), Mlp(width, k.whole("intermediate_size"))
    mlps = ["dense" if i < first else "sparse" for i in range(count)]
    mlps = k.list("mlp_layer_types", count, mlps, ("dense", "sparse"))
    layers = [
        Layer(delta if kind in _STATE else latent, plain if mlp == "dense" else sparse, 2 * width)
        for kind, mlp in zip(kinds, mlps, strict=True)
    ]
    return decoder(k, layers)


def _nemotron_h(k: Keys) -> Decoder:
    """One mixer or one MLP a layer, by a pattern: M Mamba-2, * attention, - MLP, E experts."""
    width, vocabulary = k.whole("hidden_size"), k.whole("vocab_size")
    names = {"mamba": "M", "attention": "*", "mlp": "-", "moe": "E"}
    pattern = k("hybrid_override_pattern", default="")
    if not isinstance(pattern, str):
        raise ConfigRefused([f"hybrid_override_pattern = {pattern!r}: expected letters of M * - E"])
    if not pattern:
        each = k.config.get("layers_block_type")
        length = k.whole("num_hidden_layers", default=len(each) if isinstance(each, list) else 1)
        kinds = k.list("layers_block_type", length, choices=tuple(names))
        pattern = "".join(names[kind] for kind in kinds)
    blocks = k.config.get("layers_block_type")
    if isinstance(blocks, list) and [names.get(str(kind)) for kind in blocks] not in (
        [],
        [*pattern],
    ):
        words = "layers_block_type and hybrid_override_pattern: two names, with two values"
        raise ConfigRefused([words])
    count = k.whole("num_hidden_layers", default=len(pattern))
    for letter in set(pattern) - set("M*-E"):
        raise ConfigRefused([f"hybrid_override_pattern has {letter!r}: expected M * - E"])
    if count != len(pattern):
        raise ConfigRefused([f"hybrid_override_pattern has {len(pattern)} of {count} layers"])
    for name in ("attention_bias", "mlp_bias", "mamba_proj_bias", "use_bias"):
        k.only(name, False)
    k.only("sliding_window", 0)
    if k.size("attention_head_dim") and not k.config.get("head_dim"):
        k.config = {**k.config, "head_dim": k.size("attention_head_dim")}
    parts: dict[str, tuple[Mixer | None, Mlp | Experts | None]] = {}
    for letter in dict.fromkeys(pattern):
        if letter == "M":
            sizes = ("mamba_num_heads", "mamba_head_dim", "ssm_state_size", "n_groups")
            mamba = Mamba(width, *k.wholes(*sizes, "conv_kernel"))
            bias = k.flag("use_conv_bias", True)
            parts[letter] = replace(mamba, convolution_bias=bias), None
        elif letter == "*":
            parts[letter] = attention(k, width, kv=8, head_width=128), None
        elif letter == "-":
            parts[letter] = None, Mlp(width, k.whole("intermediate_size"), 2)
        else:
            experts, beside = k.whole("n_routed_experts"), 0
            k.only("n_shared_experts", 0, 1)
            if k.size("n_shared_experts"):
                beside = k.whole("moe_shared_expert_intermediate_size", low=0)
            parts[letter] = (
                None,
                Experts(
                    width,
                    k.whole("moe_intermediate_size"),
                    experts,
                    k.whole("num_experts_per_tok"),
                    2,
                    shared=Mlp(width, beside, 2) if beside else None,
                    latent=k.size("moe_latent_size"),
                    router_vectors=experts,
                ),
            )
    # Of a kind that the pattern leaves out, the sizes say nothing.
    k.asked.update({"intermediate_size", "moe_intermediate_size", "moe_latent_size",
                    "moe_shared_expert_intermediate_size", "n_routed_experts", "n_shared_experts",
                    "num_experts_per_tok", "layers_block_type", "num_attention_heads",
                    "num_key_value_heads", "head_dim", "mamba_num_heads", "mamba_head_dim",
                    "ssm_state_size", "n_groups", "conv_kernel"})  # fmt: skip
    layers = alike([Layer(*parts[letter], width) for letter in pattern])
    tied = k.flag("tie_word_embeddings")
    return Decoder(width, vocabulary, tied, layers, width)


def _olmo_hybrid(k: Keys) -> Decoder:
    width, count, _ = shape(k)
    bias, plain = k.flag("attention_bias"), Mlp(width, k.whole("intermediate_size"))
    k.asked.update({f"linear_{x}" for x in ("a_log_min", "a_log_max", "dt_min", "dt_max")})
    k.asked.update({"linear_dt_init_floor", "linear_allow_neg_eigval"})
    heads = ("linear_num_key_heads", "linear_num_value_heads")
    sizes = (*heads, "linear_key_head_dim", "linear_value_head_dim", "linear_conv_kernel_dim")
    delta = DeltaNet(width, *k.wholes(*sizes))
    full = attention(k, width, norm="whole", qkv_bias=bias, out_bias=bias)
    kinds = [_STATE[1] if (i + 1) % 4 and i + 1 < count else _FULL[1] for i in range(count)]
    kinds = k.list("layer_types", count, kinds, (_FULL[1], _STATE[1]))
    layers = [Layer(delta if kind in _STATE else full, plain, 2 * width) for kind in kinds]
    return decoder(k, layers)


HYBRIDS: dict[str, Callable[[Keys], Decoder]] = {
    "BambaForCausalLM": _bamba,
    "FalconH1ForCausalLM": _falcon_h1,
    "FalconMambaForCausalLM": _mamba1,
    "GraniteMoeHybridForCausalLM": _granite_hybrid,
    "JambaForCausalLM": _jamba,
    "KimiLinearForCausalLM": _kimi_linear,
    "Lfm2ForCausalLM": _lfm2,
    "Lfm2MoeForCausalLM": _lfm2,
    "Mamba2ForCausalLM": _mamba2_alone,
    "MambaForCausalLM": _mamba1,
    "NemotronHForCausalLM": _nemotron_h,
    "OlmoHybridForCausalLM": _olmo_hybrid,
}
