"""Published runs through the planner: how far the law is off, and how it ranks what was chosen.

A file has {"cases": [...]}; a case has `name`, `model` (a key of the catalog or a shape),
`cluster`, `precision`, `batch_sequences`, `sequence`, `plan` and what was `measured`; `framework`
(or `stack`), `compiled`, `attention` and `mfu_counts` say how it was run and counted. What it
leaves unsaid is assumed and listed, and so are fields that nothing reads.
"""

from __future__ import annotations

import inspect
from dataclasses import replace
from difflib import get_close_matches
from typing import Any

import numpy as np

from lightspeed.errors import BadArgument, one_of
from lightspeed.law import checked, count, fraction, positive
from lightspeed_models.llm import Decoder, from_sizes, read_config
from lightspeed_models.plan import Plan, checked_for, cuts, plan_of_batch
from lightspeed_tools.plan.answer import UNSURE, Job, utilizations, verdict
from lightspeed_tools.plan.inputs import cluster_from, given_stack, model_of
from lightspeed_tools.plan.phrases import part_again
from lightspeed_tools.plan.search import Found, bytes_of, seconds_of

CASE = (
    "name", "source", "model", "cluster", "precision", "batch_sequences", "sequence", "plan",
    "measured", "stack", "framework", "compiled", "attention", "mfu_counts", "note",
)  # fmt: skip
PLAN = (
    "tensor", "pipeline", "context", "expert", "data", "chunks", "micro_size", "zero", "recompute",
    "shard",
)  # fmt: skip
OTHERS = {  # of a case, a plan or a measurement: what people write -> our field
    "micro_batch": "micro_size", "micro_batch_size": "micro_size", "stage": "zero",
    "hsdp": "shard", "activation_checkpointing": "recompute", "compile": "compiled",
    "torch_compile": "compiled", "attention_kernel": "attention", "tp": "tensor",
    "pp": "pipeline", "cp": "context", "ep": "expert", "dp": "data",
}  # fmt: skip
MEANT = 0.7  # as alike as a word must be to a field to be a slip of it, and not a note
LONGEST = 2**30  # tokens of a sequence, or sequences of a batch: beyond, a slip is likelier
GIB = 2**30
MEASURED = ("step_seconds", "mfu", "tokens_per_second_per_gpu", "memory")


def checked_cases(table: Any, key: str = "") -> list[dict[str, Any]]:
    """Return one row per case; an unreadable case has its reason in `refused`."""
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
    assumed: list[str] = []
    case = _object("case", case, CASE, assumed)  # a field that is null is unsaid
    if missing := [n for n in ("model", "cluster", "sequence", "batch_sequences") if n not in case]:
        raise BadArgument("plan", "case", name, f"fields {', '.join(missing)}")
    sequence, sequences = (
        int(checked("plan", n, case[n], count(high=LONGEST)))
        for n in ("sequence", "batch_sequences")
    )
    model = _model(case["model"], assumed)
    cluster = cluster_from(case["cluster"], case.get("precision", "bf16"), f"case {name!r}")
    fields = _object("plan", case.get("plan", {}), PLAN, assumed)
    stack = case.get("stack", case.get("framework", key))
    if not isinstance(stack, str):
        raise BadArgument("plan", "stack", stack, "a framework, or a stack of the catalog")
    compiled, kernel = case.get("compiled"), str(case.get("attention", ""))
    framework = str(case.get("framework", ""))
    setting, machine = given_stack(stack, cluster, model, "", compiled, kernel)
    if setting.key == "pytorch_fsdp":
        fields.setdefault("zero", 3)
    alone = fields.get("zero") == 3 and fields.get("pipeline", 1) == 1
    if alone and setting.sharded:
        setting = setting.sharded
    job = Job(name, model, sequence, sequences, cluster, machine, setting)
    assumed += job.said
    assumed += ["precision bf16"] * ("precision" not in case and "precision" not in case["cluster"])
    assumed += [f"stack {setting.runs.title}"] * ("stack" not in case and "framework" not in case)
    plan = _plan(fields, job, assumed, framework)
    checked_for(model, plan)
    predicted, size = float(_seconds(job, plan)), _held(job, plan)
    measures = _object("measured", case.get("measured", {}), MEASURED, assumed)
    measured = _measured(measures, job, case.get("mfu_counts", ""), assumed)
    runs = setting.runs
    low, high = (predicted * end / runs.centre for end in (runs.low, runs.high))
    plans = job.found()
    best = plans.best()
    rank, of = ranked(plans, plan, predicted)
    fastest = float(plans.seconds[best]) if best is not None else None
    return {
        "name": name,
        "predicted_seconds": predicted,
        "measured_seconds": measured,
        "error": predicted / measured - 1 if measured else None,
        "runs": "a bound" if setting.bound else runs.title,
        "low_seconds": low,
        "high_seconds": high,
        "inside": low <= measured <= high if measured else None,
        "rank": rank,
        "of": of,
        "claimed_gain": max(0.0, predicted / fastest - 1) if fastest else 0.0,
        "memory": {"verdict": verdict(size, machine.capacity), "predicted": size},
        "assumed": assumed,
        "refused": "",
    }


