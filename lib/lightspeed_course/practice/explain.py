"""Whether an answer is right, and else one ranking of all causes of a wrong one.

A candidate is named only if it explains every value that is wrong. What a bank has written comes
first and alone; a slip that is worked out by machine is named only where no written one fits, and
where none other does equally well. Else nothing is guessed.
"""

import math
import re

from lightspeed_course.practice import premises, slips
from lightspeed_course.practice.amounts import close
from lightspeed_course.practice.causes import BANK, PREMISE, VAGUE, Cause
from lightspeed_course.practice.values import ratio

# a learner rounds on the way; the nearest factors, 1.0995 and 1.0737, are further apart
WINDOW = 5e-3
MOST = 3  # written causes told of one answer


def causes(variant):
    """Return the mistakes that lead to a value other than the right one: a bank's, and factors."""
    sources = (_bank, slips.causes, premises.turned, premises.given)
    return [c for some in sources for c in some(variant) if _tells(variant, c)]


def further(variant):
    """Those for which the library is asked again: with a premise changed, or another row of the
    catalog. A weak one is left out where a stronger one leads to the same.
    """
    rows = [c for c in premises.changed(variant) if _tells(variant, c)]
    tolerance = min(variant.question.tolerance, 0.05)
    rows = [c for c in variant.rows if _tells(variant, c, tolerance)] + rows
    strong = [c.values for c in (*variant.causes, *rows) if c.rank < PREMISE]

    def said(cause):
        return cause.rank == PREMISE and any(_alike(values, cause.values) for values in strong)

    return [cause for cause in rows if not said(cause)]


def _alike(some, others):
    return all(
        a == b or abs(a - b) <= 1e-6 * abs(b) or (math.isnan(a) and math.isnan(b))
        for a, b in zip(some, others, strict=True)
    )


def _tells(variant, cause, tolerance=None):
    tolerance = variant.question.tolerance if tolerance is None else tolerance
    some = any(math.isfinite(v) and (v != 0 or cause.rank == BANK) for v in cause.values)
    return some and not close(cause.values, variant.right, tolerance)


def _bank(variant):
    q = variant.question
    width = 0.0 if q.kind == "function" else min(q.tolerance, 0.1)
    for m in q.misconceptions:
        yield Cause(m.name, variant.wrong(m), variant.fill(m.hint), BANK, width=width)


# --- the ranking --------------------------------------------------------------------------------


def explain(variant, answer):
    """The causes that explain these values best: those of a bank alone, or else the strongest of
    the others, the first of each name; none if none does.
    """
    causes, exact = _fitting(variant, answer, variant.causes)
    if not (exact and any(c.rank == BANK for c in causes)):
        causes, _ = _fitting(variant, answer, variant.causes + variant.further)
    return _distinct(causes)


def _fitting(variant, answer, candidates):
    """(the candidates that explain these values, strongest first, and whether to the digit)."""
    wrong, tolerance = _wrong(variant, answer), variant.question.tolerance
    fine = [not here for here in wrong]

    def off_in(values):
        return values if all(wrong) else values.where(wrong)

    right, own = off_in(variant.right), off_in(answer)
    function = variant.question.kind == "function"
    window = min(WINDOW, max(tolerance, 1e-6)) if function else WINDOW
    digits = _digits(own)
    to_the_digit = min(max(_half_a_digit(own, digits), 1e-9), window)
    exact, rounded, wide = [], [], []
    for cause in candidates:
        values = off_in(cause.values)
        off = _apart(own, values)
        if off > max(window, cause.width):
            continue
        far = cause.rank == BANK or _far(values, right)
        whole = not cause.whole or close(
            cause.values.where(fine), variant.right.where(fine), tolerance
        )
        if off <= to_the_digit:
            if far or off < 1e-6 or digits >= 3:
                exact.append((off, cause))
        elif far and whole:
            (rounded if off <= window else wide).append((off, cause))
    fits = exact
    # A misconception that is off by a rounding is as good as a coincidence that is not.
    if not any(c.rank == BANK for _, c in exact):
        fits = exact + [f for f in rounded if f[1].rank == BANK] or rounded or wide
    if not exact:  # rounded on the way: the nearest, and what leads to the same
        nearest = min((off for off, _ in fits), default=0)
        fits = [(off, c) for off, c in fits if off <= nearest + 1e-6]
    return sorted((c for _, c in fits), key=lambda c: c.rank), bool(exact)


