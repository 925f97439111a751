"""A serving step of a model: what each GPU of a replica reads, computes and sends for the tokens of
prompts and the requests that decode together. A bound; with an `Engine`, what to expect.

`lightspeed.inference` has the laws that it puts together. Plain numbers in SI. Engines:
catalog/fitted_engines.toml.
"""

from dataclasses import dataclass
from typing import Any

from lightspeed.elementwise import Result, Value, any_of, minimum, where
from lightspeed.errors import BadArgument
from lightspeed.inference import SECONDS, ShardedStep, exchange_time, sharded_step
from lightspeed.law import ELEMENT_BYTES, checked, count, fraction, nonnegative, positive
from lightspeed.roofline import SHARE
from lightspeed_models.llm.decoder import Decoder, Experts

__all__ = ("IDEAL", "Bill", "Engine", "Replica", "cached_heads", "mixed_step", "step_bill")


@dataclass(frozen=True)
class Engine:
    """What serving adds to the bound, one constant each, as catalog/fitted_engines.toml has them.

    Of a step: the `share` of bandwidth that GPUs reach, and of their peak where `math` names no
    other; `host`, seconds a layer for its launches, and `expert_host` for those of a layer with
    experts in place of it; `row`, seconds a decoding request of a replica of attention; `hop`, the
    alpha of a step of an exchange (s). Of a first token: `front`, seconds before a prompt is read;
    `ahead`, steps that it waits for; `reading`, how many times the step that reads it; `crowd`,
    what other requests add to that, times the root of their number.
    """

    share: Value = 1.0
    host: Value = 0.0
    hop: Value = 0.0
    front: Value = 0.0
    math: Value = 0.0
    expert_host: Value = 0.0
    row: Value = 0.0
    ahead: Value = 0.0
    reading: Value = 1.0
    crowd: Value = 0.0

    def __post_init__(self) -> None:
        checked("Engine", "share", self.share, SHARE)
        checked("Engine", "math", self.math, fraction())
        checked("Engine", "reading", self.reading, positive())
        for name in ("host", "hop", "front", "expert_host", "row"):
            checked("Engine", name, getattr(self, name), SECONDS)
        for name in ("ahead", "crowd"):
            checked("Engine", name, getattr(self, name), nonnegative())


IDEAL = Engine()


@dataclass(frozen=True)
class Replica:
    """GPUs that serve together: `tensor` ways split a layer's attention, of which there are `data`
    replicas; the experts lie over all of them.
    """

    peak: float
    memory: float
    link: float
    tensor: int = 1
    data: int = 1
    weight_bytes: float = 2.0
    cache_bytes: float = 2.0

    def __post_init__(self) -> None:
        for name, unit in (("peak", "FLOP/s"), ("memory", "byte/s"), ("link", "byte/s")):
            checked("Replica", name, getattr(self, name), positive(unit))
        for name in ("tensor", "data"):
            checked("Replica", name, getattr(self, name), count())
        for name in ("weight_bytes", "cache_bytes"):
            checked("Replica", name, getattr(self, name), ELEMENT_BYTES)

    @property
    def gpus(self) -> int:
        return self.tensor * self.data


@dataclass(frozen=True)
class Bill:
    """What a step takes of one GPU before any engine adds to it: bytes read, FLOPs, seconds of
    exchange and the hops that they start with, layers of two kinds and rows of a replica.
    """

    weight_bytes: Value
    kv_bytes: Value
    flops: Value
    exchange: Value
    hops: Value
    plain_layers: Value
    expert_layers: Value
    rows: Value
    peak: Value
    memory: Value

    def step(self, engine: Engine = IDEAL) -> ShardedStep:
        """The `ShardedStep` (s) with what an engine adds."""
        math = where(engine.math > 0, engine.math, engine.share)
        extra = where(engine.expert_host > 0, engine.expert_host, engine.host)
        host = engine.host * self.plain_layers + extra * self.expert_layers
        return sharded_step(
            self.weight_bytes,
            self.kv_bytes,
            self.flops,
            self.peak * math / engine.share,
            self.memory,
            self.exchange + engine.hop * self.hops,
            host + engine.row * self.rows,
            engine.share,
        )


