"""Sums in a narrow format, addition by addition. Used in chapter 5."""

from collections.abc import Sequence
from functools import reduce
from itertools import zip_longest
from typing import Any

from lightspeed.codes import plain_values
from lightspeed.elementwise import Result
from lightspeed.errors import BadArgument, one_of
from lightspeed.precision import Format, Integer


def accumulate(
    values: Any,
    format: Format | Integer,
    accumulator: Format | Integer | None = None,
    order: str = "running",
    rng: Any = None,
) -> Result:
    """The sum over the last axis of `values` stored in `format`, each partial sum being rounded.

    `accumulator` is the format of the partial sums (`format` if None); the end is stored in
    `format`. "running" adds one element at a time, "pairwise" adds halves of a tree. A numpy
    generator `rng` makes the rounding of partial sums stochastic.

    float64 computes each addition, then it is rounded once more; for formats of up to 24
    significant bits the two roundings give the right one (Figueroa, 1995).

    >>> from lightspeed.precision import FORMATS
    >>> accumulate([1.0] * 1000, FORMATS["bf16"])
    256.0
    """
    one_of("accumulate", "order", order, ("running", "pairwise"))
    accumulator = accumulator or format
    if isinstance(values, (list, tuple)):
        return _accumulated(values, format, accumulator, order, rng)
    import numpy

    parts = numpy.moveaxis(
        numpy.atleast_1d(format.round(plain_values("accumulate", values))), -1, 0
    )
    if order == "running":
        total = parts[:1]
        for part in parts[1:]:
            total = accumulator.round(total + part, rng=rng)
        parts = total
    while len(parts) > 1:
        odd = numpy.zeros_like(parts[:1]) if len(parts) % 2 else parts[:0]
        parts = numpy.concatenate([parts, odd])
        parts = accumulator.round(parts[0::2] + parts[1::2], rng=rng)
    total = numpy.asarray(format.round(parts[0]))
    return total if total.ndim else total.item()


def _accumulated(
    values: Sequence[float], format: Any, accumulator: Any, order: str, rng: Any
) -> Result:
    """The same on plain numbers, for one sum."""
    if not values:
        raise BadArgument("accumulate", "values", values, "one number or more")
    parts = [format.round(plain_values("accumulate", value)) for value in values]
    if order == "running":
        parts = [reduce(lambda total, part: accumulator.round(total + part, rng=rng), parts)]
    while len(parts) > 1:
        pairs = zip_longest(parts[0::2], parts[1::2], fillvalue=0.0)
        parts = [accumulator.round(a + b, rng=rng) for a, b in pairs]
    return float(format.round(parts[0]))
