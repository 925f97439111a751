"""A decoder layer by layer: what each kind of attention and MLP holds, computes and remembers.
Derived in chapter 6.

A `Decoder` is a list of layers. A layer has a mixer, which lets tokens see one another (attention
in one of its kinds, or a recurrence), and an MLP, dense or of experts; either may be missing. All
mixers answer the same questions, for one token while a request holds `context` tokens:

    matrices, vectors          parameters that a token is multiplied with, and the few others
    flops(context)             FLOPs beyond the matrices: scores, their use, updates of a state
    growth(element_bytes)      bytes that each further token adds to the request, for good
    state(element_bytes, ...)  bytes that a request holds however long it is: windows, recurrences
    read_bytes(context, ...)   bytes of the request's memory that one decode step reads

Sources: Shazeer (2019) and Ainslie et al. (2023) for shared heads; DeepSeek-V2 (2024) for latent
attention, DeepSeek-V3.2 (2025) for its index, DeepSeek-V4 (2026) for
compressed attention; Yang et al., Gated Delta Networks (2024); Dao and Gu,
Mamba-2 (2024); MiniMax-01 (2025) for lightning attention; the public modelling code of each.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from lightspeed.attention import CONTEXT
from lightspeed.errors import BadArgument, one_of
from lightspeed.law import ELEMENT_BYTES, checked, count, fraction, positive, with_unit
from lightspeed.values import Whole
from lightspeed_models.llm.mixers import Attention, CompressedAttention, LatentAttention, Mixer

PHASES = ("decode", "prefill", "training")
PARTS = 64  # of a prompt, at whose midpoints it is counted


@dataclass(frozen=True)
class Mlp:
    """`matrices_each` is 3 with a gate and 2 without; with `bias` each matrix has one."""

    width: int
    hidden: int
    matrices_each: int = 3
    bias: bool = False

    @property
    def matrices(self) -> int:
        return self.matrices_each * self.width * self.hidden

    @property
    def vectors(self) -> int:
        return ((self.matrices_each - 1) * self.hidden + self.width) * self.bias

    active_matrices, active_vectors = matrices, vectors  # a token passes all of it


@dataclass(frozen=True)
class Experts:
    """`active` of `experts` MLPs a token, beside `shared`, which each token passes.

    Experts may work on a narrower vector of `latent` numbers, with a projection to it and back.
    `router_vectors` counts what chooses beside its matrix: biases, scales, the gate of the shared.
    """

    width: int
    hidden: int
    experts: int
    active: int
    matrices_each: int = 3
    bias: bool = False
    shared: Mlp | None = None
    latent: int = 0
    router_vectors: int = 0

    def __post_init__(self) -> None:
        if not 0 < self.active <= self.experts:
            expected = f"1 to the {self.experts} experts"
            raise BadArgument("Experts", "active", self.active, expected)

    @property
    def expert(self) -> Mlp:
        return Mlp(self.latent or self.width, self.hidden, self.matrices_each, self.bias)

    def _matrices(self, experts: int) -> int:
        always = self.width * self.experts + 2 * self.width * self.latent
        shared = self.shared.matrices if self.shared else 0
        return experts * self.expert.matrices + always + shared

    @property
    def matrices(self) -> int:
        return self._matrices(self.experts)

    @property
    def active_matrices(self) -> int:
        """Those that one token is multiplied with."""
        return self._matrices(self.active)

    def _vectors(self, experts: int) -> int:
        shared = self.shared.vectors if self.shared else 0
        return experts * self.expert.vectors + shared + self.router_vectors

    @property
    def vectors(self) -> int:
        return self._vectors(self.experts)

    @property
    def active_vectors(self) -> int:
        return self._vectors(self.active)


@dataclass(frozen=True)
class Layer:
    """`repeat` layers that are alike. `norms` counts the parameters of one layer's norms."""

    mixer: Mixer | None
    mlp: Mlp | Experts | None
    norms: int
    repeat: int = 1


