"""Chapter 5 as read: set a bit, read the same bits in another format, answer a question."""

import pytest

pytestmark = pytest.mark.slow

NOTEBOOK = "chapters/05_precision.ipynb"


def test_a_bit_and_another_format(chapter):
    explorer = chapter.run("explore()")
    chapter.says(explorer, r"Normal: 3\.140625 is")
    explorer.get_by_label("bit 1", exact=True).check()
    chapter.says(explorer, r"Normal: -3\.140625 is")
    explorer.scroll_into_view_if_needed()
    chapter.screenshot("05_precision_explorer")
    explorer.get_by_label("format", exact=True).select_option("fp8_e4m3")
    chapter.says(explorer, r"Normal: -2 is")
    chapter.screenshot("05_precision_explorer_e4m3")


def test_a_wrong_answer_is_diagnosed_and_a_right_one_taken(chapter):
    question = chapter.run('ask("quantization.bits_per_weight"')
    chapter.answers(question, "6", "has to store the scales")
    chapter.answers(question, "6.0625", "Right")
