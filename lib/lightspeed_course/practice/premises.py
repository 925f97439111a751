"""Slips with a premise or with the result: left out, taken twice, turned over, for another."""

import math
import re
from dataclasses import replace
from itertools import combinations

from lightspeed_course.practice.amounts import close, si_factor
from lightspeed_course.practice.causes import PREMISE, Cause
from lightspeed_course.practice.dimensions import dimensions
from lightspeed_course.practice.values import Values, joined


def results(variant, inputs, change=lambda inputs: {}):
    """What the library gives on inputs that are changed, NaN where it refuses them."""
    return joined(result(variant, sample, change) for sample in inputs)


def result(variant, inputs, change=lambda inputs: {}):
    """What the library gives on one input that is changed, NaN where it refuses it."""
    width = len(variant.right) // len(variant.samples)
    try:
        values = variant.in_unit(variant.question.expected(**inputs | change(inputs)))
    except Exception:  # what the law is not made for
        values = ()
    return values if len(values) == width else (math.nan,) * width


def turned(variant):
    """Yield mistakes of a result: inverted, the other share, one too many, a root too few."""
    q, right = variant.question, variant.right
    which = "That is the ratio turned upside down. Which of the two quantities is asked per unit of"
    yield Cause("upside down", 1 / right, f"{which} the other?")
    yield from _shares(q, right)
    if q.kind != "number":
        return
    if q.unit in ("", "token", "request"):
        yield from _neighbours(q, right)
    if right[0] > 0 and right[0] != 1:
        for base in (right, right * si_factor(q.unit)):
            square, root = "That is the square. Is a root left to take?", "That is the square root."
            yield Cause("a root forgotten", base**2, square, PREMISE)
            yield Cause("a root too many", base**0.5, f"{root} Is it asked?", PREMISE)


def _shares(q, right):
    whole = 100 if q.unit == "%" else 1
    if q.unit != "%" and (q.unit or not all(0 < value < 1 for value in right)):
        return
    rest = "That is the share of the rest: the two add up to the whole. Which of them is asked?"
    yield Cause("the other share", whole - right, rest)
    name, hint = "a share of something else", "A share of what is asked?"
    over_rest = f"That is measured against the rest, not against the whole. {hint}"
    over_whole = f"That is measured against the whole, with the part itself in it. {hint}"
    yield Cause(name, right / (1 - right / whole), over_rest)
    yield Cause(name, right / (1 + right / whole), over_whole)
    both = "That has the whole in it. Is the part asked, or the whole with it?"
    yield Cause("the whole in it", whole + right, both)


def _neighbours(q, right):
    if right[0] % 1:
        return
    # Both sides alike: which of them is right is for the learner to find.
    reason = "Is it rounded to the side that is asked, and is each end counted as often as it is"
    about = r"round|one (more|too|less|fewer)|n minus one|off by one"
    for by in (1, -1):
        yield Cause("off by one", right + by, f"{reason} there?", about=about)


def given(variant):
    """A premise itself, or the right value with a premise added or taken away."""
    q, right = variant.question, variant.right
    for name, p in q.parameters.items() if q.kind == "number" else ():
        if isinstance(p.canonical, str):
            continue
        value, label = float(variant.values[name]), _label(variant, name)
        reason = f"That is {label} itself. What has to be done with it?"
        about = re.escape(p.text(variant.values[name]))
        for same in {value, float(p.si(value))}:
            yield Cause("a premise", Values([same]), reason, about=about)
        if q.unit and dimensions(p.unit) == dimensions(q.unit):
            value = p.si(value) / si_factor(q.unit)
            reason = f"The difference is {label}. Does it belong to what is asked?"
            for values in (right + value, right - value):
                yield Cause(f"{label} counted in, or left out", values, reason)


def changed(variant):
    """What the library gives with a premise left out, twice, on the wrong side, or another."""
    q = variant.question
    if q.kind == "choice":
        return
    inputs = [variant.inputs(sample) for sample in variant.samples]
    for name, p in q.parameters.items():
        if isinstance(p.canonical, str):
            for other in p.choices:
                values = results(variant, inputs, lambda _, n=name, o=other: {n: o})
                reason = f"It comes out so for {p.text(other)}. Which one is asked about?"
                yield Cause(p.text(other), values, reason, whole=True)
        else:
            yield from _factor(variant, name, inputs)
            for what, change, reason, *rest in _instead(variant, name, inputs):
                values = results(
                    variant, inputs, lambda sample, n=name, f=change: {n: f(sample[n])}
                )
                # which any factor of two would do
                if not (what.startswith(("twice ", "half of ")) and _doubled(values, variant)):
                    yield replace(Cause(what, values, reason, *rest), whole=True)
    if q.kind != "function":
        yield from _interchanged(variant, inputs)


