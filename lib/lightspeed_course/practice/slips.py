"""The slips that everybody makes, recognised by the factor they leave, and the size of what is left unexplained."""

from __future__ import annotations

import math
import re
from itertools import permutations

import numpy as np

from lightspeed_course.practice.amounts import close, si_factor

WINDOW = 5e-3  # a learner rounds to three digits; the nearest factors, 1.0995 and 1.0737, are further apart
NEXT = "Write down each factor with its unit, cancel the units, and estimate the powers of ten in your head."

_BITS = "A factor of eight is the mark of bits taken for bytes. Which one does each rate and each size count?"
_THOUSANDS = "The factor is a power of 1000 (a thousand, a million, ...): a prefix (n, µ, m, k, M, G, T) was lost or misread on the way."
_HUNDRED = "The factor is a hundred. Is a fraction asked, or a percentage?"
_CLOCKS = {60: "seconds and minutes, or minutes and hours", 3600: "seconds and hours", 24: "hours and days", 1440: "minutes and days", 86400: "seconds and days"}
_LINK = re.compile(r"\b(links?|network|NVLink|PCIe|InfiniBand|ports?|adapters?|one direction)\b", re.IGNORECASE)


def slip(variant, given, right, wide=False):
    """(name, reason) of the generic slip that explains all the given values, or None.

    `wide` gives large factors the tolerance of the question: without the slip, the answer would have been accepted.
    """
    widest = _window(100, variant.question.tolerance, wide)
    ratio = _constant(given / right, right, widest)
    if ratio is None:
        return _upside_down(given, right)
    high = "high" if ratio > 1 else "low"
    fitting = []
    for name, factor, reason in factors(variant):
        window = _window(factor, variant.question.tolerance, wide)
        # An answer in the library's own unit is off in one direction only.
        if (_is(ratio, factor, window) or (name != "unit" and _is(ratio, 1 / factor, window))) and _shows(given, right, factor):
            fitting.append((name, reason))
    if not fitting:
        return _upside_down(given, right)
    reasons = " Or: ".join(dict.fromkeys(reason for _, reason in fitting))
    what = "That is" if len(given) == 1 else "All are"
    return fitting[0][0], f"{what} too {high}. {reasons}"


def factors(variant):
    """The (name, factor, reason) of each slip that may happen with this question, by the dimensions in it."""
    q, inside = variant.question, _dimensions(variant)
    if q.unit != "%" and not _is(si_factor(q.unit), 1):
        reason = f"A plain number is read in {q.unit}; yours looks like one in the library's own unit. Convert it, or give a quantity."
        yield "unit", si_factor(q.unit), reason
    for name, value in variant.values.items():
        if q.kind != "function" and type(value) is int and value > 1 and not q.parameters[name].unit:
            yield "one or all", value, f"The factor is that of {name}. Is the answer asked for one, or for all together?"
    if q.unit == "%" or (not q.unit and ((np.abs(variant.right) <= 1).all() or "%" in {p.unit for p in q.parameters.values()})):
        yield "percent", 100, _HUNDRED + " A plain number is read in %." * (q.unit == "%")
    for factor in _clocks(q):
        yield "time unit", factor, f"The factor is {factor}, as between {_CLOCKS[factor]}. In which unit is each time?"
    if "[information]" in inside:
        yield "bits and bytes", 8, _BITS
    reasons = list(_twice(variant, inside))
    usual = f" Usual reasons for it here: {', or '.join(reasons)}." if reasons else ""
    yield "factor of two", 2, f"A factor of two is left.{usual} What did you count once, or twice?"
    # Where bytes are counted, or timed; a number of requests, say, has other reasons to be off by so little.
    if "[information]" in inside and ("[information]" in _of(q.unit) or set(_of(q.unit)) == {"[time]"}):
        for power, (small, large) in enumerate((("kB", "KiB"), ("MB", "MiB"), ("GB", "GiB"), ("TB", "TiB")), 1):
            reason = f"The factor is that between {small} and {large}: powers of ten and powers of two are mixed."
            yield "binary prefix", 1.024**power, reason
    if inside:
        for power in (1, 2, 3, 4, 5):
            yield "prefix", 1000.0**power, _THOUSANDS


def _of(unit):
    """The dimensions of a unit, each with its power."""
    from lightspeed.units import Q

    return dict(Q(1, unit).dimensionality) if unit else {}


def _clocks(q):
    """The factors between units of time that may be mistaken here: days only where a clock is in use."""
    if set(_of(q.unit)) - {"[request]"} != {"[time]"} or si_factor(q.unit) < 1:
        return ()
    clocked = any(si_factor(u) in _CLOCKS and set(_of(u)) == {"[time]"} for u in (q.unit, *(p.unit for p in q.parameters.values())))
    return tuple(_CLOCKS) if clocked else (60, 3600)


def _is_key(variant, kind):
    """Whether a premise is an entry of this kind of the catalog."""
    from lightspeed.catalog import entries

    return any(isinstance(value, str) and value in entries(kind) for value in variant.values.values())


