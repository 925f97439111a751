"""The memory of a GPU to expect while it trains, stage by stage of a pipeline. Used in chapter 6.

`llm.training.training_memory` counts what a first stage of equal shares must hold. Here stages
hold whole layers, the first also the table of tokens and the last also that of the logits, and a
schedule says how many micro-batches are in flight. What a framework keeps beyond the count is two
fitted constants, which belong to that framework wherever they are used: nanotron's, on machines of
80 GB, refuse most plans that other frameworks ran. A plan of arrays is answered in arrays.

Sources: those of memory.py and pipeline.py; Megatron-LM, schedules.py, for what is in flight where
stages are interleaved; constants: catalog/fitted_stacks.toml.
"""

from dataclasses import dataclass, fields
from typing import Any

from lightspeed.catalog import fitted
from lightspeed.elementwise import Result, Value, any_of, minimum, where
from lightspeed.errors import one_of
from lightspeed.law import check_fields, nonnegative, positive
from lightspeed.memory import MemoryUse
from lightspeed_models.llm.decoder import Decoder
from lightspeed_models.llm.training import model_activation_bytes
from lightspeed_models.plan import Machine, Plan, checked_for
from lightspeed_models.stack import CUTS
from lightspeed_models.training_step import layers_of_stage

PARTS = tuple(f.name for f in fields(MemoryUse))


@dataclass(frozen=True)
class Footprint:
    """What a framework holds. Counted: bytes of a parameter's weight, gradients and `optimizer`,
    and of an element of the logits (in bf16, and in fp32 with its gradient: 10); and how layers are
    `cut` into stages. Fitted: `kept`, activations over those that the layer must keep, and `base`,
    bytes whatever is trained.
    """

    weight_bytes: float = 2.0
    gradient_bytes: float = 2.0
    optimizer_bytes: float = 12.0
    logits_bytes: float = 4.0
    kept: float = 1.0
    base: float = 0.0
    cut: str = "weighted"

    def __post_init__(self) -> None:
        states = ("weight_bytes", "gradient_bytes", "optimizer_bytes")
        check_fields(self, nonnegative("byte"), *states, "logits_bytes", "base")
        check_fields(self, positive(), "kept")
        check_fields(self, CUTS, "cut")


def footprint(key: str) -> Footprint:
    """The `Footprint` of a stack of catalog/fitted_stacks.toml.

    >>> footprint("nanotron_h100").logits_bytes
    10
    """
    tables = {k: t["memory"] for k, t in fitted("stacks").items() if "memory" in t}
    table = tables[one_of("footprint", "key", key, tuple(tables))]
    return Footprint(
        **{n: v["value"] if isinstance(v, dict) else v for n, v in table.items() if n != "rows"}
    )


def expected_memory(
    model: Decoder,
    sequence: int,
    plan: Plan,
    machine: Machine,
    holds: Footprint,
    split: str = "tensor+sequence",
) -> MemoryUse:
    """The `MemoryUse` of the GPU that holds most: on the first stage, which has most in flight, on
    the one behind it, which may hold a layer more, or on the last, which has the logits.

    >>> from lightspeed_models.plan import machine
    >>> from lightspeed_models.llm import decoder
    >>> h100, plan = machine("h100_sxm", "infiniband_ndr"), Plan(tensor=8, pipeline=4)
    >>> llama, holds = decoder("llama3_8b"), footprint("nanotron_h100")
    >>> use = expected_memory(llama, 4096, plan, h100, holds)
    >>> use.fits, use.largest
    (True, 'optimizer')
    """
    fullest, *others = (
        stage_memory(model, sequence, plan, machine, holds, place, split)
        for place in fullest_places(plan, holds)
    )
    for other in others:
        fuller = other.total > fullest.total
        parts = {n: (getattr(other, n), getattr(fullest, n)) for n in PARTS}
        fullest = MemoryUse(**{name: where(fuller, *either) for name, either in parts.items()})
    return fullest


