"""Runs inside the sandbox: the cells of one notebook in order, then the functions asked for, one
call at a time.

It judges nothing and knows no answer, so what the cells do to it harms only themselves. Messages
are lines of JSON: in: limits and paths; cells; then calls. Out: "started", what became of each
cell, answers, results of calls.
"""

import ast
import contextlib
import math
import numbers
import os
import resource
import signal
import sys
import types
from decimal import Decimal
from fractions import Fraction
from json import dumps, loads  # now, so that what a cell does to the module does not matter

LONGEST = 64  # values of an array or a list, which is more than any question asks
PATIENCE = 2  # calls of a function that may run out of time; then it is not called again
OUT_OF_TIME = {"kind": "error", "name": "OutOfTime"}
PRACTICE = "lightspeed_course.practice"


class OutOfTime(BaseException):
    """A cell or a call took too long."""


class Recorded:
    """What check() gives here: there is no verdict to be had."""

    correct, kind, name, message, value = None, "recorded", "", "", None


def main():
    inbox, outbox = os.fdopen(os.dup(0), "rb"), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(nothing, descriptor)
    os.close(nothing)
    setup, plan = loads(inbox.readline()), loads(inbox.readline())
    sys.path[:0] = setup["paths"]
    limit(setup["limits"])
    load_pint()

    def say(**message):
        left = dumps(message, allow_nan=False).encode() + b"\n"
        while left:
            left = left[os.write(outbox, left) :]

    say(started=True)
    functions = run(plan, setup["limits"]["cell"], say)
    say(done=True)
    for line in inbox:
        wanted, late = loads(line), 0
        for number, inputs in enumerate(wanted["inputs"]):
            value = OUT_OF_TIME
            if late < PATIENCE:
                value = result(functions.get(wanted["question"]), inputs, setup["limits"]["call"])
                late += value == OUT_OF_TIME
            say(question=wanted["question"], result=number, value=value)


def load_pint():
    """Without what it imports wherever it is installed: Dask asks /proc, which is not here; the
    others only take time.
    """
    sys.modules |= dict.fromkeys(("dask", "babel", "scipy"))
    import pint  # noqa: F401

    del sys.modules["scipy"]  # a submission may want it


def limit(limits):
    for what, most in (
        (resource.RLIMIT_AS, limits["memory"]),
        (resource.RLIMIT_CPU, math.ceil(limits["wall"])),
        (resource.RLIMIT_FSIZE, limits["disk"]),
        (resource.RLIMIT_NPROC, limits["processes"]),
        (resource.RLIMIT_NOFILE, 64),
        (resource.RLIMIT_CORE, 0),
    ):
        with contextlib.suppress(ValueError, OSError):  # a lower hard limit is there already
            resource.setrlimit(what, (most, most))


def run(plan, seconds, say):
    """Execute the cells, tell the answers after each, and give the functions to call, by
    question.
    """
    checked, ever_checked, functions = {}, set(), {}

    def check(id, answer=..., *_, **__):
        if not unanswered(answer):
            checked[str(id)[:200]] = answer
        return Recorded()

    def answered(question, answer, by):
        if by == "check" or question not in ever_checked:
            functions[question] = answer
        say(answer=question, by=by, value=within(seconds, lambda: encode(answer)))

    namespace = world(check)
    for number, cell in enumerate(plan["cells"]):
        checked.clear()
        before = {name: namespace.get(name) for _, name in cell["asks"]}
        error = within(seconds, lambda source=cell["source"]: exec(compiled(source), namespace))
        say(cell=number, error=error and error["name"])
        ever_checked.update(checked)
        for question, answer in list(checked.items()):
            answered(question, answer, "check")
        for question, name in cell["asks"]:
            value = namespace.get(name)
            # What an earlier cell left under this name is no answer to this one.
            if question not in checked and not unanswered(value) and value is not before[name]:
                answered(question, value, "cell")
    for question, name in plan["functions"].items():
        if question not in functions and callable(namespace.get(name)):
            answered(question, namespace[name], "name")
    return functions


def world(check):
    """The namespace of the cells, as if they ran in a notebook; of the course's verbs only those
    that draw do something.
    """
    import lightspeed_course

    real = lightspeed_course.__getattr__

    def nothing(*_, **__):
        return Recorded()

    def stand_in(name):
        if name.startswith("__"):
            raise AttributeError(name)
        return nothing

    def verb(name):
        try:
            return real(name)
        except ImportError:  # what is behind it lies outside the sandbox
            return nothing

    practice, main = types.ModuleType(PRACTICE), types.ModuleType("__main__")
    practice.check, practice.__getattr__, practice.__path__ = check, stand_in, []
    lightspeed_course.check, lightspeed_course.__getattr__ = check, verb
    sys.modules |= {PRACTICE: practice, "__main__": main}
    main.display, main.check = nothing, check
    return main.__dict__


