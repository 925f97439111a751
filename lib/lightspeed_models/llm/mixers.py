"""What lets tokens see one another: kinds of attention, and recurrences. `decoder` says what each
of them answers, and where they are from.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from lightspeed.attention import (
    attention_bytes,
    attention_flops,
    index_bytes,
    index_flops,
    state_bytes,
)
from lightspeed.elementwise import INF, minimum
from lightspeed.errors import BadArgument

# The laws bare: what a mixer asks of them was checked when it was made.
_bytes: Callable[..., float] = attention_bytes.__wrapped__
_flops: Callable[..., float] = attention_flops.__wrapped__
_state: Callable[..., float] = state_bytes.__wrapped__
_index_bytes: Callable[..., float] = index_bytes.__wrapped__
_index_flops: Callable[..., float] = index_flops.__wrapped__


@dataclass(frozen=True)
class Attention:
    """Softmax attention: `kv_heads` keys and values that `heads` queries share, over all tokens or
    over the last `window` of them.

    `gated` gives each head an output gate, as wide as its value; `shared_kv` takes keys as values;
    `borrowed_kv` uses the cache of a layer before. `vectors` counts biases, norms and sinks. With
    an index (`index_heads`), MiniMax-M3's, a token attends to the `index_top` others in the blocks
    that a small second attention picks; its keys are kept in the format of the cache.
    """

    width: int
    heads: int
    kv_heads: int
    head_width: int
    value_width: int = 0
    window: int = 0
    gated: bool = False
    shared_kv: bool = False
    borrowed_kv: bool = False
    vectors: int = 0
    index_heads: int = 0
    index_width: int = 0
    index_top: int = 0

    def __post_init__(self) -> None:
        if self.kv_heads < 1 or self.heads % self.kv_heads:
            expected = f"a divisor of {self.heads} heads"
            raise BadArgument("Attention", "kv_heads", self.kv_heads, expected)

    @property
    def values(self) -> int:
        """Numbers of one head's value."""
        return self.value_width or self.head_width

    @property
    def matrices(self) -> int:
        queries = self.heads * self.head_width + self.gated * self.heads * self.values
        values = 0 if self.shared_kv else self.values
        keys = 0 if self.borrowed_kv else self.kv_heads * (self.head_width + values)
        index = (self.index_heads + 1) * self.index_width
        return self.width * (queries + keys + self.heads * self.values + index)

    @property
    def _most(self) -> float:
        """Tokens that a token attends to at most."""
        return self.window or self.index_top or INF

    def flops(self, context: float, decoding: bool = True) -> float:
        """Q K' and A V, and the scores of an index."""
        scores = _flops(context, self.heads, self.head_width, self.values, self._most)
        return scores + 2 * self.index_heads * self.index_width * context

    def _token(self, element_bytes: float) -> float:
        return _bytes(1, self.kv_heads, self.head_width, self.values, element_bytes)

    def growth(self, element_bytes: float) -> float:
        if self.window or self.borrowed_kv:
            return 0
        return self._token(element_bytes) + self.index_width * element_bytes

    def state(self, element_bytes: float, context: float = INF) -> float:
        span = minimum(context, self.window) if self.window else 0
        return 0 if self.borrowed_kv else span * self._token(element_bytes)

    def read_bytes(self, context: float, element_bytes: float) -> float:
        traffic = self._token(element_bytes) * minimum(context, self._most)
        return traffic + self.index_width * element_bytes * context


@dataclass(frozen=True)
class LatentAttention:
    """DeepSeek's: all heads' keys and values come from one compressed vector a token and a rotary
    part. With an index (`index_heads`), a token attends to the `index_top` others that a small
    second attention picks, and only that one looks at all.

    Decoding absorbs the matrices that expand the compressed vector into queries and results, so its
    scores are as wide as the vector; reading a prompt expands it for each head.
    """

    width: int
    heads: int
    kv_rank: int
    rotary: int
    plain: int
    value_width: int
    query_rank: int = 0
    index_heads: int = 0
    index_width: int = 0
    index_top: int = 0
    borrowed_index: bool = False

    @property
    def _owns_index(self) -> bool:
        return bool(self.index_heads) and not self.borrowed_index

    @property
    def matrices(self) -> int:
        query = self.heads * (self.plain + self.rotary)
        queries = self.query_rank * (self.width + query) or self.width * query
        compressed = self.width * (self.kv_rank + self.rotary)
        expanded = self.kv_rank * self.heads * (self.plain + self.value_width)
        return (
            queries
            + compressed
            + expanded
            + self.heads * self.value_width * self.width
            + (self._index_matrices if self._owns_index else 0)
        )

    @property
    def _index_matrices(self) -> int:
        queries = (self.query_rank or self.width) * self.index_heads * self.index_width
        return queries + self.width * (self.index_width + self.index_heads)

    @property
    def vectors(self) -> int:
        return self.query_rank + self.kv_rank + (2 * self.index_width if self._owns_index else 0)

    def flops(self, context: float, decoding: bool = True) -> float:
        key, value = (self.kv_rank,) * 2 if decoding else (self.plain, self.value_width)
        most = self.index_top or INF
        scores = _flops(context, self.heads, key + self.rotary, value, most)
        if not self._owns_index:
            return scores
        return scores + _index_flops(context, self.index_heads, self.index_width)

    def growth(self, element_bytes: float) -> float:
        """The compressed vector and its rotary part; the index's keys: a byte each, and a scale."""
        return self._vector(1, element_bytes) + self._index(1)

    def _vector(self, tokens: float, element_bytes: float) -> float:
        return _bytes(tokens, 1, self.kv_rank + self.rotary, 0, element_bytes)

    def _index(self, tokens: float) -> float:
        return _index_bytes(tokens, self.index_width) if self._owns_index else 0

    def state(self, element_bytes: float, context: float = INF) -> float:
        return 0

    def read_bytes(self, context: float, element_bytes: float) -> float:
        span = minimum(context, self.index_top or INF)
        return self._vector(span, element_bytes) + self._index(context)


