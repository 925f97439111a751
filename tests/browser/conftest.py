"""A real JupyterLab over a fresh workspace, and a real headless Chromium that looks at it.

    NOTEBOOK = "chapters/02_roofline.ipynb"

    def test_something(chapter):
        explorer = chapter.run("explore()")
        explorer.get_by_label("B", exact=True).focus()
        chapter.screenshot("02_roofline")

`chapter` is the file's NOTEBOOK, run to its end once for all its tests; `run` runs one of its cells
again, so that each test meets it fresh. `page` is a page of the test's own. Both are Playwright's
page with a few words more; see `LabPage`. At the end of each test the page must have logged no
error, shown no error dialog and asked no other machine for anything.
"""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote, urlsplit

import pytest

ARTIFACTS = Path(__file__).parent.parent / "artifacts"
CELLS_STILL_RUNNING = """() => {
    const panel = window.jupyterapp?.shell.currentWidget, kernel = panel?.sessionContext?.session?.kernel;
    return !kernel || kernel.status !== 'idle' || panel.content.widgets.some(cell => cell.prompt === '*');
}"""

# From the notebook's model: outputs that are out of sight are not in the page.
UNEXPECTED_ERRORS = """() => window.jupyterapp.shell.currentWidget.content.model.sharedModel.cells
    .filter(cell => !(cell.metadata.tags || []).includes('raises-exception'))
    .flatMap(cell => cell.outputs || []).filter(output => output.output_type === 'error')
    .map(output => `${output.ename}: ${output.evalue}`)"""

ALL_COUNTED = """() => window.jupyterapp.shell.currentWidget.content.model.sharedModel.cells
    .every(cell => cell.cell_type !== 'code' || !cell.source.trim() || cell.execution_count)"""

EMPTY_MEASURED = """() => {
    for (const cell of window.jupyterapp.shell.currentWidget.content.model.sharedModel.cells)
        if ((cell.metadata.tags || []).includes('measured')) cell.source = '';
}"""

ACTIVATE_CELL = """async (call) => {
    const notebook = window.jupyterapp.shell.currentWidget.content;
    const found = notebook.widgets.flatMap((cell, index) =>
        cell.model.type === 'code' && cell.model.sharedModel.source.trimEnd().split('\\n').at(-1).startsWith(call)
            ? [index] : []);
    if (found.length !== 1) throw new Error(`${found.length} cells end in ${call}`);
    notebook.activeCellIndex = found[0];
    await notebook.scrollToItem(found[0]);
    return found[0];
}"""

HEIGHT_FROM_THE_TOP = """() => {
    const notebook = window.jupyterapp.shell.currentWidget.node;
    notebook.querySelector('.jp-WindowedPanel-outer').scrollTop = 0;
    const last = [...notebook.querySelectorAll('.jp-Cell')].at(-1);
    return Math.ceil(last.getBoundingClientRect().bottom);
}"""


class Lab:
    """A running JupyterLab: its workspace folder, its address, and what it printed."""

    def __init__(self, folder, program=("-m", "lightspeed_cli")):
        self.workspace, self.data, self.log = (
            folder / "my course",
            folder / "data",
            folder / "lab.log",
        )
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        own = {
            f"JUPYTER_{kind}_DIR": str(folder / "jupyter" / kind.lower())
            for kind in ("CONFIG", "DATA", "RUNTIME")
        }
        environment = (
            os.environ
            | own
            | {
                "LIGHTSPEED_DATA": str(self.data),
                "IPYTHONDIR": str(folder / "ipython"),
            }
        )
        command = [sys.executable, *program, "lab", "--dir", self.workspace, "--no-browser"]
        # The test helpers find the current notebook through the application object.
        command += ["--port", str(port), "--LabApp.expose_app_in_browser=True"]
        with open(self.log, "w") as log:
            self.process = subprocess.Popen(
                command,
                env=environment,
                stdout=log,
                stderr=log,
                stdin=subprocess.DEVNULL,
                start_new_session=True,
            )
        self.printed, self.address, self.token = self._wait_for_address()

    def _wait_for_address(self):
        for _ in range(600):
            found = re.search(r"((http://[^/\s]+)/lab\S*\?token=(\w+))", self.log.read_text())
            if found:
                return found.groups()
            if self.process.poll() is not None:
                break
            time.sleep(0.1)
        pytest.fail(f"JupyterLab did not start:\n{self.log.read_text()}")

    def url(self, name, layout):
        """A notebook's address in a window layout of its own: no test sees another's tabs."""
        return f"{self.address}/lab/workspaces/{layout}/tree/{quote(name)}?reset&token={self.token}"

    def stop(self):
        self.process.terminate()  # Jupyter then ends its kernels itself
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()


