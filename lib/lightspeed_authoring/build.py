"""The build of the course: percent scripts in, executed notebooks out.

    chapters/NN_name.py   -> chapters/NN_name.ipynb    executed, prose filled in
    solutions/NN_name.py  -> solutions/NN_name.ipynb   the same, with the solutions
                          -> exercises/NN_name.ipynb   the same page with stubs, not executed

`lightspeed_authoring.notebooks` has the form of a script,
`lightspeed_authoring.prose` that of numbers in its Markdown: expressions in double braces,
evaluated by the page's own kernel at that place of the page. A page fails to build on an error, on
anything written to stderr (so on a warning), on a number that was typed instead of bound and on a
claim that does not hold (`lightspeed_authoring.claims`).

Tags. `measured`: the cell measures this machine, and in a build shows what a shipped record says
(`measure_here`). `timed`: it shows times of its own run, so that only its words are compared.
`raises-exception`: the cell is meant to fail; only the message of its error is stored. `figure`,
`solution`: see `pages`.

The same source gives the same bytes: ids are hashes of the source, counts are positions, and
neither widget state nor times nor versions are stored.
"""

import ast
import asyncio
import json
import os
import re
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import nbformat
from jupyter_client.kernelspec import KernelSpecManager
from jupyter_client.manager import AsyncKernelManager
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError, CellTimeoutError, DeadKernelError
from nbformat import NotebookNode

from lightspeed import catalog
from lightspeed_authoring.claims import as_json
from lightspeed_authoring.facts import typed_facts
from lightspeed_authoring.notebooks import METADATA, BuildError, exercise, label, page, read
from lightspeed_authoring.prose import typed_in_code, typed_numbers
from lightspeed_authoring.proved import proved
from lightspeed_show.bound import expressions, fill
from lightspeed_show.host import WIDGET

ROOT = Path(__file__).parents[2]
BIBLIOGRAPHY = ROOT / "BIBLIOGRAPHY.md"
CELL_TIMEOUT = 60
WORKERS = 2
# A warning that the course's own code causes is an error even where Python would hide it.
_WARNINGS = "__import__('warnings').filterwarnings('error', module=r'__main__|lightspeed\\b')"


def kernel_environment(folder: Path) -> dict[str, str]:
    """What a page's kernel gets, in a build as under nbval: an empty store, nobody's settings."""
    return {
        "PYTHONHASHSEED": "0",
        "LIGHTSPEED_DATA": str(folder / "data"),
        "LIGHTSPEED_RECORDED": "1",
        "IPYTHONDIR": str(folder / "ipython"),
    }


# --- executing ------------------------------------------------------------------------------------


class _Kernel(NotebookClient):
    """Executes a page as nbval does, so that nbval compares like with like; fills in its prose."""

    cell: NotebookNode | None = None
    line = 0  # of a claim that does not hold, from the start of its cell's words

    def __init__(self, notebook: NotebookNode, folder: Path, scratch: Path):
        super().__init__(
            notebook,
            kernel_name="python3",
            resources={"metadata": {"path": str(folder)}},
            timeout=CELL_TIMEOUT,
            record_timing=False,
            store_widget_state=False,
            shutdown_kernel="immediate",
            extra_arguments=[f"--IPKernelApp.exec_lines={_WARNINGS}"],
        )
        self.scratch = scratch
        # nbval knows no output widgets: what they would capture must show here too
        self.widget_registry = {}

    def create_kernel_manager(self) -> AsyncKernelManager:
        # No kernel folders: python3 is then this environment, whatever the user registered.
        specs = KernelSpecManager(kernel_dirs=[])
        # Over TCP each kernel would write a warning about encryption to our stderr.
        socket = {} if os.name == "nt" else {"transport": "ipc", "ip": str(self.scratch / "kernel")}
        self.km = AsyncKernelManager(
            kernel_name=self.kernel_name, kernel_spec_manager=specs, **socket
        )
        return self.km

    async def async_execute_cell(self, cell, cell_index, execution_count=None, store_history=False):
        self.cell = cell
        if cell.cell_type == "markdown":
            await self._hold(cell)
            await self._fill(cell)
            return cell
        # No history, as in nbval: a trailing `;` hides nothing and `_` is not set.
        self.changes = []
        await super().async_execute_cell(cell, cell_index, execution_count, store_history=False)
        if self.changes:
            raise BuildError(
                f"{self.changes[0]}: nbval cannot follow an output that changes after it was shown"
            )
        for output in cell.outputs:
            if output.get("name") == "stderr":
                raise BuildError(f"wrote to stderr: {output.text.strip()}")
        await self._hold(cell)
        return cell

    async def _fill(self, cell: NotebookNode) -> None:
        fields = expressions(cell.source)
        texts = await self._texts(cell, [(f"{{{{{each.text}}}}}", each.python) for each in fields])
        cell.source = fill(cell.source, texts)

    async def _hold(self, cell: NotebookNode) -> None:
        if not cell.metadata.holds:
            return
        (reply,) = await self._texts(cell, [("holds", as_json(cell.metadata.holds))])
        if faults := json.loads(reply):
            self.line = cell.metadata.holds_line - cell.metadata.line + faults[0][0]
            raise BuildError("\n".join(fault for _, fault in faults))

    async def _texts(self, cell: NotebookNode, expressions: list[tuple[str, str]]) -> list[str]:
        """What the kernel makes of expressions whose values are texts, each named for the error
        that it may raise.
        """
        if not expressions:
            return []
        by_name = {str(n): python for n, (_, python) in enumerate(expressions)}
        kernel: Any = self.kc
        message = kernel.execute("", silent=True, store_history=False, user_expressions=by_name)
        reply: Any = await self.async_wait_for_reply(message, cell)
        results = [reply["content"]["user_expressions"][n] for n in by_name]
        for (name, _), result in zip(expressions, results, strict=True):
            if result["status"] != "ok":
                raise BuildError(f"{name}: {result['ename']}: {result['evalue']}")
        return [ast.literal_eval(result["data"]["text/plain"]) for result in results]

    def process_message(self, msg, cell, cell_index):
        if msg["msg_type"] in ("clear_output", "update_display_data"):
            self.changes.append(msg["msg_type"])
        return super().process_message(msg, cell, cell_index)


