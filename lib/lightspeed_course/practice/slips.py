"""What may lie behind a wrong answer: candidates, each with the values that it leads to, and one
ranking of them all.

A candidate is named only if it explains every value that is wrong. One that does so alone is
likely; several that do so equally well are all named; where none does, nothing is guessed. The
misconceptions of a bank are candidates like the rest.
"""

from __future__ import annotations

import math
import re
import sys
from dataclasses import dataclass
from functools import cache
from itertools import combinations, permutations

import numpy as np

from lightspeed_course.practice.amounts import close, si_factor

# a learner rounds on the way; the nearest factors, 1.0995 and 1.0737, are further apart
WINDOW = 5e-3
# what is called close: at most a fifth away, and never more than five tolerances
NEAR = math.log(1.2)
MOST = 3  # causes told of one answer

PREFIXES = (("kB", "KiB"), ("MB", "MiB"), ("GB", "GiB"), ("TB", "TiB"))

BANK, PARTICULAR, PREMISE, VAGUE = range(4)


@dataclass(frozen=True)
class Cause:
    """A mistake, the values that it leads to, and what to think about. `about`: who speaks of
    this speaks of the same.
    """

    name: str
    values: np.ndarray
    reason: str
    rank: int = PARTICULAR
    about: str = ""
    width: float = 0.0  # how far, relatively, a rounded or remembered answer may be from the values
    whole: bool = False  # of an array: it has all its values from this cause
    row: bool = False  # it is a number of the catalog, as the right answer is

    @property
    def words(self):
        return f"{self.name}. {self.reason}"


_CLOCKS = {
    60: "seconds and minutes, or minutes and hours",
    3600: "seconds and hours",
    24: "hours and days",
    1440: "minutes and days",
    86400: "seconds and days",
}
_NUMBERS = {"three": 3, "four": 4, "five": 5, "six": 6, "eight": 8, "sixteen": 16}
_LINK = re.compile(
    r"\b(links?|network|NVLink|PCIe|InfiniBand|ports?|adapters?|one direction)\b", re.IGNORECASE
)
_ABOUT = {
    "prefix": r"own unit",
    "percent": r"per ?cent|fraction",
    "bits and bytes": r"\bbits?\b",
    "a sparse peak": r"spars",
    "both directions": r"direction|both ways",
    "the width of an element": r"\bbytes?\b|bf16|fp16|fp32|int8",
    "one pass or two": r"\bpass|gather|\bscatter",
    "there and back": r"there and back|one way|round trip|come back|way there",
    "a multiply-add": r"multiply-add|multiplies|operations",
    "binary prefix": r"[KMGT]iB",
    "upside down": r"upside|turn(ed)? it|over it",
    "one's own share": r"\bone share|itself|at home|n minus one|\bits own\b",
}


# --- the candidates -----------------------------------------------------------------------------


def causes(variant):
    """The mistakes that lead to another value than the right one, as far as it alone tells them:
    a bank's, factors, and the like.
    """
    with np.errstate(all="ignore"):
        return _other(
            variant, [*_bank(variant), *_factors(variant), *_turned(variant), *_given(variant)]
        )


def further(variant):
    """Those for which the library is asked again: with another row of the catalog, or a premise
    changed.
    """
    with np.errstate(all="ignore"):
        found = _other(variant, [*_rows(variant), *_premises(variant)])
        strong = np.array([c.values for c in (*variant.causes, *found) if c.rank < PREMISE])

        def said(cause):
            """Whether a stronger reason leads to the same values."""
            return (
                cause.rank == PREMISE
                and len(strong)
                and np.isclose(strong, cause.values, 1e-6, 0, equal_nan=True).all(1).any()
            )

        return [cause for cause in found if not said(cause)]


def _other(variant, found):
    q, right = variant.question, variant.right
    return [
        c
        for c in found
        if (np.isfinite(c.values) & ((c.values != 0) | (c.rank == BANK))).any()
        and not close(c.values, right, min(q.tolerance, 0.05) if c.row else q.tolerance)
    ]


def _bank(variant):
    for m in variant.question.misconceptions:
        width = 0.0 if variant.question.kind == "function" else min(variant.question.tolerance, 0.1)
        yield Cause(m.name, variant.wrong(m), variant.fill(m.hint), BANK, width=width)


