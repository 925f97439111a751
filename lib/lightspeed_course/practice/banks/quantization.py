"""Questions of chapter 5 on quantization: scales, noise, bytes, and what they do to time and
energy.
"""

from __future__ import annotations

import math

from lightspeed import energy as e
from lightspeed import quantization as q
from lightspeed import roofline as r
from lightspeed.catalog import accelerator, energy
from lightspeed_course.practice.amounts import powers_of_two
from lightspeed_course.practice.banks.precision import CHAPTER, one_of
from lightspeed_course.practice.derivation import derivation, step
from lightspeed_course.practice.parameters import chip
from lightspeed_course.practice.questions import Misconception, Parameter, Question, register
from lightspeed_show.format import si

TABLE = energy("horowitz_45nm")
CHIPS = ("tpu_v5e", "tpu_v6e", "a100_80gb", "h100_sxm", "h200_sxm")


# --- integers with a scale ------------------------------------------------------------------------

symmetric_scale = Question(
    id="quantization.symmetric_scale",
    chapter=CHAPTER,
    level="recall",
    prompt=(
        "The largest magnitude in a tensor is {{amax}}. Which scale does symmetric {{bits}}-bit"
        " quantization use, so that a value is code times scale?"
    ),
    parameters={"amax": one_of(6.0, 0.5, 2.0, 3.0, 6.0, 12.0), "bits": one_of(8, 8, 4, 6)},
    expected=q.symmetric_scale,
    tolerance=0.001,
    solution=lambda amax, bits: derivation(
        step("The codes go from minus to plus this one.", "codes / 2 - 1", codes=2**bits),
        step(
            "The magnitude `amax` takes the last code.",
            "amax / last",
            float(q.symmetric_scale(amax, bits)),
            amax=amax,
            last=2 ** (bits - 1) - 1,
        ),
    ),
    misconceptions=(
        Misconception(
            "amax is the scale",
            lambda amax, bits: amax,
            "That is the largest magnitude, not the scale. The magnitude {{amax}} takes the last"
            " code. What does one step of the code stand for?",
        ),
        Misconception(
            "one code too many",
            lambda amax, bits: amax / 2 ** (bits - 1),
            "There is one more code below zero than above. Symmetric quantization leaves it out.",
        ),
        Misconception(
            "unsigned codes",
            lambda amax, bits: amax / (2**bits - 1),
            "The codes are signed: half of them are for the other sign.",
        ),
        Misconception(
            "whole range over all steps",
            lambda amax, bits: 2 * amax / (2**bits - 1),
            "That spreads all steps over both signs, and zero falls between two of them.",
        ),
        Misconception(
            "turned round",
            lambda amax, bits: (2 ** (bits - 1) - 1) / amax,
            "That is what you multiply by to get a code. The scale goes the other way.",
        ),
    ),
    holds={
        "The largest magnitude in a tensor is": "definition: a premise",
        "That is the largest magnitude, not the scale": lambda amax, bits: (
            q.symmetric_scale(amax, bits) < amax
        ),
        "There is one more code below zero": "definition: two's complement",
        "half of them are for the other sign": "definition: two's complement",
        "That spreads all steps over both signs": lambda amax, bits: (2**bits - 1) % 2 == 1,
        "The codes go from minus to plus": lambda amax, bits: (
            [code_of(x, amax, bits) for x in (amax, -amax)]
            == [2 ** (bits - 1) - 1, 1 - 2 ** (bits - 1)]
        ),
    },
)


def code_of(x, amax, bits):
    return q.symmetric_code(x, q.symmetric_scale(amax, bits), 2 ** (bits - 1) - 1)


def zero_point(low, high, bits):
    return q.asymmetric_scale(low, high, bits)[1]


