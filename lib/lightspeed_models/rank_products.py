"""What the products of one layer take on one rank, each at the shape that the rank sees: where
tensor, context and expert parallelism cut matrices small, launches and the loop over the depth
weigh more, and no share of a peak says so. Used by the planner.

A product X[M, K] W[K, N] is done three times: forward, for the gradient of X (depth N) and for that
of W (depth M). Attention runs once a ring step of context parallelism. A causal kernel does half of
the scores; its backward pass takes 2.5 times the forward one.

Sources: products.py; Dao, "FlashAttention-2" (2023) for the backward pass; Megatron-LM for which
matrices run as one.
"""

import inspect
from typing import Any

from lightspeed.elementwise import Result, Value, ceil, maximum
from lightspeed_models.llm.decoder import Decoder, Experts, Mlp
from lightspeed_models.llm.mixers import LatentAttention
from lightspeed_models.llm.training import seen
from lightspeed_models.plan import Machine, Plan
from lightspeed_models.products import Rates, product_time

BACKWARD = 2.5 / 0.85  # of a forward attention kernel: FLOPs, and the rate that they run at
FULL_WIDTH = 128  # of a head: narrower ones leave a part of each product idle
# What it is given comes from a model, a plan and a machine, which are checked once; a search over
# plans asks twelve times a layer.
_time = inspect.unwrap(product_time)


def layer_products(
    model: Decoder, sequence: int, plan: Plan, machine: Machine, rates: Rates
) -> Result:
    """Seconds of the products of a layer (the mean over all) for one micro-batch on one rank,
    forward and backward, and forward again where `plan` recomputes.
    """
    tokens, again = plan.micro_size * sequence / plan.context, plan.again

    def of(shapes: list[tuple[Value, Value]]) -> Result:
        return sum(_thrice(tokens, k, n, again, machine, rates) for k, n in shapes)

    time: Result = 0.0
    for layer in model.layers:
        mixer: Any = layer.mixer
        mlp: Any = layer.mlp
        each = of(_attention(mixer, plan.tensor))
        if isinstance(mlp, Experts):
            each = each + _experts(mlp, tokens, plan, again, machine, rates)
            mlp = mlp.shared
        if mlp:
            each = each + of(_mlp(mlp, plan.tensor))
        time = time + layer.repeat * each
    return time / model.depth


def _attention(mixer: Any, tensor: Value) -> list[tuple[Value, Value]]:
    """(depth, width of the result) of the matrices of attention on a rank."""
    heads, width = ceil(mixer.heads / tensor), mixer.width
    if isinstance(mixer, LatentAttention):
        query, value = mixer.plain + mixer.rotary, mixer.value_width
        down = mixer.query_rank + mixer.kv_rank + mixer.rotary
        queries = [(mixer.query_rank, heads * query)] if mixer.query_rank else []
        keys = (mixer.kv_rank, heads * (mixer.plain + value))
        return [(width, down), *queries, keys, (heads * value, width)]
    # A rank has at least one head of keys, however few there are.
    kv_heads = maximum(1.0, ceil(mixer.kv_heads / tensor))
    each = heads * mixer.head_width + kv_heads * (mixer.head_width + mixer.values)
    return [(width, each), (heads * mixer.values, width)]


def _mlp(mlp: Mlp, tensor: Value) -> list[tuple[Value, Value]]:
    mine = ceil(mlp.hidden / tensor)
    return [(mlp.width, (mlp.matrices_each - 1) * mine), (mine, mlp.width)]


def _thrice(
    rows: Value, depth: Value, columns: Value, again: Value, machine: Machine, rates: Rates,
    groups: Value = 1.0,
) -> Result:  # fmt: skip
    """Seconds of a product's three passes, and of a forward pass done again. With `groups`, that
    many products of the `rows` in all run in one launch, each with weights of its own.
    """
    each = rates.element_bytes
    flops = 2 * rows * depth * columns
    size = each * (rows * depth + groups * depth * columns) + 2 * rows * columns
    k = rates.kernel

    def once(deep: Value) -> Result:
        return _time(
            flops, size, maximum(1.0, ceil(deep)), machine.peak, machine.memory, rates.clock,
            k.compute_share, k.memory_share, k.launch, k.loop,
        )  # fmt: skip

    return (1 + again) * once(depth) + once(columns) + once(rows / groups)


def _experts(
    mlp: Experts, tokens: Value, plan: Plan, again: Value, machine: Machine, rates: Rates
) -> Result:
    """Seconds of the chosen experts of a rank: the products of all of them in one launch each."""
    mine = maximum(1.0, ceil(mlp.experts / plan.expert))
    # Where the ranks of a tensor group hold different experts, each sends its own part of tokens.
    rows = tokens * mlp.active * plan.expert_tensor / plan.tensor
    hidden = ceil(mlp.hidden / plan.expert_tensor)
    shapes = [(mlp.width, (mlp.matrices_each - 1) * hidden), (hidden, mlp.width)]
    return sum(_thrice(rows, k, n, again, machine, rates, mine) for k, n in shapes)


def layer_scores(model: Decoder, sequence: int, plan: Plan, rates: Rates) -> Result:
    """Seconds of a layer's attention (the mean over all) for one micro-batch on one rank, at the
    rate of the kernel that the chip was measured with: forward and backward, and forward again.
    """
    tokens, time = plan.micro_size * sequence / plan.context, 0.0 * plan.tensor
    for layer in model.layers:
        time = time + layer.repeat * _scores(layer.mixer, tokens, sequence, plan, rates)
    return time / model.depth


def _scores(mixer: Any, tokens: Value, sequence: int, plan: Plan, rates: Rates) -> Result:
    latent = isinstance(mixer, LatentAttention)
    key = mixer.plain + mixer.rotary if latent else mixer.head_width
    widths = key + (mixer.value_width if latent else mixer.values)
    forward = 2 * tokens * seen(mixer, sequence) * widths * ceil(mixer.heads / plan.tensor)
    launches = (2 + plan.again) * plan.context * rates.kernel.launch / rates.clock
    slow = max(1.0, (FULL_WIDTH / (widths / 2)) ** rates.narrow)
    slow = slow * (1 + rates.ramp * plan.context / sequence)
    return forward * (1 + BACKWARD + plan.again) * slow / rates.scores + launches
