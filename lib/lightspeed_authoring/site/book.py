"""Lessons and exercises as one PDF: Sphinx makes one long page of them, and Chromium prints it."""

import os
import shutil
import tempfile
from pathlib import Path
from typing import Any

from lightspeed_authoring.site.build import HERE, by_node, from_npm, run_sphinx
from lightspeed_authoring.site.edition import CannotBuild
from lightspeed_authoring.site.pages import write_source

CHROMIUM = ("chromium", "chromium-browser", "google-chrome")
MISSING = (
    "The book is printed by Chromium, through Playwright: install chromium, and pip install"
    " '.[dev]'."
)
PLAIN = {
    "html_theme": "basic", "html_theme_options": {}, "html_sidebars": {}, "html_use_index": False,
    "html_js_files": [], "html_css_files": ["live/katex/katex.min.css", "live/site.css"],
}  # fmt: skip
PAPER: dict[str, Any] = {
    "format": "A4", "outline": True, "tagged": True,
    "margin": {"top": "18mm", "bottom": "18mm", "left": "16mm", "right": "16mm"},
}  # fmt: skip


def print_book(course, file, report=print):
    """Print the committed notebooks of the checkout `course` into the PDF `file`. Raises
    CannotBuild if a file with that name is not a PDF.
    """
    file = Path(file)
    if file.exists() and not file.read_bytes().startswith(b"%PDF"):
        raise CannotBuild(f"{file} is not a PDF: name another file.")
    program = next(filter(None, map(shutil.which, CHROMIUM)), None)
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        program = None
    if program is None:
        raise CannotBuild(MISSING)
    katex = from_npm(report) / "katex"
    with tempfile.TemporaryDirectory() as folder:
        source, book = Path(folder, "source"), Path(folder, "book")
        live = source / "_static" / "live"
        shutil.copytree(HERE / "static", live)
        shutil.copytree(katex / "dist" / "fonts", live / "katex" / "fonts")
        shutil.copy(katex / "dist" / "katex.min.css", live / "katex")
        write_source(Path(course), source, {})
        (source / "404.md").unlink()
        run_sphinx(source, book, PLAIN, "singlehtml")
        fault = "Formulas that KaTeX does not set"
        by_node("formulas.mjs", katex, book / "index.html", fault=fault)
        as_root = hasattr(os, "geteuid") and os.geteuid() == 0
        with sync_playwright() as playwright:
            options = ["--no-sandbox"] * as_root  # Chromium's own sandbox refuses root
            browser = playwright.chromium.launch(executable_path=program, args=options)
            page = browser.new_page()
            page.goto((book / "index.html").as_uri())
            page.pdf(path=file, **PAPER)
            browser.close()
    report(f"The book is in {file}.")
