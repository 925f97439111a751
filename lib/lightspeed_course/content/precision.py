"""What the formulas of precision.md call."""

from __future__ import annotations

import math

from lightspeed.precision import FORMATS, Format
from lightspeed_course.content.quantization import bound_after
from lightspeed_course.practice.derivation import derivation, step
from lightspeed_course.practice.questions import Misconception, Parameter, Question
from lightspeed_course.simulators.sums import accumulate as accumulate

CHAPTER = "05_precision"

E4M3 = FORMATS["fp8_e4m3"]

# Normal numbers with something in the mantissa: nothing that a misreading would get right.
E4M3_CODES = tuple(code for code in range(2**4, 2**7 - 1) if code % 2**3)


def one_of(canonical, *choices, **more):
    return Parameter(canonical, choices, **more)


def misread(f, **changed):
    """The same format with other top codes, bias or fields: what a misreading makes of it."""
    parts = {
        "exponent_bits": f.exponent_bits,
        "mantissa_bits": f.mantissa_bits,
        "bias": f.bias,
        "specials": f.specials,
    }
    return Format(f.name, **{**parts, **changed})


def numbers_of(name):
    """The value of each code of a format."""
    return [FORMATS[name].decode(code) for code in range(2 ** FORMATS[name].bits)]


def rounding_errors(x, name):
    """What rounding takes from numbers around x."""
    f = FORMATS[name]
    tried = [f.round(x) + f.spacing(x) * eighths / 8 for eighths in range(9)]
    return [abs(f.round(value) - value) for value in tried]


def relative_step(name, share):
    """The step as a share of the number, at this share of the smallest normal one."""
    x = FORMATS[name].smallest_normal * share
    return FORMATS[name].spacing(x) / x


def top_mantissa(name):
    """The largest mantissa field of a number in the top exponent."""
    return 2 ** FORMATS[name].mantissa_bits - 1 - FORMATS[name].has_nan


largest = Question(
    id="precision.largest",
    chapter=CHAPTER,
    level="recall",
    prompt="What is the largest finite number of {{name}}, the OCP format that accelerators use?",
    parameters={"name": one_of("fp8_e4m3", "fp8_e4m3", "fp4_e2m1", "fp6_e2m3", "fp6_e3m2")},
    expected=lambda name: FORMATS[name].max,
    tolerance=0.01,
    solution=lambda name: derivation(
        step(
            "The top exponent field is in use for numbers. Less the bias, it is",
            "field - bias",
            field=2 ** FORMATS[name].exponent_bits - 1,
            bias=FORMATS[name].bias,
        ),
        step(
            "The largest significand: all ones, or one less where that code is NaN.",
            "1 + mantissa / steps",
            mantissa=top_mantissa(name),
            steps=2 ** FORMATS[name].mantissa_bits,
        ),
        step(
            "Two to that power, times the significand.",
            "power_of_two * significand",
            FORMATS[name].max,
            power_of_two=2.0 ** (math.frexp(FORMATS[name].max)[1] - 1),
            significand=1 + top_mantissa(name) / 2 ** FORMATS[name].mantissa_bits,
        ),
    ),
    misconceptions=(
        Misconception(
            "top exponent reserved",
            lambda name: misread(FORMATS[name], specials="ieee").max,
            "You kept the top exponent for infinity and NaN, as the IEEE formats do. This format"
            " has few codes and no infinity.",
        ),
        Misconception(
            "power of two only",
            lambda name: 2.0 ** (math.frexp(FORMATS[name].max)[1] - 1),
            "The exponent is right. What does the mantissa add at its largest?",
        ),
        Misconception(
            "bias one too large",
            lambda name: misread(FORMATS[name], bias=FORMATS[name].bias + 1).max,
            "You are one power of two off. The bias is one less than half the number of exponent"
            " codes.",
        ),
        Misconception(
            "bias forgotten",
            lambda name: FORMATS[name].max * 2.0 ** FORMATS[name].bias,
            "The exponent field is stored with a bias. Subtract it.",
        ),
        Misconception(
            "NaN's code",
            lambda name: misread(FORMATS[name], specials="finite").max,
            "That is the code of all ones. In this format it stands for NaN.",
            slight=True,
        ),
        Misconception(
            "E5M2",
            lambda name: FORMATS["fp8_e5m2"].max,
            "That is E5M2, the other format of eight bits: a bit more for the exponent.",
            slight=True,
        ),
    ),
    holds={
        "the code of all ones": lambda name: (
            not FORMATS[name].has_nan
            or math.isnan(FORMATS[name].decode(2 ** (FORMATS[name].bits - 1) - 1))
        ),
        "few codes and no infinity": lambda name: not any(map(math.isinf, numbers_of(name))),
        "The bias is one less than": (
            lambda name: FORMATS[name].bias == 2 ** FORMATS[name].exponent_bits / 2 - 1
        ),
        "all ones, or one less": lambda name: (
            max(x for x in numbers_of(name) if x == x and not math.isinf(x))
            == 2.0 ** (math.frexp(FORMATS[name].max)[1] - 1)
            * (1 + top_mantissa(name) / 2 ** FORMATS[name].mantissa_bits)
        ),
        "The top exponent field is in use": lambda name: (
            math.frexp(FORMATS[name].max)[1] - 1
            == 2 ** FORMATS[name].exponent_bits - 1 - FORMATS[name].bias
            and sum(map(math.isnan, numbers_of(name))) == 2 * FORMATS[name].has_nan
        ),
    },
)

