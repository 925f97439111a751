"""Feedback: one page of HTML for each student, with what was asked, what was read, the diagnosis
and the points.

A page is made from the gradebook alone and can be made again at any time. It tells what `check`
would tell on the student's own machine, and no more: no right answer of a question that is not
solved, and no hidden input. After a regrade the page says what the points were before and which
questions changed, so that no earlier page is lost unsaid.
"""

from __future__ import annotations

import html
import math
from datetime import UTC, datetime
from pathlib import Path

from lightspeed_class.class_folder import write_whole
from lightspeed_class.intake.origins import Origins, told_student
from lightspeed_class.reports.html_page import coded, file_name, ours, page, paragraphs, theirs
from lightspeed_class.reports.results import number, outcomes, short
from lightspeed_course.practice.amounts import amount
from lightspeed_course.practice.questions import question

WORDS = {
    "right": "Right",
    "unanswered": "Not answered",
    "refused": "Not graded",
    "hidden": "Not yet: right on the published inputs only",
    "partial": "Not yet: partly right",
    "close": "Not yet: close",
}
FOUND = {
    "check": "",
    "cell": (
        "It is the value of the variable in the cell of the exercise, as no <code>check</code> of"
        " it ran."
    ),
    "name": (
        "It is the function of that name at the end of the notebook, as no <code>check</code> of it"
        " ran."
    ),
}
STYLE = """
section { border-top: 1px solid var(--line); margin-top: 1.6rem; padding-top: .8rem; } section h2 { margin: 0; }
section header { display: flex; flex-wrap: wrap; gap: .2rem 1rem; align-items: baseline; justify-content: space-between; }
dl { display: grid; grid-template-columns: 7rem minmax(0, 1fr); gap: .5rem 1rem; margin: .6rem 0; } dt { color: var(--soft); } dd { margin: 0; }
dd p, dd ul { margin: 0 0 .4rem; } dd > :last-child { margin-bottom: 0; } dd em { color: var(--soft); }
nav ol { columns: 17rem; column-gap: 2rem; padding-left: 1.8rem; } nav li { break-inside: avoid; } .word { font-weight: 600; } .good .word { color: var(--good); } .bad .word { color: var(--bad); }
@media (max-width: 36rem) { dl { grid-template-columns: minmax(0, 1fr); gap: 0; } dd { margin-bottom: .7rem; } }
"""


def write_feedback(book, name, folder, student=None):
    """Write the pages of an assignment into `folder`, one STUDENT.html each, or only that of one
    student; the paths.

    Who handed nothing in gets a page that says so; who has left gets one if named. Raises KeyError
    for an unknown assignment or student.
    """
    assignment, origins, paths = book.assignment(name), Origins(book, name), []
    chosen = [
        o
        for o in outcomes(book, name)
        if student == o.result.student.id or (student is None and not o.result.student.left)
    ]
    if student is not None and not chosen:
        raise KeyError(student)
    for outcome in chosen:
        submission = outcome.result.submission
        history = book.gradings(submission.id) if submission else []
        text = to_html(
            assignment,
            outcome,
            _seed(book, outcome, origins),
            history[:-1],
            told_student(book, submission, origins) if submission else "",
        )
        paths.append(Path(folder) / file_name(outcome.result.student.id, ".html"))
        write_whole(paths[-1], text.encode())
    return paths


def _seed(book, outcome, origins):
    """What drew the variants that were graded, or will be."""
    result = outcome.result
    record = result.grading.graded.record if result.grading else {}
    content = book.content(result.submission.id) if result.submission else None
    return record["seed"] if "seed" in record else origins.seed(result.student.id, content)


def to_html(assignment, outcome, seed=None, former=(), remark=""):
    """The page of one student; `former` are the gradings before the one that counts, `remark` is of
    the notebook as a whole.

    The same outcome gives the same bytes.
    """
    result = outcome.result
    title = f"Feedback: {assignment.name}"
    head = (
        f"<h1>{html.escape(title)}</h1>\n<p>{theirs(result.student.name or result.student.id)}"
        f" <span class=soft>({theirs(result.student.id)})</span></p>\n"
    )
    judged = result.grading and outcome.status != "refused"
    shown = [
        id for id in assignment.points if (judged and id in result.asked) or id in result.manual
    ]
    parts = [head, _summary(assignment, outcome), _notes(outcome, remark), _history(result, former)]
    if len(shown) > 3:
        parts.append(_contents(assignment, outcome, shown))
    parts += [
        _question(i, id, assignment, result, seed)
        for i, id in enumerate(assignment.points, 1)
        if id in shown
    ]
    parts.append(_foot(result) if judged else "")
    return page(f"{title}, {result.student.name or result.student.id}", "".join(parts), STYLE)


