"""A notebook as the web edition shows it: live cells wrapped, pictures inline."""

import ast
import html
import json
import re
from urllib.parse import unquote

from lightspeed_authoring.site.glossary import slug
from lightspeed_course.practice.forms import as_html
from lightspeed_course.web.live import PRACTICE

ROOMS = "lightspeed_course.explorers."
PICTURE = re.compile(r'<img [^>]*?src="data:image/svg\+xml(?:;[^,"]*)?,([^"]*)"[^>]*>')
BOXED = ("takeaway", "card")  # tags of Markdown cells
LAB = "lab"  # the tag of cells that are true in JupyterLab alone
MEASURED = "measured"  # the tag of cells that measure the machine they run on
CLASSES = {"code": "edit", "progress": "tally"}  # of live cells; others by what they call
OURS = (
    "lightspeed",
    "lightspeed_show",
    "lightspeed_models",
    "lightspeed_tools",
    "lightspeed_course",
)


def explorers_of(tree):
    """Name in this cell -> "roofline.explore", of the explorers that it imports."""
    return {
        alias.asname or alias.name: f"{node.module.removeprefix(ROOMS)}.{alias.name}"
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith(ROOMS)
        for alias in node.names
    }


def call_of(source, calls):
    """What a live cell calls, as a list: ["ask", "roofline.ridge"], with a seed after the question
    if the cell gives one (a job after the number of an incident), ["roofline.explore"] or, with a
    function to write, ["code", source]; an empty one for a check that another cell's box makes;
    None for any other cell. `calls` grows by the explorers that the cell imports.
    """
    try:
        tree = ast.parse(source)
    except SyntaxError:  # a magic
        return None
    calls |= explorers_of(tree)
    last = tree.body[-1].value if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    if not isinstance(last, ast.Call) or not isinstance(last.func, ast.Name):
        return None
    if last.func.id == "check" and len(last.args) == 2:
        # The box of the question above takes an answer; a function takes an editor.
        return ["code", source] if len(tree.body) > 1 and _defines(tree) else []
    if last.func.id in calls and not last.args:
        return [calls[last.func.id]]
    if last.func.id in ("today", "progress") and not last.args:
        return [last.func.id]
    if last.func.id not in PRACTICE or not last.args or not isinstance(last.args[0], ast.Constant):
        return None
    seed = [ast.literal_eval(word.value) for word in last.keywords if word.arg in ("seed", "job")]
    return [last.func.id, last.args[0].value, *seed]


def anchors(notebook):
    """Number -> the name by which a link finds a code cell, whatever stands before it: what it
    calls ("explore-roofline", "ask-roofline-ridge"), else the first name that it binds or calls.
    """
    calls, names = {}, {}
    for number, cell in enumerate(notebook["cells"]):
        source = "".join(cell["source"])
        if cell["cell_type"] == "code" and "colab" not in cell.get("metadata", {}).get("tags", ()):
            name, same = _anchor(call_of(source, calls), source), 1
            while (free := name if same == 1 else f"{name}-{same}") in names.values():
                same += 1
            names[number] = free
    return names


def _anchor(call, source):
    if call and call[0] != "code":
        function, *arguments = call
        words = [function, *arguments[:1]]
        if function not in PRACTICE:  # layer_clock.explore_layer_clock
            room, _, make = function.partition(".")
            words = ["explore", make.removeprefix("explore").strip("_") or room]
        return slug(" ".join(map(str, words)))
    check = re.search(r"""^check\(["']([\w.]+)""", source, re.M)
    target = re.search(r"^(?:def )?(\w+)(?: = |\()", source, re.M)
    return slug(f"write {check[1]}" if check else f"cell {target[1]}" if target else "cell")


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
        return _fenced(_anchored(as_html("".join(data["text/markdown"]), own=True)))
    text = "".join(data.get("text/plain", ""))
    if control := re.match(r"SelectionSlider\(description='([^']*)'", text):
        name = html.escape(control[1])
        return f"<p class='sol-note'>In Jupyter a slider ({name}) stands here, and moves this:</p>"
    if text.startswith("Output("):
        parts = re.findall(r"'text': ('(?:[^'\\]|\\.)*')", text)
        text = "".join(map(ast.literal_eval, parts))
    return f"<pre class='sol-out'>{html.escape(text)}</pre>" if text else None


def _anchored(text):
    """HTML whose links lead to sections of its page; JupyterLab keeps an anchor's capitals."""
    from docutils.nodes import make_id

    return re.sub(r'href="#([^"]+)"', lambda link: f'href="#{make_id(unquote(link[1]))}"', text)


