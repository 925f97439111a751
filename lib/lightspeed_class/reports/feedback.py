"""Feedback: one page of HTML for each student, with what was asked, what was read, the diagnosis
and the points.

A page is made from the gradebook alone and can be made again at any time. It tells what `check`
would tell on the student's own machine, and no more: no right answer of a question that is not
solved, and no hidden input. After a regrade the page says what the points were before and which
questions changed, so that no earlier page is lost unsaid.
"""

import math
import re
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import quote

from markupsafe import Markup

from lightspeed_class.class_folder import write_whole
from lightspeed_class.intake.origins import Origins, told_student
from lightspeed_class.kept_questions import KeptQuestions
from lightspeed_class.notebooks import Refused, all_cells, code_of, homes, sources
from lightspeed_class.posed import posed
from lightspeed_class.prose import answer
from lightspeed_class.reports.results import outcomes, to_mark
from lightspeed_class.score import BY_HAND, number, short
from lightspeed_course.practice.amounts import amount
from lightspeed_course.practice.questions import INCIDENT
from lightspeed_show.html import coded, ours, page, theirs

WORDS = {
    "right": "Right",
    "unanswered": "Not answered",
    "refused": "Not graded",
    "hidden": "Not yet: right on the published inputs only",
    "library": "Not yet: the library's own law",
    "partial": "Not yet: partly right",
    "close": "Not yet: close",
    "cause": "Not yet: another cause",
    "fix": "Partly right: another fix",
    BY_HAND: "Not marked yet",
}
TOLD = {
    "refused": "Your notebook could not be read, so no question could be graded.",
    "excused": "You are excused from this assignment: it does not count for you.",
    "by hand": "Nothing was handed in; these points were given by hand.",
}
STOPPED = re.compile(r"Code cell (\d+) stopped with (\w+)(.*)")
FOUND = {
    "check": "",
    "cell": "It is the value of the variable in the cell of the exercise, as no `check` of it ran.",
    "name": "It is the function of that name at the end of the notebook, as no `check` of it ran.",
}


def open_until(book, name):
    """Return (latest due time, its student or "" for all), or None: solutions wait for it."""
    dues = [(*book.due(name, s.id), s.id) for s in book.students() if not s.left]
    times = [(due, id if own else "") for due, own, id in dues if due is not None]
    return max(times, default=None)


def write_feedback(book, name, folder, student=None, solutions=False):
    """Write an assignment's pages into `folder` as STUDENT.html, for all or for one student, and
    return the paths. `solutions`: add worked solutions with the student's own numbers.

    Students without a submission get a page that says so; those who left get one only if named.
    Raises KeyError for an unknown assignment or student.
    """
    archive, origins, paths = KeptQuestions(book, name), Origins(book, name), []
    everybody = outcomes(book, name)
    selection = [
        o
        for o in everybody
        if student == o.result.student.id or (student is None and not o.result.student.left)
    ]
    if student is not None and not selection:
        raise KeyError(student)
    for outcome in selection:
        submission = outcome.result.submission
        history = book.gradings(submission.id) if submission else []
        seed = seed_of(book, outcome, origins)
        text = to_html(
            archive.assignment(submission),
            outcome,
            seed,
            history[:-1],
            told_student(book, submission, origins) if submission else "",
            book.content(submission.id) if submission else None,
            book.secret,
            _together(everybody, submission) if submission else (),
            archive.asked(submission, seed),
            solutions,
        )
        paths.append(Path(folder) / file_name(outcome.result.student.id, ".html"))
        write_whole(paths[-1], text.encode())
    return paths


def _together(everybody, submission):
    """The names of those for whom a submission counts, first who handed it in; none of one."""
    members = [r.student for r in (o.result for o in everybody) if r.submission == submission]
    members.sort(key=lambda student: student.id != submission.student)
    return [student.name or student.id for student in members] if len(members) > 1 else []


def seed_of(book, outcome, origins):
    """Return the seed that drew the graded variants, or will draw them."""
    result = outcome.result
    record = result.grading.graded.record if result.grading else {}
    content = book.content(result.submission.id) if result.submission else None
    whose = result.submission.student if result.submission else result.student.id
    return record["seed"] if "seed" in record else origins.seed(whose, content)


