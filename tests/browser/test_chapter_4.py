"""Chapter 4 as read: overload the queue, change the hardware, answer a question."""

import pytest

pytestmark = pytest.mark.slow

NOTEBOOK = "chapters/04_littles_law.ipynb"


def test_more_arrivals_end_in_overload(chapter):
    explorer = chapter.run("explore()")
    explorer.get_by_role("button", name="without a guess").click()
    chapter.says(explorer, "Stable")
    explorer.get_by_label("arrivals", exact=True).focus()
    for _ in range(6):
        chapter.keyboard.press("ArrowRight")
    chapter.says(explorer, "Overload")
    explorer.scroll_into_view_if_needed()
    chapter.screenshot("04_queue_explorer")


def test_a_wrong_answer_is_diagnosed_and_a_right_one_taken(chapter):
    question = chapter.run('ask("queueing.capped_rate"')
    chapter.answers(question, "50", "rate of one slot")
    chapter.answers(question, "800", "Right")
