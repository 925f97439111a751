"""What building and serving do to the files of the one who asks."""

import gzip
import html
import os
import re
import shutil
import subprocess
import sys
import threading
import urllib.request
import zipfile
from pathlib import Path
from types import ModuleType
from urllib.parse import parse_qs, urlsplit
from xml.etree import ElementTree

import nbformat
import pytest
import yaml
from IPython.core.interactiveshell import InteractiveShell

from lightspeed_authoring.notebooks import page
from lightspeed_authoring.site import build as site_build
from lightspeed_authoring.site import edition
from lightspeed_authoring.site.book import CHROMIUM, print_book
from lightspeed_authoring.site.build import (
    from_npm,
    replace,
    zip_course,
)
from lightspeed_authoring.site.cells import for_page
from lightspeed_authoring.site.edition import CannotBuild
from lightspeed_authoring.site.pages import (
    door,
    first_explorer,
    minutes,
    with_minutes,
)
from lightspeed_authoring.site.serve import server
from lightspeed_course import job
from lightspeed_course.explorers.layer_clock import explore_layer_clock

COURSE = Path(__file__).parents[2]


def test_the_start_page_shows_the_clock_of_a_layer():
    shown = first_explorer()
    assert shown.count("data-call") == 1 and "layer_clock.explore_layer_clock&quot;" in shown
    assert shown.count("<svg") >= 1 and shown.endswith("</div></div>")
    wanted = re.search(r' data-first="([^"]*)"', shown)[1].split()
    assert len(wanted) == 1 and set(wanted) < set(explore_layer_clock().controls), (
        "the others are behind a button"
    )


def test_the_start_page_says_what_the_job_s_laws_say():
    said = Path(site_build.HERE, "start.md").read_text("utf-8")
    assert "planned for a week. It will take thirteen days" in said
    assert round(job.planned() / 86400) == 7 and round(job.run() / 86400) == 13


def test_a_page_s_minutes_grow_with_its_words_and_pictures():
    prose = {"cell_type": "markdown", "source": "one word and more " * 300, "metadata": {}}
    picture = {"cell_type": "code", "source": "explore()", "metadata": {}}
    assert minutes({"cells": [prose]}) == 10
    assert minutes({"cells": [prose, *[picture] * 5]}) == 20
    assert minutes({"cells": [picture]}) == 5
    row = "1. [Why?](chapters/02_x.md)"
    assert with_minutes(row, {"02_x": {"cells": [prose]}}) == f"{row} · 10 min"
    shown = with_minutes(row, {"02_x": {"cells": [prose]}}, ["02_x"])
    assert 'src="_static/pictures/02_x.svg" alt=""' in shown and shown.startswith(row)


@pytest.mark.slow
def test_a_lesson_s_first_picture_stands_beside_its_question(site):
    start = (site / "index.html").read_text("utf-8")
    row = r'href="chapters/(\w+)\.html">.*?</a> · \d+ min <img class="sol-thumb" src="(.*?)"'
    rows = re.findall(row, start)
    assert len(rows) == 15
    for stem, picture in rows:
        assert stem in picture and (site / picture).read_text("utf-8").startswith("<svg")


@pytest.mark.slow
def test_a_lesson_lists_its_sections_and_says_where_commands_run(site):
    lessons = [
        path for path in (site / "chapters").glob("0[1-9]_*.html") if "proof" not in path.stem
    ]
    for path in lessons:
        page = path.read_text("utf-8")
        [listed] = re.findall(r'<details class="sol-contents">(.*?)</details>', page, re.S)
        anchors = re.findall(r'href="#([^"]+)"', listed)
        assert len(anchors) >= 3 and all(f'id="{anchor}"' in page for anchor in anchors), path.stem
        if re.search(r"<pre>[^<]*<[^>]*>?lightspeed ", page):
            assert "your-own-question.html#get-the-tools" in page, path.stem
    assert sum("#get-the-tools" in path.read_text("utf-8") for path in lessons) >= 2


def test_a_folder_that_is_no_site_stays(tmp_path):
    built, mine = tmp_path / "built", tmp_path / "mine"
    built.mkdir()
    mine.mkdir()
    (built / "sw.js").write_text("new")
    (mine / "thesis.txt").write_text("years of work")
    with pytest.raises(CannotBuild, match="not a site of this course"):
        replace(built, mine)
    assert (mine / "thesis.txt").read_text() == "years of work"
    (mine / "thesis.txt").unlink()
    replace(built, mine)
    (mine / "old.html").touch()
    replace(built, mine)
    assert [p.name for p in mine.iterdir()] == ["sw.js"]


