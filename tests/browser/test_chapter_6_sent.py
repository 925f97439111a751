"""Lesson 6.2 as a reader meets it: fill the blank, cut the other way, number the ranks badly."""

import pytest

pytestmark = pytest.mark.slow

NOTEBOOK = "chapters/06_parallelism_2_sent.ipynb"


def test_the_blank_goes_with_the_tokens(chapter):
    clock = chapter.run("explore_layer_clock()")
    chapter.says(clock, "then waits 13.6 ms")
    chapter.screenshot("06_layer_clock")
    clock.get_by_label("tokens a GPU", exact=True).focus()
    chapter.keyboard.press("End")
    chapter.says(clock, "The GPU never waits")


def test_the_other_cut_talks_twice(chapter):
    mlp = chapter.run("explore_split_mlp()")
    chapter.says(mlp, "add the parts here already")
    mlp.get_by_label("step", exact=True).focus()
    chapter.keyboard.press("End")
    chapter.says(mlp, "They have talked twice")


def test_a_tensor_group_over_nodes_takes_the_step(chapter):
    places = chapter.run("explore_map()")
    chapter.says(places, "in one node")
    places.get_by_label("ranks are numbered", exact=True).select_option(label="pipeline first")
    chapter.says(places, "in 8 nodes.* by its port")


def test_attention_sends_something(chapter):
    question = chapter.run('ask("parallelism.attention_forward"')
    chapter.answers(question, "0", "What does the output projection leave")
