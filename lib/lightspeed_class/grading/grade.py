"""One submission -> scores, each with its diagnosis, and a record from which the same scores can be
made again.

An answer is found by the id in `check("id", answer)`, wherever that call is: the last one whose
answer is not `...` counts. Where there is no such call any more, the variable that it had is taken
after the cell with the exercise's id; a function is also found by its name. The program that runs
the cells tells only values; they are judged here. Functions are tried on the published inputs and
on inputs that are drawn from a secret, for this student and submission, once those were right.
"""

from __future__ import annotations

import hashlib
import json
import math
import platform
import re
from dataclasses import asdict, dataclass, field, replace
from functools import cache
from importlib.metadata import version

import numpy as np

from lightspeed_class.grading.answer_text import came, usual
from lightspeed_class.grading.sandbox import (
    COURSE,
    NOT_STARTED,
    WAITING,
    Ended,
    Limits,
    NoSandbox,
    Sandbox,
)
from lightspeed_class.intake.notebooks import Refused, code_cells, homes
from lightspeed_class.posed import posed
from lightspeed_course.practice.check import diagnose
from lightspeed_course.practice.variants import draw, seeded

DRAWS = 20
ANSWERS_IN = 5  # seconds in which a call that was stopped is told
BY_HAND = "by hand"  # the kind of a score that is none yet: people mark the question
PACKAGES = ("lightspeed", "lightspeed_course", "lightspeed_class")
STATUS = {
    "ok": "",
    "time": "It ran longer than it may; cells after that were not run.",
    "memory": "It used more memory than it may; cells after that were not run.",
    "output": "It told far more than any answer needs; cells after that were not run.",
    "protocol": "It wrote into the channel of the grader; what came after that was not read.",
    "exit": "The program ended itself or was ended by a limit; cells after that were not run.",
}
NOTED = {
    "input": "asked for input, which nobody types while notebooks are graded; it stopped there.",
    "install": "wanted to install something, which was skipped: the course's packages are there.",
    "magic": "has `{}`, which does not exist where notebooks are graded; the rest of it ran.",
}
MOST_NOTES = 20
UNREACHED = "Not reached: the program ended, or was ended, before the end of this cell."


@dataclass(frozen=True)
class Score:
    """What an answer earned. `kind`, `name` and `message` are the diagnosis; `found`: check,
    cell, name or nothing.
    """

    question: str
    points: float
    out_of: float
    kind: str
    name: str = ""
    message: str = ""
    given: str = ""
    found: str = ""
    share: float | None = None  # of the points, where it is not all or nothing


@dataclass(frozen=True)
class Graded:
    """All that became of a submission. `status` is ok, refused or why the program ended; `notes`
    are for the student; `late`: something ran out of time.
    """

    status: str
    scores: tuple[Score, ...]
    notes: tuple[str, ...]
    record: dict
    late: bool = field(default=False, compare=False)

    @property
    def points(self):
        return math.fsum(s.points for s in self.scores)

    @property
    def digest(self):
        """Equal for equal results."""
        return _hash([self.status, [asdict(s) for s in self.scores]])


def grade(content, assignment, seed=None, secret="", limits=None, isolated=True):
    """Grade the bytes of a notebook for the student whose variants `seed` draws. Raises
    NoSandbox, but nothing for what is in it.
    """
    limits = limits or Limits()
    record = {
        "submission": hashlib.sha256(content).hexdigest(),
        "assignment": identity(assignment),
        "seed": seed,
        "secret": _hash(secret),
        "grader": grader(),
        "environment": environment(),
        "limits": asdict(limits),
        "isolation": "",
    }
    try:
        cells = code_cells(content)
    except Refused as refusal:
        return refused(str(refusal), assignment, record)
    with Sandbox(limits, isolated) as box:
        record["isolation"] = box.isolation
        run = _Run(box, assignment, limits, cells)
        asked = {id: posed(id, seed, secret) for id in assignment.judged}
        verdicts = {id: _published(run, variant) for id, variant in asked.items()}
        # All that is told of the program is known here. From now on it knows hidden inputs, and
        # nothing that it says is told to anybody but as right or not.
        status, notes = run.status, run.notes()
        drawn = f"{secret}\n{seed}\n{record['submission']}"
        verdicts |= {id: _held(run, asked[id], drawn, v) for id, v in verdicts.items()}
    scores = tuple(
        _score(run, id, out_of, verdicts[id]) if id in verdicts else Score(id, 0.0, out_of, BY_HAND)
        for id, out_of in assignment.points.items()
    )
    return Graded(status, scores, notes, record, run.late)


