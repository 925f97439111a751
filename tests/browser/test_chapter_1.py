"""Chapter 1 as a reader meets it: guess, drag a transfer through its crossover, compare
machines, drill.
"""

import pytest

pytestmark = pytest.mark.slow


@pytest.fixture
def chapter(page):
    return page.open_and_run("chapters/01_numbers_to_know.ipynb")


def test_a_small_transfer_waits_and_a_large_one_moves(chapter):
    explorer = chapter.locator(".sol-view").first
    explorer.scroll_into_view_if_needed()
    chapter.says(explorer, "Both matter")
    slider = explorer.get_by_label("size", exact=True)
    slider.focus()
    for _ in range(3):
        chapter.keyboard.press("ArrowLeft")
    chapter.says(explorer, "Latency decides")
    explorer.scroll_into_view_if_needed()
    chapter.screenshot("01_transfer_explorer")


def test_two_machines_beside_each_other(chapter):
    explorer = chapter.locator(".sol-view").nth(1)
    explorer.scroll_into_view_if_needed()
    explorer.get_by_label("to", exact=True).select_option(label="NVIDIA H100 SXM5")
    chapter.says(explorer, "Kept within a factor")
    chapter.screenshot("01_generations_explorer")


def test_a_guess_is_recorded_before_the_reveal(chapter):
    guess = chapter.locator(".sol-practice").first
    guess.scroll_into_view_if_needed()
    box = guess.locator("input").first
    box.fill("50")
    box.press("Enter")
    chapter.says(guess, "[Rr]ecorded|first guess|Your guess")
    chapter.screenshot("01_guess")
