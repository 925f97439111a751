"""A transformer counted: parameters, FLOPs and KV cache from its configuration. Derived in chapter
6.

Two families of layer are known. With two MLP matrices a model is a GPT: biases everywhere,
LayerNorm with scale and shift, learned positions. With three it is a Llama: gated MLP, no bias,
RMSNorm, no learned positions; its attention may share keys and values between heads, its MLP may be
a choice of experts, and with `kv_rank` its attention is DeepSeek's, which keeps one compressed
vector a token.

Sources: Austin et al., "How to Scale Your Model", transformers chapter (2025); Narayanan et al.
(2021) for the FLOPs; DeepSeek-V3 technical report (2024) for the compressed attention; Korthikanti
et al. (2022) and Megatron-LM, theoretical_memory_usage.py, for what a layer keeps. Shapes:
catalog/models.toml.
"""

from dataclasses import dataclass, fields

from lightspeed.catalog import entries
from lightspeed.errors import BadArgument, one_of
from lightspeed.law import ELEMENT_BYTES, checked, count, fraction, positive
from lightspeed.serving import kv_cache_bytes

__all__ = ("Transformer", "transformer")

MAYBE = count(low=0)


@dataclass(frozen=True)
class Transformer:
    """The shape of a decoder. Counts are whole; a shape that no model can have raises BadArgument.

    `dense_layers` is how many layers have a plain MLP in a model with experts. `active_experts` are
    chosen for each token; `shared_experts` are always on. `layer_extras` are parameters of a layer
    that no rule here gives, such as norms of queries and keys.
    """

    layers: int
    width: int
    heads: int
    head_width: int
    hidden: int
    vocabulary: int
    kv_heads: int = 0
    context: int = 0
    mlp_matrices: int = 3
    tied_embeddings: bool = False
    experts: int = 0
    active_experts: int = 0
    shared_experts: int = 0
    expert_hidden: int = 0
    dense_layers: int = 0
    query_rank: int = 0
    kv_rank: int = 0
    head_width_plain: int = 0
    head_width_rotary: int = 0
    head_width_value: int = 0
    layer_extras: int = 0

    def __post_init__(self) -> None:
        needed = ("layers", "width", "heads", "head_width", "hidden", "vocabulary")
        for name in (f.name for f in fields(self) if f.name != "tied_embeddings"):
            checked("Transformer", name, getattr(self, name), count() if name in needed else MAYBE)
        if self.mlp_matrices not in (2, 3):
            raise BadArgument(
                "Transformer", "mlp_matrices", self.mlp_matrices, "2 (a GPT) or 3 (gated)"
            )
        if self.heads % (self.kv_heads or self.heads):
            raise BadArgument(
                "Transformer", "kv_heads", self.kv_heads, f"a divisor of the {self.heads} heads"
            )
        if self.active_experts > self.experts:
            raise BadArgument(
                "Transformer",
                "active_experts",
                self.active_experts,
                f"at most the {self.experts} experts",
            )

    @property
    def gpt(self) -> bool:
        return self.mlp_matrices == 2

    @property
    def attention_matrices(self) -> int:
        """Parameters of one layer's attention matrices."""
        if self.kv_rank:
            queries = self.query_rank * (
                self.width + self.heads * (self.head_width_plain + self.head_width_rotary)
            )
            cached = self.width * (self.kv_rank + self.head_width_rotary)
            return (
                queries
                + cached
                + self.heads
                * (
                    self.kv_rank * (self.head_width_plain + self.head_width_value)
                    + self.head_width_value * self.width
                )
            )
        return 2 * self.width * self.head_width * (self.heads + (self.kv_heads or self.heads))

    @property
    def expert_matrices(self) -> int:
        """Parameters of the matrices of one expert, or of the MLP if there are none."""
        return self.mlp_matrices * self.width * (self.expert_hidden or self.hidden)

    @property
    def spread_experts(self) -> int:
        """Parameters of all experts that are chosen, which expert parallelism spreads."""
        return self.expert_matrices * self.experts * (self.layers - self.dense_layers)

    def _mlp_matrices(self, experts: int) -> int:
        """Parameters of all layers' MLP matrices with so many experts on, choosers included."""
        if not self.experts:
            return self.layers * self.expert_matrices
        dense = self.dense_layers * self.mlp_matrices * self.width * self.hidden
        sparse = (experts + self.shared_experts) * self.expert_matrices + self.width * self.experts
        return dense + (self.layers - self.dense_layers) * sparse

    @property
    def embeddings(self) -> int:
        """Parameters of the tables: tokens in and out (one if tied), learned positions of a GPT."""
        return self.vocabulary * self.width * (1 if self.tied_embeddings else 2) + (
            self.context * self.width if self.gpt else 0
        )

    @property
    def norms_and_biases(self) -> int:
        """Parameters that are no matrix: few, but without them no count is exact."""
        if self.gpt:
            each_layer = (
                (self.heads + 2 * (self.kv_heads or self.heads)) * self.head_width
                + self.hidden
                + 6 * self.width
            )
            return self.layers * each_layer + 2 * self.width
        # DeepSeek also norms the two compressed vectors, and steers experts by a bias each.
        ranks = self.query_rank + self.kv_rank
        steering = self.experts * (self.layers - self.dense_layers) if self.kv_rank else 0
        return self.layers * (2 * self.width + ranks + self.layer_extras) + self.width + steering

    @property
    def parameters(self) -> int:
        """All parameters.

        >>> transformer("gpt2").parameters, transformer("llama3_8b").parameters
        (124439808, 8030261248)
        """
        return (
            self.layers * self.attention_matrices
            + self._mlp_matrices(self.experts)
            + self.embeddings
            + self.norms_and_biases
        )

    @property
    def active_parameters(self) -> int:
        """Parameters that one token uses: all, but for the experts that are not chosen for it."""
        return (
            self.parameters
            - self._mlp_matrices(self.experts)
            + self._mlp_matrices(self.active_experts)
        )

    @property
    def block_matrices(self) -> int:
        """Parameters that one token is multiplied with in the layers; the token table is not."""
        return self.layers * self.attention_matrices + self._mlp_matrices(self.active_experts)

    def kept_bytes_per_token(self) -> tuple[float, float]:
        """Bytes that a layer keeps of a token for its backward pass, in 2-byte elements, attention
        scores aside.

        A pair. First what tensor parallelism leaves whole: inputs and outputs of the two norms, and
        the one-byte masks of a GPT's two dropouts. Then what it splits: Q, K, V and the heads'
        result, and as many hidden vectors as the MLP has matrices. Of experts, those that a token
        uses, and its copies sent to them; layers of two kinds are averaged.

        >>> gpt3 = transformer("gpt3_175b")
        >>> [kept / gpt3.width for kept in gpt3.kept_bytes_per_token()]
        [10.0, 24.0]
        """
        masks = 2 * self.width if self.gpt else 0
        return 2 * 4 * self.width + masks, 2 * (self._kept_by_attention + self._kept_by_mlp)

    @property
    def _kept_by_attention(self) -> float:
        if not self.kv_rank:
            return 2 * self.head_width * (self.heads + (self.kv_heads or self.heads))
        # The compressed vectors stay before and after their norms.
        keys = self.heads * (self.head_width_plain + self.head_width_rotary)
        compressed = 2 * (self.query_rank + self.kv_rank) + self.head_width_rotary
        return compressed + 2 * keys + 2 * self.heads * self.head_width_value

    @property
    def _kept_by_mlp(self) -> float:
        dense = self.mlp_matrices * self.hidden
        if not self.experts:
            return dense
        used = (self.active_experts + self.shared_experts) * (self.expert_hidden or self.hidden)
        sparse = self.mlp_matrices * used + self.active_experts * self.width
        share = self.dense_layers / self.layers
        return share * dense + (1 - share) * sparse

    def flops_per_token(self, context: float = 0) -> float:
        """FLOPs of a forward pass for one token that attends to `context` others: 2 a parameter,
        the scores, the logits.

        >>> matrices = 8030261248 - 128256 * 4096 - 266240  # all but the embedding and the norms
        >>> transformer("llama3_8b").flops_per_token() == 2 * matrices
        True
        """
        context = checked("flops_per_token", "context", context, MAYBE)
        return 2 * self.block_matrices + self._scores(context) + 2 * self.width * self.vocabulary

    def _scores(self, context: float) -> float:
        """FLOPs of the scores and of their use, Q K' and A V, of one token over the layers."""
        widths = (
            self.head_width_plain + self.head_width_rotary + self.head_width_value
            if self.kv_rank
            else 2 * self.head_width
        )
        return 2 * self.layers * self.heads * widths * context

    def training_flops(self, tokens: float, sequence: float = 0, recomputed: float = 0.0) -> float:
        """FLOPs to train on `tokens` in sequences of this length: three forward passes, and a share
        of a fourth.

        The scores are counted as the field does, as if each token attended to all of its sequence;
        a causal kernel does half. `recomputed` is the share of the layers' forward pass done twice;
        logits never are.

        >>> gpt3 = transformer("gpt3_175b")
        >>> round(gpt3.training_flops(3e11, 2048) / 1e23, 2)
        3.23
        """
        tokens = checked("training_flops", "tokens", tokens, positive("token"))
        recomputed = checked("training_flops", "recomputed", recomputed, fraction())
        sequence = checked("training_flops", "sequence", sequence, MAYBE)
        blocks = 2 * self.block_matrices + self._scores(sequence)
        return tokens * ((3 + recomputed) * blocks + 6 * self.width * self.vocabulary)

    def kv_cache_bytes_per_token(self, element_bytes: float = 2) -> float:
        """Bytes that generating keeps of each token: keys and values, or DeepSeek's compressed
        vector.

        >>> transformer("llama3_70b").kv_cache_bytes_per_token()
        327,680 bytes
        """
        if self.kv_rank:
            element_bytes = checked(
                "kv_cache_bytes_per_token", "element_bytes", element_bytes, ELEMENT_BYTES
            )
            return self.layers * (self.kv_rank + self.head_width_rotary) * element_bytes
        return kv_cache_bytes(
            self.layers, self.kv_heads or self.heads, self.head_width, 1, element_bytes
        )


def transformer(key: str) -> Transformer:
    """The `Transformer` of a model in the catalog, such as "llama3_70b".

    >>> transformer("mixtral_8x7b").active_parameters
    12879925248
    """
    models = {k: model for k, model in entries("models").items() if "layers" in model.about}
    about = models[one_of("transformer", "key", key, tuple(models))].about
    shape = {f.name: about[f.name] for f in fields(Transformer) if f.name in about}
    # DeepSeek's heads have three widths; the one that all share stands for them.
    return Transformer(**{"head_width": about.get("head_width_plain", 0)} | shape)