def repriced(graded, assignment):
    """The same verdicts for the points that are given now; nothing is run again."""
    scores = tuple(
        replace(s, points=now * _earned(s), out_of=now)
        for s in graded.scores
        for now in [assignment.points[s.question]]
    )
    return replace(
        graded, scores=scores, record=graded.record | {"assignment": identity(assignment)}
    )


def _earned(score):
    """The share of its points, whatever they were."""
    return bool(score.points or score.kind == "right") if score.share is None else score.share


def identity(assignment):
    """A hash of what is asked, and for how many points."""
    return _hash([assignment.name, assignment.cells, assignment.points])


def refused(reason, assignment, record=None):
    """No points, and why."""
    scores = (Score(q, 0.0, p, "refused", message=reason) for q, p in assignment.points.items())
    return Graded("refused", tuple(scores), (reason,), record or {"isolation": "not run"})


class _Run:
    """The program at work: the answers it told, and calls of its functions."""

    def __init__(self, box, assignment, limits, cells):
        self.box, self.limits = box, limits
        self.status, self.answers, self.told, self.ran, self.late = "ok", {}, [], set(), False
        self.cells, self.called = len(cells), {}
        self.homes = {q: set(homes(q, assignment, cells)) for q in assignment.judged}
        judged = set(assignment.judged)
        asks = {id: [p for p in pairs if p[0] in judged] for id, pairs in assignment.cells.items()}
        plan = [{"source": source, "asks": asks.get(id, ())} for id, source in cells]
        try:
            box.send({"cells": plan, "functions": assignment.functions})
            started = box.receive() == {"started": True}
        except Ended:
            started = False
        if not started:  # nothing of the student's has run: it is not their fault
            raise NoSandbox(NOT_STARTED)
        box.begin()
        try:
            while "done" not in (message := box.receive()):
                self._note(message, len(cells), judged)
        except Ended as end:
            self._over(end)

    def _over(self, end):
        self.status = end.reason
        self.late |= end.reason == "time"

    def _note(self, message, cells, asked):
        id, value, number = message.get("answer"), message.get("value"), message.get("cell")
        if (
            isinstance(id, str)
            and id in asked
            and (by := message.get("by")) in ("check", "cell", "name")
        ):
            if by == "check" or self.answers.get(id, ("", None))[0] != "check":
                self.answers[id] = by, value
        elif type(number) is int and 0 <= number < cells:
            self.ran.add(number)
            noted = message.get("noted")
            for what in noted if isinstance(noted, list) else ():
                if _is_pair(what) and what[0] in NOTED:
                    self.told.append((number, NOTED[what[0]].format(f"%{_name(what[1])}")))
            if (name := message.get("error")) and name != "AskedForInput":
                self.told.append((number, f"stopped with {_name(name)}."))
                self.late |= name == "OutOfTime"

    def notes(self):
        """What the student is told of the run as a whole."""
        told = [f"Code cell {number + 1} {what}" for number, what in dict.fromkeys(self.told)]
        if self.status != "ok":
            at = max(self.ran, default=-1) + 2
            where = f" It was at code cell {at}." if at <= self.cells else ""
            told = [*told[:MOST_NOTES], STATUS[self.status] + where]
        return tuple(told[: MOST_NOTES + 1])

    def reached(self, id):
        """Whether a cell of this question ran to its end, or has none."""
        return not self.homes[id] or bool(self.homes[id] & self.ran)

    def results(self, id, inputs):
        """The encoded results of the student's function so far, by input: the last one counts, so
        that a function must hold to what it says.
        """
        found, results = [], self.called.setdefault(id, {})
        try:
            if self.status == "ok":
                self.box.send({"question": id, "inputs": inputs})
            while self.status == "ok" and len(found) < len(inputs):
                # inside, a call is stopped after WAITING times its limit at the latest
                message = self.box.receive(WAITING * self.limits.call + ANSWERS_IN)
                if message is None:
                    raise Ended("time")
                # What else it says is no result, and has a limit.
                if message.get("question") == id and message.get("result") == len(found):
                    found.append(message.get("value"))
        except Ended as end:
            self._over(end)
        self.late |= {"kind": "error", "name": "OutOfTime"} in found
        results |= zip(map(_key, inputs), found, strict=False)
        return results


