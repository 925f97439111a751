"""A cell that a reader edits on a page and runs. Nothing is left from earlier runs: first come the
cells above that it needs, as they stand on the page, then itself, in a namespace of its own.
"""

import ast
import contextlib
import copy
import io
import traceback

MOST = 100_000  # characters of what a cell prints or returns; more would only slow the page
_shown = []  # of the cell that runs


class NotOnPage(Exception):
    """A feature that a page lacks and a lab has; the message is for the reader."""


def _input(*_):
    raise NotOnPage("input() has no keyboard on a page: write the value into the code instead.")


def needed(above, source):
    """Those above, in order, from which a cell takes a name, and those on which these rest."""
    names, cells = _names(source)[1], []
    for cell in reversed(above):
        bound, used = _names(cell)
        if bound & names or "*" in bound:
            cells.insert(0, cell)
            names |= used
    return cells


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
    """Return the names that a cell binds or changes."""
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
    """A namespace in which cells run, with reasons for missing names and the missing package."""

    def __init__(self):
        self.names = {"__name__": "__main__", "display": _display, "input": _input}
        self.why = {}  # name -> what became of it
        self.of = {}  # name -> the package that it lacks
        self.lacks = ""
        self.cells = (
            0  # that ran; each has a file name of its own, so that an error finds its lines
        )

    def perform(self, source, forgiving=False):
        """Run one cell, as `run` does. What its imports lack is told to whoever uses it; a cell
        that gets nothing of what it imports says so itself, unless `forgiving`.
        """
        _shown[:] = []
        problem = self.lacks = ""
        self.cells += 1
        self._missed = []  # names that this cell imports in vain
        self._left = []  # statements of this cell that have not run to their end
        with contextlib.redirect_stdout(out := _Out()):
            try:
                value = self._value(source, forgiving)
                if value is not None:
                    _display(value)
            except (Exception, SystemExit) as error:
                problem = self._in_words(error)
                self._forget("\n".join(map(ast.unparse, self._left)), problem)
        if out.room < 0:
            _shown.append({"stream": _more(-out.room)})
        if self._missed and not forgiving and not problem:
            self.lacks = self.of[self._missed[0]]
            _shown.append(
                {"stream": f"Not on this page: {', '.join(self._missed)}. All else ran.\n"}
            )
        return list(_shown), problem

    def _value(self, source, forgiving):
        name = self._file()
        tree = ast.parse(source, name)
        last = tree.body[-1] if tree.body else None
        body = tree.body[:-1] if isinstance(last, ast.Expr) else tree.body
        strict = not forgiving and self._imports_alone(tree.body)
        self._left = list(tree.body)
        for part in body:
            if isinstance(part, ast.Import | ast.ImportFrom) and not strict:
                self._import(part)
            else:
                exec(compile(ast.Module([part], []), name, "exec"), self.names)
            self._left.remove(part)
        if isinstance(last, ast.Expr):
            value = eval(compile(ast.Expression(last.value), name, "eval"), self.names)
            return None if source.rstrip().endswith(";") else value
        return None

    def _file(self):
        return f"<cell {self.cells}>"

    def _imports_alone(self, body):
        """Whether the cell is one import: then there is no one else to tell."""
        return len(body) == 1 and isinstance(body[0], ast.Import | ast.ImportFrom)

    def _forget(self, source, problem):
        """What a stopped cell had to make or change is no value to go on with; functions are."""
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
                exec(compile(ast.Module([one], []), self._file(), "exec"), self.names)
            except ModuleNotFoundError as error:
                name = alias.asname or alias.name.split(".")[0]
                package = str(error.name)
                self.why[name], self.of[name] = not_here(package), package.split(".")[0]
                self._missed.append(name)

    def _in_words(self, error):
        """The error and the line of the cell at which it arose."""
        where = self._where(error)
        if isinstance(error, NotOnPage):
            return f"{where}{error}"
        if isinstance(error, ModuleNotFoundError) and error.name:
            self.lacks = error.name.split(".")[0]
            return where + not_here(error.name)
        if isinstance(error, NameError) and error.name in self.why:
            self.lacks = self.of.get(error.name, "")
            return where + self.why[error.name]
        message = error.msg if isinstance(error, SyntaxError) else str(error)
        return f"{where}{type(error).__name__}: {message}"

    def _where(self, error):
        """The line that failed and, inside a function, the line of this cell that called it."""
        if isinstance(error, SyntaxError):
            return f"Line {error.lineno}: " if error.lineno else ""
        frames = [
            f for f in traceback.extract_tb(error.__traceback__) if f.filename[:6] == "<cell "
        ]
        own = [f.lineno for f in frames if f.filename == self._file()]
        if not own:
            return ""
        if frames[-1].filename != self._file():
            return f"Line {own[0]}, in {frames[-1].name} of a cell above: "
        caller = f", called from line {own[0]}" if len(own) > 1 else ""
        return f"Line {own[-1]}{caller}: "


def not_here(module):
    """What a page says of a module that it does not have."""
    ours = module.split(".")[0].startswith("lightspeed")
    has = "which has the laws, the explorers and the questions" if ours else None
    has = has or "whose Python has its standard library alone"
    return f"{module} is not on this page, {has}. In the lab the same cell runs as it is."


def _more(rest):
    return f"\n… {rest:,} characters more; a page shows {MOST:,}.\n"


class _Out(io.TextIOBase):
    """What is printed, where it stands among what is shown, as long as there is room."""

    room = MOST

    def write(self, text):
        size, text = len(text), text[: max(self.room, 0)]
        self.room -= size
        if not text:
            return size
        if _shown and isinstance(_shown[-1], dict) and "stream" in _shown[-1]:
            _shown[-1]["stream"] += text
        else:
            _shown.append({"stream": text})
        return size


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
            text = repr(value)
            rest = len(text) - MOST
            bundle = {"text/plain": text[:MOST] + _more(rest) if rest > 0 else text}
            for mime, method in (("html", "_repr_html_"), ("markdown", "_repr_markdown_")):
                if look := getattr(value, method, lambda: None)():
                    bundle[f"text/{mime}"] = look
            show(bundle)
