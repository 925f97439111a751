"""Number formats: which numbers can so many bits hold, and what happens to the rest? Chapter 5.

A floating-point code is three fields, sign, exponent and mantissa, and stands for

    (-1)^sign * 1.mantissa * 2^(exponent - bias)      exponent field above zero (normal)
    (-1)^sign * 0.mantissa * 2^(1 - bias)             exponent field zero (subnormal)

Values are plain numbers or numpy arrays; they are handled as float64, which holds every value
of every format here exactly. Sources: IEEE 754-2019; OCP 8-bit Floating Point v1.0 (2023);
OCP Microscaling Formats (MX) v1.0 (2023).
"""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from lightspeed.codes import all_within, code_of, plain_codes, plain_values, rounded, whole
from lightspeed.elementwise import (
    INF,
    Result,
    Value,
    any_of,
    copysign,
    floor,
    frexp,
    isfinite,
    isnan,
    ldexp,
    maximum,
    minimum,
    where,
)
from lightspeed.errors import BadArgument, one_of

__all__ = ("FORMATS", "Format", "Integer", "number_format")

SPECIALS = ("ieee", "fn", "finite", "fnuz")


@dataclass(frozen=True)
class Format:
    """A floating-point format, by the widths of its fields and the use of its top codes.

    `specials` says which codes are not numbers: "ieee", the whole top exponent is infinity and
    NaN; "fn", only the code of all ones is NaN; "finite", none; "fnuz", only the code of -0, and
    it is NaN. A `scale` format (E8M0) is an exponent alone: no sign, no zero, no subnormals.
    """

    name: str
    exponent_bits: int
    mantissa_bits: int
    bias: int
    specials: str = "ieee"
    scale: bool = False

    def __post_init__(self) -> None:
        one_of("Format", "specials", self.specials, SPECIALS)
        if self.bits > 64 or self.exponent_bits < 1 or self.mantissa_bits < 0:
            raise BadArgument(
                "Format",
                "bits",
                self.bits,
                "an exponent of 1 bit or more, and at most 64 bits in all",
            )

    @property
    def bits(self) -> int:
        return (not self.scale) + self.exponent_bits + self.mantissa_bits

    @cached_property
    def max(self) -> float:
        """The largest finite value."""
        return float(self.decode(self._max_code))

    @property
    def min(self) -> float:
        """The lowest finite value."""
        return self.smallest_subnormal if self.scale else -self.max

    @property
    def smallest_normal(self) -> float:
        """The smallest value with a full significand."""
        return 2.0**self._lowest

    @property
    def smallest_subnormal(self) -> float:
        """The smallest value above zero."""
        return self.smallest_normal if self.scale else 2.0 ** (self._lowest - self.mantissa_bits)

    @property
    def eps(self) -> float:
        """The gap between 1 and the next value."""
        return 2.0**-self.mantissa_bits

    @property
    def has_nan(self) -> bool:
        return self.specials != "finite"

    def decode(self, codes: Any) -> Any:
        """The value of each code, a whole number from 0 to 2^bits - 1.

        >>> FORMATS["fp8_e4m3"].decode(0b0_1111_110)
        448.0
        """
        sign, magnitude = divmod(plain_codes(self, codes), 2**self._magnitude_bits)
        field, fraction = divmod(magnitude, 2**self.mantissa_bits)
        normal = (field > 0) | self.scale
        significand = where(normal, 2.0**self.mantissa_bits, 0.0) + fraction
        value = ldexp(significand, whole(where(normal, field, 1)) - self.bias - self.mantissa_bits)
        infinite = (fraction == 0) & (self.specials == "ieee")
        value = where(magnitude > self._max_code, where(infinite, INF, math.nan), value)
        value = where((sign > 0) & (magnitude == 0) & (self.specials == "fnuz"), math.nan, value)
        return where(sign > 0, -value, value)

    def encode(self, values: Value, saturate: bool = False, rng: Any = None) -> Any:
        """The code of the value nearest to each of `values`; a tie goes to the even code.

        Beyond the largest value the answer is infinity, or NaN if the format has none, or the
        largest value if it has neither or if `saturate`. With a numpy generator `rng` the
        rounding is stochastic: up with the probability that keeps the mean.

        >>> FORMATS["bf16"].encode(257.0) == FORMATS["bf16"].encode(256.0)
        True
        """
        x = plain_values(self.name, values)
        nan = isnan(x) | (self.scale & (x <= 0))
        if any_of(nan) and not self.has_nan:
            raise BadArgument(
                self.name, "values", math.nan, "numbers", f"{self.name} has no code for NaN."
            )
        exponent, units = self._units(where(isfinite(x), abs(x), 0.0), rng)
        # A carry out of the mantissa lands in the exponent field, where it belongs; and the code
        # after the largest value is infinity in "ieee" and NaN in "fn" and "fnuz".
        code = (whole(exponent - self._lowest) << self.mantissa_bits) + whole(units)
        code = maximum(code - 1, 0) if self.scale else code
        top = self._max_code + (self.has_nan and not saturate)
        code = where(abs(x) == INF, top, minimum(code, top))
        code = code_of(where(nan, self._nan_code, code))
        signed = (not self.scale) & ((code > 0) | (self.specials != "fnuz"))
        negative = (copysign(1.0, x) < 0) & signed
        return code | code_of(negative) << self._magnitude_bits

    def round(self, values: Value, saturate: bool = False, rng: Any = None) -> Any:
        """Return `values` rounded to this format: what remains after storing them.

        >>> FORMATS["fp16"].round(60000.0 * 2)
        inf
        """
        x = plain_values(self.name, values)
        if self._every_float and rng is None:
            return x
        if not self.scale and self.specials != "fnuz" and all_within(x, self.max):
            exponent, units = self._units(abs(x), rng)
            stored = ldexp(units, exponent - self.mantissa_bits)
            if all_within(stored, self.max):
                return copysign(stored, x)
        # Something leaves the range, or needs a code that is no plain number.
        return self.decode(self.encode(values, saturate, rng))

    def values(self) -> Any:
        """Every finite value, in order (formats of at most 16 bits)."""
        if self.bits > 16:
            raise BadArgument(
                self.name,
                "bits",
                self.bits,
                "at most 16 bits",
                "There are too many values to list.",
            )
        import numpy

        every = self.decode(numpy.arange(2**self.bits, dtype=numpy.int64))
        return numpy.unique(every[numpy.isfinite(every)])

    def spacing(self, values: Value) -> Result:
        """The gap between neighbouring values around each of `values`.

        >>> FORMATS["bf16"].spacing(256.0)
        2.0
        """
        x = plain_values(self.name, values)
        if not all_within(x, self.max):
            raise BadArgument(self.name, "values", values, f"finite numbers up to {self.max:g}")
        return ldexp(1.0, self._binade(abs(x)) - self.mantissa_bits)

    def neighbours(self, value: float) -> tuple[float, float]:
        """The nearest values below and above one finite number; where there is none, infinity or
        NaN.

        >>> FORMATS["fp4_e2m1"].neighbours(5.0)
        (4.0, 6.0)
        """
        if not isfinite(plain_values(self.name, value)) or (self.scale and value <= 0):
            raise BadArgument(
                self.name, "value", value, "a finite number that the format can approach"
            )
        sign, magnitude = divmod(self.encode(value, saturate=True), 2**self._magnitude_bits)
        rank = -magnitude if sign else magnitude
        nearest = self._ranked(rank)
        below = nearest if nearest < value else self._ranked(rank - 1)
        above = nearest if nearest > value else self._ranked(rank + 1)
        return below, above

    def fields(self, code: int) -> tuple[str, str, str]:
        """The bits of one code as text: (sign, exponent, mantissa).

        >>> FORMATS["bf16"].fields(FORMATS["bf16"].encode(1.5))
        ('0', '01111111', '1000000')
        """
        text = f"{int(plain_codes(self, code)):0{self.bits}b}"
        sign, start = self.bits - self._magnitude_bits, self.bits - self.mantissa_bits
        return text[:sign], text[sign:start], text[start:]

    @property
    def _magnitude_bits(self) -> int:
        return self.exponent_bits + self.mantissa_bits

    @property
    def _lowest(self) -> int:
        return -self.bias if self.scale else 1 - self.bias

    @property
    def _max_code(self) -> int:
        reserved = {"ieee": 1 << self.mantissa_bits, "fn": 1}.get(self.specials, 0)
        return (1 << self._magnitude_bits) - 1 - reserved

    @property
    def _nan_code(self) -> int:
        return self._max_code + 1 + (1 << self.mantissa_bits - 1 if self.specials == "ieee" else 0)

    @property
    def _every_float(self) -> bool:
        """Whether Python's own floats are this format, so that nothing is left to round."""
        fields = self.exponent_bits, self.mantissa_bits, self.bias, self.specials
        return fields == (11, 52, 1023, "ieee")

    def _binade(self, magnitude: Value) -> Result:
        """floor(log2) of each magnitude, and not below that of the subnormals."""
        return frexp(maximum(magnitude, self.smallest_normal))[1] - 1

    def _units(self, magnitude: Value, rng: Any) -> tuple[Result, Result]:
        """The binade of each magnitude, and how many steps of that binade it comes to, rounded."""
        exponent = self._binade(magnitude)
        return exponent, rounded(ldexp(magnitude, self.mantissa_bits - exponent), rng)

    def _ranked(self, rank: int) -> float:
        """The value so many places above zero (below, if negative)."""
        if abs(rank) > self._max_code or (self.scale and rank < 0):
            return math.copysign(INF if self.specials == "ieee" else math.nan, rank)
        value = float(self.decode(abs(rank)))
        return -value if rank < 0 else value


