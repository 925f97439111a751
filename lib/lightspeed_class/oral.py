"""An oral check: three follow-ups a student, drawn from what they handed in, with other numbers and
the key for whoever asks. Five minutes tell who can explain an answer from who only has it.
"""

import math
import random

from lightspeed_class.exam import ON_PAPER, amounts
from lightspeed_class.kept_questions import KeptQuestions, is_here
from lightspeed_class.notebooks import Refused, all_cells, sources
from lightspeed_class.reports.feedback import seed_of
from lightspeed_class.reports.results import Outcome
from lightspeed_class.score import short
from lightspeed_course.practice.questions import question
from lightspeed_course.practice.variants import Variant
from lightspeed_show.html import page

MOST = 3


def follow_ups(book, name, result, origins):
    """Return three follow-up questions on a student's submission, as {question, ask, key, code};
    those on right answers first, since they earned points. Fewer if fewer were answered.
    """
    archive = KeptQuestions(book, name)
    assignment = archive.assignment(result.submission)
    seed = seed_of(book, Outcome(result), origins)
    variants = archive.asked(result.submission, seed)
    rng = random.Random(f"oral\n{book.secret}\n{name}\n{result.student.id}")
    ids = [
        id
        for id, score in result.scores.items()
        if score.kind not in ("unanswered", "refused")
        and is_here(id)
        and question(id).kind in ON_PAPER
        and question(id).kind == variants[id].question.kind
    ]
    rng.shuffle(ids)
    ids.sort(key=lambda id: result.scores[id].kind != "right")
    try:
        cells = all_cells(book.content(result.submission.id) or b"")
    except Refused:
        cells = []
    questions, ways = [], [_doubled, _slip, _other_numbers]
    for id in ids:
        q = question(id)
        theirs = Variant(q, variants[id].seed, variants[id].kept["values"])
        way = next((way for way in ways if (pair := way(theirs, rng))), None)
        if way is None:
            continue
        ways = [other for other in ways if other is not way] or [_other_numbers]
        ask, key = pair
        code = sources(cells, assignment, id)
        questions.append({"short": short(id), "ask": ask, "key": key, "code": code})
        if len(questions) == MOST:
            break
    return questions


def oral_page(name, rows):
    """Return the examiner's page; `rows`: (student, follow-ups)."""
    return page("oral", title=f"Oral check: {name}", rows=rows)


def _doubled(variant, rng):
    """What becomes of the answer where one quantity is twice as large; None for no number."""
    q = variant.question
    if q.kind != "number" or (q.valid and not q.valid(**variant.inputs())):
        return None
    names = [n for n, v in variant.values.items() if type(v) in (int, float) and v > 0]
    rng.shuffle(names)
    for name in names:
        more = {**variant.values, name: 2 * variant.values[name]}
        if q.valid and not q.valid(**variant.inputs(more)):
            continue
        try:
            (now,) = variant.result(q.expected, more)
        except (ArithmeticError, ValueError, TypeError):
            continue
        (before,) = variant.right
        if not (math.isfinite(now) and before):
            continue
        amount = q.parameters[name].text(variant.values[name])
        words = name.replace("_", " ")
        return (
            f"{variant.prompt}\n\nIn this question of yours, *{words}* is {amount}. Let it be twice"
            " that. What becomes of your answer, and why?",
            f"From {amounts([before], q.unit)} to {amounts([now], q.unit)}, a factor of"
            f" {now / before:.3g}.\n\n{variant.solution}",
        )
    return None


def _slip(variant, rng):
    """What somebody did who came to another answer with the same numbers."""
    q = variant.question
    slips = [m for m in q.misconceptions if _is_told(variant, m)]
    if not slips:
        return None
    m = rng.choice(slips)
    wrong = variant.wrong(m)
    answer = variant.options[wrong] if q.kind == "choice" else amounts(wrong, q.unit)
    return (
        f"{variant.prompt}\n\nA fellow student, with the same numbers, says: **{answer}**. What did"
        " they do or think, and what would you tell them?",
        f"{variant.fill(m.hint)}\n\nRight is {variant.answer}.",
    )


def _is_told(variant, misconception):
    wrong = variant.wrong(misconception)
    if variant.question.kind == "choice":
        return wrong in variant.options and wrong != variant.right
    return all(map(math.isfinite, wrong))


def _other_numbers(variant, rng):
    """The same question with other numbers, to be talked through without a machine."""
    other = variant.question.variant(f"oral {rng.random()}")
    return (
        f"{other.prompt}\n\nYou need not compute it to the end: what do you do first, what comes"
        " out roughly, and what does it depend on most?",
        f"{other.answer}\n\n{other.solution}",
    )
