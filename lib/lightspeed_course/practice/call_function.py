"""Calling a learner's function on the samples of a question, whatever it does."""

import inspect
import math

from lightspeed_course.library_calls import origin
from lightspeed_course.practice.amounts import close
from lightspeed_course.practice.parse_answer import Unreadable, numbers
from lightspeed_course.practice.unexplained import orders, other_arguments
from lightspeed_course.practice.values import Values, joined


def results(variant, function):
    """Return the learner's function on each sample, NaN if it fails, and the first failure."""
    if function is None or function is Ellipsis:
        raise Unreadable("unanswered", "Give the function itself, without calling it.")
    if not callable(function):
        raise Unreadable("type", "A function is asked: give its name, without calling it.")
    values, first, signature = [], None, _signature(function)
    for sample in variant.samples:
        try:
            values.append(_result(variant, function, signature, sample))
        except Unreadable as problem:
            values.append(Values([math.nan]))
            first = first or problem
    if first and first.kind == "unanswered":
        elsewhere = not all(map(math.isnan, joined(values)))
        advice = (
            "On other inputs it does: which branch has no `return`?"
            if elsewhere
            else "Is the `return` written?"
        )
        first = Unreadable("partial" if elsewhere else "unanswered", f"{first.message} {advice}")
    return joined(values), first


def _said(error):
    """The kind of an error and its words, if any: shortened, and as code without mark-up."""
    try:
        words = " ".join(str(error).split()).replace("`", "'")
    except Exception:
        words = ""
    return type(error).__name__[:60] + f" (`{words[:120]}`)" * bool(words)


def _result(variant, function, signature, sample):
    try:
        result = _call(function, signature, variant.inputs(sample))
    except Unreadable:
        raise
    except (Exception, SystemExit) as error:
        raise Unreadable(
            "error",
            f"Your function stopped with {_said(error)} at {inputs_in_words(variant, sample)}. What"
            " should it give there?",
        ) from None
    if result is None or result is Ellipsis:
        raise Unreadable(
            "unanswered", f"Your function gives no number at {inputs_in_words(variant, sample)}."
        )
    try:
        # where the library's is infinite too
        return numbers(result, variant.question.unit, infinite=True)
    except Unreadable as problem:
        words = f"At {inputs_in_words(variant, sample)}: {problem.message}"
        raise Unreadable(problem.kind, words) from None


def _call(function, signature, inputs):
    """By parameters' names if it has them, else in order. Raises Unreadable if not as many."""
    if not signature:
        return function(*inputs.values())
    if _binds(signature, **inputs):
        return function(**inputs)
    if not _binds(signature, *inputs.values()):
        raise Unreadable(
            "error",
            f"Your function {_takes(signature)}; {len(inputs)}"
            f" {'is' if len(inputs) == 1 else 'are'} asked: {', '.join(inputs)}.",
        )
    return function(*inputs.values())


def calls_of(variant, function):
    """Return the library calls that a function's results come from; the grader's stand-in knows."""
    if calls := getattr(function, "library", None):
        return calls
    signature = _signature(function)
    return origin(
        lambda **inputs: _call(function, signature, inputs), map(variant.inputs, variant.samples)
    )


def _takes(signature):
    kinds = [p.kind for p in signature.parameters.values()]
    keywords = [
        n
        for n, p in signature.parameters.items()
        if p.kind is p.KEYWORD_ONLY and p.default is p.empty
    ]
    takes = len(kinds) - len(keywords) - kinds.count(inspect.Parameter.VAR_KEYWORD)
    return (
        f"takes {takes} argument{'s' * (takes != 1)}"
        + f" in order, and {', '.join(keywords)} only by name" * bool(keywords)
    )


def _signature(function):
    """The signature of a function; None for one written in C that does not tell."""
    try:
        return inspect.signature(function)
    except (TypeError, ValueError):
        return None


def _binds(signature, *arguments, **keywords):
    try:
        signature.bind(*arguments, **keywords)
    except TypeError:
        return False
    return True


def inputs_in_words(variant, sample):
    return ", ".join(f"{n} = {p.text(sample[n])}" for n, p in variant.question.parameters.items())


def called_otherwise(variant, function, right):
    """(name, reason) of a function with own names that is right with its arguments in another
    order; or None. It is called again for this, never the grader's stand-in.
    """
    q = variant.question
    signature = _signature(function) if q.kind == "function" else None
    inputs = variant.inputs()
    if not signature or _binds(signature, **inputs) or not _binds(signature, *inputs.values()):
        return None
    width = len(right) // len(variant.samples)

    def agrees(order, number):
        inputs = variant.inputs(variant.samples[number])
        try:
            result = numbers(function(*(inputs[name] for name in order)), q.unit, infinite=True)
        except (Exception, SystemExit):  # which only shows that this is not the order
            return False
        return close(result, right[number * width : (number + 1) * width], q.tolerance)

    ways = (
        o for o in orders(q) if all(agrees(o, number) for number in range(len(variant.samples)))
    )
    return next((other_arguments(q, order) for order in ways), None)
