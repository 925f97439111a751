"""PyTorch FSDP as four frameworks run it, each from constants that the others set; and the fit of
the planner's stack.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from lightspeed.catalog import find
from lightspeed_models.evidence.pairing import Judged, Pairing
from lightspeed_models.evidence.pairings.training import fsdp_runs
from lightspeed_models.evidence.sets import dataset
from lightspeed_models.evidence.word_column import Words
from lightspeed_models.llm.shipped import decoder, from_sizes
from lightspeed_models.plan import Plan, machine
from lightspeed_models.products import rates
from lightspeed_models.stack import Stack, fsdp_stack
from lightspeed_models.stack_fit import Timed, expected_times, rows_of
from lightspeed_models.training_step import Work, work

FOUNDRY = "LLM Foundry"
LLAMA_34B = from_sizes(48, 8192, 64, 22016, 32000, kv_heads=8)
KEMPNER_13B = from_sizes(40, 5120, 40, 17920, 128256, kv_heads=8)
SHAPES = {
    "Llama 2 7B": decoder("llama2_7b"), "Llama 2 13B": decoder("llama2_13b"),
    "Llama 2 70B": decoder("llama2_70b"), "Llama 34B": LLAMA_34B,
    "Llama 3 8B": decoder("llama3_8b"), "Llama 3 70B": decoder("llama3_70b"),
    "Llama 3 405B": decoder("llama3_405b"), "Kempner 13B": KEMPNER_13B,
}  # fmt: skip
PORTS = {"a100_40gb": "infiniband_hdr", "a100_80gb": "infiniband_hdr"}
# What is counted, measured elsewhere or set by eye: catalog/fitted_stacks.toml says which.
COUNTED = Stack(
    inside=0.75, between=0.75, launch=1.04e-5, passes=8, logits_passes=8, optimizer_bytes=28,
    bare=1, drops_weights=True, split="tensor+sequence", context="pytorch",
)  # fmt: skip
# Constant -> (where a fit starts, which is also what rows that don't tell are left with; and how
# far, in the logarithm, it may be from there).
START = {
    "ampere": (0.95, 0.3), "share": (0.85, 0.3), "flash2": (0.7, 0.4), "drag": (1.2, 0.7),
    "eager": (12.0, 0.7), "fixed": (0.02, 1.0), "split_products": (1.2, 0.2),
}  # fmt: skip
WIDTH = 0.1  # of Cauchy's loss, in log time
CAP = 20  # rows of one group that count: weak scaling of one family is not so many cases
HALF = 0.5  # of tensor exchanges hide where asynchronous tensor parallelism is on


@dataclass(frozen=True)
class Run:
    """A `Timed` step of a `framework`, and how it was run: `eager` (unfused passes of a gated MLP),
    `flash2` (attention's kernel) on Hopper, `group` of rows that are alike.
    """

    framework: str
    group: str
    timed: Timed
    counted: Stack
    eager: bool
    flash2: bool
    hopper: bool


@functools.cache
def runs():
    """Every `Run` of both sets."""
    rows, result = dataset("torch_training"), []
    for i in range(len(rows)):
        result.append(_run(i, rows))
    foundry = dataset("fsdp")
    for i, run in enumerate(fsdp_runs(foundry)):
        chip = {"h100_80gb": "h100_sxm"}.get(foundry["chip"][i], foundry["chip"][i])
        kind = "fp8" if "fp8" in foundry["precision"][i] else "bf16"
        cluster = replace(run.machine, products=rates(chip, kind))
        base = replace(COUNTED, gradient_bytes=4 if "amp" in foundry["precision"][i] else 2)
        hopper, group = chip == "h100_sxm", f"LLM Foundry {chip} {kind}"
        label = f"{FOUNDRY}, MPT {foundry['model'][i]}, {chip}"
        case = replace(run, name=label, machine=cluster)
        result.append(Run(FOUNDRY, group, case, base, False, hopper, hopper))
    return tuple(result)


def _run(i, rows):
    def cell(name):
        value = rows[name][i]
        return 0 if np.isnan(value) else int(value)

    name, chip, kind = rows["framework"][i], rows["chip"][i], rows["precision"][i]
    model = SHAPES[rows["model"][i]]
    cluster = machine(chip, PORTS.get(chip, "infiniband_ndr"), cell("per_node"))
    peak = float(find(chip).numbers[kind])
    cluster = replace(cluster, peak=peak, products=rates(chip, kind))
    if not np.isnan(rows["nic"][i]):
        cluster = replace(cluster, network=float(rows["nic"][i]) * 1e9 / 8 / cell("per_node"))
    if not np.isnan(rows["bandwidth"][i]):
        cluster = replace(cluster, memory=float(rows["bandwidth"][i]) * 1e12)
    tensor, context = cell("tensor"), cell("context")
    plan = Plan(
        cell("devices") // tensor // context, tensor, context=context, stage=3,
        micro_batches=cell("accumulation"), micro_size=cell("micro_batch"), recompute="full",
        part=float(rows["again"][i]), shard=cell("shard"),
    )  # fmt: skip
    sequence, compiled = cell("sequence"), rows["compiled"][i] == "yes"
    time = plan.sequences * sequence / (float(rows["rate"][i]) * plan.gpus)
    base = replace(
        COUNTED, gradient_bytes=cell("gradient_bytes"),
        weight_bytes=1 if kind == "fp8" else 2, overlap=HALF * (rows["async_tensor"][i] == "yes"),
    )  # fmt: skip
    hopper = chip.startswith("h")
    group = f"{name} {chip[0]} {'compiled' if compiled else 'eager'}"
    label = f"{name}, {rows['model'][i]}, {chip}, {'compiled' if compiled else 'eager'}"
    case = Timed(label, model, sequence, plan, cluster, time)
    eager = not compiled and model.mlp.matrices_each == 3
    flash2 = hopper and rows["kernel"][i] == "flash2"
    return Run(name, group, case, base, eager, flash2, hopper)


def works_of(runs):
    """One `Work` of arrays, an element a run, each by what was counted of it."""
    works = [
        work(r.timed.model, r.timed.sequence, r.timed.plan, r.timed.machine, r.counted)
        for r in runs
    ]
    names = [f.name for f in fields(Work)]
    return Work(**{n: np.array([getattr(one, n) for one in works], float) for n in names})


def stack_of(runs, constants):
    """One `Stack` of arrays: these constants as each run had them."""
    eager, flash2, hopper = (
        np.array([getattr(r, n) for r in runs]) for n in ("eager", "flash2", "hopper")
    )
    share = np.where(hopper, constants["share"], constants["ampere"])
    own: dict[str, Any] = {n: constants[n] for n in ("drag", "fixed", "split_products")}
    own |= {
        "share": np.minimum(share, 1.0), "passes": COUNTED.passes + constants["eager"] * eager,
        "attention": np.where(flash2, constants["flash2"], 1.0),
        "overlap": np.array([r.counted.overlap for r in runs]),
    }  # fmt: skip
    return replace(COUNTED, **own)


def stack_as_shipped(run):
    """Return the catalog's `Stack` with the attention kernel and products of a run."""
    kernel = "flash2" if run.flash2 else "cudnn"
    shipped = fsdp_stack("h100_sxm" if run.hopper else "a100_80gb", True, not run.eager, kernel)
    own = ("gradient_bytes", "weight_bytes", "overlap")
    return replace(shipped, **{name: getattr(run.counted, name) for name in own})


def weights(runs):
    """How much each run counts: no group more than `CAP` of them."""
    groups = [r.group for r in runs]
    return np.array([min(1.0, CAP / groups.count(g)) for g in groups])


def fitted(runs, works=None):
    """The constants that fit these runs best."""
    from scipy.optimize import least_squares

    works, weigh = works or works_of(runs), np.sqrt(weights(runs))
    times = np.log([r.timed.time for r in runs])
    usual, loose = np.array(list(START.values())).T

    def residuals(logs):
        constants = dict(zip(START, np.exp(logs), strict=True))
        off = (np.log(expected_times(works, stack_of(runs, constants))) - times) / WIDTH
        loss = np.sign(off) * np.sqrt(np.log1p(off**2)) * weigh
        return np.concatenate([loss, (logs - np.log(usual)) / loose])

    best = least_squares(residuals, np.log(usual), max_nfev=100).x
    return dict(zip(START, map(float, np.exp(best)), strict=True))


@functools.cache
def left_out(by="framework"):
    """Seconds of every run from constants in which its framework (or group) had no part."""
    every = runs()
    works, expected = works_of(every), np.empty(len(every))
    names = np.array([getattr(r, by) for r in every])
    for name in dict.fromkeys(names):
        own = names == name
        others, mine = (
            [r for r, o in zip(every, own == s, strict=True) if o] for s in (False, True)
        )
        constants = fitted(others, rows_of(works, ~own))
        expected[own] = expected_times(rows_of(works, own), stack_of(mine, constants))
    return expected


def intervals(resamples=40, seed=0):
    """Constant -> 5 to 95 % of it, with groups of rows drawn again."""
    every = runs()
    works, names = works_of(every), np.array([r.group for r in every])
    groups, again = np.array(list(dict.fromkeys(names))), []
    for sample in np.random.default_rng(seed).choice(groups, (resamples, len(groups))):
        own = np.concatenate([np.flatnonzero(names == name) for name in sample])
        again.append(list(fitted([every[i] for i in own], rows_of(works, own)).values()))
    return dict(zip(START, np.quantile(again, (0.05, 0.95), axis=0).T.tolist(), strict=True))


def judge(rows, foundry):
    """LLM Foundry's runs, or those of the others, from constants of the other frameworks."""
    every = runs()
    own = [i for i, r in enumerate(every) if (r.framework == FOUNDRY) == foundry]
    names = [every[i].timed.name for i in own]
    times = np.array([every[i].timed.time for i in own])
    kinds = Words.of([every[i].group if foundry else every[i].framework for i in own])
    return Judged(left_out()[own], times, kinds, lambda i: names[i])


PAIRINGS = tuple(
    Pairing(
        key=key,
        title=f"The expected time of a training step of {whose}, the framework left out",
        law="lightspeed_models.training_step.step",
        set=name,
        chapter="10",
        judge=functools.partial(judge, foundry=name == "fsdp"),
        fitted="shares of products on two classes of chips and under tensor parallelism, the rate "
        "of FlashAttention-2 on Hopper, passes of eager mode, what gathers cost by their bytes and "
        "a time a step, on the runs of the other frameworks",
        left_out="framework",
        lesson="Four frameworks of one library differ by less than a tenth once their words are "
        "told apart: what selective recomputation does again, the kernel of attention, and whether "
        "the parts of a layer are compiled into one.",
    )
    for key, name, whose in (
        ("step-frameworks", "torch_training", "fms-fsdp, torchtitan and KempnerForge"),
        ("step-fsdp", "fsdp", "LLM Foundry"),
    )
)