def fullest_places(plan: Plan, holds: Footprint) -> tuple[Value, ...]:
    """Places of the stages of which one holds most."""
    ends = (0 * plan.pipeline, plan.pipeline - 1)
    return (*ends, minimum(1, plan.pipeline - 1)) if holds.cut == "even" else ends


def stage_memory(
    model: Decoder,
    sequence: int,
    plan: Plan,
    machine: Machine,
    holds: Footprint,
    place: Value,
    split: str = "tensor+sequence",
) -> MemoryUse:
    """The `MemoryUse` of a GPU of the stage at this place, from 0.

    Raises BadArgument for chunks that don't divide the layers, or more ways than experts.
    """
    checked_for(model, plan)
    even = model.depth / plan.pipeline
    layers = layers_of_stage(model, plan.pipeline, place, plan.chunks, holds.cut)
    if holds.cut == "weighted":
        layers = where(plan.chunks > 1, even, layers)
    ends = (place == 0) | (place == plan.pipeline - 1)
    table = where(ends, model.vocabulary * model.width, 0)
    tables = where(plan.pipeline == 1, model.embeddings, table)
    # An expert lies on fewer ranks than the rest of a layer, and has as many copies fewer.
    experts = model.expert_parameters
    mine = experts / model.depth / plan.expert / plan.expert_tensor
    rest = (model.parameters - model.embeddings - experts) / model.depth / plan.tensor
    parts: tuple[tuple[Value, Value], ...] = (
        (layers * mine, plan.expert_copies),
        (layers * rest + tables / plan.tensor, plan.shard_ranks),
    )

    def states(each: float, stage: int) -> Result:
        """Bytes of a state that ZeRO splits from this stage on."""
        return sum(each * n / where(plan.stage >= stage, copies, 1) for n, copies in parts)

    # ZeRO-3 gathers the layer that runs and the next.
    gathered = where((plan.stage == 3) & (layers > 0), 2 * (mine + rest) * holds.weight_bytes, 0.0)
    weights = states(holds.weight_bytes, 3) + gathered
    gradients, optimizer = states(holds.gradient_bytes, 2), states(holds.optimizer_bytes, 1)
    tokens = sequence // plan.context

    def kept_bytes(recompute: Any) -> Result:
        size = plan.micro_size, plan.tensor
        return model_activation_bytes(model, tokens, *size, split=split, recompute=recompute)

    per_layer = kept_bytes(plan.recompute)
    if any_of(plan.again != where(plan.recompute == "full", 1.0, 0.0)):  # a part of the layers
        per_layer = plan.again * per_layer + (1 - plan.again) * kept_bytes("selective")
    activations = holds.kept * per_layer / model.depth * layers * in_flight(plan, place)
    scores = holds.logits_bytes * tokens * plan.micro_size * model.vocabulary / plan.tensor
    logits = where(place == plan.pipeline - 1, scores, 0.0)
    total = weights + gradients + optimizer + activations + logits + holds.base
    return MemoryUse(
        weights, gradients, optimizer, activations, logits, holds.base, total, machine.capacity
    )


def in_flight(plan: Plan, place: Value) -> Result:
    """Micro-batches whose activations the stage at this place holds at most: with GPipe all; in
    1F1B one for each stage from here on, and in zb_h1, which keeps them for its weight gradients,
    one for each stage. Interleaved, the pieces of them count by their part of the stage.

    >>> [in_flight(Plan(pipeline=4, micro_batches=8, chunks=2), place) for place in range(4)]
    [5.5, 4.5, 3.5, 2.5]
    """
    p, m, v, after = plan.pipeline, plan.micro_batches, plan.chunks, plan.pipeline - 1 - place
    pieces = where(v > 1, (v - 1) * p + 2 * after + 1, after + 1)
    most = where(plan.schedule == "zb_h1", p, pieces / v)
    return minimum(m, where(plan.schedule == "gpipe", m, most))
