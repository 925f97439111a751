"""Checking: a verdict on an answer that says what was seen, why it may have happened and what to
think about next.

`diagnose` is a pure function of a variant and an answer; `check` also keeps the try. A verdict on
a wrong answer never tells the right one, and a right answer is never refused: it is compared
first, before any misconception.
"""

import math
import os
from dataclasses import dataclass, replace
from functools import cached_property

from lightspeed_course.library_calls import law_called
from lightspeed_course.practice.amounts import amount, close
from lightspeed_course.practice.call_function import (
    called_otherwise,
    calls_of,
    inputs_in_words,
    results,
)
from lightspeed_course.practice.causes import BANK, VAGUE
from lightspeed_course.practice.explain import explain, is_right
from lightspeed_course.practice.parse_answer import Unreadable, numbers, option
from lightspeed_course.practice.questions import INCIDENT, PUZZLE, question
from lightspeed_course.practice.unexplained import NEXT, magnitude, reordered, unrounded
from lightspeed_course.practice.values import Values, finite
from lightspeed_course.practice.variants import Variant

COUNT = {2: "Two", 3: "Three"}
UNTOLD = f"More than one slip leads there, and the value does not tell which. {NEXT}"


@dataclass(frozen=True, repr=False)
class Verdict:
    """What became of an answer.

    `kind`: right, unanswered, type, dimension, sign, error, misconception, slip, partial, close,
    magnitude, library (a law that is called, not written), cause or fix (what is wrong of an
    incident's), or read (not judged); `name`: that of the misconception, slip or law; `given`: the
    answer as it was read; `smaller`: the id of a question that is a step of this one; `why`: why a
    right answer matters; `share`: of the points, where it is not all or nothing.
    """

    id: str
    correct: bool
    kind: str
    message: str
    name: str = ""
    given: str = ""
    note: str = ""
    smaller: str = ""
    why: str = ""
    share: float | None = None

    @property
    def heading(self):
        if self.kind == "read":
            return "Read."
        return (
            "Right."
            if self.correct
            else "Not answered."
            if self.kind == "unanswered"
            else "Not yet."
        )

    @property
    def offer(self):
        """The smaller question, in words; empty if there is none."""
        if not self.smaller:
            return ""
        prompt = " ".join(question(self.smaller).variant().prompt.partition("\n\n*")[0].split())
        return f'A smaller question on the way, `ask("{self.smaller}")`: {prompt}'

    def _repr_markdown_(self):
        first = f"**{self.heading}** {self.message}"
        parts = first, self.why, self.offer, self.note and f"*{self.note}*"
        return "\n\n".join(part for part in parts if part)

    def __repr__(self):
        parts = f"{self.heading} {self.message}", self.why, self.offer, self.note
        return "\n".join(part for part in parts if part)


def check(id, answer, seed=None, at=None):
    """The verdict on an answer to the question `id`, which is also recorded as a try.

    `seed` selects a variant; by default that of $LIGHTSPEED_SEED, else the canonical one. `at` is
    when, in seconds since 1970 (default: now).
    Raises UnknownQuestion for an unknown id, and nothing else, whatever the answer is.
    """
    from lightspeed_course.practice import as_released, store

    if other := as_released.otherwise(id, lambda: question(id).variant(chosen_seed(seed))):
        return Verdict(id, False, "read", other[1])
    if question(id).kind == INCIDENT:
        from lightspeed_course.practice.incident_question import here

        variant = here(id, chosen_seed(seed))
        verdict = _bought(variant, answer)
    elif str(id).startswith(f"{PUZZLE}.") and callable(answer):
        variant = question(id).variant()
        verdict = _kernel(variant, answer)
    else:
        variant = question(id).variant(chosen_seed(seed))
        verdict = (acknowledge if classwork() == "format" else diagnose)(variant, answer)
    if verdict.kind != "unanswered":
        details = {n: getattr(verdict, n) for n in ("correct", "kind", "name", "given")}
        store.record("try", id, {"seed": variant.seed, **details}, at)
    offered = "" if verdict.correct or verdict.kind in ("unanswered", "read") else smaller(id)
    return replace(verdict, note=store.take_notice(), smaller=offered)


def smaller(id):
    """Return the next smaller unsolved question on the way to `id`; "" if there is none."""
    from lightspeed_course.practice import store

    solved = {e.question for e in store.events("try") if e.detail.get("correct")}
    while (id := question(id).smaller) in solved:
        pass
    return id


def chosen_seed(seed):
    return seed if seed is not None else os.environ.get("LIGHTSPEED_SEED") or None


def classwork():
    """Return how much `check` reveals in class: "full" or "format"; "" in self-study."""
    return os.environ.get("LIGHTSPEED_CLASS", "")


