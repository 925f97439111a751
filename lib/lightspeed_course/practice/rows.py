"""Other rows of the catalog, for a question that asks for a number of it."""

import sys

from lightspeed_course.practice.causes import ABOUT, Cause
from lightspeed_course.practice.slips import PREFIXES


def rows(variant):
    """The neighbours of the number that is asked, as causes; none if it is not cataloged."""
    q = variant.question
    if q.kind != "number" or "lightspeed.catalog" not in sys.modules:
        return  # what was never loaded was not read
    from lightspeed.catalog import Number, find

    number = q.expected(**variant.inputs())
    if not isinstance(number, Number):
        return
    key, _, name = number.key.partition(".")
    for other, about in _neighbours(find(key), number, name):
        reason = f"It comes out so with {about} in place of the {_what(name)} of the question."
        width = min(q.tolerance, 0.03)
        yield Cause(about, variant.in_unit(other), reason, about=_about(other), width=width)
    if number.unit == "byte":
        size = number.printed.partition(" ")[2][:1].upper()
        for small, large in (pair for pair in PREFIXES if pair[1].startswith(size or "-")):
            reason = f"It comes out so with {large} for {small} in the {_what(name)}."
            power = 1.024 ** (1 + "KMGT".index(size))
            for factor in (power, 1 / power):
                yield Cause("binary prefix", variant.in_unit(number * factor), reason)


def _neighbours(entry, number, name):
    """The same number of another product of the kind, or another of the same product and unit."""
    from lightspeed.catalog import KINDS, entries

    kind = next(entries(k) for k in KINDS if entry.key in entries(k))
    if kind is entries("models"):
        return  # a model is a premise, not a row of a table that one reads wrongly
    for other in kind.values():
        alike = all(other.about.get(a) == entry.about.get(a) for a in ("kind", "vendor"))
        if alike and name in other and other.key != entry.key:
            yield other.numbers[name], f"the {_what(name)} of the {other.name}"
    for same, other in entry.numbers.items():
        if number.unit and same != name and other.unit == number.unit and other != number:
            yield other, f"{_what(same)} of the {entry.name}"


def _what(name):
    return name.replace("_bidirectional", ", both directions").replace("_", " ")


def _about(number):
    if number.density == "sparse":
        return ABOUT["a sparse peak"]
    return ABOUT["both directions"] if number.direction == "both ways" else ""