@dataclass(frozen=True)
class Integer:
    """A two's complement (or unsigned) integer format that rounds to even and saturates."""

    name: str
    bits: int
    signed: bool = True
    eps = 1.0

    @property
    def max(self) -> float:
        return 2.0 ** (self.bits - self.signed) - 1

    @property
    def min(self) -> float:
        return -self.max - 1 if self.signed else 0.0

    def decode(self, codes: Any) -> Any:
        """The value of each code; the top bit weighs -2^(bits - 1) if signed.

        >>> FORMATS["int8"].decode(0b1000_0000)
        -128.0
        """
        code = plain_codes(self, codes) * 1.0
        return where(code > self.max, code - 2.0**self.bits, code)

    def encode(self, values: Value, rng: Any = None) -> Any:
        """Return the code of the integer nearest to each of `values`, clipped to the range."""
        x = plain_values(self.name, values)
        if any_of(isnan(x)):
            raise BadArgument(
                self.name, "values", math.nan, "numbers", f"{self.name} has no code for NaN."
            )
        inside = minimum(maximum(x, self.min), self.max)  # first: infinity has no whole number
        nearest = whole(rounded(inside, rng))
        return code_of(where(nearest < 0, nearest + 2**self.bits, nearest))

    def round(self, values: Value, rng: Any = None) -> Any:
        """Return the integer nearest to each of `values`, clipped to the range."""
        return self.decode(self.encode(values, rng))

    def values(self) -> Any:
        """Every value, in order."""
        import numpy

        return numpy.arange(self.min, self.max + 1, dtype=float)

    def spacing(self, values: Value) -> Result:
        """Always 1."""
        return 0.0 * plain_values(self.name, values) + 1.0

    def neighbours(self, value: float) -> tuple[float, float]:
        """The nearest values below and above one number; NaN where there is none."""
        below = min(-floor(-value) - 1, self.max)
        above = max(floor(value) + 1, self.min)
        return (below if below >= self.min else math.nan), (
            above if above <= self.max else math.nan
        )

    def fields(self, code: int) -> tuple[str, str, str]:
        """The bits of one code as text: (sign, nothing, the rest)."""
        text = f"{int(plain_codes(self, code)):0{self.bits}b}"
        return text[: self.signed], "", text[self.signed :]


