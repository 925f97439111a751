"""Chapter 1 as a reader meets it: guess, drag a transfer through its crossover, compare machines, drill."""

import re

import pytest

pytestmark = pytest.mark.slow


@pytest.fixture
def chapter(page):
    page.open_notebook("chapters/01_numbers_to_know.ipynb")
    page.run_all()
    assert page.cell_errors() == []
    return page


def says(place, words):
    place.get_by_text(re.compile(words)).first.wait_for(timeout=10_000)


def test_a_small_transfer_waits_and_a_large_one_moves(chapter):
    explorer = chapter.locator(".sol-view").first
    explorer.scroll_into_view_if_needed()
    says(explorer, "Bandwidth decides")
    slider = explorer.get_by_label("size", exact=True)
    slider.focus()
    for _ in range(3):
        chapter.keyboard.press("ArrowLeft")
    says(explorer, "Latency decides")
    explorer.scroll_into_view_if_needed()
    chapter.screenshot("01_transfer_explorer")


def test_two_machines_beside_each_other(chapter):
    explorer = chapter.locator(".sol-view").nth(1)
    explorer.scroll_into_view_if_needed()
    explorer.get_by_label("to", exact=True).select_option(label="NVIDIA H100 SXM5")
    says(explorer, "Kept within a factor")
    chapter.screenshot("01_generations_explorer")


def test_a_guess_is_recorded_before_the_reveal(chapter):
    guess = chapter.locator(".sol-practice").first
    guess.scroll_into_view_if_needed()
    box = guess.locator("input").first
    box.fill("50")
    box.press("Enter")
    says(guess, "[Rr]ecorded|first guess|Your guess")
    chapter.screenshot("01_guess")