async def run(notebook: NotebookNode, path: Path) -> NotebookNode:
    """Execute a page of `page()` in place, in the folder of its script; BuildError names the
    failing cell.
    """
    with tempfile.TemporaryDirectory(prefix="lightspeed-") as scratch:
        kernel = _Kernel(notebook, path.parent, Path(scratch))
        library = [str(ROOT / "lib"), *filter(None, [os.environ.get("PYTHONPATH")])]
        environment = {
            **os.environ,
            **kernel_environment(Path(scratch)),
            "PYTHONPATH": os.pathsep.join(library),
        }
        try:
            await kernel.async_execute(env=environment)
        except (
            BuildError,
            CellExecutionError,
            CellTimeoutError,
            DeadKernelError,
            ValueError,
        ) as error:
            reason = (
                _end_of(error.traceback) if isinstance(error, CellExecutionError) else str(error)
            )
            cell = kernel.cell
            where = (
                f"{label(path)}:{cell.metadata.line + kernel.line}: cell {cell.id}"
                if cell
                else label(path)
            )
            raise BuildError(f"{where}: {reason}") from None
    for count, cell in enumerate((cell for cell in notebook.cells if cell.cell_type == "code"), 1):
        cell.execution_count = count
        cell.outputs = _tidy(cell.outputs, count)
    return notebook


def _tidy(outputs: list[NotebookNode], count: int) -> list[NotebookNode]:
    tidy: list[NotebookNode] = []
    for output in outputs:
        if output.output_type == "stream" and tidy and tidy[-1].get("name") == output.name:
            tidy[-1].text += output.text  # how a stream is cut into messages is chance
            continue
        if output.output_type == "error":
            # the rest has paths and line numbers
            output.traceback = [f"{output.ename}: {output.evalue}"]
        if "data" in output:
            output.data.pop(WIDGET, None)  # the id of a live model
        if output.output_type == "execute_result":
            output.execution_count = count
        tidy.append(output)
    return tidy


def _end_of(traceback: str) -> str:
    # after nbclient's preface
    plain = re.sub(r"\x1b\[[\d;]*m", "", traceback).rpartition("\n------------------\n\n")[2]
    return "\n    ".join(["", *plain.strip().splitlines()[-12:]])


# --- typed numbers --------------------------------------------------------------------------------

BIND = "write an expression in {{ }}"
_FACT = "a fact belongs into the catalog; what the page assumes for an example says `# assumed`"


def unbound(path: Path) -> list[str]:
    """Every number typed in the prose, strings or comments of a script, and every fact that a cell
    of a chapter assigns without a source: "file:line: text".
    """
    faults = []
    try:
        cells = read(path)
    except BuildError as error:
        return [str(error)]
    for cell in cells:
        source = cell.source
        if cell.cell_type == "markdown":
            typed = [(source[:at].count("\n") + 1, text) for at, text in typed_numbers(source)]
        else:
            typed = list(typed_in_code(source))
        typed = [(line, f"{text}; {BIND}") for line, text in typed]
        if cell.cell_type == "code" and path.parent.name == "chapters":
            typed += [(line, f"{text}: {_FACT}") for line, text in typed_facts(source)]
        faults += [
            f"{label(path)}:{cell.metadata.line + line - 1}: typed number: {text}"
            for line, text in typed
        ]
    return faults


