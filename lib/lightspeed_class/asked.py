"""What was asked, as plain data: a variant as it was on the day of its release.

A question of the course may change at any time. What a student was asked does not: the prompt, the
values, the right answer with its tolerance, and what each mistake leads to are kept in the
gradebook, and `thawed` makes of them a variant that `diagnose` judges by, whatever the bank says by
then. Only the words about an answer that nothing explains come from the code of now.
"""

import hashlib
from dataclasses import asdict
from functools import cached_property
from typing import Any

from lightspeed_class.hidden_inputs import hidden
from lightspeed_course.practice.causes import Cause
from lightspeed_course.practice.premises import result
from lightspeed_course.practice.questions import INCIDENT, Misconception, Parameter, Question
from lightspeed_course.practice.questions import question as question_of
from lightspeed_course.practice.unexplained import orders
from lightspeed_course.practice.values import Values, values_of
from lightspeed_course.practice.variants import Variant

SETS = 8  # of hidden inputs, each with every choice of every parameter


class Unkept(Exception):
    """The installed course cannot grade what was asked; the message says why."""


class Asked(Variant):
    """A variant kept in the gradebook, made by `frozen`; `sets`: a function's hidden inputs."""

    kept: dict
    sets: Any

    def __init__(self, data, sets=None):
        q = data["question"]
        parameters = {
            name: Parameter(canonical, (), unit, dict(map(tuple, texts)).get if texts else None)
            for name, (canonical, unit, texts) in data["parameters"].items()
        }
        posed = Question(
            prompt="",
            chapter="",
            solution="",
            expected=lambda **inputs: self._laws[tuple(inputs[n] for n in parameters)],
            misconceptions=tuple(
                Misconception(name, _always(key), hint)
                for name, hint, key in data["misconceptions"]
            ),
            parameters=parameters,
            **{**q, "names": tuple(q["names"])},
        )
        super().__init__(posed, data["seed"], data["values"])
        right = data["right"]
        vars(self).update(
            kept=data,
            sets=sets,
            samples=data["samples"] or [dict(data["values"])],
            right=right if posed.kind == "choice" else Values(right),
            options=q["options"],
            causes=_causes(data["causes"]),
            further=_causes(data["further"]),
            rows=_causes(data["rows"]),
            library=data.get("library"),
        )

    def __reduce__(self):
        return Asked, (self.kept, self.sets)

    prompt = property(lambda self: self.kept["prompt"])
    answer = property(lambda self: self.kept["answer"])
    solution = property(lambda self: self.kept["solution"])
    hints = property(lambda self: self.kept["hints"])

    @cached_property
    def _laws(self):
        """The inputs of a sample, in some order of a function's arguments -> what is right."""
        laws, names = {}, tuple(self.question.parameters)
        for order, results in zip(_orders(self.question), self.kept["laws"], strict=False):
            for sample, right in zip(self.samples, results, strict=True):
                args = dict(zip(order, self.inputs(sample).values(), strict=True))
                laws[tuple(args[name] for name in names)] = right
        return laws

    def in_unit(self, value):
        return values_of(value)

    def fill(self, template):
        return template

    def hidden(self, draw):
        """Return the same function question on one set of hidden inputs, chosen by `draw`."""
        turn = int.from_bytes(hashlib.sha256(draw.encode()).digest()[:8], "big")
        samples, right = self.sets[turn % len(self.sets)]
        return Asked(self.kept | {"samples": samples, "right": right, "causes": [], "further": []})


def frozen(variant):
    """Return a variant as JSON-serializable data."""
    q, function = variant.question, variant.question.kind == "function"
    if q.kind == INCIDENT:
        return {"question": {"id": q.id, "kind": INCIDENT}, "seed": variant.seed,
                "prompt": variant.prompt, "cause": variant.case.cause.id,
                "readings": dict(variant.sheet.readings)}  # fmt: skip
    choice = q.kind == "choice"
    return {
        "question": {
            "id": q.id,
            "kind": q.kind,
            "level": q.level,
            "unit": q.unit,
            "tolerance": q.tolerance,
            "names": list(q.names),
            "options": variant.options,
            "why": variant.fill(q.why),
            "smaller": q.smaller,
        },
        "seed": variant.seed,
        "values": dict(variant.values),
        "prompt": variant.prompt,
        "answer": "" if function else variant.answer,
        "solution": variant.solution,
        "hints": list(variant.hints),
        "parameters": {n: _parameter(p, variant, n) for n, p in q.parameters.items()},
        "misconceptions": [
            [m.name, variant.fill(m.hint), variant.wrong(m)] for m in q.misconceptions if choice
        ],
        "samples": list(variant.samples) if function else [],
        "right": variant.right if choice else list(variant.right),
        "laws": list(_laws(variant)) if function else [],
        "causes": [] if choice else [_plain(c) for c in variant.causes],
        "further": [] if choice else [_plain(c) for c in variant.further],
        "rows": [] if choice else [_plain(c) for c in variant.rows],
        **({"library": variant.library} if function else {}),
    }


def thawed(data, sets=None):
    """Rebuild the variant from data by `frozen`. Raises Unkept if an incident has changed."""
    if data["question"]["kind"] != INCIDENT:
        return Asked(data, sets)
    now = question_of(data["question"]["id"]).variant(data["seed"])
    if frozen(now) != data:
        raise Unkept(
            f"{now.question.id} was drawn by another version of the simulators, and its cost can"
            " not be worked out by this one: install the course as it was when it was released"
        )
    return now


def hidden_sets(variant, secret):
    """Return [inputs, right results] of each hidden set that tests a function."""
    sets = [hidden(variant, f"{secret}\nset {n}") for n in range(SETS)]
    return [[s.samples, list(s.right)] for s in sets]


def _parameter(p, variant, name):
    texts = {s[name]: p.text(s[name]) for s in [variant.values, *variant.samples]} if p.show else {}
    return [p.canonical, p.unit, [list(pair) for pair in texts.items()]]


def _laws(variant):
    """The right results on all samples, with their values in each order of the arguments."""
    for order in _orders(variant.question):
        calls = [dict(zip(order, variant.inputs(s).values(), strict=True)) for s in variant.samples]
        yield [list(result(variant, inputs)) for inputs in calls]


def _orders(question):
    return tuple(question.parameters), *orders(question)


def _always(answer):
    return lambda **_: answer


def _plain(cause):
    return asdict(cause) | {"values": list(cause.values)}


def _causes(data):
    return [Cause(**{**c, "values": Values(c["values"])}) for c in data]
