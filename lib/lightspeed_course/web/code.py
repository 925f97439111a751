"""A cell that a reader edits on a page and runs: its source in a namespace of the page, what it
prints, and the value of its last line.
"""

from __future__ import annotations

import ast
import contextlib
import io
import traceback

NAME = "<your cell>"


def run(source, namespace):
    """(Markdown of the last value, or None; what was printed; the error in words, or "")."""
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        try:
            value, problem = _value(source, namespace), ""
        except (Exception, SystemExit) as error:
            value, problem = None, in_words(error)
    return _shown(value), said.getvalue(), problem


def _value(source, namespace):
    tree = ast.parse(source, NAME)
    last = tree.body[-1] if tree.body else None
    body = tree.body[:-1] if isinstance(last, ast.Expr) else tree.body
    exec(compile(ast.Module(body, []), NAME, "exec"), namespace)
    if isinstance(last, ast.Expr):
        return eval(compile(ast.Expression(last.value), NAME, "eval"), namespace)
    return None


def in_words(error):
    """The error and the line of the cell at which it arose."""
    lines = [f.lineno for f in traceback.extract_tb(error.__traceback__) if f.filename == NAME]
    at = error.lineno if isinstance(error, SyntaxError) else lines[-1] if lines else None
    where = f"Line {at}: " if at else ""
    if isinstance(error, ModuleNotFoundError) and error.name:
        lacks = f"{error.name} is not on this page, whose Python has its standard library alone."
        return f"{where}{lacks} In the lab the same cell runs as it is."
    message = error.msg if isinstance(error, SyntaxError) else str(error)
    return f"{where}{type(error).__name__}: {message}"


def _shown(value):
    if value is None:
        return None
    if hasattr(value, "_repr_markdown_"):
        return value._repr_markdown_()
    return "\n".join(f"    {line}" for line in repr(value).splitlines())
