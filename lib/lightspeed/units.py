"""Quantities with the dimensions of ML systems, on pint.

Information, FLOPs, tokens, parameters, requests and dollars each have a dimension of their
own, so that bits never pass as bytes and a FLOP never as a plain number (units.txt).

    >>> from lightspeed.units import Q
    >>> Q(400, "Gbit/s").to("GB/s").magnitude
    50.0
"""

from __future__ import annotations

from functools import cache
from pathlib import Path


@cache
def _registry():
    import pint  # here, because it takes longer to load than most notebooks take to run

    registry = pint.UnitRegistry(str(Path(__file__).with_name("units.txt")))
    registry.formatter.default_format = "~P"
    return registry


def __getattr__(name):
    if name == "ureg":
        return _registry()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def Q(value, unit=None):
    """A quantity: a number or array with a unit, or a text that holds both, such as "400 Gbit/s".

    Raises pint.UndefinedUnitError if the unit is unknown.
    """
    return _registry().Quantity(value, unit)


def si_magnitude(quantity, unit):
    """The plain number (or array) that `quantity` has in `unit`.

    Raises pint.DimensionalityError if the dimensions differ.
    """
    return quantity.to(unit or "dimensionless").magnitude
