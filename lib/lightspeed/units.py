"""Quantities with the dimensions of ML systems, on pint.

Information, FLOPs, tokens, parameters, requests and dollars each have a dimension of their
own, so that bits never pass as bytes and a FLOP never as a plain number (units.txt).

    >>> from lightspeed.units import Q
    >>> Q(400, "Gbit/s").to("GB/s").magnitude
    50.0
"""

import tokenize
from functools import cache
from pathlib import Path
from typing import Any

from lightspeed.values import Amount, Whole

__all__ = ("Q", "si_magnitude")

from lightspeed.errors import BadArgument

PREFIXES = (*"kKMGTPEZY", "Ki", "Mi", "Gi", "Ti", "Pi")


@cache
def _registry() -> Any:
    import pint  # here, because it takes longer to load than most notebooks take to run

    registry: Any = pint.UnitRegistry(str(Path(__file__).with_name("units.txt")))
    registry.formatter.default_format = "~P"
    return registry


def __getattr__(name: str) -> Any:
    if name == "ureg":
        return _registry()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def Q(value: Any, unit: str | None = None) -> Any:
    """Return a quantity: a number or array with a unit, or a text that holds both, such as "400
    Gbit/s".

    A number that knows its unit, such as a law's result, needs none here; given one, it is taken at
    that. Raises BadArgument if the unit is unknown or the text cannot be read.
    """
    import pint

    if isinstance(value, (Amount, Whole)):
        value, unit = +value, value.unit if unit is None else unit
    try:
        return _registry().Quantity(value, unit)
    except pint.UndefinedUnitError as error:
        names = error.unit_names if isinstance(error.unit_names, tuple) else (error.unit_names,)
        wrong = "unit" if isinstance(unit, str) else "value"
        hint = " ".join(filter(None, (_likely_unit(names[0]), UNIT_HINT)))
        raise BadArgument("Q", wrong, value if wrong == "value" else unit, EXPECTED, hint) from None
    except (
        pint.PintError,
        AssertionError,
        SyntaxError,
        tokenize.TokenError,
        TypeError,
        ValueError,
    ):
        wrong = "value" if unit is None else "unit"
        raise BadArgument(
            "Q", wrong, value if wrong == "value" else unit, EXPECTED, UNIT_HINT
        ) from None


EXPECTED = 'a unit of the course, such as "ms", "GB/s" or "TFLOP/s"'
UNIT_HINT = "B is a byte and bit a bit."


def _likely_unit(name: str) -> str:
    if name in PREFIXES:
        return f"{name!r} is a prefix without a unit: did you mean {name}B?"
    if name in ("dB", "dBm"):
        return (
            "A decibel is a logarithm of a ratio: give the ratio itself, 10 ** (dB / 10) for a"
            " power."
        )
    return f"There is no unit {name!r}."


def si_magnitude(quantity: Any, unit: str) -> Any:
    """The plain number (or array) that `quantity` has in `unit`.

    A plain frequency (Hz, 1/s) is a rate of requests where one is asked for: nothing else per
    second is counted there. Raises pint.DimensionalityError if the dimensions differ.
    """
    if unit == "request/s" and fits(quantity, unit) and not quantity.is_compatible_with(unit):
        quantity = quantity * _registry().request
    return quantity.to(unit or "dimensionless").magnitude


def fits(quantity: Any, unit: str) -> bool:
    """Whether `si_magnitude` can express this quantity in this unit."""
    alike = ("request/s", "1/s") if unit == "request/s" else (unit or "dimensionless",)
    return any(quantity.is_compatible_with(each) for each in alike)
