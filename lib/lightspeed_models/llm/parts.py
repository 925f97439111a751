"""Parts that the keys of a config.json describe, and families whose layers are dense.

Sources: the public configuration and modelling code of each architecture (huggingface/transformers,
and the models' own repositories for MiniMax-M2 and Nemotron's search).
"""

from collections.abc import Callable
from typing import Any

from lightspeed_models.llm.decoder import Decoder, Experts, Layer, Mlp
from lightspeed_models.llm.keys import ConfigRefused, Keys
from lightspeed_models.llm.mixers import Attention

# --- parts -------------------------------------------------------------------------------------


def attention(
    k: Keys, width: int, *, kv: int | str = "heads", head_width: int = 0, window: int = 0,
    qkv_bias: bool = False, out_bias: bool = False, norm: str = "", sinks: bool = False,
    gated: bool = False,
) -> Attention:  # fmt: skip
    """Attention by the usual keys. `kv` and `head_width` are a family's defaults; `norm` is the
    norm of queries and keys: by "head", or over the "whole" of them.
    """
    heads = k.whole("num_attention_heads", "n_head", "num_heads", "n_heads")
    kv_heads = k.whole("num_key_value_heads", default=heads if kv == "heads" else kv)
    if heads % kv_heads:
        raise ConfigRefused(
            [f"num_key_value_heads = {kv_heads}: expected a divisor of {heads} heads"]
        )
    if head_width and "head_dim" not in k.config:
        each = k.whole("head_dim", default=head_width)
    else:
        each = k.maybe("head_dim") or divided(width, heads)
    longest = k.config.get("max_position_embeddings")
    if window and isinstance(longest, int) and window >= longest > 0:
        k.assumed.append(f"a window of {window:,} tokens is none, of at most {longest:,} positions")
        window = 0
    columns = (1 + gated) * heads + 2 * kv_heads
    vectors = columns * each * qkv_bias + width * out_bias + heads * sinks
    vectors += {"": 0, "head": 2 * each, "whole": (heads + kv_heads) * each}[norm]
    return Attention(width, heads, kv_heads, each, window=window, gated=gated, vectors=vectors)


def divided(width: int, heads: int) -> int:
    """The width of a head where no key says it."""
    if width % heads:
        raise ConfigRefused([f"head_dim is missing, and {heads} heads don't divide {width}"])
    return width // heads


def windows(
    k: Keys, layers: int, window: str = "sliding_window", default: list[str] | None = None
) -> list[int]:
    """The window of each layer, 0 for the whole context, by `layer_types`."""
    names = ("full_attention", "sliding_attention", "chunked_attention")
    kinds = k.list("layer_types", layers, default or ["full_attention"] * layers, names)
    k.asked.add(window)
    size = k.whole(window) if set(kinds) != {"full_attention"} else 0
    return [0 if kind == "full_attention" else size for kind in kinds]


def alike(layers: list[Layer]) -> tuple[Layer, ...]:
    """Equal layers as one with a count, in order of first appearance."""
    counts: dict[Layer, int] = {}
    for layer in layers:
        counts[layer] = counts.get(layer, 0) + 1
    return tuple(Layer(one.mixer, one.mlp, one.norms, n) for one, n in counts.items())


def shape(k: Keys) -> tuple[int, int, int]:
    """Width, layers, vocabulary."""
    return (
        k.whole("hidden_size", "n_embd", "n_embed", "d_model"),
        k.whole("num_hidden_layers", "n_layer", "n_layers", "num_layers", high=10_000),
        k.whole("vocab_size"),
    )


def decoder(
    k: Keys, layers: list[Layer], *, tied: bool = False, extras: int | None = None
) -> Decoder:
    width, _, vocabulary = shape(k)
    tie = k.flag("tie_word_embeddings", tied)
    return Decoder(width, vocabulary, tie, alike(layers), width if extras is None else extras)


def dense(
    *, kv: int | str = "heads", head_width: int = 0, qkv_bias: bool | str = False,
    out_bias: bool | str = False, mlp_bias: bool | str = False, norm: str = "", norms: int = 2,
    norm_bias: bool = False, last_norm: int = 1, matrices: int = 3, tied: bool = False,
    windows: Callable[[Keys, int], list[int]] | None = None,
) -> Callable[[Keys], Decoder]:  # fmt: skip
    """A family of dense layers that are alike but for their windows. A bias that is a word is that
    key's value; `norms` counts vectors of the model's width a layer.
    """

    def read(k: Keys) -> Decoder:
        width, count, _ = shape(k)
        on = [k.flag(b) if isinstance(b, str) else b for b in (qkv_bias, out_bias, mlp_bias)]
        vectors = width * (2 if norm_bias else 1)
        mlp = Mlp(width, k.whole("intermediate_size", "n_inner"), matrices, on[2])
        spans = windows(k, count) if windows else no_window(k, count)
        layers = [
            Layer(
                attention(
                    k, width, kv=kv, head_width=head_width, window=window, qkv_bias=on[0],
                    out_bias=on[1], norm=norm,
                ),
                mlp,
                norms * vectors,
            )
            for window in spans
        ]  # fmt: skip
        return decoder(k, layers, tied=tied, extras=last_norm * vectors)

    return read


