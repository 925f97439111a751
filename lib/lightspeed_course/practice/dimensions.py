"""The dimensions that a question has: they decide which slips may be made in it."""

import re
from functools import cache

from lightspeed_course.practice.amounts import si_factor
from lightspeed_course.practice.unit_table import unit as unit_of

CLOCKS = {
    60: "seconds and minutes, or minutes and hours",
    3600: "seconds and hours",
    24: "hours and days",
    1440: "minutes and days",
    86400: "seconds and days",
}


@cache
def dimensions(unit):
    """Return the dimensions of a unit, each with its power."""
    return unit_of(unit).dimensions


def units(q):
    """Return the units of a question's answer and parameters."""
    return (q.unit, *(p.unit for p in q.parameters.values()))


def clocks(q):
    """Return factors between time units that may be confused here: days only if a clock is used."""
    clocked = re.search(r"\bdays?\b|\bhours?\b", q.prompt) or any(
        si_factor(u) in CLOCKS and set(dimensions(u)) == {"[time]"} for u in units(q)
    )
    is_time = set(dimensions(q.unit)) - {"[request]"} == {"[time]"} and si_factor(q.unit) >= 1
    return tuple(CLOCKS) if clocked else (60, 3600) if is_time else ()


def is_key(variant, *kinds):
    """Whether a parameter is a catalog entry of one of these kinds."""
    keys = [value for value in variant.values.values() if isinstance(value, str)]
    if not keys:
        return False
    from lightspeed.catalog import entries

    return any(key in entries(kind) for key in keys for kind in kinds)


def inside(variant):
    """The dimensions of answer and premises; catalog keys stand for bytes, chips for FLOPs."""
    dims = {name for unit in units(variant.question) for name in dimensions(unit)}
    if is_key(variant, "accelerators", "links", "memory", "models"):
        dims |= {"[information]"}
    if by_peak(variant):
        dims |= {"[operation]"}
    # An energy has a length in it, but no way to go.
    return dims - {"[length]"} if "[mass]" in dims else dims


def by_peak(variant):
    """Whether a peak may underlie the answer: one in FLOP/s, or a chip's time or ratio."""
    q, dims = variant.question, set(dimensions(variant.question.unit))
    if "[information]" in dims and "[operation]" not in dims:
        return False  # bytes, and bytes a second
    if any({"[operation]", "[time]"} <= set(dimensions(u)) for u in units(q)):
        return True
    of_ratios = {"[operation]", "[information]", "[time]", "[token]"}
    ratio = q.unit == "%" or (dims and dims <= of_ratios)
    return bool(ratio) and is_key(variant, "accelerators")
