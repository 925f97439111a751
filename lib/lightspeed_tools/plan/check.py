"""Published runs through the planner: how far the law is off, and how it ranks what was chosen.

A file has {"cases": [...]}; a case has `name`, `model` (a key of the catalog or a shape),
`cluster`, `precision`, `batch_sequences`, `sequence`, `plan` and what was `measured`. What it
leaves unsaid is assumed and listed.
"""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

import numpy as np

from lightspeed.catalog import find
from lightspeed.errors import BadArgument, one_of
from lightspeed.law import checked, fraction, positive
from lightspeed.transformer import Transformer, transformer
from lightspeed_models.plan import Plan, checked_for, plan_of_batch
from lightspeed_models.training_step import flops
from lightspeed_tools.plan.answer import Job, verdict
from lightspeed_tools.plan.inputs import cluster_from, given_stack
from lightspeed_tools.plan.search import Found, bytes_of, seconds_of
from lightspeed_tools.plan.space import cuts

__all__ = ("checked_cases",)

CASE = (
    "name", "source", "model", "cluster", "precision", "batch_sequences", "sequence", "plan",
    "measured", "stack", "note",
)  # fmt: skip
PLAN = (
    "tensor", "pipeline", "context", "expert", "data", "chunks", "micro_size", "zero", "recompute",
)  # fmt: skip
MEASURED = ("step_seconds", "mfu", "tokens_per_second_per_gpu", "memory")


def checked_cases(table: Any, key: str = "megatron_h100") -> list[dict[str, Any]]:
    """A row a case; one that can't be read says so in `refused`."""
    cases = table.get("cases") if isinstance(table, dict) else None
    if not isinstance(cases, list) or not cases:
        raise BadArgument("plan", "--check", "the file", 'an object with a list of "cases"')
    rows = []
    for number, case in enumerate(cases, start=1):
        name = case.get("name") if isinstance(case, dict) else None
        name = str(name or f"case {number}")
        try:
            rows.append(_row(name, case, key))
        except (ValueError, TypeError, KeyError) as error:
            rows.append({"name": name, "refused": str(error), "assumed": []})
    return rows


def _row(name: str, case: dict[str, Any], key: str) -> dict[str, Any]:
    for field in case:
        one_of("plan", "field of a case", field, CASE)
    if missing := [n for n in ("model", "cluster", "sequence", "batch_sequences") if n not in case]:
        raise BadArgument("plan", "case", name, f"fields {', '.join(missing)}")
    model = _model(case["model"])
    cluster = cluster_from(case["cluster"], case.get("precision", "bf16"), f"case {name!r}")
    setting, machine = given_stack(case.get("stack", key), cluster, model)
    assumed = list(cluster.assumed)
    job = Job(name, model, case["sequence"], case["batch_sequences"], cluster, machine, setting)
    plan = _plan(case.get("plan", {}), job, assumed)
    checked_for(model, plan)
    predicted = float(seconds_of(model, job.sequence, plan, machine, setting))
    held = float(bytes_of(model, job.sequence, plan, machine, setting))
    measured = _measured(case.get("measured", {}), job, plan, assumed)
    found = job.found()
    best = found.best()
    rank, of = ranked(found, plan, predicted)
    fastest = float(found.seconds[best]) if best is not None else None
    return {
        "name": name,
        "predicted_seconds": predicted,
        "measured_seconds": measured,
        "error": predicted / measured - 1 if measured else None,
        "rank": rank,
        "of": of,
        "claimed_gain": max(0.0, predicted / fastest - 1) if fastest else 0.0,
        "memory": {"verdict": verdict(held, machine.capacity), "predicted": held},
        "assumed": assumed,
        "refused": "",
    }


