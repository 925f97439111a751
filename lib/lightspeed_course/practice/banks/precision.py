"""Questions of chapter 5 on number formats, sums and small gradients. Those on scales and bytes
are in quantization.py.
"""

from __future__ import annotations

import math

from lightspeed.precision import FORMATS, Format
from lightspeed_course.practice.derivation import derivation, step
from lightspeed_course.practice.questions import Misconception, Parameter, Question, register
from lightspeed_models.simulators.sums import accumulate
from lightspeed_show.format import plain

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


# --- formats ------------------------------------------------------------------------------------

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


biased_exponent = Question(
    id="precision.biased_exponent",
    chapter=CHAPTER,
    level="recall",
    prompt=(
        "In a normal number of {{name}} the exponent field is {{field}}, read as a whole number."
        " The bias is half of the field's codes, less one. To what power is two raised?"
    ),
    parameters={
        "name": one_of("fp16", "fp16", "fp8_e4m3", "bf16"),
        "field": one_of(12, 2, 5, 12, 14, show=str),
    },
    expected=lambda name, field: field - FORMATS[name].bias,
    tolerance=0,
    solution=lambda name, field: derivation(
        step(
            "The bias is half of the codes that the exponent field has, less one.",
            "codes / 2 - 1",
            FORMATS[name].bias,
            codes=2 ** FORMATS[name].exponent_bits,
        ),
        step(
            "The power is the field, less the bias.",
            "field - bias",
            field - FORMATS[name].bias,
            field=field,
            bias=FORMATS[name].bias,
        ),
    ),
    misconceptions=(
        Misconception(
            "the field is the power",
            lambda name, field: field,
            "Then no number would be below one. What is taken off the field?",
        ),
        Misconception(
            "half of the codes",
            lambda name, field: field - FORMATS[name].bias - 1,
            "The bias is one less than what you took off.",
        ),
        Misconception(
            "the power of two itself",
            lambda name, field: 2.0 ** (field - FORMATS[name].bias),
            "That is two raised to the power. The power is asked.",
        ),
        Misconception(
            "the other way round",
            lambda name, field: FORMATS[name].bias - field,
            "A larger field stands for a larger number. Which is taken off which?",
        ),
    ),
    valid=lambda name, field: field not in (FORMATS[name].bias, FORMATS[name].bias + 1),
    holds={
        "The bias is half of the field's codes": lambda name, field: (
            FORMATS[name].bias == 2 ** FORMATS[name].exponent_bits / 2 - 1
        ),
        "half of the codes that the exponent field has": lambda name, field: (
            FORMATS[name].bias == 2 ** FORMATS[name].exponent_bits / 2 - 1
        ),
        "Then no number would be below one": "algebra: a power of two from zero up",
        "The bias is one less than what": lambda name, field: (
            FORMATS[name].bias == 2 ** FORMATS[name].exponent_bits / 2 - 1
        ),
        "A larger field stands for a larger number": "definition",
    },
)


def fields(code):
    """Exponent field and mantissa field of an E4M3 code as whole numbers."""
    return divmod(code, 2**E4M3.mantissa_bits)