def _summary(assignment, outcome):
    result = outcome.result
    if outcome.status == "missing":
        words = [
            "<strong>Nothing was handed in.</strong> If you did hand in a notebook, tell your"
            " instructor: it has not arrived here."
        ]
    elif outcome.status == "not graded":
        words = ["<strong>Not graded yet.</strong> Your notebook has arrived."]
    else:
        told = (
            "Your notebook could not be read, so no question could be graded."
            if outcome.status == "refused"
            else _tally(result)
        )
        told = (
            "Nothing was handed in; these points were given by hand."
            if outcome.status == "by hand"
            else told
        )
        words = [f"<strong>{_points(result.points, result.out_of)}.</strong> {told}"]
    if outcome.at or outcome.late:
        how = f": <strong>{outcome.late}</strong>" if outcome.late else ""
        words.append(
            f"Handed in on {_date(outcome.at)}{how}."
            if outcome.at
            else f"Handed in <strong>{outcome.late}</strong>."
        )
    if whole := result.manual.get(""):
        words.append(_by_hand(whole, f"{_some(whole.points or 0)} for the assignment as a whole"))
    return '<div class="verdict">' + "".join(f"<p>{w}</p>" for w in words if w) + "</div>\n"


def _tally(result):
    """How many questions are right, not yet right and not answered, by what the grader found."""
    kinds = [s.kind for s in result.scores.values()]
    right, none = kinds.count("right"), kinds.count("unanswered")
    other = len(kinds) - right - none
    if not kinds:
        return ""
    parts = [f"{right} of {len(kinds)} questions {'is' if right == 1 else 'are'} right"]
    parts += [f"{other} not yet"] if other else []
    parts += [f"{none} not answered"] if none else []
    return ", ".join(parts) + "."


def _notes(outcome, remark):
    notes = outcome.result.grading.graded.notes if outcome.result.grading else ()
    if not notes and not remark:
        return ""
    notes = [remark] * bool(remark) + [
        note.replace("OutOfTime.", "OutOfTime: it ran longer than a cell may.") for note in notes
    ]
    return (
        "<h2>About your notebook</h2>\n<ul>"
        + "".join(f"<li>{coded(note)}</li>" for note in notes)
        + "</ul>\n"
    )


def _history(result, former):
    """What earlier gradings of the same notebook said, where it was something else."""
    if not former or former[-1].graded.digest == result.grading.graded.digest:
        return ""
    before = {s.question: s for s in former[-1].graded.scores}
    pairs = [(before[q], s) for q, s in result.scores.items() if q in before]
    moved = [
        f"<li>{short(new.question)}: {_was_and_is(old, new)}</li>"
        for old, new in pairs
        if (old.points, old.out_of) != (new.points, new.out_of)
    ]
    total, now = _sums(before.values()), _sums(result.scores.values())
    words = (
        f"<h2>Graded again</h2>\n<p>On {_date(result.grading.at)} your notebook was graded again;"
        f" this page replaces that of {_date(former[-1].at)}. "
    )
    words += f"The automatic points were {total} and are {now} now.</p>\n"
    if moved:
        return words + f"<ul>{''.join(moved)}</ul>\n"
    return words + (
        "<p>No points changed, only what is said about them.</p>\n" if total == now else ""
    )


def _was_and_is(old, new):
    out_of = (
        (f" of {number(old.out_of)}", f" of {number(new.out_of)}")
        if old.out_of != new.out_of
        else ("", "")
    )
    return f"{number(old.points)}{out_of[0]} before, {number(new.points)}{out_of[1]} now"


def _sums(scores):
    return (
        f"{number(math.fsum(s.points for s in scores))} of"
        f" {number(math.fsum(s.out_of for s in scores))}"
    )


