"""A cluster, and how a training step is split over it. Used in chapter 6.

Rates are plain numbers in SI; `network` is what one GPU sends, in one direction.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from lightspeed.catalog import find, link
from lightspeed.errors import BadArgument, one_of
from lightspeed.law import checked, count, positive
from lightspeed.memory import RECOMPUTE, STAGE
from lightspeed.roofline import SHARE

__all__ = ("Machine", "Plan", "machine", "model_parallel", "plan_of_batch")

OF_CHIP = ("bf16", "hbm_bandwidth", "hbm_capacity", "link_bandwidth")


@dataclass(frozen=True)
class Machine:
    """A cluster: dense peak of a GPU, its HBM, the link inside a node, the network of a GPU, and
    the share of the peak that its matrix products reach.
    """

    peak: float
    memory: float
    capacity: float
    link: float
    network: float
    per_node: int = 8
    share: float = 1.0

    def __post_init__(self) -> None:
        for name, unit in (
            ("peak", "FLOP/s"),
            ("memory", "byte/s"),
            ("capacity", "byte"),
            ("link", "byte/s"),
            ("network", "byte/s"),
        ):
            checked("Machine", name, getattr(self, name), positive(unit))
        checked("Machine", "per_node", self.per_node, count())
        checked("Machine", "share", self.share, SHARE)


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
    """How a step is split. `micro_size` counts the sequences of a micro-batch, `expert` the ranks
    of a data-parallel group over which experts are spread, `chunks` what a GPU of an interleaved
    pipeline holds.
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

    def __post_init__(self) -> None:
        for name in (
            "data",
            "tensor",
            "pipeline",
            "expert",
            "context",
            "micro_batches",
            "micro_size",
            "chunks",
        ):
            checked("Plan", name, getattr(self, name), count())
        checked("Plan", "stage", self.stage, STAGE)
        one_of("Plan", "recompute", self.recompute, RECOMPUTE)
        if self.data % self.expert:
            raise BadArgument(
                "Plan", "expert", self.expert, f"a divisor of the {self.data} data-parallel ranks"
            )

    @property
    def gpus(self) -> int:
        return self.data * self.tensor * self.pipeline * self.context

    @property
    def sequences(self) -> int:
        """Sequences in one step of the whole job."""
        return self.data * self.micro_batches * self.micro_size


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
        wanted = f"a multiple of the {replica} of one replica"
        raise BadArgument("plan_of_batch", "gpus", gpus, wanted)
    micro_batches, left = divmod(sequences, data * micro_size)
    if left or not micro_batches:
        wanted = f"a multiple of the {data * micro_size} that run at once"
        raise BadArgument("plan_of_batch", "sequences", sequences, wanted)
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
        raise BadArgument(
            "model_parallel", "gpus", gpus, f"a multiple of the {per_node} of a node, or fewer"
        )
    return {"tensor": tensor, "pipeline": gpus // tensor}
