"""A cluster, how a training step is split over it, and which ranks share a node. Used in chapter 6.

Rates are plain numbers in SI; `network` is what one GPU sends, in one direction. The degrees of a
`Plan` may be numpy arrays, an element a plan: then so is what is worked out from them.

Sources: Narayanan et al. (2021) for the order of ranks; Liu et al., "MoE Parallel Folding" (2025)
for experts over data, tensor and context ranks; Megatron-LM, arguments.py, for chunks.
"""

from dataclasses import dataclass
from typing import Any

from lightspeed.catalog import find, link
from lightspeed.elementwise import Result, Value, any_of, is_array, maximum, minimum, where
from lightspeed.errors import BadArgument
from lightspeed.law import check_fields, count, fraction, positive
from lightspeed.memory import RECOMPUTE, STAGE
from lightspeed.roofline import SHARE
from lightspeed_models.llm.decoder import Decoder
from lightspeed_models.llm.training import checked_layers
from lightspeed_models.products import Rates

AXES = ("tensor", "context", "data", "pipeline")  # nearest first, as Megatron numbers its ranks
SCHEDULES = ("1f1b", "gpipe", "zb_h1")
ENDS = 3  # what may stand in a layer's place: the table, the logits, a module of a token more
OF_CHIP = ("bf16", "hbm_bandwidth", "hbm_capacity", "link_bandwidth")


@dataclass(frozen=True)
class Machine:
    """A cluster: dense peak of a GPU, its HBM, the link inside a node, the network of a GPU, and
    the share of the peak that its matrix products reach; or, in place of that one share, the
    `Rates` that say what a product of a rank's own shape takes.
    """

    peak: float
    memory: float
    capacity: float
    link: float
    network: float
    per_node: int = 8
    share: float = 1.0
    products: Rates | None = None

    def __post_init__(self) -> None:
        check_fields(self, positive("FLOP/s"), "peak")
        check_fields(self, positive("byte/s"), "memory")
        check_fields(self, positive("byte"), "capacity")
        check_fields(self, positive("byte/s"), "link", "network")
        check_fields(self, count(), "per_node")
        check_fields(self, SHARE, "share")


def machine(gpu: str, network: str, per_node: int = 8, share: float = 1.0) -> Machine:
    """The `Machine` of catalog keys: a GPU, and the network link that each GPU has for itself."""
    chip = find(gpu).numbers
    if missing := [name for name in OF_CHIP if name not in chip]:
        hint = f"The catalog does not say {', '.join(missing)} of it. Make a Machine of its rates."
        raise BadArgument("machine", "gpu", gpu, "an accelerator with memory and links", hint)
    peak, memory, capacity, bandwidth = (chip[name] for name in OF_CHIP)
    return Machine(peak, memory, capacity, bandwidth, link(network).bandwidth, per_node, share)


@dataclass(frozen=True)
class Plan:
    """How a step is split, or many plans as arrays. `micro_size` counts the sequences of a
    micro-batch, `expert` the ranks of a stage (data x context x tensor) over which experts are
    spread, `chunks` what a GPU of an interleaved pipeline holds. Full recomputation is of `part` of
    the layers; ZeRO splits over groups of `shard` ranks with a copy each (HSDP), 0 for one of all.
    `placement` is the order in which ranks are numbered, the axis whose ranks are neighbours first;
    a node takes the next `per_node` of them.
    """

    data: int = 1
    tensor: int = 1
    pipeline: int = 1
    expert: int = 1
    context: int = 1
    micro_batches: int = 1
    micro_size: int = 1
    chunks: int = 1
    stage: int = 0
    recompute: str = "selective"
    schedule: str = "1f1b"
    placement: tuple[str, ...] = AXES
    part: float = 1.0
    shard: int = 0

    def __post_init__(self) -> None:
        check_fields(self, count(), "data", "tensor", "pipeline", "expert", "context")
        check_fields(self, count(), "micro_batches", "micro_size", "chunks")
        check_fields(self, STAGE, "stage")
        check_fields(self, RECOMPUTE, "recompute")
        check_fields(self, fraction(), "part")
        check_fields(self, count(low=0), "shard")
        check_fields(self, SCHEDULES, "schedule")
        if sorted(self.placement) != sorted(AXES):
            raise BadArgument("Plan", "placement", self.placement, f"{AXES} in some order")
        if _some((self.chunks > 1) & (self.schedule != "1f1b")):
            expected = "'1f1b' where GPUs hold several chunks"
            raise BadArgument("Plan", "schedule", self.schedule, expected)
        if _some(self.ranks * self.tensor % self.expert):
            expected = f"a divisor of the {self.ranks * self.tensor} ranks of a stage"
            hint = "Those are data x context x tensor."
            raise BadArgument("Plan", "expert", self.expert, expected, hint)
        if _some(self.ranks % self.shard_ranks):
            expected = f"a divisor of the {self.ranks} ranks of data x context"
            raise BadArgument("Plan", "shard", self.shard, expected)

    @property
    def gpus(self) -> int:
        return self.data * self.tensor * self.pipeline * self.context

    @property
    def ranks(self) -> int:
        """Ranks that work on other tokens with the same weights: data x context."""
        return self.data * self.context

    @property
    def shard_ranks(self) -> Result:
        """Ranks over which ZeRO splits: those of a shard group, or all."""
        return where(self.shard == 0, self.ranks, self.shard)

    @property
    def again(self) -> Result:
        """The part of the layers whose forward pass is done again."""
        return where(self.recompute == "full", self.part, 0.0)

    @property
    def expert_tensor(self) -> Result:
        """Ranks that share one expert's matrices: tensor parallelism's, or one with `expert`."""
        return where(self.ranks % self.expert == 0, self.tensor, 1)

    @property
    def expert_copies(self) -> Result:
        """Ranks of a stage that hold the same part of the same experts."""
        return self.ranks * self.tensor / (self.expert * self.expert_tensor)

    @property
    def sequences(self) -> int:
        """Sequences in one step of the whole job."""
        return self.data * self.micro_batches * self.micro_size


