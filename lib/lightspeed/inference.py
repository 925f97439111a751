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
from lightspeed.elementwise import Result, Value, any_of, is_array, maximum, where
from lightspeed.errors import BadArgument
from lightspeed.law import ELEMENT_BYTES, count, fraction, law, nonnegative, positive
from lightspeed.parallel import LAYERS, WAYS, WIDTH
from lightspeed.roofline import BANDWIDTH, PEAK, SHARE

__all__ = (
    "ShardedStep", "burst_time", "drafted_tokens", "exchange_time", "experts_read",
    "interrupted_step", "launched_time", "sharded_step",
)  # fmt: skip

SECONDS = nonnegative("s")
BYTES = nonnegative("byte", hint="Of one GPU: the whole divided by the ways that split it.")


@law("", tokens=count(), experts=count(), active_experts=count())
def experts_read(tokens: Value, experts: Value, active_experts: Value) -> Result:
    """Mean number of experts in a layer that at least one token chooses, if the router has no
    favourites: E (1 - (1 - k / E)^tokens). Only their weights are read.

    >>> experts_read(1, 256, 8), round(experts_read(64, 256, 8))
    (8, 222)
    """
    if any_of(active_experts > experts):
        raise BadArgument(
            "experts_read", "active_experts", active_experts, f"at most experts = {experts}"
        )
    return experts * (1 - (1 - active_experts / experts) ** tokens)


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
    exchange = alltoall_time.__wrapped__(size * active_experts, expert, bandwidth, latency)
    return layers * (reduced + where(expert > 1, 2 * exchange, reduced))


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
    """The `ShardedStep` (s) of a pass in which this GPU reads `weight_bytes` and `kv_bytes` and
    does `flops`. It reaches `share` of its peak and bandwidth; `host` is the time spent waiting for
    launches.

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
    """Seconds of a pass of `kernels` kernels with `work` seconds in total: the host needs `launch`
    per kernel, and the GPU waits `wait` between two kernels.

    The host runs ahead of the GPU, so the longer of the two sets the pace. A CUDA graph is launched
    as one: it leaves each kernel a smaller `launch` and `wait`, and the work as it is.

    >>> launched_time(400, 1e-3, 5e-6), launched_time(400, 1e-3, 0.9e-6)
    (2 ms, 1 ms)
    """
    return maximum(kernels * launch, work + kernels * wait)


@law("s", step=positive("s"), prefill=SECONDS, batch=count(), output=count())
def interrupted_step(step: Value, prefill: Value, batch: Value, output: Value) -> Result:
    """Seconds between a request's tokens when the GPUs that decode also prefill.

    While a request decodes `output` tokens, `batch` requests arrive (itself included), and each
    stalls all others for one `prefill`.

    >>> interrupted_step(20e-3, 100e-3, 64, 640)
    30 ms
    """
    return step + prefill * batch / output


@law("s", prompts=positive("request"), prefill=positive("s"))
def burst_time(prompts: Value, prefill: Value) -> Result:
    """Mean seconds until a prompt is read when `prompts` arrive at once and are read one by one.

    >>> burst_time(1, 0.1), burst_time(19, 0.1)
    (100 ms, 1 s)
    """
    return (prompts + 1) / 2 * prefill


@law("token", acceptance=fraction(hint="The chance that the model keeps the first drafted token."),
     drafts=count(low=0), fading=fraction())  # fmt: skip
def drafted_tokens(acceptance: Value, drafts: Value, fading: Value = 1.0) -> Result:
    """Tokens of a step that checks `drafts` guesses in a row: a guess is kept if all before it
    were, and the model adds its own token after the last one kept. Each guess is `fading` times as
    likely to be kept as the one before it.

    Source: Leviathan et al., "Fast Inference from Transformers via Speculative Decoding" (2023),
    for a fading of 1; public curves fade by about 0.95 (catalog/measured_serving.toml).

    >>> drafted_tokens(0.0, 4), drafted_tokens(1.0, 4), drafted_tokens(0.5, 1)
    (1 token, 5 tokens, 1.5 tokens)
    >>> drafted_tokens(0.5, 2, 0.5)
    1.63 tokens
    """
    highest: Any = drafts
    most = int(highest.max() if is_array(drafts) else highest)
    total = 1.0 + 0.0 * acceptance
    for i in range(1, most + 1):
        acceptance_at = acceptance**i * fading ** (i * (i - 1) / 2)
        total = total + where(drafts >= i, acceptance_at, 0.0 * acceptance_at)
    return total
