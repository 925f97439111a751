"""Slips that leave a factor, whatever the question: each where its dimensions allow it."""

import math
import re
from itertools import combinations

from lightspeed_course.practice.amounts import si_factor
from lightspeed_course.practice.causes import PARTICULAR, VAGUE, Cause
from lightspeed_course.practice.dimensions import (
    CLOCKS,
    by_peak,
    clocks,
    dimensions,
    inside,
    is_key,
)

PREFIXES = (("kB", "KiB"), ("MB", "MiB"), ("GB", "GiB"), ("TB", "TiB"))
NUMBERS = {"three": 3, "four": 4, "five": 5, "six": 6, "eight": 8, "sixteen": 16}
BASES = {"two and e": 1 / math.log(2), "ten and e": math.log(10), "ten and two": math.log2(10)}
LINK = re.compile(
    r"\b(links?|network|NVLink|PCIe|InfiniBand|ports?|adapters?|one direction)\b", re.IGNORECASE
)
RING = re.compile(r"\b(ring|ranks?|all-\w+|reduce-scatter|shards?|stages?|GPUs?)\b")
ONE_OR_ALL = "Is the answer asked for one, or for all"
LOST = "a prefix (n, µ, m, k, M, G, T) was lost or misread on the way."


def causes(variant):
    """A `Cause` for each of the factors, on either side."""
    right, tolerance = variant.right, variant.question.tolerance
    for name, factor, reason in factors(variant):
        rank = VAGUE if name == "factor of two" else PARTICULAR
        width = tolerance if factor >= 60 else 0.0
        # An answer in the library's own unit is off in one direction only.
        for values in (right * factor,) if name == "unit" else (right * factor, right / factor):
            if not tolerance and any(values % 1):  # of what must be whole
                yield Cause(name, values - values % 1, reason, rank, width=width)
            yield Cause(name, values, reason, rank, width=width)


def factors(variant):
    """Return the (name, factor, reason) of each slip that leaves a factor."""
    has = inside(variant)
    for some in (_units, _counts, _ring, _information, _doubles, _logarithms, _prefixes):
        yield from some(variant, has)


def _units(variant, has):
    q = variant.question
    if q.unit != "%" and not math.isclose(si_factor(q.unit), 1):
        reason = f"A plain number is read in {q.unit}; yours looks like one in the library's own"
        which = ", seconds" if set(dimensions(q.unit)) == {"[time]"} else ""
        yield "unit", si_factor(q.unit), f"{reason} unit{which}. Convert it, or give a quantity."
    share = not q.unit and (
        all(abs(value) <= 1 for value in variant.right)
        or "%" in {p.unit for p in q.parameters.values()}
    )
    if q.unit == "%" or share:
        hint = " A plain number is read in %." * (q.unit == "%")
        yield (
            "percent",
            100,
            f"The factor is a hundred. Is a fraction asked, or a percentage?{hint}",
        )
    if si_factor(q.unit) == 0.01 and q.unit.startswith("c"):
        yield "prefix", 100, "The factor is a hundred: a prefix was lost or misread on the way."
    for factor in clocks(q):
        reason = f"The factor is {factor}, as between {CLOCKS[factor]}. In which unit is each time?"
        yield "time unit", factor, reason


def _counted(variant):
    """The counts among the premises, by name; a function has none of its own."""
    q = variant.question
    return {
        name: value
        for name, value in variant.values.items()
        if q.kind != "function" and type(value) is int and value > 1 and not q.parameters[name].unit
    }


def _counts(variant, has):
    counts, name = _counted(variant), "one or all"
    for what, n in counts.items():
        yield name, n, f"The factor is that of {what}. {ONE_OR_ALL} together?"
        if n > 2 and not math.isclose(n, n - 1, rel_tol=variant.question.tolerance):
            others = f"The factor is that of {what} less one. {ONE_OR_ALL} the others together?"
            yield name, n - 1, others
        if 2 < n <= 100 and RING.search(variant.question.prompt):
            own = (
                f"The factor is that between {what} and one less. Does the share count that each"
                " keeps to itself, or the step from the last to the first?"
            )
            yield "one's own share", n / (n - 1), own
    for a, b in combinations(counts, 2):
        both = f"The factor is that of {a} and {b} together. {ONE_OR_ALL}?"
        yield name, counts[a] * counts[b], both
    for word, n in NUMBERS.items():
        if re.search(rf"\b{word}\b", variant.question.prompt):
            yield name, n, f"The factor is {word}, a number of the question. {ONE_OR_ALL} together?"


