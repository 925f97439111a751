"""The pages of the site as Sphinx reads them: Markdown, from the committed notebooks."""

import html
import json
import re
from pathlib import Path
from urllib.parse import quote

from lightspeed_authoring.notebooks import public_repository
from lightspeed_authoring.site import edition, glossary
from lightspeed_authoring.site.cells import for_page, inline, live_cell
from lightspeed_authoring.site.docs import write_docs
from lightspeed_authoring.site.reading import PROOF, families

HERE = Path(__file__).parent


def notebooks(course):
    """(the path, the notebook) of each chapter and exercise."""
    for folder in ("chapters", "exercises"):
        for path in sorted((course / folder).glob("[0-9][0-9]_*.ipynb")):
            yield path, json.loads(path.read_text("utf-8"))


def write_source(course, source, stops, lite=False):
    """Write what Sphinx reads, and return the names of the chapters. Cells that are `stops` are
    marked; with `lite`, pages lead to their notebooks in JupyterLite.
    """
    (source / "chapters").mkdir()
    chapters = {p.stem: (p, n) for p, n in notebooks(course) if p.parent.name == "chapters"}
    titles = {
        stem: _title(stem, "".join(notebook["cells"][0]["source"]))
        for stem, (_, notebook) in chapters.items()
    }
    kin = families(chapters)
    for path, notebook in chapters.values():
        text = for_page(notebook, stops.get(("chapters", path.stem), {}))
        if path.stem == glossary.PAGE:
            text = glossary.anchored(text)
        # Links to chapters and exercises lead to pages here; to other files, to nothing.
        text = re.sub(r"\]\((?:\./)?(\d\d_\w+)\.ipynb(#[^)]*)?\)", _link, text)
        text = re.sub(r"\]\((\.\./exercises/\d\d_\w+)\.ipynb\)", r"](\1.md)", text)
        text = re.sub(r"\[([^\]]*)\]\(\.\./(?!exercises/)[^)]*\)", r"\1", text)
        [(heading, rest)] = re.findall(r"\A(# [^\n]+\n)?(.*)", text, re.S)[:1]
        first = "".join(notebook["cells"][0]["source"])
        family = next([one, *more] for one, more in kin.items() if path.stem in (one, *more))
        over = tabs(path.stem, family, titles) + contents(rest) + door(course, path, lite)
        text = heading + over + with_tools(rest)
        if family[1:] and path.stem == family[0]:
            text += f"\n\n```{{toctree}}\n:hidden:\n\n{_listed(family[1:], titles)}\n```\n"
        words = course / "chapters" / f"{path.stem}.py", titles[path.stem], _question(first)
        write_page(course, source, f"chapters/{path.stem}", text, *words)
    exercises = write_exercises(course, source, stops)
    pages = {stem: notebook for stem, (_, notebook) in chapters.items()}
    table = live_cell("tally", ["progress"], [])
    beside = {
        "formulas": formulas(pages, titles),
        "progress": (HERE / "progress.md").read_text("utf-8").replace("TABLE", table),
        "call": (HERE / "call.md").read_text("utf-8").replace("\nCALL\n", f"\n{a_call()}\n"),
    }
    for name, text in beside.items():
        title = re.findall(r"^# (.+)$", text, re.M)[0]
        write_page(course, source, name, text, HERE / "start.md", title, _question(text))
    small = [stem for stem in kin if stem.startswith("00") and stem != FIRST_PAGE]
    parts = {
        "EXERCISES": exercises,
        "DOCS": write_docs(course, source, write_page),
        "TREE": _listed([stem for stem in kin if stem not in small], titles, "chapters/"),
        "BESIDE": "\n".join([_listed(small, titles, "chapters/"), *beside]).strip(),
        "EXPLORER": first_explorer(),
        "BELIEVE": BELIEVE,
        "CREDITS": edition.credits(course),
    }
    lessons = {stem: notebook for stem, notebook in pages.items() if not stem.endswith(PROOF)}
    pictures = {stem: svg for stem, notebook in lessons.items() if (svg := first_picture(notebook))}
    (source / PICTURES).mkdir(parents=True)
    for stem, svg in pictures.items():
        (source / PICTURES / f"{stem}.svg").write_text(svg, "utf-8")
    start = with_minutes((HERE / "start.md").read_text("utf-8"), pages, pictures)
    start = start.replace("HOURS", str(hours(pages)))
    for name, text in parts.items():
        start = start.replace(f"\n{name}\n", f"\n{text}\n")
    words = HERE / "start.md", "Start", edition.project(course).get("description", "")
    write_page(course, source, "index", start, *words)
    (source / "404.md").write_text(MISSING, "utf-8")
    return list(kin)