zero = Question(
    id="quantization.zero_point",
    chapter=CHAPTER,
    level="apply",
    prompt=(
        "A tensor runs from {{low}} to {{high}}. Asymmetric quantization to {{bits}} bits uses the"
        " codes from zero up. Which code stands for the value zero?"
    ),
    parameters={
        "low": one_of(-1.0, -0.5, -1.0, -2.0, -0.2),
        "high": one_of(3.0, 1.5, 3.0, 5.0, 6.0),
        "bits": one_of(8, 8, 6),
    },
    expected=zero_point,
    tolerance=0.0,
    solution=lambda low, high, bits: derivation(
        step(
            "One step of the codes, from zero up.",
            "(high - low) / (codes - 1)",
            high=high,
            low=low,
            codes=2**bits,
        ),
        step(
            "Zero lies this many steps above the low end.",
            "(0 - low) / step",
            low=low,
            step=(high - low) / (2**bits - 1),
        ),
        "A code is a whole number: round.",
    ),
    smaller="quantization.symmetric_scale",
    misconceptions=(
        Misconception(
            "middle code",
            lambda low, high, bits: 2.0 ** (bits - 1),
            "That is the middle of the codes. Zero is not in the middle of this range.",
        ),
        Misconception(
            "the last symmetric code",
            lambda low, high, bits: 2.0 ** (bits - 1) - 1,
            "That is the last code of a symmetric range. Zero is not in the middle of this one.",
            slight=True,
        ),
        Misconception(
            "counted from the top",
            lambda low, high, bits: 2.0**bits - 1 - zero_point(low, high, bits),
            "You counted from the high end. Which end has code zero?",
        ),
        Misconception(
            "range from zero",
            lambda low, high, bits: round(-low * (2**bits - 1) / high),
            "The codes have to cover both sides of zero.",
        ),
        Misconception(
            "not rounded",
            lambda low, high, bits: -low * (2**bits - 1) / (high - low),
            "A code is a whole number. That is what makes zero exact.",
        ),
        Misconception(
            "symmetric",
            lambda low, high, bits: 0,
            "Zero has that code in symmetric quantization. Which value takes the code zero here?",
        ),
    ),
    valid=lambda low, high, bits: -low * (2**bits - 1) / (high - low) % 1 > 0,
    holds={
        "above the low end": lambda low, high, bits: (
            abs(-low * (2**bits - 1) / (high - low) - zero_point(low, high, bits)) <= 1 / 2
        )
    },
)

quantize = Question(
    id="quantization.quantize",
    chapter=CHAPTER,
    level="apply",
    kind="function",
    prompt=(
        "Write `quantize(x, amax, bits)`: the symmetric code of x, when the scale is made for"
        " magnitudes up to `amax` and larger values are clipped."
    ),
    parameters={
        "x": Parameter(-1.2, (-9.0, -3.0, -1.2, -0.01, 0.0, 0.5, 0.9, 2.9, 3.0, 7.0, 100.0)),
        "amax": Parameter(3.0, (1.0, 3.0, 6.0)),
        "bits": Parameter(8, (3, 4, 8)),
    },
    edges=({"x": 50.0}, {"x": -50.0}, {"x": 2.9}),
    expected=code_of,
    tolerance=0.0001,
    solution=derivation(
        "The scale is `amax` over the last code, two to the power `bits - 1`, less one.",
        "Divide by the scale and round.",
        "Hold the result between minus and plus the last code.",
        after=(
            "```python\ndef quantize(x, amax, bits):\n    top = 2 ** (bits - 1) - 1\n"
            "    return max(-top, min(top, round(x * top / amax)))\n```"
        ),
    ),
    smaller="quantization.symmetric_scale",
    misconceptions=(
        Misconception(
            "no clipping",
            lambda x, amax, bits: round(x * (2 ** (bits - 1) - 1) / amax),
            "Try an x above amax. Does the code still fit its bits?",
        ),
        Misconception(
            "cut off",
            lambda x, amax, bits: clipped(math.trunc(x * (2 ** (bits - 1) - 1) / amax), bits),
            "Cutting off the fraction doubles the largest error. Round.",
        ),
        Misconception(
            "one code too many",
            lambda x, amax, bits: clipped(round(x * 2 ** (bits - 1) / amax), bits),
            "How many codes are there above zero?",
        ),
        Misconception(
            "all codes of the integer",
            lambda x, amax, bits: max(
                -(2 ** (bits - 1)), min(2 ** (bits - 1) - 1, round(x * 2 ** (bits - 1) / amax))
            ),
            "The last code below zero has no partner above. Symmetric quantization leaves it out.",
        ),
        Misconception(
            "value, not code",
            lambda x, amax, bits: (
                clipped(round(x * (2 ** (bits - 1) - 1) / amax), bits)
                * amax
                / (2 ** (bits - 1) - 1)
            ),
            "That is the value that the code stands for. The code itself is a whole number.",
        ),
        Misconception(
            "one code too many, not clipped",
            lambda x, amax, bits: round(x / (amax / 2 ** (bits - 1))),
            "Two things: how many codes are there above zero, and does the code of a large x fit"
            " its bits?",
        ),
    ),
    holds={
        "Cutting off the fraction doubles": "algebra: a whole step against half of one",
        "has no partner above": "definition: two's complement",
    },
)


