"""Families of models: how each architecture's config.json becomes a `Decoder`.

Sources: the public configuration and modelling code of each architecture (huggingface/transformers,
and the models' own repositories for MiniMax-M2 and Nemotron's search).
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from lightspeed_models.llm.decoder import Decoder, Experts, Layer, Mlp
from lightspeed_models.llm.hybrids import HYBRIDS
from lightspeed_models.llm.keys import ConfigRefused, Keys
from lightspeed_models.llm.mixers import (
    Attention,
    CompressedAttention,
    DeltaNet,
    LatentAttention,
    LightningAttention,
    Mixer,
)
from lightspeed_models.llm.parts import (
    attention,
    bloom,
    cohere,
    decoder,
    dense,
    divided,
    every_other,
    falcon,
    five_to_one,
    gpt2,
    olmo3_windows,
    one_window,
    phi,
    qwen_windows,
    shape,
    sparse,
    windows,
)  # fmt: skip
from lightspeed_models.llm.relatives import MORE


def _qwen_mlps(k: Keys, width: int, count: int, shared: bool) -> list[Mlp | Experts]:
    """Experts in each `decoder_sparse_step`-th layer, but not in those of `mlp_only_layers`."""
    step, plain = k.whole("decoder_sparse_step", default=1), k.layers("mlp_only_layers", count)
    size = k.size("shared_expert_intermediate_size")
    if size and not shared:
        k.refused.append(f"shared_expert_intermediate_size = {size}: this family has none")
    experts = Experts(
        width,
        k.whole("moe_intermediate_size"),
        k.whole("num_experts", "num_local_experts"),
        k.whole("num_experts_per_tok"),
        shared=Mlp(width, size) if size else None,
        router_vectors=width if size else 0,
    )
    hidden = k.size("intermediate_size")
    sparse = [i not in (plain or ()) and (i + 1) % step == 0 for i in range(count)]
    if not all(sparse) and not hidden:
        raise ConfigRefused(["intermediate_size is missing, and some layers have a plain MLP"])
    return [experts if on else Mlp(width, hidden) for on in sparse]


def _qwen2_moe(k: Keys) -> Decoder:
    width, count, _ = shape(k)
    bias = k.flag("qkv_bias", True)
    mlps = _qwen_mlps(k, width, count, shared=True)
    layers = [
        Layer(attention(k, width, window=window, qkv_bias=bias), mlp, 2 * width)
        for mlp, window in zip(mlps, qwen_windows(k, count), strict=True)
    ]
    return decoder(k, layers)


def _qwen3_moe(k: Keys) -> Decoder:
    width, count, _ = shape(k)
    k.only("use_qk_norm", True)
    bias = k.flag("attention_bias") or k.flag("qkv_bias")
    mlps = _qwen_mlps(k, width, count, shared=False)
    layers = [
        Layer(
            attention(k, width, kv=4, window=w, qkv_bias=bias, out_bias=bias, norm="head"),
            mlp,
            2 * width,
        )
        for mlp, w in zip(mlps, qwen_windows(k, count), strict=True)
    ]
    return decoder(k, layers)


def _qwen_hybrid(k: Keys) -> Decoder:
    """Qwen3-Next and Qwen3.5: three gated delta layers to one of gated attention."""
    width, count, _ = shape(k)
    each = k.whole("full_attention_interval", default=4)
    kinds = k.list(
        "layer_types",
        count,
        ["linear_attention" if (i + 1) % each else "full_attention" for i in range(count)],
        ("linear_attention", "full_attention"),
    )
    bias = k.flag("attention_bias")
    k.only("attn_output_gate", True)
    delta = DeltaNet(
        width,
        k.whole("linear_num_key_heads", default=16),
        k.whole("linear_num_value_heads", default=32),
        k.whole("linear_key_head_dim", default=128),
        k.whole("linear_value_head_dim", default=128),
        k.whole("linear_conv_kernel_dim", default=4),
    )
    full = attention(
        k, width, kv=2, head_width=256, qkv_bias=bias, out_bias=bias, norm="head", gated=True
    )
    if k.size("num_experts"):
        mlps = _qwen_mlps(k, width, count, shared=True)
    else:
        mlps = [Mlp(width, k.whole("intermediate_size"))] * count
    mixers: dict[str, Mixer] = {"linear_attention": delta, "full_attention": full}
    layers = [Layer(mixers[kind], mlp, 2 * width) for kind, mlp in zip(kinds, mlps, strict=True)]
    return decoder(k, layers)


def _sparse_from(k: Keys, count: int) -> list[bool]:
    """Which layers have experts: those of `moe_layer_freq`, or from `first_k_dense_replace` on."""
    first = k.size("first_k_dense_replace")
    kinds = k.list("mlp_layer_types", count, (), ("sparse", "dense"))
    if isinstance(k.config.get("moe_layer_freq"), list):
        return [bool(x) for x in k.list("moe_layer_freq", count, choices=(0, 1))]
    k.only("moe_layer_freq", 1)  # the makers' code counts by it, other readers pass over it
    if kinds:
        return [kind == "sparse" for kind in kinds]
    return [i >= first for i in range(count)]


def _routed(k: Keys, width: int, *, bias: bool) -> Experts:
    """DeepSeek's experts; `bias` by a bias each."""
    hidden = k.whole("moe_intermediate_size")
    experts = k.whole("n_routed_experts", "num_experts")
    shared = k.size("n_shared_experts", "num_shared_experts")
    return Experts(
        width,
        hidden,
        experts,
        k.whole("num_experts_per_tok"),
        shared=Mlp(width, shared * hidden) if shared else None,
        router_vectors=experts * bias,
    )


