"""Chapter 8 as a reader meets it: change what an adapter does about a loss, let a buffer overflow
and pause it, scatter a job, answer wrongly and rightly.
"""

import pytest

pytestmark = pytest.mark.slow

NOTEBOOK = "chapters/08_network.ipynb"


def test_an_incast_overflows_until_the_port_pauses(chapter):
    explorer = chapter.run("explore_incast()")
    chapter.says(explorer, "a timer had to ring")  # it plays once in view
    chapter.says(explorer, "81 % full")
    chapter.screenshot("08_network_incast")
    explorer.get_by_label("what slows the senders", exact=True).select_option(label="pauses")
    explorer.get_by_label("moment", exact=True).press("End")
    chapter.says(explorer, "Nothing was lost")
    chapter.says(explorer, "the port stopped its senders")


def test_an_adapter_repeats_a_window_or_a_packet(chapter):
    explorer = chapter.run("explore_lost()")
    chapter.says(explorer, "the loss cost 5 of them")
    chapter.says(explorer, "The receiver asks for")
    chapter.screenshot("08_network_lost")
    explorer.get_by_label("the adapter", exact=True).select_option(label="selective repeat")
    explorer.get_by_label("packet time", exact=True).press("End")
    chapter.says(explorer, "the loss cost 1 of them")


def test_a_scattered_job_waits_for_the_fabric(chapter):
    explorer = chapter.run("explore_fabric()")
    chapter.says(explorer, "The job waits for a link up")
    explorer.get_by_label("traffic", exact=True).select_option(label="ring")
    chapter.says(explorer, "The job waits for its own adapters")
    explorer.get_by_label("nodes of the job", exact=True).select_option(label="scattered")
    chapter.says(explorer, "The job waits for a link down")
    chapter.screenshot("08_network_fabric")


def test_a_wrong_answer_is_diagnosed_and_a_right_one_taken(chapter):
    question = chapter.run('ask("network.goodput"')
    chapter.answers(question, "99 %", "sent again by itself")
    chapter.screenshot("08_network_wrong")
    chapter.answers(question, "29.2 %", "Right")
