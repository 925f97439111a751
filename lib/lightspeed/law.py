"""Argument checks shared by every law: dimension, sign, finiteness, integrality, range.

A law is plain arithmetic on plain numbers. `law(...)` states the dimension of each argument
once, and wraps the function so that it takes three kinds of number and gives the same answer:

* Python numbers, in the SI unit that the law documents (byte, FLOP, s, byte/s, W, J, ...);
* numpy arrays of those, which broadcast against each other;
* pint quantities from `lightspeed.units`, in any unit of the right dimension.

Only the standard library is imported here, so that a law on scalars runs on a bare Python;
numpy and pint are touched only when an array or a quantity arrives.
"""

from __future__ import annotations

import functools
import inspect
import math
import numbers
import sys
from dataclasses import dataclass, fields, replace

INF = math.inf


class BadArgument(ValueError):
    """An argument that a law refuses; the message says which, its value and what was expected."""

    def __init__(self, where, argument, value, expected, hint=""):
        self.where, self.argument, self.value, self.expected = where, argument, value, expected
        shown = repr(value) if not hasattr(value, "dimensionality") else f"{value:~P}"
        shown = shown if len(shown) <= 80 else shown[:77] + "..."
        message = f"{where}: {argument} = {shown}: expected {expected}."
        super().__init__(f"{message} {hint}".strip())


@dataclass(frozen=True)
class Argument:
    """What a law accepts for one argument: SI unit, range, whether whole, and the likely slip."""

    unit: str = ""
    low: float = 0.0
    above: bool = True
    high: float = INF
    whole: bool = False
    infinite: bool = False
    hint: str = ""

    def expected(self):
        kind = "a whole number" if self.whole else "a number"
        unit = f" of {self.unit}" if self.unit else ""
        if self.high < INF:
            return f"{kind}{unit} from {self.low:g} to {self.high:g}"
        if self.low == -INF:
            return f"a finite {kind[2:]}{unit}"
        return f"{kind}{unit} {'above' if self.above else 'of at least'} {self.low:g}"


def positive(unit="", **more):
    """An argument above zero, in the given SI unit."""
    return Argument(unit, **more)


def nonnegative(unit="", **more):
    """An argument of zero or more, in the given SI unit."""
    return Argument(unit, above=False, **more)


def count(unit="", low=1, **more):
    """A whole number of at least `low`."""
    return Argument(unit, low=low, above=False, whole=True, **more)


def fraction(**more):
    """A dimensionless share from 0 to 1."""
    return Argument(low=0.0, above=False, high=1.0, **more)


def real(unit="", **more):
    """Any finite number."""
    return Argument(unit, low=-INF, **more)


ELEMENT_BYTES = Argument(
    "byte",
    high=8.0,
    above=True,
    hint="An element is at most 8 bytes (fp64). 16 and 32 are widths in bits: bf16 is 2 bytes, fp32 is 4.",
)


def one_of(where, argument, value, allowed):
    """Return `value` if it is one of `allowed`, else raise BadArgument naming the nearest."""
    if value in allowed:
        return value
    import difflib

    near = difflib.get_close_matches(str(value), [str(a) for a in allowed], n=1)
    hint = f"Did you mean {near[0]!r}?" if near else ""
    raise BadArgument(where, argument, value, "one of " + ", ".join(map(str, allowed)), hint)


def is_quantity(value):
    return hasattr(value, "dimensionality") and hasattr(value, "magnitude")


def is_array(value):
    numpy = sys.modules.get("numpy")
    return numpy is not None and isinstance(value, numpy.ndarray)


def maximum(a, b):
    """The larger of two numbers, elementwise if either is an array."""
    if is_array(a) or is_array(b):
        import numpy

        return numpy.maximum(a, b)
    return max(a, b)


def minimum(a, b):
    """The smaller of two numbers, elementwise if either is an array."""
    return -maximum(-a, -b)


def where(condition, yes, no):
    """`yes` where the condition holds, else `no`; elementwise if it is an array."""
    if is_array(condition):
        import numpy

        return numpy.where(condition, yes, no)
    return yes if condition else no


def divide(a, b):
    """a / b where b is above zero, infinity elsewhere (the limit that the caller documents)."""
    if is_array(a) or is_array(b):
        import numpy

        a, b = numpy.broadcast_arrays(numpy.asarray(a, float), numpy.asarray(b, float))
        return numpy.divide(a, b, out=numpy.full(a.shape, INF), where=b > 0)
    return a / b if b > 0 else INF