def clipped(code, bits):
    top = 2 ** (bits - 1) - 1
    return max(-top, min(top, code))


# --- noise ----------------------------------------------------------------------------------------

noise = Question(
    id="quantization.sqnr",
    chapter=CHAPTER,
    level="recall",
    prompt=(
        "A sine that fills the range is quantized to {{bits}} bits. By the law for evenly spread"
        " errors, what is the ratio of signal to quantization noise, in decibels?"
    ),
    parameters={"bits": one_of(8, 4, 6, 8, 12, 16)},
    expected=lambda bits: q.sqnr_law(bits),
    tolerance=0.02,
    solution=lambda bits: derivation(
        step(
            "The noise of rounding is spread evenly over a step: a mean square of a twelfth of the"
            " step's. A sine of amplitude $A$ has $A^2 / 2$. The step is $2A$ over the codes, so"
            " the ratio of the two powers is",
            "3 / 2 * codes**2",
            codes=2**bits,
        ),
        step(
            "In bels that is the decimal logarithm, and a bel is ten decibels.",
            "per_bel * log10(ratio)",
            float(q.sqnr_law(bits)),
            per_bel=10,
            ratio=1.5 * 4**bits,
        ),
        after=f"A bit halves the step and is worth {q.sqnr_law(9) - q.sqnr_law(8):.2f} dB.",
    ),
    misconceptions=(
        Misconception(
            "power for amplitude",
            lambda bits: 10 * bits * math.log10(2),
            "A bit halves the amplitude of the error. In decibels that is twice as much as halving"
            " a power.",
        ),
        Misconception(
            "one bit for the sign",
            lambda bits: q.sqnr_law(bits - 1),
            "The sign is among the bits, and it halves the step like any other.",
        ),
        Misconception(
            "largest error for typical error",
            lambda bits: 20 * bits * math.log10(2) - 10 * math.log10(2),
            "You compared with the largest error. Its mean square over a step is smaller.",
        ),
        Misconception(
            "a ratio, not decibels",
            lambda bits: 10 ** (q.sqnr_law(bits) / 10),
            "That is the ratio itself. Decibels are ten times its logarithm.",
        ),
        Misconception(
            "a bit is what the law gives it, and no more",
            lambda bits: 20 * bits * math.log10(2),
            "That is for the bits alone. The law has a second term, for the crest factor of the"
            " sine and the evenly spread error.",
            slight=True,
        ),
    ),
    holds={
        "A bit halves the amplitude": "algebra: the step halves",
        "that is twice as much": "algebra: power goes with the square of the amplitude",
        "The sign is among the bits": "definition",
        "You compared with the largest error": "definition: half a step",
        "Its mean square over a step is smaller": (
            "algebra: a twelfth of the squared step, not a quarter"
        ),
        "Decibels are ten times": "definition",
        "A bit halves the step and is worth": (
            lambda bits: abs(q.sqnr_law(bits) - 6.02 * bits - 1.76) < 0.02
        ),
    },
)

outlier = Question(
    id="quantization.outlier",
    chapter=CHAPTER,
    level="apply",
    prompt=(
        "One value in a tensor becomes {{factor}} times the largest of all others, and the tensor"
        " shares one int8 scale. How many of their bits do the others lose?"
    ),
    parameters={"factor": one_of(20, 5, 10, 20, 50, 100)},
    expected=lambda factor: (
        (q.sqnr_law(8, 4.0) - q.sqnr_law(8, 4.0 * factor)) / (q.sqnr_law(9) - q.sqnr_law(8))
    ),
    tolerance=0.02,
    solution=lambda factor: derivation(
        "The scale grows with the outlier, and so does the step. The others stay as they are.",
        step(
            "The bits lost are the powers of two in the factor.",
            "log2(factor)",
            float(
                (q.sqnr_law(8, 4.0) - q.sqnr_law(8, 4.0 * factor)) / (q.sqnr_law(9) - q.sqnr_law(8))
            ),
            factor=factor,
        ),
    ),
    smaller="quantization.sqnr",
    misconceptions=(
        Misconception(
            "the factor itself",
            lambda factor: factor,
            "The step grows {{factor}} times. How often has it doubled? Each time costs a bit.",
        ),
        Misconception(
            "the bits that are left",
            lambda factor: 8 - math.log2(factor),
            "Those are the bits that the others keep. How many are gone?",
            slight=True,
        ),
        Misconception(
            "decades",
            lambda factor: math.log10(factor),
            "You counted powers of ten. A bit is a power of two.",
        ),
        Misconception(
            "decibels",
            lambda factor: 20 * math.log10(factor),
            "That is the loss in decibels. How many does one bit bring?",
        ),
        Misconception(
            "natural logarithm",
            lambda factor: math.log(factor),
            "To which base is the logarithm that counts bits?",
        ),
        Misconception(
            "power for amplitude",
            lambda factor: math.log2(factor) / 2,
            "The step itself grows by the factor, not its square root.",
        ),
    ),
    holds={"times the largest of all others": "definition: a premise"},
)

