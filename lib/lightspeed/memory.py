"""What each GPU holds: states, activations, caches, and who holds which share. Derived in chapter
6.

Bytes per device, in the conventions of the papers: weights in 2 bytes, Adam. t is the
tensor-parallel degree, p the pipeline's. For the kinds of number see `lightspeed.law.law`.

Sources: Rajbhandari et al., "ZeRO" (SC20); Korthikanti et al. (2022) for activations; Megatron-LM,
theoretical_memory_usage.py; DeepSpeed, stage_1_and_2.py and memory.rst; Austin et al., "How to
Scale Your Model" (2025).
"""

from dataclasses import dataclass
from typing import Any

from lightspeed.elementwise import Result, Value, maximum, where
from lightspeed.law import ELEMENT_BYTES, Argument, count, law, nonnegative, positive

__all__ = (
    "RECIPES", "MemoryUse", "Offload", "States", "activation_bytes",
    "checkpoint_activation_bytes", "deepspeed_zero2_bytes", "held_in_flight", "kept_on_rank",
    "room_for", "training_state_bytes", "zero_bytes_per_device",
)  # fmt: skip

PARAMETERS = positive("parameter")
BYTES = nonnegative("byte")
SHARDS = count(hint="The number of data-parallel ranks over which states are split.")
STAGE = Argument(
    low=0,
    above=False,
    high=3,
    whole=True,
    hint="ZeRO has stages 0 (nothing split) to 3 (weights split too).",
)
# Bytes per parameter: weights, gradients, optimizer (a copy and two moments in fp32).
RECIPES = {"16": (2, 2, 12), "18": (2, 4, 12), "20": (2, 6, 12)}


@dataclass(frozen=True)
class States:
    """Bytes that training keeps for its parameters, by kind, and their sum."""

    weights: float
    gradients: float
    optimizer: float
    total: float


@law(
    dict.fromkeys(("weights", "gradients", "optimizer", "total"), "byte"),
    parameters=PARAMETERS,
    recipe=tuple(RECIPES),
    n=SHARDS,
    stage=STAGE,
)
def training_state_bytes(
    parameters: Value, recipe: str = "16", n: Value = 1, stage: Value = 0
) -> States:
    """The `States` (byte) on one of n data-parallel ranks with ZeRO at this stage.

    Recipe "16" keeps gradients in 2 bytes (ZeRO's paper), "18" in 4 (Megatron-LM), "20" in both.
    Stage 1 splits the optimizer over the ranks, 2 the gradients too, 3 (FSDP) the weights as well.

    >>> training_state_bytes(7.5e9, n=64, stage=3).total / 1e9
    1.875
    """
    weights, gradients, optimizer = (parameters * each for each in RECIPES[recipe])
    weights = weights / where(stage >= 3, n, 1)
    gradients = gradients / where(stage >= 2, n, 1)
    optimizer = optimizer / where(stage >= 1, n, 1)
    return States(weights, gradients, optimizer, weights + gradients + optimizer)


@law("byte", parameters=PARAMETERS, n=SHARDS, stage=STAGE, optimizer_bytes=nonnegative("byte"))
def zero_bytes_per_device(
    parameters: Value, n: Value, stage: Value, optimizer_bytes: Value = 12.0
) -> Result:
    """Bytes on each rank for an optimizer of K bytes a parameter: (2 + 2 + K) per parameter, split
    over n as the stage says.

    >>> [round(zero_bytes_per_device(7.5e9, 64, stage) / 1e9, 1) for stage in range(4)]
    [120.0, 31.4, 16.6, 1.9]
    """
    weights, gradients = 2 / where(stage >= 3, n, 1), 2 / where(stage >= 2, n, 1)
    return parameters * (weights + gradients + optimizer_bytes / where(stage >= 1, n, 1))


@dataclass(frozen=True)
class Offload:
    """Bytes that DeepSpeed's estimator assigns to a GPU and to its host."""

    gpu: float
    cpu: float


@law(
    {"gpu": "byte", "cpu": "byte"},
    parameters=PARAMETERS,
    n=SHARDS,
    per_host=count(),
    offload=("none", "cpu"),
    by=("code", "documentation"),
)
def deepspeed_zero2_bytes(
    parameters: Value, n: Value, per_host: Value, offload: str = "none", by: str = "code"
) -> Offload:
    """The `Offload` (byte) by DeepSpeed's estimate of ZeRO-2: 2 P + 18 P / n, or 2 P with states on
    the host.

    18 are gradients in 2 bytes and in 4, master weights and two moments. DeepSpeed's documentation
    still prints what an older release gave, 4 P + 16 P / n. It counts GiB and writes GB.

    >>> code, documentation = (
    ...     deepspeed_zero2_bytes(2851e6, 8, 8, by=by) for by in ("code", "documentation")
    ... )
    >>> round(code.gpu / 2**30, 2), round(documentation.gpu / 2**30, 2)
    (11.28, 15.93)
    """
    if offload == "cpu":
        return Offload(2 * parameters, 1.5 * parameters * maximum(4 * n, 16))
    gpu = (2 + 18 / n) if by == "code" else (4 + 16 / n)
    return Offload(gpu * parameters, 1.5 * 4 * parameters * per_host)


