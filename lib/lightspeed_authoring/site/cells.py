"""A committed notebook as the web edition shows it: live cells wrapped, pictures inline, tables and
formulas as they stand.
"""

from __future__ import annotations

import ast
import html
import json
import re
from urllib.parse import unquote

from lightspeed_course.practice.forms import as_html
from lightspeed_course.web.live import PRACTICE

ROOMS = "lightspeed_course.explorers."
PICTURE = re.compile(r'<img [^>]*?src="data:image/svg\+xml(?:;[^,"]*)?,([^"]*)"[^>]*>')
MEASURED = "measured"  # the tag of cells that measure the machine they run on


def explorers_of(tree):
    """Name in this cell -> "roofline.explore", of the explorers that it imports."""
    return {
        alias.asname or alias.name: f"{node.module.removeprefix(ROOMS)}.{alias.name}"
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(ROOMS)
        for alias in node.names
    }


def call_of(source, known):
    """What a live cell calls, as a list: ["ask", "roofline.ridge"], with a seed after the question
    if the cell gives one, ["roofline.explore"] or, with a function to write, ["code", source]; an
    empty one for a check that another cell's box makes;
    None for any other cell. `known` grows by the explorers that the cell imports.
    """
    try:
        tree = ast.parse(source)
    except SyntaxError:  # a magic
        return None
    known |= explorers_of(tree)
    last = tree.body[-1].value if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    if not isinstance(last, ast.Call) or not isinstance(last.func, ast.Name):
        return None
    if last.func.id == "check" and len(last.args) == 2:
        # The box of the question above takes an answer; a function takes an editor.
        return ["code", source] if len(tree.body) > 1 and _defines(tree) else []
    if last.func.id in known and not last.args:
        return [known[last.func.id]]
    if last.func.id == "today" and not last.args:
        return ["today"]
    if last.func.id not in PRACTICE or not last.args or not isinstance(last.args[0], ast.Constant):
        return None
    seed = [word.value.value for word in last.keywords if word.arg == "seed"]
    return [last.func.id, last.args[0].value, *seed]


def _defines(tree):
    return any(isinstance(node, ast.FunctionDef) for node in tree.body)


def inline(text):
    """HTML with the pictures in it as SVG, so that a reader's tools find their words."""

    def drawn(match):
        svg = unquote(html.unescape(match[1]))
        return svg[svg.index("<svg") :]

    return PICTURE.sub(drawn, text)


def shown(output):
    """An output as HTML, or None for one that shows nothing."""
    if output["output_type"] == "stream":
        text = "".join(output["text"])
        return f"<pre class='sol-out'>{html.escape(text)}</pre>" if text.strip() else None
    if output["output_type"] == "error":
        words = html.escape(f"{output['ename']}: {output['evalue']}")
        return f"<pre class='sol-out sol-error'>{words}</pre>"
    data = output.get("data", {})
    if "text/html" in data:
        return inline("".join(data["text/html"]))
    if "text/markdown" in data:
        return as_html("".join(data["text/markdown"]), own=True)
    text = "".join(data.get("text/plain", ""))
    if control := re.match(r"SelectionSlider\(description='([^']*)'", text):
        name = html.escape(control[1])
        return f"<p class='sol-note'>In Jupyter a slider ({name}) stands here, and moves this:</p>"
    if text.startswith("Output("):
        parts = re.findall(r"'text': ('(?:[^'\\]|\\.)*')", text)
        text = "".join(map(ast.literal_eval, parts))
    return f"<pre class='sol-out'>{html.escape(text)}</pre>" if text else None


def for_page(notebook):
    """The cells of a notebook as Markdown cells of a page."""
    known, cells = {}, []
    for number, cell in enumerate(notebook["cells"]):
        source = "".join(cell["source"])
        if cell["cell_type"] != "code":
            cells.append(source)
            continue
        if "colab" in cell["metadata"].get("tags", ()):
            continue
        results = [s for s in map(shown, cell["outputs"]) if s]
        call = call_of(source, known)
        if call and call[0] == "code":
            results = [_source(source)]
        if call != []:
            made = _live(number, call, results) if call else _code(number, cell, source, results)
            cells.append(made)
    return "\n\n".join(filter(None, cells))


def _live(number, call, results):
    name = call[0] if call[0] in PRACTICE else "edit" if call[0] == "code" else "explore"
    told = html.escape(json.dumps(call), quote=True)
    # No empty line inside: Markdown would end the HTML there.
    still = _one_block("".join(results))
    return (
        f'<div class="sol-live sol-{name}" id="cell-{number}" data-call="{told}">'
        f'<div class="sol-still">{still}</div></div>'
    )


def _code(number, cell, source, results):
    tags = cell["metadata"].get("tags", ())
    hidden = cell["metadata"].get("jupyter", {}).get("source_hidden")
    code = f"<div class='sol-still'>{_source(source)}</div>"
    if hidden or "figure" in tags:
        code = f"<details class='sol-folded'><summary>Code of the figure</summary>{code}</details>"
    if MEASURED in tags and not results:
        results = ["<p class='sol-note'>This cell measures your machine; it runs in the lab.</p>"]
    shown = "".join(f"<div class='sol-result'>{result}</div>" for result in results)
    return _one_block(f"<div class='sol-cell' id='cell-{number}'>{code}{shown}</div>")


def _source(source):
    code = f'<pre class="sol-code" tabindex="0">{highlighted(source)}</pre>'
    return f'<div class="highlight">{code}</div>'


def highlighted(source):
    """Python as HTML with Pygments' classes."""
    from pygments import highlight
    from pygments.formatters import HtmlFormatter
    from pygments.lexers import PythonLexer

    return highlight(source, PythonLexer(), HtmlFormatter(nowrap=True))


def _one_block(text):
    """HTML without the empty lines at which Markdown would end it: the line feed before one is
    written as a reference.
    """
    return re.sub(r"\n(?=[ \t]*\n)", "&#10;", text)