def checked(where, name, value, spec):
    """Return `value` as a plain number or float64 array in SI, or raise BadArgument.

    A `spec` that is a tuple lists the names allowed for an argument that is a choice.
    """
    if isinstance(spec, tuple):
        return one_of(where, name, value, spec)
    if is_quantity(value):
        value = _magnitude(where, name, value, spec)
    if is_array(value):
        return _checked_array(where, name, value, spec)
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        hint = "Wrap a list in numpy.array(...)." if isinstance(value, (list, tuple)) else spec.hint
        raise BadArgument(where, name, value, spec.expected(), hint)
    if type(value) not in (int, float):
        value = _plain(value)
    in_range = spec.low < value <= spec.high or (value == spec.low and not spec.above)
    if not in_range or (value == INF and not spec.infinite) or (spec.whole and value != INF and value % 1):
        raise BadArgument(where, name, value, spec.expected(), spec.hint)
    return value


def _plain(value):
    """A numpy scalar or catalog Number as the Python int or float that it stands for."""
    return int(value) if isinstance(value, numbers.Integral) else float(value)


def _checked_array(where, name, value, spec):
    import numpy

    if value.size == 0:
        raise BadArgument(where, name, value, spec.expected(), "The array is empty.")
    if value.dtype.kind not in "iuf":
        raise BadArgument(where, name, value, spec.expected(), f"The array holds {value.dtype}, not numbers.")
    # float64 throughout: int32 products of matmul sizes overflow silently.
    value = value.astype(numpy.float64)
    ok = (value > spec.low) if spec.above else (value >= spec.low)
    ok &= value <= spec.high
    if not spec.infinite:
        ok &= numpy.isfinite(value)
    if spec.whole:
        ok &= (value % 1 == 0) | numpy.isinf(value)
    if not ok.all():
        bad = value[~ok]
        raise BadArgument(where, name, bad[0].item(), spec.expected(), f"{bad.size} of {value.size} elements are off. {spec.hint}".strip())
    return value


def _magnitude(where, name, value, spec):
    from lightspeed.units import fits, si_magnitude, ureg

    if value._REGISTRY is not ureg:
        raise BadArgument(where, name, value, f"a quantity made with lightspeed.units.Q ({spec.unit or 'dimensionless'})")
    if not fits(value, spec.unit):
        hint = f"Its dimension is {value.dimensionality}. {spec.hint}".strip()
        raise BadArgument(where, name, value, f"a quantity of {spec.unit or 'no dimension'}", hint)
    return si_magnitude(value, spec.unit)


def law(returns="", **arguments):
    """Declare a law: the unit of its result and an `Argument` for each parameter.

    `returns` is a unit, or a dict of field name -> unit for a law that returns a dataclass.
    Raises BadArgument before the body runs; the body sees only plain SI numbers and arrays.
    """

    def decorate(body):
        signature = inspect.signature(body)
        names = tuple(signature.parameters)
        if set(names) != set(arguments):
            raise TypeError(f"{body.__name__}: declared {sorted(arguments)}, has {sorted(names)}")
        positional = tuple(n for n, p in signature.parameters.items() if p.kind is not p.KEYWORD_ONLY)
        defaults = {n for n, p in signature.parameters.items() if p.default is not p.empty}

        @functools.wraps(body)
        def wrapper(*args, **kwargs):
            given = dict(zip(positional, args, strict=False))
            given.update(kwargs)
            if len(given) != len(args) + len(kwargs) or defaults | given.keys() != set(names):
                signature.bind(*args, **kwargs)  # raises the usual TypeError
            with_units = [n for n, v in given.items() if is_quantity(v)]
            if with_units:
                _refuse_mixture(body.__name__, given, arguments, with_units)
            plain = {n: checked(body.__name__, n, v, arguments[n]) for n, v in given.items()}
            result = body(**plain)
            return _with_units(result, returns) if with_units else result

        wrapper.arguments, wrapper.returns = arguments, returns
        return wrapper

    return decorate


def _refuse_mixture(where, given, arguments, with_units):
    for name, value in given.items():
        if getattr(arguments[name], "unit", "") and not is_quantity(value):
            hint = f"{with_units[0]} carries a unit, so {name} must too (or none of them)."
            raise BadArgument(where, name, value, f"a quantity of {arguments[name].unit}", hint)


def _with_units(result, returns):
    from lightspeed.units import Q

    if not isinstance(returns, dict):
        return Q(result, returns) if returns else result
    units = {f.name: returns.get(f.name, "") for f in fields(result)}
    return replace(result, **{n: Q(getattr(result, n), u) for n, u in units.items() if u})
