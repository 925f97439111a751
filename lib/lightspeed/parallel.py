"""What each way of splitting a training step must send, and when it still computes longer than it
sends (chapter 6).

Bytes are what one GPU sends per step (or as said), in bytes; `ways` counts the GPUs that a strategy
splits over; `peak` is the dense peak of a chip (FLOP/s), `bandwidth` what a chip sends in one
direction (byte/s). Everything that is split is bf16 unless said: 2 bytes an element.

Sources: Shoeybi et al., Megatron-LM (2019); Rajbhandari et al., ZeRO (2020); Korthikanti et al.
(2022); Zhao et al., PyTorch FSDP (2023); Liu et al., "Muon is Scalable for LLM Training" (2025);
Austin et al., "How to Scale Your Model", training and GPU chapters (2025). Frameworks differ: what
PyTorch sends is counted by benchmarks/beside; Megatron's is read in its code, at the lines given.
"""

from dataclasses import dataclass

from lightspeed.collectives import busbw_factor
from lightspeed.elementwise import INF, Result, Value, any_of, where
from lightspeed.errors import BadArgument
from lightspeed.law import ELEMENT_BYTES, Argument, count, fraction, law, nonnegative, positive
from lightspeed.memory import STAGE
from lightspeed.roofline import BANDWIDTH, PEAK

__all__ = (
    "HybridBytes", "Skew", "best_fsdp_ways", "context_parallel_bytes", "data_parallel_bytes",
    "data_parallel_tokens", "expert_parallel_bytes", "hybrid_sharded_bytes", "mixed_tokens",
    "muon_gathered_bytes", "pipeline_bytes",
    "skewed_exchange", "tensor_parallel_bytes", "tensor_parallel_ways", "tokens_per_chip",
)  # fmt: skip

WAYS = count(hint="Ways counts the GPUs that share the work of this strategy.")
PARAMETERS = nonnegative("parameter")
TOKENS = count(hint="Tokens that this GPU works on: sequences x their length.")
WIDTH = count(hint="The width of the model, h or D.")
LAYERS = count(low=0)


def _once(n: Value) -> Result:
    """Bytes sent per byte of a buffer that n GPUs gather, scatter or exchange."""
    return busbw_factor.__wrapped__("all_gather", n)


# ---------------------------------------------------------------- bytes that one GPU sends


@law(
    "byte",
    parameters=PARAMETERS,
    ways=WAYS,
    stage=STAGE,
    micro_batches=count(),
    weight_bytes=ELEMENT_BYTES,
    gradient_bytes=ELEMENT_BYTES,
)
def data_parallel_bytes(
    parameters: Value,
    ways: Value,
    stage: Value = 0,
    micro_batches: Value = 1,
    weight_bytes: Value = 2,
    gradient_bytes: Value = 2,
) -> Result:
    """Bytes per step of data parallelism for the `parameters` on this GPU, at this stage of ZeRO,
    following its paper and DeepSpeed.

    0 (DDP): one all-reduce of the gradients. 1: they are reduce-scattered and the new weights
    all-gathered, the same bytes. 2 keeps only its shard of the gradients, so it scatters after each
    micro-batch. 3 (FSDP) keeps only its shard of the weights, too, so it gathers them before each
    forward and each backward pass.

    PyTorch's SHARD_GRAD_OP is not stage 2: it drops the weights after each backward pass and
    gathers them again for the next forward pass. That is `hybrid_sharded_bytes` with `again` = 1.

    >>> data_parallel_bytes(1e9, 2, stage=0), data_parallel_bytes(1e9, 2, stage=3)
    (2 GB, 3 GB)
    """
    gathers = where(stage >= 3, 2 * micro_batches, 1)
    scatters = where(stage >= 2, micro_batches, 1)
    sharded = gathers * weight_bytes + scatters * gradient_bytes
    return _once(ways) * parameters * where(stage >= 1, sharded, 2 * gradient_bytes)


@dataclass(frozen=True)
class HybridBytes:
    """Bytes per step that one GPU sends `inside` its shard group, and `across` to the replicas."""

    inside: float
    across: float


