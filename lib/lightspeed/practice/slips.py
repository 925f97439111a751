"""The slips that everybody makes, recognised by the factor they leave, and the size of what is left unexplained."""

from __future__ import annotations

import math

import numpy as np

from lightspeed.practice.amounts import close, si_factor

WINDOW = 5e-3  # a learner rounds to three digits; the nearest factors, 1.0995 and 1.0737, are further apart
NEXT = "Write down each factor with its unit, cancel the units, and estimate the powers of ten in your head."

_BITS = "A factor of eight is the mark of bits taken for bytes. Which one does each rate and each size count?"
_THOUSANDS = "The factor is a whole number of thousands: a prefix (n, µ, m, k, M, G, T) was lost or misread on the way."
# The usual reasons for a factor of two, each with the dimension without which it would be silly.
_TWICE = (
    ("[operation]", "a multiply-add counted as one operation or as two"),
    ("[operation]", "a sparse peak taken for a dense one"),
    ("[information]", "a link's two directions added"),
    ("[length]", "the way there taken for the way there and back"),
)


def slip(variant, given, right):
    """(name, reason) of the generic slip that explains all the given values, or None."""
    ratio = _constant(given / right, right)
    if ratio is None:
        return _upside_down(given, right)
    high = "high" if ratio > 1 else "low"
    fitting = [(name, reason) for name, factor, reason in factors(variant) if _is(ratio, factor) or _is(ratio, 1 / factor)]
    if not fitting:
        return _upside_down(given, right)
    reasons = " Or: ".join(dict.fromkeys(reason for _, reason in fitting))
    what = "That is" if len(given) == 1 else "All are"
    return fitting[0][0], f"{what} too {high}. {reasons}"


def factors(variant):
    """The (name, factor, reason) of each slip that may happen with this question, by the dimensions in it."""
    q, inside = variant.question, _dimensions(variant)
    if not _is(si_factor(q.unit), 1):
        reason = f"A plain number is read in {q.unit}; yours looks like one in the library's own unit. Convert it, or give a quantity."
        yield "unit", si_factor(q.unit), reason
    for name, value in variant.values.items():
        if q.kind != "function" and type(value) is int and value > 1 and not q.parameters[name].unit:
            yield "one or all", value, f"The factor is that of {name}. Is the answer asked for one, or for all together?"
    if not q.unit and ((np.abs(variant.right) <= 1).all() or "%" in {p.unit for p in q.parameters.values()}):
        yield "percent", 100, "The factor is a hundred. Is a fraction asked, or a percentage?"
    if "[information]" in inside:
        yield "bits and bytes", 8, _BITS
    reasons = [reason for dimension, reason in _TWICE if dimension in inside]
    usual = f" Usual reasons for it here: {', or '.join(reasons)}." if reasons else ""
    yield "factor of two", 2, f"A factor of two is left.{usual} What did you count once, or twice?"
    if "[information]" in inside:
        for power, (small, large) in enumerate((("kB", "KiB"), ("MB", "MiB"), ("GB", "GiB"), ("TB", "TiB")), 1):
            reason = f"The factor is that between {small} and {large}: powers of ten and powers of two are mixed."
            yield "binary prefix", 1.024**power, reason
    if inside:
        for power in (1, 2, 3, 4, 5):
            yield "prefix", 1000.0**power, _THOUSANDS


def _dimensions(variant):
    """The dimensions of the answer and of the premises; one that is a text may be a chip, with bytes and FLOPs."""
    from lightspeed.units import Q

    q = variant.question
    units = {q.unit, *(p.unit for p in q.parameters.values())}
    inside = {name for unit in units if unit for name in Q(1, unit).dimensionality}
    if any(isinstance(value, str) for value in variant.values.values()):
        inside |= {"[information]", "[operation]"}
    # An energy has a length in it, but no way to go.
    return inside - {"[length]"} if "[mass]" in inside else inside


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
    # Of counts that must be exact, the neighbours are close.
    near = close(given, right, 5 * q.tolerance) if q.tolerance else bool((np.abs(given - right) <= 1).all())
    sizes = [_size(g, r, near) for g, r, ok in zip(given, right, good, strict=True) if not ok]
    how, advice = sizes[0]
    kind = "partial" if any(good) else "close" if near else "magnitude"
    if q.kind == "array":
        names = [name for name, ok in zip(q.names, good, strict=True) if not ok]
        wrong = "; ".join(f"{name} is {how}" for name, (how, _) in zip(names, sizes, strict=True))
        return kind, f"{sum(good)} of {len(good)} values are right. Look again: {wrong}. {advice}"
    if len(good) == 1:
        return kind, f"That is {how}. {advice}"
    if any(good):
        return kind, f"It agrees with the library on {sum(good)} of {len(good)} inputs tried. What is special about those that differ? That is {how}. {advice}"
    return kind, f"It agrees with the library on none of the {len(good)} inputs tried. That is {how}. {advice}"


def _size(given, right, near):
    """How far off a value is, and what to do next."""
    way = "too high" if given > right else "too low"
    if near:
        return f"{way}, close but outside the tolerance", "Did you round on the way, or leave out a small term?"
    if np.isinf(given) or np.isinf(right) or given == 0 or right == 0:
        return f"{way}, and no factor mends it", "Where does the law reach zero or infinity?"
    decades = abs(math.log10(given / right))
    if decades < math.log10(3):
        return f"{way}, but within a factor of three", "Which term is missing, or counted twice?"
    if decades < 1:
        return f"{way}, by less than a factor of ten", NEXT
    whole = round(decades)
    return f"{way} by about {whole} decade{'s' * (whole > 1)}", NEXT
