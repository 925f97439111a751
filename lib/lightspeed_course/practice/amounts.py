"""Amounts: numbers in a unit, as they are compared, written and kept round."""

import math
from functools import cache

from lightspeed_course.practice.unit_table import unit as unit_of
from lightspeed_course.practice.values import values_of

_ONES = "a two three four five six seven eight nine"
_TENS = "ten twenty thirty forty fifty sixty seventy eighty ninety"


def close(a, b, tolerance):
    """Whether all of `a` are within a relative `tolerance` of `b`; equal infinities are close."""
    a, b = values_of(a), values_of(b)
    share = max(tolerance, 1e-9) * (1 + 1e-9)
    largest = max((abs(v) for v in b if math.isfinite(v)), default=0)
    return all(
        x == y or (math.isfinite(y) and abs(x - y) <= share * (abs(y) or largest))
        for x, y in zip(a, b, strict=True)
    )


def amount(value, unit="", digits=4):
    """A number in `unit`, written to so many digits; in powers of ten where it would be a row of
    zeros. A count below a million stands in full: 65,536.
    """
    from lightspeed_show.format import prefixed, si

    size = abs(value)
    if size < 1e6 and value % 1 == 0 and unit != "%" and not prefixed(unit):
        return si(int(value), unit, digits)
    low, high = (1e-18, 1e24) if prefixed(unit) else (1e-4, 1e12)
    if size == 0 or math.isinf(size) or low <= size < high:
        return si(value / 100 if unit == "%" else value, unit, digits)
    mantissa, exponent = f"{value:.{digits - 1}e}".split("e")
    return f"{float(mantissa):g}e{int(exponent)} {unit}".rstrip()


def times(decades):
    """Return a power of ten as a rough factor in words, since its digits might be the answer's.

    >>> times(0.6), times(-2.3), times(4.5)
    ('4 times', 'about two hundred times', 'about thirty thousand times')
    """
    factor = 10 ** min(abs(decades), 9)
    if factor < 9.5:
        return f"{factor:.2g} times"
    digit, zeros = (int(part) for part in f"{factor:.0e}".split("e"))
    if zeros > 5:
        return "a million times or more"
    word = (_TENS if zeros % 3 == 1 else _ONES).split()[digit - 1]
    parts = [word, *["hundred"] * (zeros % 3 == 2), *["thousand"] * (zeros > 2)]
    return f"about {' '.join(parts)} times"


def unit_words(unit):
    """The unit as a sentence names it: "ms", "tokens", "dollars"."""
    if unit == "dollar":
        return "dollars"
    return amount(2, unit).partition(" ")[2]


@cache
def si_factor(unit):
    """How many of the course's SI units (byte, s, FLOP, J, ...) one `unit` is."""
    return unit_of(unit).factor


def nice(low, high):
    """Return round numbers from `low` to `high`, suited for mental arithmetic."""
    steps = (1, 1.5, 2, 2.5, 3, 4, 5, 6, 8)
    decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    values = [float(f"{s}e{d}") for d in decades for s in steps]
    return tuple(int(v) if v % 1 == 0 else v for v in values if low <= v <= high)


def powers_of_two(low, high):
    """The powers of two from `low` to `high`."""
    return tuple(2**n for n in range(math.ceil(math.log2(low)), math.floor(math.log2(high)) + 1))
