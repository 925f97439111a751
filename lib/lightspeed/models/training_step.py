"""One training step of a plan, term by term, and measured runs to hold it to (chapter 6).

The model is a sum of bounds: arithmetic at a share of the peak, the tensors that cross HBM beside
it, the bytes of each way of splitting on the link that it uses, and the pipeline's bubble. It
leaves out latency, congestion, stragglers and the host. Rates are plain numbers in SI; `network` is
what one GPU sends, in one direction.

Sources: those of parallel.py, memory.py and pipeline.py; measured runs:
catalog/measured_training.toml.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from lightspeed.catalog import accelerator, link, measured
from lightspeed.errors import BadArgument, one_of
from lightspeed.law import checked, count, positive
from lightspeed.memory import (
    RECOMPUTE,
    STAGE,
    MemoryUse,
    training_memory,
    training_state_bytes,
    transformer_activation_bytes,
)
from lightspeed.parallel import (
    context_parallel_bytes,
    data_parallel_bytes,
    expert_parallel_bytes,
    pipeline_bytes,
    tensor_parallel_bytes,
)
from lightspeed.pipeline import bubble_over_ideal
from lightspeed.roofline import SHARE
from lightspeed.transformer import Transformer, transformer

__all__ = (
    "Machine", "Plan", "Run", "Step", "calibration", "expected_step", "fit_share", "flops",
    "flops_per_gpu", "gpt", "machine", "memory_use", "model_parallel", "plan_of_batch",
    "predicted", "step", "training_runs",
)  # fmt: skip


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
    chip = accelerator(gpu)
    return Machine(
        chip.bf16,
        chip.hbm_bandwidth,
        chip.hbm_capacity,
        chip.link_bandwidth,
        link(network).bandwidth,
        per_node,
        share,
    )


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


@dataclass(frozen=True)
class Step:
    """Seconds of one step on the busiest GPU, by what they are for.

    `hidden` is the part of the data-parallel traffic that runs behind arithmetic; `data` is the
    rest.
    """

    compute: float
    memory: float
    tensor: float
    expert: float
    context: float
    pipeline: float
    bubble: float
    data: float
    hidden: float
    model_flops: float
    peak: float

    @property
    def terms(self) -> dict[str, float]:
        """Seconds by name, in the order in which a figure stacks them."""
        names = ("compute", "memory", "tensor", "expert", "context", "pipeline", "bubble", "data")
        return {n: getattr(self, n) for n in names}

    @property
    def time(self) -> float:
        return sum(self.terms.values())

    @property
    def mfu(self) -> float:
        """Model FLOPs of a GPU over what its peak could have done in the time."""
        return self.model_flops / (self.time * self.peak)

    @property
    def largest_loss(self) -> str:
        """The name of the longest term that is not arithmetic."""
        losses = {n: t for n, t in self.terms.items() if n != "compute"}
        return max(losses, key=losses.__getitem__)


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


def flops_per_gpu(
    model: Transformer,
    sequences: float,
    sequence: float,
    gpus: int,
    time: float,
    recompute: str = "none",
) -> float:
    """FLOP/s of a GPU in a step of `time` (s): what the model needs, and what was done again if
    `recompute` names it.

    >>> gpt3 = gpt(96, 12288, 96, 51200, 2048)
    >>> round(flops_per_gpu(gpt3, 1536, 2048, 1024, 32.0, "full") / 1e12)
    138
    """
    seconds: float = checked("flops_per_gpu", "time", time, positive("s"))
    return flops(model, sequences, sequence, recompute) / gpus / seconds


def flops(model: Transformer, sequences: float, sequence: float, recompute: str = "none") -> float:
    """FLOPs of a step over so many sequences; `recompute` as in `lightspeed.memory`."""
    tokens = sequences * sequence
    if recompute == "full":
        return model.training_flops(tokens, sequence, 1.0)
    again = (
        model.flops_per_token(sequence) - model.flops_per_token(0)
        if recompute == "selective"
        else 0.0
    )
    return model.training_flops(tokens, sequence) + tokens * again


def step(model: Transformer, sequence: int, plan: Plan, machine: Machine) -> Step:
    """The `Step` of a `Transformer` on sequences of this length.

    >>> gpt3 = transformer("gpt3_175b")
    >>> plan = Plan(data=8, tensor=8, pipeline=8, micro_batches=64, recompute="full")
    >>> 0.3 < step(gpt3, 2048, plan, machine("a100_80gb", "infiniband_hdr")).mfu < 0.8
    True
    """
    m, layers = plan.micro_batches, model.layers / plan.pipeline
    share = plan.tensor * plan.pipeline * plan.context
    again = 1.0 if plan.recompute == "full" else 0.0
    # The tokens of one micro-batch that this GPU works on, and all of them in the step.
    tokens = plan.micro_size * sequence / plan.context
    compute = (
        flops(model, m * plan.micro_size, sequence, plan.recompute)
        / share
        / (machine.peak * machine.share)
    )
    memory = _elementwise(model, sequence, plan) * m / machine.memory
    # Bytes of one layer and micro-batch times all of them: layers / pipeline need not be whole.
    each = layers * m
    tensor = each * tensor_parallel_bytes(tokens, model.width, plan.tensor, 1, again) / machine.link
    expert = _expert(model, tokens, plan) * each / _rate(plan, machine, plan.expert)
    kv_width = (model.kv_heads or model.heads) * model.head_width / plan.tensor
    context = each * _context(tokens, kv_width, plan) / _rate(plan, machine, plan.context)
    busy = compute + memory + tensor + expert + context
    hop = (
        pipeline_bytes(tokens, model.width) / 2 / plan.tensor / _rate(plan, machine, plan.pipeline)
    )
    pipeline = 2 * (plan.pipeline - 1) * plan.chunks * hop
    bubble = bubble_over_ideal(plan.pipeline, m, plan.chunks) * busy
    held = model.parameters / (plan.tensor * plan.pipeline)
    ranks = plan.data * plan.context
    synced = data_parallel_bytes(held, ranks, plan.stage, m) / _rate(plan, machine, ranks)
    # DDP and ZeRO-1 sum gradients once, behind the last backward pass; later stages all through the
    # step.
    window = busy if plan.stage >= 2 else busy / m * 2 / 3
    hidden = min(synced, window)
    needed = flops(model, m * plan.micro_size, sequence) / share
    return Step(
        compute,
        memory,
        tensor,
        expert,
        context,
        pipeline,
        bubble,
        synced - hidden,
        hidden,
        needed,
        machine.peak,
    )


def _rate(plan: Plan, machine: Machine, ways: int) -> float:
    """byte/s of a GPU in a group of so many: the link inside a node, or its part of the node's
    networks.

    Tensor parallelism is placed first, in a node; the members of a group that share a node share
    its networks.
    """
    inside = max(1, machine.per_node // plan.tensor)
    return machine.link if ways <= inside else machine.network * inside


def _elementwise(model: Transformer, sequence: int, plan: Plan) -> float:
    """Bytes that one micro-batch moves through HBM between matrix products: each activation
    written and read, and its gradient.
    """
    kept: float = transformer_activation_bytes(model, sequence, plan.micro_size, plan.tensor)
    passes = 4 + (2 if plan.recompute == "full" else 0)
    return passes * kept / (plan.pipeline * plan.context)


def _expert(model: Transformer, tokens: float, plan: Plan) -> float:
    if not model.experts or plan.expert == 1:
        return 0.0
    sparse = (model.layers - model.dense_layers) / model.layers
    return (
        sparse
        * expert_parallel_bytes(tokens, model.width, plan.expert, model.active_experts)
        / plan.tensor
    )


def _context(tokens: float, kv_width: float, plan: Plan) -> float:
    return context_parallel_bytes(tokens, kv_width, plan.context) if plan.context > 1 else 0.0


def memory_use(
    model: Transformer,
    sequence: int,
    plan: Plan,
    machine: Machine,
    recipe: str = "16",
    split: str = "tensor+sequence",
) -> MemoryUse:
    """The `MemoryUse` of a GPU under a plan: `lightspeed.memory.training_memory`, with experts
    spread over ranks.

    The copies of an expert are data / expert, so its states are split over those ranks only.
    """
    per_gpu = plan.tensor * plan.pipeline
    mine, replicas = sequence // plan.context, plan.data * plan.context
    use = training_memory(
        model, machine.capacity, mine, plan.micro_size, replicas, plan.tensor, plan.pipeline,
        plan.chunks, plan.stage, recipe, split, plan.recompute,
    )  # fmt: skip
    if plan.expert == 1:
        return use
    experts = model.expert_matrices * model.experts * (model.layers - model.dense_layers)
    common = training_state_bytes(
        (model.parameters - experts) / per_gpu, recipe, plan.data, plan.stage
    )
    spread = training_state_bytes(
        experts / per_gpu / plan.expert, recipe, plan.data // plan.expert, plan.stage
    )
    states = {
        n: getattr(common, n) + getattr(spread, n) for n in ("weights", "gradients", "optimizer")
    }
    waste = use.buffers / (use.total - use.buffers)
    needed = sum(states.values()) + use.activations + use.logits
    return replace(use, **states, buffers=waste * needed, total=(1 + waste) * needed)


# ---------------------------------------------------------------- measured runs


@dataclass(frozen=True)
class Run:
    """A published run: its `model`, `plan` and `sequence`, and the FLOP/s of a GPU that it
    reached, counted as `counts` says.
    """

    key: str
    name: str
    source: str
    model: Transformer
    sequence: int
    plan: Plan
    gpu: str
    network: str
    counts: str
    flops_per_gpu: float
    time: float

    def model_flops_per_gpu(self) -> float:
        """FLOP/s of a GPU that the model needed: what was printed, less what was done twice."""
        if self.counts == "model":
            return self.flops_per_gpu
        of = functools.partial(flops, self.model, self.plan.sequences, self.sequence)
        return self.flops_per_gpu * of() / of(self.plan.recompute)


@functools.cache
def training_runs() -> dict[str, Run]:
    """Every published `Run` of catalog/measured_training.toml, by key."""
    tables = measured("training")
    sources = {key: table["title"] for key, table in tables.pop("sources").items()}
    return {key: _run(key, table, sources) for key, table in tables.items()}


def gpt(layers: int, width: int, heads: int, vocabulary: int, sequence: int) -> Transformer:
    """The `Transformer` of a GPT with heads of width / heads and an MLP four times as wide, as
    Megatron's tables have it.
    """
    return Transformer(
        layers,
        width,
        heads,
        width // heads,
        4 * width,
        vocabulary,
        context=sequence,
        mlp_matrices=2,
        tied_embeddings=True,
    )


def _run(key: str, table: dict[str, Any], sources: Mapping[str, str]) -> Run:
    shape = ("layers", "width", "heads", "vocabulary", "sequence")
    model = transformer(table["model"]) if "model" in table else gpt(*(table[n] for n in shape))
    degrees = {
        n: table.get(n, 1) for n in ("tensor", "pipeline", "context", "chunks", "micro_size")
    }
    gpus = table["data"] * degrees["tensor"] * degrees["pipeline"] * degrees["context"]
    plan = plan_of_batch(gpus, table["batch"], **degrees, recompute=table["recompute"])
    counted = plan.recompute if table["counts"] == "hardware" else "none"
    # A source prints the rate or the time; the FLOPs turn one into the other.
    printed = table["seconds"] if "seconds" in table else table["flops_per_gpu"] * 1e12
    other = flops_per_gpu(model, plan.sequences, table["sequence"], gpus, printed, counted)
    rate, time = (other, printed) if "seconds" in table else (printed, other)
    return Run(
        key, table["name"], sources[table["source"]], model, table["sequence"], plan,
        table["gpu"], table["network"], table["counts"], rate, time,
    )  # fmt: skip


# The run that sets the share of peak; and the one that sets it for this run itself.
CALIBRATION, SECOND = "megatron_a100_145_6b", "megatron_a100_76_1b"


def calibration(model: Transformer, plan: Plan) -> str:
    """The key of the run whose share of peak predicts this plan: never the run that is predicted.

    >>> run = training_runs()[CALIBRATION]
    >>> calibration(run.model, run.plan) == SECOND
    True
    """
    run = training_runs()[CALIBRATION]
    known = (run.model.layers, run.model.width, run.plan.gpus)
    return SECOND if (model.layers, model.width, plan.gpus) == known else CALIBRATION


@functools.cache
def fit_share(key: str = CALIBRATION) -> float:
    """The share of peak at which `step` takes as long as this measured run: what the sum of
    bounds leaves out, as one number.
    """
    run = training_runs()[key]

    def excess(share: float) -> float:
        return (
            step(run.model, run.sequence, run.plan, machine(run.gpu, run.network, share=share)).time
            - run.time
        )

    low, high = 0.01, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if excess(middle) > 0 else (low, middle)
    return middle


def expected_step(model: Transformer, sequence: int, plan: Plan, gpu: str, network: str) -> Step:
    """The `Step` of a plan whose matrix products reach the share of peak that another, measured
    run set.
    """
    return step(
        model, sequence, plan, machine(gpu, network, share=fit_share(calibration(model, plan)))
    )


def predicted(run: Run) -> Step:
    """The `expected_step` of a published `Run`."""
    return expected_step(run.model, run.sequence, run.plan, run.gpu, run.network)
