"""Scores as CSV: a plain table for people, and the forms that Canvas and Moodle import.

Canvas, Gradebook > Import (read from lib/gradebook_importer.rb and lib/gradebook_exporter.rb of
instructure/canvas-lms): the first columns are Student, ID, SIS User ID, SIS Login ID, Section; each
further one is an assignment, headed "Name (id)" as Canvas itself exports it; the row "Points
Possible" comes first. A student is found by ID, else by SIS User ID, else by SIS Login ID, else by
name, the first who has it: so who has none of the three is left out, and namesakes get their id
behind the name. A heading without a known id is matched by the assignment's name; if there is none,
Canvas asks. An empty cell means no score; where Canvas has one already, it offers to clear it.
"EX" excuses a student from the assignment.

Moodle, Grades > Import > CSV file (docs.moodle.org, "Grade import";
grade/import/csv/classes/load_data.php of moodle/moodle): any headings; the instructor maps one
column to a field that identifies the student, and grade and feedback to the item. "-" is no grade,
for the excused too, whom it has no sign for.
Feedback must be mapped together with the grade, or the grades are lost. One row whose student is
not found stops the whole import, and one without an identifier would be given to the student of the
row above: so who has none of their own is left out. Who is left out is named on stderr.

A cell that a spreadsheet would take for a formula (it begins with = + - @, a tab or a line end)
gets an apostrophe before it, as OWASP advises ("CSV Injection"). Identifiers that merely begin with
+ - @, such as telephone numbers, stay as they are, or they would identify nobody; without a
bracket, a quote or an operator they cannot call anything.
"""

import csv
import io
import re
import sys
from collections import Counter
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from lightspeed_class.class_folder import write_whole
from lightspeed_class.listed import listed
from lightspeed_class.reports.results import outcomes, outdated, to_mark
from lightspeed_class.score import BY_HAND, number

KINDS = ("plain", "canvas", "moodle")
PLAIN = (
    "id,name,email,section,assignment,status,late,points,out of,added,comments,late days used,"
    "points off,extended to"
)
FORMULA = re.compile(r"\s*[=+\-@＝＋－＠\t\r\n]")
HARMLESS = re.compile(r"[+\-@]?[\w.@]*")
CANVAS = {
    "ID": "canvas_id",
    "SIS User ID": "sis_user_id",
    "SIS Login ID": "sis_login_id",
    "Section": "section",
}
MOODLE = {"Email address": "email", "ID number": "moodle_idnumber", "Username": "username"}
NEEDED = {"Email address": "an email", "ID number": "an ID number", "Username": "a username"}


class Incomplete(ValueError):
    """The whole roster lacks a field of the form; the message says which and what to do."""


class Outdated(Incomplete):
    """Some work was graded under other points; the message names the assignment and what to do."""


class Unmarked(Incomplete):
    """Some prose is still unmarked; the message says whose, and what to do."""


def export_csv(
    book, names, path, kind="plain", missing_as_zero=False, titles=None, leave_unmarked=False,
    section="", practised=None,
):  # fmt: skip
    """Write the scores of assignments, of all or of a section, to `path`, as `kind`: plain, canvas
    or moodle.

    A cell is empty where nothing was handed in or nothing is graded yet; `missing_as_zero` writes 0
    for the former. `leave_unmarked`: it is empty, too, for who has prose that nobody marked yet
    (the plain form says so); without it, that raises Unmarked. `titles`: assignment -> its heading
    in Canvas or Moodle, such as {"02_roofline": "Roofline (1234)"}. `practised`: the points for
    having answered all questions, right or wrong, in place of those that were earned. Whom the
    platform could not find, or take for another, is left out and named on stderr. Those who have
    left are only in the plain form, if they handed something in. Raises KeyError for an unknown
    assignment, Incomplete where nobody could be found, Outdated where a platform would get points
    of earlier settings with the maximum of now.
    """
    if kind not in KINDS:
        raise ValueError(f"export: kind = {kind!r}: expected one of {', '.join(KINDS)}")
    if kind != "plain":
        refuse_outdated(book, names, "export")
    here = {name: [o for o in outcomes(book, name, section) if _is_told(o, kind)] for name in names}
    table = {name: {o.result.student.id: o for o in rows} for name, rows in here.items()}
    if not (leave_unmarked or practised):
        for name, rows in here.items():
            refuse_unmarked(name, rows, "export with --leave-unmarked, and their cells stay empty")
    make = {"plain": _plain, "canvas": _canvas, "moodle": _moodle}[kind]
    text = io.StringIO(newline="")
    csv.writer(text).writerows(make(book, table, titles or {}, Count(missing_as_zero, practised)))
    # Excel takes a file for UTF-8 only if it says so; the plain form is the one that people open.
    path = Path(path)
    write_whole(path, text.getvalue().encode("utf-8-sig" if kind == "plain" else "utf-8"))
    return path


