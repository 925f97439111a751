"""Chapter 6: one model on one cluster, split in every way; does it fit, where does a step go, what to change first.

`view` is pure: parameters in, a `View` out. `explore()` puts controls on it.
"""

from __future__ import annotations

import functools
from dataclasses import replace

from lightspeed.catalog import accelerator, entries, link
from lightspeed.law import BadArgument
from lightspeed.memory import RECOMPUTE
from lightspeed.models.training_step import Plan, fit_share, machine, memory_use, step
from lightspeed.pipeline import bubble_over_total, simulate
from lightspeed.transformer import transformer
from lightspeed_course.show import (
    Axis,
    Bars,
    Chart,
    Choice,
    Line,
    LogSlider,
    Points,
    Rule,
    View,
    explorer,
    si,
)

MODELS = ("llama3_8b", "llama3_70b", "llama3_405b", "gpt3_175b", "mixtral_8x7b", "deepseek_v3")
GPUS = ("a100_80gb", "h100_sxm", "h200_sxm", "b200", "mi300x")
NETWORKS = ("ethernet_100g", "infiniband_hdr", "infiniband_ndr", "infiniband_xdr")
PARTS = ("weights", "gradients", "optimizer", "activations", "logits", "buffers")
STAGES = {"none (DDP)": 0, "1: optimizer": 1, "2: and gradients": 2, "3: and weights (FSDP)": 3}
FACTS = ("data-parallel replicas", "tokens a step", "memory a GPU", "largest part", "time of a step", "MFU", "tokens a second", "bubble")
SHOWN = {"compute": "arithmetic", "memory": "passes through HBM", "tensor": "tensor-parallel traffic", "expert": "expert exchange", "pipeline": "stage transfers", "bubble": "bubble", "data": "gradients and shards"}
REMEDY = {
    "memory": "more fusion of what lies between the products",
    "tensor": "a smaller group, or a faster link inside the node",
    "expert": "experts nearer to each other",
    "pipeline": "fewer stages",
    "bubble": "more micro-batches or fewer stages",
    "data": "more tokens a GPU, a lower stage of ZeRO, or a faster network",
}


def view(model="llama3_70b", gpu="h100_sxm", network="infiniband_ndr", gpus=512, tensor=8, pipeline=4, expert=1, stage=1, recompute="selective", micro_batches=32, sequence=8192):
    """Memory of a GPU, the terms of a step and the busy GPUs, for this split."""
    shape, cluster = transformer(model), machine(gpu, network, share=fit_share())
    try:
        plan = split(shape, gpus, tensor=tensor, pipeline=pipeline, expert=expert, micro_batches=micro_batches, stage=stage, recompute=recompute)
    except Impossible as reason:
        return View(charts(None, None, None), f"This split is not possible: {reason}", dict.fromkeys(FACTS, "–"))
    use, took = memory_use(shape, sequence, plan, cluster), step(shape, sequence, plan, cluster)
    tokens = plan.sequences * sequence
    facts = (
        si(plan.data, ""),
        si(float(tokens), "token"),
        f"{si(use.total, 'byte')} of {si(use.capacity, 'byte')}",
        f"{use.largest}, {si(getattr(use, use.largest), 'byte')}",
        si(took.time, "s"),
        si(took.mfu, "%", 2),
        si(tokens / took.time, "token"),
        f"{si(bubble_over_total(pipeline, micro_batches), '%', 2)} of the pipeline's time, {si(took.bubble / took.time, '%', 2)} of the step",
    )
    return View(charts(use, took, plan), in_words(shape, gpus, sequence, plan, cluster, use, took), dict(zip(FACTS, facts, strict=True)))


class Impossible(ValueError):
    """Degrees that do not go together, and why."""