def _object(what: str, table: Any, names: tuple[str, ...], notes: list[str]) -> dict[str, Any]:
    """The fields of an object that are not null, by our names. One that is nearly a field is
    refused as a slip of it; others are noted.
    """
    if not isinstance(table, dict):
        raise BadArgument("plan", what, table, f"an object with some of {', '.join(names)}")
    fields = {}
    for field, value in table.items():
        name = OTHERS.get(field, field)
        if name not in names and get_close_matches(field, names, 1, MEANT):
            one_of(
                "plan", f"field of a {what}" if what == "case" else f"{what} field", field, names
            )
        if name not in names:
            notes.append(f"{field} of the {what} is not read")
        elif value is not None:
            fields[name] = value
    return fields


def _seconds(job: Job, plan: Plan) -> Any:
    return seconds_of(job.model, job.sequence, plan, job.machine, job.setting)


def _held(job: Job, plan: Plan) -> float:
    return float(bytes_of(job.model, job.sequence, plan, job.machine, job.setting))


def ranked(plans: Found, plan: Plan, seconds: float) -> tuple[int, int]:
    """Return (rank of a plan taking `seconds`, number of plans) among the ways to split the work,
    each at its best, since published runs seldom state other choices.
    """
    names = ("data", "tensor", "pipeline", "context", "expert")
    if not len(plans):
        return 1, 0
    ways, way = np.unique(
        np.column_stack([plans.column(n) for n in names]), axis=0, return_inverse=True
    )
    best = np.full(len(ways), np.inf)
    np.minimum.at(best, way.ravel(), plans.seconds)
    other = (ways != [getattr(plan, n) for n in names]).any(axis=1)
    return 1 + int((other & (best < seconds * (1 - 1e-12))).sum()), len(ways)


def _model(value: Any, notes: list[str]) -> Decoder:
    """A key of the catalog, a config.json by its path or in place, or a shape."""
    if isinstance(value, str):
        return model_of(value)[1]
    if not isinstance(value, dict):
        raise BadArgument("plan", "model", value, "a key of the catalog, a config.json or a shape")
    if {"hidden_size", "n_embd", "d_model", "model_type"} & set(value):
        return read_config(value)
    names = tuple(inspect.signature(from_sizes).parameters)
    spelt = {"tied": "tied_embeddings"}
    value = {spelt.get(name, name): value for name, value in value.items()}
    value = _object("model", value, names, notes)
    value.setdefault("hidden", value.get("expert_hidden"))
    needed = ("layers", "width", "heads", "hidden", "vocabulary")
    if missing := [n for n in needed if value.get(n) is None]:
        raise BadArgument("plan", "model", list(value), f"also {', '.join(missing)}")
    for name in needed:
        checked("plan", f"{name} of the model", value[name], count())
    return from_sizes(**value)