def refuse_outdated(book, names, then):
    """Raise Outdated if any points come from earlier settings; `then`: what to do next."""
    if stale := list(outdated(book, *names)):
        raise Outdated("\n".join(f"{line}, then {then}" for line in stale))


def refuse_unmarked(name, outcomes, otherwise):
    """Raise Unmarked if some prose of an outcome is still unmarked."""
    waiting = [o.result.student for o in outcomes if o.result.unmarked]
    if waiting := [student.id for student in waiting if not student.left]:
        raise Unmarked(
            f"{name}: prose of {listed(waiting, 5)} is not marked yet: lightspeed class desk"
            f" {name}; or {otherwise}"
        )


def _is_told(outcome, kind):
    """Whether somebody is in a form: of those who have left, the plain one keeps what there is."""
    return not outcome.result.student.left or (kind == "plain" and outcome.status != "missing")


def _plain(book, table, titles, count):
    """One row for each student and assignment."""
    questions = list(dict.fromkeys(q for name in table for q in book.assignment(name).points))
    yield [*PLAIN.split(","), *questions]
    for name, rows in table.items():
        points = book.assignment(name).points
        for id, outcome in rows.items():
            student, whole = outcome.result.student, outcome.result.manual.get("")
            each = [_points(outcome.points(q)) if q in points else "" for q in questions]
            details = [cell(student.details.get(key, "")) for key in ("email", "section")]
            extra = _points(whole.points if whole else None)
            comment = " ".join(words for words in _comments(outcome))
            waits = ", not marked yet" * bool(outcome.result.unmarked)
            status = outcome.status + waits + " (left)" * student.left
            total, out_of = count.total(outcome), count.out_of(outcome.result.out_of)
            yield [
                *(identifier(id), cell(student.name), *details),
                *(name, status, outcome.late, total, out_of, extra, cell(comment)),
                *(*_policies(outcome.result), *each),
            ]


def _canvas(book, table, titles, count):
    students = _those(book, table)
    shared = {key: _shared(students, key) for key in ("canvas_id", "sis_user_id", "sis_login_id")}
    present = [s for s in students if any(_own(s, key, shared[key]) for key in shared)]
    _leave_out(
        students, present, "an ID, SIS User ID or SIS Login ID", "Canvas (Gradebook > Export)"
    )
    names = Counter(s.name for s in students)
    yield ["Student", *CANVAS, *(cell(titles.get(name, name)) for name in table)]
    yield [
        "    Points Possible",
        *[""] * len(CANVAS),
        *(count.out_of(_out_of(book, name)) for name in table),
    ]
    for student in present:
        name = student.name if names[student.name] == 1 else f"{student.name} ({student.id})"
        identifiers = [
            identifier(_own(student, key, shared.get(key, ()))) for key in CANVAS.values()
        ]
        yield [
            cell(name or student.id),
            *identifiers,
            *_totals(table, student, count, "", "EX"),
        ]


def _moodle(book, table, titles, count):
    students = _those(book, table)
    able = {
        heading: [s for s in students if _own(s, key, _shared(students, key))]
        for heading, key in MOODLE.items()
    }
    heading = max(able, key=lambda heading: len(able[heading]))
    column = able[heading]
    _leave_out(students, column, NEEDED[heading], "Moodle (Grades > Export > Plain text file)")
    labels = [cell(titles.get(name, name)) for name in table]
    yield [heading, "Full name", *(h for title in labels for h in (title, f"{title} (feedback)"))]
    for student in column:
        cells = [identifier(student.details[MOODLE[heading]]), cell(student.name)]
        totals = _totals(table, student, count, "-", "-")
        for total, rows in zip(totals, table.values(), strict=True):
            outcome = rows.get(student.id)
            cells += [
                total,
                cell(" ".join((*_words(outcome), *_comments(outcome))) if outcome else ""),
            ]
        yield cells


