"""The site: committed notebooks through Sphinx, and beside them Python for the browser.

Node is needed once, for Pyodide, KaTeX and CodeMirror from npm, pinned by package-lock.json and
checked by their hashes. Nothing of the site asks another host for anything.
"""

from __future__ import annotations

import hashlib
import html
import json
import os
import re
import shutil
import subprocess
import tempfile
import zipfile
from importlib.resources import files
from pathlib import Path
from urllib.parse import quote

from lightspeed_authoring.notebooks import public_repository
from lightspeed_authoring.site.cells import for_page
from lightspeed_course.practice.question_files import compiled
from lightspeed_course.practice.questions import topics

HERE = Path(__file__).parent
PACKAGES = ("lightspeed", "lightspeed_course")
# What a page does not run. What it does need, Markdown for prompts and replies, comes along.
LEFT_OUT = re.compile(
    r"__pycache__|/(authoring|web/static|_delivered|evidence)/|/measure/(pages|instruments)/"
    r"|\.(js|css|html|csv|lock|in)$|/content/\w+\.md$|gallery\.toml|/package.*json|/sizes\.json|\.mjs$"
)
KEPT = re.compile(r"/instruments/(__init__|timing|latency_levels)\.py$|/tuning.*\.csv$")
ALONG = ("markdown_it", "mdurl", "mdit_py_plugins")
PYODIDE = ("pyodide.mjs", "pyodide.asm.js", "pyodide.asm.wasm", "python_stdlib.zip",
           "pyodide-lock.json")  # fmt: skip
LANGUAGES = ("ko",)  # those of locale/
NODE = "The site takes Python for the browser from npm: install Node.js 20 or newer, then again."


class CannotBuild(RuntimeError):
    """What is missing for the site, and how to get it."""


def build(course, out, report=print, lite=None):
    """Build the site from the chapters of the checkout `course` into the folder `out`, which is
    replaced; return the pages. `lite` (build_lite's) adds JupyterLite. Raises CannotBuild.
    """
    packages = from_npm(report)
    with tempfile.TemporaryDirectory() as folder:
        source, built = Path(folder, "source"), Path(folder, "site")
        chapters = write_source(Path(course), source, bool(lite))
        live = source / "_static" / "live"
        carry(live, packages)
        run_sphinx(source, built)
        for language in LANGUAGES:
            translate(source, built, language)
        if lite:
            lite(Path(course), built, packages, report)
        pages = finish(built, packages)
        report(f"{len(chapters)} chapters, {len(pages)} pages")
        replace(built, Path(out))
    return pages


def from_npm(report=print):
    """The folder of packages that package-lock.json names, each checked by its hash."""
    npm = shutil.which("npm")
    if not npm or not shutil.which("node"):
        raise CannotBuild(NODE)
    lock = (HERE / "package-lock.json").read_bytes()
    folder = cache() / f"npm-{hashlib.sha256(lock).hexdigest()[:12]}"
    if not (folder / "node_modules" / ".done").exists():
        report("Fetching Pyodide, KaTeX and CodeMirror from npm")
        folder.mkdir(parents=True, exist_ok=True)
        for name in ("package.json", "package-lock.json"):
            shutil.copy(HERE / name, folder)
        run = subprocess.run(
            [npm, "ci", "--no-audit", "--no-fund", "--ignore-scripts"],
            cwd=folder, capture_output=True, text=True,
        )  # fmt: skip
        if run.returncode:
            raise CannotBuild(f"npm ci failed in {folder}:\n{run.stderr.strip()}")
        (folder / "node_modules" / ".done").touch()
    return folder / "node_modules"


def cache():
    """Where what was fetched for the site is kept."""
    import platformdirs

    return Path(platformdirs.user_cache_dir("speed-of-light", appauthor=False))


# --- the source of the pages --------------------------------------------------------------------


