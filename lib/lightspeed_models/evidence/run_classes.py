"""Runs by who ran them: what the law of their class says of each group of rows that had no part in
it, beside what was measured.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass, replace

import numpy as np

from lightspeed.errors import BadArgument
from lightspeed_models.evidence.pairings import megascale, megatron, recipes, torch_fsdp
from lightspeed_models.evidence.sets import dataset
from lightspeed_models.plan import machine
from lightspeed_models.products import rates
from lightspeed_models.stack import RunClass, stack
from lightspeed_models.training_runs import training_runs
from lightspeed_models.training_step import step


@dataclass(frozen=True)
class Group:
    """Rows that are alike: seconds by the law of their class (`runs`, by key) and measured, and
    those that Megatron's law says whoever ran them.
    """

    runs: str
    name: str
    law: np.ndarray
    megatron: np.ndarray
    measured: np.ndarray


@functools.cache
def groups() -> tuple[Group, ...]:
    """Every `Group` of the sets that ship."""
    rows: dict[tuple[str, str], list[tuple[float, float, float]]] = {}
    for runs, name, *seconds in (*_nvidia(), *_megatron(), *_torch()):
        law, other, took = map(float, seconds)
        rows.setdefault((runs, name), []).append((law, other, took))
    return tuple(Group(*key, *np.array(points).T) for key, points in rows.items())


def groups_of(runs: RunClass) -> list[Group]:
    """Those of a class; where nobody says who runs it, of all models without experts."""
    if runs.key != "unnamed":
        return [group for group in groups() if group.runs == runs.key]
    return [replace(group, law=group.megatron) for group in groups() if "experts" not in group.runs]


def covered(runs: RunClass) -> float:
    """The part of the rows that the range of a class holds, each group weighing the same."""
    parts = []
    for group in groups_of(runs):
        ratio = group.measured / group.law
        parts.append(((ratio >= runs.low) & (ratio <= runs.high)).mean())
    return float(np.mean(parts))


def _nvidia():
    """(class, group, law, Megatron's law, measured) of recipes, a model left out on H100."""
    rows = dataset("dgx_cloud")
    recipe, bridge = recipes.runs_of(rows)[1], recipes.bridge_runs()
    for name, runs in (("NeMo's recipes, H100", recipe), ("Megatron-Bridge, H100", bridge)):
        for run, law in zip(runs, recipes.left_out(rows, list(runs)), strict=True):
            kind = "nvidia_experts" if run.model.experts else "nvidia"
            yield kind, name, law, law, run.time
    rows = dataset("megatron_bridge")
    for row in megatron.split(rows, steps=True)[0]:
        system, kind = rows["system"][row], megatron.PEAKS[rows["precision"][row]]
        products = rates(megatron.SYSTEMS[system][0], kind)
        try:
            run = megatron.timed(row, rows)
        except BadArgument:  # degrees that do not divide the GPUs
            continue
        if system != "DGX-H100" and products and not run.model.experts:
            law = _law(run.model, run.sequence, run.plan, replace(run.machine, products=products))
            yield "nvidia", f"Megatron-Bridge, {system[4:]} {kind}", law, law, run.time


def _megatron():
    for key, run in training_runs().items():
        law = _law(run.model, run.sequence, run.plan, _machine(run.gpu, run.network))
        yield "megatron", "_".join(key.split("_")[:2]), law, law, run.time
    rows = dataset("megascale")
    behind = _machine(megascale.GPU, megascale.NETWORK)
    for row, plan in enumerate(megascale.plans(rows)):
        law = _law(megascale.MODEL, megascale.SEQUENCE, plan, behind)
        yield "megatron", f"MegaScale's paper, {rows['system'][row]}", law, law, rows["time"][row]


def _torch():
    runs = torch_fsdp.runs()
    for run, law in zip(runs, torch_fsdp.left_out(), strict=True):
        one = run.timed
        other = _law(one.model, one.sequence, one.plan, one.machine)
        yield "pytorch_fsdp", run.group, law, other, one.time


def _machine(gpu, network):
    return replace(machine(gpu, network), products=rates(gpu))


def _law(model, sequence, plan, behind):
    return step(model, sequence, plan, behind, stack("megatron_h100")).time