def _those(book, table):
    """The students of whom any of the assignments tells."""
    return [s for s in book.students() if any(s.id in rows for rows in table.values())]


def _shared(students, key):
    """The values of a detail, in lower case, that more than one student has."""
    counts = Counter(s.details.get(key, "").casefold() for s in students)
    return {value for value, count in counts.items() if count > 1}


def _own(student, key, shared):
    """The student's detail if nobody else has it, else ""."""
    value = student.details.get(key, "")
    return "" if value.casefold() in shared else value


def _leave_out(students, receivers, what, platform):
    """Name those who are not among the found. Raises Incomplete if nobody is."""
    without = [f"{s.name or s.id} ({s.id})" for s in students if s not in receivers]
    advice = f"To add it, read in what {platform} writes: lightspeed class roster FILE"
    if students and not receivers:
        raise Incomplete(
            f"no student has {what} of their own, so {platform.partition(' ')[0]} could match"
            f" nobody's points. {advice}"
        )
    if without:
        print(
            f"LEFT OUT, without {what} of their own: {', '.join(without)}. {advice}",
            file=sys.stderr,
        )


def cell(text):
    """Return a text as a cell: one line, and never a formula."""
    line = re.sub(r"\s*[\r\n]+\s*", " ", str(text)).replace("\0", "").strip("\r\n")
    return f"'{line}" if FORMULA.match(line) else line


def identifier(text):
    """Return an identifier as a cell: unchanged, unless it could be a harmful formula."""
    return str(text) if HARMLESS.fullmatch(str(text)) else cell(text)


@dataclass(frozen=True)
class Count:
    """How a total is counted: earned points, or `practised` points for having answered, and a 0 or
    an empty cell for a missing submission.
    """

    missing_as_zero: bool
    practised: float | None

    def total(self, outcome):
        result = outcome.result
        if self.missing_as_zero and outcome.status == "missing":
            return "0"
        if self.practised and result.grading:
            answers = [s.kind not in ("unanswered", "refused") for s in result.scores.values()]
            return number(round(self.practised * sum(answers) / len(answers), 2))
        return "" if result.unmarked or self.practised else _points(result.points)

    def out_of(self, points):
        return number(self.practised or points)


def _totals(table, student, count, nothing, excused):
    outcomes = [rows.get(student.id) for rows in table.values()]
    return [
        excused
        if outcome and outcome.status == "excused"
        else (count.total(outcome) if outcome else "") or nothing
        for outcome in outcomes
    ]


def _policies(result):
    """Late days used, points taken off, and until when there was time, as cells."""
    until = result.extended
    return (
        str(result.lateness.spent or ""),
        number(result.off) if result.off else "",
        f"{datetime.fromtimestamp(until, UTC):%Y-%m-%d %H:%M} UTC" if until else "",
    )


def _points(value):
    return "" if value is None else number(value)


def _out_of(book, name):
    return sum(book.assignment(name).points.values())


def _words(outcome):
    """The diagnosis of each question that is not right, for a field of feedback."""
    scores = [s for s in outcome.result.scores.values() if s.kind != BY_HAND]
    if outcome.status == "excused":
        yield "Excused."
        return
    if outcome.status == "missing" or not outcome.result.scores:
        return
    if scores:
        yield f"{sum(s.kind == 'right' for s in scores)} of {len(scores)} right."
    if waiting := to_mark(outcome.result.unmarked):
        yield f"{waiting}."
    if outcome.late:
        yield f"{', '.join(filter(None, (outcome.late.capitalize(), outcome.cost)))}."
    yield from outcome.result.grading.graded.notes
    for score in scores:
        if score.kind not in ("right", "unanswered", "refused"):
            yield f"[{score.question}] {score.message}"


def _comments(outcome):
    for question, manual in outcome.result.manual.items():
        if manual.comment.strip():
            by = f" ({manual.by})" if manual.by else ""
            yield f"[{question}] {manual.comment}{by}" if question else f"{manual.comment}{by}"