def write_source(course, source, lite=False):
    """Write what Sphinx reads, and return the names of the chapters. With `lite`, pages lead to
    their notebooks in JupyterLite.
    """
    (source / "chapters").mkdir(parents=True)
    rows, names, titles = [], [], []
    for path in sorted((course / "chapters").glob("[0-9][0-9]_*.ipynb")):
        notebook = json.loads(path.read_text("utf-8"))
        text = for_page(notebook)
        # Links between chapters lead to pages here; to other files of the course, to nothing.
        text = re.sub(r"\]\((?:\./)?(\d\d_\w+)\.ipynb(#[^)]*)?\)", r"](\1.md)", text)
        text = re.sub(r"\[([^\]]*)\]\(\.\./[^)]*\)", r"\1", text)
        heading, rest = re.match(r"(# .+\n)?(.*)", text, re.S).groups()
        text = (heading or "") + door(course, path, lite) + rest
        (source / "chapters" / f"{path.stem}.md").write_text(text, "utf-8")
        names.append(path.stem)
        first = "".join(notebook["cells"][0]["source"])
        titles.append(_title(path.stem, first))
        rows.append(f"| [{titles[-1]}](chapters/{path.stem}.md) | {_question(first)} |")
    exercises = write_exercises(course, source)
    start = (HERE / "start.md").read_text("utf-8").replace("EXERCISES", exercises)
    listed = "\n".join(
        f"{title} <chapters/{name}>" for name, title in zip(names, titles, strict=True)
    )
    start = start.replace("CHAPTERS", "\n".join(rows)).replace("TREE", listed)
    (source / "index.md").write_text(start.replace("EXPLORER", first_explorer(course)), "utf-8")
    shutil.copytree(HERE / "static", source / "_static" / "live")
    for name in ("view.js", "view.css", "form.js", "form.css"):
        shutil.copy(files("lightspeed_show").joinpath(name), source / "_static" / "live")
    return names


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


def write_exercises(course, source):
    """Write the pages of the exercises, and return their lines of the table of contents."""
    (source / "exercises").mkdir()
    lines = []
    for path in sorted((course / "exercises").glob("[0-9][0-9]_*.ipynb")):
        notebook = json.loads(path.read_text("utf-8"))
        text = for_page(notebook)
        # The page has a box in place of each cell with dots.
        text = re.sub(
            r"^(# .+\n\n)Write your answer.*?(?=\n\n|\Z)", r"\1" + BOXES, text, flags=re.S
        )
        text = re.sub(
            r"\[([^\]]*)\]\(\.\./chapters/(\d\d_\w+)\.ipynb\)", r"[\1](../chapters/\2.md)", text
        )
        (source / "exercises" / f"{path.stem}.md").write_text(text, "utf-8")
        title = re.search(r"^# (.+)$", text, re.M)[1]
        lines.append(f"{title} <exercises/{path.stem}>")
    return "\n".join(lines)


BOXES = (
    "Answer in the boxes: each says whether it is right and, if not, what may have happened. Where"
    " a function is asked, write it and run it."
)


def _title(stem, first):
    """The title of a chapter with its number: "2. The roofline"."""
    title = re.search(r"^# (.+)$", first, re.M)[1]
    own = title if title[0].isdigit() else stem[3:].replace("_", " ").capitalize()
    return own if own[0].isdigit() else f"{int(stem[:2])}. {own}"


def _question(first):
    """What a chapter asks: the first paragraph under its title."""
    return next(
        (" ".join(p.split()) for p in first.split("\n\n") if not p.lstrip().startswith("#")), ""
    ).replace("|", "\\|")


FIRST = "hardware weights batch"


def first_explorer(course):
    """The roofline of chapter 2, as its page has it, for the start page: the picture first, then
    the controls that FIRST names.
    """
    notebook = json.loads((course / "chapters" / "02_roofline.ipynb").read_text("utf-8"))
    page = for_page(notebook)
    call = html.escape(json.dumps(["roofline.explore"]))
    start = rf'^<div class="sol-live sol-explore" id="[^"]*" data-call="{re.escape(call)}">'
    shown = re.search(rf"{start}.*?(?=\n\n|\Z)", page, re.S | re.M)[0]
    return shown.replace('sol-explore"', f'sol-explore sol-first" data-first="{FIRST}"', 1)


