"""Families of 2023 to 2025 that are Llama's or Mixtral's but for a few keys.

Sources: the public configuration and modelling code of each architecture (huggingface/transformers;
InternLM2's and Baichuan's own repositories).
"""

from collections.abc import Callable

from lightspeed.config_keys import ConfigRefused, Keys
from lightspeed.config_parts import (
    attention,
    decoder,
    dense,
    no_window,
    one_window,
    shape,
    windows,
)
from lightspeed.decoder import Decoder, Experts, Layer, Mlp

__all__ = ("MORE",)


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


def _local_experts(*, norm_bias: bool = False, head_bias: str = "") -> Callable[[Keys], Decoder]:
    """Mixtral's layers, with biases where a key says so."""

    def read(k: Keys) -> Decoder:
        width, count, vocabulary = shape(k)
        bias, vectors = k.flag("attention_bias"), width * (2 if norm_bias else 1)
        sizes = ("intermediate_size", "num_local_experts", "num_experts_per_tok")
        experts = Experts(width, *k.wholes(*sizes))
        k.asked.add("input_jitter_noise")
        layers = [
            Layer(
                attention(k, width, window=window, qkv_bias=bias, out_bias=bias),
                experts,
                2 * vectors,
            )
            for window in one_window(k, count)
        ]
        extras = vectors + vocabulary * (bool(head_bias) and k.flag(head_bias))
        return decoder(k, layers, extras=extras)

    return read


def _stablelm(k: Keys) -> Decoder:
    """Norms with biases; beside each other, attention and MLP share one."""
    width, count, _ = shape(k)
    norm = "whole" if k.flag("qk_layernorm") else ""
    mixer = attention(k, width, qkv_bias=k.flag("use_qkv_bias"), norm=norm)
    norms = 2 * width * (1 if k.flag("use_parallel_residual") else 2)
    no_window(k, count)
    layer = Layer(mixer, Mlp(width, k.whole("intermediate_size")), norms)
    return decoder(k, [layer] * count, extras=2 * width)


_PHI_MOE = _local_experts(norm_bias=True, head_bias="lm_head_bias")
_BAICHUAN = dense()
MORE: dict[str, Callable[[Keys], Decoder]] = {
    "ApertusForCausalLM": _apertus,
    "BaiChuanForCausalLM": _BAICHUAN,
    "BaichuanForCausalLM": _BAICHUAN,
    "Ernie4_5ForCausalLM": dense(
        qkv_bias="use_bias", out_bias="use_bias", mlp_bias="use_bias", head_width=128, tied=True
    ),
    "Ernie4_5_MoeForCausalLM": _ernie_moe,
    "Exaone4ForCausalLM": dense(norm="head", windows=_exaone4_windows),
    "GraniteMoeForCausalLM": _local_experts(),
    "InternLM2ForCausalLM": dense(qkv_bias="bias", out_bias="bias"),
    "PhiMoEForCausalLM": _PHI_MOE,
    "PhimoeForCausalLM": _PHI_MOE,
    "SeedOssForCausalLM": dense(
        qkv_bias="attention_bias", out_bias="attention_out_bias", mlp_bias="mlp_bias",
        head_width=128,
    ),
    "StableLmForCausalLM": _stablelm,
}  # fmt: skip
