"""Two records side by side: the ratio of each quantity, and whether the difference is more than
noise.

A difference is claimed where both spreads are within the limit and neither is doubted (`judged`),
the interval of the ratio leaves out one, and the ratio is farther from one than the larger spread
and than `DRIFT`, for samples taken within seconds do not show how much a machine changes between
two runs. Where a spread is too wide but all of the interval is beyond `CLEAR`, only the direction
is claimed, and no figure. Otherwise nothing is, and it is said why.
"""

import math
from collections import Counter
from dataclasses import dataclass

import numpy as np

from lightspeed_show import si
from lightspeed_tools.measure import conditions
from lightspeed_tools.measure.instruments.latency_levels import binary
from lightspeed_tools.measure.instruments.timing import FEWEST, Quantity
from lightspeed_tools.measure.pages.record_tables import amount, label
from lightspeed_tools.measure.records import record, trust
from lightspeed_tools.measure.records.record import quantities

# of the interval: of a hundred quantities that are equal, one is to be expected outside it
LEVEL = 0.99
RESAMPLES = 4000
# two runs on one machine differ by so much without any cause that a reader would care for
DRIFT = 0.05
# what makes samples scatter changes between runs, too, but seldom a median by so much
CLEAR = 1.5


@dataclass(frozen=True)
class Pair:
    """One quantity of two records. `ratio` is b over a, `interval` its bounds; `verdict` is
    "same", "better", "worse" or "noisy".
    """

    a: Quantity
    b: Quantity
    ratio: float
    interval: tuple
    verdict: str
    words: str


@dataclass(frozen=True)
class Comparison:
    """All pairs of records `a` and `b`, what only one of them has, and environment differences."""

    a: dict
    b: dict
    pairs: tuple
    only_a: dict
    only_b: dict
    differences: tuple


def compare(a, b):
    """Return two records' `Comparison`; quantities pair up by key, parameters and unit."""
    left, right = ({_identity(q): q for q in quantities(r)} for r in (a, b))
    doubted = [trust.doubts(list(these.values())) for these in (left, right)]
    pairs = tuple(
        _pair(q, right[i], doubted[0].get(q.label), doubted[1].get(right[i].label))
        for i, q in left.items()
        if i in right
    )
    only_a, only_b = (
        dict(Counter(q.key for i, q in these.items() if i not in those))
        for these, those in ((left, right), (right, left))
    )
    return Comparison(a, b, pairs, only_a, only_b, tuple(differences(a, b)))


