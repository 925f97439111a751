"""What the planner answers, as plain data: the best plan and those as good, what to measure, what
was refused and why, what would change it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from lightspeed.catalog import find
from lightspeed.energy import energy_of
from lightspeed.reliability import cluster_mtbf, stretch, young_interval
from lightspeed_models.llm.decoder import Decoder
from lightspeed_models.plan import Machine, Plan
from lightspeed_models.stack import BOUND
from lightspeed_models.step_memory import expected_memory
from lightspeed_models.training_step import step
from lightspeed_tools.plan.inputs import Cluster, Setting
from lightspeed_tools.plan.phrases import DEGREES, short
from lightspeed_tools.plan.search import ROOM, Found, bytes_of, search
from lightspeed_tools.plan.space import RULES, rules_broken, space

SPOKEN = {"stage": "zero", "micro_size": "micro_batch"}  # fields as all tools call them
MORE = ("micro_batches", "recompute", "part", "shard")
MORE_MEMORY = 10e9  # bytes: what would a GPU with so much more change?
# Chips that the rows of a stack are of, where that is more than its own.
MEASURED_ON = {
    "pytorch_fsdp": ("a100_40gb", "a100_80gb", "h100_sxm", "h200_sxm"),
    "megatron_h100": ("h100_sxm", "gb200", "gb300"),
}
UNSURE = 1.1  # of the capacity: the law of memory is off by a tenth on plans that it did not see
# Llama 3 405B: 419 unplanned interruptions in 54 days on 16,384 H100 (Llama 3 report, section 3.3).
GPU_MTBF = 54 * 86400 / 419 * 16384
SAVE, RESTART, REPAIR = 60.0, 600.0, 86400.0  # s: assumed, and said
FRONT = 6  # points of a front that are shown


@dataclass(frozen=True)
class Job:
    """A planning task: a model on a cluster, its batch and sequence length, and a stack."""

    name: str
    model: Decoder
    sequence: int
    sequences: int
    cluster: Cluster
    machine: Machine
    setting: Setting
    assumed: tuple[str, ...] = ()
    fixed: tuple[tuple[str, Any], ...] = ()
    limits: tuple[tuple[str, int], ...] = ()

    def found(self) -> Found:
        """The result of searching all plans of the job."""
        plans = space(
            self.model, self.cluster.gpus, self.machine.per_node, self.sequences, self.sequence,
            self.setting.able, dict(self.fixed), dict(self.limits),
        )  # fmt: skip
        return search(self.model, self.sequence, plans, self.machine, self.setting)

    @property
    def said(self) -> tuple[str, ...]:
        """All assumptions made."""
        return (*self.cluster.assumed, *self.setting.assumed, *self.assumed)

    @property
    def tokens(self) -> int:
        return self.sequences * self.sequence


def verdict(size: float, capacity: float) -> str:
    """Return whether `size` bytes are worth trying: it "fits"; it is "tight", as a nearly full card
    stalls or fails; "unsure", over by less than the law's error; or "refused".
    """
    if size <= ROOM * capacity:
        return "fits"
    return "tight" if size <= capacity else "unsure" if size <= UNSURE * capacity else "refused"


def extrapolated(plan: Plan, job: Job) -> list[str]:
    """Return where a plan lies outside the range that the stack was fitted on."""
    setting = job.setting.of(plan)
    beyond = [
        f"{name} {getattr(plan, name)}, {most} measured"
        for name, most in setting.measured.items()
        if getattr(plan, name) > most
    ]
    cards = MEASURED_ON.get(setting.key, (setting.gpu,))
    if job.cluster.gpu not in cards:
        beyond.append(f"{job.cluster.gpu}, {', '.join(cards)} measured")
    return beyond


def described(plan: Plan, job: Job) -> dict[str, Any]:
    """Describe one plan: degrees, seconds with their terms and range, memory with its parts."""
    setting = job.setting.of(plan)
    stack, runs = setting.stack, setting.runs
    expected = step(job.model, job.sequence, plan, job.machine, stack)
    law = float(expected.time)
    terms = {n: float(t) for n, t in expected.terms.items() if t > 0}
    if runs.centre > 1:
        terms["others"] = (runs.centre - 1) * law
    seconds = runs.centre * law
    bound = replace(BOUND, split=stack.split, overlap=stack.overlap)
    least = step(job.model, job.sequence, plan, replace(job.machine, products=None), bound).time
    use = expected_memory(job.model, job.sequence, plan, job.machine, setting.holds)
    parts = ("weights", "gradients", "optimizer", "activations", "logits", "buffers")
    shares = utilizations(job, plan.sequences / plan.gpus * job.sequence / seconds)
    return {
        "plan": short(plan),
        "degrees": {SPOKEN.get(n, n): getattr(plan, n) for n in (*DEGREES, *MORE)},
        "step_seconds": seconds,
        "range_seconds": [runs.low * law, runs.high * law],
        "runs": runs.title,
        "bound_seconds": float(least),
        "mfu": shares["causal"],
        "mfu_counts": shares,
        "terms": terms,
        "memory_bytes": float(use.total),
        "memory": {n: float(getattr(use, n)) for n in parts if getattr(use, n)},
        "verdict": verdict(use.total, job.machine.capacity),
        "extrapolated": extrapolated(plan, job),
    }


def utilizations(job: Job, rate: float) -> dict[str, float]:
    """Model FLOPs over those of the peak at so many tokens/s of a GPU, by each count in use:
    "causal" scores once (ours, Megatron-Bridge, Lingua), the "whole" square (torchtitan, PaLM, LLM
    Foundry), and "6PD" without any.
    """
    counts = {
        "causal": job.model.training_flops(1, job.sequence / 2),
        "whole": job.model.training_flops(1, job.sequence),
        "6PD": 6 * job.model.active_parameters,
    }
    return {name: float(each * rate / job.machine.peak) for name, each in counts.items()}


def cost(job: Job, seconds: float, tokens: float, ends: tuple[float, float]) -> dict[str, Any]:
    """Return days, GPU-hours and energy to train on `tokens` at this pace without failures; and
    with failures: days, seconds between failures, and spare nodes. `ends`: the range of the
    seconds.
    """
    time = tokens / job.tokens * seconds
    between = float(cluster_mtbf(GPU_MTBF, job.cluster.gpus))
    longer = stretch(young_interval(SAVE, between), SAVE, between, RESTART)
    spent = {"tokens": tokens, "days": time / 86400, "gpu_hours": time / 3600 * job.cluster.gpus}
    if job.cluster.power:
        pue = float(find("data_centre").numbers["pue"])
        joules = energy_of(job.cluster.power, time, job.cluster.gpus, pue)
        spent |= {"energy_joules": float(joules), "pue": pue, "watts": job.cluster.power}
    ranged = {
        f"{n}_range": [spent[n] * end / seconds for end in ends] for n in ("days", "gpu_hours")
    }
    return spent | ranged | {
        "mtbf_seconds": between, "days_with_failures": float(longer) * time / 86400,
        "spare_nodes": spares(REPAIR / between), "save_seconds": SAVE, "restart_seconds": RESTART,
        "repair_seconds": REPAIR,
    }  # fmt: skip


def spares(down: float) -> int:
    """Return the spare nodes needed if `down` are down on average: more are down only 1% of the
    time.

    >>> spares(0.1), spares(5.0)
    (1, 11)
    """
    most, chance = 0, math.exp(-down)
    within = chance
    while within < 0.99 and most < 10 * down + 10:
        most += 1
        chance *= down / most
        within += chance
    return most


def three_that_differ(
    seconds: np.ndarray, memory: np.ndarray, tensor: np.ndarray, pipeline: np.ndarray, per_node: int
) -> list[int]:
    """Which plans to measure: the fastest; the fastest without a pipeline if that has one, with one
    if it has none; and the fastest with tensor ranks in one node, of another number. What ails a
    cluster seldom ails all of them. Plans of infinite time are none.
    """
    order = np.lexsort((memory, seconds))
    order = order[np.isfinite(seconds[order])]
    picks = [int(k) for k in order[:1]]

    def add(mask: np.ndarray) -> None:
        picks.extend(int(k) for k in order[mask[order]][:1])

    if picks:
        alone = pipeline == 1
        add(alone if pipeline[picks[0]] > 1 else ~alone)
        if len(picks) == 1:
            add(pipeline != pipeline[picks[0]])
        add((tensor <= per_node) & ~np.isin(tensor, tensor[picks]))
    return picks


def front(plans: Found) -> list[int]:
    """Return the plans for which no other is both faster and leaner, fastest first."""
    order = np.lexsort((plans.memory, plans.seconds))
    least = np.minimum.accumulate(plans.memory[order])
    edge = order[np.concatenate([[True], plans.memory[order][1:] < least[:-1]])]
    thin = np.unique(np.linspace(0, len(edge) - 1, min(FRONT, len(edge))).round().astype(np.intp))
    return [int(i) for i in edge[thin]]


def inside_measured(plans: Found, job: Job) -> int | None:
    """Return the best plan inside the range that the stack was fitted on."""
    inside = np.ones(len(plans), bool)
    for name, most in job.setting.measured.items():
        if name != "gpus":
            inside &= plans.column(name) <= most
    return plans.best(inside)


def changes(job: Job) -> list[dict[str, Any]]:
    """Return the best plan with more memory, a faster network, or a larger batch."""
    more = replace(job.machine, capacity=job.machine.capacity + MORE_MEMORY)
    faster = replace(job.machine, network=2 * job.machine.network)
    others = {
        "10 GB more memory": replace(job, machine=more),
        "twice the network": replace(job, machine=faster),
        "twice the batch": replace(job, sequences=2 * job.sequences),
    }
    rows = []
    for what, other in others.items():
        plans = other.found()
        best = plans.best()
        if best is not None:
            seconds = float(plans.seconds[best])
            plan = short(plans.space.plan(int(plans.place[best])))
            rows.append({"what": what, "plan": plan, "tokens_per_second": other.tokens / seconds})
    return rows


def answer(job: Job, top: int = 5, tokens: float = 1e12) -> dict[str, Any]:
    """Return the full answer. If nothing fits, `best` is absent and `nearest` says by how much."""
    plans = job.found()
    data: dict[str, Any] = {
        "model": job.name,
        "parameters": job.model.parameters,
        "cluster": f"{job.cluster.gpus:,} x {job.cluster.gpu}",
        "precision": job.cluster.precision,
        "batch_sequences": job.sequences,
        "sequence": job.sequence,
        "stack": job.setting.key,
        "stack_error": job.setting.error,
        "runs": {n: getattr(job.setting.runs, n) for n in ("key", "title", "low", "high")},
        "bound": job.setting.bound,
        "peak": job.machine.peak,
        "assumed": list(job.said),
        "plans": plans.total,
        "passing": len(plans),
        "refused": {rule: n for rule, n in plans.refused.items() if n},
        "rules": RULES,
        "room": ROOM,
        "capacity": job.machine.capacity,
        "best": None,
    }
    if plans.nearest:
        data["nearest"] = described(plans.space.plan(plans.nearest[0]), job)
    first = plans.best()
    if first is None:
        return data

    def one(k: int) -> dict[str, Any]:
        return described(plans.space.plan(int(plans.place[k])), job)

    best, near = one(first), []
    speaks = job.setting.of(plans.space.plan(int(plans.place[first])))
    if speaks.key.startswith(("megatron_h100", "pytorch_fsdp")):
        from lightspeed_tools.plan.measured import nearest  # its sets are read for an answer only

        gpus, kind = job.cluster.gpus, job.cluster.precision
        near = nearest(job.model, gpus, kind, job.sequence, speaks)
    runs = speaks.runs
    within = plans.seconds <= plans.seconds[first] * runs.high / runs.centre
    order = np.lexsort((plans.memory, plans.seconds))[:top]
    inner = inside_measured(plans, job)
    return data | {
        "best": best,
        "tokens_per_second": job.tokens / best["step_seconds"],
        "group": int(within.sum()),
        "top": [one(int(k)) for k in order],
        "inside_measured": None if inner is None else one(inner),
        "to_measure": [
            one(k)
            for k in three_that_differ(
                plans.seconds,
                plans.memory,
                plans.column("tensor"),
                plans.column("pipeline"),
                job.machine.per_node,
            )
        ],
        "front": [one(k) for k in front(plans)],
        "nearest_measured": near,
        "changes": changes(job),
        "cost": cost(job, best["step_seconds"], tokens, best["range_seconds"]),
    }


def explained(job: Job, plan: Plan) -> dict[str, Any]:
    """Compare the user's plan with the best: its cost, its rank, and what forbids it."""
    mine = described(plan, job)
    broken = rules_broken(job.model, plan, job.sequence, job.setting.able)
    size = float(bytes_of(job.model, job.sequence, plan, job.machine, job.setting))
    plans = job.found()
    first = plans.best()
    data = {
        "model": job.name, "cluster": f"{job.cluster.gpus:,} x {job.cluster.gpu}",
        "stack": job.setting.of(plan).key, "assumed": list(job.said),
        "precision": job.cluster.precision, "peak": job.machine.peak, "bound": job.setting.bound,
        "yours": mine, "broken": [RULES[rule] for rule in broken], "capacity": job.machine.capacity,
        "verdict": verdict(size, job.machine.capacity), "of": len(plans), "best": None,
    }  # fmt: skip
    if first is not None:
        data["rank"] = 1 + int((plans.seconds < mine["step_seconds"] * (1 - 1e-12)).sum())
        data["best"] = described(plans.space.plan(int(plans.place[first])), job)
    return data
