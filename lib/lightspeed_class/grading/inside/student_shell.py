"""A notebook's kernel without the wires: IPython itself runs the cells, so that a cell means here
what it means in Jupyter. Nothing is shown, and what cannot be done here is skipped and noted.
"""

import asyncio
import builtins
import contextlib
import getpass
import re
import subprocess
import sys
from types import ModuleType
from typing import Any, NoReturn

from IPython.core.history import HistoryManager
from IPython.core.inputtransformer2 import TransformerManager
from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.text import LSString, SList
from matplotlib_inline.config import InlineBackend
from traitlets import Instance
from traitlets.config import Config

# these need a network, which is not here: what they would install is there already or is not
INSTALLS = re.compile(r"\b(pip3?|conda|mamba|uv|poetry|apt|apt-get)\b.*\b(install|add|update)\b")
INSTALLERS = {"pip", "conda", "mamba", "micromamba", "uv"}
# of a page, an extension or a terminal that is not here; a notebook goes on without
OPTIONAL = {"load_ext", "reload_ext", "matplotlib", "pylab", "gui", "config", "store", "autosave"}

# a loop has descriptors, so that it is there for those who want one
LOOP = re.compile("async|await|aio|loop", re.IGNORECASE)
# without one of these no cell is, and without one of those none has anything but Python in it
ASYNC = re.compile("async|await")
SPECIAL = re.compile(r"[%!?]|^\s*[,;/]")  # of a line


class AskedForInput(Exception):
    """A cell called input(), which nobody can answer while a notebook is graded."""


class Transformers(TransformerManager):
    """IPython's own, which looks at each token of a cell; not where there is nothing to find."""

    def __init__(self) -> None:
        super().__init__()
        self._known = [*self.token_transformers]

    def do_token_transforms(self, lines: list[str]) -> list[str]:
        if self.token_transformers == self._known and not any(map(SPECIAL.search, lines)):
            return lines
        transformed: list[str] = super().do_token_transforms(lines)
        return transformed


class History(HistoryManager):
    """IPython's own; the last inputs are plain attributes, of which nobody needs to be notified."""

    _i00 = _i = _ii = _iii = ""


class Shell(InteractiveShell):
    """A notebook shell. `noted`: what a cell could not do, as [kind, name]; emptied for each."""

    configurables: list[Any]
    input_transformer_manager = Instance(Transformers, ())

    def __init__(self, module: ModuleType) -> None:
        self.noted: list[list[str]] = []
        config = Config()
        config.HistoryManager.enabled = False
        super().__init__(user_module=module, user_ns=module.__dict__, config=config)
        # Nobody looks: an object is not asked how it wants to be shown.
        formatter: Any = self.display_formatter
        formatter.format = lambda *_, **__: ({}, {})
        self.configurables.append(InlineBackend.instance(parent=self))  # for %config
        self._loop: asyncio.AbstractEventLoop | None = None

    def run(self, source: str) -> BaseException | None:
        """Run a cell as a kernel does, inside a running loop if it may need one; return its
        exception, or None.
        """
        self.noted = []
        builtins.input = getpass.getpass = self._input
        if not LOOP.search(source):
            result = self.run_cell(source, store_history=True)
        else:
            if self._loop is None or self._loop.is_closed():
                self._loop = asyncio.new_event_loop()
                asyncio.set_event_loop(self._loop)
            result = self._loop.run_until_complete(self._run(source))
        error: BaseException | None = result.error_before_exec or result.error_in_exec
        return error

    async def _run(self, source: str) -> Any:
        try:
            code, trouble = self.transform_cell(source), None
        except Exception:
            code, trouble = source, sys.exc_info()
        more = {"transformed_cell": code, "preprocessing_exc_tuple": trouble}
        if self.should_run_async(source, **more):
            result = await self.run_cell_async(source, store_history=True, **more)
        else:
            result = self.run_cell(source, store_history=True)
        await asyncio.sleep(0)  # tasks that the cell began get a turn, as between two cells
        return result

    def should_run_async(
        self, raw_cell: str, *, transformed_cell: Any = None, preprocessing_exc_tuple: Any = None
    ) -> bool:
        # IPython compiles a cell to see it.
        return bool(ASYNC.search(transformed_cell)) and super().should_run_async(
            raw_cell,
            transformed_cell=transformed_cell,
            preprocessing_exc_tuple=preprocessing_exc_tuple,
        )

    def init_history(self) -> None:
        self.history_manager = History(shell=self, parent=self)
        self.configurables.append(self.history_manager)

    def _tee(self, channel: Any) -> Any:
        """Nor is what it writes kept for a history."""
        return contextlib.nullcontext()

    def _input(self, *_: Any, **__: Any) -> NoReturn:
        self._note("input")
        raise AskedForInput

    def _note(self, kind: str, name: str = "") -> None:
        self.noted.append([kind, str(name)[:60]])

    def run_line_magic(self, magic_name: str, line: str, _stack_depth: int = 1) -> Any:
        if magic_name in INSTALLERS:
            return self._note("install")
        if not self._find_with_lazy_load("line", magic_name):
            return self._note("magic", magic_name)
        try:
            return super().run_line_magic(magic_name, line, _stack_depth=_stack_depth + 1)
        except Exception:
            if magic_name not in OPTIONAL:
                raise
            return self._note("magic", magic_name)

    def run_cell_magic(self, magic_name: str, line: str, cell: str) -> Any:
        if self._find_with_lazy_load("cell", magic_name):
            return super().run_cell_magic(magic_name, line, cell)
        self._note("magic", magic_name)  # most of them measure the cell or show it
        with contextlib.suppress(SyntaxError):
            code = compile(TransformerManager().transform_cell(cell), "cell", "exec")
            exec(code, self.user_ns)

    def _find_with_lazy_load(self, kind: str, name: str) -> Any:
        # One that would first have to be loaded and cannot be is one that is not there.
        try:
            return super()._find_with_lazy_load(kind, name)
        except Exception:
            return None

    def system(self, cmd: str) -> None:
        process = self._command(self.var_expand(cmd, depth=1))
        self.user_ns["_exit_code"] = process.returncode if process else 0

    system_piped = system_raw = system

    def getoutput(self, cmd: str, split: bool = True, depth: int = 0) -> Any:
        process = self._command(self.var_expand(cmd, depth=depth + 1))
        text = process.stdout if process else ""
        return SList(text.splitlines()) if split else LSString(text)

    def _command(self, cmd: str) -> subprocess.CompletedProcess[str] | None:
        """What a command of the system said; None for one that would install something."""
        if INSTALLS.search(cmd):
            self._note("install")
            return None
        return subprocess.run(
            ["/bin/sh", "-c", cmd], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True, errors="replace",
        )  # fmt: skip

    def ask_exit(self) -> None:
        """Ignore exit and quit: the cells after them are graded all the same."""

    def enable_gui(self, gui: Any = None) -> None:
        """Do nothing: there is no screen."""

    # Of an error only its name is told.

    def showtraceback(self, *_: Any, **__: Any) -> None:
        pass

    showsyntaxerror = showindentationerror = showtraceback

    def _format_exception_for_storage(self, *_: Any, **__: Any) -> dict[str, Any]:
        """Nor is it laid out for a history, which takes longer than most notebooks do."""
        return {}
