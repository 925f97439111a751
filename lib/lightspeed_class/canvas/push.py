"""What Canvas gets: points, and each student's feedback page as the file of a comment.

Nothing is sent twice, and nobody's entry is written over. What is about to be sent is kept in the
gradebook first, and again once it has arrived; a page carries a part of its own hash in its name,
so that a comment that arrived although no answer came is known again. Points that stand on Canvas
and were not sent from here are somebody's: they are told, and stay.
"""

import contextlib
import fcntl
import hashlib
import math
from dataclasses import dataclass

from lightspeed_class.canvas.client import AGAIN, Unsure
from lightspeed_class.canvas.pull import seconds
from lightspeed_class.class_folder import ClassError
from lightspeed_class.reports.export import refuse_outdated, refuse_unmarked
from lightspeed_class.reports.results import outcomes
from lightspeed_class.score import number

GRADED = ("points", "percent", "letter_grade", "gpa_scale")
EXCUSED = "EX"
COMMENT = "Feedback on {name}: see the page attached. Open it in a browser."
SURE_TRIES = 3


@dataclass(frozen=True)
class Sending:
    """What there is to do for a student: `grade` and `page` are "" where there is nothing to send;
    `kept`: what stands on Canvas in place of the grade.
    """

    student: str
    user: str
    grade: str = ""
    page: str = ""
    kept: str = ""
    note: str = ""


def plan(canvas, book, name, pages, leave_unmarked=False, replace=False):
    """([Sending], ids of those who cannot be found on Canvas), from what stands there now. `pages`:
    student id -> path; without any, grades alone. Raises ClassError and Incomplete.
    """
    current = [o for o in outcomes(book, name) if not o.result.student.left]
    refuse_outdated(book, [name], "push")
    if not leave_unmarked:
        refuse_unmarked(name, current, "push with --leave-unmarked, and they get no points yet")
    path, sent = canvas.assignment(name), book.sent(canvas.place(name))
    _check(canvas.get(path), canvas, name, math.fsum(book.assignment(name).points.values()))
    there = {
        str(row.get("user_id")): row
        for row in canvas.pages(f"{path}/submissions", **{"include[]": "submission_comments"})
    }
    todo, lost = [], []
    for outcome in current:
        student = outcome.result.student
        user = student.details.get("canvas_id", "")
        if outcome.status in ("missing", "not graded"):
            continue
        if user not in there:
            lost.append(student.id)
            continue
        todo.append(_sending(outcome, user, there[user], sent, pages.get(student.id), replace))
    return todo, lost


@contextlib.contextmanager
def alone(book):
    """While nobody else sends from this gradebook: both might send the same. Raises ClassError."""
    path = book.path.with_name(".canvas-push")
    with open(path, "w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise ClassError("another push is at work in this class; wait for its end") from None
        yield


def push(canvas, book, name, todo, pages, say):
    """Send what is planned, telling `say` of each. After ClassError the same again goes on."""
    path, place = canvas.assignment(name), canvas.place(name)
    for one in todo:
        own = f"{path}/submissions/{one.user}"
        if one.grade:
            book.add_sent(place, one.student, "grade", one.grade, False)
            canvas.put(own, _grade(one.grade))
            book.add_sent(place, one.student, "grade", one.grade, True)
        if one.page:
            book.add_sent(place, one.student, "feedback", one.page, False)
            _comment(canvas, own, name, one, pages[one.student].read_bytes())
            book.add_sent(place, one.student, "feedback", one.page, True)
        if one.grade or one.page:
            say(one)


def _sending(outcome, user, row, sent, page, replace):
    student = outcome.result.student.id
    wanted = _wanted(outcome)
    here = EXCUSED if row.get("excused") else _points(row)
    ours = sent.get((student, "grade"), {})
    kept = ""
    if wanted and here and here != wanted and here not in ours and not replace:
        kept = here
    grade = "" if not wanted or kept or here == wanted else wanted
    mark = hashlib.sha256(page.read_bytes()).hexdigest()[:12] if page else ""
    arrived = sent.get((student, "feedback"), {}).get(mark) or _has(row, mark)
    return Sending(student, user, grade, "" if arrived else mark, kept, _note(outcome.result, row))


def _wanted(outcome):
    """The points as Canvas takes them; "" for none yet."""
    if outcome.status == "excused":
        return EXCUSED
    points = outcome.result.points
    return "" if points is None or outcome.result.unmarked else number(points)


def _points(row):
    """The points that somebody entered, before Canvas's own rule for what is late."""
    entered = row.get("entered_score")
    score = row.get("score") if entered is None else entered
    return "" if score is None else number(float(score))


def _grade(value):
    """A field for the points: excused students have none."""
    if value == EXCUSED:
        return {"submission[excuse]": "true"}
    return {"submission[posted_grade]": value, "prefer_points_over_scheme": "true"}


def _note(result, row):
    """What an instructor should know before it is sent."""
    found, at = [], seconds(row.get("submitted_at"))
    if result.submission and at and at > result.submission.at + 1:
        found.append("handed in again on Canvas since: pull, then grade")
    if row.get("points_deducted"):
        found.append(f"Canvas takes {number(row['points_deducted'])} off for lateness, too")
    return "; ".join(found)


def _comment(canvas, own, name, one, content):
    """Attach a page to a comment, once."""
    title = f"{name}-feedback-{one.page}.html"
    file = canvas.upload(f"{own}/comments/files", title, content, "text/html")
    fields = {"comment[text_comment]": COMMENT.format(name=name), "comment[file_ids][]": str(file)}
    why = ""
    for _ in range(SURE_TRIES):
        try:
            canvas.put(own, fields, repeatable=False)
            return
        except Unsure as unsure:
            why = str(unsure)
        if _has(canvas.get(own, **{"include[]": "submission_comments"}), one.page):
            return
    raise ClassError(f"Canvas does not take the feedback of {one.student}: {why}. {AGAIN}")


def _has(row, mark):
    """Whether a comment has the page of this mark."""
    return bool(mark) and any(
        f"-{mark}" in str(file.get(key))
        for comment in row.get("submission_comments") or ()
        for file in comment.get("attachments") or ()
        for key in ("display_name", "filename")
    )


def _check(about, canvas, name, out_of):
    """Whether the assignment takes our points. Raises ClassError."""
    kind, theirs = about.get("grading_type"), about.get("points_possible")
    if kind not in GRADED:
        raise ClassError(
            f"{about.get('name') or name} on Canvas is graded as {kind}, which takes no points; set"
            " it to points there"
        )
    if theirs is None or float(theirs) != out_of:
        raise ClassError(
            f"{about.get('name') or name} has {number(theirs or 0)} points on Canvas, and {name}"
            f" {number(out_of)} here: set Points there to {number(out_of)}"
        )
