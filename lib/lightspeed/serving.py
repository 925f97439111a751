"""Serving a language model: Little's law joined to the roofline. Derived in chapter 4.

A replica generates one token for each request of its batch per step. The step time comes from the
roofline, the batch is the number of servers, and the memory left for KV caches caps it. A replica
is one chip, or several that act as one: pass the sums of their peaks, bandwidths and memories.
Plain numbers in SI; `batch` counts requests, `kv_bytes` is the cache of one of them.

Sources: Austin et al., "How to Scale Your Model", inference chapter (2025); Kleinrock, "Power and
deterministic rules of thumb for probabilistic problems in computer communications" (ICC 1979).
"""

from dataclasses import dataclass, replace
from typing import Any

from lightspeed.catalog import measured
from lightspeed.elementwise import Result, Value, any_of, divide, maximum, minimum, where
from lightspeed.errors import BadArgument
from lightspeed.law import ELEMENT_BYTES, Argument, count, law, nonnegative, positive
from lightspeed.queueing import QUEUE, SERVERS, Queue, fill, stable
from lightspeed.roofline import BANDWIDTH, PEAK

__all__ = (
    "DecodeStep", "batch_that_fits", "batch_within", "decode_step", "flops_per_dollar",
    "generation_time", "knee_batch", "kv_cache_bytes", "measured_runs", "prefill_servers",
    "prefill_time", "request_rate", "serving_queue",
)  # fmt: skip

PARAMETERS = positive("parameter")
KV = nonnegative("byte", hint="The KV cache of one request: its tokens x the bytes per token.")
# No replica has a zettaFLOP/s or an exabyte/s: more is a unit converted twice.
REPLICA = {
    "parameters": PARAMETERS,
    "kv_bytes": KV,
    "peak": replace(PEAK, high=1e21),
    "bandwidth": replace(BANDWIDTH, high=1e18),
    "parameter_bytes": ELEMENT_BYTES,
}


@dataclass(frozen=True)
class DecodeStep:
    """Seconds of one decode step: `time` is `kv` plus the larger of `weights` and `math`."""

    kv: float
    weights: float
    math: float
    time: float
    compute_bound: bool


@law(
    "byte",
    layers=count(),
    kv_heads=count(),
    head_dim=count(),
    tokens=count(),
    element_bytes=ELEMENT_BYTES,
)
def kv_cache_bytes(
    layers: Value, kv_heads: Value, head_dim: Value, tokens: Value, element_bytes: Value = 2
) -> Result:
    """Bytes of the KV cache of one request: a key and a value for each layer, KV head and token.

    >>> kv_cache_bytes(80, 8, 128, tokens=1)
    327,680 bytes
    """
    return 2 * layers * kv_heads * head_dim * tokens * element_bytes


@law("s", tokens=count(), parameters=PARAMETERS, peak=PEAK, utilization=Argument(high=1.0))
def prefill_time(tokens: Value, parameters: Value, peak: Value, utilization: Value = 1.0) -> Result:
    """Seconds to read a prompt: 2 FLOPs per parameter and token, at this share of the peak;
    attention not counted.

    >>> round(prefill_time(512, 7e9, 312e12), 4)
    0.023
    """
    return 2 * parameters * tokens / (peak * utilization)


@law(
    "s",
    batch=count(),
    prompt=count(),
    output=count(),
    parameters=PARAMETERS,
    kv_per_token=KV,
    peak=PEAK,
    bandwidth=BANDWIDTH,
    parameter_bytes=ELEMENT_BYTES,
)
def generation_time(
    batch: Value,
    prompt: Value,
    output: Value,
    parameters: Value,
    kv_per_token: Value,
    peak: Value,
    bandwidth: Value,
    parameter_bytes: Value = 2,
) -> Result:
    """Seconds to prefill a batch of prompts and decode `output` tokens for each, all in step.

    The caches grow by `kv_per_token` (byte) a step, so on average they hold the prompt and half the
    output.

    >>> fp8, bandwidth = 1979e12, 3.35e12
    >>> seconds = generation_time(48, 2048, 2048, 6.74e9, 262144, fp8, bandwidth, parameter_bytes=1)
    >>> round(seconds, 1)
    28.4
    """
    cache = kv_per_token * (prompt + output / 2)
    step = decode_step.__wrapped__(batch, parameters, cache, peak, bandwidth, parameter_bytes).time
    return prefill_time.__wrapped__(batch * prompt, parameters, peak) + output * step


@law({"kv": "s", "weights": "s", "math": "s", "time": "s"}, batch=count(), **REPLICA)
def decode_step(
    batch: Value,
    parameters: Value,
    kv_bytes: Value,
    peak: Value,
    bandwidth: Value,
    parameter_bytes: Value = 2,
) -> DecodeStep:
    """The `DecodeStep` (s) in which each request of the batch gets one token.

    Every cache is read, whatever the batch; the weights are read once for all, while the batch
    shares them in 2 FLOPs per parameter and request.

    >>> decode_step(1, 70e9, 0.0, 1e15, 3.5e12).time
    40 ms
    """
    kv, weights, arithmetic = _terms(parameters, kv_bytes, peak, bandwidth, parameter_bytes)
    return DecodeStep(
        batch * kv,
        weights,
        batch * arithmetic,
        batch * kv + maximum(weights, batch * arithmetic),
        batch * arithmetic >= weights,
    )


