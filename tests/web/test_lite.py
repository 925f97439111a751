"""JupyterLite beside the pages, built without them: chapter 2 opens in a browser, its explorer and
a question live there, and nothing is asked of another host.
"""

import re
import shutil
import threading
from urllib.parse import urlsplit

import pytest
from site_reader import COURSE, PATIENCE

from lightspeed_authoring.site import build_lite
from lightspeed_authoring.site.build import from_npm
from lightspeed_authoring.site.edition import CannotBuild
from lightspeed_authoring.site.serve import server
from lightspeed_course.explorers.roofline import explore
from lightspeed_course.practice.questions import question

QUESTION, SEED = "roofline.weight_only_batch", "chapter"  # as chapter 2 asks it
SESSION = "jupyterapp.shell.currentWidget?.sessionContext?.session?.kernel"
# Runs the cell whose last line begins so, and waits for it.
RUN = """async (call) => {
    const panel = jupyterapp.shell.currentWidget, notebook = panel.content;
    const place = notebook.widgets.findIndex(cell => cell.model.type === 'code'
        && cell.model.sharedModel.source.trimEnd().split('\\n').at(-1).startsWith(call));
    if (place < 0) throw new Error('no cell ends in ' + call);
    notebook.activeCellIndex = place;
    await notebook.scrollToItem(place);
    await jupyterapp.commands.execute('notebook:run-cell');
    const text = (output) =>
        (output.traceback ?? [output.text ?? Object.keys(output.data).join(' ')]).join(' ');
    return notebook.widgets[place].model.sharedModel.outputs.map(text).join(' ');
}"""


@pytest.fixture(scope="module")
def beside(nodejs, tmp_path_factory):
    """A folder with JupyterLite and what of the site it stands on."""
    packages = from_npm(lambda words: None)
    try:
        build_lite.from_pypi(lambda words: None)
    except CannotBuild as problem:
        pytest.skip(f"JupyterLite comes from PyPI: {str(problem).splitlines()[-1]}")
    built = tmp_path_factory.mktemp("lite") / "a path"
    live = built / "_static" / "live"
    (live / "pyodide").mkdir(parents=True)
    for name in ("pyodide.asm.js", "pyodide.asm.wasm"):
        shutil.copy(packages / "pyodide" / name, live / "pyodide")
    shutil.copy(build_lite.HERE / "static" / "progress.js", live)
    build_lite.build_lite(COURSE, built, packages, lambda words: None)
    return built


@pytest.mark.slow
def test_a_chapter_lives_in_jupyterlite(beside, chromium):
    running = server(beside.parent)
    threading.Thread(target=running.serve_forever, daemon=True).start()
    context = chromium.new_context(viewport={"width": 1280, "height": 900})
    context.set_default_timeout(PATIENCE)
    faults, hosts = [], set()
    context.on("weberror", lambda e: faults.append(str(e.error)))
    context.on("request", lambda r: hosts.add(urlsplit(r.url).netloc))

    def heard(message):  # a browser asks each host for an icon by itself
        if message.type == "error" and not message.location["url"].endswith("/favicon.ico"):
            faults.append(message.text)

    context.on("console", heard)
    try:
        page = context.new_page()
        host = f"127.0.0.1:{running.server_port}"
        page.goto(f"http://{host}/a%20path/lite/lab/index.html?path=chapters/02_roofline.ipynb")
        page.wait_for_function(f"window.jupyterapp && {SESSION}?.status === 'idle'")
        assert "runs in this browser" in page.evaluate(RUN, "await lite.begin()")
        assert page.evaluate(RUN, "from lightspeed_course.explorers.traffic import") == ""
        assert "widget-view" in page.evaluate(RUN, "explore()")
        lives(page)
        judges(page)
        assert not faults, faults
        assert hosts - {""} == {host}, hosts
    finally:
        context.close()
        running.shutdown()


def lives(page):
    """The explorer shows what Python shows, before a move and after it."""
    here, verdict = explore(), page.locator(".sol-verdict")
    verdict.filter(has_text=here.first.verdict).first.wait_for()
    page.get_by_role("button", name="without a guess").first.click()
    chips = next(iter(here.controls.values()))
    other = next(value for _, value in chips.options if value != chips.value)
    page.locator(".sol-controls select").first.select_option(index=chips.index(other))
    here.set(**{chips.name: other})
    assert here.shown.verdict != here.first.verdict
    verdict.filter(has_text=here.shown.verdict).first.wait_for()


def judges(page):
    """A question is answered wrongly, then rightly."""
    page.evaluate(RUN, f'ask("{QUESTION}"')
    right = question(QUESTION).variant(SEED).right[0]
    typed = page.locator("form.sol-form input")
    for factor, words in ((3.7, "Not yet."), (1, "Right.")):
        typed.fill(f"{right * factor:.6g}")
        page.locator("form.sol-form button[type=submit]").click()
        reply = page.locator(".sol-practice .sol-reply")
        reply.get_by_text(re.compile(f"{words}|fault", re.I)).first.wait_for()
        assert words in reply.first.inner_text(), reply.first.inner_text()


def test_a_notebook_is_made_to_run_there():
    given = {"metadata": {}, "cells": [
        {"cell_type": "markdown", "source": ["# T\n", "words"], "metadata": {}},
        {"cell_type": "code", "source": ["a\n", "b"], "metadata": {"tags": ["x"]}, "outputs": [
            {"output_type": "display_data", "data": {"text/html": ["<p>", "</p>"], "json": [1]}}]},
    ]}  # fmt: skip
    made = build_lite.for_browser(given)
    title, first, cell = made["cells"]
    assert title["source"] == "# T\nwords" and first["source"].endswith("await lite.begin()")
    assert cell["source"] == "a\nb" and cell["metadata"]["tags"] == ["x", "raises-exception"]
    assert cell["outputs"][0]["data"] == {"text/html": "<p></p>", "json": [1]}
    assert given["cells"][1]["metadata"]["tags"] == ["x"], "the committed notebook stays"


def test_the_lock_is_for_the_pyodide_that_the_pages_run_on():
    lock = (build_lite.HERE / "lite.lock").read_text("utf-8")
    pinned = [line for line in lock.splitlines() if "==" in line]
    assert len(pinned) > 30 and lock.count("--hash=sha256:") >= len(pinned)
    kernel = next(line for line in pinned if line.startswith("jupyterlite-pyodide-kernel=="))
    assert kernel.split("==")[1].startswith("0.6."), "0.6 is for Pyodide 0.27"
    assert '"pyodide": "0.27.' in (build_lite.HERE / "package.json").read_text("utf-8")
