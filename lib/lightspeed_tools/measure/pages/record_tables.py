"""What a chapter shows of measurements: a shipped record beside a law, and the reader's."""

import math
import os
from dataclasses import dataclass, field
from datetime import datetime

from lightspeed.errors import one_of
from lightspeed_show import si, table
from lightspeed_tools.measure import conditions
from lightspeed_tools.measure.instruments import latency_levels
from lightspeed_tools.measure.instruments.timing import FEWEST, LIMIT
from lightspeed_tools.measure.records import record
from lightspeed_tools.measure.records.record import NotMeasured

NONE = "–"
RECORDED = "LIGHTSPEED_RECORDED"  # set in the kernels of a build


@dataclass(frozen=True)
class Row:
    """A line of the table: label, key and parameters of the quantity, and the law's prediction."""

    label: str
    key: str
    law: object = None
    parameters: dict = field(default_factory=dict)


def row(label, key, law=None, **parameters):
    """Return a line for the quantity with this key and parameters. `law`: its prediction in SI, or
    a function of the record (`find(record, ...)`), which works on any machine.
    """
    return Row(label, key, law, parameters)


def measure_here(part, quick=True):
    """Measure one part here and now, not kept on disk, and return the record. Prints progress and
    how far to trust it; what can't be had is said, never raised. Where pages are built and proved,
    it is a shipped record: theirs say the same on every machine, by today's code.
    """
    from lightspeed_tools.measure import runner

    one_of("measure_here", "part", part, tuple(runner.PARTS))
    if RECORDED in os.environ:
        here = record.recorded(part)
        print(f"{about(here)} Run this cell to measure the machine that you are on.")
        return here
    here = runner.measure((part,), quick)
    print(f"How far to trust it: {conditions.trust(here['environment'])}")
    return here


def show_recorded(name, rows, caption=""):
    """Show the table of these `row`s for a shipped record (its name) or any other."""
    machine = (
        record.shipped()[one_of("show_recorded", "name", name, tuple(record.shipped()))]
        if isinstance(name, str)
        else name
    )
    lawful = any(r.law is not None for r in rows)
    columns = [
        "quantity",
        "measured",
        "spread",
        *(["the law says", "measured over law"] if lawful else []),
    ]
    lines = []
    for r in rows:
        quantity, law = _find(machine, r), _law(machine, r)
        line = [r.label, amount(quantity), spread(quantity)]
        if lawful:
            line += [si_of(law, quantity.unit) if law and quantity else NONE, ratio(quantity, law)]
        lines.append(line)
    table(lines, columns, " ".join(filter(None, (caption, about(machine)))))


def compare_here(here, rows, caption=""):
    """Show these `row`s as measured here, beside the law and the shipped records.

    `here` is a record of `measure_here`, or None for the newest that the reader has saved.
    """
    here = here or record.latest()
    if here is None:
        print(
            "Nothing has been measured on this machine yet. In a terminal: lightspeed measure all"
        )
        return
    lawful = any(r.law is not None for r in rows)
    # A machine that none of these rows was measured on would be a column of dashes.
    others = [
        r
        for r in record.shipped().values()
        if r["when"] != here["when"] and any(_find(r, one) for one in rows)
    ]
    columns = [
        "quantity",
        *(["the law says, here"] if lawful else []),
        "here",
        "spread",
        *(["here over law"] if lawful else []),
        *(r["name"] for r in others),
    ]
    lines = []
    for r in rows:
        quantity, law = _find(here, r), _law(here, r)
        said = [si_of(law, quantity.unit) if law and quantity else NONE] if lawful else []
        over = [ratio(quantity, law)] if lawful else []
        beside = [amount(_find(other, r)) for other in others]
        lines.append([r.label, *said, amount(quantity), spread(quantity), *over, *beside])
    table(lines, columns, caption)
    lacking = [f"{m.key}: {m.why} {m.remedy}" for m in record.missing(here)]
    if lacking:
        print("Not measured here. " + " ".join(lacking))


def about(machine):
    """Describe a record in one sentence: machine, date, and whether it has samples."""
    day = f"{datetime.fromisoformat(machine['when']):%Y-%m-%d}"
    if machine["kind"] == "summary":
        return (
            f"{machine['name']}, {day}: medians and spreads as stated, samples were not kept."
            f" Source: {machine['source']}"
        )
    return f"Recorded on {machine['name']}, {day}."


def amount(quantity):
    """Format the median for the reader, or a dash."""
    return si_of(quantity.value, quantity.unit) if quantity else NONE


def si_of(value, unit):
    """Format with `si`, and rates of counts as "120/s"."""
    return f"{si(value)}/s" if unit == "1/s" else si(value, unit)


def label(quantity):
    """Format key and parameters, with readable bytes and rates."""
    words = {
        "size": lambda size: latency_levels.binary(size) if size else size,
        "rate": lambda rate: si(rate, "byte/s"),
    }
    values = (f"{name} {words.get(name, str)(v)}" for name, v in quantity.parameters.items())
    return ", ".join([quantity.key, *values])


def spread(quantity):
    """Describe the spread in a few words; say if it is too wide."""
    if not quantity:
        return "not measured"
    if quantity.samples and len(quantity.samples) < FEWEST:
        return f"not known from {si(len(quantity.samples))}"
    if quantity.varies:
        return "varies by nature"
    if math.isnan(quantity.spread):
        return "not stated"
    return si(quantity.spread, "%", 2) + ("" if quantity.trusted else f", above {si(LIMIT, '%')}")


def ratio(quantity, law):
    """Return measured over predicted; if the spread is too wide, say so instead."""
    if not (quantity and law):
        return NONE
    return f"{quantity.value / law:.2f}" if quantity.trusted else "too noisy to say"


def _find(machine, r):
    try:
        return record.find(machine, r.key, **r.parameters)
    except NotMeasured:
        return None


def _law(machine, r):
    if not callable(r.law):
        return r.law
    try:
        return r.law(machine)
    except NotMeasured:
        return None