def _borrowed(k: Keys, count: int) -> list[bool]:
    """Which layers take the choice of a layer before: by `indexer_types`, a pattern of F and S, or
    all but each `index_topk_freq`-th; none where there is no index.
    """
    if not k.size("index_n_heads"):
        k.asked.update({"index_topk_pattern", "index_topk_freq", "indexer_types"})
        k.asked.add("index_skip_topk_offset")
        return [False] * count
    pattern = k("index_topk_pattern", default="")
    each = k.whole("index_topk_freq", default=1)
    first = k.whole("index_skip_topk_offset", default=2)
    kinds = ["shared" if max(i - first + 1, 0) % each else "full" for i in range(count)]
    if pattern:
        letters = {"F": "full", "S": "shared"}
        k.config = {**k.config, "index_topk_pattern": [letters.get(x, x) for x in pattern]}
        kinds = k.list("index_topk_pattern", count, choices=("full", "shared"))
    return [kind == "shared" for kind in k.list("indexer_types", count, kinds, ("full", "shared"))]


def _deepseek(bias: bool = True) -> Callable[[Keys], Decoder]:
    def read(k: Keys) -> Decoder:
        width, count, _ = shape(k)
        k.only("attention_bias", False)
        k.asked.update({"num_key_value_heads", "head_dim", "num_attention_heads"})
        sizes = ("kv_lora_rank", "qk_rope_head_dim", "qk_nope_head_dim", "v_head_dim")
        latent = replace(
            LatentAttention(width, *k.wholes("num_attention_heads", *sizes)),
            query_rank=k.maybe("q_lora_rank"),
            index_heads=k.size("index_n_heads"),
            index_width=k.size("index_head_dim"),
            index_top=k.size("index_topk"),
        )
        index = (latent.index_heads, latent.index_width, latent.index_top)
        if any(index) and not all(index):
            names = "index_n_heads, index_head_dim, index_topk"
            raise ConfigRefused([f"{names} = {index}: give all of them, or none"])
        kinds = ("deepseek_sparse_attention", "indexed_attention")
        k.list("layer_types", count, (), kinds if latent.index_heads else ("full_attention",))
        mixers = [replace(latent, borrowed_index=on) for on in _borrowed(k, count)]
        with_bias = bias or k.config.get("topk_method") == "noaux_tc"
        experts = _routed(k, width, bias=with_bias)
        plain = Mlp(width, k.whole("intermediate_size"))
        layers = [
            Layer(mixer, experts if sparse else plain, 2 * width)
            for mixer, sparse in zip(mixers, _sparse_from(k, count), strict=True)
        ]
        return decoder(k, layers)

    return read