def _factors(variant):
    right, tolerance = variant.right, variant.question.tolerance
    for name, factor, reason in factors(variant):
        rank = VAGUE if name == "factor of two" else PARTICULAR
        width = tolerance if factor >= 60 else 0.0
        # An answer in the library's own unit is off in one direction only.
        for values in (right * factor,) if name == "unit" else (right * factor, right / factor):
            if not tolerance and (values % 1).any():
                # of what must be whole
                yield Cause(name, np.floor(values), reason, rank, _ABOUT.get(name, ""), width)
            yield Cause(name, values, reason, rank, _ABOUT.get(name, ""), width)


def factors(variant):
    """The (name, factor, reason) of each slip that leaves a factor, by the dimensions in the
    question.
    """
    q, inside = variant.question, _dimensions(variant)
    if q.unit != "%" and not math.isclose(si_factor(q.unit), 1):
        yield (
            "unit",
            si_factor(q.unit),
            (
                f"A plain number is read in {q.unit}; yours looks like one in the library's own"
                " unit. Convert it, or give a quantity."
            ),
        )
    counts = _counts(variant)
    for name, value in counts.items():
        yield (
            "one or all",
            value,
            f"The factor is that of {name}. Is the answer asked for one, or for all together?",
        )
        if value > 2:
            yield (
                "one or all",
                value - 1,
                (
                    f"The factor is that of {name} less one. Is the answer asked for one, or for"
                    " all the others together?"
                ),
            )
            if value <= 100:
                yield (
                    "one's own share",
                    value / (value - 1),
                    (
                        f"The factor is that between {name} and one less. Does the share count that"
                        " each keeps to itself, or the step from the last to the first?"
                    ),
                )
    for a, b in combinations(counts, 2):
        yield (
            "one or all",
            counts[a] * counts[b],
            f"The factor is that of {a} and {b} together. Is the answer asked for one, or for all?",
        )
    if q.unit == "%" or (
        not q.unit
        and ((np.abs(variant.right) <= 1).all() or "%" in {p.unit for p in q.parameters.values()})
    ):
        yield (
            "percent",
            100,
            "The factor is a hundred. Is a fraction asked, or a percentage?"
            + " A plain number is read in %." * (q.unit == "%"),
        )
    if si_factor(q.unit) == 0.01 and q.unit.startswith("c"):
        yield "prefix", 100, "The factor is a hundred: a prefix was lost or misread on the way."
    for word, value in _NUMBERS.items():
        if re.search(rf"\b{word}\b", q.prompt):
            yield (
                "one or all",
                value,
                (
                    f"The factor is {word}, a number of the question. Is the answer asked for one,"
                    " or for all together?"
                ),
            )
    if re.search("busbw|algbw|all-reduce", q.prompt):
        for n in sorted({*counts.values(), math.prod(counts.values())} - {1, 2}):
            ring = 2 * (n - 1) / n
            yield (
                "the ring's factor",
                ring,
                (
                    f"The factor is that of an all-reduce over {n} ranks: the bytes that each of"
                    " them sends, over the buffer; or busbw over algbw. Does it belong here?"
                ),
            )
            yield (
                "the ring's factor",
                ring**2,
                (
                    f"The factor of an all-reduce over {n} ranks, busbw over algbw, is on the wrong"
                    " side: divide where you multiply, or the other way round."
                ),
            )
    for factor in _clocks(q):
        yield (
            "time unit",
            factor,
            f"The factor is {factor}, as between {_CLOCKS[factor]}. In which unit is each time?",
        )
    if "[information]" in inside:
        yield (
            "bits and bytes",
            8,
            (
                "A factor of eight is the mark of bits taken for bytes. Which one does each rate"
                " and each size count?"
            ),
        )
    for name, reason in _twice(variant, inside):
        yield name, 2, reason
    yield (
        "factor of two",
        2,
        "A factor of two is left, and it does not show where. What did you count once, or twice?",
    )
    # Where bytes are counted, or timed; a number of requests, say, has other reasons to be off by
    # so little.
    if "[information]" in inside and (
        "[information]" in _of(q.unit) or set(_of(q.unit)) == {"[time]"}
    ):
        for power, (small, large) in enumerate(PREFIXES, 1):
            yield (
                "binary prefix",
                1.024**power,
                (
                    f"The factor is that between {small} and {large}: powers of ten and powers of"
                    " two are mixed."
                ),
            )
    text = f"{q.prompt} {variant.solution}"
    if re.search(r"\\log|\\ln\b|\blog|percentile|decibel|powers of two", text):
        for base, factor in (
            ("two and e", 1 / math.log(2)),
            ("ten and e", math.log(10)),
            ("ten and two", math.log2(10)),
        ):
            yield (
                "another logarithm",
                factor,
                (
                    f"The factor is that between logarithms to base {base}. Which base does the law"
                    " take?"
                ),
            )
    if "decibel" in text:
        yield (
            "decibels",
            2,
            (
                "A decibel is ten times the logarithm of a ratio of powers, or twenty times that of"
                " amplitudes. Which ratio is yours?"
            ),
        )
    if inside:
        for power in (1, 2, 3, 4, 5):
            yield (
                "prefix",
                1000.0**power,
                (
                    "The factor is a power of 1000 (a thousand, a million, ...): a prefix (n, µ, m,"
                    " k, M, G, T) was lost or misread on the way."
                ),
            )


