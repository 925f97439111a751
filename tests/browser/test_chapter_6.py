"""Lesson 6.3 as read: break the plan and mend it, watch the bubble, answer twice."""

import pytest

pytestmark = pytest.mark.slow

NOTEBOOK = "chapters/06_parallelism_3_waits.ipynb"


@pytest.fixture
def explorer(chapter):
    shown = chapter.run("explore()")
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
    explorer.get_by_label("batch, in sequences", exact=True).focus()
    for _ in range(3):
        chapter.keyboard.press("ArrowLeft")
    chapter.says(explorer, "loses most to bubble")
    explorer.get_by_role("button", name="what to change first").click()
    chapter.says(explorer, "set pipeline stages to 1")


def test_a_wrong_answer_is_diagnosed_and_a_right_one_taken(chapter):
    question = chapter.run('ask("parallelism.bubble_over_total"')
    chapter.answers(question, "18.75", "divided the idle time by the time of the work")
    chapter.answers(question, "15.79", "Right")
