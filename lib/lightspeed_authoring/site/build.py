"""The site: committed notebooks through Sphinx, and beside them Python for the browser.

Node is needed once, for Pyodide, KaTeX, CodeMirror and MiniSearch from npm, pinned by
package-lock.json and checked by their hashes. Nothing of the site asks another host for anything.
"""

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
from typing import Any

from lightspeed_authoring.site import edition, glossary, search
from lightspeed_authoring.site.docs import build_wheel
from lightspeed_authoring.site.edition import CannotBuild
from lightspeed_authoring.site.pages import notebooks, write_source
from lightspeed_authoring.site.reading import moved
from lightspeed_course.practice.question_files import compiled
from lightspeed_course.practice.questions import topics
from lightspeed_course.web.packages import offered
from lightspeed_course.workspace import course_root

HERE = Path(__file__).parent
PACKAGES = (
    "lightspeed",
    "lightspeed_show",
    "lightspeed_models",
    "lightspeed_tools",
    "lightspeed_course",
)
# What a page does not run. What it does need, Markdown for prompts and replies, comes along.
LEFT_OUT = re.compile(
    r"__pycache__|/(_delivered|evidence)/|/measure/(pages|instruments)/"
    r"|\.(js|css|html|csv)$|/content/\w+\.md$"
)
KEPT = re.compile(
    r"/instruments/(__init__|timing|latency_levels)\.py$|/(tuning.*|accuracy_by_format)\.csv$"
)
ALONG = ("markdown_it", "mdurl", "mdit_py_plugins")
PYODIDE = ("pyodide.mjs", "pyodide.asm.js", "pyodide.asm.wasm", "python_stdlib.zip",
           "pyodide-lock.json")  # fmt: skip
EDITOR = ("@codemirror/*", "@lezer/*", "@marijn/*", "crelt", "style-mod", "w3c-keyname")
NODE = "The site takes Python for the browser from npm: install Node.js 20 or newer, then again."


def build(course, out, report=print, lite=None):
    """Build the site from the chapters of the checkout `course` into the folder `out`, which is
    replaced; return the pages. `lite` (build_lite's) adds JupyterLite. Raises CannotBuild.
    """
    packages = from_npm(report)
    with tempfile.TemporaryDirectory() as folder:
        source, site, course = Path(folder, "source"), Path(folder, "site"), Path(course)
        live = source / "_static" / "live"
        carry(live, packages)
        chapters = write_source(course, source, stopped(course, live), bool(lite))
        address = edition.site_address(course)
        if address:
            shutil.copy(course / "docs" / "clock.png", site.parent / "source" / edition.CARD)
        rows = glossary.terms(glossary_text(course))
        own = {"html_baseurl": address, "templates_path": [str(HERE)],
               "html_additional_pages": {"search": "search.html"}}  # fmt: skip
        run_sphinx(source, site, own, rows=rows)
        bundle("search.mjs", site / "search.js", packages, search.LIBRARY)
        build_wheel(course, site / "docs")
        if lite:
            lite(course, site, packages, report)
        pages = finish(site, packages, address)
        report(f"{len(chapters)} chapters, {len(pages)} pages")
        replace(site, Path(out))
    return pages


def glossary_text(course):
    """The glossary's Markdown, as it was built; empty where a course has none."""
    text = {path.stem: notebook for path, notebook in notebooks(course)}.get(glossary.PAGE)
    return "\n\n".join("".join(cell["source"]) for cell in text["cells"]) if text else ""


def from_npm(report=print):
    """The folder of packages that package-lock.json names, each checked by its hash."""
    npm = shutil.which("npm")
    if not npm or not shutil.which("node"):
        raise CannotBuild(NODE)
    lock = (HERE / "package-lock.json").read_bytes()
    folder = cache() / f"npm-{hashlib.sha256(lock).hexdigest()[:12]}"
    if not (folder / "node_modules" / ".done").exists():
        report("Fetching Pyodide, KaTeX, CodeMirror and MiniSearch from npm")
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