def _plan(fields: dict[str, Any], job: Job, assumed: list[str], framework: str) -> Plan:
    """The plan of a case."""
    degrees = {n: v for n, v in fields.items() if n not in ("zero", "data", "recompute")}
    for name, value in degrees.items():
        degrees[name] = int(checked("plan", name, value, count()))
    if degrees.get("chunks", 1) > 1 and degrees.get("pipeline", 1) == 1:
        raise BadArgument("plan", "chunks", degrees["chunks"], "1 where there is no pipeline")
    usual = ("tensor", "pipeline", "context", *(["expert"] if job.model.experts else []))
    assumed += [f"{name} 1" for name in (*usual, "micro_size", "zero") if name not in fields]
    degrees["stage"] = fields.get("zero", 1)
    recompute = fields.get("recompute")
    again, part = part_again(recompute, framework)  # without scores is what every kernel does today
    plan = plan_of_batch(job.cluster.gpus, job.sequences, **degrees, recompute=again, part=part)
    if (data := fields.get("data", plan.data)) != plan.data:
        expected = (
            f"{plan.data}: {job.cluster.gpus} GPUs over {plan.gpus // plan.data} of a replica"
        )
        raise BadArgument("plan", "data", data, expected)
    if "chunks" not in fields and plan.pipeline > 1:
        # A tuned run interleaves if that helps.
        most = job.setting.able.get("chunks", job.model.depth)
        each = [plan] + [
            replace(plan, chunks=v)
            for v in cuts(job.model.depth, plan.pipeline)
            if v <= most and plan.micro_batches % plan.pipeline == 0
        ]
        fitting = [one for one in each if _held(job, one) <= UNSURE * job.machine.capacity] or each
        plan = min(
            fitting,
            key=lambda p: float(_seconds(job, p)),
        )
        assumed.append(f"chunks {plan.chunks}, the fastest that fits")
    if recompute is None:
        # What ran has fitted. Where the law is sure that it did not, as few layers as must were
        # done again.
        over = _held(job, plan) - job.machine.capacity
        saved = _held(job, plan) - _held(job, replace(plan, recompute="full"))
        if over > (UNSURE - 1) * job.machine.capacity:
            part = min(1.0, over / saved) if saved > 0 else 1.0
            plan = replace(plan, recompute="full", part=part)
            assumed.append(f"recompute full in {part:.0%} of the layers, as few as fit")
        else:
            assumed.append("recompute selective")
    return plan


def _measured(fields: dict[str, Any], job: Job, counts: str, assumed: list[str]) -> float | None:
    if checked("plan", "memory", fields.get("memory", GIB), positive("byte")) < GIB:
        raise BadArgument("plan", "memory", fields["memory"], "bytes of a GPU", "80 GB are 80e9.")
    if "step_seconds" in fields:
        return float(checked("plan", "step_seconds", fields["step_seconds"], positive("s")))
    if "tokens_per_second_per_gpu" in fields:
        rate = fields["tokens_per_second_per_gpu"]
        rate = checked("plan", "tokens_per_second_per_gpu", rate, positive("token/s"))
        return float(job.tokens / (rate * job.cluster.gpus))
    if "mfu" in fields:
        mfu = checked("plan", "mfu", fields["mfu"], fraction(hint="A share: 0.43, not 43."))
        mfu = checked("plan", "mfu", mfu, positive())
        if counts:
            one_of("plan", "mfu_counts", counts, ("causal", "whole", "6PD"))
        else:
            assumed.append(f"MFU of the {job.cluster.precision} peak, causal scores counted once")
        rate = mfu / utilizations(job, 1.0)[counts or "causal"]
        return float(job.tokens / (rate * job.cluster.gpus))
    return None
