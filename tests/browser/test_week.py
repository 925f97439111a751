"""A week of the desk, as a learner lives it in JupyterLab: the clock is moved from day to day, a
kernel dies in the middle of an answer, two notebooks are open at once, and nothing is lost.
"""

import os
import re
import signal
import time

import nbformat
import pytest

from lightspeed_course.practice import desk, store

pytestmark = pytest.mark.slow

DAYS = 7
NOON = time.mktime((2027, 3, 1, 12, 0, 0, 0, 0, -1))  # no day ends while the test runs
KERNEL = {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}}
SHEET = """import os, time
from pathlib import Path
from lightspeed_course import today
Path({name!r} + ".pid").write_text(str(os.getpid()))
today(clock=lambda: {noon} + 86400 * {day} + time.time() - {began})"""


class Sheet:
    """A notebook of one cell, which holds the desk of a day; and what a learner does with it."""

    def __init__(self, page, name):
        self.page, self.name = page, name
        book = nbformat.v4.new_notebook(metadata=KERNEL, cells=[nbformat.v4.new_code_cell("today")])
        nbformat.write(book, page.lab.workspace / f"{name}.ipynb")
        page.open_notebook(f"{name}.ipynb")

    def day(self, day, began):
        source = SHEET.format(name=self.name, noon=NOON, day=day, began=began)
        self.page.evaluate(
            "source => { window.jupyterapp.shell.currentWidget.content.model.sharedModel.cells[0]"
            ".source = source; }",
            source,
        )
        self.page.cell("today(")
        self.page.evaluate("() => window.jupyterapp.commands.execute('notebook:run-cell')")
        self.page.wait_idle()
        self.panel = self.page.find("today(")
        self.panel.get_by_text(re.compile(r"^Due: ")).wait_for()
        return self

    @property
    def asked(self):
        """The id of the question that is asked, by its title; "" once the day is done."""
        words = self.panel.locator("strong").all_inner_texts()
        found = [id for id, q in desk.catalogue().items() if f"{q.title}." in words]
        assert len(found) < 2, f"one title of several questions: {found}"
        return found[0] if found else ""

    @property
    def variant(self):
        """What is asked, until somebody answers it."""
        return desk.catalogue()[self.asked].variant(desk.seed_of(self.asked))

    def fill(self, right=True, variant=None):
        variant = variant or self.variant
        if variant.question.kind == "choice":
            wrong = next(key for key in variant.question.options if key != variant.right)
            self.panel.locator(f'input[value="{variant.right if right else wrong}"]').check()
            return
        for box, value in zip(self.panel.locator("input").all(), variant.right, strict=True):
            box.fill(repr(float(value)) if right else "-1")

    def answer(self, right=True, variant=None):
        """Answer what is asked, and go on to the next."""
        self.fill(right, variant)
        self.press("Check")
        self.page.says(self.panel, "^Right" if right else "It comes again at the end")
        self.leave("Next")

    def leave(self, button):
        """Press what leads to another question, and wait for it."""
        prompt = self.panel.locator(".jp-RenderedHTMLCommon").first
        before = prompt.inner_text()
        self.press(button)
        for _ in range(600):
            if prompt.inner_text() != before:
                return
            self.page.wait_for_timeout(50)
        pytest.fail(f"nothing follows {before}")

    def press(self, button):
        self.panel.get_by_role("button", name=button, exact=True).click()

    def finish(self):
        """Answer the rest of the day; the ids that were asked."""
        asked = []
        while id := self.asked:
            asked.append(id)
            if desk.askable(id):
                self.answer()
            else:
                self.leave("Leave it for now")
        self.panel.get_by_text("Done for today.").first.wait_for()
        return asked


@pytest.fixture
def own_lab(lab, tmp_path, monkeypatch):
    """A JupyterLab whose learner has done nothing yet, and whose store this process reads."""
    own = type(lab)(tmp_path)
    monkeypatch.setenv("LIGHTSPEED_DATA", str(own.data))
    yield own
    own.stop()


def test_a_week_of_days_in_which_a_kernel_dies_and_two_are_open(own_lab, page):
    page.lab, began = own_lab, time.time()
    sheet = Sheet(page, "week")

    first = sheet.day(0, began).asked
    sheet.answer(right=False)
    asked = sheet.finish()
    assert asked[-1] == first and asked.count(first) == 1, "missed, so it comes back at the end"
    learned = {first, *asked}
    assert desk.read().right == learned and len(store.events("try")) == len(asked) + 1

    # Day 1: the kernel is killed when an answer stands in the box, and not yet sent.
    open_one, kept = sheet.day(1, began).asked, len(store.events())
    sheet.fill()
    os.kill(int((own_lab.workspace / "week.pid").read_text()), signal.SIGKILL)
    page.locator(".jp-Dialog").get_by_role("button", name=re.compile("^Ok$", re.I)).click()
    page.wait_idle()
    assert sheet.day(1, began).asked == open_one and len(store.events()) == kept
    sheet.answer()
    assert len(store.events()) == kept + 1

    # Day 2: a second notebook, with a kernel of its own.
    sheet.day(2, began)
    with page.context.new_page() as tab:
        other = Sheet(type(page)(tab, own_lab, "second"), "second").day(2, began)
        same, kept = other.variant, len(store.events())
        both = [sheet.asked]
        assert other.asked == sheet.asked
        sheet.answer()
        both.append(sheet.asked)
        sheet.answer()
        other.answer(variant=same)
        assert other.asked and other.asked not in both, "what the first has answered is passed over"
        assert len(store.events()) == kept + 3, "and no answer of either is lost"
        other.page.assert_clean()

    repeated = set()
    for day in range(3, DAYS):
        sheet.day(day, began)
        for _ in range(2):
            repeated.add(sheet.asked)
            sheet.answer()
        page.says(sheet.panel, f"{day + 1} days in a row")
    again = learned & repeated
    assert again, "what was learned on the first day comes back in the week"
    seeds = [e.detail["seed"] for e in store.events("try", min(again))]
    assert len(set(seeds)) == len(seeds), "with other numbers each time"
    page.screenshot("today_after_a_week")