def _contents(assignment, outcome, shown):
    items = []
    for i, id in enumerate(assignment.points, 1):
        if id in shown:
            score = outcome.result.scores.get(id)
            word = _word(score)[0].partition(":")[0].lower() if score else "by hand"
            items.append(
                f'<li value="{i}"><a href="#q{i}">{html.escape(short(id))}</a>: <span'
                f' class="{_look(score)}"><span class=word>{word}</span></span></li>'
            )
    return f'<nav aria-label="Questions"><h2>Questions</h2><ol>{"".join(items)}</ol></nav>\n'


def _question(i, id, assignment, result, seed):
    variant, score, manual = (
        question(id).variant(seed),
        result.scores.get(id),
        result.manual.get(id),
    )
    out_of = result.asked.get(id, assignment.points[id])
    rows = [("Question", ours(variant.prompt))]
    counts = score.points if score else None
    if score:
        word, message = _word(score)
        said = ours(message).replace("<p>", f"<p><span class=word>{word}.</span> ", 1)
        rows += [("Your answer", _given(variant.question, score)), ("Diagnosis", said)]
    if manual:
        rows += [("Automatic", f"{_points(score.points, score.out_of)}.")] if score else []
        counts = counts if manual.points is None else manual.points
        rows += [
            (
                "By hand",
                _by_hand(
                    manual,
                    _points(counts or 0, out_of)
                    + ", which count in place of the automatic ones" * bool(score),
                ),
            )
        ]
    cells = "".join(f"<dt>{name}</dt><dd>{text}</dd>" for name, text in rows if text)
    earned = _points(counts, out_of) if counts is not None else ""
    heading = (
        f"<h2>{i}. {html.escape(short(id))}</h2><span><code class=soft>{html.escape(id)}</code>"
        f" &ensp;{earned}</span>"
    )
    return (
        f'<section id="q{i}"><header>{heading}</header><dl'
        f' class="{_look(score)}">{cells}</dl></section>\n'
    )


def _word(score):
    """What became of the answer in a word or two, and the message without these."""
    word, colon, rest = score.message.partition(": ")
    if score.kind == "unanswered" and colon and word in ("Not answered", "Not reached"):
        return word, rest[:1].upper() + rest[1:]
    return WORDS.get(score.kind, "Not yet"), score.message


def _look(score):
    return (
        ""
        if not score or score.kind in ("unanswered", "refused")
        else "good"
        if score.kind == "right"
        else "bad"
    )


def _given(q, score):
    """What the grader read as the answer, in words."""
    if score.kind in ("unanswered", "refused"):
        missing = "It was not run." if _word(score)[0] == "Not reached" else "None was found."
        return missing if score.kind == "unanswered" else ""
    if score.kind in ("type", "dimension") and score.given:  # in words: no number could be read
        read = f"{theirs(score.given[:1].upper() + score.given[1:])}."
    elif q.kind == "function":
        read = "A function."
    elif not score.given:
        read = "Something that cannot be read as what is asked."
    elif q.kind == "choice":
        read = f"<code>{theirs(score.given)}</code>"
    else:
        values = [amount(float(v), q.unit, 6) for v in score.given.split()]
        named = [f"{n}: {v}" for n, v in zip(q.names, values, strict=False)] if q.names else values
        read = html.escape(", ".join(named))
    return f"{read} {FOUND.get(score.found, '')}".strip()


def _by_hand(manual, points):
    """Points and words by a person, as markup; `points` says what became of the points."""
    words = points if manual.points is not None else "Comment"
    words += f", by {theirs(manual.by)}" if manual.by else ""
    return f"{words}: {paragraphs(manual.comment)}" if manual.comment.strip() else f"{words}."


def _points(points, out_of):
    return f"{number(points)} of {_some(out_of)}"


def _some(points):
    return f"{number(points)} {'point' if points == 1 else 'points'}"


def _date(seconds):
    when = datetime.fromtimestamp(seconds, UTC)
    return f"{when.day} {when:%B %Y, %H:%M} UTC"


def _foot(result):
    """What was graded, so that a student can see that it is the right file."""
    record = result.grading.graded.record
    held = " in a sandbox" if record["isolation"].startswith("bubblewrap") else ""
    ran = (
        f"Your notebook ran{held}. Its SHA-256 begins with"
        f" <code>{record['submission'][:12]}</code>. "
    )
    return (
        f"<footer><p class=soft>{ran}If you think that an answer was misjudged, write to your"
        " instructor and name the question.</p></footer>\n"
    )