def _doubled(values, variant):
    return any(close(values, variant.right * factor, 1e-6) for factor in (2, 0.5))


def _factor(variant, name, inputs):
    """A premise as a factor too many or too few."""
    q, right, label = variant.question, variant.right, _label(variant, name)
    p, width = q.parameters[name], len(right) // len(inputs)
    si = joined((sample[name],) * width for sample in inputs)
    values_shown = joined((sample[name],) * width for sample in variant.samples)
    side = _side(label)
    for values in (right * si**2, right / si**2):
        yield Cause(f"{label} on the wrong side", values, side, whole=True)
    if q.kind == "function" or p.unit or any(si % 1):
        reason = f"The factor is {label}. Is it left out, or counted twice?"
        for values in (right * si, right / si, right * values_shown, right / values_shown):
            yield Cause(f"a factor of {label}", values, reason, PREMISE, whole=True)


def _side(label):
    return (
        f"It comes out so with {label} on the wrong side: is it multiplied where it should be"
        " divided, or the other way round?"
    )


def _instead(variant, name, inputs):
    """The (name, change, reason, rank and pattern) of what may be put in a premise's place."""
    p, label = variant.question.parameters[name], _label(variant, name)
    si = Values(sample[name] for sample in inputs)
    has = set(dimensions(p.unit))
    share = p.unit == "%" or (not p.unit and all(0 < value < 1 for value in si))
    so = "It comes out so"
    yield f"{label} on the wrong side", lambda v: 1 / v, _side(label)
    if not p.unit and not any(si % 1):
        single = f"{so} with one in place of {label}. Is it left out?"
        yield f"{label} left out", lambda v: 1, single, PREMISE
        for by, more in ((1, "more"), (-1, "less")):
            one = f"{so} with one {more} than there is of {label}. Count again, ends and beginnings"
            yield "off by one", lambda v, by=by: v + by, f"{one} too.", PREMISE, r"\bone\b"
    else:
        for value in (0, 1, 1e30) if share or not p.unit else (0, 1e30):
            hint = f"{so} without {label}. Where does it enter?"
            yield f"{label} left out", lambda v, x=value: x, hint
        often = "Is it counted as often as it happens?"
        if "[operation]" in has:
            often = "Is a multiply-add counted as one operation, or as two?"
        for factor, times in ((2, "twice"), (0.5, "half of")):
            reason = f"{so} with {times} {label}. {often}"
            yield f"{times} {label}", lambda v, f=factor: v * f, reason, PREMISE
    if share:
        other = f"{so} with the rest in place of {label}. Which of the two shares is it?"
        yield "the other share", lambda v: 1 - v, other
    bits = f"{so} with {label} in bits for bytes, or in bytes for bits. Which one does it count?"
    for factor in (8, 1 / 8) if "[information]" in has else ():
        yield "bits and bytes", lambda v, f=factor: v * f, bits
    prefix = f"{so} with another prefix (n, µ, m, k, M, G, T) before the unit of {label}."
    for factor in (1e3, 1e-3) if has & {"[time]", "[information]"} else ():
        yield "prefix", lambda v, f=factor: v * f, prefix, PREMISE


def _interchanged(variant, inputs):
    parameters, first = variant.question.parameters, inputs[0]
    numeric = [n for n, p in parameters.items() if not isinstance(p.canonical, str)]
    for a, b in combinations(numeric, 2):
        alike = dimensions(parameters[a].unit) == dimensions(parameters[b].unit)
        if alike and first[b] and 0.01 <= abs(first[a] / first[b]) <= 100:
            values = results(variant, inputs, lambda sample, a=a, b=b: {a: sample[b], b: sample[a]})
            both = f"{_label(variant, a)} and {_label(variant, b)}"
            yield Cause(
                f"{a} for {b}", values, f"It comes out so with {both} interchanged.", whole=True
            )


def _label(variant, name):
    if variant.question.kind == "function":
        return f"`{name}`"
    text = variant.question.parameters[name].text(variant.values[name])
    return f"{name.replace('_', ' ')} ({text})"