def mixed_step(
    model: Decoder,
    replica: Replica,
    tokens: Value = 0,
    rows: Value = 0,
    contexts: Value = 0,
    seen: Value = 0,
    prompts: Value = 1,
    engine: Engine = IDEAL,
) -> ShardedStep:
    """The `ShardedStep` (s) of a step that reads `tokens` of prompts and takes `rows` requests on
    by a token each, together: weights are read once for both.

    Each token of a prompt sees `seen` others and each row holds `contexts` tokens, on average.
    `prompts` are read side by side: each reads again what it has seen. All counts are of the whole
    replica; arrays give a step each. By layer: softmax attention reads its cache, a window only
    what it sees, a recurrence its state, latent attention its compressed vectors, for which it
    computes less when it reads a prompt.

    >>> from lightspeed_models.llm.decoder import Layer, Mlp
    >>> from lightspeed_models.llm.mixers import Attention
    >>> layer = Layer(Attention(4096, 32, 8, 128), Mlp(4096, 14336), 8192, 32)
    >>> llama = Decoder(4096, 128256, False, (layer,), 4096)
    >>> h100 = Replica(989e12, 3.35e12, 450e9)
    >>> alone, beside = (mixed_step(llama, h100, 512, rows, 1000).time for rows in (0, 64))
    >>> alone < beside < alone + mixed_step(llama, h100, 0, 64, 1000).time
    True
    """
    return step_bill(model, replica, tokens, rows, contexts, seen, prompts).step(engine)


def step_bill(
    model: Decoder,
    replica: Replica,
    tokens: Value = 0,
    rows: Value = 0,
    contexts: Value = 0,
    seen: Value = 0,
    prompts: Value = 1,
) -> Bill:
    """The `Bill` of such a step: `mixed_step` before an engine adds to it."""
    for name, value, unit in (
        ("tokens", tokens, "token"),
        ("rows", rows, "request"),
        ("contexts", contexts, "token"),
        ("seen", seen, "token"),
        ("prompts", prompts, "request"),
    ):
        checked("mixed_step", name, value, nonnegative(unit))
    passed = tokens + rows
    if any_of(passed == 0):
        raise BadArgument("mixed_step", "rows", rows, "a step with a token in it", "Or `tokens`.")
    expert_layers = sum(layer.repeat for layer in model.layers if isinstance(layer.mlp, Experts))
    if replica.data > 1 and not expert_layers:
        raise BadArgument(
            "mixed_step", "replica", replica, "data = 1 for a model without experts",
            "Replicas that share nothing are separate: give one of them its requests.",
        )  # fmt: skip
    chunks = minimum(prompts, tokens)  # no prompt where no token is read
    logits = model.width * model.vocabulary
    weights, flops, kv = logits / replica.tensor, 2 * logits * (rows + chunks), 0.0 * rows
    active = 1
    for layer in model.layers:
        if layer.mixer:
            mixer: Any = layer.mixer  # its counts are plain arithmetic, of arrays too
            each = replica.cache_bytes
            read = rows * mixer.read_bytes(contexts, each) + chunks * mixer.read_bytes(seen, each)
            ways = minimum(replica.tensor, cached_heads(mixer)) * replica.data
            kv += layer.repeat * read / ways
            weights += layer.repeat * mixer.matrices / replica.tensor
            scores = rows * mixer.flops(contexts) + tokens * mixer.flops(seen, decoding=False)
            flops += layer.repeat * (2 * mixer.matrices * passed + scores)
        if layer.mlp:
            flops += layer.repeat * 2 * layer.mlp.active_matrices * passed
            weights += layer.repeat * _mlp_read(layer.mlp, replica, passed)
            active = max(active, getattr(layer.mlp, "active", 1))
    ways = replica.gpus if replica.data > 1 else 1

    def exchange(latency: float) -> Result:
        return exchange_time.__wrapped__(
            passed / replica.data, model.width, model.depth, replica.tensor, replica.link, latency,
            ways, active,
        )  # fmt: skip

    return Bill(
        weights * replica.weight_bytes,
        kv,
        flops / replica.gpus,
        exchange(0.0),
        exchange(1.0) - exchange(0.0),
        model.depth - expert_layers,
        expert_layers,
        rows / replica.data,
        replica.peak,
        replica.memory,
    )


def cached_heads(mixer: Any) -> int:
    """Heads over which tensor parallelism splits what a layer keeps: one for latent attention."""
    if hasattr(mixer, "kv_rank"):
        return 1
    heads: int = getattr(mixer, "kv_heads", 0) or getattr(mixer, "value_heads", 0) or mixer.heads
    return heads


def _mlp_read(mlp: Any, replica: Replica, passed: Value) -> Result:
    """Parameters of an MLP that one GPU reads, its part of the experts that are chosen included."""
    if not isinstance(mlp, Experts):
        return mlp.matrices / replica.tensor
    chosen = mlp.experts * (1 - (1 - mlp.active / mlp.experts) ** passed)
    always = mlp.matrices - mlp.experts * mlp.expert.matrices
    return always / replica.tensor + chosen * mlp.expert.matrices / replica.gpus
