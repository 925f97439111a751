"""The measured runs that are nearest to a plan, beside what the law says of them."""

from __future__ import annotations

from math import log
from typing import Any

from lightspeed_models.evidence.pairings import torch_fsdp
from lightspeed_models.evidence.pairings.recipes import bridge_runs, runs_of
from lightspeed_models.evidence.sets import dataset
from lightspeed_models.llm import Decoder
from lightspeed_models.stack import Stack
from lightspeed_models.stack_fit import Timed
from lightspeed_models.training_step import step
from lightspeed_tools.plan.inputs import Setting

FORMATS = {2.0: "bf16", 1.0: "fp8"}


def nearest(
    model: Decoder, gpus: int, precision: str, sequence: int, setting: Setting, many: int = 3
) -> list[dict[str, Any]]:
    """Runs of Megatron on H100, or of PyTorch FSDP, of models with experts or without, the nearest
    in parameters, GPUs, format and sequence first, one of each model and format. Some of them set
    the stack's constants.
    """

    def far(run: Timed) -> float:
        ratios = (
            run.model.parameters / model.parameters, (run.plan.gpus / gpus) ** 0.5,
            run.sequence / sequence,
        )  # fmt: skip
        return sum(abs(log(ratio)) for ratio in ratios) + (_format(run) != precision)

    if setting.key == "pytorch_fsdp":
        stacks = {run.timed: torch_fsdp.stack_as_shipped(run) for run in torch_fsdp.runs()}
    else:
        recipes = (*runs_of(dataset("dgx_cloud"))[1], *bridge_runs())
        stacks = dict.fromkeys(recipes, setting.stack)
    runs = [run for run in stacks if bool(run.model.experts) == bool(model.experts)]
    kinds: dict[tuple[Decoder, str], Timed] = {}
    for run in sorted(runs, key=far):
        kinds.setdefault((run.model, _format(run)), run)
    return [_beside(run, stacks[run]) for run in list(kinds.values())[:many]]


def _format(run: Timed) -> str:
    assert run.machine.products
    return FORMATS[run.machine.products.element_bytes]


def _beside(run: Timed, stack: Stack) -> dict[str, Any]:
    p = run.plan
    predicted = float(step(run.model, run.sequence, p, run.machine, stack).time)
    return {
        "name": run.name, "gpus": p.gpus, "precision": _format(run),
        "plan": {n: getattr(p, n) for n in ("data", "tensor", "pipeline", "context", "expert")},
        "measured_seconds": run.time, "predicted_seconds": predicted,
        "error": predicted / run.time - 1,
    }  # fmt: skip
