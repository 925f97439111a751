"""Chapter 10: all splits of the course's job as dots of memory and time, yours among them."""

import functools
from dataclasses import dataclass, replace

from lightspeed_course import job
from lightspeed_models.llm import decoder
from lightspeed_models.plan import Plan, cuts, machine
from lightspeed_models.products import rates
from lightspeed_models.stack import run_class, stack
from lightspeed_models.step_memory import expected_memory, footprint
from lightspeed_models.training_step import seconds, work
from lightspeed_show import (
    Axis,
    Chart,
    Choice,
    Formula,
    Line,
    LogSlider,
    Points,
    Rule,
    View,
    explorer,
    si,
)

STACK, RUNS = "megatron_h100", run_class("nvidia")
NETWORKS = ("ethernet_100g", "infiniband_hdr", "infiniband_ndr", "infiniband_xdr")
DEGREES = (1, 2, 4, 8, 16)
STAGES = {"0": 0, "1 (optimizer)": 1, "3 (and weights)": 3}
ROOM = 0.8  # of the memory: what is predicted above it fails too often
WAITS = {
    "compute": "products", "memory": "passes through HBM", "tensor": "tensor-parallel traffic",
    "pipeline": "stage transfers", "bubble": "the bubble", "data": "gradients and shards",
    "uneven": "the fullest stage",
}  # fmt: skip


@dataclass(frozen=True)
class Split:
    """A split at its best open settings: seconds of a step by term, bytes of the fullest GPU."""

    plan: Plan
    terms: dict
    held: float

    @property
    def time(self):
        return sum(self.terms.values())

    @property
    def name(self):
        p = self.plan
        return f"data {p.data} × tensor {p.tensor} × pipeline {p.pipeline}, ZeRO {p.stage}"


@functools.cache
def cluster(network):
    """The `Machine` of the job behind this network, with the products of its chip as measured."""
    return replace(machine(job.GPU, network, job.PER_NODE), products=rates(job.GPU))


@functools.cache
def _constants():
    return decoder(job.MODEL), stack(STACK), footprint(STACK)


@functools.lru_cache(maxsize=65536)
def held(plan: Plan):
    """Bytes of the fullest GPU under a plan, whatever the network."""
    model, constants, holds = _constants()
    behind = cluster(job.NETWORK)
    use = expected_memory(model, job.SEQUENCE, plan, behind, holds, constants.split)
    return float(use.total)


@functools.lru_cache(maxsize=65536)
def weighed(plan: Plan, network: str):
    """The `Split` of one plan."""
    model, constants, _ = _constants()
    job_work = work(model, job.SEQUENCE, plan, cluster(network), constants)
    terms = {n: float(t) for n, t in seconds(job_work, constants).items() if n != "hidden"}
    return Split(plan, terms, held(plan))


@functools.lru_cache(maxsize=8192)
def split(network, batch, tensor, pipeline, stage, capacity):
    """The fastest `Split` of these degrees that fits, else the leanest; None where the batch does
    not divide, or ZeRO 2 and 3 meet a pipeline.
    """
    data, rest = divmod(job.GPUS, tensor * pipeline)
    if rest or not data or batch % data or (stage > 1 and pipeline > 1):
        return None
    layers, sequences = _constants()[0].depth, batch // data
    plans = []
    for size in (1, 2, 4):
        for chunks in (1, *cuts(layers, pipeline)):
            for recompute in ("selective", "full"):
                many, odd = divmod(sequences, size)
                if odd or (chunks > 1 and many % pipeline):
                    continue
                plan = Plan(
                    data, tensor, pipeline, micro_batches=many, micro_size=size, chunks=chunks,
                    stage=stage, recompute=recompute,
                )  # fmt: skip
                plans.append(plan)
    fit = [plan for plan in plans if held(plan) <= ROOM * capacity]
    if not fit:
        return weighed(min(plans, key=held), network)
    return min((weighed(plan, network) for plan in fit), key=lambda s: s.time)


def every(network, batch, capacity):
    """Return all possible splits."""
    every = (
        split(network, batch, tensor, pipeline, stage, capacity)
        for tensor in DEGREES
        for pipeline in DEGREES
        for stage in STAGES.values()
    )
    return [one for one in every if one]


FACTS = (
    "a step",
    "the week becomes",
    "memory of the fullest GPU",
    "rank",
    "what it waits for most",
)


