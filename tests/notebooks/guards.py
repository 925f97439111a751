"""What nbval cannot see: `faults` lists what makes a committed notebook worth less than it looks.

nbval passes a notebook without execution counts, never compares a PNG and has no opinion on an
address that happens to be the same twice. Each rule here is for such a defect, or for a promise to
readers about the form of a page.
"""

import ast
import re
from collections import Counter
from statistics import median

from lightspeed_authoring.notebooks import FOLDED

LONGEST_CELL, LONGEST_FOLDED, MEDIAN_CELL = 30, 45, 5  # a folded cell only draws
LEAST_WITH_OUTPUT = 0.4
_ADDRESS = re.compile(r"\bat 0x[0-9a-f]{6,}")
_BARE_REPR = re.compile(r"<[\w.]+( object)?[^>]*>|\w+\((children=|value=|layout=).*", re.S)
_METADATA = {"kernelspec": {"display_name", "language", "name"}, "language_info": {"name"}}


def faults(notebook):
    """What is wrong with a notebook that claims to be executed, one text a fault."""
    found = []
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    for number, cell in enumerate(code, 1):
        found += [f"code cell {number} ({cell.id}): {fault}" for fault in _faults_of(cell, number)]
    code = [cell for cell in code if "setup" not in cell.metadata.get("tags", [])]
    share = sum(bool(cell.outputs) for cell in code) / max(len(code), 1)
    if code and share < LEAST_WITH_OUTPUT:
        found.append(f"only {share:.0%} of the code cells have an output")
    seen = [_lines(cell) for cell in code if not FOLDED & {*cell.metadata.get("tags", [])}]
    if seen and median(seen) > MEDIAN_CELL:
        found.append(f"the median code cell in sight has {median(seen)} lines")
    if {key: set(value) for key, value in notebook.metadata.items()} != _METADATA:
        found.append("the notebook has more metadata than its kernel's name")
    found += [
        f"id {name} is given to {n} cells"
        for name, n in Counter(c.id for c in notebook.cells).items()
        if n > 1
    ]
    return found


def _faults_of(cell, number):
    if cell.execution_count != number:
        yield f"execution count {cell.execution_count}: the cell was not run in this order"
    if not cell.source.strip():
        yield "empty"
    if re.search(r";\s*(#[^\n]*)?\s*$", cell.source):
        yield "ends with a semicolon: nbval sees the output that it hides"
    tags = cell.metadata.get("tags", [])
    folded = {"jupyter": {"source_hidden": True}} if FOLDED & {*tags} else {}
    if _lines(cell) > (LONGEST_FOLDED if folded else LONGEST_CELL):
        yield f"{_lines(cell)} lines; longer code belongs in the library"
    other = {key: value for key, value in cell.metadata.items() if key != "tags"}
    if other != folded:
        yield f"metadata {other}"
    if "figure" in tags and not any(
        is_figure(o) or "text/markdown" in o.get("data", {}) for o in cell.outputs
    ):
        yield "its code is folded away, but it draws neither a figure nor a table"
    for output in cell.outputs:
        data = output.get("data", {})
        texts = [output.get("text", ""), *(text for text in data.values() if isinstance(text, str))]
        if output.output_type == "error" and (
            "raises-exception" not in tags or len(output.traceback) != 1
        ):
            yield f"error {output.ename}: {output.evalue}"
        if output.get("name") == "stderr":
            yield "an output on stderr"
        if any(kind.startswith("image/") for kind in data):
            yield (
                f"{', '.join(data)}: nbval compares no bitmaps, and no page says what they show;"
                " use figure()"
            )
        if any(
            not re.search(r'\balt="[^"]{20,}"', tag)
            for tag in re.findall(r"<img\b[^>]*>", data.get("text/html", ""))
        ):
            yield "an image without a description of 20 characters or more"
        if "application/vnd.jupyter.widget-view+json" in data:
            yield "the view of a widget that is gone"
        if any(_ADDRESS.search(text) for text in texts):
            yield "an object's address in an output"
        if set(data) == {"text/plain"} and _BARE_REPR.fullmatch(data["text/plain"]):
            yield f"a bare repr: {data['text/plain'][:60]}"


def is_figure(output):
    """Whether an output is an SVG drawing in an image that has a description."""
    return '" src="data:image/svg+xml,' in output.get("data", {}).get("text/html", "")


SQUARE_FITS = 46_341  # whole numbers below this have a square that 32 bits hold


def bare_integers(source):
    """The `np.array(...)` and `np.arange(...)` of a page that may hold integers of the default
    width, as `line N: code`.

    Where that width is 32 bits (a browser, older numpy on Windows) products of published counts
    overflow without a word. A dtype, a float among the literals, or nothing but small literals
    makes sure that they cannot.
    """
    for node in ast.walk(ast.parse(re.sub(r"(?m)^[ \t]*[%!].*$", "", source))):
        if (
            isinstance(node, ast.Call)
            and ast.unparse(node.func) in ("np.array", "np.asarray", "np.arange")
            and not any(k.arg == "dtype" for k in node.keywords)
            and not (ast.unparse(node.func) != "np.arange" and len(node.args) > 1)
        ):
            literals = [
                n.value for a in node.args for n in ast.walk(a) if isinstance(n, ast.Constant)
            ]
            plain = (ast.Constant, ast.List, ast.Tuple, ast.UnaryOp, ast.USub, ast.Load)
            known = all(isinstance(n, plain) for a in node.args for n in ast.walk(a))
            if not (
                known
                and (any(isinstance(v, float) for v in literals) or max(literals) < SQUARE_FITS)
            ):
                yield f"line {node.lineno}: {ast.unparse(node)}"


def _lines(cell):
    return sum(bool(line.strip()) for line in cell.source.splitlines())


def repeated_prose(notebooks):
    """Paragraphs of 80 characters or more that stand twice in notebooks (path -> it)."""
    places = {}
    for path, notebook in notebooks.items():
        for number, cell in enumerate(notebook.cells):
            if cell.cell_type == "markdown":
                for paragraph in cell.source.split("\n\n"):
                    text = " ".join(paragraph.split())
                    if len(text) >= 80:
                        places.setdefault(text, []).append(
                            f"{path.parent.name}/{path.name} cell {number}"
                        )
    return [
        f"{' and '.join(where)}: {text[:60]}…" for text, where in places.items() if len(where) > 1
    ]