@law("", memory=positive("byte"), weight_bytes=positive("byte"), kv_bytes=positive("byte"))
def batch_that_fits(memory: Value, weight_bytes: Value, kv_bytes: Value) -> Result:
    """Number of requests whose KV caches fit beside the weights: the limit on concurrency.

    >>> batch_that_fits(80e9, 14e9, 1e9)
    66
    """
    room = memory - weight_bytes
    if any_of(room < 0):
        raise BadArgument(
            "batch_that_fits",
            "weight_bytes",
            weight_bytes,
            f"at most memory = {memory}",
            "The weights alone do not fit: shard or quantize them.",
        )
    return _whole(room / kv_bytes)


def _whole(batch: Value) -> Result:
    """The whole requests in a quotient, which may land a hair below a number that fits."""
    return batch * (1 + 1e-12) // 1


@law("", budget=positive("s"), **REPLICA)
def batch_within(
    budget: Value,
    parameters: Value,
    kv_bytes: Value,
    peak: Value,
    bandwidth: Value,
    parameter_bytes: Value = 2,
) -> Result:
    """The largest batch whose decode step takes no longer than `budget` (s); 0 if none does.

    >>> batch_within(0.05, 70e9, 1e9, 1e15, 3.5e12)
    35
    """
    kv, weights, arithmetic = _terms(parameters, kv_bytes, peak, bandwidth, parameter_bytes)
    batch = minimum(divide(budget - weights, kv), budget / (kv + arithmetic))
    return where(budget >= weights, _whole(batch), 0.0)


@law("", **REPLICA)
def knee_batch(
    parameters: Value, kv_bytes: Value, peak: Value, bandwidth: Value, parameter_bytes: Value = 2
) -> Result:
    """The batch at the knee of the throughput-latency curve: the most throughput per latency.

    Kleinrock's power, throughput / latency, peaks where reading the caches takes as long as reading
    the weights, or as long as the arithmetic, whichever comes first.

    >>> knee_batch(70e9, 2.8e9, 1e15, 3.5e12)
    50
    """
    kv, weights, arithmetic = _terms(parameters, kv_bytes, peak, bandwidth, parameter_bytes)
    return minimum(divide(weights, kv), weights / arithmetic)


@law("request/s", batch=count(), tokens=count(), step_time=positive("s"))
def request_rate(batch: Value, tokens: Value, step_time: Value) -> Result:
    """Requests finished per second by a full batch: Little's law with L = batch and W = tokens x
    step time.

    >>> request_rate(32, 200, 0.02)
    8 request/s
    """
    return batch / (tokens * step_time)


@law("", prefill=positive("s"), batch=count(), step_time=positive("s"), tokens=count())
def prefill_servers(prefill: Value, batch: Value, step_time: Value, tokens: Value) -> Result:
    """Replicas that must prefill to keep one decoding replica supplied, each prompt taking
    `prefill` (s).

    Little's law again: requests finish at batch / (tokens x step_time), each needs `prefill` of a
    server.

    >>> round(prefill_servers(0.91, 32, 0.019, 512))
    3
    """
    return prefill * batch / (tokens * step_time)


@law(
    "FLOP/dollar",
    peak=PEAK,
    price=positive(
        "dollar/s", hint="Prices are per hour: divide by 3600, or pass Q(2, 'dollar/hour')."
    ),
)
def flops_per_dollar(peak: Value, price: Value) -> Result:
    """FLOPs that a dollar buys at `peak` (FLOP/s), rented for `price` (dollar/s).

    >>> flops_per_dollar(990e12, 10.8 / 3600)
    330 PFLOP/dollar
    """
    return peak / price


@law(QUEUE, arrival_rate=positive("request/s"), tokens=count(), slots=SERVERS, **REPLICA)
def serving_queue(
    arrival_rate: Value,
    tokens: Value,
    slots: Value,
    parameters: Value,
    kv_bytes: Value,
    peak: Value,
    bandwidth: Value,
    parameter_bytes: Value = 2,
) -> Queue:
    """The `Queue` of a replica that decodes up to `slots` requests together, `tokens` for each on
    average.

    Unlike M/M/c the servers slow each other down: with n requests inside, each step takes
    `decode_step(n)`, so n requests finish in tokens x step time. `rho` is the share of the full
    batch's throughput. Poisson arrivals, exponential lengths; raises Overload if rho >= 1.

    >>> queue = serving_queue(0.4, 500, 32, 70e9, 1e9, 1e15, 3.5e12)
    >>> round(queue.rho, 2), round(queue.W - queue.Wq, 1)
    (0.31, 21.4)
    """
    kv, weights, arithmetic = _terms(parameters, kv_bytes, peak, bandwidth, parameter_bytes)

    def load(n: Value) -> Result:
        return arrival_rate * tokens * (n * kv + maximum(weights, n * arithmetic)) / n

    rho = stable("serving_queue", arrival_rate, arrival_rate / load(slots), 1)
    full, inside = fill(load, slots)
    # the states beyond `slots`, each rho times as likely as the one before
    waiting = full * rho / (1 - rho)
    wait_probability = (full + waiting) / (1 + waiting)
    Lq = wait_probability * rho / (1 - rho)
    L = (inside + slots * waiting) / (1 + waiting) + Lq
    return Queue(rho, L, Lq, L / arrival_rate, Lq / arrival_rate, wait_probability)


def measured_runs() -> tuple[str, list[dict[str, Any]]]:
    """(source, runs): published throughput of batches of known size, from the catalog's
    measured_serving.toml.

    >>> measured_runs()[1][0]["batch"]
    768
    """
    data = measured("serving")
    return data["source"], data["run"]


def _terms(
    parameters: Value, kv_bytes: Value, peak: Value, bandwidth: Value, parameter_bytes: Value
) -> tuple[Result, Result, Result]:
    """Seconds to read one cache, to read the weights, and to compute one request's token."""
    return kv_bytes / bandwidth, parameters * parameter_bytes / bandwidth, 2 * parameters / peak