@law(
    dict.fromkeys(("inside", "across"), "byte"),
    parameters=PARAMETERS,
    ways=WAYS,
    replicas=WAYS,
    again=WAYS,
    micro_batches=count(),
    weight_bytes=ELEMENT_BYTES,
    gradient_bytes=ELEMENT_BYTES,
)
def hybrid_sharded_bytes(
    parameters: Value,
    ways: Value,
    replicas: Value,
    again: Value,
    micro_batches: Value = 1,
    weight_bytes: Value = 2,
    gradient_bytes: Value = 2,
) -> HybridBytes:
    """The `HybridBytes` of HSDP: `replicas` groups of `ways` GPUs, each group with one copy of the
    weights in shards. FSDP is one replica.

    Each micro-batch gathers the weights over `ways` for its forward pass, and from `again` GPUs
    for its backward pass: FSDP2's `reshard_after_forward` is True (again = ways), False (1: the
    weights stay until the backward pass is over, FSDP1's SHARD_GRAD_OP) or a number that divides
    `ways`. Its gradients are scattered over `ways`; what is left of them, a shard, is summed over
    the replicas once a step. Without set_requires_gradient_sync or no_sync, that is.

    >>> hybrid_sharded_bytes(1e9, 8, 4, 8)
    HybridBytes(inside=5.25 GB, across=375 MB)
    """
    if any_of(ways % again > 0):
        raise BadArgument(
            "hybrid_sharded_bytes", "again", again, "a number that divides the ways",
            "Shards of the backward pass are cut from groups of equally many GPUs.",
        )  # fmt: skip
    gathers = weight_bytes * (_once(ways) + _once(again))
    inside = micro_batches * parameters * (gathers + gradient_bytes * _once(ways))
    return HybridBytes(inside, 2 * _once(replicas) * gradient_bytes * parameters / ways)


@law("byte", parameters=PARAMETERS, ways=WAYS, element_bytes=ELEMENT_BYTES)
def muon_gathered_bytes(parameters: Value, ways: Value, element_bytes: Value = 2) -> Result:
    """Bytes a step with which Muon gathers the momentum of its matrices from the ranks that share
    them: Newton-Schulz takes a whole matrix.

    They come on top of `data_parallel_bytes`. None where each rank owns whole matrices.

    >>> muon_gathered_bytes(1e9, 8) / data_parallel_bytes(1e9, 8, 1, 1, 4, 4)
    0.25
    """
    return _once(ways) * parameters * element_bytes


@law(
    "byte",
    tokens=TOKENS,
    width=WIDTH,
    ways=WAYS,
    layers=LAYERS,
    forward_again=fraction(),
    split=("tensor", "tensor+sequence"),
    element_bytes=ELEMENT_BYTES,
)
def tensor_parallel_bytes(
    tokens: Value,
    width: Value,
    ways: Value,
    layers: Value = 1,
    forward_again: Value = 0.0,
    split: str = "tensor",
    element_bytes: Value = 2,
) -> Result:
    """Bytes for `tokens` through `layers`: two all-reduces of the activations forward, two
    backward, in each.

    Sequence parallelism ("tensor+sequence") makes an all-gather and a reduce-scatter of each, the
    same bytes, and keeps only its shard of what was gathered. So it gathers that again in the
    backward pass, for the gradients of the weights: ten halves in place of eight. Those two can
    hide behind the product beside them (Korthikanti et al., section 4.2.2; Megatron-LM
    core_v0.15.0, tensor_parallel/layers.py, LinearWithGradAccumulationAndAsyncCommunication).
    Full recomputation runs the forward pass twice (`forward_again` = 1) and sends its share again.

    >>> tensor_parallel_bytes(1024, 4096, 2) == 4 * 1024 * 4096 * 2
    True
    >>> tensor_parallel_bytes(9, 9, 4, split="tensor+sequence") / tensor_parallel_bytes(9, 9, 4)
    1.25
    """
    halves = 8 + 4 * forward_again + (2 if split == "tensor+sequence" else 0)
    return halves * layers * _once(ways) * tokens * width * element_bytes