@dataclass(frozen=True)
class Decoder:
    """A language model: layers between a table of tokens and the logits.

    `extras` counts the parameters outside the layers that are neither table nor matrix of logits:
    the last norm, learned positions, biases. `tower` counts those of a tower that sees, which is no
    part of anything else here. `assumed` says in words what nobody wrote down.

    >>> from lightspeed_models.llm.mixers import Attention
    >>> tiny = Decoder(64, 1000, True, (Layer(Attention(64, 4, 2, 16), Mlp(64, 256), 128, 2),), 64)
    >>> tiny.parameters, tiny.kv_cache_bytes_per_token()
    (187,200 parameters, 256 bytes)
    """

    width: int
    vocabulary: int
    tied_embeddings: bool
    layers: tuple[Layer, ...]
    extras: int = 0
    name: str = ""
    assumed: tuple[str, ...] = ()
    tower: int = 0

    def __post_init__(self) -> None:
        for name in ("width", "vocabulary"):
            checked("Decoder", name, getattr(self, name), count())

    def _mixers(self) -> Iterator[tuple[Mixer, int]]:
        return ((layer.mixer, layer.repeat) for layer in self.layers if layer.mixer)

    @property
    def depth(self) -> int:
        """Layers, of all kinds."""
        return sum(layer.repeat for layer in self.layers)

    @property
    def embeddings(self) -> int:
        """Parameters of the tables: tokens in and logits out, one table if they are tied."""
        return self.vocabulary * self.width * (1 if self.tied_embeddings else 2)

    @property
    def parameters(self) -> int:
        """All parameters."""
        return self._parameters(lambda mlp: mlp.matrices + mlp.vectors)

    @property
    def active_parameters(self) -> int:
        """Parameters that one token uses: all, but for the experts that are not chosen for it."""
        return self._parameters(lambda mlp: mlp.active_matrices + mlp.active_vectors)

    def _parameters(self, of_mlp: Callable[[Mlp | Experts], int]) -> int:
        mixers = sum((m.matrices + m.vectors) * repeat for m, repeat in self._mixers())
        mlps = sum(of_mlp(layer.mlp) * layer.repeat for layer in self.layers if layer.mlp)
        norms = sum(layer.norms * layer.repeat for layer in self.layers)
        return Whole(mixers + mlps + norms + self.embeddings + self.extras, "parameter")

    @property
    def matrices(self) -> int:
        """Parameters that one token is multiplied with in the layers; tables are not among them."""
        mlps = sum(layer.mlp.active_matrices * layer.repeat for layer in self.layers if layer.mlp)
        return mlps + sum(mixer.matrices * repeat for mixer, repeat in self._mixers())

    @property
    def attention(self) -> Any:
        """The first layer's softmax attention; others may see a window, or have other heads."""
        kinds = (Attention, LatentAttention, CompressedAttention)
        return next(mixer for mixer, _ in self._mixers() if isinstance(mixer, kinds))

    @property
    def heads(self) -> int:
        """Heads of attention, the fewest of any layer: as many ways tensor parallelism has."""
        return min(mixer.heads for mixer, _ in self._mixers() if hasattr(mixer, "heads"))

    @property
    def mlp(self) -> Any:
        """The first layer's MLP, which in a model with experts may be a dense one."""
        return next(layer.mlp for layer in self.layers if layer.mlp)

    @property
    def sparse_layers(self) -> tuple[tuple[Experts, int], ...]:
        """The MLPs that are a choice of experts, and how many layers have each."""
        layers = ((layer.mlp, layer.repeat) for layer in self.layers)
        return tuple((mlp, repeat) for mlp, repeat in layers if isinstance(mlp, Experts))

    @property
    def experts(self) -> int:
        """Experts of a layer, the fewest where layers differ; 0 for a model without."""
        return min((mlp.experts for mlp, _ in self.sparse_layers), default=0)

    @property
    def expert_parameters(self) -> int:
        """Parameters of all experts that tokens choose from, which expert parallelism spreads."""
        each = (mlp.experts * mlp.expert.matrices * repeat for mlp, repeat in self.sparse_layers)
        return sum(each)

    def _scores(self, context: float, decoding: bool) -> float:
        """FLOPs of one token beyond the matrices: scores and their use, updates of a state."""
        return sum(mixer.flops(context, decoding) * repeat for mixer, repeat in self._mixers())

    def flops_per_token(self, context: float, phase: str) -> float:
        """FLOPs of one token in a phase: 2 a parameter of its matrices, scores or states, logits.

        "decode" takes a request on by a token that sees `context` others; latent attention absorbs
        its expansion. "prefill" reads a prompt of `context` tokens: the mean over what each of them
        sees, by the midpoints of 64 equal parts. "training" is three forward passes in sequences of
        `context` tokens, of which, as the field counts, each token sees all that its layer lets it.

        >>> from lightspeed_models.llm import decoder
        >>> v3 = decoder("DeepSeek-V3")
        >>> v3.flops_per_token(1000, "decode"), v3.flops_per_token(1000, "prefill")
        (90.2 GFLOP/token, 75.7 GFLOP/token)
        """
        context = checked("flops_per_token", "context", context, CONTEXT)
        one_of("flops_per_token", "phase", phase, PHASES)
        every = 2 * (self.matrices + self.width * self.vocabulary) + 0 * context
        if phase == "prefill":
            span = ((i + 0.5) / PARTS * context for i in range(PARTS))
            return _amount(every + sum(self._scores(n, False) for n in span) / PARTS, "FLOP/token")
        forward = every + self._scores(context, phase == "decode")
        return _amount(3 * forward if phase == "training" else forward, "FLOP/token")

    def training_flops(self, tokens: float, sequence: float = 0, recomputed: float = 0.0) -> float:
        """FLOPs to train on `tokens` in sequences of this length, counted as in "training", and a
        share of a fourth forward pass: `recomputed` of the layers' is done twice, logits never are.

        >>> from lightspeed_models.llm import decoder
        >>> round(decoder("GPT-3-175B").training_flops(3e11, 2048) / 1e23, 2)
        3.23
        """
        tokens = checked("training_flops", "tokens", tokens, positive("token"))
        recomputed = checked("training_flops", "recomputed", recomputed, fraction())
        sequence = checked("training_flops", "sequence", sequence, CONTEXT)
        layers = 2 * self.matrices + self._scores(sequence, False)
        total = tokens * ((3 + recomputed) * layers + 6 * self.width * self.vocabulary)
        return _amount(total, "FLOP")

    def kv_cache_bytes_per_token(self, element_bytes: float = 2) -> float:
        """Bytes that a further token of a request keeps: caches of layers that see everything."""
        return self._over_mixers("kv_cache_bytes_per_token", "growth", element_bytes)

    def state_bytes(self, element_bytes: float = 2) -> float:
        """Bytes that a request holds however long it is: windows that are full, states."""
        return self._over_mixers("state_bytes", "state", element_bytes)

    def request_bytes(self, context: float, element_bytes: float = 2) -> float:
        """Bytes that a request of `context` tokens holds, its windows as far as they are filled."""
        context = checked("request_bytes", "context", context, CONTEXT)
        growth = self.kv_cache_bytes_per_token(element_bytes)
        states = (m.state(element_bytes, context) * repeat for m, repeat in self._mixers())
        return _amount(sum(states) + context * growth, "byte")

    def read_bytes(self, context: float, element_bytes: float = 2) -> float:
        """Bytes of one request's memory that a decode step reads at `context` tokens."""
        context = checked("read_bytes", "context", context, CONTEXT)
        checked("read_bytes", "element_bytes", element_bytes, ELEMENT_BYTES)
        sizes = (m.read_bytes(context, element_bytes) * repeat for m, repeat in self._mixers())
        return _amount(sum(sizes) + 0 * context, "byte")  # as long as an array of contexts

    def _over_mixers(self, law: str, name: str, element_bytes: float) -> float:
        checked(law, "element_bytes", element_bytes, ELEMENT_BYTES)
        sizes = (getattr(mixer, name)(element_bytes) * repeat for mixer, repeat in self._mixers())
        return _amount(sum(sizes), "byte")


def _amount(number: float, unit: str) -> float:
    """A number that knows its unit; an array, which the laws take too, stays one."""
    amount: float = with_unit(number, unit)
    return amount