# --- what stands beside the pages -----------------------------------------------------------------


def stopped(course, live):
    """Which cells do not run on a page as they stand, as the page's Python finds: (folder, name) ->
    number -> (the package that is missing, whether a reader may load it).
    """
    sources, failing = {}, {}
    for path, notebook in notebooks(course):
        page = sources[f"{path.parent.name}/{path.stem}"] = []
        for number, cell in enumerate(notebook["cells"]):
            if cell["cell_type"] == "code" and "colab" not in cell["metadata"].get("tags", ()):
                if any(output["output_type"] == "error" for output in cell["outputs"]):
                    failing[f"{path.parent.name}/{path.stem}", number] = "as it is meant to"
                page.append([number, "".join(cell["source"])])
    cells = live / "cells.json"
    cells.write_text(json.dumps(sources), "utf-8")
    output = by_node(
        "run.mjs", live, HERE / "try_cells.py", cells, fault="Cells that were not tried"
    )
    cells.unlink()
    packages, lacks_of = json.loads((live / "packages.json").read_text("utf-8")), {}
    for page, number, _, problem, lacks in map(json.loads, output.splitlines()):
        if problem and (page, number) not in failing:
            is_offered = bool(lacks) and offered(lacks, packages) is not None
            lacks_of.setdefault(tuple(page.split("/")), {})[number] = lacks, is_offered
    return lacks_of


def carry(live, packages):
    """Put Python for the browser, KaTeX and the course's own files beside the pages."""
    shutil.copytree(HERE / "static", live)
    for name in ("view.js", "view.css", "form.js", "form.css"):
        (live / name).write_bytes(files("lightspeed_show").joinpath(name).read_bytes())
    (live / "pyodide").mkdir()
    for name in PYODIDE:
        shutil.copy(packages / "pyodide" / name, live / "pyodide")
    lock = json.loads((live / "pyodide" / "pyodide-lock.json").read_text("utf-8"))
    (live / "pyodide" / "pyodide-lock.json").write_text(
        json.dumps(lock | {"packages": {}}), "utf-8"
    )
    text = json.dumps(elsewhere(lock), separators=(",", ":"))
    (live / "packages.json").write_text(text, "utf-8")
    elsewhere_now = {
        page: {anchor: place for anchor, place in anchors.items() if place != f"{page}#{anchor}"}
        for page, anchors in moved().items()
    }
    (live / "moved.json").write_text(json.dumps(elsewhere_now, separators=(",", ":")), "utf-8")
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
    bundle("editor.mjs", live / "editor.js", packages, EDITOR)
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


def bundle(script, out, packages, owners):
    """A script of this folder with what it imports as one module, and beside it the licences."""
    by_node(
        packages / "esbuild" / "bin" / "esbuild", HERE / script, "--bundle", "--minify",
        "--format=esm", "--log-level=error", "--legal-comments=none", f"--outfile={out}",
        fault=f"{script}, which esbuild cannot bundle", environment={"NODE_PATH": str(packages)},
    )  # fmt: skip
    licences = sorted(file for owner in owners for file in packages.glob(f"{owner}/LICENSE*"))
    texts = [f"{p.parent.relative_to(packages)}\n\n{p.read_text('utf-8')}" for p in licences]
    out.with_suffix(".LICENSE").write_text("\n\n".join(texts), "utf-8")


def by_node(script, *arguments, fault, environment=()):
    """What a script of this folder, or of a package, prints in Node. Raises CannotBuild."""
    run = subprocess.run(
        ["node", HERE / script, *arguments],
        env=os.environ | dict(environment), capture_output=True, text=True,
    )  # fmt: skip
    if run.returncode:
        raise CannotBuild(f"{fault}:\n{run.stderr.strip()}")
    return run.stdout


