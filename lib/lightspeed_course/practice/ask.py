"""ask: a question on the page, with a box for the answer, the diagnosis, hints one step at a time,
and after a try a worked solution and a smaller question on the way.
"""

import time
from dataclasses import replace

from lightspeed_course.practice import as_released, store
from lightspeed_course.practice.check import check, chosen_seed, classwork
from lightspeed_course.practice.desk import state_words
from lightspeed_course.practice.forms import Panel, Words, as_html, number_field, unread
from lightspeed_course.practice.parse_answer import Unreadable, parse
from lightspeed_course.practice.questions import INCIDENT, question

SOLUTION = "Show a worked solution"
SMALLER = "Try a smaller question"


def ask(id, seed=None):
    """Show the question `id` with a form, as the last value of a cell. `seed` as for `check`.

    Raises UnknownQuestion for an unknown id.
    """
    if words := _without_a_box(id, seed):
        return Words(words)
    variant = question(id).variant(chosen_seed(seed))
    q, smaller = variant.question, ""

    def submit(values):
        nonlocal smaller
        try:
            verdict = check(q.id, read_answer(q, values), seed)
        except Unreadable as problem:
            return unread(problem)
        smaller = verdict.smaller
        next_help(has_try=True, solved=verdict.correct)
        verdict = replace(verdict, smaller="")  # a button opens it
        return (
            verdict._repr_markdown_(),
            repr(verdict),
            "good" if verdict.correct else "plain" if verdict.kind == "read" else "bad",
        )

    def next_help(has_try, solved=False):
        """What other buttons do next: a hint, the solution after a try, the smaller question."""
        rest = hints[len(open_hints) :] if not solved else []
        offers = [SMALLER] if smaller and smaller not in offers_open else []
        if not classwork():
            panel.form.extra = (
                f"Show hint {len(open_hints) + 1} of {len(hints)}" if rest else SOLUTION
            )
            panel.form.extra_enabled = bool(rest) or has_try
            offers += [SOLUTION] if rest and has_try else []
        panel.form.offers = offers

    def more():
        if panel.form.extra == SOLUTION:
            return solve()
        open_hints.append(hints[len(open_hints)])
        store.record("hint", q.id, {"seed": variant.seed, "number": len(open_hints)})
        next_help(has_try=bool(store.events("try", q.id)))
        lines = [f"{n}. " + hint.replace("\n", "\n   ") for n, hint in enumerate(open_hints, 1)]
        hint = f"Hint {len(open_hints)}: {open_hints[-1]}"
        return "**Hints**\n\n" + "\n".join(lines), hint, "plain"

    def offered(label):
        return solve() if label == SOLUTION else open_smaller()

    def open_smaller():
        offers_open.append(smaller)
        panel.open("**A smaller question on the way**", ask(smaller, seed))
        next_help(has_try=True)
        return None, "A smaller question is open below.", "plain"

    def solve():
        store.record("solution", q.id, {"seed": variant.seed})
        text = f"**A worked solution**\n\n{variant.solution}"
        return text, "A worked solution is shown.", "plain"

    # The form shows the options of a choice itself.
    prompt = variant.fill(q.prompt) if q.kind == "choice" else variant.prompt
    hints, open_hints, offers_open = variant.hints, [], []
    panel = Panel(
        prompt, fields_of(variant), submit, on_extra=more, static=variant.prompt, on_offer=offered
    )
    next_help(has_try=bool(store.events("try", q.id)))
    if state := "" if classwork() else state_words(q.id, time.time()):
        # On the live page only: a committed notebook is the same for everybody.
        panel.prompt.value = as_html(f"*{state}*\n\n{prompt}")
    return panel


def _without_a_box(id, seed):
    """What stands on the page of a question that no box answers; "" for one that a box does."""
    if other := as_released.otherwise(id, lambda: question(id).variant(chosen_seed(seed))):
        prompt, note = other
        return "\n\n".join(filter(None, (prompt, f"*{note}*")))
    if question(id).kind == INCIDENT:
        from lightspeed_course.practice.incident_question import here

        return here(id, chosen_seed(seed)).prompt
    if question(id).kind == "function":
        prompt = question(id).variant(chosen_seed(seed)).prompt
        return f'{prompt}\n\nWrite it in a cell, then run `check("{id}", name_of_your_function)`.'
    return ""


def fields_of(variant):
    """Return the form fields for an answer to a variant."""
    q = variant.question
    if q.kind == "choice":
        return [
            {"label": "Your answer", "options": [list(pair) for pair in variant.options.items()]}
        ]
    return [number_field(q.unit, name) for name in q.names] if q.names else [number_field(q.unit)]


def read_answer(q, values):
    """Return the values of a form as an answer for `check`. Raises Unreadable."""
    if q.kind == "choice":
        if not values[0]:
            raise Unreadable("unanswered", "Choose one of the options.")
        return values[0]
    answers = [parse(value, q.unit) for value in values]
    return answers if q.names else answers[0]
