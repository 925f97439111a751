"""Values: the few numbers of an answer, with arithmetic on each of them.

An answer has one value, or some tens. They are a tuple, so that practice needs nothing but Python;
what cannot be computed is nan or infinity, as with arrays, and never an error.
"""

import math
import operator
import sys


class Values(tuple):
    """Floats in a row. With a number, or with as many others, each operator works on each of them.

    >>> Values([1, 2, 4]) / 2, 1 / Values([0, 4])
    (Values(0.5, 1.0, 2.0), Values(inf, 0.25))
    """

    __slots__ = ()

    def __new__(cls, values=()):
        return super().__new__(cls, map(float, values))

    def __repr__(self):
        return f"Values{tuple.__repr__(self)}"

    def __reduce__(self):
        return Values, (tuple(self),)

    def _each(self, other, operation):
        others = other if _several(other) else (other,) * len(self)
        return Values(operation(a, float(b)) for a, b in zip(self, others, strict=True))

    def __add__(self, other):
        return self._each(other, operator.add)

    def __sub__(self, other):
        return self._each(other, operator.sub)

    def __rsub__(self, other):
        return self._each(other, lambda a, b: b - a)

    def __mul__(self, other):
        return self._each(other, operator.mul)

    def __truediv__(self, other):
        return self._each(other, ratio)

    def __rtruediv__(self, other):
        return self._each(other, lambda a, b: ratio(b, a))

    def __pow__(self, other):
        return self._each(other, _power)

    def __mod__(self, other):
        return self._each(other, _rest)

    __radd__, __rmul__ = __add__, __mul__

    def where(self, mask):
        """Return the values for which `mask`, of equal length, is true."""
        return Values(value for value, here in zip(self, mask, strict=True) if here)


def joined(some):
    """The values of several `Values`, one after the other."""
    return Values(value for values in some for value in values)


def values_of(value):
    """One number, a sequence or an array of them, as `Values`."""
    return Values(_flat(value) if _several(value) else (value,))


def finite(values):
    """For each value whether it is a number that is not infinite."""
    return [math.isfinite(value) for value in values]


def ratio(a, b):
    """a / b; by zero it is infinite, or nan."""
    if b:
        return a / b
    return math.nan if math.isnan(a) or not a else math.copysign(math.inf, a * math.copysign(1, b))


def _power(base, exponent):
    try:
        result = base**exponent
    except OverflowError:
        return math.inf
    except ZeroDivisionError:
        return math.inf
    return math.nan if isinstance(result, complex) else result


def _rest(value, by):
    return value % by if math.isfinite(value) else math.nan


def _several(value):
    numpy = sys.modules.get("numpy")
    array = numpy is not None and isinstance(value, numpy.ndarray) and value.ndim > 0
    return array or isinstance(value, (tuple, list))


def _flat(value):
    return value if isinstance(value, (tuple, list)) else value.ravel()
