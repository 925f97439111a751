"""From the text of a question to the question: its Python, compiled, and the files that hold it."""

import ast
import importlib
import importlib.util
import math
import pkgutil
import re
import types
from dataclasses import astuple
from functools import cache
from pathlib import Path
from typing import Any

import lightspeed
from lightspeed.catalog import accelerator, find, link, number
from lightspeed_course.practice import derivation, parameters
from lightspeed_course.practice.amounts import nice, powers_of_two
from lightspeed_course.practice.derivation import FUNCTIONS, Derivation, Step, measured
from lightspeed_course.practice.question_model import Misconception, Parameter, Question
from lightspeed_course.practice.question_text import QuestionError, Text, read
from lightspeed_course.practice.unit_table import UnknownUnit, known, unit
from lightspeed_show.format import plain, si

CONTENT = "lightspeed_course.content"  # what is in it is found by its name
WORDS = re.compile(r"\{\{((?:[^{}]|\{[^{}]*\})+?)\}\}")
NAMED = re.compile(r"(?:(\w+)\s*=(?!=))?")


# --- Python --------------------------------------------------------------------------------------


class _Python:
    """The Python of one question, whose parameters in SI are the arguments of its functions."""

    def __init__(self, text, names, file, codes):
        self.text, self.names, self.file, self.codes = text, names, file, codes
        self.arguments = tuple(text.parameters)
        self.results, self.last = (
            {},
            None,
        )  # name -> the number of its step; that of the last formula
        for n, (words, lines, line) in enumerate(text.steps):
            if words and lines:
                [name] = NAMED.findall(lines[0])[:1]
                self.last = n
                takers = {
                    "a parameter of this question": self.arguments,
                    "a step before": self.results,
                    "a verb that every formula may call": _common(),
                    "a module of the library": _modules(),
                    f"the Python beside this file, {Path(file).stem}.py": names,
                }
                if name in {*self.arguments, *self.results, *names}:
                    whose = next(whose for whose, there in takers.items() if name in there)
                    self.fail(line, f"the name {name!r} is taken by {whose}: expected is another")
                self.results |= {name: n} if name else {}

    def fail(self, line, reason):
        raise QuestionError(self.file, line, reason) from None

    def parse(self, python, line):
        try:
            return ast.parse(python.strip()).body
        except SyntaxError as error:
            self.fail(line, f"{python!r} is not Python: {error.msg}")

    def named(self, python, line):
        """(name or "", tree) of a line of a step."""
        match self.parse(python, line):
            case [ast.Assign([ast.Name(name)], tree)]:
                return name, tree
            case [ast.Expr(tree)]:
                return "", tree
        self.fail(line, f"{python!r}: expected is a formula, or name = formula")

    def function(self, python, line, arguments=None):
        """The function of the parameters that Python, or its tree, is."""
        arguments = self.arguments if arguments is None else arguments
        source = f"lambda {', '.join(arguments)}: ({self.expanded(python, line)}\n)"
        code = self.codes.get(source)
        if not code:
            try:
                whole = compile(source, self.file, "eval")
            except SyntaxError as error:
                self.fail(line, f"{python!r} is not Python: {error.msg}")
            code = next(part for part in whole.co_consts if isinstance(part, types.CodeType))
            self.codes[source] = code
        for name in _named_in(code):
            if name not in self.names and name in _modules():
                self.names[name] = importlib.import_module(f"lightspeed.{name}")
        return types.FunctionType(code.replace(co_firstlineno=line), self.names, self.text.id)

    def expanded(self, python, line):
        """Python in which results stand for what they are worked out from."""
        if isinstance(python, str):
            if self.results.keys().isdisjoint(re.findall(r"\w+", python)):
                return python
            python = self.named(python, line)[1]
        return ast.unparse(_Inserted(self).visit(python))

    def value(self, python, line):
        """What Python gives that knows no parameters."""
        try:
            return self.function(python, line, ())()
        except QuestionError:
            raise
        except Exception as error:
            self.fail(line, f"{python}: {error}")

    def template(self, text, line, arguments=None):
        """A function that writes a text: braces are worked out, but parameters stay to fill in."""
        parts = WORDS.split(text)
        if all(part.strip() in self.arguments for part in parts[1::2]):
            return lambda **_: text
        for n, part in enumerate(parts):
            stays = n % 2 and part.strip() in self.arguments
            worked = n % 2 and not stays
            parts[n] = (
                f"f'''{{{part}}}'''" if worked else repr(f"{{{{{part}}}}}" if stays else part)
            )
        return self.function(" ".join(parts), line, arguments)

    def words(self, text, line):
        return self.template(text, line, ())()

    def formula(self, n):
        """(name, formula, law or None, {name: tree} of the other lines) of a step."""
        _, (first, *others), line = self.text.steps[n]
        name, tree = self.named(first, line)
        law = tree.comparators[0] if isinstance(tree, ast.Compare) else None
        return name, tree.left if law else tree, law, dict(self.named(o, line) for o in others)

    def result(self, n):
        """What a step comes to, as a tree: its law, or its formula on plain numbers."""
        _, formula, law, inputs = self.formula(n)
        if law:
            return _Inserted(self).visit(self.in_unit(law)[0])
        inside = {name: self.in_unit(tree)[0] for name, tree in inputs.items()}
        return _Inserted(self).visit(_Inserted(inside).visit(_Plain().visit(formula)))

    def in_unit(self, tree):
        """(tree, unit): x[byte] is x in byte."""
        if isinstance(tree, ast.Subscript) and (names := _names(tree.slice)):
            there = {*self.arguments, *self.results, *self.names}
            if all(name not in there or known(name) for name in names):
                return tree.value, ast.unparse(tree.slice).replace(" ", "").replace("percent", "%")
        return tree, ""

    def measured(self, tree, line):
        """(function, unit or "", name that it is or "")."""
        tree, of = self.in_unit(tree)
        return self.function(tree, line), of, "" if of else getattr(tree, "id", "")


