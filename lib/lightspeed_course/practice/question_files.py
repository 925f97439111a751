"""From the text of a question to the question: its Python, compiled, and the files that hold it."""

import ast
import copy
import importlib
import importlib.util
import pkgutil
import re
from dataclasses import astuple, replace
from functools import cache
from pathlib import Path
from typing import Any

import lightspeed
from lightspeed_course.practice.derivation import FUNCTIONS, Derivation, Step, measured
from lightspeed_course.practice.parameters import VERBS
from lightspeed_course.practice.question_model import Misconception, Parameter, Question
from lightspeed_course.practice.question_text import Faults, QuestionError, Text, parts, read
from lightspeed_course.practice.unit_table import UnknownUnit, base_unit, known, unit

CONTENT = "lightspeed_course.content"  # what is in it is found by its name
BRACES = re.compile(r"\{\{((?:[^{}]|\{[^{}]*\})+?)\}\}")
NAMED: Any = re.compile(r"(?:(\w+)\s*=(?!=))?\s*(.*)")


class _Python:
    """The Python of one question. A formula knows the parameters in SI, what steps come to, the
    names beside the file, and the library's modules.
    """

    def __init__(self, text, names, file):
        self.text, self.names, self.file = text, names, file
        self.arguments, self.results = tuple(text.parameters), {}  # name -> the number of its step
        owners = dict.fromkeys(names, f"the Python beside this file, {Path(file).stem}.py")
        owners |= dict.fromkeys(names.keys() & _modules(), "a module of the library")
        owners |= dict.fromkeys(VERBS, "a function that every formula can call")
        owners |= dict.fromkeys(self.arguments, "a parameter of this question")
        for n, (words, lines, line) in enumerate(text.steps):
            if words and lines and (name := NAMED.match(lines[0])[1]):
                if name in owners:
                    whose = f"the name {name!r} already means {owners[name]}"
                    self.fail(line, f"{whose}; choose another name")
                owners[name], self.results[name] = "a step before", n

    def fail(self, line, reason):
        raise QuestionError(self.file, (line, str(reason))) from None

    def function(self, python, line, own=None):
        """The function of the parameters that Python, or its tree, is; compiled at its first call.
        `own`: name -> the function that gives what it stands for in this formula alone.
        """

        @cache
        def compiled():
            try:
                tree = _tree(python, line) if isinstance(python, str) else python
                code = compile(ast.Expression(tree), self.file, "eval")
            except SyntaxError as error:
                self.fail(line, f"{python!r} is not Python: {error.msg}")
            used = _names(tree)
            scope = {name: self.names[name] for name in used & self.names.keys()}
            for name in used & _modules() - {*self.names, *self.results, *self.arguments}:
                scope[name] = importlib.import_module(f"lightspeed.{name}")
            results = {name: self.result(n) for name, n in self.results.items() if name in used}
            results |= {name: work for name, work in (own or {}).items() if name in used}
            return code, scope, results

        def function(*values, **inputs):
            inputs |= zip(self.arguments, values, strict=False)
            code, scope, results = compiled()
            return eval(
                code, scope | inputs | {name: work(**inputs) for name, work in results.items()}
            )

        return function

    def value(self, python, line):
        """What Python gives that knows no parameters."""
        try:
            return self.function(python, line)()
        except QuestionError:
            raise
        except Exception as error:
            self.fail(line, f"{python}: {error}")

    def template(self, text, line):
        """A function that writes a text: braces are worked out, but parameters stay to fill in."""
        formulas = {braces: self.function(braces, line) for braces in self.braces(text)}

        def written(**inputs):
            return BRACES.sub(
                lambda m: formulas[m[0]](**inputs) if m[0] in formulas else m[0], text
            )

        return written

    def words(self, text, line):
        """The same of what knows no parameters: a text, worked out at once."""
        values = {braces: self.value(braces, line) for braces in self.braces(text)}
        return BRACES.sub(lambda m: values.get(m[0], m[0]), text)

    def braces(self, text):
        """Those that are worked out."""
        return {m[0] for m in BRACES.finditer(text) if m[1].strip() not in self.arguments}

    def formula(self, n):
        """(name or "", formula, law or None, {name: tree} of the other lines) of a step."""
        _, lines, line = self.text.steps[n]
        pairs = [NAMED.match(each).groups() for each in lines]
        (name, formula), *others = ((name or "", _tree(code, line)) for name, code in pairs)
        law = None
        if isinstance(formula, ast.Compare):
            law, formula = formula.comparators[0], formula.left
        inputs = dict(others)
        before = {result for result, at in self.results.items() if at < n}
        for used in sorted(_names(_plain(formula)) - {*inputs, *self.arguments, *before}):
            if used not in self.names:
                expected = "a parameter, the result of a step before, or below it a line"
                missing = f"{ast.unparse(formula)}: there is no {used!r}"
                self.fail(line, f"{missing}: expected {expected} `{used} = ...`")
        return name, formula, law, inputs

    def result(self, n):
        """A function that gives what a step comes to: its law, or its formula on plain numbers."""
        line = self.text.steps[n][2]
        _, formula, law, inputs = self.formula(n)
        if law:
            return self.measured(law, line)[0]
        own = {name: self.measured(tree, line)[0] for name, tree in inputs.items()}
        return self.function(_plain(formula), line, own)

    def measured(self, tree, line):
        """(function, unit or "", name that it is or ""): x[byte] is x in byte."""
        if isinstance(tree, ast.Subscript) and (names := _names(tree.slice)):
            there = {*self.arguments, *self.results, *self.names}
            if all(name not in there or known(name) for name in names):
                of = ast.unparse(tree.slice).replace(" ", "").replace("percent", "%")
                return self.function(tree.value, line), of, ""
        return self.function(tree, line), "", getattr(tree, "id", "")


