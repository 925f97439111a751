"""Quantities that a cell of a chapter assigns as bare literals: facts belong into the catalog, with
their source, and what a page assumes for its example says so to its reader:

    cost = price("h100_hour")
    burst, buffer = 1e6, 64e6  # assumed

A quantity is a number below a thousandth or from ten thousand on that is no power of two or ten;
those are steps of a scale. It is assigned if it is the value of a name, or an element of one:
arguments, bounds of an axis and seeds are nobody's facts.
"""

import ast
from collections.abc import Iterator
from datetime import date

from lightspeed.catalog import entries


def typed_facts(source: str) -> Iterator[tuple[int, str]]:
    """Each quantity that the code assigns and nobody calls assumed: its line and the number."""
    lines = source.splitlines()
    for node in ast.parse(source).body:
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.value:
            for number in _elements(node.value):
                line = lines[number.lineno - 1]
                if _is_quantity(number.value) and "# assumed" not in line:
                    yield number.lineno, ast.get_source_segment(source, number) or ""


def _elements(value: ast.expr) -> Iterator[ast.Constant]:
    match value:
        case ast.Constant():
            yield value
        case ast.Tuple() | ast.List() | ast.Set():
            for element in value.elts:
                yield from _elements(element)
        case ast.Dict():
            for element in value.values:
                yield from _elements(element)


def _is_quantity(value: object) -> bool:
    if not isinstance(value, int | float) or isinstance(value, bool) or not value:
        return False
    digits, _, exponent = f"{abs(value):.15e}".partition("e")
    of_a_scale = float(digits) == 1 or (value == int(value) and int(value) & (int(value) - 1) == 0)
    return not of_a_scale and not -4 < int(exponent) < 4


def aged(day: date) -> list[str]:
    """Return catalog facts about other people's software that are due for review by this day."""
    return [
        f"catalog/software.toml: {each.name} was read in {each.release} on {each.read}; since "
        f"{each.again} it is to be read again: look what a newer release does, then set all three"
        for each in entries("software").values()
        if each.again <= day
    ]