decoding = Question(
    id="precision.decode",
    chapter=CHAPTER,
    level="apply",
    prompt=(
        "Which number is the E4M3 code `{{code}}`? (Sign, exponent field, mantissa; the bias is"
        " {{bias}}.)"
    ),
    parameters={
        "code": Parameter(0b0_1001_101, E4M3_CODES, show=lambda c: " ".join(E4M3.fields(c))),
        "bias": Parameter(E4M3.bias),
    },
    expected=lambda code, bias: E4M3.decode(code),
    tolerance=0.001,
    solution=lambda code, bias: derivation(
        step(
            "The exponent: its field, less the bias.",
            "field - bias",
            field=fields(code)[0],
            bias=bias,
        ),
        step(
            "The significand: one, and the mantissa in eighths.",
            "1 + mantissa / 8",
            mantissa=fields(code)[1],
        ),
        step(
            "Two to the power of the exponent, times the significand.",
            "power_of_two * significand",
            E4M3.decode(code),
            power_of_two=2.0 ** (fields(code)[0] - bias),
            significand=1 + fields(code)[1] / 8,
        ),
    ),
    misconceptions=(
        Misconception(
            "no leading one",
            lambda code, bias: (
                fields(code)[1] / 2**E4M3.mantissa_bits * 2.0 ** (fields(code)[0] - bias)
            ),
            "A normal number has a one before its point that is not stored.",
        ),
        Misconception(
            "bias forgotten",
            lambda code, bias: E4M3.decode(code) * 2.0**bias,
            "The field is not yet the exponent.",
        ),
        Misconception(
            "bias one too large",
            lambda code, bias: E4M3.decode(code) / 2,
            "You are one power of two too low. Which field stands for an exponent of zero?",
        ),
        Misconception(
            "mantissa as a whole number",
            lambda code, bias: (1 + fields(code)[1]) * 2.0 ** (fields(code)[0] - bias),
            "The mantissa bits stand after the point.",
        ),
        Misconception(
            "code as an integer",
            lambda code, bias: code,
            "You read the code as an integer. Split it into its fields first.",
        ),
        Misconception(
            "exponent left out",
            lambda code, bias: 1 + fields(code)[1] / 2**E4M3.mantissa_bits,
            "That is the significand. The exponent field, less the bias, is still to be applied.",
            slight=True,
        ),
        Misconception(
            "bias one too small",
            lambda code, bias: 2 * E4M3.decode(code),
            "You are one power of two too high. Which field stands for an exponent of zero?",
        ),
        Misconception(
            "the mantissa misread",
            lambda code, bias: 2 ** (code // 8 - bias) * (2 - code % 8 / 8),
            "Your power of two may well be right. What is each bit of the mantissa worth, from the"
            " first one after the point?",
            slight=True,
        ),
    ),
    smaller="precision.biased_exponent",
)

numbers_per_power = Question(
    id="precision.numbers_per_power",
    chapter=CHAPTER,
    level="recall",
    prompt=(
        "How many different numbers does {{name}} have from {{low}} up to, but not including, twice"
        " that?"
    ),
    parameters={
        "name": one_of("fp16", "bf16", "fp16", "fp8_e4m3"),
        "low": one_of(64, 2, 16, 64, 128, show=str),
    },
    expected=lambda name, low: 2 ** FORMATS[name].mantissa_bits,
    tolerance=0,
    solution=lambda name, low: derivation(
        "All of them have the same exponent field, so only the mantissa tells them apart.",
        step(
            "The mantissa runs from zero to all of its bits set.",
            "all_set + 1",
            2 ** FORMATS[name].mantissa_bits,
            all_set=2 ** FORMATS[name].mantissa_bits - 1,
        ),
        after="It is the same number between any two powers of two, so the step doubles with each.",
    ),
    misconceptions=(
        Misconception(
            "the leading one is stored",
            lambda name, low: 2 ** (FORMATS[name].mantissa_bits + 1),
            "The leading one is the same in all of them. Which bits can differ?",
        ),
        Misconception(
            "whole numbers",
            lambda name, low: low,
            "That many whole numbers lie there. The step of the format need not be one.",
        ),
        Misconception(
            "the bits, not the codes",
            lambda name, low: FORMATS[name].mantissa_bits,
            "Those are the bits of the mantissa. How many codes do they make?",
        ),
        Misconception(
            "all bits",
            lambda name, low: 2 ** FORMATS[name].bits,
            "Those are all codes of the format. Which fields are fixed in this stretch?",
        ),
    ),
    valid=lambda name, low: low != 2 ** FORMATS[name].mantissa_bits,
    holds={
        "All of them have the same exponent field": lambda name, low: (
            len({FORMATS[name].fields(FORMATS[name].encode(x))[1] for x in (low, 1.8 * low)}) == 1
        ),
        "to all of its bits set": "definition",
        "The leading one is the same in all of them": "definition: of a normal number",
        "It is the same number between any two powers of two": "definition: of normal numbers",
        "the step doubles with each": lambda name, low: (
            FORMATS[name].spacing(2 * low) == 2 * FORMATS[name].spacing(low)
        ),
        "That many whole numbers lie there": "algebra",
        "Those are all codes of the format": "definition",
    },
)

spacing = Question(
    id="precision.spacing",
    chapter=CHAPTER,
    level="apply",
    prompt="How far is it from {{x}} to the next larger number in {{name}}?",
    parameters={
        "x": one_of(1000, 100, 300, 600, 1000, 1504, 3008, 5000, 20000, show=str),
        "name": one_of("bf16", "bf16", "fp16"),
    },
    # From a number between two of the format the next one is nearer than a step.
    valid=lambda x, name: FORMATS[name].round(x) == x,
    expected=lambda x, name: FORMATS[name].spacing(x),
    tolerance=0.001,
    solution=lambda x, name: derivation(
        "Find the power of two at or below the number.",
        step(
            "The format divides the stretch from there to the next power into steps, two to the"
            " power of its mantissa bits.",
            "power_of_two / steps",
            FORMATS[name].spacing(x),
            power_of_two=2 ** (math.frexp(x)[1] - 1),
            steps=2 ** FORMATS[name].mantissa_bits,
        ),
        after=(
            f"The power of two at or below {x} is {2 ** (math.frexp(x)[1] - 1)}, and {name} stores"
            f" {FORMATS[name].mantissa_bits} mantissa bits."
        ),
    ),
    misconceptions=(
        Misconception(
            "step at one",
            lambda x, name: FORMATS[name].eps,
            "That is the step beside one. It grows with the number.",
        ),
        Misconception(
            "in proportion",
            lambda x, name: FORMATS[name].eps * x,
            "The step does not grow smoothly. Between two powers of two it stays the same.",
        ),
        Misconception(
            "rounding error",
            lambda x, name: FORMATS[name].spacing(x) / 2,
            "That is the largest error of rounding to nearest. How far apart are two neighbours?",
        ),
        Misconception(
            "next power of two",
            lambda x, name: FORMATS[name].spacing(x) * 2,
            "You took the power of two above the number. The stretch begins at the one below.",
        ),
        Misconception(
            "fp32",
            lambda x, name: FORMATS["fp32"].spacing(x),
            "That is the step of fp32. How many mantissa bits are there here?",
        ),
        Misconception(
            "whole numbers",
            lambda x, name: 1,
            "Whole numbers are that far apart. Does the format have every one of them there?",
            slight=True,
        ),
    ),
    smaller="precision.numbers_per_power",
    holds={
        "the power of two above the number": lambda x, name: 2 ** math.frexp(x)[1] > x,
        "the largest error of rounding to nearest": (
            lambda x, name: max(rounding_errors(x, name)) == FORMATS[name].spacing(x) / 2
        ),
        "The power of two at or below": lambda x, name: (
            2 ** (math.frexp(x)[1] - 1) <= x < 2 ** math.frexp(x)[1]
            and FORMATS[name].spacing(x) * 2 ** FORMATS[name].mantissa_bits
            == 2 ** (math.frexp(x)[1] - 1)
        ),
    },
)

decode_fp16 = Question(
    id="precision.decode_fp16",
    chapter=CHAPTER,
    level="apply",
    kind="function",
    prompt=(
        "Write `decode(sign, exponent, mantissa)`: the value of an fp16 code, its three fields"
        " given as whole numbers. The top exponent field does not occur."
    ),
    parameters={
        "sign": Parameter(0, (0, 1)),
        "exponent": Parameter(17, (0, 1, 2, 14, 15, 16, 20, 30)),
        "mantissa": Parameter(512, (0, 1, 100, 512, 1023)),
    },
    edges=(
        {"exponent": 0, "mantissa": 1},
        {"exponent": 0, "mantissa": 0},
        {"exponent": 1, "mantissa": 0},
    ),
    expected=lambda sign, exponent, mantissa: FORMATS["fp16"].decode(
        int(sign) * 2**15 + int(exponent) * 2**10 + int(mantissa)
    ),
    tolerance=0.0001,
    solution=derivation(
        "The mantissa counts in steps of the significand: divide by two to the power of its bits.",
        "A normal number has a leading one on top. A field of zero has no leading one.",
        "The exponent is the field less the bias. A field of zero has the exponent of field one.",
        after=(
            "```python\ndef decode(sign, exponent, mantissa):\n"
            f"    bias, width = {FORMATS['fp16'].bias}, {2 ** FORMATS['fp16'].mantissa_bits}\n"
            "    significand = mantissa / width + (exponent > 0)\n"
            "    return (-1) ** sign * significand * 2 ** (max(exponent, 1) - bias)\n```"
        ),
    ),
    smaller="precision.decode",
    misconceptions=(
        Misconception(
            "no subnormals",
            lambda sign, exponent, mantissa: (
                (-1) ** sign * (1 + mantissa / 2**10) * 2.0 ** (exponent - 15)
            ),
            "Try an exponent field of zero. How would your format write zero?",
        ),
        Misconception(
            "subnormals one power low",
            lambda sign, exponent, mantissa: (
                (-1) ** sign * ((exponent > 0) + mantissa / 2**10) * 2.0 ** (exponent - 15)
            ),
            "Compare the largest subnormal with the smallest normal. Is there a gap?",
        ),
        Misconception(
            "bias one too large",
            lambda sign, exponent, mantissa: (
                FORMATS["fp16"].decode(int(sign) * 2**15 + int(exponent) * 2**10 + int(mantissa))
                / 2
            ),
            "All powers are one too low.",
        ),
        Misconception(
            "no sign",
            lambda sign, exponent, mantissa: FORMATS["fp16"].decode(
                int(exponent) * 2**10 + int(mantissa)
            ),
            "What does the first field do?",
        ),
        Misconception(
            "no leading one",
            lambda sign, exponent, mantissa: (
                (-1) ** sign * mantissa / 1024 * 2.0 ** (max(exponent, 1) - 15)
            ),
            "A normal number has a one before its point that is not stored. Where is it in yours?",
        ),
    ),
    holds={
        "All powers are one too low": "algebra: a larger bias halves each value",
        "A field of zero has no leading one": lambda sign, exponent, mantissa: (
            FORMATS["fp16"].decode(int(mantissa))
            == mantissa / 2**10 * FORMATS["fp16"].smallest_normal
        ),
    },
)


def to_bf16(x, how):
    """x in units of bf16's step, made whole by `how`."""
    step = FORMATS["bf16"].spacing(x)
    return how(x / step) * step


round_bf16 = Question(
    id="precision.round_to_bf16",
    chapter=CHAPTER,
    level="apply",
    kind="function",
    prompt=(
        "Write `round_to_bf16(x)` for numbers of ordinary size: the nearest bf16 number, ties to"
        " the even one. (`math.frexp` and `round` are enough.)"
    ),
    parameters={
        "x": Parameter(
            257.0,
            (
                257.0,
                259.0,
                261.0,
                -1.00390625,
                1.01171875,
                3.14159265,
                -2.71828,
                0.1,
                1e-3,
                12345.0,
                70000.0,
                -70000.0,
                0.33333,
            ),
        )
    },
    edges=({"x": 1.0}, {"x": -259.0}, {"x": 511.5}),
    expected=lambda x: FORMATS["bf16"].round(x),
    tolerance=0.00001,
    solution=derivation(
        "Work out the step of bf16 around the number: a fixed number of powers of two below its"
        " own.",
        "Divide by the step, make the result whole, multiply again.",
        "Python's `round` takes ties to even.",
        after=(
            "```python\nimport math\n\ndef round_to_bf16(x):\n"
            f"    step = 2 ** (math.frexp(x)[1] - {FORMATS['bf16'].mantissa_bits + 1})\n"
            "    return round(x / step) * step\n```"
        ),
    ),
    smaller="precision.spacing",
    misconceptions=(
        Misconception(
            "cut off",
            lambda x: to_bf16(x, math.trunc),
            "Dropping the low bits rounds toward zero. What is nearest?",
        ),
        Misconception(
            "ties away from zero",
            lambda x: to_bf16(x, lambda n: math.copysign(math.floor(abs(n) + 0.5), n)),
            "Nearly. Look at numbers exactly halfway between two.",
        ),
        Misconception(
            "one bit too many",
            lambda x: (
                FORMATS["bf16"].round(x)
                if x == 1
                else misread(FORMATS["bf16"], mantissa_bits=8).round(x)
            ),
            "Eight bits of significand count the leading one, which is not stored.",
        ),
        Misconception(
            "one bit too few",
            lambda x: misread(FORMATS["bf16"], mantissa_bits=6).round(x),
            "The stored bits do not count the leading one: the significand has one bit more.",
        ),
        Misconception(
            "fp16",
            lambda x: FORMATS["fp16"].round(x, saturate=True),
            "Those are the bits of fp16. bf16 has others.",
        ),
        Misconception(
            "ties up",
            lambda x: math.ldexp(math.floor(math.frexp(x)[0] * 256 + 0.5), math.frexp(x)[1] - 8),
            "Nearly. Look at numbers just halfway between two: which neighbour does yours take,"
            " and which one is even?",
        ),
    ),
    holds={
        "are enough": lambda x: to_bf16(x, round) == FORMATS["bf16"].round(x),
        "a fixed number of powers of two below": lambda x: (
            FORMATS["bf16"].spacing(x)
            == 2.0 ** (math.frexp(x)[1] - FORMATS["bf16"].mantissa_bits - 1)
        ),
    },
)

# --- sums and gradients ---------------------------------------------------------------------------

stall = Question(
    id="precision.sum_of_ones",
    chapter=CHAPTER,
    level="recall",
    prompt=(
        "Ones are added up, one after another, and the sum is kept in {{name}}. At which value does"
        " it stop growing?"
    ),
    parameters={"name": one_of("bf16", "bf16", "fp16", "fp8_e5m2")},
    expected=lambda name: accumulate([1.0] * 2 ** (FORMATS[name].mantissa_bits + 2), FORMATS[name]),
    tolerance=0.001,
    solution=lambda name: derivation(
        "The step grows with the sum. At some power of two it grows from one to two.",
        "One more lands exactly between two numbers there, and the even one is the sum as it was.",
        step(
            "With this many steps from one power of two to the next, the step is two from here on:",
            "2 * steps",
            accumulate([1.0] * 2 ** (FORMATS[name].mantissa_bits + 2), FORMATS[name]),
            steps=2 ** FORMATS[name].mantissa_bits,
        ),
    ),
    smaller="precision.numbers_per_power",
    misconceptions=(
        Misconception(
            "stored bits only",
            lambda name: 2.0 ** FORMATS[name].mantissa_bits,
            "A leading one comes on top of the bits that are stored.",
        ),
        Misconception(
            "the largest number",
            lambda name: FORMATS[name].max,
            "It never gets near the end of the range. Which limit comes first?",
        ),
        Misconception(
            "step above two",
            lambda name: 2.0 ** (FORMATS[name].mantissa_bits + 2),
            "Look at the number where the step has just become two. What does adding one do there?",
        ),
        Misconception(
            "all bits count",
            lambda name: 2.0 ** FORMATS[name].bits,
            "Some of the bits are exponent. How many carry the significand?",
        ),
    ),
    holds={
        "It never gets near the end": (
            lambda name: 2.0 ** (FORMATS[name].mantissa_bits + 1) < FORMATS[name].max / 10
        )
    },
)


def loss_scale(g, format="fp16", floor="smallest_normal"):
    return 2.0 ** math.ceil(math.log2(getattr(FORMATS[format], floor) / g))


loss_scaling = Question(
    id="precision.loss_scale",
    chapter=CHAPTER,
    level="design",
    prompt=(
        "Gradients are stored in {{name}}, and the smallest that matter are about {{g}}. What is"
        " the"
        " smallest power of two that, as a loss scale, gives them full precision?"
    ),
    parameters={
        "g": one_of(1e-8, 1e-9, 3e-9, 1e-8, 2e-7, 1e-10, show=plain),
        "name": one_of("fp16", "fp16", "fp8_e5m2"),
    },
    expected=lambda g, name: loss_scale(g, name),
    tolerance=0,
    solution=lambda g, name: derivation(
        "Full precision begins at the smallest normal number of the format.",
        step(
            "The scale has to lift the gradient up to it.",
            "smallest_normal / gradient",
            smallest_normal=FORMATS[name].smallest_normal,
            gradient=g,
        ),
        step(
            "Round up to a power of two. Its exponent is",
            "ceil(log2(smallest_normal / gradient))",
            math.log2(loss_scale(g, name)),
            smallest_normal=FORMATS[name].smallest_normal,
            gradient=g,
        ),
    ),
    smaller="precision.smallest",
    misconceptions=(
        Misconception(
            "not lost, but bare",
            lambda g, name: loss_scale(g, name, "smallest_subnormal"),
            "That saves them from becoming zero. How many bits are left to a number just above the"
            " smallest?",
        ),
        Misconception(
            "rounded down",
            lambda g, name: loss_scale(g, name) / 2,
            "Check: does the scaled gradient reach the smallest normal number?",
        ),
        Misconception(
            "not a power of two",
            lambda g, name: FORMATS[name].smallest_normal / g,
            "That is what is needed. Which power of two is the first that is enough?",
            slight=True,
        ),
        Misconception(
            "up to the largest",
            lambda g, name: 2.0 ** math.floor(math.log2(FORMATS[name].max / g)),
            "With this scale a gradient twice as large overflows. You need the smallest scale that"
            " does it.",
        ),
        Misconception(
            "up to one",
            lambda g, name: 2.0 ** math.ceil(-math.log2(g)),
            "They need not become one. Where does full precision begin?",
        ),
        Misconception(
            "one power too many",
            lambda g, name: 2 * loss_scale(g, name),
            "That does it. Is it the smallest power of two that does?",
        ),
    ),
    holds={
        "the smallest that matter": "definition: a premise",
        "a gradient twice as large overflows": lambda g, name: math.isinf(
            FORMATS[name].round(2 * g * 2.0 ** math.floor(math.log2(FORMATS[name].max / g)))
        ),
        "You need the smallest scale": lambda g, name: (
            g * loss_scale(g, name) / 2 < FORMATS[name].smallest_normal <= g * loss_scale(g, name)
        ),
        "Full precision begins at the smallest normal number": lambda g, name: (
            relative_step(name, 1) == FORMATS[name].eps < relative_step(name, 1 / 2)
        ),
    },
)

register(
    stall,
    largest,
    smallest,
    biased_exponent,
    decoding,
    numbers_per_power,
    spacing,
    decode_fp16,
    round_bf16,
    loss_scaling,
)