def _dimensions(variant):
    """The dimensions of the answer and of the premises; a text stands for bytes, and if it is a chip, for FLOPs too."""
    q = variant.question
    inside = {name for unit in (q.unit, *(p.unit for p in q.parameters.values())) for name in _of(unit)}
    if any(isinstance(value, str) for value in variant.values.values()):
        inside |= {"[information]"}
    if _by_peak(variant):
        inside |= {"[operation]"}
    # An energy has a length in it, but no way to go.
    return inside - {"[length]"} if "[mass]" in inside else inside


def _by_peak(variant):
    """Whether the answer may be built on a peak: one in FLOP/s, or of a chip where time or a ratio is asked."""
    q, asked = variant.question, set(_of(variant.question.unit))
    if "[information]" in asked and "[operation]" not in asked:
        return False  # bytes, and bytes a second
    if any({"[operation]", "[time]"} <= set(_of(u)) for u in (q.unit, *(p.unit for p in q.parameters.values()))):
        return True
    ratio = q.unit == "%" or (asked and asked <= {"[operation]", "[information]", "[time]", "[token]"})
    return bool(ratio) and _is_key(variant, "accelerators")


def _twice(variant, inside):
    """The usual reasons for a factor of two, each only where the answer has what it is about."""
    q, asked = variant.question, set(_of(variant.question.unit))
    if "[operation]" in inside and ("[operation]" in asked or "[information]" not in asked):
        yield "a multiply-add counted as one operation or as two"
    if _by_peak(variant):
        yield "a sparse peak taken for a dense one"
    rate = {"[information]", "[time]"} <= asked or q.unit == "%" or (asked and asked <= {"[time]", "[token]"})
    if rate and "[information]" in inside and (_LINK.search(q.prompt) or _is_key(variant, "links")):
        yield "a link's two directions added"
    if "[length]" in inside:
        yield "the way there taken for the way there and back"


def reordered(variant, given, right):
    """(name, reason) if the values are right in another order, or the function with its arguments in another order; or None."""
    q = variant.question
    if q.kind == "array":
        if any(close(order, right, q.tolerance) for order in permutations(given)):
            return "another order", f"Those are the right values, in another order than asked: {', '.join(q.names)}."
    elif q.kind == "function":
        if len(set(given[np.isfinite(given)])) < 3:
            return None  # so little that several orders would do
        # The library is called, not the learner's function: a permutation costs no call in a sandbox.
        if order := next((o for o in orders(q) if _same_as(variant, o, given)), None):
            return other_arguments(q, order)
    return None


def orders(q):
    """The orders of a function's arguments other than the one asked: the nearest first, and of many arguments only these."""
    names = tuple(q.parameters)
    ranked = sorted(permutations(names), key=lambda o: sum(a != b for a, b in zip(o, names, strict=True)))[1:]
    return ranked if len(names) <= 4 else [*ranked[: math.comb(len(names), 2)], names[::-1]]


def other_arguments(q, order):
    """(name, reason) of a function that is right with its arguments in another order."""
    return "another order", f"It is right with its arguments in the order {', '.join(order)}. Asked is the order {', '.join(q.parameters)}."


def _same_as(variant, order, given):
    """Whether the library gives the same wherever its arguments, by position, are taken to be those of `order`."""
    for sample, value in zip(variant.samples, given, strict=True):
        try:
            other = variant._result(lambda **p: variant.question.expected(**dict(zip(order, p.values(), strict=True))), sample)[0]
        except Exception:  # what an argument is not made for
            other = np.nan
        if not (np.isnan(value) and np.isnan(other)) and not close(value, other, variant.question.tolerance):
            return False
    return True


def unrounded(variant, given, right):
    """(name, reason) if a count is right but for its fraction, or None."""
    q = variant.question
    if q.kind != "number" or q.tolerance or q.unit not in ("", "token", "request") or right[0] % 1 or not given[0] % 1:
        return None
    if math.floor(given[0]) == right[0]:
        return "not whole", "Only whole ones count here: a part of one is none."
    if math.ceil(given[0]) == right[0]:
        return "not whole", "Only whole ones can be had here: a part of one does not do."
    return None


def _upside_down(given, right):
    if close(given * right, np.ones_like(right), WINDOW):
        return "upside down", "That is the ratio turned upside down. Which of the two quantities is asked per unit of the other?"
    return None


def _constant(ratios, right, window):
    """The one factor between what was given and what is right, if it is one."""
    ratios = ratios[(right != 0) & np.isfinite(ratios)]
    if len(ratios) and ratios[0] > 0 and close(ratios, np.full(len(ratios), ratios[0]), window):
        return float(ratios[0])
    return None


def _window(factor, tolerance, wide):
    """How near to a factor a ratio must be; only one of a hundred or more is told from others over a wide tolerance."""
    if not wide or factor < 1.5:
        return WINDOW
    return max(WINDOW, tolerance if factor >= 100 else min(tolerance, 0.05))


def _is(ratio, factor, window=WINDOW):
    return abs(ratio / factor - 1) <= window


def _shows(given, right, factor):
    """Whether so many digits were given that a factor near one can be told from chance."""
    if factor >= 1.5:
        return True
    exact = any(close(given, right * f, 1e-6) for f in (factor, 1 / factor))
    return exact or any(len(f"{abs(v):.12e}".partition("e")[0].replace(".", "").rstrip("0")) >= 3 for v in given)


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
