"""A serving step of a model: what each GPU of a replica reads, computes and sends for the tokens of
prompts and the requests that decode together. A bound; with an `Engine`, what to expect.

`lightspeed.inference` has the laws that it puts together. Plain numbers in SI. Engines:
catalog/fitted_engines.toml.
"""

import functools
from dataclasses import dataclass, replace
from typing import Any

from lightspeed.catalog import find, fitted
from lightspeed.elementwise import Result, Value, any_of, maximum, minimum, where
from lightspeed.errors import BadArgument, one_of
from lightspeed.inference import SECONDS, ShardedStep, exchange_time, sharded_step
from lightspeed.law import ELEMENT_BYTES, checked, count, fraction, nonnegative, positive
from lightspeed.roofline import SHARE
from lightspeed_models.llm.decoder import Decoder, Experts
from lightspeed_models.llm.mixers import CompressedAttention, LatentAttention

# Bytes of a weight and of a cached element. NVFP4 has an fp8 scale for 16 elements.
WEIGHTS = {"bf16": (2.0, 2.0), "fp8": (1.0, 1.0), "fp4": (0.5 + 1 / 16, 1.0)}


@dataclass(frozen=True)
class Engine:
    """What serving adds to the bound, one constant each, as catalog/fitted_engines.toml has them.

    Of a step: the `share` of bandwidth that GPUs reach, and of their peak where `math` names no
    other; `hop`, the alpha of a step of an exchange (s); `row`, seconds a decoding request of a
    replica of attention. A step that decodes is launched as a graph: `host` seconds a layer,
    `expert_host` one with experts. A step that reads prompts is launched kernel by kernel, beside
    its own work: `reading` and `expert_reading` seconds a layer; and experts reach only `experts`
    of the peak in it. `front` is what a request waits before and after all steps (s).
    """

    share: Value = 1.0
    host: Value = 0.0
    hop: Value = 0.0
    front: Value = 0.0
    math: Value = 0.0
    expert_host: Value = 0.0
    row: Value = 0.0
    reading: Value = 0.0
    expert_reading: Value = 0.0
    experts: Value = 0.0

    def __post_init__(self) -> None:
        checked("Engine", "share", self.share, SHARE)
        for name in ("math", "experts"):
            checked("Engine", name, getattr(self, name), fraction())
        for name in ("host", "hop", "front", "expert_host", "row", "reading", "expert_reading"):
            checked("Engine", name, getattr(self, name), SECONDS)


IDEAL = Engine()


def engine(key: str) -> Engine:
    """The `Engine` of this key in catalog/fitted_engines.toml.

    >>> 0.5 < engine("vllm").share < 0.8
    True
    """
    tables = _engines()
    row = tables[one_of("engine", "key", key, tuple(tables))]
    return Engine(**{name: constant["value"] for name, constant in row["fitted"].items()})


@functools.cache
def _engines() -> dict[str, Any]:
    return fitted("engines")


@dataclass(frozen=True)
class Replica:
    """GPUs that serve together: `tensor` ways split a layer's attention, of which there are `data`
    replicas; the experts lie over all of them. Products with weights reach `peak`, scores of
    attention `wide_peak`, the rate in 16 bits, where that is another. Where a replica lies over
    several nodes, experts are reached over the `network`.
    """

    peak: float
    memory: float
    link: float
    tensor: int = 1
    data: int = 1
    weight_bytes: float = 2.0
    cache_bytes: float = 2.0
    wide_peak: float = 0.0
    network: float = 0.0

    def __post_init__(self) -> None:
        for name, unit in (("peak", "FLOP/s"), ("memory", "byte/s"), ("link", "byte/s")):
            checked("Replica", name, getattr(self, name), positive(unit))
        for name in ("tensor", "data"):
            checked("Replica", name, getattr(self, name), count())
        for name in ("weight_bytes", "cache_bytes"):
            checked("Replica", name, getattr(self, name), ELEMENT_BYTES)
        checked("Replica", "wide_peak", self.wide_peak, nonnegative("FLOP/s"))
        checked("Replica", "network", self.network, nonnegative("byte/s"))

    @property
    def gpus(self) -> int:
        return self.tensor * self.data


def replica(gpu: str, tensor: int = 1, data: int = 1, number_format: str = "bf16") -> Replica:
    """A catalog GPU's `Replica`; products in the number format, caches narrow as weights are."""
    numbers = find(gpu).numbers
    if not {"hbm_bandwidth", "link_bandwidth"} <= numbers.keys():
        expected = "a GPU of the catalog with HBM and links to others"
        raise BadArgument("replica", "gpu", gpu, expected)
    widths = WEIGHTS[one_of("replica", "number_format", number_format, tuple(WEIGHTS))]
    have = [name for name in WEIGHTS if name in numbers]
    if number_format not in have:
        expected = f"one that {gpu} has: {', '.join(have)}"
        raise BadArgument("replica", "number_format", number_format, expected)
    peak, memory, link = (numbers[n] for n in (number_format, "hbm_bandwidth", "link_bandwidth"))
    return Replica(peak, memory, link, tensor, data, *widths)


