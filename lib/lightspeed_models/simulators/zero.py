"""One training step with ZeRO, event by event: which shards a GPU holds, and what it has sent.

What chapter 6 animates, and a check of its formulas for traffic and memory. A model is some equal
layers. Weights and gradients are counted in layers; all GPUs do the same at the same time.

Source: Rajbhandari et al., "ZeRO: Memory Optimizations Toward Training Trillion Parameter Models"
(2020).
"""

from dataclasses import dataclass, replace

from lightspeed.law import checked, count

RANKS = count(low=2, hint="n counts the GPUs that share the states.")
STAGE = count(low=0, high=3, hint="0 is plain data parallelism, 3 is FSDP.")


@dataclass(frozen=True)
class Event:
    """What happens next to one layer, or to all of them (layer None), on every GPU."""

    kind: str  # gather, forward, backward, scatter, drop, update
    layer: int | None = None


@dataclass(frozen=True)
class Held:
    """What each GPU holds: for each layer whether its weights and its gradients are "whole",
    a "shard" or "none"; and the layers' worth of weights and gradients that it has sent.
    """

    weights: tuple[str, ...]
    gradients: tuple[str, ...]
    sent_weights: float = 0.0
    sent_gradients: float = 0.0


def step_events(stage: int, layers: int, micro_batches: int = 1) -> tuple[Event, ...]:
    """The events of one step at a stage of ZeRO.

    Stage 3 gathers a layer before each pass over it and drops it afterwards. From stage 2 on the
    gradients of a layer are scattered as soon as they are there, below it once a step. Below stage
    3 the weights are whole again at the end: gathered, or from stage 0 the gradients were.

    >>> [e.kind for e in step_events(3, 1)]
    ['gather', 'forward', 'drop', 'gather', 'backward', 'scatter', 'drop', 'update']
    """
    stage = int(checked("step_events", "stage", stage, STAGE))
    layers = int(checked("step_events", "layers", layers, count()))
    m = int(checked("step_events", "micro_batches", micro_batches, count()))
    events: list[Event] = []

    def passes(kind: str, order: range) -> None:
        for layer in order:
            events.extend([Event("gather", layer)] * (stage == 3))
            events.append(Event(kind, layer))
            events.extend([Event("scatter", layer)] * (stage >= 2 and kind == "backward"))
            events.extend([Event("drop", layer)] * (stage == 3))

    for _ in range(m):
        passes("forward", range(layers))
        passes("backward", range(layers - 1, -1, -1))
    if stage < 2:
        events += [Event("scatter", layer) for layer in range(layers)]
    if stage == 0:
        events += [Event("gather gradients", layer) for layer in range(layers)]
    events.append(Event("update"))
    if stage in (1, 2):
        events += [Event("gather", layer) for layer in range(layers)]
    return tuple(events)


def step_states(stage: int, n: int, layers: int, micro_batches: int = 1) -> tuple[Held, ...]:
    """What each of n GPUs `Held` before the first event of a step and after each.

    A gather and a scatter of a layer both send the n - 1 parts of n that others have or need.

    >>> last = step_states(3, 4, 1)[-1]
    >>> last.sent_weights, last.sent_gradients
    (1.5, 0.75)
    """
    n = int(checked("step_states", "n", n, RANKS))
    part = (n - 1) / n
    now = Held(("shard" if stage == 3 else "whole",) * layers, ("none",) * layers)
    states = [now]
    for event in step_events(stage, layers, micro_batches):
        now = _after(event, now, stage, part)
        states.append(now)
    return tuple(states)


def _after(event: Event, now: Held, stage: int, part: float) -> Held:
    def put(states: tuple[str, ...], value: str) -> tuple[str, ...]:
        return tuple(value if i == event.layer else s for i, s in enumerate(states))

    if event.kind == "gather":
        more = now.sent_weights + part
        return replace(now, weights=put(now.weights, "whole"), sent_weights=more)
    if event.kind == "gather gradients":
        more = now.sent_gradients + part
        return replace(now, gradients=put(now.gradients, "whole"), sent_gradients=more)
    if event.kind == "drop":
        return replace(now, weights=put(now.weights, "shard"))
    if event.kind == "backward":
        return replace(now, gradients=put(now.gradients, "whole"))
    if event.kind == "scatter":
        more = now.sent_gradients + part
        return replace(now, gradients=put(now.gradients, "shard"), sent_gradients=more)
    if event.kind == "update":
        # A GPU updates the part of the weights whose sums it has, all of them at stage 0.
        state = "shard" if stage else "whole"
        empty = ("none",) * len(now.gradients)
        return replace(now, weights=(state,) * len(now.weights), gradients=empty)
    return now
