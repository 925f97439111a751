"""Concept tests: two a chapter, each with a second question that another answer is right for."""

from pathlib import Path

from lightspeed_class.concept_tests import PAIRS, concept_tests, options, page
from lightspeed_cli.main import main
from lightspeed_course.practice.questions import question

# Those with questions to hand in; a chapter may have several pages.
CHAPTERS = {path.stem for path in (Path(__file__).parents[2] / "exercises").glob("[0-9]*.ipynb")}


def test_every_chapter_has_a_pair_of_its_own_questions():
    assert set(PAIRS) == CHAPTERS
    assert {id: question(id).chapter for pair in PAIRS.values() for id in pair} == {
        id: chapter for chapter, pair in PAIRS.items() for id in pair
    }


def test_each_vote_has_one_right_option_and_the_second_another_answer():
    for chapter in PAIRS:
        for seed in ("room", "b", "c"):
            for pair in concept_tests(chapter, seed):
                first, second = pair
                where = f"{first.question.id}, seed {seed}"
                assert first.right != second.right, where
                for variant in pair:
                    votes = options(variant)
                    assert len(votes) >= 3, where
                    assert len({o.text for o in votes}) == len(votes), where
                    [right] = [o for o in votes if o.right]
                    assert right.text in variant.answer, where
                    assert not right.say and any(o.say for o in votes), where


def test_the_key_is_behind_the_questions(capsys):
    assert main(["class", "vote", "02_roofline"]) == 0
    shown, key = capsys.readouterr().out.split("# Key")
    assert page("02_roofline") == f"{shown}# Key{key}"
    for pair in concept_tests("02_roofline"):
        for variant in pair:
            assert variant.solution not in shown and variant.solution in key
    assert page("02_roofline", "other") != page("02_roofline")


def test_an_unknown_chapter_is_one_line(capsys):
    assert main(["class", "vote", "roofline"]) == 2
    assert "did you mean 02_roofline?" in capsys.readouterr().err