def split(shape, gpus, tensor, pipeline, expert, **rest):
    """The `Plan` with as many replicas as the GPUs allow. Raises Impossible, in words for the reader, if the degrees do not go together."""
    replicas, left_over = divmod(gpus, tensor * pipeline)
    if left_over:
        one = f"one copy of the model takes {tensor * pipeline} GPUs, {tensor} (tensor parallel) times {pipeline} (stages)"
        raise Impossible(f"{one}, and {si(gpus)} {'are too few' if not replicas else 'cannot be cut into such groups'}. More GPUs, a smaller group or fewer stages?")
    if pipeline > shape.layers:
        raise Impossible(f"the model has {shape.layers} layers, too few for {pipeline} stages.")
    if expert > 1 and not shape.experts:
        raise Impossible("this model has no experts to spread over ranks; set expert parallel back to one.")
    if expert > max(1, shape.experts):
        raise Impossible(f"the model has {shape.experts} experts, too few for {expert} ranks.")
    if replicas % expert:
        raise Impossible(f"experts are spread over groups of {expert} replicas of the model, and the number of replicas here is {si(replicas)}. More GPUs, or experts over fewer ranks?")
    return Plan(replicas, tensor, pipeline, expert, **rest)


def in_words(shape, gpus, sequence, plan, cluster, use, took):
    """Whether it fits, what a step loses most, and the one change that helps most."""
    room = f"{si(use.total, 'byte')} of {si(use.capacity, 'byte')}"
    best = changes(shape, gpus, sequence, plan, cluster)
    if not use.fits:
        head = f"Does not fit: {room}, most of it {use.largest}."
        fitting = [c for c in best if c[2].fits]
        if fitting:
            name, after, _ = max(fitting, key=lambda c: c[1].mfu)
            return f"{head} Change first: {name}. It then fits, at an MFU of {si(after.mfu, '%', 2)}."
        name, _, less = min(best, key=lambda c: c[2].total)
        return f"{head} No single change makes it fit; {name} comes nearest, with {si(less.total, 'byte')}."
    loss = took.largest_loss
    head = f"Fits: {room}. MFU {si(took.mfu, '%', 2)}. Beside arithmetic the step loses most to {SHOWN[loss]}: {si(getattr(took, loss) / took.time, '%', 2)} of it; that takes {REMEDY[loss]}."
    better = [c for c in best if c[2].fits and c[1].mfu > 1.01 * took.mfu]
    if not better:
        return f"{head} No single change of the split helps by more than a hundredth."
    name, after, _ = max(better, key=lambda c: c[1].mfu)
    return f"{head} Change first: {name}, for an MFU of {si(after.mfu, '%', 2)}."