@law("byte", tokens=TOKENS, width=WIDTH, chunks=count(), element_bytes=ELEMENT_BYTES)
def pipeline_bytes(
    tokens: Value, width: Value, chunks: Value = 1, element_bytes: Value = 2
) -> Result:
    """Bytes for `tokens` through an inner stage: activations forward and gradients back, once for
    each chunk on the GPU.

    >>> pipeline_bytes(1024, 4096) == 2 * 1024 * 4096 * 2
    True
    """
    return 2 * chunks * tokens * width * element_bytes


@law(
    "byte",
    tokens=TOKENS,
    width=WIDTH,
    ways=WAYS,
    active_experts=count(),
    layers=LAYERS,
    element_bytes=ELEMENT_BYTES,
)
def expert_parallel_bytes(
    tokens: Value,
    width: Value,
    ways: Value,
    active_experts: Value,
    layers: Value = 1,
    element_bytes: Value = 2,
) -> Result:
    """Bytes for `tokens` through `layers` of experts: two all-to-alls forward (out and back), two
    backward.

    A copy goes to each of the `active_experts`, and a router without favourites sends 1 / ways of
    them nowhere. That is an all-to-all of rows, as NCCL's. Kernels that send one copy to a GPU or a
    node with several of them send less: `experts.copies_sent` in place of `active_experts`.

    >>> expert_parallel_bytes(1024, 4096, 2, 1) == 4 * 1024 * 4096 * 2 / 2
    True
    """
    return 4 * layers * _once(ways) * tokens * active_experts * width * element_bytes


@law(
    "byte",
    tokens=TOKENS,
    kv_width=WIDTH,
    ways=WAYS,
    layers=LAYERS,
    framework=("megatron", "pytorch"),
    forward_again=fraction(),
    element_bytes=ELEMENT_BYTES,
)
def context_parallel_bytes(
    tokens: Value,
    kv_width: Value,
    ways: Value,
    layers: Value = 1,
    framework: str = "megatron",
    forward_again: Value = 0.0,
    element_bytes: Value = 2,
) -> Result:
    """Bytes sent for a sequence of which this GPU holds `tokens`: K and V go to all other ranks in
    the forward pass and, not being kept there, again in the backward pass; their gradients return.

    By all-gather or round a ring, the bytes are the same. "megatron": gradients in the elements of
    K and V, to the others (TransformerEngine v2.9, attention/dot_product_attention/
    context_parallel.py, lines 2693, 2901 and 3061; its ring, lines 1376 and 2136). "pytorch" (2.13,
    torch.distributed.tensor.experimental): gradients in fp32, and the whole way round.
    `kv_width` is KV heads x head width: sharing heads makes splitting the sequence cheap.

    >>> context_parallel_bytes(1024, 1024, 2) == 3 * 2 * 1024 * 1024 * 2
    True
    """
    others = ways - 1
    gradients = others * element_bytes if framework == "megatron" else 4 * ways * (others > 0)
    passes = (2 + forward_again) * others * element_bytes + gradients
    return layers * 2 * tokens * kv_width * passes


@dataclass(frozen=True)
class Skew:
    """Bytes of an all-to-all with one hot expert: received and sent by its GPU, and by others."""

    hot_receives: float
    hot_sends: float
    other_receives: float
    other_sends: float


@law(
    {"hot_receives": "byte", "hot_sends": "byte", "other_receives": "byte", "other_sends": "byte"},
    tokens=TOKENS,
    width=WIDTH,
    ways=count(low=2),
    hot_share=fraction(),
    element_bytes=ELEMENT_BYTES,
)
def skewed_exchange(
    tokens: Value, width: Value, ways: Value, hot_share: Value, element_bytes: Value = 2
) -> Skew:
    """The `Skew` (bytes) of one exchange over `ways` GPUs with an expert each, one of which gets
    `hot_share` of all tokens.

    The other experts share the rest. The longest of the four sets the time, not the mean.

    >>> skew = skewed_exchange(1024, 4096, 8, 1 / 8)
    >>> skew.hot_receives == skew.hot_sends == skew.other_sends
    True
    """
    mine = tokens * width * element_bytes
    cold = (1 - hot_share) / (ways - 1)
    return Skew(
        hot_receives=(ways - 1) * hot_share * mine,
        hot_sends=(1 - hot_share) * mine,
        other_receives=(ways - 1) * cold * mine,
        other_sends=(1 - cold) * mine,
    )


