"""What becomes of a plan that moves along one axis: half or twice as many ways, all else as well as
it can be. Where nothing near is better, that is why it was chosen.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from lightspeed.errors import BadArgument
from lightspeed_models.plan import Plan, checked_for, cuts
from lightspeed_models.stack_fit import Timed
from lightspeed_models.training_step import step
from lightspeed_tools.plan.answer import Job, verdict
from lightspeed_tools.plan.inputs import cluster_of, given_stack
from lightspeed_tools.plan.search import bytes_of
from lightspeed_tools.plan.space import RULES, rules_broken

AXES = ("tensor", "pipeline", "context", "expert", "micro_size")


def moves_of(run: Timed, gpu: str = "h100_sxm", key: str = "megatron_h100") -> list[dict[str, Any]]:
    """Run `one_away` on the plan of a measured step on these GPUs."""
    setting, machine = given_stack(key, cluster := cluster_of(f"{gpu}:{run.plan.gpus}"), run.model)
    sequences = run.plan.sequences
    job = Job(run.name, run.model, run.sequence, sequences, cluster, machine, setting)
    return one_away(job, run.plan)


def one_away(job: Job, plan: Plan) -> list[dict[str, Any]]:
    """Return a row per axis and direction: the new value and its cost, as a share of the plan's
    time with the term that grows most, or why it is impossible.
    """
    here = step(job.model, job.sequence, plan, job.machine, job.setting.stack)
    rows = []
    for axis in AXES:
        if axis == "expert" and not job.model.experts:
            continue
        for value in (getattr(plan, axis) / 2, getattr(plan, axis) * 2):
            if value == int(value):
                row = {"axis": axis, "value": int(value)}
                rows.append(row | _there(job, plan, axis, int(value), here))
    return rows


def _there(job: Job, plan: Plan, axis: str, value: int, here: Any) -> dict[str, Any]:
    degrees = {n: getattr(plan, n) for n in (*AXES, "chunks")} | {axis: value}
    replica = degrees["tensor"] * degrees["pipeline"] * degrees["context"]
    data, lone = divmod(job.cluster.gpus, replica)
    if lone or not data:
        return {"why": "does not divide the GPUs"}
    micro_batches, odd = divmod(job.sequences, data * degrees["micro_size"])
    if odd or not micro_batches:
        return {"why": "does not divide the batch"}
    options, why = [], ""
    for chunks in (1, *cuts(job.model.depth, degrees["pipeline"])):
        for recompute in dict.fromkeys((plan.recompute, "full")):
            try:
                one = replace(
                    plan, **degrees | {"chunks": chunks}, data=data, micro_batches=micro_batches,
                    recompute=recompute,
                )  # fmt: skip
                checked_for(job.model, one)
            except BadArgument as error:
                why = why or str(error)
                continue
            if broken := rules_broken(job.model, one, job.sequence, job.setting.able):
                why = why or RULES[broken[0]]
                continue
            size = float(bytes_of(job.model, job.sequence, one, job.machine, job.setting))
            options.append((size, one))
    verdicts = [(verdict(size, job.machine.capacity), one) for size, one in options]
    fit = [one for word, one in verdicts if word == "fits"]
    tight = [one for word, one in verdicts if word in ("tight", "unsure")]
    if not fit and not tight:
        least = min((size for size, _ in options), default=0.0)
        over = f"does not fit: {least / 1e9:.0f} of {job.machine.capacity / 1e9:.0f} GB"
        return {"why": over if options else why}
    steps = [
        (step(job.model, job.sequence, p, job.machine, job.setting.stack), p) for p in fit or tight
    ]
    there, one = min(steps, key=lambda pair: pair[0].time)
    names = here.terms.keys() | there.terms.keys()
    more = {n: there.terms.get(n, 0.0) - here.terms.get(n, 0.0) for n in names}
    slower = there.time >= here.time
    why = (max if slower else min)(sorted(more), key=more.__getitem__)
    if one.recompute != plan.recompute:
        why = "activations computed again, for want of memory"
    change = float(there.time / here.time - 1)
    return {"change": change, "why": why if fit else f"{why}; memory is tight", "tight": not fit}
