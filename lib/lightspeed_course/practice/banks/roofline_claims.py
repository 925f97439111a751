"""Questions of chapter 2: claims to judge, each true for some values and false for others."""

from __future__ import annotations

from lightspeed import roofline as r
from lightspeed.catalog import accelerator
from lightspeed_course.practice.banks.roofline import CHAPTER, ridge, size, square
from lightspeed_course.practice.derivation import derivation, step
from lightspeed_course.practice.parameters import chip
from lightspeed_course.practice.questions import Misconception, Parameter, Question, register


def bound_on_both(batch, D, old, new):
    """What bounds the matmul on both chips: "units", "memory", or "" where they differ."""
    bound = {square(batch, D, key).compute_bound for key in (old, new)}
    return "" if len(bound) > 1 else "units" if bound == {True} else "memory"


upgrade = Question(
    id="roofline.claim_upgrade",
    chapter=CHAPTER,
    level="judge",
    kind="choice",
    prompt=(
        "“Our kernel is a bf16 matmul of {{batch}} tokens with weights of {{D}} by {{D}}. On the"
        " {{new}} it will be faster than on the {{old}} by as much as the dense peak is higher.”"
        " Does the claim hold, by the roofline?"
    ),
    parameters={
        "batch": Parameter(16, (1, 16, 64, 4096, 8192), show=str),
        "D": size(8192, 4096, 16384),
        "old": chip("a100_80gb"),
        "new": chip("h100_sxm", "h100_sxm", "h200_sxm", "b200"),
    },
    options={
        "holds": "It holds: the units are the limit on both chips.",
        "memory": "It fails: memory is the limit on both, so the ratio of bandwidths counts.",
        "sparse": "It fails: peaks of data sheets are sparse, so the gain is half of that.",
        "capacity": "It fails: the ratio of the sizes of their memories counts.",
    },
    expected=lambda batch, D, old, new: (
        "holds" if bound_on_both(batch, D, old, new) == "units" else "memory"
    ),
    solution=lambda batch, D, old, new: derivation(
        step(
            "The ridge of the old chip.",
            "peak / bandwidth",
            peak=accelerator(old).bf16,
            bandwidth=accelerator(old).hbm_bandwidth,
        ),
        step(
            "The ridge of the new one.",
            "peak / bandwidth",
            peak=accelerator(new).bf16,
            bandwidth=accelerator(new).hbm_bandwidth,
        ),
        step(
            "The intensity of the matmul. Compare it with both.",
            "2[FLOP] * B * D**2 / ((2 * B * D + D**2) * 2[byte])",
            (r.matmul_intensity(batch, D, D), "FLOP/byte"),
            B=batch,
            D=D,
        ),
        step(
            "What a better peak could give,",
            "new / old",
            new=accelerator(new).bf16,
            old=accelerator(old).bf16,
        ),
        step(
            "and what a better memory could.",
            "new / old",
            new=accelerator(new).hbm_bandwidth,
            old=accelerator(old).hbm_bandwidth,
        ),
    ),
    misconceptions=(
        Misconception(
            "the other limit",
            lambda batch, D, old, new: (
                "memory" if bound_on_both(batch, D, old, new) == "units" else "holds"
            ),
            "Work out the intensity of this matmul. On which side of both ridges is it?",
        ),
        Misconception(
            "sparse on one side",
            lambda **_: "sparse",
            "The claim speaks of dense peaks, on both sides.",
        ),
        Misconception(
            "capacity is speed",
            lambda **_: "capacity",
            "More room for the weights does not make reading them faster.",
        ),
    ),
    valid=lambda batch, D, old, new: bool(bound_on_both(batch, D, old, new)),
    smaller="roofline.ridge",
    holds={
        "it will be faster than": "quotation: a claim to be judged",
        "the units are the limit on both": "design: an option",
        "memory is the limit on both": "design: an option",
        "the gain is half": "design: an option",
        "the ratio of the sizes": "design: an option",
        "More room for the weights": "definition",
    },
)

more_users = Question(
    id="roofline.claim_more_users",
    chapter=CHAPTER,
    level="judge",
    kind="choice",
    prompt=(
        "A large dense model with bf16 weights decodes on an {{key}}. “From {{batch}} users to"
        " twice as many the step took the same time, so each token became half as expensive. Four"
        " times as many users will halve it again.” Attention and activations are left out. Does"
        " the claim hold, by the roofline?"
    ),
    parameters={
        "batch": Parameter(128, (16, 32, 64, 128), show=str),
        "key": chip("h100_sxm", "a100_80gb", "h100_sxm", "h200_sxm"),
    },
    options={
        "holds": "It holds: reading the weights is still the longer clock.",
        "ridge": "It fails: the batch passes the ridge, and from there the step gets longer.",
        "weights": "It fails: the weights are read once for each user.",
        "always": "It fails: the units were the limit from the start.",
    },
    expected=lambda batch, key: "holds" if 4 * batch <= ridge(key) else "ridge",
    solution=lambda batch, key: derivation(
        step(
            "The ridge, which is the critical batch of bf16 weights in tokens.",
            "peak / bandwidth",
            r.ridge_point(accelerator(key).bf16, accelerator(key).hbm_bandwidth),
            peak=accelerator(key).bf16,
            bandwidth=accelerator(key).hbm_bandwidth,
        ),
        step("Each user makes one token in a step. The batch becomes", "4 * users", users=batch),
        "Up to the ridge the step takes as long as reading the weights, so more users share one"
        " price. Compare the two numbers.",
    ),
    misconceptions=(
        Misconception(
            "the ridge not asked",
            lambda batch, key: "ridge" if 4 * batch <= ridge(key) else "holds",
            "What is the batch at which the chip becomes compute-bound? Compare.",
        ),
        Misconception(
            "a matrix for each user",
            lambda **_: "weights",
            "The users share the weights. How often does a matmul read them?",
        ),
        Misconception(
            "compute-bound at once",
            lambda **_: "always",
            "If the units had been the limit, could twice the users have taken the same time?",
        ),
    ),
    valid=lambda batch, key: (
        2 * batch < 0.95 * ridge(key) and not 0.9 < 4 * batch / ridge(key) < 1.1
    ),
    smaller="roofline.h100_critical_batch",
    holds={
        "twice as many the step took": "quotation: a claim to be judged",
        "times as many users will halve": "quotation: a claim to be judged",
        "reading the weights is still": "design: an option",
        "the batch passes the ridge": "design: an option",
        "the weights are read once": "design: an option",
        "the units were the limit": "design: an option",
        "could twice the users": "design: a question",
        "more users share one": "algebra",
    },
)

register(upgrade, more_users)