def _ring(variant, has):
    if not re.search("busbw|algbw|all-reduce", variant.question.prompt):
        return
    counts = _counted(variant).values()
    for n in sorted({*counts, math.prod(counts)} - {1, 2}):
        belongs = (
            f"The factor is that of an all-reduce over {n} ranks: the bytes that each of them"
            " sends, over the buffer; or busbw over algbw. Does it belong here?"
        )
        side = (
            f"The factor of an all-reduce over {n} ranks, busbw over algbw, is on the wrong side:"
            " divide where you multiply, or the other way round."
        )
        yield "the ring's factor", 2 * (n - 1) / n, belongs
        yield "the ring's factor", (2 * (n - 1) / n) ** 2, side


def _information(variant, has):
    if "[information]" not in has:
        return
    reason = "A factor of eight is the mark of bits taken for bytes. Which one does each rate"
    yield "bits and bytes", 8, f"{reason} and each size count?"
    # Where bytes are measured, or timed. A number of requests, say, or of bytes that must be exact
    # has other reasons to be off by so little.
    dims = set(dimensions(variant.question.unit))
    if variant.question.tolerance and ("[information]" in dims or dims == {"[time]"}):
        for power, (small, large) in enumerate(PREFIXES, 1):
            mixed = f"The factor is that between {small} and {large}: powers of ten and powers of"
            yield "binary prefix", 1.024**power, f"{mixed} two are mixed."


def _doubles(variant, has):
    """The usual factors of two, each only where the answer has what it is about."""
    q, dims = variant.question, set(dimensions(variant.question.unit))
    text = f"{q.prompt} {variant.solution}"
    rate = (
        {"[information]", "[time]"} <= dims
        or q.unit == "%"
        or (dims and dims <= {"[time]", "[token]"})
    )
    doubles = {
        ("a multiply-add", "Counted as one operation, or as two? Peaks count two."): (
            "[operation]" in has and ("[operation]" in dims or "[information]" not in dims)
        ),
        (
            "a sparse peak",
            "A data sheet's sparse peak is twice the dense one. Which one is yours?",
        ): by_peak(variant) and not _peak_given(variant),
        (
            "both directions",
            "A link's two directions were added, or one of them halved. How much goes one way?",
        ): rate and "[information]" in has and (LINK.search(q.prompt) or is_key(variant, "links")),
        (
            "the width of an element",
            "Elements of half or of twice the width lead there. How many bytes does one take here,"
            " in each operand?",
        ): q.kind != "function"
        and "[information]" in dims | has
        and re.search(r"\b(bf16|fp16|fp32|fp8|int8|(two|four) bytes)\b", text),
        (
            "one pass or two",
            "A ring all-reduce has two passes, a reduce-scatter and an all-gather. How many do you"
            " count?",
        ): re.search(r"all-reduces?\b", text) and dims & {"[information]", "[time]"},
        (
            "there and back",
            "The way there is half of the way there and back. Which one is asked?",
        ): "[length]" in has,
        (
            "factor of two",
            "A factor of two is left, and it does not show where. What did you count once, or"
            " twice?",
        ): True,
    }
    yield from ((name, 2, reason) for (name, reason), here in doubles.items() if here)


def _peak_given(variant):
    """Whether the question itself has the dense peak, so that no data sheet is read."""
    parameters = variant.question.parameters
    return any(
        "peak" in p.text(variant.values[n]) or set(dimensions(p.unit)) == {"[operation]", "[time]"}
        for n, p in parameters.items()
    )


def _logarithms(variant, has):
    text = f"{variant.question.prompt} {variant.solution}"
    if variant.question.tolerance and re.search(r"\\log|\\ln\b|\blog|decibel", text):
        for bases, factor in BASES.items():
            reason = f"The factor is that between logarithms to base {bases}. Which base does the"
            yield "another logarithm", factor, f"{reason} law take?"
    if "decibel" in text:
        reason = "A decibel is ten times the logarithm of a ratio of powers, or twenty times that"
        yield "decibels", 2, f"{reason} of amplitudes. Which ratio is yours?"


def _prefixes(variant, has):
    for power in (1, 2, 3, 4, 5) if has else ():
        reason = f"The factor is a power of 1000 (a thousand, a million, ...): {LOST}"
        yield "prefix", 1000.0**power, reason
