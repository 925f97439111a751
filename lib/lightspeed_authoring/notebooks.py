"""From a percent script to a notebook that is not executed yet: cells, stable ids, and exercises
out of solutions.

A script is cells under `# %%` or `# %% [markdown]`; `# %% tags=["measured"]` tags one. In a code
cell of solutions/, the lines between two markers are the solution, and `# STUB:` lines, if any, are
what the exercise has in their place (`...` if there are none), indented as the marker is:

    def ridge(peak, bandwidth):
        # BEGIN SOLUTION
        # STUB: raise NotImplementedError
        return peak / bandwidth
        # END SOLUTION

A cell tagged `holds` keeps the words of the cell before it true (`.claims`) and is taken out. A
cell tagged `figure` does nothing but draw, one tagged `setup` only imports: JupyterLab folds its
code away, behind a bar that opens it. Tagged `takeaway` and `card`, the three sentences and the
formulas of a lesson stand in boxes on the site. A cell tagged `solution` (a worked explanation) is
dropped from the exercise. An exercise keeps the outputs of cells that do nothing but show a
question (`PROMPTS`); it has no other outputs, and its prose may not use what a solution computes.
Where pyproject.toml names a public repository, the second cell of each chapter is `COLAB`.
"""

import ast
import hashlib
import re
import tomllib
from collections import Counter
from copy import deepcopy
from functools import lru_cache
from pathlib import Path

import jupytext
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from lightspeed_authoring.claims import ClaimError, check_anchors, claims
from lightspeed_show.bound import expressions

