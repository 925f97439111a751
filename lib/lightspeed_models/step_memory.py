"""The memory of a GPU to expect while it trains, stage by stage of a pipeline. Used in chapter 6.

`lightspeed.memory.training_memory` counts what a first stage of equal shares must hold. Here stages
hold whole layers, the first also the table of tokens and the last also that of the logits; both are
counted and the fuller is answered. What a framework keeps beyond the count is two fitted constants.

Sources: those of memory.py; constants: catalog/fitted_stacks.toml.
"""

from __future__ import annotations

from dataclasses import dataclass

from lightspeed.catalog import fitted
from lightspeed.errors import one_of
from lightspeed.law import checked, nonnegative, positive
from lightspeed.memory import MemoryUse, transformer_activation_bytes
from lightspeed.transformer import Transformer
from lightspeed_models.plan import Machine, Plan
from lightspeed_models.training_step import whole_layers

__all__ = ("Footprint", "expected_memory", "footprint")


@dataclass(frozen=True)
class Footprint:
    """What a framework holds. Counted: bytes of a parameter's weight, gradients and `optimizer`,
    and of an element of the logits (in bf16, and in fp32 with its gradient: 10). Fitted: `kept`,
    activations over those that the layer must keep, and `base`, bytes whatever is trained.
    """

    weight_bytes: float = 2.0
    gradient_bytes: float = 2.0
    optimizer_bytes: float = 12.0
    logits_bytes: float = 4.0
    kept: float = 1.0
    base: float = 0.0

    def __post_init__(self) -> None:
        held = nonnegative("byte")
        for name in ("weight_bytes", "gradient_bytes", "optimizer_bytes", "logits_bytes", "base"):
            checked("Footprint", name, getattr(self, name), held)
        checked("Footprint", "kept", self.kept, positive())


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
    model: Transformer,
    sequence: int,
    plan: Plan,
    machine: Machine,
    holds: Footprint,
    split: str = "tensor+sequence",
) -> MemoryUse:
    """The `MemoryUse` of the GPU that holds most: on the first stage or on the last.

    >>> from lightspeed_models.plan import machine
    >>> from lightspeed.transformer import transformer
    >>> h100, plan = machine("h100_sxm", "infiniband_ndr"), Plan(tensor=8, pipeline=4)
    >>> llama, holds = transformer("llama3_8b"), footprint("nanotron_h100")
    >>> use = expected_memory(llama, 4096, plan, h100, holds)
    >>> use.fits, use.largest
    (True, 'optimizer')
    """
    fullest, last = whole_layers(model, plan.pipeline)
    table = model.vocabulary * model.width
    alone = plan.pipeline == 1
    # 1F1B: the first stage has a micro-batch in flight for each stage, the last one.
    flying = min(plan.pipeline, plan.micro_batches)
    first = _stage(model, sequence, plan, machine, holds, split, fullest, flying, table, alone)
    if alone:
        return first
    end = _stage(model, sequence, plan, machine, holds, split, last, 1, table, True)
    return max(first, end, key=lambda use: use.total)


def _stage(
    model: Transformer,
    sequence: int,
    plan: Plan,
    machine: Machine,
    holds: Footprint,
    split: str,
    layers: int,
    flying: int,
    table: int,
    logits: bool,
) -> MemoryUse:
    """What a stage holds that has so many layers, micro-batches in flight, and a table."""
    tables = model.embeddings if plan.pipeline == 1 else table
    experts = model.expert_matrices * model.experts * (model.layers - model.dense_layers)
    common = (model.parameters - model.embeddings - experts) / model.layers
    layer = (common + experts / model.layers / plan.expert) / plan.tensor
    parameters = layers * layer + tables / plan.tensor
    ranks = plan.data * plan.context
    # ZeRO-3 gathers the layer that runs and the next.
    gathered = 2 * layer * holds.weight_bytes if plan.stage == 3 and layers else 0.0
    weights = parameters * holds.weight_bytes / (ranks if plan.stage == 3 else 1) + gathered
    gradients = parameters * holds.gradient_bytes / (ranks if plan.stage >= 2 else 1)
    optimizer = parameters * holds.optimizer_bytes / (ranks if plan.stage else 1)
    mine = sequence // plan.context
    kept = transformer_activation_bytes(
        model, mine, plan.micro_size, plan.tensor, split=split, recompute=plan.recompute
    )
    interleaved = 1 + (plan.pipeline - 1) / (plan.pipeline * plan.chunks) if plan.chunks > 1 else 1
    activations = holds.kept * kept / model.layers * layers * flying * interleaved
    scores = holds.logits_bytes * mine * plan.micro_size * model.vocabulary / plan.tensor
    held = scores if logits else 0.0
    total = weights + gradients + optimizer + activations + held + holds.base
    return MemoryUse(
        weights, gradients, optimizer, activations, held, holds.base, total, machine.capacity
    )