def _published(run, variant):
    """The verdict on an answer, that of a function on the published inputs."""
    _, value = run.answers.get(variant.question.id, ("", {"kind": "none"}))
    if _is_function(variant, value):
        return diagnose(variant, _replay(run, variant))
    answer = decode(value)
    verdict = diagnose(variant, answer)
    # no number was read: a person may want to see what came
    if verdict.kind in ("type", "dimension"):
        verdict = replace(verdict, given=came(answer, variant.question.unit))
    return verdict


def _held(run, variant, drawn, verdict):
    """The verdict on a function that is right so far after hidden inputs, of which the student is
    told nothing.
    """
    if not verdict.correct or not _is_function(variant, run.answers[variant.question.id][1]):
        return verdict
    other = hidden(variant, drawn)
    if diagnose(other, _replay(run, other)).correct:
        return replace(
            verdict,
            message="Your function agrees with the library on the published inputs and on others.",
        )
    told = (
        "Your function agrees with the library on the published inputs, but not on others of the"
        " same kind. Does it hold in general?"
    )
    return replace(verdict, correct=False, kind="hidden", message=told)


def _is_function(variant, value):
    return (
        variant.question.kind == "function"
        and isinstance(value, dict)
        and value.get("kind") == "function"
    )


def _replay(run, variant):
    """The student's function, called for all samples of the variant now, as `diagnose` calls it."""
    results = run.results(variant.question.id, [variant.inputs(s) for s in variant.samples])

    def replay(**inputs):
        result = results.get(_key(inputs), {"kind": "error", "name": "Ended"})
        if isinstance(result, dict) and result.get("kind") == "error":
            raise type(_name(result.get("name")), (Exception,), {})
        return decode(result)

    return replay


def _score(run, id, out_of, verdict):
    by, message = run.answers.get(id, ("", None))[0], verdict.message
    if not by:
        message = (
            f'Not answered: no `check("{id}", ...)` that ran had an answer, and neither had the'
            " cell of the exercise."
            if run.reached(id)
            else UNREACHED
        )
    share = float(verdict.correct) if verdict.share is None else verdict.share
    return Score(
        id, out_of * share, out_of, verdict.kind, verdict.name, message, verdict.given, by,
        verdict.share,
    )  # fmt: skip


def _key(inputs):
    return json.dumps(inputs, sort_keys=True)


def hidden(variant, secret):
    """The same function question on other inputs: every choice of every parameter, then values
    between them too.
    """
    q, rng = variant.question, seeded(variant.question.id, f"hidden\n{secret}")
    decks = {n: sorted(p.choices, key=lambda _: rng.random()) for n, p in q.parameters.items()}
    samples = []
    for turn in range(20 * DRAWS):
        sample = {
            n: _hidden_value(p, decks[n][turn : turn + 1], rng) for n, p in q.parameters.items()
        }
        if _has_result(variant, sample):
            samples.append(sample)
        if len(samples) == DRAWS:
            break
    samples += [{**variant.values, **edge} for edge in q.edges]
    other = replace(variant)
    vars(other)["samples"] = samples  # takes the place of the cached property
    return other


