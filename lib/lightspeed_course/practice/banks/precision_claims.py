"""Questions of chapter 5: claims to judge, each true for some values and false for others."""

from __future__ import annotations

from lightspeed import roofline as r
from lightspeed.catalog import accelerator
from lightspeed.precision import FORMATS
from lightspeed_course.practice.amounts import powers_of_two
from lightspeed_course.practice.banks.precision import CHAPTER, one_of
from lightspeed_course.practice.banks.quantization import bound_after
from lightspeed_course.practice.derivation import derivation, step
from lightspeed_course.practice.parameters import chip
from lightspeed_course.practice.questions import Misconception, Parameter, Question, register


def stalls_at(name):
    """The sum of ones that stops growing: there the step becomes two."""
    return 2 ** (FORMATS[name].mantissa_bits + 1)


count_ones = Question(
    id="precision.claim_exact_count",
    chapter=CHAPTER,
    level="judge",
    kind="choice",
    prompt=(
        "“We count {{count}} events by adding ones to a sum in {{name}}. The count will be exact.”"
        " Does the claim hold?"
    ),
    parameters={
        "count": one_of(1000, 100, 200, 1000, 2000, 5000, show=lambda n: f"{n:,}"),
        "name": one_of("bf16", "bf16", "fp16"),
    },
    options={
        "holds": "It holds: each sum on the way is a number of the format.",
        "stalls": "It fails: the sum stops growing on the way.",
        "range": "It fails: the sum leaves the range of the format.",
        "drift": "It fails: each addition loses half a step, from the first on.",
    },
    expected=lambda count, name: "holds" if count <= stalls_at(name) else "stalls",
    solution=lambda count, name: derivation(
        step(
            "The step becomes two at this sum, and one more is rounded away.",
            "2 * steps",
            float(stalls_at(name)),
            steps=2 ** FORMATS[name].mantissa_bits,
        ),
        step("The count, over that sum.", "count / sum", count=count, sum=stalls_at(name)),
        "Is that above one?",
    ),
    misconceptions=(
        Misconception(
            "the step not asked",
            lambda count, name: "stalls" if count <= stalls_at(name) else "holds",
            "At which sum does the step of the format become two?",
        ),
        Misconception("range", lambda **_: "range", "Compare the count with the largest number."),
        Misconception(
            "always rounded", lambda **_: "drift", "Is one and one a number of the format?"
        ),
    ),
    smaller="precision.sum_of_ones",
)


def gain(batch, D, key):
    """How many times as fast the bound gets with int8 arithmetic."""
    return bound_after(batch, D, key, None) / bound_after(batch, D, key, "arithmetic")


twice = Question(
    id="precision.claim_int8_arithmetic",
    chapter=CHAPTER,
    level="judge",
    kind="choice",
    prompt=(
        "“The int8 units of an {{key}} are twice as fast. Our matmul of {{batch}} tokens with"
        " weights of {{D}} by {{D}} keeps its bytes and moves to them, so it takes half the time.”"
        " Does the claim hold, by the roofline?"
    ),
    parameters={
        "batch": one_of(8, 1, 8, 64, 4096, 8192, show=str),
        "D": Parameter(8192, powers_of_two(4096, 16384), show=str),
        "key": chip("h100_sxm", "h100_sxm", "a100_80gb"),
    },
    options={
        "holds": "It holds: the arithmetic is the limit before and after.",
        "memory": "It fails: memory is the limit, and its bytes stay the same.",
        "accumulator": "It fails: int32 sums double the bytes that are moved.",
        "sparse": "It fails: int8 peaks are for sparse matrices.",
    },
    expected=lambda batch, D, key: "holds" if gain(batch, D, key) > 1.5 else "memory",
    solution=lambda batch, D, key: derivation(
        step(
            "The bytes take",
            "traffic / bandwidth",
            traffic=(r.matmul_bytes(batch, D, D), "byte"),
            bandwidth=(accelerator(key).hbm_bandwidth, "byte/s"),
        ),
        step(
            "The arithmetic takes in bf16",
            "flops / peak",
            flops=(r.matmul_flops(batch, D, D), "FLOP"),
            peak=(accelerator(key).bf16, "FLOP/s"),
        ),
        step(
            "and in int8",
            "operations / peak",
            operations=(r.matmul_flops(batch, D, D), "OP"),
            peak=(accelerator(key).int8, "OP/s"),
        ),
        "The longer clock counts, before and after.",
    ),
    misconceptions=(
        Misconception(
            "the other limit",
            lambda batch, D, key: "memory" if gain(batch, D, key) > 1.5 else "holds",
            "Work out both clocks of this matmul. Which one is longer?",
        ),
        Misconception(
            "sums in memory", lambda **_: "accumulator", "Where does the accumulator live?"
        ),
        Misconception(
            "sparse peaks", lambda **_: "sparse", "The catalog lists dense rates for both formats."
        ),
    ),
    valid=lambda batch, D, key: not 1.05 < gain(batch, D, key) < 1.95,
    smaller="quantization.which_int8",
    holds={
        "twice as fast": "quotation: a claim to be judged",
        "half the time": "quotation: a claim to be judged",
        "double the bytes": "design: an option",
    },
)

register(count_ones, twice)