def view(tensor, pipeline, stage, network, batch, memory):
    """Show all splits as dots, with the reader's among them."""
    capacity = memory * 1e9
    splits = every(network, batch, capacity)
    fit = sorted((s for s in splits if s.held <= ROOM * capacity), key=lambda s: s.time)
    mine = split(network, batch, tensor, pipeline, stage, capacity)
    best = fit[0] if fit else None
    advice = f"The fastest split that fits: {best.name}, {si(best.time, 's')}." if best else ""
    if mine is None:
        why = "ZeRO 3 does not go with a pipeline" if stage > 1 and pipeline > 1 else (
            f"{tensor} × {pipeline} GPUs do not divide {job.GPUS} with a batch of {batch}"
        )  # fmt: skip
        return View(
            chart(splits, capacity, None), f"Not possible: {why}.", dict.fromkeys(FACTS, "–"),
            advice=advice,
        )  # fmt: skip
    if mine not in fit:
        facts = dict.fromkeys(FACTS, "–") | {FACTS[2]: si(mine.held, "byte")}
        words = (
            f"Does not fit: {si(mine.held, 'byte')} of {si(capacity, 'byte')}, of which a plan may"
            f" take {si(ROOM, '%')}."
        )
        return View(chart(splits, capacity, mine), words, facts, advice=advice)
    waiting = max((n for n in mine.terms if n in WAITS and n != "compute"), key=mine.terms.get)
    steps = job.TOKENS / (batch * job.SEQUENCE)
    ends = [end * mine.time for end in (RUNS.low, RUNS.high)]
    days = " to ".join(f"{end * steps / 86400:.1f}" for end in ends)
    numbers = (
        " to ".join(si(end, "s") for end in ends), f"{days} days", si(mine.held, "byte"),
        f"{fit.index(mine) + 1} of {len(fit)} that fit",
        f"{WAITS[waiting]}, {si(mine.terms[waiting], 's')}",
    )  # fmt: skip
    slower = mine.time / fit[0].time
    words = (
        "No split of these is faster."
        if slower == 1
        else f"The fastest split takes {si(1 / slower, '%', 2)} of this time."
    )
    values = {"step": (mine.time, "s"), "steps": (steps, "")}
    law = Formula("the run", "step * steps", values, (mine.time * steps, "s"))
    return View(
        chart(splits, capacity, mine), words, dict(zip(FACTS, numbers, strict=True)), formula=law,
        advice=advice,
    )  # fmt: skip


def front(splits):
    """Return the splits that no other beats in both time and memory, leanest first."""
    best = []
    for one in sorted(splits, key=lambda s: (s.held, s.time)):
        if not best or one.time < best[-1].time:
            best.append(one)
    return best


def chart(splits, capacity, mine):
    most = ROOM * capacity
    marks = [Rule(x=most, label="the most that a plan may take")]
    for label, color, some in (
        ("fits", "blue", [s for s in splits if s.held <= most]),
        ("does not fit", "grey", [s for s in splits if s.held > most]),
    ):
        if some:
            marks.append(Points([s.held for s in some], [s.time for s in some], label, color=color,
                                size=5, tips=[s.name for s in some]))  # fmt: skip
    best = front([s for s in splits if s.held <= most])
    if len(best) > 1:
        marks.append(Line([s.held for s in best], [s.time for s in best], "the front", "green"))
    if mine:
        marks.append(Points([mine.held], [mine.time], labels=["yours"], color="orange", size=9))
    return Chart(
        Axis("memory of the fullest GPU", "byte", domain=(1e10, 1e12), scale="log"),
        Axis("time of a step", "s", domain=(5, 500), scale="log"),
        marks,
    )


def explore_planner():
    """The splits of the job of the course."""
    degrees = {str(n): n for n in DEGREES}
    return explorer(
        view,
        [
            Choice("tensor", "tensor", degrees, job.TENSOR),
            Choice("pipeline", "pipeline", degrees, job.PIPELINE),
            Choice("stage", "ZeRO stage", STAGES, 1),
            Choice("network", "network", NETWORKS, job.NETWORK),
            LogSlider("batch", "sequences a step", 64, 2048, job.SEQUENCES, base=2, whole=True),
            LogSlider("memory", "memory of a GPU, GB", 40, 200, 85.5, per_decade=6),
        ],
        caption=f"Each dot is a way to split {job.GPUS} GPUs, with the micro-batch, chunks and"
        " recomputation that suit it best. On the green line nothing is both leaner and faster.",
        alt="Dots of memory and time of a step: a few lean and slow, a cloud in the middle, some"
        " beyond the line of what fits; one of them is yours.",
        presets={
            "as it first ran": {"tensor": 1, "pipeline": 1, "stage": 3},
            "as it was mended": {"tensor": 8, "pipeline": 4, "stage": 1},
            "a better network": {"network": "infiniband_ndr"},
        },
        guess="Where in this picture is the fastest split that fits?",
        later=("batch", "memory"),
    )
