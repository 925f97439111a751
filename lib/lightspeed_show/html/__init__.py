"""Pages of HTML, from templates with one base and one style sheet: each is one file that fetches
nothing, and no text is ever taken for markup.

Every text is escaped, and a policy in the page forbids scripts and requests as well, should some
text ever slip through. Much of it is hostile: students' names and answers, files from anywhere.
"""

import re
from functools import cache
from pathlib import Path

from markupsafe import Markup, escape

# Characters that turn the text around them, control characters, and halves of a character.
UNSEEN = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
LONGEST, LONGEST_BLOCK = 500, 20_000


def page(template, **data):
    """The page (or fragment) of a template in `templates/`: the same data give the same bytes."""
    return _environment().get_template(f"{template}.html").render(data)


def seen(text):
    """Return one line of text for a page or table, shortened, its control characters visible."""
    line = _visible(str(text).strip())
    return line if len(line) <= LONGEST else line[: LONGEST - 1] + "…"


def theirs(text):
    """Mark up a student's words or a file name, keeping the text direction of the line."""
    return Markup("<bdi>{}</bdi>").format(seen(text))


def coded(text):
    """The same where `so` is code: of sentences of ours that may have such words in them."""
    return Markup(re.sub("`([^`]*)`", r"<code>\1</code>", str(theirs(text))))


def block(text):
    """Lines of somebody's code or output, as markup of a block of its own; they have an end."""
    lines = [UNSEEN.sub("\ufffd", line.expandtabs(4)) for line in re.split("\r\n|\n|\r", text)]
    visible = "\n".join(lines)
    more = len(visible) - LONGEST_BLOCK
    visible = f"{visible[:LONGEST_BLOCK]}\n… and {more:,} characters more" if more > 0 else visible
    return Markup('<pre dir="ltr">{}</pre>').format(visible)


def kept(text):
    """Escape a text for editing, unchanged otherwise."""
    return escape(text)


def ours(markdown):
    """A bank's prompt or message, as markup: emphasis, code and lists, no link and no HTML."""
    lines = (UNSEEN.sub("\ufffd", line) for line in markdown.splitlines())
    return Markup(_markdown().render("\n".join(lines)))


def sentence(markdown):
    """One sentence of the same, without a paragraph round it."""
    return Markup(ours(markdown).strip().removeprefix("<p>").removesuffix("</p>"))


def prose(markdown):
    """Markdown that somebody wrote, as markup: headings as lines in bold, formulas as their TeX; no
    link, no picture, no HTML; it has an end.
    """
    lines = [UNSEEN.sub("\ufffd", line.expandtabs(4)) for line in re.split("\r\n|\n|\r", markdown)]
    text = "\n".join(lines)
    if len(text) > LONGEST_BLOCK:
        return block(markdown)
    tokens = (reader := _markdown(formulas=True)).parse(text)
    for token in tokens:
        if token.type in ("heading_open", "heading_close"):
            token.tag = "h4"
    return Markup("<div class=prose dir=auto>{}</div>").format(
        Markup(reader.renderer.render(tokens, reader.options, {}))
    )


def _percent(share):
    return f"{100 * min(max(share, 0), 1):.4g}%"


def _visible(value):
    """What a template writes: of a text, what can be seen."""
    if not isinstance(value, str) or hasattr(value, "__html__"):
        return value
    return UNSEEN.sub("\ufffd", re.sub(r"\s+", " ", value))


@cache
def _environment():
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    here = Path(__file__).parent
    environment = Environment(
        loader=FileSystemLoader([here / "templates", here]),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_visible,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        f.__name__: f for f in (theirs, block, kept, coded, ours, prose, sentence)
    }
    environment.filters["percent"] = _percent
    return environment


@cache
def _markdown(formulas=False):
    from markdown_it import MarkdownIt
    from mdit_py_plugins.dollarmath import dollarmath_plugin

    unwanted = "image link autolink html_inline html_block reference entity"
    reader = MarkdownIt("commonmark", {"html": False}).enable("table").disable(unwanted.split())
    if not formulas:
        return reader.disable(["heading", "lheading"])
    return reader.use(
        dollarmath_plugin, allow_labels=False, allow_space=False, allow_digits=False,
        double_inline=True,
    )  # fmt: skip
