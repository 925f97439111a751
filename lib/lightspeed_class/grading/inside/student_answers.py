"""Answers as JSON: their kind and their value. Nothing here judges them."""

import numbers
import sys
from decimal import Decimal
from fractions import Fraction
from math import isfinite  # now, so that what a cell does to the module does not matter
from typing import Any

LONGEST = 64  # values of an array or a list, which is more than any question asks


def encode(answer: Any, depth: int = 0) -> dict[str, Any]:
    """Encode an answer as JSON: its kind and its value. Values of unknown types are named, and
    their own methods are never called.
    """
    kind = type(answer)
    if answer is None or answer is Ellipsis:
        return {"kind": "none"}
    if kind.__name__ in ("bool", "bool_") and kind.__module__ in ("builtins", "numpy"):
        return {"kind": "bool"}
    if kind is float or kind is int:
        return number(answer)
    if issubclass(kind, str):
        return {"kind": "text", "value": str.__getitem__(answer, slice(500))}
    if issubclass(kind, (list, tuple)) and depth < 2:
        # by the base type's own method: an iterator of a subclass may never end
        values = (list if issubclass(kind, list) else tuple).__getitem__(answer, slice(LONGEST + 1))
        if len(values) <= LONGEST:
            return {"kind": "list", "value": [encode(value, depth + 1) for value in values]}
    if issubclass(kind, dict) and depth < 1 and dict.__len__(answer) <= LONGEST:
        pairs = [(key, value) for key, value in dict.items(answer) if type(key) is str]
        return {
            "kind": "dict",
            "value": [[key[:100], encode(value, depth + 1)] for key, value in pairs],
        }
    if hasattr(kind, "_REGISTRY") or hasattr(kind, "to_base_units"):
        return quantity(answer, depth)
    if (
        isinstance(getattr(kind, "quantity", None), property)
        or kind.__module__ == "lightspeed.catalog"
    ):
        return (
            encode(answer.quantity, depth + 1)
            if depth < 2
            else {"kind": "other", "name": kind.__name__}
        )
    numpy = sys.modules.get("numpy")
    if (
        issubclass(kind, (int, float))
        or kind in (Fraction, Decimal)
        or (numpy and issubclass(kind, (numpy.integer, numpy.floating)))
    ):
        return number(answer)
    if issubclass(kind, numbers.Complex):
        return {"kind": "complex"}
    if numpy and issubclass(kind, numpy.ndarray) and answer.size <= LONGEST:
        values = numpy.asarray(answer).reshape(-1)
        if values.dtype.kind in "iuf":
            return {"kind": "array", "value": [number(v)["value"] for v in values.tolist()]}
        return {"kind": "other", "name": f"array of {values.dtype.name}"[:60]}
    return {"kind": "function" if callable(answer) else "other", "name": str(kind.__name__)[:60]}


def number(value: Any) -> dict[str, Any]:
    """Convert with the base type's own methods, as `check` does: a subclass may lie about its
    value.
    """
    if type(value) not in (float, int):
        numpy = sys.modules.get("numpy")
        if numpy and isinstance(value, numpy.generic):
            value = numpy.generic.item(value)
    if isinstance(value, int):
        value = int.__pos__(value)
        return {"kind": "number", "value": value if value.bit_length() <= 1000 else "inf"}
    value = float.__pos__(value) if isinstance(value, float) else float(value)
    return {"kind": "number", "value": value if isfinite(value) else str(value)}


def quantity(answer: Any, depth: int) -> dict[str, Any]:
    """Encode a quantity in base units, with exponents, so that the grader parses no unit names."""
    base = answer.to_base_units()
    units = {str(name): float(power) for name, power in dict(base._units).items()}
    # The plus makes a plain number of a law's result, which would say its unit a second time.
    return {"kind": "quantity", "value": encode(+base.magnitude, depth + 1), "units": units}