class LabPage:
    """A Playwright page with a JupyterLab in it; what is not defined here is the page's own."""

    def __init__(self, page, lab, name):
        self.page, self.lab, self.layout = page, lab, re.sub(r"\W+", "-", name)
        self.errors, self.strangers = [], set()
        page.on(
            "console",
            lambda message: self.errors.append(message.text) if message.type == "error" else None,
        )
        page.on("pageerror", lambda error: self.errors.append(str(error)))
        page.on("request", self._note_host)

    def __getattr__(self, name):
        return getattr(self.page, name)

    def _note_host(self, request):
        address = urlsplit(request.url)
        if address.scheme.startswith(("http", "ws")) and address.hostname not in (
            "127.0.0.1",
            "localhost",
        ):
            self.strangers.add(address.hostname)

    def open_notebook(self, name, timeout=60):
        """Open a notebook of the workspace ("chapters/02_roofline.ipynb"), wait for its kernel."""
        self.page.goto(self.lab.url(name, self.layout))
        self.page.wait_for_selector(
            ".jp-NotebookPanel:not(.lm-mod-hidden) .jp-Cell", timeout=1000 * timeout
        )
        self.wait_idle(timeout)

    def run_all(self, timeout=180, measure=False):
        """Run all cells as the menu does, wait for the last of them, and return the seconds it
        took.

        Cells that measure this machine, most of a chapter's time, are emptied before unless
        `measure`.
        """
        start = time.monotonic()
        if not measure:
            self.page.evaluate(EMPTY_MEASURED)
        self.page.evaluate("""() => {
            for (const cell of window.jupyterapp.shell.currentWidget.content.model.sharedModel.cells)
                if (cell.cell_type === 'code') cell.execution_count = null;
            window.allRan = false;
            window.jupyterapp.commands.execute('notebook:run-all-cells').finally(() => { window.allRan = true; });
        }""")
        self.page.wait_for_function("() => window.allRan", timeout=1000 * timeout)
        # A cell that takes seconds may still be at it: the command ends before, and cells out of
        # sight show no star.
        self.page.wait_for_function(
            f"() => ({UNEXPECTED_ERRORS})().length || ({ALL_COUNTED})()", timeout=1000 * timeout
        )
        self.wait_idle(timeout)
        return time.monotonic() - start

    def open_and_run(self, name, **how):
        """Open a notebook, run it to its end without an error, return this page; see `run_all`."""
        self.open_notebook(name)
        self.run_all(**how)
        assert self.cell_errors() == []
        return self

    def run(self, call):
        """Run the one cell whose last line begins with this call, and return what it shows."""
        self.find(call)
        self.page.evaluate("() => window.jupyterapp.commands.execute('notebook:run-cell')")
        self.wait_idle()
        return self.find(call)

    def find(self, call):
        """Make the one cell whose last line begins so the active one, in sight; what it shows."""
        shown = self.cell(call).locator(".sol-view, .sol-practice").first
        shown.scroll_into_view_if_needed()
        return shown

    def cell(self, call):
        """Make the one cell whose last line begins so the active one, in sight, and return it."""
        index = self.page.evaluate(ACTIVATE_CELL, call)
        return self.page.locator(f'.jp-Cell[data-windowed-list-index="{index}"]')

    def answers(self, question, given, *words):
        """Fill a question's box, press Enter, and wait for words of its answer."""
        box = question.locator("input").first
        box.fill(given)
        box.press("Enter")
        for expected in words:
            self.says(question, expected)

    def says(self, place, words):
        """Wait until a place (a locator) shows these words, a regular expression."""
        place.get_by_text(re.compile(words)).first.wait_for(timeout=30_000)

    def wait_idle(self, timeout=60):
        """Wait until the kernel is idle and no cell of the current notebook is still to run."""
        self.page.wait_for_function(f"() => !({CELLS_STILL_RUNNING})()", timeout=1000 * timeout)

    def all_ran(self):
        """Whether every cell has run to its end since it was last asked to."""
        return self.page.evaluate(ALL_COUNTED)

    def cell_errors(self):
        """The messages of cells that failed and were not meant to (tag raises-exception)."""
        return self.page.evaluate(UNEXPECTED_ERRORS)

    def screenshot(self, name, whole=False):
        """Save tests/artifacts/NAME.png: the window, or with `whole` the notebook to its end."""
        ARTIFACTS.mkdir(exist_ok=True)
        path, window = ARTIFACTS / f"{name}.png", self.page.viewport_size
        if whole:
            # Cells far below get their true height only when they come into sight, hence twice.
            for _ in range(2):
                height = self.page.evaluate(HEIGHT_FROM_THE_TOP)
                self.page.set_viewport_size(
                    {"width": window["width"], "height": min(height + 120, 16000)}
                )
                self.page.wait_for_timeout(300)
        self.page.screenshot(path=path)
        self.page.set_viewport_size(window)
        return path

    def assert_clean(self):
        dialogs = [text for text in self.page.locator(".jp-Dialog").all_inner_texts() if text]
        assert not dialogs, f"a dialog is open: {dialogs}"
        assert not self.errors, f"the page logged errors: {self.errors}"
        assert not self.strangers, f"the page asked other machines: {sorted(self.strangers)}"


