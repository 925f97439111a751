"""An exercise does not ask again, with the same numbers, what its chapter asked."""

import re
from pathlib import Path

import pytest

from lightspeed_course.practice.questions import question

ROOT = Path(__file__).parents[2]
ASKED = re.compile(r'^ *(?:ask|check|predict|reveal)\("([a-z]\w*\.\w+)"([^)]*)\)', re.MULTILINE)


def asked(page):
    """(id, values) of each question that a page poses; functions and incidents, which have no
    values of their own, aside.
    """
    posed = set()
    for id, rest in ASKED.findall(page.read_text(encoding="utf-8")):
        if id.startswith("incident.") or question(id).kind == "function":
            continue
        seed = re.search(r'seed="(\w+)"', rest)
        values = question(id).variant(seed and seed[1]).values
        posed.add((id, tuple(sorted(values.items()))))
    return posed


@pytest.mark.parametrize("chapter", sorted(p.stem for p in ROOT.glob("chapters/0[1-8]*.py")))
def test_the_exercise_has_other_numbers_than_the_chapter(chapter):
    taught, set_ = (asked(ROOT / part / f"{chapter}.py") for part in ("chapters", "solutions"))
    assert taught and set_
    assert not {id for id, _ in taught & set_}