def _counts(variant):
    q = variant.question
    if q.kind == "function":
        return {}
    return {
        name: value
        for name, value in variant.values.items()
        if type(value) is int and value > 1 and not q.parameters[name].unit
    }


def _turned(variant):
    """What is done to a result: turned over, the other share, one too many, a root too few."""
    q, right = variant.question, variant.right
    yield Cause(
        "upside down",
        1 / right,
        "That is the ratio turned upside down. Which of the two quantities is asked per unit of the"
        " other?",
        about=_ABOUT["upside down"],
    )
    whole = 100 if q.unit == "%" else 1
    if q.unit == "%" or (not q.unit and (right > 0).all() and (right < 1).all()):
        yield Cause(
            "the other share",
            whole - right,
            "That is the share of the rest: the two add up to the whole. Which of them is asked?",
            about=r"\brest\b|what is (kept|left)",
        )
        yield Cause(
            "a share of something else",
            right / (1 - right / whole),
            "That is measured against the rest, not against the whole. A share of what is asked?",
            about=r"\bof the (rest|whole)|over the",
        )
        yield Cause(
            "a share of something else",
            right / (1 + right / whole),
            "That is measured against the whole, with the part itself in it. A share of what is"
            " asked?",
            about=r"\bof the (rest|whole)|over the",
        )
        yield Cause(
            "the whole in it",
            whole + right,
            "That has the whole in it. Is the part asked, or the whole with it?",
        )
    if not q.unit or q.unit in ("token", "request"):
        if (right % 1 == 0).all() and q.kind == "number":
            for by, more in ((1, "more"), (-1, "fewer")):
                reason = (
                    f"One {more} than the law gives. Is it rounded to the side that is asked, and"
                    " is an end counted once?"
                )
                yield Cause(
                    "off by one",
                    right + by,
                    reason,
                    about=r"round|one (more|too|less|fewer)|n minus one|off by one",
                )
        elif q.kind == "number" and q.tolerance:
            for by in (1, -1):
                yield Cause(
                    "off by one",
                    right + by,
                    "The difference is one. Does the part that one stands for belong to what is"
                    " asked?",
                    about=r"wait|itself",
                )
    if q.kind == "number" and abs(right[0]) not in (0, 1) and right[0] > 0:
        si = right * si_factor(q.unit)
        for size in {1.0, si_factor(q.unit)}:
            base = right if size == 1 else si
            yield Cause(
                "a root forgotten",
                base**2,
                "That is the square. Is a root left to take?",
                PREMISE,
                r"\broot",
            )
            yield Cause(
                "a root too many",
                base**0.5,
                "That is the square root. Is it asked?",
                PREMISE,
                r"\broot",
            )


