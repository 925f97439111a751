"""Families that are Llama's, Mixtral's or DeepSeek's but for a few keys.

Sources: the public configuration and modelling code of each architecture (huggingface/transformers;
InternLM's, Baichuan's, Qwen's, MiniCPM's, Orion's, EXAONE's and Ling's own repositories).
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from lightspeed_models.llm.decoder import Decoder, Experts, Layer, Mlp
from lightspeed_models.llm.keys import ConfigRefused, Keys
from lightspeed_models.llm.mixers import Attention
from lightspeed_models.llm.parts import (
    attention,
    decoder,
    dense,
    no_window,
    one_window,
    shape,
    sparse,
    windows,
)


def _apertus(k: Keys) -> Decoder:
    """Two matrices behind an activation with two parameters of its own."""
    width, count, _ = shape(k)
    k.only("qk_norm", True)
    k.only("post_norm", False)
    k.only("mlp_bias", False)
    k.only("hidden_act", "xielu")
    bias = k.flag("attention_bias")
    mixer = attention(k, width, qkv_bias=bias, out_bias=bias, norm="head")
    layer = Layer(mixer, Mlp(width, k.whole("intermediate_size"), 2), 2 * width + 2)
    return decoder(k, [layer] * count)


def _ernie_moe(k: Keys) -> Decoder:
    """Experts in each `moe_layer_interval`-th layer between a first and a last."""
    width, count, _ = shape(k)
    k.only("use_bias", False)
    k.asked.update({"moe_norm_min", "moe_capacity", "moe_gate", "moe_use_aux_free"})
    hidden, shared = k.whole("moe_intermediate_size"), k.size("moe_num_shared_experts")
    experts = k.whole("moe_num_experts")
    sparse = Experts(
        width,
        hidden,
        experts,
        k.whole("moe_k", "num_experts_per_tok"),
        shared=Mlp(width, shared * hidden) if shared else None,
        router_vectors=experts,
    )
    plain, mixer = Mlp(width, k.whole("intermediate_size")), attention(k, width)
    first, each = k.size("moe_layer_start_index"), k.whole("moe_layer_interval", default=1)
    last = k.whole("moe_layer_end_index", default=-1, low=-1)
    last = count - 1 if last == -1 else last
    on = [(i + 1) % each == 0 and first <= i <= last for i in range(count)]
    return decoder(k, [Layer(mixer, sparse if x else plain, 2 * width) for x in on], tied=True)


def _exaone4_windows(k: Keys, layers: int) -> list[int]:
    k.asked.update({"sliding_window_pattern", "sliding_window"})
    if k.size("sliding_window") and k.config.get("layer_types") is None:
        raise ConfigRefused(["layer_types is missing, and sliding_window does not say which"])
    return windows(k, layers)


def _stablelm(k: Keys) -> Decoder:
    """Norms with biases; beside each other, attention and MLP share one."""
    width, count, _ = shape(k)
    norm = "whole" if k.flag("qk_layernorm") else ""
    mixer = attention(k, width, qkv_bias=k.flag("use_qkv_bias"), norm=norm)
    norms = 2 * width * (1 if k.flag("use_parallel_residual") else 2)
    no_window(k, count)
    layer = Layer(mixer, Mlp(width, k.whole("intermediate_size")), norms)
    return decoder(k, [layer] * count, extras=2 * width)


def _cohere2(k: Keys) -> Decoder:
    """Cohere's, but three layers in four see a window."""
    width, count, _ = shape(k)
    k.only("attention_bias", False)
    k.only("use_qk_norm", False)
    k.asked.update({"order_of_interleaved_layers", "layer_switch", "position_embedding_type"})
    k.asked.update({"use_embedding_sharing", "use_gated_activation", "use_parallel_embedding"})
    k.asked.update({"use_parallel_block"})
    each = k.whole("sliding_window_pattern", "_sliding_window_pattern", default=4)
    kinds = ["full_attention" if (i + 1) % each == 0 else "sliding_attention" for i in range(count)]
    plain = Mlp(width, k.whole("intermediate_size"))
    spans = windows(k, count, default=kinds)
    return decoder(
        k, [Layer(attention(k, width, window=span), plain, width) for span in spans], tied=True
    )


