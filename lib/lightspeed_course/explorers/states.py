"""Chapter 6: the sixteen bytes of a weight, on four GPUs, and what ZeRO takes away of them."""

from lightspeed.memory import zero_bytes_per_device
from lightspeed_course.explorers.shards import STAGES
from lightspeed_show import Axis, Boxes, Chart, Choice, Formula, Play, Text, View, explorer, si

GPUS = WEIGHTS = 4  # as many weights as GPUs, so that each owns one
# what is kept of a weight: (squares of two bytes, colour, the stage that shares it out)
KEPT = {"weight": (1, "blue", 3), "gradient": (1, "green", 2), "optimizer": (6, "purple", 1)}
PASSES = ("the forward pass", "the backward pass too", "the optimizer too")
SPLIT = {
    0: "weights + gradients + optimizer",
    1: "weights + gradients + optimizer / n",
    2: "weights + (gradients + optimizer) / n",
    3: "(weights + gradients + optimizer) / n",
}
SAYS = {
    0: "Plain data parallelism: every GPU keeps everything of every weight, four times the same.",
    1: "Each GPU steps one weight of its own, so it needs the optimizer's bytes of that one alone.",
    2: "And it needs the summed gradient of its own weight alone.",
    3: "Even the weights are shared out. What a GPU lacks it has to borrow before each pass.",
}


def holds(stage, kind, gpu, weight):
    """Whether a GPU keeps this of a weight: what is shared out, its owner alone does."""
    return stage < KEPT[kind][2] or gpu == weight


def view(stage, moment):
    """A row a GPU, a group of eight squares a weight, a square two bytes."""
    kinds = list(KEPT)[: moment + 1]
    side, pitch, left = 0.4, 4.0, 1.9
    frames, boxes_of = [], {kind: [] for kind in KEPT}
    for gpu in range(GPUS):
        top = 2.2 * (GPUS - gpu)
        for weight in range(WEIGHTS):
            place = 0
            for kind, (squares, *_) in KEPT.items():
                for square in range(squares):
                    x = left + weight * pitch + place * side
                    box = x + 0.03, x + side - 0.03, top - 1.4, top - 0.2
                    frames.append(box)
                    if kind in kinds and holds(stage, kind, gpu, weight):
                        boxes_of[kind].append((*box, f"{gpu}-{weight}-{kind}-{square}"))
                    place += 1
    marks = [Boxes(*zip(*frames, strict=True), color="grey", soft=True)]
    for kind, boxes in boxes_of.items():
        *sides, keys = zip(*(boxes or [(0, 0, 0, 0, "")]), strict=True)
        marks.append(Boxes(*sides, kind, color=KEPT[kind][1], keys=keys))
    marks += [Text(0.1, 2.2 * (GPUS - g) - 0.8, f"GPU {g}", "grey", "start") for g in range(GPUS)]
    marks += [Text(left + w * pitch + 4 * side, 9.3, f"weight {w + 1}", "grey")
              for w in range(WEIGHTS)]  # fmt: skip
    bytes_held = [2 * len(boxes_of[kind]) / GPUS for kind in KEPT]
    facts = {
        "kept by each GPU": f"{si(sum(bytes_held))} bytes of four weights",
        "that is": f"{si(sum(bytes_held) / WEIGHTS)} bytes a weight",
    }
    numbers = {"weights": (2, ""), "gradients": (2, ""), "optimizer": (12, "")}
    numbers |= {"n": (GPUS, "")} if stage else {}
    law = Formula("bytes a weight", SPLIT[stage], numbers,
                  (float(zero_bytes_per_device(1, GPUS, stage)), ""))  # fmt: skip
    chart = Chart(Axis(domain=(0, 17.5)), Axis(domain=(0, 9.7)), marks, height=280, bare=True)
    return View(chart, SAYS[stage], facts, len(PASSES), law, opens=len(PASSES) - 1)


def explore_states():
    """What training keeps of a weight, and where."""
    return explorer(
        view,
        [Choice("stage", "ZeRO", STAGES, 2),
         Play("moment", "what is needed by", len(PASSES) - 1,
              text=PASSES.__getitem__)],
        caption=(
            "Four weights on four GPUs; a square is two bytes. The optimizer has six squares for"
            " each weight: a precise copy, and two means, in four bytes each."
        ),
        alt=(
            "A row for each of four GPUs, with four groups of eight squares. With each stage of"
            " ZeRO more squares stay on the diagonal alone: the optimizer's, then the gradients',"
            " then the weights'."
        ),
    )  # fmt: skip