def _premises(variant):
    """What comes out if a premise is left out, taken twice, on the wrong side, or for another."""
    q = variant.question
    if q.kind == "choice":
        return
    inputs = [variant.inputs(sample) for sample in variant.samples]
    width = len(variant.right) // len(inputs)

    def changed(change):
        return _results(variant, inputs, change)

    for name, p in q.parameters.items():
        if isinstance(p.canonical, str):
            for other in p.choices:
                reason = f"It comes out so for {p.text(other)}. Which one is asked about?"
                yield Cause(
                    f"{p.text(other)}",
                    changed(lambda _, n=name, o=other: {n: o}),
                    reason,
                    whole=True,
                )
            continue
        label = _label(variant, name)
        shown = np.repeat([float(s[name]) for s in variant.samples], width)
        si = np.repeat([float(i[name]) for i in inputs], width)
        share = p.unit == "%" or (not p.unit and ((si > 0) & (si < 1)).all())
        count = not p.unit and (si % 1 == 0).all()

        def instead(change, n=name):
            return changed(lambda given: {n: change(given[n])})

        side = (
            f"It comes out so with {label} on the wrong side: is it multiplied where it should be"
            " divided, or the other way round?"
        )
        for values in (variant.right * si**2, variant.right / si**2, instead(lambda v: 1 / v)):
            yield Cause(f"{label} on the wrong side", values, side, whole=True)
        if not count or q.kind == "function":
            for values in (
                variant.right * si,
                variant.right / si,
                variant.right * shown,
                variant.right / shown,
            ):
                yield Cause(
                    f"a factor of {label}",
                    values,
                    f"The factor is {label}. Is it left out, or counted twice?",
                    PREMISE,
                    whole=True,
                )
        if count:
            single = f"It comes out so with one in place of {label}. Is it left out?"
            yield Cause(f"{label} left out", instead(lambda v: 1), single, PREMISE, whole=True)
            for by, more in ((1, "more"), (-1, "less")):
                one = (
                    f"It comes out so with one {more} than there is of {label}. Count again, ends"
                    " and beginnings too."
                )
                yield Cause(
                    "off by one",
                    instead(lambda v, by=by: v + by),
                    one,
                    PREMISE,
                    r"\bone\b",
                    whole=True,
                )
        else:
            for value in (0, 1, 1e30) if share or not p.unit else (0, 1e30):
                gone = f"It comes out so without {label}. Where does it enter?"
                yield Cause(f"{label} left out", instead(lambda v, x=value: x), gone, whole=True)
            for factor, times in ((2, "twice"), (0.5, "half of")):
                twice = f"It comes out so with {times} {label}. " + (
                    "Is a multiply-add counted as one operation, or as two?"
                    if "[operation]" in _of(p.unit)
                    else "Is it counted as often as it happens?"
                )
                values = instead(lambda v, f=factor: v * f)
                # which any two would do
                if not close(values, variant.right * 2, 1e-6) and not close(
                    values, variant.right / 2, 1e-6
                ):
                    yield Cause(f"{times} {label}", values, twice, PREMISE, whole=True)
        if share:
            other = (
                f"It comes out so with the rest in place of {label}. Which of the two shares is it?"
            )
            yield Cause("the other share", instead(lambda v: 1 - v), other, whole=True)
        if "[information]" in _of(p.unit):
            bits = (
                f"It comes out so with {label} in bits for bytes, or in bytes for bits. Which one"
                " does it count?"
            )
            for factor in (8, 1 / 8):
                yield Cause(
                    "bits and bytes",
                    instead(lambda v, f=factor: v * f),
                    bits,
                    about=_ABOUT["bits and bytes"],
                    whole=True,
                )
        if {"[time]", "[information]"} & set(_of(p.unit)):
            for factor in (1e3, 1e-3):
                prefix = (
                    "It comes out so with another prefix (n, µ, m, k, M, G, T) before the unit of"
                    f" {label}."
                )
                yield Cause(
                    "prefix", instead(lambda v, f=factor: v * f), prefix, PREMISE, whole=True
                )
    numeric = [n for n, p in q.parameters.items() if not isinstance(p.canonical, str)]
    for a, b in combinations(numeric, 2):
        alike = (
            _of(q.parameters[a].unit) == _of(q.parameters[b].unit)
            and inputs[0][b]
            and 0.01 <= abs(inputs[0][a] / inputs[0][b]) <= 100
        )
        if alike and q.kind != "function":
            reason = (
                f"It comes out so with {_label(variant, a)} and {_label(variant, b)} interchanged."
            )
            yield Cause(
                f"{a} for {b}", changed(lambda p, a=a, b=b: {a: p[b], b: p[a]}), reason, whole=True
            )


def _given(variant):
    """A premise itself, or the right value with a premise added or taken away."""
    q, right = variant.question, variant.right
    if q.kind != "number":
        return
    for name, p in q.parameters.items():
        if isinstance(p.canonical, str):
            continue
        value, label = float(variant.values[name]), _label(variant, name)
        reason = f"That is {label} itself. What has to be done with it?"
        for same in {value, p.si(value)}:
            yield Cause(
                "a premise",
                np.array([float(same)]),
                reason,
                about=re.escape(p.text(variant.values[name])),
            )
        if q.unit and _of(p.unit) == _of(q.unit):
            value = p.si(value) / si_factor(q.unit)
            for values in (right + value, right - value):
                yield Cause(
                    f"{label} counted in, or left out",
                    values,
                    f"The difference is {label}. Does it belong to what is asked?",
                )