def _routed_plain(
    *, norm: str = "", router_bias: bool = True, every: bool = False,
    spans: Callable[[Keys, int], list[int]] = no_window,
) -> Callable[[Keys], Decoder]:  # fmt: skip
    """Shared and routed experts behind plain attention, the first layers dense; `router_bias`: the
    router adds a bias for each expert. The keys are DeepSeek's, or Ling's.
    """

    def read(k: Keys) -> Decoder:
        width, count, _ = shape(k)
        bias = k.flag("attention_bias") or k.flag("use_qkv_bias")
        out = k.flag("attention_bias") or k.flag("use_bias")
        own = "head" if norm or k.flag("use_qk_norm") else ""
        hidden = k.whole("moe_intermediate_size")
        experts = k.whole("n_routed_experts", "num_experts")
        shared = k.size("n_shared_experts", "num_shared_experts")
        inside = k.maybe("moe_shared_expert_intermediate_size") or shared * hidden
        with_bias = k.flag("moe_router_enable_expert_bias", router_bias)
        sparse = Experts(
            width, hidden, experts, k.whole("num_experts_per_tok"),
            shared=Mlp(width, inside) if shared else None, router_vectors=experts * with_bias,
        )  # fmt: skip
        first = 0 if every else k.size("first_k_dense_replace")
        k.only("moe_layer_freq", 1)
        kinds = ["sparse" if i >= first else "dense" for i in range(count)]
        kinds = k.list("mlp_layer_types", count, kinds, ("dense", "sparse"))
        names = ("norm_head", "norm_softmax", "use_rmsnorm", "score_function", "group_norm_size")
        k.asked.update({*names, "using_split_qkv_in_self_attention", "max_window_layers"})
        k.asked.update({"head_dim", "intermediate_size"})
        plain = Mlp(width, k.whole("intermediate_size")) if "dense" in kinds else sparse
        layers = [
            Layer(
                attention(k, width, window=window, qkv_bias=bias, out_bias=out, norm=own),
                sparse if kind == "sparse" else plain,
                2 * width,
            )
            for kind, window in zip(kinds, spans(k, count), strict=True)
        ]
        return decoder(k, layers)

    return read


def _windows_of(each: int) -> Callable[[Keys, int], list[int]]:
    """The window in all but each so many-th layer, where there is one."""

    def read(k: Keys, layers: int) -> list[int]:
        if k.config.get("layer_types") is not None:
            k.asked.add("sliding_window_pattern")
            return windows(k, layers)
        every = k.whole("sliding_window_pattern", default=each)
        last = "full_attention"
        kinds = [last if (i + 1) % every == 0 else "sliding_attention" for i in range(layers)]
        return windows(k, layers, default=kinds)

    return read


def _qwen_windows_off(k: Keys, layers: int) -> list[int]:
    """Dots': a window is written down, and used where `layer_types` say so."""
    k.asked.update({"sliding_window", "use_sliding_window"})
    return windows(k, layers)


def _hunyuan_keys(k: Keys) -> None:
    """What Tencent's files say beside the sizes: parts that are off, and names of tokens."""
    off = ("use_cla", "use_mla", "mlp_bias", "use_mixed_mlp_moe", "add_classification_head")
    for name in off:
        k.only(name, False)
    k.only("use_qk_norm", True)
    k.asked.update({"cla_share_factor", "dense_list", "pool_type", "class_num", "norm_type"})
    k.asked.update({"attention_head_dim", "org_vocab_size", "mask_init_id", "text_start_id"})
    k.asked.update({"text_end_id", "pad_id", "eos_id", "bos_id", "im_start_id", "im_end_id"})
    k.asked.update({"im_newline_id", "group_limited_greedy", "moe_drop_tokens"})
    k.asked.add("moe_random_routing_dropped_token")


def _hunyuan_dense(k: Keys) -> Decoder:
    _hunyuan_keys(k)
    return dense(norm="head", **_BIASED)(k)


def _hunyuan_moe(k: Keys) -> Decoder:
    """Shared and routed experts of one size; what stands as a list has to have equal entries."""
    width, count, _ = shape(k)
    _hunyuan_keys(k)
    bias = k.flag("attention_bias")
    for name in ("moe_topk", "num_experts", "num_shared_expert", "moe_intermediate_size"):
        value = k.config.get(name)
        if isinstance(value, list) and value and all(one == value[0] for one in value):
            k.config = {**k.config, name: value[0]}
    k.only("num_shared_expert", 1)
    k.only("moe_layer_num_skipped", 0)
    hidden = k.whole("intermediate_size")
    k.only("moe_intermediate_size", hidden)
    sizes = hidden, k.whole("num_experts"), k.whole("moe_topk")
    experts = Experts(width, *sizes, shared=Mlp(width, hidden))
    mixer = attention(k, width, qkv_bias=bias, out_bias=bias, norm="head")
    return decoder(k, [Layer(mixer, experts, 2 * width)] * count)