def acknowledge(variant, answer):
    """Confirm that an answer can be graded, and how it was read, without grading it."""
    q = variant.question
    try:
        if q.kind == "choice":
            text = words = f"“{option(answer, variant.options)}”"
        else:
            values, failure = (results if q.kind == "function" else _values)(variant, answer)
            if failure:
                raise failure
            text = " ".join(f"{v:.6g}" for v in values[:8])
            words = (
                f"a function that gives a number on all {len(values)} inputs tried"
                if q.kind == "function"
                else _seen(variant, values, None)
            )
    except Unreadable as problem:
        return _refused(variant, problem)
    except Exception as error:
        return _refused(
            variant,
            Unreadable("type", f"This answer cannot be read as a number ({type(error).__name__})."),
        )
    return Verdict(
        q.id, False, "read", f"You have {words}. It is judged once it is handed in.", "", text
    )


def diagnose(variant, answer) -> Verdict:
    """The verdict on an answer to a variant; pure, and the same each time."""
    verdict = _judged(variant, answer)
    if not (verdict.correct and variant.question.why):
        return verdict
    return replace(verdict, why=variant.fill(variant.question.why))


def _judged(variant, answer):
    try:
        if variant.question.kind == INCIDENT:
            return _incident(variant, variant.read(answer))
        if variant.question.kind == "choice":
            return _choice(variant, option(answer, variant.options), variant.right)
        reader = results if variant.question.kind == "function" else _values
        values, failure = reader(variant, answer)
    except Unreadable as problem:
        return _refused(variant, problem)
    except Exception as error:
        return _refused(
            variant,
            Unreadable("type", f"This answer cannot be read as a number ({type(error).__name__})."),
        )
    evidence = _Given(variant, values, failure, answer)
    return next(verdict(evidence) for holds, verdict in VERDICTS if holds(evidence))


def _refused(variant, problem):
    return Verdict(variant.question.id, False, problem.kind, problem.message)


def _incident(variant, answer):
    text, id = variant.words(answer), variant.question.id
    if not answer.cause:
        return Verdict(id, False, "unanswered", "No cause is named.", "", text)
    right, share, message = variant.judge(answer)
    kind = "right" if right else "fix" if share else "cause"
    return Verdict(id, right, kind, message, "", text, share=share)


def _bought(variant, answer):
    """What was bought, and the verdict once a cause is named, where the truth is known here."""
    try:
        sheet = variant.read(answer)
    except Unreadable as problem:
        return _refused(variant, problem)
    view, text = variant.shown(sheet), variant.words(sheet)
    if sheet.cause and variant.case and classwork() != "format":
        verdict = _incident(variant, sheet)
        return replace(verdict, message=f"{verdict.message}\n\n{view}")
    if not sheet.cause:
        return Verdict(
            variant.question.id, False, "unanswered", f"No cause is named.\n\n{view}", "", text
        )
    words = f"You have {text}. It is judged once it is handed in."
    return Verdict(variant.question.id, False, "read", f"{words}\n\n{view}", "", text)


def _kernel(variant, solution):
    """What the counting machine says of a solution of a puzzle."""
    from lightspeed_course.puzzles.attempts import attempt, tried

    id = variant.question.id
    if classwork() == "format":
        return acknowledge(variant, tried(id, solution))
    outcome = attempt(id.partition(".")[2], solution)
    kind = "right" if outcome.solved else "magnitude" if outcome.right else "error"
    listing = "".join(f"\n- {finding}" for finding in outcome.findings)
    return Verdict(id, outcome.solved, kind, f"{outcome.sentence}{listing}")


def _choice(variant, key, right):
    def verdict(kind, message, name=""):
        return Verdict(variant.question.id, kind == "right", kind, message, name, key)

    if key == right:
        return verdict("right", variant.options[key])
    if matches := [m for m in variant.question.misconceptions if variant.wrong(m) == key]:
        return verdict(
            "misconception", f"You chose “{key}”. {_hints(variant, matches)}", _names(matches)
        )
    return verdict(
        "magnitude", f"It is not “{key}”. Work out what each option would change, then compare."
    )


def _values(variant, answer):
    q = variant.question
    return numbers(answer, q.unit, q.names), None


