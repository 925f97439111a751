"""The course opens: the start page, its look and its settings, in a real JupyterLab."""

import json

import pytest
from lightspeed.cli.lab import CONFIG

pytestmark = pytest.mark.slow

START = "chapters/00_start_here.ipynb"


def test_the_printed_address_opens_the_start_page_and_it_runs(page, lab):
    page.goto(lab.printed)
    page.wait_idle()
    assert page.locator(".jp-RenderedMarkdown h1").first.inner_text().startswith("Speed of Light")
    page.run_all()
    assert page.cell_errors() == []
    page.screenshot("00_start_here", whole=True)


def test_delivered_figures_show_before_anything_runs(page):
    """An untrusted notebook would show the text of a figure in place of its drawing."""
    page.open_notebook("chapters/02_roofline.ipynb")
    page.locator(".jp-RenderedSVG :is(svg, img)").nth(2).wait_for(state="attached")


def test_the_page_is_set_for_reading(page):
    page.open_notebook(START)
    text = page.locator(".jp-RenderedMarkdown p").first
    style = text.evaluate("node => { const s = getComputedStyle(node); return [s.fontSize, s.lineHeight, s.maxWidth]; }")
    assert [float(value.removesuffix("px")) for value in style] == [17, pytest.approx(28.05), 43 * 16]


def test_the_settings_of_the_course_are_defaults_and_extensions_are_left_alone(page):
    """No news, no hints at new versions, room for the names of chapters; a learner's own settings stay empty."""
    page.open_notebook(START)
    for plugin, settings in json.loads((CONFIG / "overrides.json").read_text()).items():
        fetched = page.evaluate("name => window.jupyterapp.serviceManager.settings.fetch(name)", plugin)
        shown = {name: fetched["schema"]["properties"][name]["default"] for name in settings}
        assert shown == settings and fetched["raw"] in ("", "{}")
    config = page.evaluate("() => JSON.parse(document.getElementById('jupyter-config-data').textContent)")
    assert config["extensionManager"]["can_install"] is False


@pytest.fixture
def fresh_lab(lab, tmp_path):
    fresh = type(lab)(tmp_path)
    yield fresh
    fresh.stop()


def test_jupyter_prints_nothing_but_the_address_and_leaves_no_configuration(fresh_lab, page, tmp_path):
    """A learner who sees warnings in the terminal thinks that something is wrong."""
    page.lab = fresh_lab
    page.open_notebook(START)
    page.run_all()
    lines = [line for line in fresh_lab.log.read_text().splitlines() if line.strip()]
    assert lines[-2:] == [f"    {fresh_lab.printed}", "To stop it, press Ctrl-C here."], "\n".join(lines)
    assert list((tmp_path / "jupyter/config").rglob("*")) == []
    assert list((fresh_lab.workspace / ".lightspeed/tabs").iterdir()), "the open tabs are kept with the workspace"
