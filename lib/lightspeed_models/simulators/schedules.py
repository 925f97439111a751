"""Pipeline schedules that run: GPipe, 1F1B, interleaved 1F1B and zero-bubble. Used in chapter 6.

A schedule is an order of work for each GPU; `simulate` runs the orders: a piece of work starts when
its GPU is free and its input has arrived. F is a forward pass, B a backward pass; zero-bubble
schedules cut B in two: B makes the gradient that the stage before waits for, W the gradient of the
weights. The bubbles of equal stages in closed form are `lightspeed.pipeline`, whose words and
sources these are.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from lightspeed.errors import BadArgument, one_of
from lightspeed.law import checked, nonnegative, positive
from lightspeed.pipeline import CHUNKS, MICRO_BATCHES, STAGES

SCHEDULES = ("gpipe", "1f1b", "interleaved", "zb_h1", "zb_h2")
SPLIT = ("zb_h1", "zb_h2")


# ---------------------------------------------------------------- the order of work on each GPU


@dataclass(frozen=True)
class Work:
    """One pass over one micro-batch: kind F, B or W, on a GPU (`stage`), of a chunk of that GPU."""

    kind: str
    micro_batch: int
    stage: int
    chunk: int = 0


def order(
    schedule: str, stages: int, micro_batches: int, chunks: int = 1
) -> tuple[list[Work], ...]:
    """For each GPU the `Work` it does, in order.

    Raises BadArgument for an unknown schedule, for chunks on one that has none, and for an
    interleaved schedule whose micro-batches are no multiple of its stages.

    >>> [w.kind for w in order("1f1b", 2, 3)[0]]
    ['F', 'F', 'B', 'F', 'B', 'B']
    """
    this = "order"
    one_of(this, "schedule", schedule, SCHEDULES)
    p = int(checked(this, "stages", stages, STAGES))
    m = int(checked(this, "micro_batches", micro_batches, MICRO_BATCHES))
    v = int(checked(this, "chunks", chunks, CHUNKS))
    if schedule == "interleaved":
        if m % p:
            expected = f"a multiple of the {p} stages when interleaved"
            hint = "Groups of as many micro-batches as stages go round the chunks together."
            raise BadArgument(this, "micro_batches", m, expected, hint)
        return tuple(_interleaved(i, p, m, v) for i in range(p))
    if v > 1:
        hint = "Only the interleaved schedule gives a GPU several chunks."
        raise BadArgument(this, "chunks", v, f"1 for {schedule}", hint)
    if schedule in SPLIT:
        return tuple(_zero_bubble(i, p, m, eager=schedule == "zb_h2") for i in range(p))
    return tuple(_one_chunk(i, m, m if schedule == "gpipe" else p - i) for i in range(p))


def _one_chunk(stage: int, m: int, ahead: int) -> list[Work]:
    """`ahead` forward passes (all of them: GPipe), then one backward for each further forward."""
    ahead = min(ahead, m)
    work = [Work("F", k, stage) for k in range(ahead)]
    for k in range(m):
        work.append(Work("B", k, stage))
        if k + ahead < m:
            work.append(Work("F", k + ahead, stage))
    return work


def _interleaved(stage: int, p: int, m: int, v: int) -> list[Work]:
    """Megatron's order: micro-batches in groups of p, each through all chunks before the next."""
    groups = [(group, c) for group in range(0, m, p) for c in range(v)]
    forward = [Work("F", group + k, stage, c) for group, c in groups for k in range(p)]
    backward = [Work("B", group + k, stage, v - 1 - c) for group, c in groups for k in range(p)]
    ahead = (p - stage - 1) * 2 + (v - 1) * p + 1 if v > 1 else p - stage
    work = forward[:ahead]  # the whole of it when there are fewer
    for k, b in enumerate(backward):
        work += [b, *forward[ahead + k : ahead + k + 1]]
    return work


def _zero_bubble(stage: int, p: int, m: int, eager: bool) -> list[Work]:
    """Weight gradients wait until the pipeline would be idle: later stages put off more of them.

    `eager` (zb_h2) also runs about twice as many forward passes ahead, and pays for them in memory.
    """
    ahead, delay = (2 * (p - stage) - 1, 2 * stage) if eager else (p - stage, stage)
    work, count = [], 0
    for w in _one_chunk(stage, m, ahead):
        work.append(w)
        if w.kind == "B" and w.micro_batch >= delay:
            work.append(Work("W", count, stage))
            count += 1
    return work + [Work("W", k, stage) for k in range(count, m)]


# ---------------------------------------------------------------- running it


@dataclass(frozen=True)
class Pass:
    """A piece of `work` with its start and end in s."""

    work: Work
    start: float
    end: float


