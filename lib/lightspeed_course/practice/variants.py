"""A variant: a question with values for its parameters, and all that follows from them."""

import math
import random
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import Any

from lightspeed_course.practice.amounts import amount, close, si_factor, unit_words
from lightspeed_course.practice.values import Values, finite, joined, values_of

SAMPLES = 20
STABLE = "k"  # begins the seeds whose draws a longer list of choices leaves alone


def seeded(id, seed):
    # Python guarantees this stream for ever; numpy's generators may change theirs between versions,
    # and a grade must replay.
    return random.Random(f"{id}\n{seed}")


def draw(rng, parameter):
    choices = parameter.choices or (parameter.canonical,)
    return choices[int(rng.random() * len(choices))]


def drawn(q, seed, turn, rng):
    """The values of one draw. A seed of a class gives each choice a rank of its own, and takes the
    first: a choice that is added changes only the draws in which it ranks first.
    """
    if not seed.startswith(STABLE):
        return {n: draw(rng, p) for n, p in q.parameters.items()}

    def rank(name, choice):
        import hashlib

        key = f"{q.id}\n{seed}\n{turn}\n{name}\n{choice!r}"
        return hashlib.sha256(key.encode()).digest()

    return {
        n: min(p.choices or (p.canonical,), key=lambda choice: rank(n, choice))
        for n, p in q.parameters.items()
    }


@dataclass(frozen=True)
class Variant:
    """A question with values: what is asked, right, and given by each misconception, as `Values` in
    the asked unit: one, an array's, or a function's on each of `samples`.
    """

    question: Any
    seed: str | None
    values: Mapping

    @cached_property
    def samples(self):
        """The inputs, in display units, on which the question is evaluated."""
        q = self.question
        if q.kind != "function":
            return [dict(self.values)]
        # What shows a misconception without a seed shows it with one, with its own on top.
        seeds = (None,) if self.seed is None else (None, self.seed)
        samples = [sample for seed in seeds for sample in self._draws(seeded(q.id, seed))]
        return [dict(self.values), *samples, *({**self.values, **edge} for edge in q.edges)]

    def _draws(self, rng):
        q = self.question
        draws = ({n: draw(rng, p) for n, p in q.parameters.items()} for _ in range(10 * SAMPLES))
        return islice((t for t in draws if not q.valid or q.valid(**self.inputs(t))), SAMPLES)

    def inputs(self, values=None):
        """The values in SI, as the functions of a question take them."""
        values = self.values if values is None else values
        return {n: p.si(values[n]) for n, p in self.question.parameters.items()}

    @cached_property
    def right(self):
        if self.question.kind == "choice":
            return self.question.expected(**self.inputs())
        return joined(self.result(self.question.expected, s) for s in self.samples)

    def wrong(self, misconception):
        """What the misconception answers; NaN where it has no answer."""
        if self.question.kind == "choice":
            return misconception.wrong(**self.inputs())
        width = len(self.right) // len(self.samples)
        results = []
        for sample in self.samples:
            try:
                results.append(self.result(misconception.wrong, sample))
            except (ArithmeticError, ValueError):
                results.append((math.nan,) * width)
        results = joined(results)
        if misconception.slight and close(results, self.right, self.question.tolerance):
            return Values((math.nan,) * len(results))
        return results

    @cached_property
    def causes(self):
        """The mistakes that may lie behind a wrong answer, each with the values it leads to."""
        from lightspeed_course.practice.explain import causes

        return causes(self)

    @cached_property
    def further(self):
        """Return further causes, which take longer to find."""
        from lightspeed_course.practice.explain import further

        return further(self)

    @cached_property
    def library(self):
        """What of the library a function's right results come from; None for other kinds."""
        from lightspeed_course.library_calls import origin

        if self.question.kind != "function":
            return None
        return origin(self.question.expected, map(self.inputs, self.samples))

    @cached_property
    def rows(self):
        """Return the catalog neighbours of a number, as causes."""
        from lightspeed_course.practice.rows import rows

        return list(rows(self))

    def result(self, function, sample):
        """What a function of the question's gives for an input, in the asked unit."""
        return self.in_unit(function(**self.inputs(sample)))

    def in_unit(self, value):
        """What the library gives, a quantity or numbers in SI, as numbers in the asked unit."""
        if hasattr(value, "dimensionality"):
            value = value.to(self.question.unit or "dimensionless").magnitude
        else:
            value = values_of(value) / si_factor(self.question.unit)
        return values_of(value)

    def is_sound(self):
        """Whether these values pose the same question: valid, finite, misconceptions visible."""
        q = self.question
        if q.valid and not q.valid(**self.inputs()):
            return False
        if q.kind == "choice":
            return self.right in q.options
        # A function may have infinity as its right result somewhere; a number may not.
        has_values = (
            not any(map(math.isnan, self.right))
            if q.kind == "function"
            else all(finite(self.right))
        )
        return bool(has_values) and not any(
            close(self.wrong(m), self.right, q.tolerance) for m in q.misconceptions
        )

    @cached_property
    def options(self):
        """The options of a choice, key -> text, with the parameters filled in."""
        return {key: self.fill(text) for key, text in self.question.options.items()}

    @property
    def asked(self):
        """The sentence that says in what form the answer is wanted."""
        q = self.question
        if q.kind == "choice":
            return "\n".join(f"- **{key}**: {text}" for key, text in self.options.items())
        within = f"within {amount(100 * q.tolerance, '%')}" if q.tolerance else "exactly"
        if form := getattr(q, "asks", ""):
            return form
        if q.kind == "function":
            takes = ", ".join(
                f"`{n}`" + f" in {unit_words(p.unit)}" * bool(p.unit)
                for n, p in q.parameters.items()
            )
            return (
                f"*Write a function of {takes}. It returns"
                f" {unit_words(q.unit) or 'a plain number'}, {within}.*"
            )
        unit = f"in {unit_words(q.unit)}" if q.unit else "as a plain number"
        each = f"{', '.join(q.names[:-1])} and {q.names[-1]}, each " if q.names else ""
        return f"*Answer {each}{unit}, {within}.*"

    @property
    def prompt(self):
        return f"{self.fill(self.question.prompt)}\n\n{self.asked}"

    @property
    def answer(self):
        """The right answer in words, to one digit more than the tolerance needs."""
        q = self.question
        if q.kind == "choice":
            return f"**{self.right}**: {self.options[self.right]}"
        digits = max(3, 1 + math.ceil(-math.log10(max(q.tolerance, 1e-9))))
        values = [amount(v, q.unit, digits) for v in self.right]
        return (
            ", ".join(f"{n}: {v}" for n, v in zip(q.names, values, strict=True))
            if q.names
            else values[0]
        )

    @cached_property
    def worked(self):
        solution = self.question.solution
        return solution(**self.inputs()) if callable(solution) else solution

    @property
    def hints(self):
        """What leads to the solution, step by step without its numbers; none for a text."""
        return [self.fill(hint) for hint in getattr(self.worked, "hints", ())]

    @property
    def solution(self):
        """The worked solution; that of a number, an array or a choice ends with the answer."""
        q, steps = self.question, self.fill(str(self.worked)).strip()
        return steps if q.kind == "function" else f"{steps}\n\n**Answer:** {self.answer}"

    def fill(self, template):
        """The template with each `{{parameter}}` written as the parameter shows it."""
        texts = {n: p.text(self.values[n]) for n, p in self.question.parameters.items()}
        return re.sub(r"\{\{\s*([A-Za-z_]\w*)\s*\}\}", lambda m: texts[m[1]], template)
