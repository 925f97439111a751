"""Chapter 4 as a reader meets it: drive the queue into overload, change the hardware, answer a
question.
"""

import pytest

pytestmark = pytest.mark.slow


@pytest.fixture
def chapter(page):
    return page.open_and_run("chapters/04_littles_law.ipynb")


def test_more_arrivals_end_in_overload(chapter):
    explorer = chapter.locator(".sol-view").filter(has_text="Raise the arrivals slowly")
    explorer.scroll_into_view_if_needed()
    chapter.says(explorer, "Stable")
    explorer.get_by_label("arrivals", exact=True).focus()
    for _ in range(6):
        chapter.keyboard.press("ArrowRight")
    chapter.says(explorer, "Overload")
    explorer.scroll_into_view_if_needed()
    chapter.screenshot("04_queue_explorer")


def test_another_machine_changes_the_replica(chapter):
    explorer = chapter.locator(".sol-view").filter(has_text="Each point of the curve is a batch")
    explorer.scroll_into_view_if_needed()
    chapter.says(explorer, "set by memory")
    explorer.get_by_label("hardware", exact=True).select_option(label="NVIDIA A100 SXM4 80 GB")
    chapter.says(explorer, "set by the budget")
    explorer.scroll_into_view_if_needed()
    chapter.screenshot("04_serving_explorer")


def test_a_wrong_answer_is_diagnosed_and_a_right_one_taken(chapter):
    question = (
        chapter.locator(".sol-practice").filter(has_text="How much memory do the caches need").first
    )
    question.scroll_into_view_if_needed()
    box = question.locator("input").first
    box.fill("1000")
    box.press("Enter")
    chapter.says(question, "whole second")
    box.fill("100")
    box.press("Enter")
    chapter.says(question, "Right")