# ---------------------------------------------------------------- when computing takes longer than

AXES = count(
    hint="Links of a chip that work for this split at once: 1 on a GPU, up to 3 on a TPU torus."
)


@law(
    peak=PEAK,
    bandwidth=BANDWIDTH,
    axes=AXES,
    experts_over_active=Argument(low=1.0, above=False),
    tensor=WAYS,
    ways=Argument(
        low=1.0, above=False, infinite=True, hint="Ranks of the group; many, unless given."
    ),
)
def data_parallel_tokens(
    peak: Value,
    bandwidth: Value,
    axes: Value = 1,
    experts_over_active: Value = 1.0,
    tensor: Value = 1,
    ways: Value = INF,
) -> Result:
    """Tokens a chip above which data parallelism or FSDP is compute-bound: C / W, all weights in
    bf16. In a group of few ranks, (n - 1) / n of that: half, for two `ways`.

    The backward pass does 4 FLOPs a parameter and token and sends 4 bytes a parameter (FSDP's
    forward pass 2 and 2), so the shape of the model cancels. With experts the weights of all are
    sent and only the active ones compute: times E / k. Beside tensor parallelism a chip sends 1 /
    `tensor` of each weight, and its group works on the same tokens: over `tensor`. A node with
    all its GPUs in the group needs each weight once: `bandwidth` is that of its ports together.

    >>> data_parallel_tokens(990e12, 450e9), data_parallel_tokens(990e12, 50e9, tensor=8)
    (2,200, 2,475)
    """
    return peak / (bandwidth * axes * tensor) * experts_over_active * (1 - 1 / ways)


@law(hidden=WIDTH, peak=PEAK, bandwidth=BANDWIDTH, axes=AXES)
def tensor_parallel_ways(hidden: Value, peak: Value, bandwidth: Value, axes: Value = 1) -> Result:
    """Ways above which tensor parallelism is communication-bound: F W / C for an MLP of hidden
    width F, whatever the batch. It counts (n - 1) / n as 1; exactly, it is one way more.

    >>> round(tensor_parallel_ways(28672, 990e12, 450e9), 1)
    13.0
    """
    return hidden * axes * bandwidth / peak


@law(hidden=WIDTH, peak=PEAK, bandwidth=BANDWIDTH, tensor_bandwidth=BANDWIDTH)
def mixed_tokens(hidden: Value, peak: Value, bandwidth: Value, tensor_bandwidth: Value) -> Result:
    """Tokens a chip above which FSDP over `bandwidth` and, after it, tensor parallelism over
    `tensor_bandwidth` take less time than arithmetic, at the best split of the chips: 4 C^2 / (W V
    F) for rates W and V. Both groups are large: few ranks need less.

    Fewer than FSDP needs alone only if tensor parallelism could be more than 4 ways: F V / C > 4.
    On a torus a rate is that of all links of a chip which work for the split, both neighbours of an
    axis included.

    >>> round(mixed_tokens(13824, 2550.0, 2.0, 1.0))
    941
    """
    return 4 * peak**2 / (bandwidth * tensor_bandwidth * hidden)


@law(tokens=TOKENS, chips=count(), hidden=WIDTH, bandwidth=BANDWIDTH, tensor_bandwidth=BANDWIDTH)
def best_fsdp_ways(
    tokens: Value, chips: Value, hidden: Value, bandwidth: Value, tensor_bandwidth: Value
) -> Result:
    """FSDP ways X at which a step of `tokens` over `chips`, the rest tensor parallel, sends for the
    shortest time: sqrt(B N W / (F V)), where both take equally long. Above `chips` FSDP alone is
    best, below 1 tensor parallelism alone. Rates as in `mixed_tokens`.

    >>> round(best_fsdp_ways(4_190_000, 8960, 28672, 2.0, 1.0))
    1618
    """
    return (tokens * chips * bandwidth / (hidden * tensor_bandwidth)) ** 0.5


@law(tokens=positive("token"), chips=count())
def tokens_per_chip(tokens: Value, chips: Value) -> Result:
    """Tokens of a step per chip, however they are split.

    >>> tokens_per_chip(192 * 4096, 192)
    4,096
    """
    return tokens / chips
