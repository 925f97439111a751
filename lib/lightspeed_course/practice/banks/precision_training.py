"""Questions of chapter 5 on training in eight bits and in four: what a scale saves, and what only a
wider copy does.
"""

from __future__ import annotations

from lightspeed.precision import FORMATS
from lightspeed_course.practice.banks.precision import CHAPTER, one_of
from lightspeed_course.practice.derivation import derivation, step
from lightspeed_course.practice.questions import Misconception, Parameter, Question, register
from lightspeed_show.format import plain

NARROW = ("fp8_e4m3", "fp8_e5m2", "fp4_e2m1")


def vanishes(amax, name, smallest="smallest_subnormal", largest=None):
    """Below this magnitude a tensor of these loses its numbers, with a scale of its own."""
    scale = amax / (largest or FORMATS[name].max)
    return scale * getattr(FORMATS[name], smallest) / 2


tensor_scale = Question(
    id="precision.tensor_scale",
    chapter=CHAPTER,
    level="apply",
    prompt=(
        "The largest gradient of a layer is {{amax}}. The tensor is stored in {{name}} with a scale"
        " of its own, so that this gradient takes the largest number of the format. Below which"
        " magnitude do gradients round to zero?"
    ),
    parameters={
        "amax": one_of(3e-6, 3e-6, 1e-5, 2e-4, 5e-3, show=plain),
        "name": one_of("fp8_e4m3", *NARROW),
    },
    expected=vanishes,
    tolerance=0.02,
    solution=lambda amax, name: derivation(
        step(
            "The scale is what one stands for.",
            "amax / largest",
            amax=amax,
            largest=FORMATS[name].max,
        ),
        step(
            "Rounding to nearest sends to zero what is below half of the smallest number above it.",
            "smallest / 2",
            smallest=FORMATS[name].smallest_subnormal,
        ),
        step(
            "In the units of the gradients.",
            "scale * half",
            vanishes(amax, name),
            scale=amax / FORMATS[name].max,
            half=FORMATS[name].smallest_subnormal / 2,
        ),
    ),
    smaller="precision.smallest",
    misconceptions=(
        Misconception(
            "without a scale",
            lambda amax, name: FORMATS[name].smallest_subnormal / 2,
            "That is where the format itself goes to zero. What does the scale make of it?",
        ),
        Misconception(
            "the smallest number, not half of it",
            lambda amax, name: 2 * vanishes(amax, name),
            "A number a little below the smallest one is rounded up to it. From where on down is"
            " zero nearer?",
        ),
        Misconception(
            "the smallest normal number",
            lambda amax, name: vanishes(amax, name, "smallest_normal"),
            "There full precision ends. Below it the format still has numbers.",
        ),
        Misconception(
            "the smallest normal number, not half of it",
            lambda amax, name: 2 * vanishes(amax, name, "smallest_normal"),
            "There full precision ends. Below it the format still has numbers.",
        ),
        Misconception(
            "the scale itself",
            lambda amax, name: amax / FORMATS[name].max,
            "That is the scale, what a stored one stands for. Which stored number is the first to"
            " become zero?",
            slight=True,
        ),
        Misconception(
            "the format alone, and not half",
            lambda amax, name: FORMATS[name].smallest_subnormal,
            "The format itself has that number. What does the scale make of it, and what does"
            " rounding?",
            slight=True,
        ),
        Misconception(
            "a scale up to one",
            lambda amax, name: vanishes(amax, name, largest=1.0),
            "That scale takes the largest gradient to one. How far does the format reach?",
        ),
    ),
    holds={
        "so that this gradient takes the largest number": "definition: a premise",
        "The largest gradient of a layer is": "definition: a premise",
        "A number a little below the smallest": lambda amax, name: (
            FORMATS[name].round(0.9 * FORMATS[name].smallest_subnormal)
            == FORMATS[name].smallest_subnormal
        ),
        "Below it the format still has numbers": lambda amax, name: (
            0 < FORMATS[name].smallest_subnormal < FORMATS[name].smallest_normal
        ),
        "That scale takes the largest gradient to one": "definition: of the slip",
        "Rounding to nearest sends to zero": lambda amax, name: (
            FORMATS[name].round(0.49 * FORMATS[name].smallest_subnormal) == 0
            and FORMATS[name].round(0.51 * FORMATS[name].smallest_subnormal)
            == FORMATS[name].smallest_subnormal
        ),
    },
)


def kept(weight, share, name):
    """Whether rounding to nearest keeps an update of this share of a weight."""
    return weight * share > FORMATS[name].spacing(weight) / 2


master_weights = Question(
    id="precision.claim_narrow_weights",
    chapter=CHAPTER,
    level="judge",
    kind="choice",
    prompt=(
        "“Our weights are about {{weight}}, and a step adds {{share}} of that. We drop the master"
        " copy and keep the weights in {{name}}, with a power of two as the tensor's scale and"
        " rounding to nearest. They will go on learning.” Does the claim hold?"
    ),
    parameters={
        "weight": one_of(0.7, 0.05, 0.3, 0.7, 1.4, show=plain),
        "share": Parameter(1, (0.01, 0.1, 1, 10), "%"),
        "name": one_of("fp8_e4m3", "fp8_e4m3", "bf16", "fp32"),
    },
    options={
        "holds": "It holds: a step is more than half the distance to the next number.",
        "lost": "It fails: each step is rounded away.",
        "range": "It fails: the updates are below the smallest number of the format.",
        "scale": "It fails, but a larger scale would mend it.",
    },
    expected=lambda weight, share, name: "holds" if kept(weight, share, name) else "lost",
    solution=lambda weight, share, name: derivation(
        step("One update.", "weight * share", weight=weight, share=share),
        step(
            "Half of the distance from the weight to the next number of the format.",
            "distance / 2",
            distance=float(FORMATS[name].spacing(weight)),
        ),
        step(
            "The one over the other.",
            "update / half",
            update=weight * share,
            half=float(FORMATS[name].spacing(weight) / 2),
        ),
        "Is that above one? A power of two as scale moves weight, update and distance alike.",
    ),
    misconceptions=(
        Misconception(
            "the distance not asked",
            lambda weight, share, name: "lost" if kept(weight, share, name) else "holds",
            "How far is it from this weight to the next number of the format? Compare the update.",
        ),
        Misconception(
            "range for precision",
            lambda **_: "range",
            "The update is never stored by itself: it is added to the weight.",
        ),
        Misconception(
            "a scale mends it",
            lambda **_: "scale",
            "What does a scale do to the weight, and what to the distance to the next number?",
        ),
    ),
    valid=lambda weight, share, name: (
        not 0.8 < weight * share / (FORMATS[name].spacing(weight) / 2) < 1.25
    ),
    smaller="precision.spacing",
    holds={
        "more than half the distance": "design: an option",
        "rounding to nearest": "definition: a premise",
        "Half of the distance": "definition: of rounding to nearest",
        "each step is rounded away": "design: an option",
        "below the smallest number": "design: an option",
        "a larger scale would mend it": "design: an option",
        "Is that above one": "definition: of the question",
        "moves weight, update and distance alike": lambda weight, share, name: (
            FORMATS[name].spacing(2 * weight) == 2 * FORMATS[name].spacing(weight)
        ),
        "The update is never stored by itself": "definition: of the claim",
    },
)

register(tensor_scale, master_weights)
