"""A forward pass of a `Transformer` on the GPUs of a replica: a bound, or with the constants of an
`Engine` what to expect. The evidence holds it against served models; no chapter derives it.

One function for both phases of serving: decoding is a pass with one new token a request, prefill
one with all of the prompt. Rates are plain numbers in SI, of one GPU.
"""

import functools
from typing import Any

from lightspeed.catalog import find, fitted
from lightspeed.errors import BadArgument, one_of
from lightspeed.inference import ShardedStep, cache_ways, exchange_time, experts_read, sharded_step
from lightspeed.law import checked, count, nonnegative, positive
from lightspeed.transformer import Transformer
from lightspeed_models.llm.step import IDEAL, Engine, Replica

__all__ = ("engine", "inference_step", "replica")

# Bytes of a weight and of a cached element. NVFP4 has an fp8 scale for 16 elements.
WEIGHTS = {"bf16": (2.0, 2.0), "fp8": (1.0, 1.0), "fp4": (0.5 + 1 / 16, 1.0)}


def replica(gpu: str, tensor: int = 1, data: int = 1, number_format: str = "bf16") -> Replica:
    """A catalog GPU's `Replica`; products in the number format, caches narrow as weights are."""
    numbers = find(gpu).numbers
    if not {"hbm_bandwidth", "link_bandwidth"} <= numbers.keys():
        wanted = "a GPU of the catalog with HBM and links to others"
        raise BadArgument("replica", "gpu", gpu, wanted)
    widths = WEIGHTS[one_of("replica", "number_format", number_format, tuple(WEIGHTS))]
    have = [name for name in WEIGHTS if name in numbers]
    if number_format not in have:
        wanted = f"one that {gpu} has: {', '.join(have)}"
        raise BadArgument("replica", "number_format", number_format, wanted)
    peak, memory, link = (numbers[n] for n in (number_format, "hbm_bandwidth", "link_bandwidth"))
    return Replica(peak, memory, link, tensor, data, *widths)


def inference_step(
    model: Transformer,
    replica: Replica,
    requests: float,
    tokens: float = 1,
    seen: float = 0,
    engine: Engine = IDEAL,
) -> ShardedStep:
    """The `ShardedStep` (s) of a pass that takes each of `requests` on by `tokens`, each of which
    sees `seen` others; on average, if that grows.

    >>> from lightspeed.transformer import transformer
    >>> llama = transformer("llama3_70b")
    >>> one, eight = (inference_step(llama, replica("h100_sxm", ways), 8) for ways in (1, 8))
    >>> round(one.time / eight.time, 1)
    7.9
    """
    this = "inference_step"
    checked(this, "requests", requests, positive("request"))
    checked(this, "tokens", tokens, count())
    checked(this, "seen", seen, nonnegative("token"))
    if not model.experts and replica.data > 1:
        raise BadArgument(
            this, "replica", replica, "data = 1 for a model without experts",
            "Replicas that share nothing are separate: give one of them its requests.",
        )  # fmt: skip
    logits = 2 * model.width * model.vocabulary  # for the last token of a request only
    plain = model.flops_per_token(0)
    scores = model.flops_per_token(1) - plain  # an average need not be a whole number of tokens
    flops = requests * (tokens * (plain - logits + seen * scores) + logits)
    own = requests / replica.data
    ways = cache_ways(replica.tensor, 1 if model.kv_rank else model.kv_heads or model.heads)
    exchange = exchange_time(
        max(1, round(own * tokens)),
        model.width,
        model.layers,
        replica.tensor,
        replica.link,
        engine.hop,
        replica.data * replica.tensor if replica.data > 1 else 1,
        max(1, model.active_experts),
    )
    return sharded_step(
        _weights_read(model, replica, requests * tokens) * replica.weight_bytes,
        own * seen * model.kv_cache_bytes_per_token(replica.cache_bytes) / ways,
        flops / replica.gpus,
        replica.peak,
        replica.memory,
        exchange,
        engine.host * model.layers,
        engine.share,
    )


def _weights_read(model: Transformer, replica: Replica, tokens: float) -> float:
    """Parameters that one GPU reads for so many tokens: its part of attention and of the table of
    logits, and of the experts that are chosen.
    """
    attended = model.layers * model.attention_matrices + model.width * model.vocabulary
    if not model.experts:
        return (attended + model.layers * model.expert_matrices) / replica.tensor
    chosen = experts_read(max(1, round(tokens)), model.experts, model.active_experts)
    sparse = model.layers - model.dense_layers
    always = (
        sparse * (model.shared_experts * model.expert_matrices + model.width * model.experts)
        + model.dense_layers * model.mlp_matrices * model.width * model.hidden
    )
    routed = sparse * chosen * model.expert_matrices
    return (attended + always) / replica.tensor + routed / replica.gpus


def engine(key: str) -> Engine:
    """The `Engine` of this key in catalog/fitted_engines.toml.

    >>> 0.5 < engine("served").share < 0.8
    True
    """
    tables = _engines()
    row = tables[one_of("engine", "key", key, tuple(tables))]
    return Engine(**{name: told["value"] for name, told in row["fitted"].items()})


@functools.cache
def _engines() -> dict[str, Any]:
    return fitted("engines")