PROMPTS = ("ask", "question")
FOLDED = frozenset({"figure", "setup"})
METADATA = {
    "kernelspec": {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}
# Colab has the other packages that the course needs, and what it has stays as it is.
PACKAGES = "anywidget pint markdown-it-py mdit-py-plugins ml_dtypes"
COLAB = """\
# On Colab only: brings the course.
import sys

if "google.colab" in sys.modules:
    %pip install -q {packages} "speed-of-light @ git+{address}"\
"""
_BEGIN, _END, _STUB = "# BEGIN SOLUTION", "# END SOLUTION", "# STUB:"


class BuildError(Exception):
    """A page that cannot be built; the message names file, line, cell and reason."""


def label(path: Path) -> str:
    """A script or notebook as messages name it: chapters/02_roofline.py."""
    return f"{path.parent.name}/{path.name}"


def read(path: Path) -> list[NotebookNode]:
    """Read the cells of a percent script that readers get. The metadata of each has its tags and
    the `line` of the file on which its text starts.

    `holds` is the source of the `holds` cell behind it, "" if there is none
    (lightspeed_authoring.claims), and `holds_line` the line on which that starts.
    """
    text = path.read_text(encoding="utf-8")
    starts = [n for n, line in enumerate(text.splitlines(), 2) if line.startswith("# %%")]
    cells = deepcopy(_parsed(text))
    if len(cells) != len(starts):
        raise BuildError(f"{label(path)}: every cell begins with a line `# %%`, the first one too")
    readable: list[NotebookNode] = []
    for cell, line in zip(cells, starts, strict=True):
        tags = cell.metadata.get("tags", [])
        try:
            if "holds" in tags:
                _put_behind(readable, cell.source, line)
                continue
            if cell.cell_type == "code":
                ast.parse(cell.source)
        except ClaimError as error:
            raise BuildError(f"{label(path)}:{line + error.line}: {error}") from None
        except SyntaxError as error:
            raise BuildError(
                f"{label(path)}:{line + (error.lineno or 1) - 1}: {error.msg}"
            ) from None
        cell.metadata = NotebookNode(tags=tags, line=line, holds="", holds_line=line)
        readable.append(cell)
    return readable


def _put_behind(cells: list[NotebookNode], source: str, line: int) -> None:
    """Note the claims of a `holds` cell with the cell whose words they hold."""
    if not cells or cells[-1].metadata.holds:
        raise ClaimError("a `holds` cell stands behind the cell whose words it holds, one each", 0)
    check_anchors(claims(source), cells[-1].source, cells[-1].cell_type == "markdown")
    cells[-1].metadata.update(holds=source, holds_line=line)


@lru_cache(maxsize=64)
def _parsed(text: str) -> list[NotebookNode]:
    """The cells as jupytext has them. A check reads a page several times, and this is slow."""
    return jupytext.reads(text, fmt="py:percent").cells


def page(path: Path, stubs: bool = False) -> NotebookNode:
    """The notebook of a script: with the solutions, or with the stubs in their place."""
    cells, repeats = [], Counter()
    for cell in read(path):
        tags = list(cell.metadata.tags)
        if stubs and "solution" in tags:
            continue
        try:
            source = _chosen_lines(cell.source, stubs) if cell.cell_type == "code" else cell.source
        except ValueError as error:
            raise BuildError(f"{label(path)}:{cell.metadata.line}: {error}") from None
        # The id is a hash of the source, so that it stays when other cells come and go.
        digest = hashlib.sha256(f"{cell.cell_type}\n{source}".encode()).hexdigest()[:12]
        repeats[digest] += 1
        identity = digest if repeats[digest] == 1 else f"{digest}-{repeats[digest]}"
        metadata = {
            "line": cell.metadata.line,
            "holds": cell.metadata.holds,
            "holds_line": cell.metadata.holds_line,
            **({"tags": tags} if tags else {}),
        }
        if FOLDED & {*tags}:
            metadata["jupyter"] = {"source_hidden": True}
        new = new_code_cell if cell.cell_type == "code" else new_markdown_cell
        cells.append(new(source, id=identity, metadata=metadata))
    if path.parent.name == "chapters" and (address := public_repository(path.parents[1])):
        metadata = {"line": 1, "holds": "", "tags": ["colab"], "jupyter": {"source_hidden": True}}
        source = COLAB.format(packages=PACKAGES, address=address)
        cells.insert(1, new_code_cell(source, id="colab", metadata=metadata))
    return new_notebook(cells=cells, metadata=METADATA)


def public_repository(course: Path) -> str:
    """The address of the public repository on GitHub, as pyproject.toml names it; or empty."""
    settings = course / "pyproject.toml"
    project = tomllib.loads(settings.read_text("utf-8"))["project"] if settings.exists() else {}
    address = project.get("urls", {}).get("Repository", "")
    match = re.fullmatch(r"(https://github\.com/[\w.-]+/[\w.-]+?)(\.git)?/?", address)
    return match[1] if match else ""


def _chosen_lines(source: str, stubs: bool) -> str:
    """A code cell without the markers: its solution lines, or the stub instead."""
    lines: list[str] = []
    stub: list[str] | None = None
    for line in source.splitlines():
        mark = line.strip()
        if mark == _BEGIN:
            if stub is not None:
                raise ValueError(f"{_BEGIN} inside a solution")
            indent, stub = line[: line.index("#")], []
        elif mark == _END:
            if stub is None:
                raise ValueError(f"{_END} without {_BEGIN}")
            if stubs:
                lines += [(indent + text).rstrip() for text in stub or ["..."]]
            stub = None
        elif stub is None:
            lines.append(line)
        elif mark.startswith(_STUB):
            stub.append(mark.removeprefix(_STUB).removeprefix(" "))
        elif not stubs:
            lines.append(line)
    if stub is not None:
        raise ValueError(f"{_BEGIN} without {_END}")
    return "\n".join(lines)


def exercise(path: Path, solved: NotebookNode) -> NotebookNode:
    """The exercise of solutions/NN.py: stubs, prose and questions of the executed solution."""
    _refuse_leaks(path)
    notebook = page(path, stubs=True)
    cells = [cell for cell in solved.cells if "solution" not in cell.metadata.get("tags", [])]
    for cell, solution in zip(notebook.cells, cells, strict=True):
        if cell.cell_type == "markdown":
            cell.source = solution.source
        elif _only_prompts(cell.source):
            cell.outputs = [_without_count(output) for output in solution.outputs]
    return notebook


def _without_count(output: NotebookNode) -> NotebookNode:
    return (
        NotebookNode({**output, "execution_count": None}) if "execution_count" in output else output
    )


def _only_prompts(source: str) -> bool:
    """Whether a cell is one call of `PROMPTS` with nothing but literals."""
    body = ast.parse(source).body
    if (
        len(body) != 1
        or not isinstance(body[0], ast.Expr)
        or not isinstance(body[0].value, ast.Call)
    ):
        return False
    call = body[0].value
    values = [*call.args, *(keyword.value for keyword in call.keywords)]
    return getattr(call.func, "id", None) in PROMPTS and all(
        isinstance(value, ast.Constant) for value in values
    )


def _refuse_leaks(path: Path) -> None:
    """The prose of an exercise must not use a name whose value comes from a solution, over
    however many cells.
    """
    solved: set[str] = set()
    for cell in read(path):
        is_exercise = "solution" not in cell.metadata.tags
        if cell.cell_type == "code":
            tree = ast.parse(cell.source)
            if not is_exercise or _BEGIN in cell.source or _names(tree, ast.Load) & solved:
                solved |= _names(tree, ast.Store)
        elif is_exercise:
            for expression in expressions(cell.source):
                leaked = _names(ast.parse(expression.python), ast.Load) & solved
                if leaked:
                    raise BuildError(
                        f"{label(path)}:{cell.metadata.line}: {{{{{expression.text}}}}} gives a"
                        f" solution away: {', '.join(sorted(leaked))} comes from one. Tag the cell"
                        " `solution`."
                    )


def _names(tree: ast.AST, context: type) -> set[str]:
    """The names that code loads, or whose value it sets: by assignment, def, index, attribute."""
    names = {
        node.id
        for node in ast.walk(tree)
        if isinstance(node, ast.Name) and isinstance(node.ctx, context)
    }
    if context is ast.Store:
        names |= {
            node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.ClassDef)
        }
        for place in ast.walk(tree):
            if isinstance(place, ast.Attribute | ast.Subscript) and isinstance(
                place.ctx, ast.Store
            ):
                names |= {node.id for node in ast.walk(place.value) if isinstance(node, ast.Name)}
    return names