def _listed(stems, titles, folder=""):
    """Lines of a table of contents; under its lesson a proof is only that."""
    names = {stem: "Proof" if stem.endswith(PROOF) else titles[stem] for stem in stems}
    return "\n".join(f"{title} <{folder}{stem}>" for stem, title in names.items())


def _link(match):
    """A link to a chapter as Sphinx resolves it: JupyterLab keeps the capitals of an anchor."""
    page, anchor = match[1], re.sub(r"[^\w-]", "", (match[2] or "").lower())
    return f"]({page}.md{'#' * bool(anchor)}{anchor})"


def tabs(stem, family, titles):
    """Under the title, links between the lesson, or its parts, and the proof; none if alone."""
    if not family[1:]:
        return ""
    lessons = [one for one in family if not one.endswith(PROOF)]
    links = []
    for one in family:
        name = "Proof" if one.endswith(PROOF) else "Lesson"
        if name == "Lesson" and lessons[1:]:
            name = f"Lesson {titles[one].partition(' ')[0].rstrip('.')}"
        here = ' aria-current="page"' if one == stem else ""
        links.append(f'<a href="{one}.html"{here}>{html.escape(name)}</a>')
    return f'\n<nav class="sol-tabs" aria-label="Lesson and proof">{"".join(links)}</nav>\n'


def contents(text):
    """A closed list of a page's sections, for its top; none where there are fewer than three."""
    from docutils.nodes import make_id

    titles = re.findall(r"^## (.+)$", re.sub(r"```.*?```", "", text, flags=re.S), re.M)
    titles = [re.sub(r"\[([^]]*)\]\([^)]*\)|[`*$]", r"\1", title) for title in titles]
    if len(titles) < 3:
        return ""
    items = "".join(
        f'<li><a href="#{make_id(title)}">{html.escape(title)}</a></li>' for title in titles
    )
    summary = "<summary>Contents</summary>"
    return f'\n<details class="sol-contents">{summary}<ul>{items}</ul></details>\n'


TOOLS = (
    "*Commands run on your own machine, not on this page:"
    " [how to get them](../docs/your-own-question.md#get-the-tools).*"
)


def with_tools(text):
    """A page that says where its first block of our commands runs, or else its last line does."""
    if not re.search(r"`{1,3}(?:sh\n[^`]*)?lightspeed \w", text):
        return text
    noted, count = re.subn(r"(```sh\n[^`]*lightspeed [^`]*```\n)", rf"\1\n{TOOLS}\n", text, count=1)
    return noted if count else f"{text.rstrip()}\n\n{TOOLS}\n"


MISSING = """---
orphan: true
---

# There is no such page

It may have moved: the [start page](index.md) lists the chapters.
"""


def write_page(course, source, name, text, written_in, title, description):
    """Write a page with its head, and its last line before what Sphinx takes out of the text."""
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


def write_exercises(course, source, stops):
    """Write the pages of the exercises, and return their lines of the table of contents."""
    (source / "exercises").mkdir()
    lines = []
    for path, notebook in notebooks(course):
        if path.parent.name != "exercises":
            continue
        text = for_page(notebook, stops.get(("exercises", path.stem), {}))
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
    if title[0].isdigit():
        return title
    own = stem[3:].replace("_", " ").capitalize()
    return own if stem.startswith("00") else f"{int(stem[:2])}. {own}"