def _label(variant, name):
    words = name.replace("_", " ")
    return (
        f"`{name}`"
        if variant.question.kind == "function"
        else f"{words} ({variant.question.parameters[name].text(variant.values[name])})"
    )


def _results(variant, inputs, change=lambda given: {}):
    """What the library gives on inputs that are changed, NaN where it refuses them."""
    width = len(variant.right) // len(inputs)
    results = []
    for given in inputs:
        try:
            values = variant.in_unit(variant.question.expected(**given | change(given)))
        except Exception:  # what the law is not made for
            values = np.full(width, np.nan)
        results.append(values if len(values) == width else np.full(width, np.nan))
    return np.concatenate(results)


def _rows(variant):
    """What comes out with another row of the catalog, for each number of it that the answer
    rests on.
    """
    q = variant.question
    if q.kind not in ("number", "array") or "lightspeed.catalog" not in sys.modules:
        return  # what was never loaded was not read
    from lightspeed.catalog import Number, find, stand_in

    read = {}

    def under(rule):
        token = stand_in.set(rule)
        try:
            return _results(variant, [variant.inputs()])
        finally:
            stand_in.reset(token)

    under(lambda entry, name, number: read.setdefault((entry.key, name), (entry, number))[1])
    if itself := isinstance(asked := q.expected(**variant.inputs()), Number):
        key, _, name = asked.key.partition(".")
        read = {(key, name): (find(key), asked)}
        under = lambda rule: variant.in_unit(rule(find(key), name, asked))  # noqa: E731
    width = min(q.tolerance, 0.03)
    for (key, name), (_, number) in read.items():
        for other, about in _others(*read[key, name], name):
            values = under(
                lambda e, n, own, key=key, name=name, other=other: (
                    other if (e.key, n) == (key, name) else own
                )
            )
            reason = f"It comes out so with {about} in place of the {_what(name)} of the question."
            yield Cause(
                about, values, reason, PARTICULAR, _about_row(other), width, whole=True, row=itself
            )
        if number.unit == "byte" and (
            power := {"k": 1, "K": 1, "M": 2, "G": 3, "T": 4}.get(
                number.printed.partition(" ")[2][:1]
            )
        ):
            small, large = PREFIXES[power - 1]
            for factor in (1.024**power, 1.024**-power):
                values = under(
                    lambda e, n, own, key=key, name=name, f=factor: (
                        own * f if (e.key, n) == (key, name) else own
                    )
                )
                yield Cause(
                    "binary prefix",
                    values,
                    f"It comes out so with {large} for {small} in the {_what(name)}.",
                    about=_ABOUT["binary prefix"],
                )


def _others(entry, number, name):
    """The neighbours of a number: the same of another product of the kind, or another of the
    same product and unit.
    """
    from lightspeed.catalog import KINDS, entries

    kind = next(entries(k) for k in KINDS if entry.key in entries(k))
    if kind is entries("models"):
        return  # a model is a premise, not a row of a table that one reads wrongly
    alike = [
        e
        for e in kind.values()
        if name in e
        and e.key != entry.key
        and all(e.about.get(a) == entry.about.get(a) for a in ("kind", "vendor"))
    ]
    for other in alike:
        yield other.numbers[name], f"the {_what(name)} of the {other.name}"
    for same, other in entry.numbers.items():
        if number.unit and same != name and other.unit == number.unit and other != number:
            yield other, f"{_what(same)} of the {entry.name}"


def _what(name):
    return name.replace("_bidirectional", ", both directions").replace("_", " ")


def _about_row(number):
    if number.density == "sparse":
        return _ABOUT["a sparse peak"]
    return _ABOUT["both directions"] if number.direction == "both ways" else ""


# --- the dimensions that a question has ---------------------------------------------------------


@cache
def _of(unit):
    """The dimensions of a unit, each with its power."""
    from lightspeed.units import Q

    return dict(Q(1, unit).dimensionality) if unit else {}


def _clocks(q):
    """The factors between units of time that may be mistaken here: days only where a clock is in
    use.
    """
    clocked = bool(re.search(r"\bdays?\b|\bhours?\b", q.prompt)) or any(
        si_factor(u) in _CLOCKS and set(_of(u)) == {"[time]"}
        for u in (q.unit, *(p.unit for p in q.parameters.values()))
    )
    timed = set(_of(q.unit)) - {"[request]"} == {"[time]"} and si_factor(q.unit) >= 1
    return tuple(_CLOCKS) if clocked else (60, 3600) if timed else ()