def ratio_interval(a, b, level=LEVEL):
    """Bounds of median(b) / median(a) at this level, by resampling both (bootstrap, percentiles,
    fixed seed).

    >>> ratio_interval((2.0, 2.0, 2.0), (6.0, 6.0, 6.0))
    (3.0, 3.0)
    """
    rng = np.random.default_rng(0)
    medians = [np.median(rng.choice(np.asarray(s), (RESAMPLES, len(s))), axis=1) for s in (a, b)]
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = medians[1] / medians[0]
    low, high = np.quantile(ratios, [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)


def differences(a, b):
    """Return (what, in a, in b) for differing machine, versions, effort and checks; "–" if one
    record lacks it. Without samples, only what both have.
    """
    partly = "summary" in (a["kind"], b["kind"])
    for title in ("machine", "versions"):
        for name in dict.fromkeys((*a[title], *b[title])):
            one, other = a[title].get(name), b[title].get(name)
            if one != other and not (partly and None in (one, other)):
                yield name.replace("_", " "), said(name, one), said(name, other)
    for name in ("effort", "kind"):
        if a.get(name) != b.get(name):
            yield name, said(name, a.get(name)), said(name, b.get(name))
    checks = [{c["check"]: c for c in r["environment"]} for r in (a, b)]
    for name in checks[0]:
        if name in checks[1] and checks[0][name]["state"] != checks[1][name]["state"]:
            yield name, checks[0][name]["words"], checks[1][name]["words"]


def in_words(comparison):
    """Return the comparison as lines for the terminal."""
    c = comparison
    lines = [f"A: {title(c.a)}", f"B: {title(c.b)}", ""]
    lines += (
        ["How the two differ beside what was measured:"]
        if c.differences
        else ["Machine, versions and checks are the same."]
    )
    lines += columns([[what, one, other] for what, one, other in c.differences], ("", "A", "B"))
    lines += [""]
    for machine, name in ((c.a, "A"), (c.b, "B")):
        if machine["environment"]:
            lines.append(f"How far to trust {name}: {conditions.trust(machine['environment'])}")
    if not c.pairs:
        return [*lines, "", "They have no quantity in common."]
    rows = [
        [label(p.a), amount(p.a), amount(p.b), f"{p.ratio:.3g}", interval(p), p.words]
        for p in c.pairs
    ]
    lines += [
        "",
        *columns(rows, ("quantity", "A", "B", "B over A", si(LEVEL, "%", 2), "")),
        "",
        summary(c),
    ]
    return lines + lone(c)


def summary(comparison):
    """Say in one sentence how many quantities differ, and which way."""
    count = {
        v: sum(p.verdict == v for p in comparison.pairs)
        for v in ("better", "worse", "same", "noisy")
    }
    return (
        f"Of {len(comparison.pairs)} quantities B is better in {count['better']}, worse in"
        f" {count['worse']}, not different in {count['same']}; nothing can be concluded from"
        f" {count['noisy']}."
    )


def lone(comparison):
    """Return a sentence for each quantity that only one record has."""
    both = (("A", comparison.only_a), ("B", comparison.only_b))
    return [
        f"Only in {name}: {', '.join(f'{key} ({n})' for key, n in keys.items())}."
        for name, keys in both
        if keys
    ]


def title(machine):
    """Name, date and effort of a record."""
    return f"{machine['name']}, {machine['when'].replace('T', ' ').removesuffix('Z')} UTC" + (
        f", {machine['effort']}" if machine.get("effort") else ""
    )


def columns(rows, heads):
    """Align rows of texts under their heads; return nothing for no rows."""
    if not rows:
        return []
    table = [list(heads), *rows]
    widths = [max(len(line[i]) for line in table) for i in range(len(heads))]
    return [
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in table
    ]


def _identity(quantity):
    return (
        quantity.key,
        quantity.unit,
        tuple(sorted((k, str(v)) for k, v in quantity.parameters.items())),
    )


def _pair(a, b, doubt_a="", doubt_b=""):
    if not (a.value and b.value):
        none = (math.nan, math.nan)
        if a.value == b.value:
            return Pair(a, b, 1.0, none, "same", "both are zero")
        return Pair(a, b, math.inf, none, "noisy", "one is zero, so there is no ratio")
    ratio, sampled = b.value / a.value, bool(a.samples and b.samples)
    noisy = [
        f"{name}: {doubt or q.verdict}"
        for name, q, doubt in (("A", a, doubt_a), ("B", b, doubt_b))
        if doubt or not q.trusted
    ]
    # Of stated spreads the number of samples is not known: twice the spread is wide for any number.
    far = math.exp(2 * math.hypot(a.spread, b.spread)) if not sampled else 1
    low, high = ratio_interval(a.samples, b.samples) if sampled else (ratio / far, ratio * far)
    good = (ratio > 1) == (b.better == "higher")
    way = "better" if good else "worse"
    if noisy:
        enough = not (doubt_a or doubt_b) and min(len(a.samples), len(b.samples)) >= FEWEST
        least = max(low, 1 / high)
        if not enough or least < CLEAR:
            return Pair(a, b, ratio, (low, high), "noisy", "; ".join(noisy))
        wide = " and ".join(
            f"{name}'s spread of {si(q.spread, '%', 2)}"
            for name, q in (("A", a), ("B", b))
            if not q.trusted
        )
        words = f"B is {way}, at least {least:.2g} times; no figure, for {wide} is too wide"
        return Pair(a, b, ratio, (low, high), way, words)
    # The spread of what varies by nature is NaN: it is in the interval already.
    margin = 1 + max([DRIFT, *(q.spread for q in (a, b) if not q.varies)])
    if low <= 1 <= high or 1 / margin < ratio < margin:
        return Pair(a, b, ratio, (low, high), "same", "no difference beyond the spreads")
    factor = max(ratio, 1 / ratio)
    words = f"B is {way}, {factor:.3g} times" + ("" if sampled else ", by stated spreads alone")
    return Pair(a, b, ratio, (low, high), way, words)


def interval(pair):
    return (
        "–" if math.isnan(pair.interval[0]) else f"{pair.interval[0]:.3g} to {pair.interval[1]:.3g}"
    )


def said(name, value):
    """Format a fact of the machine for the reader."""
    if value is None:
        return "–"
    if name == "caches":
        return ", ".join(
            f"L{c['level']} {binary(c['size'])}" for c in value if c["kind"] != "instruction"
        )
    if isinstance(value, list):
        return " ".join(map(str, value))
    return binary(value) if name in ("memory", "memory_limit", "swap") and value else str(value)


def load(name):
    """Load a record from a file, or a shipped one by name. Raises RecordError, OSError."""
    return record.shipped()[name] if name in record.shipped() else record.load(name)
