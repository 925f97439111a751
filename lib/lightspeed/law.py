"""Argument checks shared by every law: dimension, sign, finiteness, integrality, range.

A law is plain arithmetic on plain numbers. `law(...)` states the dimension of each argument
once, and wraps the function so that it takes three kinds of number and gives the same answer:

* Python numbers, in the SI unit that the law documents (byte, FLOP, s, byte/s, W, J, ...);
* numpy arrays of those, which broadcast against each other;
* pint quantities from `lightspeed.units`, in any unit of the right dimension.

Only the standard library is imported here, so that a law on scalars runs on a bare Python;
numpy and pint are touched only when an array or a quantity arrives.
"""

import functools
import inspect
import numbers
import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, ParamSpec, Protocol, TypeAlias, TypeVar, cast

from lightspeed.elementwise import INF, is_array
from lightspeed.errors import BadArgument, nearest, one_of
from lightspeed.values import Amount, Whole

__all__ = (
    "ELEMENT_BYTES", "Argument", "Law", "Spec", "check_fields", "checked", "count", "described",
    "fraction", "is_quantity", "law", "nonnegative", "positive", "real", "with_unit",
)  # fmt: skip

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")
PLAIN = (float, int)
RAISES = {
    "BadArgument": (
        "an argument is not a number, is outside its range or has another dimension, or "
        "only some of them carry a unit."
    ),
    "TypeError": "an argument is missing, is given twice or has another name.",
}


@dataclass(frozen=True, slots=True)
class Argument:
    """What a law accepts for one argument: SI unit, range, whether whole, and the likely slip."""

    unit: str = ""
    low: float = 0.0
    above: bool = True
    high: float = INF
    whole: bool = False
    infinite: bool = False
    hint: str = ""

    def expected(self) -> str:
        """What an error message says was expected."""
        kind = "whole number" if self.whole else "number"
        unit = f" of {self.unit}" if self.unit else ""
        if self.low == -INF:
            return f"a finite {kind}{unit}"
        return f"a {kind}{unit} {self.span().replace('at least', 'of at least')}"

    def span(self) -> str:
        """The range in words."""
        if self.low == -INF:
            return "any finite number"
        if self.high == INF:
            return f"{'above' if self.above else 'at least'} {self.low:g}"
        return (
            f"above {self.low:g}, at most {self.high:g}"
            if self.above
            else f"from {self.low:g} to {self.high:g}"
        )

    def row(self) -> str:
        """Unit, range and likely slip, for a list of arguments."""
        parts = (self.unit, "a whole number" if self.whole else "", self.span())
        return f"{', '.join(p for p in parts if p)}. {self.hint}"


# What a law declares of an argument: its table row, or the names that it may have.
Spec: TypeAlias = Argument | tuple[str, ...]


def positive(unit: str = "", **more: Any) -> Argument:
    """An argument above zero, in the given SI unit."""
    return Argument(unit, **more)


def nonnegative(unit: str = "", **more: Any) -> Argument:
    """An argument of zero or more, in the given SI unit."""
    return Argument(unit, above=False, **more)


def count(unit: str = "", low: float = 1, **more: Any) -> Argument:
    """A whole number of at least `low`."""
    return Argument(unit, low=low, above=False, whole=True, **more)


def fraction(**more: Any) -> Argument:
    """A dimensionless share from 0 to 1."""
    return Argument(low=0.0, above=False, high=1.0, **more)


def real(unit: str = "", **more: Any) -> Argument:
    """Any finite number."""
    return Argument(unit, low=-INF, **more)


ELEMENT_BYTES = Argument(
    "byte",
    high=8.0,
    above=True,
    hint=(
        "An element is at most 8 bytes (fp64). 16 and 32 are widths in bits: bf16 is 2 bytes, fp32"
        " is 4."
    ),
)


def is_quantity(value: object) -> bool:
    return hasattr(value, "dimensionality") and hasattr(value, "magnitude")


def checked(law: str, name: str, value: Any, spec: Spec) -> Any:
    """Return `value` as a plain number or float64 array in SI, or raise BadArgument.

    A `spec` that is a tuple lists the names allowed for an argument that is a choice.
    """
    if isinstance(spec, tuple):
        if is_array(value):
            for one in set(value.ravel().tolist()):
                one_of(law, name, one, spec)
            return value
        return one_of(law, name, value, spec)
    if type(value) is Amount:
        value = float(value)
    elif type(value) not in PLAIN:
        value = _plain(law, name, value, spec)
        if is_array(value):
            return _checked_array(law, name, value, spec)
    in_range = spec.low < value <= spec.high or (value == spec.low and not spec.above)
    if (
        not in_range
        or (value == INF and not spec.infinite)
        or (spec.whole and value != INF and value % 1)
    ):
        raise BadArgument(law, name, value, spec.expected(), spec.hint)
    return value