class _Inserted(ast.NodeTransformer):
    """Puts in place of the name of a result what it is worked out from."""

    def __init__(self, python):
        self.python = python

    def visit_Name(self, node):
        if not isinstance(node.ctx, ast.Load):
            return node
        if isinstance(self.python, dict):
            return self.python.get(node.id, node)
        n = self.python.results.get(node.id)
        return node if n is None else self.python.result(n)


class _Plain(ast.NodeTransformer):
    """2 for 2[FLOP]."""

    def visit_Subscript(self, node):
        return node.value


def _names(tree):
    return {n.id for n in ast.walk(tree) if isinstance(n, ast.Name)}


def _named_in(code):
    inside = (part for part in code.co_consts if isinstance(part, types.CodeType))
    return {*code.co_names}.union(*map(_named_in, inside))


@cache
def _modules():
    return {module.name for module in pkgutil.iter_modules(lightspeed.__path__)}


# --- questions -----------------------------------------------------------------------------------


def built(text, names, file, codes):
    """The Question of a text; `names`: what its Python knows; `codes`: what was compiled."""
    python = _Python(text, names, file, codes)

    def fact(key, default=""):
        return text.facts.get(key, (default, text.line))

    def listed(key):
        return tuple(re.findall(r"[\w.]+", fact(key)[0]))

    given = {}
    for name, (source, line) in text.parameters.items():
        given[name] = python.value(source, line)
        if not isinstance(given[name], Parameter):
            python.fail(line, f"{name} = {source}: expected is a parameter, as given(2, 1, 2, 8)")
    units = [fact("unit"), *((p.unit, text.parameters[n][1]) for n, p in given.items())]
    for name, line in units:
        try:
            unit(name)
        except UnknownUnit as error:
            python.fail(line, f"{error}; expected is one of the course, such as GB/s, or none")
    if "answer" not in text.facts and python.last is None:
        python.fail(text.line, "no answer: expected is a formula in the last step, or - answer:")
    answer = text.facts.get("answer") or (python.result(python.last), text.line)
    tolerance, line = fact("tolerance", "2 %")
    share: Any = re.fullmatch(r"([\d.e-]+)( ?%)?", tolerance)
    if not share:
        python.fail(line, f"tolerance: {tolerance}: expected is a share, such as 2 % or 0.02")
    kind = "choice" if text.options else "array" if "names" in text.facts else "number"
    try:
        return Question(
            id=text.id,
            chapter=fact("chapter")[0],
            level=fact("level")[0],
            prompt=python.words(text.prompt, text.line),
            expected=python.function(*answer),
            solution=_solution(python, given),
            misconceptions=tuple(
                Misconception(name, python.function(wrong, at), python.words(hint, at), slight)
                for name, slight, wrong, hint, at in text.misconceptions
            ),
            parameters=given,
            unit=fact("unit")[0],
            tolerance=float(share[1]) / (100 if share[2] else 1),
            kind=fact("kind", kind)[0],
            options={key: python.words(said, text.line) for key, said in text.options.items()},
            names=listed("names"),
            edges=tuple(python.value(*fact("edges", "()"))),
            valid=python.function(*fact("valid")) if "valid" in text.facts else None,
            smaller=fact("smaller")[0],
            rests=listed("rests"),
            why=python.words(*fact("why")),
            holds={words: python.function(held, at) for words, held, at in text.holds},
        )
    except QuestionError:
        raise
    except ValueError as error:
        python.fail(text.line, error)


def _solution(python, parameters):
    """The derivation, a function of the parameters, compiled when it is first asked for."""

    @cache
    def compiled():
        after = python.template(python.text.after, python.text.line)
        return [_compiled(python, n) for n in range(len(python.text.steps))], after

    def solution(**given):
        lines, after = compiled()
        measures = {n: (v, _si(parameters[n].unit)) for n, v in given.items()}
        done = []
        for add in lines:
            done += add(given, measures)
        return Derivation(tuple(done), after(**given))

    return solution


