"""Training steps: the bound, what to expect, and the memory, against public sweeps."""

from __future__ import annotations

import functools
import itertools
from dataclasses import dataclass, fields, replace

import numpy as np

from lightspeed.catalog import accelerator
from lightspeed_models.evidence.pairing import Judged, Pairing, each_left_out
from lightspeed_models.evidence.sets import Dataset
from lightspeed_models.evidence.word_column import Words
from lightspeed_models.llm.shipped import from_sizes
from lightspeed_models.plan import Plan, machine
from lightspeed_models.stack import BOUND, Stack
from lightspeed_models.stack_fit import Timed, expected_times, fit_constants, rows_of
from lightspeed_models.step_memory import Footprint, expected_memory
from lightspeed_models.training_runs import gpt
from lightspeed_models.training_step import Work, work

# Shapes: huggingface/nanotron 0e0a27e, scripts/scaling_benchmarks.py; no keys are shared.
VOCABULARY = 131072
SWEEP = {
    name: from_sizes(layers, width, heads, hidden, VOCABULARY, tied_embeddings=tied)
    for name, layers, width, heads, hidden, tied in (
        ("1B", 16, 2048, 32, 8192, True),
        ("3B", 28, 3072, 32, 8192, True),
        ("8B", 32, 4096, 32, 14336, False),
        ("80B", 80, 8192, 64, 28672, False),
    )
}
TOKENS, CLUSTER = 4096, machine("h100_sxm", "infiniband_ndr")
NANOTRON = Stack(
    passes=8, logits_passes=8, weight_bytes=4, gradient_bytes=4, optimizer_bytes=28,
    whole_layers=True, split="tensor+sequence",
)  # fmt: skip
HEALTHY = ("share", "inside", "between", "host", "ring", "latency", "fixed")
STATE = ("slow", "far")
REGIMES = ("no pipeline", "pipeline, one node", "pipeline over nodes", "64 nodes")

MPT = {  # layers, width, heads
    "125m": (12, 768, 12), "350m": (24, 1024, 16), "760m": (24, 1536, 12), "1b": (24, 2048, 16),
    "3b": (32, 2560, 32), "7b": (32, 4096, 32), "13b": (40, 5120, 40), "30b": (48, 7168, 56),
    "70b": (80, 8192, 64),
}  # fmt: skip
MPT_VOCABULARY = 50368
FOUNDRY = Stack(passes=8, logits_passes=8)
CHIPS = {
    "a100_40gb": ("a100_40gb", "infiniband_hdr"),
    "a100_80gb": ("a100_80gb", "infiniband_hdr"),
    "h100_80gb": ("h100_sxm", "infiniband_ndr"),
}


@dataclass(frozen=True)
class Sweep:
    """Plans that were tried, finished or not: seconds of their bound and expected from the other
    models, bytes of a GPU expected from the other models, and the seconds that were measured, NaN
    for those that did not finish.
    """

    rows: Dataset
    bound: np.ndarray
    expected: np.ndarray
    memory: np.ndarray
    took: np.ndarray

    @property
    def finished(self):
        return ~np.isnan(self.took)

    def where(self, mask):
        """The plans of a mask."""
        return Sweep(self.rows.where(mask), *(getattr(self, n)[mask] for n in ANSWERS))


ANSWERS = ("bound", "expected", "memory", "took")


def tried(rows):
    """The runs of the sweep whose batch is that of their plan, and which of them have a rate."""
    batch = rows["data"] * rows["micro_batch"] * rows["accumulation"]
    rows = rows.where(batch == rows["batch"])
    return rows, (rows["rate"] > 0) & (rows["mfu"] > 0)


def plan_of(rows):
    """The plans of rows, as one `Plan` of arrays."""
    return Plan(
        rows["data"], rows["tensor"], rows["pipeline"], micro_batches=rows["accumulation"],
        micro_size=rows["micro_batch"], stage=rows["zero"],
    )  # fmt: skip


def works_of(rows, base):
    """One `Work` of arrays, an element a row."""
    works = {}
    for name in rows["model"].present():
        own = rows["model"] == name
        one = work(SWEEP[name], TOKENS, plan_of(rows.where(own)), CLUSTER, base)
        for f in fields(Work):
            works.setdefault(f.name, np.empty(len(rows)))[own] = getattr(one, f.name)
    return Work(**works)


