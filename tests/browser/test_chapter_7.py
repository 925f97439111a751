"""Chapter 7 as a reader meets it: move the message, play the ring, answer wrongly and rightly."""

import pytest

pytestmark = pytest.mark.slow

NOTEBOOK = "chapters/07_nccl_bandwidth.ipynb"


def test_a_small_message_is_bound_by_latency(chapter):
    explorer = chapter.run("explore()")
    chapter.says(explorer, "Bandwidth-bound")
    chapter.says(explorer, "line rate")
    chapter.screenshot("07_nccl_explorer")
    slider = explorer.get_by_label("message", exact=True)
    slider.press("Home")
    chapter.says(explorer, "Latency-bound")
    slider.press("End")
    chapter.says(explorer, "Bandwidth-bound")


def test_the_switch_is_explained(chapter):
    explorer = chapter.run("explore()")
    explorer.get_by_label("nodes", exact=True).press("Home")
    explorer.get_by_label("the switch adds (NVLS)", exact=True).check()
    chapter.says(explorer, "the switch adds, and")
    chapter.screenshot("07_nccl_switch")


def test_the_ring_plays_to_its_end(chapter):
    explorer = chapter.run("explore_all_reduce()")
    chapter.says(explorer, "Done in 6 rounds")  # it plays once in view, and stops where it opened
    chapter.says(explorer, "Half of the rounds")
    chapter.screenshot("07_nccl_ring")
    explorer.get_by_label("play", exact=True).click()
    chapter.says(explorer, "Done in 6 rounds")


def test_the_wire_carries_the_same_whatever_the_caller_sees(chapter):
    explorer = chapter.run("explore_wire()")
    chapter.says(explorer, "an algbw of 156 GB/s")
    explorer.get_by_label("ranks", exact=True).press("Home")
    chapter.says(explorer, "an algbw of 312 GB/s")
    chapter.screenshot("07_nccl_wire")


def test_a_wrong_answer_is_diagnosed_and_a_right_one_taken(chapter):
    question = chapter.run('ask("nccl.one_direction"')
    chapter.answers(question, "38.3 %", "What part of the printed rate")
    chapter.screenshot("07_nccl_wrong")
    chapter.answers(question, "76.7 %", "Right")
