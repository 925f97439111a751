"""A report on an assignment for the instructor: what to talk about in class, how each question did,
who got stuck and how.

`statistics` gathers plain data from the gradebook through pure functions; report_page.py shows it.
The page names students and says how far off they were; it is not for them.
"""

import math
import statistics as stdlib
from collections import Counter, defaultdict
from dataclasses import dataclass
from itertools import islice

import numpy as np

from lightspeed_class.intake.origins import remarks
from lightspeed_class.intake.similarity import alike
from lightspeed_class.kept_questions import KeptQuestions
from lightspeed_class.reports.results import outcomes
from lightspeed_class.score import BY_HAND, number
from lightspeed_show.format import plain

# students below which discrimination is not given: its interval would tell nothing
FEWEST = 10
ALIKE = 5e-3  # answers this near to each other, relative to what is right, are taken for the same
OPEN = ("magnitude", "close", "partial")  # wrong for a reason that the checker does not know
EXPLAINED = ("misconception", "slip", "dimension", "sign", "hidden", "library", "error", "type")


@dataclass(frozen=True)
class Answer:
    """An answer with its verdict. `ratio`: given over right, one for each value, or ()."""

    student: str
    question: str
    share: float
    kind: str
    name: str
    message: str
    given: str
    ratio: tuple = ()


def statistics(book, name, section=""):
    """Return the report's data on all students or a section. Unreadable submissions are left out of
    the questions' statistics, and a group's submission counts once.
    """
    assignment = book.assignment(name)
    rows = [o for o in outcomes(book, name, section) if not o.result.student.left]
    hints = remarks(book, name)
    for student, hint in alike(book, name).items():
        hints.setdefault(student, []).append(hint)
    marks = [o for o in rows if o.result.grading]
    sound = [o for o in marks if o.result.grading.graded.status != "refused"]
    notebooks = {o.result.submission.id: o for o in reversed(sound)}
    archive = KeptQuestions(book, name)
    variants = {id: _asked(archive, o) for id, o in notebooks.items()}
    answers = [
        a
        for id, o in reversed(notebooks.items())
        for a in _answers(o, assignment.points, variants[id])
    ]
    return {
        "name": f"{name}, section {section}" if section else name,
        "students": len(rows),
        "graded": len(marks),
        "read": len(notebooks),
        "together": len(sound) - len(notebooks),
        "out of": math.fsum(assignment.points.values()),
        "points": sorted(
            o.result.points for o in sound if not (o.result.excused or o.result.unmarked)
        ),
        "by hand": list(_by_hand(sound, assignment)),
        "questions": items(answers, assignment.points),
        "mistakes": mistakes(answers),
        "unexplained": unexplained(answers),
        "look": [
            (*_who(o), " ".join(hints[o.result.student.id]))
            for o in rows
            if o.result.student.id in hints
        ],
        "stopped": [
            (*_who(o), o.result.grading.graded.status, " ".join(o.result.grading.graded.notes))
            for o in marks
            if o.result.grading.graded.notes
        ],
        "late": [(*_who(o), ", ".join(filter(None, (o.late, o.cost)))) for o in rows if o.late],
        "missing": [_who(o) for o in rows if o.status in ("missing", "by hand")],
        "outdated": sum(o.result.outdated for o in rows),
        "waiting": [_who(o) for o in rows if o.status == "not graded"],
        "names": dict(_who(o) for o in rows),
        "key": list(_key(notebooks, variants, assignment)),
    }


def _key(notebooks, variants, assignment):
    """(question, right answer -> who was asked for it) of each that has one."""
    for question in assignment.judged:
        rights = defaultdict(list)
        for id, o in reversed(notebooks.items()):
            if right := getattr(variants[id].get(question), "answer", ""):
                rights[right].append(o.result.student.id)
        if rights:
            yield question, dict(rights)


def _by_hand(outcomes, assignment):
    """(question, how many are marked, how many wait, mean share of the points) of prose."""
    for id in assignment.prose:
        mine = [o for o in outcomes if id in o.result.scores and not o.result.excused]
        scored = [o for o in mine if o.points(id) is not None and o.result.asked[id]]
        shares = [o.points(id) / o.result.asked[id] for o in scored]
        mean = math.fsum(shares) / len(shares) if shares else None
        waiting = sum(id in o.result.unmarked for o in mine)
        yield id, len(shares), waiting, mean


def _who(outcome):
    return outcome.result.student.id, outcome.result.student.name


def _asked(archive, outcome):
    seed = outcome.result.grading.graded.record.get("seed")
    return archive.asked(outcome.result.submission, seed)


def _answers(outcome, points, variants):
    for id, score in outcome.result.scores.items():
        if id in points and score.kind != BY_HAND:
            out_of = outcome.result.asked[id]
            share = outcome.points(id) / out_of if out_of else 0.0
            ratio = ratios(variants[id], score.given) if score.kind in OPEN else ()
            words = score.kind, score.name, score.message, score.given
            yield Answer(outcome.result.student.id, id, share, *words, ratio)