@pytest.mark.holds("docs/web.md", "the pages have no such links")
def test_a_chapter_opens_elsewhere_where_the_course_has_a_public_repository(tmp_path):
    chapter, settings = tmp_path / "chapters" / "02_roofline.ipynb", tmp_path / "pyproject.toml"
    for said in ("", '[project.urls]\nRepository = ""', '[project.urls]\nRepository = "/srv/git"'):
        settings.write_text(f'[project]\nname = "x"\n{said}')
        assert door(tmp_path, chapter) == "", "no link is better than one to nowhere"
    for end in ("", "/", ".git"):
        address = f"https://github.com/someone/speed.of-light{end}"
        settings.write_text(f'[project]\nname = "x"\n[project.urls]\nRepository = "{address}"')
        binder, colab = door(tmp_path, chapter).strip().split(" · ")
        assert binder.endswith(
            "(https://mybinder.org/v2/gh/someone/speed.of-light/HEAD"
            "?urlpath=lab%2Ftree%2Fchapters%2F02_roofline.ipynb)"
        )
        assert colab.endswith(
            "(https://colab.research.google.com/github/someone/speed.of-light/blob/HEAD"
            "/chapters/02_roofline.ipynb)"
        )
    script = Path(__file__).parents[2] / ".binder" / "postBuild"
    doc = (Path(__file__).parents[2] / "docs/learn.md").read_text("utf-8")
    for line in script.read_text("utf-8").splitlines():
        if "pip install" in line:
            assert line.removeprefix("python") in doc, "Binder installs as docs/learn.md says"


def test_a_chapter_brings_the_course_to_colab_and_does_nothing_elsewhere(tmp_path, monkeypatch):
    script = tmp_path / "chapters" / "02_x.py"
    script.parent.mkdir()
    script.write_text('# %% [markdown]\n# # X\n# %%\nprint("x")\n')
    plain = page(script)
    (tmp_path / "pyproject.toml").write_text(
        '[project]\nname = "x"\n[project.urls]\nRepository = "https://github.com/someone/course"'
    )
    notebook = page(script)
    title, added, *rest = notebook.cells
    assert [title, *rest] == plain.cells and added.metadata.tags == ["colab"]
    nbformat.validate(notebook)
    assert "pip" not in for_page(notebook), "the site needs no installation"
    asked = []
    shell = InteractiveShell()
    shell.register_magic_function(asked.append, magic_name="pip")
    assert shell.run_cell(added.source).success and not asked
    monkeypatch.setitem(sys.modules, "google.colab", ModuleType("google.colab"))
    assert shell.run_cell(added.source).success and len(asked) == 1
    doc = (Path(__file__).parents[2] / "docs/web.md").read_text("utf-8")
    assert "%pip " + asked[0].replace("someone/course", "OWNER/NAME") in doc


def test_without_node_it_says_how_to_get_it(monkeypatch):
    monkeypatch.setattr(site_build.shutil, "which", lambda name: None)
    with pytest.raises(CannotBuild, match=r"install Node\.js"):
        from_npm()


def test_the_course_s_archive_is_the_same_each_time_and_has_no_secrets_of_a_build(tmp_path):
    for name in ("a.zip", "b.zip"):
        zip_course(tmp_path / name)
    assert (tmp_path / "a.zip").read_bytes() == (tmp_path / "b.zip").read_bytes()
    names = zipfile.ZipFile(tmp_path / "a.zip").namelist()
    assert "lightspeed/units.txt" in names and "lightspeed_course/web/live.py" in names
    delivered = [n for n in names if "_delivered" in n]
    read = ("gallery", "beside")
    assert delivered == [f"lightspeed_course/_delivered/chapters/{n}.toml" for n in read]
    assert not [n for n in names if "__pycache__" in n or "authoring" in n or n.endswith(".js")]


def test_files_are_served_compressed_to_who_takes_it_and_asked_for_once(tmp_path):
    text = "<p>" + "light " * 1000
    (tmp_path / "index.html").write_text(text)
    running = server(tmp_path)
    threading.Thread(target=running.serve_forever, daemon=True).start()
    address = f"http://127.0.0.1:{running.server_port}/"

    def get(**headers):
        return urllib.request.urlopen(urllib.request.Request(address, headers=headers))

    try:
        assert get().read().decode() == text
        pressed = get(**{"Accept-Encoding": "gzip"})
        body = pressed.read()
        assert len(body) < 200 and gzip.decompress(body).decode() == text
        again = {"Accept-Encoding": "gzip", "If-Modified-Since": pressed.headers["Last-Modified"]}
        with pytest.raises(urllib.error.HTTPError, match="304"):
            get(**again)
    finally:
        running.shutdown()


