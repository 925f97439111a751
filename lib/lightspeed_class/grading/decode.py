"""Plain values from what a student's program told, which is hostile."""

import math
import re
from functools import cache
from typing import Any

import numpy as np

from lightspeed_class.grading.answer_text import usual


def decode(value: Any, depth: int = 0) -> Any:
    """Return a plain value from an encoded, hostile answer; anything unusual has no value."""
    kind = value.get("kind") if isinstance(value, dict) else None
    if kind == "none":
        return None
    if kind == "bool":
        return True
    if kind == "text" and isinstance(value.get("value"), str):
        return value["value"][:500]
    if kind == "complex":
        return 1j
    if kind == "function":
        return len  # any function will do: it is asked for a number
    if kind == "number":
        return _number(value.get("value"))
    if kind == "array" and isinstance(value.get("value"), list):
        return np.array([_number(v) for v in value["value"]], float)
    if kind == "list" and depth < 3 and isinstance(value.get("value"), list):
        return [decode(v, depth + 1) for v in value["value"]]
    if kind == "dict" and depth < 1 and isinstance(value.get("value"), list):
        return {key: decode(v, depth + 1) for key, v in filter(is_pair, value["value"])}
    if kind == "quantity" and depth < 3:
        return _quantity(decode(value.get("value"), depth + 1), value.get("units"))
    return type(
        safe_name(value.get("name") if kind == "other" or kind == "error" else None), (), {}
    )()


def is_pair(value: Any) -> bool:
    return isinstance(value, list) and len(value) == 2 and isinstance(value[0], str)


def _number(value: Any) -> Any:
    if type(value) in (int, float):
        return value if abs(value) < 1e308 else math.inf if value > 0 else -math.inf
    return float(value) if value in ("inf", "-inf", "nan") else math.nan


def _quantity(magnitude: Any, units: Any) -> Any:
    from lightspeed.units import ureg

    valid = (
        isinstance(units, dict) and len(units) <= 8 and type(magnitude) in (int, float, np.ndarray)
    )
    if not valid or not all(
        u in _base_units() and type(p) is float and abs(p) <= 12 for u, p in units.items()
    ):
        return object()
    magnitude, units = usual(magnitude, units)
    return ureg.Quantity(magnitude, ureg.UnitsContainer(units))


@cache
def _base_units() -> frozenset[str]:
    from lightspeed.units import ureg

    return frozenset(
        name
        for name in dir(ureg)
        if not name.startswith("_") and name in ureg._units and ureg._units[name].is_base
    )


def safe_name(text: Any) -> str:
    """Return a name from the student's program in a form that is safe to show."""
    return (
        text
        if isinstance(text, str) and re.fullmatch(r"[A-Za-z_]\w{0,59}", text, re.ASCII)
        else "Unnamed"
    )
