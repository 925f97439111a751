"""Inputs that a function is tried on and nobody is told of, drawn from a secret."""

import math
from dataclasses import replace
from random import Random
from typing import Any

from lightspeed_course.practice.values import joined
from lightspeed_course.practice.variants import Variant, draw, seeded

DRAWS = 20


def hidden(variant: Variant, secret: str) -> Variant:
    """Return the question on other inputs: every choice of every parameter, then between."""
    q, rng = variant.question, seeded(variant.question.id, f"hidden\n{secret}")
    decks = {n: sorted(p.choices, key=lambda _: rng.random()) for n, p in q.parameters.items()}
    samples, right = [], []
    for turn in range(20 * DRAWS):
        sample = {
            n: _hidden_value(p, decks[n][turn : turn + 1], rng) for n, p in q.parameters.items()
        }
        if (result := _result(variant, sample)) is not None:
            samples.append(sample)
            right.append(result)
        if len(samples) == DRAWS:
            break
    edges = [{**variant.values, **edge} for edge in q.edges]
    right += [variant.result(q.expected, edge) for edge in edges]
    other = replace(variant)
    # take the place of the cached properties
    vars(other).update(samples=samples + edges, right=joined(right))
    return other


def _hidden_value(parameter: Any, options: list[Any], rng: Random) -> Any:
    """The choice dealt, so that every regime is met; then any of them or, if real, one in range."""
    if options:
        return options[0]
    choices = parameter.choices
    if choices and rng.random() < 0.5 and all(type(c) is float and c > 0 for c in choices):
        return min(choices) * (max(choices) / min(choices)) ** rng.random()
    return draw(rng, parameter)


def _result(variant: Variant, sample: dict[str, Any]) -> Any:
    """What the library gives for an input; None where nothing is asked or there is no answer."""
    q = variant.question
    try:
        if q.valid and not q.valid(**variant.inputs(sample)):
            return None
        result = variant.result(q.expected, sample)
    except (ArithmeticError, ValueError):
        return None
    return None if any(map(math.isnan, result)) else result
