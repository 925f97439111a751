"""What Canvas has: the students of a course, what they handed in, and when it was due for whom.

Each attempt of a submission is taken in as a file of the name that Canvas's own download would give
it, with the time at which it was handed in; collect.py does the rest. Due times are read, and
nothing that was decided here is replaced by them.
"""

import csv
import io
from dataclasses import dataclass
from datetime import datetime

from lightspeed_class.class_folder import ClassError, write_whole
from lightspeed_class.intake.collect import take_in
from lightspeed_class.intake.match_submissions import squash
from lightspeed_class.intake.unpack import Item, clean
from lightspeed_class.lateness import CANVAS, FROM_CANVAS, canvas_name

BY = "Canvas"
HEADINGS = ("Student", "ID", "SIS User ID", "SIS Login ID", "Integration ID", "Email", "Section")
FIELDS = ("sortable_name", "id", "sis_user_id", "login_id", "integration_id", "email")


@dataclass(frozen=True)
class Pulled:
    """What a pull did: the collection, lines on dates and no files, how many were there already."""

    collected: object
    told: tuple
    known: int


def write_roster(canvas, path):
    """Write the active and invited students of the course as Canvas's own export has them."""
    course = f"/api/v1/courses/{canvas.course}"
    sections = {s["id"]: s.get("name", "") for s in canvas.pages(f"{course}/sections")}
    rows = {}
    for user in canvas.pages(
        f"{course}/users",
        **{
            "enrollment_type[]": "student",
            "enrollment_state[]": ["active", "invited"],
            "include[]": ["email", "enrollments"],
        },
    ):
        theirs = [
            sections.get(e.get("course_section_id"), "")
            for e in user.get("enrollments") or ()
            if e.get("type") == "StudentEnrollment"
            and e.get("enrollment_state") in ("active", "invited")
        ]
        cells = [user.get(field) for field in FIELDS]
        joined = " and ".join(sorted(filter(None, set(theirs))))
        rows[user["id"]] = ["" if c is None else str(c) for c in cells] + [joined]
    if not rows:
        raise ClassError(f"course {canvas.course} on {canvas.home} has no active students")
    text = io.StringIO(newline="")
    csv.writer(text).writerows([HEADINGS, *rows.values()])
    write_whole(path, text.getvalue().encode())


def pull(canvas, course, book, name):
    """Take in what was handed in for an assignment since the last time, and when it was due. Raises
    ClassError; then the same again goes on.
    """
    path = canvas.assignment(name)
    told = [*_due(canvas, book, name, path)]
    known = {}  # number of a file on Canvas -> the submissions that it is here
    for submission in book.submissions(name):
        if match := CANVAS.fullmatch(canvas_name(submission.source)):
            known.setdefault(match["file"], []).append(submission)
    found, left, there = {}, [], 0
    for row in canvas.pages(f"{path}/submissions", **{"include[]": ["submission_history", "user"]}):
        who = _who(row)
        if row.get("user_id") is None:
            left.append(f"{who}: Canvas does not say whose it is while marking is anonymous.")
            continue
        if row.get("excused"):
            told.append(f"{who} is excused on Canvas: lightspeed class excuse {name} STUDENT")
        for attempt in row.get("submission_history") or [row]:
            files, kind = attempt.get("attachments") or [], attempt.get("submission_type")
            if kind and not files:
                left.append(f"{who}: Handed in as {kind.replace('_', ' ')}, not as a file.")
            for file in files:
                if str(file["id"]) in known:
                    there += 1
                    _time(book, known[str(file["id"])], seconds(attempt.get("submitted_at")))
                elif file["id"] not in found:  # a version that was only graded has it again
                    found[file["id"]] = _item(canvas, row, attempt, file)
    done = take_in(course, book, name, found.values(), list(dict.fromkeys(left)))
    return Pulled(done, tuple(told), there)