def _deepseek_v4(k: Keys) -> Decoder:
    """Compressed attention in two kinds; residual streams that small matrices mix; experts in each
    layer, of which the first layers choose by the token's number.
    """
    width, count, _ = shape(k)
    k.only("attention_bias", False)
    k.only("mlp_bias", False)
    k.only("num_key_value_heads", 1)
    k.asked.update({"qk_rope_head_dim", "expert_dtype", "hc_sinkhorn_iters"})
    sizes = ("num_attention_heads", "head_dim", "q_lora_rank", "o_groups", "o_lora_rank")
    local = CompressedAttention(width, *k.wholes(*sizes, "sliding_window"))
    names = ("index_n_heads", "index_head_dim", "index_topk")
    heads, each, top = k.wholes(*names)
    kinds = {
        0: local,
        4: replace(local, ratio=4, index_heads=heads, index_width=each, index_top=top),
        128: replace(local, ratio=128),
    }
    ratios = k.list("compress_ratios", count, choices=tuple(kinds))
    hashed = k.size("num_hash_layers")
    streams = k.whole("hc_mult", high=1000)
    mixed = (2 + streams) * streams
    norms = 2 * width + 2 * (mixed * streams * width + mixed + 3)
    by_score, by_bias = _routed(k, width, bias=False), _routed(k, width, bias=True)
    layers = [
        Layer(kinds[ratio], by_score if i < hashed else by_bias, norms)
        for i, ratio in enumerate(ratios)
    ]
    extras = width + streams * streams * width + streams + 1
    return decoder(k, layers, extras=extras)


def _glm4_moe(k: Keys) -> Decoder:
    width, count, _ = shape(k)
    bias, norm = k.flag("attention_bias"), "head" if k.flag("use_qk_norm") else ""
    k.whole("head_dim")  # it has no default that its makers and others agree on
    mixer = attention(k, width, qkv_bias=bias, norm=norm)
    experts, plain = _routed(k, width, bias=True), Mlp(width, k.whole("intermediate_size"))
    layers = [
        Layer(mixer, experts if sparse else plain, 2 * width) for sparse in _sparse_from(k, count)
    ]
    return decoder(k, layers)


def _minimax_m2(k: Keys) -> Decoder:
    width, count, _ = shape(k)
    k.only("qk_norm_type", "per_layer")
    k.only("shared_intermediate_size", 0)
    if any(kind != 1 for kind in k.list("attn_type_list", count, [1] * count)):
        k.refused.append("attn_type_list: known here is 1 in each layer, full attention")
    mixer = attention(k, width, norm="whole" if k.flag("use_qk_norm", True) else "")
    experts = k.whole("num_local_experts")
    mlp = Experts(
        width,
        k.whole("intermediate_size"),
        experts,
        k.whole("num_experts_per_tok"),
        router_vectors=experts * k.flag("use_routing_bias", True),
    )
    return decoder(k, [Layer(mixer, mlp, 2 * width)] * count)


def _minimax_m1(k: Keys) -> Decoder:
    """MiniMax-Text-01 and M1: seven lightning layers to one of softmax."""
    width, count, _ = shape(k)
    k.only("shared_intermediate_size", 0)
    kinds = k.list("attn_type_list", count, (), (0, 1))
    if not kinds and k.config.get("layer_types") is None:
        raise ConfigRefused(["attn_type_list is missing: it says which layers have full attention"])
    if k.config.get("layer_types") is not None:
        names = ("full_attention", "linear_attention")
        kinds = [kind == names[0] for kind in k.list("layer_types", count, choices=names)]
    full = attention(k, width, kv=8)
    k.asked.add("block_size")
    linear = LightningAttention(width, full.heads, full.head_width)
    experts = Experts(
        width,
        *k.wholes("intermediate_size", "num_local_experts", "num_experts_per_tok"),
    )
    layers = [Layer(full if kind else linear, experts, 2 * width) for kind in kinds]
    return decoder(k, layers)


def _gpt_oss(k: Keys) -> Decoder:
    width, count, _ = shape(k)
    k.asked.add("experts_per_token")
    kinds = [["sliding_attention", "full_attention"][i % 2] for i in range(count)]
    experts = k.whole("num_local_experts", default=128)
    mlp = Experts(
        width,
        k.whole("intermediate_size"),
        experts,
        k.whole("num_experts_per_tok", "experts_per_token", default=4),
        bias=True,
        router_vectors=experts,
    )
    bias = k.flag("attention_bias", True)
    layers = [
        Layer(
            attention(
                k, width, kv=8, head_width=64, window=w, qkv_bias=bias, out_bias=bias, sinks=True
            ),
            mlp,
            2 * width,
        )
        for w in windows(k, count, default=kinds)
    ]
    return decoder(k, layers)