class _Plain(ast.NodeTransformer):
    def visit_Subscript(self, node):
        return node.value


def _plain(tree):
    """The same formula with 2 for 2[FLOP]."""
    return _Plain().visit(copy.deepcopy(tree))


def _tree(python, line):
    """The tree of a formula on this line of the file, or of the text that {{braces}} write."""
    code = f"f'''{python[1:-1]}'''" if python.startswith("{{") else python
    return ast.increment_lineno(ast.parse(code, mode="eval"), line - 1).body


def _names(tree):
    return {n.id for n in ast.walk(tree) if isinstance(n, ast.Name)}


@cache
def _modules():
    return {module.name for module in pkgutil.iter_modules(lightspeed.__path__)}


# --- questions -----------------------------------------------------------------------------------


def _share(python, text, line):
    try:
        return float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
    except ValueError:
        python.fail(line, f"tolerance: {text}: expected a share, such as 2 % or 0.02")


def _edges(python, text, line):
    edges = python.value(text, line)
    if not (isinstance(edges, tuple) and all(isinstance(edge, dict) for edge in edges)):
        python.fail(line, f"edges: {text}: expected are values by name, such as ({{'n': 0}},)")
    return edges


# Fact -> what it is for a Question, of the question's Python, the fact's text and line.
READ: Any = {
    **dict.fromkeys(("chapter", "level", "kind", "unit", "smaller"), lambda _, text, line: text),
    **dict.fromkeys(("names", "rests"), lambda _, text, line: tuple(re.findall(r"[\w.]+", text))),
    **{"valid": _Python.function, "answer": _Python.function, "edges": _edges},
    **{"tolerance": _share, "why": _Python.words},
}


def built(text, names, file, beside=None):
    """The Question of a text; `names`: what its Python knows; `file`: its name in errors. Faults on
    which nothing else rests join those in `beside`, if it is given, and the question is built.
    """
    python, faults = _Python(text, names, file), Faults(file)
    small = Faults(file) if beside is None else beside
    parameters = {}
    for name, (source, line) in text.parameters.items():
        with faults:
            parameters[name] = python.value(source, line)
            if not isinstance(parameters[name], Parameter):
                usage = "expected a parameter, as given(2, 1, 2, 8)"
                python.fail(line, f"{name} = {source}: {usage}")
            _known_unit(python, parameters[name].unit, line)
    with faults:
        _known_unit(python, *text.facts.get("unit", ("", 0)))
    kind = "choice" if text.options else "array" if "names" in text.facts else "number"
    facts: dict[str, Any] = {"chapter": "", "level": "", "kind": kind}
    for key, fact in text.facts.items():
        with small:
            facts[key] = READ[key](python, *fact)
    formulas = [n for n, (words, lines, _) in enumerate(text.steps) if words and lines]
    expected = facts.pop("answer", None)
    with faults:
        if expected is None and not formulas:
            missing = "no answer: expected a formula in the last step, or - answer:"
            python.fail(text.line, missing)
        expected = expected or python.result(formulas[-1])
    misconceptions = []
    for name, mark, wrong, hint, at in text.misconceptions:
        with small:
            hint = python.words(hint, at)
        function = python.function(wrong, at)
        misconceptions.append(Misconception(name, function, hint, "slight" in mark))
    texts = [text.prompt, *text.options.values()]
    for n, each in enumerate(texts):
        with small:
            texts[n] = python.words(each, text.line)
    faults.refuse()
    if beside is None:
        small.refuse()
    prompt, *options = texts
    holds = {words: python.function(condition, at) for words, condition, at in text.holds}
    try:
        return Question(
            id=text.id,
            prompt=prompt,
            expected=expected,
            solution=_solution(python, parameters),
            misconceptions=tuple(misconceptions),
            parameters=parameters,
            options=dict(zip(text.options, options, strict=True)),
            holds=holds,
            **facts,
        )
    except ValueError as error:
        python.fail(text.line, error)


