"""An exercise does not ask again, with the same numbers, what its chapter asked."""

import re
from pathlib import Path

import pytest

from lightspeed_course.practice.questions import question

ROOT = Path(__file__).parents[2]
ASKED = re.compile(r'^ *(?:ask|check|predict|reveal)\("([a-z]\w*\.\w+)"([^)]*)\)', re.MULTILINE)


def asked(page):
    """(id, values) of a page's questions, without functions and incidents."""
    posed = set()
    for id, rest in ASKED.findall(page.read_text(encoding="utf-8")):
        if id.startswith("incident.") or question(id).kind == "function":
            continue
        seed = re.search(r'seed="(\w+)"', rest)
        values = question(id).variant(seed and seed[1]).values
        posed.add((id, tuple(sorted(values.items()))))
    return posed


@pytest.mark.parametrize("chapter", sorted(p.stem for p in ROOT.glob("solutions/*.py")))
def test_the_exercise_has_other_numbers_than_the_chapter(chapter):
    pages = ROOT.glob(f"chapters/{chapter[:2]}_*.py")  # the lessons of a chapter and its proof
    taught, set_ = set().union(*map(asked, pages)), asked(ROOT / "solutions" / f"{chapter}.py")
    assert taught and set_
    assert not {id for id, _ in taught & set_}


@pytest.mark.parametrize("proof", sorted(p.stem for p in ROOT.glob("chapters/*_proof.py")))
def test_a_proof_sets_no_problem_that_the_exercise_sets(proof):
    def asks(page):
        return set(re.findall(r'^ask\("([\w.]+)"', page.read_text("utf-8"), re.MULTILINE))

    there = set().union(*map(asks, ROOT.glob(f"solutions/{proof[:2]}_*.py")))
    assert there and not there & asks(ROOT / "chapters" / f"{proof}.py")