def unanswered(answer):
    """Whether it is what the exercise came with: nothing, dots, or a function without a body."""
    code = getattr(answer, "__code__", None) if type(answer) is types.FunctionType else None
    empty = unanswered_function.__code__
    return (
        answer is None
        or answer is Ellipsis
        or (code and code.co_code[::2] == empty.co_code[::2] and code.co_consts[-1] is None)
    )


def unanswered_function(): ...


def within(seconds, action):
    """What the action gives, or how it failed, which is an encoded error."""

    def stop(*_):
        raise OutOfTime

    signal.signal(signal.SIGALRM, stop)
    # Again and again, so that an `except:` of the student's does not swallow the only one.
    signal.setitimer(signal.ITIMER_REAL, seconds, 0.5)
    try:
        try:
            return action()
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
    except BaseException as error:
        return {"kind": "error", "name": str(type(error).__name__)[:60]}


def compiled(source):
    """The code of a cell, without what only IPython understands."""
    if source.lstrip().startswith("%%"):
        source = source.lstrip().partition("\n")[2]
    try:
        tree = ast.parse(source)
    except SyntaxError:
        lines = source.splitlines()
        magic = [
            line.lstrip()[:1] in ("%", "!", "?") or line.rstrip().endswith("?") for line in lines
        ]
        tree = ast.parse("\n".join("" if m else line for m, line in zip(magic, lines, strict=True)))
    return compile(tree, "cell", "exec")


def result(function, inputs, seconds):
    if not callable(function):
        return {"kind": "none"}
    return within(seconds, lambda: encode(call(function, inputs)))


def call(function, inputs):
    """By the names of the parameters if it has them, else in their order."""
    import inspect

    try:
        inspect.signature(function).bind(**inputs)
    except (TypeError, ValueError):
        return function(*inputs.values())
    return function(**inputs)


def encode(answer, depth=0):
    """An answer as JSON: its kind and its value. What is not a plain value is named, never asked
    what it is worth.
    """
    kind = type(answer)
    if answer is None or answer is Ellipsis:
        return {"kind": "none"}
    if kind.__name__ in ("bool", "bool_") and kind.__module__ in ("builtins", "numpy"):
        return {"kind": "bool"}
    if issubclass(kind, str):
        return {"kind": "text", "value": str.__getitem__(answer, slice(500))}
    if issubclass(kind, (list, tuple)) and depth < 2 and len(answer) <= LONGEST:
        return {"kind": "list", "value": [encode(value, depth + 1) for value in answer]}
    if issubclass(kind, dict) and depth < 1 and len(answer) <= LONGEST:
        pairs = [(key, value) for key, value in dict.items(answer) if type(key) is str]
        return {
            "kind": "dict",
            "value": [[key[:100], encode(value, depth + 1)] for key, value in pairs],
        }
    if hasattr(kind, "_REGISTRY") or hasattr(kind, "to_base_units"):
        return quantity(answer, depth)
    if (
        isinstance(getattr(kind, "quantity", None), property)
        or kind.__module__ == "lightspeed.catalog"
    ):
        return (
            encode(answer.quantity, depth + 1)
            if depth < 2
            else {"kind": "other", "name": kind.__name__}
        )
    numpy = sys.modules.get("numpy")
    if (
        issubclass(kind, (int, float))
        or kind in (Fraction, Decimal)
        or (numpy and issubclass(kind, (numpy.integer, numpy.floating)))
    ):
        return number(answer)
    if issubclass(kind, numbers.Complex):
        return {"kind": "complex"}
    if numpy and issubclass(kind, numpy.ndarray) and answer.size <= LONGEST:
        values = numpy.asarray(answer).reshape(-1)
        if values.dtype.kind in "iuf":
            return {"kind": "array", "value": [number(v)["value"] for v in values.tolist()]}
        return {"kind": "other", "name": f"array of {values.dtype.name}"[:60]}
    return {"kind": "function" if callable(answer) else "other", "name": str(kind.__name__)[:60]}


def number(value):
    """By the base type's own methods, as `check` does it: a subclass may say that it is worth
    something else.
    """
    numpy = sys.modules.get("numpy")
    if numpy and isinstance(value, numpy.generic):
        value = numpy.generic.item(value)
    if isinstance(value, int):
        value = int.__pos__(value)
        return {"kind": "number", "value": value if value.bit_length() <= 1000 else "inf"}
    value = float.__pos__(value) if isinstance(value, float) else float(value)
    return {"kind": "number", "value": value if math.isfinite(value) else str(value)}


def quantity(answer, depth):
    """In base units, with their exponents: the grader parses no text of ours."""
    base = answer.to_base_units()
    units = {str(name): float(power) for name, power in dict(base._units).items()}
    # The plus makes a plain number of a law's result, which would say its unit a second time.
    return {"kind": "quantity", "value": encode(+base.magnitude, depth + 1), "units": units}


if __name__ == "__main__":
    main()