def ailing(rows):
    """Runs in the state of slow collectives: a pipeline over nodes, or 64 of them."""
    return ((rows["pipeline"] > 1) & (rows["nodes"] > 1)) | (rows["nodes"] == 64)


def sweep_regimes(rows):
    """In which of `REGIMES` each run lies."""
    nodes, pipeline = rows["nodes"], rows["pipeline"] > 1
    codes = np.select([nodes == 64, pipeline & (nodes > 1), pipeline], [3, 2, 1], 0)
    return Words(REGIMES, codes.astype(np.int32))


def fit_sweep(works, times, slow):
    """A healthy stack, fitted on the runs that are not `slow`, and the same in that state."""
    healthy = fit_constants(rows_of(works, ~slow), times[~slow], NANOTRON, HEALTHY)
    return healthy, fit_constants(rows_of(works, slow), times[slow], healthy, STATE)


@functools.lru_cache(maxsize=2)
def sweep(rows):
    """The `Sweep` of these rows."""
    rows, is_finished = tried(rows)
    slow, works = ailing(rows), works_of(rows, NANOTRON)
    times = np.where(
        is_finished, rows["batch"] * TOKENS / (rows["rate"] * 8 * rows["nodes"]), np.nan
    )

    def fit(others):
        by = others & is_finished
        return fit_sweep(rows_of(works, by), times[by], slow[by])

    def answer(stacks, own):
        healthy, ails = (expected_times(rows_of(works, own), one) for one in stacks)
        return np.where(slow[own], ails, healthy)

    expected = each_left_out(rows["model"], fit, answer)
    bound = expected_times(works_of(rows, BOUND), BOUND)
    return Sweep(rows, bound, expected, memory_left_out(rows, is_finished), times)


def judge_sweep(rows, which):
    """The "bound" or what is "expected" of every finished run."""
    table = sweep(rows)
    table = table.where(table.finished)
    return Judged(getattr(table, which), table.took, sweep_regimes(table.rows), table.rows.name)


def clean(rows):
    """Runs free of two bad campaigns. A rule on plans, found by looking at residuals: what it gives
    is optimistic.
    """
    campaign = (rows["zero"] == 0) & (rows["micro_batch"] == 1) & (rows["data"] > 1)
    campaign &= (rows["pipeline"] > 1) & (rows["nodes"] > 1)
    return (rows["nodes"] <= 32) & ~campaign


FULL = 70 * 2**30  # bytes: from here on the allocator tries again and again
# Of the card, what a plan may be predicted to take: between 0.76 and 0.84 the score stays within a
# hundredth; above that some first plans fail.
ROOM = 0.8


@dataclass(frozen=True)
class Regret:
    """For each model and number of nodes the measured rate of the plan ranked first, over the best
    rate. `end_to_end`: of all plans, by predicted time and memory, and 0 for one that did not
    finish. `oracle`: of those that finished, by predicted time and *measured* memory, which nobody
    has who plans.
    """

    end_to_end: np.ndarray
    oracle: np.ndarray


def regret(plans, predicted, fewest=10):
    """The `Regret` of ranking the plans of a `Sweep` by these predicted seconds, where at least so
    many finished. A plan that fills the memory is not ranked.
    """
    rows, rate = plans.rows, np.where(plans.finished, plans.rows["rate"], 0.0)
    tokens = rows["batch"] / (rows["nodes"] * predicted)
    rooms = plans.memory <= ROOM * CLUSTER.capacity, plans.finished & (rows["memory"] < FULL)
    scores = []
    for model in rows["model"].present():
        for nodes in np.unique(rows["nodes"]):
            own = (rows["model"] == model) & (rows["nodes"] == nodes)
            if (own & plans.finished).sum() < fewest:
                continue
            firsts = [np.argmax(np.where(own & room, tokens, -1.0)) for room in rooms]
            scores.append([rate[first] / rate[own].max() for first in firsts])
    return Regret(*np.array(scores).T)


# ---------------------------------------------------------------- memory

