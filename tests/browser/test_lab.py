"""The course opens: the start page, its look and its settings, in a real JupyterLab."""

import json
from pathlib import Path
from urllib.request import urlopen

import pytest
from axe_playwright_python.sync_playwright import Axe

from lightspeed_cli.lab import CONFIG

pytestmark = pytest.mark.slow

CHAPTERS = Path(__file__).parents[2] / "chapters"
START = "chapters/00_start_here.ipynb"


def test_the_printed_address_opens_the_start_page_and_it_runs(page, lab):
    page.goto(lab.printed)
    page.wait_idle()
    assert page.locator(".jp-RenderedMarkdown h1").first.inner_text().startswith("Speed of Light")
    page.run_all()
    assert page.cell_errors() == []
    page.screenshot("00_start_here", whole=True)


FIGURE = '.jp-OutputArea-output img[src^="data:image/svg+xml"]'
SLOW = """
import time
from jupyter_server.serverapp import ServerApp
from lightspeed_cli import main
start = ServerApp.start_app
ServerApp.start_app = lambda self: (time.sleep(3), start(self))
main()
"""


def test_whoever_reads_the_address_finds_it_open(lab, tmp_path):
    """However long Jupyter takes between choosing its port and listening there."""
    late = type(lab)(tmp_path, program=("-c", SLOW))
    try:
        assert urlopen(late.printed, timeout=30).status == 200
    finally:
        late.stop()


MEASURED = sorted(
    path.stem
    for path in CHAPTERS.glob("*_proof.py")
    if 'tags=["measured"]' in path.read_text("utf-8")
)


@pytest.mark.parametrize("name", MEASURED)
def test_a_chapter_runs_to_its_end_and_measures(page, name):
    page.open_and_run(f"chapters/{name}.ipynb", measure=True)
    for _ in range(2):  # cells above get their true height only when they come into sight
        page.get_by_role("heading", name="Measure it here").first.scroll_into_view_if_needed()
        page.wait_for_timeout(500)
    page.screenshot(f"{name}_measured")


def test_delivered_figures_show_before_anything_runs(page):
    """An untrusted notebook would show the text of a figure in place of its drawing."""
    page.open_notebook("chapters/02_roofline.ipynb")
    page.locator(FIGURE).nth(2).wait_for(state="attached")


def test_a_still_figure_is_no_white_box_in_the_dark(page):
    page.open_notebook("chapters/02_roofline.ipynb")
    figure = page.locator(FIGURE).first
    figure.wait_for(state="attached")
    filtered = "img => getComputedStyle(img).filter"
    assert figure.evaluate(filtered) == "none"
    page.evaluate("document.body.dataset.jpThemeLight = 'false'")
    assert "invert" in figure.evaluate(filtered)
    page.emulate_media(media="print")
    assert figure.evaluate(filtered) == "none", "paper is white"


def test_every_image_has_words(page):
    """axe's own rules for images, over a page of figures, before and after it was run."""
    page.open_notebook("chapters/02_roofline.ipynb")
    page.locator(FIGURE).nth(2).wait_for(state="attached")
    for _ in range(2):
        found = Axe().run(
            page.page, options={"runOnly": ["image-alt", "svg-img-alt", "role-img-alt"]}
        )
        faults = [
            (v["id"], [n["html"][:120] for n in v["nodes"]]) for v in found.response["violations"]
        ]
        assert faults == []
        assert found.response["passes"], "no rule found an image"
        page.run_all()


def test_a_page_that_was_not_run_keeps_its_answer_folded(page):
    page.open_notebook(START)
    folded = page.locator("details").filter(has_text="when you have guessed")
    folded.scroll_into_view_if_needed()
    assert not folded.get_by_text("Answer:").is_visible()
    folded.locator("summary").click()
    folded.get_by_text("Answer:").wait_for(timeout=30_000)
    page.screenshot("00_unfolded")


def test_the_code_of_a_figure_is_folded_behind_a_bar(page):
    page.open_notebook("chapters/02_roofline.ipynb")
    folded = page.locator(".jp-CodeCell").filter(has=page.locator(".jp-InputPlaceholder"))
    cell = folded.nth(1)  # the first one is the setup, which draws nothing
    cell.scroll_into_view_if_needed()
    cell = cell.element_handle()  # unfolded, it is no longer what was looked for
    cell.wait_for_selector(FIGURE, timeout=30_000)
    assert not [line for line in cell.query_selector_all(".cm-line") if line.is_visible()]
    page.screenshot("02_folded")
    cell.query_selector(".jp-InputPlaceholder .jp-Placeholder-content").click()
    cell.wait_for_selector(".cm-line >> text=figure(", timeout=30_000)


