"""Runs pages without Jupyter, with their claims: `python plain.py` reads a list of [function, page,
...] as JSON and prints, for each, what `false_claims` or `never_false` of it gives.

Each run is a fresh fork of a process that has the third-party packages and nothing of ours.
"""

import ast
import contextlib
import importlib
import io
import json
import multiprocessing
import os
import re
import sys
import tempfile
import tomllib
from importlib.machinery import SourceFileLoader
from pathlib import Path

ROOT = Path(__file__).parents[2]
HEAVY = ("jupytext", "nbformat", "numpy", "pint", "scipy", "matplotlib.pyplot", "ipywidgets")


def change(file, old, new):
    """From now on, read `new` for `old` in a file of the library or the catalog."""
    if file.endswith(".toml"):
        loads = tomllib.loads
        tomllib.loads = lambda text: loads(text.replace(old, new))
        return
    get_code = SourceFileLoader.get_code

    def changed(self, name):
        if not self.path.endswith(file):
            return get_code(self, name)
        return compile(Path(self.path).read_text("utf-8").replace(old, new), self.path, "exec")

    SourceFileLoader.get_code = changed


def cells_of(page):
    """Runs a page, cell by cell: each with the page's names after it, and its error or None."""
    from lightspeed_authoring.build import kernel_environment
    from lightspeed_authoring.notebooks import read

    os.environ |= kernel_environment(Path(tempfile.mkdtemp()))
    os.chdir(ROOT / Path(page).parent)
    names = {"__name__": "__main__", "display": lambda *things: None}
    for cell in read(ROOT / page):
        failed = None
        if cell.cell_type == "code":
            try:
                with contextlib.redirect_stdout(io.StringIO()):
                    exec(compile(cell.source, page, "exec"), names)
            except Exception as error:
                failed = None if "raises-exception" in cell.metadata.tags else error
        yield cell, names, failed


def false_claims(page, file="", old="", new=""):
    """The first claim of a page that does not hold, with this change, and the cells that failed
    before: ["claim" or "cell", text]. A claim that lacks the names of a failed cell says nothing.
    """
    if old:
        change(file, old, new)
    from lightspeed_authoring import claims

    said = []
    for cell, names, failed in cells_of(page):
        if failed:  # the gallery holds its claims itself
            kind = "claim" if " does not hold: " in str(failed) else "cell"
            said.append((kind, f"{page}:{cell.metadata.line}: {failed}"))
        for line, fault in claims.false_claims(cell.metadata.holds, names):
            if not (said and re.search(r": \w+Error: ", fault)):
                said.append(("claim", f"{page}:{cell.metadata.holds_line + line}: {fault}"))
        if said and said[-1][0] == "claim":
            break
    return said


def never_false(page):
    """The claims of a page that still hold when one of their comparisons is turned round."""
    found = []
    for cell, names, _ in cells_of(page):
        for line, condition in held_turned(cell.metadata.holds, dict(names)):
            found.append(f"{page}:{cell.metadata.holds_line + line}: {condition}")
    return found


def held_turned(holds, names):
    """(line from 0, condition turned round) of those of a `holds` cell that are then true."""
    from lightspeed_authoring import claims

    for node in ast.parse(holds).body:
        if not isinstance(node, ast.Assert):
            exec(compile(ast.Module([node], []), "<holds>", "exec"), names)
            continue
        for condition in turned(node.test):
            tree = ast.fix_missing_locations(ast.Expression(condition))
            if claims.held(eval(compile(tree, "<holds>", "eval"), names)):
                yield node.lineno - 1, ast.unparse(condition)


def turned(node):
    """A condition with one part turned round, for each part that has to hold for the whole."""
    match node:
        case ast.BoolOp(op=ast.And(), values=parts):
            for i, part in enumerate(parts):
                for other in turned(part):
                    yield ast.BoolOp(node.op, [*parts[:i], other, *parts[i + 1 :]])
        case ast.Call(func=ast.Name(id="all"), args=[ast.GeneratorExp() as cases]):
            for other in turned(cases.elt):
                yield ast.Call(node.func, [ast.GeneratorExp(other, cases.generators)], [])
        case _:
            yield ast.UnaryOp(ast.Not(), node)


def _run(function, *arguments):
    return {"false_claims": false_claims, "never_false": never_false}[function](*arguments)


def main():
    for package in HEAVY:
        importlib.import_module(package)
    with multiprocessing.get_context("fork").Pool(2, maxtasksperchild=1) as pool:
        json.dump(pool.starmap(_run, json.load(sys.stdin), chunksize=1), sys.stdout)


if __name__ == "__main__":
    main()
