"""Notebooks that are honest but unusual lose nothing: not a point, and no word about what was not
done. One fork server serves them all.
"""

import sys
from pathlib import Path

import pytest
from cases import ASSIGNMENT

from lightspeed_class.grading.grade import grade

sys.path.insert(0, str(Path(__file__).parent / "honest"))
from notebooks import NOTEBOOKS

pytestmark = pytest.mark.slow


def test_each_gets_full_marks_and_hears_what_was_not_run():
    assert len(NOTEBOOKS) >= 60
    lost = []
    for name, (content, notes) in NOTEBOOKS.items():
        graded = grade(content, ASSIGNMENT, secret="of the test")
        told = " ".join(graded.notes)
        strange = [n for n in graded.notes if not any(word in n for word in notes)]
        missing = [word for word in notes if word not in told]
        if graded.points != 4 or graded.status != "ok" or strange or missing:
            lost.append(f"{name}: {graded.points} points, {graded.status}, {told or 'no notes'}")
    assert not lost, "\n".join(lost)