# --- building -------------------------------------------------------------------------------------


def build(paths: list[Path], out: Path, committed: Path | None = None) -> list[str]:
    """Build scripts into out/chapters, out/solutions and out/exercises; what failed, one text each.

    A page that nbval has proved as it stands in the course `committed` is taken from there, and
    not executed.
    """

    # One thread: the work is in the kernels, a process a page, and CPython 3.11 can't parse in two
    # threads at once (its counter of recursion is the interpreter's, gh-106905).
    async def pages() -> list[list[str]]:
        places = asyncio.Semaphore(WORKERS)

        async def one(path: Path) -> list[str]:
            async with places:
                return await _build_page(path, out, committed)

        return await asyncio.gather(*map(one, paths))

    with ThreadPoolExecutor(1) as own:  # where a loop runs already, another one needs its thread
        results = own.submit(asyncio.run, pages()).result()
    return [fault for faults in results for fault in faults]


async def _build_page(path: Path, out: Path, committed: Path | None) -> list[str]:
    start = time.perf_counter()
    try:
        faults = unbound(path)
        if faults:
            return faults
        target = Path(path.parent.name, f"{path.stem}.ipynb")
        notebook = page(path)
        if committed and proved(committed / target):
            _as_committed(notebook, committed / target)
        else:
            await run(notebook, path)
        notebooks = {target: notebook}
        if path.parent.name == "solutions":
            notebooks["exercises" / Path(target.name)] = exercise(path, notebook)
        for name, result in notebooks.items():
            _write(result, out / name)
    except BuildError as error:
        return [str(error)]
    print(
        f"{path.parent.name}/{path.stem}: {len(notebook.cells)} cells,"
        f" {time.perf_counter() - start:.1f} s",
        flush=True,
    )
    return []


def _as_committed(notebook: NotebookNode, committed: Path) -> None:
    """Fill in prose and outputs from the committed notebook, which nbval has proved."""
    cells = {cell.id: cell for cell in nbformat.read(committed, as_version=4).cells}
    count = 0
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            cell.source = cells[cell.id].source
        else:
            count += 1
            cell.execution_count, cell.outputs = count, cells[cell.id].outputs


def _write(notebook: NotebookNode, path: Path) -> None:
    for cell in notebook.cells:
        for name in ("line", "holds", "holds_line"):
            cell.metadata.pop(name, None)
    notebook.metadata = nbformat.from_dict(METADATA)  # the kernel has added its versions
    nbformat.validate(notebook)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(nbformat.writes(notebook).rstrip("\n") + "\n", encoding="utf-8", newline="\n")


def sources(names: list[str] | None = None, root: Path = ROOT) -> list[Path]:
    """The scripts of the course; with `names`, those whose name or folder/name begins with one:
    "02" or "2", "solutions/02".
    """
    scripts = [
        path
        for folder in ("chapters", "solutions")
        for path in sorted((root / folder).glob("*.py"))
    ]
    if not scripts:
        raise BuildError(f"no chapters/*.py under {root}: building takes a checkout of the course")
    if not names:
        return scripts
    selection = set()
    for name in names:
        stem = name.removesuffix(".py").removesuffix(".ipynb").replace("exercises/", "solutions/")
        stem = re.sub(r"(^|/)(\d)(?!\d)", r"\g<1>0\2", stem)
        matches = {
            path for path in scripts if path.stem.startswith(stem) or label(path).startswith(stem)
        }
        if not matches:
            raise BuildError(
                f"no chapter or solution is called {name}; there are"
                f" {', '.join(map(label, scripts))}"
            )
        selection |= matches
    return [path for path in scripts if path in selection]


def build_course(names: list[str] | None = None, root: Path = ROOT) -> None:
    """Build the named pages (all without names) in place; BuildError lists what failed."""
    faults = build(sources(names, root), root)
    if faults:
        raise BuildError("\n".join(faults))
    if root == ROOT:
        BIBLIOGRAPHY.write_text(bibliography(), encoding="utf-8")


def bibliography() -> str:
    """Every source of the catalog as Markdown: who, what, where, and how it was read."""
    lines = [
        "# Bibliography",
        "",
        (
            "Every source of a number in this course. Made by `make build` from"
            " `lib/lightspeed/catalog/sources.toml`."
        ),
        "",
    ]
    for s in sorted(
        catalog.sources().values(), key=lambda s: (s.author or s.publisher or s.title).lower()
    ):
        citation = ". ".join(
            part for part in (s.author, f"*{s.title}*", s.publisher, s.date) if part
        )
        lines.append(
            f"- {citation}."
            + (f" <{s.address}>" if s.address else "")
            + f" Read {s.read}, {s.how}. `{s.key}`"
        )
    return "\n".join(lines) + "\n"
