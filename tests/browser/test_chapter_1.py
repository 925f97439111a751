"""Chapter 1 as a reader meets it: guess, drag a transfer through its crossover, compare machines."""

import pytest

pytestmark = pytest.mark.slow

NOTEBOOK = "chapters/01_numbers_to_know.ipynb"


def test_a_small_transfer_waits_and_a_large_one_moves(chapter):
    explorer = chapter.run("explore()")
    chapter.says(explorer, "Both matter")
    explorer.get_by_label("size", exact=True).focus()
    for _ in range(3):
        chapter.keyboard.press("ArrowLeft")
    chapter.says(explorer, "Latency decides")
    explorer.scroll_into_view_if_needed()
    chapter.screenshot("01_transfer_explorer")


def test_two_machines_beside_each_other(chapter):
    explorer = chapter.run("explore_generations()")
    explorer.get_by_label("to", exact=True).select_option(label="NVIDIA H100 SXM5")
    chapter.says(explorer, "Kept within a factor")
    chapter.screenshot("01_generations_explorer")


def test_a_guess_is_recorded_before_the_reveal(chapter):
    guess = chapter.run('predict("numbers.dram_over_fma"')
    chapter.answers(guess, "50", "[Rr]ecorded|first guess|Your guess")
    chapter.screenshot("01_guess")