def zip_course(path):
    """What of the course, and of Markdown, the page imports; the same bytes at every build."""
    import importlib

    def add(archive, inside, content):
        entry = zipfile.ZipInfo(inside, (1980, 1, 1, 0, 0, 0))
        entry.compress_type = zipfile.ZIP_DEFLATED
        archive.writestr(entry, content)

    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for name in (*PACKAGES, *ALONG):
            root = Path(importlib.import_module(name).__path__[0])
            for file in sorted(p for p in root.rglob("*") if p.is_file()):
                inside = f"{name}/{file.relative_to(root).as_posix()}"
                if LEFT_OUT.search(inside) and not KEPT.search(inside):
                    continue
                add(archive, inside, file.read_bytes())
        for topic in topics():  # read here, where it does not keep a reader waiting
            inside = f"lightspeed_course/content/{topic}_questions.py"
            add(archive, inside, compiled(topic))
        # Of what `course_root` finds, cells of a page read two files.
        for name in ("chapters/gallery.toml", "chapters/beside.toml"):
            add(
                archive, f"lightspeed_course/_delivered/{name}", (course_root() / name).read_bytes()
            )


# --- Sphinx and what follows it -----------------------------------------------------------------


def run_sphinx(source, out, more=(), builder="html", rows=()):
    """The pages, with `more` settings than the usual ones, and `rows` of the glossary linked."""
    try:
        from sphinx.application import Sphinx
        from sphinx.util.docutils import docutils_namespace
    except ImportError:
        raise CannotBuild("The site is built by Sphinx: pip install '.[web]'") from None
    with docutils_namespace():
        app = Sphinx(
            source, None, out, source / ".doctrees", builder, SETTINGS | dict(more),
            status=None, warningiserror=False,
        )  # fmt: skip
        if builder == "html":
            glossary.link_terms(app, rows)
            search.collect(app, rows)
        app.build()
        if app.statuscode:
            raise CannotBuild("Sphinx found faults in the pages; see above.")


