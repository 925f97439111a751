"""Chapter 2 as a reader meets it: open, run, drag, read the words, answer wrongly and rightly."""

import shutil

import pytest

from lightspeed_course.practice.questions import question

pytestmark = pytest.mark.slow


NOTEBOOK = "chapters/02_roofline.ipynb"
RIGHT = question("roofline.weight_only_batch").variant("chapter").right[0]


@pytest.fixture
def explorer(chapter):
    explorer = chapter.run("explore()")
    if (skip := explorer.get_by_role("button", name="without a guess")).is_visible():
        skip.click()
    return explorer


def test_dragging_the_batch_turns_the_verdict(chapter, explorer):
    chapter.says(explorer, "Memory-bound")
    slider = explorer.get_by_label("B", exact=True)
    slider.focus()
    for _ in range(12):
        chapter.keyboard.press("ArrowRight")
    chapter.says(explorer, "Compute-bound")
    explorer.scroll_into_view_if_needed()
    chapter.screenshot("02_roofline_explorer")


def test_another_machine_changes_the_roof(chapter, explorer):
    chapter.says(explorer, "ridge 295")
    explorer.get_by_label("hardware", exact=True).select_option(label="Google TPU v5e")
    chapter.says(explorer, "ridge 241")


def test_a_precision_without_a_peak_is_said(chapter, explorer):
    explorer.get_by_label("hardware", exact=True).select_option(label="NVIDIA A100 SXM4 80 GB")
    explorer.get_by_label("arithmetic", exact=True).select_option(label="fp8")
    chapter.says(explorer, "no dense peak for fp8")


def test_lost_messages_do_not_end_an_explorer(chapter, explorer):
    """Two changes, all that may be on their way, are lost: the reader is told, the next works."""
    chapter.says(explorer, "Memory-bound")
    chapter.evaluate("""() => {
        const send = WebSocket.prototype.send;
        window.lost = 0;
        WebSocket.prototype.send = function (data) {
            const words = typeof data === "string" ? data : new TextDecoder().decode(data);
            if (window.lost < 2 && words.includes("comm_msg") && words.includes('"turn"')) window.lost++;
            else send.call(this, data);
        };
    }""")
    slider = explorer.get_by_label("B", exact=True)
    slider.focus()
    for _ in range(2):
        chapter.keyboard.press("ArrowRight")
    chapter.says(explorer, "No answer from the kernel")
    assert chapter.evaluate("window.lost") == 2
    for _ in range(10):
        chapter.keyboard.press("ArrowRight")
    chapter.says(explorer, "Compute-bound")
    assert chapter.locator(".sol-failed").count() == 0


def test_a_wrong_answer_is_diagnosed_and_a_right_one_taken(chapter):
    asked = chapter.run('ask("roofline.weight_only_batch"')
    chapter.answers(asked, f"{2 * RIGHT:.1f}", "bytes of weight")
    chapter.screenshot("02_roofline_wrong")
    chapter.answers(asked, f"{RIGHT:.1f}", "Right")
    chapter.screenshot("02_roofline_right")


def test_explorer_and_question_answer_while_a_cell_is_busy(chapter, explorer, tmp_path):
    asked = chapter.run('ask("roofline.weight_only_batch"')
    source = (
        "from pathlib import Path\nfrom time import sleep\nwhile not"
        f" Path({str(tmp_path / 'enough')!r}).exists():\n    sleep(0.1)"
    )
    chapter.evaluate("""(source) => {
        const notebook = window.jupyterapp.shell.currentWidget.content, cells = notebook.model.sharedModel;
        cells.insertCell(cells.cells.length, {cell_type: "code", source});
        notebook.activeCellIndex = cells.cells.length - 1;
        window.jupyterapp.commands.execute("notebook:run-cell");
    }""", source)  # fmt: skip
    try:
        explorer.scroll_into_view_if_needed()
        slider = explorer.get_by_label("B", exact=True)
        slider.focus()
        for _ in range(12):
            chapter.keyboard.press("ArrowRight")
        chapter.says(explorer, "Compute-bound")
        asked.scroll_into_view_if_needed()
        chapter.answers(asked, f"{RIGHT:.1f}", "Right")
        assert not chapter.all_ran(), "the cell had ended"
    finally:  # the tests after this one have the same kernel
        (tmp_path / "enough").touch()
    chapter.wait_idle()
    assert chapter.all_ran()


def test_a_saved_page_opens_again_with_its_explorer(page):
    """Loaded anew the explorer is as live as its kernel; without one it stays a still."""
    # A copy has a kernel of its own: the tests before this one have left widgets in the other.
    copy = shutil.copy(page.lab.workspace / NOTEBOOK, page.lab.workspace / "saved.ipynb").name
    page.open_and_run(copy)

    def save():
        page.evaluate("() => window.jupyterapp.commands.execute('docmanager:save')")

    save()
    page.open_notebook(copy)
    page.find("explore()").get_by_role("button", name="without a guess").click()
    slider = page.find("explore()").get_by_label("B", exact=True)
    slider.focus()
    for _ in range(12):
        page.keyboard.press("ArrowRight")
    page.says(page.find("explore()"), "Compute-bound")
    for _ in range(2):
        page.evaluate("() => window.jupyterapp.shell.currentWidget.sessionContext.shutdown()")
        page.open_notebook(copy)
        still = page.cell("explore()").locator("img")
        assert "Memory-bound" in still.get_attribute("alt")
        assert page.get_by_text("Error displaying widget").count() == 0
        save()
    page.screenshot("02_roofline_reopened")