def _is_key(variant, kind):
    """Whether a premise is an entry of this kind of the catalog."""
    keys = [value for value in variant.values.values() if isinstance(value, str)]
    if not keys:
        return False
    from lightspeed.catalog import entries

    return any(value in entries(kind) for value in keys)


def _dimensions(variant):
    """The dimensions of the answer and of the premises; a key of the catalog stands for bytes,
    and a chip for FLOPs too.
    """
    q = variant.question
    inside = {
        name for unit in (q.unit, *(p.unit for p in q.parameters.values())) for name in _of(unit)
    }
    if any(_is_key(variant, kind) for kind in ("accelerators", "links", "memory", "models")):
        inside |= {"[information]"}
    if _by_peak(variant):
        inside |= {"[operation]"}
    # An energy has a length in it, but no way to go.
    return inside - {"[length]"} if "[mass]" in inside else inside


def _by_peak(variant):
    """Whether the answer may be built on a peak: one in FLOP/s, or of a chip where time or a
    ratio is asked.
    """
    q, asked = variant.question, set(_of(variant.question.unit))
    if "[information]" in asked and "[operation]" not in asked:
        return False  # bytes, and bytes a second
    if any(
        {"[operation]", "[time]"} <= set(_of(u))
        for u in (q.unit, *(p.unit for p in q.parameters.values()))
    ):
        return True
    ratio = q.unit == "%" or (
        asked and asked <= {"[operation]", "[information]", "[time]", "[token]"}
    )
    return bool(ratio) and _is_key(variant, "accelerators")


def _twice(variant, inside):
    """The (name, reason) of the usual factors of two, each only where the answer has what it is
    about.
    """
    q, asked = variant.question, set(_of(variant.question.unit))
    if "[operation]" in inside and ("[operation]" in asked or "[information]" not in asked):
        yield "a multiply-add", "Counted as one operation, or as two? Peaks count two."
    if _by_peak(variant):
        yield (
            "a sparse peak",
            "A data sheet's sparse peak is twice the dense one. Which one is yours?",
        )
    rate = (
        {"[information]", "[time]"} <= asked
        or q.unit == "%"
        or (asked and asked <= {"[time]", "[token]"})
    )
    if rate and "[information]" in inside and (_LINK.search(q.prompt) or _is_key(variant, "links")):
        yield (
            "both directions",
            "A link's two directions were added, or one of them halved. How much goes one way?",
        )
    text = f"{q.prompt} {variant.solution}"
    if q.kind != "function" and re.search(r"\b(bf16|fp16|fp32|fp8|int8|(two|four) bytes)\b", text):
        yield (
            "the width of an element",
            (
                "Elements of half or of twice the width lead there. How many bytes does one take"
                " here, in each operand?"
            ),
        )
    if re.search(r"all-reduces?\b", text) and ("[information]" in asked or "[time]" in asked):
        yield (
            "one pass or two",
            (
                "A ring all-reduce has two passes, a reduce-scatter and an all-gather. How many do"
                " you count?"
            ),
        )
    if "[length]" in inside:
        yield (
            "there and back",
            "The way there is half of the way there and back. Which one is asked?",
        )


# --- the ranking --------------------------------------------------------------------------------


def explain(variant, given):
    """The causes to name for these values: those that explain them best, the particular before
    the vague; none if none does.
    """
    found, exact = _fitting(variant, given, variant.causes)
    if not (exact and any(c.rank == BANK for c in found)):
        found, _ = _fitting(variant, given, variant.causes + variant.further)
    return _distinct(found)


def _fitting(variant, given, candidates):
    """(the candidates that explain these values, the strongest first, and whether they do so to
    the digit).
    """
    wrong = _wrong(variant, given)
    right, tolerance, function = (
        variant.right[wrong],
        variant.question.tolerance,
        variant.question.kind == "function",
    )
    window = min(WINDOW, max(tolerance, 1e-6)) if function else WINDOW
    digits = _digits(given[wrong])
    to_the_digit = max(_half_a_digit(given[wrong], digits), 1e-9)
    exact, rounded, wide = [], [], []
    for off, cause in zip(_apart(given[wrong], candidates, wrong), candidates, strict=True):
        if off > max(window, cause.width):
            continue
        far = cause.rank == BANK or _far(cause.values[wrong], right)
        whole = not cause.whole or close(cause.values[~wrong], variant.right[~wrong], tolerance)
        if off <= min(to_the_digit, window):
            if far or off < 1e-6 or digits >= 3:
                exact.append((off, cause))
        elif far and whole:
            (rounded if off <= window else wide).append((off, cause))
    # A misconception that is off by a rounding is as good as a coincidence that is not.
    found = (
        exact + [f for f in rounded if f[1].rank == BANK]
        if not any(c.rank == BANK for _, c in exact)
        else exact
    )
    found = found or rounded or wide
    if not exact:  # rounded on the way: the nearest, and what leads to the same
        nearest = min((off for off, _ in found), default=0)
        found = [(off, c) for off, c in found if off <= nearest + 1e-6]
    return [c for _, c in sorted(found, key=lambda f: f[1].rank)], bool(exact)