def _distinct(causes):
    """The written ones alone, if there are any; else the first of each name and each reason. Where
    several are left, what says no more than they have in common stands for them.
    """
    if bank := [c for c in causes if c.rank == BANK]:
        return bank[:MOST]
    result = []
    for cause in causes:
        words = " ".join(t.words for t in result)
        again = cause.said_by and re.search(cause.said_by, words, re.IGNORECASE)
        if not again and not any(cause.name == t.name for t in result):
            result.append(cause)
    strong = [c for c in result if c.rank == result[0].rank]
    return [c for c in result if c.rank == VAGUE] or strong if len(strong) > 1 else strong


def _wrong(variant, answer):
    """Where values are wrong: those of an array each have a cause, a function's share one."""
    if variant.question.kind != "array":
        return [True] * len(answer)
    pairs = zip(answer, variant.right, strict=True)
    return [not close(g, r, variant.question.tolerance) for g, r in pairs]


def _apart(answer, values):
    """The largest relative distance of a candidate from the values given; or infinite."""
    far = -1.0
    for own, value in zip(answer, values, strict=True):
        if math.isfinite(value) and math.isfinite(own):
            far = max(far, ratio(abs(own - value), abs(value)) if own != value else 0.0)
        elif not (value == own or (math.isnan(value) and math.isnan(own))):
            return math.inf
    return far if far >= 0 else math.inf


def _far(values, right):
    """Whether the values are too far from the right ones for a cause to be mere rounding."""
    pairs = [
        (v, r)
        for v, r in zip(values, right, strict=True)
        if math.isfinite(v) and math.isfinite(r) and v * r > 0
    ]
    return not pairs or max(abs(math.log(v / r)) for v, r in pairs) > math.log(1.5)


def _digits(answer):
    """The significant digits of the value that has most."""
    texts = (f"{abs(v):.12e}".partition("e")[0] for v in answer if math.isfinite(v))
    return max((len(w.replace(".", "").rstrip("0")) for w in texts), default=1)


def _half_a_digit(answer, digits):
    """How far, relatively, a value may be from what was rounded to it, to three digits."""
    texts = (f"{abs(v):.15e}".partition("e")[0] for v in answer if math.isfinite(v) and v)
    leading = [float(mantissa) for mantissa in texts]
    return 0.5 * 10.0 ** (1 - max(digits, 3)) / min(leading, default=1)


# --- what is right ------------------------------------------------------------------------------


def is_right(variant, answer):
    """Whether values are right: within tolerance, or as a table prints just this row."""
    q, right = variant.question, variant.right
    if close(answer, right, q.tolerance):
        return q.kind != "number" or q.tolerance < 0.05 or not _another_row(variant, answer)
    return (
        q.kind != "function"
        and q.tolerance > 0
        and all(
            close(g, r, q.tolerance) or _as_printed(g, r)
            for g, r in zip(answer, right, strict=True)
        )
    )


def _as_printed(value, right):
    """Whether it is the right value, rounded to its digits: three at least, as tables print."""
    digits = max(_digits([value]), 3)
    return float(f"{right:.{digits - 1}e}") == float(f"{value:.{digits - 1}e}")


def _another_row(variant, answer):
    """Whether a number to know is nearer to another of its table than to the one asked."""
    others = [c.values[0] for c in variant.rows if not close(c.values, variant.right, 0.05)]
    off = abs(math.log(answer[0] / variant.right[0])) if answer[0] > 0 else 0
    return any(row > 0 and abs(math.log(answer[0] / row)) < off for row in others)
