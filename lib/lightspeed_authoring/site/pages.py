"""The pages of the site as Sphinx reads them: Markdown, from the committed notebooks."""

from __future__ import annotations

import html
import json
import re
from pathlib import Path
from urllib.parse import quote

from lightspeed_authoring.notebooks import public_repository
from lightspeed_authoring.site import edition
from lightspeed_authoring.site.cells import for_page

HERE = Path(__file__).parent


def notebooks(course):
    """(the path, the notebook) of each chapter and exercise."""
    for folder in ("chapters", "exercises"):
        for path in sorted((course / folder).glob("[0-9][0-9]_*.ipynb")):
            yield path, json.loads(path.read_text("utf-8"))


def write_source(course, source, stopped, lite=False):
    """Write what Sphinx reads, and return the names of the chapters. Cells that are `stopped` are
    marked; with `lite`, pages lead to their notebooks in JupyterLite.
    """
    (source / "chapters").mkdir()
    names, titles = [], []
    for path, notebook in notebooks(course):
        if path.parent.name != "chapters":
            continue
        text = for_page(notebook, stopped.get(("chapters", path.stem), {}))
        # Links between chapters lead to pages here; to other files of the course, to nothing.
        text = re.sub(r"\]\((?:\./)?(\d\d_\w+)\.ipynb(#[^)]*)?\)", r"](\1.md)", text)
        text = re.sub(r"\[([^\]]*)\]\(\.\./[^)]*\)", r"\1", text)
        [(heading, rest)] = re.findall(r"\A(# .+\n)?(.*)", text, re.S)[:1]
        first = "".join(notebook["cells"][0]["source"])
        names.append(path.stem)
        titles.append(_title(path.stem, first))
        text = heading + door(course, path, lite) + rest
        words = course / "chapters" / f"{path.stem}.py", titles[-1], _question(first)
        write_page(course, source, f"chapters/{path.stem}", text, *words)
    exercises = write_exercises(course, source, stopped)
    start = (HERE / "start.md").read_text("utf-8").replace("EXERCISES", exercises)
    listed = "\n".join(
        f"{title} <chapters/{name}>" for name, title in zip(names, titles, strict=True)
    )
    start = start.replace("TREE", listed).replace("EXPLORER", first_explorer(course))
    words = HERE / "start.md", "Start", edition.project(course).get("description", "")
    write_page(course, source, "index", start, *words)
    (source / "404.md").write_text(MISSING, "utf-8")
    return names


MISSING = """---
orphan: true
---

# There is no such page

It may have moved: the [start page](index.md) lists the chapters.
"""


def write_page(course, source, name, text, written_in, title, description):
    """Write a page with what it says of itself: its head, and its last line before what Sphinx
    takes out of the text.
    """
    head = edition.front_matter(course, f"{name}.html", title, description)
    text, mark, more = text.partition("```{toctree}")
    last = edition.closing(course, written_in, title)
    (source / f"{name}.md").write_text(f"{head}{text.rstrip()}\n\n{last}\n{mark}{more}", "utf-8")


def door(course, path, lite=False):
    """Links that open a notebook with a kernel: in the browser, where JupyterLite is built beside
    the pages, and on Binder and Colab, where pyproject.toml names a public repository.
    """
    inside, doors = path.relative_to(course).as_posix(), []
    if lite:
        doors.append(f"[Open as a notebook in JupyterLite](../lite/lab/index.html?path={inside})")
    if address := public_repository(course):
        name, tree = address.removeprefix("https://github.com/"), quote(f"lab/tree/{inside}", "")
        binder = f"https://mybinder.org/v2/gh/{name}/HEAD?urlpath={tree}"
        colab = f"https://colab.research.google.com/github/{name}/blob/HEAD/{inside}"
        doors += [f"[Open as a notebook on Binder]({binder})", f"[on Colab]({colab})"]
    return f"\n{' · '.join(doors)}\n" if doors else ""


def write_exercises(course, source, stopped):
    """Write the pages of the exercises, and return their lines of the table of contents."""
    (source / "exercises").mkdir()
    lines = []
    for path, notebook in notebooks(course):
        if path.parent.name != "exercises":
            continue
        text = for_page(notebook, stopped.get(("exercises", path.stem), {}))
        # The page has a box in place of each cell with dots.
        text = re.sub(
            r"^(# .+\n\n)Write your answer.*?(?=\n\n|\Z)", r"\1" + BOXES, text, flags=re.S
        )
        text = re.sub(
            r"\[([^\]]*)\]\(\.\./chapters/(\d\d_\w+)\.ipynb\)", r"[\1](../chapters/\2.md)", text
        )
        title = re.findall(r"^# (.+)$", text, re.M)[0]
        words = course / "solutions" / f"{path.stem}.py", title, f"{title}. {BOXES}"
        write_page(course, source, f"exercises/{path.stem}", text, *words)
        lines.append(f"{title} <exercises/{path.stem}>")
    return "\n".join(lines)


BOXES = (
    "Answer in the boxes: each says whether it is right and, if not, what may have happened. Where"
    " a function is asked, write it and run it."
)


def _title(stem, first):
    """The title of a chapter with its number: "2. The roofline"."""
    title = re.findall(r"^# (.+)$", first, re.M)[0]
    own = title if title[0].isdigit() else stem[3:].replace("_", " ").capitalize()
    return own if own[0].isdigit() else f"{int(stem[:2])}. {own}"


def _question(first):
    """What a chapter asks: the first paragraph under its title."""
    return next(
        (" ".join(p.split()) for p in first.split("\n\n") if not p.lstrip().startswith("#")), ""
    )


FIRST = "hardware weights batch"


def first_explorer(course):
    """The roofline of chapter 2, as its page has it, for the start page: the picture first, then
    the controls that FIRST names.
    """
    notebook = json.loads((course / "chapters" / "02_roofline.ipynb").read_text("utf-8"))
    page = for_page(notebook)
    call = html.escape(json.dumps(["roofline.explore"]))
    start = rf'^<div class="sol-live sol-explore" id="[^"]*" data-call="{re.escape(call)}"[^>]*>'
    shown = re.findall(rf"{start}.*?(?=\n\n|\Z)", page, re.S | re.M)[0]
    return shown.replace('sol-explore"', f'sol-explore sol-first" data-first="{FIRST}"', 1)