# ---------------------------------------------------------------- activations

SHAPE = {
    "sequence": count(),
    "batch": count(),
    "width": count(),
    "heads": count(),
    "layers": count(),
}
RECOMPUTE = ("none", "selective", "full")
SPLITS = ("tensor", "tensor+sequence")


@law(
    "byte",
    **SHAPE,
    tensor=count(),
    pipeline=count(),
    interleave=count(),
    split=SPLITS,
    recompute=RECOMPUTE,
)
def activation_bytes(
    sequence: Value,
    batch: Value,
    width: Value,
    heads: Value,
    layers: Value = 1,
    tensor: Value = 1,
    pipeline: Value = 1,
    interleave: Value = 1,
    split: str = "tensor",
    recompute: str = "none",
) -> Result:
    """Bytes of activations on a device of the first stage, for one micro-batch of `batch` sequences
    in 2-byte elements.

    A GPT's layer, its MLP four times as wide as the model, keeps s b h (34 + 5 a s / h), 24 of the
    34 split over t, all with "tensor+sequence". "selective" does the scores again and drops 5 a s /
    h; "full" keeps the layer's input, 2 s b h, alone, which sequence parallelism splits too. In
    1F1B the first of p stages has p
    micro-batches in flight over 1/p of the layers, so p cancels; interleaving v chunks adds (p - 1)
    / (p v).

    >>> round(activation_bytes(2048, 4, 6144, 64, 48, tensor=8) / 2**30, 2)
    59.25
    """
    scores = where(recompute == "none", 5 * heads * sequence / width, 0)
    per_token = kept_on_rank(10, 24 + scores, 2, tensor, split, recompute)
    return sequence * batch * width * layers * per_token * held_in_flight(pipeline, interleave)


def kept_on_rank(
    whole: Value, divided: Value, entering: Value, tensor: Value, split: str, recompute: Any
) -> Result:
    """Bytes on one tensor-parallel rank: sequence parallelism splits also what tensor
    parallelism leaves whole, such as what enters a layer, which is all that full recomputation
    keeps.
    """
    apart = tensor if split == "tensor+sequence" else 1
    return where(recompute == "full", entering / apart, whole / apart + divided / tensor)


def held_in_flight(pipeline: Value, interleave: Value) -> Result:
    """Micro-batches in flight on the first stage, in units of its share of the layers."""
    return where(interleave > 1, 1 + (pipeline - 1) / (pipeline * interleave), 1)


@law(
    "byte",
    tokens=positive("token"),
    layers=count(),
    width=count(),
    hidden=count(),
    element_bytes=ELEMENT_BYTES,
)
def checkpoint_activation_bytes(
    tokens: Value, layers: Value, width: Value, hidden: Value, element_bytes: Value = 2
) -> Result:
    """Bytes kept of `tokens` if each layer saves its input and the outputs of the gated MLP's two
    first matrices.

    >>> checkpoint_activation_bytes(3e6, 40, 5120, 13824) / 1e12 > 7.8
    True
    """
    return tokens * layers * (width + 2 * hidden) * element_bytes


# ---------------------------------------------------------------- does it fit?


@law("", capacity=positive("byte"), used=BYTES, each=positive("byte"))
def room_for(capacity: Value, used: Value, each: Value) -> Result:
    """How many items of `each` bytes fit beside `used` bytes, not rounded; below 0 if `used` alone
    does not fit.

    >>> room_for(16 * 16e9, 140e9, 8192 * 324e3) > 43
    True
    """
    return (capacity - used) / each


@dataclass(frozen=True)
class MemoryUse:
    """Bytes on one device, by purpose; `fits` is True if `total` is within `capacity`."""

    weights: float
    gradients: float
    optimizer: float
    activations: float
    logits: float
    buffers: float
    total: float
    capacity: Result

    @property
    def fits(self) -> bool:
        return self.total <= self.capacity

    @property
    def largest(self) -> str:
        """The name of the part that takes the most room."""
        parts = ("weights", "gradients", "optimizer", "activations", "logits", "buffers")
        return max(parts, key=lambda part: getattr(self, part))
