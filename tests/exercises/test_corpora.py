"""What learners answer: honest right answers are accepted, wrong ones are explained, and no
cause is made up.
"""

import math
import random
import re
import tomllib
from pathlib import Path

from lightspeed.units import Q
from lightspeed_course import diagnose
from lightspeed_course.practice.questions import bank, question, topics

HERE = Path(__file__).parent
WRONG = tomllib.loads((HERE / "wrong_answers.toml").read_text("utf-8"))["wrong"]
HONEST = tomllib.loads((HERE / "honest_answers.toml").read_text("utf-8"))["honest"]
NAMES_NO_CAUSE = ("magnitude", "close", "partial", "error")


def handed_in(q, answer):
    if q.kind == "function":
        names = {"math": math}
        exec(answer if answer.startswith("def") else f"f = {answer}", names)
        return names["f"]
    return eval(answer, {"Q": Q}) if str(answer).startswith("Q(") else answer


def judged(entry):
    q = question(entry["id"])
    return diagnose(q.variant(), handed_in(q, entry["answer"]))


def test_wrong_answers_are_explained_and_no_cause_is_made_up():
    named, misleading = 0, []
    for entry in WRONG:
        verdict = judged(entry)
        assert not verdict.correct, entry
        if re.search(
            entry["says"], verdict.message.partition(". ")[2] or verdict.message, re.IGNORECASE
        ):
            named += 1
        # which is said to be no more than that
        elif verdict.kind not in NAMES_NO_CAUSE and verdict.name != "factor of two":
            misleading.append((entry["id"], entry["answer"], entry["mistake"], verdict.message))
    print(
        f"{len(WRONG)} wrong answers: {named / len(WRONG):.1%} named,"
        f" {len(misleading) / len(WRONG):.1%} misleading"
    )
    assert len({entry["id"] for entry in WRONG}) == sum(len(bank(topic)) for topic in topics()), (
        "a question has no wrong answer"
    )
    assert named >= 0.9 * len(WRONG)
    assert len(misleading) <= 0.01 * len(WRONG), misleading


def test_honest_answers_are_accepted_in_a_cell_as_in_the_box():
    refused = [
        (entry, verdict.message) for entry in HONEST if not (verdict := judged(entry)).correct
    ]
    print(f"{len(HONEST)} honest answers: {1 - len(refused) / len(HONEST):.1%} accepted")
    assert len(refused) <= 0.01 * len(HONEST), refused


def test_a_number_out_of_the_air_is_seldom_explained():
    """A candidate that fits everything explains nothing: of random three-digit answers few may
    meet one.
    """
    rng, tried, explained = random.Random(1), 0, 0
    for q in (q for topic in topics() for q in bank(topic) if q.kind == "number" and q.tolerance):
        variant = q.variant()
        for _ in range(8):
            verdict = diagnose(
                variant, float(f"{variant.right[0] * 10 ** rng.uniform(-1.5, 1.5):.3g}")
            )
            tried += not verdict.correct
            explained += verdict.kind in ("misconception", "slip")
    assert explained <= 0.1 * tried, f"{explained} of {tried}"
