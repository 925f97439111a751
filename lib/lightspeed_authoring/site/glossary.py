"""The glossary on the site: each row has an anchor, and where a lesson first uses one of its words
that word leads there and shows the meaning to whoever points at it.

Rows stand in chapters/00_glossary.py as `- **term** (synonyms): meaning [heading](page#anchor)`.
"""

import re
from dataclasses import dataclass

PAGE = "00_glossary"
ROW = re.compile(
    r"^- \*\*(.+?)\*\*(?: \(([^)]*)\))?: (.+) \[([^\]]+)\]\((\w+)\.ipynb#(\S+)\)$", re.M
)
# Words that mean something else in most sentences: they are found by search, and not underlined.
PLAIN = re.compile(
    "[A-Z]{2}|balance|barrier|batch|channels|delay|distance|drops|index|load|loss rate|median|peak|"
    "placement|process|rails|ring|rotation|save|scale|shard|sign|spread|stage|streams?|swap|tokens?|"
    "trace|tree|tuning|units|update|wave|weights|width|window|worker"
)


@dataclass(frozen=True)
class Term:
    """A row: its standard name, the other names, what it means, and the heading that teaches it."""

    name: str
    synonyms: tuple[str, ...]
    meaning: str
    heading: str
    page: str
    anchor: str

    @property
    def id(self):
        return f"term-{slug(self.name)}"

    @property
    def names(self):
        return (self.name, *self.synonyms)


def slug(words):
    """Words as an anchor has them."""
    return re.sub(r"[^a-z0-9]+", "-", words.lower()).strip("-")


def terms(text):
    """The rows of the glossary's Markdown, in order."""
    return [
        Term(name, tuple(filter(None, (synonyms or "").split(", "))), meaning, *place)
        for name, synonyms, meaning, *place in ROW.findall(text)
    ]


def anchored(text):
    """The glossary's Markdown with an anchor before each row."""
    return ROW.sub(lambda row: f'- <span id="term-{slug(row[1])}"></span>{row[0][2:]}', text)


def pattern(names):
    """What finds one of these names in prose, the longest first; abbreviations by capitals."""
    listed = sorted(names, key=len, reverse=True)
    either = [
        re.escape(name) if re.search(r"[A-Z]", name[1:]) else f"(?i:{re.escape(name)})"
        for name in listed
    ]
    return re.compile(rf"(?<![\w/-])(?:{'|'.join(either)})(?:s|es)?(?![\w-])")


def link_terms(app, rows):
    """For Sphinx: the first use of each term in a lesson becomes a link to its row."""
    from docutils import nodes

    said = {name: row for row in rows for name in row.names if not PLAIN.fullmatch(name)}
    search, by_name = pattern(said), {name.lower(): row for name, row in said.items()}

    def pieces(text, met):
        end = 0
        for match in search.finditer(text):
            word = match[0].lower()
            row = next(filter(None, map(by_name.get, (word, word[:-1], word[:-2]))))
            if row.id in met:
                continue
            met.add(row.id)
            yield nodes.Text(text[end : match.start()])
            link = nodes.reference("", match[0], refuri=f"{PAGE}.html#{row.id}", internal=True)
            link["reftitle"], link["classes"] = f"{row.name}: {row.meaning}", ["sol-term"]
            yield link
            end = match.end()
        yield nodes.Text(text[end:])

    def link(app, doctree, page):
        if not rows or not re.match(rf"chapters/(?!{PAGE})", page):
            return
        met: set[str] = set()
        for paragraph in list(doctree.findall(nodes.paragraph)):
            for text in list(paragraph.findall(nodes.Text)):
                if isinstance(text.parent, nodes.paragraph | nodes.emphasis | nodes.strong):
                    text.parent.replace(text, list(pieces(text.astext(), met)))

    app.connect("doctree-resolved", link)
