"""A forward pass of a language model on several GPUs: what each reads, and what they exchange.
Used in chapter 4.

`serving.py` takes a replica for one chip. Here tensor parallelism splits the weights, and the KV
cache as far as there are KV heads; the GPUs pay for it with two all-reduces a layer. Where
attention runs on replicas of its own and only the experts are split, two all-to-alls stand in. Both
cost what `lightspeed.collectives` says. Plain numbers in SI.

Sources: Shoeybi et al., Megatron-LM (2019), for the all-reduces; DeepSeek-V3 technical report
(2024) for experts and replicas of attention; Pope et al., "Efficiently Scaling Transformer
Inference" (2022), for the cache. Engines: catalog/fitted_engines.toml.
"""

from dataclasses import dataclass
from typing import Any

from lightspeed.collectives import LATENCY, alltoall_time, ring_time
from lightspeed.decoder import Decoder, Experts
from lightspeed.elementwise import Result, Value, any_of, maximum, minimum, where
from lightspeed.errors import BadArgument
from lightspeed.law import ELEMENT_BYTES, checked, count, fraction, law, nonnegative, positive
from lightspeed.parallel import LAYERS, WAYS, WIDTH
from lightspeed.roofline import BANDWIDTH, PEAK, SHARE

__all__ = (
    "IDEAL", "Bill", "Engine", "Replica", "ShardedStep", "burst_time", "cache_ways",
    "cached_heads", "drafted_tokens", "exchange_time", "experts_read", "interrupted_step",
    "launched_time", "mixed_step", "sharded_step", "step_bill",
)  # fmt: skip

SECONDS = nonnegative("s")
BYTES = nonnegative("byte", hint="Of one GPU: the whole divided by the ways that split it.")


@law("", tokens=count(), experts=count(), active_experts=count())
def experts_read(tokens: Value, experts: Value, active_experts: Value) -> Result:
    """Experts of a layer that at least one of the tokens chooses, on average, if none is a
    favourite: E (1 - (1 - k / E)^tokens). Their weights are read, the others' are not.

    >>> experts_read(1, 256, 8), round(experts_read(64, 256, 8))
    (8, 222)
    """
    if any_of(active_experts > experts):
        raise BadArgument(
            "experts_read", "active_experts", active_experts, f"at most experts = {experts}"
        )
    return experts * (1 - (1 - active_experts / experts) ** tokens)


@law("", tensor=WAYS, kv_heads=count(hint="1 for DeepSeek's compressed cache: heads share it."))
def cache_ways(tensor: Value, kv_heads: Value) -> Result:
    """Ways in which tensor parallelism splits the KV cache: one a KV head. Beyond them GPUs hold
    copies.

    >>> cache_ways(4, 8), cache_ways(16, 8)
    (4, 8)
    """
    return minimum(tensor, kv_heads)


@law(
    "s",
    tokens=count(hint="Tokens of one GPU's replica of attention in this pass."),
    width=WIDTH,
    layers=LAYERS,
    tensor=WAYS,
    expert=WAYS,
    active_experts=count(),
    bandwidth=BANDWIDTH,
    latency=LATENCY,
    element_bytes=ELEMENT_BYTES,
)
def exchange_time(
    tokens: Value,
    width: Value,
    layers: Value,
    tensor: Value,
    bandwidth: Value,
    latency: Value = 0.0,
    expert: Value = 1,
    active_experts: Value = 1,
    element_bytes: Value = 2,
) -> Result:
    """Seconds that one pass of `tokens` spends on exchanges.

    Each layer has two all-reduces over `tensor` ranks, one after attention and one after its MLP.
    With experts over `expert` ranks that do not share their tokens, the second becomes two
    all-to-alls: each token goes to its `active_experts` and comes back.

    >>> exchange_time(16, 8192, 80, 8, 450e9) == 80 * 2 * ring_time(16 * 8192 * 2, 8, 450e9)
    True
    """
    size = tokens * width * element_bytes
    reduced = ring_time.__wrapped__(size, tensor, bandwidth, latency)
    sent = alltoall_time.__wrapped__(size * active_experts, expert, bandwidth, latency)
    return layers * (reduced + where(expert > 1, 2 * sent, reduced))


