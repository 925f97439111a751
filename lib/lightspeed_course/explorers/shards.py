"""Chapter 6 in motion: what ZeRO keeps, gathers and drops, as its simulator runs it."""

import functools

from lightspeed.parallel import data_parallel_bytes
from lightspeed_models.simulators.zero import step_events, step_states
from lightspeed_show import (
    Axis,
    Boxes,
    Chart,
    Choice,
    Formula,
    Play,
    Slider,
    Text,
    View,
    explorer,
    si,
)

LAYERS, MOST_GPUS, MICRO_BATCHES = 4, 4, 3
OPENS = 7  # of stage 3: two layers used and dropped, the third just gathered
PARAMETERS = 8e9  # of the model, for the bytes; weights and gradients in two bytes
STAGES = {"0 (DDP)": 0, "1 (optimizer)": 1, "2 (and gradients)": 2, "3 (and weights)": 3}
DOES = {
    "gather": "gathers the weights of",
    "gather gradients": "gathers the summed gradients of",
    "forward": "runs the forward pass of",
    "backward": "runs the backward pass of",
    "scatter": "sends off the gradients and keeps the sum of its own shard of",
    "drop": "drops what it does not own of",
}
# What a GPU sends in a step beside the share (n - 1) / n, as the chapter writes it.
SENT = {0: "2 * G", 1: "(G + W)", 2: "(m * G + W)", 3: "(m * G + 2 * m * W)"}
LEFT, WIDE, FULL = 2.0, 6.6, 13.8


@functools.lru_cache(maxsize=32)
def run(stage, gpus, micro_batches):
    return step_states(stage, gpus, LAYERS, micro_batches), step_events(
        stage, LAYERS, micro_batches
    )


def layers_held(states, gpus):
    """Layers' worth that a GPU holds of something."""
    return sum({"whole": 1.0, "shard": 1 / gpus, "none": 0.0}[s] for s in states)


def view(stage, gpus, micro_batches, moment):
    """Which parts of weights and gradients each GPU holds after some events, and what it sent."""
    states, events = run(stage, gpus, micro_batches)
    now, layer = states[moment], 2 * PARAMETERS / LAYERS  # bytes of a layer
    most = [
        max(layers_held(getattr(s, what), gpus) for s in states)
        for what in ("weights", "gradients")
    ]
    traffic = (now.sent_weights + now.sent_gradients) * layer
    facts = {
        "event": f"{moment} of {len(events)}",
        "weights held": held_in_words(layers_held(now.weights, gpus) * layer, most[0] * layer),
        "gradients held": held_in_words(layers_held(now.gradients, gpus) * layer, most[1] * layer),
        "sent by each GPU": si(traffic, "byte"),
        "in times its weights": si(traffic / (2 * PARAMETERS)),
    }
    return View(
        picture(gpus, now, (None, *events)[moment], (*events, None)[moment]),
        verdict(stage, moment, events, traffic),
        facts,
        len(events) + 1,
        sent_in_a_step(stage, gpus, micro_batches),
        opens=OPENS,
    )


def sent_in_a_step(stage, gpus, micro_batches):
    """The law of what each GPU sends, for this stage of ZeRO."""
    size = (2 * PARAMETERS, "byte")
    names = {"n": (gpus, ""), "G": size}
    names |= {"W": size} if stage else {}
    names |= {"m": (micro_batches, "")} if stage > 1 else {}
    law = data_parallel_bytes(PARAMETERS, gpus, stage, micro_batches)
    return Formula("sent in a step", f"(n - 1) / n * {SENT[stage]}", names, (float(law), "byte"))


def held_in_words(now, most):
    return f"{si(now, 'byte')}, {si(most, 'byte')} at most"