def _some(condition: Any) -> bool:
    return bool(any_of(condition))


def checked_for(model: Decoder, plan: Plan) -> None:
    """Raise BadArgument for layers whose training step no law here knows, where experts are spread
    over more ranks than the model has experts, or where chunks do not divide its layers: counted
    with none, one or more of the table of tokens, the logits and a module that predicts one token
    more, each of which frameworks let stand in a layer's place.
    """
    checked_layers(model.layers, model.name)
    if _some(plan.expert > max(1, model.experts)):
        expected = f"at most the {model.experts} experts of the model" if model.experts else "1"
        hint = "" if model.experts else "The model has no experts."
        raise BadArgument("Plan", "expert", plan.expert, expected, hint)
    uneven = plan.chunks > 1
    for ends in range(ENDS + 1):
        uneven = uneven & ((model.depth + ends) % (plan.pipeline * plan.chunks) != 0)
    if _some(uneven):
        both: tuple[Any, Any] = plan.chunks, plan.pipeline
        if is_array(uneven):  # the first of them
            both = tuple((n + 0 * uneven)[uneven][0].item() for n in both)
        chunks, stages = both
        expected = f"a number that cuts {model.depth} layers over {stages:g} stages evenly"
        hint = f"The table and the logits may count as layers: up to {model.depth + ENDS} in all."
        raise BadArgument("Plan", "chunks", chunks, expected, hint)


def cuts(layers: int, stages: int) -> list[int]:
    """Chunks above one of which this many stages hold whole layers, as `checked_for` asks.

    >>> cuts(80, 8), cuts(80, 1)
    ([2, 5, 10], [])
    """
    each = [n // stages for n in range(layers, layers + ENDS + 1) if stages > 1 and n % stages == 0]
    most = layers // stages
    return [v for v in range(2, most + 1) if any(n % v == 0 for n in each)]


# ---------------------------------------------------------------- who shares a node


def neighbours(plan: Plan, per_node: Value, *axes: str) -> Result:
    """How many ranks of a group over these axes share a node, itself included.

    All groups share its slots: an axis that is placed later finds as many taken as the axes before
    it have ranks. Where sizes do not divide a node it is a mean.

    >>> plan = Plan(data=8, pipeline=8)
    >>> neighbours(plan, 8, "data"), neighbours(plan, 8, "pipeline")
    (8, 1)
    """
    together: Value = 1
    for axis in axes:
        free = maximum(1, per_node / _stride(plan, axis))
        together = together * minimum(getattr(plan, axis), free)
    return together


def spans(plan: Plan, per_node: Value, *axes: str) -> Any:
    """Whether a group over these axes has ranks in more than one node."""
    apart: Any = False
    for axis in axes:
        size = getattr(plan, axis)
        cut = per_node % (_stride(plan, axis) * size) != 0
        apart = apart | ((size > 1) & cut & (plan.gpus > per_node))
    return apart


def expert_neighbours(plan: Plan, per_node: Value) -> Result:
    """How many of the ranks over which experts are spread share a node. They are laid over the
    ranks of a stage anew, those that share an expert next to each other.
    """
    slots = neighbours(plan, per_node, "tensor", "context", "data")
    return minimum(plan.expert, maximum(1, slots / plan.expert_tensor))


def copy_neighbours(plan: Plan, per_node: Value) -> Result:
    """How many of the ranks that hold the same experts share a node."""
    slots = neighbours(plan, per_node, "tensor", "context", "data")
    return minimum(plan.expert_copies, maximum(1, slots / plan.expert / plan.expert_tensor))


def _stride(plan: Plan, axis: str) -> Result:
    """Ranks from one of a group to the next."""
    step: Value = 1
    for nearer in plan.placement[: plan.placement.index(axis)]:
        step = step * getattr(plan, nearer)
    return step


def plan_of_batch(
    gpus: int,
    sequences: int,
    tensor: int = 1,
    pipeline: int = 1,
    context: int = 1,
    micro_size: int = 1,
    **rest: Any,
) -> Plan:
    """The `Plan` of a run of which GPUs and the sequences of a step are known: what is left are
    replicas and micro-batches.

    >>> plan = plan_of_batch(3072, 3072, tensor=8, pipeline=64)
    >>> plan.data, plan.micro_batches
    (6, 512)
    """
    replica = tensor * pipeline * context
    data, lone = divmod(gpus, replica)
    if lone or not data:
        expected = f"a multiple of the {replica} of one replica"
        raise BadArgument("plan_of_batch", "gpus", gpus, expected)
    micro_batches, remainder = divmod(sequences, data * micro_size)
    if remainder or not micro_batches:
        expected = f"a multiple of the {data * micro_size} that run at once"
        raise BadArgument("plan_of_batch", "sequences", sequences, expected)
    rest |= {"context": context, "micro_batches": micro_batches, "micro_size": micro_size}
    return Plan(data, tensor, pipeline, **rest)


def model_parallel(gpus: int, per_node: int = 8) -> dict[str, int]:
    """Tensor and pipeline degrees of a replica on so many GPUs: tensor parallelism as far as a node
    goes, as Megatron does.

    >>> model_parallel(64)
    {'tensor': 8, 'pipeline': 8}
    """
    tensor = min(gpus, per_node)
    if gpus % tensor:
        expected = f"a multiple of the {per_node} of a node, or fewer"
        raise BadArgument("model_parallel", "gpus", gpus, expected)
    return {"tensor": tensor, "pipeline": gpus // tensor}
