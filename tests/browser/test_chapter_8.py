"""Chapter 8 as a reader meets it: open, run, let a buffer overflow and pause it, scatter a job,
answer wrongly and rightly.
"""

import re

import pytest

pytestmark = pytest.mark.slow


@pytest.fixture
def chapter(page):
    return page.open_and_run("chapters/08_network.ipynb")


def under(chapter, heading, words):
    """The view that stands below a heading and says these words."""
    found = chapter.get_by_role("heading", name=re.compile(heading)).first
    found.scroll_into_view_if_needed()
    shown = chapter.locator(".sol-view").filter(has_text=words).last
    shown.scroll_into_view_if_needed()
    return shown


def test_an_incast_overflows_until_the_port_pauses(chapter):
    shown = under(chapter, "Incast", "what slows the senders")
    chapter.says(shown, "found the buffer full")
    chapter.screenshot("08_network_incast")
    shown.get_by_label("what slows the senders", exact=True).select_option(label="pauses")
    chapter.says(shown, "Nothing was lost")
    chapter.says(shown, "the port stopped its senders")


def test_a_scattered_job_waits_for_the_fabric(chapter):
    shown = under(chapter, "Which links carry what", "What crosses a spine")
    chapter.says(shown, "The job waits for its own adapters")
    shown.get_by_label("nodes of the job", exact=True).select_option(label="scattered")
    chapter.says(shown, "The job waits for a link down")
    chapter.screenshot("08_network_fabric")


def test_a_wrong_answer_is_diagnosed_and_a_right_one_taken(chapter):
    chapter.get_by_role(
        "heading", name=re.compile("What a lost packet costs")
    ).first.scroll_into_view_if_needed()
    question = chapter.locator(".sol-practice").filter(has_text="the adapter goes back n").first
    question.scroll_into_view_if_needed()
    box = question.locator("input").first
    box.fill("99 %")
    box.press("Enter")
    chapter.says(question, "sent again by itself")
    chapter.screenshot("08_network_wrong")
    box.fill("45.2 %")
    box.press("Enter")
    chapter.says(question, "Right")