@pytest.mark.holds("docs/web.md", "says the version and the day")
def test_a_page_says_its_version_its_date_and_where_to_mend_it(tmp_path):
    source, settings = tmp_path / "chapters" / "02_x.py", tmp_path / "pyproject.toml"
    settings.write_text('[project]\nname = "x"\nversion = "1.2"')
    (tmp_path / "CHANGELOG.md").write_text("# Changelog\n\n## Unreleased\n\n## 1.2 (2026-02-03)\n")
    said = edition.closing(tmp_path, source, "2. A & B")
    assert "Version 1.2, 3 February 2026" in said and "<a" not in said, "no link to nowhere"
    assert "og:url" not in edition.front_matter(tmp_path, "index.html", "Start", "Words.")
    settings.write_text(
        '[project]\nname = "x"\nversion = "1.2"\n[project.urls]\n'
        'Repository = "https://github.com/a/b"\nHomepage = "https://a.example/course"'
    )
    said = edition.closing(tmp_path, source, "2. A & B")
    assert 'href="https://github.com/a/b/edit/HEAD/chapters/02_x.py"' in said
    asked = parse_qs(urlsplit(html.unescape(re.search(r'href="([^"]*/new[^"]*)"', said)[1])).query)
    assert asked["title"] == ["A wrong number: 2. A & B"] and "Version 1.2" in asked["body"][0]
    head = yaml.safe_load(
        edition.front_matter(tmp_path, "chapters/02_x.html", "X", 'It is **"so"**, $x$.').split(
            "---"
        )[1]
    )["myst"]["html_meta"]
    assert head["description"] == 'It is "so", x.'
    assert head["property=og:url"] == "https://a.example/course/chapters/02_x.html"


@pytest.mark.parametrize(
    "named, address",
    [
        ("https://a.example", "https://a.example/"),
        ("https://a.example/course/", "https://a.example/course/"),
        ("https://github.com/a/b", ""),
        ("http://localhost:8000", ""),
        ("", ""),
    ],
)
def test_the_address_of_the_site_is_the_homepage(tmp_path, named, address):
    urls = f'[project]\nname = "x"\n[project.urls]\nHomepage = "{named}"'
    (tmp_path / "pyproject.toml").write_text(urls)
    assert edition.site_address(tmp_path) == address


def test_the_day_of_a_page_is_that_of_its_commit(tmp_path):
    def git(*words):
        who = ("-c", "user.name=a", "-c", "user.email=a@b.example")
        when = os.environ | {"GIT_COMMITTER_DATE": "2025-04-05T12:00:00 +0000"}
        run = ["git", *who, *words]
        subprocess.run(run, cwd=tmp_path, check=True, capture_output=True, env=when)

    assert edition.day(tmp_path) is None
    git("init")
    git("commit", "--allow-empty", "-m", "x")
    assert edition.day(tmp_path).isoformat() == "2025-04-05"


def test_a_sitemap_names_each_page_by_its_address():
    told = edition.sitemap("https://a.example/x/", ["index.html", "chapters/02_x.html"])
    found = [node.text for node in ElementTree.fromstring(told).iter() if node.tag.endswith("loc")]
    assert found == ["https://a.example/x/index.html", "https://a.example/x/chapters/02_x.html"]


@pytest.mark.slow
def test_the_book_has_every_lesson_and_leaves_what_is_no_pdf_alone(tmp_path):
    thesis = tmp_path / "thesis.pdf"
    thesis.write_text("years of work")
    with pytest.raises(CannotBuild, match="not a PDF"):
        print_book(COURSE, thesis)
    assert thesis.read_text() == "years of work"
    book = tmp_path / "book.pdf"
    if not (any(map(shutil.which, CHROMIUM)) and shutil.which("npm")):
        pytest.skip("no Chromium or no Node.js (apt-get install chromium nodejs npm)")
    # In a process of its own: Playwright's loop is another one here.
    command = [sys.executable, "-m", "lightspeed_cli", "site", "--book", book]
    subprocess.run(command, cwd=COURSE, check=True, capture_output=True)
    pdf = book.read_bytes()
    assert pdf.startswith(b"%PDF") and b"/Outlines" in pdf
    assert len(re.findall(rb"/Type\s*/Page\b", pdf)) > 10 * len(list(COURSE.glob("chapters/*.py")))
