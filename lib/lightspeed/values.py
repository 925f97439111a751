"""Quantities as people write them, "990 TFLOP/s", "3.5 µs", "39 days", and numbers that show
themselves so.
"""

from __future__ import annotations

import math
from decimal import ROUND_HALF_UP, Decimal
from numbers import Integral
from typing import Any

__all__ = ("Amount", "Whole", "human_time", "plain", "plural", "prefixed", "si")

_PREFIXES = {
    -15: "f",
    -12: "p",
    -9: "n",
    -6: "µ",
    -3: "m",
    0: "",
    3: "k",
    6: "M",
    9: "G",
    12: "T",
    15: "P",
    18: "E",
    21: "Z",
}
_PREFIXED = {"s", "byte", "bit", "FLOP", "OP", "W", "J", "Wh", "Hz", "m"}
_COUNTED = {
    "token", "request", "parameter", "row", "step", "device", "chip", "layer", "year", "day",
    "byte", "bit", "head", "hour", "buffer",
}  # fmt: skip
_RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
_WORDS = {6: "million", 9: "billion", 12: "trillion", 15: "quadrillion"}


def prefixed(unit: str) -> bool:
    """Whether this unit takes SI prefixes (10 GB/s) rather than plain numbers (153 FLOP/byte)."""
    return unit.partition("/")[0] in _PREFIXED and unit not in ("FLOP/byte", "byte/FLOP")


def si(value: float, unit: str = "", digits: int = 3) -> str:
    """A number in SI base units with the prefix that suits it: si(2.039e12, "byte/s") is "2.04
    TB/s".

    Bytes, bits, FLOP, seconds, watts, joules, hertz and their rates take prefixes; counts take
    words ("70 billion parameters"); FLOP/byte and other units stay plain ("1,000 FLOP/byte"). "%"
    expects a fraction, "dollar" gives "$3.2 million". A number that carries a unit is refused
    another one: si(link.bandwidth, "bit/s") would print bytes as bits.

    >>> si(3.5e-6, "s"), si(989.5e12, "FLOP/s"), si(1, "token"), si(0.284, "%", 2)
    ('3.5 µs', '990 TFLOP/s', '1 token', '28 %')
    """
    own = getattr(value, "unit", unit)
    same = own.replace("FLOP", "OP") == unit.replace("FLOP", "OP")  # one axis may have both
    if unit and not same and (own or prefixed(unit) or unit == "dollar"):
        raise ValueError(
            f"si: unit = {unit!r}: expected {own!r}, the unit that this number carries; convert it"
            f" first, as 8 * rate for bits of a rate in bytes, or float(...) to drop its unit"
        )
    if math.isnan(value):
        raise ValueError(f"si: value = nan {unit}: expected a number")
    if unit == "%":
        return plain(100 * value, digits) + " %"
    if unit == "dollar":
        return ("-$" if value < 0 else "$") + _in_words(abs(value), digits)
    if not prefixed(unit):
        return f"{_in_words(value, digits)} {plural(unit, value)}".rstrip()
    numerator, slash, rest = unit.partition("/")
    exponent = _exponent(value, digits, numerator)
    if exponent == 0 and not slash:  # "64 bytes", but "64 B/s"
        return f"{plain(value, digits)} {plural(numerator, value)}"
    return (
        f"{plain(value / 10.0**exponent, digits)}"
        f" {_PREFIXES[exponent]}{'B' if numerator == 'byte' else numerator}{slash}{rest}"
    )


