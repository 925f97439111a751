"""A record as one page of HTML: how far to trust it first, then the numbers."""

import statistics

from markupsafe import Markup

from lightspeed_show import si
from lightspeed_show.html import page
from lightspeed_show.page import draw
from lightspeed_tools.measure import conditions
from lightspeed_tools.measure.instruments.timing import LIMIT
from lightspeed_tools.measure.pages import charts
from lightspeed_tools.measure.pages.record_tables import amount, label, spread
from lightspeed_tools.measure.records import compare, record, trust
from lightspeed_tools.measure.records.compare import columns, title

DOTS = (
    "Each dot is a sample, by its ratio to the median, from half to twice as much; the band is"
    f" {si(LIMIT, '%')} to either side. The spread is the standard deviation over the mean of the"
    " middle 80 % of the samples."
)


def to_html(machine):
    """Render a record as a page: the same record gives the same bytes."""
    quantities = record.quantities(machine)
    versions = {f"version of {name}": v for name, v in machine["versions"].items()}
    doubted = trust.doubts(quantities)
    names = dict.fromkeys(q.key.partition(".")[0] for q in quantities)
    parts = [[q for q in quantities if q.key.partition(".")[0] == name] for name in names]
    return page(
        "measured",
        title=f"Measured on {title(machine)}",
        shown=machine,
        sound=_sound(machine, quantities),
        verdict=verdict(machine, quantities),
        no_samples=_no_samples(machine) if machine["kind"] == "summary" else "",
        missing=[str(m) for m in record.missing(machine)],
        drawn=[(Markup(draw(*drawn)), drawn[1]) for drawn in charts.available(machine)],
        dots=DOTS,
        parts=[
            (f"{name}: {trust.in_short(part, doubted)}", [_row(q, doubted) for q in part])
            for name, part in zip(names, parts, strict=True)
        ],
        facts=[
            (name.replace("_", " "), compare.said(name, value))
            for name, value in {**machine["machine"], **versions}.items()
        ],
    )


def verdict(machine, found=None):
    """Say how far to trust a record, in sentences: its quantities first, then its conditions."""
    found = record.quantities(machine) if found is None else found
    if not found:
        return ["Nothing was measured."]
    doubted = trust.doubts(found)
    spreads = [q.spread for q in found if q.spread == q.spread]
    middle = f" The median spread is {si(statistics.median(spreads), '%', 2)}." if spreads else ""
    # What makes the count itself doubtful stands beside it, in the headline.
    count, busy = trust.in_short(found, doubted), conditions.crowded(machine["environment"])
    words = [f"{count}.{middle} {busy}".rstrip()]
    words += trust.in_words(found, doubted)
    words += [] if machine.get("complete", True) else ["It was interrupted, and is not complete."]
    if machine["environment"]:
        words.append(conditions.trust(machine["environment"]))
        if not all(q.trusted for q in found):
            words.append(
                "Where the spread is wider nothing can be concluded; possible causes:"
                f" {'; '.join(conditions.why(machine['environment']))}."
            )
    return words


def in_words(machine):
    """Return a record as lines for the terminal: trust, what is missing, then every quantity."""
    quantities = record.quantities(machine)
    lines = [
        title(machine),
        "",
        f"How far to trust it: {' '.join(verdict(machine, quantities))}",
        "",
    ]
    if machine["kind"] == "summary":
        lines += [_no_samples(machine), ""]
    lines += columns(
        [[c["check"], c["state"], c["words"], c["remedy"]] for c in machine["environment"]],
        ("check", "", "what was seen", "what to do"),
    )
    missing = record.missing(machine)
    if missing:
        lines += ["", "What is missing, and how to get it:", *(f"  {m}" for m in missing)]
    if quantities:
        doubted = trust.doubts(quantities)
        rows = [
            [label(q), amount(q), doubted.get(q.label) or spread(q), str(len(q.samples) or "–")]
            for q in quantities
        ]
        lines += ["", *columns(rows, ("quantity", "median", "spread", "n"))]
    return lines


def _sound(machine, found):
    return (
        bool(found)
        and trust.sound(found, trust.doubts(found))
        and all(c["state"] != "warn" for c in machine["environment"])
    )


def _no_samples(machine):
    return (
        "This record has no samples: medians and spreads are as its source states them."
        f" Source: {machine['source']}"
    )


def _row(q, doubted):
    n = str(len(q.samples) or "–")
    return [label(q), amount(q), spread(q), n, charts.dots(q), _conclusion(q, doubted)]


def _conclusion(quantity, doubted):
    good = "varies by nature" if quantity.varies else f"repeats within {si(LIMIT, '%')}"
    words = doubted.get(quantity.label) or (
        good if quantity.trusted else "nothing can be concluded"
    )
    return words + (f"; {quantity.note}" if quantity.note else "")