# --- bytes ----------------------------------------------------------------------------------------

block_bits = Question(
    id="quantization.bits_per_weight",
    chapter=CHAPTER,
    level="recall",
    prompt=(
        "Blocks of {{block}} elements of {{bits}} bits share a scale of {{scale}} bits. How many"
        " bits does a weight really take?"
    ),
    parameters={
        "block": one_of(32, 16, 32, 64, 128, show=str),
        "bits": one_of(4, 4, 6, 8, show=str),
        "scale": one_of(8, 8, 16, 32, show=str),
    },
    expected=lambda block, bits, scale: q.bits_per_weight(bits, scale, block),
    tolerance=0.005,
    solution=lambda block, bits, scale: derivation(
        step(
            "The scale is spread over its block.",
            "scale / block",
            scale=(scale, "bit"),
            block=(block, "element"),
        ),
        step(
            "The element has its own bits.",
            "own + share",
            (float(q.bits_per_weight(bits, scale, block)), "bit/element"),
            own=(bits, "bit/element"),
            share=(scale / block, "bit/element"),
        ),
    ),
    misconceptions=(
        Misconception(
            "scale is free", lambda block, bits, scale: bits, "Someone has to store the scales."
        ),
        Misconception(
            "a scale for each",
            lambda block, bits, scale: bits + scale,
            "The scale is shared by the block.",
        ),
        Misconception(
            "block and bits swapped",
            lambda block, bits, scale: bits + block / scale,
            "Spread the scale over the block, not the block over the scale.",
        ),
        Misconception(
            "twice the scale",
            lambda block, bits, scale: bits + 2 * scale / block,
            "How wide is the scale of this block, and how many elements share it? Is there another"
            " one in yours?",
        ),
        Misconception(
            "the scale in bytes",
            lambda block, bits, scale: bits + scale / 8 / block,
            "Your scale is an eighth as wide. Is its width given in bits, or in bytes?",
        ),
        Misconception(
            "a scale in fp32",
            lambda block, bits, scale: bits + 32 / block,
            "Your scale looks like one in fp32. How wide is the scale here?",
            slight=True,
        ),
    ),
    valid=lambda block, bits, scale: block != scale,
)