@dataclass(frozen=True)
class Timeline:
    """What ran when. Shares are of GPU time: `stages` x the span of the step."""

    schedule: str
    stages: int
    micro_batches: int
    chunks: int
    passes: tuple[Pass, ...]

    @property
    def span(self) -> float:
        """Seconds from the first start to the last end."""
        return max(p.end for p in self.passes)

    @property
    def busy(self) -> tuple[float, ...]:
        """Seconds of work of each GPU."""
        return tuple(math.fsum(p.end - p.start for p in self.of(i)) for i in range(self.stages))

    @property
    def bubble_over_total(self) -> float:
        """Idle share of the GPU time of the whole step."""
        return 1 - math.fsum(self.busy) / (self.stages * self.span)

    @property
    def bubble_over_ideal(self) -> float:
        """Idle time over the time that the busiest GPU works."""
        return self.span / max(self.busy) - 1

    @property
    def window(self) -> float:
        """The longest time from a GPU's first start to its own last end: that from step to step, if
        none need wait for the others.
        """
        return max(self.of(i)[-1].end - self.of(i)[0].start for i in range(self.stages))

    @property
    def peak_activations(self) -> tuple[float, ...]:
        """For each GPU the most micro-batches whose activations it holds until the last pass that
        reads them; a chunk counts as 1 / chunks of a stage.
        """
        last = "W" if self.schedule in SPLIT else "B"
        peaks = []
        for i in range(self.stages):
            live = most = 0
            for p in self.of(i):
                live += (p.work.kind == "F") - (p.work.kind == last)
                most = max(most, live)
            peaks.append(most / self.chunks)
        return tuple(peaks)

    def of(self, stage: int) -> list[Pass]:
        """The passes of one GPU, in order."""
        return [p for p in self.passes if p.work.stage == stage]

    def utilization(self, step: float) -> tuple[float, ...]:
        """Share of GPUs busy in each interval of `step` seconds, the last one cut short."""
        n = math.ceil(self.span / step - 1e-9)
        busy = [0.0] * n
        for p in self.passes:
            # A pass is spread over the intervals that it touches.
            for k in range(int(p.start / step), min(n, math.ceil(p.end / step))):
                busy[k] += max(0.0, min(p.end, (k + 1) * step) - max(p.start, k * step))
        return tuple(
            b / (self.stages * min(step, self.span - k * step)) for k, b in enumerate(busy)
        )


def simulate(
    schedule: str,
    stages: int,
    micro_batches: int,
    forward: float | Sequence[float] = 1.0,
    backward: float | Sequence[float] = 2.0,
    weight: float | Sequence[float] | None = None,
    transfer: float = 0.0,
    chunks: int = 1,
) -> Timeline:
    """The `Timeline` of one step.

    forward, backward: seconds of a whole stage for one micro-batch, one number or one for each
    stage; a chunk takes its share. backward includes the weight gradients; `weight` says how much
    of it they are, half if not given (only zero-bubble schedules tell them apart). transfer:
    seconds between two GPUs, beside the work. Raises BadArgument.

    >>> simulate("1f1b", 4, 4, backward=1.0).span
    14.0
    """
    orders = order(schedule, stages, micro_batches, chunks)
    p, v = len(orders), chunks
    seconds = {"F": _times("forward", forward, p), "B": _times("backward", backward, p)}
    seconds["W"] = _times("weight", [b / 2 for b in seconds["B"]] if weight is None else weight, p)
    if schedule in SPLIT:
        if any(w >= b for w, b in zip(seconds["W"], seconds["B"], strict=True)):
            expected, hint = "less than backward at every stage", "It is a part of backward."
            raise BadArgument("simulate", "weight", weight, expected, hint)
        seconds["B"] = [b - w for b, w in zip(seconds["B"], seconds["W"], strict=True)]
    transfer = checked("simulate", "transfer", transfer, nonnegative("s"))
    return Timeline(schedule, p, int(micro_batches), int(v), _run(orders, seconds, transfer, p, v))


def _run(
    orders: Sequence[Sequence[Work]],
    seconds: dict[str, list[float]],
    transfer: float,
    p: int,
    v: int,
) -> tuple[Pass, ...]:
    """Every GPU does its next piece of work as soon as it can, until none is left."""
    finish: dict[Work, float] = {}
    passes, free, at = [], [0.0] * p, [0] * p
    last = p * v - 1
    waiting = set(range(p))
    while waiting:
        for i in tuple(waiting):
            while at[i] < len(orders[i]):
                work = orders[i][at[i]]
                before = _needs(work, p, last)
                if any(need not in finish for need in before):
                    break
                arrivals = [finish[n] + (transfer if n.stage != i else 0.0) for n in before]
                start = max([free[i], *arrivals])
                free[i] = finish[work] = start + seconds[work.kind][i] / v
                passes.append(Pass(work, start, free[i]))
                at[i] += 1
            else:
                waiting.discard(i)
    return tuple(sorted(passes, key=lambda q: (q.start, q.work.stage)))


def _needs(work: Work, p: int, last: int) -> list[Work]:
    """What must have ended before `work` can start: its micro-batch's pass next to it."""
    k, here = work.micro_batch, work.chunk * p + work.stage

    def at(kind: str, place: int) -> Work:
        return Work(kind, k, place % p, place // p)

    if work.kind == "F":
        return [at("F", here - 1)] if here else []
    if work.kind == "B":
        return [at("B", here + 1) if here < last else at("F", here)]
    return [at("B", here)]


def _times(name: str, value: Any, p: int) -> list[float]:
    """One number for each stage, from one number or p of them."""
    values = list(value) if hasattr(value, "__len__") else [value] * p
    if len(values) != p:
        raise BadArgument("simulate", name, value, f"one time, or one for each of the {p} stages")
    return [checked("simulate", name, v, positive("s")) for v in values]