def ranked(found: Found, plan: Plan, seconds: float) -> tuple[int, int]:
    """(rank of a plan that takes so long, of how many) among the ways to split the work, each at
    its best: what else a run chose is seldom published, and no way to split stands twice.
    """
    names = ("data", "tensor", "pipeline", "context", "expert")
    if not len(found):
        return 1, 0
    ways, way = np.unique(
        np.column_stack([found.column(n) for n in names]), axis=0, return_inverse=True
    )
    best = np.full(len(ways), np.inf)
    np.minimum.at(best, way.ravel(), found.seconds)
    other = (ways != [getattr(plan, n) for n in names]).any(axis=1)
    return 1 + int((other & (best < seconds * (1 - 1e-12))).sum()), len(ways)


def _model(given: Any) -> Transformer:
    if isinstance(given, str):
        return transformer(given)
    if not isinstance(given, dict):
        raise BadArgument("plan", "model", given, "a key of the catalog or a shape")
    names = tuple(f.name for f in fields(Transformer))
    for field in given:
        one_of("plan", "model field", field, names)
    needed = ("layers", "width", "heads", "vocabulary")
    if missing := [n for n in needed if n not in given]:
        raise BadArgument("plan", "model", list(given), f"also {', '.join(missing)}")
    shape = {"head_width": given["width"] // given["heads"], "hidden": given.get("expert_hidden")}
    return Transformer(**{n: v for n, v in (shape | given).items() if v is not None})


def _plan(given: dict[str, Any], job: Job, assumed: list[str]) -> Plan:
    for field in given:
        one_of("plan", "plan field", field, PLAN)
    told = {n: v for n, v in given.items() if v is not None and n not in ("zero", "data")}
    for name, usual in (("micro_size", 1), ("zero", 1)):
        if given.get(name) is None:
            assumed.append(f"{name} {usual}")
    told["stage"] = given.get("zero") if given.get("zero") is not None else 1
    recompute = told.pop("recompute", None)
    # Without scores is what every kernel does today.
    first = {"none": "selective"}.get(recompute, recompute) or "selective"
    plan = plan_of_batch(job.cluster.gpus, job.sequences, **told, recompute=first)
    if (data := given.get("data")) and data != plan.data:
        wanted = f"{plan.data}: {job.cluster.gpus} GPUs over {plan.gpus // plan.data} of a replica"
        raise BadArgument("plan", "data", data, wanted)

    def held(one: Plan) -> float:
        return float(bytes_of(job.model, job.sequence, one, job.machine, job.setting))

    if recompute is None:
        if held(plan) > job.machine.capacity:
            plan = replace(plan, recompute="full")
        assumed.append(f"recompute {plan.recompute}")
    if given.get("chunks") is None and plan.pipeline > 1:
        # A tuned run interleaves if that helps.
        most = job.setting.able.get("chunks", job.model.layers)
        each = [plan] + [
            replace(plan, chunks=v)
            for v in cuts(job.model.layers, plan.pipeline)
            if v <= most and plan.micro_batches % plan.pipeline == 0
        ]
        fitting = [one for one in each if held(one) <= job.machine.capacity] or each
        plan = min(
            fitting,
            key=lambda p: float(seconds_of(job.model, job.sequence, p, job.machine, job.setting)),
        )
        assumed.append(f"chunks {plan.chunks}, the fastest that fits")
    return plan


def _measured(given: dict[str, Any], job: Job, plan: Plan, assumed: list[str]) -> float | None:
    for field in given:
        one_of("plan", "measured field", field, MEASURED)
    if given.get("step_seconds") is not None:
        return float(checked("plan", "step_seconds", given["step_seconds"], positive("s")))
    if given.get("tokens_per_second_per_gpu") is not None:
        rate = given["tokens_per_second_per_gpu"]
        rate = checked("plan", "tokens_per_second_per_gpu", rate, positive("token/s"))
        return float(job.tokens / (rate * job.cluster.gpus))
    if given.get("mfu") is not None:
        mfu = checked("plan", "mfu", given["mfu"], fraction(hint="A share: 0.43, not 43."))
        peak = float(find(job.cluster.gpu).numbers["bf16"])
        assumed.append("MFU of the bf16 peak, all scores counted")
        needed = flops(job.model, plan.sequences, job.sequence)
        return float(needed / (mfu * peak * job.cluster.gpus))
    return None
