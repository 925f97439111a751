"""A cell that a reader edits on a page and runs. Nothing is left from earlier runs: first come the
cells above that it needs, as they stand on the page, then itself, in a namespace of its own.
"""

from __future__ import annotations

import ast
import contextlib
import copy
import io
import traceback

NAME = "<your cell>"
_shown = []  # of the cell that runs


def needed(above, source):
    """Those of the cells above, in their order, from which a cell takes a name, and those from
    which these take one.
    """
    wanted, chosen = _names(source)[1], []
    for cell in reversed(above):
        bound, used = _names(cell)
        if bound & wanted or "*" in bound:
            chosen.insert(0, cell)
            wanted |= used
    return chosen


def _names(source):
    """(names that a cell binds or changes, names that it uses); a star brings any name."""
    try:
        tree = ast.parse(source)
    except SyntaxError:
        return set(), set()
    bound, used = _imported(source), set()
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name, ctx=ast.Load()):
                used.add(name)
            case ast.Name(id=name) | ast.FunctionDef(name=name) | ast.ClassDef(name=name):
                bound.add(name)
            case ast.Expr(value=ast.Call(func=ast.Attribute(value=changed))):  # rows.append(1)
                bound |= {n.id for n in ast.walk(changed) if isinstance(n, ast.Name)}
            case ast.Attribute(ctx=ast.Store()) | ast.Subscript(ctx=ast.Store()):
                bound |= {n.id for n in ast.walk(node.value) if isinstance(n, ast.Name)}
    return bound, used


def names_made(source):
    """Names that a cell binds or changes."""
    return _names(source)[0]


def _imported(source):
    return {
        (alias.asname or alias.name).split(".")[0]
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Import | ast.ImportFrom)
        for alias in node.names
    }


def run(source, above=()):
    """(what the cell shows, in its order; the error in words, or "").

    What is shown is a bundle, mime type -> text, or an object that lives on the page.
    """
    return begun(source, above).perform(source)


def begun(source, above):
    """The sheet on which the cells above have run that a cell needs."""
    sheet = Sheet()
    for cell in needed(above, source):
        sheet.perform(cell, forgiving=True)
    return sheet


class Sheet:
    """A namespace in which cells run, why names are missing from it, and the package for lack of
    which the last cell stopped.
    """

    def __init__(self):
        self.names = {"__name__": "__main__", "display": _display}
        self.why = {}  # name -> what became of it
        self.of = {}  # name -> the package that it lacks
        self.lacks = ""

    def perform(self, source, forgiving=False):
        """Run one cell, as `run` does; with `forgiving`, what its imports lack is told only to the
        cell that uses it.
        """
        _shown[:] = []
        problem = self.lacks = ""
        with contextlib.redirect_stdout(_Out()):
            try:
                value = self._value(source, forgiving)
                if value is not None:
                    _display(value)
            except (Exception, SystemExit) as error:
                problem = self._in_words(error)
                self._forget(source, problem)
        return list(_shown), problem

    def _value(self, source, forgiving):
        tree = ast.parse(source, NAME)
        last = tree.body[-1] if tree.body else None
        body = tree.body[:-1] if isinstance(last, ast.Expr) else tree.body
        for part in body:
            if forgiving and isinstance(part, ast.Import | ast.ImportFrom):
                self._import(part)
            else:
                exec(compile(ast.Module([part], []), NAME, "exec"), self.names)
        if isinstance(last, ast.Expr):
            value = eval(compile(ast.Expression(last.value), NAME, "eval"), self.names)
            return None if source.rstrip().endswith(";") else value
        return None

    def _forget(self, source, problem):
        """What a cell that stopped had begun to make is no value to go on with. Functions and what
        it imported are whole.
        """
        for name in _names(source)[0]:
            if name in self.names and (callable(self.names[name]) or name in _imported(source)):
                continue
            self.names.pop(name, None)
            self.why[name] = f"the cell above that makes {name} stopped. {problem}"
            self.of[name] = self.lacks

    def _import(self, part):
        """Import each name by itself."""
        for alias in part.names:
            one = copy.copy(part)
            one.names = [alias]
            try:
                exec(compile(ast.Module([one], []), NAME, "exec"), self.names)
            except ModuleNotFoundError as error:
                name = alias.asname or alias.name.split(".")[0]
                self.why[name], self.of[name] = not_here(error.name), error.name.split(".")[0]

    def _in_words(self, error):
        """The error and the line of the cell at which it arose."""
        lines = [f.lineno for f in traceback.extract_tb(error.__traceback__) if f.filename == NAME]
        at = error.lineno if isinstance(error, SyntaxError) else lines[-1] if lines else None
        where = f"Line {at}: " if at else ""
        if isinstance(error, ModuleNotFoundError) and error.name:
            self.lacks = error.name.split(".")[0]
            return where + not_here(error.name)
        if isinstance(error, NameError) and error.name in self.why:
            self.lacks = self.of.get(error.name, "")
            return where + self.why[error.name]
        message = error.msg if isinstance(error, SyntaxError) else str(error)
        return f"{where}{type(error).__name__}: {message}"


def not_here(module):
    """What a page says of a module that it does not have."""
    ours = module.split(".")[0] in ("lightspeed", "lightspeed_course")
    has = "which has the laws, the explorers and the questions" if ours else None
    has = has or "whose Python has its standard library alone"
    return f"{module} is not on this page, {has}. In the lab the same cell runs as it is."


class _Out(io.TextIOBase):
    """What is printed, where it stands among what is shown."""

    def write(self, text):
        if _shown and isinstance(_shown[-1], dict) and "stream" in _shown[-1]:
            _shown[-1]["stream"] += text
        else:
            _shown.append({"stream": text})
        return len(text)


def show(bundle):
    """Take a bundle, or an object that lives on the page, as what the running cell shows."""
    _shown.append(bundle)


def _display(*values):
    for value in values:
        if hasattr(value, "_ipython_display_"):
            value._ipython_display_()
        elif hasattr(value, "_repr_mimebundle_"):
            show(value)
        else:
            bundle = {"text/plain": repr(value)}
            for mime, method in (("html", "_repr_html_"), ("markdown", "_repr_markdown_")):
                if text := getattr(value, method, lambda: None)():
                    bundle[f"text/{mime}"] = text
            show(bundle)