def ratios(variant, answer):
    """Return given over right, value by value; () if undefined."""
    if variant.question.kind == "choice":
        return ()
    values, right = np.array(answer.split(), float), np.array(variant.right, float)
    if (
        not len(values)
        or not np.isfinite(values).all()
        or not np.isfinite(right[: len(values)]).all()
        or (right[: len(values)] == 0).any()
    ):
        return ()
    return tuple(float(r) for r in values / right[: len(values)])


# Questions


def items(answers, points):
    """Return each question's counts, mean share of the points, and discrimination."""
    by_student = defaultdict(dict)
    for a in answers:
        by_student[a.student][a.question] = a.share * points[a.question]
    rows = []
    for id in points:
        mine = [a for a in answers if a.question == id]
        kinds = Counter(
            "right" if a.kind == "right" else "unanswered" if a.kind == "unanswered" else "wrong"
            for a in mine
        )
        pairs = [
            (row[id], math.fsum(v for q, v in row.items() if q != id))
            for row in by_student.values()
            if id in row
        ]
        rows.append({
            "question": id,
            "students": len(mine),
            "share": stdlib.fmean(a.share for a in mine) if mine else None,
            **{kind: kinds[kind] for kind in ("right", "wrong", "unanswered")},
            "discrimination": discrimination(pairs),
        })  # fmt: skip
    return rows


def discrimination(pairs):
    """(r, low, high, n): the correlation of a question's points with those of all the others, with
    its 95 % interval.

    `pairs` are (points of the question, points of the rest) by student. None below FEWEST students,
    and where all did alike: there is nothing to tell apart. The rest leaves the question itself out
    ("corrected item-total correlation"); the interval is Fisher's, tanh(atanh r ± z / sqrt(n - 3)),
    which is rough for questions that are only right or wrong.
    """
    n = len(pairs)
    if n < FEWEST or any(
        len({round(v, 9) for v in column}) < 2 for column in zip(*pairs, strict=True)
    ):
        return None
    r = max(-1.0, min(1.0, stdlib.correlation(*zip(*pairs, strict=True))))
    if abs(r) > 1 - 1e-12:
        return r, r, r, n
    half = stdlib.NormalDist().inv_cdf(0.975) / math.sqrt(n - 3)
    return r, math.tanh(math.atanh(r) - half), math.tanh(math.atanh(r) + half), n


def histogram(points, out_of, bins=10):
    """[(low, high, count)] over equal bins from 0 to full marks, which are in the last one.

    Points added by hand may lead beyond, or below 0: these have a bin of their own at the end, so
    that one of them leaves the others in their place.
    """
    if out_of <= 0:
        return []
    below, above = [p for p in points if p < 0], [p for p in points if p > out_of]
    counts = Counter(
        min(int(p / out_of * bins + 1e-9), bins - 1) for p in points if 0 <= p <= out_of
    )
    bars = [(out_of * i / bins, out_of * (i + 1) / bins, counts[i]) for i in range(bins)]
    first = [(min(below), 0.0, len(below))] if below else []
    return first + bars + ([(out_of, max(above), len(above))] if above else [])


# Wrong answers


def mistakes(answers):
    """Wrong answers that have a diagnosis, by question, kind and name; the most frequent first."""
    groups = defaultdict(list)
    for a in answers:
        if a.kind in EXPLAINED:
            groups[a.question, a.kind, a.name].append(a)
    rows = [
        {
            "question": id,
            "kind": kind,
            "name": name,
            "students": [a.student for a in group],
            "message": told(group),
        }
        for (id, kind, name), group in groups.items()
    ]
    return sorted(rows, key=lambda m: (-len(m["students"]), m["question"], m["name"]))


def told(group):
    """Return the most common message of a group, without the part about a student's own number."""
    return Counter(a.message.partition(". ")[2] or a.message for a in group).most_common(1)[0][0]


def unexplained(answers):
    """Equal wrong answers that have no diagnosis, of two students or more: each may be a
    misconception still to be named.

    Where students have numbers of their own, equal means off by the same factor; other answers are
    equal as they stand.
    """
    groups = defaultdict(list)
    for a in answers:
        if a.kind in OPEN and a.given:
            groups[a.question].append(a)
    rows = []
    for id, group in groups.items():
        rest = []
        for same in _alike([a for a in group if a.ratio]):
            same.sort(key=lambda a: a.student)
            if len(same) > 1:
                rows.append(_shared(id, same, _middle(same)))
            else:
                rest += same
        by_text = defaultdict(list)
        for a in [*rest, *(a for a in group if not a.ratio)]:
            by_text[a.given].append(a)
        rows += [_shared(id, same) for same in by_text.values() if len(same) > 1]
    return sorted(rows, key=lambda c: (-len(c["students"]), c["question"], c["given"]))


def _shared(id, same, ratio=()):
    """What several gave alike: who, how far off, and as what."""
    students, texts = [a.student for a in same], [a.given for a in same]
    return {"question": id, "students": students, "ratio": ratio, "given": texts}


def _alike(answers):
    """Answers in groups of nearly one ratio; a group starts with its smallest."""
    groups = []
    for a in sorted(answers, key=lambda a: a.ratio):
        home = next((g for g in groups if _near(g[0].ratio, a.ratio)), None)
        if home is None:
            groups.append([a])
        else:
            home.append(a)
    return groups


