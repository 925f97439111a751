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

from lightspeed.elementwise import Result, Value, ceil, maximum
from lightspeed.transformer import Transformer
from lightspeed_models.plan import Machine, Plan
from lightspeed_models.products import Rates, product_time

__all__ = ("layer_products", "layer_scores")

BACKWARD = 2.5 / 0.85  # of a forward attention kernel: FLOPs, and the rate that they run at
FULL_WIDTH = 128  # of a head: narrower ones leave a part of each product idle
# What it is given comes from a model, a plan and a machine, which are checked once; a search over
# plans asks twelve times a layer.
_time = inspect.unwrap(product_time)


def layer_products(
    model: Transformer, sequence: int, plan: Plan, machine: Machine, rates: Rates
) -> Result:
    """Seconds of the products of a layer (the mean over all) for one micro-batch on one rank,
    forward and backward, and forward again where `plan` recomputes.
    """
    tokens, again = plan.micro_size * sequence / plan.context, plan.again
    attention, dense = _attention(model, plan.tensor), _mlp(model, model.hidden, plan.tensor)

    def of(shapes: list[tuple[Value, Value]]) -> Result:
        return sum(_thrice(tokens, k, n, again, machine, rates) for k, n in shapes)

    sparse = (model.layers - model.dense_layers) / model.layers if model.experts else 0.0
    mlp = of(dense) if sparse < 1 else 0.0
    if sparse:
        mlp = (1 - sparse) * mlp + sparse * _experts(model, tokens, plan, again, machine, rates)
        if model.shared_experts:
            hidden = model.shared_experts * (model.expert_hidden or model.hidden)
            mlp = mlp + sparse * of(_mlp(model, hidden, plan.tensor))
    return of(attention) + mlp


def _attention(model: Transformer, tensor: Value) -> list[tuple[Value, Value]]:
    """(depth, width of the result) of the matrices of attention on a rank."""
    heads = ceil(model.heads / tensor)
    if model.kv_rank:
        query, value = model.head_width_plain + model.head_width_rotary, model.head_width_value
        keys = heads * (model.head_width_plain + value)
        down = model.query_rank + model.kv_rank + model.head_width_rotary
        queries = [(model.query_rank, heads * query)] if model.query_rank else []
        return [(model.width, down), *queries, (model.kv_rank, keys), (heads * value, model.width)]
    # A rank has at least one head of keys, however few there are.
    kv_heads = maximum(1.0, ceil((model.kv_heads or model.heads) / tensor))
    inner = heads * model.head_width
    return [(model.width, inner + 2 * kv_heads * model.head_width), (inner, model.width)]


def _mlp(model: Transformer, hidden: Value, tensor: Value) -> list[tuple[Value, Value]]:
    mine = ceil(hidden / tensor)
    return [(model.width, (model.mlp_matrices - 1) * mine), (mine, model.width)]


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
    model: Transformer, tokens: Value, plan: Plan, again: Value, machine: Machine, rates: Rates
) -> Result:
    """Seconds of the chosen experts of a rank: the products of all of them in one launch each."""
    mine = maximum(1.0, ceil(model.experts / plan.expert))
    # Where the ranks of a tensor group hold different experts, each sends its own part of tokens.
    rows = tokens * model.active_experts * plan.expert_tensor / plan.tensor
    hidden = ceil((model.expert_hidden or model.hidden) / plan.expert_tensor)
    shapes = [(model.width, (model.mlp_matrices - 1) * hidden), (hidden, model.width)]
    return sum(_thrice(rows, k, n, again, machine, rates, mine) for k, n in shapes)


def layer_scores(model: Transformer, sequence: int, plan: Plan, rates: Rates) -> Result:
    """Seconds of a layer's attention for one micro-batch on one rank, at the rate of the kernel
    that the chip was measured with: forward and backward, and forward again.
    """
    tokens = plan.micro_size * sequence / plan.context
    widths = (
        model.head_width_plain + model.head_width_rotary + model.head_width_value
        if model.kv_rank
        else 2 * model.head_width
    )
    forward = tokens * sequence * widths * ceil(model.heads / plan.tensor)  # of 2, half is masked
    launches = (2 + plan.again) * plan.context * rates.kernel.launch / rates.clock
    slow = max(1.0, (FULL_WIDTH / (widths / 2)) ** rates.narrow)
    slow = slow * (1 + rates.ramp * plan.context / sequence)
    return forward * (1 + BACKWARD + plan.again) * slow / rates.scores + launches