def carry(live, packages):
    """Put Python for the browser, KaTeX and the course's own files beside the pages."""
    (live / "pyodide").mkdir(parents=True)
    for name in PYODIDE:
        shutil.copy(packages / "pyodide" / name, live / "pyodide")
    lock = json.loads((live / "pyodide" / "pyodide-lock.json").read_text("utf-8"))
    (live / "pyodide" / "pyodide-lock.json").write_text(
        json.dumps(lock | {"packages": {}}), "utf-8"
    )
    told = json.dumps(elsewhere(lock), separators=(",", ":"))
    (live / "packages.json").write_text(told, "utf-8")
    licence = packages / "katex" / "LICENSE"
    (live / "katex").mkdir()
    shutil.copy(packages / "katex" / "dist" / "katex.mjs", live / "katex")
    shutil.copy(packages / "katex" / "dist" / "katex.min.css", live / "katex")
    shutil.copytree(
        packages / "katex" / "dist" / "fonts", live / "katex" / "fonts",
        ignore=shutil.ignore_patterns("*.ttf", "*.woff"),
    )  # fmt: skip
    shutil.copy(licence, live / "katex" / "LICENSE")
    (live / "pyodide" / "LICENSE").write_text(
        "Pyodide 0.27.7, Mozilla Public License 2.0; source: https://github.com/pyodide/pyodide\n"
        "It holds CPython, under the PSF License: https://docs.python.org/3/license.html\n"
    )
    bundle_editor(live, packages)
    zip_course(live / "course.zip")
    by_node("compile.mjs", live, fault="Python that the page cannot compile")


def elsewhere(lock):
    """Pyodide's list of the packages that a reader may load from its host, which the site has not:
    {"place": its address, "packages": the list}. sizes.json has the bytes of those files whose
    content, with the hash of the list, was at hand.
    """
    sizes = json.loads((HERE / "sizes.json").read_text("utf-8"))
    place = f"https://cdn.jsdelivr.net/pyodide/v{lock['info']['version']}/full/"
    return {
        "place": place,
        "packages": {
            name: entry | {"bytes": sizes.get(entry["sha256"])}
            for name, entry in lock["packages"].items()
            if not name.endswith("-tests")
        },
    }


def bundle_editor(live, packages):
    """CodeMirror as one module, with the licences of what is in it."""
    by_node(
        packages / "esbuild" / "bin" / "esbuild", HERE / "editor.mjs", "--bundle", "--minify",
        "--format=esm", "--log-level=error", "--legal-comments=none",
        f"--outfile={live / 'editor.js'}", fault="An editor that esbuild cannot bundle",
        environment={"NODE_PATH": str(packages)},
    )  # fmt: skip
    owners = ("@codemirror/*", "@lezer/*", "@marijn/*", "crelt", "style-mod", "w3c-keyname")
    licences = sorted(file for owner in owners for file in packages.glob(f"{owner}/LICENSE"))
    texts = [f"{p.parent.relative_to(packages)}\n\n{p.read_text('utf-8')}" for p in licences]
    (live / "editor.LICENSE").write_text("\n\n".join(texts), "utf-8")


def by_node(script, *arguments, fault, environment=()):
    """Run a script of this folder, or of a package, in Node; what it says is a fault."""
    run = subprocess.run(
        ["node", HERE / script, *arguments],
        env=os.environ | dict(environment), capture_output=True, text=True,
    )  # fmt: skip
    if run.returncode:
        raise CannotBuild(f"{fault}:\n{run.stderr.strip()}")


def zip_course(path):
    """What of the course, and of Markdown, the page imports; the same bytes at every build."""
    import importlib

    def add(archive, inside, content):
        entry = zipfile.ZipInfo(inside, (1980, 1, 1, 0, 0, 0))
        entry.compress_type = zipfile.ZIP_DEFLATED
        archive.writestr(entry, content)

    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for name in (*PACKAGES, *ALONG):
            root = Path(importlib.import_module(name).__file__).parent
            for file in sorted(p for p in root.rglob("*") if p.is_file()):
                inside = f"{name}/{file.relative_to(root).as_posix()}"
                if LEFT_OUT.search(inside) and not KEPT.search(inside):
                    continue
                add(archive, inside, file.read_bytes())
        for topic in topics():  # read and compiled here, where it does not keep a reader waiting
            inside = f"lightspeed_course/content/{topic}_questions.py"
            add(archive, inside, compiled(topic))


# --- Sphinx and what follows it -----------------------------------------------------------------


