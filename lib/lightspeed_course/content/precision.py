"""What the formulas of precision.md call."""

import math

from lightspeed.precision import FORMATS, Format
from lightspeed_course.content.quantization import bound_after
from lightspeed_course.practice.questions import Parameter
from lightspeed_models.simulators.sums import accumulate as accumulate

E4M3 = FORMATS["fp8_e4m3"]

# Normal numbers with something in the mantissa: nothing that a misreading would get right.
E4M3_CODES = tuple(code for code in range(2**4, 2**7 - 1) if code % 2**3)


def one_of(canonical, *choices, **more):
    return Parameter(canonical, choices, **more)


def misread(f, **changed):
    """Return the format with other top codes, bias or fields, as a misreading gives."""
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
    """Return the rounding errors of numbers around x."""
    f = FORMATS[name]
    inputs = [f.round(x) + f.spacing(x) * eighths / 8 for eighths in range(9)]
    return [abs(f.round(value) - value) for value in inputs]


def relative_step(name, share):
    """The step as a share of the number, at this share of the smallest normal one."""
    x = FORMATS[name].smallest_normal * share
    return FORMATS[name].spacing(x) / x


def top_mantissa(name):
    """The largest mantissa field of a number in the top exponent."""
    return 2 ** FORMATS[name].mantissa_bits - 1 - FORMATS[name].has_nan


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
    """Magnitude below which a tensor's numbers vanish, with its own scale."""
    scale = amax / (largest or FORMATS[name].max)
    return scale * getattr(FORMATS[name], smallest) / 2


def kept(weight, share, name):
    """Whether rounding to nearest keeps an update of this share of a weight."""
    return weight * share > FORMATS[name].spacing(weight) / 2
