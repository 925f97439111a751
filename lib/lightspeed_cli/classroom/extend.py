"""More time for one student."""

from datetime import datetime

from lightspeed_cli.argument_types import when
from lightspeed_cli.classroom.arguments import option
from lightspeed_cli.classroom.common import DECIDED, decider, due_words, known, the_student, undone
from lightspeed_cli.errors import UserError

WORDS = "give one student more time"
ARGUMENTS = (
    option("student", metavar="STUDENT"),
    option("until", nargs="?", type=when, metavar="WHEN", help="as --due of release"),
    *DECIDED,
)


def run(options, course, book):
    name, student = known(book, options.name), the_student(book, options.student)
    due, _ = book.due(name)
    if options.undo == (options.until is not None):
        raise UserError("give WHEN, or --undo alone")
    if due is None:
        raise UserError(f"{name} has no due time: lightspeed class release {name} --due WHEN")
    if options.undo:
        undone(book, options, "extended", student, name, "extension")
    elif options.until <= due:
        raise UserError(f"that is not later than for all.{due_words(book, name)}")
    else:
        book.decide("extended", student, name, repr(options.until), *decider(options))
    own, extended = book.due(name, student)
    until = datetime.fromtimestamp(own).astimezone()
    print(
        f"{student}: {name} is due {until:%A %Y-%m-%d %H:%M (%Z)}"
        + ("." if extended else ", as for all.")
    )