def verdict(stage, moment, events, traffic):
    if moment == 0:
        whole = "its shard of every layer" if stage == 3 else "all weights"
        return f"Before the step each GPU holds {whole}. Press play, or step."
    if moment == len(events):
        return f"Done: the step is over, and each GPU has sent {si(traffic, 'byte')}."
    event = events[moment - 1]
    if event.layer is None:
        mine = "its shard of the weights" if stage else "all weights"
        return f"Each GPU updates {mine}, and forgets the gradients."
    return f"Each GPU {DOES[event.kind]} layer {event.layer + 1}."


def picture(gpus, now, event, following):
    """A row a GPU; weights on the left, gradients on the right, a block a shard of each layer.

    What is sent is drawn on its way: a block that is gathered next lies unseen on its owner's, and
    so does one that was just sent off to its owner.
    """
    high = 8.4 / gpus
    kinds = {"weights": [], "gradients": [], "now": []}
    frames, words = [], []
    for gpu in range(gpus):
        top = 8.6 - gpu * high
        words.append(Text(0.2, top - high / 2, f"GPU {gpu}", "grey", "start"))
        for what, left in (("weights", LEFT), ("gradients", LEFT + WIDE + 0.6)):
            wide = WIDE / LAYERS
            for layer, state in enumerate(getattr(now, what)):
                x = left + layer * wide
                frames.append((x + 0.06, x + wide - 0.06, top - high + 0.14, top - 0.14))
                parts = {"whole": range(gpus), "shard": (gpu,), "none": ()}[state]
                touched = event is not None and event.layer == layer and meant(event.kind) == what
                for part in parts:
                    step = (wide - 0.12) / gpus
                    box = x + 0.06 + part * step, x + 0.06 + (part + 1) * step
                    place = (*box, top - high + 0.14, top - 0.14)
                    kind = kinds["now" if touched else what]
                    kind.append((*place, f"{what}-{layer}-{part}-{gpu}"))
                    if part == gpu and what in (
                        moved(following, layer, "gather"),
                        moved(event, layer, "scatter"),
                    ):
                        others = [other for other in range(gpus) if other != gpu]
                        kind += [(*place, f"{what}-{layer}-{part}-{other}") for other in others]
    looks = {
        "weights": ("weights", "blue"),
        "gradients": ("gradients", "purple"),
        "now": ("in use now", "orange"),
    }
    marks = [Boxes(*zip(*frames, strict=True), color="grey", soft=True)]
    for state, boxes in kinds.items():
        *sides, keys = zip(*(boxes or [(0, 0, 0, 0, "")]), strict=True)
        label, color = looks[state]
        marks.append(Boxes(*sides, label, color=color, keys=keys))
    heads = [Text(LEFT, 9.3, "weights, layer by layer", "grey", "start"),
             Text(LEFT + WIDE + 0.6, 9.3, "gradients", "grey", "start")]  # fmt: skip
    return Chart(
        Axis(domain=(0, 16)), Axis(domain=(0, 10)), [*marks, *words, *heads], height=300, bare=True
    )


def moved(event, layer, kind):
    """What of this layer the event sends, if it is of this kind."""
    here = event is not None and event.layer == layer and event.kind.startswith(kind)
    return meant(event.kind) if here else None


def meant(kind):
    """What an event works on."""
    return "gradients" if kind in ("backward", "scatter", "gather gradients") else "weights"


def explore_shards():
    """A step with ZeRO: shards gathered and dropped."""
    most = len(step_events(3, LAYERS, MICRO_BATCHES))
    return explorer(
        view,
        [
            Choice("stage", "ZeRO", STAGES, 3),
            Slider("gpus", "GPUs", 2, MOST_GPUS, 4),
            Slider("micro_batches", "micro-batches", 1, MICRO_BATCHES, 1),
            Play("moment", "event", most),
        ],
        caption=(
            f"A model of {LAYERS} layers and {si(PARAMETERS, 'parameter')}, weights and gradients"
            " in two bytes. A block is a GPU's share of a layer."
        ),
        alt=(
            "A row for each GPU with the weights of four layers on the left and their gradients on"
            " the right, cut into one block for each GPU. As the step goes on, blocks are gathered,"
            " used and dropped, or they stay."
        ),
    )