def test_a_terminal_opens_in_the_workspace(page, lab):
    page.open_notebook(START)
    page.evaluate(
        "() => window.jupyterapp.commands.execute('terminal:create-new', {cwd: 'chapters'})"
    )
    page.locator(".jp-Terminal .xterm-helper-textarea").wait_for(state="attached")
    page.wait_for_timeout(1500)
    page.keyboard.type("pwd > where.txt; lightspeed reset 02_roofline > said.txt\n")
    said = lab.workspace / "chapters/said.txt"
    for _ in range(600):
        if said.exists() and said.read_text():
            break
        page.wait_for_timeout(100)
    assert (lab.workspace / "chapters/where.txt").read_text().strip() == str(
        lab.workspace / "chapters"
    )
    assert f"in {lab.workspace} is as delivered" in said.read_text()


def test_the_page_is_set_for_reading(page):
    page.open_notebook(START)
    text = page.locator(".jp-RenderedMarkdown p").first
    style = text.evaluate(
        "node => { const s = getComputedStyle(node); return [s.fontSize, s.lineHeight,"
        " s.maxWidth]; }"
    )
    assert [float(value.removesuffix("px")) for value in style] == [
        17,
        pytest.approx(28.05),
        43 * 16,
    ]


def test_the_settings_of_the_course_are_defaults_and_extensions_are_left_alone(page):
    """No news, no hints at versions, room for chapters' names; own settings stay empty."""
    page.open_notebook(START)
    for plugin, settings in json.loads((CONFIG / "overrides.json").read_text()).items():
        fetched = page.evaluate(
            "name => window.jupyterapp.serviceManager.settings.fetch(name)", plugin
        )
        shown = {name: fetched["schema"]["properties"][name]["default"] for name in settings}
        assert shown == settings and fetched["raw"] in ("", "{}")
    config = page.evaluate(
        "() => JSON.parse(document.getElementById('jupyter-config-data').textContent)"
    )
    assert config["extensionManager"]["can_install"] is False


@pytest.fixture
def fresh_lab(lab, tmp_path):
    fresh = type(lab)(tmp_path)
    yield fresh
    fresh.stop()


def test_jupyter_prints_nothing_but_the_address_and_leaves_no_configuration(
    fresh_lab, page, tmp_path
):
    """A learner who sees warnings in the terminal thinks that something is wrong."""
    page.lab = fresh_lab
    page.open_notebook(START)
    page.run_all()
    lines = [line for line in fresh_lab.log.read_text().splitlines() if line.strip()]
    assert lines[-2:] == [f"    {fresh_lab.printed}", "To stop it, press Ctrl-C here."], "\n".join(
        lines
    )
    assert list((tmp_path / "jupyter/config").rglob("*")) == []
    assert list((fresh_lab.workspace / ".lightspeed/tabs").iterdir()), (
        "the open tabs are kept with the workspace"
    )


RESTART = "() => window.jupyterapp.shell.currentWidget.sessionContext.session.kernel.restart()"
SAVE = "() => window.jupyterapp.commands.execute('docmanager:save')"


def test_after_a_restart_a_box_and_a_saved_page_say_what_to_do(page):
    """Nobody hears a box whose kernel is gone, and its widget is in no kernel."""
    page.open_notebook(START)
    for source in ("from lightspeed_course import", 'ask("'):
        page.evaluate(RUN_FIRST, source)
        page.wait_idle()
    box = page.locator(".sol-practice").first
    box.locator("input").first.fill("7")
    box.get_by_role("button", name="Check").click()
    page.says(box, "Not yet|Right|Not answered")
    assert not box.locator(".sol-silence").is_visible(), "who was answered is not told of a silence"
    page.evaluate(SAVE)
    page.open_notebook(START)
    page.locator(".sol-practice").first.wait_for()  # a kernel that lives has its boxes
    page.evaluate(RESTART)
    page.wait_idle()
    box = page.locator(".sol-practice").first
    box.locator("input").first.fill("7")
    box.locator("input").first.press("Enter")
    page.says(box, "No answer from Python.*run this cell again")
    page.evaluate(SAVE)
    page.open_notebook(START)
    page.says(page.locator(".jp-Notebook"), "in a kernel that is gone. Run the cell again")
    assert not page.get_by_text("Error displaying widget").count()
    assert not page.locator(".sol-practice").count()
    page.evaluate(RUN_FIRST, "from lightspeed_course import")
    page.evaluate(RUN_FIRST, 'ask("')
    page.locator(".sol-practice").first.wait_for()
    # JupyterLab logs the requests of its own that the restart cancelled.
    page.errors[:] = [text for text in page.errors if "Canceled future" not in text]


RUN_FIRST = """async (start) => {
    const notebook = window.jupyterapp.shell.currentWidget.content;
    notebook.activeCellIndex = notebook.widgets.findIndex(({model}) => model.type === 'code' &&
        model.sharedModel.source.split('\\n').some((line) => line.startsWith(start)));
    await notebook.scrollToItem(notebook.activeCellIndex);
    await window.jupyterapp.commands.execute('notebook:run-cell');
}"""