def to_html(
    assignment, outcome, seed=None, former=(), remark="", content=None, secret="", together=(),
    variants=None, solutions=False,
):  # fmt: skip
    """Render a student's page; `former` are earlier gradings, `remark` is about the notebook, whose
    bytes are `content`; `together` names its students. `variants` (KeptQuestions.asked) are drawn
    from the seed if not given.

    The same outcome gives the same bytes.
    """
    result, status = outcome.result, outcome.status
    has_grading = result.grading and result.grading.graded.status != "refused"
    whole, cells = result.manual.get(""), cells_of(content)
    why = stops(assignment, result, cells) if has_grading else {}
    variants = variants or {id: posed(id, seed, secret, assignment) for id in assignment.points}
    return page(
        "feedback",
        title=f"Feedback: {assignment.name}",
        name=result.student.name or result.student.id,
        id=result.student.id,
        status=status,
        points=""
        if result.points is None
        else _points(result.points, result.out_of) + " so far" * bool(result.unmarked)
        if status in TOLD or has_grading
        else "",
        told=TOLD.get(status) or _tally(result),
        at=_date(outcome.at) if outcome.at else "",
        late=", ".join(filter(None, (outcome.late, outcome.cost))),
        together=together,
        until=_date(result.extended) if result.extended else "",
        whole=whole,
        whole_points=f"{_some(whole.points or 0)} for the assignment as a whole" if whole else "",
        notes=_notes(result, remark),
        again=_again(result, former),
        questions=[
            told_question(i, assignment, result, variants[id], why.get(id, ""))
            | _theirs(cells, assignment, id)
            | {"solution": getattr(variants[id], "solution", "") if solutions else ""}
            for i, id in enumerate(assignment.points, 1)
            if (has_grading and id in result.asked) or id in result.manual
        ],
        ran=_ran(result) if has_grading else "",
    )


def _theirs(cells, assignment, id):
    """What stands in the notebook for a question: code, or prose."""
    prose = assignment.prose.get(id)
    if not prose:
        return {"code": sources(cells, assignment, id), "prose": False}
    texts = answer(cells, prose)
    return {"code": texts, "prose": True} | ({} if texts else {"given": "Nothing was written."})


def cells_of(content):
    """Return the submitted cells; empty if it is not a notebook."""
    try:
        return all_cells(content) if content is not None else []
    except Refused:
        return []


def _tally(result):
    """How many questions are right, not yet right and not answered, by what the grader found."""
    kinds = [s.kind for s in result.scores.values() if s.kind != BY_HAND]
    right, none = kinds.count("right"), kinds.count("unanswered")
    other = len(kinds) - right - none
    waiting = to_mark(result.unmarked)
    if not kinds:
        return f"{waiting}." * bool(waiting)
    parts = [f"{right} of {len(kinds)} questions {'is' if right == 1 else 'are'} right"]
    parts += [f"{other} not yet"] if other else []
    parts += [f"{none} not answered"] if none else []
    parts += [waiting] if waiting else []
    return ", ".join(parts) + "."


def _notes(result, remark):
    return [remark] * bool(remark) + [
        note.replace("OutOfTime.", "OutOfTime: it ran longer than a cell may.")
        for note in told_notes(result)
    ]


def told_notes(result):
    """Return the notes on a run; cells that stopped for the same reason share one note."""
    notes = {}
    for note in result.grading.graded.notes if result.grading else ():
        cell = STOPPED.fullmatch(note)
        what = cell[2] + cell[3] if cell else note
        notes.setdefault(what, []).extend([int(cell[1])] if cell else ())
    return [
        f"Code cell{_runs(cells)} stopped with {what}" if cells else what
        for what, cells in notes.items()
    ]


def _runs(cells):
    """Their numbers in words, those next to each other as one."""
    starts = [n for n in cells if n - 1 not in cells]
    ends = [n for n in cells if n + 1 not in cells]
    runs = [f"{a} to {b}" if b > a else f"{a}" for a, b in zip(starts, ends, strict=True)]
    *first, last = runs
    return "s" * (len(cells) > 1) + " " + (f"{', '.join(first)} and {last}" if first else last)


def stops(assignment, result, cells):
    """Return question -> why its cell gave no answer: in full once, then by reference."""
    grading, first_place, reasons = result.grading and result.grading.graded, {}, {}
    notes = grading.notes if grading else ()
    code = code_of(cells)
    errors = {int(m[1]): (m[2], m[3]) for m in map(STOPPED.fullmatch, notes) if m}
    for i, id in enumerate(assignment.points, 1):
        score = result.scores.get(id)
        word = _word(score)[0] if score else ""
        if word == "Not reached" and grading.status != "ok" and notes:
            see = f"The program had ended by then: see question {first_place.get(word)}."
            reasons[id] = see if word in first_place else notes[-1]
            first_place.setdefault(word, i)
        at = [n + 1 for n in homes(id, assignment, code) if n + 1 in errors]
        if word == "Not answered" and at:
            cell, first = at[-1], min(errors)
            before = f" Code cell {first} had stopped before, with {errors[first][0]}."
            whole = f"Code cell {cell}, which asks it, stopped with {''.join(errors[cell])}"
            name = errors[cell][0]
            see = f"Code cell {cell} stopped with {name}: see question {first_place.get(word)}."
            reasons[id] = see if word in first_place else whole + before * (first < cell)
            first_place.setdefault(word, i)
    return reasons


