"""Pages of the classroom: each is one file that fetches nothing, and no text of a student's is ever
taken for markup.

Escaping makes text harmless; a policy in the page forbids scripts and requests as well, should some
text ever slip through.
"""

from __future__ import annotations

import html
import re
from functools import cache
from urllib.parse import quote

# Characters that turn the text around them, control characters, and halves of a character.
UNSEEN = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
LONGEST = 500
STYLE = """
:root { color-scheme: light dark; --ink: #222; --soft: #595959; --paper: #fff; --panel: #f5f7f8; --line: #c9ced3; --good: #00775a; --bad: #c04e00; --none: #666; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e6e6e6; --soft: #b0b5ba; --paper: #16191c; --panel: #22272b; --line: #4a5157; --good: #4cc9a4; --bad: #ff9a57; --none: #a8adb2; }
}
body { font: 16px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper); max-width: 56rem; margin: 2rem auto; padding: 0 1rem; overflow-wrap: break-word; }
h1 { font-size: 1.5rem; line-height: 1.25; } h2 { font-size: 1.2rem; margin-top: 2.5rem; } h3 { font-size: 1rem; margin: 0; }
a { color: inherit; } code { font-size: .92em; overflow-wrap: anywhere; } .soft { color: var(--soft); }
.verdict { border-left: 6px solid var(--none); background: var(--panel); padding: .6rem 1rem; } .verdict p { margin: .2rem 0; }
.good { border-color: var(--good); } .bad { border-color: var(--bad); }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; } td, th { padding: .2rem .9rem .2rem 0; text-align: left; vertical-align: top; }
th { border-bottom: 1px solid var(--line); font-weight: 600; } td.number, th.number { text-align: right; white-space: nowrap; }
.wide { overflow-x: auto; }
figure { margin: 1.5rem 0; } figcaption { font-style: italic; }
@media print {
  :root { --ink: #000; --soft: #444; --paper: #fff; --panel: #fff; --line: #999; --good: #00775a; --bad: #c04e00; --none: #666; }
  body { margin: 0; max-width: none; font-size: 11pt; } section, figure, tr { break-inside: avoid; } nav { display: none; }
}
"""


def page(title, body, style=""):
    """A whole page; `title` is escaped here, `body` is markup already."""
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n<meta name="viewport"'
        ' content="width=device-width, initial-scale=1">\n'
        '<meta http-equiv="Content-Security-Policy" content="default-src \'none\'; style-src'
        " 'unsafe-inline'\">\n"
        '<meta name="referrer"'
        f' content="no-referrer">\n<title>{html.escape(seen(title))}</title>\n<style>{STYLE}{style}</style>\n</head>\n'
        f"<body>\n{body}</body>\n</html>\n"
    )


def seen(text):
    """One line of text as it may stand in a page or a table: what cannot be seen is shown as
    such, and it has an end.
    """
    line = UNSEEN.sub("\ufffd", re.sub(r"\s+", " ", str(text)).strip())
    return line if len(line) <= LONGEST else line[: LONGEST - 1] + "…"


def theirs(text):
    """Words of a student or of a file name, as markup. They do not turn the line that they stand
    in.
    """
    return f"<bdi>{html.escape(seen(text))}</bdi>"


def coded(text):
    """The same where `so` is code: of sentences of ours that may have such words in them."""
    return re.sub("`([^`]*)`", r"<code>\1</code>", theirs(text))


def paragraphs(text):
    """Words of a person in several lines, as markup."""
    return "<br>".join(theirs(line) for line in str(text).splitlines() if line.strip())


@cache
def _markdown():
    from markdown_it import MarkdownIt

    rules = [
        "image",
        "link",
        "autolink",
        "html_inline",
        "html_block",
        "reference",
        "heading",
        "lheading",
        "entity",
    ]
    return MarkdownIt("commonmark", {"html": False}).enable("table").disable(rules)


def ours(markdown):
    """A prompt or a message of the question bank, as markup: emphasis, code and lists, but no
    link and no HTML.
    """
    return _markdown().render(
        "\n".join(UNSEEN.sub("\ufffd", line) for line in markdown.splitlines())
    )


def file_name(id, suffix):
    """A name for a file of a student's that no id can lead elsewhere; different ids have
    different names.
    """
    return "".join(c if c.isalnum() or c in "-_.@" else quote(c, safe="") for c in id) + suffix