def _llama4(k: Keys) -> Decoder:
    width, count, _ = shape(k)
    k.asked.add("use_qk_norm")  # its norm of queries has no parameters
    bias = k.flag("attention_bias")
    step = k.whole("interleave_moe_layer_step", default=1)
    sparse = k.layers("moe_layers", count)
    sparse = set(range(step - 1, count, step)) if sparse is None else sparse
    hidden = k.whole("intermediate_size", default=8192)
    plain = Mlp(width, k.whole("intermediate_size_mlp", default=16384))
    experts = Experts(
        width,
        hidden,
        k.whole("num_local_experts", default=16),
        k.whole("num_experts_per_tok", default=1),
        shared=Mlp(width, hidden),
    )
    # Rotary layers see chunks; each fourth has no positions and sees all.
    every = k.whole("no_rope_layer_interval", default=4)
    rotary = k.list("no_rope_layers", count, [(i + 1) % every for i in range(count)], (0, 1))
    chunk = k.whole("attention_chunk_size", default=8192)
    kinds = [["full_attention", "chunked_attention"][bool(x)] for x in rotary]
    names = ("full_attention", "chunked_attention")
    rotary = [kind == names[1] for kind in k.list("layer_types", count, kinds, names)]
    layers = [
        Layer(
            attention(
                k, width, kv=8, head_width=128, window=chunk if rotary[i] else 0, qkv_bias=bias,
                out_bias=bias,
            ),
            experts if i in sparse else plain,
            2 * width,
        )
        for i in range(count)
    ]  # fmt: skip
    return decoder(k, layers)


def _gemma4(k: Keys) -> Decoder:
    """Layers that see all have wider heads, and may take their keys as values; the last layers take
    keys and values of a layer before; experts stand beside a plain MLP; each layer of the small
    models adds a vector of the token, from a table of its own.
    """
    width, count, _ = shape(k)
    k.asked.add("expert_intermediate_size")
    k.only("attention_bias", False)
    k.only("per_layer_config")
    each, wide = k.whole("head_dim", default=256), k.whole("global_head_dim", default=512)
    heads, kv = k.whole("num_attention_heads", default=8), k.whole("num_key_value_heads", default=4)
    same = k.flag("attention_k_eq_v")
    kv_all = k.size("num_global_key_value_heads") if same else 0
    spans = five_to_one(6, 512)(k, count)
    spans[-1] = 0  # whatever the keys say of the last
    first = count - k.size("num_kv_shared_layers")
    if not 0 < first <= count:
        raise ConfigRefused([f"num_kv_shared_layers = {count - first}: fewer than {count} layers"])
    hidden, double = k.whole("intermediate_size", default=9216), k.flag("use_double_wide_mlp")
    moe, layers = k.flag("enable_moe_block"), []
    narrow = k.size("hidden_size_per_layer_input")
    if moe:
        experts = k.whole("num_experts")
        names = ("moe_intermediate_size", "expert_intermediate_size")
        sizes = k.whole(*names), experts, k.whole("top_k_experts")
    for i, window in enumerate(spans):
        borrowed = i >= first
        plain = Mlp(width, hidden * (2 if double and borrowed else 1))
        mlp: Mlp | Experts = plain
        if moe:
            mlp = Experts(width, *sizes, shared=plain, router_vectors=width + experts)
        one = each if window else wide
        mixer = Attention(
            width, heads, kv if window else kv_all or kv, one, window=window, borrowed_kv=borrowed,
            shared_kv=same and not window, vectors=one if borrowed else 2 * one,
        )  # fmt: skip
        layers.append(Layer(mixer, mlp, (7 if moe else 4) * width))
    extras = width
    if narrow:
        # A gate and a way back in each layer, and the way in, which all layers have together.
        layers += [Layer(None, Mlp(width, narrow), width)] * count
        extras += k.whole("vocab_size_per_layer_input", default=262144) * count * narrow + narrow
    return decoder(k, layers, tied=True, extras=extras)