def _compiled(python, n):
    """A function of the parameters, and of what names stand for, that gives the steps of a line."""
    words, lines, line = python.text.steps[n]
    if not words:
        several = python.function(" ".join(lines), line)
        return lambda given, _: [s] if isinstance(s := several(**given), Step) else s
    words = python.template(words, line)
    if not lines:
        return lambda given, _: [Step(words(**given))]
    name, formula, law, others = python.formula(n)
    written = ast.unparse(formula)
    others = {other: python.measured(tree, line) for other, tree in others.items()}
    law = python.measured(law, line) if law else None
    for used in _names(_Plain().visit(formula)) - {*FUNCTIONS, *others, *python.arguments}:
        if python.results.get(used, n) < n:
            continue
        if used not in python.names:
            expected = "expected is a parameter, the result of a step before, or below it a line"
            python.fail(line, f"{written}: there is no {used!r}: {expected} `{used} = ...`")
        others[used] = python.measured(ast.Name(used, ast.Load()), line)

    def add(given, measures):
        inputs = {name: measures[name] for name in _names(formula) if name in measures}
        for name_, (value, of, same) in others.items():
            inputs[name_] = measures[same] if same in measures else _in(value(**given), of)
        gives = law and _in(law[0](**given), law[1])
        try:
            if law and not measured(gives)[1]:
                gives = gives, Step("", written, None, inputs).result[1]
            made = Step(words(**given), written, gives, inputs)
        except ValueError as error:
            python.fail(line, error)
        if name:
            measures[name] = made.result[:2]
        return [made]

    return add


def _in(value, of):
    return (value, of) if of else value


@cache
def _si(of):
    """The unit of the library that a parameter's unit is counted in: byte/s for GB/s."""
    return re.sub(r"[^\W\d]+", lambda m: _base(m[0]), of)


def _base(word):
    bases = ("byte", "s", "m", "FLOP", "OP", "Hz", "W", "J")
    return next((b for b in bases if unit(b).dimensions == unit(word).dimensions), word)


# --- files ---------------------------------------------------------------------------------------


def of_file(file):
    """(text, question) of each of a file of one's own; its Python stands beside it."""
    import runpy

    beside = file.with_suffix(".py")
    names = _common() | (runpy.run_path(str(beside)) if beside.is_file() else {})
    texts = read(file.read_text("utf-8"), file.name)
    return [(text, built(text, names, file.name, {})) for text in texts]


def of_topic(topic, codes=None):
    """The questions of one of the course's topics; the site has them compiled."""
    names, ready = names_of(topic), f"{CONTENT}.{topic}_questions"
    if _there(ready):
        made = importlib.import_module(ready)
        return [built(Text(*each), names, f"{topic}.md", made.CODES) for each in made.TEXTS]
    codes = {} if codes is None else codes
    return [built(text, names, f"{topic}.md", codes) for text in texts(topic)]


def names_of(topic):
    """What the Python of a topic knows beside a question's parameters and results."""
    beside = f"{CONTENT}.{topic}"
    return _common() | (vars(importlib.import_module(beside)) if _there(beside) else {})


def texts(topic):
    """What the file of a topic says."""
    file = Path(__file__).parents[1] / "content" / f"{topic}.md"
    return read(file.read_text("utf-8"), file.name)


def compiled(topic):
    """A module, as text, that has a topic read and compiled, for where that takes long."""
    codes: dict[str, object] = {}
    said, names = texts(topic), names_of(topic)
    for text in said:
        built(text, names, f"{topic}.md", codes)
        python = _Python(text, names, f"{topic}.md", codes)
        if "answer" not in text.facts:
            text.facts["answer"] = (python.expanded(python.result(python.last), 0), text.line)
        text.misconceptions = [
            (name, slight, python.expanded(wrong, at), hint, at)
            for name, slight, wrong, hint, at in text.misconceptions
        ]
        text.holds, text.right, text.wrong = {}, [], []
    rows = [f"    {source!r}: ({source}).__code__," for source in codes]
    return "\n".join([f"TEXTS = {[astuple(text) for text in said]!r}", "CODES = {", *rows, "}\n"])


def _there(module):
    return importlib.util.find_spec(module) is not None


@cache
def _common():
    """What the Python of every question knows."""
    given = ("given", "plain", "rate", "counted", "named", "chip")
    return FUNCTIONS | {name: getattr(parameters, name) for name in given} | {
        "Parameter": Parameter, "accelerator": accelerator, "derivation": derivation.derivation,
        "find": find, "link": link, "math": math, "nice": nice, "number": number,
        "powers_of_two": powers_of_two, "si": si, "step": derivation.step, "written": plain,
    }  # fmt: skip