def translate(source, built, language):
    """The start page in another language, from its catalogue: `locale/<language>`. Its explorer and
    the chapters that it links to are those of the site.
    """
    own = source.parent / language
    own.mkdir()
    shutil.copytree(HERE / "locale", own / "locale")
    text = (source / "index.md").read_text("utf-8").partition("```{toctree}")[0]
    text = re.sub(r"\]\(chapters/(\w+)\.md\)", r"](<../chapters/\1.html>)", text)
    (own / "index.md").write_text(text, "utf-8")
    carried = {
        name: [f"../../_static/{file}" for file in SETTINGS[name]] for name in ("html_css_files",)
    }
    script = [(f"../../_static/{file}", kind) for file, kind in SETTINGS["html_js_files"]]
    more = {"language": language, "locale_dirs": ["locale"], "html_static_path": [],
            "html_favicon": None, "html_js_files": script, "exclude_patterns": ["locale"],
            "html_title": "Speed of Light", "myst_all_links_external": True, **carried}  # fmt: skip
    run_sphinx(own, built / language, more)


def run_sphinx(source, out, more=()):
    """The pages, with `more` settings than the usual ones."""
    try:
        from sphinx.application import Sphinx
        from sphinx.util.docutils import docutils_namespace
    except ImportError:
        raise CannotBuild(
            "The site is built by Sphinx: pip install 'speed-of-light[web]'"
        ) from None
    with docutils_namespace():
        app = Sphinx(
            source, None, out, source / ".doctrees", "html", SETTINGS | dict(more),
            status=None, warningiserror=False,
        )  # fmt: skip
        app.build()
        if app.statuscode:
            raise CannotBuild("Sphinx found faults in the pages; see above.")


SETTINGS = {
    "project": "Speed of Light",
    "html_title": "Speed of Light",
    "author": "The Speed of Light authors",
    "copyright": "The Speed of Light authors; text CC BY 4.0, code MIT",
    "language": "en",
    "extensions": ["myst_parser", "lightspeed_authoring.site.sphinx_math"],
    "html_math_renderer": "speed_of_light",
    "myst_enable_extensions": ["dollarmath", "amsmath"],
    "myst_dmath_double_inline": True,
    "myst_heading_anchors": 3,
    "suppress_warnings": ["myst.header", "docutils", "myst.xref_missing"],
    "html_theme": "furo",
    "html_theme_options": {"navigation_with_keys": True},
    "html_favicon": "_static/live/icon.svg",
    "html_static_path": ["_static"],
    "html_css_files": ["live/katex/katex.min.css", "live/view.css", "live/form.css",
                       "live/site.css"],
    "html_js_files": [("live/page.js", {"type": "module"})],
    "html_show_sphinx": False,
    "html_copy_source": False,
    "html_show_sourcelink": False,
    "html_last_updated_fmt": None,
}  # fmt: skip


def finish(built, packages):
    """Set the formulas, and put the service worker at the root with the mark of this build."""
    pages = sorted(p for p in built.rglob("*.html") if "lite" not in p.relative_to(built).parts)
    by_node("formulas.mjs", packages / "katex", *pages, fault="Formulas that KaTeX does not set")
    mark = hashlib.sha256()
    for file in sorted(p for p in built.rglob("*") if p.is_file()):
        mark.update(file.relative_to(built).as_posix().encode() + file.read_bytes())
    live = built / "_static" / "live"
    (live / "sw.js").rename(built / "sw.js")
    for file in (built / "sw.js", live / "early.js", live / "page.js"):
        text = file.read_text("utf-8").replace("BUILD", mark.hexdigest()[:12])
        file.write_text(text, "utf-8")
    start_early(pages, live)
    (built / ".nojekyll").touch()  # GitHub Pages else leaves out folders that begin with _
    return pages


def start_early(pages, live):
    """Put early.js into the head of the pages that have live cells."""
    script = (live / "early.js").read_text("utf-8")
    (live / "early.js").unlink()
    for page in pages:
        text = page.read_text("utf-8")
        if 'class="sol-live' in text:
            own = script.replace("LIVE", Path(os.path.relpath(live, page.parent)).as_posix())
            text = text.replace("</head>", f"<script>\n{own}</script>\n</head>", 1)
            page.write_text(text, "utf-8")


def replace(built, out):
    """Put the finished site where the old one was; a folder that is no site of ours stays."""
    if out.exists():
        if any(out.iterdir()) and not (out / "sw.js").is_file():
            raise CannotBuild(f"{out} is not a site of this course: name another folder.")
        shutil.rmtree(out)
    shutil.copytree(built, out, ignore=shutil.ignore_patterns(".buildinfo*", "_sources"))