FORMATS: dict[str, Any] = {
    f.name: f
    for f in (
        Format("fp64", 11, 52, bias=1023),
        Format("fp32", 8, 23, bias=127),
        Format("tf32", 8, 10, bias=127),  # 19 bits of arithmetic; it sits in memory as fp32
        Format("bf16", 8, 7, bias=127),
        Format("fp16", 5, 10, bias=15),
        Format("fp8_e4m3", 4, 3, bias=7, specials="fn"),
        Format("fp8_e5m2", 5, 2, bias=15),
        Format("fp6_e2m3", 2, 3, bias=1, specials="finite"),
        Format("fp6_e3m2", 3, 2, bias=3, specials="finite"),
        Format("fp4_e2m1", 2, 1, bias=1, specials="finite"),
        Format("e8m0", 8, 0, bias=127, specials="fn", scale=True),
        Integer("int8", 8),
        Integer("int4", 4),
        # Cousins, easily taken for the OCP formats above, that differ in bias and top codes.
        Format("fp8_e4m3_ieee", 4, 3, bias=7),
        Format("fp8_e3m4_ieee", 3, 4, bias=3),
        Format("fp8_e4m3fnuz", 4, 3, bias=8, specials="fnuz"),
        Format("fp8_e5m2fnuz", 5, 2, bias=16, specials="fnuz"),
        Format("fp8_e4m3b11fnuz", 4, 3, bias=11, specials="fnuz"),
        Integer("uint8", 8, signed=False),
        Integer("uint4", 4, signed=False),
    )
}

# The names that numpy and ml_dtypes give to the same formats.
ALIASES = {
    "float64": "fp64",
    "float32": "fp32",
    "bfloat16": "bf16",
    "float16": "fp16",
    "float8_e4m3fn": "fp8_e4m3",
    "float8_e5m2": "fp8_e5m2",
    "float6_e2m3fn": "fp6_e2m3",
    "float6_e3m2fn": "fp6_e3m2",
    "float4_e2m1fn": "fp4_e2m1",
    "float8_e8m0fnu": "e8m0",
    "float8_e4m3": "fp8_e4m3_ieee",
    "float8_e3m4": "fp8_e3m4_ieee",
    "float8_e4m3fnuz": "fp8_e4m3fnuz",
    "float8_e5m2fnuz": "fp8_e5m2fnuz",
    "float8_e4m3b11fnuz": "fp8_e4m3b11fnuz",
}


def number_format(name: str) -> Format | Integer:
    """Return the format named `name`: ours ("bf16") or one of numpy and ml_dtypes ("bfloat16").

    >>> number_format("float8_e4m3fn").max
    448.0
    """
    format: Format | Integer = FORMATS[
        ALIASES.get(name) or one_of("number_format", "name", name, FORMATS)
    ]
    return format