def _again(result, former):
    """What earlier gradings of the same notebook said, where it was something else."""
    if not former or former[-1].graded.digest == result.grading.graded.digest:
        return None
    before = {s.question: s for s in former[-1].graded.scores}
    pairs = [(before[q], s) for q, s in result.scores.items() if q in before]
    return {
        "at": _date(result.grading.at),
        "before": _date(former[-1].at),
        "total": _sums(before.values()),
        "now": _sums(result.scores.values()),
        "moved": [
            f"{short(new.question)}: {_was_and_is(old, new)}"
            for old, new in pairs
            if (old.points, old.out_of) != (new.points, new.out_of)
        ],
    }


def _was_and_is(old, new):
    out_of = (
        (f" of {number(old.out_of)}", f" of {number(new.out_of)}")
        if old.out_of != new.out_of
        else ("", "")
    )
    return f"{number(old.points)}{out_of[0]} before, {number(new.points)}{out_of[1]} now"


def _sums(scores):
    scores = [s for s in scores if s.kind != BY_HAND]
    return (
        f"{number(math.fsum(s.points for s in scores))} of"
        f" {number(math.fsum(s.out_of for s in scores))}"
    )


def told_question(i, assignment, result, variant, why=""):
    """Return the text on a question for page and desk; `why`: replaces it if there is no answer."""
    id = variant.question.id
    score, manual = result.scores.get(id), result.manual.get(id)
    out_of = result.asked.get(id, assignment.points[id])
    word, message = _word(score) if score else ("", "")
    message = why or message
    by_hand, prose = manual and manual.points is not None, score and score.kind == BY_HAND
    counts = manual.points if by_hand else None if prose else score and score.points
    beside = ", which count in place of the automatic ones" if score and not prose else ""
    if prose:
        word, message = ("Marked", "") if by_hand else (word, "People read and mark this question.")
    return {
        "number": i,
        "id": id,
        "short": short(id),
        "look": _look(score),
        "word": word,
        "earned": "" if counts is None else _points(counts, out_of),
        "prompt": variant.prompt,
        "given": _given(variant.question, score) if score else "",
        "said": ours(message).replace(
            "<p>", Markup("<p><span class=word>{}.</span> ").format(word), 1
        ),
        "automatic": _points(score.points, score.out_of) if score and not prose else "",
        "manual": manual,
        "by_hand": _points(counts or 0, out_of) + beside,
    }


def _word(score):
    """What became of the answer in a word or two, and the message without these."""
    word, colon, rest = score.message.partition(": ")
    if score.kind == "unanswered" and colon and word in ("Not answered", "Not reached"):
        return word, rest[:1].upper() + rest[1:]
    return WORDS.get(score.kind, "Not yet"), score.message


def _look(score):
    return (
        ""
        if not score or score.kind in ("unanswered", "refused", BY_HAND)
        else "good"
        if score.kind == "right"
        else "bad"
    )


def _given(q, score):
    """What the grader read as the answer, in words."""
    if score.kind in ("unanswered", "refused", BY_HAND):
        missing = "It was not run." if _word(score)[0] == "Not reached" else "None was found."
        return missing if score.kind == "unanswered" else ""
    if score.kind in ("type", "dimension") and score.given:  # in words: no number could be read
        answer = theirs(f"{score.given[:1].upper() + score.given[1:]}.")
    elif q.kind == "function":
        answer = "A function."
    elif not score.given:
        answer = "Something that cannot be read as what is asked."
    elif q.kind == INCIDENT:
        answer = theirs(f"{score.given[:1].upper()}{score.given[1:]}.")
    elif q.kind == "choice":
        answer = Markup("<code>{}</code>").format(theirs(score.given))
    else:
        values = [amount(float(v), q.unit, 6) for v in score.given.split()]
        parts = [f"{n}: {v}" for n, v in zip(q.names, values, strict=False)] if q.names else values
        answer = ", ".join(parts)
    where = FOUND.get(score.found)
    return Markup("{} {}").format(answer, coded(where)) if where else answer


def _points(points, out_of):
    return f"{number(points)} of {_some(out_of)}"


def _some(points):
    return f"{number(points)} {'point' if points == 1 else 'points'}"


def _date(seconds):
    when = datetime.fromtimestamp(seconds, UTC)
    return f"{when.day} {when:%B %Y, %H:%M} UTC"


def _ran(result):
    """What was graded, so that a student can see that it is the right file."""
    record = result.grading.graded.record
    place = " in a sandbox" if record["isolation"] not in ("not isolated", "not run") else ""
    return f"Your notebook ran{place}. Its SHA-256 begins with `{record['submission'][:12]}`."


def file_name(id, suffix):
    """Return a safe name for a student's file; different ids give different names."""
    return "".join(c if c.isalnum() or c in "-_.@" else quote(c, safe="") for c in id) + suffix