model_bytes = Question(
    id="quantization.model_bytes",
    chapter=CHAPTER,
    level="apply",
    prompt=(
        "How much memory do the weights of a model of {{parameters}} parameters take in {{name}}?"
    ),
    parameters={
        "parameters": one_of(70e9, 7e9, 13e9, 70e9, 405e9, show=lambda n: si(n)),
        "name": one_of("mxfp4", "mxfp4", "nvfp4", "mxfp6_e3m2", "mxfp8_e4m3"),
    },
    expected=lambda parameters, name: q.weight_bytes(
        parameters, q.BLOCK_FORMATS[name].bits_per_weight
    ),
    unit="GB",
    tolerance=0.01,
    solution=lambda parameters, name: derivation(
        step(
            "A weight has the bits of its element, and its share of the scale of its block.",
            "own + scale / block",
            (q.BLOCK_FORMATS[name].bits_per_weight, "bit/parameter"),
            own=(q.BLOCK_FORMATS[name].element.bits, "bit/parameter"),
            scale=(q.BLOCK_FORMATS[name].scale.bits, "bit"),
            block=(q.BLOCK_FORMATS[name].block, "parameter"),
        ),
        step(
            "Eight bits are a byte.",
            "parameters * bits / 8[bit/byte]",
            (float(q.weight_bytes(parameters, q.BLOCK_FORMATS[name].bits_per_weight)), "byte"),
            parameters=(parameters, "parameter"),
            bits=(q.BLOCK_FORMATS[name].bits_per_weight, "bit/parameter"),
        ),
    ),
    smaller="quantization.bits_per_weight",
    misconceptions=(
        Misconception(
            "scales forgotten",
            lambda parameters, name: q.weight_bytes(parameters, q.BLOCK_FORMATS[name].element.bits),
            "You counted the elements only. What else does a block store?",
        ),
        Misconception(
            "bf16",
            lambda parameters, name: q.weight_bytes(parameters, 16),
            "Those are two bytes each. How wide is an element here?",
        ),
        Misconception(
            "bits for bytes",
            lambda parameters, name: parameters * q.BLOCK_FORMATS[name].bits_per_weight,
            "You counted bits. How many of them are a byte?",
        ),
        Misconception(
            "a scale byte for each",
            lambda parameters, name: q.weight_bytes(
                parameters, q.BLOCK_FORMATS[name].element.bits + 8
            ),
            "One scale serves a whole block.",
        ),
    ),
    holds={
        "You counted the elements only": lambda parameters, name: (
            q.BLOCK_FORMATS[name].element.bits < q.BLOCK_FORMATS[name].bits_per_weight
        )
    },
)

# --- time and energy ------------------------------------------------------------------------------


def decode_time(side, key, weight_bits, fixed=0.0):
    """A product of one token with a square matrix: memory-bound, plus a fixed cost."""
    moved = r.matmul_bytes(1, side, side, weight_bytes=weight_bits / 8)
    return r.transfer_time(moved, accelerator(key).hbm_bandwidth, latency=fixed)


SPEED = {
    "side": Parameter(8192, powers_of_two(4096, 16384), show=str),
    "key": chip("h200_sxm", "h200_sxm", "h100_sxm", "a100_80gb"),
    "bits": one_of(8, 8, 4),
    "fixed": Parameter(8, (5, 8, 10), "µs"),
}

weight_only = Question(
    id="quantization.weight_only_speedup",
    chapter=CHAPTER,
    level="apply",
    prompt=(
        "One token meets a matrix of {{side}} by {{side}} on one {{key}}. A kernel costs {{fixed}}"
        " in any case and then reads the weights at full bandwidth. How many times as fast do"
        " int{{bits}} weights make it, against bf16?"
    ),
    parameters=SPEED,
    expected=lambda side, key, bits, fixed: (
        decode_time(side, key, 16, fixed) / decode_time(side, key, bits, fixed)
    ),
    tolerance=0.03,
    solution=lambda side, key, bits, fixed: derivation(
        *(
            step(
                f"The time with weights in {format}: they and two vectors of bf16 are moved, beside"
                " the fixed cost.",
                "fixed + (side**2 * width + 2 * side * 2[byte]) / bandwidth",
                (float(decode_time(side, key, held, fixed)), "s"),
                fixed=(fixed, "s"),
                side=side,
                width=(held / 8, "byte"),
                bandwidth=(accelerator(key).hbm_bandwidth, "byte/s"),
            )
            for format, held in (("bf16", 16), (f"int{bits}", bits))
        ),
        step(
            "Divide.",
            "before / after",
            before=(float(decode_time(side, key, 16, fixed)), "s"),
            after=(float(decode_time(side, key, bits, fixed)), "s"),
        ),
        after="What does not shrink sets the limit, as in Amdahl's law.",
    ),
    smaller="quantization.bits_per_weight",
    misconceptions=(
        Misconception(
            "ratio of the widths",
            lambda side, key, bits, fixed: 16 / bits,
            "That is what the bytes do. The fixed cost does not shrink with them.",
        ),
        Misconception(
            "ratio of the widths to fp32",
            lambda side, key, bits, fixed: 32 / bits,
            "Those are the bytes against fp32. What are they against bf16, and what does not shrink"
            " with them?",
            slight=True,
        ),
        Misconception(
            "fixed cost once",
            lambda side, key, bits, fixed: (
                decode_time(side, key, 16) / decode_time(side, key, bits, fixed)
            ),
            "Both versions of the kernel pay the fixed cost.",
        ),
        Misconception(
            "time saved, not ratio",
            lambda side, key, bits, fixed: (
                1 - decode_time(side, key, bits, fixed) / decode_time(side, key, 16, fixed)
            ),
            "That is the share of time saved. How many times as fast is it?",
        ),
        Misconception(
            "against fp32",
            lambda side, key, bits, fixed: (
                decode_time(side, key, 32, fixed) / decode_time(side, key, bits, fixed)
            ),
            "The comparison is with bf16. How wide is that?",
        ),
    ),
    holds={"One token meets a matrix": "definition: a premise"},
)