COUNTED = Footprint(gradient_bytes=6, logits_bytes=10)
KEPT, BASE = np.arange(1.2, 1.61, 0.05), np.arange(0, 1.3e9, 1e8)


def judge_memory(rows):
    """The memory of every finished run, from two constants that the other models set."""
    table = sweep(rows)
    table = table.where(table.finished)
    kinds = sweep_regimes(table.rows)
    return Judged(table.memory, table.rows["memory"], kinds, table.rows.name)


def fit_memory(totals, measured):
    """(kept, base) that fit the measured memory of runs best; `totals`: kept -> counted bytes."""
    return min(
        itertools.product(totals, BASE),
        key=lambda two: np.abs(np.log((totals[two[0]] + two[1]) / measured)).mean(),
    )


def memory_left_out(rows, is_finished):
    """The memory of every plan, from two constants that the finished runs of other models set."""
    totals = {copies: footprints_of(rows, replace(COUNTED, kept=float(copies))) for copies in KEPT}

    def fit(others):
        by = others & is_finished
        return fit_memory({copies: each[by] for copies, each in totals.items()}, rows["memory"][by])

    def answer(two, own):
        return totals[two[0]][own] + two[1]

    return each_left_out(rows["model"], fit, answer)


def footprints_of(rows, holds):
    """Bytes of the GPU that holds most in each run."""
    totals = np.empty(len(rows))
    for name in rows["model"].present():
        own = rows["model"] == name
        plan = plan_of(rows.where(own))
        totals[own] = expected_memory(SWEEP[name], TOKENS, plan, CLUSTER, holds).total
    return totals


# ---------------------------------------------------------------- FSDP


def fsdp_runs(rows):
    """Each row of LLM Foundry as a `Timed` step; its rate is tokens/s of all GPUs."""
    runs = []
    for i in range(len(rows)):
        layers, width, heads = MPT[rows["model"][i]]
        chip, network = CHIPS[rows["chip"][i]]
        cluster = machine(chip, network)
        if "fp8" in rows["precision"][i]:
            cluster = replace(cluster, peak=float(accelerator(chip).fp8))
        plan = Plan(
            data=int(rows["devices"][i]),
            micro_batches=int(rows["accumulation"][i]),
            micro_size=int(rows["micro_batch"][i]),
            stage=3 if rows["sharding"][i] == "FULL_SHARD" else 2,
            recompute="full" if rows["checkpointing"][i] == "True" else "selective",
        )
        sequence = int(rows["sequence"][i])
        time = float(rows["batch"][i] * sequence / rows["rate"][i])
        model = gpt(layers, width, heads, MPT_VOCABULARY, sequence)
        runs.append(Timed(f"row {i}", model, sequence, plan, cluster, time))
    return runs


PAIRINGS = (
    Pairing(
        key="step-bound",
        title="The bound of a training step against untuned runs",
        law="lightspeed_models.training_step.step",
        set="training_sweep",
        chapter="06",
        judge=functools.partial(judge_sweep, which="bound"),
        bound="least",
        lesson="A bound has no time that does not shrink with a layer, so it tells little of a run "
        "whose layers are small.",
    ),
    Pairing(
        key="step-expected",
        title="The expected time of a training step against untuned runs",
        law="lightspeed_models.training_step.step",
        set="training_sweep",
        chapter="06",
        judge=functools.partial(judge_sweep, which="expected"),
        fitted="a stack of seven constants and the two of a state, on the runs of the other models",
        left_out="model",
        lesson="The rest is not the plan but the state of the cluster: the same plan runs in one "
        "of three. A boosted regressor is as good within its rows, and lost on a model left out.",
    ),
    Pairing(
        key="memory-expected",
        title="The expected memory of a GPU in training",
        law="lightspeed_models.step_memory.expected_memory",
        set="training_sweep",
        chapter="06",
        quantity="memory",
        unit="byte",
        judge=judge_memory,
        fitted="what layers keep beyond the count, and a base, on the runs of the other models",
        left_out="model",
        lesson="The logits of the last stage are kept in bf16, in fp32 and as a gradient: ten "
        "bytes each.",
    ),
)
