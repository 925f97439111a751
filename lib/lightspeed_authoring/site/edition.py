"""What a page says of itself: its version and date, where to mend it, and what search engines and
those who share a link read.

The address of the site is `Homepage`, and that of the source `Repository`, of `[project.urls]` in
pyproject.toml; without them a page leaves out what needs them.
"""

import html
import json
import re
import shutil
import subprocess
import tomllib
from datetime import date
from urllib.parse import quote

from lightspeed_authoring.notebooks import public_repository

CARD = "_static/live/card.png"


class CannotBuild(RuntimeError):
    """What the site build lacks, and how to install it."""


def project(course):
    """The table `project` of pyproject.toml; empty where there is none."""
    settings = course / "pyproject.toml"
    return tomllib.loads(settings.read_text("utf-8"))["project"] if settings.exists() else {}


def site_address(course):
    """Return the site's address, ending in a slash; empty if pyproject.toml has none."""
    address = project(course).get("urls", {}).get("Homepage", "")
    if not re.fullmatch(r"https://[\w.-]+(:\d+)?(/[\w.~%/-]*)?", address):
        return ""
    return "" if address.startswith("https://github.com/") else address.rstrip("/") + "/"


def day(course):
    """The day of the commit that is built, else of the newest release; None if neither is known."""
    if shutil.which("git") and (course / ".git").exists():
        process = subprocess.run(
            ["git", "log", "-1", "--format=%cs"], cwd=course, capture_output=True, text=True
        )
        if not process.returncode and process.stdout.strip():
            return date.fromisoformat(process.stdout.strip())
    changes = course / "CHANGELOG.md"
    match = re.search(r"^## .*?(\d{4}-\d\d-\d\d)", changes.read_text("utf-8"), re.M) \
        if changes.exists() else None  # fmt: skip
    return date.fromisoformat(match[1]) if match else None


def closing(course, source, title):
    """The last line of a page: its version and date, and, where a repository is set, links that
    report a wrong number and edit its `source`.
    """
    version, when = project(course).get("version", ""), day(course)
    edition = [f"Version {version}"] * bool(version)
    edition += [f"{when.day} {when:%B %Y}"] * bool(when)
    parts = [html.escape(", ".join(edition))]
    if repository := public_repository(course):
        body = f"Page: {title}\n{', '.join(edition)}\n\nThe page says:\n\nIt should say, because:\n"
        query = f"title={quote(f'A wrong number: {title}', '')}&body={quote(body, '')}"
        parts.append(_link("Report a wrong number", f"{repository}/issues/new?{query}"))
        if source.is_relative_to(course):
            path = source.relative_to(course).as_posix()
            parts.append(_link("Edit this page", f"{repository}/edit/HEAD/{path}"))
    return f'<p class="sol-edition">{" · ".join(filter(None, parts))}</p>\n'


def credits(course):
    """Who wrote the course, under which licences, how to cite it and how to say that a number is
    wrong; from CITATION.cff and pyproject.toml.
    """
    cited = (course / "CITATION.cff").read_text("utf-8")
    [authors] = re.findall(r'authors:\n  - name: "([^"]+)"', cited)[:1] or [""]
    [title] = re.findall(r'^title: "([^"]+)"', cited, re.M)[:1] or [""]
    version = project(course).get("version", "")
    when = re.findall(r"^date-released: (\S+)", cited, re.M)
    year = when[0][:4] if when else ""
    repository = public_repository(course)
    tell = (
        f"[open an issue]({repository}/issues/new) with the page, what it says and what it should"
        " say; each page has such a link in its last line"
        if repository
        else "tell whoever gave you this site, with the page, what it says and what it should say"
    )
    return (
        f"## Who, and how to cite\n\nBy {authors}. Text, figures and questions are under CC BY 4.0,"
        f" code under the MIT licence. To cite: *{authors}, {title}, version {version}, {year}*."
        f" If a number is wrong, {tell}."
    )


def _link(words, address):
    return f'<a href="{html.escape(address)}">{words}</a>'


def front_matter(course, page, title, description):
    """The head of a page in Markdown: what a search engine and a shared link show."""
    title, words = f"{title} · Speed of Light", plain(description)
    meta = {
        "description": words,
        "property=og:type": "website",
        "property=og:title": title,
        "property=og:description": words,
    }
    if address := site_address(course):
        meta |= {
            "property=og:url": address + page,
            "property=og:image": address + CARD,
            "twitter:card": "summary_large_image",
        }
    return f"---\n{json.dumps({'myst': {'html_meta': meta}}, ensure_ascii=False)}\n---\n"


def plain(markdown):
    """A paragraph without its marks, not longer than search engines show."""
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", " ".join(markdown.split()))
    text = re.sub(r"[*`$]", "", text)
    return text if len(text) <= 200 else text[:200].rpartition(" ")[0] + " …"


def sitemap(address, pages):
    """A sitemap of pages, paths below the site's address."""
    rows = "".join(f"<url><loc>{html.escape(address + page)}</loc></url>\n" for page in pages)
    space = "http://www.sitemaps.org/schemas/sitemap/0.9"
    return f'<?xml version="1.0" encoding="UTF-8"?>\n<urlset xmlns="{space}">\n{rows}</urlset>\n'