def _known_unit(python, name, line):
    try:
        unit(name)
    except UnknownUnit as error:
        python.fail(line, f"{error}; expected one of the course, such as GB/s, or none")


def _solution(python, parameters):
    """The derivation, a function of the parameters, compiled when it is first asked for."""

    @cache
    def compiled():
        lines, faults = [], Faults(python.file)
        for n in range(len(python.text.steps)):
            with faults:
                lines.append(_compiled(python, n))
        faults.refuse()
        return lines, python.template(python.text.after, python.text.line)

    def solution(**inputs):
        lines, after = compiled()
        measures = {n: (v, base_unit(parameters[n].unit)) for n, v in inputs.items()}
        steps = [step for add in lines for step in add(inputs, measures)]
        return Derivation(tuple(steps), after(**inputs))

    return solution


def _compiled(python, n):
    """A function of the parameters, and of what names stand for, that gives the steps of a line."""
    words, lines, line = python.text.steps[n]
    if not words:
        several = python.function(*lines, line)
        return lambda values, _: [s] if isinstance(s := several(**values), Step) else s
    words = python.template(words, line)
    if not lines:
        return lambda values, _: [Step(words(**values))]
    name, formula, law, inputs = python.formula(n)
    used, source = _names(_plain(formula)), ast.unparse(formula)
    beside = used & python.names.keys() - {*inputs, *FUNCTIONS, *python.arguments}
    trees = inputs | {helper: _tree(helper, line) for helper in beside}
    others = {other: python.measured(tree, line) for other, tree in trees.items()}
    law = law and python.measured(law, line)

    def add(values, measures):
        inputs = {name: measures[name] for name in used & measures.keys()}
        for other, (value, of, same) in others.items():
            inputs[other] = measures[same] if same in measures else _in(value(**values), of)
        gives = law and _in(law[0](**values), law[1])
        try:
            if law and not measured(gives)[1]:
                gives = gives, Step("", source, None, inputs).result[1]
            step = Step(words(**values), source, gives, inputs)
        except (ArithmeticError, ValueError) as error:
            python.fail(line, error if source in str(error) else f"{source}: {error}")
        if name:
            measures[name] = step.result[:2]
        return [step]

    return add


def _in(value, of):
    return (value, of) if of else value


# --- files ---------------------------------------------------------------------------------------


def of_file(file):
    """([(text, question)], faults) of a file of one's own: what of it can be asked, and what is
    wrong with it. Its Python stands beside it.
    """
    import runpy

    beside = file.with_suffix(".py")
    names = VERBS | (runpy.run_path(str(beside)) if beside.is_file() else {})
    texts, faults = parts(file.read_text("utf-8"), file.name)
    return _built(texts, names, faults), faults


def _built(texts, names, faults):
    """(text, question) of each; what is wrong with any joins the faults."""
    pairs = []
    for text in texts:
        with faults:
            pairs.append((text, built(text, names, faults.file, faults)))
    return [pair for pair in pairs if pair[0].id not in faults.broken]


def of_topic(topic):
    """The questions of one of the course's topics; the site has them read."""
    names, ready = names_of(topic), f"{CONTENT}.{topic}_questions"
    rows = importlib.import_module(ready).TEXTS if _there(ready) else None
    if rows is None:
        of_text, faults = parts(_file(topic).read_text("utf-8"), f"{topic}.md")
    else:
        of_text, faults = [Text(*row) for row in rows], Faults(f"{topic}.md")
    pairs = _built(of_text, names, faults)
    faults.refuse()
    return [one for _, one in pairs]


def names_of(topic):
    """What the Python of a topic knows beside a question's parameters and results."""
    beside = f"{CONTENT}.{topic}"
    return VERBS | (vars(importlib.import_module(beside)) if _there(beside) else {})


def texts(topic):
    """What the file of a topic says."""
    return read(_file(topic).read_text("utf-8"), f"{topic}.md")


def _file(topic):
    return Path(__file__).parents[1] / "content" / f"{topic}.md"


def compiled(topic):
    """A module, as text, that has a topic read, for where that takes long; without what its tests
    need alone.
    """
    rows = [astuple(replace(text, holds=[], right=[], wrong=[])) for text in texts(topic)]
    return f"TEXTS = {rows!r}\n"


def _there(module):
    return importlib.util.find_spec(module) is not None