def _question(first):
    """What a chapter asks: the first paragraph under its title."""
    return next(
        (" ".join(p.split()) for p in first.split("\n\n") if not p.lstrip().startswith("#")), ""
    )


FIRST_PAGE = "00_start_here"
FIRST = "tokens"  # the control of the first explorer that a newcomer sees
WORDS = 150  # that are read in a minute
PAUSE = 2  # minutes for a picture or a question
PICTURES = "_static/pictures"


def first_explorer():
    """The clock of a layer, for the start page: the picture first, then the control FIRST."""
    from lightspeed_course.explorers.layer_clock import explore_layer_clock

    bundle = explore_layer_clock()._repr_mimebundle_()
    call = ["layer_clock.explore_layer_clock"]
    cell = live_cell("first", call, [inline(bundle["text/html"])])
    return cell.replace('sol-explore"', f'sol-explore sol-first" data-first="{FIRST}"', 1)


def minutes(notebook):
    """How long a page is read: its words, and a pause for each picture and question, to five."""
    words, pauses = 0, 0
    for cell in notebook["cells"]:
        source = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            words += len(re.findall(r"[^\W\d_][\w'’-]*", re.sub(r"\$[^$]*\$", "", source)))
        else:
            pauses += bool(re.search(r"^(ask|predict|figure|explore\w*)\(", source, re.M))
    return max(5, 5 * round((words / WORDS + PAUSE * pauses) / 5))


def hours(notebooks):
    """How long all lessons with their exercises are read, and twice that to answer them, to five:
    `minutes` counts a question as a pause, and who thinks takes longer.
    """
    whole = sum(minutes(page) for stem, page in notebooks.items() if not stem.endswith(PROOF))
    return 5 * round(2 * whole / 60 / 5)


def first_picture(notebook):
    """The first figure of a page as SVG, or None; an explorer's is a page of notes in small."""
    for cell in notebook["cells"]:
        figure = "figure" in cell["metadata"].get("tags", ())
        for output in cell.get("outputs", ()) if figure else ():
            markup = inline("".join(output.get("data", {}).get("text/html", "")))
            if svg := re.search(r"<svg.*?</svg>", markup, re.S):
                return svg[0]
    return None


def with_minutes(text, notebooks, pictures=()):
    """A list of links to chapters, each with the time that its page takes, and its picture of
    those that are `pictures`.
    """

    def told(match):
        picture = f' <img class="sol-thumb" src="{PICTURES}/{match[2]}.svg" alt="" loading="lazy">'
        return f"{match[1]} · {minutes(notebooks[match[2]])} min{picture * (match[2] in pictures)}"

    return re.sub(r"(?m)^((?:\d+\.|    - [\d.]+) \[.*\]\(chapters/(\w+)\.md\))$", told, text)


BELIEVE = (
    "**Why believe it?** Beside each lesson stands its proof, where the law is held against"
    " measurements of others, and [one page](docs/evidence.md) says how well each law holds."
)
CALLED = 3  # the incident of the start page's second door, which no lesson opens


def a_call():
    """An incident for somebody who has read nothing yet, as a live cell."""
    from lightspeed_course.practice.forms import as_html
    from lightspeed_course.practice.incident_room import incident

    return live_cell("call", ["incident", CALLED], [as_html(incident(CALLED).static)])


def formulas(notebooks, titles):
    """The formulas of all lessons on one page, which prints on two."""
    cards = {
        stem: "".join(cell["source"])
        for stem, notebook in notebooks.items()
        for cell in notebook["cells"]
        if "card" in cell["metadata"].get("tags", ())
    }
    intro = "What each lesson leaves you with, and its value for the job. Made to be printed."
    sections = [
        f"## [{titles[stem]}](chapters/{stem}.md)\n\n{text}" for stem, text in cards.items()
    ]
    # A heading can't stand in a container, so what prints small is told by an element before all.
    return "\n\n".join(["# Formula cards", intro, '<i class="sol-formulas"></i>', *sections])