def _nemotron_nas(k: Keys) -> Decoder:
    """Llama's layers, of which a search left out or narrowed some."""
    width, count, _ = shape(k)
    k.only("attention_bias", False)
    k.only("mlp_bias", False)
    heads = k.whole("num_attention_heads")
    k.asked.update({"num_key_value_heads", "intermediate_size"})
    each = k.size("head_dim") or divided(width, heads)
    layers = []
    for i, block in enumerate(k.list("block_configs", count)):
        parts = block if isinstance(block, dict) else {}
        if not all(isinstance(parts.get(name), dict) for name in ("attention", "ffn")):
            raise ConfigRefused([f"block_configs[{i}]: an object with `attention` and `ffn`"])
        attention, ffn = Keys(parts["attention"]), Keys(parts["ffn"])
        mixer = None
        if not attention.flag("no_op"):
            group = attention.whole("n_heads_in_group")
            if heads % group:
                raise ConfigRefused(
                    [f"n_heads_in_group = {group}: expected a divisor of {heads} heads"]
                )
            mixer = Attention(width, heads, heads // group, each)
        hidden = ffn.size("intermediate_size")
        if not ffn.flag("no_op") and not hidden:
            times = ffn("ffn_mult")
            if type(times) not in (int, float) or not 0 < times < 1000:
                raise ConfigRefused([f"ffn_mult = {times!r}: expected a number above 0"])
            hidden = -(-int(2 * times * width / 3) // 256) * 256
        ffn.asked.add("ffn_mult")
        for keys in (attention, ffn):
            keys.end()
        norms = width * ((mixer is not None) + (hidden > 0))
        layers.append(Layer(mixer, Mlp(width, hidden) if hidden else None, norms))
    return decoder(k, layers)


def _mimo_v2(k: Keys) -> Decoder:
    """MiMo-V2-Flash: windows with sinks and heads of their own; values narrower than keys."""
    width, count, _ = shape(k)
    k.only("attention_bias", False)
    k.asked.update({"sliding_window_size", "attention_chunk_size"})
    full = Attention(
        width,
        *k.wholes("num_attention_heads", "num_key_value_heads", "head_dim", "v_head_dim"),
    )
    heads = k.whole("swa_num_attention_heads")
    window = Attention(
        width,
        heads,
        *k.wholes("swa_num_key_value_heads", "swa_head_dim", "swa_v_head_dim", "sliding_window"),
    )
    window = replace(window, vectors=heads * k.flag("add_swa_attention_sink_bias"))
    k.only("add_full_attention_sink_bias", False)
    k("moe_layer_freq")
    experts, plain = _routed(k, width, bias=True), Mlp(width, k.whole("intermediate_size"))
    layers = [
        Layer(window if local else full, experts if sparse else plain, 2 * width)
        for local, sparse in zip(
            k.list("hybrid_layer_pattern", count, choices=(0, 1)),
            _sparse_from(k, count),
            strict=True,
        )
    ]
    return decoder(k, layers)


def _starcoder2(k: Keys) -> Decoder:
    k.only("mlp_type", "default")
    k.only("norm_type", "layer_norm")
    reader = dense(
        qkv_bias="use_bias", out_bias="use_bias", mlp_bias="use_bias", norm_bias=True, matrices=2,
        tied=True, windows=one_window,
    )  # fmt: skip
    return reader(k)


_DEEPSEEK = _deepseek()
_BIASED: dict[str, Any] = {"qkv_bias": "attention_bias", "out_bias": "attention_bias"}
_LLAMA = dense(mlp_bias="mlp_bias", **_BIASED)
_NEOX = dense(mlp_bias=True, norms=2, norm_bias=True, matrices=2, **_BIASED)
FAMILIES: dict[str, Callable[[Keys], Decoder]] = {
    "BloomForCausalLM": bloom,
    "CohereForCausalLM": cohere,
    "DeciLMForCausalLM": _nemotron_nas,
    "DeepseekV2ForCausalLM": _deepseek(bias=False),
    "DeepseekV3ForCausalLM": _DEEPSEEK,
    "DeepseekV32ForCausalLM": _DEEPSEEK,
    "DeepseekV4ForCausalLM": _deepseek_v4,
    "FalconForCausalLM": falcon,
    "GPT2LMHeadModel": gpt2,
    "GPTNeoXForCausalLM": _NEOX,
    "GemmaForCausalLM": dense(head_width=256, tied=True, **_BIASED),
    "Gemma2ForCausalLM": dense(
        kv=4, head_width=256, norms=4, tied=True, windows=every_other, **_BIASED
    ),
    "Gemma3ForCausalLM": dense(
        kv=4, head_width=256, norms=4, norm="head", tied=True, windows=five_to_one(6, 4096),
        **_BIASED,
    ),
    "Gemma4ForCausalLM": _gemma4,
    "Glm4MoeForCausalLM": _glm4_moe,
    "GlmMoeDsaForCausalLM": _DEEPSEEK,
    "GptOssForCausalLM": _gpt_oss,
    "GraniteForCausalLM": _LLAMA,
    "KimiK2ForCausalLM": _DEEPSEEK,
    "Llama4ForCausalLM": _llama4,
    "LlamaForCausalLM": _LLAMA,
    "MiMoForCausalLM": dense(qkv_bias="attention_bias", windows=qwen_windows),
    "MiMoV2FlashForCausalLM": _mimo_v2,
    "MiniMaxForCausalLM": _minimax_m1,
    "MiniMaxM1ForCausalLM": _minimax_m1,
    "MiniMaxM2ForCausalLM": _minimax_m2,
    "MiniMaxText01ForCausalLM": _minimax_m1,
    "MistralForCausalLM": dense(kv=8, windows=one_window),
    "MixtralForCausalLM": sparse(kv=8, count=8, active=2, windows=one_window),
    "NemotronForCausalLM": dense(
        matrices=2, norm_bias=True, mlp_bias="mlp_bias", **_BIASED
    ),
    "OlmoForCausalLM": dense(norms=0, last_norm=0, **_BIASED),
    "Olmo2ForCausalLM": dense(norm="whole", **_BIASED),
    "Olmo3ForCausalLM": dense(norm="whole", windows=olmo3_windows, **_BIASED),
    "OlmoeForCausalLM": sparse(experts="num_experts", count=64, active=8, norm="whole"),
    "PhiForCausalLM": phi,
    "Phi3ForCausalLM": dense(windows=one_window),
    "Qwen2ForCausalLM": dense(qkv_bias=True, windows=qwen_windows),
    "Qwen2MoeForCausalLM": _qwen2_moe,
    "Qwen3ForCausalLM": dense(
        head_width=128, norm="head", windows=qwen_windows, **_BIASED
    ),
    "Qwen3MoeForCausalLM": _qwen3_moe,
    "Qwen3NextForCausalLM": _qwen_hybrid,
    "Qwen3_5ForCausalLM": _qwen_hybrid,
    "Qwen3_5MoeForCausalLM": _qwen_hybrid,
    "SmolLM3ForCausalLM": _LLAMA,
    "Starcoder2ForCausalLM": _starcoder2,
}  # fmt: skip
FAMILIES |= MORE | HYBRIDS
FAMILIES |= {
    "Glm4MoeLiteForCausalLM": _DEEPSEEK,
    "LLaMAForCausalLM": _LLAMA,
    "YiForCausalLM": _LLAMA,
}
# A model that also sees: its text half is one of the above.
FAMILIES |= {
    "Gemma3ForConditionalGeneration": FAMILIES["Gemma3ForCausalLM"],
    "Gemma4ForConditionalGeneration": _gemma4,
    "Glm4vForConditionalGeneration": FAMILIES["Glm4ForCausalLM"],
    "Glm4vMoeForConditionalGeneration": _glm4_moe,
    "KimiK25ForConditionalGeneration": _DEEPSEEK,
    "KimiVLForConditionalGeneration": _DEEPSEEK,
    "Llama4ForConditionalGeneration": _llama4,
    "Mistral3ForConditionalGeneration": FAMILIES["MistralForCausalLM"],
    "Qwen2VLForConditionalGeneration": FAMILIES["Qwen2ForCausalLM"],
    "Qwen2_5_VLForConditionalGeneration": FAMILIES["Qwen2ForCausalLM"],
    "Qwen3VLForConditionalGeneration": FAMILIES["Qwen3ForCausalLM"],
    "Qwen3VLMoeForConditionalGeneration": _qwen3_moe,
    "Qwen3_5ForConditionalGeneration": _qwen_hybrid,
    "Qwen3_5MoeForConditionalGeneration": _qwen_hybrid,
}
