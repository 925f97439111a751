"""What the site's search finds: the sections of its pages, by their prose, and the glossary's rows.

Code and pictures have no words here, and a formula is three dots. A section that a row of the
glossary leads to is found by each of the row's names.
"""

import json
import re
from dataclasses import asdict, dataclass, field
from pathlib import Path

from lightspeed_authoring.site.glossary import PAGE
from lightspeed_authoring.site.reading import PROOF

FILE = "sections.json"
LIBRARY = ("minisearch",)  # search.mjs uses it on the page


@dataclass
class Section:
    """A hit: its address and headings, what kind of page it is on, its prose, the names of what it
    teaches."""

    url: str
    title: str
    page: str
    kind: str
    text: str
    terms: list[str] = field(default_factory=list)


def kind_of(page):
    """The kind of a page of the site: "lesson", "proof", "exercises" or, of the others, "docs"."""
    folder, _, stem = page.rpartition("/")
    if folder == "chapters" and not stem.startswith("00_"):
        return "proof" if stem.endswith(PROOF) else "lesson"
    return "exercises" if folder == "exercises" else "docs"


def sections(page, doctree):
    """The sections of a page, each without those below it."""
    from docutils import nodes

    parts = list(doctree.findall(nodes.section))
    for section in parts:
        text = " ".join(filter(None, map(_words, _paragraphs(section))))
        anchor = f"#{section['ids'][0]}" if section is not parts[0] else ""
        title = section[0].astext()
        yield Section(f"{page}.html{anchor}", title, parts[0][0].astext(), kind_of(page), text)


def _paragraphs(section):
    from docutils import nodes

    for child in section.children:
        if not isinstance(child, nodes.section):
            yield from child.findall(nodes.paragraph)


def _words(paragraph):
    from docutils import nodes

    texts = (text for text in paragraph.findall(nodes.Text) if text != "proof")  # a link to one
    texts = (text for text in texts if not isinstance(text.parent, nodes.raw))
    words = ("…" if isinstance(text.parent, nodes.math) else text for text in texts)
    return re.sub(r"\s+", " ", "".join(words)).strip()


def with_glossary(taught, rows):
    """The sections with the names of what they teach, and after them the glossary's rows."""
    from docutils.nodes import make_id

    by_url = {section.url: section for section in taught}
    for row in rows:
        page = f"chapters/{row.page}.html"
        place = by_url.get(f"{page}#{make_id(row.anchor)}") or by_url.get(page)
        if place:
            place.terms += row.names
    own = f"chapters/{PAGE}.html"
    return [section for section in taught if not section.url.startswith(own)] + [
        Section(f"{own}#{row.id}", row.name, "Glossary", "glossary", row.meaning, list(row.names))
        for row in rows
    ]


def collect(app, rows):
    """For Sphinx: write sections.json beside the pages, in place of Sphinx's own index."""
    all_sections: list[Section] = []

    def read(app, doctree, page):
        if page != "404":
            all_sections.extend(sections(page, doctree))

    def write(app, fault):
        if not fault:
            objects = [asdict(section) for section in with_glossary(all_sections, rows)]
            text = json.dumps(objects, ensure_ascii=False, separators=(",", ":"))
            Path(app.outdir, FILE).write_text(text, "utf-8")

    app.builder.search = False
    app.connect("doctree-resolved", read)
    app.connect("build-finished", write)