def _dbrx(k: Keys) -> Decoder:
    width, count, _ = shape(k)
    inside, experts = k("attn_config"), k("ffn_config")
    if not isinstance(inside, dict) or not isinstance(experts, dict):
        raise ConfigRefused(
            ["attn_config and ffn_config: expected objects with the sizes of a layer"]
        )
    attention, mlp = Keys(inside), Keys(experts)
    heads = k.whole("n_heads")
    kv = attention.whole("kv_n_heads")
    if width % heads or heads % kv:
        raise ConfigRefused([f"kv_n_heads = {kv}: expected a divisor of {heads} heads"])
    mixer = Attention(width, heads, kv, width // heads)
    sizes = ("ffn_hidden_size", "moe_num_experts", "moe_top_k")
    mlp.asked.update(
        {"ffn_act_fn", "moe_jitter_eps", "moe_loss_weight", "uniform_expert_assignment"}
    )
    mlp.asked.add("moe_normalize_expert_weights")
    layer = Layer(mixer, Experts(width, *mlp.wholes(*sizes)), 2 * width)
    for keys in (attention, mlp):
        keys.end()
    k.asked.update({"max_seq_len", "emb_pdrop", "resid_pdrop"})
    return decoder(k, [layer] * count)


def _gptj(k: Keys) -> Decoder:
    """One norm for attention and MLP, biases of the MLP and of the logits."""
    width, count, vocabulary = shape(k)
    mlp = Mlp(width, k.maybe("n_inner") or 4 * width, 2, True)
    layer = Layer(attention(k, width), mlp, 2 * width)
    return decoder(k, [layer] * count, extras=2 * width + vocabulary)


def _gpt_bigcode(k: Keys) -> Decoder:
    width, count, _ = shape(k)
    one = k.flag("multi_query", True)
    k.asked.update({"num_key_value_heads", "attention_softmax_in_fp32"})
    k.asked.update({"inference_runner", "pre_allocate_kv_cache", "validate_runner_input"})
    k.asked.update({"max_batch_size", "pad_key_length"})
    k.config = {**k.config, "num_key_value_heads": 1 if one else None}
    mixer = attention(k, width, qkv_bias=True, out_bias=True)
    mlp = Mlp(width, k.maybe("n_inner") or 4 * width, 2, True)
    places = k.whole("n_positions") * width
    return decoder(k, [Layer(mixer, mlp, 4 * width)] * count, tied=True, extras=places + 2 * width)


def _opt(k: Keys) -> Decoder:
    width, count, _ = shape(k)
    k.only("word_embed_proj_dim", width)
    k.only("_remove_final_layer_norm", False)
    for name in ("do_layer_norm_before", "enable_bias", "layer_norm_elementwise_affine"):
        k.only(name, True)
    k.asked.update({"layerdrop", "init_std", "ffn_dim"})
    mixer = attention(k, width, qkv_bias=True, out_bias=True)
    layer = Layer(mixer, Mlp(width, k.whole("ffn_dim"), 2, True), 4 * width)
    places = (k.whole("max_position_embeddings") + 2) * width
    return decoder(k, [layer] * count, tied=True, extras=places + 2 * width)


def _qwen1(k: Keys) -> Decoder:
    """The first Qwen: its `intermediate_size` counts gate and values together."""
    width, count, _ = shape(k)
    k.only("no_bias", True)
    k.only("kv_channels", width // k.whole("num_attention_heads"))
    k.asked.update({"bf16", "fp16", "fp32", "use_dynamic_ntk", "use_logn_attn", "onnx_safe"})
    k.asked.update({"use_cache_quantization", "use_cache_kernel", "softmax_in_fp32"})
    both = k.whole("intermediate_size")
    mixer = attention(k, width, qkv_bias=True)
    return decoder(k, [Layer(mixer, Mlp(width, both // 2), 2 * width)] * count)


def _minimax_m3(k: Keys) -> Decoder:
    """Attention to blocks of tokens that an index picks, and experts; the first layers neither."""
    width, count, _ = shape(k)
    k.only("qk_norm_type", "per_head")
    k.only("use_qk_norm", True)
    k.only("attention_output_gate", False)
    k.asked.update({"use_gemma_norm", "first_k_dense_replace", "process_image_mode"})
    k.asked.update({"img_token_compression_config", "sparse_attention_config"})
    inner = k("sparse_attention_config", default={})
    if not isinstance(inner, dict):
        raise ConfigRefused([f"sparse_attention_config = {inner!r}: an object"])
    own = Keys(inner)
    own.only("sparse_disable_index_value", own.config.get("sparse_attention_freq"))
    own.asked.update({"sparse_score_type", "sparse_init_block", "sparse_local_block"})
    flags, mixers = [0] * count, {0: attention(k, width, norm="head")}
    if own.flag("use_sparse_attention"):
        flags = own.list("sparse_attention_freq", count, choices=(0, 1))
        heads, each = own.wholes("sparse_num_index_heads", "sparse_index_dim")
        top = own.whole("sparse_topk_blocks") * own.whole("sparse_block_size")
        mixers[1] = replace(
            mixers[0], index_heads=heads, index_width=each, index_top=top,
            vectors=mixers[0].vectors + 2 * each,
        )  # fmt: skip
        own.end()
    hidden, experts = k.whole("intermediate_size"), k.whole("num_local_experts")
    k.only("moe_intermediate_size", hidden)
    shared = k.size("n_shared_experts") * k.size("shared_intermediate_size")
    sparse = Experts(
        width, hidden, experts, k.whole("num_experts_per_tok"),
        shared=Mlp(width, shared) if shared else None,
        router_vectors=experts * k.flag("use_routing_bias", True),
    )  # fmt: skip
    plain = Mlp(width, k.whole("dense_intermediate_size"))
    layers = [
        Layer(mixers[index], sparse if on else plain, 2 * width)
        for index, on in zip(flags, k.list("moe_layer_freq", count, choices=(0, 1)), strict=True)
    ]
    return decoder(k, layers)


_DOTS = _routed_plain(norm="head", spans=_qwen_windows_off)
_GLM: dict[str, Any] = {"qkv_bias": "attention_bias", "head_width": 128}
_BIASED: dict[str, Any] = {"qkv_bias": "attention_bias", "out_bias": "attention_bias"}
_LING = _routed_plain(router_bias=False)
_PHI_MOE = sparse(norm_bias=True, head_bias="lm_head_bias", windows=one_window)
_BAICHUAN = dense()
MORE: dict[str, Callable[[Keys], Decoder]] = {
    "ApertusForCausalLM": _apertus,
    "BaiChuanForCausalLM": _BAICHUAN,
    "BaichuanForCausalLM": _BAICHUAN,
    "Ernie4_5ForCausalLM": dense(
        qkv_bias="use_bias", out_bias="use_bias", mlp_bias="use_bias", head_width=128, tied=True
    ),
    "Ernie4_5_MoeForCausalLM": _ernie_moe,
    "ArceeForCausalLM": dense(matrices=2, mlp_bias="mlp_bias", **_BIASED),
    "BailingMoeForCausalLM": _LING,
    "BailingMoeV2ForCausalLM": _routed_plain(),
    "Cohere2ForCausalLM": _cohere2,
    "DbrxForCausalLM": _dbrx,
    "DeepseekForCausalLM": _LING,
    "Dots1ForCausalLM": _DOTS,
    "Exaone4ForCausalLM": dense(norm="head", windows=_exaone4_windows),
    "ExaoneForCausalLM": dense(),
    "ExaoneMoeForCausalLM": _routed_plain(norm="head", spans=_windows_of(4)),
    "FlexOlmoForCausalLM": sparse(experts="num_experts", norm="whole"),
    "GPTBigCodeForCausalLM": _gpt_bigcode,
    "GPTJForCausalLM": _gptj,
    "GlmForCausalLM": dense(**_GLM),
    "Glm4ForCausalLM": dense(norms=4, **_GLM),
    "GraniteMoeSharedForCausalLM": sparse(shared="shared_intermediate_size"),
    "HeliumForCausalLM": dense(mlp_bias="mlp_bias", qkv_bias="attention_bias", head_width=128),
    "HunYuanDenseV1ForCausalLM": _hunyuan_dense,
    "HunYuanMoEV1ForCausalLM": _hunyuan_moe,
    "GraniteMoeForCausalLM": sparse(windows=one_window),
    "InternLMForCausalLM": dense(qkv_bias="bias", out_bias="bias"),
    "InternLM3ForCausalLM": dense(qkv_bias="qkv_bias", out_bias="bias", mlp_bias="bias"),
    "MiniCPMForCausalLM": dense(tied=True),
    "MiniMaxM3ForCausalLM": _minimax_m3,
    "MiniMaxM3SparseForConditionalGeneration": _minimax_m3,
    "Ministral3ForCausalLM": dense(kv=8, head_width=128, windows=one_window),
    "OPTForCausalLM": _opt,
    "OrionForCausalLM": dense(norm_bias=True),
    "QWenLMHeadModel": _qwen1,
    "SolarOpenForCausalLM": _routed_plain(every=True),
    "InternLM2ForCausalLM": dense(qkv_bias="bias", out_bias="bias"),
    "PhiMoEForCausalLM": _PHI_MOE,
    "PhimoeForCausalLM": _PHI_MOE,
    "SeedOssForCausalLM": dense(
        qkv_bias="attention_bias", out_bias="attention_out_bias", mlp_bias="mlp_bias",
        head_width=128,
    ),
    "StableLmForCausalLM": _stablelm,
}  # fmt: skip