@pytest.fixture(scope="session")
def lab(tmp_path_factory):
    """A JupyterLab over a workspace of its own, one for each test process."""
    lab = Lab(tmp_path_factory.mktemp("lab"))
    yield lab
    lab.stop()


PAGE = """<!doctype html><html lang="en"><meta charset="utf-8"><title>A view</title><link rel="stylesheet" href="/view.css"><body style="margin: 0"><div id="cell"></div>
<script type="module">
  import widget from "/view.js";
  const traits = {frame: FRAME, content: CONTENT}, listeners = {};
  const model = {get: (name) => traits[name], on: (name, f) => (listeners[name] = f), off() {}, send: (message) => sent.push(message)};
  window.sent = [];
  window.answer = (content) => { traits.content = content; listeners["change:content"](); };
  widget.render({model, el: document.getElementById("cell")});
  window.ready = true;
</script>"""


@pytest.fixture
def opened(chromium):
    """Opens an explorer in a bare page of the given width, with what else is asked of the browser.

    Its messages wait in `sent`, or, with `answers`, are answered as by a kernel.
    """
    from lightspeed_show import live

    contexts = []

    def opened(demo, width=1000, answers=False, **asked):
        demo.live()
        html = PAGE.replace("FRAME", json.dumps(demo.chart.frame)).replace(
            "CONTENT", json.dumps(demo.chart.content)
        )
        files = {
            "/": ("text/html", html),
            "/view.js": ("text/javascript", live.ChartView._esm),
            "/view.css": ("text/css", live.ChartView._css),
        }
        contexts.append(chromium.new_context(viewport={"width": width, "height": 900}, **asked))
        page = contexts[-1].new_page()
        page.failures = []
        page.on("pageerror", lambda error: page.failures.append(str(error)))

        def serve(route):
            kind, body = files.get("/" + route.request.url.rpartition("/")[2], ("text/plain", ""))
            route.fulfill(content_type=f"{kind}; charset=utf-8", body=body)

        def ask(message):
            demo.receive(message)
            return json.loads(json.dumps(demo.chart.content))

        page.route("**/*", serve)
        page.expose_function("ask", ask)
        page.goto("http://view.test/")
        page.wait_for_function("window.ready && document.querySelector('svg')")
        if answers:
            page.evaluate("() => { sent.push = (message) => ask(message).then(answer); }")
        assert page.failures == []
        return page

    yield opened
    for context in contexts:
        context.close()


@contextmanager
def lab_page(chromium, lab, name):
    context = chromium.new_context(viewport={"width": 1440, "height": 1000})
    yield LabPage(context.new_page(), lab, name)
    context.close()


def judged(page, test):
    """A test that failed leaves a screenshot; the page of one that passed must be clean."""
    if getattr(test, "failed", False):
        print("the page logged", page.errors)
        page.screenshot("failed-" + re.sub(r"\W+", "-", test.name))
    else:
        page.assert_clean()


@pytest.fixture
def page(chromium, lab, request):
    """A browser page for one test; see `LabPage`."""
    with lab_page(chromium, lab, request.node.name) as page:
        yield page
        judged(page, request.node)


@pytest.fixture(scope="module")
def opened_chapter(chromium, lab, request):
    with lab_page(chromium, lab, request.node.name) as page:
        yield page.open_and_run(request.module.NOTEBOOK)


@pytest.fixture
def chapter(opened_chapter, request):
    """The NOTEBOOK of the test's file, already run; see `LabPage.run`."""
    yield opened_chapter
    judged(opened_chapter, request.node)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    report = (yield).get_result()
    if report.when == "call":
        item.failed = report.failed