def plain(value: float, digits: int = 3) -> str:
    """A number to so many significant digits, without exponent or trailing zeros, with thousands
    separated: "1,230", "0.05", "∞".

    Whole numbers (of type int) below a million are counts and stand in full: plain(4096) is
    "4,096". A tie goes up, as at school.
    """
    if isinstance(value, Integral) and abs(value) < 1_000_000:
        return f"{int(value):,}"
    if math.isinf(value):
        return "∞" if value > 0 else "-∞"
    if value == 0:
        return "0"
    if not 1e-4 <= abs(value) < 1e15:
        mantissa, _, exponent = f"{value:.{digits - 1}e}".partition("e")
        return f"{plain(float(mantissa), digits)} × 10{str(int(exponent)).translate(_RAISED)}"
    places = digits - 1 - math.floor(math.log10(abs(value)))
    # round() takes ties to the even digit; a reader of 62.5 % beside 62 % thinks one is wrong.
    rounded = Decimal(repr(float(value))).quantize(Decimal(1).scaleb(-places), ROUND_HALF_UP)
    text = f"{rounded:,.{max(places, 0)}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def human_time(seconds: float, digits: int = 2) -> str:
    """A time in the unit that a person would use: "350 µs", "12 s", "2.8 h", "39 days", "1.2
    years".

    >>> human_time(1e4), human_time(3.4e6), human_time(90), human_time(86400)
    ('2.8 h', '39 days', '1.5 min', '1 day')
    """
    seconds = float(seconds)
    for size, unit in ((365.25 * 86400, "year"), (86400, "day"), (3600, "h"), (60, "min")):
        # Half a unit of the last digit below, so that 59.99 s is "1 min" and never "60 s".
        if abs(seconds) >= size * (1 - 0.5 * 10.0**-digits):
            amount = seconds / size
            rounded = plain(amount, digits)
            return (
                f"{_in_words(amount, digits)}"
                f" {unit if (len(unit) < 4 and unit != 'day') or rounded == '1' else unit + 's'}"
            )
    return si(seconds, "s", digits)


def _exponent(value: float, digits: int, numerator: str) -> int:
    """The power of a thousand to divide by, after rounding: 999.96e9 to three digits is 1 T."""
    if value == 0 or math.isinf(value):
        return 0
    rounded = float(f"{abs(value):.{digits - 1}e}")
    exponent = 3 * math.floor(math.floor(math.log10(rounded) + 1e-12) / 3)
    highest = {"s": 0, "m": 3}.get(numerator, 21)  # nobody says kiloseconds or megametres
    lowest = 0 if numerator in ("byte", "bit", "FLOP", "OP") else -15
    return min(max(exponent, lowest), highest)


def _in_words(value: float, digits: int) -> str:
    """Counts of a million and more with the word: "1.2 million"."""
    if math.isfinite(value) and abs(value) >= 999_999.5:
        exponent = min(_exponent(value, digits, ""), 15)
        return f"{plain(value / 10.0**exponent, digits)} {_WORDS[exponent]}"
    return plain(value, digits)


def plural(unit: str, value: float = 2) -> str:
    """ "tokens" for more or less than one token; symbols such as FLOP stay as they are."""
    return unit + "s" if unit in _COUNTED and value != 1 else unit


class _Shown:
    """A number that shows itself with its unit; its `str` and f-strings have the digits alone."""

    __slots__ = ()
    unit: str

    def __repr__(self) -> str:
        number: Any = self
        if number != number:
            return f"nan {self.unit}".rstrip()
        if not self.unit and number == number // 1 and abs(number) < 1_000_000:
            number = int(number)  # a count stands in full: 4,096, not 4,100
        return si(number, self.unit)


class Amount(_Shown, float):
    """A float in the SI unit `.unit` that shows itself as `295 FLOP/byte`. Arithmetic on it gives
    plain floats.

    >>> bandwidth = Amount(3.35e12, "byte/s")
    >>> bandwidth, bandwidth / 2, f"{bandwidth:.3g}"
    (3.35 TB/s, 1675000000000.0, '3.35e+12')
    """

    __slots__ = ("unit",)

    def __new__(cls, value: float, unit: str) -> Amount:
        self = float.__new__(cls, value)
        self.unit = unit
        return self

    __str__ = float.__repr__  # whoever writes it to a file or reads it back gets all digits

    def __reduce__(self) -> tuple[Any, ...]:
        return Amount, (float(self), self.unit)


class Whole(_Shown, int):
    """The same for a whole number, which stays an exact int, and shows itself in full below a
    million.

    >>> Whole(33554432, "FLOP"), Whole(4098, "byte"), Whole(4098, "byte") + 1
    (33.6 MFLOP, 4,098 bytes, 4099)
    """

    def __new__(cls, value: int, unit: str) -> Whole:
        self = int.__new__(cls, value)
        self.unit = unit
        return self

    def __repr__(self) -> str:
        full = f"{int(self):,} {plural(self.unit, self)}"
        return full if abs(self) < 1_000_000 else super().__repr__()

    __str__ = int.__repr__

    def __reduce__(self) -> tuple[Any, ...]:
        return Whole, (int(self), self.unit)