def bound_after(batch, D, key, change):
    """The lower bound of a matmul after one change of precision."""
    device = accelerator(key)
    weight = 1 if change == "weights" else 2
    activation = 1 if change == "activations" else 2
    peak = device.int8 if change == "arithmetic" else device.bf16
    return r.time_bounds(
        r.matmul_flops(batch, D, D),
        r.matmul_bytes(batch, D, D, weight, activation, activation),
        peak,
        device.hbm_bandwidth,
    ).lower


def best_change(batch, D, key):
    return min(
        ("weights", "activations", "arithmetic"),
        key=lambda change: bound_after(batch, D, key, change),
    )


def other_change(batch, D, key):
    return "arithmetic" if best_change(batch, D, key) == "weights" else "weights"


which_int8 = Question(
    id="quantization.which_int8",
    chapter=CHAPTER,
    level="design",
    kind="choice",
    prompt=(
        "A matmul of {{batch}} tokens with weights of {{D}} by {{D}} runs in bf16 on one {{key}}."
        " Accuracy allows one change. Which shortens the bound most?"
    ),
    parameters={
        "batch": one_of(8, 4, 8, 32, 2048, 8192, show=str),
        "D": Parameter(8192, powers_of_two(4096, 16384), show=str),
        "key": chip("h100_sxm", "h100_sxm", "a100_80gb", "tpu_v5e"),
    },
    options={
        "weights": "Store the weights in int8, widen them on their way to bf16 units.",
        "activations": "Store the activations in int8, keep bf16 weights and units.",
        "arithmetic": "Run the arithmetic at the int8 peak, with both operands stored as they are.",
        "accumulator": "Accumulate in bf16 in place of fp32.",
    },
    expected=best_change,
    solution=lambda batch, D, key: derivation(
        *(
            step(
                f"The longer clock {words}.",
                "max(flops / peak, traffic / bandwidth)",
                (float(bound_after(batch, D, key, change)), "s"),
                flops=(r.matmul_flops(batch, D, D), "FLOP"),
                peak=(
                    accelerator(key).int8 if change == "arithmetic" else accelerator(key).bf16,
                    "FLOP/s",
                ),
                traffic=(
                    D * D * (1 if change == "weights" else 2)
                    + 2 * batch * D * (1 if change == "activations" else 2),
                    "byte",
                ),
                bandwidth=(accelerator(key).hbm_bandwidth, "byte/s"),
            )
            for change, words in (
                (None, "as it is"),
                ("weights", "with int8 weights"),
                ("activations", "with int8 activations"),
                ("arithmetic", "with int8 arithmetic"),
            )
        ),
        after="The accumulator stays on the chip and moves no byte to or from memory.",
    ),
    smaller="roofline.ridge",
    misconceptions=(
        Misconception(
            "the other side of the ridge",
            other_change,
            "Which takes longer at this batch, moving the bytes or computing?",
        ),
        Misconception(
            "activations are the bytes",
            lambda **_: "activations",
            "Compare the sizes of the two operands at this batch.",
        ),
        Misconception(
            "accumulator costs time",
            lambda **_: "accumulator",
            "Where does the accumulator live, and which bytes does it move?",
        ),
    ),
    holds={"The accumulator stays on the chip": "design: of matrix units"},
)


def energy_of_weight(batch, width, per_operation):
    """Joules for one weight read from DRAM and used by a batch of tokens."""
    return e.operation_energy(batch, width, per_operation, TABLE.dram_per_byte)