def changes(shape, gpus, sequence, plan, cluster):
    """(name, step, memory) of each plan that differs in one thing, for the same batch but in the first."""
    same = {n: getattr(plan, n) for n in ("tensor", "pipeline", "expert", "micro_batches", "stage", "recompute")}
    tries = [
        ("twice the micro-batches (and the batch)", {"micro_batches": 2 * plan.micro_batches}),
        ("half the tensor-parallel group", {"tensor": plan.tensor // 2}),
        ("twice the tensor-parallel group", {"tensor": 2 * plan.tensor}),
        ("half the stages", {"pipeline": plan.pipeline // 2}),
        ("twice the stages", {"pipeline": 2 * plan.pipeline}),
        ("experts over half the ranks", {"expert": plan.expert // 2}),
        ("experts over twice the ranks", {"expert": 2 * plan.expert}),
        *((f"ZeRO at stage {s}", {"stage": s}) for s in (plan.stage - 1, plan.stage + 1) if 0 <= s <= 3),
        *(((f"{r} recomputation" if r != "none" else "no recomputation"), {"recompute": r}) for r in RECOMPUTE if r != plan.recompute),
    ]
    found = []
    for name, change in tries:
        try:
            other = split(shape, gpus, **same | change)
            if "micro_batches" not in change:
                m, left_over = divmod(plan.micro_batches * plan.data, other.data)
                if left_over or other.tensor > cluster.per_node:
                    continue
                other = replace(other, micro_batches=m)
            found.append((name, step(shape, sequence, other, cluster), memory_use(shape, sequence, other, cluster)))
        except (Impossible, BadArgument, ZeroDivisionError):  # a half of one, more stages than layers, and the like
            continue
    return found


def charts(use, took, plan):
    """Three charts on axes that stay where they are; empty ones if there is no plan."""
    memory = dict.fromkeys(PARTS, 0.0) if use is None else {p: getattr(use, p) for p in PARTS}
    capacity = 1.0 if use is None else use.capacity
    seconds = {n: 0.0 if took is None else took.terms[n] for n in SHOWN}
    whole = took.time if took else 1.0
    return (
        waterfall({n: (v / capacity, si(v, "byte", 2)) for n, v in memory.items()}, "memory a GPU, of its capacity", 2, "Does it fit?"),
        waterfall({SHOWN[n]: (v / whole, si(v, "s", 2)) for n, v in seconds.items()}, "share of the step", 1, "Where the step goes"),
        Chart(
            Axis("of the way through the step", "%", domain=(0, 1)),
            Axis("busy GPUs of a pipeline", "%", domain=(0, 1.05)),
            (Line(*busy(plan), "", "green"),) if plan else (Rule(y=0),),
            title="Fill and drain (1F1B, equal stages)",
            height=260,
        ),
    )


def waterfall(parts, label, top, title):
    """Bars one after the other; name -> (share, text). Cut off at the end of the axis, with a mark where one goes on."""
    start, at, begin, end, cut = 0.0, [], [], [], []
    for name, (share, text) in parts.items():
        at.append(f"{name}  {text}")
        begin.append(min(start, top))
        start += share
        end.append(min(start, top))
        if share and start > 1.0001 * top:  # the terms of a step end at the edge, give or take a rounding
            cut.append(at[-1])
    marks = [Rule(x=1, label="capacity")] if top > 1 else []
    if cut:
        marks.append(Points([top] * len(cut), cut, f"goes on: {si(start, '%', 2)} in all", color="orange", marker="triangle"))
    return Chart(
        Axis(label, "%", domain=(0, top)),
        Axis(scale="category", categories=at),
        (Bars(at, end, begin, color="blue"), *marks),
        title=title,
        height=260,
    )


@functools.lru_cache(maxsize=256)
def _busy(stages, micro_batches):
    run = simulate("1f1b", stages, micro_batches)
    n = 100
    shares = run.utilisation(run.span / n)
    return tuple((k + 0.5) / n for k in range(n)), shares[:n]


def busy(plan):
    """Share of the stages at work over the step."""
    return _busy(plan.pipeline, plan.micro_batches)


def names(find, keys):
    return {find(key).name: key for key in keys}


def explore():
    """The explorer of chapter 6."""
    return explorer(
        view,
        [
            Choice("model", "model", {entries("models")[key].name: key for key in MODELS}, "llama3_70b"),
            Choice("gpu", "GPU", names(accelerator, GPUS), "h100_sxm"),
            Choice("network", "network, a port a GPU", names(link, NETWORKS), "infiniband_ndr"),
            LogSlider("gpus", "GPUs", 8, 16384, 512, base=2),
            LogSlider("tensor", "tensor parallel", 1, 8, 8, base=2),
            LogSlider("pipeline", "pipeline stages", 1, 16, 4, base=2),
            LogSlider("expert", "expert parallel", 1, 8, 1, base=2),
            Choice("stage", "ZeRO", STAGES, 1),
            Choice("recompute", "recompute", RECOMPUTE, "selective"),
            LogSlider("micro_batches", "micro-batches a replica", 1, 128, 32, base=2),
            LogSlider("sequence", "sequence", 1024, 32768, 8192, base=2),
        ],
        caption="First make it fit, then look at what the step loses. The matrix products reach the share of peak that one published run set; nodes have eight GPUs.",
        alt="Three charts: the parts of a GPU's memory one after the other against its capacity; the terms of a training step as shares of it; "
        "and the share of busy stages from the start to the end of the step.",
    )
