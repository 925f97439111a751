"""What learners answer, as it stands beside each question: honest right answers are accepted,
wrong ones are explained, and no cause is made up.

Right answers are rounded, in another unit, with a noun, as a fraction, a list or a dict by name. A
text that begins with Q( is code; any other is what is typed into the box, or handed to `check` in
quotation marks; of a function it is the source, in which `math` is there. The wrong ones were
written from the chapters and the questions before any misconception was read.
"""

import math
import random
import re

from lightspeed.units import Q
from lightspeed_course import diagnose
from lightspeed_course.practice.question_files import texts
from lightspeed_course.practice.questions import bank, question, topics

TEXTS = [text for topic in topics() for text in texts(topic)]
NAMES_NO_CAUSE = ("magnitude", "close", "partial", "error")


def handed_in(q, answer):
    if q.kind == "function":
        names = {"math": math}
        exec(answer if answer.startswith("def") else f"f = {answer}", names)
        return names["f"]
    return eval(answer, {"Q": Q}) if str(answer).startswith("Q(") else answer


def judged(id, answer):
    q = question(id)
    return diagnose(q.variant(), handed_in(q, answer))


def test_wrong_answers_are_explained_and_no_cause_is_made_up():
    told = [(text.id, *each) for text in TEXTS for each in text.wrong]
    named, misleading = 0, []
    for id, answer, _, mistake, says in told:
        verdict = judged(id, answer)
        assert not verdict.correct, (id, answer)
        if re.search(says, verdict.message.partition(". ")[2] or verdict.message, re.IGNORECASE):
            named += 1
        # which is said to be no more than that
        elif verdict.kind not in NAMES_NO_CAUSE and verdict.name != "factor of two":
            misleading.append((id, answer, mistake, verdict.message))
    print(
        f"{len(told)} wrong answers: {named / len(told):.1%} named,"
        f" {len(misleading) / len(told):.1%} misleading"
    )
    assert all(text.wrong for text in TEXTS), "a question has no wrong answer"
    assert named >= 0.9 * len(told)
    assert len(misleading) <= 0.01 * len(told), misleading


def test_honest_answers_are_accepted_in_a_cell_as_in_the_box():
    told = [(text.id, answer) for text in TEXTS for answer in text.right]
    refused = [(*each, verdict.message) for each in told if not (verdict := judged(*each)).correct]
    print(f"{len(told)} honest answers: {1 - len(refused) / len(told):.1%} accepted")
    assert len(refused) <= 0.01 * len(told), refused


def test_a_number_out_of_the_air_is_seldom_explained():
    """What fits everything explains nothing: few random three-digit answers may meet one."""
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