SETTINGS: dict[str, Any] = {
    "project": "Speed of Light",
    "html_title": "Speed of Light",
    "author": "The Speed of Light authors",
    "copyright": "The Speed of Light authors; text CC BY 4.0, code MIT",
    "language": "en",
    "extensions": [
        "myst_parser", "lightspeed_authoring.site.sphinx_math", "lightspeed_authoring.site.reading",
    ],
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


# What the theme and Markdown leave out for those who listen: pattern -> replacement.
LISTENERS = {
    r'(<div class="highlight"><pre)>': r'\1 tabindex="0">',
    r'(<p class="caption" role="heading")>': r'\1 aria-level="2">',
    r"<th\b([^>]*)>\s*(?:<p>\s*</p>)?\s*</th>": r"<td\1></td>",
    r'<aside class="sidebar-drawer">': '<aside class="sidebar-drawer" aria-label="Contents">',
    r'<aside class="toc-drawer([^"]*)">': r'<aside class="toc-drawer\1" aria-label="On this page">',
}


def finish(site, packages, address=""):
    """Set formulas, mend what the theme lacks, and put the marked service worker at the root."""
    for name in ("*search*.js", "language_data.js", "*stemmer*.js"):  # of Sphinx's own search
        for file in site.glob(f"_static/{name}"):
            file.unlink()
    pages = sorted(p for p in site.rglob("*.html") if "lite" not in p.relative_to(site).parts)
    by_node("formulas.mjs", packages / "katex", *pages, fault="Formulas that KaTeX does not set")
    for page in pages:
        text = page.read_text("utf-8")
        for pattern, better in LISTENERS.items():
            text = re.sub(pattern, better, text)
        if page.name == "404.html" and address:  # it stands for pages of every depth
            text = text.replace("<head>", f'<head><base href="{html.escape(address)}">', 1)
        page.write_text(text, "utf-8")
    if address:
        names = [page.relative_to(site).as_posix() for page in pages]
        urls = [n for n in names if not re.search(r"(404|search|genindex)\.html$", n)]
        (site / "sitemap.xml").write_text(edition.sitemap(address, urls), "utf-8")
        (site / "robots.txt").write_text(f"Sitemap: {address}sitemap.xml\n", "utf-8")
    open_before_python(pages, site / "_static" / "live")
    asks = json.dumps({page.stem: ids for page in pages if (ids := asks_of(page))})
    (site / "_static" / "live" / "asked.json").write_text(asks, "utf-8")
    mark = hashlib.sha256()
    for file in sorted(p for p in site.rglob("*") if p.is_file()):
        mark.update(file.relative_to(site).as_posix().encode() + file.read_bytes())
    live = site / "_static" / "live"
    (live / "sw.js").rename(site / "sw.js")
    for file in (site / "sw.js", live / "early.js", live / "page.js"):
        text = file.read_text("utf-8").replace("BUILD", mark.hexdigest()[:12])
        file.write_text(text, "utf-8")
    start_early(pages, live)
    manifest(site)
    (site / ".nojekyll").touch()  # GitHub Pages else leaves out folders that begin with _
    return pages


OPENED_EARLY = r'(<div class="sol-live sol-(?:ask|predict|explore)[^>]*data-call="([^"]*)")'
LIVE_CELL = re.compile(OPENED_EARLY)


def open_before_python(pages, live):
    """Write into each box and explorer what Python says when it opens it, so that a page shows it
    at first paint; and have the page's script run before that.
    """
    texts = {page: page.read_text("utf-8") for page in pages}
    calls = sorted({call for text in texts.values() for _, call in LIVE_CELL.findall(text)})
    cells = live / "cells.json"
    cells.write_text(json.dumps([json.loads(html.unescape(call)) for call in calls]), "utf-8")
    fault = "Cells that Python does not open"
    lines = by_node("run.mjs", live, HERE / "open_cells.py", cells, fault=fault).splitlines()
    cells.unlink()
    openings = dict(zip(calls, lines, strict=True))
    for page, text in texts.items():
        text = LIVE_CELL.sub(
            lambda cell: f'{cell[1]} data-opening="{html.escape(openings[cell[2]])}"', text
        )
        if script := re.search(r'<script type="module" src="[^"]*/page\.js[^"]*"></script>', text):
            early = script[0].replace("<script", '<script blocking="render"')
            text = text.replace(script[0], "").replace("</head>", f"{early}\n</head>", 1)
        page.write_text(text, "utf-8")


def asks_of(page):
    """The ids of the questions that a chapter's page asks, for the ticks of the sidebar."""
    text = page.read_text("utf-8") if page.parent.name == "chapters" else ""
    calls = re.findall(r'class="sol-live sol-ask" id="[^"]*" data-call="([^"]*)"', text)
    return sorted({json.loads(html.unescape(call))[1] for call in calls})


def manifest(site):
    """Write into the service worker what a reader may keep: path -> revision."""
    exempt = re.compile(
        r"^(lite/|sw\.js|\.|.*\.(md|LICENSE|png)$|_static/live/(course\.bin|packages))"
    )
    files = {
        name: hashlib.sha256(file.read_bytes()).hexdigest()[:10]
        for file in sorted(p for p in site.rglob("*") if p.is_file())
        if not exempt.match(name := file.relative_to(site).as_posix())
    }
    worker = site / "sw.js"
    worker.write_text(worker.read_text("utf-8").replace("MANIFEST", json.dumps(files)), "utf-8")


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


def replace(site, out):
    """Put the finished site where the old one was; a folder that is no site of ours stays."""
    if out.exists():
        if any(out.iterdir()) and not (out / "sw.js").is_file():
            raise CannotBuild(f"{out} is not a site of this course: name another folder.")
        shutil.rmtree(out)
    shutil.copytree(site, out, ignore=shutil.ignore_patterns(".buildinfo*", "_sources"))
