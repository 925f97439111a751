"""What is said of a wrong answer that no value explains: its order, its rounding, its size."""

import math
from itertools import combinations, permutations

from lightspeed_course.practice.amounts import close, times
from lightspeed_course.practice.premises import result
from lightspeed_course.practice.values import Values, finite

# at most a fifth away; what is called close is never more than five tolerances away, too
NEAR = math.log(1.2)


def reordered(variant, values, right):
    """(name, reason) if values or a function's arguments are in another order; or None."""
    q = variant.question
    if q.kind == "array":
        if any(close(order, right, q.tolerance) for order in permutations(values)):
            return (
                "another order",
                f"Those are the right values, in another order than asked: {', '.join(q.names)}.",
            )
    elif q.kind == "function":
        if len(set(values.where(finite(values)))) < 3:
            return None  # so little that several orders would do
        # The library is called, not the learner's function, which is in a sandbox.
        if order := next((o for o in orders(q) if _same_as(variant, o, values)), None):
            return other_arguments(q, order)
    return None


def orders(q):
    """Other orders of a function's arguments: nearest first, of many arguments only these."""
    names = tuple(q.parameters)
    ranked = sorted(
        permutations(names), key=lambda o: sum(a != b for a, b in zip(o, names, strict=True))
    )[1:]
    return ranked if len(names) <= 4 else [*ranked[: math.comb(len(names), 2)], names[::-1]]


def other_arguments(q, order):
    """(name, reason) of a function that is right with its arguments in another order."""
    return (
        "another order",
        (
            f"It is right with its arguments in the order {', '.join(order)}. Asked is the order"
            f" {', '.join(q.parameters)}."
        ),
    )


def _same_as(variant, order, values):
    """Whether the library gives the same with its arguments taken to be those of `order`."""
    others, tolerance = [], variant.question.tolerance
    for sample in variant.samples:
        there_values = result(
            variant, dict(zip(order, variant.inputs(sample).values(), strict=True))
        )
        for there in there_values:
            here = values[len(others)]
            others.append(there)
            both = math.isnan(here) and math.isnan(there)
            # Most orders are off from the first sample on. A zero is close beside larger values.
            if there and not both and not close(here, there, tolerance):
                return False
    here = [not (math.isnan(a) and math.isnan(b)) for a, b in zip(values, others, strict=True)]
    return close(values.where(here), Values(others).where(here), tolerance)


def unrounded(variant, values, right):
    """(name, reason) if a count is right but for its fraction, or None."""
    q = variant.question
    if (
        q.kind != "number"
        or q.tolerance
        or q.unit not in ("", "token", "request")
        or right[0] % 1
        or not values[0] % 1
    ):
        return None
    if math.floor(values[0]) == right[0]:
        return "not whole", "Only whole ones count here: a part of one is none."
    if math.ceil(values[0]) == right[0]:
        return "not whole", "Only whole ones can be had here: a part of one does not do."
    return None


def where(variant, values, right):
    """A sentence on where a function is wrong, if one condition tells it; or ""."""
    q = variant.question
    good = [close(g, r, q.tolerance) for g, r in zip(values, right, strict=True)]
    inputs = variant.samples
    if all(good) or not any(good):
        return ""
    for name, p in q.parameters.items():
        off, on = (
            {s[name] for s, g in zip(inputs, good, strict=True) if g is ok} for ok in (False, True)
        )
        if len(off) == 1 and not off & on:
            return f"It is wrong just where {name} = {p.text(next(iter(off)))}."
        if isinstance(p.canonical, str):
            continue
        if min(off) > max(on):
            return f"It is wrong just where {name} is above {p.text(max(on))}."
        if max(off) < min(on):
            return f"It is wrong just where {name} is below {p.text(min(on))}."
    numeric = [n for n, p in q.parameters.items() if not isinstance(p.canonical, str)]
    for a, b in combinations(numeric, 2):
        if q.parameters[a].unit != q.parameters[b].unit:
            continue
        for test, words in (
            (lambda x, y: x >= y, "at least"),
            (lambda x, y: x > y, "above"),
            (lambda x, y: x <= y, "at most"),
            (lambda x, y: x < y, "below"),
        ):
            if [not test(s[a], s[b]) for s in inputs] == good:
                return f"It is wrong just where {a} is {words} {b}."
    return ""


NEXT = (
    "Write down each factor with its unit, cancel the units, and estimate the powers of ten in your"
    " head."
)
TERM = "Which small part did you leave out, or count twice?"
COUNT = "It is a count: take small numbers in place of these, and count by hand."
KNOWN = "It is a number to know: look it up in the chapter, and keep its power of ten."


def magnitude(variant, values, right):
    """(kind, reason) for values that nothing explains: how many are right, how far others."""
    q = variant.question
    good = [close(g, r, q.tolerance) for g, r in zip(values, right, strict=True)]
    pairs = zip(values, right, good, strict=True)
    sizes = [_size(g, r, q.tolerance) for g, r, ok in pairs if not ok]
    how, advice = sizes[0]
    if advice == NEXT and q.level == "recall" and not q.parameters:
        advice = KNOWN  # there are no factors to write down
    near = all("close" in how for how, _ in sizes)
    kind = "partial" if any(good) else "close" if near else "magnitude"
    unknown = "" if near else "Not a slip that I recognise. "
    if q.kind == "array":
        names = [name for name, ok in zip(q.names, good, strict=True) if not ok]
        wrong = "; ".join(f"{name} is {how}" for name, (how, _) in zip(names, sizes, strict=True))
        return kind, f"{sum(good)} of {len(good)} values are right. Look again: {wrong}. {advice}"
    if len(good) == 1:
        return kind, f"{unknown}It is {how}. {advice}"
    inputs = f"{len(good)} inputs tried"
    if any(good):
        special = where(variant, values, right) or "What is special about those that differ?"
        agrees = f"It agrees with the library on {sum(good)} of {inputs}."
        return kind, f"{agrees} {special} That one is {how}. {advice}"
    agrees = f"It agrees with the library on none of the {inputs}."
    return kind, f"{unknown}{agrees} The one shown is {how}. {advice}"


def _size(value, right, tolerance):
    """How far off a value is, and what to do next; nothing that is not certain."""
    way = "too high" if value > right else "too low"
    if math.isinf(value) or math.isinf(right) or value == 0 or right == 0:
        return f"{way}, and no factor mends it", "Where does the law reach zero or infinity?"
    if math.isnan(value):
        return "no number", NEXT
    if value * right < 0:
        return f"{way}, and of the other sign", "Where does the minus come from?"
    off = abs(math.log(abs(value)) - math.log(abs(right)))
    if off <= min(NEAR, 5 * math.log1p(tolerance)) or (
        not tolerance and off <= NEAR and abs(value - right) <= 1
    ):
        return f"{way}, but close", "Is every small term in it, and is nothing rounded on the way?"
    if off <= NEAR:
        return f"{way}, by {abs(value / right - 1):.0%}", TERM
    decades = off / math.log(10)
    if not tolerance and not right % 1 and decades < 1:
        return f"{way}", COUNT
    if decades < math.log10(3):
        return f"{way}, but within a factor of three", NEXT
    if decades < 1:
        return f"{way}, by less than a factor of ten", NEXT
    return f"{times(decades)} {way}", NEXT