def _distinct(found):
    """Without those that say again what one before them says, and without the vague if there is
    any other.
    """
    told = []
    for cause in found:
        said = " ".join(t.words for t in told)
        if not any(cause.reason == t.reason for t in told) and not (
            cause.about and re.search(cause.about, said, re.IGNORECASE)
        ):
            told.append(cause)
    particular = [c for c in told if c.rank < VAGUE] or told
    strong = [c for c in particular if c.rank < PREMISE] or particular
    return strong[:MOST]


def _wrong(variant, given):
    """Where the values are wrong: a value of an array has a cause of its own, the results of a
    function have one together.
    """
    if variant.question.kind != "array":
        return np.ones(len(given), bool)
    return np.array(
        [
            not close(g, r, variant.question.tolerance)
            for g, r in zip(given, variant.right, strict=True)
        ]
    )


def _apart(given, causes, wrong):
    """For each cause the largest relative distance from the given values; infinite if it has
    other gaps.
    """
    if not causes:
        return []
    values = np.array([cause.values for cause in causes])[:, wrong]
    here = np.isfinite(values) & np.isfinite(given)
    alike = here | (values == given) | (np.isnan(values) & np.isnan(given))
    with np.errstate(all="ignore"):
        apart = np.where(here & (values != given), np.abs(given - values) / np.abs(values), 0.0)
    return np.where(alike.all(1) & here.any(1), apart.max(1), np.inf)


def _far(values, right):
    """Whether the values are so far from the right ones that a cause is not mistaken for
    rounding.
    """
    here = np.isfinite(values) & np.isfinite(right) & (values * right > 0)
    return not here.any() or float(np.abs(np.log(values[here] / right[here])).max()) > math.log(1.5)


def _digits(given):
    """The significant digits of the value that has most."""
    return max(
        (
            len(f"{abs(v):.12e}".partition("e")[0].replace(".", "").rstrip("0"))
            for v in given
            if np.isfinite(v)
        ),
        default=1,
    )


def _half_a_digit(given, digits):
    """How far, relatively, a value may be from what was rounded to it; three digits are what
    people write.
    """
    leading = [abs(v) / 10 ** math.floor(math.log10(abs(v))) for v in given if np.isfinite(v) and v]
    return 0.5 * 10.0 ** (1 - max(digits, 3)) / min(leading, default=1)


# --- what is right ------------------------------------------------------------------------------


def is_right(variant, given):
    """Whether the values are the right ones: within the tolerance, or as a table prints them,
    and no other row of the table.
    """
    q, right = variant.question, variant.right
    if not close(given, right, q.tolerance):
        return (
            q.kind != "function"
            and q.tolerance > 0
            and all(
                close(g, r, q.tolerance) or _as_printed(g, r)
                for g, r in zip(given, right, strict=True)
            )
        )
    return q.kind != "number" or q.tolerance < 0.05 or not _another_row(variant, given)


def _as_printed(given, right):
    """Whether it is the right value, rounded to as many digits as it has: three at least, since
    tables print three.
    """
    digits = max(_digits([given]), 3)
    return float(f"{right:.{digits - 1}e}") == float(f"{given:.{digits - 1}e}")


def _another_row(variant, given):
    """Whether a number to know is nearer to another one of its table than to the one that is
    asked.
    """
    rows = [
        c.values[0] for c in _rows(variant) if c.row and not close(c.values, variant.right, 0.05)
    ]
    off = abs(math.log(given[0] / variant.right[0])) if given[0] > 0 else 0
    return any(row > 0 and abs(math.log(given[0] / row)) < off for row in rows)


# --- what depends on the answer itself ----------------------------------------------------------


