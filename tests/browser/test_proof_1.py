"""The proof of chapter 1 as a reader meets it: two machines beside each other."""

import pytest

pytestmark = pytest.mark.slow

NOTEBOOK = "chapters/01_numbers_to_know_proof.ipynb"


def test_two_machines_beside_each_other(chapter):
    explorer = chapter.run("explore_generations()")
    explorer.get_by_label("to", exact=True).select_option(label="NVIDIA H100 SXM5")
    chapter.says(explorer, "Kept within a factor")
    chapter.screenshot("01_generations_explorer")