int8_energy = Question(
    id="quantization.int8_energy",
    chapter=CHAPTER,
    level="apply",
    prompt=(
        "By the table of Horowitz, how many times the energy of int8 does fp32 take, for a weight"
        " that is read from DRAM once and used by {{batch}} tokens (a multiply-add each)?"
    ),
    parameters={"batch": one_of(64, 16, 64, 256, 1024, show=str)},
    expected=lambda batch: (
        energy_of_weight(batch, 4, TABLE.fp32_fma) / energy_of_weight(batch, 1, TABLE.int8_fma)
    ),
    tolerance=0.01,
    solution=lambda batch: derivation(
        *(
            step(
                f"In {format} a weight is read, and then takes part in a multiply-add for each"
                " token.",
                "width * per_byte + tokens * multiply_add",
                (float(energy_of_weight(batch, width, fma)), "J"),
                width=(width, "byte"),
                per_byte=(float(TABLE.dram_per_byte), "J/byte"),
                tokens=batch,
                multiply_add=(float(fma), "J"),
            )
            for format, width, fma in (("fp32", 4, TABLE.fp32_fma), ("int8", 1, TABLE.int8_fma))
        ),
        step(
            "Divide.",
            "fp32 / int8",
            fp32=(float(energy_of_weight(batch, 4, TABLE.fp32_fma)), "J"),
            int8=(float(energy_of_weight(batch, 1, TABLE.int8_fma)), "J"),
        ),
    ),
    misconceptions=(
        Misconception(
            "arithmetic only",
            lambda batch: TABLE.fp32_fma / TABLE.int8_fma,
            "You compared the units. Where does the weight come from, and what does that cost?",
        ),
        Misconception(
            "bytes only",
            lambda batch: 4.0,
            "That is the ratio of the bytes. Add what the units take.",
        ),
        Misconception(
            "multiplies only",
            lambda batch: (
                energy_of_weight(batch, 4, TABLE.fp32_multiply)
                / energy_of_weight(batch, 1, TABLE.int8_multiply)
            ),
            "A multiply-add is a multiply and an add.",
        ),
        Misconception(
            "a read for each token",
            lambda batch: (
                energy_of_weight(1, 4, TABLE.fp32_fma) / energy_of_weight(1, 1, TABLE.int8_fma)
            ),
            "The weight is read once for the whole batch.",
        ),
    ),
    smaller="numbers.dram_over_fma",
)

int8_batch = Question(
    id="quantization.int8_batch",
    chapter=CHAPTER,
    level="apply",
    prompt=(
        "Weights are stored in int8 and widened to bf16 for the units of one {{key}}. From which"
        " batch on is a matmul compute-bound, B being far below D and F?"
    ),
    parameters={"key": chip("h200_sxm", *CHIPS)},
    expected=lambda key: r.critical_batch(
        r.ridge_point(accelerator(key).bf16, accelerator(key).hbm_bandwidth), 1
    ),
    unit="token",
    tolerance=0.02,
    solution=lambda key: derivation(
        step(
            "The units still run in bf16, so the ridge is the one of bf16.",
            "peak / bandwidth",
            peak=(accelerator(key).bf16, "FLOP/s"),
            bandwidth=(accelerator(key).hbm_bandwidth, "byte/s"),
        ),
        step(
            "A weight is one byte now and serves two FLOPs a token. Half the tokens reach the"
            " ridge.",
            "ridge * 1[byte] / 2[FLOP/token]",
            (
                float(
                    r.critical_batch(
                        r.ridge_point(accelerator(key).bf16, accelerator(key).hbm_bandwidth), 1
                    )
                ),
                "token",
            ),
            ridge=(
                float(r.ridge_point(accelerator(key).bf16, accelerator(key).hbm_bandwidth)),
                "FLOP/byte",
            ),
        ),
    ),
    smaller="roofline.ridge",
    misconceptions=(
        Misconception(
            "bf16 weights",
            lambda key: r.critical_batch(
                r.ridge_point(accelerator(key).bf16, accelerator(key).hbm_bandwidth)
            ),
            "That is the batch for weights of two bytes. How many bytes are read now?",
        ),
        Misconception(
            "int8 units",
            lambda key: r.critical_batch(
                r.ridge_point(accelerator(key).int8, accelerator(key).hbm_bandwidth), 1
            ),
            "The units compute in bf16 here, so the peak is that of bf16.",
        ),
        Misconception(
            "halved twice",
            lambda key: r.critical_batch(
                r.ridge_point(accelerator(key).bf16, accelerator(key).hbm_bandwidth), 0.5
            ),
            "That is the batch for weights of half a byte. How wide are they here?",
        ),
        Misconception(
            "narrower is harder",
            lambda key: 2 * r.ridge_point(accelerator(key).bf16, accelerator(key).hbm_bandwidth),
            "Fewer bytes for the same work: does the turn come earlier, or later? And is your peak"
            " that of bf16, or of int8?",
        ),
    ),
    holds={
        "Half the tokens reach the ridge": lambda key: (
            r.critical_batch(
                ridge := r.ridge_point(accelerator(key).bf16, accelerator(key).hbm_bandwidth), 1
            )
            * 2
            == r.critical_batch(ridge, 2)
        )
    },
)

