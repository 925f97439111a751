"""DGX Cloud's recipes for dense models and Grok-1 on H100, from constants that other models set;
and the fit of the planner's stack.
"""

from __future__ import annotations

import functools
from dataclasses import replace

import numpy as np

from lightspeed.catalog import find
from lightspeed_models.evidence.pairing import Judged, Pairing
from lightspeed_models.evidence.pairings.megatron import MEGATRON, PEAKS, split, timed
from lightspeed_models.evidence.pairings.training import CHIPS, fsdp_runs
from lightspeed_models.evidence.sets import dataset
from lightspeed_models.evidence.word_column import Words
from lightspeed_models.llm.shipped import decoder, from_sizes
from lightspeed_models.plan import machine, plan_of_batch
from lightspeed_models.products import rates
from lightspeed_models.stack_fit import Timed, expected_times, fit_constants, stacked

# The catalog's, and by NVIDIA's reports on Nemotron-4 and xAI's release of Grok-1.
SHAPES = {
    "Llama 3.1 8b": decoder("llama3_8b"),
    "Llama 3.1 70b": decoder("llama3_70b"),
    "Llama 3.1 405b": decoder("llama3_405b"),
    "NeMo Megatron": decoder("gpt3_175b"),
    "Nemotron4 15b": from_sizes(32, 6144, 48, 24576, 256000, kv_heads=8, mlp_matrices=2),
    "Nemotron4 340b": from_sizes(96, 18432, 96, 73728, 256000, kv_heads=8, mlp_matrices=2),
    "Grok 1 314b": from_sizes(
        64, 6144, 48, 32768, 131072, kv_heads=8, experts=8, active_experts=2,
    ),
}  # fmt: skip
UNSAID = "what it does again backward is not said, and not all of it fits"
DENSE, SPARSE = ("share", "fixed", "overlap"), ("sync",)
# What is counted, measured elsewhere or set by eye: catalog/fitted_stacks.toml says which.
COUNTED = replace(
    MEGATRON, gradient_bytes=2, optimizer_bytes=28, launch=1.04e-5, between=0.75, exposed=1.0,
    contention=0.41, permutes=8, whole_layers=True, cut="even",
)  # fmt: skip
# GPT OSS is left out of the fit: of its model alone half of the layers see a short window.
UNLIKE = "GPT OSS"


def runs_of(rows):
    """(row numbers, `Timed` steps, rows left out and why) of the recipes."""
    numbers, runs, silent = [], [], []
    for row, name in enumerate(rows["model"]):
        if name not in SHAPES:
            silent.append((rows.name(row), UNSAID))
            continue

        def cell(column, row=row):
            value = rows[column][row]
            return 1 if np.isnan(value) else int(value)

        kind = PEAKS[rows["precision"][row]]
        cluster = machine("h100_sxm", "infiniband_ndr")
        cluster = replace(
            cluster, peak=float(find("h100_sxm").numbers[kind]), products=rates("h100_sxm", kind)
        )
        plan = plan_of_batch(
            cell("devices"), cell("batch"), cell("tensor"), cell("pipeline"), cell("context"),
            cell("micro_batch"), chunks=cell("interleave"), expert=cell("expert"), stage=1,
        )  # fmt: skip
        time = float(rows["time"][row])
        runs.append(Timed(name, SHAPES[name], cell("sequence"), plan, cluster, time))
        numbers.append(row)
    return numbers, runs, tuple(silent)


@functools.cache
def bridge_runs():
    """`Timed` steps of Megatron-Bridge on DGX-H100 in fp8, products at the shapes of a rank."""
    rows, runs = dataset("megatron_bridge"), []
    for row in split(rows, steps=True)[0]:
        name, system = rows["model"][row], rows["system"][row]
        kind = PEAKS[rows["precision"][row]]
        if system == "DGX-H100" and kind == "fp8" and not name.startswith(UNLIKE):
            run = timed(row, rows)
            cluster = replace(run.machine, products=rates("h100_sxm", kind))
            runs.append(replace(run, name=name.split(" ")[0], machine=cluster))
    return tuple(runs)


def rows_that_fit(rows, experts):
    """The steps that set the constants: Megatron-Bridge's, and of models without experts the
    recipes for Llama.
    """
    runs = [run for run in bridge_runs() if bool(run.model.experts) == experts]
    return runs if experts else runs + [r for r in runs_of(rows)[1] if r.name.startswith("Llama")]


def fitted(runs, experts, dense=None):
    """The `Stack` of these steps. Models with experts tell one constant, and have the others from
    those without; they are cut by hand, stage by stage, so equal shares are nearer.
    """
    names = SPARSE if experts else DENSE
    base = replace(dense, whole_layers=False) if experts else COUNTED
    times = np.array([run.time for run in runs])
    return fit_constants(stacked(runs, base), times, base, names)


def left_out(rows, runs):
    """Seconds of each of these steps, from constants that its model had no part in."""
    dense, sparse = rows_that_fit(rows, False), rows_that_fit(rows, True)
    expected = np.empty(len(runs))
    for model in {run.model for run in runs}:
        own = [i for i, run in enumerate(runs) if run.model == model]
        stack = fitted([run for run in dense if run.model != model], False)
        if model.experts:
            stack = fitted([run for run in sparse if run.model != model], True, stack)
        expected[own] = expected_times(stacked([runs[i] for i in own], stack), stack)
    return expected


def fit_contention():
    """What arithmetic loses to what travels behind it, with a share of their own, of LLM Foundry's
    runs in bf16 on H100, all of which gather their weights.
    """
    rows = dataset("fsdp")
    h100 = replace(machine("h100_sxm", "infiniband_ndr"), products=rates("h100_sxm"))
    runs = [
        replace(run, machine=h100)
        for i, run in enumerate(fsdp_runs(rows))
        if CHIPS[rows["chip"][i]][0] == "h100_sxm" and "fp8" not in rows["precision"][i]
    ]
    base = replace(COUNTED, gradient_bytes=4, whole_layers=False)
    times = np.array([run.time for run in runs])
    names = ("share", "fixed", "contention")
    return len(runs), fit_constants(stacked(runs, base), times, base, names).contention


def judge(rows):
    """Every recipe's step, its own model left out."""
    numbers, runs, silent = runs_of(rows)
    experts = ["experts" if run.model.experts else "no experts" for run in runs]
    pairs = zip(experts, rows["precision"][np.array(numbers)], strict=True)
    kinds = Words.of([f"{which}, {PEAKS[kind]}" for which, kind in pairs])
    times = np.array([run.time for run in runs])
    return Judged(left_out(rows, runs), times, kinds, lambda i: rows.name(numbers[i]), left=silent)


PAIRINGS = (
    Pairing(
        key="step-recipes",
        title="The expected time of a training step of DGX Cloud's recipes, the model left out",
        law="lightspeed_models.training_step.step",
        set="dgx_cloud",
        chapter="06",
        judge=judge,
        fitted="a share of what products take, seconds a step and the hidden part of tensor "
        "exchanges, on Llama 3 of these rows and of Megatron-Bridge's; seconds that a layer of "
        "experts waits for the host, on Qwen3 of Megatron-Bridge's",
        left_out="model",
        lesson="Seconds that a layer of small experts waits for its host are none beside the large "
        "experts of Grok-1: a share of the peak is not passed from one to the other.",
    ),
)
