"""What kinds of attention read, compute and remember: one layer, one request, one new token.
Derived in chapter 4.

Softmax attention keeps something of every token and reads it in every step: keys and values of
its heads, one compressed vector that all heads share, or either for a part of the tokens only. A
recurrence keeps a matrix of one size instead. `lightspeed_models.llm` puts layers together of these
laws.

Sources: Shazeer (2019) and Ainslie et al. (2023) for shared heads; DeepSeek-V2 (2024) for
compressed vectors and their absorption; DeepSeek-V3.2 (2025) for the index; Yang et al., Gated
Delta Networks (2024), and Dao and Gu, Mamba-2 (2024), for states and their chunks.
"""

from lightspeed.elementwise import INF, Result, Value, divide, maximum, minimum
from lightspeed.law import ELEMENT_BYTES, Argument, count, law, nonnegative

__all__ = (
    "absorption_break_even", "attention_bytes", "attention_flops", "index_break_even",
    "index_bytes", "index_flops", "kv_copies", "recurrence_flops", "state_break_even",
    "state_bytes",
)  # fmt: skip

INDEX_SCALE = 4  # bytes beside each key of an index, whose numbers take one byte each
CONTEXT = nonnegative("token", hint="What a request holds: its prompt and what it has written.")
MOST = Argument(
    "token",
    infinite=True,
    hint="A window, or the tokens that an index picks; infinite where attention sees all.",
)
HEADS = count()
KEY = count(hint="Numbers of one head's key: 128, not heads x 128.")
KEPT_VALUE = count(low=0, hint="Numbers of one head's value; 0 where keys are values, too.")
CACHED = nonnegative("byte", hint="Bytes that one layer keeps of one token.")


@law(
    "byte",
    context=CONTEXT,
    kv_heads=HEADS,
    key_width=KEY,
    value_width=KEPT_VALUE,
    element_bytes=ELEMENT_BYTES,
    most=MOST,
)
def attention_bytes(
    context: Value,
    kv_heads: Value,
    key_width: Value,
    value_width: Value,
    element_bytes: Value = 2,
    most: Value = INF,
) -> Result:
    """Bytes of the cache that a layer reads for one new token, of `most` cached tokens at most.

    Latent attention keeps one vector for all heads, its rotary part beside it, and no value.

    >>> attention_bytes(4096, 8, 128, 128), attention_bytes(4096, 1, 512 + 64, 0)
    (16.8 MB, 4.72 MB)
    """
    return kv_heads * (key_width + value_width) * element_bytes * minimum(context, most)


@law("FLOP", context=CONTEXT, heads=HEADS, key_width=KEY, value_width=KEPT_VALUE, most=MOST)
def attention_flops(
    context: Value, heads: Value, key_width: Value, value_width: Value, most: Value = INF
) -> Result:
    """FLOPs of attention's scores and their products with the values, Q K' and A V, for one new
    token in a layer.

    Absorbed, a latent head's key is the compressed vector with its rotary part and its value is
    the vector: more work than with expanded vectors, but nothing to expand.

    >>> attention_flops(4096, 128, 512 + 64, 512) / attention_flops(4096, 128, 128 + 64, 128)
    3.4
    """
    return 2 * heads * (key_width + value_width) * minimum(context, most)


@law("token", kv_rank=count(), key_width=KEY, value_width=KEY)
def absorption_break_even(kv_rank: Value, key_width: Value, value_width: Value) -> Result:
    """New tokens of a request beyond which latent attention computes less by expanding its cached
    vectors than by absorbing: r (k + v) / (2 r - k - v). Infinite where absorbing is never more.

    Expanding costs 2 r (k + v) a head and cached token, once for all new ones; absorbing, 2 (2 r -
    k - v) more for each. `key_width` leaves the rotary part out, which both have.

    >>> round(absorption_break_even(512, 128, 128))
    171
    """
    return divide(kv_rank * (key_width + value_width), 2 * kv_rank - key_width - value_width)


@law("byte", context=CONTEXT, index_width=count())
def index_bytes(context: Value, index_width: Value) -> Result:
    """Bytes of an index's keys that one new token reads: one key per cached token, each of
    `index_width` one-byte numbers and a scale of four bytes.

    >>> index_bytes(131072, 128) / attention_bytes(131072, 1, 576, 0)
    0.11458333333333333
    """
    return context * (index_width + INDEX_SCALE)


@law("FLOP", context=CONTEXT, index_heads=HEADS, index_width=count())
def index_flops(context: Value, index_heads: Value, index_width: Value) -> Result:
    """FLOPs of an index for one new token: every key against the queries of its few heads.

    >>> index_flops(131072, 64, 128) / attention_flops(131072, 128, 512 + 64, 512)
    0.058823529411764705
    """
    return 2 * index_heads * index_width * context


@law("token", cached=CACHED, indexed=CACHED, most=MOST)
def index_break_even(cached: Value, indexed: Value, most: Value) -> Result:
    """Context beyond which picking `most` tokens by an index reads less than reading all: the index
    costs `indexed` bytes a token, the cache `cached`. Infinite if the index saves nothing.

    >>> round(index_break_even(576 * 2, 128 + 4, 2048))
    2313
    """
    return divide(cached * most, cached - indexed)


@law("byte", heads=HEADS, key_width=KEY, value_width=KEY, element_bytes=ELEMENT_BYTES)
def state_bytes(
    heads: Value, key_width: Value, value_width: Value, element_bytes: Value = 4
) -> Result:
    """Bytes of a recurrence's state in one layer: a matrix of keys by values per head, kept in fp32
    because rounding errors would accumulate. Each step reads and rewrites it.

    >>> state_bytes(64, 128, 128)
    4.19 MB
    """
    return heads * key_width * value_width * element_bytes


@law("", kv_heads=HEADS, ranks=count())
def kv_copies(kv_heads: Value, ranks: Value) -> Result:
    """Copies of a cache that a tensor group keeps: 1 while each rank has KV heads of its own, ranks
    / kv_heads when several ranks share a head and each keeps all of it.

    >>> kv_copies(8, 8), kv_copies(2, 8)
    (1, 4)
    """
    return maximum(1.0, divide(ranks, kv_heads))


@law("token", state=nonnegative("byte"), cached=CACHED)
def state_break_even(state: Value, cached: Value) -> Result:
    """Context at which a cache of `cached` bytes per token outgrows a state of constant size.

    >>> state_break_even(state_bytes(64, 128, 128), 2 * 2 * 256 * 2) == 2048
    True
    """
    return divide(state, cached)


@law("FLOP", heads=HEADS, key_width=KEY, value_width=KEY, chunk=count())
def recurrence_flops(
    heads: Value, key_width: Value, value_width: Value, chunk: Value = 1
) -> Result:
    """FLOPs a token of linear attention that reads a prompt in chunks: 4 k v a head to read and to
    write the state, and (k + v) (chunk + 1) for the tokens of its chunk up to itself, as attention
    would. Decays and corrections come on top.

    >>> recurrence_flops(1, 128, 128, 64) / recurrence_flops(1, 128, 128)
    1.244186046511628
    """
    return heads * (4 * key_width * value_width + (key_width + value_width) * (chunk + 1))