class _Recurrence:
    """A mixer that keeps a state in place of a cache: it does not grow, and is read whole."""

    def growth(self, element_bytes: float) -> float:
        return 0

    def read_bytes(self, context: float, element_bytes: float) -> float:
        return self.state(element_bytes)  # type: ignore[attr-defined, no-any-return]


@dataclass(frozen=True)
class DeltaNet(_Recurrence):
    """Gated delta rule: each value head keeps a `key_width` × `value_width` matrix and corrects it
    by each token; a short convolution runs before it. With a `gate_rank`, Kimi's: each channel of a
    key decays at a rate of its own, and rates and output gate come through that many numbers.
    """

    width: int
    key_heads: int
    value_heads: int
    key_width: int
    value_width: int
    kernel: int
    gate_rank: int = 0

    @property
    def _channels(self) -> int:
        """What the convolution runs over: queries, keys and values."""
        return 2 * self.key_heads * self.key_width + self.value_heads * self.value_width

    @property
    def matrices(self) -> int:
        values = self.value_heads * self.value_width
        gates = self.width * (values + 2 * self.value_heads)
        if self.gate_rank:
            rates = self.value_heads * self.key_width
            gates = self.gate_rank * (2 * self.width + values + rates)
            gates += self.width * self.value_heads
        return self.width * (self._channels + values) + gates

    @property
    def vectors(self) -> int:
        rates = self.value_heads * (self.key_width if self.gate_rank else 1)
        return self._channels * self.kernel + rates + self.value_heads + self.value_width

    def flops(self, context: float, decoding: bool = True) -> float:
        """Decay, read by the key, write the correction, read by the query; the convolution."""
        cells = self.value_heads * self.key_width * self.value_width
        return 7 * cells + 2 * self._channels * self.kernel

    def state(self, element_bytes: float, context: float = INF) -> float:
        window = self._channels * (self.kernel - 1) * element_bytes
        return _state(self.value_heads, self.key_width, self.value_width) + window


@dataclass(frozen=True)
class Mamba(_Recurrence):
    """Mamba-2: each of `inner` channels keeps `state_width` numbers; `groups` share accesses."""

    width: int
    heads: int
    head_width: int
    state_width: int
    groups: int
    kernel: int
    convolution_bias: bool = True
    norm: bool = True

    @property
    def inner(self) -> int:
        return self.heads * self.head_width

    @property
    def _channels(self) -> int:
        return self.inner + 2 * self.groups * self.state_width

    @property
    def matrices(self) -> int:
        """In: a gate, what the convolution runs over, a step for each head. Out: the channels."""
        return self.width * (2 * self.inner + self._channels + self.heads)

    @property
    def vectors(self) -> int:
        """The convolution; decay, skip and step of each head; the gated norm."""
        convolution = self._channels * (self.kernel + self.convolution_bias)
        return convolution + 3 * self.heads + self.inner * self.norm

    def flops(self, context: float, decoding: bool = True) -> float:
        """Decay, write, read; the convolution."""
        return 5 * self.inner * self.state_width + 2 * self._channels * self.kernel

    def state(self, element_bytes: float, context: float = INF) -> float:
        window = self._channels * (self.kernel - 1) * element_bytes
        return _state(self.heads, self.state_width, self.head_width) + window


