"""What a measured step says: by how much plans of its kind take longer than the law says, and which
causes explain it, with their odds.

A cause moves one input of the law, by an amount that nobody knows: its likelihood is the mean over
a range of them. What runs of a class differ by in any case is the width of the normal error.

Sources: MacKay, "Information Theory, Inference and Learning Algorithms" (2003), chapter 28 for the
mean over what is not known; James and Stein (1961) for a factor that is shrunk.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from lightspeed.catalog import fitted
from lightspeed.errors import BadArgument
from lightspeed_models.plan import Machine, Plan
from lightspeed_models.stack import RunClass, Stack
from lightspeed_tools.plan.answer import Job, described, utilizations
from lightspeed_tools.plan.inputs import Setting
from lightspeed_tools.plan.phrases import Setup
from lightspeed_tools.plan.search import seconds_of

FOUR_OF_FIVE = 1.28  # widths of a normal error within which four of five lie
WITHIN = 0.07  # how far, in log time, runs of one framework, chip and way of splitting differ
SURE = 0.8  # odds from which a cause is named
SLOW = 1.3  # times the law, below which a step is as such stacks show
NOTHING = "nothing: runs of this class differ by as much"
# Cause -> (how likely it is before anything was measured, set by eye; the run that tells it apart).
CAUSES = {
    NOTHING: (0.30, ""),
    "the network between nodes is slow": (0.28, "the same plan on one node"),
    "nodes talk over sockets, not RDMA": (0.06, "nccl-tests over two nodes, and NCCL_DEBUG=INFO"),
    "the link in a node is slow: PCIe, or peer access is off": (
        0.06,
        "one node at twice the batch",
    ),
    "everything is recomputed": (0.05, "its memory: recomputed, it holds far less"),
    "nothing is compiled": (0.06, "a trace: many short kernels a layer"),
    "8 bits are not on": (0.05, "a trace: the names of the products"),
    "gathers don't overlap": (0.03, "the same plan on one node"),
    "the host launches late in each layer": (0.06, "twice the micro-batch"),
    "a pause each step: loader, log, checkpoint": (0.07, "twice the batch"),
    "a slow rank, or clocks down": (0.08, "a trace of all ranks, or a step of each node alone"),
}


@dataclass(frozen=True)
class Cause:
    """A possible cause `name`, its `odds`, the best-fitting amount and the seconds it implies."""

    name: str
    odds: float
    amount: float
    seconds: float
    tells: str


def measured_seconds(text: str, job: Job, counts: str = "causal") -> float:
    """Seconds of a step of "4550tok/s" (of a GPU), "1.2M tok/s total", "3.2s", "840ms" or "42%"."""
    line = text.strip().lower().replace(",", "")
    match = re.fullmatch(
        r"([\d.]+)\s*([km]?)\s*(tok(?:ens)?/s(?:ec)?|t/s|tps|ms|s|% ?(?:mfu)?)"
        r"\s*(?:/\s*gpu)?(\s*total)?",
        line,
    )
    if not match or not float(match[1]) > 0:
        hint = "Such as 4550tok/s (of a GPU), 1.2M tok/s total, 3.2s or 42%."
        raise BadArgument("plan", "--measured", text, "a rate, a time of a step or an MFU", hint)
    value = float(match[1]) * 1000 ** " km".index(match[2] or " ")
    if match[3] in ("s", "ms"):
        return value / (1000 if match[3] == "ms" else 1)
    if match[3].startswith("%"):
        value = value / 100 / utilizations(job, 1.0)[counts]
    elif match[4]:
        value /= job.cluster.gpus
    if utilizations(job, value)["6PD"] > 1:
        hint = "Tokens a second of one GPU are meant; of all: 1.2M tok/s total."
        raise BadArgument("plan", "--measured", text, "no more than the peak allows", hint)
    return float(job.tokens / (value * job.cluster.gpus))


def causes_of(job: Job, plan: Plan, setup: Setup) -> dict[str, list[tuple[float, float]]]:
    """Return cause -> (amount, seconds) for each possible amount."""
    setting, machine = job.setting.of(plan), job.machine
    stack, spans = setting.stack, plan.gpus > machine.per_node

    def seconds(machine: Machine = machine, stack: Stack = stack, plan: Plan = plan) -> float:
        one: Setting = replace(setting, stack=stack, sharded=None)
        return float(seconds_of(job.model, job.sequence, plan, machine, one))

    def slower(x: float) -> float:
        share, passes = stack.share / x, stack.passes * x
        return seconds(stack=replace(stack, share=share, passes=passes))

    def linked(x: float) -> float:
        network = machine.network if spans else machine.link * x
        return seconds(replace(machine, link=machine.link * x, network=network))

    def networked(x: float) -> float:
        return seconds(replace(machine, network=machine.network * x))

    eager = fitted("stacks")["pytorch_fsdp"]["variants"]["eager"]["value"]
    names = list(CAUSES)
    each: dict[str, tuple[Callable[[float], float], Any]] = {
        names[1]: (
            networked,
            np.geomspace(1 / 20, 0.7, 20) if spans else (),
        ),
        names[2]: (networked, np.geomspace(1 / 400, 1 / 20, 15) if spans else ()),
        names[3]: (linked, np.geomspace(1 / 150, 1 / 8, 15) if plan.gpus > 1 else ()),
        names[4]: (
            lambda x: seconds(plan=replace(plan, recompute="full", part=1.0)),
            (1.0,) if float(plan.again) < 0.9 else (),
        ),
        names[5]: (
            lambda x: seconds(stack=replace(stack, passes=stack.passes + eager)),
            (1.0,) if setup.compiled and job.model.mlp.matrices_each == 3 else (),
        ),
        names[6]: (
            lambda x: seconds(replace(machine, peak=machine.peak / 2)),
            (1.0,) if job.cluster.precision == "fp8" else (),
        ),
        names[7]: (
            lambda x: seconds(stack=replace(stack, contention=1.0, drag=0.0)),
            (1.0,) if plan.ranks > 1 else (),
        ),
        names[8]: (lambda x: seconds(stack=replace(stack, host=x)), np.geomspace(1e-3, 4e-2, 15)),
        names[9]: (
            lambda x: seconds(stack=replace(stack, fixed=stack.fixed + x)),
            np.geomspace(0.05, 5, 15),
        ),
        names[10]: (slower, np.linspace(1.08, 1.6, 12)),
    }
    causes = {NOTHING: [(1.0, seconds())]}
    for name, (time, amounts) in each.items():
        if len(amounts):
            causes[name] = [(float(x), time(float(x))) for x in amounts]
    return causes


def odds(each: dict[str, list[tuple[float, float]]], measured: float, width: float) -> list[Cause]:
    """Return the causes of a measured step, likeliest first. `width`: of the class's error, in the
    logarithm.
    """
    weights, best = {}, {}
    for name, points in each.items():
        off = np.log([seconds / measured for _, seconds in points]) / width
        likelihood = np.exp(-0.5 * off**2)
        weights[name] = CAUSES[name][0] * float(likelihood.mean())
        best[name] = points[int(np.argmax(likelihood))]
    total = sum(weights.values())
    if not total > 0:  # nothing comes near: nobody can tell
        return []
    return [
        Cause(name, weights[name] / total, *best[name], CAUSES[name][1])
        for name in sorted(weights, key=weights.__getitem__, reverse=True)
    ]


def width_of(runs: RunClass) -> float:
    """The width, in the logarithm, of a class of runs."""
    return float(np.log(runs.high / runs.low) / 2 / FOUR_OF_FIVE)


def factor(runs: RunClass, ratio: float) -> float:
    """Return by how much similar plans take longer, if one took `ratio` times the law: shrunk by
    how much such runs differ among themselves.
    """
    part = runs.between**2 / (runs.between**2 + WITHIN**2)
    return float(ratio**part)


def compared(job: Job, plan: Plan, measured: float, setup: Setup) -> dict[str, Any]:
    """Compare a measured step with the law: the ratio, whether it is within its class's range, the
    factor for similar plans with its range, and the causes.

    Raises BadArgument for a step below the bound.
    """
    setting = job.setting.of(plan)
    one = described(plan, job)
    ratio, runs, bound = measured / one["step_seconds"], setting.runs, one["bound_seconds"]
    if measured < bound:
        raise BadArgument(
            "plan", "--measured", f"{measured:.3g} s a step", "at least the bound",
            f"Faster than the bound of {bound:.3g} s: no run can be. Check tokens, GPUs and the"
            " plan that you named.",
        )  # fmt: skip
    low, high = one["range_seconds"]
    faster, inside = measured < low, low <= measured <= high
    causes = [] if faster else odds(causes_of(job, plan, setup), measured, width_of(runs))
    sure = [c for c in causes if c.odds >= SURE and c.name != NOTHING]
    # What is far outside has a cause, which is none of the other plans' until they share it.
    shrunk = factor(runs, ratio) if inside or 1 < ratio < SLOW else 1.0
    part = runs.between**2 / (runs.between**2 + WITHIN**2)
    spread = float(np.exp(FOUR_OF_FIVE * WITHIN * (1 + part) ** 0.5))
    kind = f"{runs.title}, {job.cluster.gpu}"
    kind += ", tensor ways" if plan.tensor > 1 else ", no tensor ways"
    return {
        "seconds": measured,
        "tokens_per_second_per_gpu": job.tokens / measured / job.cluster.gpus,
        "ratio": ratio,
        "inside": inside,
        "faster": faster,
        "factor": shrunk,
        "range": [shrunk / spread, shrunk * spread],
        "kind": kind,
        "causes": [vars(c) for c in causes],
        "named": sure[0].name if sure else "",
        "tells": [c.tells for c in causes[:3] if c.tells][:1],
    }