def check_fields(record: object, spec: Spec, *names: str) -> None:
    """Raise BadArgument if an attribute of the dataclass `record` violates `spec`."""
    for name in names:
        checked(type(record).__name__, name, getattr(record, name), spec)


def _plain(law: str, name: str, value: Any, spec: Argument) -> Any:
    """The int, float or array that a quantity, numpy scalar or number of the catalog stands for."""
    if is_quantity(value):
        value = _magnitude(law, name, value, spec)
    if is_array(value):
        return value
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        hint = "Wrap a list in numpy.array(...)." if isinstance(value, (list, tuple)) else spec.hint
        raise BadArgument(law, name, value, spec.expected(), hint)
    return int(value) if isinstance(value, numbers.Integral) else float(value)


def _checked_array(law: str, name: str, value: Any, spec: Argument) -> Any:
    import numpy

    if value.size == 0:
        raise BadArgument(law, name, value, spec.expected(), "The array is empty.")
    if value.dtype.kind not in "iuf":
        raise BadArgument(
            law, name, value, spec.expected(), f"The array holds {value.dtype}, not numbers."
        )
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
        raise BadArgument(
            law,
            name,
            bad[0].item(),
            spec.expected(),
            f"{bad.size} of {value.size} elements are off. {spec.hint}".strip(),
        )
    return value


def _magnitude(law: str, name: str, value: Any, spec: Argument) -> Any:
    from lightspeed.units import fits, si_magnitude, ureg

    if value._REGISTRY is not ureg:
        raise BadArgument(
            law,
            name,
            value,
            f"a quantity made with lightspeed.units.Q ({spec.unit or 'dimensionless'})",
        )
    if not fits(value, spec.unit):
        hint = f"Its dimension is {value.dimensionality}. {spec.hint}".strip()
        raise BadArgument(law, name, value, f"a quantity of {spec.unit or 'no dimension'}", hint)
    return si_magnitude(value, spec.unit)


class Law(Protocol[P, R]):
    """A function declared with `law`: called as its body is, with the table of its arguments."""

    __name__: str
    __wrapped__: Callable[P, R]
    arguments: dict[str, Spec]
    returns: str | dict[str, str]

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R: ...


def law(
    returns: str | dict[str, str] = "", /, **arguments: Spec
) -> Callable[[Callable[P, R]], Law[P, R]]:
    """Declare a law: the unit of its result and an `Argument` for each parameter.

    `returns` is a unit, or a dict of field name -> unit for a law that returns a dataclass.
    Raises BadArgument before the body runs; the body sees only plain SI numbers and arrays.
    """

    def decorate(body: Callable[P, R]) -> Law[P, R]:
        name, signature = body.__name__, inspect.signature(body)
        parameters = signature.parameters.values()
        if {p.name for p in parameters} != arguments.keys():
            raise TypeError(
                f"{name}: declared {sorted(arguments)}, has {sorted(signature.parameters)}"
            )
        table = {p.name: arguments[p.name] for p in parameters}
        positional = tuple(p.name for p in parameters if p.kind is not p.KEYWORD_ONLY)
        required = {p.name for p in parameters if p.default is p.empty}

        @functools.wraps(body)
        def wrapper(*args: P.args, **kwargs: P.kwargs) -> R:
            values = dict(zip(positional, args, strict=False))
            values.update(kwargs)
            if (
                len(values) != len(args) + len(kwargs)
                or not required <= values.keys() <= table.keys()
            ):
                raise TypeError(f"{name}: {_slip(args, kwargs, table, positional, required)}")
            with_units = [n for n, v in values.items() if type(v) not in PLAIN and is_quantity(v)]
            if with_units:
                _refuse_mixture(name, values, table, with_units)
            result = body(**{n: checked(name, n, v, table[n]) for n, v in values.items()})  # type: ignore[call-arg]
            answer = _with_units(result, returns) if with_units else with_unit(result, returns)
            return cast(R, answer)

        wrapper.__doc__ = described(body.__doc__, table, returns)
        if body.__module__.startswith("lightspeed."):  # those that `lightspeed law` knows
            place = f"{body.__module__.partition('.')[2]}.{name}"
            wrapper.__doc__ += f"\n\nEquation and chapter: `lightspeed law {place}`"
        # The table says what each argument is; "peak: Value" in a tooltip would say less.
        bare = [p.replace(annotation=p.empty) for p in parameters]
        tooltip = signature.replace(parameters=bare, return_annotation=signature.empty)
        vars(wrapper).update(arguments=table, returns=returns, __signature__=tooltip)
        return cast("Law[P, R]", wrapper)

    return decorate


