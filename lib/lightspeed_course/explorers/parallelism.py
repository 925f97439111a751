"""Chapter 6: one model on one cluster, split in every way.

Does it fit, where does a step go, what to change first. The batch is a control of its own, in
sequences: plans are compared at the same batch, and the micro-batches of a replica follow from it.
`view` is pure: parameters in, a `View` out. `explore()` puts controls on it.
"""

import functools
import itertools
from dataclasses import dataclass, replace

from lightspeed.catalog import accelerator, entries, link
from lightspeed.errors import BadArgument
from lightspeed.memory import RECOMPUTE, MemoryUse
from lightspeed.pipeline import bubble_over_total
from lightspeed_course.explorers.menus import one_change
from lightspeed_models.llm import decoder
from lightspeed_models.plan import Plan, machine
from lightspeed_models.simulators.schedules import simulate
from lightspeed_models.training_runs import fit_share
from lightspeed_models.training_step import Step, memory_use, step
from lightspeed_show import (
    Axis,
    Bars,
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
from lightspeed_show.spaced import evenly

MODELS = ("llama3_8b", "llama3_70b", "llama3_405b", "gpt3_175b", "mixtral_8x7b", "deepseek_v3")
GPUS = (
    "a100_80gb", "h100_sxm", "h200_sxm", "b200", "rubin", "mi300x", "mi325x", "mi350x", "mi355x",
)  # fmt: skip
NETWORKS = ("ethernet_100g", "infiniband_hdr", "infiniband_ndr", "infiniband_xdr")
PARTS = ("weights", "gradients", "optimizer", "activations", "logits", "buffers")
STAGES = {
    "0 (DDP)": 0,
    "1 (optimizer)": 1,
    "2 (and gradients)": 2,
    "3 (and weights)": 3,
}
FACTS = (
    "data-parallel replicas", "micro-batches a replica", "tokens a step", "memory a GPU",
    "largest part", "time of a step", "MFU", "tokens a second", "bubble", "gradients and shards",
)  # fmt: skip
SHOWN = {
    "compute": "arithmetic",
    "memory": "passes through HBM",
    "tensor": "tensor-parallel traffic",
    "expert": "expert exchange",
    "pipeline": "stage transfers",
    "bubble": "bubble",
    "data": "gradients and shards",
}
HIDDEN = "hidden: gradients and shards"
REMEDY = {
    "memory": "more fusion of what lies between the products",
    "tensor": "a smaller group, or a faster link inside the node",
    "expert": "experts over fewer ranks",
    "pipeline": "fewer stages",
    "bubble": "a larger batch or fewer stages",
    "data": "a faster network and a faster link inside the node",  # where neither does alone
}
LINKS = {"network": "a faster network", "link": "a faster link inside the node"}
# What a plan is compared in: the model, the GPUs, the sequence and the batch stay.
SPLIT = ("tensor", "pipeline", "expert", "stage", "recompute")
SMALL = {
    "model": "llama3_70b", "tensor": 1, "pipeline": 1, "expert": 1, "stage": 1, "shard": 0,
    "recompute": "selective", "batch": 512, "sequence": 8192,
}  # fmt: skip
SHARDS = {"all replicas": 0} | {f"groups of {ranks}": ranks for ranks in (8, 32)}
DRAWN, STEADY = 100, 3  # points of a curve; micro-batches a stage after which only the middle grows
WORTH = 1.01  # an MFU that is not this many times as high is no reason to change a plan


def view(
    model, gpu, network, gpus, tensor, pipeline,
    expert, stage, shard, recompute, batch, sequence,
):  # fmt: skip
    """Memory of a GPU, the terms of a step and the busy GPUs, for this split."""
    at = {
        "model": model, "gpu": gpu, "network": network, "gpus": gpus, "tensor": tensor,
        "pipeline": pipeline, "expert": expert, "stage": stage, "shard": shard,
        "recompute": recompute, "batch": batch, "sequence": sequence,
    }  # fmt: skip
    try:
        here = outcome(**at)
    except Impossible as reason:
        words = f"This split is not possible: {reason}"
        return View(charts(None), words, dict.fromkeys(FACTS, "–"))
    use, took, plan = here.use, here.took, here.plan
    if not use.fits:  # nothing runs, so there is no step to speak of
        values = plan_facts(plan, sequence, use)
        facts = dict.fromkeys(FACTS, "–") | values
        return View(charts(here), verdict(at, here), facts, advice=advice(at, here))
    tokens = plan.sequences * sequence
    whole = bubble_over_total(pipeline, plan.micro_batches)
    facts = (
        *plan_facts(plan, sequence, use).values(),
        si(took.time, "s"),
        si(took.mfu, "%", 2),
        si(tokens / took.time, "token"),
        f"{si(whole, '%', 2)} of the pipeline's time, {share(took.bubble, took)} of the step",
        synced_in_words(here),
    )
    law = Formula(
        "MFU",
        "FLOPs / (time * peak)",
        {
            "FLOPs": (took.model_flops, "FLOP"),
            "time": (took.time, "s"),
            "peak": (took.peak, "FLOP/s"),
        },
        (took.mfu, "%"),
    )
    facts = dict(zip(FACTS, facts, strict=True))
    return View(charts(here), verdict(at, here), facts, formula=law, advice=advice(at, here))


def plan_facts(plan, sequence, use):
    """The first of FACTS: what a plan is, and what a GPU would hold."""
    facts = (
        si(plan.data, ""),
        si(plan.micro_batches, ""),
        si(float(plan.sequences * sequence), "token"),
        room(use),
        f"{use.largest}, {si(getattr(use, use.largest), 'byte')}",
    )
    return dict(zip(FACTS, facts, strict=False))


def share(seconds, took):
    return si(seconds / took.time, "%", 2)


class Impossible(ValueError):
    """A combination of degrees that is impossible, and why."""


@dataclass(frozen=True)
class Outcome:
    """The cost of a plan: the memory of a GPU, and the time of a step."""

    plan: Plan
    use: MemoryUse
    took: Step

    @property
    def synced(self):
        """Seconds of data-parallel traffic, seen or hidden."""
        return self.took.data + self.took.hidden


@functools.lru_cache(maxsize=4096)
def outcome(model, gpu, network, gpus, sequence, batch, faster="", **how):
    """The `Outcome` of one state of the controls, with one of `LINKS` twice as fast if it is named
    in `faster`; raises Impossible.
    """
    shape, cluster = decoder(model), machine(gpu, network, share=fit_share())
    if faster:
        cluster = replace(cluster, **{faster: 2 * getattr(cluster, faster)})
    plan = split(shape, gpus, batch, **how)
    return Outcome(
        plan,
        memory_use(shape, sequence, plan, cluster),
        step(shape, sequence, plan, cluster),
    )


def split(shape, gpus, batch, tensor, pipeline, expert, **rest):
    """The `Plan` with as many replicas as the GPUs allow.

    Raises Impossible, in words for the reader, if the degrees do not go together.
    """
    replicas, left_over = divmod(gpus, tensor * pipeline)
    shard = rest["shard"]
    if left_over:
        one = f"{tensor * pipeline} GPUs, {tensor} (tensor parallel) times {pipeline} (stages)"
        wrong = "are too few" if not replicas else "cannot be cut into such groups"
        raise Impossible(
            f"one copy of the model takes {one}, and {si(gpus)} {wrong}. "
            "More GPUs, a smaller group or fewer stages?"
        )
    if pipeline > shape.depth:
        raise Impossible(f"the model has {shape.depth} layers, too few for {pipeline} stages.")
    if expert > 1 and not shape.experts:
        raise Impossible(
            "this model has no experts to spread over ranks; set expert parallel back to one."
        )
    if expert > max(1, shape.experts):
        raise Impossible(f"the model has {shape.experts} experts, too few for {expert} ranks.")
    if replicas % expert:
        raise Impossible(
            f"experts are spread over groups of {expert} replicas of the model, and the number of "
            f"replicas here is {si(replicas)}. More GPUs, or experts over fewer ranks?"
        )
    if shard and replicas % shard:
        raise Impossible(
            f"ZeRO over groups of {shard} takes a multiple of {shard} replicas, and there are "
            f"{si(replicas)}. Smaller groups, fewer tensor ways or fewer stages?"
        )
    micro_batches, left_over = divmod(batch, replicas)
    if left_over:
        raise Impossible(
            f"each of the {si(replicas)} replicas needs a sequence or more of its own, and the "
            f"batch has {si(batch)}. A larger batch, fewer GPUs, a larger group or more stages?"
        )
    return Plan(replicas, tensor, pipeline, expert, micro_batches=micro_batches, **rest)


def synced_in_words(here):
    """The data-parallel traffic of a step, and how much of it costs no time."""
    if not here.synced:
        return "none"
    extra = si(here.took.data, "s") if here.took.data else "nothing"
    return f"{si(here.synced, 's')} of traffic, which adds {extra} to the step"


def verdict(at, here):
    """Say whether it fits, and what a step loses most time to."""
    use, took = here.use, here.took
    if not use.fits:
        most = si(getattr(use, use.largest) / use.total, "%", 2)
        return f"Does not fit: {room(use)}. The largest share, {most}, goes to the {use.largest}."
    loss = took.largest_loss
    return (
        f"Fits: {room(use)}. MFU {si(took.mfu, '%', 2)}. Beside arithmetic the step loses most to "
        f"{SHOWN[loss]}: {share(getattr(took, loss), took)} of it. "
        f"What helps: {remedy(loss, at, here)}."
    )


def advice(at, here):
    """Return the one change of the split that helps most."""
    use, others = here.use, changes(at)
    fitting = [c for c in others if c[1].use.fits]
    # Of changes that end in the same time, the one that sends least.
    best = max(fitting, key=lambda c: (c[1].took.mfu, -c[1].synced), default=None)
    mfu = si(best[1].took.mfu, "%", 2) if best else ""
    if not use.fits:
        if best:
            return f"Change first: set {best[0]}. It then fits, at an MFU of {mfu}."
        return nearest(use, others)
    if best and best[1].took.mfu > WORTH * here.took.mfu:
        return f"Change first: set {best[0]}, for an MFU of {mfu} at the same batch."
    return "At this batch no single change of the split gains more than a hundredth."


def remedy(loss, at, here):
    """What makes a term a smaller part of the step, of what this state allows."""
    if loss not in ("bubble", "data"):
        return REMEDY[loss]
    # From stage 2 on ZeRO sends once for each micro-batch: more of them don't thin its traffic.
    thins = loss == "bubble" or at["stage"] < 2
    ways = {"a larger batch": {"batch": 2 * at["batch"]}} if thins else {}
    if loss == "bubble":
        ways["fewer stages"] = {"pipeline": at["pipeline"] // 2}
    elif not thins:
        ways["a lower stage of ZeRO"] = {"stage": at["stage"] - 1}
    if loss == "data":
        ways |= {words: {"faster": rate} for rate, words in LINKS.items()}
    words = [way for way, change in ways.items() if shrinks(loss, at, here, change)]
    return " or ".join(words) or REMEDY[loss]


def shrinks(loss, at, here, change):
    """Whether a change makes a term a smaller part of the step; also if it is not possible as it
    stands, as one of that kind may be.
    """
    try:
        after = outcome(**at | change).took
    except (Impossible, BadArgument):
        return True
    return getattr(after, loss) / after.time < getattr(here.took, loss) / here.took.time


def room(use):
    return f"{si(use.total, 'byte')} of {si(use.capacity, 'byte')}"


def nearest(use, others):
    """Return the advice if no single change makes a plan fit."""
    least = min(others, key=lambda c: c[1].use.total, default=None)
    if least is None or least[1].use.total >= use.total:
        return "At this batch no single change of the split makes it fit, or even smaller."
    name, after = least
    return (
        "At this batch no single change of the split makes it fit. "
        f"Setting {name} comes nearest, with {si(after.use.total, 'byte')}."
    )


def changes(at):
    """(name, `Outcome`) of each plan one change of the split away, at the same batch."""
    changes = []
    for control, value, state in one_change(at, [c for c in controls() if c.name in SPLIT]):
        try:
            changes.append((f"{control.label} to {control.text(value)}", outcome(**state)))
        except Impossible:
            continue
    return changes


def charts(here):
    """Three charts on axes that stay where they are; empty ones if there is no plan."""
    memory, seconds = dict.fromkeys(PARTS, 0.0), dict.fromkeys(SHOWN, 0.0)
    capacity, whole, hidden = 1.0, 1.0, 0.0
    runs = here and here.use.fits
    if here:
        memory = {part: getattr(here.use, part) for part in PARTS}
        capacity = here.use.capacity
    if runs:
        seconds = {name: here.took.terms[name] for name in SHOWN}
        whole, hidden = here.took.time, here.took.hidden
    parts = {name: (v / capacity, si(v, "byte", 2)) for name, v in memory.items()}
    terms = {SHOWN[name]: (v / whole, si(v, "s", 2)) for name, v in seconds.items()}
    beside = {HIDDEN: (hidden / whole, si(hidden, "s", 2))}
    return (
        waterfall(parts, "memory a GPU, of its capacity", 2, "Does it fit?", height=138),
        waterfall(terms, "share of the step", 1, "Where the step goes", beside, height=158),
        Chart(
            Axis("of the way through the step", "%", domain=(0, 1)),
            Axis("", "%", domain=(0, 1.05)),
            (Line(*busy(here.plan), "", "green"),) if runs else (Rule(y=0),),
            title="Busy GPUs of a pipeline: fill and drain (1F1B, equal stages)",
            height=96,
        ),
    )


def waterfall(parts, label, top, title, beside=None, height=260):
    """Bars one after the other; name -> (share, text). Cut off at the end of the axis, with a mark.

    Those of `beside` run at the same time and add nothing: they start at the left, in grey.
    """
    start, at, begin, end, cut = 0.0, [], [], [], []
    for name, (share, text) in parts.items():
        at.append(f"{name}  {text}")
        begin.append(min(start, top))
        start += share
        end.append(min(start, top))
        if share and start > 1.0001 * top:  # a step ends at the edge, give or take a rounding
            cut.append(at[-1])
    marks = [Bars(at, end, begin, color="blue")]
    if beside:
        rows = [f"{name}  {text}" for name, (_, text) in beside.items()]
        ends = [share for share, _ in beside.values()]
        marks.append(Bars(rows, ends, [0.0] * len(rows), color="grey"))
        at += rows
    if top > 1:
        marks.append(Rule(x=1, label="capacity"))
    if cut:
        goes_on = f"goes on: {si(start, '%', 2)} in all"
        marks.append(Points([top] * len(cut), cut, goes_on, color="orange", marker="triangle"))
    return Chart(
        Axis(label, "%", domain=(0, top)),
        Axis(scale="category", categories=at),
        tuple(marks),
        title=title,
        height=height,
    )


@functools.lru_cache(maxsize=256)
def _busy(stages, micro_batches):
    # Between fill and drain every stage is busy: a long step is a short one with a longer middle.
    few = min(micro_batches, STEADY * stages)
    run = simulate("1f1b", stages, few)
    shares = run.utilization(1.0)  # passes begin and end at whole seconds
    sums = (0.0, *itertools.accumulate(shares))
    middle, longer = run.span / 2, (micro_batches - few) * run.span / (few + stages - 1)
    times = evenly(0, run.span + longer, DRAWN + 1)

    def until(time):
        whole = min(int(time), len(shares) - 1)
        return sums[whole] + shares[whole] * (time - whole)

    def work(time):
        ends = until(min(time, middle)) + until(max(time - longer, middle))
        return ends - until(middle) + min(max(time - middle, 0), longer)

    pairs = tuple(itertools.pairwise(times))
    return (
        tuple((a + b) / 2 / times[-1] for a, b in pairs),
        tuple((work(b) - work(a)) / times[1] for a, b in pairs),
    )


def busy(plan):
    """Share of the stages at work over the step."""
    return _busy(plan.pipeline, plan.micro_batches)


def names(find, keys):
    return {find(key).name: key for key in keys}


@functools.cache
def controls():
    """Return the reader's controls. The words of `view` use these choices."""
    return [
        Choice(
            "model", "model", {entries("models")[key].name: key for key in MODELS}, "llama3_70b"
        ),
        Choice("gpu", "GPU", names(accelerator, GPUS), "h100_sxm"),
        Choice("network", "network, a port a GPU", names(link, NETWORKS), "infiniband_ndr"),
        LogSlider("gpus", "GPUs", 8, 16384, 512, base=2),
        LogSlider("tensor", "tensor parallel", 1, 8, 8, base=2),
        LogSlider("pipeline", "pipeline stages", 1, 16, 4, base=2),
        LogSlider("expert", "expert parallel", 1, 8, 1, base=2),
        Choice("stage", "ZeRO", STAGES, 1),
        Choice("shard", "shard group", SHARDS, 0),
        Choice("recompute", "recompute", RECOMPUTE, "selective"),
        LogSlider("batch", "batch, in sequences", 8, 16384, 512, base=2),
        LogSlider("sequence", "sequence", 1024, 32768, 8192, base=2),
    ]


def explore():
    """The explorer of chapter 6."""
    return explorer(
        view,
        controls(),
        caption=(
            "First make it fit, then look at what the step loses. The matrix products reach the"
            " share of peak that one published run set; nodes have eight GPUs. Traffic in grey is"
            " hidden behind the rest of the step and costs no time."
        ),
        alt=(
            "Three charts: the parts of a GPU's memory one after the other against its capacity; "
            "the terms of a training step as shares of it, with the traffic that is hidden behind "
            "them; and the share of busy stages from the start to the end of the step."
        ),
        presets={
            "the job of the lessons": SMALL
            | {"tensor": 8, "pipeline": 4, "gpus": 64, "sequence": 2048}
            | {"network": "ethernet_100g"},
            "a small model on one node": SMALL
            | {"model": "llama3_8b", "gpus": 8, "stage": 3, "batch": 64},
            "a large one on many nodes": SMALL
            | {"tensor": 8, "pipeline": 4, "stage": 1, "gpus": 512},
            "a large one, FSDP alone": SMALL | {"stage": 3, "gpus": 512},
            "MoE, experts over eight": SMALL
            | {"model": "mixtral_8x7b", "gpus": 64, "expert": 8, "pipeline": 4, "stage": 2},
        },
    )
