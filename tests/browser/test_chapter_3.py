"""Chapter 3 as read: processors join, n is dragged past the peak, a question answered."""

import pytest

pytestmark = pytest.mark.slow

NOTEBOOK = "chapters/03_amdahl_gustafson.ipynb"


def test_dragging_n_passes_the_peak(chapter):
    explorer = chapter.run("explore()")
    explorer.get_by_role("button", name="without a guess").click()
    chapter.says(explorer, "Doubling them")
    explorer.get_by_label("n", exact=True).focus()
    for _ in range(14):
        chapter.keyboard.press("ArrowRight")
    chapter.says(explorer, "Past the peak")
    explorer.scroll_into_view_if_needed()
    chapter.screenshot("03_scaling_explorer")


def test_the_serial_minute_stays_while_processors_join(chapter):
    player = chapter.run("explore_shrinking()")
    chapter.says(player, "9 processors: 5 times as fast")
    player.get_by_role("slider").focus()
    chapter.keyboard.press("ArrowRight")
    chapter.says(player, "10 processors")
    player.scroll_into_view_if_needed()
    chapter.screenshot("03_shrinking")


def test_a_wrong_answer_is_diagnosed_and_a_right_one_taken(chapter):
    question = chapter.run('ask("scaling.price"')
    chapter.answers(question, "128", "for a shorter time")
    chapter.answers(question, "6.08", "Right")
