"""The slips that everybody makes, recognised by the factor they leave, and the size of what is left unexplained."""

from __future__ import annotations

import math

import numpy as np

from lightspeed.practice.amounts import close, si_factor

WINDOW = 5e-3  # a learner rounds to three digits; the nearest factors, 1.0995 and 1.0737, are further apart
NEXT = "Write down each factor with its unit, cancel the units, and estimate the powers of ten in your head."

FACTORS = (
    ("bits and bytes", 8, "A factor of eight is the mark of bits taken for bytes. Which one does each rate and each size count?"),
    ("factor of two", 2, "A factor of two has three usual reasons: a multiply-add counted as one operation or as two, a sparse peak "
     "taken for a dense one, or a link's two directions added. Which does the question mean?"),
    ("binary prefix", 1.024, "The factor is that between kB and KiB: powers of ten and powers of two are mixed."),
    ("binary prefix", 1.024**2, "The factor is that between MB and MiB: powers of ten and powers of two are mixed."),
    ("binary prefix", 1.024**3, "The factor is that between GB and GiB: powers of ten and powers of two are mixed."),
    ("binary prefix", 1.024**4, "The factor is that between TB and TiB: powers of ten and powers of two are mixed."),
    *(("prefix", 1000.0**n, "The factor is a whole number of thousands: a prefix (n, µ, m, k, M, G, T) was lost or misread on the way.")
      for n in (1, 2, 3, 4, 5)),
)  # fmt: skip


def slip(variant, given, right):
    """(name, reason) of the generic slip that explains all the given values, or None."""
    ratio = _constant(given / right, right)
    if ratio is None:
        return _upside_down(given, right)
    high = "high" if ratio > 1 else "low"
    fitting = [(name, reason) for name, factor, reason in _factors(variant) if _is(ratio, factor) or _is(ratio, 1 / factor)]
    if not fitting:
        return _upside_down(given, right)
    reasons = " Or: ".join(dict.fromkeys(reason for _, reason in fitting))
    return fitting[0][0], f"That is too {high}. {reasons}"


def _factors(variant):
    q = variant.question
    if not _is(si_factor(q.unit), 1):
        reason = f"A plain number is read in {q.unit}; yours looks like one in the library's own unit. Convert it, or give a quantity."
        yield "unit", si_factor(q.unit), reason
    for name, value in variant.values.items():
        if q.kind != "function" and type(value) is int and value > 1 and not q.parameters[name].unit:
            yield "one or all", value, f"The factor is that of {name}. Is the answer asked for one, or for all together?"
    if not q.unit:
        yield "percent", 100, "The factor is a hundred. Is a fraction asked, or a percentage?"
    yield from FACTORS


def _upside_down(given, right):
    if close(given * right, np.ones_like(right), WINDOW):
        return "upside down", "That is the ratio turned upside down. Which of the two quantities is asked per unit of the other?"
    return None


def _constant(ratios, right):
    """The one factor between what was given and what is right, if it is one."""
    ratios = ratios[(right != 0) & np.isfinite(ratios)]
    if len(ratios) and ratios[0] > 0 and close(ratios, np.full(len(ratios), ratios[0]), WINDOW):
        return float(ratios[0])
    return None


def _is(ratio, factor):
    return abs(ratio / factor - 1) <= WINDOW


def magnitude(variant, given, right):
    """(kind, reason) for values that nothing explains: how many are right, and how far off the others."""
    q = variant.question
    good = [close(g, r, q.tolerance) for g, r in zip(given, right, strict=True)]
    kind, reason = "magnitude", _size(given[good.index(False)], right[good.index(False)])
    if all(close(g, r, 5 * q.tolerance) for g, r in zip(given, right, strict=True)):
        kind, reason = "close", "That is close, but outside the tolerance. Did you round on the way, or leave out a small term?"
    if len(good) == 1:
        return kind, reason
    if any(good):
        kind = "partial"
    if q.kind == "array":
        wrong = ", ".join(n for n, ok in zip(q.names, good, strict=True) if not ok)
        return kind, f"{sum(good)} of {len(good)} values are right. Look again at: {wrong}. {reason}"
    return kind, f"It agrees with the library on {sum(good)} of {len(good)} inputs tried. What is special about those that differ? {reason}"


def _size(given, right):
    way = "too high" if given > right else "too low"
    if np.isinf(given) or np.isinf(right) or given == 0 or right == 0:
        return f"That is {way}, and no factor mends it. Where does the law reach zero or infinity?"
    decades = abs(math.log10(given / right))
    if decades < math.log10(3):
        return f"That is {way}, but within a factor of three. Which term is missing, or counted twice?"
    if decades < 1:
        return f"That is {way}, by less than a factor of ten. {NEXT}"
    whole = round(decades)
    return f"That is {way} by about {whole} decade{'s' * (whole > 1)}. {NEXT}"
