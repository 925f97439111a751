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
from lightspeed.law import checked, count, fraction, positive
from lightspeed.transformer import Transformer, transformer
from lightspeed_models.plan import Plan, checked_for, cuts, plan_of_batch
from lightspeed_models.training_step import flops
from lightspeed_tools.plan.answer import UNSURE, Job, verdict
from lightspeed_tools.plan.inputs import cluster_from, given_stack
from lightspeed_tools.plan.search import Found, bytes_of, seconds_of

__all__ = ("checked_cases",)

CASE = (
    "name", "source", "model", "cluster", "precision", "batch_sequences", "sequence", "plan",
    "measured", "stack", "note",
)  # fmt: skip
PLAN = (
    "tensor", "pipeline", "context", "expert", "data", "chunks", "micro_size", "zero", "recompute",
)  # fmt: skip
LONGEST = 2**30  # tokens of a sequence, or sequences of a batch: beyond, a slip is likelier
GIB = 2**30
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
        except (ValueError, TypeError, KeyError, ArithmeticError) as error:
            rows.append({"name": name, "refused": str(error), "assumed": []})
    return rows


def _row(name: str, case: dict[str, Any], key: str) -> dict[str, Any]:
    case = _object("case", case, CASE)  # a field that is null is unsaid
    if missing := [n for n in ("model", "cluster", "sequence", "batch_sequences") if n not in case]:
        raise BadArgument("plan", "case", name, f"fields {', '.join(missing)}")
    sequence, sequences = (
        int(checked("plan", n, case[n], count(high=LONGEST)))
        for n in ("sequence", "batch_sequences")
    )
    model = _model(case["model"])
    cluster = cluster_from(case["cluster"], case.get("precision", "bf16"), f"case {name!r}")
    chosen = case.get("stack", key)
    if not isinstance(chosen, str):
        raise BadArgument("plan", "stack", chosen, "a stack of the catalog or a file of fit-stack")
    setting, machine = given_stack(chosen, cluster, model)
    job = Job(name, model, sequence, sequences, cluster, machine, setting)
    assumed = list(job.said)
    assumed += ["precision bf16"] * ("precision" not in case and "precision" not in case["cluster"])
    assumed += [f"stack {chosen}"] * ("stack" not in case)
    plan, again = _plan(_object("plan", case.get("plan", {}), PLAN), job, assumed)
    checked_for(model, plan)
    predicted, held = _partly(job, plan, again)
    told = _object("measured", case.get("measured", {}), MEASURED)
    measured = _measured(told, job, plan, assumed)
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


def _object(what: str, given: Any, names: tuple[str, ...]) -> dict[str, Any]:
    """The fields of an object that are not null; raises BadArgument for one that is unknown."""
    if not isinstance(given, dict):
        raise BadArgument("plan", what, given, f"an object with some of {', '.join(names)}")
    for field in given:
        one_of("plan", f"field of a {what}" if what == "case" else f"{what} field", field, names)
    return {name: value for name, value in given.items() if value is not None}


def _partly(job: Job, plan: Plan, again: float) -> tuple[float, float]:
    """Seconds and bytes of a plan of which a part of the layers is done again."""
    ends = [
        (float(seconds_of(job.model, job.sequence, one, job.machine, job.setting)), _held(job, one))
        for one in (plan, replace(plan, recompute="full"))
    ]
    (time, held), (longer, less) = ends
    return time + again * (longer - time), held + again * (less - held)


def _held(job: Job, plan: Plan) -> float:
    return float(bytes_of(job.model, job.sequence, plan, job.machine, job.setting))


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
    given = _object("model", given, names)
    given.setdefault("hidden", given.get("expert_hidden"))
    needed = ("layers", "width", "heads", "hidden", "vocabulary")
    if missing := [n for n in needed if given.get(n) is None]:
        raise BadArgument("plan", "model", list(given), f"also {', '.join(missing)}")
    for name in needed:
        checked("plan", f"{name} of the model", given[name], count())
    return Transformer(**{"head_width": given["width"] // given["heads"]} | given)


def _plan(given: dict[str, Any], job: Job, assumed: list[str]) -> tuple[Plan, float]:
    """The plan of a case, and the part of its layers that is done again."""
    told = {n: v for n, v in given.items() if n not in ("zero", "data", "recompute")}
    for name, value in told.items():
        told[name] = int(checked("plan", name, value, count()))
    if told.get("chunks", 1) > 1 and told.get("pipeline", 1) == 1:
        raise BadArgument("plan", "chunks", told["chunks"], "1 where there is no pipeline")
    usual = ("tensor", "pipeline", "context", *(["expert"] if job.model.experts else []))
    assumed += [f"{name} 1" for name in (*usual, "micro_size", "zero") if name not in given]
    told["stage"] = given.get("zero", 1)
    recompute = given.get("recompute")
    # Without scores is what every kernel does today.
    first = {"none": "selective", False: "selective"}.get(recompute, recompute) or "selective"
    plan = plan_of_batch(job.cluster.gpus, job.sequences, **told, recompute=first)
    if (data := given.get("data", plan.data)) != plan.data:
        wanted = f"{plan.data}: {job.cluster.gpus} GPUs over {plan.gpus // plan.data} of a replica"
        raise BadArgument("plan", "data", data, wanted)
    again = 0.0
    if "chunks" not in given and plan.pipeline > 1:
        # A tuned run interleaves if that helps.
        most = job.setting.able.get("chunks", job.model.layers)
        each = [plan] + [
            replace(plan, chunks=v)
            for v in cuts(job.model.layers, plan.pipeline)
            if v <= most and plan.micro_batches % plan.pipeline == 0
        ]
        fitting = [one for one in each if _held(job, one) <= UNSURE * job.machine.capacity] or each
        plan = min(
            fitting,
            key=lambda p: float(seconds_of(job.model, job.sequence, p, job.machine, job.setting)),
        )
        assumed.append(f"chunks {plan.chunks}, the fastest that fits")
    if recompute is None:
        # What ran has fitted. Where the law is sure that it did not, as few layers as must were
        # done again.
        over = _held(job, plan) - job.machine.capacity
        saved = _held(job, plan) - _held(job, replace(plan, recompute="full"))
        if over > (UNSURE - 1) * job.machine.capacity:
            again = min(1.0, over / saved) if saved > 0 else 1.0
        assumed.append(f"recompute full in {again:.0%} of the layers, as few as fit" if again
                       else "recompute selective")  # fmt: skip
    return plan, again


def _measured(given: dict[str, Any], job: Job, plan: Plan, assumed: list[str]) -> float | None:
    if checked("plan", "memory", given.get("memory", GIB), positive("byte")) < GIB:
        raise BadArgument("plan", "memory", given["memory"], "bytes of a GPU", "80 GB are 80e9.")
    if "step_seconds" in given:
        return float(checked("plan", "step_seconds", given["step_seconds"], positive("s")))
    if "tokens_per_second_per_gpu" in given:
        rate = given["tokens_per_second_per_gpu"]
        rate = checked("plan", "tokens_per_second_per_gpu", rate, positive("token/s"))
        return float(job.tokens / (rate * job.cluster.gpus))
    if "mfu" in given:
        mfu = checked("plan", "mfu", given["mfu"], fraction(hint="A share: 0.43, not 43."))
        mfu = checked("plan", "mfu", mfu, positive())
        peak = float(find(job.cluster.gpu).numbers["bf16"])
        assumed.append("MFU of the bf16 peak, all scores counted")
        needed = flops(job.model, plan.sequences, job.sequence)
        return float(needed / (mfu * peak * job.cluster.gpus))
    return None
