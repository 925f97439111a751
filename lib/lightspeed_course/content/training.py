"""What the formulas of training.md call."""

from __future__ import annotations

from lightspeed import training as t
from lightspeed.catalog import accelerator
from lightspeed_course.practice.derivation import derivation, step
from lightspeed_course.practice.questions import Misconception, Parameter, Question

CHAPTER = "03_amdahl_gustafson"


def percent(*choices):
    """A share, shown in per cent; the first one is canonical."""
    return Parameter(100 * choices[0], tuple(100 * c for c in choices), "%")


per_token = Question(
    id="training.flops_per_parameter",
    chapter=CHAPTER,
    level="recall",
    prompt=(
        "How many FLOPs does training cost for each parameter and token, attention scores left out"
        " and nothing recomputed?"
    ),
    parameters={},
    expected=lambda: t.training_flops(1, 1),
    unit="FLOP",
    tolerance=0,
    solution=(
        lambda: derivation(
            step(
                "Forward, each parameter is multiplied with something and added up.",
                "1[FLOP] + 1[FLOP]",
            ),
            "Backward, the same is done for the gradient of the input, and once more for the"
            " gradient of the weight.",
            step("Three passes.", "3 * 2[FLOP]", (t.training_flops(1, 1), "FLOP")),
        )
    ),
    misconceptions=(
        Misconception(
            "forward only", lambda: 2, "That is inference. What else does a training step do?"
        ),
        Misconception(
            "backward only", lambda: 4, "That is the backward pass. The forward pass came first."
        ),
        Misconception(
            "forward done twice",
            lambda: t.training_flops(1, 1, recomputed=1),
            "That counts a forward pass repeated to save memory: work of the hardware, not of the"
            " model.",
        ),
        Misconception(
            "a multiply-add is one",
            lambda: 3,
            "Three passes is right. How many FLOPs is a multiply-add?",
        ),
    ),
)


def run(flops, n, key, utilization):
    return t.training_time(flops, n, accelerator(key).bf16, utilization)


def reached(params, rate, key, per_token):
    return per_token * params * rate / accelerator(key).bf16
