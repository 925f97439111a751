"""What came as an answer, in words, where it could not be judged: so that a person can tell whether
that was fair.

The program that runs the cells tells amounts in base units only, so those that a student wrote are
not known here. All that it tells is hostile: a text is cut, and what cannot be seen in it is shown
as such.
"""

import math
import re
from collections.abc import Mapping
from itertools import islice
from typing import Any

import numpy as np

from lightspeed_course.practice.amounts import amount
from lightspeed_show.html import seen

LONGEST = 80  # characters of a text
MOST = 8  # values of a list


def usual(magnitude: Any, units: Mapping[str, Any]) -> tuple[Any, dict[str, Any]]:
    """Return an amount in customary units: bytes for bits, joules for g·m²/s²."""
    units = dict(units)
    if bits := units.pop("bit", 0):
        magnitude, units["byte"] = magnitude / 8**bits, bits
    mass = units.get("gram", 0)
    if mass and units.get("meter") == 2 * mass:
        del units["gram"], units["meter"]
        magnitude = magnitude / 1000**mass
        units["joule"] = mass
        units["second"] = units.get("second", 0) + 2 * mass
    return magnitude, {name: power for name, power in units.items() if power}


def came(answer: Any, unit: str = "") -> str:
    """Return an answer from `decode` in words, in `unit` if convertible; "" if there is none."""
    try:
        words = _words(answer, unit)
    # no answer may stop the grader
    except (ArithmeticError, AttributeError, TypeError, ValueError):
        return ""
    return words if len(words) <= 2 * LONGEST else words[: 2 * LONGEST - 1] + "…"


def _words(answer: Any, unit: str) -> str:
    if answer is None:
        return ""
    if isinstance(answer, str):
        text = seen(answer)
        return f"the text “{text if len(text) <= LONGEST else text[: LONGEST - 1] + '…'}”"
    if isinstance(answer, bool):
        return "True or False"
    if isinstance(answer, complex):
        return "a complex number"
    if isinstance(answer, int | float):
        return f"{answer:.6g}"
    if isinstance(answer, dict) and answer:
        return _several(list(answer.values()), unit)
    if isinstance(answer, list | np.ndarray):
        return _several(answer, unit)
    if hasattr(answer, "dimensionality"):
        return _amount(answer, unit)
    return (
        "a function"
        if callable(answer)
        else f"an object of type {type(answer).__name__}" * (type(answer) is not object)
    )


def _several(values: Any, unit: str) -> str:
    texts = [_words(value, unit) or "nothing" for value in islice(values, MOST)]
    count = "one value" if len(values) == 1 else f"{len(values)} values"
    return (
        f"{count}: {', '.join(texts)}{', …' * (len(values) > MOST)}" if texts else "an empty list"
    )


def _amount(quantity: Any, unit: str) -> str:
    from lightspeed.units import Q

    target = Q(1.0, unit or "dimensionless")
    if quantity.is_compatible_with(target):
        with np.errstate(all="ignore"):
            quantity = quantity.to(target.units)
        name = unit
    else:
        # as `amount` knows it, with a prefix: 3 GB/s
        name = re.sub(r"\bB\b", "byte", f"{quantity.units:~P}")
    values = np.ravel(quantity.magnitude).tolist()
    texts = [amount(v, name) if math.isfinite(v) else f"{v} {name}".rstrip() for v in values[:MOST]]
    return (
        texts[0]
        if np.ndim(quantity.magnitude) == 0
        else f"{len(values)} values: {', '.join(texts)}{', …' * (len(values) > MOST)}"
    )
