"""Chapter 1 as a reader meets it: guess, and drag a transfer from one wait to the other."""

import pytest

pytestmark = pytest.mark.slow

NOTEBOOK = "chapters/01_numbers_to_know.ipynb"


def test_the_larger_the_transfer_the_less_it_waits_for_its_first_byte(chapter):
    explorer = chapter.run("explore_two_waits()")
    chapter.says(explorer, "Both waits count")
    explorer.get_by_label("size", exact=True).focus()
    for _ in range(6):
        chapter.keyboard.press("ArrowRight")
    chapter.says(explorer, "a wider link helps, a nearer server hardly does")
    explorer.scroll_into_view_if_needed()
    chapter.screenshot("01_two_waits")


def test_a_small_transfer_waits_and_a_large_one_moves(chapter):
    explorer = chapter.run("explore()")
    explorer.get_by_role("button", name="without a guess").click()
    chapter.says(explorer, "Both matter")
    explorer.get_by_label("size", exact=True).focus()
    for _ in range(3):
        chapter.keyboard.press("ArrowLeft")
    chapter.says(explorer, "Latency decides")
    explorer.scroll_into_view_if_needed()
    chapter.screenshot("01_transfer_explorer")


def test_a_guess_is_recorded_before_the_reveal(chapter):
    guess = chapter.run('predict("numbers.hbm_latency"')
    chapter.answers(guess, "50", "[Rr]ecorded|first guess|Your guess")
    chapter.screenshot("01_guess")
