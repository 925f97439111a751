"""Lesson 4.1 as read: change the hardware."""

import pytest

pytestmark = pytest.mark.slow

NOTEBOOK = "chapters/04_littles_law_1_replica.ipynb"


def test_another_machine_changes_the_replica(chapter):
    explorer = chapter.run("explore_serving()")
    explorer.get_by_role("button", name="without a guess").click()
    chapter.says(explorer, "set by memory")
    explorer.get_by_label("hardware", exact=True).select_option(label="NVIDIA A100 SXM4 80 GB")
    chapter.says(explorer, "set by the budget")
    explorer.scroll_into_view_if_needed()
    chapter.screenshot("04_serving_explorer")