def sparse(
    *, experts: str = "num_local_experts", count: Any = ..., active: Any = ..., shared: str = "",
    kv: int | str = "heads", norm: str = "", norm_bias: bool = False, head_bias: str = "",
    windows: Callable[[Keys, int], list[int]] | None = None,
) -> Callable[[Keys], Decoder]:  # fmt: skip
    """A family with experts in each layer, which the key `experts` counts; `count` and `active` are
    its defaults, `shared` is the key of an MLP that each token passes, the rest as in `dense`.
    """

    def read(k: Keys) -> Decoder:
        width, layers, vocabulary = shape(k)
        bias, vectors = k.flag("attention_bias"), width * (2 if norm_bias else 1)
        sizes = k.whole("intermediate_size"), k.whole(experts, default=count)
        beside = k.size(shared) if shared else 0
        mlp = Experts(
            width, *sizes, k.whole("num_experts_per_tok", default=active),
            shared=Mlp(width, beside) if beside else None,
        )  # fmt: skip
        k.asked.add("input_jitter_noise")
        of: dict[str, Any] = {"kv": kv, "qkv_bias": bias, "out_bias": bias, "norm": norm}
        spans = windows(k, layers) if windows else [0] * layers
        mixers = [attention(k, width, window=window, **of) for window in spans]
        extras = vectors + vocabulary * (bool(head_bias) and k.flag(head_bias))
        return decoder(k, [Layer(mixer, mlp, 2 * vectors) for mixer in mixers], extras=extras)

    return read


def no_window(k: Keys, layers: int) -> list[int]:
    k.only("sliding_window", 0)
    return windows(k, layers)


def one_window(k: Keys, layers: int) -> list[int]:
    """Mistral's: the same window in each layer where there is one."""
    return [k.size("sliding_window")] * layers


def qwen_windows(k: Keys, layers: int) -> list[int]:
    """Qwen's: off unless it is said, then in the layers from `max_window_layers` on."""
    window, first = k.size("sliding_window"), k.size("max_window_layers")
    on = k.flag("use_sliding_window")
    kinds = ["sliding_attention" if on and i >= first else "full_attention" for i in range(layers)]
    return windows(k, layers, default=kinds) if window else windows(k, layers)


def every_other(k: Keys, layers: int) -> list[int]:
    """Gemma 2's: the even layers see a window."""
    kinds = [["sliding_attention", "full_attention"][i % 2] for i in range(layers)]
    if k.config.get("sliding_window") is None:
        k.config = {**k.config, "sliding_window": k.whole("sliding_window", default=4096)}
    return windows(k, layers, default=kinds)


def five_to_one(default: int, window: int) -> Callable[[Keys, int], list[int]]:
    """Gemma 3's: each sixth layer sees all."""

    def read(k: Keys, layers: int) -> list[int]:
        each = k.whole("sliding_window_pattern", "_sliding_window_pattern", default=default)
        kinds = ["sliding_attention" if (i + 1) % each else "full_attention" for i in range(layers)]
        if k.config.get("sliding_window") is None:
            k.config = {**k.config, "sliding_window": k.whole("sliding_window", default=window)}
        return windows(k, layers, default=kinds)

    return read


# --- families ---


def olmo3_windows(k: Keys, layers: int) -> list[int]:
    kinds = ["full_attention" if (i + 1) % 4 == 0 else "sliding_attention" for i in range(layers)]
    return windows(k, layers, default=kinds)


def gpt2(k: Keys) -> Decoder:
    width, count, _ = shape(k)
    hidden = k.maybe("n_inner") or 4 * width
    layer = Layer(
        attention(k, width, qkv_bias=True, out_bias=True), Mlp(width, hidden, 2, True), 4 * width
    )
    places = "n_ctx" if k.config.get("n_positions") is None else "n_positions"
    positions = k.whole(places, default=1024) * width
    return decoder(k, [layer] * count, tied=True, extras=positions + 2 * width)


def bloom(k: Keys) -> Decoder:
    width, count, _ = shape(k)
    layer = Layer(
        attention(k, width, qkv_bias=True, out_bias=True),
        Mlp(width, k.maybe("n_inner", "ffn_hidden_size") or 4 * width, 2, True),
        4 * width,
    )
    return decoder(k, [layer] * count, tied=True, extras=4 * width)


def falcon(k: Keys) -> Decoder:
    width, count, _ = shape(k)
    bias, new = k.flag("bias"), k.flag("new_decoder_architecture")
    parallel, one = k.flag("parallel_attn", True), k.flag("multi_query", True)
    k.only("ff_factor", 4)
    heads = k.whole("num_attention_heads", "n_head")
    groups = k.size("num_kv_heads", "n_head_kv") if new else 0
    kv = groups or (1 if one and not new else heads)
    each = divided(width, heads)
    vectors = bias * ((heads + 2 * kv) * each + width)
    k.asked.update({"num_key_value_heads", "num_kv_heads", "n_head_kv", "alibi"})
    mlp = Mlp(width, k.maybe("ffn_hidden_size") or 4 * width, 2, bias)
    k.only("num_ln_in_parallel_attn", 1, 2)
    two = k.size("num_ln_in_parallel_attn") or (2 if new else 1)
    norms = 2 * width * (two if parallel else 2)
    layer = Layer(Attention(width, heads, kv, each, vectors=vectors), mlp, norms)
    return decoder(k, [layer] * count, tied=True, extras=2 * width)


def phi(k: Keys) -> Decoder:
    """Phi-1 and Phi-2: attention and MLP beside each other behind one norm, biases everywhere."""
    width, count, vocabulary = shape(k)
    k.only("qk_layernorm", False)
    layer = Layer(
        attention(k, width, qkv_bias=True, out_bias=True),
        Mlp(width, k.whole("intermediate_size"), 2, True),
        2 * width,
    )
    return decoder(k, [layer] * count, extras=2 * width + vocabulary)


def cohere(k: Keys) -> Decoder:
    width, count, _ = shape(k)
    k.only("use_qk_norm", False)
    k.only("attention_bias", False)
    layer = Layer(attention(k, width), Mlp(width, k.whole("intermediate_size")), width)
    return decoder(k, [layer] * count, tied=True)
