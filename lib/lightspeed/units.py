"""Quantities with the dimensions of ML systems, on pint.

Information, FLOPs, tokens, parameters, requests and dollars each have a dimension of their
own, so that bits never pass as bytes and a FLOP never as a plain number (units.txt).

    >>> from lightspeed.units import Q
    >>> Q(400, "Gbit/s").to("GB/s").magnitude
    50.0
"""

from __future__ import annotations

from pathlib import Path

import pint

ureg = pint.UnitRegistry(str(Path(__file__).with_name("units.txt")))
ureg.formatter.default_format = "~P"
Q = ureg.Quantity

__all__ = ["Q", "si_magnitude", "ureg"]


def si_magnitude(quantity, unit):
    """The plain number (or array) that `quantity` has in `unit`.

    Raises pint.DimensionalityError if the dimensions differ.
    """
    return quantity.to(unit or "dimensionless").magnitude
