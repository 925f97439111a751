"""Chapter 6: a training step in a pipeline, slot by slot, as the simulator runs it."""

import functools

from lightspeed.pipeline import bubble_over_total
from lightspeed_models.simulators.schedules import simulate
from lightspeed_show import (
    Axis,
    Bars,
    Chart,
    Choice,
    Formula,
    Play,
    Rule,
    Slider,
    View,
    explorer,
    si,
)

LOOKS = {
    "F": ("forward", "blue"),
    "B": ("backward", "orange"),
    "W": ("weight gradients", "green"),
}
NAMES = {
    "GPipe": "gpipe",
    "1F1B": "1f1b",
    "interleaved 1F1B, two chunks a GPU": "interleaved",
    "zero-bubble, first GPU as 1F1B": "zb_h1",
    "zero-bubble, more in flight": "zb_h2",
}
STAGES, MICRO_BATCHES = 8, 16  # the most of both
SPLIT = ("zb_h1", "zb_h2")
OPENS = 3  # the last GPU still waits for its first micro-batch


@functools.lru_cache(maxsize=64)
def run(schedule, stages, micro_batches):
    """The timeline; a backward pass takes two slots, half of it for the weights."""
    chunks = 2 if schedule == "interleaved" else 1
    return simulate(schedule, stages, micro_batches, 1.0, 2.0, chunks=chunks)


def moments(timeline):
    """How many there are: before the first slot, and after each half slot or slot."""
    return round(timeline.span * timeline.chunks) + 1


def doing(timeline, time):
    """For each GPU the pass that runs just before this time, or None."""
    states = [None] * timeline.stages
    for each in timeline.passes:
        if each.start < time <= each.end:
            states[each.work.stage] = each
    return states


def idle_so_far(timeline, time):
    """The share of the GPU time up to here in which nothing ran."""
    work = sum(max(0.0, min(each.end, time) - each.start) for each in timeline.passes)
    return 1 - work / (timeline.stages * time) if time else 0.0


def held(timeline, time):
    """For each GPU the micro-batches whose activations it keeps, a chunk as a share of one."""
    last = "W" if timeline.schedule in SPLIT else "B"
    counts = [0] * timeline.stages
    for each in timeline.passes:
        counts[each.work.stage] += each.work.kind == "F" and each.start < time
        counts[each.work.stage] -= each.work.kind == last and each.end <= time
    return [k / timeline.chunks for k in counts]


def view(schedule, stages, micro_batches, moment):
    """The pipeline after some slots: a bar for each pass that has begun, cut off at that time."""
    if schedule == "interleaved" and micro_batches % stages:
        words = (
            "Not possible: groups of as many micro-batches as there are stages go round the chunks"
            f" together, and {micro_batches} is no multiple of {stages}."
        )
        return View(gantt(stages, float(micro_batches)), words, facts("–", "–", "–", "–"), 1)
    timeline = run(schedule, stages, micro_batches)
    time = moment / timeline.chunks
    running = [each is not None for each in doing(timeline, time)]
    facts_shown = facts(
        f"{time:g} of {timeline.span:g} slots",
        f"{sum(running)} of {stages}",
        si(idle_so_far(timeline, time), "%", 2),
        f"{max(held(timeline, time)):g} now, {max(timeline.peak_activations):g} at the peak",
    )
    words = verdict(timeline, time, running)
    chart = gantt(stages, timeline.span, timeline, time)
    return View(chart, words, facts_shown, moments(timeline), bubble(timeline), opens=OPENS)


def bubble(timeline):
    """The law of the idle share, for the schedules that it is a law of."""
    if timeline.schedule in SPLIT:
        return None
    names = {"p": (timeline.stages, ""), "m": (timeline.micro_batches, "")}
    chunks = {"v": (timeline.chunks, "")} if timeline.chunks > 1 else {}
    idle = bubble_over_total(timeline.stages, timeline.micro_batches, timeline.chunks)
    expression = f"(p - 1) / ({'v * ' if chunks else ''}m + p - 1)"
    return Formula("bubble", expression, names | chunks, (idle, "%"))