def _item(canvas, row, attempt, file):
    """A file as Canvas's download names it; the rest of the name is the student's choice."""
    title = clean(str(file.get("display_name") or file.get("filename"))).replace("/", "~")
    path = f"{squash(_name(row)) or 'student'}_{row['user_id']}_{file['id']}_{title or 'file'}"
    at = seconds(attempt.get("submitted_at")) or seconds(file.get("created_at")) or 0.0
    return Item(BY, path, at, lambda: canvas.download(file["url"]), FROM_CANVAS)


def _time(book, submissions, at):
    """Keep when these were handed in, where only Canvas's archive had told of them."""
    for submission in submissions:
        if at is not None and not submission.source.endswith(FROM_CANVAS):
            book.set_time(submission.id, at, submission.source + FROM_CANVAS)


def _due(canvas, book, name, path):
    """Keep when it is due, for all and for some, where nobody decided here; what is to be said."""
    about = canvas.get(path, override_assignment_dates="false")
    due, (ours, _), extended = seconds(about.get("due_at")), book.due(name), {}
    students = {s.details.get("canvas_id"): s.id for s in book.students()}
    for override in canvas.pages(f"{path}/overrides"):
        if "due_at" not in override:
            continue
        title, until = override.get("title") or override.get("id"), seconds(override["due_at"])
        if until is None or override.get("group_id"):
            what = "has no due time" if until is None else "is for a group"
            yield f"not read: what Canvas has for {title} {what}"
            continue
        for user in override.get("student_ids") or _of_section(canvas, override):
            if id := students.get(str(user)):  # the latest of several counts on Canvas
                extended[id] = max(until, extended.get(id, until))
    if due is None and extended and about.get("only_visible_to_overrides"):
        due = min(extended.values())  # nobody has it without such a time
    if due is not None and ours is None:
        book.setting(f"due {name}", repr(due))
        yield f"due {_date(due)}, as on Canvas"
    elif due is not None and due != ours:
        yield (
            f"Canvas has it due {_date(due)}; here it stays {_date(ours)}: lightspeed class release"
            f" {name} --due WHEN"
        )
    yield from _extend(book, name, extended)


def _extend(book, name, extended):
    """Give more time to those who have it on Canvas; what there is to say."""
    (base, _), standing = book.due(name), book.standing("extended", name)
    last = {d.student: d for d in book.decisions("extended", name)}
    for id, until in sorted(extended.items()):
        had = float(standing[id]) if id in standing else None
        if base is None or until < base:
            for_all = "is due at no time" if base is None else f"is due {_date(base)}"
            yield f"{id}: Canvas has it due {_date(until)}; here it {for_all} for all"
        elif until in (base, had):
            continue
        elif id in last and last[id].by != BY:
            here = _date(had) if had else "no extension"
            yield f"{id}: Canvas gives until {_date(until)}; here somebody decided: {here}"
        else:
            book.decide("extended", id, name, repr(until), "as on Canvas", BY)
            yield f"{id}: more time, until {_date(until)}, as on Canvas"
    for id in sorted(standing.keys() - extended.keys()):
        if last[id].by == BY:
            yield f"{id}: Canvas gives no more time now: lightspeed class extend {name} {id} --undo"


def _of_section(canvas, override):
    number = override.get("course_section_id")
    path = f"/api/v1/courses/{canvas.course}/sections/{number}"
    found = canvas.get(path, **{"include[]": "students"}) if number else {}
    return [student["id"] for student in found.get("students") or ()]


def _name(row):
    return (row.get("user") or {}).get("sortable_name") or ""


def _who(row):
    return _name(row) or f"user {row.get('user_id') or row.get('anonymous_id')}"


def seconds(text):
    """A time of Canvas's, in seconds since 1970; None where there is none. Raises ClassError."""
    try:
        return datetime.fromisoformat(text).timestamp() if text else None
    except ValueError:
        raise ClassError(f"Canvas gives {text!a} for a time; expected one of ISO 8601") from None


def _date(at):
    return f"{datetime.fromtimestamp(at).astimezone():%Y-%m-%d %H:%M %Z}"
