"""The course in JupyterLite, where a notebook's kernel is Python in the reader's browser.

    from lightspeed_course.web import lite
    await lite.begin()

Progress is that of the site's pages. What a browser lacks, numpy first, is missed where a cell uses
it, not where it imports it; `await lite.load("numpy")` brings it from another host, if the reader
wants that.
"""

import ast
import copy
import json
from typing import Any

from lightspeed_course.practice import store
from lightspeed_course.web import code, packages
from lightspeed_course.web.live import Keeper

PROGRESS = "_static/live/progress.js"


async def begin():
    """Take up the reader's progress, and let cells import what is not here."""
    from IPython import get_ipython

    shell = get_ipython()
    if not any(isinstance(each, Forgiving) for each in shell.ast_transformers):
        shell.ast_transformers.append(Forgiving())
        shell.events.register("post_run_cell", _lose)
        shell.set_custom_exc((ModuleNotFoundError, NameError, OSError), _tell)
    store.use(await keeper())
    print(
        "The course runs in this browser. Its questions, explorers and charts are live. A cell that"
        " needs numpy or"
        "\nmatplotlib, which this site does not have, says so and goes no further."
    )


async def keeper():
    """The keeper of progress that this browser has: what the site's pages keep too."""
    import js
    from pyodide.ffi import create_proxy

    def unkept(error):
        progress.notice = f"This browser does not keep your progress: {error}."

    def tell(message):
        if error := getattr(message, "unkept", None):
            unkept(error)

    progress = Keeper([], lambda text: None)
    try:
        module = await js.eval(f"import({json.dumps(packages.site() + PROGRESS)})")
        base = await module.opened()
        entries = await module.all(base)
        rows = json.loads(js.JSON.stringify(entries))
        # heard long after this call: for as long as the kernel runs
        progress = Keeper(rows, module.keeper(base, entries, create_proxy(tell)).keep)
    except Exception as error:  # a private window, or no room
        unkept(error)
    return progress


class Forgiving(ast.NodeTransformer):
    """Each import at the top of a cell by itself; a stand-in for what a browser lacks."""

    def visit_Module(self, node):
        node.body = [new for part in node.body for new in self._each(part)]
        return ast.fix_missing_locations(node)

    @staticmethod
    def _each(part):
        if not isinstance(part, ast.Import | ast.ImportFrom) or part.names[0].name == "*":
            yield part
            return
        for alias in part.names:
            one = copy.copy(part)
            one.names = [alias]
            name = alias.asname or alias.name.split(".")[0]
            attempt: Any = ast.parse(ATTEMPT.format(name=name)).body[0]
            attempt.body = [one]
            yield attempt


ATTEMPT = """
try:
    pass
except ModuleNotFoundError as _missing:
    from lightspeed_course.web.lite import Missing as _Missing
    {name} = _Missing(_missing.name)
"""


class Missing:
    """Stands where a package was imported; whatever is asked of it says what is missing."""

    def __init__(self, module):
        self._module = module

    def _raise(self, *_, **__):
        raise ModuleNotFoundError(f"No module named {self._module!r}", name=self._module)

    __getattr__ = __call__ = __getitem__ = __iter__ = _raise


# --- what stopped a cell, in a sentence where the browser is why ----------------------------------

NO_PROCESSES = 138  # ENOTSUP, as Emscripten counts
_lost = {}  # name -> why no cell has made it


def _lose(result):
    """After a cell: the names that it did not come to make, or made after all."""
    error = result.error_before_exec or result.error_in_exec
    for name in code.names_made(result.info.raw_cell or ""):
        _lost.pop(name, None)
        if error is not None and (words := in_words(error)):
            _lost[name] = f"The cell that makes {name} stopped. {words}"


def in_words(error):
    """What of a browser stopped a cell; empty for a fault that any Python would have."""
    match error:
        case ModuleNotFoundError(name=str(name)):
            top = name.split(".")[0]
            return (
                f"{code.not_here(top)} To load it from another host, if you want that:"
                f' await lite.load("{top}")'
            )
        case NameError(name=name) if name in _lost:
            return _lost[name]
        case OSError(errno=errno) if errno == NO_PROCESSES:
            return "A browser starts no other programs. In the lab this cell measures your machine."
    return ""


def _tell(shell, kind, error, trace, tb_offset=None):
    """IPython's way to show an error, or the sentence alone."""
    words = in_words(error)
    usual = shell.InteractiveTB.structured_traceback
    lines = [words] if words else usual(kind, error, trace, tb_offset=tb_offset)
    shell._showtraceback(kind, error, lines)
    return lines


async def load(module):
    """Bring a package from the host of Pyodide's packages, each file checked by its hash, into this
    kernel. Whoever calls this agrees that this host is asked.
    """
    if (offer := await packages.offer(module)) is None:
        raise ValueError(f"load: module = {module!r}: Pyodide's list of packages does not have it")
    print(offer["words"])
    await packages.bring(offer)
    print(f"{module} is here: run the cells that import it again.")
