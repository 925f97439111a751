"""Arithmetic that serves a plain number and an array alike, so that a law is written once.

A number is answered by the standard library, an array by numpy: numpy is touched only when an
array arrives, and what it answers is an array.
"""

import math
import sys
from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeAlias

__all__ = (
    "INF", "Result", "Series", "Value", "any_of", "ceil", "copysign", "divide", "exp", "expm1",
    "floor", "floor_log2", "frexp", "is_array", "isfinite", "isnan", "ldexp", "log", "log1p",
    "log10", "maximum", "minimum", "rint", "where",
)  # fmt: skip

INF = math.inf


class Value(Protocol):
    """A number, or an array or a quantity of numbers, as a law accepts it. The types of arrays and
    quantities live in packages that a bare Python lacks; a type checker rejects words and lists.
    """

    def __add__(self, other: Any, /) -> Any: ...
    def __radd__(self, other: Any, /) -> Any: ...
    def __sub__(self, other: Any, /) -> Any: ...
    def __rsub__(self, other: Any, /) -> Any: ...
    def __mul__(self, other: Any, /) -> Any: ...
    def __rmul__(self, other: Any, /) -> Any: ...
    def __truediv__(self, other: Any, /) -> Any: ...
    def __rtruediv__(self, other: Any, /) -> Any: ...
    def __floordiv__(self, other: Any, /) -> Any: ...
    def __mod__(self, other: Any, /) -> Any: ...
    def __pow__(self, other: Any, /) -> Any: ...
    def __rpow__(self, other: Any, /) -> Any: ...
    def __lt__(self, other: Any, /) -> Any: ...
    def __le__(self, other: Any, /) -> Any: ...
    def __gt__(self, other: Any, /) -> Any: ...
    def __ge__(self, other: Any, /) -> Any: ...
    def __neg__(self) -> Any: ...
    def __abs__(self) -> Any: ...
    def __float__(self) -> float: ...


# What a law gives: a float for plain numbers, and what numpy or pint make of theirs.
Result: TypeAlias = float | Any
# What a law takes where it wants a row of them: an array, a list or a tuple, or one number.
Series: TypeAlias = Value | Sequence[float]


def is_array(value: object) -> bool:
    numpy = sys.modules.get("numpy")
    return numpy is not None and isinstance(value, numpy.ndarray)


def _numpy() -> Any:
    """numpy, whose types know no `Value`: only where an array arrived is it there, and needed."""
    import numpy

    return numpy


def any_of(condition: Any) -> Any:
    """Whether `condition` holds; for an array, whether it holds for at least one element."""
    return condition.any() if is_array(condition) else condition


def maximum(a: Value, b: Value) -> Result:
    """The larger of two numbers, elementwise if either is an array."""
    if is_array(a) or is_array(b):
        return _numpy().maximum(a, b)
    return max(a, b)


def minimum(a: Value, b: Value) -> Result:
    """The smaller of two numbers, elementwise if either is an array."""
    return -maximum(-a, -b)


def where(condition: Any, yes: Value, no: Value) -> Result:
    """`yes` where the condition holds, else `no`; elementwise if it is an array."""
    if is_array(condition):
        return _numpy().where(condition, yes, no)
    return yes if condition else no


def divide(a: Value, b: Value) -> Result:
    """a / b where b is above zero, infinity elsewhere (the limit that the caller documents)."""
    if is_array(a) or is_array(b):
        numpy = _numpy()
        above, below = numpy.broadcast_arrays(numpy.asarray(a, float), numpy.asarray(b, float))
        return numpy.divide(above, below, out=numpy.full(above.shape, INF), where=below > 0)
    return a / b if b > 0 else INF


def ldexp(significand: Value, exponent: Any) -> Result:
    """Return significand x 2^exponent; infinity if that is too large for a float, as in numpy."""
    if is_array(significand) or is_array(exponent):
        numpy = _numpy()
        with numpy.errstate(over="ignore"):
            return numpy.ldexp(significand, numpy.asarray(exponent, numpy.int32))
    try:
        return math.ldexp(significand, exponent)
    except OverflowError:
        return math.copysign(INF, significand)


def copysign(size: Value, sign: Value) -> Result:
    """`size` with the sign of `sign`, elementwise if either is an array."""
    if is_array(size) or is_array(sign):
        return _numpy().copysign(size, sign)
    return math.copysign(size, sign)


def floor_log2(x: Value) -> Result:
    """Return the integer part of log2(x), exactly (a float logarithm may fall just short)."""
    return frexp(x)[1] - 1


def _of_one(name: str, plain: Callable[[Any], Any]) -> Callable[[Value], Any]:
    """A function of one number that numpy has under this name."""

    def apply(x: Value) -> Any:
        if is_array(x):
            return getattr(_numpy(), name)(x)
        return plain(x)

    apply.__name__, apply.__doc__ = name, f"`{name}` of a number, or of each element of an array."
    return apply


exp, expm1 = _of_one("exp", math.exp), _of_one("expm1", math.expm1)
log, log10 = _of_one("log", math.log), _of_one("log10", math.log10)
log1p = _of_one("log1p", math.log1p)
frexp, isnan, isfinite = (_of_one(n, getattr(math, n)) for n in ("frexp", "isnan", "isfinite"))
floor = _of_one("floor", lambda x: float(math.floor(x)) if math.isfinite(x) else x)
ceil = _of_one("ceil", lambda x: float(math.ceil(x)) if math.isfinite(x) else x)
rint = _of_one("rint", lambda x: float(round(x)) if math.isfinite(x) else x)
