"""Chapter 7 as a reader meets it: open, run, move the message, play the ring, answer wrongly and
rightly.
"""

import re

import pytest

pytestmark = pytest.mark.slow


@pytest.fixture
def chapter(page):
    return page.open_and_run("chapters/07_nccl_bandwidth.ipynb")


def explorer(chapter, words):
    chapter.get_by_role("heading", name=re.compile(words)).first.scroll_into_view_if_needed()
    return chapter.locator(".sol-view")


def test_a_small_message_is_bound_by_latency(chapter):
    shown = explorer(chapter, "Try it").filter(has_text="nodes").last
    shown.scroll_into_view_if_needed()
    chapter.says(shown, "Bandwidth-bound")
    chapter.says(shown, "line rate")
    chapter.screenshot("07_nccl_explorer")
    slider = shown.get_by_label("message", exact=True)
    slider.focus()
    chapter.keyboard.press("Home")
    chapter.says(shown, "Latency-bound")
    shown.get_by_label("message", exact=True).focus()
    chapter.keyboard.press("End")
    chapter.says(shown, "Bandwidth-bound")


def test_the_switch_is_explained(chapter):
    shown = explorer(chapter, "Try it").filter(has_text="nodes").last
    shown.scroll_into_view_if_needed()
    shown.get_by_label("nodes", exact=True).focus()
    chapter.keyboard.press("Home")
    shown.get_by_label("the switch adds (NVLS)", exact=True).check()
    chapter.says(shown, "the switch adds, and")
    chapter.screenshot("07_nccl_switch")


def test_the_ring_plays_to_its_end(chapter):
    shown = explorer(chapter, "A ring, step by step").filter(has_text="cut into 4 chunks").first
    shown.scroll_into_view_if_needed()
    shown.get_by_label("round", exact=True).focus()
    for _ in range(3):
        chapter.keyboard.press("ArrowRight")
    chapter.says(shown, "Half of the rounds")
    chapter.screenshot("07_nccl_ring")
    shown.get_by_label("play", exact=True).click()
    chapter.says(shown, "Done in 6 rounds")


def test_a_wrong_answer_is_diagnosed_and_a_right_one_taken(chapter):
    chapter.get_by_role(
        "heading", name=re.compile("Count the bytes")
    ).first.scroll_into_view_if_needed()
    question = (
        chapter.locator(".sol-practice").filter(has_text="Which busbw stands beside it").first
    )
    question.scroll_into_view_if_needed()
    box = question.locator("input").first
    box.fill("240")
    box.press("Enter")
    chapter.says(question, "Twice is the limit")
    chapter.screenshot("07_nccl_wrong")
    box.fill("210")
    box.press("Enter")
    chapter.says(question, "Right")