smallest = Question(
    id="precision.smallest",
    chapter=CHAPTER,
    level="recall",
    prompt=(
        "What is the smallest number above zero that {{name}} can hold at all, with however few"
        " bits?"
    ),
    parameters={"name": one_of("fp16", "fp16", "fp8_e5m2", "fp8_e4m3")},
    expected=lambda name: FORMATS[name].smallest_subnormal,
    tolerance=0.2,
    solution=lambda name: derivation(
        step("The lowest exponent is that of field one.", "1 - bias", bias=FORMATS[name].bias),
        "A subnormal number drops the leading one: its last mantissa bit may be the one that is"
        " left.",
        step(
            "So the exponent falls by the mantissa bits once more.",
            "lowest - mantissa_bits",
            lowest=1 - FORMATS[name].bias,
            mantissa_bits=FORMATS[name].mantissa_bits,
        ),
        after=(
            "Two to the power"
            f" {1 - FORMATS[name].bias - FORMATS[name].mantissa_bits} is the number."
        ),
    ),
    smaller="precision.largest",
    misconceptions=(
        Misconception(
            "smallest normal",
            lambda name: FORMATS[name].smallest_normal,
            "That is where full precision ends. The format goes on below it, losing bits.",
        ),
        Misconception(
            "step at one",
            lambda name: FORMATS[name].eps,
            "That is the step beside one, which is precision. Range is another matter.",
        ),
        Misconception(
            "one over the largest",
            lambda name: 1 / FORMATS[name].max,
            "The large and the small end are not mirror images. Which bits does a number with an"
            " exponent field of zero still have?",
        ),
        Misconception(
            "bf16",
            lambda name: FORMATS["bf16"].smallest_subnormal,
            "That is what eight bits of exponent give. How many are there here?",
        ),
        Misconception(
            "half of it",
            lambda name: FORMATS[name].smallest_subnormal / 2,
            "There rounding to zero begins. Which number does the format still hold itself?",
        ),
    ),
    holds={
        "The format goes on below it": (
            lambda name: FORMATS[name].round(FORMATS[name].smallest_normal / 2) > 0
        ),
        "The lowest exponent is": lambda name: (
            FORMATS[name].smallest_subnormal
            == 2.0 ** (1 - FORMATS[name].bias - FORMATS[name].mantissa_bits)
        ),
    },
)


def fields(code):
    """Exponent field and mantissa field of an E4M3 code as whole numbers."""
    return divmod(code, 2**E4M3.mantissa_bits)


def to_bf16(x, how):
    """x in units of bf16's step, made whole by `how`."""
    step = FORMATS["bf16"].spacing(x)
    return how(x / step) * step


def loss_scale(g, format="fp16", floor="smallest_normal"):
    return 2.0 ** math.ceil(math.log2(getattr(FORMATS[format], floor) / g))


def stalls_at(name):
    """The sum of ones that stops growing: there the step becomes two."""
    return 2 ** (FORMATS[name].mantissa_bits + 1)


def gain(batch, D, key):
    """How many times as fast the bound gets with int8 arithmetic."""
    return bound_after(batch, D, key, None) / bound_after(batch, D, key, "arithmetic")


NARROW = ("fp8_e4m3", "fp8_e5m2", "fp4_e2m1")


def vanishes(amax, name, smallest="smallest_subnormal", largest=None):
    """Below this magnitude a tensor of these loses its numbers, with a scale of its own."""
    scale = amax / (largest or FORMATS[name].max)
    return scale * getattr(FORMATS[name], smallest) / 2


def kept(weight, share, name):
    """Whether rounding to nearest keeps an update of this share of a weight."""
    return weight * share > FORMATS[name].spacing(weight) / 2