@dataclass(frozen=True)
class ShardedStep:
    """Where the time of one pass goes (s): `time` is `kv` plus the longer of `weights` and `math`,
    then `exchange` and `host`.
    """

    kv: float
    weights: float
    math: float
    exchange: Result
    host: Result
    time: float


@law(
    dict.fromkeys(("kv", "weights", "math", "exchange", "host", "time"), "s"),
    weight_bytes=BYTES,
    kv_bytes=BYTES,
    flops=nonnegative("FLOP"),
    peak=PEAK,
    bandwidth=BANDWIDTH,
    exchange=SECONDS,
    host=SECONDS,
    share=SHARE,
)
def sharded_step(
    weight_bytes: Value,
    kv_bytes: Value,
    flops: Value,
    peak: Value,
    bandwidth: Value,
    exchange: Value = 0.0,
    host: Value = 0.0,
    share: Value = 1.0,
) -> ShardedStep:
    """The `ShardedStep` (s) of a pass in which this GPU reads so many bytes of weights and caches
    and does `flops`. Its peak and its bandwidth reach `share`; `host` is what its launches wait.

    On one GPU, without exchange and host, this is `serving.decode_step`.

    >>> sharded_step(140e9 / 4, 0.0, 4e9, 1e15, 3.5e12, exchange=2e-3).time
    12 ms
    """
    kv, weights = kv_bytes / (bandwidth * share), weight_bytes / (bandwidth * share)
    arithmetic = flops / (peak * share)
    time = kv + maximum(weights, arithmetic) + exchange + host
    return ShardedStep(kv, weights, arithmetic, exchange, host, time)


@law("s", kernels=count(low=0), work=SECONDS, launch=SECONDS, wait=SECONDS)
def launched_time(kernels: Value, work: Value, launch: Value, wait: Value = 0.0) -> Result:
    """Seconds of a pass of `kernels` that work for `work` in all: the host needs `launch` for each,
    the GPU waits `wait` between two.

    The host runs ahead of the GPU, so the longer of the two sets the pace. A CUDA graph is launched
    as one: it leaves each kernel a smaller `launch` and `wait`, and the work as it is.

    >>> launched_time(400, 1e-3, 5e-6), launched_time(400, 1e-3, 0.9e-6)
    (2 ms, 1 ms)
    """
    return maximum(kernels * launch, work + kernels * wait)


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

    >>> from lightspeed.decoder import Layer, Mlp
    >>> from lightspeed.mixers import Attention
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


@law("s", step=positive("s"), prefill=SECONDS, batch=count(), output=count())
def interrupted_step(step: Value, prefill: Value, batch: Value, output: Value) -> Result:
    """Seconds between a request's tokens where prompts are read on the GPUs that decode.

    While a request writes `output` tokens, `batch` others come, itself included, and each holds up
    all for a `prefill`.

    >>> interrupted_step(20e-3, 100e-3, 64, 640)
    30 ms
    """
    return step + prefill * batch / output


@law("s", prompts=positive("request"), prefill=positive("s"))
def burst_time(prompts: Value, prefill: Value) -> Result:
    """Mean seconds until a prompt is read, when so many come at once and are read one by one.

    >>> burst_time(1, 0.1), burst_time(19, 0.1)
    (100 ms, 1 s)
    """
    return (prompts + 1) / 2 * prefill


@law("token", acceptance=fraction(hint="The chance that the model keeps a drafted token."),
     drafts=count(low=0))  # fmt: skip
def drafted_tokens(acceptance: Value, drafts: Value) -> Result:
    """Tokens of a step that checks `drafts` guesses in a row: each is kept if all before it were,
    and the model's own token follows the last one kept.

    Source: Leviathan et al., "Fast Inference from Transformers via Speculative Decoding" (2023).

    >>> drafted_tokens(0.0, 4), drafted_tokens(1.0, 4), drafted_tokens(0.5, 1)
    (1 token, 5 tokens, 1.5 tokens)
    """
    one = acceptance == 1
    lost = where(one, 1.0, 1 - acceptance)
    return where(one, drafts + 1, (1 - acceptance ** (drafts + 1)) / lost)