def _fenced(text):
    """HTML whose fenced blocks look like a page's own code and outputs."""
    text = re.sub(
        r'<pre><code class="language-python">(.*?)</code></pre>',
        lambda block: _source(html.unescape(block[1]).rstrip()),
        text,
        flags=re.S,
    )
    return re.sub(
        r'<pre><code class="language-text">(.*?)</code></pre>', r"<pre class='sol-out'>\1</pre>",
        text, flags=re.S,
    )  # fmt: skip


def for_page(notebook, stops=()):
    """The cells of a notebook as Markdown cells of a page. `stops`: number -> (the package that
    a cell lacks on a page, whether a reader may load it there).
    """
    calls, cells, stops, names = {}, [], dict(stops), anchors(notebook)
    for number, cell in enumerate(notebook["cells"]):
        source = "".join(cell["source"])
        tags = cell["metadata"].get("tags", ())
        if LAB in tags:
            continue
        if cell["cell_type"] != "code":
            cells.append(_boxed(source, next((tag for tag in BOXED if tag in tags), None)))
            continue
        if "colab" in tags:
            continue
        results = [s for s in map(shown, cell["outputs"]) if s]
        call = call_of(source, calls)
        if call and call[0] == "code":
            results = [_source(source)]
        if call != []:
            if call:
                markup = live_cell(names[number], call, results, _before_the_call(source))
            else:
                markup = _code(names[number], cell, source, results, stops.get(number))
            cells.append(markup)
    return "\n\n".join(filter(None, cells))


def _boxed(source, kind):
    """Markdown in a box of this kind, under its own headings; as it is without a kind."""
    if kind is None:
        return source
    [(headings, text)] = re.findall(r"\A((?:#.*\n+)*)(.*)", source, re.S)
    return f"{headings}````{{container}} sol-{kind}\n{text}\n````"


def _before_the_call(source):
    """What a live cell makes for the cells below it: all but its last expression."""
    *lines, _ = ast.parse(source).body
    return "\n".join(source.splitlines()[: lines[-1].end_lineno]) if lines else ""


def live_cell(name, call, results, makes=""):
    """A cell that comes alive: its id, what it calls, and what it shows until then."""
    kind = CLASSES.get(call[0], call[0] if call[0] in PRACTICE else "explore")
    data = html.escape(json.dumps(call), quote=True)
    # No empty line inside: Markdown would end the HTML there.
    still = _one_block("".join(results))
    attribute = (
        f' data-makes="{html.escape(makes, quote=True)}"' if makes and kind != "edit" else ""
    )
    return _one_block(
        f'<div class="sol-live sol-{kind}" id="{name}" data-call="{data}"{attribute}>'
        f'<div class="sol-still">{still}</div></div>'
    )


def _code(name, cell, source, results, lack=None):
    tags = cell["metadata"].get("tags", ())
    hidden = cell["metadata"].get("jupyter", {}).get("source_hidden")
    why = _lacking(lack[0], lack[1], MEASURED in tags) if lack else ""
    note = why and f"<p class='sol-note sol-lack'>{why}</p>"
    code = f"<div class='sol-still'>{_source(source)}{note}</div>"
    if hidden or "figure" in tags:
        heading = "Setup" if "setup" in tags else "Code of the figure"
        code = f"<details class='sol-folded'><summary>{heading}</summary>{code}</details>"
    if MEASURED in tags and not results:
        results = ["<p class='sol-note'>This cell measures your machine; it runs in the lab.</p>"]
    output = "".join(f"<div class='sol-result'>{result}</div>" for result in results)
    if source.startswith("job.sheet("):
        return f"<div class='sol-job' id='{name}'>{_one_block(output)}</div>"
    if re.search(r"^beside\(", source, re.M):  # a script of its own, not a cell to edit
        return f"<div class='sol-beside' id='{name}'>{_one_block(output)}</div>"
    only = " sol-lab" if lack and not lack[1] else ""
    return _one_block(f"<div class='sol-cell{only}' id='{name}'>{code}{output}</div>")


def _lacking(package, is_offered, measures):
    """Why a cell does not run on a page as it stands."""
    if is_offered:
        return (
            f"This cell needs {package}, which the page has not. Run it in the lab, or here once"
            " you let the page load it from another host."
        )
    if measures:
        return "This cell measures a machine. Run it in the lab."
    needs = package if package and package not in OURS else "what only the lab has"
    return f"This cell needs {needs}. Run it in the lab."


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
    """HTML without the empty lines at which Markdown ends it: a line feed becomes a reference."""
    return re.sub(r"\n(?=[ \t]*\n)", "&#10;", text)
