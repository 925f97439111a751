"""What several verbs of a class need: who and what is meant, and how it is told."""

import difflib
import getpass
from datetime import datetime

from lightspeed_class.listed import listed
from lightspeed_cli.classroom.arguments import flag, option
from lightspeed_cli.errors import UserError

# of a verb that decides something of a student
DECIDED = (
    flag("--undo", "take it back"),
    option("--reason", default="", metavar="TEXT"),
    option("--by", default="", metavar="WHO", help="default: your user name"),
)


SECTION = option("--section", default="", metavar="SECTION", help="of the roster; default: all")


def the_section(book, text):
    """Return the section of the roster matching `text`; "" for all. Raises UserError."""
    from lightspeed.errors import meant

    sections = sorted({section for s in book.students() for section in s.sections})
    matches = [s for s in sections if s == text] or [
        s for s in sections if s.casefold() == text.casefold()
    ]
    if text and len(matches) != 1:
        hint = meant(text, sections) if sections else "the roster has no column section"
        raise UserError(f"there is no section {text}; {hint}")
    return matches[0] if text else ""


def decider(options):
    """Return (reason, who decides)."""
    return options.reason, options.by or getpass.getuser()


def undone(book, options, what, student, name, words):
    """Revoke a decision. Raises UserError if there is none."""
    if student not in book.standing(what, name):
        raise UserError(f"{student} has no {words} for {name} to take back")
    book.decide(what, student, name, None, *decider(options))


def known(book, name):
    """Return the released assignment with this name, number or unique beginning."""
    from lightspeed.errors import meant
    from lightspeed_class.handout.release import spoken

    names = book.assignments()
    matches = (
        [n for n in names if n == name]
        or [n for n in names if n == spoken(name)]
        or [n for n in names if n.startswith(spoken(name))]
    )
    first = min(matches, key=len, default="")
    matches = [n for n in matches if n == first or not n.startswith(first)]
    if len(matches) != 1:
        hint = meant(name, names) if names else f"none is yet: lightspeed class release {name}"
        raise UserError(f"there is no released assignment {name}; {hint}")
    return matches[0]


def the_student(book, text):
    """Return the id of the one student matching `text`."""
    from lightspeed_class.intake.match_submissions import People

    students = book.students()
    matches = sorted(People(students).named(text))
    if len(matches) != 1:
        words = [[w.casefold() for w in (s.id, s.name, *s.name.split())] for s in students]
        alike = [
            who(s)
            for s, own in zip(students, words, strict=True)
            if difflib.get_close_matches(text.casefold(), own, 1)
        ]
        hint = (
            f"did you mean {' or '.join(alike[:4])}?"
            if alike
            else "give an id as it is in the roster"
        )
        raise UserError(
            f"{text} could be {' or '.join(matches)}; give the id"
            if matches
            else f"{text} is not on the roster; {hint}"
        )
    return matches[0]


def who(student):
    return (f"{student.id} ({student.name})" if student.name else student.id) + left_mark(student)


def left_mark(student):
    return " (left)" * student.left


def say_points(course, book, name):
    if course.changed_points(book, name):
        print(
            f"  class.toml gives other points than the release; run lightspeed class release {name}"
        )


def say_changed(book, name):
    """Print which questions the installed course asks differently, if known."""
    from lightspeed_class.asked import Unkept
    from lightspeed_class.kept_questions import KeptQuestions

    try:
        changed = KeptQuestions(book, name).changed()
    except Unkept as error:
        print(f"  {error}")
        return
    if changed:
        print(
            f"  The course that is installed asks {listed(changed)} differently from the release."
            " Marks stay by what was asked. Who would change by the new ones: lightspeed class"
            f" regrade {name} --questions new"
        )


def say_outdated(book, *names, file=None):
    from lightspeed_class.reports.results import outdated

    for line in outdated(book, *names):
        print(f"  {line}", file=file)


def due_words(book, name):
    due = book.setting(f"due {name}")
    return (
        f" Due {datetime.fromtimestamp(float(due)).astimezone():%A %Y-%m-%d %H:%M (%Z)}."
        if due
        else ""
    )


def many(number, noun):
    return f"{number} {noun}{'' if number == 1 else 's'}"


def total(result):
    from lightspeed_class.reports.results import to_mark

    if result.excused:
        return "excused"
    if result.points is None:
        return "no points yet"
    waiting = to_mark(result.unmarked)
    return f"{result.points:g} of {result.out_of:g}" + f" so far, {waiting}" * bool(waiting)


def some(points):
    return f"{points:g} {'point' if points == 1 else 'points'}"
