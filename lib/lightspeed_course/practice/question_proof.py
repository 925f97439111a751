"""Whether a question keeps what it promises: that its Python runs, and its units are right."""

import math
import traceback
from functools import cache

from lightspeed_course.practice.amounts import amount, close
from lightspeed_course.practice.derivation import measured, unit_of
from lightspeed_course.practice.question_text import QuestionError
from lightspeed_course.practice.unit_table import UnknownUnit, unit

SAME = 1e-6  # of misconceptions that no answer can tell apart
COUNTED = {"[request]", "[token]"}  # a plain number may be a count of these


def faults(text, question, seeds=(None, 0, 1)):
    """(line, what is wrong) of each fault that the variants of these seeds show, the first seed
    that shows any.
    """
    for seed in seeds:
        result = []
        for part in _parts(text, question, seed):
            try:
                result += part()
            except QuestionError as error:
                result += error.faults
            except Exception as error:
                frames = traceback.walk_tb(error.__traceback__)
                lines = [line for frame, line in frames if frame.f_code.co_filename.endswith(".md")]
                result.append(((lines or [text.line])[-1], f"{type(error).__name__}: {error}"))
        if result:
            return list(dict.fromkeys(result))
    return []


def _parts(text, q, seed):
    """Functions that give the faults of a part each: the solution, each misconception and each
    condition. What one raises leaves the others to be tried.
    """
    variant = cache(lambda: q.variant(seed))
    yield lambda: _of_solution(text, q, variant())
    for n, each in enumerate(text.misconceptions):
        yield lambda n=n, row=each: _of_misconception(q, variant(), n, *row[1::3])
    for words, condition, line in text.holds:
        yield lambda w=words, h=condition, at=line: _of_condition(q, variant(), w, h, at)


def _of_solution(text, q, variant):
    steps = [step for step in variant.worked.steps if step.formula]
    if steps and "answer" not in text.facts and q.kind == "number":
        of = steps[-1].result[1]
        if _dimensions(of) != _dimensions(q.unit):
            yield text.steps[-1][2], f"the last step comes out in {of or 'no unit'}, not {q.unit!r}"
    if q.kind == "choice" and variant.right not in q.options:
        options = ", ".join(q.options)
        yield text.line, f"the answer is {variant.right!r}: expected one of {options}"


def _of_misconception(q, variant, n, mark, line):
    m = q.misconceptions[n]
    wrong = variant.wrong(m)
    if q.kind == "choice":
        if wrong not in q.options:
            yield line, f"{m.name}: {wrong!r} is no option"
        return
    if variant.seed is None and not any(map(math.isfinite, wrong)):
        yield line, f"{m.name}: comes to no number"
    elif close(wrong, variant.right, q.tolerance):
        yield line, f"{m.name}: is the right answer; expected a wrong one"
    same = [o.name for o in q.misconceptions[:n] if close(wrong, variant.wrong(o), SAME)]
    if same and "also" not in mark and variant.seed is None:
        others = f"comes to the same as {' and '.join(same)}, {amount(wrong[0], q.unit)}"
        expected = "expected another answer, or (also) behind the name, and both are told"
        yield line, f"{m.name}: {others}: {expected}"
    own = _own_unit(variant, m) if q.kind == "number" else ""
    if own and _dimensions(own) != _dimensions(q.unit):
        unit_words = f"{q.unit or 'a plain number'} is asked"
        yield (
            line,
            f"{m.name}: comes out in {own}, {unit_words}; float(...) where that is the mistake",
        )


def _of_condition(q, variant, words, condition, line):
    if not all(q.holds[words](**variant.inputs(sample)) for sample in variant.samples):
        yield line, f"does not hold: {words}: {condition}"


def _own_unit(variant, misconception):
    """The unit of a law's result; "" of what does not know its own."""
    try:
        return measured(misconception.wrong(**variant.inputs()))[1]
    except (ArithmeticError, ValueError):
        return ""


def _dimensions(of):
    powers = {}
    for name, power in unit_of(of).items():
        try:
            own = unit(name).dimensions
        except UnknownUnit:  # a noun that is counted
            continue
        for dimension, n in own.items():
            powers[dimension] = powers.get(dimension, 0) + n * power
    return {name: n for name, n in powers.items() if n and name not in COUNTED}
