"""Chapter 6 as a reader meets it: break the plan and mend it, watch the bubble, answer wrongly
and rightly.
"""

import pytest

pytestmark = pytest.mark.slow


@pytest.fixture
def chapter(page):
    return page.open_and_run("chapters/06_parallelism.ipynb")


@pytest.fixture
def explorer(chapter):
    shown = chapter.locator(".sol-view").filter(has_text="First make it fit")
    shown.scroll_into_view_if_needed()
    chapter.says(shown, "Fits")
    return shown


def test_a_plan_that_does_not_fit_is_mended_by_the_advice(chapter, explorer):
    explorer.get_by_label("recompute", exact=True).select_option(label="none")
    chapter.says(explorer, "Does not fit.*The largest share.* goes to the activations")
    explorer.get_by_label("recompute", exact=True).select_option(label="full")
    chapter.says(explorer, "Fits")
    explorer.scroll_into_view_if_needed()
    chapter.screenshot("06_parallelism_explorer")


def test_a_smaller_batch_makes_the_bubble_the_largest_loss(chapter, explorer):
    slider = explorer.get_by_label("batch, in sequences", exact=True)
    slider.focus()
    for _ in range(3):
        chapter.keyboard.press("ArrowLeft")
    chapter.says(explorer, "loses most to bubble")
    chapter.says(explorer, "set pipeline stages to 1")


def test_a_wrong_answer_is_diagnosed_and_a_right_one_taken(chapter):
    question = (
        chapter.locator(".sol-practice")
        .filter(has_text="What share of the GPU time of the whole step is idle")
        .first
    )
    question.scroll_into_view_if_needed()
    box = question.locator("input").first
    box.fill("21.9")
    box.press("Enter")
    chapter.says(question, "divided the idle time by the time of the work")
    box.fill("17.95")
    box.press("Enter")
    chapter.says(question, "Right")