def described(doc: str | None, table: dict[str, Spec], returns: str | dict[str, str]) -> str:
    """Return `doc` followed by its arguments' constraints, the result's unit and the errors."""
    lines = [
        _listed(n, s.row() if isinstance(s, Argument) else f"one of {', '.join(map(repr, s))}.")
        for n, s in table.items()
    ]
    units = returns if isinstance(returns, dict) else {"": returns}
    result = ", ".join(f"{name} ({unit})" if name else unit for name, unit in units.items() if unit)
    lines += ["", f"Returns: {result}"] if result else []
    lines += ["", "Raises:", *(_listed(name, text) for name, text in RAISES.items())]
    return "\n".join([inspect.cleandoc(doc or ""), "", "Arguments:", *lines])


@functools.cache  # the same few rows stand in most laws
def _listed(name: str, text: str) -> str:
    """A row of a list in a docstring, its further lines indented."""
    whole = f"{name}: {text}".strip()
    return textwrap.fill(whole, 92, initial_indent="    ", subsequent_indent="        ")


def _slip(
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    table: dict[str, Spec],
    positional: Sequence[str],
    required: set[str],
) -> str:
    """What is wrong with the names of a call, in the words of who wrote it."""
    takes = f"It takes {', '.join(table)}."
    for name in kwargs:
        if name not in table:
            free = [n for n in table if n not in kwargs and n not in positional[: len(args)]]
            missing = [n for n in free if n in required]
            close_name = nearest(name, free) or (missing[0] if len(missing) == 1 else None)
            return (
                f"there is no argument {name!r}. "
                + (f"Did you mean {close_name!r}? " if close_name else "")
                + takes
            )
        if name in positional[: len(args)]:
            return f"{name} is given twice, by its place and by its name. {takes}"
    if len(args) > len(positional):
        rest = ", ".join(n for n in table if n not in positional)
        hint = f"{rest} must be given by name." if rest else takes
        return (
            f"{len(args)} arguments are given by their place, and it takes {len(positional)}."
            f" {hint}"
        )
    missing = [
        n for n in table if n in required and n not in kwargs and n not in positional[: len(args)]
    ]
    spec = table[missing[0]]
    expected = f"one of {', '.join(spec)}" if isinstance(spec, tuple) else spec.expected()
    return (
        f"{' and '.join(missing)} {'are' if len(missing) > 1 else 'is'} missing. {missing[0]} is"
        f" {expected}."
    )


def _refuse_mixture(
    law: str, values: dict[str, Any], arguments: dict[str, Spec], with_units: list[str]
) -> None:
    for name, value in values.items():
        spec = arguments[name]
        if isinstance(spec, Argument) and spec.unit and not is_quantity(value):
            hint = f"{with_units[0]} carries a unit, so {name} must too (or none of them)."
            raise BadArgument(law, name, value, f"a quantity of {spec.unit}", hint)


def with_unit(result: Any, unit: str | dict[str, str]) -> Any:
    """Attach a unit to a result on plain numbers; arrays and results without a unit stay as they
    are.

    A result type gets its `unit` by field name: the object was made by the law that returns it.
    """
    if isinstance(unit, dict):
        for name, one in unit.items():
            object.__setattr__(result, name, with_unit(getattr(result, name), one))
        return result
    if type(result) not in PLAIN or (type(result) is int and not unit):
        return result
    return Amount(result, unit) if type(result) is float else Whole(result, unit)


def _with_units(result: Any, returns: str | dict[str, str]) -> Any:
    from lightspeed.units import Q

    if not isinstance(returns, dict):
        return Q(result, returns) if returns else result
    units = {f.name: returns.get(f.name, "") for f in fields(result)}
    return replace(result, **{n: Q(getattr(result, n), u) for n, u in units.items() if u})