reached = Question(
    id="quantization.reached_rate",
    chapter=CHAPTER,
    level="recall",
    prompt=(
        "The peak of a chip is {{peak}} in bf16. Large products reach {{share}} of it. At what rate"
        " do they run?"
    ),
    parameters={
        "peak": Parameter(1000, (300, 1000, 2250), "TFLOP/s"),
        "share": Parameter(72, (64, 72, 80), "%"),
    },
    expected=lambda peak, share: peak * share,
    unit="TFLOP/s",
    solution=lambda peak, share: derivation(
        step(
            "A share of the peak is a rate.",
            "peak * share",
            (peak * share, "FLOP/s"),
            peak=(peak, "FLOP/s"),
            share=(share, "%"),
        ),
        after="Shares of two formats are compared only after each is turned into its rate.",
    ),
    misconceptions=(
        Misconception(
            "the peak",
            lambda peak, share: peak,
            "That is what the chip could do. How much of it is reached?",
        ),
        Misconception(
            "the rest",
            lambda peak, share: peak * (1 - share),
            "That is what is left over. What is reached?",
        ),
        Misconception(
            "divided by the share",
            lambda peak, share: peak / share,
            "That is more than the peak. Can a product be faster than its roof?",
        ),
    ),
    holds={
        "only after each is turned into its rate": "definition: shares are of different peaks",
        "That is more than the peak": lambda peak, share: peak / share > peak,
    },
)

promised = Question(
    id="quantization.share_of_the_promise",
    chapter=CHAPTER,
    level="apply",
    prompt=(
        "On one chip the peak of a four-bit format is {{ratio}} times that of bf16. Large products"
        " reach {{wide}} of the roof in bf16 and {{narrow}} of theirs in four bits. How many times"
        " as fast are they in four bits?"
    ),
    parameters={
        "ratio": Parameter(4, (4, 6), show=str),
        "wide": Parameter(64, (64, 72), "%"),
        "narrow": Parameter(42, (30, 42, 50), "%"),
    },
    expected=lambda ratio, wide, narrow: ratio * narrow / wide,
    unit="",
    solution=lambda ratio, wide, narrow: derivation(
        step(
            "What four bits reach, in peaks of bf16.",
            "ratio * narrow",
            (ratio * narrow, ""),
            ratio=ratio,
            narrow=(narrow, "%"),
        ),
        step(
            "Over what bf16 reaches of its own.",
            "reached / wide",
            ratio * narrow / wide,
            reached=ratio * narrow,
            wide=(wide, "%"),
        ),
        after="The peak is a promise, and each format reaches a different share of its own.",
    ),
    holds={
        "each format reaches a different share": lambda ratio, wide, narrow: narrow < wide,
        "On one chip the peak of a four-bit format": "definition",
    },
    misconceptions=(
        Misconception(
            "the promise",
            lambda ratio, wide, narrow: ratio,
            "That is the ratio of the peaks. What do the products reach of each?",
        ),
        Misconception(
            "the shares alone",
            lambda ratio, wide, narrow: narrow / wide,
            "That compares the shares. Of which peak is each of them a share?",
        ),
        Misconception(
            "only the share of four bits",
            lambda ratio, wide, narrow: ratio * narrow,
            "bf16 does not reach its peak either.",
        ),
        Misconception(
            "shares upside down",
            lambda ratio, wide, narrow: ratio * wide / narrow,
            "The format that reaches less of its roof gains less.",
        ),
        Misconception(
            "only the share of bf16",
            lambda ratio, wide, narrow: ratio / wide,
            "You let four bits reach their roof. Do they?",
        ),
    ),
    smaller="quantization.reached_rate",
)

register(
    symmetric_scale,
    zero,
    quantize,
    noise,
    outlier,
    block_bits,
    model_bytes,
    weight_only,
    int8_batch,
    which_int8,
    int8_energy,
    reached,
    promised,
)