def reordered(variant, given, right):
    """(name, reason) if the values are right in another order, or the function with its
    arguments in another order; or None.
    """
    q = variant.question
    if q.kind == "array":
        if any(close(order, right, q.tolerance) for order in permutations(given)):
            return (
                "another order",
                f"Those are the right values, in another order than asked: {', '.join(q.names)}.",
            )
    elif q.kind == "function":
        if len(set(given[np.isfinite(given)])) < 3:
            return None  # so little that several orders would do
        # The library is called, not the learner's function: a permutation costs no call in a
        # sandbox.
        if order := next((o for o in orders(q) if _same_as(variant, o, given)), None):
            return other_arguments(q, order)
    return None


def orders(q):
    """The orders of a function's arguments other than the one asked: the nearest first, and of
    many arguments only these.
    """
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


def _same_as(variant, order, given):
    """Whether the library gives the same wherever its arguments, by position, are taken to be
    those of `order`.
    """
    inputs = [
        dict(zip(order, variant.inputs(sample).values(), strict=True)) for sample in variant.samples
    ]
    others = _results(variant, inputs)
    here = ~(np.isnan(given) & np.isnan(others))
    return close(given[here], others[here], variant.question.tolerance)


def unrounded(variant, given, right):
    """(name, reason) if a count is right but for its fraction, or None."""
    q = variant.question
    if (
        q.kind != "number"
        or q.tolerance
        or q.unit not in ("", "token", "request")
        or right[0] % 1
        or not given[0] % 1
    ):
        return None
    if math.floor(given[0]) == right[0]:
        return "not whole", "Only whole ones count here: a part of one is none."
    if math.ceil(given[0]) == right[0]:
        return "not whole", "Only whole ones can be had here: a part of one does not do."
    return None


def where(variant, given, right):
    """A sentence on the inputs at which a function is wrong, if one condition tells them from
    those at which it is right; or "".
    """
    q = variant.question
    good = [close(g, r, q.tolerance) for g, r in zip(given, right, strict=True)]
    inputs = variant.samples
    if all(good) or not any(good):
        return ""
    for name, p in q.parameters.items():
        off, on = (
            {s[name] for s, g in zip(inputs, good, strict=True) if g is hit}
            for hit in (False, True)
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


def magnitude(variant, given, right):
    """(kind, reason) for values that nothing explains: how many are right, and how far off the
    others.
    """
    q = variant.question
    good = [close(g, r, q.tolerance) for g, r in zip(given, right, strict=True)]
    sizes = [
        _size(g, r, q.tolerance) for g, r, ok in zip(given, right, good, strict=True) if not ok
    ]
    how, advice = sizes[0]
    near = all("close" in how for how, _ in sizes)
    kind = "partial" if any(good) else "close" if near else "magnitude"
    unknown = "" if near else "Not a slip that I recognise. "
    if q.kind == "array":
        names = [name for name, ok in zip(q.names, good, strict=True) if not ok]
        wrong = "; ".join(f"{name} is {how}" for name, (how, _) in zip(names, sizes, strict=True))
        return kind, f"{sum(good)} of {len(good)} values are right. Look again: {wrong}. {advice}"
    if len(good) == 1:
        return kind, f"{unknown}It is {how}. {advice}"
    tried = f"{len(good)} inputs tried"
    if any(good):
        special = where(variant, given, right) or "What is special about those that differ?"
        return (
            kind,
            (
                f"It agrees with the library on {sum(good)} of {tried}. {special} That one is"
                f" {how}. {advice}"
            ),
        )
    return (
        kind,
        (
            f"{unknown}It agrees with the library on none of the {tried}. The one shown is {how}."
            f" {advice}"
        ),
    )


def _size(given, right, tolerance):
    """How far off a value is, and what to do next; nothing that is not certain."""
    way = "too high" if given > right else "too low"
    if np.isinf(given) or np.isinf(right) or given == 0 or right == 0:
        return f"{way}, and no factor mends it", "Where does the law reach zero or infinity?"
    if np.isnan(given):
        return "no number", NEXT
    if given * right < 0:
        return f"{way}, and of the other sign", "Where does the minus come from?"
    off = abs(math.log(abs(given)) - math.log(abs(right)))
    if off <= min(NEAR, 5 * math.log1p(tolerance)) or (
        not tolerance and off <= NEAR and abs(given - right) <= 1
    ):
        return f"{way}, but close", "Is every small term in it, and is nothing rounded on the way?"
    decades = off / math.log(10)
    if decades < math.log10(3):
        return f"{way}, but within a factor of three", NEXT
    if decades < 1:
        return f"{way}, by less than a factor of ten", NEXT
    whole = round(decades)
    return f"{way} by about {whole} decade{'s' * (whole > 1)}", NEXT
