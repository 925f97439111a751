"""Give feedback back."""

import time
from datetime import datetime

from lightspeed_class.listed import listed
from lightspeed_cli.classroom.arguments import flag, option
from lightspeed_cli.classroom.common import known, many, say_outdated, the_student
from lightspeed_cli.errors import UserError

WORDS = "write a page for each student"
ARGUMENTS = (
    flag("--solutions", "with worked solutions, once nobody has time left"),
    flag("--requests", "with a notebook each to ask for another look in"),
    option("--student", metavar="STUDENT", help="for this one alone"),
    flag("--moodle", "also as a zip that Moodle gives back to all at once"),
    flag("--canvas", "also as a zip for Canvas: Upload Submission Comments as ZIP"),
)


def run(options, course, book):
    from lightspeed_class.class_folder import write_whole
    from lightspeed_class.regrade_requests import request_notebook
    from lightspeed_class.reports.canvas_feedback import write_canvas_zip
    from lightspeed_class.reports.feedback import file_name, open_until, write_feedback
    from lightspeed_class.reports.moodle_feedback import write_moodle_zip

    name = known(book, options.name)
    student = the_student(book, options.student) if options.student else None
    folder = course.root / "feedback" / name
    last = open_until(book, name)
    if options.solutions and (last is None or last[0] > time.time()):
        raise UserError(
            f"{name}: {_wait(*last)}"
            if last
            else f"{name} has no due time, so it is unknown when its solutions may be seen:"
            f" lightspeed class release {name} --due WHEN"
        )
    pages = write_feedback(book, name, folder, student, options.solutions)
    handed_in = [r for r in book.results(name) if r.submission and student in (None, r.student.id)]
    waiting = sum(not r.grading for r in handed_in)
    print(f"{many(len(pages), 'page')} in {folder}")
    if not handed_in:
        print("  nothing was handed in yet, as the pages say")
    elif waiting:
        who = (
            "none of what was handed in is"
            if waiting == len(handed_in)
            else f"{waiting} of {len(handed_in)} are not"
        )
        print(f"  {who} graded yet, as the pages say: lightspeed class grade {name}")
    if unmarked := sum(bool(r.unmarked) for r in handed_in):
        print(
            f"  prose of {unmarked} is not marked yet, as the pages say: lightspeed class desk"
            f" {name}"
        )
    students = {file_name(s.id, ".html"): s.id for s in book.students()}
    by_student = {students[page.name]: page for page in pages}
    if options.requests:
        for id, page in by_student.items():
            questions = book.assignment(name).points
            write_whole(page.with_suffix(".ipynb"), request_notebook(name, id, questions))
        print("  beside each, a notebook in which the student can ask for a review")
    if options.moodle:
        path = course.root / "feedback" / f"{name}-moodle.zip"
        missing = write_moodle_zip(book, name, by_student, path)
        print(f"{many(len(by_student) - len(missing), 'page')} for Moodle in {path}")
        if missing:
            print(
                f"  LEFT OUT, without a participant's number: {listed(missing)}. Read in the"
                " assignment's grading worksheet: lightspeed class roster FILE"
            )
    if options.canvas:
        path = course.root / "feedback" / f"{name}-canvas.zip"
        missing = write_canvas_zip(book, name, by_student, path)
        print(f"{many(len(by_student) - len(missing), 'page')} for Canvas, as notebooks, in {path}")
        if missing:
            print(
                f"  LEFT OUT, as none of their files came from Canvas: {listed(missing)}. It takes"
                " comments as a ZIP only for what was handed in there"
            )
    say_outdated(book, name)


def _wait(due, student):
    until = datetime.fromtimestamp(due).astimezone()
    whose = f"{student} has time" if student else "there is time"
    return f"{whose} until {until:%Y-%m-%d %H:%M (%Z)}; solutions wait for that"