def facts(*values):
    names = ("time", "GPUs at work", "idle so far", "most micro-batches held")
    return dict(zip(names, values, strict=True))


def verdict(timeline, time, running):
    """What the GPUs that do nothing are waiting for."""
    if time == 0:
        return (
            f"{timeline.stages} GPUs hold a stage each, and {timeline.micro_batches} micro-batches"
            " wait in front of GPU 0. Press play, or step."
        )
    if time >= timeline.span:
        over = si(timeline.bubble_over_total, "%", 2), si(timeline.bubble_over_ideal, "%", 2)
        return f"Done. {over[0]} of the GPU time was idle, or {over[1]} of the time of the work."
    passes = [timeline.of(i) for i in range(timeline.stages)]
    early, late, between = [], [], []
    for gpu, busy in enumerate(running):
        if not busy and time <= passes[gpu][0].start:
            early.append(gpu)
        elif not busy:
            (late if time > passes[gpu][-1].end else between).append(gpu)
    sentences = [
        who(early, "has no work yet", "have no work yet"),
        who(between, "waits for another GPU", "wait for other GPUs"),
        who(late, "is done", "are done"),
    ]
    why = "; ".join(filter(None, sentences)) or "Every GPU works"
    return f"After {time:g} slot{'s' * (time != 1)}. {why}."


def who(gpus, one, several):
    """What these GPUs do, in words; nothing if there are none."""
    if not gpus:
        return ""
    *others, last = gpus
    return (
        f"GPUs {', '.join(map(str, others))} and {last} {several}"
        if others
        else (f"GPU {last} {one}")
    )


def gantt(stages, span, timeline=None, time=0.0):
    marks = []
    for kind, (label, color) in LOOKS.items() if timeline else ():
        passes = [each for each in timeline.passes if each.work.kind == kind]
        if passes:
            marks.append(bars(passes, label, color, time))
    if 0 < time < span:
        marks.append(Rule(x=time, dash=False))
    return Chart(
        Axis("time, in forward passes of a stage", domain=(0, span)),
        Axis(scale="category", categories=[f"GPU {i}" for i in range(stages)]),
        marks,
        height=38 * stages + 100,
    )


def bars(passes, label, color, time):
    """A bar a pass; those that have not begun have no length yet."""
    return Bars(
        [f"GPU {each.work.stage}" for each in passes],
        [min(each.end, max(each.start, time)) for each in passes],
        [each.start for each in passes],
        label=label,
        labels=[str(each.work.micro_batch + 1) if each.start < time else "" for each in passes],
        color=color,
        width=0.85,
        keys=[
            f"{w.kind}{w.micro_batch}-{w.stage}-{w.chunk}" for w in (each.work for each in passes)
        ],
    )


def explore_schedules():
    """The pipeline of chapter 6, played."""
    most = max(
        moments(run(schedule, stages, micro_batches))
        for schedule in NAMES.values()
        for stages in (2, STAGES)
        for micro_batches in (MICRO_BATCHES,)
        if schedule != "interleaved" or micro_batches % stages == 0
    )
    return explorer(
        view,
        [
            Choice("schedule", "schedule", NAMES, "1f1b"),
            Slider("stages", "stages", 2, STAGES, 4),
            Slider("micro_batches", "micro-batches", 1, MICRO_BATCHES, 8),
            Play("moment", "moment", most - 1),
        ],
        caption="Blank space is time that you pay for. Numbers in the bars are micro-batches.",
        alt=(
            "A timeline with a row for each GPU of a pipeline. It fills from the left: forward"
            " passes go down the rows as a staircase, backward passes climb back up, and what stays"
            " blank is the bubble."
        ),
    )