@dataclass(frozen=True)
class Bill:
    """What a step takes of the busiest GPU before any engine adds to it: bytes read; FLOPs with
    plain weights, with those of experts, and of scores; seconds of exchange and the hops that they
    start with; layers of two kinds; rows and tokens of prompts of a replica of attention.
    """

    weight_bytes: Value
    kv_bytes: Value
    flops: Value
    expert_flops: Value
    score_flops: Value
    exchange: Value
    hops: Value
    plain_layers: Value
    expert_layers: Value
    rows: Value
    tokens: Value
    peak: Value
    wide_peak: Value
    memory: Value

    def step(self, engine: Engine = IDEAL) -> ShardedStep:
        """The `ShardedStep` (s) with what an engine adds: R = √(launches² + work²) where prompts
        are read, work + launches where not.
        """
        reads = self.tokens > 0
        math = where(engine.math > 0, engine.math, engine.share)
        experts = where(reads * (engine.experts > 0) > 0, engine.experts, math)
        flops = (
            self.flops
            + self.expert_flops * math / experts
            + self.score_flops * self.peak / self.wide_peak
        )
        work = sharded_step.__wrapped__(
            self.weight_bytes, self.kv_bytes, flops, self.peak * math / engine.share, self.memory,
            self.exchange + engine.hop * self.hops, 0.0, engine.share,
        )  # fmt: skip
        extra = where(engine.expert_host > 0, engine.expert_host, engine.host)
        graph = engine.host * self.plain_layers + extra * self.expert_layers
        launches = engine.reading * self.plain_layers + engine.expert_reading * self.expert_layers
        beside = (launches**2 + work.time**2) ** 0.5 - work.time
        host = where(reads, maximum(beside, graph), graph) + engine.row * self.rows
        return replace(work, host=host, time=work.time + host)


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
    `prompts` are read side by side: each reads again what it has seen. With 0 prompts, tokens are
    guesses to check, in the step of those that decode. All counts are of the whole
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
    total = tokens + rows
    if any_of(total == 0):
        raise BadArgument("mixed_step", "rows", rows, "a step with a token in it", "Or `tokens`.")
    expert_layers = sum(layer.repeat for layer in model.layers if isinstance(layer.mlp, Experts))
    if replica.data > 1 and not expert_layers:
        raise BadArgument(
            "mixed_step", "replica", replica, "data = 1 for a model without experts",
            "Replicas that share nothing are separate: give one of them its requests.",
        )  # fmt: skip
    data, tensor = replica.data, replica.tensor
    chunks = minimum(prompts, tokens)  # no prompt where no token is read
    # Of the busiest replica of attention, on which a prompt lies whole.
    own_rows = maximum(rows / data, minimum(rows, 1))
    own_chunks = maximum(chunks / data, minimum(chunks, 1))
    own_tokens = tokens * maximum(1 / data, 1 / maximum(prompts, 1))
    own = own_rows + own_tokens
    prompt_tokens = where(prompts > 0, own_tokens, 0.0 * own_tokens)  # guesses are none
    logits = model.width * model.vocabulary
    weights, kv = logits / tensor, 0.0 * rows
    flops, expert_flops, scores = 2 * logits * (own_rows + own_chunks) / tensor, 0.0 * rows, 0.0
    active = 1
    for layer in model.layers:
        if layer.mixer:
            mixer: Any = layer.mixer  # its counts are plain arithmetic, of arrays too
            each = replica.cache_bytes
            traffic = own_rows * mixer.read_bytes(contexts, each)
            traffic = traffic + own_chunks * mixer.read_bytes(seen, each)
            kv += layer.repeat * traffic / minimum(tensor, cached_heads(mixer))
            weights += layer.repeat * mixer.matrices / tensor
            flops += layer.repeat * 2 * mixer.matrices * own / tensor
            pairs = own_rows * mixer.flops(contexts)
            pairs = pairs + own_tokens * mixer.flops(seen, decoding=False)
            scores += layer.repeat * pairs / tensor
        if isinstance(layer.mlp, Experts):
            each_token = layer.mlp.active * layer.mlp.expert.matrices
            always = layer.mlp.active_matrices - each_token
            flops += layer.repeat * 2 * always * own / tensor
            expert_flops += layer.repeat * 2 * each_token * total / replica.gpus
            active = max(active, layer.mlp.active)
        elif layer.mlp:
            flops += layer.repeat * 2 * layer.mlp.matrices * own / tensor
        if layer.mlp:
            weights += layer.repeat * _mlp_read(layer.mlp, replica, total)
    ways = replica.gpus if data > 1 else 1

    def exchange(latency: float) -> Result:
        law, size = exchange_time.__wrapped__, (own, model.width, model.depth)
        if not replica.network:
            return law(*size, tensor, replica.link, latency, ways, active)
        inside = law(*size, tensor, replica.link, latency) / 2  # the all-reduce after attention
        return inside + law(*size, 1, replica.network, latency, ways, active)

    return Bill(
        weights * replica.weight_bytes, kv, flops, expert_flops, scores, exchange(0.0),
        exchange(1.0) - exchange(0.0), model.depth - expert_layers, expert_layers, own_rows,
        prompt_tokens, replica.peak, replica.wide_peak or replica.peak, replica.memory,
    )  # fmt: skip


def cached_heads(mixer: Any) -> int:
    """Heads over which tensor parallelism splits what a layer keeps: one for latent and compressed
    attention, of which each rank holds a copy, and for what has no heads.
    """
    if isinstance(mixer, (LatentAttention, CompressedAttention)):
        return 1
    names = ("kv_heads", "value_heads", "heads")
    return next((heads for n in names if (heads := getattr(mixer, n, 0))), 1)


def _mlp_read(mlp: Any, replica: Replica, tokens: Value) -> Result:
    """Parameters of an MLP that one GPU reads, its part of the experts that are chosen included."""
    if not isinstance(mlp, Experts):
        return mlp.matrices / replica.tensor
    count = mlp.experts * (1 - (1 - mlp.active / mlp.experts) ** tokens)
    always = mlp.matrices - mlp.experts * mlp.expert.matrices
    return always / replica.tensor + count * mlp.expert.matrices / replica.gpus