def _hidden_value(parameter, dealt, rng):
    """The choice dealt, so that every regime is met; after that any of them or, if they are
    real, one in their range.
    """
    if dealt:
        return dealt[0]
    choices = parameter.choices
    if choices and rng.random() < 0.5 and all(type(c) is float and c > 0 for c in choices):
        return min(choices) * (max(choices) / min(choices)) ** rng.random()
    return draw(rng, parameter)


def _has_result(variant, sample):
    q, inputs = variant.question, variant.inputs(sample)
    try:
        return (not q.valid or q.valid(**inputs)) and not np.isnan(
            variant._result(q.expected, sample)
        ).any()
    except (ArithmeticError, ValueError):
        return False


def decode(value, depth=0):
    """A plain value from an encoded answer, which is hostile: anything out of the ordinary is an
    object without value.
    """
    kind = value.get("kind") if isinstance(value, dict) else None
    if kind == "none":
        return None
    if kind == "bool":
        return True
    if kind == "text" and isinstance(value.get("value"), str):
        return value["value"][:500]
    if kind == "complex":
        return 1j
    if kind == "function":
        return len  # any function will do: it is asked for a number
    if kind == "number":
        return _number(value.get("value"))
    if kind == "array" and isinstance(value.get("value"), list):
        return np.array([_number(v) for v in value["value"]], float)
    if kind == "list" and depth < 3 and isinstance(value.get("value"), list):
        return [decode(v, depth + 1) for v in value["value"]]
    if kind == "dict" and depth < 1 and isinstance(value.get("value"), list):
        return {key: decode(v, depth + 1) for key, v in filter(_is_pair, value["value"])}
    if kind == "quantity" and depth < 3:
        return _quantity(decode(value.get("value"), depth + 1), value.get("units"))
    return type(_name(value.get("name") if kind == "other" or kind == "error" else None), (), {})()


def _is_pair(value):
    return isinstance(value, list) and len(value) == 2 and isinstance(value[0], str)


def _number(value):
    if type(value) in (int, float):
        return value if abs(value) < 1e308 else math.inf if value > 0 else -math.inf
    return float(value) if value in ("inf", "-inf", "nan") else math.nan


def _quantity(magnitude, units):
    from lightspeed.units import ureg

    known = (
        isinstance(units, dict) and len(units) <= 8 and type(magnitude) in (int, float, np.ndarray)
    )
    if not known or not all(
        u in _base_units() and type(p) is float and abs(p) <= 12 for u, p in units.items()
    ):
        return object()
    magnitude, units = usual(magnitude, units)
    return ureg.Quantity(magnitude, ureg.UnitsContainer(units))


@cache
def _base_units():
    from lightspeed.units import ureg

    return frozenset(
        name
        for name in dir(ureg)
        if not name.startswith("_") and name in ureg._units and ureg._units[name].is_base
    )


def _name(text):
    """A name that the student's program gave, fit to be shown."""
    return (
        text
        if isinstance(text, str) and re.fullmatch(r"[A-Za-z_]\w{0,59}", text, re.ASCII)
        else "Unnamed"
    )


@cache
def grader():
    """A hash of all code that has a say in a score."""
    home = COURSE.parent
    files = [f for package in PACKAGES for f in sorted((home / package).rglob("*"))]
    files = [
        f for f in files if f.suffix in (".py", ".toml", ".txt") and "_delivered" not in f.parts
    ]
    return _hash(
        [[str(f.relative_to(home)), hashlib.sha256(f.read_bytes()).hexdigest()] for f in files]
    )


@cache
def environment():
    """What else a score may depend on."""
    packages = {name: version(name) for name in ("ipython", "numpy", "pint", "scipy")}
    return {
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
        **packages,
    }


def _hash(value):
    return hashlib.sha256(json.dumps(value, sort_keys=True, ensure_ascii=True).encode()).hexdigest()