@dataclass(frozen=True)
class _Given:
    """What was given, as values, and what is found out about it once it is asked for."""

    variant: Variant
    values: Values
    failure: Unreadable | None
    answer: object

    @cached_property
    def right(self):
        return is_right(self.variant, self.values)

    @cached_property
    def causes(self):
        return explain(self.variant, self.values)

    @property
    def written(self):
        return bool(self.causes) and self.causes[0].rank == BANK

    @cached_property
    def order(self):
        """(name, reason) if the values, or the arguments, are right in another order; or None."""
        right, here = self.variant.right, finite(self.values)
        own, expected = self.values.where(here), right.where(here)
        # What gives right numbers wherever it gives any has another fault than an order.
        if self.written or (own and close(own, expected, self.variant.question.tolerance)):
            return None
        order = reordered(self.variant, self.values, right)
        return order or called_otherwise(self.variant, self.answer, right)

    @cached_property
    def slip(self):
        """(name, reason) of a slip that no cause is needed for; or None."""
        # A count that kept its fraction may be near a misconception's, and is not for that one.
        if self.order or (self.written and close(self.values, self.causes[0].values, 1e-3)):
            return self.order
        return unrounded(self.variant, self.values, self.variant.right)

    @cached_property
    def law(self):
        """The law of the library that a function calls in place of being it; "" if it does not."""
        library = self.variant.library
        if not library or not library["gives"]:
            return ""
        return law_called(library, calls_of(self.variant, self.answer))

    @property
    def below(self):
        right = self.variant.right
        return any(value < 0 for value in self.values) and all(value >= 0 for value in right)

    @property
    def near(self):
        return close(self.values, self.variant.right, self.variant.question.tolerance)

    def verdict(self, kind, reason, name="", below=False):
        words = _seen(self.variant, self.values, self.variant.right, below)
        return self.says(kind, f"You have {words}. {reason}".rstrip(), name)

    def says(self, kind, message, name=""):
        text = " ".join(f"{value:.6g}" for value in self.values[:8])
        return Verdict(self.variant.question.id, kind == "right", kind, message, name, text)


def _right(evidence):
    if evidence.variant.question.kind == "function":
        if law := evidence.law:
            return evidence.says("library", LAW.format(law), law)
        inputs = len(evidence.variant.right)
        return evidence.says(
            "right", f"Your function agrees with the library on all {inputs} inputs tried."
        )
    return evidence.verdict("right", "")


def _caused(evidence):
    name = " or ".join(dict.fromkeys(c.name for c in evidence.causes))
    return evidence.verdict(
        "misconception" if evidence.written else "slip", _told(evidence.causes), name
    )


LAW = (
    "The numbers are right, and they are those of `{}`, which your function calls. That law is what"
    " this question asks you to write: put its formula in place of the call."
)
BELOW = "The sign is wrong: nothing here is below zero. Where does the minus come from?"
NEARER = "Another number of the same table is nearer to it than the one that is asked."
# (condition, verdict): the first condition that holds of what was given has the verdict.
VERDICTS = (
    (lambda g: g.right, _right),
    (
        lambda g: g.failure and not g.causes and not g.order,
        lambda g: _refused(g.variant, g.failure),
    ),
    (lambda g: g.slip, lambda g: g.verdict("slip", g.slip[1], g.slip[0])),
    (lambda g: len(g.causes) > 1 and not g.written, lambda g: g.verdict("magnitude", UNTOLD)),
    (lambda g: g.causes, _caused),
    (lambda g: g.below, lambda g: g.verdict("sign", BELOW, below=True)),
    (lambda g: g.near, lambda g: g.verdict("close", NEARER)),
    (lambda g: True, lambda g: g.verdict(*magnitude(g.variant, g.values, g.variant.right))),
)


def _told(causes):
    """One cause that explains the answer is likely; of several nobody can tell which it was."""
    if len(causes) > 1:
        numbered = " ".join(f"({n}) {c.words}" for n, c in enumerate(causes, 1))
        return (
            f"{COUNT[len(causes)]} slips lead there, and the value does not tell which. {numbered}"
        )
    return causes[0].reason if causes[0].rank == VAGUE else f"Likely: {causes[0].words}"


def _hints(variant, misconceptions):
    return " Or: ".join(variant.fill(m.hint) for m in misconceptions)


def _names(misconceptions):
    return " or ".join(m.name for m in misconceptions)


def _seen(variant, values, right, below=False):
    """The answer in words; of a function a result where it is below zero, or else wrong."""
    q = variant.question
    if q.kind == "array":
        return ", ".join(f"{n}: {amount(v, q.unit)}" for n, v in zip(q.names, values, strict=True))
    if q.kind == "number":
        return amount(values[0], q.unit)
    # The first input where it gives a wrong number; else the first where it gives none.
    off = [
        i
        for i, value in enumerate(values)
        if (value < 0 if below else not close(value, right[i], q.tolerance))
    ]
    worst = min(off, key=lambda i: math.isnan(values[i]), default=0)
    value = "no number" if math.isnan(values[worst]) else amount(values[worst], q.unit)
    return f"{value} for {inputs_in_words(variant, variant.samples[worst])}"
