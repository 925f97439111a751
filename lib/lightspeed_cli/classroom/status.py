"""Where each assignment stands."""

from datetime import datetime

from lightspeed_class.listed import listed
from lightspeed_cli.classroom.arguments import option
from lightspeed_cli.classroom.common import (
    SECTION,
    due_words,
    known,
    left_mark,
    many,
    say_changed,
    say_outdated,
    say_points,
    the_section,
    total,
    who,
)

WORDS = "show where each assignment stands"
ARGUMENTS = (option("name", nargs="?", metavar="NAME"), SECTION)
NAMED = False


def run(options, course, book):
    names = [known(book, options.name)] if options.name else book.assignments()
    section = the_section(book, options.section)
    all_of_it = [s for s in book.students() if s.is_in(section)]
    here = [s for s in all_of_it if not s.left]
    more = f" ({len(all_of_it) - len(here)} more left)" if len(here) < len(all_of_it) else ""
    where = f", section {section}" if section else ""
    print(
        f"{course.name}{where}: {many(len(here), 'student')}{more},"
        f" {many(len(names), 'assignment')}"
    )
    for name in names:
        _show_status(course, book, name, section)
    if options.name:
        results = book.results(names[0], section=section)
        wide = [
            max(len(text) for text in column)
            for column in zip(
                *((r.student.id, r.student.name + left_mark(r.student)) for r in results),
                strict=True,
            )
        ] or [0, 0]
        for r in results:
            points = "" if r.points is None and not r.excused else total(r)
            grading = (
                f"grading {r.grading.id}, {r.grading.graded.status}"
                if r.grading
                else "not graded"
                if r.submission
                else "nothing handed in"
            )
            print(
                f"  {r.student.id:<{wide[0]}}  {r.student.name + left_mark(r.student):<{wide[1]}} "
                f" {points:<12} {grading}"
                + "".join(f", {words}" for words in _policies(r))
                + ", points or a comment by hand" * bool(r.manual)
            )


def _policies(result):
    from lightspeed_class.reports.results import Outcome

    outcome = Outcome(result)
    until = result.extended
    extension = f"extended to {datetime.fromtimestamp(until):%Y-%m-%d %H:%M}" if until else ""
    return filter(None, (extension, outcome.late, outcome.cost))


def _show_status(course, book, name, section):
    from lightspeed_class.intake.kept_files import put_aside
    from lightspeed_class.lateness import late
    from lightspeed_class.regrade_requests import waiting

    asking = {student for student, _ in waiting(book, name)}
    results = [r for r in book.results(name, section=section) if not r.student.left]
    here = {r.student.id for r in results}
    submissions = [s for s in book.submissions(name) if s.student in here]
    handed_in = [r for r in results if r.submission]
    overdue = [s for s in submissions if late(s.source, s.at, *book.due(name, s.student))]
    gradings = [r for r in handed_in if r.grading]
    unreadable = [who(r.student) for r in gradings if r.grading.graded.status == "refused"]
    print(f"{name}: {many(len(book.assignment(name).points), 'question')}.{due_words(book, name)}")
    print(
        f"  handed in by {len(handed_in)} of {len(results)}"
        f" ({many(len(submissions), 'submission')}, {len(overdue)} late); graded {len(gradings)}"
    )
    for what, those in (
        ("nothing from", [who(r.student) for r in results if not (r.submission or r.excused)]),
        ("excused:", [who(r.student) for r in results if r.excused]),
        ("more time for", [who(r.student) for r in results if r.extended]),
        (
            "handed in at an unknown time, so no late penalty:",
            [who(r.student) for r in handed_in if r.lateness.seconds is None]
            if book.late_rule.points_per_day or book.late_rule.late_days
            else [],
        ),
        ("waits for grading:", [who(r.student) for r in handed_in if not r.grading]),
        ("has prose that nobody marked yet:", [who(r.student) for r in gradings if r.unmarked]),
        ("asks for another look:", [who(r.student) for r in results if r.student.id in asking]),
        ("could not be read:", unreadable),
        (
            "ended early:",
            [who(r.student) for r in gradings if r.grading.graded.status not in ("ok", "refused")],
        ),
    ):
        if those:
            print(f"  {what} {listed(those)}")
    for line in put_aside(course, book, name):
        print(f"  {line}")
    say_points(course, book, name)
    say_outdated(book, name)
    say_changed(book, name)
    if book.setting(f"regrade {name}"):
        print(f"  a regrade has not come to its end: lightspeed class regrade {name}")