def _near(a, b):
    return len(a) == len(b) and all(
        abs(r - s) <= ALIKE * max(abs(r), abs(s)) for r, s in zip(a, b, strict=True)
    )


def _middle(answers):
    return tuple(stdlib.median(column) for column in zip(*(a.ratio for a in answers), strict=True))


# What to say in class


def opening(data):
    """Return up to three sentences on what to discuss in class, most useful first, preceded by a
    note if some points come from earlier settings.
    """
    sentences = list(islice(_findings(data), 3))
    if not data.get("outdated"):
        return sentences
    return [
        (
            f"{data['outdated']} of {data['graded']} graded under other points than now, so the"
            f" marks below are mixed: lightspeed class regrade {data['name']}"
        ),
        *sentences,
    ]


def _findings(data):
    """Sentences, each only if the data bear it out."""
    # one that was added since has nobody's answer yet
    questions = [q for q in data["questions"] if q["students"]]
    yield from _on_answers(data, questions)
    yield from _on_notebooks(data)
    yield from _on_marks(data, questions)
    yield from _on_students(data)


def _on_answers(data, questions):
    """What to talk about: the mistake that most made, what was hard, what nothing explains."""
    n = data["read"]
    common = next(
        (m for m in data["mistakes"] if m["kind"] == "misconception" and len(m["students"]) > 1),
        None,
    )
    if common:
        yield (
            f"Talk first about “{common['name']}” in {common['question']}:"
            f" {_of(common['students'], n)} answered that way and read “{common['message']}”"
        )
    hard = min(
        (q for q in questions if not common or q["question"] != common["question"]),
        key=lambda q: q["share"],
        default=None,
    )
    if hard and hard["share"] < 1:
        also = "besides it" if common else "of all"
        yield (
            f"The hardest question {also} is {hard['question']}: {hard['right']} of {n} have it"
            f" right, {hard['wrong']} answered something else and {hard['unanswered']} nothing."
        )
    if data["unexplained"]:
        same = data["unexplained"][0]
        what = (
            f"{times(same['ratio'])} the right answer" if same["ratio"] else f"“{same['given'][0]}”"
        )
        yield (
            f"{_of(same['students'], n)} gave the same wrong answer to {same['question']}, {what},"
            " and no known misconception explains it: ask how they came to it."
        )
    for q in questions:
        if q["discrimination"] and q["discrimination"][2] < 0:
            yield (
                f"In {q['question']} those who did worse elsewhere did better: read the question"
                " again before you discuss it."
            )
    slips = [m for m in data["mistakes"] if m["kind"] in ("slip", "dimension")]
    if slips:
        who = {student for m in slips for student in m["students"]}
        names = Counter(m["name"] or m["kind"] for m in slips for _ in m["students"])
        yield (
            f"{_of(who, n)} slipped on a unit, a prefix or a factor, most often"
            f" “{names.most_common(1)[0][0]}”:"
            " units are worth five minutes."
        )


def _on_notebooks(data):
    """Which of them somebody should look at."""
    if data["look"]:
        yield (
            f"{_of(data['look'], data['students'])} handed in a notebook that you should look at,"
            " such as another's: the reasons are below."
        )
    if data["stopped"]:
        yield (
            f"{_of(data['stopped'], data['graded'])} handed in a notebook that could not be read or"
            " that stopped on the way; the reasons are below."
        )


def _on_marks(data, questions):
    """How the points are spread, and what need not be gone through."""
    n, waiting = data["read"], sum(q[2] for q in data.get("by hand", ()))
    if waiting:
        yield (
            f"{waiting} {'answer' if waiting == 1 else 'answers'} in prose"
            f" {'is' if waiting == 1 else 'are'} not marked yet."
        )
    if questions and data["points"]:
        whose = "of whom all is marked" if waiting else "whose notebooks could be read"
        yield (
            f"Half of those {whose} have"
            f" {number(stdlib.median(data['points']))} of {number(data['out of'])} points or more."
        )
    if questions:
        best = max(questions, key=lambda q: q["share"])
        yield (
            f"There is no need to go through {best['question']}: {best['right']} of {n} have it"
            " right."
        )
    elif not n:
        yield (
            "No submission has been read and graded yet, so nothing can be said about the"
            " questions."
        )


def _on_students(data):
    """Who handed in nothing, and who waits."""
    yield (
        f"{_of(data['missing'], data['students'])} handed in nothing."
        if data["missing"]
        else "Everybody on the roster handed something in."
    )
    if data["waiting"]:
        yield (
            f"{_of(data['waiting'], data['students'])}"
            f" {'waits' if len(data['waiting']) == 1 else 'wait'} to be graded."
        )


def _of(some, n):
    return f"{len(some)} of {n} {'student' if n == 1 else 'students'}"


def times(ratio):
    """Return a ratio in words: "1.7 times", "3 and 0.5 times"."""
    return " and ".join(plain(r, 3) for r in ratio) + " times"