@dataclass(frozen=True)
class SelectiveScan(_Recurrence):
    """Mamba-1: each of `inner` channels keeps `state_width` numbers, and decays them at rates that
    come through `rank` numbers. `norms` counts what is normed of those, of writes and of reads.
    """

    width: int
    inner: int
    state_width: int
    rank: int
    kernel: int
    convolution_bias: bool = True
    norms: int = 0

    @property
    def matrices(self) -> int:
        """In, with a gate; rates, writes and reads; rates to all channels; out."""
        return self.inner * (3 * self.width + 2 * self.rank + 2 * self.state_width)

    @property
    def vectors(self) -> int:
        """The convolution; the decays; skip and step of each channel."""
        each = self.kernel + self.convolution_bias + self.state_width + 2
        return self.inner * each + self.norms

    def flops(self, context: float, decoding: bool = True) -> float:
        """Decay, write, read; the convolution."""
        return 5 * self.inner * self.state_width + 2 * self.inner * self.kernel

    def state(self, element_bytes: float, context: float = INF) -> float:
        window = self.inner * (self.kernel - 1) * element_bytes
        return _state(self.inner, self.state_width, 1) + window


@dataclass(frozen=True)
class ShortConvolution(_Recurrence):
    """LFM2's: a gated convolution over the last `kernel` tokens, and no other memory."""

    width: int
    kernel: int

    @property
    def matrices(self) -> int:
        """In, with two gates; out."""
        return 4 * self.width**2

    @property
    def vectors(self) -> int:
        return self.width * self.kernel

    def flops(self, context: float, decoding: bool = True) -> float:
        return 2 * self.width * self.kernel

    def state(self, element_bytes: float, context: float = INF) -> float:
        return self.width * (self.kernel - 1) * element_bytes


@dataclass(frozen=True)
class LightningAttention(_Recurrence):
    """MiniMax's linear attention: each head adds up k v' in a square matrix, with a decay."""

    width: int
    heads: int
    head_width: int

    @property
    def matrices(self) -> int:
        """Q, K, V, the output gate, the output."""
        return 5 * self.width * self.heads * self.head_width

    @property
    def vectors(self) -> int:
        return self.heads * self.head_width

    def flops(self, context: float, decoding: bool = True) -> float:
        """Decay, write, read."""
        return 5 * self.heads * self.head_width**2

    def state(self, element_bytes: float, context: float = INF) -> float:
        return _state(self.heads, self.head_width, self.head_width)


@dataclass(frozen=True)
class CompressedAttention:
    """DeepSeek-V4's: one vector a token, key and value at once and shared by all heads, is kept for
    a window; of what lies further back one vector is kept for `ratio` tokens. With an index, a
    token attends to the `index_top` compressed vectors that it picks, else to all. Without a ratio
    the window is all there is.

    The heads' results leave through `groups` narrow matrices of `output_rank` columns.
    """

    width: int
    heads: int
    head_width: int
    query_rank: int
    groups: int
    output_rank: int
    window: int
    ratio: int = 0
    index_heads: int = 0
    index_width: int = 0
    index_top: int = 0

    @property
    def _overlap(self) -> int:
        """With an index, windows overlap: each vector is compressed from two of them."""
        return 2 if self.index_heads else 1

    @property
    def _compressors(self) -> int:
        """Columns of the matrices that compress: vectors, and the index's keys."""
        return self._overlap * (self.head_width + self.index_width) if self.ratio else 0

    @property
    def matrices(self) -> int:
        inner = self.heads * self.head_width
        queries = self.query_rank * (self.width + inner + self.index_heads * self.index_width)
        result = self.output_rank * (inner + self.groups * self.width)
        index = self.width * self.index_heads
        return queries + self.width * (self.head_width + 2 * self._compressors) + result + index

    @property
    def vectors(self) -> int:
        """Norms, a sink for each head, and the place of each token in its window."""
        norms = self.query_rank + self.head_width + self.heads
        compressed = (self.head_width + self.index_width) * bool(self.ratio)
        return norms + compressed + self.ratio * self._compressors

    def _far(self, context: float) -> float:
        """Compressed vectors that a token attends to."""
        vectors = context / self.ratio if self.ratio else 0
        return minimum(vectors, self.index_top or INF)

    def flops(self, context: float, decoding: bool = True) -> float:
        span = minimum(context, self.window) + self._far(context)
        index = self.index_heads * self.index_width * context / (self.ratio or 1)
        return 4 * self.heads * self.head_width * span + 2 * index

    @property
    def _index_token(self) -> float:
        """Bytes of the index for each token: keys of one byte, with a scale of four."""
        return _index_bytes(1, self.index_width) / self.ratio if self.index_heads else 0

    def growth(self, element_bytes: float) -> float:
        if not self.ratio:
            return 0
        return self.head_width * element_bytes / self.ratio + self._index_token

    def state(self, element_bytes: float, context: float = INF) -> float:
        """The window, and what waits to be compressed: values and their weights."""
        waiting = 2 * self._overlap * self.ratio * self._compressors
        span = minimum(context, self.window)
        return (span * self.head_width + waiting) * element_bytes

    def read_bytes(self, context: float, element_bytes: float) -> float:
        span = minimum(context, self.window) + self._far(context)
        return span * self.head_width * element_bytes + self._index_token * context


Mixer: TypeAlias = (
    Attention
    | LatentAttention
    | CompressedAttention
    | DeltaNet
    | Mamba
    | SelectiveScan
    | ShortConvolution
    | LightningAttention
)
