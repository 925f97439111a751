"""Codes and values as the formats of `lightspeed.precision` take them: a number or an array."""

import numbers
from typing import Any

from lightspeed.elementwise import Result, Value, floor, is_array, rint
from lightspeed.errors import BadArgument
from lightspeed.law import is_quantity

__all__ = ("all_within", "code_of", "plain_codes", "plain_values", "rounded", "whole")


def plain_values(law: str, values: Any) -> Any:
    """Return `values` as a float or float64 array; raise BadArgument for what is no number."""
    if is_quantity(values):
        raise BadArgument(
            law, "values", values, "plain numbers", "Formats store plain numbers: pass .magnitude."
        )
    if is_array(values) and values.dtype.kind in "iuf" and values.size:
        return values.astype("float64")
    if is_array(values) or isinstance(values, bool) or not isinstance(values, numbers.Real):
        hint = "Wrap a list in numpy.array(...)." if isinstance(values, (list, tuple)) else ""
        raise BadArgument(
            law, "values", values, "a number or a numpy array of one number or more", hint
        )
    return float(values)


def plain_codes(format: Any, codes: Any) -> Any:
    """`codes` as a whole number or int64 array, each in the range of the format."""
    array = is_array(codes) and codes.dtype.kind in "iu" and codes.size > 0
    whole = isinstance(codes, numbers.Integral) and not isinstance(codes, bool)
    low, high = (int(codes.min()), int(codes.max())) if array else (codes, codes)
    if not (array or whole) or low < 0 or high >= 2**format.bits:
        raise BadArgument(
            format.name, "codes", codes, f"whole numbers from 0 to {2**format.bits - 1}"
        )
    return codes.astype("uint64") if array else int(codes)


def all_within(x: Value, limit: float) -> bool:
    """Whether every magnitude is at most `limit`, and none is NaN."""
    within = abs(x) <= limit
    return bool(within.all()) if is_array(within) else within


def rounded(x: Any, rng: Any) -> Result:
    """Round `x` to the nearest whole number, ties to even; with `rng`, up or down at random."""
    if rng is None:
        return rint(x)
    return floor(x + (rng.random(x.shape) if is_array(x) else rng.random()))


def whole(x: Any) -> Any:
    return x.astype("int64") if is_array(x) else int(x)


def code_of(x: Any) -> Any:
    return x.astype("uint64") if is_array(x) else int(x)
