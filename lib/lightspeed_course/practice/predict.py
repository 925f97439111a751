"""Predictions: commit a guess, then see the value and by how many decades intuition was off.

The first guess counts; later ones are kept beside it. Targets are number questions; a page passes
a seed where the exercise asks the same with the canonical values.
"""

import math
import statistics

from lightspeed_course.practice import store
from lightspeed_course.practice.amounts import amount, times, unit_words
from lightspeed_course.practice.forms import Panel, Words, number_field, unread
from lightspeed_course.practice.parse_answer import Unreadable, numbers, parse
from lightspeed_course.practice.questions import UnknownQuestion, question

_waiting: dict[str, list[Panel]] = {}  # question id -> reveals on the page that lack a guess


def predict(id, guess=..., seed=None):
    """Commit a guess at the value that question `id` asks for; `...` shows the question and a
    box to type it in. `seed` draws its values; without one they are the canonical ones.
    """
    variant = _target(id, seed)
    if guess is not ...:
        return Words(_noted(commit(variant, guess)))

    def submit(values):
        try:
            reply = _noted(commit(variant, parse(values[0], variant.question.unit)))
        except Unreadable as problem:
            return unread(problem)
        return reply, reply.replace("*", ""), "plain"

    how = (
        "*Guess before you read on: put your number in place of the dots, or run the cell and type"
        " it in. The first guess counts.*"
    )
    unit = variant.question.unit
    prompt = (
        f"**Predict.** {variant.fill(variant.question.prompt)}"
        + f" *(in {unit_words(unit)})*" * bool(unit)
    )
    return Panel(
        prompt,
        [number_field(unit, "Your guess")],
        submit,
        "Commit my guess",
        static=f"{prompt}\n\n{how}",
    )


def commit(variant, guess):
    """Keep a guess (above zero, in the asked unit or a quantity) and say so."""
    q = variant.question
    try:
        value = float(numbers(guess, q.unit)[0])
    except Unreadable as problem:
        return f"**Not recorded.** {problem.message}"
    if value <= 0:
        return (
            "**Not recorded.** Guess a value above zero: guesses are compared by their powers of"
            " ten."
        )
    first = first_guess(variant)
    store.record("guess", q.id, {"value": value} | ({"seed": variant.seed} if variant.seed else {}))
    # After "run all" the reveals stand there already: they show once the guess is in.
    for panel in _waiting.pop(q.id, []):
        panel.enter()
    if first is None:
        return f"**Recorded:** {amount(value, q.unit)}. Now read on, or run the reveal."
    return (
        f"**Your first guess stays:** {amount(first, q.unit)}. This one, {amount(value, q.unit)},"
        " is kept beside it and does not count."
    )


def reveal(id, skip=False, seed=None):
    """The value behind a prediction, and how far off the guess was. Without a guess it first
    asks for one, unless `skip`. `seed` as for `predict`.
    """
    variant = _target(id, seed)

    def shown():
        return _noted(_revealed(variant, first_guess(variant)))

    if skip or first_guess(variant) is not None:
        return Words(shown())
    # A page not run yet, or without a kernel, must not tell before the guess.
    folded = (
        "<details><summary>The value, for when you have"
        f" guessed</summary>\n\n{variant.solution}\n\n</details>"
    )
    panel = Panel(
        "**No guess yet.** Write yours into the box above, and the value shows here.",
        [],
        lambda _: (
            _noted(_revealed(variant, first_guess(variant))),
            "The value is shown.",
            "plain",
        ),
        "Show it without a guess",
        static=folded,
    )
    _waiting.setdefault(id, []).append(panel)
    return panel


def _revealed(variant, guess):
    q, true = variant.question, variant.right[0]
    if guess is None:
        return f"*No guess recorded.*\n\n{variant.solution}"
    return (
        f"**{_miss(decades(guess, true), q.tolerance)}** Your first guess was"
        f" {amount(guess, q.unit)}.\n\n{variant.solution}"
    )


def _miss(off, tolerance):
    if abs(off) <= math.log10(1 + tolerance):
        return "Right."
    if abs(off) < 0.05:
        return f"A little too {_way(off)}."
    return f"{times(off)} too {_way(off)}.".capitalize()


def _way(off):
    return "high" if off > 0 else "low"


def decades(guess, true):
    """Return by how many powers of ten a guess is off; above zero if too high."""
    return math.log10(guess) - math.log10(true)


def first_guess(variant):
    """The guess that counts, in the asked unit, or None; at other numbers it is no guess."""
    guesses = store.events("guess", variant.question.id)
    of_these = (g for g in guesses if g.detail.get("seed") == variant.seed)
    return next((g.detail["value"] for g in of_these), None)


def misses():
    """Question id -> decades off, for the first guess at each target that still exists."""
    first_guesses = {}
    for event in store.events("guess"):
        try:
            if event.question not in first_guesses:
                first_guesses[event.question] = decades(
                    event.detail["value"],
                    _target(event.question, event.detail.get("seed")).right[0],
                )
        except UnknownQuestion:
            continue
    return first_guesses


def calibration():
    """A chart of how far off each first guess was, and what it says about you."""
    off = misses()
    if not off:
        return Words(
            _noted(
                "No predictions recorded yet. Each `predict` adds a point to the chart that will"
                " stand here."
            )
        )
    from lightspeed_show import Axis, Chart, Points, Rule, figure

    reach = max(1, math.ceil(max(map(abs, off.values()))))
    names = [id.partition(".")[2].replace("_", " ") for id in off]
    words = "off by so many powers of ten: too low on the left, too high on the right"
    x = Axis(words, domain=(-reach, reach))
    y = Axis(scale="category", categories=names)
    marks = [Rule(x=0, label="right"), Points(list(off.values()), names)]
    chart = Chart(x, y, marks, height=110 + 26 * len(names))
    alt = "; ".join(
        f"{name}: {times(value)} too {_way(value)}" if abs(value) >= 0.05 else f"{name}: right"
        for name, value in zip(names, off.values(), strict=True)
    )
    figure(chart, caption=summary(list(off.values())), alt=alt)
    return None


def summary(values):
    """Summarize a list of decades off in a sentence."""
    typical = statistics.median(map(abs, values))
    high, low = sum(v > 0.05 for v in values), sum(v < -0.05 for v in values)
    lean = (
        "too high"
        if high > low
        else "too low"
        if low > high
        else "equally often too high and too low"
    )
    share = f" ({max(high, low)} of {len(values)})" if high != low else ""
    plural = "prediction was" if len(values) == 1 else f"{len(values)} predictions were typically"
    return f"Your {plural} off by a factor of {10**typical:.2g}, {lean}{share}."


def _target(id, seed=None):
    q = question(id)
    if q.kind != "number":
        raise ValueError(f"question {id}: a prediction needs a number question, this is a {q.kind}")
    return q.variant(seed)


def _noted(markdown):
    notice = store.take_notice()
    return f"{markdown}\n\n*{notice}*" if notice else markdown
