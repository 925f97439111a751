"""Chapter 3 as a reader meets it: drag n past the peak, and answer a question wrongly and
rightly.
"""

import pytest

pytestmark = pytest.mark.slow


@pytest.fixture
def chapter(page):
    return page.open_and_run("chapters/03_amdahl_gustafson.ipynb")


def test_dragging_n_passes_the_peak(chapter):
    explorer = chapter.locator(".sol-view").first
    explorer.scroll_into_view_if_needed()
    chapter.says(explorer, "Doubling them")
    explorer.get_by_label("n", exact=True).focus()
    for _ in range(8):
        chapter.keyboard.press("ArrowRight")
    chapter.says(explorer, "Past the peak")
    explorer.scroll_into_view_if_needed()
    chapter.screenshot("03_scaling_explorer")


def test_a_wrong_answer_is_diagnosed_and_a_right_one_taken(chapter):
    question = (
        chapter.locator(".sol-practice")
        .filter(has_text="On how many processors is the job fastest")
        .first
    )
    question.scroll_into_view_if_needed()
    box = question.locator("input").first
    box.fill("900")
    box.press("Enter")
    chapter.says(question, "slope of 1/n")
    box.fill("30")
    box.press("Enter")
    chapter.says(question, "Right")
