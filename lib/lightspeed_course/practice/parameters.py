"""The verbs that the Python of every question knows.

Those that write a parameter take the canonical value, then those that variants draw from. The
canonical value is one of these, named again or not; without any, it is the only one.
"""

import math

from lightspeed.catalog import accelerator, find, link, number
from lightspeed_course.practice.amounts import nice, powers_of_two
from lightspeed_course.practice.derivation import FUNCTIONS, derivation, step
from lightspeed_course.practice.question_model import Parameter
from lightspeed_show.format import plain as written
from lightspeed_show.format import si

FACTS = {
    "bf16": ("bf16 peak", "FLOP/s"),
    "int8": ("int8 peak", "OP/s"),
    "hbm_bandwidth": ("HBM at", "byte/s"),
    "hbm_capacity": ("HBM of", "byte"),
}


def given(canonical, *choices, unit="", show=None):
    """A value in `unit` as the prompt shows it, or as `show(value)` writes it."""
    return _parameter(canonical, choices, unit, show)


def plain(canonical, *choices):
    """A number without a unit, written without separators."""
    return _parameter(canonical, choices, show=str)


def rate(canonical, *choices):
    """A rate in GB/s."""
    return _parameter(canonical, choices, "GB/s")


def counted(unit, canonical, *choices):
    """A count or an amount, written with its unit as the course writes it."""
    return _parameter(canonical, choices, show=lambda value: si(value, unit))


def named(find, canonical, *choices):
    """A key of the catalog, written by the name of what `find` gives for it."""
    return _parameter(canonical, choices, show=lambda key: find(key).name)


def chip(canonical, *choices, facts=()):
    """A chip by its name, followed by the numbers of it that the question needs."""

    def show(key):
        entry = accelerator(key)
        facts_text = [
            f"{FACTS[name][0]} {si(getattr(entry, name), FACTS[name][1])}" for name in facts
        ]
        return f"{entry.name} ({', '.join(facts_text)})" if facts_text else entry.name

    return _parameter(canonical, choices, show=show)


def _parameter(canonical, choices, unit="", show=None):
    if choices and canonical not in choices:
        choices = (canonical, *choices)
    return Parameter(canonical, choices, unit, show)


VERBS = FUNCTIONS | {
    "Parameter": Parameter, "given": given, "plain": plain, "rate": rate, "counted": counted,
    "named": named, "chip": chip, "accelerator": accelerator, "find": find, "link": link,
    "number": number, "derivation": derivation, "step": step, "math": math, "nice": nice,
    "powers_of_two": powers_of_two, "si": si, "written": written,
}  # fmt: skip
